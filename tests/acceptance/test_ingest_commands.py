"""The commands around ingestion over the embedded database, status to reembed."""

from __future__ import annotations

import io
import json
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import psycopg
import pytest

from ragplane.cli import main
from ragplane.core.models import read_model
from retrieval.stores.embedded import EmbeddedServer
from tests.conftest import make_home

BROKEN_PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj"
TEXTS = {
    "gate.md": "# Gate\n\nThe gate of the yard opens at noon.",
    "pump.md": "# Pump\n\nThe pump in the cellar is green.",
    "dome.md": "# Dome\n\nThe dome turns once a day.",
}


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Done]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, model_home: Path) -> Path:
    return make_home(tmp_path_factory.mktemp("commands") / "home", model_home)


@pytest.fixture(scope="module")
def conninfo(home: Path) -> Iterator[str]:
    """The embedded database, which stays up for the module."""
    server = EmbeddedServer(home / "postgres")
    yield server.start()
    server.stop()


@pytest.fixture
def run(home: Path, conninfo: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """The command line in this process: what it prints and its exit code."""
    handler = signal.getsignal(signal.SIGTERM)
    monkeypatch.setenv("RAGPLANE_HOME", str(home))

    def ragplane(*arguments: str) -> Done:
        monkeypatch.setattr("sys.argv", ["ragplane", *arguments])
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
            main()
        return Done(int(ended.value.code or 0), out.getvalue(), err.getvalue())

    yield ragplane
    signal.signal(signal.SIGTERM, handler)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def corpus(run: Run, folder: Path) -> str:
    """A corpus of three documents."""
    name = f"yard-{uuid4().hex[:8]}"
    done = run("ingest", str(folder), "--corpus", name, "--workers", "1", "--json")
    assert done.code == 0, done
    return name


def refused(done: Done, *words: str) -> None:
    """Wrong use: exit 2 and one line with these words."""
    assert done.code == 2, done
    assert len(done.err.strip().splitlines()) == 1, done.err
    assert all(word in done.err for word in words), done.err


def break_store(conninfo: str, corpus: str) -> dict[str, list[str]]:
    """One point of each fault, made by hand; their ids by fault."""
    with psycopg.connect(conninfo) as connection:
        found = connection.execute(
            "select h.id, h.document_id, d.source from ragplane.chunks h "
            "join ragplane.documents d on d.id = h.document_id "
            "join ragplane.corpora c on c.id = d.corpus_id where c.name = %s order by d.source",
            (corpus,),
        ).fetchall()
        (dome, _, _), (gate, document, _), (pump, _, _) = found
        orphan, duplicate, stranger = uuid4(), uuid4(), uuid4()
        copied = connection.execute("select * from ragplane.chunks where id = %s", (gate,))
        names = [column.name for column in copied.description or ()]
        connection.execute("delete from ragplane.chunks where id = %s", (dome,))
        connection.execute("update ragplane.chunks set sha256 = 'x' where id = %s", (pump,))
        connection.execute(
            "insert into ragplane.documents (id, corpus_id, source, sha256, mime, title, "
            "generation) select %s, corpus_id, 'file:///stranger', 'x', 'text/plain', 'x', 1 "
            "from ragplane.documents where id = %s",
            (stranger, document),
        )
        for id_, owner, ordinal in ((duplicate, document, 7), (orphan, stranger, 0)):
            changed = {"id": "%s", "document_id": "%s", "ordinal": "%s"}
            values = ", ".join(changed.get(name, name) for name in names)
            query = f"insert into ragplane.chunks ({', '.join(names)}) select {values} "
            connection.execute(
                query.encode() + b"from ragplane.chunks where id = %s", (id_, owner, ordinal, gate)
            )
        # As every write of the store's own leaves them.
        connection.execute(
            "update ragplane.corpora c set (chunk_count, term_total) = (select count(*), "
            "sum(term_count) from ragplane.chunks where corpus_id = c.id) where name = %s",
            (corpus,),
        )
    faults = {"missing": dome, "orphan": orphan, "stale": pump, "duplicate": duplicate}
    return {name: [str(id_)] for name, id_ in faults.items()}


def test_verify_finds_each_kind_of_wrong_point_and_repairs_it(
    run: Run, corpus: str, conninfo: str
) -> None:
    """Behaviour 24."""
    fine = run("verify", "--corpus", corpus)
    assert (fine.code, fine.out) == (0, "the store is as the ledger says\n")
    faults = break_store(conninfo, corpus)
    found = run("verify", "--corpus", corpus, "--json")
    assert found.code == 3
    nothing = {"rewritten": 0, "removed": 0, "errors": []}
    assert found.json == {"exact": False, **faults, **nothing}
    lines = run("verify", "--corpus", corpus).out.splitlines()
    assert lines == [f"{fault}: 1 points" for fault in faults]

    mended = run("verify", "--corpus", corpus, "--repair", "--json")
    assert mended.code == 0, mended
    assert mended.json["exact"]
    assert (mended.json["rewritten"], mended.json["removed"]) == (2, 2)
    assert run("verify", "--corpus", corpus, "--json").json["exact"]
    status = run("status", "--corpus", corpus, "--json").json
    assert (status["documents"], status["chunks"]) == (3, 3)
    hits = run("search", "does the dome turn", "--corpus", corpus, "--json").json["hits"]
    assert hits[0]["document"].endswith("/dome.md")


def test_a_repair_that_cannot_read_the_file_says_so(
    run: Run, corpus: str, conninfo: str, folder: Path
) -> None:
    """Behaviours 24 and 25."""
    faults = break_store(conninfo, corpus)
    (folder / "dome.md").unlink()
    done = run("verify", "--corpus", corpus, "--repair", "--json")
    assert done.code == 3
    assert (done.json["missing"], done.json["stale"]) == (faults["missing"], [])
    [error] = done.json["errors"]
    assert "dome.md" in error
    assert error.startswith("parse: ")


def test_documents_are_deleted_by_file_and_by_uri(run: Run, corpus: str, folder: Path) -> None:
    """Behaviour 22."""
    refused(run("delete", "--corpus", corpus), "documents, or --all")
    refused(run("delete", "--corpus", corpus, "--all", "a.md"), "not both")
    refused(run("delete", "--corpus", "nope", "--all"), "'nope' does not exist")
    unknown = run("delete", "--corpus", corpus, str(folder / "gate.md"), "file:///moat.md")
    refused(unknown, f"not in corpus {corpus!r}: file:///moat.md")

    done = run("delete", "--corpus", corpus, str(folder / "gate.md"), "--json")
    assert (done.code, done.json) == (0, {"deleted": 1, "errors": []})
    hits = run("search", "gate", "--corpus", corpus, "--json").json["hits"]
    assert {hit["document"].rsplit("/", 1)[1] for hit in hits} == {"pump.md", "dome.md"}
    done = run("delete", "--corpus", corpus, (folder / "pump.md").as_uri())
    assert (done.code, done.out) == (0, "deleted 1 documents\n")
    assert run("delete", "--corpus", corpus, "--all", "--json").json["deleted"] == 1
    assert run("verify", "--corpus", corpus).code == 0
    status = run("status", "--corpus", corpus, "--json").json
    assert (status["documents"], status["chunks"], status["ledger"]) == (0, 0, {})

    back = run("ingest", str(folder), "--corpus", corpus, "--workers", "1", "--json")
    assert back.json["documents"]["added"] == 3


def test_status_names_stages_and_errors(run: Run, corpus: str, folder: Path) -> None:
    """Behaviour 25: also of a corpus in which everything failed."""
    bad = folder / "bad.pdf"
    bad.write_bytes(BROKEN_PDF)
    failed = f"failed-{corpus}"
    assert run("ingest", str(folder), "--corpus", corpus, "--workers", "1").code == 3
    assert run("ingest", str(bad), "--corpus", failed, "--workers", "1").code == 1
    some = run("status", "--corpus", corpus, "--json").json
    assert (some["documents"], some["ledger"]) == (3, {"done": 3, "failed": 1})
    only = run("status", "--corpus", failed, "--json").json
    assert (only["documents"], only["chunks"], only["ledger"]) == (0, 0, {"failed": 1})
    for status in (some, only):
        assert status["stages"] == {"parse": 1}
        [error] = status["errors"]
        assert set(error) == {"document", "page", "stage", "cause", "at"}
        assert (error["document"], error["stage"]) == (bad.as_uri(), "parse")
    shown = run("status", "--corpus", failed).out
    assert "failed: 1 at parse" in shown
    assert "error: parse: bad.pdf: " in shown
    refused(run("status", "--corpus", "nope"), "'nope' does not exist")


def test_status_without_a_corpus_lists_the_tenants_corpora(
    run: Run, folder: Path, corpus: str
) -> None:
    """Behaviour 25."""
    tenant = ("--tenant", uuid4().hex)
    assert run("status", *tenant, "--json").json == {"corpora": []}
    assert "has no corpus" in run("status", *tenant).out
    bad = folder / "bad.pdf"
    bad.write_bytes(BROKEN_PDF)
    run("ingest", str(folder / "gate.md"), "--corpus", "good", *tenant, "--workers", "1")
    run("ingest", str(bad), "--corpus", "broken", *tenant, "--workers", "1")
    broken, good = run("status", *tenant, "--json").json["corpora"]
    assert (broken["corpus"], broken["ledger"]) == ("broken", {"failed": 1})
    assert (good["corpus"], good["documents"]) == ("good", 1)
    shown = run("status", *tenant).out
    assert "corpus 'broken'" in shown
    assert "corpus 'good': 1 documents" in shown


def test_triage_shows_routes_and_replays_thresholds(run: Run, corpus: str, tmp_path: Path) -> None:
    """Behaviour 1."""
    report = run("triage", "--corpus", corpus, "--json").json
    assert report["routes"]["text"]["pages"] == 3
    assert (report["changes"], report["changed"]) == ({}, [])
    thresholds = tmp_path / "thresholds.toml"
    thresholds.write_text("blank_characters = 5000\n")
    replayed = ("triage", "--corpus", corpus, "--replay", str(thresholds))
    changed = run(*replayed, "--json").json
    assert changed["changes"] == {"text -> blank": 3}
    assert {page["document"].rsplit("/", 1)[1] for page in changed["changed"]} == set(TEXTS)
    shown = run(*replayed).out
    assert "text: 3 pages" in shown
    assert "would change: text -> blank: 3 pages" in shown

    thresholds.write_text("blank_chars = 5\n")
    refused(run(*replayed), "no such threshold: blank_chars")
    thresholds.write_text("blank_characters = 'five'\n")
    refused(run(*replayed), "blank_characters must be a whole number")
    thresholds.write_text("blank_characters\n")
    refused(run(*replayed), "thresholds.toml")
    refused(run("triage", "--corpus", corpus, "--replay", "nowhere.toml"), "nowhere.toml")
    refused(run("triage", "--corpus", "nope"), "'nope' does not exist")
    refused(run("verify", "--corpus", "nope"), "'nope' does not exist")


@pytest.fixture(scope="module")
def new_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The bundled model with another pooling: its vectors do not compare."""
    bundled, other = read_model("bundled").folder, tmp_path_factory.mktemp("models") / "cls"
    shutil.copytree(bundled, other, symlinks=True)
    pooling = {"word_embedding_dimension": 384, "pooling_mode_cls_token": True}
    (other / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return str(other)


@pytest.mark.parametrize("store", ["postgres", "qdrant+edge:vectors"])
def test_a_corpus_is_brought_to_another_model(
    run: Run, folder: Path, new_model: str, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behaviour 23."""
    monkeypatch.setenv("RAGPLANE_STORE", store)
    corpus = f"moved-{store[:6]}"
    ingest = ("ingest", str(folder), "--corpus", corpus, "--workers", "1", "--json")
    assert run(*ingest).code == 0
    search = ("search", "pump", "--corpus", corpus, "--json")
    command = ("reembed", "--corpus", corpus, "--json")
    before = run("status", "--corpus", corpus, "--json").json
    report = run(*command, "--embed-model", new_model)
    assert report.code == 0, report
    assert report.json["switched"]
    assert report.json["before"] == before["fingerprint"]
    assert (report.json["chunks"], report.json["embedded"]) == (3, 3)
    after = run("status", "--corpus", corpus, "--json").json
    assert after["fingerprint"] == report.json["after"] != before["fingerprint"]
    assert (after["documents"], after["chunks"]) == (before["documents"], before["chunks"])
    refused(run(*search), "vectors of two models cannot be compared")

    monkeypatch.setenv("RAGPLANE_EMBED_MODEL", new_model)
    assert len(run(*search).json["hits"]) == 3
    assert run("verify", "--corpus", corpus).code == 0
    (folder / "moat.md").write_text("The moat is deep.")
    changes = run(*ingest).json["documents"]
    assert (changes["added"], changes["unchanged"]) == (1, 3)
    again = run(*command).json
    assert (again["switched"], again["embedded"]) == (False, 0)

    monkeypatch.delenv("RAGPLANE_EMBED_MODEL")
    changed = folder / "gate.md"
    changed.write_text("The gate is shut.")
    wrong = run(*ingest)
    assert wrong.code == 2
    assert "was made with the encoder" in wrong.err
    dropped = run(*command, "--drop-old").json
    assert dropped == {"corpus": corpus, "dropped": before["fingerprint"]}
    assert run("reembed", "--corpus", corpus, "--drop-old").out == "nothing to drop\n"


def test_a_change_of_model_that_makes_no_sense_is_refused(
    run: Run, corpus: str, new_model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behaviour 23."""
    refused(run("reembed", "--corpus", "nope"), "'nope' does not exist")
    refused(run("reembed", "--corpus", "nope", "--drop-old"), "'nope' does not exist")
    both = run("reembed", "--corpus", corpus, "--drop-old", "--embed-model", new_model)
    refused(both, "--drop-old takes no --embed-model")
    assert "already" in run("reembed", "--corpus", corpus).out
    monkeypatch.setenv("RAGPLANE_ENCODER_URL", "http://127.0.0.1:9")
    refused(run("reembed", "--corpus", corpus, "--embed-model", new_model), "encoder_url is set")
