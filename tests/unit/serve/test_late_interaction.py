"""Late interaction gives the same scores whatever runs first."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from ragplane.core.tokens import TokenizedText
from serve.late_interaction import LateInteraction
from serve.token_cache import TokenCache

STATES = {
    ids: np.random.default_rng(ids[1]).normal(size=(len(ids), 8)).astype(np.float32)
    for ids in ((1, 5, 2), (1, 6, 7, 2), (1, 8, 2))
}
QUERY, *TEXTS = (TokenizedText(ids, (True, *[False] * (len(ids) - 2), True)) for ids in STATES)


def scores(order: tuple[int, ...], cache: TokenCache) -> tuple[float, ...]:
    interaction = LateInteraction(QUERY, [*TEXTS, TEXTS[0]], cache)
    works = interaction.works()
    for index in order:
        if index < len(works):
            works[index].reduce(STATES[works[index].input.ids])
    return interaction.scores()


def test_the_order_of_the_batch_changes_nothing() -> None:
    results = {scores(order, TokenCache(1 << 20)) for order in permutations(range(3))}
    assert len(results) == 1
    (only,) = results
    assert only[0] == only[2]


def test_known_texts_run_no_more() -> None:
    cache = TokenCache(1 << 20)
    first = scores((0, 1, 2), cache)
    interaction = LateInteraction(QUERY, TEXTS, cache)
    assert [work.input.ids for work in interaction.works()] == [QUERY.ids]
    assert scores((0,), cache) == first
