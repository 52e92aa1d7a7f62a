"""Pooling, normalisation and late interaction, against torch and by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ragplane.core.errors import LimitError, NonFiniteError
from serve.pooling import (
    check_dimensions,
    content_rows,
    max_sim,
    normalize,
    pool,
    require_finite,
)

TOKENS = np.random.default_rng(0).normal(size=(7, 16)).astype(np.float32)


def test_mean_pooling_equals_torch_on_a_padded_batch() -> None:
    state = torch.zeros(1, 12, 16)
    state[0, :7] = torch.from_numpy(TOKENS)
    mask = torch.tensor([[1] * 7 + [0] * 5])[..., None]
    expected = (state * mask).sum(1) / mask.sum(1)
    np.testing.assert_allclose(pool(TOKENS, "mean"), expected[0].numpy(), atol=1e-6)


def test_cls_pooling_takes_the_first_token() -> None:
    np.testing.assert_array_equal(pool(TOKENS, "cls"), TOKENS[0])


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
