"""From hits to the page a reader gets: numbered sources, the best sentences, never over the budget.

Two levels: everything is kept when it fits; otherwise sentences are scored against the question and
the best are kept. Every kept sentence is byte-identical and knows its offsets in the document.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from compress.select import Sentence, select_sentences, without_worst
from ragplane.core.errors import (
    InputError,
    ModelError,
    OverloadedError,
    UnavailableError,
    describe,
)
from ragplane.core.schema import Chunk, Context, Hit, Span
from ragplane.core.sentences import sentence_spans
from serve.encoder import Encoder

_GAP = " … "
_PASSAGE_WEIGHT = 1.0  # how much a passage's lead or lag adds to its sentences' scores
_MIN_BUDGET_TOKENS = 16
_RERANK_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class _Passage:
    """A hit with its citation line and its sentences as spans of the chunk's text."""

    hit: Hit
    source: int
    sentences: tuple[tuple[int, int], ...]

    @property
    def heading(self) -> str:
        chunk, document = self.hit.chunk, self.hit.document
        line = f"[{self.source}] {document.title}, {page_label(chunk.first_page, chunk.last_page)}"
        header = table_header(chunk)
        return f"{line}\n{header}" if header else line

    def text(self, index: int) -> str:
        start, end = self.sentences[index]
        return self.hit.chunk.text[start:end]


@dataclass(frozen=True, slots=True)
class _Scored:
    """All sentences of the passages, the encoder tokens spent, and why they have no scores."""

    sentences: list[Sentence]
    tokens: int
    degradation: str | None = None


@dataclass(frozen=True, slots=True)
class Compressed:
    """A context with the encoder tokens it cost to choose it."""

    context: Context
    encoder_tokens: int


def page_label(first: int, last: int) -> str:
    """Pages as people write them: "p. 3" or "pp. 3-4"."""
    return f"p. {first}" if first == last else f"pp. {first}-{last}"


async def compress(
    question: str, hits: Sequence[Hit], budget_tokens: int, encoder: Encoder
) -> Compressed:
    """Fit the hits, best first, into `budget_tokens` as counted by the encoder's tokenizer.

    Raises InputError for a budget too small to hold a citation line.
    """
    if budget_tokens < _MIN_BUDGET_TOKENS:
        raise InputError(
            f"the budget is {budget_tokens} tokens, but must be at least {_MIN_BUDGET_TOKENS}",
            param="budget",
        )
    passages = _passages(hits)
    if not passages:
        return Compressed(_context(passages, _Scored([], 0), [], 0, budget_tokens), 0)
    scored = await _score(question, passages, encoder)
    kept = scored.sentences
    tokens = await _measure(passages, kept, encoder)
    if tokens > budget_tokens:
        kept = select_sentences(kept, budget_tokens, await _heading_tokens(passages, encoder))
        tokens = await _measure(passages, kept, encoder)
        while tokens > budget_tokens:  # gaps and joins cost tokens that the estimate leaves out
            kept = without_worst(kept)
            tokens = await _measure(passages, kept, encoder)
    return Compressed(_context(passages, scored, kept, tokens, budget_tokens), scored.tokens)


def _passages(hits: Sequence[Hit]) -> list[_Passage]:
    numbers: dict[str, int] = {}
    passages = []
    for hit in hits:
        number = numbers.setdefault(str(hit.document.id), len(numbers) + 1)
        passages.append(_Passage(hit, number, tuple(_sentences(hit.chunk))))
    return passages


def _sentences(chunk: Chunk) -> list[tuple[int, int]]:
    """Spans of the sentences, without the header row of a table: the heading line says it."""
    header = table_header(chunk)
    spans = sentence_spans(chunk.text)
    return [(start, end) for start, end in spans if chunk.text[start:end] != header]


async def _score(question: str, passages: Sequence[_Passage], encoder: Encoder) -> _Scored:
    """Every sentence with its fit to the question.

    A sentence is reranked under its passage's prefix: "It takes 140 seconds" alone says too little.
    """
    places = [(p, i) for p, passage in enumerate(passages) for i in range(len(passage.sentences))]
    counts = await _content_tokens([passages[p].text(i) for p, i in places], encoder)
    degradation = None
    try:
        under_prefix = [f"{passages[p].hit.chunk.prefix}\n{passages[p].text(i)}" for p, i in places]
        async with asyncio.timeout(_RERANK_TIMEOUT_S):
            reranked = await encoder.rerank(question, under_prefix)
        fits, tokens = reranked.scores, reranked.tokens
        best = max(passage.hit.score for passage in passages)
        leads = [_PASSAGE_WEIGHT * (passage.hit.score - best) for passage in passages]
    except (ModelError, OverloadedError, UnavailableError, TimeoutError) as error:
        fits, tokens, leads = tuple(0.0 for _ in places), 0, [0.0 for _ in passages]
        degradation = f"compress: sentences kept in passage order ({describe(error)})"
    sentences = [
        Sentence(p, i, passages[p].text(i), count, fit + leads[p])
        for (p, i), count, fit in zip(places, counts, fits, strict=True)
    ]
    return _Scored(sentences, tokens, degradation)


async def _heading_tokens(passages: Sequence[_Passage], encoder: Encoder) -> list[int]:
    return await _content_tokens([passage.heading for passage in passages], encoder)


async def _content_tokens(texts: Sequence[str], encoder: Encoder) -> list[int]:
    """Tokens of each text without the special tokens that the encoder adds around it."""
    special, *counts = await encoder.count_tokens(["", *texts])
    return [count - special for count in counts]


async def _measure(passages: Sequence[_Passage], kept: Sequence[Sentence], encoder: Encoder) -> int:
    if not kept:
        return 0
    return (await encoder.count_tokens([render(passages, kept)]))[0]


def render(passages: Sequence[_Passage], kept: Sequence[Sentence]) -> str:
    """The context as text: for each passage its citation line, then its kept sentences.

    Neighbouring sentences keep the white space that stood between them; a gap is shown by an
    ellipsis.
    """
    parts = []
    for index, group in groupby(kept, key=lambda sentence: sentence.passage):
        passage = passages[index]
        runs = [passage.hit.chunk.text[start:end] for start, end in _runs(passage, list(group))]
        parts.append(f"{passage.heading}\n{_GAP.join(runs)}")
    return "\n\n".join(parts)


def _runs(passage: _Passage, kept: Sequence[Sentence]) -> list[tuple[int, int]]:
    """Spans of unbroken neighbours, in order."""
    runs: list[tuple[int, int]] = []
    last = -2
    for sentence in kept:
        start, end = passage.sentences[sentence.index]
        if sentence.index == last + 1:
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((start, end))
        last = sentence.index
    return runs


def _context(
    passages: Sequence[_Passage],
    scored: _Scored,
    kept: Sequence[Sentence],
    tokens: int,
    budget_tokens: int,
) -> Context:
    retrieved = sum(passage.hit.chunk.tokens for passage in passages)
    cited = [passages[sentence.passage] for sentence in kept]
    sources = {passage.source: passage.hit.document for passage in cited}
    return Context(
        text=render(passages, kept),
        tokens=tokens,
        spans=tuple(_span(passages[sentence.passage], sentence) for sentence in kept),
        tokens_retrieved=retrieved,
        tokens_dropped=max(0, retrieved - tokens),
        budget=budget_tokens,
        sources=dict(sorted(sources.items())),
        scored=scored.degradation is None,
        degradations=(scored.degradation,) if scored.degradation else (),
    )


def _span(passage: _Passage, sentence: Sentence) -> Span:
    chunk = passage.hit.chunk
    start, end = passage.sentences[sentence.index]
    return Span(
        document=passage.hit.document,
        source=passage.source,
        first_page=chunk.first_page,
        last_page=chunk.last_page,
        start=chunk.start + start,
        end=chunk.start + end,
        text=sentence.text,
        score=sentence.score,
    )


def table_header(chunk: Chunk) -> str:
    """The header row that a chunk of table rows carries in its prefix; empty without one."""
    _, _, header = chunk.prefix.partition("\n")
    return header
