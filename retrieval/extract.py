"""An extractive answer: the best sentences of the context, word for word, each with its source."""

from __future__ import annotations

from ragplane.core.schema import Citation, Context, Span
from retrieval.citations import citation_of

_MAX_SENTENCES = 3
_MAX_SCORE_GAP = 0.06


def extract_answer(context: Context, abstain_below: float) -> tuple[str, tuple[Citation, ...]]:
    """The answer and its citations; empty if nothing was found or the best falls short.

    `abstain_below` is on the scale of `Span.score`. In a context whose sentences could not be
    scored the first ones stand in for the best, and the threshold says nothing.
    """
    if not is_relevant(context, abstain_below):
        return "", ()
    best = _best_spans(context)
    text = " ".join(f"{span.text} [{span.source}]" for span in best)
    return text, tuple(citation_of(span) for span in best)


def is_relevant(context: Context, abstain_below: float) -> bool:
    """Whether anything in the context fits the question well enough to answer."""
    best = max((span.score for span in context.spans), default=None)
    return best is not None and (not context.scored or best >= abstain_below)


def _best_spans(context: Context) -> list[Span]:
    ranked = sorted(context.spans, key=lambda span: -span.score)[:_MAX_SENTENCES]
    return [span for span in ranked if span.score >= ranked[0].score - _MAX_SCORE_GAP]
