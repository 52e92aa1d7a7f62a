import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.ledger import codec
from ingest.ledger.codec import decode_page, encode_page
from ingest.parsed import Line, RawPage, Table
from ragplane.core.errors import StageError
from ragplane.core.schema import BBox, Block, Note, PageSignals

_texts = st.text(st.characters(), max_size=12)
_numbers = st.floats(allow_nan=False)
_boxes = st.builds(BBox, _numbers, _numbers, _numbers, _numbers)
_shares = st.floats(0, 1)
_optional = st.none() | _shares
_lines = st.builds(Line, _texts, _boxes, _numbers, st.booleans(), st.booleans(), _optional)
_blocks = st.builds(
    Block,
    kind=st.sampled_from(["heading", "paragraph", "table_row", "code"]),
    text=_texts,
    bbox=st.none() | _boxes,
    level=st.integers(0, 6),
    header=st.none() | _texts,
    confidence=_optional,
)
_signals = st.builds(
    PageSignals,
    characters=st.integers(0),
    words=st.integers(0),
    unmapped_share=_shares,
    image_coverage=_shares,
    drawings=st.integers(0),
)
_rows = st.lists(st.lists(_texts, min_size=2, max_size=2).map(tuple), max_size=3).map(tuple)


def _tuples(items):
    return st.lists(items, max_size=3).map(tuple)


_pages = st.builds(
    RawPage,
    number=st.integers(1, 9),
    width_points=_numbers,
    height_points=_numbers,
    rotation=st.sampled_from([0, 90]),
    route=st.sampled_from(["text", "ocr", "vlm", "blank"]),
    reason=_texts,
    signals=_signals,
    seconds=_numbers,
    paragraphs=_tuples(_tuples(_lines)),
    blocks=_tuples(_blocks),
    tables=_tuples(st.builds(Table, _boxes, _rows)),
    confidence=_optional,
    vlm_tokens=st.integers(0),
    notes=_tuples(
        st.builds(Note, st.sampled_from(["hidden", "degraded"]), _texts, st.none() | _boxes)
    ),
)


@given(_pages)
def test_a_page_survives(page: RawPage) -> None:
    """Behaviour 21."""
    decoded = decode_page(encode_page(page))
    assert decoded == page
    assert repr(decoded) == repr(page)  # the types are the same too


def test_an_error_survives(raw_page) -> None:
    error = StageError("ocr", "no memory", document="file:///a", page=3)
    decoded = decode_page(encode_page(raw_page(3, error=error)))
    assert decoded is not None
    assert decoded.error is not None
    assert vars(decoded.error) == vars(error)


def test_a_page_of_other_types_counts_as_not_read(raw_page, monkeypatch) -> None:
    payload = encode_page(raw_page(1))
    monkeypatch.setattr(codec, "_mark", lambda: "00000000")
    assert decode_page(payload) is None


def test_what_has_no_form_is_refused(raw_page) -> None:
    with pytest.raises(TypeError, match="no form for object"):
        encode_page(raw_page(1, reason=object()))
