"""ZIP containers: bombs, lies, passwords."""

from __future__ import annotations

import io
import zipfile

import pytest

from ingest.readers.base import ReadLimits
from ingest.readers.zipped import malformed_as, open_zip, xml_root
from ragplane.core.errors import StageError
from tests.unit.ingest.readers.archives import BOMB_XML, declaring_sizes, packed

MIB = 1 << 20


def test_ordinary_container_is_opened() -> None:
    with open_zip(packed({"a.xml": b"<a/>"}), "DOCX", ReadLimits()) as archive:
        assert archive.read("a.xml") == b"<a/>"


@pytest.mark.parametrize(
    "limits",
    [ReadLimits(unzipped_bytes=MIB), ReadLimits(unzip_ratio=10)],
    ids=["bytes", "ratio"],
)
def test_container_that_unzips_to_too_much_is_refused(limits: ReadLimits) -> None:
    """Behaviour 10."""
    content = packed({f"{i}.bin": bytes(MIB) for i in range(3)})
    with pytest.raises(StageError, match="parse: the DOCX unzips to over"):
        open_zip(content, "DOCX", limits)
    open_zip(content, "DOCX", ReadLimits()).close()


def test_declared_sizes_are_not_believed() -> None:
    """Behaviour 10."""
    content = declaring_sizes(packed({"a.xml": bytes(20 * MIB)}), 10)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.getinfo("a.xml").file_size == 10
    with pytest.raises(StageError, match="parse: the XLSX unzips to over"):
        open_zip(content, "XLSX", ReadLimits(unzipped_bytes=10 * MIB))


@pytest.mark.parametrize("lead", [0, (1 << 16) - 30], ids=["at the start", "across two pieces"])
def test_xml_that_declares_entities_is_refused(lead: int) -> None:
    """Behaviour 10."""
    content = packed({"a.xml": b" " * lead + BOMB_XML})
    with pytest.raises(StageError, match="parse: the ODT declares XML entities"):
        open_zip(content, "ODT", ReadLimits())


def test_entities_are_not_expanded() -> None:
    assert "".join(xml_root(BOMB_XML).itertext()).count("a") < 10


def test_encrypted_container_is_refused_by_name() -> None:
    """Behaviour 10."""
    content = bytearray(packed({"a.xml": b"<a/>"}))
    content[6] |= 1
    content[content.find(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(StageError, match="parse: encrypted DOCX"):
        open_zip(bytes(content), "DOCX", ReadLimits())


@pytest.mark.parametrize(
    "content",
    [b"PK\x03\x04", packed({"a": b"text" * 100})[:-40], b"no archive"],
    ids=["only a mark", "truncated", "something else"],
)
def test_broken_container_is_refused_by_name(content: bytes) -> None:
    """Behaviour 10."""
    with pytest.raises(StageError, match="parse: not a readable EPUB"):
        open_zip(content, "EPUB", ReadLimits())


def test_member_that_is_damaged_is_refused_by_name() -> None:
    content = bytearray(packed({"a.xml": bytes(range(256)) * 40}))
    content[60] ^= 0xFF
    with pytest.raises(StageError, match="parse: not a readable DOCX") as caught:
        open_zip(bytes(content), "DOCX", ReadLimits())
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (KeyError("word/document.xml"), "not a readable DOCX"),
        (SyntaxError("bad XML"), "not a readable DOCX"),
        (RecursionError(), "nested too deeply"),
    ],
    ids=repr,
)
def test_errors_of_the_library_are_named(error: Exception, cause: str) -> None:
    with pytest.raises(StageError, match=cause) as caught, malformed_as("DOCX"):
        raise error
    assert caught.value.__cause__ is error


def test_errors_of_our_own_pass() -> None:
    with pytest.raises(MemoryError), malformed_as("DOCX"):
        raise MemoryError
