"""Which backend a model gets: candidates, parity, speed, the record of the choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from structlog.testing import capture_logs

from ragplane.core.config import Settings
from ragplane.core.errors import ConfigError, ModelError, NonFiniteError
from ragplane.core.models import DenseLayer, ModelFiles, SpladeHead, read_model
from serve.backends import choose as choosing
from serve.backends.base import Backend, ModelInput
from serve.backends.choose import check, choose, fastest, open_backend
from serve.backends.factory import Candidate, candidates
from serve.backends.memory import fitting_tokens
from serve.backends.parity import parity, passes
from serve.backends.record import Choice, ChoiceRecord
from serve.backends.trial import Trial, run_trial
from serve.encoder import Vectors

FAST = Trial(Candidate("torch", "bfloat16"), 20_000, 0.99995)
ROUGH = Trial(Candidate("openvino", "bfloat16"), 30_000, 0.9990)
EXACT = Trial(Candidate("onnxruntime", "float32"), 5_000, None)
CHOICE = Choice(FAST.candidate, FAST.parity)


@pytest.fixture
def files() -> ModelFiles:
    return read_model("bundled")


def auto(home: Path, **changes: object) -> Settings:
    return Settings.model_validate({"home": home, "backend": "auto", "dtype": "auto"} | changes)


def test_the_fastest_that_is_exact_enough_wins(files: ModelFiles) -> None:
    """Behaviour 15."""
    assert fastest([FAST, ROUGH, EXACT], files) == FAST
    assert fastest([ROUGH, EXACT], files) == EXACT
    assert fastest([ROUGH], files) is None


def test_parity_is_the_worst_cosine(files: ModelFiles) -> None:
    """Behaviour 14."""
    random = np.random.default_rng(0)
    want = [random.normal(size=(5, 384)).astype(np.float32) for _ in range(3)]
    assert parity(files, want, want) == pytest.approx(1.0)
    turned = [*want[:2], -want[2]]
    assert parity(files, turned, want) == pytest.approx(-1.0)
    assert passes("states", 0.99991)
    assert not passes("states", 0.9998)
    assert passes("states", None)


def test_parity_of_scores_is_their_largest_difference(files: ModelFiles) -> None:
    headed = replace(files, kind="reranker", labels=("relevance",), activation="sigmoid")
    want = [np.array([0.0], np.float32), np.array([-9.0], np.float32)]
    got = [np.array([0.1], np.float32), np.array([-9.5], np.float32)]
    assert parity(headed, got, want) == pytest.approx(1 - 0.025, abs=1e-3)


def test_bfloat16_goes_first_only_where_the_cpu_has_it(
    files: ModelFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for has, first in ((True, "bfloat16"), (False, "float32")):
        monkeypatch.setattr("serve.backends.factory.has_bfloat16", lambda has=has: has)
        groups = candidates(auto(tmp_path), files)
        assert {candidate.dtype for candidate in groups[0]} == {first}
        assert Candidate("torch", first) in groups[0]


def test_pins_narrow_the_candidates(files: ModelFiles, tmp_path: Path) -> None:
    """Behaviour 15: the choice can be pinned."""
    pinned = candidates(auto(tmp_path, backend="torch", dtype="float32"), files)
    assert pinned == [[Candidate("torch", "float32")]]
    with pytest.raises(ConfigError, match="onnxruntime with dtype bfloat16"):
        candidates(auto(tmp_path, backend="onnxruntime", dtype="bfloat16"), files)
    graph_only = replace(files, onnx=tmp_path / "model.onnx")
    with pytest.raises(ConfigError, match="torch"):
        candidates(auto(tmp_path, backend="torch"), graph_only)


class Trials:
    """In place of trials in processes: what each candidate does, and who was tried."""

    def __init__(self, *known: Trial) -> None:
        self.known = {trial.candidate: trial for trial in known}
        self.tried: list[Candidate] = []
        self.timeouts_s: list[float] = []

    def __call__(
        self,
        spec: str,
        pooling: object,
        candidate: Candidate,
        graph: object,
        cache: Path,
        **terms: float,
    ) -> Trial | None:
        self.tried.append(candidate)
        self.timeouts_s.append(terms["timeout_s"])
        return self.known.get(candidate)


@pytest.fixture
def two_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ways in bfloat16, then two in float32, none of which needs an export."""
    half = [FAST.candidate, ROUGH.candidate]
    full = [Candidate("torch", "float32"), EXACT.candidate]
    monkeypatch.setattr(choosing, "candidates", lambda settings, files: [half, full])
    monkeypatch.setattr(choosing, "exported_graph", lambda files, cache: cache)


def try_with(monkeypatch: pytest.MonkeyPatch, *known: Trial) -> Trials:
    trials = Trials(*known)
    monkeypatch.setattr(choosing, "run_trial", trials)
    return trials


@pytest.mark.usefixtures("two_backends")
def test_the_choice_is_made_once(
    files: ModelFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = try_with(monkeypatch, FAST, ROUGH)
    for threads in (2, 2, 1):  # one thread is another host
        assert choose("bundled", files, auto(tmp_path), tmp_path, threads) == CHOICE
    assert len(trials.tried) == 4


@pytest.mark.usefixtures("two_backends")
@pytest.mark.parametrize(
    "text",
    [
        "{",
        "null",
        "3",
        '"a"',
        "[]",
        "{}",
        '{"candidate": null, "parity": null}',
        '{"candidate": {"backend": "abacus", "dtype": "float32"}, "parity": null}',
        '{"candidate": {"backend": ["torch"], "dtype": "float32"}, "parity": null}',
        '{"candidate": {"backend": "torch", "dtype": "bfloat16"}, "parity": "good"}',
    ],
)
def test_a_bad_record_is_made_anew(
    text: str, files: ModelFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = try_with(monkeypatch, FAST)
    choose("bundled", files, auto(tmp_path), tmp_path, 2)
    (record,) = tmp_path.glob("*.choice.json")
    good = record.read_text()
    record.write_text(text)
    assert choose("bundled", files, auto(tmp_path), tmp_path, 2) == CHOICE
    assert (len(trials.tried), record.read_text()) == (4, good)


@pytest.mark.usefixtures("two_backends")
def test_a_home_that_cannot_be_written_keeps_no_choice(
    files: ModelFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = try_with(monkeypatch, FAST)
    cache = tmp_path / "file" / "models"
    cache.parent.touch()
    with capture_logs() as logs:
        for _ in range(2):
            assert choose("bundled", files, auto(tmp_path), cache, 2) == CHOICE
    assert len(trials.tried) == 4
    kept = [log["event"] for log in logs]
    assert kept == ["the choice of the backend is not kept"] * 2


@pytest.mark.usefixtures("two_backends")
def test_float32_is_tried_when_nothing_faster_is_exact(
    files: ModelFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = try_with(monkeypatch, ROUGH, EXACT)
    chosen = choose("bundled", files, auto(tmp_path), tmp_path, 2)
    assert chosen == Choice(EXACT.candidate, None)
    assert len(trials.tried) == 4
    assert sum(trials.timeouts_s) < 4 * choosing._TRIALS_S
    assert all(150 <= timeout_s <= 600 for timeout_s in trials.timeouts_s)


@pytest.mark.usefixtures("two_backends")
def test_what_is_not_exact_runs_only_if_its_precision_is_pinned(
    files: ModelFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try_with(monkeypatch, ROUGH)
    with pytest.raises(ModelError, match=r"exact enough; parity: openvino bfloat16 0\.99900"):
        choose("bundled", files, auto(tmp_path), tmp_path, 2)
    pinned = auto(tmp_path, dtype="bfloat16")
    assert choose("bundled", files, pinned, tmp_path, 2) == Choice(ROUGH.candidate, 0.999)
    try_with(monkeypatch)
    with pytest.raises(ModelError, match="no backend could run it"):
        choose("bundled", files, pinned, tmp_path, 3)


@pytest.mark.usefixtures("two_backends")
def test_a_failed_export_leaves_torch(
    files: ModelFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Path:
        raise ModelError("no graph")

    monkeypatch.setattr(choosing, "exported_graph", fail)
    monkeypatch.setattr("serve.backends.trial.run_module", lambda *_, **__: "[20000, 0.99995]")
    assert choose("bundled", files, auto(tmp_path), tmp_path, 2) == CHOICE


def test_the_record_follows_all_that_parity_depends_on(files: ModelFiles, tmp_path: Path) -> None:
    groups = [[FAST.candidate]]
    dense = DenseLayer(tmp_path / "dense", 384, "tanh", residual=False)
    (tmp_path / "dense").touch()
    for model in (
        files,
        replace(files, kind="reranker"),
        replace(files, pooling="cls"),
        replace(files, kind="sparse", splade=SpladeHead()),
        replace(files, kind="sparse", splade=SpladeHead("sum")),
        replace(files, dense=(dense,)),
        replace(files, dense=(replace(dense, activation="relu"),)),
    ):
        record = ChoiceRecord(model, groups, tmp_path, 2)
        assert record.read() is None
        record.write(CHOICE)
        assert record.read() == CHOICE


def test_nothing_is_tried_for_float32_on_one_backend(
    files: ModelFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing, "run_trial", pytest.fail)
    settings = auto(tmp_path, backend="onnxruntime")
    chosen = choose("bundled", files, settings, tmp_path, 2)
    assert chosen == Choice(EXACT.candidate, None)


def test_a_trial_in_its_own_process(model_home: Path) -> None:
    """Without a graph it is compared to the transformers library."""
    candidate = Candidate("torch", "bfloat16")
    trial = run_trial(
        "bundled", None, candidate, None, model_home / "models", threads=1, timeout_s=100
    )
    assert trial is not None
    assert (trial.candidate, trial.tokens_per_s > 100) == (candidate, True)
    assert trial.parity is not None
    assert 0.9999 <= trial.parity < 1


def test_a_trial_that_fails_is_logged(model_home: Path) -> None:
    bad = Candidate("torch", "float32", "cuda")
    with capture_logs() as logs:
        assert run_trial("bundled", None, bad, None, model_home, threads=1, timeout_s=100) is None
    assert (logs[0]["event"], logs[0]["device"]) == ("backend left out", "cuda")
    assert "PyTorch finds no GPU" in logs[0]["reason"]


def test_an_opened_backend_is_calibrated(files: ModelFiles, model_home: Path) -> None:
    settings = Settings(home=model_home, micro_batch_tokens=4096, max_batch_tokens=1000)
    opened = open_backend("bundled", files, settings, calibration_s=5)
    assert opened.micro_batch_tokens == 1000
    assert opened.speed.seconds_for(1000) > 0
    assert opened.cost.fixed_s >= 0
    assert opened.calibration_s > 0
    assert opened.parity is None
    assert not opened.cost.packed


def test_without_calibration_the_defaults_hold(files: ModelFiles, model_home: Path) -> None:
    opened = open_backend("bundled", files, Settings(home=model_home), calibration_s=0)
    assert opened.micro_batch_tokens == 1536
    assert opened.speed.seconds_for(20_000) == pytest.approx(1.0026)


def test_memory_bounds_a_batch(files: ModelFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behaviour 2."""
    monkeypatch.setattr("serve.backends.memory.memory_bytes", lambda: 1 << 30)
    sparse = replace(files, kind="sparse", splade=SpladeHead())
    padded = fitting_tokens(sparse, packed=False, device="cpu")
    assert padded < (1 << 28) / (4 * 4 * files.vocabulary_size)
    assert padded < fitting_tokens(sparse, packed=True, device="cpu")
    monkeypatch.setattr("serve.backends.memory.memory_bytes", lambda: 1000)
    assert fitting_tokens(files, packed=True, device="cpu") == files.max_tokens
    monkeypatch.setattr("serve.backends.memory._gpu_bytes", lambda: 64 << 30)
    assert fitting_tokens(files, packed=True, device="cuda") > files.max_tokens


class WideBackend(Backend):
    """Gives what no model of MiniLM's width gives."""

    name, dtype, packed, streams = "stub", "float32", True, 1

    def __init__(self, width: int, value: float = 0.0) -> None:
        self._width, self._value = width, value

    def forward(self, inputs: Sequence[ModelInput]) -> list[Vectors]:
        return [np.full((len(item.ids), self._width), self._value, np.float32) for item in inputs]


def test_weights_that_are_not_as_the_configuration_says_are_refused(files: ModelFiles) -> None:
    check(WideBackend(384), files)
    with pytest.raises(ModelError, match=r"\(4, 48\), and config.json says \(4, 384\)"):
        check(WideBackend(48), files)
    with pytest.raises(NonFiniteError):
        check(WideBackend(384, float("nan")), files)
