"""Settings: `RAGPLANE_*` in the environment over an optional ragplane.toml over the defaults.

Frozen after start. An unknown key in the file is an error. Secrets are masked in repr.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from ragplane.core.errors import ConfigError

LogLevel = Annotated[
    Literal["debug", "info", "warning", "error", "critical"],
    BeforeValidator(lambda value: str(value).lower()),
]
BackendName = Literal["auto", "onnxruntime", "torch", "openvino"]
DtypeName = Literal["auto", "float32", "bfloat16", "float16"]
Device = Literal["cpu", "cuda"]
PoolingName = Literal["cls", "mean", "last-token", "splade"]
DEFAULT_TENANT = "default"
DEFAULT_BUDGET_TOKENS = 800


class Settings(BaseSettings):
    """All settings of one process. Each field is `RAGPLANE_<NAME>` in the environment."""

    model_config = SettingsConfigDict(
        env_prefix="RAGPLANE_", env_ignore_empty=True, frozen=True, extra="forbid"
    )

    home: Path = Field(
        default=Path("~/.local/share/ragplane"),
        description="Holds the embedded database, exported models and caches.",
    )
    database_url: SecretStr | None = Field(
        default=None, description="A PostgreSQL with pgvector; unset: the embedded one in `home`."
    )

    store: str | None = Field(
        default=None,
        description="Where vectors are kept: `postgres` (default), `qdrant+http://host:port` or "
        "`qdrant+edge:NAME`, the Qdrant engine in this process. The ledger is in PostgreSQL.",
    )
    store_api_key: SecretStr | None = None

    embed_model: str = Field(
        default="bundled", description="A hub id, a folder, `bundled` or `none`."
    )
    rerank_model: str = Field(
        default="bundled",
        description="As embed_model; a cross-encoder, or an embedding model for late interaction.",
    )
    extra_models: tuple[str, ...] = Field(
        default=(), description="More models to serve, of any kind; their files say which."
    )
    served_model_name: str | None = Field(
        default=None, description="The name under which the embedding model is served."
    )
    backend: BackendName = Field(
        default="auto", description="What runs the models; auto: the fastest that is exact enough."
    )
    dtype: DtypeName = Field(default="auto", description="The precision, chosen as the backend is.")
    device: Device = "cpu"
    pooling: PoolingName | None = Field(
        default=None, description="In place of what the embedding model's files say."
    )
    default_prompt: str | None = Field(
        default=None, description="A text in front of every input that names no prompt."
    )
    default_prompt_name: str | None = Field(
        default=None, description="A prompt of the model's files, for the same use."
    )
    encoder_url: str | None = Field(
        default=None,
        description="A Ragplane server that embeds and reranks; unset: encode in this process.",
    )
    encoder_api_key: SecretStr | None = None
    threads: int | None = Field(
        default=None,
        ge=1,
        le=1024,
        description="CPU threads of the encoder; unset: the cgroup's CPUs.",
    )

    api_key: SecretStr | None = Field(default=None, description="Clients must send this key.")
    cors_allow_origin: tuple[str, ...] = Field(
        default=(), description="Origins whose browsers may read answers; * for any."
    )
    scheduling: Literal["fair", "fifo"] = Field(
        default="fair", description="fifo: one queue, first come first served, for comparisons."
    )
    max_concurrent_requests: int = Field(default=512, ge=1)
    max_batch_tokens: int = Field(
        default=16384, ge=1, description="Tokens that one forward pass costs, never more."
    )
    micro_batch_tokens: int | None = Field(
        default=None,
        ge=1,
        description="Tokens that a batch is filled to. Larger ones are no faster on CPUs, and make "
        "others wait. Unset: measured at start.",
    )
    max_batch_requests: int | None = Field(
        default=None, ge=1, description="Inputs of one forward pass, never more."
    )
    max_client_batch_size: int = Field(
        default=2048, ge=1, description="Inputs of one request; over it, 422."
    )
    auto_truncate: bool = True
    payload_limit_bytes: int = Field(default=8_000_000, ge=1)
    tokenization_workers: int | None = Field(
        default=None, ge=1, le=256, description="Tokenizer threads; unset: the cgroup's CPUs."
    )
    warm_up_s: float = Field(
        default=30.0, ge=0, description="The longest that warming up may take; 0: no warm-up."
    )
    drain_s: float = Field(default=30.0, ge=0, description="Grace for open requests at SIGTERM.")

    chunk_tokens: int = Field(
        default=200, ge=16, description="Length of a chunk at most, prefix and specials included."
    )
    contextual_chunks: bool = Field(
        default=True, description="Embed each chunk behind its document's title and headings."
    )
    pdf: Literal["mupdf", "pdfium"] = Field(
        default="mupdf", description="pdfium (pypdfium2): for those who cannot take the AGPL."
    )
    ocr: Literal["rapid", "paddle"] = Field(
        default="rapid", description="paddle wants the extra of that name."
    )
    passwords: tuple[SecretStr, ...] = Field(
        default=(), description="Tried on encrypted documents."
    )
    triage: dict[str, int | float] = Field(
        default_factory=dict, description="Thresholds of the routes by name, see docs/ingest.md."
    )
    document_timeout_s: float = Field(
        default=600.0, gt=0, le=86400, description="A document that takes longer to parse fails."
    )
    document_memory_mb: int = Field(
        default=2048, ge=256, description="MiB; a document whose parser takes more fails."
    )
    document_pages: int = Field(default=20_000, ge=1, description="Documents with more fail.")
    page_pixels: int = Field(
        default=12_000_000, ge=100_000, description="Pages are shown to the OCR in no more."
    )
    lease_s: float = Field(
        default=60.0, gt=0, description="A worker that is silent for so long loses its document."
    )
    patience_s: float = Field(
        default=120.0, ge=0, description="How long a part that is down is waited for."
    )
    vlm_url: str | None = Field(
        default=None,
        description="An OpenAI-compatible server with a vision model, up to and including `/v1`.",
    )
    vlm_model: str | None = None
    vlm_api_key: SecretStr | None = None
    vlm_max_pixels: int = Field(
        default=1_605_632, ge=3136, description="Page images are scaled down to so many."
    )
    vlm_patch_pixels: int = Field(
        default=28, ge=8, description="Side of a visual token: 28 for Qwen2.5-VL, 32 for Qwen3-VL."
    )
    vlm_document_tokens: int | None = Field(
        default=100_000, ge=0, description="Vision tokens that one document may cost."
    )
    vlm_tenant_tokens: int | None = Field(
        default=None, ge=0, description="Vision tokens that a tenant may cost in a day (UTC)."
    )
    vlm_timeout_s: float = Field(default=60.0, gt=0, description="Of one call.")

    abstain_below: float = Field(
        default=0.42,
        description="Answer nothing when the best sentence scores lower (late interaction, -1 to "
        "1); -1 always answers. Measured on the sample corpus, see docs/benchmarks.md.",
    )
    generate_url: str | None = Field(
        default=None, description="An OpenAI-compatible server, up to and including `/v1`."
    )
    generate_model: str | None = None
    generate_api_key: SecretStr | None = None
    generate_timeout_s: float = Field(default=60.0, gt=0)

    otlp_endpoint: str | None = Field(
        default=None, description="Send OpenTelemetry spans there (OTLP over HTTP)."
    )
    log_level: LogLevel = "warning"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        file = Path(os.environ.get("RAGPLANE_CONFIG", "ragplane.toml"))
        toml = TomlConfigSettingsSource(settings_cls, toml_file=file)
        return init_settings, env_settings, toml

    @property
    def home_path(self) -> Path:
        """`home`, expanded and absolute."""
        return self.home.expanduser().resolve()


def load_settings(**overrides: Any) -> Settings:
    """The settings of this process; an override of None means "not given".

    Raises ConfigError naming every bad setting, without its value (it may be a secret).
    """
    if (named := os.environ.get("RAGPLANE_CONFIG")) and not Path(named).is_file():
        raise ConfigError(f"RAGPLANE_CONFIG names {named}, which is not a file")
    given = {name: value for name, value in overrides.items() if value is not None}
    try:
        return Settings(**given)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}"
            for fault in error.errors(include_input=False, include_url=False)
        )
        raise ConfigError(f"settings: {faults}") from None
    except SettingsError as error:  # a variable that should be JSON, and names itself
        raise ConfigError(f"settings: {error}") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"settings: ragplane.toml: {error}") from error
