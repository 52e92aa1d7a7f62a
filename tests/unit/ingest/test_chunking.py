"""Chunks of documents laid out on purpose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from ingest.chunking import chunk_document
from ingest.identity import document_id
from ragplane.core.errors import StageError
from ragplane.core.schema import Block, Chunk, Document, Page, PageSignals, join_pages
from ragplane.core.tokens import TextTokenizer

SIGNALS = PageSignals(0, 0, 0.0, 0.0, 0)
DOCUMENT = Document(
    id=document_id("acme", "manuals", "file:///a.pdf"),
    tenant="acme",
    corpus="manuals",
    source="file:///a.pdf",
    sha256="0" * 64,
    mime="application/pdf",
    title="Manual",
)

MakeChunks = Callable[..., list[Chunk]]


def page(number: int, *blocks: Block) -> Page:
    return Page(number, 600, 800, 0, "text", "a test", SIGNALS, blocks, 0.0)


def heading(text: str, level: int = 1) -> Block:
    return Block("heading", text, level=level)


def paragraph(text: str) -> Block:
    return Block("paragraph", text)


def words(count: int, word: str = "green") -> str:
    """A sentence of `count` tokens, and one for its end."""
    return " ".join([word.title(), *[word] * (count - 1)]) + "."


@pytest.fixture
def chunk(tokenizer: TextTokenizer) -> MakeChunks:
    """Chunks one page of blocks, or pages, and checks what holds for all chunks."""

    def make(*parts: Block | Page, limit: int = 40, document: Document = DOCUMENT) -> list[Chunk]:
        blocks = [part for part in parts if isinstance(part, Block)]
        pages = [part for part in parts if isinstance(part, Page)] or [page(1, *blocks)]
        chunks = chunk_document(document, pages, tokenizer, limit)
        accepted = join_pages(one.text for one in pages)
        for one in chunks:
            assert one.text == accepted[one.start : one.end]
            assert one.tokens == tokenizer.count(one.embedded_text) <= limit
        return chunks

    return make


def texts(chunks: Sequence[Chunk]) -> list[str]:
    return [chunk.text for chunk in chunks]


def test_short_document_is_one_chunk_under_its_title(chunk: MakeChunks) -> None:
    [only] = chunk(paragraph("One."), paragraph("Two."))
    assert (only.text, only.prefix) == ("One.\nTwo.", "Manual")
    assert only.embedded_text == "Manual\nOne.\nTwo."


def test_document_without_text_has_no_chunks(chunk: MakeChunks) -> None:
    assert chunk(page(1), page(2)) == []


def test_heading_starts_a_chunk_and_stands_above_the_next_ones(chunk: MakeChunks) -> None:
    chunks = chunk(
        paragraph("Before."),
        heading("Part A"),
        paragraph("In A."),
        heading("Detail", level=2),
        paragraph("In detail."),
        paragraph(words(21)),
        paragraph(words(22)),
        heading("Part B"),
        paragraph("In B."),
    )
    assert texts(chunks) == [
        "Before.",
        "Part A\nIn A.",
        f"Detail\nIn detail.\n{words(21)}",
        words(22),
        "Part B\nIn B.",
    ]
    assert [one.prefix for one in chunks] == [
        "Manual",
        "Manual",
        "Manual > Part A",
        "Manual > Part A > Detail",
        "Manual",
    ]
    assert [one.heading_path for one in chunks] == [
        (),
        ("Part A",),
        ("Part A", "Detail"),
        ("Part A", "Detail"),
        ("Part B",),
    ]


def test_headings_in_a_row_stay_with_the_text_below(chunk: MakeChunks) -> None:
    blocks = heading("Part A"), heading("Detail", level=2), paragraph("In detail.")
    assert texts(chunk(*blocks)) == ["Part A\nDetail\nIn detail."]


def test_heading_goes_with_its_text_even_without_the_prefix(chunk: MakeChunks) -> None:
    long_title = replace(DOCUMENT, title=words(12))
    [first, second] = chunk(
        heading(words(9)), paragraph(words(20)), paragraph(words(10)), document=long_title
    )
    assert (first.prefix, first.text) == ("", f"{words(9)}\n{words(20)}")
    assert (second.prefix, second.text) == (words(12), words(10))


def test_title_is_not_said_twice(chunk: MakeChunks) -> None:
    chunks = chunk(heading("Manual"), *[paragraph(words(20))] * 2)
    assert [one.prefix for one in chunks] == ["Manual", "Manual"]


def test_long_paragraph_is_cut_between_sentences(chunk: MakeChunks) -> None:
    first, second, third = words(12, "red"), words(13, "blue"), words(14, "green")
    assert texts(chunk(paragraph(f"{first} {second}  {third}"))) == [
        f"{first} {second}",
        third,
    ]


def test_long_sentence_is_cut_between_words(chunk: MakeChunks) -> None:
    text = words(100)
    chunks = chunk(paragraph(text))
    assert len(chunks) > 2
    assert " ".join(texts(chunks)) == text


def test_long_run_without_spaces_is_cut_between_tokens(chunk: MakeChunks) -> None:
    text = "日本" * 100
    assert "".join(texts(chunk(paragraph(text)))) == text


def test_spaces_before_a_long_run_make_no_chunk_of_their_own(chunk: MakeChunks) -> None:
    for spaces in range(1, 30):
        assert all(one.text.strip() for one in chunk(paragraph("a" + " " * spaces + "日" * 90)))
        assert all(
            one.text.strip() for one in chunk(paragraph("a " * 22 + " " * spaces + "日" * 90))
        )


def test_long_code_is_cut_between_lines(chunk: MakeChunks) -> None:
    lines = [f"    value = {number}" for number in range(30)]
    chunks = chunk(Block("code", "\n".join(lines)))
    assert len(chunks) > 2
    assert [line for one in chunks for line in one.text.split("\n")] == lines


HEADER = "| Item | Price |"


def table(*cells: str, header: str = HEADER) -> list[Block]:
    """A table as readers give it: its header row is a row too."""
    return [Block("table_row", text, header=header) for text in (header, *cells)]


ROWS = [f"| lamp {number} | {number} |" for number in range(12)]


def test_every_chunk_of_a_table_has_the_header_in_its_prefix(chunk: MakeChunks) -> None:
    chunks = chunk(paragraph("Above."), *table(*ROWS), paragraph("Below."))
    above, first, *others, below = chunks
    assert (above.text, below.text) == ("Above.", "Below.")
    assert first.text.startswith(f"{HEADER}\n| lamp 0 |")
    assert len(others) > 1
    assert {one.prefix for one in (first, *others)} == {f"Manual\n{HEADER}"}
    assert "\n".join(texts(chunks)).split("\n") == ["Above.", HEADER, *ROWS, "Below."]


def test_table_stays_with_the_heading_above_it(chunk: MakeChunks) -> None:
    [first, *_] = chunk(heading("Prices"), *table(*ROWS))
    assert first.text.startswith(f"Prices\n{HEADER}\n| lamp 0 |")


def test_rows_of_two_tables_do_not_share_a_chunk(chunk: MakeChunks) -> None:
    other = "| Other | Price |"
    chunks = chunk(*table("| a | 1 |"), *table("| b | 2 |", header=other), paragraph("Below."))
    assert texts(chunks) == [f"{HEADER}\n| a | 1 |", f"{other}\n| b | 2 |", "Below."]


def test_prefix_that_is_too_long_loses_its_middle(
    chunk: MakeChunks,
) -> None:
    outer, inner = heading(words(15, "red")), heading("Inner", level=2)
    chunks = chunk(outer, inner, paragraph(words(20)), paragraph(words(20)))
    assert chunks[-1].prefix == "Manual > Inner"


def test_pages_of_a_chunk_are_those_of_its_blocks(chunk: MakeChunks) -> None:
    chunks = chunk(
        page(1, paragraph("On one.")),
        page(2),
        page(3, paragraph("On three."), paragraph(words(21)), paragraph(words(22))),
        page(4, heading("New"), paragraph("On four.")),
    )
    assert [(one.text[:9], one.first_page, one.last_page) for one in chunks] == [
        ("On one.\nO", 1, 3),
        ("Green gre", 3, 3),
        ("New\nOn fo", 4, 4),
    ]


def test_same_text_has_the_same_ids_only_in_the_same_place(chunk: MakeChunks) -> None:
    blocks = [paragraph(words(20)) for _ in range(4)]

    def ids(document: Document) -> set[object]:
        return {one.id for one in chunk(*blocks, document=document)}

    first = ids(DOCUMENT)
    assert len(first) == 4
    assert ids(DOCUMENT) == first
    assert ids(replace(DOCUMENT, generation=2, sha256="1" * 64)) == first
    assert first.isdisjoint(ids(replace(DOCUMENT, tenant="other")))
    assert first.isdisjoint(ids(replace(DOCUMENT, corpus="letters")))


def test_hash_of_a_chunk_covers_its_prefix(chunk: MakeChunks) -> None:
    [one], [other] = (
        chunk(paragraph("Same."), document=replace(DOCUMENT, title=title)) for title in "AB"
    )
    assert one.text == other.text
    assert one.sha256 != other.sha256


def test_limit_that_no_chunk_can_keep_is_an_error_of_the_stage(tokenizer: TextTokenizer) -> None:
    with pytest.raises(StageError, match="chunk: ") as caught:
        chunk_document(DOCUMENT, [page(1, paragraph(words(9)))], tokenizer, 2)
    assert caught.value.stage == "chunk"
