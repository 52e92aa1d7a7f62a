"""`ragplane serve`: the settings of the server as flags, with TEI's names where TEI has one."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from ragplane.core import telemetry
from ragplane.core.config import (
    BackendName,
    DtypeName,
    PoolingName,
    Settings,
    load_settings,
)
from ragplane.core.errors import ConfigError

_NO_MODEL = "none"


def serve(
    host: Annotated[
        str, typer.Option("--host", "--hostname", help="Address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8080,
    embed_model: Annotated[
        str | None, typer.Option(help="A hub id, a folder, `bundled` (default) or `none`.")
    ] = None,
    rerank_model: Annotated[str | None, typer.Option(help="As --embed-model.")] = None,
    extra_model: Annotated[
        list[str] | None, typer.Option(help="One more model of any kind; may be repeated.")
    ] = None,
    served_model_name: Annotated[
        str | None, typer.Option(help="What clients call the embedding model.")
    ] = None,
    backend: Annotated[
        BackendName | None, typer.Option(help="Default: the fastest that is exact enough.")
    ] = None,
    dtype: Annotated[DtypeName | None, typer.Option(help="The precision; as --backend.")] = None,
    device: Annotated[Literal["cpu", "cuda"] | None, typer.Option()] = None,
    pooling: Annotated[
        PoolingName | None, typer.Option(help="In place of what the model's files say.")
    ] = None,
    default_prompt: Annotated[
        str | None, typer.Option(help="A text in front of inputs that name no prompt.")
    ] = None,
    default_prompt_name: Annotated[
        str | None, typer.Option(help="A prompt of the model's files, for the same use.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, max=1024, help="CPU threads; default: the cgroup's CPUs.")
    ] = None,
    tokenization_workers: Annotated[
        int | None, typer.Option(min=1, max=256, help="Tokenizer threads; default: as --threads.")
    ] = None,
    max_concurrent_requests: Annotated[
        int | None, typer.Option(min=1, help="Open requests; past it, 429.")
    ] = None,
    max_client_batch_size: Annotated[
        int | None, typer.Option(min=1, help="Inputs of one request; past it, 422.")
    ] = None,
    max_batch_tokens: Annotated[
        int | None, typer.Option(min=1, help="Tokens that one forward pass costs at most.")
    ] = None,
    max_batch_requests: Annotated[
        int | None, typer.Option(min=1, help="Inputs of one forward pass at most.")
    ] = None,
    micro_batch_tokens: Annotated[
        int | None, typer.Option(min=1, help="Tokens a batch is filled to; default: measured.")
    ] = None,
    scheduling: Annotated[
        Literal["fair", "fifo"] | None, typer.Option(help="fifo: one queue, for comparisons.")
    ] = None,
    auto_truncate: Annotated[
        bool | None, typer.Option(help="Cut long inputs, or refuse them. Default: cut.")
    ] = None,
    payload_limit: Annotated[
        int | None, typer.Option(min=1, help="Bytes of a request body; past it, 413.")
    ] = None,
    api_key: Annotated[
        str | None, typer.Option(help="Clients must send it; better as RAGPLANE_API_KEY.")
    ] = None,
    cors_allow_origin: Annotated[
        list[str] | None, typer.Option(help="An origin whose pages may ask; may be repeated.")
    ] = None,
    otlp_endpoint: Annotated[
        str | None, typer.Option(help="Send OpenTelemetry spans there (OTLP over HTTP).")
    ] = None,
) -> None:
    """Serve embeddings, reranking and classification over HTTP (OpenAI, TEI, Cohere dialects)."""
    settings = load_settings(
        embed_model=embed_model,
        rerank_model=rerank_model,
        extra_models=extra_model or None,
        served_model_name=served_model_name,
        backend=backend,
        dtype=dtype,
        device=device,
        pooling=pooling,
        default_prompt=default_prompt,
        default_prompt_name=default_prompt_name,
        threads=threads,
        tokenization_workers=tokenization_workers,
        max_concurrent_requests=max_concurrent_requests,
        max_client_batch_size=max_client_batch_size,
        max_batch_tokens=max_batch_tokens,
        max_batch_requests=max_batch_requests,
        micro_batch_tokens=micro_batch_tokens,
        scheduling=scheduling,
        auto_truncate=auto_truncate,
        payload_limit_bytes=payload_limit,
        api_key=api_key,
        cors_allow_origin=cors_allow_origin or None,
        otlp_endpoint=otlp_endpoint,
    )
    _require_a_model(settings)
    telemetry.configure(settings)

    from serve.server import run  # seconds of imports that --help and wrong flags do not need

    raise typer.Exit(run(settings, host=host, port=port))


def _require_a_model(settings: Settings) -> None:
    named = {settings.embed_model, settings.rerank_model, *settings.extra_models}
    if named <= {_NO_MODEL}:
        raise ConfigError("no model to serve: embed_model, rerank_model and extra_models are none")
