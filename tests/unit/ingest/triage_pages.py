"""PDF pages of many kinds, each labelled with the route that a person would send it.

A kind is written once and drawn by seed: sizes, fonts, lengths and places differ from page to
page. `text` is the label wherever the text layer is the truth and our own functions put it in
order; `layout` only for tables without rules and forms that fill the page; `ocr` wherever something
that reads like text is not in the layer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

import numpy as np
import pymupdf

from ragplane.core.schema import Route
from tests.unit.ingest.arabic import SENTENCES as ARABIC
from tests.unit.ingest.arabic import arabic, by_letters
from tests.unit.ingest.pages import Style, document, paragraph
from tests.unit.ingest.pdf.conftest import picture
from tests.unit.ingest.scans import render

Draw = Callable[[Any, Random], None]
Make = Callable[[Random], bytes]
DPI = 50.0
_WIDTH, _HEIGHT = 595.0, 842.0


@dataclass(frozen=True, slots=True)
class PageKind:
    """Pages of one kind: the right route, and a maker of a PDF of one such page by seed."""

    name: str
    route: Route
    make: Make


def drawn(*draws: Draw) -> Make:
    """A page with these things on it, the later over the earlier."""

    def make(random: Random) -> bytes:
        with pymupdf.open() as pdf:
            page = pdf.new_page(width=_WIDTH, height=_HEIGHT)
            for draw in draws:
                draw(page, random)
            content: bytes = pdf.tobytes()
        return content

    return make


# Pages whose text is the truth


def columns(count: int, tables: Literal["none", "ruled", "unruled"] = "none") -> Make:
    """A full page of headings, paragraphs and furniture, perhaps with a table."""

    def make(random: Random) -> bytes:
        style = Style(
            columns=count,
            size_points=random.choice((8, 9, 10, 11)) if count > 1 else random.choice((9, 10, 12)),
            font=random.choice(("helv", "tiro")),
            language=random.choice(("en", "de")),
            gutter_points=random.choice((14, 18, 22, 28)),
            margin_points=random.choice((42, 56, 64, 72)),
        )
        furnished = random.random() < 0.7
        return document(random.randrange(9999), style=style, tables=tables, furniture=furnished)[0]

    return make


def lines(page: Any, random: Random, count: int = 0, top: float = 90, size: float = 10) -> None:
    """Running text of `count` lines, or of a few to many."""
    for row in range(count or random.randint(8, 45)):
        line = paragraph(random, "en", 2)[:90]
        page.insert_text((72, top + 1.4 * size * row), line, fontsize=size)


def title(page: Any, random: Random) -> None:
    """Some large words in the middle of the page."""
    for row, text in enumerate(("Annual report", "of the harbour board", "2031")):
        if row <= random.randrange(3):
            page.insert_text((random.randint(72, 200), 300 + 50 * row), text, fontsize=30)


def script(*texts: str) -> Draw:
    """Paragraphs in a script, right to left where it is written so."""

    def draw(page: Any, random: Random) -> None:
        body = "".join(
            f'<p dir="auto">{" ".join(random.choices(texts, k=random.randint(3, 8)))}</p>'
            for _ in range(random.randint(2, 5))
        )
        page.insert_htmlbox(pymupdf.Rect(72, 72, 520, 760), body)

    return draw


def code(page: Any, random: Random) -> None:
    """A listing with line numbers."""
    for row in range(random.randint(12, 50)):
        line = random.choice(_CODE).format(n=random.randint(0, 99))
        page.insert_text((72, 80 + 13 * row), f"{row + 1:3} {line}", fontname="cour", fontsize=9)


def contents(page: Any, random: Random) -> None:
    """Titles, dots, page numbers."""
    for row in range(random.randint(10, 35)):
        entry = f"{row + 1}.{random.randint(1, 9)} {paragraph(random, 'de', 1)[:38]}"
        page.insert_text((72, 90 + 19 * row), f"{entry} {'.' * random.randint(20, 60)} {3 * row}")


def figures(page: Any, random: Random) -> None:
    """Numbers and codes, no words."""
    for row in range(random.randint(20, 50)):
        cells = [f"{random.randint(1, 99999):,}.{random.randint(10, 99)}" for _ in range(4)]
        page.insert_text((72, 80 + 14 * row), "  ".join((f"AX-{row:04}", *cells)), fontname="cour")


def formulas(page: Any, random: Random) -> None:
    """Prose with formulas between."""
    lines(page, random, 6)
    for row in range(random.randint(4, 12)):
        page.insert_text((120, 200 + 30 * row), random.choice(_FORMULAS), fontname="tiit")
    lines(page, random, 8, top=600)


def labelled_drawing(page: Any, random: Random) -> None:
    """A dense drawing with words at its parts."""
    curves(page, random)
    for _ in range(random.randint(6, 25)):
        place = random.randint(72, 460), random.randint(100, 760)
        page.insert_text(place, random.choice(("Pump", "Valve 3", "Main shaft", "Relay K2")))


def slide(page: Any, random: Random) -> None:
    """A coloured ground, bars, a heading and points."""
    page.draw_rect(page.rect, color=None, fill=(0.9, 0.95, 1))
    page.insert_text((60, 120), "Arrivals by quarter", fontsize=28)
    for row in range(random.randint(2, 6)):
        page.draw_rect((60, 400 + 40 * row, 150 + 50 * row, 425 + 40 * row), fill=(0.2, 0.4, 0.7))
        page.insert_text((60, 180 + 30 * row), f"• {paragraph(random, 'en', 1)[:50]}", fontsize=16)


def form(page: Any, random: Random) -> None:
    """Labels, rules to write on, and filled fields."""
    for row in range(random.randint(8, 20)):
        y = 100 + 32 * row
        page.insert_text((72, y), random.choice(("Name", "Date of birth", "Street", "Berth no.")))
        page.draw_line((180, y + 3), (480, y + 3))
        widget = pymupdf.Widget()
        widget.field_name, widget.field_type = f"f{row}", pymupdf.PDF_WIDGET_TYPE_TEXT
        widget.rect, widget.field_value = pymupdf.Rect(182, y - 12, 478, y + 2), f"Value {row}"
        page.add_widget(widget)


def unmapped(page: Any, random: Random) -> None:
    """Bullets of the private use area among good text: signs that have no character."""
    lines(page, random, 20)
    page.insert_htmlbox(
        (72, 420, 500, 700), "<p>\ue000 one</p><p>\ue001 two</p><p>\ufffd three</p>"
    )


def photo(x0: float, y0: float, x1: float, y1: float) -> Draw:
    """A picture without text, its corners jittered."""

    def draw(page: Any, random: Random) -> None:
        grain = np.random.default_rng(random.randrange(99)).integers(0, 255, (40, 30, 3), np.uint8)
        shift = random.randint(0, 20)
        picture((x0 + shift, y0 + shift, x1, y1), grain)(page)

    return draw


def caption(page: Any, random: Random) -> None:
    """A line under a picture."""
    page.insert_text((72, 700), f"Fig. {random.randint(1, 9)}: {paragraph(random, 'en', 1)[:55]}")


def scrap(page: Any, random: Random) -> None:
    """A scanned piece of a page: an image with printed lines."""
    top = random.randint(330, 420)
    [image] = render(drawn(lambda page, random: lines(page, random, 40))(random), DPI)
    picture((72, top, 520, top + random.randint(180, 300)), image[40:280, 40:360])(page)


def turn(page: Any, random: Random) -> None:
    """Set /Rotate."""
    page.set_rotation(random.choice((90, 180, 270)))


def grid(page: Any, random: Random) -> None:
    """A table without rules over the whole page."""
    width = random.choice((5, 6))
    for row in range(random.randint(18, 45)):
        for column in range(width):
            text = f"{random.choice(('ware', 'mast', 'rope'))} {random.randint(1, 99)}"
            page.insert_text((60 + 480 / width * column, 80 + 15 * row), text, fontsize=9)


def boxes(page: Any, random: Random) -> None:
    """A tax form: small boxes everywhere, each with a label."""
    for row in range(random.randint(28, 34)):
        for column in range(4):
            x, y = 50 + 125 * column + 3 * (row % 5), 60 + 22 * row
            page.draw_rect((x, y, x + 110, y + 17))
            page.insert_text((x + 2, y + 12), f"{row}{'abcd'[column]} amount", fontsize=6)


def curves(page: Any, random: Random) -> None:
    """Shapes that may be letters drawn as outlines."""
    shape = page.new_shape()
    for _ in range(random.randint(120, 600)):
        x, y = random.randint(72, 500), random.randint(80, 760)
        shape.draw_bezier((x, y), (x + 3, y - 6), (x + 5, y + 6), (x + 6, y))
        shape.finish()
    shape.commit()


_CODE = (
    "def read_{n}(path: str):", "    if x[{n}] != y: return None", "    for i in range({n}):",
    "        total += a[i] * b[i] ** 2", "    #  {n} is the answer", "    raise ValueError(f'{n}')",
    "}}", "    while (p = strchr(p, '{n}')) {{ p++; }}", "    const int k = ~(m ^ 0x{n});",
)  # fmt: skip
_FORMULAS = (
    "f(x) = a x² + b x + c", "E = m c²", "P(A | B) = P(A and B) / P(B)", "x(i+1) = x(i) - f/f'",
    "|| u - v || < d(k) for k > n", "dy/dt = - r y (1 - y/K)",
)  # fmt: skip
_EASTERN = script(
    "素早い茶色の狐が犬を飛び越える。", "港の記録は毎年公開される。", "2031年の報告書"
)
_CHINESE = script("港口每年公布记录。", "委员会批准了新的码头。", "雾使渡轮延误了三十分钟。")
_HEBREW = script("הנמל פתוח כל יום.", "הוועדה אישרה את הרציף החדש בשנת 2031.")


def arabic_page(*, letters: bool) -> Make:
    """A page of Arabic whose layer has presentation forms, or the plain letters."""

    def make(random: Random) -> bytes:
        content = drawn(_arabic)(random)
        return by_letters(content) if letters else content

    return make


def _arabic(page: Any, random: Random) -> None:
    arabic(*random.choices(ARABIC, k=random.randint(4, 25)))(page)


_CYRILLIC = script("Начальник порта записал прибытие.", "Туман задержал паром.", "Склад закрыт.")
_WESTERN = script(
    "Zażółć gęślą jaźń w porcie.", "Příliš žluťoučký kůň úpěl.", "Gemi limana geldi, sis vardı."
)

READABLE = (
    PageKind("prose", "text", columns(1)),
    PageKind("two columns", "text", columns(2)),
    PageKind("three columns", "text", columns(3)),
    PageKind("ruled table", "text", columns(1, "ruled")),
    PageKind("table without rules among prose", "text", columns(1, "unruled")),
    PageKind("form", "text", drawn(form)),
    PageKind("title page", "text", drawn(title)),
    PageKind("contents", "text", drawn(contents)),
    PageKind("figures", "text", drawn(figures)),
    PageKind("formulas", "text", drawn(formulas)),
    PageKind("code", "text", drawn(code)),
    PageKind("slide", "text", drawn(slide)),
    PageKind("Japanese", "text", drawn(_EASTERN)),
    PageKind("Chinese", "text", drawn(_CHINESE)),
    PageKind("Hebrew", "text", drawn(_HEBREW)),
    PageKind("Arabic in presentation forms", "text", arabic_page(letters=False)),
    PageKind("Arabic in letters", "text", arabic_page(letters=True)),
    PageKind("Cyrillic", "text", drawn(_CYRILLIC)),
    PageKind("Polish, Czech, Turkish", "text", drawn(_WESTERN)),
    PageKind("few unmapped glyphs", "text", drawn(unmapped)),
    PageKind("rotated page", "text", drawn(lines, turn)),
    PageKind("text with a scanned region", "text", drawn(lambda p, r: lines(p, r, 16), scrap)),
    PageKind("photograph and caption", "text", drawn(photo(72, 80, 520, 680), caption)),
    PageKind("text over a background", "text", drawn(photo(0, 0, 595, 842), lines)),
    PageKind("drawing with labels", "text", drawn(labelled_drawing)),
    PageKind("table without rules over the page", "layout", drawn(grid)),
    PageKind("intricate form", "layout", drawn(boxes)),
)
