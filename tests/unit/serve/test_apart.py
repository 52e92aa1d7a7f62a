"""A backend in processes of its own: the same vectors, and what is left when one dies."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np
import psutil
import pytest

from ragplane.core.errors import ModelError, UnavailableError
from ragplane.core.models import read_model
from serve.backends.apart import ProcessBackend
from serve.backends.base import Backend, BackendDownError, ModelInput
from serve.backends.factory import Candidate, build
from serve.backends.model_process import _forward
from serve.encoder import Vectors

TORCH = Candidate("torch", "float32")
FILES = read_model("bundled")
INPUTS = [ModelInput((101, *range(2000, 2000 + length), 102)) for length in (3, 40, 7, 120)]


@pytest.fixture(scope="module")
def here(model_home: Path) -> Backend:
    return build(FILES, TORCH, None, 4, model_home / "models")


@pytest.fixture(scope="module")
def apart(model_home: Path) -> Iterator[ProcessBackend]:
    """Two streams of two threads each, whatever CPUs there are."""
    backend = ProcessBackend(FILES.root, None, TORCH, None, 4, model_home / "models")
    yield backend
    backend.close()


def processes() -> list[psutil.Process]:
    """The first process of the model, then the others."""
    found = psutil.Process().children(recursive=True)
    return [one for one in found if "serve.backends.model_process" in one.cmdline()]


def equal(some: Sequence[Vectors], others: Sequence[Vectors]) -> bool:
    return all(np.allclose(a, b, atol=1e-5) for a, b in zip(some, others, strict=True))


def test_streams_give_what_the_backend_gives(here: Backend, apart: ProcessBackend) -> None:
    assert (apart.name, apart.dtype, apart.packed, apart.streams) == ("torch", "float32", True, 2)
    assert len(processes()) == 2
    wanted = here.forward(INPUTS)
    with ThreadPoolExecutor(2) as pool:
        given = list(pool.map(apart.forward, [INPUTS] * 8))
    assert all(equal(one, wanted) for one in given)


@pytest.mark.parametrize("number", [0, 1])
def test_a_killed_process_costs_its_batch(
    number: int, here: Backend, apart: ProcessBackend
) -> None:
    """Behaviour 10: the next batch starts the processes anew."""
    before = processes()
    os.kill(before[number].pid, signal.SIGKILL)
    failures = 0
    for _ in range(4):
        try:
            assert equal(apart.forward(INPUTS), here.forward(INPUTS))
        except UnavailableError as error:
            assert "the model process" in str(error)
            failures += 1
    assert failures <= 1
    psutil.wait_procs(before, timeout=5)
    assert len(processes()) == 2
    assert not {one.pid for one in before} & {one.pid for one in processes()}


@pytest.mark.parametrize("number", [0, 1])
def test_a_process_that_hangs_is_ended(number: int, here: Backend, apart: ProcessBackend) -> None:
    """Behaviour 10: nobody waits for ever."""
    apart.forward(INPUTS)
    before = processes()
    before[number].suspend()
    with ThreadPoolExecutor(2) as pool:
        passes = [pool.submit(apart.forward, INPUTS) for _ in range(2)]
        done, hanging = wait(passes, 10, FIRST_COMPLETED)
        apart.interrupt(3600.0)
        assert not wait(hanging, 0.2).done
        apart.interrupt(0.1)
        failure = hanging.pop().exception(timeout=10)
    assert isinstance(failure, UnavailableError)
    assert "ended by signal 9" in str(failure)
    assert equal(done.pop().result(), here.forward(INPUTS))
    assert psutil.wait_procs(before, timeout=5)[1] == []


def test_a_process_that_hangs_beside_one_that_died_is_ended(apart: ProcessBackend) -> None:
    """Behaviour 10."""
    with contextlib.suppress(UnavailableError):
        apart.forward(INPUTS)
    there = processes()
    for process in there:
        process.suspend()
    with ThreadPoolExecutor(2) as pool:
        passes = [pool.submit(apart.forward, INPUTS) for _ in range(2)]
        there[1].kill()
        died, hanging = wait(passes, 10, FIRST_COMPLETED)
        assert len(hanging) == 1
        apart.interrupt(0.1)
        assert isinstance(hanging.pop().exception(timeout=10), UnavailableError)
    assert isinstance(died.pop().exception(), UnavailableError)


def test_no_other_life_is_ended(here: Backend, apart: ProcessBackend) -> None:
    """Behaviour 10: who watches may be late, and loading takes longer than a pass may."""
    gone = processes()
    for process in gone:
        process.kill()
    psutil.wait_procs(gone, timeout=5)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(apart.forward, INPUTS)
        while not wait([first], 0.01).done:
            apart.interrupt(0.5)
    assert equal(first.result(), here.forward(INPUTS))
    living = processes()
    apart.interrupt(0.0)
    assert equal(apart.forward(INPUTS), here.forward(INPUTS))
    assert processes() == living


def test_a_process_that_cannot_be_started_is_no_inputs_fault(
    here: Backend, apart: ProcessBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behaviour 10."""
    gone = processes()
    with monkeypatch.context() as patch:
        patch.setattr(apart, "_arguments", ("/no/such/folder", "", *apart._arguments[2:]))
        os.kill(gone[0].pid, signal.SIGKILL)
        psutil.wait_procs(gone, timeout=5)
        with pytest.raises(BackendDownError, match="/no/such/folder"):
            apart.forward(INPUTS)
    assert equal(apart.forward(INPUTS), here.forward(INPUTS))


def test_an_input_the_model_refuses_costs_no_process(apart: ProcessBackend) -> None:
    before = processes()
    with pytest.raises(ModelError, match="forward pass of 1 inputs"):
        apart.forward([ModelInput((10**6,))])
    assert processes() == before


def test_a_model_that_cannot_be_loaded_says_why(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no graph for onnxruntime"):
        ProcessBackend(FILES.root, None, Candidate("onnxruntime", "float32"), None, 1, tmp_path)
    assert len(processes()) in (0, 2)  # those of the other tests


def test_a_closed_backend_leaves_no_process(model_home: Path) -> None:
    before = set(processes())
    backend = ProcessBackend(FILES.root, None, TORCH, None, 2, model_home / "models")
    own = [one for one in processes() if one not in before]
    assert len(own) == 2
    backend.close()
    _, alive = psutil.wait_procs(own, timeout=5)
    assert not alive
    with pytest.raises(UnavailableError, match="closed"):
        backend.forward(INPUTS)


class FailingBackend(Backend):
    """Fails as it is told."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def forward(self, inputs: Sequence[ModelInput]) -> list[Vectors]:
        raise self._error


@pytest.mark.parametrize(
    ("error", "handed_on"),
    [
        (MemoryError(), "MemoryError()"),
        (ModelError("bad"), "ModelError('bad')"),
    ],
)
def test_errors_cross_by_their_kind(error: Exception, handed_on: str) -> None:
    assert repr(_forward(FailingBackend(error), INPUTS)) == handed_on


def test_a_fault_of_ours_is_not_taken_for_one_of_the_batch() -> None:
    with pytest.raises(ZeroDivisionError):
        _forward(FailingBackend(ZeroDivisionError()), INPUTS)


def test_a_model_process_imports_neither_settings_nor_logging() -> None:
    """Either costs a third of a second on the way from start to ready."""
    code = "import sys, serve.backends.model_process; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"pydantic", "structlog"} & set(done.stdout.split())
