"""Which backend a model gets: candidates, parity, speed, the record of the choice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ragplane.core.config import Settings
from ragplane.core.errors import ConfigError
from ragplane.core.models import ModelFiles, read_model
from serve.backends import choose
from serve.backends.choose import chosen, fastest, open_backend
from serve.backends.factory import Candidate, candidates
from serve.backends.parity import parity, passes
from serve.backends.trial import Trial, run_trials

FAST = Trial(Candidate("torch", "bfloat16"), 20_000, 0.99995)
ROUGH = Trial(Candidate("openvino", "bfloat16"), 30_000, 0.9990)
EXACT = Trial(Candidate("onnxruntime", "float32"), 5_000, None)


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


def test_the_choice_is_made_once(
    files: ModelFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[object] = []

    def trials(spec: str, *arguments: object) -> list[Trial]:
        calls.append(arguments)
        return [FAST, ROUGH]

    monkeypatch.setattr(choose, "run_trials", trials)
    settings = auto(tmp_path)
    assert chosen("bundled", files, settings, tmp_path, 2) == FAST
    assert chosen("bundled", files, settings, tmp_path, 2) == FAST
    assert len(calls) == 1
    (record,) = tmp_path.glob("*.choice.json")
    record.write_text("{")
    assert chosen("bundled", files, settings, tmp_path, 2) == FAST
    assert chosen("bundled", files, settings, tmp_path, 1) == FAST  # other threads, another host
    assert len(calls) == 3


def test_nothing_is_tried_for_float32_on_one_backend(
    files: ModelFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose, "run_trials", pytest.fail)
    settings = auto(tmp_path, backend="onnxruntime")
    assert chosen("bundled", files, settings, tmp_path, 2).candidate.dtype == "float32"


def test_a_trial_in_its_own_process(model_home: Path) -> None:
    good, bad = Candidate("torch", "bfloat16"), Candidate("torch", "bfloat16", "cuda")
    trials = run_trials("bundled", None, [good, bad], model_home / "models", 1)
    assert [trial.candidate for trial in trials] == [good]
    assert trials[0].tokens_per_s > 100
    assert trials[0].parity is not None
    assert trials[0].parity >= 0.9999


def test_an_opened_backend_is_calibrated(files: ModelFiles, model_home: Path) -> None:
    opened = open_backend(
        "bundled", files, Settings(home=model_home, micro_batch_tokens=4096, max_batch_tokens=1000)
    )
    assert opened.micro_batch_tokens == 1000
    assert opened.speed.seconds_for(1000) > 0
    assert opened.parity is None
    assert not opened.cost.packed
