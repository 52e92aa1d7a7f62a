"""The PyTorch backends, against transformers in float32."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from ragplane.core.errors import ModelError
from ragplane.core.models import ModelFiles, SpladeHead, Task, read_model
from serve.backends.attention import attention, plan_windows
from serve.backends.base import Backend, ModelInput
from serve.backends.bert_files import bert_facts
from serve.backends.linear import stepped
from serve.backends.torch_model import open_torch
from serve.backends.torch_packed import split
from serve.encoder import Vectors
from tests.cache import cache_folder
from tests.unit.serve.families import FAMILIES, update_json, write_splade_files

PACKED = ("bert", "roberta", "xlm-roberta", "distilbert")
PADDED = ("mpnet", "modernbert", "qwen2", "qwen3")
LENGTHS = (7, 64, 3, 12, 12, 1, 33, 48, 64, 20, 17)


def open_cpu(files: ModelFiles, dtype: str = "float32", *, threads: int = 2) -> Backend:
    cache = cache_folder() / "models"
    return open_torch(files, dtype=dtype, threads=threads, device="cpu", cache=cache)


def random_inputs(
    lengths: Sequence[int] = LENGTHS, *, vocabulary: int = 54, pairs: bool = False
) -> list[ModelInput]:
    random = np.random.default_rng(0)
    rows = [tuple(random.integers(6, vocabulary, length).tolist()) for length in lengths]
    return [ModelInput(row, len(row) // 2 if pairs and len(row) > 2 else None) for row in rows]


def reference(model: Any, item: ModelInput) -> Any:
    """The transformers model's own output for one input."""
    feed = {"input_ids": torch.tensor([item.ids])}
    if item.second_at is not None:
        types = torch.zeros_like(feed["input_ids"])
        types[0, item.second_at :] = 1
        feed["token_type_ids"] = types
    with torch.no_grad():
        return model(**feed)


def cosines(got: Vectors, want: Vectors) -> Vectors:
    product = (got * want).sum(-1)
    cosine: Vectors = product / np.linalg.norm(got, axis=-1) / np.linalg.norm(want, axis=-1)
    return cosine


def check_states(folder: Path, backend: Backend, inputs: Sequence[ModelInput]) -> None:
    from transformers import AutoModel

    model = AutoModel.from_pretrained(folder).eval()
    for item, got in zip(inputs, backend.forward(inputs), strict=True):
        want = reference(model, item).last_hidden_state[0].numpy()
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, want, atol=1e-4)


@pytest.mark.parametrize("family", [*PACKED, *PADDED])
def test_states_equal_transformers(family: str, tmp_path: Path) -> None:
    folder = FAMILIES[family](tmp_path)
    backend = open_cpu(read_model(str(folder)))
    assert backend.packed is (family in PACKED)
    check_states(folder, backend, random_inputs())
    check_states(folder, backend, random_inputs((9,)))


def test_the_second_text_of_a_pair_has_its_own_token_type(tmp_path: Path) -> None:
    folder = FAMILIES["bert"](tmp_path)
    backend = open_cpu(read_model(str(folder)))
    check_states(folder, backend, [*random_inputs(pairs=True), *random_inputs()])


@pytest.mark.parametrize("family", ["roberta", "xlm-roberta"])
def test_the_padding_id_inside_a_text_counts_no_position(family: str, tmp_path: Path) -> None:
    folder = FAMILIES[family](tmp_path)
    files = read_model(str(folder))
    inputs = [ModelInput((6, files.pad_id, 8, 9)), ModelInput((files.pad_id, 7, files.pad_id))]
    check_states(folder, open_cpu(files), inputs)


@pytest.mark.parametrize("family", [*PACKED, "mpnet", "modernbert", "qwen2"])
@pytest.mark.parametrize("labels", [1, 3])
def test_logits_equal_transformers(family: str, labels: int, tmp_path: Path) -> None:
    from transformers import AutoModelForSequenceClassification

    folder = FAMILIES[family](tmp_path, task="logits", labels=labels)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    inputs = random_inputs(pairs=family == "bert")
    for item, got in zip(inputs, open_cpu(read_model(str(folder))).forward(inputs), strict=True):
        np.testing.assert_allclose(got, reference(model, item).logits[0].numpy(), atol=1e-4)


@pytest.mark.parametrize("family", [*PACKED, "mpnet", "modernbert"])
@pytest.mark.parametrize("head", [SpladeHead(), SpladeHead("sum", "log1p_relu")])
def test_term_weights_equal_transformers(family: str, head: SpladeHead, tmp_path: Path) -> None:
    from transformers import AutoModelForMaskedLM

    folder = write_splade_files(FAMILIES[family](tmp_path, task="sparse"))
    files = replace(read_model(str(folder)), splade=head)
    model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    inputs = random_inputs()
    for item, got in zip(inputs, open_cpu(files).forward(inputs), strict=True):
        weights = reference(model, item).logits[0].relu().log1p()
        want = weights.amax(0) if head.strategy == "max" else weights.log1p().sum(0)
        np.testing.assert_allclose(got, want.numpy(), atol=1e-4 * len(item.ids))


@pytest.mark.parametrize("family", [*PACKED, "modernbert"])
def test_an_input_does_not_depend_on_its_batch(family: str, tmp_path: Path) -> None:
    backend = open_cpu(read_model(str(FAMILIES[family](tmp_path))))
    inputs = random_inputs()
    for item, together in zip(inputs, backend.forward(inputs), strict=True):
        np.testing.assert_allclose(backend.forward([item])[0], together, atol=1e-5)


def test_bfloat16_on_the_real_model_is_exact_enough_alone_and_in_a_batch() -> None:
    files = read_model("bundled")
    inputs = random_inputs((12, 200, 5, 37, 145, 12, 256, 12), vocabulary=30_000)
    half = open_cpu(files, "bfloat16")
    for item, want, got in zip(
        inputs, open_cpu(files).forward(inputs), half.forward(inputs), strict=True
    ):
        assert cosines(got.mean(0), want.mean(0)) >= 0.9999
        assert cosines(half.forward([item])[0].mean(0), got.mean(0)) >= 0.9999


@pytest.mark.parametrize("task", ["states", "logits"])
def test_results_keep_the_order_of_the_inputs(task: Task, tmp_path: Path) -> None:
    backend = open_cpu(read_model(str(FAMILIES["bert"](tmp_path, task=task))))
    inputs = random_inputs()
    forward, backward = backend.forward(inputs), backend.forward(inputs[::-1])
    for one, other in zip(forward, backward[::-1], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_windows_attend_as_each_input_alone() -> None:
    lengths = sorted([1, 2, 16, 20, 32, 32, 33, 60, 63, 64, 70, 80, 81, 130])
    torch.manual_seed(0)
    rows = torch.randn(sum(lengths), 3 * 8)
    got = attention(lengths, 2, torch.float32, "cpu")(rows)
    alone = [attention([len(part)], 2, torch.float32, "cpu")(part) for part in rows.split(lengths)]
    for part, together in zip(rows.split(lengths), got.split(lengths), strict=True):
        query, key, value = part.view(len(part), 3, 2, 4).permute(1, 2, 0, 3)
        scores = query @ key.transpose(1, 2) / 2
        want = (scores.softmax(-1) @ value).transpose(0, 1).reshape(len(part), 8)
        torch.testing.assert_close(together, want, atol=1e-5, rtol=0)
    torch.testing.assert_close(torch.cat(alone), got, atol=1e-5, rtol=0)
    groups = plan_windows(lengths, torch.float32, "cpu")
    assert max(group.windows for group in groups) > 1
    assert sum(group.windows for group in groups) < len(lengths)


def test_names_of_old_checkpoints_are_read(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = FAMILIES["bert"](tmp_path, task="logits")
    inputs = random_inputs()
    want = open_cpu(read_model(str(folder))).forward(inputs)
    tensors = load_file(folder / "model.safetensors")
    old = {
        name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): tensor
        for name, tensor in tensors.items()
    }
    assert old.keys() != tensors.keys()
    save_file(old, folder / "model.safetensors")
    for one, other in zip(want, open_cpu(read_model(str(folder))).forward(inputs), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hidden_act", "mish"),
        ("position_embedding_type", "relative_key"),
        ("is_decoder", True),
        ("model_type", "electra"),
    ],
)
def test_variants_are_left_to_the_padded_backend(key: str, value: object) -> None:
    config = {"model_type": "bert", "hidden_act": "gelu"}
    assert bert_facts(config) is not None
    assert bert_facts(config | {key: value}) is None


@pytest.mark.parametrize("activation", ["relu", "gelu_new"])
def test_other_activations_equal_transformers(activation: str, tmp_path: Path) -> None:
    folder = FAMILIES["bert"](tmp_path)
    update_json(folder / "config.json", hidden_act=activation)
    backend = open_cpu(read_model(str(folder)))
    assert backend.packed
    check_states(folder, backend, random_inputs())


@pytest.mark.parametrize("family", ["bert", "modernbert"])
def test_an_id_outside_the_vocabulary_is_an_error_of_the_pass(family: str, tmp_path: Path) -> None:
    backend = open_cpu(read_model(str(FAMILIES[family](tmp_path))))
    with pytest.raises(ModelError, match="forward pass of 2 inputs"):
        backend.forward([ModelInput((1, 2)), ModelInput((3, 100_000))])


@pytest.mark.parametrize("family", ["bert", "modernbert"])
def test_a_missing_head_is_refused(family: str, tmp_path: Path) -> None:
    folder = FAMILIES[family](tmp_path)
    update_json(folder / "config.json", architectures=["ModelForSequenceClassification"])
    with pytest.raises(ModelError, match=r"classifier|pooler|head"):
        open_cpu(read_model(str(folder)))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    "part",
    [
        "embeddings.LayerNorm.weight",
        "encoder.layer.0.attention.self.query.weight",
        "encoder.layer.1.attention.self.value.bias",
        "encoder.layer.0.attention.output.dense.weight",
        "encoder.layer.1.output.LayerNorm.bias",
        "encoder.layer.1.intermediate.dense.weight",
        "encoder.layer.0.output.dense.weight",
    ],
)
def test_weights_of_another_shape_are_refused(part: str, dtype: str, tmp_path: Path) -> None:
    """Kernels go by the sizes that they are told: nothing else would notice."""
    folder = FAMILIES["bert"](tmp_path)
    weights = load_file(folder / "model.safetensors")
    (name,) = (name for name in weights if name.endswith(part))
    weights[name] = weights[name][: len(weights[name]) // 2].contiguous()
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(ModelError, match=part.removesuffix(".weight").removesuffix(".bias")):
        open_cpu(read_model(str(folder)), dtype)


def test_heads_that_do_not_divide_the_width_are_refused(tmp_path: Path) -> None:
    folder = FAMILIES["bert"](tmp_path)
    update_json(folder / "config.json", num_attention_heads=7)
    with pytest.raises(ModelError, match="7 attention heads"):
        open_cpu(read_model(str(folder)))


def test_a_gpu_that_is_not_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = read_model(str(FAMILIES["bert"](tmp_path)))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ModelError, match="no GPU"):
        open_torch(files, dtype="float32", threads=1, device="cuda", cache=cache_folder())


def test_idle_threads_are_told_to_sleep_before_torch_is_imported() -> None:
    program = "import sys; import serve.backends.torch_model; print('torch' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "False"


@given(st.lists(st.integers(1, 600), min_size=1, max_size=50), st.integers(1, 16))
def test_a_batch_is_split_into_even_runs(lengths: list[int], parts: int) -> None:
    lengths.sort()
    runs = [lengths[part] for part in split(lengths, parts)]
    assert [length for run in runs for length in run] == lengths
    assert all(runs)
    assert len(runs) <= parts
    assert max(map(sum, runs)) <= sum(lengths) / len(runs) + 2 * max(lengths)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_nothing(threads: int) -> None:
    files = read_model("bundled")
    one = open_cpu(files, threads=1)
    many = open_cpu(files, threads=threads)
    inputs = [ModelInput(tuple(range(1000, 1000 + length))) for length in (3, 200, 7, 90, 91, 150)]
    for got, want in zip(many.forward(inputs), one.forward(inputs), strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [(1, 16), (16, 16), (17, 32), (128, 128), (129, 144), (255, 256), (1000, 1024), (1025, 1152)],
)
def test_rows_come_in_steps_that_bound_the_kernels_to_compile(rows: int, expected: int) -> None:
    assert stepped(rows) == expected


def test_few_numbers_of_rows_are_left_of_many() -> None:
    assert len({stepped(rows) for rows in range(1, 16_385)}) < 70
