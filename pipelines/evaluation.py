"""How well questions with known answers are served: retrieval, context, answer, abstention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ingest.sources import file_name
from pipelines.answering import Answerer
from pipelines.sample import Question
from ragplane.core.schema import Answer, Hit
from retrieval.search import Searcher
from retrieval.stores.base import CorpusKey


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question's fate. `hit_rank` is the first hit on the right page, None if there is none.

    `top_score` is the score of the best sentence, None without any.
    """

    question: Question
    hit_rank: int | None
    in_context: bool
    context_tokens: int
    answer: Answer

    @property
    def answered(self) -> bool:
        """Whether the answer text holds the known answer."""
        return holds(self.answer.text, self.question.answer)

    @property
    def top_score(self) -> float | None:
        """Score of the best sentence."""
        scores = [span.score for span in self.answer.context.spans]
        return max(scores) if scores else None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Shares over the answerable questions, 0 to 1; abstention over those without an answer.

    With no question of a kind its shares are 1: nothing went wrong.
    """

    outcomes: tuple[Outcome, ...]
    k: int

    @property
    def recall_at_k(self) -> float:
        """Share of questions with a hit on the right page among the first k."""
        return _share([o.hit_rank is not None and o.hit_rank <= self.k for o in self._answerable])

    @property
    def mrr_at_10(self) -> float:
        """Mean reciprocal rank of the first right hit, 0 beyond rank 10."""
        ranks = [o.hit_rank for o in self._answerable]
        gains = [1 / rank if rank is not None and rank <= 10 else 0.0 for rank in ranks]
        return sum(gains) / len(gains) if gains else 1.0

    @property
    def context_recall(self) -> float:
        """Share of questions whose answer string survived into the context."""
        return _share([o.in_context for o in self._answerable])

    @property
    def answer_recall(self) -> float:
        """Share of questions whose answer string stands in the answer."""
        return _share([o.answered for o in self._answerable])

    @property
    def abstention(self) -> float:
        """Share of unanswerable questions that were not answered."""
        return _share([not o.answer.text for o in self.outcomes if o.question.answer is None])

    @property
    def _answerable(self) -> list[Outcome]:
        return [o for o in self.outcomes if o.question.answer is not None]


async def evaluate(
    searcher: Searcher,
    answerer: Answerer,
    questions: Sequence[Question],
    key: CorpusKey,
    *,
    k: int,
    budget_tokens: int,
) -> Evaluation:
    """Search and answer every question, one after another."""
    outcomes = []
    for question in questions:
        found = await searcher.search(question.question, key, max(k, 10))
        answer = await answerer.ask(question.question, key, budget_tokens)
        outcomes.append(
            Outcome(
                question=question,
                hit_rank=next((h.rank for h in found.result.hits if _is_right(h, question)), None),
                in_context=holds(answer.context.text, question.answer),
                context_tokens=answer.context.tokens,
                answer=answer,
            )
        )
    return Evaluation(tuple(outcomes), k)


def holds(text: str, answer: str | None) -> bool:
    """Whether `text` holds `answer`, white space and case aside."""
    return answer is not None and _plain(answer) in _plain(text)


def _is_right(hit: Hit, question: Question) -> bool:
    return (
        question.page is not None
        and file_name(hit.document.source) == question.document
        and hit.chunk.first_page <= question.page <= hit.chunk.last_page
    )


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags) if flags else 1.0
