"""The control plane of a store, open: its state, its catalog, and who is who.

The command line opens one for a command, the service one for its life; every function beside this module takes it
first.
"""

from __future__ import annotations

import os
import pwd
import secrets
import threading
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.names import SESSION_NAME
from envdsl.policy.access import Action, Principal, Role
from envdsl.policy.catalog import Catalog, parse_catalog
from envdsl.state.database import Clock, Database, sqlite_url, utc_now

if TYPE_CHECKING:
    from envdsl.app.project import Project

_Stamp = tuple[int, int, int]


class ControlPlane:
    """For any number of threads. Use as a context manager; the project stays its opener's to close."""

    def __init__(self, project: Project, state: Database, clock: Clock) -> None:
        self.project = project
        self.state = state
        self._clock = clock
        self._reading = threading.Lock()
        self._catalog: tuple[_Stamp, Catalog] | None = None

    @classmethod
    def open(cls, project: Project, *, url: str | None = None, clock: Clock = utc_now) -> Self:
        """The control plane of ``project``; ``url`` names another database than its configuration.

        Makes the store's id and brings the database up to date. Raises :class:`EnvdslError` as
        :meth:`Database.open <envdsl.state.database.Database.open>` does, ``store-…`` where there can be no store.
        """
        store = project.store.layout.root
        setting = url or project.config.service.database
        plane = cls(project, Database.open(setting or sqlite_url(store / "state.db"), clock=clock), clock)
        try:
            _ = plane.store_id
        except BaseException:
            plane.close()
            raise
        return plane

    @cached_property
    def store_id(self) -> str:
        """32 hexadecimal digits that tell this store from others that share its database; kept in ``<store>/id``."""
        file = self.project.config.store / "id"
        try:
            return _read_id(file)
        except FileNotFoundError:
            pass
        temporary = file.with_name(f".id-{os.getpid()}-{threading.get_ident()}")
        temporary.write_text(f"{secrets.token_hex(16)}\n")
        try:
            os.link(temporary, file)  # whoever is first
        except FileExistsError:
            pass
        finally:
            temporary.unlink()
        return _read_id(file)

    @property
    def catalog(self) -> Catalog:
        """The catalog as its file is now; an empty one, by which a person decides on everything, where there is none.

        Raises :class:`EnvdslError` ``policy-catalog-…`` with every mistake in it.
        """
        file = self.project.config.catalog
        with self._reading:
            try:
                with file.open("rb") as stream:
                    status = os.fstat(stream.fileno())
                    stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
                    if self._catalog is None or self._catalog[0] != stamp:
                        self._catalog = (stamp, parse_catalog(_decoded(stream.read(), file), name=self._shown(file)))
            except FileNotFoundError:
                return Catalog()
            except OSError as error:
                raise unreadable(self._shown(file), error) from error
            return self._catalog[1]

    def now(self) -> datetime:
        """In UTC."""
        return self._clock()

    def owner_of(self, session: str) -> str:
        """To whom ``session`` belongs: as was said (``exec_env_sessions``), else the user whose directory it is.

        Raises :class:`EnvdslError` ``session-unknown``.
        """
        layout = self.project.store.layout
        directory = layout.sessions / session
        if not SESSION_NAME.fullmatch(session) or not (directory / "manifest.json").is_file():
            from envdsl.session import bindings

            bindings.show(layout, session)  # says what there is
        with self.state.reading() as tx:
            owner = tx.sessions.owner(self.store_id, session)
        return owner if owner is not None else user_name(directory.stat().st_uid)

    def owners(self) -> dict[str, str]:
        """To whom each session of the store belongs, by the session's name, in order; one question for all of them."""
        from envdsl.session import bindings

        layout = self.project.store.layout
        with self.state.reading() as tx:
            said = tx.sessions.owners(self.store_id)
        found: dict[str, str] = {}
        for session in bindings.names(layout):
            with suppress(FileNotFoundError):  # removed meanwhile
                found[session] = said.get(session) or user_name((layout.sessions / session).stat().st_uid)
        return found

    def principal_of_user(self, uid: int) -> Principal:
        """Who a user of this machine is: an administrator where root, the owner of the store's directory, or named in
        ``service.administrators``; else the owner of the sessions that are theirs."""
        name = user_name(uid)
        trusted = (0, self.project.config.store.stat().st_uid)
        if uid in trusted or name in self.project.config.service.administrators:
            return Principal(Role.ADMINISTRATOR, name)
        return Principal(Role.OWNER, name)

    def agent_of(self, session: str) -> Principal:
        """The rights of an agent of ``session``, for a program that this process's user lets ask there.

        Raises :class:`EnvdslError` ``session-unknown``, ``app-forbidden``.
        """
        from envdsl.app.control.authorising import require

        self.owner_of(session)
        require(self, self.principal_of_user(os.geteuid()), Action.REQUEST, session)
        return Principal(Role.AGENT, f"agent:{session}", session)

    def close(self) -> None:
        self.state.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _shown(self, file: Path) -> str:
        root = self.project.config.root
        return file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)


def user_name(uid: int) -> str:
    """The name of a user of this machine; ``uid:<number>`` for one without."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid:{uid}"


def _read_id(file: Path) -> str:
    text = file.read_text().strip()
    if len(text) != 32 or not set(text) <= set("0123456789abcdef"):
        raise EnvdslError.of(
            "app-store-id",
            f"{file} holds no id of a store",
            hint="restore it: requests and bindings in the database belong to the id that it held",
            exit_status=ExitStatus.ENVIRONMENT,
        )
    return text


def unreadable(catalog: str, error: OSError) -> EnvdslError:
    """For a catalog's file that is there and cannot be read: nothing is decided without it."""
    return EnvdslError.of(
        "policy-catalog-unreadable",
        f"{catalog} cannot be read: {error.strerror or error}",
        hint="let the user that runs this read it (`ls -l`), or remove it: then a person decides on everything",
        exit_status=ExitStatus.ENVIRONMENT,
    )


def _decoded(data: bytes, file: Path) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise EnvdslError.of(
            "policy-catalog-syntax", f"{file} is not UTF-8: {error}", exit_status=ExitStatus.USAGE
        ) from None
