"""What `ragplane status` says of the runs over a corpus."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest

from ingest.ledger.records import LedgerStatus, Run
from ragplane.render_ingest import print_status, status_json

AT = datetime(2025, 3, 1, 1, 30, tzinfo=timezone(timedelta(hours=2)))
NOTHING = LedgerStatus({}, {}, {}, 0, ())
TOTALS = {"documents": {"added": 3, "failed": 1, "moved": 0}, "stages": {"parse": 1}}
DONE = Run(UUID(int=1), AT, AT + timedelta(minutes=5), "completed_with_errors", TOTALS)
KILLED = Run(UUID(int=2), AT, None, None, {})


def test_the_history_of_runs_is_told_to_machines() -> None:
    """Behaviour 25."""
    runs = status_json("c", None, NOTHING, [KILLED, DONE])["runs"]
    assert runs[0] == {"started_at": AT.isoformat(), "ended_at": None, "status": None}
    assert runs[1]["status"] == "completed_with_errors"
    assert datetime.fromisoformat(runs[1]["ended_at"]) == DONE.ended_at
    assert (runs[1]["documents"]["added"], runs[1]["stages"]) == (3, {"parse": 1})


@pytest.mark.parametrize(
    ("run", "line"),
    [
        (DONE, "last run: 2025-02-28 23:30 UTC, completed_with_errors (3 added, 1 failed)"),
        (
            KILLED,
            "last run: 2025-02-28 23:30 UTC, not ended: it runs, or was killed (no documents)",
        ),
    ],
)
def test_the_last_run_is_told_to_people(
    run: Run, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Behaviour 25: in UTC, whatever the database's time zone."""
    assert AT.astimezone(UTC).day == 28
    print_status("c", None, NOTHING, [run, DONE])
    assert line in capsys.readouterr().out.splitlines()
