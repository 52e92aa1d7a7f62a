"""The error tree: default messages, travel between processes, one-line descriptions."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest

from ragplane.core.errors import (
    ConfigError,
    DeadlineError,
    InputError,
    OverloadedError,
    RagplaneError,
    StageError,
    describe,
)


def tree(root: type[RagplaneError] = RagplaneError) -> Iterator[type[RagplaneError]]:
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


@pytest.mark.parametrize("kind", [kind for kind in tree() if not issubclass(kind, StageError)])
def test_default_message_is_the_docstring(kind: type[RagplaneError]) -> None:
    assert str(kind()) == kind.__doc__
    assert str(kind("the disk is full")) == "the disk is full"


@pytest.mark.parametrize(
    ("document", "page", "message"),
    [
        (None, None, "parse: no pages"),
        ("a.pdf", None, "parse: a.pdf no pages"),
        ("a.pdf", 3, "parse: a.pdf page 3 no pages"),
    ],
)
def test_stage_error_says_where(document: str | None, page: int | None, message: str) -> None:
    assert str(StageError("parse", "no pages", document=document, page=page)) == message


def test_stage_error_survives_pickle() -> None:
    error = StageError("ocr", "no engine", document="a.pdf", page=7)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is StageError
    assert (copy.stage, copy.cause, copy.document, copy.page) == ("ocr", "no engine", "a.pdf", 7)
    assert str(copy) == str(error)


@pytest.mark.parametrize(
    ("error", "attribute", "value"),
    [
        (InputError("too long", param="input"), "param", "input"),
        (OverloadedError("busy", retry_after_s=2.5), "retry_after_s", 2.5),
        (DeadlineError("late", retry_after_s=0.5), "retry_after_s", 0.5),
    ],
)
def test_other_errors_survive_pickle(error: RagplaneError, attribute: str, value: object) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert getattr(copy, attribute) == value


def raised(error: Exception, cause: Exception | None) -> Exception:
    try:
        raise error from cause
    except Exception as caught:  # noqa: BLE001 - whatever was given
        return caught


@pytest.mark.parametrize(
    ("error", "cause", "text"),
    [
        (ConfigError("bad key"), None, "ConfigError: bad key"),
        (ValueError(), None, "ValueError"),
        (ConfigError("two\nlines"), None, "ConfigError: two"),
        (
            ConfigError("unreadable"),
            PermissionError("denied"),
            "ConfigError: unreadable (caused by PermissionError: denied)",
        ),
        (ConfigError("file: denied"), PermissionError("denied"), "ConfigError: file: denied"),
    ],
)
def test_describe_is_one_line_with_the_cause_that_says_more(
    error: Exception, cause: Exception | None, text: str
) -> None:
    assert describe(raised(error, cause)) == text
