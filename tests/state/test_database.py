"""Opening, transactions, and what goes wrong with a database."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.state.database import Database, sqlite_url
from envdsl.state.migrations import REVISIONS, VERSION_TABLE
from tests.postgres import Server
from tests.state.conftest import STORE, actions, ask

_OPEN = """
import sys
from envdsl.state.database import Database
sys.stdin.readline()
with Database.open(sys.argv[1]) as database, database.transaction() as tx:
    tx.audit.append(actor=sys.argv[2], action="test.opened")
"""


def test_processes_that_open_a_new_database_at_once_make_one(database_url: str) -> None:
    """Issue 4.4: concurrent first opens."""
    crew = [
        subprocess.Popen([sys.executable, "-c", _OPEN, database_url, str(number)], stdin=subprocess.PIPE)
        for number in range(4)
    ]
    for process in crew:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.close()
    assert [process.wait(timeout=60) for process in crew] == [0, 0, 0, 0]
    with Database.open(database_url) as database, database.reading() as tx:
        assert sorted(event.actor for event in tx.audit.range()) == ["0", "1", "2", "3"]
        assert tx.audit.verify() is None


def test_threads_that_open_a_new_database_at_once_make_one(database_url: str) -> None:
    barrier = threading.Barrier(6)
    problems: list[BaseException] = []

    def first() -> None:
        barrier.wait()
        try:
            with Database.open(database_url) as database, database.transaction() as tx:
                tx.audit.append(actor="me", action="test.opened")
        except BaseException as error:
            problems.append(error)

    crew = [threading.Thread(target=first) for _ in range(6)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    assert problems == []
    with Database.open(database_url) as database, database.reading() as tx:
        assert tx.audit.head().number == 6


def test_a_database_of_a_newer_envdsl_is_refused_and_left_as_it_is(database_url: str) -> None:
    Database.open(database_url).close()
    engine = create_engine(database_url)
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    with pytest.raises(EnvdslError) as raised:
        Database.open(database_url)
    assert raised.value.code == "state-newer"
    assert raised.value.exit_status == ExitStatus.ENVIRONMENT
    assert "9999" in str(raised.value)
    with engine.connect() as connection:
        assert connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}")) == "9999"
    engine.dispose()


def test_opening_a_database_that_is_up_to_date_imports_no_alembic(database_url: str) -> None:
    Database.open(database_url).close()
    program = (
        "import sys; from envdsl.state.database import Database\n"
        "Database.open(sys.argv[1]).close(); sys.exit('alembic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program, database_url], check=False).returncode == 0


def test_a_transaction_that_raises_leaves_nothing(database: Database) -> None:
    def fails() -> None:
        with database.transaction() as tx:
            ask(tx)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    with database.reading() as tx:
        assert tx.requests.list(STORE) == []
        assert actions(tx) == []


def test_a_reader_sees_one_snapshot_and_waits_for_no_writer(database: Database) -> None:
    with database.transaction() as tx:
        ask(tx, "first")
    with database.reading() as before:
        assert len(before.requests.list(STORE)) == 1
        done = threading.Thread(target=lambda: _ask_in_its_own(database, "second"))
        done.start()
        done.join(timeout=20)
        assert not done.is_alive()
        assert len(before.requests.list(STORE)) == 1
    with database.reading() as after:
        assert len(after.requests.list(STORE)) == 2


def _ask_in_its_own(database: Database, need: str) -> None:
    with database.transaction() as tx:
        ask(tx, need)


def test_a_writer_waits_for_the_writer_before_it(database: Database) -> None:
    order: list[str] = []

    def second() -> None:
        with database.transaction() as tx:
            order.append(f"second sees {len(tx.requests.list(STORE))}")

    thread = threading.Thread(target=second)
    with database.transaction() as tx:
        thread.start()
        ask(tx)
        time.sleep(0.1)
        order.append("first ends")
    thread.join()
    assert order == ["first ends", "second sees 1"]


def test_a_writer_whose_turn_does_not_come_says_so(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, and behind another one."""
    from envdsl.state import engine as engines
    from envdsl.state.database import WRITERS_LOCK

    Database.open(database_url).close()
    monkeypatch.setattr(engines, "WAIT", 1)
    engine = create_engine(database_url)
    sqlite = engine.dialect.name == "sqlite"
    with Database.open(database_url) as mine, engine.connect() as other:
        other.exec_driver_sql("BEGIN IMMEDIATE" if sqlite else f"SELECT pg_advisory_xact_lock({WRITERS_LOCK})")
        with pytest.raises(EnvdslError) as raised, mine.transaction():
            pass
        assert (raised.value.code, raised.value.exit_status) == ("state-busy", ExitStatus.ENVIRONMENT)
        other.rollback()
        codes: list[str] = []

        def too_late() -> None:
            try:
                with mine.transaction():
                    pass
            except EnvdslError as error:
                codes.append(error.code)

        with mine.transaction():
            thread = threading.Thread(target=too_late)
            thread.start()
            thread.join()
        assert codes == ["state-busy"]
        with mine.transaction() as tx:
            ask(tx)
    engine.dispose()


def test_a_traceback_tells_no_parameters(database: Database) -> None:
    """Issue 4.9: some are digests of tokens."""
    with pytest.raises(EnvdslError) as raised, database.transaction() as tx:
        tx.write(
            text("INSERT INTO access_tokens (id, digest) VALUES (:id, :digest)").bindparams(id="t", digest="5ec1e7")
        )
    shown = "".join(traceback.format_exception(raised.value))
    assert "state-database" in repr(raised.value.diagnostics)
    assert "5ec1e7" not in shown.replace('digest="5ec1e7"', "")  # the line of this test itself
    assert "5ec1e7" not in repr(raised.value.diagnostics)


def test_a_transaction_for_reading_writes_nothing(database: Database) -> None:
    with pytest.raises(RuntimeError, match="reading"), database.reading() as tx:
        ask(tx)


def test_a_transaction_inside_another_of_its_thread_is_a_defect_and_no_deadlock(database: Database) -> None:
    with pytest.raises(RuntimeError, match="already"), database.transaction(), database.transaction():
        pass
    with database.transaction() as tx:
        ask(tx)


def test_moments_come_back_in_utc_to_the_microsecond_wherever_they_were(database: Database) -> None:
    from datetime import datetime, timedelta, timezone

    there = datetime(2026, 3, 2, 1, 2, 3, 456789, tzinfo=timezone(timedelta(hours=9)))
    with database.transaction() as tx:
        request = ask(tx, expires=there)
    assert request.expires == there
    assert request.expires is not None
    assert request.expires.utcoffset() == timedelta(0)
    with pytest.raises(Exception, match="no time zone"), database.transaction() as tx:
        ask(tx, "bar", expires=datetime(2026, 3, 2))


@pytest.mark.parametrize("reason", ["a\0b", "\ud800"])
def test_text_that_no_database_holds_is_the_askers_mistake(database: Database, reason: str) -> None:
    with pytest.raises(EnvdslError) as raised, database.transaction() as tx:
        ask(tx, reason=reason)
    assert raised.value.code == "state-text"
    assert raised.value.exit_status == ExitStatus.USAGE


@pytest.mark.parametrize("text", ["名前 ünï 👩‍🔬", "'; DROP TABLE exec_env_requests; --", "\\u0000", "\x7f\x01\n", ""])
def test_any_other_text_comes_back_as_it_was(database: Database, text: str) -> None:
    with database.transaction() as tx:
        request = ask(tx, text or "x", reason=text, uploads=[{"filename": text}])
        tx.requests.transition(request.id, {request.status}, request.status, actor="rule", proposal={text: [text]})
    with database.reading() as tx:
        found = tx.requests.get(request.id)
        assert (found.reason, found.uploads[0]["filename"], found.proposal) == (text, text, {text: [text]})
        assert tx.audit.verify() is None


@pytest.mark.parametrize("url", ["mysql://a:secret@h/d", "sqlite://", "sqlite:///:memory:", "nonsense secret", ""])
def test_a_url_of_no_database_that_can_be_used_is_a_usage_error(url: str) -> None:
    with pytest.raises(EnvdslError) as raised:
        Database.open(url)
    assert raised.value.code == "state-url"
    assert raised.value.exit_status == ExitStatus.USAGE
    assert "a:secret" not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://envdsl:hunter2@127.0.0.1:1/db?connect_timeout=2",
        "postgresql://envdsl@127.0.0.1:1/db?password=hunter2",
        "postgresql+psycopg://envdsl:hunter2@/db?host=/nonexistent",
    ],
)
def test_a_server_that_does_not_answer_is_named_without_its_password(url: str) -> None:
    """Issue 4.9: no credential in an error."""
    with pytest.raises(EnvdslError) as raised:
        Database.open(url)
    assert raised.value.code == "state-unreachable"
    assert raised.value.exit_status == ExitStatus.ENVIRONMENT
    assert "hunter2" not in repr(raised.value.diagnostics)
    assert "127.0.0.1" in str(raised.value) or "nonexistent" in str(raised.value)


def test_a_directory_that_is_missing_or_not_writable_is_an_error_of_the_environment(tmp_path: Path) -> None:
    with pytest.raises(EnvdslError) as raised:
        Database.open(f"sqlite:///{tmp_path}/missing/state.db")
    assert raised.value.code == "state-unreachable"
    assert raised.value.exit_status == ExitStatus.ENVIRONMENT
    (tmp_path / "text.db").write_text("this is no database, but long enough to look at" * 50)
    with pytest.raises(EnvdslError) as raised:
        Database.open(f"sqlite:///{tmp_path}/text.db")
    assert raised.value.exit_status == ExitStatus.ENVIRONMENT
    assert "not a database" in str(raised.value)


def test_a_new_database_is_for_its_user_and_group(tmp_path: Path) -> None:
    """Issue 4.9: what others ask for is not to be read by whoever has a login on the machine."""
    file = tmp_path / "state.db"
    with Database.open(sqlite_url(file)) as database, database.transaction() as tx:
        tx.audit.append(actor="a", action="thing.done")
        modes = {path.name: path.stat().st_mode & 0o007 for path in tmp_path.glob("state.db*")}
    assert {name: mode for name, mode in modes.items() if mode and name != "state.db.lock"} == {}
    assert "state.db-wal" in modes


def test_sqlite_writes_ahead_and_flushes_each_commit(tmp_path: Path) -> None:
    with Database.open(f"sqlite:///{tmp_path}/state.db") as database, database.reading() as tx:
        values = {
            name: tx.read(text(f"PRAGMA {name}")).scalar() for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    assert values == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def test_a_connection_that_breaks_is_an_error_and_the_next_transaction_has_another(postgres: Server) -> None:
    """As when a server is started again."""
    with Database.open(postgres.database()) as database:
        with pytest.raises(EnvdslError) as raised, database.transaction() as tx:
            tx.read(text("SELECT pg_terminate_backend(pg_backend_pid())"))
        assert raised.value.code == "state-unreachable"
        with database.transaction() as tx:
            ask(tx)


def test_revisions_are_those_of_the_package() -> None:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    import envdsl.state.migrations as package

    config = Config()
    config.set_main_option("script_location", str(Path(package.__file__).parent))
    config.set_main_option("path_separator", "os")
    script = ScriptDirectory.from_config(config)
    assert tuple(item.revision for item in reversed(list(script.walk_revisions()))) == REVISIONS
    assert json.dumps(script.get_heads()) == json.dumps([REVISIONS[-1]])
