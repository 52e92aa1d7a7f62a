"""Make the sample documents from the content files: `python -m pipelines.sample.build`."""

import argparse
from collections.abc import Callable
from pathlib import Path

from pipelines.sample import documents_dir
from pipelines.sample.layout import Style, pdf_bytes, typeset
from pipelines.sample.markup import Block, parse
from pipelines.sample.office import docx_bytes
from pipelines.sample.scan import Wear, photographed, scanned

CONTENT = Path(__file__).parent / "content"

SEED = 2031

HANDBOOK = Style(width=482, height=680, margin=62, size=10.5, leading=1.46)
DEED = Style(font="tiro", bold="tibo", size=11.5, margin=84, leading=1.5)
SHEET = Style(size=10, margin=70)
PAPER = Style(font="tiro", bold="tibo", size=12, columns=2, margin=56, title_size=26)
TYPED = Style(font="cour", bold="cobo", size=11.5, margin=80, leading=1.55, title_size=16)
LETTER = Style(font="tiro", bold="tibo", size=13, margin=84, leading=1.5, title_size=17)
CARD = Style(width=420, height=330, margin=34, size=14, title_size=19)

Maker = Callable[[list[Block], str], bytes]


def running(style: Style, header: str, footer: str = "Page {page}") -> Style:
    """The style with running lines."""
    return Style(**{**vars(style), "header": header, "footer": footer})


def born_digital(style: Style) -> Maker:
    """A maker of PDFs with a text layer."""
    return lambda blocks, title: pdf_bytes(typeset(blocks, style), title)


def image_only(style: Style, wear: Wear, seed: int) -> Maker:
    """A maker of PDFs that hold nothing but page images."""

    def make(blocks: list[Block], title: str) -> bytes:
        return pdf_bytes(scanned(typeset(blocks, style), wear, seed), title)

    return make


def photo(style: Style, seed: int) -> Maker:
    """A maker of photographs."""
    return lambda blocks, _: photographed(typeset(blocks, style), seed)


SITE = "Ossivar Ridge Observatory"

MAKERS: dict[str, Maker] = {
    "operations-manual.pdf": born_digital(
        running(HANDBOOK, f"{SITE} - Operations Manual, issue 7", "ORO-OM-7 - Page {page}")
    ),
    "safety-guide.pdf": born_digital(
        running(HANDBOOK, f"{SITE} - Safety Guide", "Safety Guide 2031 - Page {page}")
    ),
    "maintenance-contract.pdf": born_digital(running(DEED, "Maintenance Contract MC-3104")),
    "telescope-time-agreement.pdf": born_digital(running(DEED, "Telescope-Time Agreement TT-58")),
    "price-list-2030.pdf": born_digital(running(SHEET, "Brennick & Soehl - Price List 2030")),
    "price-list-2031.pdf": born_digital(running(SHEET, "Brennick & Soehl - Price List 2031")),
    "newsletter-spring-2031.pdf": born_digital(
        running(PAPER, "The Ridge Lantern - spring 2031", "The Ridge Lantern - {page}")
    ),
    "inspection-report-scan.pdf": image_only(running(TYPED, ""), Wear(), SEED),
    "letter-scan.pdf": image_only(LETTER, Wear(skew=0.7, turns=1), SEED + 1),
    "notice-board.jpg": photo(CARD, SEED + 2),
    "minutes-time-committee.docx": docx_bytes,
    "minutes-works-committee.docx": docx_bytes,
}

COPIES = ("lab-notes-spinel.md", "lab-notes-spindle.md", "night-log.txt", "visitor-page.html")


def build(out: Path) -> None:
    """Write every document into `out`."""
    out.mkdir(parents=True, exist_ok=True)
    for name, make in MAKERS.items():
        blocks = parse((CONTENT / name).with_suffix(".md").read_text(encoding="utf-8"))
        title = next(block.text for block in blocks if block.kind == "heading")
        (out / name).write_bytes(make(blocks, title))
    for name in COPIES:
        (out / name).write_bytes((CONTENT / name).read_bytes())


def main() -> None:
    """Parse the command line and build."""
    parser = argparse.ArgumentParser(description="Build the sample documents.")
    parser.add_argument("--out", type=Path, default=documents_dir())
    build(parser.parse_args().out)


if __name__ == "__main__":
    main()
