"""How a lexical query is run: which terms drive it, and what each weighs. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from retrieval.stores import bm25

# A term's chunks are counted up to here and estimated beyond, to about 3 percent.
COUNTED_POSTINGS = 1_000
# So many postings are read to find candidates, of which so many are scored on the other terms.
DRIVING_POSTINGS = 10_000
RESCORED_CHUNKS = 400


@dataclass(frozen=True, slots=True)
class TermCount:
    """How many chunks contain the term, counted or estimated."""

    term: str
    containing: int


@dataclass(frozen=True, slots=True)
class LexicalPlan:
    """Terms that find candidates, each with its weight (idf) and postings to read at most.

    `rest` holds the weights of the terms that are scored on the best candidates only.
    """

    driving: dict[str, tuple[float, int]] = field(default_factory=dict)
    rest: dict[str, float] = field(default_factory=dict)


def estimate(term: str, seen: int, last_chunk_id: UUID, chunks: int) -> TermCount:
    """How many of the corpus's `chunks` contain the term, of which the first `seen` were read.

    Chunk ids are hashes, so they lie evenly over their range: where a term's first k ids end at the
    share u of the range, about (k - 1) / u chunks have it (k minimum values, Bar-Yossef et al.
    2002).
    """
    if seen < COUNTED_POSTINGS:
        return TermCount(term, seen)
    share = (last_chunk_id.int + 1) / 2**128
    return TermCount(term, max(seen, min(chunks, round((seen - 1) / share))))


def plan(counts: Iterable[TermCount], chunks: int) -> LexicalPlan:
    """Let the rarest terms drive while their postings together stay under the cap.

    The first term over it drives too, with what is left of the cap. Where others drove before it,
    some of their chunks are past that point, so it weighs nothing there and is scored as one of the
    rest. `chunks` is the size of the corpus.
    """
    made = LexicalPlan()
    left = DRIVING_POSTINGS
    for count in sorted(counts, key=lambda count: (count.containing, count.term)):
        weight = bm25.idf(chunks, count.containing)
        if count.containing <= left or not made.driving:
            made.driving[count.term] = (weight, left)
        else:
            made.rest[count.term] = weight
            if left > 0:
                made.driving[count.term] = (0.0, min(left, RESCORED_CHUNKS))
        left = max(0, left - count.containing)
    return made
