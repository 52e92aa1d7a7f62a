"""What holds for the chunks of every document, with the real tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest.chunking import chunk_document
from ingest.identity import document_id
from ragplane.core.models import BUNDLED, read_model
from ragplane.core.schema import Block, Chunk, Document, Page, PageSignals, join_pages
from ragplane.core.tokens import TextTokenizer

TOKENIZER: TextTokenizer = read_model(BUNDLED).tokenizer()

pieces = st.sampled_from(
    [
        *("green", "unbelievable", "E. coli", "e.g.", "3.14", "AB-12", "naïve", "Ünïcödé"),
        *("日本語の文章。", "漢字", "한국어", "жар-птица", "שלום", "ﬁ", "e\u0301"),
        *("😀", "👩‍👩‍👧", "…", "!?", "—", "\u200b", "\ufeff", "\u00ad", "\x7f"),
        *("\n", " ", "  ", "\t", "\u00a0", "\u3000", "\u2028"),
        *("x" * 99, "x" * 150, "verylongcompoundword" * 4, "ab1" * 60, "日" * 70, "." * 40),
        *("It ends here. ", "https://example.org/a/b?c=d&e=f "),
    ]
)
texts = st.lists(
    pieces | st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=40
)
spaced = st.tuples(texts, st.sampled_from(["", " "])).map(lambda parts: parts[1].join(parts[0]))
visible = spaced.map(str.strip).filter(bool)
one_line = visible.map(lambda text: " ".join(text.split()))


def table(header: str, rows: Sequence[str]) -> list[Block]:
    return [Block("table_row", f"| {row} |", header=f"| {header} |") for row in (header, *rows)]


block_groups = st.one_of(
    st.builds(lambda text: [Block("paragraph", text)], visible),
    st.builds(lambda text: [Block("list_item", f"- {text}")], one_line),
    st.builds(lambda text: [Block("code", text)], visible),
    st.builds(
        lambda text, level: [Block("heading", text, level=level)], one_line, st.integers(1, 4)
    ),
    st.builds(table, one_line, st.lists(one_line, min_size=1, max_size=5)),
)
page_blocks = st.lists(block_groups, max_size=4).map(lambda groups: [*chain(*groups)])


def laid_out(pages: Sequence[Sequence[Block]]) -> list[Page]:
    signals = PageSignals(0, 0, 0.0, 0.0, 0)
    return [
        Page(number, 600, 800, 0, "text", "a test", signals, tuple(blocks), 0.0)
        for number, blocks in enumerate(pages, start=1)
    ]


def document_of(tenant: str, title: str) -> Document:
    identity = document_id(tenant, "manuals", "file:///a")
    return Document(identity, tenant, "manuals", "file:///a", "0" * 64, "text/plain", title)


def page_at(pages: Sequence[Page], offset: int) -> int:
    """The page that holds a character of the accepted text."""
    position = 0
    for page in pages:
        if page.text and offset < (position := position + len(page.text) + 1):
            return page.number
    raise AssertionError(offset)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(page_blocks, max_size=3), st.sampled_from([16, 24, 40, 200]), one_line | st.just("")
)
def test_chunks_fit_and_conserve_the_text(
    blocks: list[list[Block]], limit: int, title: str
) -> None:
    pages = laid_out(blocks)
    accepted = join_pages(page.text for page in pages)
    document = document_of("acme", title)

    chunks = chunk_document(document, pages, TOKENIZER, limit)

    position = 0
    for ordinal, chunk in enumerate(chunks):
        assert chunk.ordinal == ordinal
        assert chunk.document_id == document.id
        assert chunk.tokens == TOKENIZER.count(chunk.embedded_text) <= limit
        assert chunk.text == accepted[chunk.start : chunk.end]
        assert chunk.text.strip()
        assert not accepted[position : chunk.start].strip()
        position = chunk.end
        first_visible = chunk.start + len(chunk.text) - len(chunk.text.lstrip())
        assert chunk.first_page == page_at(pages, first_visible)
        assert chunk.last_page == page_at(pages, chunk.start + len(chunk.text.rstrip()) - 1)
    assert not accepted[position:].strip()

    assert chunk_document(document, pages, TOKENIZER, limit) == chunks
    others = chunk_document(document_of("other", title), pages, TOKENIZER, limit)
    assert ids(others).isdisjoint(ids(chunks))
    assert len(ids(chunks)) == len(chunks)


def ids(chunks: Sequence[Chunk]) -> set[object]:
    return {chunk.id for chunk in chunks}
