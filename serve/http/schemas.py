"""The request bodies. Unknown fields are ignored; limits are checked by the encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, StrictInt

from ragplane.core.errors import EmptyInputError, LimitError
from serve.backend import TokenIds
from serve.encoder import InputType

Ids = list[StrictInt]
OpenAIInput = str | list[str] | Ids | list[Ids]
TeiInput = str | Ids | list[str | Ids]


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


Direction = Annotated[Literal["right", "left"], BeforeValidator(_lower)]


class OpenAIEmbeddingsBody(BaseModel):
    """`POST /v1/embeddings`. `input_type` is ours: it names the model's own prompt."""

    input: OpenAIInput
    model: str | None = None
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: StrictInt | None = None
    input_type: InputType | None = None


class EmbedBody(BaseModel):
    """`POST /embed`."""

    inputs: TeiInput
    truncate: bool | None = None
    truncation_direction: Direction = "right"
    prompt_name: str | None = None
    normalize: bool = True
    dimensions: StrictInt | None = None


class RerankBody(BaseModel):
    """`POST /rerank`. Late interaction has no activation, so raw scores are the scores."""

    query: str
    texts: list[str]
    truncate: bool | None = None
    truncation_direction: Direction = "right"
    raw_scores: bool = False
    return_text: bool = False


class DocumentBody(BaseModel):
    """A document as an object."""

    text: str


class CohereRerankBody(BaseModel):
    """`POST /v1/rerank` and `/v2/rerank`."""

    query: str
    documents: list[str | DocumentBody]
    model: str | None = None
    top_n: StrictInt | None = None
    return_documents: bool = False
    max_tokens_per_doc: StrictInt | None = None


class TokenizeBody(BaseModel):
    """`POST /tokenize`."""

    inputs: str | list[str]
    add_special_tokens: bool = True
    prompt_name: str | None = None


def as_inputs(value: OpenAIInput | TeiInput) -> list[str | TokenIds]:
    """One list of texts and token ids; a bare string or a bare list of ids is one input."""
    if isinstance(value, str):
        return [value]
    if value and isinstance(value[0], int):
        return [tuple(item for item in value if isinstance(item, int))]
    return [
        item if isinstance(item, str) else tuple(item)
        for item in value
        if not isinstance(item, int)
    ]


def check_batch(inputs: Sequence[object], limit: int, param: str) -> None:
    """Raise EmptyInputError for no input, and LimitError for more than `limit`."""
    if not inputs:
        raise EmptyInputError(f"{param} is empty", param=param)
    if len(inputs) > limit:
        message = f"{param}: {len(inputs)} items are over the limit of {limit}"
        raise LimitError(message, param=param)
