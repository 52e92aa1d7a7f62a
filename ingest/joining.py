"""Lines of one paragraph made into running text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ingest.characters import is_cjk
from ingest.parsed import Line

_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


def attested_words(texts: Iterable[str]) -> frozenset[str]:
    """Words that stand whole inside a line, case folded."""
    text = "\n".join(text.rstrip().rstrip("-") for text in texts)
    return frozenset(_WORD.findall(text.casefold()))


def join_lines(lines: Sequence[Line], words: frozenset[str]) -> str:
    """One paragraph of several lines.

    A hyphen at a line end is dropped only if the joined word stands elsewhere in the document
    (`words`, case folded); otherwise it is kept, for it may belong to a compound or a code.
    """
    return join_texts([line.text for line in lines], words)


def join_texts(texts: Sequence[str], words: frozenset[str]) -> str:
    """As `join_lines`, for texts alone."""
    text = texts[0].strip()
    for following in (other.strip() for other in texts[1:]):
        if text.endswith("-") and following[:1].isalnum():
            head, tail = _tail_word(text[:-1]), _head_word(following)
            attested = (head + tail).casefold() in words
            text = (text[:-1] if attested and following[0].islower() else text) + following
        elif text and following and is_cjk(text[-1]) and is_cjk(following[0]):
            text += following
        else:
            text = f"{text} {following}"
    return text


def _tail_word(text: str) -> str:
    words = _WORD.findall(text.rsplit(maxsplit=1)[-1]) if text.strip() else []
    return words[-1] if words else ""


def _head_word(text: str) -> str:
    match = _WORD.match(text)
    return match.group() if match else ""
