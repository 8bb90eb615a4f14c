"""What is known of wheels beyond their locks: licence, summary, since when an index has them, whether it withdrew them.

A wheel that is at hand is read; else its index is asked for the metadata alone (PEP 658), and where it has none,
for the few kilobytes of the archive that hold them. Whatever can't be found out is None: a catalog says what
follows from that, and nothing fails for it.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from envdsl.errors import EnvdslError
from envdsl.lock.candidates import auth_for, local_path
from envdsl.lock.metadata import MOST_METADATA, CoreMetadata, parse_metadata, read_wheel
from envdsl.lock.pages import IndexedFile, Pages
from envdsl.transport import CONNECT_TIMEOUT, READ_TIMEOUT, Retries, new_session

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer
    from requests import Session

    from envdsl.lock.index import IndexConfiguration
    from envdsl.lock.lock import LockedWheel

_THREADS = 8
_BLOCK = 1 << 16
_MOST_BYTES = 8 << 20  # read of one archive through the network


@dataclass(frozen=True, slots=True)
class WheelFacts:
    """``metadata`` is what the wheel says of itself, None where that could not be had; ``released`` when the index got
    it, None where no index tells; ``yanked`` the reason for which the index withdrew it."""

    metadata: CoreMetadata | None = None
    released: datetime | None = None
    yanked: str | None = None

    @property
    def licence(self) -> str | None:
        return self.metadata.licence if self.metadata else None

    @property
    def summary(self) -> str:
        return self.metadata.summary if self.metadata else ""


class FactsReader:
    """Finds the facts of wheels. Answers of indexes are kept, so it serves for one question.

    ``at_hand`` finds the file of a wheel on this machine; ``offline``: no index of the network is asked.
    """

    def __init__(
        self,
        configuration: IndexConfiguration,
        at_hand: Callable[[LockedWheel], Path | None],
        *,
        offline: bool = False,
        retries: Retries | None = None,
    ) -> None:
        self._configuration = configuration
        self._at_hand = at_hand
        self._offline = offline
        # A fact that is missing makes a person look; waiting long for an index that does not answer helps nobody.
        self._retries = retries or Retries(attempts=2)
        self._pages = Pages(configuration, self._retries)
        self._threads = threading.local()

    def read(self, wheels: Iterable[LockedWheel]) -> Mapping[str, WheelFacts]:
        """The facts of each wheel by its sha256."""
        distinct = {wheel.sha256: wheel for wheel in wheels}
        with ThreadPoolExecutor(_THREADS) as pool:
            return dict(zip(distinct, pool.map(self._facts, distinct.values()), strict=True))

    def _facts(self, wheel: LockedWheel) -> WheelFacts:
        files = list(self._indexed(wheel)) if wheel.path is None else []
        metadata = None
        with suppress(Exception):  # whatever is wrong with an archive or a server: its metadata are not known
            metadata = self._metadata(wheel, files[0] if files else None)
        return WheelFacts(
            metadata,
            released=next((_moment(file.uploaded) for file in files if file.uploaded), None),
            yanked=next((file.yanked for file in files if file.yanked is not None), None),
        )

    def _indexed(self, wheel: LockedWheel) -> Iterator[IndexedFile]:
        """The entry of the first index that has this very file, or may have it. Where that tells no date, as flat
        directories don't, those of further indexes that have the same bytes, up to one with a date."""
        from packaging.utils import parse_wheel_filename

        project = parse_wheel_filename(wheel.filename)[0]
        found = False
        for source in self._configuration.sources_for(project):
            if self._offline and source.directory is None:
                continue
            with suppress(EnvdslError):
                file = self._pages.find(source, project, wheel.filename)
                if file is not None and (file.sha256 == wheel.sha256 or (file.sha256 is None and not found)):
                    found = True
                    yield file
                    if file.uploaded:
                        return

    def _metadata(self, wheel: LockedWheel, file: IndexedFile | None) -> CoreMetadata | None:
        path = self._at_hand(wheel)
        if path is None and file is not None:
            path = local_path(file.url)
        if path is not None:
            with path.open("rb") as stream:
                return read_wheel(stream)[0]
        if file is None:
            return None
        if file.metadata:
            return parse_metadata(self._retries.call(lambda: self._get(f"{file.url}.metadata", MOST_METADATA)))
        remote = _Remote(self._session(), file.url, auth_for(file.url, self._configuration), wheel.size)
        with io.BufferedReader(remote, _BLOCK) as stream:  # a raw read ends with its block, and zipfile wants it all
            return read_wheel(stream)[0]

    def _get(self, url: str, most: int) -> bytes:
        with self._session().get(
            url, auth=auth_for(url, self._configuration), timeout=(CONNECT_TIMEOUT, READ_TIMEOUT), stream=True
        ) as answer:
            answer.raise_for_status()
            data = answer.raw.read(most + 1, decode_content=True)
        if len(data) > most:
            raise ValueError("too much")
        return bytes(data)

    def _session(self) -> Session:
        session: Session | None = getattr(self._threads, "session", None)
        if session is None:
            session = self._threads.session = new_session()
        return session


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)


class _Remote(io.RawIOBase):
    """A file behind a URL, read in blocks by range requests, and no more of it than :data:`_MOST_BYTES`."""

    def __init__(self, session: Session, url: str, auth: tuple[str, str] | None, size: int) -> None:
        self._session = session
        self._url = url
        self._auth = auth
        self._size = size
        self._at = 0
        self._blocks: dict[int, bytes] = {}

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        number, start = divmod(self._at, _BLOCK)
        if self._at >= self._size:
            return 0
        data = self._block(number)[start : start + len(view)]
        view[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _block(self, number: int) -> bytes:
        if number not in self._blocks:
            if (len(self._blocks) + 1) * _BLOCK > _MOST_BYTES:
                raise OSError("the metadata take too much of the archive")
            first, last = number * _BLOCK, min(self._size, (number + 1) * _BLOCK) - 1
            headers = {"Range": f"bytes={first}-{last}", "Accept-Encoding": "identity"}
            timeout = CONNECT_TIMEOUT, READ_TIMEOUT
            with self._session.get(self._url, auth=self._auth, timeout=timeout, headers=headers, stream=True) as answer:
                answer.raise_for_status()
                if answer.status_code != 206 and self._size > _MOST_BYTES:
                    raise OSError("the server knows no ranges")
                if answer.status_code == 206:
                    self._blocks[number] = answer.raw.read(last - first + 1)
                else:
                    data = answer.raw.read(self._size)
                    parts = range(0, self._size, _BLOCK)
                    self._blocks = {at // _BLOCK: data[at : at + _BLOCK] for at in parts}
        return self._blocks[number]
