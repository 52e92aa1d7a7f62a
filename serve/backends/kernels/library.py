"""The kernels, ready to run: compiled once on a host, and kept in a folder."""

from __future__ import annotations

import ctypes
import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from llvmlite import binding

from ragplane.core.errors import ModelError
from serve.backends.kernels import sources_digest, unsealed
from serve.backends.kernels.layout import ROW_KERNELS, TILE_KERNELS, has_tiles

_BUILD = "serve.backends.kernels.build"
_BUILD_S = 300.0
_TYPES = {"n": ctypes.c_int64, "p": ctypes.c_void_p, "r": ctypes.c_double}


class Kernels:
    """The functions of `attention` and `rows`. They hold no lock of Python's while they run, and
    live no longer than this.

    `attend` is None where the processor has no tiles.
    """

    def __init__(self, code: bytes) -> None:
        """Load an object file that `build` made on a host like this."""
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        machine = binding.Target.from_default_triple().create_target_machine()
        self._engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
        self._engine.add_object_file(binding.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        self.add_norm = self._function("add_norm", ROW_KERNELS["add_norm"])
        attend = self._function("attend", TILE_KERNELS["attend"]) if has_tiles() else None
        self.attend = attend

    def _function(self, name: str, arguments: str) -> Callable[..., None]:
        kind = ctypes.CFUNCTYPE(None, *(_TYPES[letter] for letter in arguments))
        return kind(self._engine.get_function_address(name))


def load_kernels(cache: Path) -> tuple[Kernels, OSError | None]:
    """The kernels for this processor out of `cache`; the first time they are compiled, for
    seconds. The error, if they cannot be kept there.

    Raises ModelError or OSError if they cannot be compiled, ImportError without numba, and
    RuntimeError if they cannot be loaded.
    """
    file = cache / f"kernels-{_key()}.o"
    kept = _read(file)
    if kept is not None and (code := unsealed(kept)) is not None:
        return Kernels(code), None
    built = _build()
    code = unsealed(built)
    if code is None:
        raise ModelError("what the compiler wrote is not whole")
    kernels = Kernels(code)
    try:
        _write(file, built)
    except OSError as error:
        return kernels, error
    return kernels, None


def _build() -> bytes:
    """In the process group of the caller: it is to end with it."""
    command = [sys.executable, "-P", "-m", _BUILD]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_BUILD_S, check=True
        )
    except subprocess.TimeoutExpired as error:
        raise ModelError(f"it took over {_BUILD_S:.0f} s") from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip().splitlines()
        raise ModelError(said[-1] if said else f"exit status {error.returncode}") from error
    return done.stdout


def _read(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None


def _write(file: Path, built: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    scratch = file.with_suffix(f".{uuid4().hex}")  # several processes may write
    scratch.write_bytes(built)
    scratch.replace(file)


def _key() -> str:
    """16 hex digits over the kernels, what compiles them, and the processor."""
    features = binding.get_host_cpu_features().flatten()
    facts = [sources_digest(), sys.platform, binding.get_host_cpu_name(), features]
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:16]
