"""Bytes to text."""

from __future__ import annotations

import codecs

import pytest

from ingest.encoding import decode_text, has_wide_characters
from ragplane.core.errors import StageError

TEXT = "Smörgåsbord für 5 € – жар-птица 日本"
RUSSIAN = "Перед использованием прибора внимательно прочитайте эту инструкцию."
FRENCH = "L’été dernier, la fenêtre était très près du chêne – naïve, à 5 € près."


@pytest.mark.parametrize(
    "content",
    [
        TEXT.encode(),
        codecs.BOM_UTF8 + TEXT.encode(),
        TEXT.encode("utf-16"),
        codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
        TEXT.encode("utf-32"),
        codecs.BOM_UTF32_BE + TEXT.encode("utf-32-be"),
    ],
    ids=["utf-8", "utf-8 mark", "utf-16 le", "utf-16 be", "utf-32 le", "utf-32 be"],
)
def test_unicode_is_read_with_the_mark_left_out(content: bytes) -> None:
    assert decode_text(content) == TEXT


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("text", [TEXT, "plain\nASCII\n", f"{RUSSIAN}\n" * 500, "説明書。\n" * 30])
def test_wide_characters_without_a_mark_are_read(text: str, encoding: str) -> None:
    """Behaviour 9."""
    content = text.encode(encoding)
    assert has_wide_characters(content)
    assert decode_text(content) == text


@pytest.mark.parametrize(
    "content",
    [TEXT.encode(), RUSSIAN.encode("koi8-r"), bytes(range(256)) * 16, b"\x00\x01" * 99, b"a\x00b"],
    ids=["utf-8", "koi8-r", "all bytes", "controls", "odd length"],
)
def test_other_bytes_are_not_taken_for_wide_characters(content: bytes) -> None:
    assert not has_wide_characters(content)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (FRENCH, "cp1252"),
        ("Die schöne Frau. L'été était très chaud. El niño comió ñoquis.", "cp1252"),
        ("Die Größe der Tür beträgt über zwei Meter, sagt Müller.", "cp1252"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8-r"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy, čtěte návod.", "cp1250"),
        ("装置を使う前に説明書をよく読んでください。電源を切ってから掃除します。", "shift_jis"),
    ],
)
def test_undeclared_encoding_is_detected(text: str, encoding: str) -> None:
    assert decode_text(text.encode(encoding)) == text


@pytest.mark.parametrize(
    "declaration",
    ['<meta charset="iso-8859-5">', "<?xml version='1.0' encoding='ISO-8859-5'?>"],
)
def test_declared_charset_is_used(declaration: str) -> None:
    text = f"{declaration} Да"  # too short to be detected
    assert decode_text(text.encode("iso-8859-5")) == text


def test_utf8_wins_over_a_wrong_declaration() -> None:
    text = '<meta charset="latin-1"> Größe'
    assert decode_text(text.encode()) == text


@pytest.mark.parametrize(
    "charset", ["no-such-thing", "rot13", "hex", "undefined", "unicode_escape"]
)
def test_declaration_that_cannot_be_followed_is_ignored(charset: str) -> None:
    text = f'<meta charset="{charset}"> \\ud800 Größe der Tür'
    assert decode_text(text.encode("cp1252")) == text


@pytest.mark.parametrize(
    "content",
    [codecs.BOM_UTF16_LE + b"a\x00\x00\xd8b\x00", codecs.BOM_UTF8 + b"\xff\xff"],
    ids=["lone surrogate", "not utf-8"],
)
def test_mark_that_does_not_fit_is_an_error_of_the_parse(content: bytes) -> None:
    with pytest.raises(StageError, match="parse: the text is not valid utf-") as caught:
        decode_text(content)
    assert caught.value.__cause__ is not None


def test_bytes_in_no_encoding_are_an_error_of_the_parse() -> None:
    with pytest.raises(StageError, match="no known encoding"):
        decode_text(bytes(range(256)) * 8)
