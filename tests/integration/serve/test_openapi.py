"""The OpenAPI document, put to the test by schemathesis: what it says is what the server does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as hypothesis_settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from serve.http.app import OPERATIONS
from tests.integration.serve.server_process import Server, ready
from tests.unit.serve.families import save_bert, write_splade_files

CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]
ROUTES = [(path, operation.method) for operation in OPERATIONS for path in operation.paths]
# Nothing can be wrong with a request that carries nothing, so GET has no negative cases.
CASES = [
    pytest.param(path, method, mode, id=f"{method}-{path}-{mode.value}")
    for path, method in ROUTES
    for mode in GenerationMode
    if method == "POST" or mode is GenerationMode.POSITIVE
]
BOUNDED = hypothesis_settings(
    max_examples=25,
    derandomize=True,
    database=None,
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def server(model_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Models of all kinds, so that every route can answer 200."""
    folder = tmp_path_factory.mktemp("kinds")
    labels = save_bert(folder / "labels", task="logits", labels=3)
    sparse = write_splade_files(save_bert(folder / "sparse", task="sparse"))
    with ready(model_home, "--extra-model", str(labels), "--extra-model", str(sparse)) as server:
        yield server


@pytest.fixture(scope="module")
def schema(server: Server) -> Any:
    return schemathesis.openapi.from_url(f"{server.url}/openapi.json")


def test_every_route_is_described(server: Server) -> None:
    paths = httpx.get(f"{server.url}/openapi.json").json()["paths"]
    described = {(path, method.upper()) for path, item in paths.items() for method in item}
    assert described == set(ROUTES)


@pytest.mark.parametrize(("path", "method", "mode"), CASES)
def test_answers_are_as_described(
    schema: Any, path: str, method: str, mode: GenerationMode
) -> None:
    """Whatever fits the schema gets a described answer, and what does not is refused."""
    operation = schema[path][method]
    statuses = set()

    @given(case=operation.as_strategy(generation_mode=mode))
    @BOUNDED
    def ask(case: Any) -> None:
        reply = case.call(timeout=60)
        statuses.add(reply.status_code)
        case.validate_response(reply, checks=CHECKS)

    ask()
    if mode is GenerationMode.POSITIVE:
        assert 200 in statuses
