"""Form fields as text in place, and annotations as notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingest.pdf.base import Annotation, FormField, PageContent, TextLine, TextSpan
from ingest.pdf.geometry import bounds, holds_centre
from ragplane.core.schema import BBox, Note

_BESIDE_POINTS = 40.0


def with_fields(content: PageContent, fields: Sequence[FormField]) -> PageContent:
    """The content with each field's value as a line, beside its label where there is one.

    What the file draws inside a field (a value, a tick) gives way to it.
    """
    lines = without_text_in(content.lines, [field.bbox for field in fields])
    for field in fields:
        if field.text.strip():
            _insert(lines, field)
    return replace(content, lines=lines)


def without_text_in(lines: Sequence[TextLine], boxes: Sequence[BBox]) -> list[TextLine]:
    """The lines without the spans whose centre is in one of the boxes."""
    kept = []
    for line in lines:
        spans = [s for s in line.spans if not any(holds_centre(box, s.bbox) for box in boxes)]
        if len(spans) == len(line.spans):
            kept.append(line)
        elif spans:
            kept.append(replace(line, spans=spans, bbox=bounds(span.bbox for span in spans)))
    return kept


def _insert(lines: list[TextLine], field: FormField) -> None:
    """Put the field's line next to the line beside it, so that label and value read as one."""
    beside = [(_gap(line.bbox, field.bbox), i) for i, line in enumerate(lines)]
    near = min(((gap, i) for gap, i in beside if gap is not None), default=None)
    if near is None:
        lines.append(_line(field, field.bbox, 0.7 * (field.bbox.y1 - field.bbox.y0)))
        return
    neighbour = lines[near[1]]
    box = BBox(field.bbox.x0, neighbour.bbox.y0, field.bbox.x1, neighbour.bbox.y1)
    line = _line(field, box, neighbour.spans[0].size_points)
    lines.insert(near[1] + (box.x0 > neighbour.bbox.x0), line)


def _gap(line: BBox, field: BBox) -> float | None:
    """Points between a line and a field on one height; None where they are not beside."""
    overlap = min(line.y1, field.y1) - max(line.y0, field.y0)
    gap = max(line.x0, field.x0) - min(line.x1, field.x1)
    beside = overlap > 0.5 * (line.y1 - line.y0) and gap < _BESIDE_POINTS
    return max(gap, 0.0) if beside else None


def _line(field: FormField, box: BBox, size: float) -> TextLine:
    text = " ".join(field.text.split()) + " "
    span = TextSpan(text, box, "form field", size, False, False, 0, True)
    return TextLine([span], box)


def annotation_notes(annotations: Sequence[Annotation]) -> tuple[Note, ...]:
    """One note for each annotation: its kind and its words."""
    return tuple(
        Note("annotation", f"{found.kind}: {' '.join(found.text.split())}", found.bbox)
        for found in annotations
    )


def without_annotations(content: PageContent, annotations: Sequence[Annotation]) -> PageContent:
    """The content without the words of annotations that the engine draws on the page."""
    kept: list[TextLine] = []
    for line in content.lines:
        text = "".join(span.text for span in line.spans).strip()
        drawn = any(
            holds_centre(found.bbox, line.bbox) and text and text in found.text
            for found in annotations
        )
        if not drawn:
            kept.append(line)
    return replace(content, lines=kept)
