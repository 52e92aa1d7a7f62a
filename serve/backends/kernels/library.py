"""The kernels, ready to run: compiled once on a host, and kept in a folder."""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from llvmlite import binding

from ragplane.core.errors import ModelError
from ragplane.core.process import run_module
from serve.backends.kernels.amx import has_tiles

_BUILD_S = 300.0
_DIGEST_BYTES = 32
_NUMBER, _REAL = ctypes.c_int64, ctypes.c_double
_ATTEND = [_NUMBER] * 7 + [_REAL] + [_NUMBER] * 2
_ADD_NORM = [_NUMBER] * 7 + [_REAL]
_GELU = [_NUMBER] * 2


class Kernels:
    """The functions of `attention` and `rows`. They hold no lock of Python's while they run.

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
        self.add_norm = self._function("add_norm", _ADD_NORM)
        self.gelu = self._function("gelu", _GELU)
        self.attend = self._function("attend", _ATTEND) if has_tiles() else None

    def _function(self, name: str, arguments: Sequence[type]) -> Callable[..., None]:
        return ctypes.CFUNCTYPE(None, *arguments)(self._engine.get_function_address(name))


def load_kernels(cache: Path) -> Kernels | None:
    """The kernels for this processor out of `cache`; the first time they are compiled, for seconds.

    None, with a warning, where that fails.
    """
    file = cache / f"kernels-{_key()}.o"
    code = _read(file)
    if code is None:
        try:
            code = _build()
        except ModelError as error:
            _warn("the kernels cannot be compiled; PyTorch's are used", error)
            return None
        _write(file, code)
    return Kernels(code)


def _build() -> bytes:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "kernels.o"
        run_module("serve.backends.kernels.build", str(file), timeout_s=_BUILD_S)
        return file.read_bytes()


def _read(file: Path) -> bytes | None:
    """What `_write` put there; None if it is not whole: bad machine code would end the process."""
    try:
        kept = file.read_bytes()
    except OSError:
        return None
    digest, code = kept[:_DIGEST_BYTES], kept[_DIGEST_BYTES:]
    return code if hashlib.sha256(code).digest() == digest else None


def _write(file: Path, code: bytes) -> None:
    scratch = file.with_suffix(f".{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        scratch.write_bytes(hashlib.sha256(code).digest() + code)
        scratch.replace(file)
    except OSError as error:
        _warn("the compiled kernels are not kept", error)


def _warn(what: str, error: Exception) -> None:
    import structlog  # for a third of a second, which a server's start can do without

    structlog.get_logger().warning(what, reason=str(error))


def _key() -> str:
    """16 hex digits over the sources, their compiler and the processor."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    facts = [version("numba"), version("llvmlite"), binding.get_host_cpu_name()]
    facts.append(binding.get_host_cpu_features().flatten())
    facts += [file.read_text(encoding="utf-8") for file in sources]
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:16]
