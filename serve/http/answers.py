"""The shapes of the answers, as OpenAPI shows them. The routes write the JSON themselves."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field


class EmbeddingItem(BaseModel):
    """One vector: numbers, or base64 of little-endian float32."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingUsage(BaseModel):
    """Tokens that were computed."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingsAnswer(BaseModel):
    """`POST /v1/embeddings`."""

    object: Literal["list"]
    data: list[EmbeddingItem]
    model: str
    usage: EmbeddingUsage


class ModelItem(BaseModel):
    """A served model: the first thing it does, and all of them."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    kind: str
    kinds: list[str]


class ModelsAnswer(BaseModel):
    """`GET /v1/models`."""

    object: Literal["list"]
    data: list[ModelItem]


class TermWeight(BaseModel):
    """The weight of one vocabulary id."""

    index: int
    value: float


class RankedText(BaseModel):
    """A text's place in the request, its score, and the text itself where asked for."""

    index: int
    score: float
    text: str | None = None


class Label(BaseModel):
    """A label and its score."""

    label: str
    score: float


class Token(BaseModel):
    """A token with its character span, which special tokens have not."""

    id: int
    text: str
    special: bool
    start: int | None
    stop: int | None


class CohereDocument(BaseModel):
    """A document as it was sent."""

    text: str


class CohereResult(BaseModel):
    """A document's place in the request and its score."""

    index: int
    relevance_score: float
    document: CohereDocument | None = None


class CohereVersion(BaseModel):
    """The version in the route."""

    version: str


class CohereUnits(BaseModel):
    """What Cohere would bill."""

    search_units: int


class CohereMeta(BaseModel):
    """Version and billed units."""

    api_version: CohereVersion
    billed_units: CohereUnits


class CohereUsage(BaseModel):
    """Tokens that were computed, as Jina says it."""

    total_tokens: int


class CohereAnswer(BaseModel):
    """`POST /v1/rerank` and `/v2/rerank`."""

    id: str
    model: str
    results: list[CohereResult]
    meta: CohereMeta
    usage: CohereUsage


class EmbeddingType(BaseModel):
    """How a vector is made of token states."""

    pooling: str
    dimensions: int


class LabelsType(BaseModel):
    """The labels of a head, by output and by name."""

    id2label: dict[str, str]
    label2id: dict[str, int]


class SparseType(BaseModel):
    """How term weights are made."""

    pooling: str


class ModelType(BaseModel):
    """What a model does; only what applies is there."""

    embedding: EmbeddingType | None = None
    embedding_sparse: SparseType | None = None
    reranker: LabelsType | None = None
    classifier: LabelsType | None = None


class ModelInfo(BaseModel):
    """One served model. `parity` is its cosine against float32; null where none was measured."""

    model_config = {"protected_namespaces": ()}

    model_id: str
    model_sha: str
    model_dtype: str
    model_type: ModelType
    backend: str
    parity: float | None
    micro_batch_tokens: int
    max_input_length: int
    served_model_name: str
    fingerprint: str


class InfoAnswer(ModelInfo):
    """`GET /info`: the first embedding model, else the first; then all of them in `models`."""

    max_batch_tokens: int
    max_concurrent_requests: int
    max_client_batch_size: int
    max_batch_requests: int | None
    auto_truncate: bool
    tokenization_workers: int
    scheduling: str
    version: str
    models: list[ModelInfo]


class StatusAnswer(BaseModel):
    """`GET /health` and `/ready`."""

    status: Literal["ok", "unavailable"]


class OpenAIErrorDetail(BaseModel):
    """What went wrong, and with which field."""

    message: str
    type: str
    code: str
    param: str | None


class OpenAIError(BaseModel):
    """The envelope of OpenAI routes."""

    error: OpenAIErrorDetail


class TeiError(BaseModel):
    """The envelope of TEI routes."""

    error: str
    error_type: str


class CohereError(BaseModel):
    """The envelope of Cohere routes."""

    message: str


class OpenApiAnswer(BaseModel):
    """`GET /openapi.json`."""

    openapi: str
    info: dict[str, Any]
    paths: dict[str, Any] = Field(default_factory=dict)
