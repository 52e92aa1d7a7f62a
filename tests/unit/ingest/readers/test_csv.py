"""CSV and TSV files."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ingest.parsed import ParsedDocument
from ingest.readers.csv import find_delimiter, is_table

Read = Callable[..., ParsedDocument]


def rows(document: ParsedDocument) -> list[str]:
    [page] = document.pages
    return [block.text for block in page.blocks]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_delimiter_is_found_and_rows_carry_their_header(
    delimiter: str, line_end: str, read: Read
) -> None:
    """Behaviours 9 and 13."""
    lines = [["Item", "Price"], ["Lamp", "12"], ["Desk", "80"]]
    text = line_end.join(delimiter.join(line) for line in lines)
    document = read(text.encode(), "price-list.csv")
    assert rows(document) == ["| Item | Price |", "| Lamp | 12 |", "| Desk | 80 |"]
    assert {block.header for block in document.pages[0].blocks} == {"| Item | Price |"}
    assert document.title == "price list"
    assert document.mime == ("text/tab-separated-values" if delimiter == "\t" else "text/csv")


def test_quoted_fields_hold_delimiters_quotes_and_line_breaks(read: Read) -> None:
    text = 'Item,Note\n"Lamp, tall","says ""on""\nand off"\n'
    assert rows(read(text.encode(), "a.csv")) == [
        "| Item | Note |",
        '| Lamp, tall | says "on" and off |',
    ]


def test_decimal_commas_are_not_the_delimiter(read: Read) -> None:
    text = "Item;Price\nLamp;1,50\nDesk;2,75\nOld, grey chair;3\n"
    assert rows(read(text.encode(), "a.csv"))[1] == "| Lamp | 1,50 |"


@pytest.mark.parametrize("length", [10, 300_000])
def test_quote_that_is_not_closed_loses_nothing(length: int, read: Read) -> None:
    text = 'a,b\n1,"2\n' + "x,y\n" * (length // 4)
    assert "".join(rows(read(text.encode(), "a.csv"))).count("x") == length // 4


def test_legacy_encoding_is_detected(read: Read) -> None:
    text = "Ort;Straße\nKöln;Hauptstraße\nNürnberg;Färberstraße\nGörlitz;Brüderstraße\n"
    assert rows(read(text.encode("cp1252"), "a.csv"))[2] == "| Nürnberg | Färberstraße |"


def test_list_of_one_column_is_kept(read: Read) -> None:
    assert rows(read(b"Name\nAda\nBob\n", "a.csv")) == ["| Name |", "| Ada |", "| Bob |"]


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("", None),
        ("one line of words", None),
        ("Dear all,\nplease come, and bring cake,\nif you can.\nThanks\n", None),
        ("a,b\n1,2", ","),
        ("a,b;c\n1,2;3\n4;5\n6;7\n8;9\n10;11\n", ";"),
    ],
)
def test_delimiter(text: str, delimiter: str | None) -> None:
    assert find_delimiter(text) == delimiter


def test_plain_table_is_told_from_prose_without_a_name(read: Read) -> None:
    """Behaviour 9."""
    assert is_table("a,b,c\n" * 6)
    assert not is_table("a,b,c\n" * 3)
    assert not is_table("a,b\n" * 9)
    assert not is_table("a,b,c\n" * 6 + "a,b\n")
    assert read(b"a;b;c\n" * 6, "export").mime == "text/csv"
