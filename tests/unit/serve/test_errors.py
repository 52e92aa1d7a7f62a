"""The table of errors."""

from __future__ import annotations

import pytest

from ragplane.core import errors
from serve.http.errors import cause_of, dialect_of

ROWS = [
    (errors.InputError(), 400, "invalid_request_error", "Validation"),
    (errors.EmptyInputError(), 400, "invalid_request_error", "Empty"),
    (errors.LimitError(), 422, "invalid_request_error", "Validation"),
    (errors.ModelNotFoundError(), 404, "invalid_request_error", "NotFound"),
    (errors.TokenizerError(), 422, "invalid_request_error", "Tokenizer"),
    (errors.ModelError(), 424, "invalid_request_error", "Backend"),
    (errors.NonFiniteError(), 424, "inference_error", "Backend"),
    (errors.OverloadedError(), 429, "overloaded", "Overloaded"),
    (errors.DeadlineError(), 429, "deadline", "Overloaded"),
    (errors.UnavailableError(), 503, "unavailable", "Unhealthy"),
    (errors.ConfigError(), 500, "internal_error", "Internal"),
]


@pytest.mark.parametrize(("error", "status", "openai", "tei"), ROWS)
def test_status_and_types(error: errors.RagplaneError, status: int, openai: str, tei: str) -> None:
    cause = cause_of(error)
    assert (cause.status, cause.openai_type, cause.tei_type) == (status, openai, tei)


@pytest.mark.parametrize(
    ("path", "dialect"),
    [
        ("/v1/embeddings", "openai"),
        ("/embeddings", "openai"),
        ("/v1/models", "openai"),
        ("/v1/rerank", "cohere"),
        ("/v2/rerank", "cohere"),
        ("/v2/nope", "cohere"),
        ("/v1/chat/completions", "openai"),
        ("/rerank", "tei"),
        ("/embed", "tei"),
        ("/unknown", "tei"),
    ],
)
def test_dialect(path: str, dialect: str) -> None:
    assert dialect_of(path) == dialect
