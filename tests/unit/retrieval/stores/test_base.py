import pytest

from ragplane.core.errors import InputError
from retrieval.stores.base import MAX_NAME_CHARACTERS, CorpusKey


@pytest.mark.parametrize("name", ["a", "příručky 水", "x" * MAX_NAME_CHARACTERS, "../a b"])
def test_a_name_that_can_be_kept_is_kept(name: str) -> None:
    key = CorpusKey(name, name)
    assert (key.tenant, key.corpus) == (name, name)


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("", "no name"),
        (" \t", "no name"),
        ("x" * (MAX_NAME_CHARACTERS + 1), "201 characters, 200 are allowed"),
        ("a\x00b", "NUL"),
        ("a\ud800b", "lone surrogate"),
    ],
)
def test_another_is_refused(name: str, cause: str) -> None:
    for param, names in {"tenant": (name, "c"), "corpus": ("t", name)}.items():
        with pytest.raises(InputError, match=cause) as caught:
            CorpusKey(*names)
        assert caught.value.param == param
        assert param in str(caught.value)
