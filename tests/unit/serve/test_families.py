"""Tiny models of each family through ONNX Runtime, against sentence-transformers and transformers.

Behaviours 13, 14, 16, 19, 21, 22, 23 and 25 of the encoder server.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from filelock import FileLock
from sentence_transformers import CrossEncoder, SentenceTransformer, SparseEncoder
from sentence_transformers.sentence_transformer.modules import (
    Dense,
    Normalize,
    Pooling,
    Transformer,
)

from ragplane.core.models import ModelFiles, Task, read_model
from ragplane.core.onnx_export import exported_graph, graph_form, graph_path
from ragplane.core.onnx_trace import export
from ragplane.core.tokens import TokenizedText, TruncationDirection
from serve.backends.base import ModelInput
from serve.backends.onnx import OnnxBackend
from serve.encoder import Vectors
from serve.heads import EmbeddingHead
from serve.pooling import activate, sparse_weights
from tests.unit.serve.families import (
    FAMILIES,
    LENGTH,
    save_bert,
    save_distilbert,
    update_json,
    write_sentence_files,
    write_splade_files,
)

TOLERANCE = 1e-4
DIRECTIONS: tuple[TruncationDirection, ...] = ("right", "left")
TEXTS = (
    "a",
    "the green house of the river",
    "Question: what is the answer? " * 3,
    "the river and the house, " * 40,  # over the limit of every family
    "houses",
    "  NUL \0, <pad> [PAD] </s>[SEP], Émile, 👩‍👩‍👧 and שלום \n",
)
PAIRS = tuple(("what is the river", text) for text in TEXTS)
POOLINGS = {
    "bert": "mean",
    "roberta": "cls",
    "xlm-roberta": "mean_sqrt_len_tokens",
    "mpnet": "mean",
    "distilbert": "max",
    "modernbert": "cls",
    "qwen2": "weightedmean",
    "qwen3": "lasttoken",
}
Run = Callable[[ModelFiles, Sequence[TokenizedText]], list[Vectors]]


@pytest.fixture(scope="module")
def run(model_home: Path) -> Run:
    """Runs inputs as one batch on the model's graph, which is kept between test runs."""
    backends: dict[Path, OnnxBackend] = {}

    def run(files: ModelFiles, texts: Sequence[TokenizedText]) -> list[Vectors]:
        cache = model_home / "models" / "families"
        if files.onnx is None:
            _export_here(files, graph_path(files, cache))
        graph = exported_graph(files, cache)
        if graph not in backends:
            backends[graph] = OnnxBackend(graph, files, threads=1)
        return backends[graph].forward([ModelInput(text.ids, text.second_at) for text in texts])

    return run


def _export_here(files: ModelFiles, graph: Path) -> None:
    """As `exported_graph`, in this process: another one would import torch again."""
    graph.parent.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{graph.parent}.lock"):
        if not graph.is_file():
            export(files.folder, graph, graph_form(files))


def embed(run: Run, folder: Path, texts: Sequence[str], direction: TruncationDirection) -> Vectors:
    files = read_model(str(folder))
    tokens = files.tokenizer().encode(texts, max_tokens=files.max_tokens, direction=direction)
    head = EmbeddingHead(files)
    vectors = np.stack([head(states) for states in run(files, tokens)])
    assert vectors.shape == (len(texts), files.dimensions)
    return vectors


def logits(
    run: Run, files: ModelFiles, pairs: Sequence[tuple[str, str]], direction: TruncationDirection
) -> Vectors:
    tokenizer, limit = files.tokenizer(), files.max_tokens
    tokens = [
        tokenizer.encode_pairs(query, [text], max_tokens=limit, direction=direction)[0]
        for query, text in pairs
    ]
    assert any(text.cut_tokens for text in tokens)
    return np.stack(run(files, tokens))


@pytest.mark.parametrize("family", FAMILIES)
def test_vectors_equal_sentence_transformers(family: str, run: Run, tmp_path: Path) -> None:
    folder = FAMILIES[family](tmp_path / family)
    write_sentence_files(folder, pooling=POOLINGS[family], normalize=family != "mpnet")
    reference = SentenceTransformer(str(folder), device="cpu")
    reference.max_seq_length = LENGTH
    for direction in DIRECTIONS:
        reference.tokenizer.truncation_side = direction
        vectors = embed(run, folder, TEXTS, direction)
        np.testing.assert_allclose(vectors, reference.encode(list(TEXTS)), atol=TOLERANCE)
        for text, vector in zip(TEXTS, vectors, strict=True):
            np.testing.assert_allclose(embed(run, folder, [text], direction)[0], vector, atol=1e-5)


@pytest.mark.parametrize("labels", [1, 3])
@pytest.mark.parametrize("family", FAMILIES)
def test_pair_scores_equal_the_cross_encoder(
    family: str, labels: int, run: Run, tmp_path: Path
) -> None:
    folder = FAMILIES[family](tmp_path / family, task="logits", labels=labels)
    files = read_model(str(folder))
    assert files.kind == ("reranker" if labels == 1 else "classifier")
    reference = CrossEncoder(str(folder), device="cpu")
    reference.max_seq_length = LENGTH
    for direction in DIRECTIONS:
        reference.tokenizer.truncation_side = direction
        raw = logits(run, files, PAIRS, direction)
        want = reference.predict(list(PAIRS), activation_fn=torch.nn.Identity())
        np.testing.assert_allclose(raw, want.reshape(len(PAIRS), labels), atol=TOLERANCE)
        scores = activate(raw, files.activation)
        want = reference.predict(list(PAIRS), apply_softmax=labels > 1)
        np.testing.assert_allclose(scores, want.reshape(len(PAIRS), labels), atol=TOLERANCE)


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert"])
def test_single_texts_are_classified_as_transformers_does(
    family: str, run: Run, tmp_path: Path
) -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = FAMILIES[family](tmp_path / family, task="logits", labels=3)
    files = read_model(str(folder))
    got = np.stack(run(files, files.tokenizer().encode(TEXTS, max_tokens=files.max_tokens)))
    batch = AutoTokenizer.from_pretrained(folder)(
        list(TEXTS), padding=True, truncation=True, max_length=LENGTH, return_tensors="pt"
    )
    with torch.no_grad():
        want = AutoModelForSequenceClassification.from_pretrained(folder)(**batch).logits
    np.testing.assert_allclose(got, want.numpy(), atol=TOLERANCE)
    assert files.labels == ("LABEL_0", "LABEL_1", "LABEL_2")


@pytest.mark.parametrize(
    ("family", "strategy", "activation"),
    [
        ("bert", "max", "relu"),
        ("distilbert", "sum", "relu"),
        ("roberta", "max", "log1p_relu"),
        ("modernbert", "max", "relu"),
    ],
)
def test_term_weights_equal_the_sparse_encoder(
    family: str, strategy: str, activation: str, run: Run, tmp_path: Path
) -> None:
    folder = FAMILIES[family](tmp_path / family, task="sparse")
    write_splade_files(folder, strategy=strategy, activation=activation)
    files = read_model(str(folder))
    assert (files.kind, files.pooling) == ("sparse", "splade")
    tokens = files.tokenizer().encode(TEXTS, max_tokens=files.max_tokens)
    rows = np.stack(run(files, tokens))
    reference = SparseEncoder(str(folder), device="cpu")
    reference.max_seq_length = LENGTH
    want = reference.encode(list(TEXTS), convert_to_sparse_tensor=False).numpy()
    np.testing.assert_allclose(rows, want, atol=TOLERANCE)
    assert rows.shape == (len(TEXTS), files.dimensions)
    terms = sparse_weights(rows[1])
    assert list(terms) == np.flatnonzero(want[1]).tolist()


def test_a_masked_language_model_is_splade_by_override(run: Run, tmp_path: Path) -> None:
    folder = save_bert(tmp_path / "plain", task="sparse")
    files = read_model(str(folder), pooling="splade")
    [row] = run(files, files.tokenizer().encode(TEXTS[1:2]))
    write_splade_files(folder)
    reference = SparseEncoder(str(folder), device="cpu")
    want = reference.encode(list(TEXTS[1:2]), convert_to_sparse_tensor=False).numpy()
    np.testing.assert_allclose(row, want[0], atol=TOLERANCE)


@pytest.mark.parametrize("activation", ["Tanh", "Identity", "ReLU", "Sigmoid"])
def test_dense_layers_equal_sentence_transformers(
    activation: str, run: Run, tmp_path: Path
) -> None:
    folder = save_bert(tmp_path / "bert")
    write_sentence_files(folder, dense=[(48, activation), (12, "Identity")], normalize=False)
    reference = SentenceTransformer(str(folder), device="cpu")
    vectors = embed(run, folder, TEXTS, "right")
    np.testing.assert_allclose(vectors, reference.encode(list(TEXTS)), atol=TOLERANCE)
    assert vectors.shape[1] == 12


def test_a_folder_that_sentence_transformers_saves_is_read_as_it_says(
    run: Run, tmp_path: Path
) -> None:
    base = save_distilbert(tmp_path / "base")
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(1)
        modules = [
            Transformer(str(base), max_seq_length=24),
            Pooling(32, pooling_mode="lasttoken"),
            Dense(32, 16, bias=False, use_residual=True),
            Normalize(),
        ]
        reference = SentenceTransformer(
            modules=modules, device="cpu", prompts={"query": "find: "}, default_prompt_name="query"
        )
    folder = tmp_path / "saved"
    reference.save_pretrained(str(folder))
    files = read_model(str(folder))
    assert (files.max_tokens, files.pooling, files.normalize) == (24, "last-token", True)
    prompted = [files.prompts[files.default_prompt_name or ""] + text for text in TEXTS]
    vectors = embed(run, folder, prompted, "right")
    np.testing.assert_allclose(vectors, reference.encode(list(TEXTS)), atol=TOLERANCE)


def test_prompts_are_put_in_front(run: Run, tmp_path: Path) -> None:
    prompts = {"query": "query: ", "document": "passage: "}
    folder = write_sentence_files(save_bert(tmp_path / "bert"), prompts=prompts)
    reference = SentenceTransformer(str(folder), device="cpu")
    files = read_model(str(folder))
    for name in prompts:
        vectors = embed(run, folder, [files.prompts[name] + text for text in TEXTS], "right")
        want = reference.encode(list(TEXTS), prompt_name=name)
        np.testing.assert_allclose(vectors, want, atol=TOLERANCE)


def test_a_saved_cross_encoder_keeps_its_activation(run: Run, tmp_path: Path) -> None:
    base = save_bert(tmp_path / "base", task="logits")
    reference = CrossEncoder(str(base), device="cpu", activation_fn=torch.nn.Identity())
    folder = tmp_path / "saved"
    reference.save_pretrained(str(folder))
    files = read_model(str(folder))
    assert (files.kind, files.activation) == ("reranker", "identity")
    scores = activate(logits(run, files, PAIRS, "right"), files.activation)[:, 0]
    np.testing.assert_allclose(scores, reference.predict(list(PAIRS)), atol=TOLERANCE)


@pytest.mark.parametrize("task", ["states", "logits"])
def test_a_folder_with_only_an_onnx_graph_runs(
    task: Task, run: Run, model_home: Path, tmp_path: Path
) -> None:
    folder = save_bert(tmp_path / "bert", task=task)
    files = read_model(str(folder))
    texts = files.tokenizer().encode(TEXTS, max_tokens=files.max_tokens)
    want = run(files, texts)
    graph = graph_path(files, model_home / "models" / "families")
    (folder / "onnx").mkdir()
    (folder / "onnx" / "model.onnx").write_bytes(graph.read_bytes())
    (folder / "model.safetensors").unlink()
    shipped = read_model(str(folder))
    assert exported_graph(shipped, tmp_path / "none") == folder.resolve() / "onnx" / "model.onnx"
    for row, expected in zip(run(shipped, texts), want, strict=True):
        np.testing.assert_array_equal(row, expected)


def test_do_lower_case_lowers_the_text(run: Run, tmp_path: Path) -> None:
    folder = write_sentence_files(FAMILIES["xlm-roberta"](tmp_path / "cased"))
    update_json(folder / "sentence_bert_config.json", do_lower_case=True)
    vectors = embed(run, folder, ["THE Green HOUSE", "the green house"], "right")
    np.testing.assert_array_equal(vectors[0], vectors[1])
    reference = SentenceTransformer(str(folder), device="cpu")
    np.testing.assert_allclose(vectors, reference.encode(["THE Green HOUSE"] * 2), atol=TOLERANCE)
