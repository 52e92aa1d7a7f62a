from dataclasses import replace
from uuid import UUID

import numpy as np
import pytest

from ragplane.core.errors import ConfigError, InputError, StageError
from ragplane.core.schema import Block, Chunk, Document, Page, PageSignals, join_pages
from retrieval.stores.checks import (
    MAX_DIMENSIONS,
    best_first,
    check_dimensions,
    check_document,
    unit_query,
    unit_rows,
)

_DOCUMENT = Document(UUID(int=1), "t", "c", "file:///a", "0" * 64, "text/plain", "A")
_PAGE = Page(
    1, 595, 842, 0, "text", "", PageSignals(1, 1, 0, 0, 0), (Block("paragraph", "a"),), 0.1
)
_CHUNK = Chunk(UUID(int=2), UUID(int=1), 0, "a", "", ("H",), 1, 1, 0, 1, 3, "0" * 64)


def test_a_whole_document_passes() -> None:
    check_document(_DOCUMENT, [_PAGE], [_CHUNK])


@pytest.mark.parametrize("bad", ["a\x00b", "\ud800"])
def test_text_that_cannot_be_stored_is_refused(bad: str) -> None:
    block = replace(_PAGE.blocks[0], text=bad)
    header = replace(_PAGE.blocks[0], header=bad)
    for document, page, chunk in [
        (replace(_DOCUMENT, source=bad), _PAGE, _CHUNK),
        (replace(_DOCUMENT, title=bad), _PAGE, _CHUNK),
        (_DOCUMENT, replace(_PAGE, blocks=(block,)), _CHUNK),
        (_DOCUMENT, replace(_PAGE, blocks=(header,)), _CHUNK),
        (_DOCUMENT, _PAGE, replace(_CHUNK, text=bad)),
        (_DOCUMENT, _PAGE, replace(_CHUNK, heading_path=("H", bad))),
    ]:
        with pytest.raises(StageError, match="NUL character or a lone surrogate") as caught:
            check_document(document, [page], [chunk])
        str(caught.value).encode()


@pytest.mark.parametrize(
    ("pages", "chunks", "cause"),
    [
        ([_PAGE, _PAGE], [], "page 1 is given twice"),
        ([], [_CHUNK, replace(_CHUNK, ordinal=1)], "is given twice"),
        ([], [_CHUNK, replace(_CHUNK, id=UUID(int=3))], "chunk ordinal 0 is given twice"),
        ([], [replace(_CHUNK, document_id=UUID(int=9))], "another document"),
    ],
)
def test_inconsistent_parts_are_refused(pages: list[Page], chunks: list[Chunk], cause: str) -> None:
    with pytest.raises(StageError, match=cause):
        check_document(_DOCUMENT, pages, chunks)


def test_vectors_get_length_one() -> None:
    units = unit_rows(_DOCUMENT, np.array([[3.0, 4.0], [1e30, 0.0]], dtype=np.float32), (2, 2))
    assert units == pytest.approx(np.array([[0.6, 0.8], [1.0, 0.0]]))
    assert units.dtype == np.float32


def test_no_vectors_are_fine() -> None:
    assert unit_rows(_DOCUMENT, np.empty((0, 4), dtype=np.float32), (0, 4)).shape == (0, 4)


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_a_vector_without_direction_is_refused(value: float) -> None:
    with pytest.raises(StageError, match="zero or not finite"):
        unit_rows(_DOCUMENT, np.full((1, 2), value, dtype=np.float32), (1, 2))
    with pytest.raises(InputError, match="zero or not finite"):
        unit_query(np.full(2, value, dtype=np.float32), 2)


def test_a_vector_of_another_shape_is_refused() -> None:
    with pytest.raises(StageError, match="shape"):
        unit_rows(_DOCUMENT, np.ones((1, 3), dtype=np.float32), (1, 2))
    with pytest.raises(InputError, match="shape"):
        unit_query(np.ones(3, dtype=np.float32), 2)


@pytest.mark.parametrize("dimensions", [0, MAX_DIMENSIONS + 1])
def test_dimensions_that_cannot_be_indexed_are_refused(dimensions: int) -> None:
    with pytest.raises(ConfigError, match="dimensions"):
        check_dimensions(dimensions)


def test_equal_scores_are_in_the_order_of_their_ids() -> None:
    scores = [(UUID(int=3), 1.0), (UUID(int=1), 1.0), (UUID(int=2), 2.0)]
    assert [id_.int for id_, _ in best_first(scores, 2)] == [2, 1]


def test_pages_are_joined_without_the_empty_ones() -> None:
    assert join_pages(["a", "", "b"]) == "a\nb"
    assert join_pages([]) == ""
