"""Public files that people met: each gives the text that it is known to hold."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ragplane.core.errors import StageError
from tests.unit.ingest.conftest import Read

ROOT = Path(__file__).parents[4]
FOLDER = Path(os.environ.get("RAGPLANE_SHARED_DATA", ROOT.parent / "shared" / "data")) / "documents"
KNOWN = {
    "email/email-no-utf8-2008-07-16.062410.eml": ("RE: שלום", "סלבה היקר,"),
    "email/fake-email-attachment.eml": (
        "Here's the attachments!",
        "Hey this is a fake attachment!",
    ),
    "email/fake-email-utf-16.eml": ("Subject: Test Email", "- Violets are blue"),
    "email/mime-different-plain-html.eml": (
        "This is the text/html part.",
        "Ray Tomlinson in 1971?",
    ),
    "email/mime-word-encoded-subject.eml": ("Simple email with ☸☿ Unicode subject",),
    "office/2023-half-year-analyses-by-segment.xlsx": (
        "| Zone NA | 12,553 | 2,713 | 2,632 | -81 | -29 | -44 | -337 |",
        "3.4 Reconciliation from Underlying Trading operating profit",
    ),
    "office/docx-tables.docx": ("| d |  | i |", "| g&t | h |", "| a | b |  |"),
    "office/docx_lists.docx": ("1. List item a", "    - List item 1.2.1", "WEEKEND ERRAND LIST"),
    "office/docx_rich_cells.docx": ("Rich cell A nested table |", "| Cell 1 | Cell 2 | Cell 3 |"),
    "office/duplicate-paragraphs.docx": ("some text\nsome text\nsome text\nsome text",),
    "office/emoji.xlsx": ("🤠😅",),
    "office/empty.xlsx": (),
    "office/fake-power-point-table.pptx": ("| Tangerine | Pink | Aqua |",),
    "office/fake-power-point.pptx": ("    - Use _TextFrame.add_paragraph()", "in a text box!"),
    "office/fake.odt": ("Lorem ipsum dolor sit amet.", "| Leader | Sarah | Mark | Ryan |"),
    "office/fake_table.docx": ("| Lorem ipsum | A Link example |", "Dolor sit amet"),
    "office/handbook-1p.docx": ("A. PURPOSE", "28 U.S.C. § 586(b)."),
    "office/powerpoint_sample.pptx": (
        "|  | Class1 |  |  | Class2 |  |  |",
        "Second line of notes.",
    ),
    "office/pptx_chart.pptx": ("| 2022 | 175 | 130 |", "Quarterly revenue"),
    "office/textbox.docx": ("Student falls ill", "Upon receiving a report from the kindergarten"),
    "office/unit_test_headers_numbered.docx": ("1.1. Section 1.1", "2.3.1. Hardware Constraints"),
    "office/word_tables.docx": ("| Cell 1.0 | Merged Cell 1.1 1.2 |  | Cell 1.3 |",),
    "office/xlsx_01.xlsx": ("Sheet3", "| 8 | 16 | 24 | 32 |", "| 6 | 0 | -6 |"),
    "office/xlsx_07_gap_tolerance_.xlsx": (
        "Functional requirements",
        "| 13 | Humidity | % | : | 100",
    ),
    "text/README.rst": ("The sample docs directory contains the following files:",),
    "text/UDHR_first_article_all.txt": ("在尊严和权利上一律平等", "Дарбанзаалак ауаҩы дшоуп"),
    "text/blocks.md": ("1. bar", "my setext heading level 2"),
    "text/book-war-and-peace-1p.txt": ("so Genoa and Lucca are now just family estates",),
    "text/codeblock.md": ("<h1>Hello, World!</h1>", "<to>Tove</to>"),
    "text/csv-with-long-lines.csv": ("| 1Freq Ki67CD8frequencyUnstim | -0.285021097 | 1 |",),
    "text/fake-text-all-whitespace.txt": (),
    "text/fake-text-utf-16-le.txt": ("Doylestown, PA 18901", "Hamburgers are delicious"),
    "text/fake-text-utf-32.txt": ("Doylestown, PA 18901", "Hamburgers are delicious"),
    "text/wiki.md": ("nicknamed Big Blue", "the highly successful Selectric typewriter"),
    "web/example-10k-1p.html": ("Galaxy Gaming, Inc.", "| Common stock |  | GLXZ |  | OTCQB"),
    "web/example-steelJIS-datasheet-utf-16.html": (
        "日本語",
        "| Grade : | SNB22-3 |",
        "Korean steels",
    ),
    "web/example-with-scripts.html": ("Click here to see ISW’s interactive map", "6:30pm ET"),
    "web/fake-html-cp1252.html": ("L'été était très chaud", "El niño comió", "köttbullar"),
    "web/html_code_snippets.html": ("Code snippets", "print(result.document.export_to_markdown())"),
    "web/ideas-page.html": ("Someone fed my essays into GPT",),
    "web/table_04.html": ("| Some text before list First item Second item Third item | 2... |",),
    "web/wiki_duck.html": ("waterfowl in the family Anatidae", "Duck"),
}
REFUSED = {"text/empty.txt": "parse: the file is empty"}
FOLDERS = ("email", "office", "text", "web")
pytestmark = [
    pytest.mark.shared_data,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="the public files are not there"),
]


@pytest.mark.parametrize("name", KNOWN)
def test_file_gives_its_known_text(name: str, read: Read) -> None:
    """Behaviour 9."""
    path = FOLDER / name
    document = read(path.read_bytes(), path.name)
    text = "\n".join(page.text for page in document.pages)
    assert [piece for piece in KNOWN[name] if piece not in text] == []
    assert bool(text) == bool(KNOWN[name])
    for stored in (document.title, text, *(note.text for note in document.notes)):
        assert "\x00" not in stored
        assert stored.encode("utf-8").decode("utf-8") == stored  # no lone surrogates


@pytest.mark.parametrize("name", REFUSED)
def test_file_is_refused_by_name(name: str, read: Read) -> None:
    """Behaviour 10."""
    with pytest.raises(StageError, match=REFUSED[name]):
        read((FOLDER / name).read_bytes(), name)


def test_every_file_is_known() -> None:
    found = {f"{folder}/{path.name}" for folder in FOLDERS for path in (FOLDER / folder).iterdir()}
    assert found == KNOWN.keys() | REFUSED.keys()
