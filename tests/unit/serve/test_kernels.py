"""The compiled kernels, against PyTorch in float32 and float64."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from structlog.testing import capture_logs
from torch import Tensor
from torch.nn import functional

from ragplane.core.errors import ModelError
from serve.backends.fused import FusedOps, make_ops
from serve.backends.kernels import library
from serve.backends.kernels.amx import may_use_tiles
from serve.backends.kernels.library import Kernels, load_kernels
from serve.backends.linear import Linear, make_linear
from serve.backends.ops import Norm, Ops

needs_tiles = pytest.mark.skipif(not may_use_tiles(), reason="this processor has no AMX tiles")


@pytest.fixture(scope="module")
def kernels(model_home: Path) -> Kernels:
    loaded = load_kernels(model_home / "models")
    assert loaded is not None
    return loaded


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
@pytest.mark.parametrize(("heads", "width"), [(12, 32), (1, 32), (3, 64), (2, 96), (16, 64)])
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
def test_large_scores_overflow_nothing(fused: FusedOps) -> None:
    projected = (
        torch.randn(50, 3, 2, 32) * torch.tensor([300.0, 300.0, 1.0]).view(3, 1, 1)
    ).bfloat16()
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


def test_gelu_of_every_bfloat16(fused: FusedOps) -> None:
    every = torch.arange(-(1 << 15), 1 << 15).to(torch.int16).view(torch.bfloat16)
    exact = functional.gelu(every.double())
    linear = Linear(torch.ones(1, 1).bfloat16(), torch.zeros(1).bfloat16())  # changes nothing
    got = fused.activated(linear, every.view(-1, 1), "gelu").view(-1).double()
    assert got[every.isnan()].isnan().all()
    finite = every.isfinite() & (every.abs() < 1000)
    error = (got - exact)[finite].abs()
    rounding = exact[finite].abs() * 2.0**-8
    assert (error <= rounding + 1.5e-4).all()


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
    linear = make_linear(torch.randn(7, 24), torch.randn(7), torch.bfloat16, "cpu")
    for activation in ("gelu", "relu", "gelu-tanh"):
        torch.testing.assert_close(
            fused.activated(linear, product, activation),
            plain.activated(linear, product, activation),
            atol=0.02,
            rtol=0.02,
        )


@needs_tiles
def test_rows_with_gaps_are_refused(fused: FusedOps) -> None:
    with pytest.raises(RuntimeError, match="one after the other"):
        fused.add_norm(
            torch.zeros(4, 64)[:, ::2],
            torch.zeros(4, 32).bfloat16(),
            Norm(torch.ones(32), torch.ones(32), 1e-12, "cpu"),
        )


def test_kernels_are_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_kernels(tmp_path) is not None
    (file,) = tmp_path.iterdir()
    monkeypatch.setattr(library, "_build", lambda: pytest.fail("compiled anew"))
    assert load_kernels(tmp_path) is not None
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(pytest.fail.Exception, match="anew"):  # a file that is not whole is not run
        load_kernels(tmp_path)


def test_without_a_compiler_pytorch_does_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> str:
        raise ModelError("No module named numba")

    monkeypatch.setattr(library, "run_module", fails)
    with capture_logs() as logs:
        ops = make_ops(torch.bfloat16, "cpu", tmp_path)
    assert type(ops) is Ops
    assert "No module named numba" in logs[0]["reason"]
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_keeps_nothing(
    kernels: Kernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    monkeypatch.setattr(library, "_build", lambda: b"code")
    monkeypatch.setattr(library, "Kernels", bytes)
    with capture_logs() as logs:
        assert load_kernels(file / "models") == b"code"
    assert logs[0]["event"] == "the compiled kernels are not kept"
