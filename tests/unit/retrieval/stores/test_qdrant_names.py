import pytest

from retrieval.stores.qdrant.names import CollectionName, next_name, of_corpus, parse, slug


@pytest.mark.parametrize("name", ["manuals", "a", "minilm-l6.v2", "a_b", "x" * 64])
def test_a_safe_name_stays(name):
    assert slug(name) == name


@pytest.mark.parametrize(
    "name",
    ["Manuals", "a__b", "a_", "_a", ".", "..", "a/b", "手册", " ", "x" * 65, "x" * 200, "a b"],
)
def test_another_name_gets_a_hash_and_is_safe(name):
    assert slug(name) != name
    assert len(slug(name)) <= 64
    assert slug(slug(name)) == slug(name)


def test_two_names_never_share_a_slug():
    """Behaviour 23."""
    names = ["A", "a", "a b", "a/b", "a-b", "手册", "指南", "x" * 65, "x" * 66]
    assert len({slug(name) for name in names}) == len(names)


def test_a_collection_is_named_by_corpus_model_dimensions_and_version():
    """Behaviour 23."""
    name = next_name([], "manuals", "minilm@1.0", 384)
    assert str(name).startswith("manuals__minilm-1.0-")
    assert str(name).endswith("__384__v1")
    assert parse(str(name)) == name


@pytest.mark.parametrize("corpus", ["manuals", "a__b__8__v1", "Übersicht", "x" * 200])
def test_the_next_version_comes_after_all_of_the_corpus(corpus):
    """Behaviour 23."""
    others = ["manuals2__m__8__v7", "somebody-elses", "__8__v1"]
    taken: list[str] = list(others)
    for version in range(1, 12):
        name = next_name(taken, corpus, f"model-{version}", 8)
        assert name.version == version
        taken.append(str(name))
    assert [name.version for name in of_corpus(taken, corpus)] == list(range(1, 12))


def test_what_is_not_ours_is_not_parsed():
    assert parse("somebody-elses") is None
    assert parse("a__b__c__v1") is None
    assert parse("a__b__8__v2") == CollectionName("a", "b", 8, 2)
