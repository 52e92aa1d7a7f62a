"""PDF pages: routes, order, tables, rotation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pymupdf
import pytest

from ingest.ocr import OcrLine, Pixels
from ingest.parsed import ParsedDocument, RawPage
from ingest.readers.base import ReadLimits
from ragplane.core.errors import StageError
from ragplane.core.schema import Page
from tests.unit.ingest.readers.engines import Second, SidewaysEngine

Draw = Callable[[Any], None]
Text = Callable[..., Draw]
MakePdf = Callable[..., bytes]
Read = Callable[..., ParsedDocument]

BODY = "The lamp stands on the desk and shines all night."


def texts(page: Page) -> list[str]:
    return [block.text for block in page.blocks]


def blank(page: Any) -> None:
    """Draws nothing."""


def all_of(*draws: Draw) -> Draw:
    def draw(page: Any) -> None:
        for one in draws:
            one(page)

    return draw


# Routes


def test_each_page_takes_its_own_route(
    make_pdf: MakePdf, read: Read, text: Text, scan: Draw, ocr: Any
) -> None:
    """Behaviour 1."""
    document = read(make_pdf(text(BODY), blank, scan, text(BODY)))
    assert document.mime == "application/pdf"
    assert [(page.number, page.route) for page in document.pages] == [
        (1, "text"),
        (2, "blank"),
        (3, "ocr"),
        (4, "text"),
    ]
    assert [texts(page) for page in document.pages] == [
        [BODY],
        [],
        ["recognised text"],
        [BODY],
    ]
    assert len(ocr.images) == 1
    assert all(page.reason for page in document.pages)


def test_file_whose_first_page_has_text_and_whose_others_are_scans_is_read_to_the_end(
    make_pdf: MakePdf, read: Read, text: Text, scan: Draw
) -> None:
    """Behaviour 6."""
    document = read(make_pdf(text(BODY), scan, scan, scan))
    assert [page.route for page in document.pages] == ["text", "ocr", "ocr", "ocr"]
    assert all(page.blocks for page in document.pages)


GOOD_LAYER = "The quick brown fox jumps over the lazy dog beside the old river bank."
JUNK_LAYER = "Tlf qvck brvvn f0x jnmps c~er thc lzy d|g bs1de tlc 0ld rvr bnk ~#;: xqz"


@pytest.mark.parametrize("under", [False, True], ids=["invisible", "under the image"])
@pytest.mark.parametrize(("layer", "route"), [(GOOD_LAYER, "text"), (JUNK_LAYER, "ocr")])
def test_layer_of_a_scan_is_read_if_it_reads_like_words(
    under: bool, layer: str, route: str, make_pdf: MakePdf, read: Read, text: Text, scan: Draw
) -> None:
    """Behaviour 4."""
    draws = [text(layer), scan] if under else [scan, text(layer, render_mode=3)]
    [page] = read(make_pdf(all_of(*draws))).pages
    letters = len(layer.replace(" ", ""))
    measured = page.signals.characters_under_image, page.signals.invisible_characters
    assert measured == ((letters, 0) if under else (0, letters))
    assert page.route == route
    assert texts(page) == [layer if route == "text" else "recognised text"]
    assert page.notes == ()


def test_text_over_a_background_image_is_read(
    make_pdf: MakePdf, read: Read, text: Text, scan: Draw
) -> None:
    lines = [text(f"{BODY} {number}", y=100 + 14 * number) for number in range(3)]
    [page] = read(make_pdf(all_of(scan, *lines))).pages
    assert page.route == "text"
    assert page.signals.image_coverage == pytest.approx(1)


def test_letters_drawn_as_shapes_are_recognised(make_pdf: MakePdf, read: Read) -> None:
    def outlines(page: Any) -> None:
        for number in range(80):
            x, y = 72 + 5 * (number % 40), 100 + 20 * (number // 40)
            page.draw_line((x, y), (x + 3, y + 9))

    [page] = read(make_pdf(outlines)).pages
    assert page.route == "ocr"


def test_page_is_rendered_at_150_dpi_or_less_where_it_is_huge(
    make_pdf: MakePdf, read: Read, scan: Draw, ocr: Any
) -> None:
    """Behaviour 10."""
    read(make_pdf(scan, size=(144, 288)))
    read(make_pdf(scan, size=(14000, 14000)))
    small, huge = (image.shape for image in ocr.images)
    assert small == (600, 300, 3)
    assert 10_000_000 < huge[0] * huge[1] <= 12_100_000


# Text


def test_columns_headings_and_lines(make_pdf: MakePdf, read: Read, text: Text) -> None:
    left = [text(f"left line {number} of the page", 72, 150 + 12 * number) for number in range(4)]
    right = [
        text(f"right line {number} of the page", 330, 150 + 12 * number) for number in range(4)
    ]
    [page] = read(make_pdf(all_of(*right, *left, text("Two Columns", y=100, fontsize=20)))).pages
    assert [(block.kind, block.level) for block in page.blocks] == [
        ("heading", 1),
        ("paragraph", 0),
        ("paragraph", 0),
    ]
    assert texts(page)[0] == "Two Columns"
    assert texts(page)[1].startswith("left line 0 of the page left line 1")
    assert texts(page)[2].startswith("right line 0 of the page right line 1")


def test_underline_in_the_middle_of_a_line_does_not_cut_the_paragraph(
    make_pdf: MakePdf, read: Read
) -> None:
    """Behaviour 12."""

    def underlined(page: Any) -> None:
        x = 72.0
        for words in ("The lamp stands on the ", "old desk", " and shines all night long, so"):
            page.insert_text((x, 100), words, fontsize=11)
            end = x + pymupdf.get_text_length(words, fontsize=11)
            if words == "old desk":
                page.draw_line((x, 101.5), (end, 101.5), width=0.5)
            x = end
        page.insert_text(
            (72, 114), "that everybody in the street can read by its light.", fontsize=11
        )

    [page] = read(make_pdf(underlined)).pages
    assert texts(page) == [
        "The lamp stands on the old desk and shines all night long, so "
        "that everybody in the street can read by its light."
    ]


def test_bold_and_monospaced_lines_are_told_apart(
    make_pdf: MakePdf, read: Read, text: Text
) -> None:
    [page] = read(
        make_pdf(
            all_of(
                text("Set up", y=100, fontname="hebo"),
                text(BODY, y=130),
                text("run --fast", y=160, fontname="cour"),
            )
        )
    ).pages
    assert [block.kind for block in page.blocks] == ["heading", "paragraph", "code"]


@pytest.mark.parametrize(
    ("metadata", "name", "title"),
    [
        ({"title": "  The  Manual "}, "a.pdf", "The Manual"),
        ({}, "year-report_2031.pdf", "year report 2031"),
    ],
)
def test_title_is_the_metadatas_or_the_name(
    metadata: dict[str, str],
    name: str,
    title: str,
    make_pdf: MakePdf,
    read: Read,
    text: Text,
) -> None:
    def draw(page: Any) -> None:
        text(BODY)(page)
        page.parent.set_metadata(metadata)

    assert read(make_pdf(draw), name).title == title


# Tables


def grid(rows: Sequence[Sequence[str]], x: float, y: float) -> Draw:
    def draw(page: Any) -> None:
        for r in range(len(rows) + 1):
            page.draw_line((x, y + 20 * r), (x + 200, y + 20 * r))
        for c in range(3):
            page.draw_line((x + 100 * c, y), (x + 100 * c, y + 20 * len(rows)))
        for r, row in enumerate(rows):
            for c, cell in enumerate(row):
                page.insert_text((x + 100 * c + 5, y + 20 * r + 14), cell, fontsize=9)

    return draw


PRICES = [("Item", "Price"), ("Lamp", "12"), ("Desk", "80")]


def test_ruled_table_is_read_between_the_text(make_pdf: MakePdf, read: Read, text: Text) -> None:
    [page] = read(
        make_pdf(all_of(text("Above it.", y=80), grid(PRICES, 72, 100), text("Below it.", y=200)))
    ).pages
    assert texts(page) == [
        "Above it.",
        "| Item | Price |",
        "| Lamp | 12 |",
        "| Desk | 80 |",
        "Below it.",
    ]
    assert {block.header for block in page.blocks if block.kind == "table_row"} == {
        "| Item | Price |"
    }


def test_table_over_a_page_break_is_one_table(make_pdf: MakePdf, read: Read, text: Text) -> None:
    first = all_of(text(BODY, y=100), grid(PRICES, 72, 740))
    second = all_of(grid([("Chair", "30"), ("Shelf", "45")], 72, 60), text("The end.", y=200))
    rows = [block for block in read(make_pdf(first, second)).pages[1].blocks if block.header]
    assert [row.text for row in rows] == ["| Chair | 30 |", "| Shelf | 45 |"]
    assert {row.header for row in rows} == {"| Item | Price |"}


# Rotation


@pytest.mark.parametrize("rotation", [90, 180, 270])
def test_turned_page_is_read_upright_with_boxes_as_shown(
    rotation: int, make_pdf: MakePdf, read: Read
) -> None:
    """Behaviour 11."""

    def turned(page: Any) -> None:
        page.set_rotation(rotation)
        for point, content in (((72, 100), "First line here."), ((72, 160), "Second line here.")):
            place = pymupdf.Point(point) * page.derotation_matrix
            page.insert_text(place, content, rotate=rotation)

    [page] = read(make_pdf(turned)).pages
    assert page.rotation == rotation
    assert (page.width_points, page.height_points) == (
        (595, 842) if rotation == 180 else (842, 595)
    )
    assert texts(page) == ["First line here.", "Second line here."]
    for block, baseline in zip(page.blocks, (100, 160), strict=True):
        assert block.bbox is not None
        assert block.bbox.x0 == pytest.approx(72, abs=2)
        assert block.bbox.y0 < baseline < block.bbox.y1
        assert block.bbox.x1 - block.bbox.x0 > 4 * (block.bbox.y1 - block.bbox.y0)


def test_sideways_scan_keeps_the_size_and_has_the_boxes_of_the_page_as_shown(
    make_pdf: MakePdf, read: Read, scan: Draw
) -> None:
    """Behaviour 11."""
    [page] = read(make_pdf(scan), engine=SidewaysEngine()).pages
    assert page.rotation == 90
    assert (page.width_points, page.height_points) == (595, 842)
    [block] = page.blocks
    assert block.bbox == pytest.approx((4.8, 4.8, 19.2, 842 - 4.8), abs=1)
    assert block.confidence == 0.97


class BlindEngine:
    """Finds nothing, as on letters that it does not know."""

    def recognise(self, image: Pixels) -> list[OcrLine]:
        return []


def test_a_doubtful_layer_is_kept_where_nothing_is_recognised(
    make_pdf: MakePdf, read: Read, text: Text
) -> None:
    """Behaviour 3: degraded, and said so."""
    words = "xq#z ~~kk% zz*q qq^w"
    draw = all_of(*(text(words, y=80 + 20 * row) for row in range(8)))
    [page] = read(make_pdf(draw), engine=BlindEngine()).pages
    assert page.route == "ocr"
    assert "xq#z" in page.text
    assert [note.kind for note in page.notes] == ["degraded"]


def test_recognised_pages_are_handed_to_the_vision_model_upright(
    make_pdf: MakePdf, read: Read, text: Text, scan: Draw
) -> None:
    """Behaviour 3."""
    second = Second()
    pages = read(make_pdf(text(BODY), scan), engine=SidewaysEngine(), vlm=second).pages
    assert [page.route for page in pages] == ["text", "vlm"]
    assert texts(pages[1]) == ["read again"]
    [image] = second.images
    assert image.shape[1] > image.shape[0]  # the page is higher than wide, its scan lies


class BrokenEngine:
    """Fails on every image."""

    def recognise(self, image: Pixels) -> list[OcrLine]:
        raise RuntimeError(f"no memory for {np.prod(image.shape)} bytes")


def test_page_whose_recognition_fails_costs_only_itself(
    make_pdf: MakePdf, read: Read, text: Text, scan: Draw
) -> None:
    """Behaviour 10."""
    first, failed, last = read(make_pdf(text(BODY), scan, text(BODY)), engine=BrokenEngine()).pages
    assert texts(first) == texts(last) == [BODY]
    assert (failed.route, failed.blocks) == ("ocr", ())
    assert isinstance(failed.error, StageError)
    assert (failed.error.stage, failed.error.page) == ("ocr", 2)
    assert "no memory" in failed.error.cause
    assert (first.error, last.error) == (None, None)


def test_text_that_runs_upwards_is_read_upright(make_pdf: MakePdf, read: Read) -> None:
    """Behaviour 11."""

    def sideways(page: Any) -> None:
        for column, content in enumerate(["First line here.", "Second line here."]):
            page.insert_text((100 + 60 * column, 700), content, rotate=90)

    [page] = read(make_pdf(sideways)).pages
    assert (page.rotation, page.width_points, page.height_points) == (90, 595, 842)
    assert texts(page) == ["First line here.", "Second line here."]
    for block, baseline in zip(page.blocks, (100, 160), strict=True):
        assert block.bbox is not None
        assert block.bbox.y1 == pytest.approx(700, abs=2)
        assert block.bbox.x0 < baseline < block.bbox.x1


# Resuming


def test_finished_pages_are_taken_as_they_are_and_the_others_reported(
    make_pdf: MakePdf, read: Read, text: Text, scan: Draw, ocr: Any
) -> None:
    """Behaviour 21."""
    content = make_pdf(text(BODY), scan, text(BODY))
    first_run: list[RawPage] = []
    whole = read(content, on_page=first_run.append)
    assert [raw.number for raw in first_run] == [1, 2, 3]
    second_run: list[RawPage] = []
    resumed = read(
        content, finished={raw.number: raw for raw in first_run[:2]}, on_page=second_run.append
    )
    assert [raw.number for raw in second_run] == [3]
    assert len(ocr.images) == 1
    assert [page.blocks for page in resumed.pages] == [page.blocks for page in whole.pages]


def test_too_many_pages_are_refused_by_name(make_pdf: MakePdf, read: Read, text: Text) -> None:
    """Behaviour 26."""
    content = make_pdf(*[text(BODY)] * 3)
    with pytest.raises(StageError, match="parse: the PDF has 3 pages, the limit is 2"):
        read(content, limits=ReadLimits(pages=2))
    assert len(read(content, limits=ReadLimits(pages=3)).pages) == 3
