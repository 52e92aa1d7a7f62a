"""Citations: one number per document, the same in prompt, answer and source list.

Pure functions. A citation of a source that was not given is removed and reported.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ragplane.core.schema import Citation, Context, Span

_CITED = re.compile(r"\s*\[(\d{1,3})\]")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class CitedText:
    """An answer whose citations all exist, with their evidence and what had to be removed."""

    text: str
    citations: tuple[Citation, ...]
    removed: tuple[int, ...]


def resolve_citations(text: str, context: Context) -> CitedText:
    """Drop citations of sources that are not in `context`; quote the best span of the others."""
    cited = list(dict.fromkeys(int(number) for number in _CITED.findall(text)))
    unknown = tuple(number for number in cited if number not in context.sources)
    clean = _CITED.sub(lambda match: "" if int(match.group(1)) in unknown else match.group(), text)
    citations = [
        citation_of(_best_span(clean, number, context.spans))
        for number in cited
        if number in context.sources
    ]
    return CitedText(clean.strip(), tuple(citations), unknown)


def citation_of(span: Span) -> Citation:
    """The citation that quotes `span`."""
    return Citation(
        id=span.source,
        document=span.document.source,
        title=span.document.title,
        first_page=span.first_page,
        last_page=span.last_page,
        quote=span.text,
    )


def _best_span(answer: str, number: int, spans: Sequence[Span]) -> Span:
    """The span of source `number` that shares most words with the sentences that cite it."""
    claims = " ".join(part for part in re.split(r"(?<=[\].])\s+", answer) if f"[{number}]" in part)
    words = set(_WORD.findall(claims.casefold()))

    def shared(span: Span) -> tuple[int, float]:
        return len(words & set(_WORD.findall(span.text.casefold()))), span.score

    return max((span for span in spans if span.source == number), key=shared)
