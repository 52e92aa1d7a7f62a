"""Chunks: slices of the accepted text that fit the encoder, token-exact and text-conserving.

The chunks of a document, in order, hold every character of the accepted text but the white space
between them. Borders fall at headings, then blocks, then sentences, then words, then tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from ingest.identity import chunk_id, text_sha256
from ingest.units import CHARACTERS_PER_TOKEN, Limits, Unit, units_of
from ragplane.core.errors import StageError
from ragplane.core.schema import Chunk, Document, Page, join_pages
from ragplane.core.tokens import TextTokenizer

_PREFIX_SHARE = 0.4  # a prefix may take this share of a chunk, or it is shortened


class _Plan(NamedTuple):
    """A chunk to be: the units from `first` to before `last`, under a prefix."""

    first: int
    last: int
    prefix: str


def chunk_document(
    document: Document,
    pages: Sequence[Page],
    tokenizer: TextTokenizer,
    limit_tokens: int,
    *,
    contextual: bool = True,
) -> list[Chunk]:
    """Cut a document into chunks of at most `limit_tokens`, specials and prefix included.

    With `contextual`, title and heading path stand in the prefix of each; a table's header always
    does. Raises StageError `chunk` if a character does not fit or the text would not be conserved.
    """
    accepted = join_pages(page.text for page in pages)
    packer = _Packer(document.title, tokenizer, limit_tokens, contextual)
    packer.units = units_of(pages, tokenizer, packer.limits)
    chunks = [
        _chunk(
            document, accepted, packer.units[plan.first : plan.last], plan.prefix, ordinal, tokens
        )
        for ordinal, (plan, tokens) in enumerate(packer.fitted(accepted))
    ]
    _require_conservation(accepted, chunks)
    return chunks


class _Packer:
    """Fills chunks with the units of one document, in order."""

    def __init__(
        self, title: str, tokenizer: TextTokenizer, limit_tokens: int, contextual: bool
    ) -> None:
        self._title = title
        self._tokenizer = tokenizer
        self._limit_tokens = limit_tokens
        self._contextual = contextual
        body = max(1, limit_tokens - tokenizer.special_tokens)
        text = max(1, body - int(body * _PREFIX_SHARE))
        self.limits = Limits(text, body, CHARACTERS_PER_TOKEN * text)
        self.units: list[Unit] = []
        self._prefix_tokens: dict[str, int] = {"": tokenizer.special_tokens}

    def fitted(self, accepted: str) -> Iterator[tuple[_Plan, int]]:
        """The plans of all chunks with their exact numbers of tokens."""
        plans = [plan for first, last in self._sections() for plan in self._fill(first, last)]
        sums = [self._sum(plan) for plan in plans]
        uncounted = [plan for plan, tokens in zip(plans, sums, strict=True) if tokens is None]
        counts = iter(
            self._tokenizer.count_batch([self._embedded(accepted, plan) for plan in uncounted])
        )
        for plan, known in zip(plans, sums, strict=True):
            tokens = next(counts) if known is None else known
            # Counts of parts need not add up for every tokenizer.
            yield from (
                [(plan, tokens)] if tokens <= self._limit_tokens else self._cut(accepted, plan)
            )

    def _sum(self, plan: _Plan) -> int | None:
        """The tokens of a plan, where its parts stand apart and their counts add up."""
        units = self.units[plan.first : plan.last]
        if not self._tokenizer.counts_add_up or any(a.end == b.start for a, b in pairwise(units)):
            return None
        return self._prefix_tokens[plan.prefix] + sum(unit.tokens for unit in units)

    def _cut(self, accepted: str, plan: _Plan) -> Iterator[tuple[_Plan, int]]:
        """A plan that is too long, with its last unit parted, or at last without its prefix."""
        first, last, prefix = plan
        if last - first > 1:
            smaller = [
                _Plan(first, last - 1, prefix),
                _Plan(last - 1, last, self._prefix(last - 1)),
            ]
        elif prefix:
            smaller = [_Plan(first, last, "")]
        else:
            raise StageError("chunk", f"a single unit is over the limit of {self._limit_tokens}")
        for one in smaller:
            tokens = self._tokenizer.count(self._embedded(accepted, one))
            yield from [(one, tokens)] if tokens <= self._limit_tokens else self._cut(accepted, one)

    def _embedded(self, accepted: str, plan: _Plan) -> str:
        text = accepted[self.units[plan.first].start : self.units[plan.last - 1].end]
        return f"{plan.prefix}\n{text}" if plan.prefix else text

    def _sections(self) -> Iterator[tuple[int, int]]:
        """Ranges of units: a heading starts one, unless only headings came before it."""
        first, only_headings = 0, True
        for i, unit in enumerate(self.units):
            if unit.is_heading and not only_headings:
                yield first, i
                first, only_headings = i, True
            only_headings = only_headings and unit.is_heading
        if self.units:
            yield first, len(self.units)

    def _fill(self, first: int, last: int) -> Iterator[_Plan]:
        """The plans of one section."""
        while first < last:
            prefix = self._prefix(first)
            end = self._fitting(first, last, self._prefix_tokens[prefix])
            if self._only_headings(first, end, last):
                bare = self._fitting(first, last, self._prefix_tokens[""])
                if not self._only_headings(first, bare, last):
                    prefix, end = "", bare
            yield _Plan(first, end, prefix)
            first = end

    def _fitting(self, first: int, last: int, prefix_tokens: int) -> int:
        """The end of the units that fit one chunk together, all under one table header."""
        total = prefix_tokens
        characters = self.units[first].start + self.limits.characters
        end = first
        while end < last:
            unit = self.units[end]
            total += unit.tokens
            if end > first and (
                total > self._limit_tokens
                or unit.end > max(characters, self.units[first].end)
                or _changes_table(self.units[end - 1], unit)
                or self._is_better_alone(end, total - unit.tokens, prefix_tokens)
            ):
                break
            end += 1
        if first + 1 < end < last and self.units[end - 1].is_heading:
            end -= 1  # a heading goes with what it heads
        return end

    def _is_better_alone(self, position: int, tokens_before: int, prefix_tokens: int) -> bool:
        """Whether a block of several units would be cut here and stay whole in the next chunk."""
        unit = self.units[position]
        return (
            not self.units[position - 1].is_heading
            and tokens_before + unit.block_tokens > self._limit_tokens
            and prefix_tokens + unit.block_tokens <= self._limit_tokens
        )

    def _only_headings(self, first: int, end: int, last: int) -> bool:
        """Whether the units are headings parted from what they head."""
        return end < last and all(unit.is_heading for unit in self.units[first:end])

    def _prefix(self, position: int) -> str:
        """Title, the headings above the chunk that it does not hold itself, its table header."""
        first = self.units[position]
        header = next((unit.header for unit in self._from(position) if not unit.is_heading), None)
        above = first.heading_path[:-1] if first.is_heading else first.heading_path
        titles = list(dict.fromkeys(part for part in (self._title, *above) if part))
        room = self._limit_tokens - first.tokens
        for prefix in _prefixes(titles if self._contextual else [], header or ""):
            if len(prefix) > self.limits.characters:
                continue
            tokens = self._prefix_tokens.get(prefix)
            if tokens is None:
                tokens = self._prefix_tokens[prefix] = self._tokenizer.count(prefix)
            if tokens <= min(room, self._limit_tokens * _PREFIX_SHARE):
                return prefix
        return ""

    def _from(self, position: int) -> Iterator[Unit]:
        while position < len(self.units):
            yield self.units[position]
            position += 1


def _changes_table(before: Unit, unit: Unit) -> bool:
    """Whether a table begins or ends between the two: a chunk has one header or none.

    A table that begins right below a heading stays with it.
    """
    return unit.header != before.header and not (before.is_heading and unit.is_header)


def _prefixes(titles: Sequence[str], header: str) -> Iterator[str]:
    """From the longest to the shortest; titles are given up before a table's header."""
    for ending in dict.fromkeys((header, "")):
        for path in _shortened(titles):
            yield " > ".join(path) + (f"\n{ending}" if ending else "")
        if ending:
            yield ending


def _shortened(titles: Sequence[str]) -> Iterator[Sequence[str]]:
    """All titles, then fewer from the second on, at last the innermost alone."""
    for count in range(len(titles), 0, -1):
        yield [titles[0], *titles[len(titles) - count + 1 :]]
    if len(titles) > 1:
        yield titles[-1:]


def _chunk(
    document: Document,
    accepted: str,
    units: Sequence[Unit],
    prefix: str,
    ordinal: int,
    tokens: int,
) -> Chunk:
    start, end = units[0].start, units[-1].end
    text = accepted[start:end]
    sha256 = text_sha256(f"{prefix}\n{text}")
    return Chunk(
        id=chunk_id(document.tenant, document.corpus, document.id, ordinal, sha256),
        document_id=document.id,
        ordinal=ordinal,
        text=text,
        prefix=prefix,
        heading_path=units[0].heading_path,
        first_page=units[0].page,
        last_page=units[-1].page,
        start=start,
        end=end,
        tokens=tokens,
        sha256=sha256,
        boxes=tuple(dict.fromkeys(unit.box for unit in units if unit.box is not None)),
    )


def _require_conservation(accepted: str, chunks: Sequence[Chunk]) -> None:
    position = 0
    for chunk in chunks:
        if accepted[position : chunk.start].strip() or chunk.start < position:
            raise StageError("chunk", f"text between {position} and {chunk.start} was lost")
        position = chunk.end
    if accepted[position:].strip():
        raise StageError("chunk", f"text after {position} was lost")
