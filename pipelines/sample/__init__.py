"""A sample corpus about an invented observatory, with questions whose answers are known."""

import json
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Question", "documents_dir", "questions"]

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Question:
    """A question and where its answer stands; no answer means the corpus does not hold one."""

    id: str
    question: str
    answer: str | None
    document: str | None
    page: int | None
    kinds: tuple[str, ...]


def documents_dir() -> Path:
    """The folder with the built documents."""
    return _HERE / "documents"


def questions() -> list[Question]:
    """The questions, in the order of their file."""
    lines = (_HERE / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = (json.loads(line) for line in lines)
    return [Question(**{**row, "kinds": tuple(row["kinds"])}) for row in rows]
