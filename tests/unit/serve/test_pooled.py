"""Pooling where the model runs: every backend, beside token vectors, and over processes."""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from ragplane.core.config import BackendName
from ragplane.core.errors import NonFiniteError
from ragplane.core.models import ModelFiles, Pooling, Task, read_model
from ragplane.core.onnx_export import exported_graph
from serve.backends.apart import ProcessBackend
from serve.backends.base import Backend, ModelInput
from serve.backends.factory import Candidate, build
from serve.backends.pooled import PoolingBackend
from serve.batching.batcher import Batcher
from serve.batching.work import Work
from serve.encoder import Vectors
from serve.local import LocalEncoder
from serve.pooling import pool
from serve.requests import EmbedRequest, EncodeRequest
from tests.unit.serve.families import HIDDEN, save_bert, save_mpnet, write_sentence_files
from tests.unit.serve.stub_backend import NOT_FINITE, StubBackend, until

IDS = [tuple(range(6, 6 + length)) for length in (7, 30, 3, 1, 12)]
TOKENS = [ModelInput(ids) for ids in IDS]
POOLED = [ModelInput(ids, pooled=True) for ids in IDS]
TORCH = Candidate("torch", "float32")


@pytest.fixture
def packed(tmp_path: Path) -> ModelFiles:
    folder = write_sentence_files(save_bert(tmp_path / "bert"), pooling="lasttoken")
    return read_model(str(folder))


@pytest.fixture
def padded(tmp_path: Path) -> ModelFiles:
    return read_model(str(write_sentence_files(save_mpnet(tmp_path / "mpnet"), pooling="max")))


def check_pooled(backend: Backend, pooling: Pooling) -> None:
    """Alone, and mixed with inputs whose token vectors are wanted."""
    states = backend.forward(TOKENS)
    mixed = backend.forward([one for both in zip(TOKENS, POOLED, strict=True) for one in both])
    vectors = backend.forward(POOLED)
    for ids, tokens, beside, vector in zip(IDS, states, mixed[::2], vectors, strict=True):
        assert tokens.shape == beside.shape == (len(ids), HIDDEN)
        np.testing.assert_allclose(beside, tokens, rtol=0, atol=1e-5)
        np.testing.assert_allclose(vector, pool(tokens, pooling), rtol=0, atol=1e-5)
    for vector, beside in zip(vectors, mixed[1::2], strict=True):
        assert (vector.shape, vector.dtype, vector.base) == ((HIDDEN,), np.float32, None)
        np.testing.assert_allclose(beside, vector, rtol=0, atol=1e-5)


@pytest.mark.parametrize("family", ["packed", "padded"])
def test_pooled_is_the_pooling_of_states_on_torch(
    family: str, request: pytest.FixtureRequest, model_home: Path
) -> None:
    files: ModelFiles = request.getfixturevalue(family)
    backend = build(files, TORCH, None, 2, model_home)
    assert backend.packed == (family == "packed")
    check_pooled(backend, files.pooling)


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_pooled_is_the_pooling_of_states_on_graphs(
    name: BackendName, packed: ModelFiles, model_home: Path
) -> None:
    graph = exported_graph(packed, model_home / "models" / "families")
    candidate = Candidate(name, "float32")
    check_pooled(build(packed, candidate, graph, 1, model_home), packed.pooling)


@pytest.fixture
def apart(packed: ModelFiles, model_home: Path) -> Iterator[ProcessBackend]:
    backend = ProcessBackend(packed.root, "cls", TORCH, None, 2, model_home)
    yield backend
    backend.close()


def test_pooled_is_the_pooling_of_states_in_other_processes(apart: ProcessBackend) -> None:
    """As the settings say, which name another pooling than the model's files."""
    check_pooled(apart, "cls")


def test_one_vector_crosses_for_a_pooled_input() -> None:
    backend = PoolingBackend(StubBackend(), "cls")
    sizes = [
        len(pickle.dumps(backend.forward([ModelInput((1,) * 1000, pooled=pooled)])))
        for pooled in (True, False)
    ]
    assert sizes[0] < 300
    assert sizes[1] > 4000


async def test_a_batch_gives_each_its_own_kind(batcher: Batcher, backend: StubBackend) -> None:
    """Behaviour 11: equal ids are one input only if the same is wanted of them."""
    works = [Work(ModelInput((1, 4), pooled=pooled), np.copy) for pooled in (True, False) * 2]
    vector, tokens, *again = [done.value for done in await batcher.run(works)]
    assert backend.batches == [[(1, 4), (1, 4)]]
    np.testing.assert_array_equal(vector, [2.5])
    np.testing.assert_array_equal(tokens, [[1], [4]])
    for one, other in zip(again, (vector, tokens), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("pooled", [True, False])
async def test_a_fault_beyond_the_pooled_token_is_an_error(pooled: bool, batcher: Batcher) -> None:
    """Behaviour 20."""
    with pytest.raises(NonFiniteError):
        await batcher.run([Work(ModelInput((1, NOT_FINITE), pooled=pooled), np.copy)])


async def test_vectors_and_token_vectors_of_one_text_in_one_batch(
    encoder: LocalEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches, gate = record(monkeypatch)
    model = encoder.registry.any()
    first = asyncio.create_task(encoder.run_embed(model, EmbedRequest(inputs=["first"])))
    await until(lambda: batches)
    both = asyncio.gather(
        encoder.run_embed(model, EmbedRequest(inputs=["a boat", "on"])),
        encoder.run_embed_all(model, EncodeRequest(inputs=["a boat"])),
    )
    await until(lambda: model.batcher.queue_sizes["interactive"] == 3)
    gate.set()
    (vectors, _), (tokens, _) = await both
    await first
    assert [sorted(batch) for batch in batches] == [[True], [False, True, True]]
    np.testing.assert_allclose(vectors.vectors[0], model.head(tokens.vectors[0]), rtol=0, atol=1e-6)


async def test_reranking_by_late_interaction_asks_for_token_vectors(
    encoder: LocalEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches, gate = record(monkeypatch)
    gate.set()
    await encoder.rerank("a harbour", ["pooled nowhere"])
    assert not any(pooled for batch in batches for pooled in batch)


def record(monkeypatch: pytest.MonkeyPatch) -> tuple[list[list[bool]], threading.Event]:
    """Which inputs of each batch are pooled; the batches run once the event is set."""
    batches: list[list[bool]] = []
    gate, forward = threading.Event(), PoolingBackend.forward

    def held(self: PoolingBackend, inputs: Sequence[ModelInput]) -> list[Vectors]:
        batches.append([item.pooled for item in inputs])
        gate.wait(10)
        return forward(self, inputs)

    monkeypatch.setattr(PoolingBackend, "forward", held)
    return batches, gate


class EndingBackend(StubBackend):
    """Notes how it is ended."""

    def __init__(self) -> None:
        super().__init__()
        self.ends: list[object] = []

    def interrupt(self, after_s: float) -> None:
        self.ends.append(after_s)

    def close(self) -> None:
        self.ends.append("close")


def test_all_else_is_the_backend_s_own() -> None:
    inner = EndingBackend()
    inner.dtype, inner.packed, inner.streams = "bfloat16", True, 2
    backend = PoolingBackend(inner, "mean")
    assert (backend.name, backend.dtype) == ("stub", "bfloat16")
    assert (backend.packed, backend.streams) == (True, 2)
    backend.interrupt(3.0)
    backend.close()
    assert inner.ends == [3.0, "close"]


@pytest.mark.parametrize(("task", "pools"), [("states", True), ("logits", False)])
def test_only_token_vectors_are_pooled(task: Task, pools: bool, tmp_path: Path) -> None:
    files = read_model(str(save_bert(tmp_path / "bert", task=task)))
    assert isinstance(build(files, TORCH, None, 1, tmp_path), PoolingBackend) == pools
