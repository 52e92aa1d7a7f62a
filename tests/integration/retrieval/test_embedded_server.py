"""The life of the embedded PostgreSQL: who starts it, who stops it, what a kill leaves behind."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ragplane.core.config import Settings
from ragplane.core.errors import ConfigError, UnavailableError
from retrieval.stores import embedded
from retrieval.stores.embedded import EmbeddedServer
from retrieval.stores.postgres import PostgresStore

_USER = """
import sys
from pathlib import Path
from retrieval.stores.embedded import EmbeddedServer
EmbeddedServer(Path(sys.argv[1])).start()
print("started", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A data folder that the tests of this module share, each leaving it stopped."""
    return tmp_path_factory.mktemp("embedded") / "postgres"


def _start_user(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", _USER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def _wait_started(user: subprocess.Popen[bytes]) -> None:
    assert user.stdout is not None
    assert user.stdout.readline() == b"started\n"


def _end(user: subprocess.Popen[bytes], *, kill: bool = False) -> None:
    if kill:
        user.send_signal(signal.SIGKILL)
    user.communicate(timeout=30)


def _postmaster(folder: Path) -> int | None:
    file = folder / "postmaster.pid"
    return int(file.read_text().splitlines()[0]) if file.exists() else None


def _answers(conninfo: str) -> bool:
    with psycopg.connect(conninfo) as connection:
        return connection.execute("select 1").fetchone() == (1,)


def test_two_users_in_one_process_and_a_restart(folder):
    first, second = EmbeddedServer(folder), EmbeddedServer(folder)
    with ThreadPoolExecutor() as threads:
        conninfos = list(threads.map(lambda server: server.start(), (first, second)))
    assert all(_answers(conninfo) for conninfo in conninfos)
    with psycopg.connect(conninfos[0]) as connection:
        connection.execute("create table kept (n int)")
    first.stop()
    first.stop()
    assert _answers(conninfos[1])
    second.stop()
    assert _postmaster(folder) is None
    with psycopg.connect(first.start()) as connection:
        assert connection.execute("select count(*) from kept").fetchone() == (0,)
    first.stop()
    assert _postmaster(folder) is None


def test_two_processes_start_a_new_folder_at_once_and_the_last_stops_it(tmp_path):
    # Too long a path for a socket, which then lies where others can see it.
    folder = tmp_path / ("deep" * 30) / "home" / "postgres"
    half_made = folder.with_name("postgres.new")
    half_made.mkdir(parents=True)
    (half_made / "PG_VERSION").write_text("18")
    users = [_start_user(folder) for _ in range(2)]
    for user in users:
        _wait_started(user)
    socket = Path((folder / "postmaster.pid").read_text().splitlines()[4]) / ".s.PGSQL.5432"
    assert socket.parent != folder
    assert socket.stat().st_mode & 0o077 == 0
    _end(users[0])
    assert _postmaster(folder) is not None
    _end(users[1])
    assert _postmaster(folder) is None
    assert [user.returncode for user in users] == [0, 0]


def test_a_process_that_leaves_without_stopping_stops_what_the_killed_left(folder):
    users = [_start_user(folder) for _ in range(2)]
    for user in users:
        _wait_started(user)
    _end(users[0], kill=True)
    assert _postmaster(folder) is not None
    _end(users[1])
    assert _postmaster(folder) is None


def test_a_process_that_comes_back_counts_and_a_killed_one_does_not(folder):
    users = [_start_user(folder) for _ in range(2)]
    for user in users:
        _wait_started(user)
    server = EmbeddedServer(folder)
    server.start()
    server.stop()
    conninfo = server.start()
    _end(users[0])
    _end(users[1], kill=True)
    assert _answers(conninfo)
    server.stop()
    assert _postmaster(folder) is None


@pytest.mark.parametrize("listed", ["[1]", "[", "", "[999999999]"])
def test_pids_that_never_used_the_server_are_struck_out(folder, listed):
    # Process 1 lives, but is younger than a list that claims to be older than the machine.
    file = folder / ".handle_pids.json"
    file.write_text(listed)
    os.utime(file, (0, 0))
    server = EmbeddedServer(folder)
    server.start()
    assert json.loads(file.read_text()) == [os.getpid()]
    server.stop()
    assert _postmaster(folder) is None


def test_a_killed_postmaster_is_recovered(folder):
    server = EmbeddedServer(folder)
    with psycopg.connect(server.start()) as connection:
        connection.execute("create table survives (n int)")
    postmaster = psutil.Process(_postmaster(folder))
    postmaster.kill()
    postmaster.wait(10)
    again = EmbeddedServer(folder)
    with psycopg.connect(again.start()) as connection:
        assert connection.execute("select count(*) from survives").fetchone() == (0,)
    again.stop()
    server.stop()
    assert _postmaster(folder) is None


async def test_a_postmaster_killed_under_a_store_is_named_and_the_next_store_recovers(folder, key):
    settings = Settings(home=folder.parent)
    store = await PostgresStore.open(settings)
    await store.open_corpus(key, fingerprint="f", dimensions=8)
    postmaster = psutil.Process(_postmaster(folder))
    postmaster.kill()
    postmaster.wait(10)
    for _ in range(2):
        async with asyncio.timeout(5):
            with pytest.raises(UnavailableError, match=r"cannot read the corpus: .*refused"):
                await store.fingerprint(key)
    again = await PostgresStore.open(settings)
    assert await again.fingerprint(key) == "f"
    assert await store.fingerprint(key) == "f"
    await again.aclose()
    await store.aclose()
    assert _postmaster(folder) is None


@pytest.mark.parametrize("left_behind", ["{pid}\n", "{pid}\n{folder}\n1\n5432\n/\n\n0 0\nready\n"])
def test_a_pid_file_that_names_another_program_is_no_server(folder, left_behind):
    text = left_behind.format(pid=os.getpid(), folder=folder)
    (folder / "postmaster.pid").write_text(text)
    server = EmbeddedServer(folder)
    assert _answers(server.start())
    server.stop()


def test_a_path_may_hold_spaces_quotes_commas_and_any_letters(tmp_path):
    folder = tmp_path / "Jiří's files, (new) & 100 % 水" / "postgres"
    server = EmbeddedServer(folder)
    for _ in range(2):
        assert _answers(server.start())
        server.stop()
        assert _postmaster(folder) is None


def test_a_folder_moved_to_a_path_with_spaces_after_a_kill(folder, tmp_path):
    user = _start_user(folder)
    _wait_started(user)
    _end(user, kill=True)
    postmaster = psutil.Process(_postmaster(folder))
    postmaster.kill()
    postmaster.wait(10)
    moved = tmp_path / "with space"
    folder.rename(moved)
    server = EmbeddedServer(moved)
    assert _answers(server.start())
    server.stop()
    moved.rename(folder)
    server = EmbeddedServer(folder)
    assert _answers(server.start())
    server.stop()


def test_another_users_server_at_that_place_is_not_trusted(folder):
    server = EmbeddedServer(folder)
    with pytest.raises(psycopg.OperationalError, match="requirepeer"):
        _answers(make_conninfo(server.start(), requirepeer="nobody"))
    assert conninfo_to_dict(server.start())["requirepeer"] == folder.owner()
    server.stop()


@pytest.mark.parametrize(
    "name", ["$(date)", 'quo"te', "back\\slash", "`tick`", "a\nline", "\udcff"]
)
def test_a_path_that_a_shell_would_read_is_refused(tmp_path, name):
    with pytest.raises(ConfigError, match="shell reads; set RAGPLANE_HOME") as caught:
        EmbeddedServer(tmp_path / name / "postgres").start()
    str(caught.value).encode()


def test_data_of_another_version_are_refused(tmp_path):
    (tmp_path / "PG_VERSION").write_text("16")
    with pytest.raises(ConfigError, match=f"{tmp_path} holds PostgreSQL 16 data, not 18"):
        EmbeddedServer(tmp_path).start()


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "home").write_text("")
    with pytest.raises(ConfigError, match=rf"{tmp_path}/home/postgres: .*File exists"):
        EmbeddedServer(tmp_path / "home" / "postgres").start()


def test_a_folder_that_holds_other_files_is_left_alone(tmp_path):
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres" / "mine.txt").write_text("")
    with pytest.raises(ConfigError, match="not empty"):
        EmbeddedServer(tmp_path / "postgres").start()
    assert (tmp_path / "postgres" / "mine.txt").exists()


def test_a_full_disk_is_unavailable(folder, monkeypatch):
    def full(file: Path) -> list[str]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(embedded, "_lines", full)
    with pytest.raises(UnavailableError, match=rf"{folder}: .*No space left"):
        EmbeddedServer(folder).start()


def test_the_servers_own_reason_is_given(folder, monkeypatch):
    monkeypatch.setattr(embedded, "_RETRY_DELAYS_S", ())
    settings = folder / "postgresql.conf"
    sound = settings.read_text()
    settings.write_text(f"{sound}\nno_such_setting = 1\n")
    try:
        with pytest.raises(UnavailableError, match=r"configuration file .* contains errors"):
            EmbeddedServer(folder).start()
    finally:
        settings.write_text(sound)


def test_a_child_process_does_not_start_it(tmp_path, monkeypatch):
    monkeypatch.setattr(embedded.multiprocessing, "parent_process", object)
    with pytest.raises(ConfigError, match="child process"):
        EmbeddedServer(tmp_path / "postgres").start()
    assert not (tmp_path / "postgres").exists()
