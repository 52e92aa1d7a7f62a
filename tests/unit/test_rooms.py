"""Who may import whom: an import that runs upward is a defect."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ALLOWED = {
    "ragplane.core": {"ragplane.core"},
    "serve": {"ragplane.core", "serve"},
    "compress": {"ragplane.core", "serve", "compress"},
    "retrieval.stores": {"ragplane.core", "serve", "retrieval.stores"},
    "retrieval": {"ragplane.core", "serve", "compress", "retrieval.stores", "retrieval"},
    "ingest": {"ragplane.core", "serve", "retrieval.stores", "ingest"},
    "pipelines": {
        "ragplane.core",
        "serve",
        "compress",
        "retrieval.stores",
        "retrieval",
        "ingest",
        "pipelines",
    },
}
"""What each room may import; the face, `ragplane` itself, may import everything."""

NESTED_FIRST = sorted([*ALLOWED, "ragplane"], key=len, reverse=True)


def room_of(module: str) -> str | None:
    """The room a module belongs to; None for a library."""
    for room in NESTED_FIRST:
        if module == room or module.startswith(f"{room}."):
            return room
    return None


def imports(tree: ast.AST) -> Iterator[str]:
    """Every module that the source imports, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def upward_imports(source: str, module: str) -> list[str]:
    """Imports of `source` that its room may not make."""
    room = room_of(module)
    if room is None or room == "ragplane":
        return []
    targets = [(name, room_of(name)) for name in imports(ast.parse(source))]
    return [name for name, target in targets if target and target not in ALLOWED[room]]


def modules() -> list[tuple[str, Path]]:
    tops = {room.split(".")[0] for room in NESTED_FIRST}
    files = [file for top in sorted(tops) for file in sorted((ROOT / top).rglob("*.py"))]
    return [(".".join(file.relative_to(ROOT).with_suffix("").parts), file) for file in files]


@pytest.mark.parametrize(("module", "file"), modules(), ids=lambda value: str(value)[-40:])
def test_no_import_runs_upward(module: str, file: Path) -> None:
    assert upward_imports(file.read_text(encoding="utf-8"), module) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("serve.local", "import ingest.parse"),
        ("serve.local", "def f():\n    from retrieval import search"),
        ("ragplane.core.config", "from ragplane.plane import Plane"),
        ("retrieval.stores.postgres", "from retrieval.search import Searcher"),
        ("compress.context", "from retrieval.search import Searcher"),
        ("ingest.parse", "from retrieval.search import Searcher"),
    ],
)
def test_an_upward_import_is_found(module: str, source: str) -> None:
    assert upward_imports(source, module) != []


def test_no_import_is_relative() -> None:
    """A relative import would pass the check above unseen."""
    for module, file in modules():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            assert not (isinstance(node, ast.ImportFrom) and node.level), module
