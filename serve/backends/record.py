"""The choice of a backend on disk, for one model on one host with these versions."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import structlog
from filelock import FileLock

from ragplane.core import __version__
from ragplane.core.cpu import cpu_model
from ragplane.core.models import ModelFiles
from serve.backends.factory import Candidate
from serve.backends.kernels import sources_digest

_LIBRARIES = ("torch", "transformers", "openvino", "onnxruntime")
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Choice:
    """A backend, and its parity to float32; None: it is float32 itself."""

    candidate: Candidate
    parity: float | None


class ChoiceRecord:
    """Where the choice among `groups` is kept. A folder that cannot be written keeps none."""

    def __init__(
        self, files: ModelFiles, groups: Sequence[Sequence[Candidate]], cache: Path, threads: int
    ) -> None:
        self._allowed = [candidate for group in groups for candidate in group]
        self._path = cache / f"{files.name}-{_key(files, groups, threads)}.choice.json"

    def read(self) -> Choice | None:
        """The kept choice; None if there is none, or none that is possible."""
        try:
            value = json.loads(self._path.read_text(encoding="utf-8"))
            choice = Choice(Candidate(**value["candidate"]), value["parity"])
        except (OSError, ValueError, TypeError, LookupError):
            return None
        is_sane = choice.parity is None or isinstance(choice.parity, float)
        return choice if is_sane and choice.candidate in self._allowed else None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Alone with the record, where its folder can be written."""
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(OSError):  # `write` tells
                self._path.parent.mkdir(parents=True, exist_ok=True)
                stack.enter_context(FileLock(f"{self._path}.lock"))
            yield

    def write(self, choice: Choice) -> None:
        """Keep a choice; a warning if that is not possible."""
        scratch = self._path.with_suffix(f".{os.getpid()}")
        try:
            scratch.write_text(json.dumps(asdict(choice)), encoding="utf-8")
            scratch.replace(self._path)
        except OSError as error:
            _log.warning("the choice of the backend is not kept", reason=str(error))


def _key(files: ModelFiles, groups: Sequence[Sequence[Candidate]], threads: int) -> str:
    """16 hex digits over all that speed and parity depend on."""
    facts = [
        files.weights_sha256(),
        files.task,
        files.pooling,
        files.splade and asdict(files.splade),
        [(layer.activation, layer.residual) for layer in files.dense],
        files.activation,
        files.max_tokens,
        [[asdict(candidate) for candidate in group] for group in groups],
        threads,
        cpu_model(),
        _gpu_name() if groups[0][0].device == "cuda" else None,
        __version__,
        [_version(name) for name in _LIBRARIES],
        _kernels(),
    ]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def _gpu_name() -> str | None:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _kernels() -> str | None:
    try:
        return sources_digest()
    except PackageNotFoundError:
        return None
