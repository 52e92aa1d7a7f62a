"""`make bench-retrieval`: print the tables of retrieval in docs/benchmarks.md.

RAGPLANE_BENCH_NQ names a file of questions with gold passages (JSON lines, gzip); without it that
table is left out, and the output says so.
"""

from __future__ import annotations

import asyncio
import os
import platform
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from pipelines.answering import Answerer
from pipelines.evaluation import evaluate
from pipelines.sample import documents_dir, questions
from ragplane import Plane, __version__
from ragplane.core.config import Settings, load_settings
from ragplane.core.cpu import available_cpus
from retrieval.search import Searcher
from retrieval.stores.base import CorpusKey
from retrieval.stores.memory import MemoryStore
from retrieval.stores.postgres import PostgresStore
from serve.local import LocalEncoder
from tests.bench import retrieval as retrieval_bench

BUDGETS_TOKENS = (800, 400, 200, 100)
NQ_QUESTIONS = 200


async def sample_table(home: Path) -> list[str]:
    """Quality on the sample corpus at several budgets."""
    async with Plane.open(home=home) as plane:
        report = await plane.ingest([documents_dir()], corpus="sample")
    settings = Settings(home=home)
    store, encoder = await PostgresStore.open(settings), await LocalEncoder.open(settings)
    searcher = Searcher(store, encoder)
    answerer = Answerer(searcher, encoder, None, settings.abstain_below)
    key = CorpusKey("default", "sample")
    rows = []
    for budget in BUDGETS_TOKENS:
        result = await evaluate(searcher, answerer, questions(), key, k=5, budget_tokens=budget)
        kept = sum(outcome.context_tokens for outcome in result.outcomes) / len(result.outcomes)
        rows.append(
            f"| {budget} | {kept:.0f} | {result.recall_at_k:.3f} | {result.mrr_at_10:.3f} | "
            f"{result.context_recall:.3f} | {result.answer_recall:.3f} | {result.abstention:.3f} |"
        )
    await encoder.aclose()
    await store.aclose()
    head = "| budget | tokens kept | recall@5 | MRR@10 | in context | in answer | abstained |"
    pages = sum(report.pages.values())
    return [
        f"{pages} pages read in {report.seconds:.1f} s",
        "",
        head,
        "|---|---|---|---|---|---|---|",
        *rows,
    ]


async def main() -> None:
    """Print every table that can be made here."""
    settings = load_settings()
    print(_machine())
    print("\n## Sample corpus\n")
    with TemporaryDirectory() as folder:
        (Path(folder) / "models").symlink_to(settings.home_path / "models")
        (settings.home_path / "models").mkdir(parents=True, exist_ok=True)
        print("\n".join(await sample_table(Path(folder))))
    encoder = await LocalEncoder.open(settings)
    file = os.environ.get("RAGPLANE_BENCH_NQ")
    print("\n## Natural Questions\n")
    if file is None:
        print("left out: RAGPLANE_BENCH_NQ is not set")
    else:
        passages = retrieval_bench.read_nq(Path(file))
        store = MemoryStore()
        await retrieval_bench.fill(store, encoder, passages)
        print(f"{len(passages)} passages, {NQ_QUESTIONS} questions\n")
        print("\n".join(await retrieval_bench.measure(store, encoder, passages[:NQ_QUESTIONS])))
    await encoder.aclose()


def _machine() -> str:
    libraries = ", ".join(
        f"{name} {version(name)}" for name in ("onnxruntime", "tokenizers", "numpy", "pymupdf")
    )
    return (
        f"ragplane {__version__}, Python {platform.python_version()}, {libraries}; "
        f"{platform.machine()}, {available_cpus()} CPUs"
    )


if __name__ == "__main__":
    asyncio.run(main())
