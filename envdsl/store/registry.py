"""The database of valid paths. A path is valid when it has a row here, and only then.

SQLite in WAL mode. A row carries the id of the boot under which it was written until its files are known to
be on disk. Under another boot they may have lost bytes with the power: whoever opens the database first compares them
(``docs/decisions/durability.md``). The module imports ``sqlite3`` when a database is opened:
a command that finds nothing to do needs none.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.store.locks import gate

if TYPE_CHECKING:
    import sqlite3

FindLost: TypeAlias = Callable[[Sequence["StorePath"]], Collection[str]]

APPLICATION_ID = 0x656E7664  # "envd"
_MANY = 500  # keys; asking for all paths is quicker than for more by one
BUSY_TIMEOUT = 60.0  # seconds; every transaction here is short

# One script for each version of the schema; a database of version n gets the scripts from n on.
MIGRATIONS = (
    """
    CREATE TABLE paths (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        key TEXT NOT NULL UNIQUE,
        path TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL,
        tree_hash TEXT NOT NULL,
        size INTEGER NOT NULL,
        registered INTEGER NOT NULL,
        boot TEXT
    );
    CREATE INDEX paths_unflushed ON paths (boot) WHERE boot IS NOT NULL;
    CREATE TABLE path_references (
        key TEXT NOT NULL REFERENCES paths (key) ON DELETE CASCADE,
        reference TEXT NOT NULL,
        PRIMARY KEY (key, reference)
    ) WITHOUT ROWID;
    CREATE TABLE listings (
        key TEXT PRIMARY KEY REFERENCES paths (key) ON DELETE CASCADE,
        data BLOB NOT NULL
    );
    """,
    """
    ALTER TABLE paths ADD COLUMN used INTEGER NOT NULL DEFAULT 0;
    UPDATE paths SET used = registered;
    """,
)


@dataclass(frozen=True, slots=True)
class StorePath:
    """A valid path: ``path`` relative to the store's root, ``registered`` in seconds since 1970, ``size`` the
    bytes of its files, ``references`` the keys of what it was made from (sorted). ``used`` is when it was last needed:
    registered, held by a lease, or found alive by gc; up to an hour (a day, for gc) early.

    ``kind`` is one of ``wheel unpack bytecode source layer python``.
    """

    path: str
    key: str
    kind: str
    tree_hash: str
    size: int
    references: tuple[str, ...]
    registered: int
    used: int = 0


class Registry:
    """The rows of a store. Opened at the first question; may be used from several threads, and after a fork.

    ``find_lost`` is called at that question where there are rows of an earlier boot that were never flushed: it
    returns the keys of those whose files did not survive. Without it, none of them did.
    """

    def __init__(self, database: Path, locks: Path, *, writable: bool, find_lost: FindLost | None = None) -> None:
        self._database = database
        self._locks = locks
        self._writable = writable
        self._find_lost = find_lost
        self._mutex = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._process = 0

    def close(self) -> None:
        with self._mutex:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, for SELECTs in the block; raises EnvdslError for what the database refuses."""
        import sqlite3

        with self._mutex:
            try:
                yield self._open()
            except sqlite3.Error as error:
                raise self._failure(error) from error

    @contextmanager
    def writing(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """One transaction: committed with the block, rolled back where it raises.

        ``durable``: on disk when the block is left, with everything committed before it; otherwise a power
        failure may take the latest transactions back, in order.
        """
        with self.reading() as connection:
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                if connection.in_transaction:  # after some failures SQLite has rolled back by itself
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def by_key(self, key: str) -> StorePath | None:
        return self._one("key", key)

    def by_path(self, path: str) -> StorePath | None:
        return self._one("path", path)

    def all(self, kind: str | None = None) -> list[StorePath]:
        """All valid paths (of one kind), sorted by path."""
        with self.reading() as connection:
            where, arguments = ("WHERE kind = ?", (kind,)) if kind else ("", ())
            references = self.references()
            rows = connection.execute(f"SELECT {_COLUMNS} FROM paths {where} ORDER BY path", arguments).fetchall()
        same = {row[1]: row[1] for row in rows}  # one string for each key, however often it is referenced
        return [
            _store_path(row, tuple(sorted(same.get(key, key) for key in references.get(row[1], "").split())))
            for row in rows
        ]

    def named(self, keys: Collection[str]) -> list[StorePath]:
        """The valid paths among ``keys``, sorted by path."""
        if len(keys) > _MANY:
            wanted = set(keys)
            return [path for path in self.all() if path.key in wanted]
        found = [path for key in keys if (path := self.by_key(key)) is not None]
        return sorted(found, key=lambda path: path.path)

    def places(self) -> dict[str, str]:
        """The path of every key: with :meth:`references`, what little gc needs to know of a hundred thousand."""
        with self.reading() as connection:
            return dict(connection.execute("SELECT key, path FROM paths"))

    def references(self) -> dict[str, str]:
        """By key, what each valid path references: keys with spaces between them. These need not be valid."""
        with self.reading() as connection:
            return dict(
                connection.execute("SELECT key, group_concat(reference, ' ') FROM path_references GROUP BY key")
            )

    def unused_since(self, moment: int) -> set[str]:
        """The keys that were last used then (seconds since 1970) or before."""
        with self.reading() as connection:
            return {key for (key,) in connection.execute("SELECT key FROM paths WHERE used <= ?", (moment,))}

    def touch(self, keys: Iterable[str], now: int, *, resolution: int = 0) -> None:
        """Note that ``keys`` were needed ``now``; where that was noted less than ``resolution`` seconds ago,
        nothing is written."""
        before = now - resolution
        with self.reading() as connection:
            stale = [
                (now, key)
                for key in keys
                if connection.execute("SELECT 1 FROM paths WHERE key = ? AND used <= ?", (key, before)).fetchone()
            ]
        if stale:
            with self.writing() as connection:
                connection.executemany("UPDATE paths SET used = ? WHERE key = ?", stale)

    def listing(self, key: str) -> bytes | None:
        with self.reading() as connection:
            row = connection.execute("SELECT data FROM listings WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def insert(self, path: StorePath, listing: bytes) -> None:
        """Make ``path`` valid, in place of whatever row had its key or its path."""
        with self.writing() as connection:
            connection.execute("DELETE FROM paths WHERE key = ? OR path = ?", (path.key, path.path))
            connection.execute(
                f"INSERT INTO paths ({_COLUMNS}, boot) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (path.path, path.key, path.kind, path.tree_hash, path.size, path.registered, path.used, boot_id()),
            )
            connection.executemany(
                "INSERT INTO path_references (key, reference) VALUES (?, ?)",
                [(path.key, reference) for reference in path.references],
            )
            connection.execute("INSERT INTO listings (key, data) VALUES (?, ?)", (path.key, listing))

    def replace_listing(self, key: str, listing: bytes) -> None:
        """Write the listing of a valid path anew: its own record was damaged."""
        with self.writing(durable=True) as connection:
            connection.execute("INSERT OR REPLACE INTO listings (key, data) VALUES (?, ?)", (key, listing))

    def delete(self, keys: Iterable[str]) -> None:
        """Make paths invalid, for good: no power failure brings a row back whose files may be gone."""
        with self.writing(durable=True) as connection:
            connection.executemany("DELETE FROM paths WHERE key = ?", [(key,) for key in keys])

    def newest(self) -> int:
        """The number of the latest row; 0 where there is none. Numbers only grow."""
        with self.reading() as connection:
            (number,) = connection.execute("SELECT coalesce(max(id), 0) FROM paths").fetchone()
        return int(number)

    def unflushed(self, *, older_than: float = 0.0) -> int:
        """The number of the latest row that was not flushed; 0 where none is that is older than so many seconds."""
        with self.reading() as connection:
            number, first = connection.execute(
                "SELECT coalesce(max(id), 0), min(registered) FROM paths WHERE boot IS NOT NULL"
            ).fetchone()
        return int(number) if number and first <= time.time() - older_than else 0

    def newer_than(self, number: int) -> set[str]:
        """The keys of the rows after number ``number``."""
        with self.reading() as connection:
            return {key for (key,) in connection.execute("SELECT key FROM paths WHERE id > ?", (number,))}

    def mark_flushed(self, newest: int) -> None:
        """The files of all rows up to number ``newest`` are on disk."""
        with self.writing(durable=True) as connection:
            connection.execute("UPDATE paths SET boot = NULL WHERE boot IS NOT NULL AND id <= ?", (newest,))

    def drop_unflushed(self) -> None:
        """Make all paths invalid whose files are not known to be on disk."""
        with self.writing(durable=True) as connection:
            connection.execute("DELETE FROM paths WHERE boot IS NOT NULL")

    def _one(self, column: str, value: str) -> StorePath | None:
        with self.reading() as connection:
            row = connection.execute(f"SELECT {_COLUMNS} FROM paths WHERE {column} = ?", (value,)).fetchone()
            if row is None:
                return None
            references = connection.execute("SELECT reference FROM path_references WHERE key = ? ORDER BY 1", (row[1],))
            return _store_path(row, tuple(reference for (reference,) in references))

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and self._process == os.getpid():
            return self._connection
        # A connection that came through a fork belongs to the parent: closing it here would be wrong as well.
        self._connection, self._process = None, os.getpid()
        self._connection = self._connect() if self._writable else self._connect_read_only()
        if self._writable:
            try:
                self._recover(self._connection)
            except BaseException:
                self._connection.close()
                self._connection = None
                raise
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        connection = self._raw(str(self._database), uri=False)
        try:
            if self._version(connection) < len(MIGRATIONS):
                with gate(self._locks / "database", shared=False):
                    self._migrate(connection)
            connection.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect_read_only(self) -> sqlite3.Connection:
        import sqlite3

        if not self._database.exists():
            connection = self._raw(":memory:", uri=False)
            self._migrate(connection)
            return connection
        place = self._database.absolute().as_uri()
        try:
            connection = self._raw(f"{place}?mode=ro", uri=True)
            version = self._version(connection)
        except sqlite3.OperationalError:
            # Without a writer SQLite cannot make its shared-memory file here; nobody else can write, either.
            connection = self._raw(f"{place}?mode=ro&immutable=1", uri=True)
            version = self._version(connection)
        # What cannot be compared here (see _recover) is hidden, and what cannot be migrated is made up for.
        columns = "*, registered AS used" if version < 2 else "*"
        connection.execute(
            f"CREATE TEMP VIEW paths AS SELECT {columns} FROM main.paths WHERE boot IS NULL OR boot = '{boot_id()}'"
        )
        return connection

    @staticmethod
    def _raw(database: str, *, uri: bool) -> sqlite3.Connection:
        import sqlite3

        return sqlite3.connect(
            database, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False, uri=uri, cached_statements=64
        )

    def _version(self, connection: sqlite3.Connection) -> int:
        """The schema's version; raises EnvdslError for a database that is not ours or from the future."""
        # One statement, so that it sees one state: another process may be making the tables.
        version, application, tables = connection.execute(
            "SELECT user_version, application_id, (SELECT count(*) FROM sqlite_master) "
            "FROM pragma_user_version, pragma_application_id"
        ).fetchone()
        if application != APPLICATION_ID and (application or version or tables):
            raise EnvdslError.of(
                "store-database-foreign",
                f"{self._database} is a database of some other program",
                hint="is this directory really a store? Name the right one: --store, ENVDSL_STORE",
                exit_status=ExitStatus.ENVIRONMENT,
            )
        if version > len(MIGRATIONS):
            raise EnvdslError.of(
                "store-database-newer",
                f"{self._database} was written by a newer envdsl (schema {version}; this one knows {len(MIGRATIONS)})",
                hint="update envdsl, or use another store: --store, ENVDSL_STORE",
                exit_status=ExitStatus.ENVIRONMENT,
            )
        return int(version)

    def _migrate(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        version = self._version(connection)
        for number, script in enumerate(MIGRATIONS[version:], version + 1):
            connection.executescript(
                f"BEGIN IMMEDIATE; {script}"
                f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {number}; COMMIT;"
            )

    def _recover(self, connection: sqlite3.Connection) -> None:
        """Rows of an earlier boot that were never flushed: those that survived become rows of this boot.

        The connection is open for others of this thread meanwhile, and shows these rows.
        """
        find = f"SELECT {_COLUMNS} FROM paths WHERE boot IS NOT NULL AND boot <> ? ORDER BY path"
        if connection.execute(f"{find} LIMIT 1", (boot_id(),)).fetchone() is None:
            return
        with gate(self._locks / "database", shared=False):
            stale = [_store_path(row, ()) for row in connection.execute(find, (boot_id(),)).fetchall()]
            lost: Collection[str] = {path.key for path in stale}
            if stale and self._find_lost is not None:
                lost = self._find_lost(stale)
            with self.writing():
                connection.executemany("DELETE FROM paths WHERE key = ?", [(key,) for key in lost])
                connection.executemany(
                    "UPDATE paths SET boot = ? WHERE key = ? AND boot IS NOT NULL",
                    [(boot_id(), path.key) for path in stale],
                )

    def _disk_is_full(self) -> bool:
        try:
            return os.statvfs(self._database.parent).f_bavail == 0
        except OSError:
            return False

    def _failure(self, error: sqlite3.Error) -> EnvdslError:
        import sqlite3

        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_IOERR and self._disk_is_full():
            code = sqlite3.SQLITE_FULL  # its shared memory is a file, and says it in another way
        facts: dict[str, Any] = {"exit_status": ExitStatus.ENVIRONMENT}
        match code:
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_FORMAT | sqlite3.SQLITE_ERROR:
                return EnvdslError.of(
                    "store-database-damaged",
                    f"{self._database} is damaged: {error}",
                    hint=f"remove {self._database.name}* (three files): the next build makes again what it needs, "
                    "and `envdsl gc` removes the rest",
                    **facts,
                )
            case sqlite3.SQLITE_FULL:
                return EnvdslError.of(
                    "store-full",
                    f"no space left to write {self._database}",
                    hint="free space on that file system (`envdsl gc` may help), or move the store: "
                    "--store, ENVDSL_STORE",
                    **facts,
                )
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
                return EnvdslError.of(
                    "store-permission",
                    f"not allowed to open or write {self._database}: {error}",
                    hint="run as the owner of the store, or use a store of your own: --store, ENVDSL_STORE",
                    **facts,
                )
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return EnvdslError.of(
                    "store-busy",
                    f"{self._database} was locked by another process for {BUSY_TIMEOUT:.0f} seconds",
                    hint="look for an envdsl process that hangs, then run the command again",
                    **facts,
                )
        return EnvdslError.of(
            "store-io", f"{self._database}: {error}", hint="see the kernel's log for errors of the disk", **facts
        )


_COLUMNS = "path, key, kind, tree_hash, size, registered, used"


def _store_path(row: tuple[Any, ...], references: tuple[str, ...]) -> StorePath:
    path, key, kind, tree_hash, size, registered, used = row
    return StorePath(path, key, kind, tree_hash, size, references, registered, max(used, registered))


@cache
def boot_id() -> str:
    """What tells this boot of the machine from any other; the same in all of its containers."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        # Every process is a boot of its own then: what it does not flush, the next one compares.
        return os.urandom(16).hex()
