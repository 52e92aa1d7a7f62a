"""Which files a run reads, and what they hold."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ingest.objects.address import Address, is_address
from ingest.objects.listing import list_objects
from ingest.objects.store import ObjectFacts
from ragplane.core.errors import InputError, StageError, describe


@dataclass(frozen=True, slots=True)
class Listing:
    """Files and objects by source URI, folders that were listed whole, what could not be listed."""

    files: Mapping[str, Path]
    complete_folders: tuple[str, ...]
    errors: tuple[StageError, ...] = field(default=())
    objects: Mapping[str, ObjectFacts] = field(default_factory=dict)


def list_sources(paths: Iterable[str | Path]) -> Listing:
    """List files, folders (recursively, hidden names and links to folders left out), and what is
    at s3:// addresses (see list_objects).

    Raises InputError for what does not exist.
    """
    given = [str(path) for path in paths]
    local = _list_files(Path(path) for path in given if not is_address(path))
    remote = list_objects([Address.parse(path) for path in given if is_address(path)])
    return Listing(
        local.files,
        local.complete_folders + remote.complete_folders,
        local.errors + remote.errors,
        remote.objects,
    )


def _list_files(paths: Iterable[Path]) -> Listing:
    files: dict[str, Path] = {}
    complete: list[str] = []
    errors: list[StageError] = []
    for path in paths:
        kind = _kind(path)
        if kind == "folder":
            before = len(errors)
            files.update({source_of(file): file for file in _walk(path, errors)})
            if len(errors) == before:
                complete.append(source_of(path))
        elif kind == "file":
            files[source_of(path)] = path
        else:
            raise InputError(f"{path}: {kind}")
    return Listing(dict(sorted(files.items())), tuple(complete), tuple(errors))


def _kind(path: Path) -> str:
    """`file`, `folder`, or in words why it is neither."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return "no such file or folder"
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)
    if stat.S_ISDIR(mode):
        return "folder"
    return "file" if stat.S_ISREG(mode) else "neither a file nor a folder"


def source_of(path: Path) -> str:
    """The URI that identifies a file."""
    return path.resolve().as_uri()


def file_name(source: str) -> str:
    """The file name of a source, for people."""
    return unquote(urlsplit(source).path).rstrip("/").rsplit("/", 1)[-1] or source


def _walk(folder: Path, errors: list[StageError]) -> Iterable[Path]:
    def note(error: OSError) -> None:
        cause = error.strerror or describe(error)
        errors.append(StageError("list", cause, document=Path(error.filename).absolute().as_uri()))

    for root, folders, names in os.walk(folder, onerror=note):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(root, name)
            kind = "hidden" if name.startswith(".") else _kind(path)
            if kind == "file":
                yield path
            elif kind not in ("hidden", "folder"):
                errors.append(StageError("list", kind, document=path.absolute().as_uri()))


def hash_files(files: Mapping[str, Path]) -> dict[str, str]:
    """sha256 of each file that can be read."""
    hashes: dict[str, str] = {}
    for source, path in files.items():
        try:
            with path.open("rb") as stream:
                hashes[source] = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError:
            continue  # the parse of this file will name the cause
    return hashes


def path_of(source: str) -> Path:
    """The file of a source. Raises StageError `parse` for a URI that names no file here."""
    parts = urlsplit(source)
    if parts.scheme != "file" or parts.netloc:
        raise StageError("parse", f"{parts.scheme or 'no'} URI: only files are read")
    return Path(unquote(parts.path, errors="surrogateescape"))
