"""PDF pages with known truth: columns, headings, tables, furniture, in English and German.

A page is written by a `PageWriter`; `document` fills whole ones by a seed. All text is made from
the sentences below, so that the truth knows every character, the order and every cell.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal

import pymupdf

Kind = Literal["heading", "paragraph", "table", "furniture"]
Rows = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Item:
    """One piece of a page. `rows` are the cells of a table; the first row is its header."""

    kind: Kind
    text: str
    rows: Rows = ()


@dataclass(frozen=True, slots=True)
class PageTruth:
    """What a page says, in reading order."""

    items: tuple[Item, ...]

    @property
    def text(self) -> str:
        """All but the furniture, an item a line; the cells of a row are parted by spaces."""
        return "\n".join(item.text for item in self.items if item.kind != "furniture")

    @property
    def every_text(self) -> str:
        """The text with the furniture, where it stands."""
        return "\n".join(item.text for item in self.items)

    def of(self, kind: Kind) -> list[Item]:
        """The items of one kind."""
        return [item for item in self.items if item.kind == kind]


@dataclass(frozen=True, slots=True)
class Style:
    """How a page is set; lengths in points. Fonts are names of the 14 that every reader has."""

    columns: int = 1
    size_points: float = 10.0
    font: str = "helv"
    bold: str = "hebo"
    language: Literal["en", "de"] = "en"
    width_points: float = 595.0
    height_points: float = 842.0
    margin_points: float = 64.0
    gutter_points: float = 22.0
    leading: float = 1.4

    @property
    def column_points(self) -> float:
        """The width of a column."""
        room = self.width_points - 2 * self.margin_points
        return (room - self.gutter_points * (self.columns - 1)) / self.columns


@dataclass
class PageWriter:
    """Sets items down the columns of a page and keeps the truth.

    An item that does not fit is left out, and `full` is true from then on.
    """

    page: Any
    style: Style
    items: list[Item] = field(default_factory=list)
    full: bool = False

    def __post_init__(self) -> None:
        self._top = self.style.margin_points
        self._y = self._top
        self._column = 0

    def title(self, text: str) -> None:
        """A heading over all columns; the columns begin below it."""
        self._y = self._top
        width = self.style.width_points - 2 * self.style.margin_points
        self._heading(text, 1.9 * self.style.size_points, width)
        self._top = self._y

    def heading(self, text: str) -> None:
        """A bold line or two in the column."""
        size = 1.3 * self.style.size_points
        if self._makes_room(5 * size * self.style.leading):  # some text must follow it
            self._heading(text, size, self.style.column_points)

    def paragraph(self, text: str) -> None:
        """Running text; it goes on in the next column where this one ends."""
        size, step = self.style.size_points, self.style.size_points * self.style.leading
        set_words: list[str] = []
        for line in wrap(text, self.style.font, size, self.style.column_points):
            if not self._makes_room(step):
                break
            self._line(line, self._x, self.style.font, size)
            self._y += step
            set_words.append(line)
        if set_words:
            self.items.append(Item("paragraph", " ".join(set_words)))
        self._y += 0.7 * step

    def table(self, rows: Rows, *, ruled: bool) -> None:
        """Cells of one line each, with or without rules around them."""
        size, step = self.style.size_points, 1.9 * self.style.size_points
        if not self._makes_room(step * (len(rows) + 0.5)):
            return
        width = self.style.column_points / len(rows[0])
        top = self._y
        for row, cells in enumerate(rows):
            for column, cell in enumerate(cells):
                x, y = self._x + column * width, top + row * step
                font = self.style.font if row else self.style.bold
                self._y = y + 0.3 * size
                self._line(cell, x + 4, font, size)
                if ruled:
                    self.page.draw_rect(pymupdf.Rect(x, y, x + width, y + step), width=0.7)
        self._y = top + step * (len(rows) + 0.5)
        self.items.append(Item("table", "\n".join(" ".join(row) for row in rows), rows))

    def furniture(self, header: str, footer: str) -> None:
        """A running head and foot; both stand outside the columns."""
        kept = self._y
        for place, text, y in ((0, header, 26.0), (len(self.items), footer, -38.0)):
            self._y = y % self.style.height_points
            self._line(text, self.style.margin_points, self.style.font, 9)
            self.items.insert(place + (y < 0), Item("furniture", text))
        self._y = kept

    @property
    def _x(self) -> float:
        step = self.style.column_points + self.style.gutter_points
        return self.style.margin_points + self._column * step

    def _makes_room(self, height: float) -> bool:
        """Whether `height` fits here or at the top of the next column, which is entered then."""
        if self._y + height > self.style.height_points - self.style.margin_points:
            self._column += 1
            self._y = self._top
        self.full = self.full or self._column >= self.style.columns
        return not self.full

    def _heading(self, text: str, size: float, width: float) -> None:
        for line in wrap(text, self.style.bold, size, width):
            self._line(line, self._x, self.style.bold, size)
            self._y += 1.25 * size
        self._y += 0.5 * size
        self.items.append(Item("heading", text))

    def _line(self, text: str, x: float, font: str, size: float) -> None:
        self.page.insert_text((x, self._y + size), text, fontname=font, fontsize=size)


def wrap(text: str, font: str, size: float, width: float) -> list[str]:
    """`text` in lines no wider than `width` points, broken at spaces."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and pymupdf.get_text_length(longer, fontname=font, fontsize=size) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def document(
    seed: int,
    *,
    pages: int = 1,
    style: Style | None = None,
    tables: Literal["none", "ruled", "unruled"] = "none",
    furniture: bool = True,
) -> tuple[bytes, tuple[PageTruth, ...]]:
    """A PDF of full pages with a title, headings and, where asked, a table each."""
    style = style or Style()
    random = Random(seed)
    truths = []
    with pymupdf.open() as pdf:
        for number in range(1, pages + 1):
            page = pdf.new_page(width=style.width_points, height=style.height_points)
            writer = PageWriter(page, style)
            _fill(writer, random, tables)
            if furniture:
                writer.furniture(f"Harbour office report {seed}", f"Page {number} of {pages}")
            truths.append(PageTruth(tuple(writer.items)))
        return pdf.tobytes(), tuple(truths)


def _fill(writer: PageWriter, random: Random, tables: str) -> None:
    writer.title(_heading(random))
    if tables != "none":
        writer.paragraph(paragraph(random, writer.style.language, 2))
        columns = 3 if writer.style.columns == 1 else 2
        writer.table(table(random, rows=7, columns=columns), ruled=tables == "ruled")
    while not writer.full:
        writer.heading(_heading(random))
        for _ in range(random.randint(1, 3)):
            writer.paragraph(paragraph(random, writer.style.language, random.randint(2, 5)))


def paragraph(random: Random, language: str, sentences: int) -> str:
    """Sentences of the language with other numbers, dates and names each time."""
    templates = _ENGLISH if language == "en" else _GERMAN
    return " ".join(
        template.format(
            n=random.randint(2, 980),
            money=f"{random.randint(1, 99)},{random.randint(100, 999)}.{random.randint(10, 99)}",
            year=random.randint(1950, 2040),
            name=random.choice(_NAMES),
            place=random.choice(_PLACES),
        )
        for template in random.sample(templates, sentences)
    )


def table(random: Random, *, rows: int, columns: int) -> Rows:
    """A header and rows: a name, then numbers and short words."""
    header = ("Berth", "Tonnes", "State", "Since")[:columns]
    names = random.sample(_PLACES, rows)
    makers = (
        lambda: f"{random.randint(1, 99)},{random.randint(100, 999)}",
        lambda: random.choice(("open", "closed", "under repair", "reserved")),
        lambda: str(random.randint(1950, 2040)),
    )
    body = tuple((name, *(make() for make in makers[: columns - 1])) for name in names)
    return (header, *body)


def _heading(random: Random) -> str:
    return f"{random.choice(_TOPICS)} at {random.choice(_PLACES)}"


_NAMES = ("Anna Lindqvist", "J. Okafor", "Peter Weiß", "Zoë Martin", "M. Grünwald", "René Côté")
_PLACES = (
    "Northern Quay", "Skagen", "Lübeck", "Ystad", "Pier Seven", "Göteborg", "Old Mole", "Cuxhaven",
    "Aarhus", "Rönne",
)  # fmt: skip
_TOPICS = ("Dredging works", "Repairs", "Traffic", "Weather damage", "Crane service", "Storage")
_ENGLISH = (
    "The harbour master recorded {n} arrivals between March and October {year}.",
    "Repairs to the eastern wall cost {money} euros, which was less than the board had feared.",
    "{name} signed the agreement on behalf of the pilots at {place}.",
    "No vessel longer than {n} metres may enter without a tug; smaller craft keep to the south.",
    "Fog delayed the ferry for {n} minutes, yet every passenger reached the evening train.",
    "In {year} the lighthouse was fitted with a lamp that can be seen from {place}.",
    "The committee asked {name} whether the crane (built in {year}) could lift {n} tonnes.",
    "Water samples are taken twice a week, and the results are published within {n} hours.",
    "A fee of {money} is due for each berth, payable before the end of the quarter.",
    '"We shall rebuild the quay," said {name}, "even if it takes {n} days."',
    "The storm of {year} broke two moorings and flooded the cellar of the customs house.",
    "Storage is limited: {n} pallets are kept dry, the rest stand under canvas at {place}.",
)
_GERMAN = (
    "Der Hafenmeister zählte im Jahr {year} genau {n} Schiffe, darunter größere Frachter.",
    "Die Prüfung der Kaimauer übernimmt {name}; das Ergebnis liegt in {n} Tagen vor.",
    "Für die Überfahrt nach {place} gelten ermäßigte Gebühren von {money} Euro.",
    "Bei Nebel müssen alle Boote außerhalb der Fahrrinne {n} Minuten warten.",
    "Das Gebäude wurde {year} während der Sturmflut stark beschädigt und später erhöht.",
    "Öl darf nur an den dafür vorgesehenen Plätzen abgefüllt werden.",
    "{name} erklärte, die Brücke könne höchstens {n} Tonnen tragen.",
    "Schlüssel für das Lagerhaus erhält man gegen Unterschrift beim Büro in {place}.",
)
