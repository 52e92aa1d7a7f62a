"""Public PDF files that people met: each ends in a defined status with a sensible text."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ingest.pdf.base import PdfEngine
from ingest.readers.base import ReadContext, ReadLimits
from ingest.readers.pdf import read_pdf
from ingest.triage import Thresholds
from ragplane.core.errors import StageError

ROOT = Path(__file__).parents[4]
DATA = Path(os.environ.get("RAGPLANE_SHARED_DATA", ROOT.parent / "shared" / "data"))
DOCUMENTS = DATA / "documents"

pytestmark = [
    pytest.mark.shared_data,
    pytest.mark.skipif(not DOCUMENTS.is_dir(), reason=f"no public documents in {DOCUMENTS}"),
]

TEXTS = [
    ("pdf/a1977-backus-p21.pdf", "the definition of new functional"),
    ("pdf/all-number-table.pdf", "200.01"),
    ("pdf/amt_handbook_sample.pdf", "the inner race of the bearing is clamped"),
    ("pdf/annotated_pdf.pdf", "Not highlighted"),
    ("pdf/copy-protected.pdf", "A Unified Toolkit for Deep"),
    ("pdf/embedded-images-tables.pdf", "Corrosion"),
    ("pdf/failure-after-repair.pdf", "Understanding Breast Cancer"),
    ("pdf/fake-memo.pdf", "To Whom it May Concern"),
    ("pdf/header-test-doc.pdf", "Here is a lovely sentences."),
    ("pdf/layout-parser-paper-fast.pdf", "A Unified Toolkit for Deep"),
    ("pdf/list-item-example.pdf", "Introduction to Product Development"),
    ("pdf/multi-column-2p.pdf", "Dense Passage Retrieval for Open-Domain Question Answering"),
    ("pdf/multi_page.pdf", "The Evolution of the Word Processor"),
    ("pdf/multicolumn.pdf", "Two-Column Document with Lorem Ipsum"),
    ("pdf/normal_4pages.pdf", "국회입법조사처"),
    ("pdf/pdflatex-4-pages.pdf", "Hello, here is some text without a meaning."),
    ("pdf/pdflatex-forms.pdf", "[ ]"),
    ("pdf/redp5110_sampled.pdf", "Row and Column Access Control Support in IBM DB2 for i"),
    ("pdf/reliance.pdf", "Integrated Annual Report 2021-22"),
    ("pdf/right_to_left_01.pdf", "Python"),
]
RECOGNISED = [
    "pdf/single_table.pdf",
    "pdf/table-multi-row-column-cells.pdf",
    "scans/nemotron_multipage.pdf",
    "scans/ocr_test.pdf",
    "scans/ocr_test_rotated_90.pdf",
    "scans/ocr_test_rotated_180.pdf",
    "scans/small_ocr.pdf",
]


@pytest.fixture
def context(pdf_engine: PdfEngine, ocr: Any) -> ReadContext:
    limits = ReadLimits(pixels=500_000)  # the engine of tests reads nothing
    return ReadContext("a.pdf", ocr, Thresholds(), limits, pdf_engine=pdf_engine)


@pytest.mark.parametrize(("name", "words"), TEXTS)
def test_born_digital_file_is_read_by_its_text(name: str, words: str, context: ReadContext) -> None:
    """Behaviours 1, 4 and 12."""
    document = read_pdf((DOCUMENTS / name).read_bytes(), context)
    text = " ".join(" ".join(page.text for page in document.pages).split())
    assert words in text
    assert not any(page.error for page in document.pages)
    assert {page.route for page in document.pages} <= {"text", "layout", "blank", "ocr"}
    assert document.pages[0].route in ("text", "layout")


@pytest.mark.parametrize("name", RECOGNISED)
def test_every_page_of_a_scan_is_recognised(name: str, context: ReadContext) -> None:
    """Behaviours 1, 6 and 11."""
    document = read_pdf((DOCUMENTS / name).read_bytes(), context)
    assert {page.route for page in document.pages} == {"ocr"}
    assert all("recognised text" in page.text for page in document.pages)


def test_font_with_broken_map_is_read_or_recognised(context: ReadContext) -> None:
    """Behaviour 4."""
    [page] = read_pdf((DOCUMENTS / "pdf/habibi.pdf").read_bytes(), context).pages
    assert page.signals.unmapped_share > 0.15
    assert page.blocks


def test_old_layer_of_a_scan_is_doubted(context: ReadContext) -> None:
    """Behaviour 4."""
    [page] = read_pdf((DOCUMENTS / "pdf/pdf-with-ocr-text.pdf").read_bytes(), context).pages
    assert page.signals.image_coverage > 0.9
    assert page.signals.invisible_characters > 800
    assert page.signals.word_likeness < 0.95  # "iseorty ttsrootj saifii, GROTE, n u t, s*r;tiiR"
    assert page.blocks


@pytest.mark.parametrize(
    ("name", "password"),
    [("pdf/password.pdf", "password"), ("pdf/libreoffice-writer-password.pdf", "openpassword")],
)
def test_encrypted_file_opens_with_its_password_only(
    name: str, password: str, context: ReadContext
) -> None:
    """Behaviour 10."""
    content = (DOCUMENTS / name).read_bytes()
    with pytest.raises(StageError, match="parse: encrypted"):
        read_pdf(content, context)
    document = read_pdf(content, replace(context, passwords=(password,)))
    assert len(document.pages[0].text) > 10
