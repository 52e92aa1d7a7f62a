"""What this process may use: CPUs and memory by the cgroup, not by the host."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path

import psutil

_CGROUP_V2 = Path("/sys/fs/cgroup/cpu.max")
_CGROUP_V1 = Path("/sys/fs/cgroup/cpu")
_MEMORY_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
_CPU_INFO = Path("/proc/cpuinfo")
_BFLOAT16_FLAGS = {"amx_bf16", "avx512_bf16", "bf16"}


def available_cpus() -> int:
    """CPUs to use, at least 1."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(affinity or 1, quota_cpus() or affinity or 1))


def quota_cpus(v2: Path = _CGROUP_V2, v1: Path = _CGROUP_V1) -> int | None:
    """The cgroup's CPU quota, rounded up; None without a quota."""
    try:
        if v2.is_file():
            quota, period = v2.read_text().split()
        else:
            quota = (v1 / "cpu.cfs_quota_us").read_text()
            period = (v1 / "cpu.cfs_period_us").read_text()
        return math.ceil(int(quota) / int(period)) if int(quota) > 0 else None
    except (OSError, ValueError):  # no cgroup, or "max": no quota
        return None


def memory_bytes(limits: Sequence[Path] = _MEMORY_LIMITS) -> int:
    """Memory to use: the cgroup's limit, or what the host has."""
    total = int(psutil.virtual_memory().total)
    for limit in limits:
        try:
            return min(total, int(limit.read_text()))
        except (OSError, ValueError):  # no cgroup of this version, or "max": no limit
            continue
    return total


def cpu_model(info: Path = _CPU_INFO) -> str:
    """The name of the processor and what it can do, as far as the system tells."""
    return " ".join(sorted({_field(info, "model name"), _field(info, "flags")}))


def has_bfloat16(info: Path = _CPU_INFO) -> bool:
    """Whether the processor multiplies bfloat16 itself."""
    flags = f"{_field(info, 'flags')} {_field(info, 'Features')}".split()
    return not _BFLOAT16_FLAGS.isdisjoint(flags)


def _field(info: Path, name: str) -> str:
    """The first value of a field of /proc/cpuinfo."""
    try:
        lines = info.read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    values = (
        value.strip()
        for key, _, value in (line.partition(":") for line in lines)
        if key.strip() == name
    )
    return next(values, "")
