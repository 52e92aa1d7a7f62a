"""JSON and JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ingest.parsed import ParsedDocument
from ingest.readers.json import is_json
from ragplane.core.errors import StageError

Read = Callable[..., ParsedDocument]


def texts(document: ParsedDocument) -> list[str]:
    [page] = document.pages
    return [block.text for block in page.blocks]


def read_value(value: Any, read: Read) -> list[str]:
    document = read(json.dumps(value, ensure_ascii=False).encode(), "a-file.txt")
    assert (document.mime, document.title) == ("application/json", "a file")
    return texts(document)


def test_object_is_read_as_paths_and_values_in_order(read: Read) -> None:
    """Behaviour 9."""
    value = {
        "name": "Lamp",
        "size": {"high": 12, "wide": None},
        "tags": ["tall", "red"],
        "parts": [{"name": "bulb", "maker": {"name": "Ada"}}, 7],
        "sold": True,
    }
    assert read_value(value, read) == [
        "name: Lamp",
        "size.high: 12\nsize.wide: ",
        "tags: tall, red",
        "parts[0].name: bulb",
        "parts[0].maker.name: Ada",
        "parts[1]: 7",
        "sold: true",
    ]


def test_records_that_are_alike_are_a_table(read: Read) -> None:
    """Behaviour 13."""
    value = {"items": [{"name": "Lamp", "price": 12}, {"name": "Desk", "new": False}]}
    assert read_value(value, read) == [
        "items:",
        "| name | price | new |",
        "| Lamp | 12 |  |",
        "| Desk |  | false |",
    ]


def test_records_that_share_no_keys_are_no_table(read: Read) -> None:
    value = [{f"key{index}": index} for index in range(4)]
    assert read_value(value, read) == [f"[{index}].key{index}: {index}" for index in range(4)]


def test_numbers_stay_as_they_are_written(read: Read) -> None:
    document = read(b'{"price": 1.10, "id": 123456789012345678901234567890, "big": 1e400}')
    assert texts(document) == [
        "price: 1.10\nid: 123456789012345678901234567890\nbig: 1e400",
    ]


def test_json_lines_are_records(read: Read) -> None:
    """Behaviour 9."""
    lines = [json.dumps({"q": f"question {index}", "a": "answer"}) for index in range(3)]
    assert texts(read("\n".join([*lines, ""]).encode(), "a.jsonl")) == [
        "| q | a |",
        "| question 0 | answer |",
        "| question 1 | answer |",
        "| question 2 | answer |",
    ]


def test_line_that_is_not_valid_is_kept_as_it_is(read: Read) -> None:
    lines = ['{"a": 1, "b": 2}'] * 8 + ['{"a": 1, "b"', '{"a": 3, "b": 4}']
    assert texts(read("\n".join(lines).encode(), "a.jsonl"))[-2:] == [
        '{"a": 1, "b"',
        "[0].a: 3\n[0].b: 4",
    ]


@pytest.mark.parametrize("text", ['{"a": 1,}', '{"a": 1', "{a: 1}", "[1] a reference", "[a](b)"])
def test_what_is_not_valid_is_read_as_text(text: str, read: Read) -> None:
    assert not is_json(text)
    document = read(text.encode(), "a.json")
    assert (document.mime, texts(document)) == ("text/plain", [text])


@pytest.mark.parametrize("text", ["{}", "[]", "[{}]", " [ ] \n"])
def test_empty_value_is_blank(text: str, read: Read) -> None:
    [page] = read(text.encode()).pages
    assert (page.route, page.blocks) == ("blank", ())


def test_strings_that_cannot_be_stored_are_mended(read: Read) -> None:
    assert texts(read(b'{"a": "x\\u0000\\ud800y"}')) == ["a: xy"]


def test_nesting_without_end_is_refused_by_name(read: Read) -> None:
    """Behaviour 10."""
    with pytest.raises(StageError, match="parse: the JSON is nested too deeply"):
        read(b"[" * 200_000 + b"]" * 200_000)


def test_long_paths_do_not_multiply(read: Read) -> None:
    """Behaviour 10."""
    value: Any = {str(index): index for index in range(1000)}
    for level in range(50):
        value = {f"{level}" * 500: value}
    assert sum(map(len, read_value(value, read))) < 1_000_000
