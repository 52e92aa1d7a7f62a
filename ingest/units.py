"""Blocks cut to units: the pieces that chunks are filled with.

A block that fits is one unit. Another is cut at lines (code) or sentences, then between words, at
last between tokens or characters; a table row or a line of code stays whole for as long as it can.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ragplane.core.schema import Block, Page, PageBox
from ragplane.core.sentences import sentence_spans
from ragplane.core.tokens import TextTokenizer

CHARACTERS_PER_TOKEN = 16
"""More than any text has on average; a longer run is one unknown word to the tokenizer."""

Span = tuple[int, int]
_ZERO_WIDTH_JOINER = "\u200d"


class Unit(NamedTuple):
    """A piece that is not cut further: `accepted[start:end]`.

    `block_tokens` counts the whole block in its first unit, and is 0 in its others.
    """

    start: int
    end: int
    tokens: int
    block_tokens: int
    page: int
    box: PageBox | None
    heading_path: tuple[str, ...]
    is_heading: bool
    header: str | None
    is_header: bool


class Limits(NamedTuple):
    """How many tokens and characters a unit of running text, and one of a row or line, may have."""

    text_tokens: int
    line_tokens: int
    characters: int


def units_of(pages: Sequence[Page], tokenizer: TextTokenizer, limits: Limits) -> list[Unit]:
    """The units of all blocks, in order, with their places in the accepted text."""
    blocks = [(page.number, block) for page in pages for block in page.blocks]
    pieces = _pieces([block for _, block in blocks], tokenizer, limits)
    units: list[Unit] = []
    path: list[tuple[int, str]] = []
    heading_path: tuple[str, ...] = ()
    position = 0
    for (page, block), spans in zip(blocks, pieces, strict=True):
        is_heading = block.kind == "heading"
        if is_heading:
            path = [entry for entry in path if entry[0] < block.level]
            path.append((block.level, block.text[: limits.characters]))
            heading_path = tuple(text for _, text in path)
        box = None if block.bbox is None else PageBox(page, block.bbox)
        is_header = block.header is not None and block.text == block.header
        rest_tokens = sum(tokens for _, _, tokens in spans)
        for start, end, tokens in spans:
            units.append(
                Unit(
                    *(position + start, position + end, tokens, rest_tokens, page, box),
                    *(heading_path, is_heading, block.header, is_header),
                )
            )
            rest_tokens = 0
        position += len(block.text) + 1  # the line break that joins blocks
    return units


def _pieces(
    blocks: Sequence[Block], tokenizer: TextTokenizer, limits: Limits
) -> list[list[tuple[int, int, int]]]:
    """(start, end, tokens) of the units of each block."""
    short = [len(block.text) <= limits.characters for block in blocks]
    counts = iter(
        _counts([b.text for b, fits in zip(blocks, short, strict=True) if fits], tokenizer)
    )
    pieces: list[list[tuple[int, int, int]]] = []
    for block, is_short in zip(blocks, short, strict=True):
        limit = limits.line_tokens if block.kind == "table_row" else limits.text_tokens
        if is_short and (tokens := next(counts)) <= limit:
            pieces.append([(*_visible(block.text, block.kind == "code"), tokens)])
        else:
            pieces.append(_split(block, tokenizer, limits))
    return pieces


def _counts(texts: Sequence[str], tokenizer: TextTokenizer) -> list[int]:
    return [count - tokenizer.special_tokens for count in tokenizer.count_batch(texts)]


def _visible(text: str, is_code: bool) -> Span:
    """The text without white space at its ends; the indentation of code is part of it."""
    end = len(text.rstrip())
    return (0 if is_code else len(text) - len(text.lstrip())), end


def _split(block: Block, tokenizer: TextTokenizer, limits: Limits) -> list[tuple[int, int, int]]:
    is_code = block.kind == "code"
    spans = list(_lines(block.text)) if is_code else sentence_spans(block.text)
    limit = limits.line_tokens if is_code else limits.text_tokens
    short = [part for span in spans for part in _short(block.text, span, limits.characters)]
    counts = _counts([block.text[start:end] for start, end in short], tokenizer)
    pieces: list[tuple[int, int, int]] = []
    for (start, end), tokens in zip(short, counts, strict=True):
        if tokens <= limit:
            pieces.append((start, end, tokens))
        else:
            pieces.extend(_windows(block.text, (start, end), tokenizer, limits.text_tokens))
    return pieces


def _windows(
    text: str, span: Span, tokenizer: TextTokenizer, limit_tokens: int
) -> Iterator[tuple[int, int, int]]:
    """A span cut between words or tokens to pieces within the limit.

    A piece of a word may take more tokens alone than inside the word; then it is cut further.
    """
    spans = list(_token_windows(text, span, tokenizer, limit_tokens))
    counts = _counts([text[start:end] for start, end in spans], tokenizer)
    for (start, end), tokens in zip(spans, counts, strict=True):
        if tokens <= limit_tokens or end - start == 1:
            yield start, end, tokens
        else:
            yield from _windows(text, (start, end), tokenizer, max(1, limit_tokens // 2))


def _lines(text: str) -> Iterator[Span]:
    position = 0
    for line in text.split("\n"):
        if line.strip():
            yield position, position + len(line)
        position += len(line) + 1


def _short(text: str, span: Span, characters: int) -> Iterator[Span]:
    """A span cut to pieces of at most so many characters, after spaces where there are some."""
    start, end = span
    if end - start <= characters:
        yield span
        return
    while end - start > characters:
        border = _border(text, start, start + characters)
        yield from _trimmed(text, start, border)
        start = border
    yield from _trimmed(text, start, end)


def _token_windows(
    text: str, span: Span, tokenizer: TextTokenizer, limit_tokens: int
) -> Iterator[Span]:
    """A span cut at token borders, after the last space of a window where there is one."""
    begin, stop = span
    offsets = [(begin + a, begin + b) for a, b in tokenizer.offsets(text[begin:stop])]
    first, start = 0, begin
    while first < len(offsets):
        last = min(first + limit_tokens, len(offsets))
        end = stop
        if last < len(offsets):
            end = _border(text, start, offsets[last][0])
            beyond = (i for i in range(first, len(offsets)) if offsets[i][1] > end)
            last = next(beyond, len(offsets))
        yield from _trimmed(text, start, end)
        first, start = last, end


def _border(text: str, start: int, latest: int) -> int:
    """Where to cut at the latest: at a space, else not inside a combined character."""
    space = text.rfind(" ", start + 1, latest + 1)
    if space > start:
        return space
    latest = max(latest, start + 1)
    border = latest
    while border > start and _is_joined(text, border):
        border -= 1
    return border if border > start else latest


def _is_joined(text: str, border: int) -> bool:
    char = text[border]
    return (
        unicodedata.combining(char) > 0
        or char == _ZERO_WIDTH_JOINER
        or text[border - 1] == _ZERO_WIDTH_JOINER
        or "\ufe00" <= char <= "\ufe0f"
    )


def _trimmed(text: str, start: int, end: int) -> Iterator[Span]:
    """The span without white space at its ends; nothing where it holds nothing else."""
    piece = text[start:end]
    if stripped := piece.strip():
        begin = start + len(piece) - len(piece.lstrip())
        yield begin, begin + len(stripped)
