"""The compiled kernels, against PyTorch in float32 and float64."""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import psutil
import pytest
import torch
from structlog.testing import capture_logs
from torch import Tensor
from torch.nn import functional

from serve.backends.fused import FusedOps
from serve.backends.kernels import library
from serve.backends.kernels.layout import may_use_tiles
from serve.backends.kernels.library import Kernels, load_kernels
from serve.backends.ops import Norm, Ops, make_ops

needs_tiles = pytest.mark.skipif(not may_use_tiles(), reason="this processor has no AMX tiles")


@pytest.fixture(scope="module")
def kernels(model_home: Path) -> Kernels:
    return load_kernels(model_home / "models")[0]


@pytest.fixture(scope="module")
def fused(kernels: Kernels) -> FusedOps:
    return FusedOps(kernels)


def attended(projected: Tensor, lengths: Sequence[int], heads: int) -> Tensor:
    """Each input by itself, in float32."""
    parts = []
    for part in projected[: sum(lengths)].float().split(list(lengths)):
        query, key, value = part.view(len(part), 3, heads, -1).permute(1, 2, 0, 3)
        seen = functional.scaled_dot_product_attention(query, key, value)
        parts.append(seen.transpose(0, 1).reshape(len(part), -1))
    return torch.cat(parts)


@needs_tiles
@pytest.mark.parametrize(
    ("heads", "width"), [(12, 32), (1, 32), (3, 64), (2, 96), (16, 64), (2, 128)]
)
def test_attention_is_that_of_each_input_alone(fused: FusedOps, heads: int, width: int) -> None:
    lengths = [1, 2, 15, 16, 17, 31, 32, 33, 64, 100, 257, 512]
    torch.manual_seed(0)
    projected = torch.randn(sum(lengths) + 5, 3 * heads * width).bfloat16()
    got = fused.attention(lengths, heads, width)(projected)
    want = attended(projected, lengths, heads)
    torch.testing.assert_close(got[: len(want)].float(), want, atol=0.01, rtol=0.01)
    assert (got[len(want) :] == 0).all()
    windows = Ops(torch.bfloat16, "cpu").attention(lengths, heads, width)(projected)
    distance = (got.float() - windows.float()).square().mean().sqrt()
    assert distance < 0.001


@needs_tiles
def test_attention_does_not_see_what_lies_beside_an_input(fused: FusedOps) -> None:
    """Nor what an earlier call left in the memory that it works in."""
    torch.manual_seed(0)
    projected = torch.randn(60, 3 * 64).bfloat16()
    attend = fused.attention([20, 3, 37], 2, 32)
    want = attend(projected)
    projected[20:23] = math.nan
    got = attend(projected)
    assert torch.equal(got[:20], want[:20])
    assert torch.equal(got[23:], want[23:])
    assert got[20:23].isnan().all()
    projected[20:23] = 0
    again = attend(projected)
    assert torch.equal(again[:20], want[:20])
    assert not again.isnan().any()


@needs_tiles
@pytest.mark.parametrize("part", range(3))
def test_what_is_no_number_shows(fused: FusedOps, part: int) -> None:
    """Behaviour 20: a NaN among queries, keys or values is not lost in the softmax."""
    projected = torch.randn(40, 3, 2, 32).bfloat16()
    projected[5, part] = math.nan
    got = fused.attention([40], 2, 32)(projected.view(40, -1))
    assert got[5].isnan().all()


@needs_tiles
@pytest.mark.parametrize("size", [1.0, 300.0, 1e5, 1e8, 1e15])
def test_scores_of_any_size(fused: FusedOps, size: float) -> None:
    """Powers of scores that are all far below 0 are not lost, nor do large ones overflow."""
    torch.manual_seed(0)
    sizes = torch.tensor([size, size, 1.0]).view(3, 1, 1)
    projected = (torch.randn(50, 3, 2, 32) * sizes).bfloat16()
    projected[:, 0, 1], projected[:, 1, 1] = size, -size
    got = fused.attention([50], 2, 32)(projected.view(50, -1))
    want = attended(projected.view(50, -1), [50], 2)
    torch.testing.assert_close(got.float(), want, atol=0.02, rtol=0.02)


@pytest.mark.parametrize(("count", "width"), [(1, 16), (7, 48), (33, 384), (5, 1024)])
def test_sum_and_norm(fused: FusedOps, count: int, width: int) -> None:
    torch.manual_seed(0)
    rows, product = torch.randn(count, width) * 5 + 3, torch.randn(count, width).bfloat16()
    norm = Norm(torch.randn(width), torch.randn(width), 1e-12, "cpu")
    want, want_rounded = Ops(torch.bfloat16, "cpu").add_norm(rows.clone(), product, norm)
    got, rounded = fused.add_norm(rows, product, norm)
    torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(rounded, got.bfloat16(), atol=0, rtol=0)
    assert (rounded != want_rounded).float().mean() < 0.01


def test_what_kernels_do_not_take_is_left_to_pytorch(fused: FusedOps) -> None:
    torch.manual_seed(0)
    plain = Ops(torch.bfloat16, "cpu")
    projected = torch.randn(20, 3 * 3 * 8).bfloat16()  # heads of 8
    got = fused.attention([20], 3, 8)(projected)
    torch.testing.assert_close(got, plain.attention([20], 3, 8)(projected))
    rows, product = torch.randn(5, 24), torch.randn(5, 24).bfloat16()
    norm = Norm(torch.ones(24), torch.zeros(24), 1e-12, "cpu")
    torch.testing.assert_close(
        fused.add_norm(rows.clone(), product, norm), plain.add_norm(rows, product, norm)
    )


def test_only_what_a_kernel_takes_is_given_to_it(fused: FusedOps) -> None:
    rows, product = torch.zeros(4, 32), torch.zeros(4, 32).bfloat16()
    norm = Norm(torch.ones(32), torch.ones(32), 1e-12, "cpu")
    short = Norm(torch.ones(16), torch.ones(16), 1e-12, "cpu")
    wrong: list[tuple[Tensor, Tensor, Norm]] = [
        (torch.zeros(4, 64)[:, ::2], product, norm),
        (rows.double(), product, norm),
        (rows, product[:3], norm),
        (rows, product.float(), norm),
        (rows, product, short),
    ]
    for one in wrong:
        with pytest.raises(RuntimeError, match="a kernel takes"):
            fused.add_norm(*one)


@needs_tiles
@pytest.mark.parametrize("shape", [(19, 3 * 64), (20, 3 * 32), (40, 3 * 32)])
def test_only_all_rows_attend(fused: FusedOps, shape: tuple[int, int]) -> None:
    with pytest.raises(RuntimeError, match="a kernel takes"):
        fused.attention([20], 2, 32)(torch.zeros(shape).bfloat16())


def test_kernels_are_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_kernels(tmp_path)
    (file,) = tmp_path.iterdir()
    monkeypatch.setattr(library, "_build", lambda: pytest.fail("compiled anew"))
    load_kernels(tmp_path)
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(pytest.fail.Exception, match="anew"):  # a file that is not whole is not run
        load_kernels(tmp_path)


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("no.such.module", "No module named"),
        ("serve.backends.kernels.lanes", "not whole"),
    ],
)
def test_without_a_compiler_pytorch_does_it(
    module: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second module writes nothing, which is no machine code."""
    monkeypatch.setattr(library, "_BUILD", module)
    with capture_logs() as logs:
        ops = make_ops(torch.bfloat16, "cpu", tmp_path / "models")
    assert type(ops) is Ops
    assert re.search(reason, logs[0]["reason"])


def test_without_numba_pytorch_does_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def not_installed() -> str:
        raise PackageNotFoundError("numba")

    monkeypatch.setattr(library, "sources_digest", not_installed)
    with capture_logs() as logs:
        ops = make_ops(torch.bfloat16, "cpu", tmp_path)
    assert type(ops) is Ops
    assert "numba" in logs[0]["reason"]


def test_a_folder_that_cannot_be_written_keeps_nothing(
    kernels: Kernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    with capture_logs() as logs:
        ops = make_ops(torch.bfloat16, "cpu", file / "models")
    assert isinstance(ops, FusedOps)
    assert logs[0]["event"] == "the compiled kernels are not kept"


def test_a_build_ends_with_who_started_it(tmp_path: Path) -> None:
    code = "import sys, pathlib; from serve.backends.kernels.library import load_kernels; "
    code += "load_kernels(pathlib.Path(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, start_new_session=True) as process:
        builds: list[psutil.Process] = []
        while not builds:
            assert process.poll() is None
            builds = psutil.Process(process.pid).children()
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGTERM)
    psutil.wait_procs(builds, timeout=10)
    assert not any(build.is_running() for build in builds)
    assert not list(tmp_path.iterdir())
