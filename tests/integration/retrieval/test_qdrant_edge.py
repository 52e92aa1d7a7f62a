"""The Qdrant engine in this process: files, aliases, other processes."""

import asyncio
import subprocess
import sys
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from ragplane.core.errors import UnavailableError
from retrieval.stores.qdrant.edge import EdgeEngine
from retrieval.stores.qdrant.engine import EVERYTHING, Point, Where
from retrieval.stores.qdrant.store import QdrantStore

WRITE_AND_HANG = """
import asyncio, sys, time
from pathlib import Path
from uuid import UUID
from retrieval.stores.qdrant.edge import EdgeEngine
from retrieval.stores.qdrant.engine import Point

async def main():
    engine = EdgeEngine(Path(sys.argv[1]))
    await engine.create("c__m__8__v1", 8)
    await engine.switch_alias("c", "c__m__8__v1")
    points = [Point(UUID(int=n), {"kind": "chunk", "n": n}, [1.0] * 8) for n in range(300)]
    await engine.upsert("c", points)
    print("written", flush=True)
    time.sleep(60)

asyncio.run(main())
"""


@pytest.fixture
def writer(tmp_path):
    """Another process that has written 300 points and holds the shard."""
    command = [sys.executable, "-c", WRITE_AND_HANG, str(tmp_path / "qdrant")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "written\n"
        yield process
        process.kill()


async def _ids(engine, collection="c"):
    return [record.id async for page in engine.scroll(collection, EVERYTHING) for record in page]


async def test_what_was_written_survives_a_killed_process(writer, edge_engine):
    """Behaviour 19."""
    writer.kill()
    writer.wait()
    assert await edge_engine.aliases() == {"c": "c__m__8__v1"}
    assert len(await _ids(edge_engine)) == 300
    [record] = await edge_engine.retrieve("c", [UUID(int=7)])
    assert record.payload["n"] == 7
    assert len(await edge_engine.search("c", [1.0] * 8, Where({"kind": "chunk"}), 400)) == 300


async def test_a_shard_has_one_process_at_a_time(writer, edge_engine, tmp_path):
    with pytest.raises(
        UnavailableError, match=f"Qdrant in {tmp_path / 'qdrant'} cannot read points"
    ):
        await edge_engine.retrieve("c", [UUID(int=7)])


async def test_a_store_is_read_again_after_it_was_closed(tmp_path, key, make_document, vector_of):
    parts = make_document(key, ["The mirror.", "The dome."])
    first = QdrantStore(EdgeEngine(tmp_path))
    await first.open_corpus(key, fingerprint="model-a", dimensions=8)
    await first.replace_document(*parts)
    await first.aclose()
    again = QdrantStore(EdgeEngine(tmp_path))
    assert await again.documents(key) == {parts.document.source: parts.document}
    assert (await again.dense(key, vector_of("The dome."), 1))[0].chunk_id == parts.chunks[1].id
    assert (await again.lexical(key, "mirror", 1))[0].chunk_id == parts.chunks[0].id
    await again.aclose()


async def test_a_shard_that_was_half_made_is_made_anew(tmp_path, edge_engine):
    half = tmp_path / "qdrant" / "c__m__8__v1.new"
    (half / "segments").mkdir(parents=True)
    assert await edge_engine.collections() == []
    await edge_engine.create("c__m__8__v1", 8)
    await edge_engine.create("c__m__8__v1", 8)
    assert await edge_engine.collections() == ["c__m__8__v1"]
    assert await _ids(edge_engine, "c__m__8__v1") == []


async def test_a_search_does_not_hold_up_the_event_loop(edge_engine):
    await edge_engine.create("c__m__8__v1", 8)
    points = [Point(uuid4(), {"kind": "chunk"}, [1.0] * 8) for _ in range(64)]
    beats = 0

    async def beat():
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0)

    heart = asyncio.create_task(beat())
    for _ in range(20):
        await edge_engine.upsert("c__m__8__v1", points)
    heart.cancel()
    assert beats > 20


async def test_a_damaged_shard_is_named(tmp_path, edge_engine):
    await edge_engine.create("c__m__8__v1", 8)
    for file in (tmp_path / "qdrant" / "c__m__8__v1").glob("*.json"):
        file.write_text("{")
    with pytest.raises(UnavailableError, match="cannot read points"):
        await edge_engine.retrieve("c__m__8__v1", [uuid4()])


async def test_a_full_or_forbidden_folder_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    engine = EdgeEngine(Path(tmp_path / "file"))
    with pytest.raises(UnavailableError, match="cannot create the collection"):
        await engine.create("c__m__8__v1", 8)


async def test_many_points_are_indexed_at_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr("retrieval.stores.qdrant.edge.UNINDEXED_POINTS", 50)
    monkeypatch.setattr("retrieval.stores.qdrant.edge.UNFLUSHED_POINTS", 100)
    engine = EdgeEngine(tmp_path)
    await engine.create("c__m__8__v1", 8)
    ids = [uuid4() for _ in range(300)]
    await engine.upsert("c__m__8__v1", [Point(id_, {"kind": "chunk"}, [1.0] * 8) for id_ in ids])
    await engine.aclose()
    assert set(await _ids(engine, "c__m__8__v1")) == set(ids)
    await engine.aclose()
