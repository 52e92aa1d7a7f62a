"""The command line over a bucket."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

from tests.acceptance.ingest_runs import CORPUS, Runs
from tests.integration.ingest.s3_server import Bucket, S3Server


def ingest(runs: Runs, bucket: Bucket, address: str) -> tuple[int, dict[str, Any], str]:
    """The exit code, the report if there is one, and what is said beside it."""
    arguments = ("ingest", address, "--corpus", CORPUS, "--json")
    with runs.started(*arguments, **bucket.server.env) as process:
        output, errors = process.communicate(timeout=60)
    return process.returncode, json.loads(output) if output else {}, errors


def test_a_bucket_is_ingested_and_left_alone_by_the_next_run(runs: Runs) -> None:
    """Behaviour 19."""
    with S3Server() as server, closing(server.bucket()) as bucket:
        bucket.put(**{"docs//gate 1%.md": "The gate opens at noon.", "other.md": "Other."})
        code, report, _ = ingest(runs, bucket, bucket.uri("docs/"))
        assert (code, report["status"], report["documents"]["added"]) == (0, "completed", 1)
        sources = runs.rows("select source from ragplane.documents")
        assert sources == [(bucket.uri("docs//gate%201%25.md"),)]
        assert bucket.fetched() == ["docs//gate%201%25.md"]

        code, report, _ = ingest(runs, bucket, bucket.uri("docs/"))
        assert (code, report["documents"]["unchanged"]) == (0, 1)
        assert bucket.fetched() == []

        code, _, errors = ingest(runs, bucket, "s3://no-such-bucket/docs/")
        assert code == 2
        assert "s3://no-such-bucket/docs/: NoSuchBucket" in errors
