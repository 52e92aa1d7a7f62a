"""CPUs of this process from the cgroup's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragplane.core.cpu import available_cpus, cpu_model, has_bfloat16, memory_bytes, quota_cpus


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
    file = tmp_path / "cpu.max"
    file.write_text(text)
    assert quota_cpus(v2=file, v1=tmp_path) == cpus


@pytest.mark.parametrize(("quota", "cpus"), [("350000\n", 4), ("-1\n", None)])
def test_quota_of_version_1(quota: str, cpus: int | None, tmp_path: Path) -> None:
    (tmp_path / "cpu.cfs_quota_us").write_text(quota)
    (tmp_path / "cpu.cfs_period_us").write_text("100000\n")
    assert quota_cpus(v2=tmp_path / "cpu.max", v1=tmp_path) == cpus


def test_no_cgroup_is_no_quota(tmp_path: Path) -> None:
    assert quota_cpus(v2=tmp_path / "cpu.max", v1=tmp_path) is None


@pytest.mark.parametrize(("quota", "cpus"), [(None, 3), (2, 2), (8, 3)])
def test_smaller_of_quota_and_affinity_counts(
    quota: int | None, cpus: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    monkeypatch.setattr("ragplane.core.cpu.quota_cpus", lambda: quota)
    assert available_cpus() == cpus


def test_memory_is_what_the_cgroup_allows(tmp_path: Path) -> None:
    """Behaviour 2."""
    limit, unlimited = tmp_path / "limit", tmp_path / "unlimited"
    limit.write_text("1048576\n")
    unlimited.write_text("max\n")
    assert memory_bytes([tmp_path / "none", limit]) == 1048576
    assert memory_bytes([unlimited]) > 1048576


def test_what_the_processor_can_do(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\nmodel name\t: Fast One\nflags\t\t: fpu amx_bf16 sse\n\n")
    assert has_bfloat16(info)
    assert "Fast One" in cpu_model(info)
    info.write_text("flags\t\t: fpu sse\n")
    assert not has_bfloat16(info)
    assert not has_bfloat16(tmp_path / "none")
