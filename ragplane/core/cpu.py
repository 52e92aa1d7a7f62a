"""How many CPUs this process may use: the cgroup's quota and the affinity, not the host's count."""

from __future__ import annotations

import math
import os
from pathlib import Path

_CGROUP_V2 = Path("/sys/fs/cgroup/cpu.max")
_CGROUP_V1 = Path("/sys/fs/cgroup/cpu")


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
