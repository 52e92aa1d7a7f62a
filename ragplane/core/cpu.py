"""What this process may use: CPUs and memory by the cgroup, not by the host."""

from __future__ import annotations

import contextlib
import math
import os
from pathlib import Path

import psutil
from threadpoolctl import threadpool_limits

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")
_MEMORY_LIMITS = ("memory.max", "memory.limit_in_bytes")
_CPU_INFO = Path("/proc/cpuinfo")
_BFLOAT16_FLAGS = {"amx_bf16", "avx512_bf16", "bf16"}


def available_cpus() -> int:
    """CPUs to use, at least 1."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(affinity or 1, quota_cpus() or affinity or 1))


def quota_cpus(root: Path = _CGROUPS, own: Path = _OWN_CGROUPS) -> int | None:
    """The smallest CPU quota of this process's cgroups, rounded up; None without a quota."""
    quotas = [_quota_cpus(folder) for folder in _folders("cpu", root, own)]
    return min((math.ceil(quota) for quota in quotas if quota is not None), default=None)


def memory_bytes(root: Path = _CGROUPS, own: Path = _OWN_CGROUPS) -> int:
    """Memory to use: the smallest limit of this process's cgroups, or what the host has."""
    smallest = int(psutil.virtual_memory().total)
    for folder in _folders("memory", root, own):
        for name in _MEMORY_LIMITS:
            with contextlib.suppress(OSError, ValueError):  # not of this version, or "max"
                smallest = min(smallest, int((folder / name).read_text()))
    return smallest


def cpu_model(info: Path = _CPU_INFO) -> str:
    """The name of the processor and what it can do, as far as the system tells."""
    return " ".join(_field(info, name) for name in ("model name", "flags", "Features"))


def has_bfloat16(info: Path = _CPU_INFO) -> bool:
    """Whether the processor multiplies bfloat16 itself."""
    flags = f"{_field(info, 'flags')} {_field(info, 'Features')}".split()
    return not _BFLOAT16_FLAGS.isdisjoint(flags)


def keep_blas_single_threaded() -> None:
    """Have numpy's matrix products run on the thread that asks, in this whole process.

    Its library would start a thread for each CPU beside those of the encoder, and make late
    interaction 1.5 times slower.
    """
    threadpool_limits(1, user_api="blas")


def _folders(controller: str, root: Path, own: Path) -> list[Path]:
    """The cgroups that limit this process, of both versions, from its own up to the root.

    In a container they may be named as the host sees them; what is not there is passed over when
    its files are read.
    """
    found: list[Path] = []
    for line in _lines(own):
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        top = root / controller if controllers else root
        inner = top / path.strip("/")
        found += [folder for folder in (inner, *inner.parents) if folder.is_relative_to(top)]
    return found or [root, root / controller]


def _quota_cpus(folder: Path) -> float | None:
    try:
        if (folder / "cpu.max").is_file():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text()
            period = (folder / "cpu.cfs_period_us").read_text()
        return int(quota) / int(period) if int(quota) > 0 else None
    except (OSError, ValueError):  # no such cgroup, or "max": no quota
        return None


def _field(info: Path, name: str) -> str:
    """The first value of a field of /proc/cpuinfo."""
    values = (
        value.strip()
        for key, _, value in (line.partition(":") for line in _lines(info))
        if key.strip() == name
    )
    return next(values, "")


def _lines(file: Path) -> list[str]:
    """None where the system has no such file."""
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
