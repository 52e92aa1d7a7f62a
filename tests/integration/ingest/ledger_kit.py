"""What tests of the ledger tell it: files, pages, results."""

from __future__ import annotations

import hashlib
from typing import Any
from uuid import uuid5

from ingest.ledger.base import Ledger
from ingest.ledger.records import Claim, SourceFile, SourceListing
from ingest.parsed import Line, ParseResult, RawPage
from ragplane.core.errors import StageError
from ragplane.core.schema import BBox, Block, Chunk, Document, Page, PageSignals
from retrieval.stores.base import CorpusKey

FOLDER = "file:///d"
SIGNALS = PageSignals(6, 2, 0.125, 0.0, 0, columns=2)


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def file(name: str, content: str = "", mtime_ns: int | None = 1) -> SourceFile:
    """A listed file whose content was hashed; without content, one that was not read."""
    digest = sha(content) if content else None
    return SourceFile(f"{FOLDER}/{name}", len(content) or 7, mtime_ns, digest)


def listing(*files: SourceFile, whole: bool = True) -> SourceListing:
    return SourceListing(files, (FOLDER,) if whole else ())


def raw_page(number: int, **values: Any) -> RawPage:
    line = Line(f"page {number}", BBox(1, 2, 3, 4), 10.0)
    page: dict[str, Any] = {"paragraphs": ((line,),), "vlm_tokens": 5, "confidence": 0.5}
    return RawPage(number, 595.0, 842.0, 0, "ocr", "a scan", SIGNALS, 0.25, **page | values)


def result(claim: Claim, texts: list[str], *, failed: int | None = None) -> ParseResult:
    """A parsed document of one chunk a page; page number `failed` has an error."""
    document = Document(
        id=claim.document_id,
        tenant=claim.key.tenant,
        corpus=claim.key.corpus,
        source=claim.source,
        sha256=claim.sha256 or sha("".join(texts)),
        mime="text/plain",
        title="A",
        generation=claim.generation,
    )
    pages = [page(number, text, number == failed) for number, text in enumerate(texts, 1)]
    chunks = [
        Chunk(
            id=uuid5(document.id, f"{ordinal}{text}"),
            document_id=document.id,
            ordinal=ordinal,
            text=text,
            prefix="",
            heading_path=(),
            first_page=ordinal + 1,
            last_page=ordinal + 1,
            start=0,
            end=len(text),
            tokens=1,
            sha256=sha(text),
        )
        for ordinal, text in enumerate(texts)
    ]
    return ParseResult(document, tuple(pages), tuple(chunks))


def page(number: int, text: str, failed: bool) -> Page:
    error = StageError("ocr", "no memory\x00", page=number) if failed else None
    blocks = () if failed else (Block("paragraph", text),)
    return Page(number, 595, 842, 0, "ocr", "a scan", SIGNALS, blocks, 0.25, 0.5, 5, (), error)


async def claim_some(
    ledger: Ledger,
    key: CorpusKey,
    worker: str = "w",
    *,
    lease_s: float = 60,
    limit: int = 10,
    **bounds: int,
) -> list[Claim]:
    """Claim with the terms that most tests want."""
    return await ledger.claim(key, worker, lease_s=lease_s, limit=limit, **bounds)


async def list_and_claim(
    ledger: Ledger, key: CorpusKey, *files: SourceFile, **terms: Any
) -> list[Claim]:
    """The claims of freshly listed files."""
    await ledger.sync(key, listing(*files), "p1")
    return await claim_some(ledger, key, **terms)


async def read_and_store(ledger: Ledger, key: CorpusKey, *files: SourceFile) -> None:
    """Freshly listed files, read and stored."""
    for claim in await list_and_claim(ledger, key, *files):
        await ledger.finish_document(claim, result(claim, ["one", "two"]))


async def statuses(ledger: Ledger, key: CorpusKey) -> dict[str, str]:
    """The status of each document by its file name."""
    return {
        source.rpartition("/")[2]: row.status
        for source, row in (await ledger.documents(key)).items()
    }
