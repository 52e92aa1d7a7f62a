"""Late interaction of one request (ColBERT, arXiv 2004.12832): MaxSim over token vectors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ragplane.core.tokens import TokenizedText
from serve.backends.base import ModelInput, TokenIds
from serve.batching.work import Work
from serve.encoder import Vectors
from serve.pooling import content_rows, max_sim, normalize
from serve.token_cache import TokenCache


class LateInteraction:
    """Scores texts against one query, in whatever order the model runs them.

    Every text is encoded by itself, so its score depends on nothing but the query, and its token
    vectors serve later queries too.
    """

    def __init__(
        self, query: TokenizedText, texts: Sequence[TokenizedText], cache: TokenCache
    ) -> None:
        self._query = query
        self._texts = texts
        self._cache = cache
        self._asked: Vectors | None = None
        self._scores: dict[TokenIds, float] = {}
        self._unscored: dict[TokenIds, Vectors] = {}

    def works(self) -> list[Work[None]]:
        """What is to be run: the query, and the texts that are not known from before."""
        fresh: list[TokenIds] = []
        for ids in dict.fromkeys(text.ids for text in self._texts):
            cached = self._cache.get(ids)
            if cached is None:
                fresh.append(ids)
            else:
                self._unscored[ids] = cached
        query = Work(ModelInput(self._query.ids), self._take_query)
        return [query, *(Work(ModelInput(ids), partial(self._take_text, ids)) for ids in fresh)]

    def scores(self) -> tuple[float, ...]:
        """From -1 to 1, in input order. To be asked when all works are done."""
        asked = self._query_vectors()
        late = {ids: max_sim(asked, unit) for ids, unit in self._unscored.items()}
        scores = self._scores | late
        return tuple(scores[text.ids] for text in self._texts)

    def _take_query(self, tokens: Vectors) -> None:
        self._asked = normalize(content_rows(tokens, self._query.special))

    def _take_text(self, ids: TokenIds, tokens: Vectors) -> None:
        unit = normalize(tokens)
        self._cache.put(ids, unit)
        if self._asked is None:
            self._unscored[ids] = unit
        else:  # scored here, so that a long request never holds all its token vectors
            self._scores[ids] = max_sim(self._asked, unit)

    def _query_vectors(self) -> Vectors:
        if self._asked is None:
            raise RuntimeError("the query has not been run")
        return self._asked
