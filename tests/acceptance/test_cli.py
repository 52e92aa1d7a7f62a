"""The command line as a person or a script meets it: exit codes, one clear line, stable JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.conftest import make_home

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    (folder / "gate.md").write_text("# Gate\n\nThe gate of the yard opens at 7:45 every day.")
    (folder / "pump.html").write_text(
        "<html><body><h1>Pump</h1><p>The pump is green.</body></html>"
    )
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, model_home: Path) -> Run:
    home = make_home(tmp_path_factory.mktemp("cli") / "home", model_home)

    def ragplane(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "ragplane.cli", *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "RAGPLANE_HOME": str(home), **environment},
            check=False,
        )

    return ragplane


@pytest.fixture(scope="module")
def corpus(run: Run, docs: Path) -> str:
    done = run("ingest", str(docs), "--corpus", "yard", "--workers", "1", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert set(report) == {
        "status",
        "corpus",
        "documents",
        "pages",
        "chunks",
        "tokens",
        "vlm_tokens",
        "seconds",
        "stages",
        "errors",
    }
    assert report["documents"]["added"] == 2
    return "yard"


def one_line(done: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    """The command failed with this code and said so in one line with these words."""
    assert done.returncode == code, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    for word in words:
        assert word in done.stderr


def test_version_and_help(run: Run) -> None:
    assert run("--version").stdout.startswith("ragplane ")
    text = run("--help").stdout
    for command in ("serve", "ingest", "search", "ask", "status", "demo"):
        assert command in text


def test_search_prints_hits_for_machines(run: Run, corpus: str) -> None:
    done = run("search", "when does the gate open", "--corpus", corpus, "-k", "1", "--json")
    result = json.loads(done.stdout)
    (hit,) = result["hits"]
    assert hit["rank"] == 1
    assert hit["document"].endswith("/gate.md")
    assert hit["pages"] == [1, 1]
    assert {"score", "scores", "title", "text", "chunk_id"} <= set(hit)
    assert {"query", "hits", "timings_ms"} <= set(result)


def test_ask_prints_the_answer_for_machines_and_for_people(run: Run, corpus: str) -> None:
    question = ("ask", "When does the gate of the yard open?", "--corpus", corpus)
    answer = json.loads(run(*question, "--budget", "64", "--json").stdout)
    assert "7:45" in answer["answer"]
    assert set(answer["citations"][0]) == {"id", "document", "title", "pages", "quote"}
    assert answer["context"]["tokens_kept"] <= answer["context"]["budget"] == 64
    assert {"question", "usage", "timings_ms", "degradations"} <= set(answer)
    assert "gate.md, p. 1" in run(*question).stdout


def test_status_counts_what_is_held(run: Run, corpus: str) -> None:
    status = json.loads(run("status", "--corpus", corpus, "--json").stdout)
    assert (status["documents"], status["pages"]["total"]) == (2, 2)


def test_some_documents_failing_is_exit_3_and_all_of_them_is_exit_1(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "good.txt").write_text("The pump is green.")
    (tmp_path / "bad.pdf").write_bytes(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj")
    some = run("ingest", str(tmp_path), "--corpus", "mixed", "--workers", "1", "--json")
    assert some.returncode == 3
    assert json.loads(some.stdout)["status"] == "completed_with_errors"
    only = run("ingest", str(tmp_path / "bad.pdf"), "--corpus", "bad", "--workers", "1")
    assert only.returncode == 1
    assert "error: parse: bad.pdf:" in only.stderr


def test_a_changed_file_replaces_its_chunks(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "gate.md"
    for text in ("The gate opens at noon.", "The gate opens at dusk."):
        file.write_text(text)
        done = run("ingest", str(tmp_path), "--corpus", "changing", "--workers", "1", "--json")
    assert json.loads(done.stdout)["documents"]["updated"] == 1
    hits = json.loads(run("search", "gate", "--corpus", "changing", "--json").stdout)["hits"]
    assert [hit["text"] for hit in hits] == ["The gate opens at dusk."]


def test_a_script_without_a_main_guard_can_ingest(
    docs: Path, tmp_path: Path, model_home: Path
) -> None:
    home = make_home(tmp_path / "home", model_home)
    script = tmp_path / "script.py"
    script.write_text(
        "from ragplane import Plane\n"
        f"with Plane.open(home={str(home)!r}).sync as plane:\n"
        f"    report = plane.ingest([{str(docs)!r}], corpus='yard', workers=1)\n"
        "    print(report.status, report.documents['added'])\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.stdout, done.returncode) == ("completed 2\n", 0), done.stderr


def test_wrong_use_is_one_clear_line_and_exit_2(run: Run, corpus: str, tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    one_line(run("ingest", nowhere, "--corpus", "x"), 2, nowhere, "no such file")
    one_line(run("search", "x", "--corpus", "nope"), 2, "'nope' does not exist")
    one_line(run("search", " ", "--corpus", corpus), 2, "query is empty")
    one_line(run("ask", "x", "--corpus", corpus, "--budget", "3"), 2, "budget")
    assert run("ask", "x").returncode == 2  # no --corpus
    one_line(run("status", "--corpus", corpus, RAGPLANE_THREADS="many"), 2, "settings: threads")


def test_a_model_folder_without_weights_is_one_clear_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    one_line(run("serve", "--embed-model", str(tmp_path), "--port", "0"), 1, "no weights")


class Completions(BaseHTTPRequestHandler):
    """An OpenAI-compatible server that always says the same and remembers what it was asked."""

    asked: ClassVar[list[dict[str, Any]]] = []

    def do_GET(self) -> None:
        self._reply({"object": "list", "data": [{"id": "tiny"}]})

    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        self.asked.append(json.loads(self.rfile.read(length)))
        message = {"role": "assistant", "content": "It opens at 7:45 [1]. See also [5]."}
        usage = {"prompt_tokens": 50, "completion_tokens": 9}
        self._reply({"choices": [{"message": message}], "usage": usage})

    def log_message(self, format: str, *arguments: Any) -> None:
        """Keep the test's output clean."""

    def _reply(self, body: dict[str, Any]) -> None:
        payload = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)


@pytest.fixture
def generator() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Completions)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_generator_gets_the_compressed_context(run: Run, corpus: str, generator: str) -> None:
    question = ("ask", "When does the gate of the yard open?", "--corpus", corpus, "--json")
    answer = json.loads(run(*question, "--generate-url", generator).stdout)
    assert answer["answer"] == "It opens at 7:45 [1]. See also."
    assert answer["usage"]["prompt_tokens"] == 50
    assert answer["degradations"] == ["citation [5] removed: no such source was given"]
    sent = Completions.asked[-1]
    assert sent["model"] == "tiny"
    assert "The gate of the yard opens at 7:45 every day." in sent["messages"][1]["content"]


def test_a_generator_that_is_down_is_a_degradation(run: Run, corpus: str) -> None:
    question = ("ask", "When does the gate of the yard open?", "--corpus", corpus, "--json")
    answer = json.loads(run(*question, "--generate-url", "http://127.0.0.1:9/v1").stdout)
    assert "7:45" in answer["answer"]
    assert "http://127.0.0.1:9/v1" in answer["degradations"][0]
