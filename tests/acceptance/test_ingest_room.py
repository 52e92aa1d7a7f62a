"""A disk that is full, and a vision model that hangs."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import psycopg
import pymupdf
import pytest

from tests.acceptance.ingest_runs import Runs, write_documents
from tests.integration.ingest.vlm_server import hangs, playing
from tests.unit.ingest.scans import render, scanned_pdf

SMALL_BYTES = 1 << 20


@pytest.fixture
def small_disk(runs: Runs) -> Iterator[Path]:
    """A file system of its own for the chunks, too small for any."""
    folder = Path(tempfile.mkdtemp(prefix="small"))
    owner = (runs.home / "postgres").stat().st_uid
    options = f"size={SMALL_BYTES},mode=700,uid={owner}"
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    folder.chmod(0o755)
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        folder.rmdir()
        pytest.skip("no file system can be mounted here")
    execute(runs, f"create tablespace small location '{folder}'")
    execute(runs, "alter table ragplane.chunks set tablespace small")
    yield folder
    with suppress(FileNotFoundError):
        (folder / "ballast").unlink()
    execute(runs, "alter table ragplane.chunks set tablespace pg_default")
    execute(runs, "drop tablespace small")
    subprocess.run(["umount", str(folder)], check=True)
    folder.rmdir()


def execute(runs: Runs, statement: str) -> None:
    with psycopg.connect(runs.conninfo, autocommit=True) as connection:
        connection.execute(statement.encode())


def test_a_full_disk_is_named_and_a_run_with_room_again_finishes(
    runs: Runs, small_disk: Path, tmp_path: Path
) -> None:
    """Behaviours 19 and 25."""
    folder = write_documents(tmp_path / "docs", documents=2, pages=2)
    with suppress(OSError), (small_disk / "ballast").open("wb", buffering=0) as ballast:
        while True:
            ballast.write(bytes(4096))
    code, report = runs.ingest(folder, RAGPLANE_PATIENCE_S="1")
    assert (code, report["status"]) == (1, "failed")
    assert {error["stage"] for error in report["errors"]} == {"store"}
    assert "No space left on device" in report["errors"][0]["cause"]
    assert runs.contents().points == []
    kept = runs.finished()
    assert kept

    (small_disk / "ballast").unlink()
    runs.reads()
    code, report = runs.ingest(folder)
    assert (code, report["documents"]["added"]) == (0, 4)
    assert not runs.reads().keys() & kept
    assert len(runs.contents().points) == 4


def scribbled_scan() -> bytes:
    """Two scanned pages of a few words, most of their ink in no word."""
    with pymupdf.open() as document:
        for number in (1, 2):
            page = document.new_page(width=360, height=360)
            page.insert_text((40, 60), f"Pump {number} is serviced in spring", fontsize=16)
        images = render(document.tobytes(), 150)
    rows, columns = np.mgrid[: images[0].shape[0], : images[0].shape[1]]
    rings = np.hypot(rows - 480, columns - 375).astype(int)
    for image in images:
        image[(rings % 40 < 6) & (rings < 200)] = 0
    return scanned_pdf(images, 150)


def test_a_vision_model_that_hangs_leaves_the_text_of_the_ocr(runs: Runs, tmp_path: Path) -> None:
    """Behaviours 3, 8 and 26: tried 3 times for one page, then no more for this document."""
    (tmp_path / "scan.pdf").write_bytes(scribbled_scan())
    with playing(hangs) as server:
        code, report = runs.ingest(
            tmp_path / "scan.pdf",
            RAGPLANE_VLM_URL=server.url,
            RAGPLANE_VLM_MODEL="m",
            RAGPLANE_VLM_TIMEOUT_S="0.5",
        )
    assert (code, report["status"]) == (0, "completed")
    assert len(server.requests) == 3
    assert (report["pages"]["ocr"], report["pages"]["degraded"]) == (2, 2)
    text = " ".join(point[-1] for point in runs.contents().points)
    assert "Pump 1 is serviced in spring" in text
    assert "Pump 2 is serviced in spring" in text
