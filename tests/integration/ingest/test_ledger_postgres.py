"""What only a ledger in a database shows: processes that race and die, its speed, its limits."""

import asyncio
import math
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import psycopg
import pytest

from ingest.ledger.postgres import PostgresLedger
from ingest.ledger.records import LeaseLostError, SourceFile, SyncReport
from ragplane.core.errors import StageError
from retrieval.stores.base import CorpusKey
from retrieval.stores.postgres import PostgresStore
from tests.integration.ingest.ledger_kit import (
    FOLDER,
    SIGNALS,
    file,
    list_and_claim,
    listing,
    raw_page,
    result,
    sha,
)
from tests.integration.ingest.ledger_worker import PAGES, STEPS

ROOT = Path(__file__).parents[3]


@pytest.fixture
def ledger(opened_database):
    return PostgresLedger(opened_database.connections)


@pytest.fixture
async def store(opened_database, key):
    store = PostgresStore(opened_database)
    await store.open_corpus(key, fingerprint="f", dimensions=8)
    return store


async def _work(home, key, *dies_at, lease_s=60):
    """Run a worker process; its exit code and the lines that it printed."""
    module = "tests.integration.ingest.ledger_worker"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, str(home), key.tenant, str(lease_s), *dies_at,
        cwd=ROOT, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, _ = await process.communicate()
    return process.returncode, output.decode().splitlines()


async def test_two_processes_race_for_the_same_documents(ledger, store, key, postgres_home):
    """Behaviour 20."""
    files = [file(str(number), str(number)) for number in range(30)]
    await ledger.sync(key, listing(*files), "p1")
    (code_1, lines_1), (code_2, lines_2) = await asyncio.gather(
        _work(postgres_home, key), _work(postgres_home, key)
    )
    assert (code_1, code_2) == (0, 0)
    finished = [line for line in lines_1 + lines_2 if line.startswith("finished")]
    assert len(finished) == len(set(finished)) == 30
    read = [line for line in lines_1 + lines_2 if line.startswith("read")]
    assert len(read) == len(set(read)) == 30 * len(PAGES)
    assert (await ledger.status(key)).documents == {"done": 30}


@pytest.mark.parametrize("step", STEPS)
async def test_a_worker_killed_at_any_step_loses_and_doubles_nothing(
    ledger, store, key, postgres_home, step
):
    """Behaviours 19 and 21: the store equals that of an undisturbed run, no page is read twice."""
    undisturbed = CorpusKey(f"{key.tenant}-undisturbed", key.corpus)
    await store.open_corpus(undisturbed, fingerprint="f", dimensions=8)
    lines = []
    for scope, dies_at in ((undisturbed, []), (key, [step])):
        await ledger.sync(scope, listing(file("a", "a"), file("b", "b"), file("c", "c")), "p1")
        if step == "deleted":
            assert (await _work(postgres_home, scope))[0] == 0
            await ledger.tombstone(scope, [f"{FOLDER}/b"])
        code, printed = await _work(postgres_home, scope, *dies_at, lease_s=1)
        assert code == (-9 if dies_at else 0)
        lines += printed if dies_at else []
    await asyncio.sleep(1.1)  # the lease of the dead
    code, printed = await _work(postgres_home, key)
    assert code == 0
    read = [line for line in lines + printed if line.startswith("read")]
    assert len(read) == len(set(read)) == (0 if step == "deleted" else 9)
    assert await _content(store, key) == await _content(store, undisturbed)
    assert set(await store.points(key)) == set(await ledger.manifest(key))
    assert await store.points(key) == await ledger.manifest(key)
    assert set((await ledger.status(key)).documents) == {"done"}


async def _content(store, key):
    """Every document's text, and the number of its chunks."""
    texts = {
        source: await store.accepted_text(key, document.id)
        for source, document in (await store.documents(key)).items()
    }
    return texts, (await store.status(key)).chunks


async def test_ten_thousand_unchanged_documents(ledger, key):
    """Issue: an unchanged re-run over 10,000 documents takes at most 5 s; this is its ledger."""
    files = [SourceFile(f"{FOLDER}/{n}.txt", 100 + n, n, sha(str(n))) for n in range(10_000)]
    await ledger.sync(key, listing(*files), "p1")
    plain = listing(*(SourceFile(f.source, f.size_bytes, f.mtime_ns) for f in files))
    started = time.perf_counter()
    assert await ledger.unhashed(key, plain) == set()
    assert await ledger.sync(key, plain, "p1") == SyncReport(unchanged=10_000)
    assert time.perf_counter() - started < 2.5


async def test_a_commit_waits_for_a_claim_in_progress(ledger, key, conninfo):
    """Behaviour 20: the token is checked under the row's lock, not before it."""
    await ledger.sync(key, listing(file("a", "a")), "p1")
    [claim] = await ledger.claim(key, "w", lease_s=60, limit=1)
    with psycopg.connect(conninfo) as other:
        other.execute(
            "update ragplane.ledger_documents set token = token + 1 where id = %s",
            (claim.document_id,),
        )
        commit = asyncio.create_task(ledger.finish_document(claim, result(claim, ["late"])))
        await asyncio.sleep(0.2)
        assert not commit.done()
        other.commit()
    with pytest.raises(LeaseLostError):
        await commit
    assert await ledger.manifest(key) == {}


async def test_a_row_in_use_is_skipped(ledger, key, conninfo):
    """Behaviour 20."""
    await ledger.sync(key, listing(file("a", "a"), file("b", "b")), "p1")
    with psycopg.connect(conninfo) as other:
        other.execute(
            "select 1 from ragplane.ledger_documents where tenant = %s and source = %s for update",
            (key.tenant, f"{FOLDER}/a"),
        )
        [claim] = await ledger.claim(key, "w", lease_s=60, limit=5)
    assert claim.source == f"{FOLDER}/b"


async def test_no_transaction_is_left_open_between_calls(ledger, key, conninfo):
    """Behaviour 20."""
    await ledger.sync(key, listing(file("a", "a")), "p1")
    [claim] = await ledger.claim(key, "w", lease_s=60, limit=1)
    await ledger.finish_pages(claim, sha("a"), [raw_page(n) for n in range(1, 1502)])
    rows = ledger.triage_rows(key)
    assert (await anext(rows)).number == 1
    with psycopg.connect(conninfo) as other:
        states = other.execute(
            "select state from pg_stat_activity where application_name = 'ragplane'"
        ).fetchall()
    assert {state for (state,) in states} == {"idle"}
    assert [row.number async for row in rows] == list(range(2, 1502))


async def test_any_source_can_be_kept(ledger, key):
    long = SourceFile(f"{FOLDER}/{np.random.default_rng(1).bytes(4000).hex()}", 1, 1)
    odd = SourceFile("s3://b/שלום 🚀 %00'\"\\", 1, 1)
    assert await ledger.sync(key, listing(long, odd), "p1") == SyncReport(added=2)
    assert await ledger.sync(key, listing(long, odd), "p1") == SyncReport(unchanged=2)
    assert set(await ledger.documents(key)) == {long.source, odd.source}


async def test_two_syncs_at_once_add_each_file_once(ledger, key):
    files = listing(*(file(str(number), str(number)) for number in range(50)))
    reports = await asyncio.gather(*(ledger.sync(key, files, "p1") for _ in range(4)))
    assert sorted(report.added for report in reports) == [0, 0, 0, 50]
    assert len(await ledger.documents(key)) == 50


@pytest.mark.parametrize(
    ("page", "cause"),
    [
        (raw_page(1, vlm_tokens=2**40), "out of range"),
        (replace(raw_page(1), signals=replace(SIGNALS, image_coverage=math.inf)), "json"),
        (replace(raw_page(2**31)), "out of range"),
    ],
)
async def test_what_the_database_refuses_of_one_document_is_not_the_database_down(
    ledger, key, page, cause
):
    """Behaviour 25: it is that document's error, with the cause; waiting would not help."""
    [claim] = await list_and_claim(ledger, key, file("a", "a"))
    with pytest.raises(StageError, match=rf"^store: .* cannot keep pages: .*{cause}") as caught:
        await ledger.finish_pages(claim, sha("a"), [page])
    await ledger.fail(claim, caught.value)
    [error] = await ledger.errors(key, 5)
    assert (error.source, error.stage) == (claim.source, "store")
