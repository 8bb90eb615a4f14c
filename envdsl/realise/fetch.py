"""Fetching wheels into the wheelhouse: in parallel, resumed where a connection breaks, verified as they arrive.

For each wheel the candidates are tried in their order, nearest first. A candidate whose bytes are not those
that the lock pins is left behind and named; nothing unverified is ever registered. A download that breaks goes
on where it stopped (RFC 9110, range requests); one that is interrupted for good leaves its beginning in the
store's cache, where the next run takes it up. Files on this machine are copied, never linked: whoever owns
the original could change it later.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from envdsl.errors import Diagnostic, EnvdslError, ExitStatus
from envdsl.graph.derivation import WheelFile
from envdsl.realise.partial import Partial, WrongBytesError
from envdsl.reporter import Reporter, Task
from envdsl.store.failures import failures
from envdsl.store.store import Store
from envdsl.store.treehash import Entry, Listing
from envdsl.transport import CONNECT_TIMEOUT, READ_TIMEOUT, Retries, is_transient, new_session, reason, retry_after

if TYPE_CHECKING:
    import requests

DEFAULT_JOBS = 8
_CHUNK = 1 << 18
# A connection that brings something each time may break this often for one file.
_MOST_BREAKS = 100


class Candidate(Protocol):
    """A place that may have the wheel: a file, or a URL without credentials (``lock.candidates.Candidate`` is one)."""

    @property
    def path(self) -> Path | None: ...
    @property
    def url(self) -> str | None: ...
    @property
    def sha256(self) -> str | None: ...
    @property
    def size(self) -> int | None: ...
    @property
    def yanked(self) -> str | None: ...
    @property
    def auth(self) -> tuple[str, str] | None: ...
    @property
    def label(self) -> str: ...


Candidates: TypeAlias = Callable[[WheelFile], Iterable[Candidate]]


class Fetcher:
    """Puts wheels into the wheelhouse of ``store``; call it with those that are needed.

    ``candidates`` says where a wheel may be had. With ``offline`` only files of this machine are used.
    """

    def __init__(
        self,
        store: Store,
        candidates: Candidates,
        *,
        reporter: Reporter,
        offline: bool = False,
        jobs: int = DEFAULT_JOBS,
        retries: Retries | None = None,
    ) -> None:
        self._store = store
        self._candidates = candidates
        self._reporter = reporter
        self._offline = offline
        self._jobs = jobs
        self._retries = retries or Retries()
        self._threads = threading.local()
        self._stop = threading.Event()

    def __call__(self, wheels: Sequence[WheelFile], *, ready: Callable[[WheelFile], None] = lambda wheel: None) -> None:
        """Fetch what is missing of ``wheels``; on return all of them are valid paths of the store.

        ``ready`` is called for each as soon as it is one, from any thread; what it raises ends the fetching.
        Raises EnvdslError with a diagnostic for each wheel that could not be had: ``fetch-hash-mismatch``,
        ``fetch-not-found``, ``fetch-unreachable`` and ``fetch-offline`` (exit status ENVIRONMENT), ``store-…``.
        The others are there all the same.
        """
        distinct = {wheel.key: wheel for wheel in wheels}
        missing = []
        for key, wheel in distinct.items():
            if self._store.lookup(key) is None:
                missing.append(wheel)
            else:
                ready(wheel)
        if not missing:
            return
        missing.sort(key=lambda wheel: (-wheel.size, wheel.filename))
        self._stop.clear()
        total = sum(wheel.size for wheel in missing)
        with self._reporter.task("Fetching wheels", total, "B") as task:
            pool = ThreadPoolExecutor(min(self._jobs, len(missing)), thread_name_prefix="fetch")
            try:
                outcomes = list(pool.map(lambda wheel: self._attempt(wheel, task, ready), missing))
            except BaseException:
                self._stop.set()
                raise
            finally:
                pool.shutdown(cancel_futures=True)
        errors = [error for error in outcomes if error is not None]
        if errors:
            raise EnvdslError.all(errors)

    def _attempt(self, wheel: WheelFile, task: Task, ready: Callable[[WheelFile], None]) -> EnvdslError | None:
        try:
            self._fetch(wheel, task)
        except EnvdslError as error:
            return error
        ready(wheel)
        return None

    def _fetch(self, wheel: WheelFile, task: Task) -> None:
        with self._store.building(wheel.key):
            if self._store.lookup(wheel.key) is not None:
                task.advance(wheel.size)
                return
            task.describe(wheel.filename)
            with failures(f"fetch {wheel.filename}", self._store.layout.root), self._partial(wheel, task) as partial:
                self._fill(wheel, partial)
                listing = Listing([Entry(wheel.filename, "file", False, wheel.size, partial.blake3.hexdigest())])
                partial.close()
                self._store.register(
                    partial.path,
                    self._store.layout.wheel_path(wheel.sha256, wheel.filename),
                    key=wheel.key,
                    kind=WheelFile.kind,
                    listing=listing,
                )

    def _fill(self, wheel: WheelFile, partial: Partial) -> None:
        """Make ``partial`` the whole and verified file from the first candidate that has it."""
        if partial.size >= wheel.size:
            try:
                partial.verify(wheel)
            except WrongBytesError:
                partial.restart()
            else:
                return
        wrong: list[str] = []
        unreachable: list[str] = []
        for candidate in self._tried(wheel, unreachable):
            if candidate.sha256 not in (None, wheel.sha256) or candidate.size not in (None, wheel.size):
                wrong.append(f"{candidate.label} (by its index, sha256 {candidate.sha256}, {candidate.size} bytes)")
                continue
            try:
                self._take(candidate, wheel, partial)
            except WrongBytesError as error:
                wrong.append(f"{candidate.label} ({error})")
                partial.restart()
            except _UnreachableError as error:
                unreachable.append(f"{candidate.label}: {error}")
            else:
                if wrong:
                    self._warn_of_wrong(wheel, wrong)
                if candidate.yanked is not None:
                    self._warn_of_yanked(wheel, candidate.yanked)
                return
        raise self._failure(wheel, wrong, unreachable)

    def _tried(self, wheel: WheelFile, unreachable: list[str]) -> Iterator[Candidate]:
        """The candidates; what keeps an index from naming its own goes to ``unreachable``."""
        try:
            for candidate in self._candidates(wheel):
                if candidate.path is not None or not self._offline:
                    yield candidate
        except EnvdslError as error:
            unreachable.extend(diagnostic.message for diagnostic in error.diagnostics)

    def _take(self, candidate: Candidate, wheel: WheelFile, partial: Partial) -> None:
        """Raises :class:`WrongBytesError`, :class:`_UnreachableError`."""
        if candidate.path is not None:
            partial.restart()
            for chunk in _read(candidate.path):
                partial.append(chunk)
            partial.verify(wheel)
            return
        continued = partial.size > 0
        self._download(candidate, wheel, partial)
        try:
            partial.verify(wheel)
        except WrongBytesError:
            if not continued:
                raise
            # Its beginning came from elsewhere or from an earlier run: give this candidate a fair chance.
            partial.restart()
            self._download(candidate, wheel, partial)
            partial.verify(wheel)

    def _download(self, candidate: Candidate, wheel: WheelFile, partial: Partial) -> None:
        import requests
        import urllib3

        # Not OSError as a whole: that of a full disk is none of the network's.
        troubles = (requests.RequestException, urllib3.exceptions.HTTPError, ConnectionError, TimeoutError)
        fruitless = 0
        for _ in range(_MOST_BREAKS):
            before = partial.size
            try:
                self._stream(candidate, partial)
                if partial.size >= wheel.size:
                    return
                raise ConnectionError("the connection ended early")
            except troubles as error:
                if not is_transient(error):
                    raise _UnreachableError(reason(error)) from error
                fruitless = 0 if partial.size > before else fruitless + 1
                if fruitless >= self._retries.attempts:
                    raise _UnreachableError(f"{reason(error)}, after {fruitless} attempts") from error
                self._retries.wait(fruitless, retry_after(error))
        raise _UnreachableError(f"the connection broke {_MOST_BREAKS} times")

    def _stream(self, candidate: Candidate, partial: Partial) -> None:
        headers = {"Accept-Encoding": "identity"}
        if partial.size:
            headers["Range"] = f"bytes={partial.size}-"
        with self._session().get(
            candidate.url or "",
            auth=candidate.auth,
            headers=headers,
            stream=True,
            timeout=(CONNECT_TIMEOUT, READ_TIMEOUT),
        ) as answer:
            if answer.status_code == 416:  # nothing behind what we have: then that is not a part of it
                partial.restart()
                raise ConnectionError("the range was refused")
            answer.raise_for_status()
            asked = f"bytes {partial.size}-"
            if partial.size and not (
                answer.status_code == 206 and answer.headers.get("Content-Range", asked).startswith(asked)
            ):
                partial.restart()
            # read1 hands over what has arrived: a break then costs no byte that we have already.
            while chunk := answer.raw.read1(_CHUNK, decode_content=False):
                if self._stop.is_set():
                    raise _Interrupted
                partial.append(chunk)

    def _session(self) -> requests.Session:
        session: requests.Session | None = getattr(self._threads, "session", None)
        if session is None:
            session = self._threads.session = new_session()
        return session

    @contextmanager
    def _partial(self, wheel: WheelFile, task: Task) -> Iterator[Partial]:
        """The file to fill, with what an earlier run has left of it; unfinished, it is kept for the next run."""
        directory = self._store.temporary(f"fetch-{wheel.filename}")
        kept = self._store.layout.cache / "downloads" / wheel.sha256
        path = directory / wheel.filename
        try:
            kept.rename(path)
        except FileNotFoundError:
            path.touch()
        partial = Partial(path, wheel.size, task)
        try:
            yield partial
        except BaseException:
            partial.close()
            if partial.size:
                kept.parent.mkdir(parents=True, exist_ok=True)
                path.rename(kept)
            raise
        finally:
            partial.close()
            path.unlink(missing_ok=True)
            directory.rmdir()

    def _failure(self, wheel: WheelFile, wrong: list[str], unreachable: list[str]) -> EnvdslError:
        details = {"filename": wheel.filename, "sha256": wheel.sha256, "refused": wrong, "unreachable": unreachable}
        if wrong:
            return EnvdslError.of(
                "fetch-hash-mismatch",
                f"{wheel.filename} is not what the lock pins (sha256 {wheel.sha256}, {wheel.size} bytes): "
                + "; ".join(wrong),
                hint="it was not used; a released file does not change, so ask who changed it before locking again",
                details=details,
            )
        if unreachable:
            return EnvdslError.of(
                "fetch-unreachable",
                f"{wheel.filename} could not be fetched: " + "; ".join(unreachable),
                hint="check the network and the indexes (envdsl.toml, or what uv and pip are configured with)",
                exit_status=ExitStatus.ENVIRONMENT,
                details=details,
            )
        if self._offline:
            return EnvdslError.of(
                "fetch-offline",
                f"{wheel.filename} is not on this machine, and we are offline",
                hint="build once with network, or put it into a flat index of envdsl.toml",
                exit_status=ExitStatus.ENVIRONMENT,
                details=details,
            )
        return EnvdslError.of(
            "fetch-not-found",
            f"no index offers {wheel.filename} (sha256 {wheel.sha256})",
            hint="name the index that has it in envdsl.toml, or lock the layer again with `--upgrade-package`",
            exit_status=ExitStatus.ENVIRONMENT,
            details=details,
        )

    def _warn_of_wrong(self, wheel: WheelFile, wrong: list[str]) -> None:
        message = (
            f"{wheel.filename} was found elsewhere after other bytes than the lock pins came from {'; '.join(wrong)}"
        )
        self._reporter.warn(Diagnostic("fetch-hash-mismatch", message, severity="warning"))

    def _warn_of_yanked(self, wheel: WheelFile, why: str) -> None:
        self._reporter.warn(
            Diagnostic(
                "fetch-yanked",
                f"{wheel.filename} is yanked since it was locked ({why})",
                hint="`envdsl lock --upgrade-package` moves the pin",
                severity="warning",
            )
        )


def _read(path: Path) -> Iterator[bytes]:
    """The content of a file. Raises :class:`_UnreachableError`."""
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk
    except OSError as error:
        raise _UnreachableError(error.strerror or "cannot be read") from error


class _UnreachableError(Exception):
    """A candidate could not be had, and why."""


class _Interrupted(Exception):  # noqa: N818 - the user's wish, not an error
    """Another thread has given up."""
