"""What a database refuses, as envdsl's errors. No password of a URL gets into one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, OperationalError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.redaction import redact


def shown(url: URL) -> str:
    """``url`` for a message: without user name, password, or a query that could hold one."""
    return URL.create(url.drivername, host=url.host, port=url.port, database=url.database).render_as_string()


def unsupported(url: str) -> EnvdslError:
    return EnvdslError.of(
        "state-url",
        f"not the URL of a database that envdsl can use: {redact(url)}",
        hint="sqlite:///PATH, or postgresql+psycopg://USER@HOST/DATABASE",
        exit_status=ExitStatus.USAGE,
    )


def no_driver(url: URL, missing: str | None) -> EnvdslError:
    return EnvdslError.of(
        "state-no-driver",
        f"{shown(url)} needs the package {missing}, which is not installed",
        hint="install envdsl with its extra: envdsl[postgres]",
        exit_status=ExitStatus.ENVIRONMENT,
    )


def newer(url: URL, revision: str) -> EnvdslError:
    return EnvdslError.of(
        "state-newer",
        f"the database {shown(url)} was written by a newer envdsl: its schema is {revision}",
        hint="upgrade envdsl on this host; nothing was changed",
        exit_status=ExitStatus.ENVIRONMENT,
    )


_CHECKS = {
    False: "is its server running, and may this user connect",
    True: "does the directory exist, and may this user write in it",
}


@contextmanager
def translated(url: URL) -> Iterator[None]:
    """Errors of the database and of its driver as :class:`EnvdslError` with exit status ENVIRONMENT.

    ``state-unreachable``: no connection, or it broke; ``state-busy``: other writers held the database for too long;
    ``state-database``: it refused a statement. An error that a column type raised comes out as it is.
    """
    try:
        yield
    except StatementError as error:
        if isinstance(error.orig, EnvdslError):
            raise error.orig from None
        if not isinstance(error, DBAPIError):
            raise
        raise _of(url, error) from None  # a traceback of the driver's shows the row that was refused
    except PoolTimeout as error:
        raise busy(url, "all connections of this process are in use") from error


def _of(url: URL, error: DBAPIError) -> EnvdslError:
    # PostgreSQL's further lines hold the row that was refused; the first one says why it was.
    primary = getattr(getattr(error.orig, "diag", None), "message_primary", None)
    said = " ".join(str(primary or error.orig).split())
    said = redact(said, [url.password] if isinstance(url.password, str) else [])
    if "database is locked" in said or "lock timeout" in said:
        return busy(url, said)
    if error.connection_invalidated or isinstance(error, OperationalError):
        return EnvdslError.of(
            "state-unreachable",
            f"the database {shown(url)} cannot be used: {said}",
            hint=f"{_CHECKS[url.host is None and not url.query]}; `[service] database` or ENVDSL_DATABASE names it",
            exit_status=ExitStatus.ENVIRONMENT,
        )
    return EnvdslError.of(
        "state-database",
        f"the database {shown(url)} refused: {said}",
        exit_status=ExitStatus.ENVIRONMENT,
    )


def busy(url: URL, why: str) -> EnvdslError:
    return EnvdslError.of(
        "state-busy",
        f"the database {shown(url)} is busy: {why}",
        hint="try again; every transaction of envdsl is short, so something else may hold a lock",
        exit_status=ExitStatus.ENVIRONMENT,
    )


def unwritable(url: URL, error: OSError) -> EnvdslError:
    return EnvdslError.of(
        "state-unreachable",
        f"the database {shown(url)} cannot be made: {error.strerror}",
        hint=f"{_CHECKS[True]}; `[service] database` or ENVDSL_DATABASE names it",
        exit_status=ExitStatus.ENVIRONMENT,
    )
