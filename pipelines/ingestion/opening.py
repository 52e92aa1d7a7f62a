"""From settings to what ingestion needs."""

from __future__ import annotations

from ingest.ledger.postgres import PostgresLedger
from ingest.ledger.postgres_outbox import PostgresOutbox, PostgresVectorCache
from ingest.options import ParserOptions, ParserSpec, VlmSettings
from ingest.readers.base import ReadLimits
from ingest.triage import Thresholds
from ingest.vlm.base import Endpoint, VlmOptions
from ingest.vlm.session import VlmPolicy
from pipelines.ingestion.documents import Terms
from pipelines.ingestion.parts import Holdings, OpenEncoder, Parts
from ragplane.core.config import Settings
from ragplane.core.cpu import available_cpus
from ragplane.core.errors import ConfigError
from ragplane.core.models import read_model
from retrieval.stores.base import Store
from retrieval.stores.database import Database


def open_holdings(settings: Settings, store: Store, database: Database) -> Holdings:
    """What corpora are kept in; no model's files are read."""
    return Holdings(
        store,
        PostgresLedger(database.connections),
        PostgresOutbox(database.connections),
        terms=Terms(settings.lease_s, settings.patience_s),
    )


def open_parts(
    settings: Settings, store: Store, database: Database, open_encoder: OpenEncoder, workers: int
) -> Parts:
    """What `workers` parser processes work with. Raises ConfigError and ModelError."""
    holdings = open_holdings(settings, store, database)
    return Parts(
        store=store,
        ledger=holdings.ledger,
        outbox=holdings.outbox,
        terms=holdings.terms,
        cache=PostgresVectorCache(database.connections),
        open_encoder=open_encoder,
        parser=ParserSpec(
            options=parser_options(settings),
            home=settings.home_path,
            ocr_threads=max(1, available_cpus() // workers),
            timeout_s=settings.document_timeout_s,
            memory_bytes=settings.document_memory_mb << 20,
        ),
    )


def parser_options(settings: Settings) -> ParserOptions:
    """How files are read and cut. Raises ConfigError and ModelError."""
    files = read_model(settings.embed_model)
    return ParserOptions(
        tokenizer_file=files.folder / "tokenizer.json",
        limit_tokens=min(settings.chunk_tokens, files.max_tokens),
        contextual=settings.contextual_chunks,
        pdf_engine="pdfium" if settings.pdf == "pdfium" else "mupdf",
        ocr_engine=settings.ocr,
        thresholds=Thresholds.from_mapping(settings.triage),
        limits=ReadLimits(pages=settings.document_pages, pixels=settings.page_pixels),
        passwords=tuple(one.get_secret_value() for one in settings.passwords),
        vlm=_vlm(settings),
    )


def _vlm(settings: Settings) -> VlmSettings | None:
    if settings.vlm_url is None:
        return None
    if settings.vlm_model is None:
        raise ConfigError("vlm_url is set, but vlm_model is not")
    key = settings.vlm_api_key
    return VlmSettings(
        Endpoint(settings.vlm_url, settings.vlm_model, key.get_secret_value() if key else None),
        VlmPolicy(
            VlmOptions(
                max_pixels=settings.vlm_max_pixels,
                patch_pixels=settings.vlm_patch_pixels,
                timeout_s=settings.vlm_timeout_s,
            )
        ),
        document_tokens=settings.vlm_document_tokens,
        tenant_tokens=settings.vlm_tenant_tokens,
    )
