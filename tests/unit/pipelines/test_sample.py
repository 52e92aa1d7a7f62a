"""The sample corpus is rebuilt byte for byte and its questions hold."""

from collections import Counter
from pathlib import Path
from typing import Any

import docx
import pymupdf
import pytest

from pipelines.sample import Question, documents_dir, questions
from pipelines.sample.build import COPIES, MAKERS, build
from pipelines.sample.layout import wrap
from pipelines.sample.markup import Block, parse

open_pdf: Any = pymupdf.open

IMAGES = ("inspection-report-scan.pdf", "letter-scan.pdf", "notice-board.jpg")
KINDS = {"number", "abstain", "contrast", "scan", "table", "text"}
BORN_DIGITAL = [q for q in questions() if q.document and q.document not in IMAGES]


def read_page(name: str, number: int) -> str:
    """The text of one page of a document that has text."""
    path = documents_dir() / name
    if path.suffix == ".pdf":
        with open_pdf(path) as document:
            text = str(document[number - 1].get_text())
    elif path.suffix == ".docx":
        word = docx.Document(str(path))
        cells = [c.text for table in word.tables for row in table.rows for c in row.cells]
        text = " ".join([*(p.text for p in word.paragraphs), *cells])
    else:
        text = path.read_text(encoding="utf-8")
    return " ".join(text.split())


def test_rebuilding_changes_no_byte(tmp_path: Path) -> None:
    build(tmp_path)
    built = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    kept = {path.name: path.read_bytes() for path in documents_dir().iterdir()}
    assert sorted(built) == sorted(kept) == sorted([*MAKERS, *COPIES])
    assert [name for name, data in built.items() if kept[name] != data] == []


def test_corpus_is_small() -> None:
    assert sum(path.stat().st_size for path in documents_dir().iterdir()) < 3_000_000


@pytest.mark.parametrize("name", IMAGES[:2])
def test_scans_have_no_text_layer(name: str) -> None:
    with open_pdf(documents_dir() / name) as document:
        assert all(page.get_text() == "" and page.get_images() for page in document)
        assert all(page.rotation == 0 for page in document)


@pytest.mark.parametrize("question", BORN_DIGITAL, ids=lambda question: question.id)
def test_answer_stands_on_its_page(question: Question) -> None:
    assert question.document is not None
    assert question.page is not None
    assert question.answer is not None
    assert question.answer in read_page(question.document, question.page)
    assert 1 <= len(question.answer.split()) <= 8


def test_question_set_has_its_shape() -> None:
    asked = questions()
    counts = Counter(kind for question in asked for kind in question.kinds)
    assert len({question.id for question in asked}) == len(asked) == 60
    assert len({question.question for question in asked}) == 60
    assert set(counts) == KINDS
    assert 7 <= counts["abstain"] <= 8
    least = {"number": 20, "contrast": 10, "scan": 5, "table": 4}
    assert all(counts[kind] >= number for kind, number in least.items())


def test_abstaining_questions_name_no_source() -> None:
    for question in questions():
        source = (question.answer, question.document, question.page)
        abstains = "abstain" in question.kinds
        assert all((part is None) == abstains for part in source)


def test_every_document_is_asked_about() -> None:
    assert {q.document for q in questions() if q.document} == {*MAKERS, *COPIES}


def test_parse_reads_each_kind_of_block() -> None:
    source = "# T\none\ntwo\n\n- a\n  b\n\n1. c\n\n| x | y |\n| --- | --- |\n| 1 | 2 |\n\n<<page>>"
    assert parse(source) == [
        Block("heading", "T", level=1),
        Block("paragraph", "one two"),
        Block("item", "a b", label="-"),
        Block("item", "c", label="1."),
        Block("table", rows=(("x", "y"), ("1", "2"))),
        Block("page"),
    ]


def test_wrap_keeps_words_whole() -> None:
    lines = wrap("a long line of words that does not fit", "helv", 10, 60)
    assert len(lines) > 1
    assert " ".join(lines) == "a long line of words that does not fit"
