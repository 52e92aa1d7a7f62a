"""From a question to a cited answer: search, compress, then extract or generate."""

from __future__ import annotations

from dataclasses import dataclass, replace

from compress.context import Compressed, compress
from ragplane.core.errors import OverloadedError, UnavailableError, describe
from ragplane.core.schema import Answer, Citation, Context, Usage
from retrieval.citations import resolve_citations
from retrieval.extract import extract_answer, is_relevant
from retrieval.prompt import NOT_FOUND, SYSTEM, user_message
from retrieval.search import Retrieved, Searcher, Stopwatch
from retrieval.stores.base import CorpusKey
from serve.encoder import Encoder
from serve.generator import Generation, Generator

_HITS = 8
_MAX_ANSWER_TOKENS = 256


@dataclass(frozen=True, slots=True)
class _Written:
    text: str
    citations: tuple[Citation, ...]
    generation: Generation | None
    degradations: tuple[str, ...]


class Answerer:
    """Answers questions over the corpora of one store."""

    def __init__(
        self,
        searcher: Searcher,
        encoder: Encoder,
        generator: Generator | None,
        abstain_below: float,
    ) -> None:
        self._searcher = searcher
        self._encoder = encoder
        self._generator = generator
        self._abstain_below = abstain_below

    async def context(self, question: str, key: CorpusKey, budget_tokens: int) -> Context:
        """The compressed context for `question`, at most `budget_tokens` long.

        Raises as `Searcher.search`, and InputError for a budget that is too small. A reranker that
        is down is skipped and reported in `degradations`.
        """
        retrieved, compressed = await self._retrieve(question, key, budget_tokens, Stopwatch())
        context = compressed.context
        return replace(context, degradations=retrieved.result.degradations + context.degradations)

    async def ask(self, question: str, key: CorpusKey, budget_tokens: int) -> Answer:
        """Answer `question` from the corpus, within `budget_tokens` of context.

        Without a generator, or when it fails, the answer is the best sentences word for word; a
        fallback is reported in `degradations`. Raises as `context`.
        """
        watch = Stopwatch()
        with watch.stage("total"):
            retrieved, compressed = await self._retrieve(question, key, budget_tokens, watch)
            with watch.stage("answer"):
                written = await self._write(question, compressed.context)
        stages = {name: ms for name, ms in retrieved.result.timings_ms.items() if name != "total"}
        generation = written.generation
        return Answer(
            question=question,
            text=written.text,
            citations=written.citations,
            context=compressed.context,
            usage=Usage(
                encoder_tokens=retrieved.encoder_tokens + compressed.encoder_tokens,
                prompt_tokens=generation.prompt_tokens if generation else 0,
                completion_tokens=generation.completion_tokens if generation else 0,
            ),
            timings_ms={**stages, **watch.timings_ms},
            degradations=(
                *retrieved.result.degradations,
                *compressed.context.degradations,
                *written.degradations,
            ),
        )

    async def _retrieve(
        self, question: str, key: CorpusKey, budget_tokens: int, watch: Stopwatch
    ) -> tuple[Retrieved, Compressed]:
        with watch.stage("search"):
            retrieved = await self._searcher.search(question, key, _HITS)
        with watch.stage("compress"):
            hits = retrieved.result.hits
            compressed = await compress(question, hits, budget_tokens, self._encoder)
        return retrieved, compressed

    async def _write(self, question: str, context: Context) -> _Written:
        if self._generator is None or not is_relevant(context, self._abstain_below):
            return self._extracted(context)
        try:
            generation = await self._generator.generate(
                SYSTEM, user_message(question, context.text), max_tokens=_MAX_ANSWER_TOKENS
            )
        except (UnavailableError, OverloadedError) as error:
            return self._extracted(context, f"generate: extracted instead ({describe(error)})")
        if not generation.text.strip():
            return self._extracted(context, "generate: extracted instead (an empty completion)")
        return _generated(generation, context)

    def _extracted(self, context: Context, *degradations: str) -> _Written:
        text, citations = extract_answer(context, self._abstain_below)
        return _Written(text, citations, None, degradations)


def _generated(generation: Generation, context: Context) -> _Written:
    if generation.text.strip().rstrip(".") == NOT_FOUND:
        return _Written("", (), generation, ())
    cited = resolve_citations(generation.text, context)
    degradations = tuple(
        f"citation [{number}] removed: no such source was given" for number in cited.removed
    )
    if not cited.citations:
        degradations += ("answer: cites no source",)
    return _Written(cited.text, cited.citations, generation, degradations)
