"""Between the ledger's records and its rows in PostgreSQL. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from ingest.ledger.codec import encode_page
from ingest.ledger.decisions import Update, storable
from ingest.ledger.records import (
    Claim,
    DocumentRow,
    LedgerError,
    LedgerStatus,
    PageRow,
    SourceFile,
)
from ingest.parsed import ParseResult, RawPage
from ragplane.core.errors import StageError
from ragplane.core.schema import Page, PageSignals
from retrieval.stores.base import CorpusKey
from retrieval.stores.rows import Row

_DOCUMENT = [field.name for field in fields(DocumentRow)]
_SIGNALS = {field.name for field in fields(PageSignals)}


def scope(key: CorpusKey) -> Row:
    """The parameters of a corpus."""
    return {"tenant": key.tenant, "corpus": key.corpus}


def file_columns(files: Collection[SourceFile]) -> Row:
    """Files as arrays."""
    return {
        "sources": [file.source for file in files],
        "sizes": [file.size_bytes for file in files],
        "mtimes": [file.mtime_ns for file in files],
        "sha256s": [file.sha256 for file in files],
        "versions": [file.version for file in files],
    }


def update_columns(updates: Sequence[Update]) -> Row:
    """Updates as arrays."""
    return file_columns([update.file for update in updates]) | {
        "ids": [update.document.id for update in updates],
        "sha256s": [update.sha256 for update in updates],
        "generations": [update.generation for update in updates],
        "requeues": [update.requeue for update in updates],
    }


def move_columns(updates: Sequence[Update]) -> Row:
    """Moves as arrays, for the store to take."""
    return {
        "ids": [update.document.id for update in updates],
        "sources": [update.file.source for update in updates],
    }


def claim_parameters(claim: Claim) -> Row:
    """What a commit says of its claim."""
    return {
        "document_id": claim.document_id,
        "token": claim.token,
        "generation": claim.generation,
        "source": claim.source,
        "tombstone": claim.tombstone,
    }


def raw_page_row(claim: Claim, sha256: str, page: RawPage) -> Row:
    """The row of a page with its checkpoint."""
    return page_row(claim, sha256, page) | {"payload": encode_page(page)}


def page_row(claim: Claim, sha256: str, page: Page | RawPage) -> Row:
    """The row of a page without a checkpoint."""
    return {
        "document_id": claim.document_id,
        "number": page.number,
        "sha256": sha256,
        "parser_hash": claim.parser_hash,
        "route": page.route,
        "reason": storable(page.reason),
        "signals": Jsonb(asdict(page.signals)),
        "seconds": page.seconds,
        "vlm_tokens": page.vlm_tokens,
        "confidence": page.confidence,
        "stage": page.error.stage if page.error else None,
        "error": storable(page.error.cause) if page.error else None,
        "payload": None,
    }


def result_columns(result: ParseResult) -> Row:
    """What `finish_document` writes of a result."""
    return {
        "status": "partial" if any(page.error for page in result.pages) else "done",
        "sha256": result.document.sha256,
        "chunk_ids": [chunk.id for chunk in result.chunks],
        "chunk_sha256s": [chunk.sha256 for chunk in result.chunks],
        "numbers": [page.number for page in result.pages],
    }


def vision_columns(claim: Claim, result: ParseResult) -> Row:
    """Vision tokens of pages as arrays, and what a checkpoint of them would be kept under."""
    return {
        "numbers": [page.number for page in result.pages],
        "tokens": [page.vlm_tokens for page in result.pages],
        "sha256": result.document.sha256,
        "parser_hash": claim.parser_hash,
    }


def document_from(row: Mapping[str, Any]) -> DocumentRow:
    """The document of a row."""
    return DocumentRow(**{name: row[name] for name in _DOCUMENT})


def triage_from(row: Mapping[str, Any]) -> PageRow:
    """The page of a row of `triage`. Signals that this version does not know are left out."""
    source, number, stage = row["source"], row["number"], row["stage"]
    return PageRow(
        source=source,
        number=number,
        route=row["route"],
        reason=row["reason"],
        signals=PageSignals(**{k: v for k, v in row["signals"].items() if k in _SIGNALS}),
        seconds=row["seconds"],
        vlm_tokens=row["vlm_tokens"],
        confidence=row["confidence"],
        error=StageError(stage, row["error"], document=source, page=number) if stage else None,
    )


def status_from(counts: Sequence[Row], errors: Sequence[LedgerError]) -> LedgerStatus:
    """The status, given rows of (what, name, amount)."""

    def of(what: str) -> dict[str, int]:
        return {row["name"]: row["amount"] for row in counts if row["what"] == what}

    return LedgerStatus(
        of("documents"), of("stages"), of("pages"), of("writes")["waiting"], tuple(errors)
    )


def after(row: Mapping[str, Any] | None) -> tuple[UUID, int]:
    """Where a listing of pages goes on, given the last row that it had."""
    return (row["document_id"], row["number"]) if row else (UUID(int=0), 0)
