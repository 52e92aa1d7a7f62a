"""The request bodies. Unknown fields are ignored; limits are checked by the encoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    ValidationError,
    WithJsonSchema,
    WrapValidator,
)
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from ragplane.core.errors import EmptyInputError, LimitError
from serve.backends.base import TokenIds
from serve.encoder import InputType

# What the encoder refuses as empty is stated in the schema, and checked in one place: there.
_STATED = Field(json_schema_extra={"minItems": 1})
Text = Annotated[str, WithJsonSchema({"type": "string", "minLength": 1})]
Texts = TypeAliasType("Texts", Annotated[list[Text], FailFast(), _STATED])
Ids = TypeAliasType("Ids", Annotated[list[int], FailFast(), _STATED])
IdLists = TypeAliasType("IdLists", Annotated[list[Ids], FailFast(), _STATED])
Mixed = TypeAliasType("Mixed", Annotated[list[Text | Ids], FailFast(), _STATED])
Pair = TypeAliasType(
    "Pair",
    Annotated[list[Text], FailFast(), Field(json_schema_extra={"minItems": 1, "maxItems": 2})],
)
Pairs = TypeAliasType("Pairs", Annotated[list[Pair], FailFast(), _STATED])


def _expected(what: str) -> WrapValidator:
    """Say `what` is expected, where a union would list every way in which it was not met."""

    def validate(value: Any, inner: Callable[[Any], Any]) -> Any:
        try:
            return inner(value)
        except ValidationError as error:
            raise PydanticCustomError("input_type", "must be " + what) from error

    return WrapValidator(validate)


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


OpenAIInput = Annotated[
    Text | Texts | Ids | IdLists,
    _expected("a text, a list of texts, a list of token ids, or a list of such lists"),
]
TeiInput = Annotated[
    Text | Ids | Mixed, _expected("a text, a list of token ids, or a list of texts and such lists")
]
PredictInput = Annotated[
    Text | Pair | Pairs,
    _expected("a text, one text or pair in a list, or a list of such lists"),
]
DecodeIds = Annotated[Ids | IdLists, _expected("a list of token ids, or a list of such lists")]
Direction = Annotated[
    Literal["right", "left"],
    BeforeValidator(_lower),
    WithJsonSchema({"type": "string", "pattern": "^([rR][iI][gG][hH][tT]|[lL][eE][fF][tT])$"}),
]


class Body(BaseModel):
    """A JSON object. Types are not converted: "5" is no number, and 1 is not true."""

    model_config = ConfigDict(strict=True)


class OpenAIEmbeddingsBody(Body):
    """`POST /v1/embeddings`. `input_type` is ours: it names the model's own prompt."""

    input: OpenAIInput
    model: str | None = None
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: int | None = None
    input_type: InputType | None = None


class EncodeBody(Body):
    """`POST /embed_sparse` and `/embed_all`."""

    inputs: TeiInput
    model: str | None = None
    truncate: bool | None = None
    truncation_direction: Direction = "right"
    prompt_name: str | None = None


class EmbedBody(EncodeBody):
    """`POST /embed`."""

    normalize: bool = True
    dimensions: int | None = None


class RerankBody(Body):
    """`POST /rerank`. Late interaction has no activation, so raw scores are the scores."""

    query: Text
    texts: Texts
    model: str | None = None
    truncate: bool | None = None
    truncation_direction: Direction = "right"
    raw_scores: bool = False
    return_text: bool = False


class DocumentBody(Body):
    """A document as an object."""

    text: Text


class CohereRerankBody(Body):
    """`POST /v1/rerank` and `/v2/rerank`."""

    query: Text
    documents: Annotated[
        list[Text | DocumentBody],
        FailFast(),
        _STATED,
        _expected('a list of texts, or of objects with a "text"'),
    ]
    model: str | None = None
    top_n: int | None = None
    return_documents: bool | None = None
    max_tokens_per_doc: int | None = None


class PredictBody(Body):
    """`POST /predict`. A flat list is one input: `[a]`, or the pair `[a, b]`."""

    inputs: PredictInput
    model: str | None = None
    truncate: bool | None = None
    truncation_direction: Direction = "right"
    raw_scores: bool = False


class SimilarityInputs(Body):
    """One text, and those to compare it with."""

    source_sentence: Text
    sentences: Texts


class SimilarityParameters(Body):
    """How the texts are encoded."""

    truncate: bool | None = None
    truncation_direction: Direction = "right"
    prompt_name: str | None = None


class SimilarityBody(Body):
    """`POST /similarity`."""

    inputs: SimilarityInputs
    parameters: SimilarityParameters | None = None
    model: str | None = None


class TokenizeBody(Body):
    """`POST /tokenize`."""

    inputs: Text | Texts
    model: str | None = None
    add_special_tokens: bool = True
    prompt_name: str | None = None


class DecodeBody(Body):
    """`POST /decode`."""

    ids: DecodeIds
    model: str | None = None
    skip_special_tokens: bool = True


def as_inputs(value: str | Sequence[str | int | Sequence[int]]) -> list[str | TokenIds]:
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


def check_texts(texts: Sequence[str], param: str) -> None:
    """Raise EmptyInputError naming the first empty one of `texts`."""
    if "" in texts:
        raise EmptyInputError(f"{param}[{texts.index('')}] is empty", param=param)
