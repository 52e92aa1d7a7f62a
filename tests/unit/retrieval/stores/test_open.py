import sys

import pytest

from ragplane.core.config import Settings
from ragplane.core.errors import ConfigError, UnavailableError
from retrieval.stores.open import open_at
from retrieval.stores.qdrant.edge import EdgeEngine


@pytest.mark.parametrize(
    "address",
    [
        "",
        "mongo",
        "http://localhost:6333",
        "qdrant+http:",
        "qdrant+http://",
        "qdrant+http://u:secret@h",
    ],
)
async def test_another_address_is_refused_without_showing_it(tmp_path, address):
    with pytest.raises(ConfigError, match="RAGPLANE_STORE is neither") as caught:
        await open_at(address, Settings(home=tmp_path), None)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "folder"), [("qdrant+edge:", "qdrant"), ("qdrant+edge:q/a", "q/a")]
)
async def test_the_engine_in_this_process_lives_in_the_home(tmp_path, address, folder):
    store = await open_at(address, Settings(home=tmp_path), None)
    assert isinstance(store.engine, EdgeEngine)
    await store.engine.create("c__m__8__v1", 8)
    assert (tmp_path / folder / "c__m__8__v1").is_dir()
    await store.aclose()


@pytest.mark.parametrize("folder", ["../x", "/etc", "."])
async def test_a_folder_outside_the_home_is_refused(tmp_path, folder):
    with pytest.raises(ConfigError, match="not a folder inside the home"):
        await open_at(f"qdrant+edge:{folder}", Settings(home=tmp_path), None)


@pytest.mark.parametrize(
    ("address", "module"),
    [("qdrant+edge:", "qdrant_edge"), ("qdrant+http://localhost:1", "qdrant_client")],
)
async def test_a_missing_library_is_named(tmp_path, monkeypatch, address, module):
    for name in ("edge", "client"):
        monkeypatch.delitem(sys.modules, f"retrieval.stores.qdrant.{name}", raising=False)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=rf"needs {module}: .*ragplane\[qdrant\]"):
        await open_at(address, Settings(home=tmp_path), None)


async def test_a_server_that_is_down_is_named(tmp_path):
    with pytest.raises(UnavailableError, match=r"Qdrant at 127\.0\.0\.1:1 cannot .*ConnectError"):
        await open_at("qdrant+http://127.0.0.1:1", Settings(home=tmp_path), None)
