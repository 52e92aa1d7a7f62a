"""Pooling, normalisation and late interaction, against torch and by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ragplane.core.errors import LimitError, ModelError, NonFiniteError
from ragplane.core.models import Pooling
from serve.pooling import (
    activate,
    check_dimensions,
    content_rows,
    max_sim,
    normalize,
    pool,
    require_finite,
    sparse_weights,
)

POOLINGS: tuple[Pooling, ...] = (
    "cls",
    "last-token",
    "max",
    "mean",
    "mean-sqrt-length",
    "weighted-mean",
)
TOKENS = np.random.default_rng(0).normal(size=(7, 16)).astype(np.float32)


def test_mean_pooling_equals_torch_on_a_padded_batch() -> None:
    state = torch.zeros(1, 12, 16)
    state[0, :7] = torch.from_numpy(TOKENS)
    mask = torch.tensor([[1] * 7 + [0] * 5])[..., None]
    expected = (state * mask).sum(1) / mask.sum(1)
    np.testing.assert_allclose(pool(TOKENS, "mean"), expected[0].numpy(), atol=1e-6)


def test_one_token_or_each_maximum_may_stand_for_all() -> None:
    np.testing.assert_array_equal(pool(TOKENS, "cls"), TOKENS[0])
    np.testing.assert_array_equal(pool(TOKENS, "last-token"), TOKENS[-1])
    np.testing.assert_array_equal(pool(TOKENS, "max"), TOKENS.max(axis=0))


def test_weighted_sums_are_those_of_their_definitions() -> None:
    weights = np.arange(1, 8)[:, None]
    want = (TOKENS * weights).sum(axis=0) / weights.sum()
    np.testing.assert_allclose(pool(TOKENS, "weighted-mean"), want, rtol=1e-5)
    want = TOKENS.sum(axis=0) / 7**0.5
    np.testing.assert_allclose(pool(TOKENS, "mean-sqrt-length"), want, rtol=1e-5)


def test_splade_gives_no_dense_vector() -> None:
    with pytest.raises(ModelError, match="splade"):
        pool(TOKENS, "splade")


@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_pooled_vector_is_float32_and_owns_its_memory(pooling: Pooling) -> None:
    vector = pool(TOKENS, pooling)
    assert (vector.dtype, vector.shape, vector.base) == (np.float32, (16,), None)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_fault_in_any_token_is_in_the_vector(pooling: Pooling, value: float) -> None:
    """Behaviour 20: a token that the pooling leaves out shows that the pass went wrong."""
    tokens = TOKENS.copy()
    tokens[3, 2], tokens[4, 2] = value, np.inf
    assert np.isnan(pool(tokens, pooling)).all()


@pytest.mark.parametrize("pooling", ["mean", "mean-sqrt-length", "weighted-mean"])
def test_a_sum_that_is_no_float32_is_not_finite(pooling: Pooling) -> None:
    """Behaviour 20."""
    tokens = np.full((7, 16), 3e38, np.float32)
    assert not np.isfinite(pool(tokens, pooling)).any()


def test_softmax_and_sigmoid_equal_torch_and_never_overflow() -> None:
    logits = np.array([[1e4, -1e4, 3.0], [0.5, -2.0, 80.0], [-95.0, 95.0, 0.0]], np.float32)
    tensor = torch.from_numpy(logits)
    np.testing.assert_allclose(activate(logits, "softmax"), tensor.softmax(-1).numpy(), atol=1e-6)
    np.testing.assert_allclose(activate(logits, "sigmoid"), tensor.sigmoid().numpy(), atol=1e-6)
    np.testing.assert_array_equal(activate(logits, "identity"), logits)
    assert activate(logits, "softmax").dtype == np.float32


def test_sparse_weights_leave_the_zeros_out() -> None:
    row = np.array([0, 1.5, 0, 0, 0.25], np.float32)
    assert sparse_weights(row) == {1: 1.5, 4: 0.25}


def test_normalize_equals_torch_and_keeps_zero() -> None:
    expected = torch.nn.functional.normalize(torch.from_numpy(TOKENS)).numpy()
    np.testing.assert_allclose(normalize(TOKENS), expected, atol=1e-6)
    assert not normalize(np.zeros(4, np.float32)).any()


def test_max_sim_is_the_mean_of_the_best_matches() -> None:
    query = np.array([[1, 0], [0, 1]], np.float32)
    document = np.array([[1, 0], [0.6, 0.8]], np.float32)
    assert max_sim(query, document) == pytest.approx((1 + 0.8) / 2)
    assert max_sim(query, -query) == pytest.approx(0)


def test_content_rows_leaves_out_special_tokens() -> None:
    special = [True, *[False] * 5, True]
    np.testing.assert_array_equal(content_rows(TOKENS, special), TOKENS[1:6])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(value: float) -> None:
    with pytest.raises(NonFiniteError):
        require_finite(np.array([0, value], np.float32))


@pytest.mark.parametrize("wanted", [0, -1, 385])
def test_bad_dimensions_are_refused(wanted: int) -> None:
    with pytest.raises(LimitError, match="from 1 to 384"):
        check_dimensions(wanted, 384)


def test_huge_vectors_are_scaled_too() -> None:
    np.testing.assert_allclose(normalize(np.array([3e38, 4e38 / 2, 0], np.float32))[0], 0.832, 0.01)
    np.testing.assert_allclose(np.linalg.norm(normalize(np.full(9, 2e38, np.float32))), 1, 1e-6)
