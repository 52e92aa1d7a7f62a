"""CPUs of this process from the cgroup's files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from ragplane.core.cpu import (
    available_cpus,
    cpu_model,
    has_bfloat16,
    keep_blas_single_threaded,
    memory_bytes,
    quota_cpus,
)


def make_group(root: Path, **files: str) -> Path:
    """A cgroup; an underscore stands for the first dot of a file's name."""
    root.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (root / name.replace("_", ".", 1)).write_text(text)
    return root


def own_groups(folder: Path, *lines: str) -> Path:
    file = folder / "own"
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("200000 100000\n", 2),
        ("150000 100000\n", 2),  # part of a CPU is a CPU
        ("20000 100000\n", 1),
        ("max 100000\n", None),
        ("", None),
    ],
)
def test_quota_of_version_2(text: str, cpus: int | None, tmp_path: Path) -> None:
    root = make_group(tmp_path / "root", cpu_max=text)
    assert quota_cpus(root, own_groups(tmp_path, "0::/")) == cpus


@pytest.mark.parametrize(("quota", "cpus"), [("350000\n", 4), ("-1\n", None)])
def test_quota_of_version_1(quota: str, cpus: int | None, tmp_path: Path) -> None:
    make_group(tmp_path / "root/cpu", cpu_cfs_quota_us=quota, cpu_cfs_period_us="100000\n")
    assert quota_cpus(tmp_path / "root", tmp_path / "none") == cpus
    own = own_groups(tmp_path, "4:cpuacct,cpu:/host/names/it/so", "0::/")
    assert quota_cpus(tmp_path / "root", own) == cpus


def test_no_cgroup_is_no_quota(tmp_path: Path) -> None:
    assert quota_cpus(tmp_path, tmp_path / "none") is None


def test_the_smallest_limit_on_the_way_up_counts(tmp_path: Path) -> None:
    """Behaviour 27: a service or a pod may be limited far from the root."""
    root = make_group(tmp_path / "root", memory_max="max\n")
    make_group(root / "slice", cpu_max="300000 100000\n", memory_max="1048576\n")
    make_group(root / "slice/service", cpu_max="max 100000\n", memory_max="2097152\n")
    make_group(root / "other", cpu_max="100000 100000\n", memory_max="1024\n")
    own = own_groups(tmp_path, "0::/slice/service")
    assert quota_cpus(root, own) == 3
    assert memory_bytes(root, own) == 1048576


@pytest.mark.parametrize(("quota", "cpus"), [(None, 3), (2, 2), (8, 3)])
def test_smaller_of_quota_and_affinity_counts(
    quota: int | None, cpus: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    monkeypatch.setattr("ragplane.core.cpu.quota_cpus", lambda: quota)
    assert available_cpus() == cpus


def test_memory_is_what_the_cgroup_allows(tmp_path: Path) -> None:
    """Behaviour 2."""
    root = make_group(tmp_path / "root/memory", memory_limit_in_bytes="1048576\n").parent
    assert memory_bytes(root, own_groups(tmp_path, "5:memory:/own", "0::/")) == 1048576
    make_group(root / "memory/own", memory_limit_in_bytes="4096\n")
    assert memory_bytes(root, tmp_path / "own") == 4096
    assert memory_bytes(make_group(tmp_path / "v2", memory_max="max\n")) > 1048576


def test_what_the_processor_can_do(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\nmodel name\t: Fast One\nflags\t\t: fpu amx_bf16 sse\n\n")
    assert has_bfloat16(info)
    assert "Fast One" in cpu_model(info)
    assert "amx_bf16" in cpu_model(info)
    info.write_text("processor\t: 0\nFeatures\t: fp asimd bf16\n")
    assert has_bfloat16(info)
    assert "asimd" in cpu_model(info)
    info.write_text("flags\t\t: fpu sse\n")
    assert not has_bfloat16(info)
    assert not has_bfloat16(tmp_path / "none")


def test_blas_runs_on_the_thread_that_asks() -> None:
    assert np.__version__  # its library is loaded
    before = threadpool_info()
    try:
        keep_blas_single_threaded()
        pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
        assert pools
        assert {pool["num_threads"] for pool in pools} == {1}
    finally:
        threadpool_limits(before)
