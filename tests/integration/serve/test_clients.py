"""Clients of OpenAI, TEI and Cohere against one real server: only their base URL is changed."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tests.integration.serve.server_process import Server, ready

# What other projects' packages warn of on import is not ours to mend.
pytestmark = pytest.mark.filterwarnings("ignore")
KEY = "K"
MODEL = "all-MiniLM-L6-v2"
QUERY = "capital of France"
DOCUMENTS = ["dogs bark", "Paris, its capital", "a boat on the river"]


@pytest.fixture(scope="module")
def server(model_home: Path) -> Iterator[Server]:
    with ready(model_home, "--api-key", KEY) as server:
        yield server


@pytest.fixture(scope="module")
def vectors(server: Server) -> Any:
    """Embeddings of DOCUMENTS as the server gives them."""
    headers = {"authorization": f"Bearer {KEY}"}
    reply = httpx.post(f"{server.url}/embed", json={"inputs": DOCUMENTS}, headers=headers)
    return np.array(reply.json())


def imported(name: str) -> Any:
    """A client package, imported when its test runs: some take seconds."""
    return importlib.import_module(name)


def test_openai(server: Server, vectors: Any) -> None:
    openai = imported("openai")
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=KEY) as client:
        coded = client.embeddings.create(model=MODEL, input=DOCUMENTS)  # base64 by default
        floats = client.embeddings.create(model=MODEL, input=DOCUMENTS, encoding_format="float")
        for one, other, expected in zip(coded.data, floats.data, vectors, strict=True):
            np.testing.assert_allclose(one.embedding, other.embedding, atol=1e-6)
            np.testing.assert_allclose(one.embedding, expected, atol=1e-5)
        short = client.embeddings.create(model=MODEL, input="a", dimensions=8)
        assert len(short.data[0].embedding) == 8
        assert coded.usage.total_tokens == floats.usage.total_tokens > 0
        assert [model.id for model in client.models.list()] == [MODEL]
        with pytest.raises(openai.BadRequestError) as refused:
            client.embeddings.create(model=MODEL, input="")
        assert refused.value.param == "input"
    wrong = openai.OpenAI(base_url=f"{server.url}/v1", api_key="wrong")
    with wrong, pytest.raises(openai.AuthenticationError):
        wrong.models.list()


def test_langchain_openai(server: Server, vectors: Any) -> None:
    maker = imported("langchain_openai").OpenAIEmbeddings
    url = f"{server.url}/v1"
    plain = maker(model=MODEL, base_url=url, api_key=KEY, check_embedding_ctx_length=False)
    np.testing.assert_allclose(plain.embed_documents(DOCUMENTS), vectors, atol=1e-5)
    assert len(plain.embed_query("a")) == 384


def test_cohere(server: Server) -> None:
    cohere = imported("cohere")
    with cohere.ClientV2(api_key=KEY, base_url=server.url) as client:
        answer = client.rerank(model=MODEL, query=QUERY, documents=DOCUMENTS, top_n=2)
        assert answer.results[0].index == 1
        assert len(answer.results) == 2
        assert answer.meta.billed_units.search_units == 1
        assert answer.meta.api_version.version == "2"
        with pytest.raises(cohere.BadRequestError) as refused:
            client.rerank(model=MODEL, query="", documents=DOCUMENTS)
        assert refused.value.body == {"message": "the query is empty"}
        with pytest.raises(cohere.UnprocessableEntityError):
            client.rerank(model=MODEL, query="q", documents=["a"] * 3000)
    with cohere.Client(api_key=KEY, base_url=server.url) as client:
        documents = [{"text": text} for text in DOCUMENTS]
        answer = client.rerank(model=MODEL, query=QUERY, documents=documents, return_documents=True)
        assert answer.results[0].document.text == DOCUMENTS[1]
    wrong = cohere.ClientV2(api_key="wrong", base_url=server.url)
    with wrong, pytest.raises(cohere.UnauthorizedError):
        wrong.rerank(model=MODEL, query="q", documents=DOCUMENTS)


def test_llama_index_tei(server: Server, vectors: Any) -> None:
    module = imported("llama_index.embeddings.text_embeddings_inference")
    client = module.TextEmbeddingsInference(MODEL, base_url=server.url, auth_token=KEY)
    np.testing.assert_allclose(client.get_text_embedding_batch(DOCUMENTS), vectors, atol=1e-5)
    assert len(client.get_query_embedding("a")) == 384


def test_huggingface_hub(server: Server, vectors: Any) -> None:
    """The client behind langchain-huggingface's endpoint embeddings."""
    maker = imported("huggingface_hub").InferenceClient
    embed = maker(model=f"{server.url}/embed", token=KEY)
    np.testing.assert_allclose(embed.feature_extraction(DOCUMENTS[0]), vectors[:1], atol=1e-5)
    compare = maker(model=f"{server.url}/similarity", token=KEY)
    cosines = compare.sentence_similarity(DOCUMENTS[0], DOCUMENTS)
    np.testing.assert_allclose(cosines, vectors @ vectors[0], atol=1e-5)


@pytest.mark.parametrize("provider", ["cohere", "jina_ai", "huggingface"])
def test_litellm_rerank(server: Server, monkeypatch: pytest.MonkeyPatch, provider: str) -> None:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it asks the network
    litellm = imported("litellm")
    answer = litellm.rerank(
        model=f"{provider}/{MODEL}",
        query=QUERY,
        documents=DOCUMENTS,
        api_base=server.url,
        api_key=KEY,
    )
    assert answer.results[0]["index"] == 1
    assert len(answer.results) == 3
