"""Chunks of documents laid out on purpose."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from ingest.chunking import chunk_document
from ingest.identity import document_id
from ragplane.core.errors import StageError
from ragplane.core.schema import (
    BBox,
    Block,
    BlockKind,
    Chunk,
    Document,
    Page,
    PageBox,
    PageSignals,
    join_pages,
)
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


def test_boxes_of_a_chunk_are_those_of_its_blocks(chunk: MakeChunks) -> None:
    """Behaviour 17."""
    first, second = BBox(1, 1, 9, 9), BBox(1, 20, 9, 90)
    long = Block("paragraph", " ".join([words(18), words(19)]), bbox=second)
    chunks = chunk(
        page(1, Block("paragraph", "One.", bbox=first), Block("paragraph", "Two.", bbox=first)),
        page(2, paragraph("No box."), long),
    )
    assert [one.boxes for one in chunks] == [
        (PageBox(1, first), PageBox(2, second)),
        (PageBox(2, second),),
    ]


def test_without_context_only_a_table_has_a_prefix(tokenizer: TextTokenizer) -> None:
    """Behaviours 13 and 16."""
    pages = [page(1, heading("Part A"), paragraph(words(20)), paragraph(words(21)), *table(*ROWS))]
    chunks = chunk_document(DOCUMENT, pages, tokenizer, 40, contextual=False)
    assert {one.prefix for one in chunks if "|" not in one.text} == {""}
    assert {one.prefix for one in chunks if "|" in one.text} == {HEADER}
    assert {one.heading_path for one in chunks} == {("Part A",)}
    assert all(one.tokens == tokenizer.count(one.embedded_text) <= 40 for one in chunks)


def test_paragraph_that_fits_a_chunk_is_not_cut_to_fill_the_one_before(chunk: MakeChunks) -> None:
    """Behaviour 18."""
    whole = " ".join([words(13), words(14)])
    assert texts(chunk(paragraph(words(15)), paragraph(whole))) == [words(15), whole]


@pytest.mark.parametrize("count", [22, 33])
def test_row_and_line_that_fit_are_whole(chunk: MakeChunks, count: int) -> None:
    """Behaviour 18."""
    row, code = f"| {words(count)} |", "\n".join(f"  {words(count + n)}" for n in range(3))
    rows = [
        line
        for one in chunk(*table("| a | 1 |", row, "| b | 2 |"))
        for line in one.text.split("\n")
    ]
    assert rows == [HEADER, "| a | 1 |", row, "| b | 2 |"]
    assert texts(chunk(Block("code", code))) == code.split("\n")


def test_title_is_given_up_before_a_header(chunk: MakeChunks) -> None:
    """Behaviour 13."""
    rows = [f"| {words(8)} | {number} |" for number in range(6)]
    chunks = chunk(*table(*rows), document=replace(DOCUMENT, title=words(12)))
    assert {one.prefix for one in chunks} == {HEADER}


HUGE = {
    "one unknown word": "x" * 1_000_000,
    "base64": b64encode(bytes(n * 97 % 251 for n in range(150_000))).decode(),
    "no spaces in CJK": "日本語" * 50_000,
    "combining marks": "e\u0301" * 100_000,
    "mostly spaces": ("a" + " " * 999) * 1000,
}


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE)
@pytest.mark.parametrize("kind", ["paragraph", "code", "table_row"])
def test_unbroken_megabyte_is_cut_quickly_to_chunks_of_sane_length(
    chunk: MakeChunks, text: str, kind: BlockKind
) -> None:
    """Behaviour 16."""
    started = time.process_time()
    chunks = chunk(paragraph("Before."), Block(kind, text), paragraph("After."), limit=128)
    assert time.process_time() - started < 20
    assert max(len(one.text) for one in chunks) <= 16 * 128
    assert "".join("".join(texts(chunks)).split()) == "".join(f"Before.{text}After.".split())
    assert not any(one.text.startswith("\u0301") for one in chunks)


@pytest.mark.parametrize("kind", ["heading", "table"])
def test_unbroken_megabyte_above_a_chunk_does_not_stand_in_its_prefix(
    chunk: MakeChunks, kind: str
) -> None:
    """Behaviour 16: it is one unknown token to the tokenizer, and a megabyte to everybody else."""
    long = "x" * 1_000_000
    row = Block("table_row", "| 1 | 2 |", header=long)
    above = heading(long) if kind == "heading" else Block("table_row", long, header=long)
    chunks = chunk(above, paragraph("Below.") if kind == "heading" else row, limit=128)
    assert "".join(texts(chunks)).startswith(long)
    assert max(len(one.embedded_text) for one in chunks) <= 2 * 16 * 128
    assert max(len(title) for one in chunks for title in one.heading_path or ("",)) <= 16 * 128


def test_time_grows_with_the_length_of_the_document(tokenizer: TextTokenizer) -> None:
    """Behaviour 16."""

    def seconds(count: int) -> float:
        pages = [page(1, *(paragraph(f"Lamp {n} is lit.") for n in range(count)))]
        started = time.process_time()
        chunk_document(DOCUMENT, pages, tokenizer, 64)
        return time.process_time() - started

    seconds(1000)
    short, long = seconds(10_000), seconds(100_000)
    assert long < 25 * short


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
