"""``python_env``: what an agent has, asks for, and waits for. One implementation behind the command line, HTTP and MCP.

``status`` is asked often, so what follows from a manifest is found out once for as long as that is the same. Errors of
the asker (a requirement that is none, a session of somebody else's) are raised; whatever becomes of a request is an
answer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from envdsl.app.control import asking, changes, importnames, manifests
from envdsl.app.control.answers import Installed, RequestAnswer, StatusAnswer
from envdsl.app.control.authorising import require
from envdsl.app.control.telling import answer_of, next_of_status
from envdsl.policy.access import Action, Principal
from envdsl.policy.proposal import Upload
from envdsl.session.manifest import Manifest
from envdsl.state.records import RequestRecord, Status

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane

LATEST = 5  # requests that have ended and are still told of
_FIRST_PAUSE = 0.05  # seconds between looks, doubled up to
_LONGEST_PAUSE = 0.5
_KEPT = 512  # sessions
_ANSWERS = 64  # of one session


@dataclass(frozen=True, slots=True)
class _Known:
    """What follows from a manifest. ``answers`` are those that were given, by request and its last change: an answer
    depends on nothing else."""

    stamp: tuple[str, int, int, int]
    manifest: Manifest
    installed: tuple[Installed, ...]
    answers: dict[str, tuple[datetime, RequestAnswer]]


class PythonEnv:
    """What ``principal`` may do. Cheap to make; what is expensive is shared by all of a process."""

    def __init__(self, plane: ControlPlane, principal: Principal) -> None:
        self._plane = plane
        self._principal = principal

    def status(self, session: str) -> StatusAnswer:
        """What can be imported in ``session``, and which requests are open. Raises EnvdslError ``app-forbidden``,
        ``session-unknown``."""
        require(self._plane, self._principal, Action.STATUS, session)
        known = _known(self._plane, session)
        with self._plane.state.reading() as transaction:
            records = transaction.requests.recent(self._plane.store_id, session, ended=LATEST)
        requests = tuple(self._answer(record, known) for record in records)
        manifest = known.manifest
        return StatusAnswer(
            session=session,
            python=manifest.interpreter.version,
            layers=tuple(f"{layer.name} ({layer.id})" for layer in manifest.layers),
            installed=known.installed,
            requests=requests,
            next=next_of_status(requests),
        )

    def request(
        self,
        session: str,
        specs: Sequence[str],
        uploads: Sequence[Upload] = (),
        reason: str = "",
        wait: float = 0.0,
        *,
        key: str | None = None,
    ) -> RequestAnswer:
        """Ask for ``specs`` (PEP 508) and ``uploads``, and wait up to ``wait`` seconds for the outcome.

        Raises what :func:`envdsl.app.control.asking.request` raises.
        """
        record = asking.request(self._plane, self._principal, session, specs, uploads=uploads, reason=reason, key=key)
        return self._settled(record, wait)

    def wait(self, session: str, request_id: str, timeout: float) -> RequestAnswer:
        """How a request stands once it has ended or waits for a person, at the latest after ``timeout`` seconds.

        Raises EnvdslError ``app-forbidden``, ``state-unknown-request``.
        """
        return self._settled(self.find(session, request_id), timeout, for_person=True)

    def find(self, session: str, request_id: str) -> RequestRecord:
        """The request of ``session`` with this id. Raises EnvdslError ``app-forbidden``, ``state-unknown-request``."""
        require(self._plane, self._principal, Action.STATUS, session)
        record = asking.find(self._plane, self._principal, request_id)
        if record.session != session:
            raise asking.unknown(request_id)
        return record

    def answer(self, record: RequestRecord) -> RequestAnswer:
        """How a request stands, as an answer."""
        return self._answer(record, _known(self._plane, record.session))

    def manifest(self, session: str) -> Manifest:
        """What ``session`` is bound to. Raises EnvdslError ``app-forbidden``, ``session-unknown``."""
        require(self._plane, self._principal, Action.STATUS, session)
        return _known(self._plane, session).manifest

    def _settled(self, record: RequestRecord, seconds: float, *, for_person: bool = False) -> RequestAnswer:
        """The answer once the request has ended. One that waits for a person is told of at once, unless somebody waits
        ``for_person``."""
        deadline = time.monotonic() + max(0.0, seconds)
        pause = _FIRST_PAUSE
        with changes.watching(record.id) as news:
            while not (record.status.ended or (waits_for_person(record) and not for_person)):
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                if news.wait(min(pause, left)):
                    news.clear()
                    pause = _FIRST_PAUSE
                else:
                    pause = min(2 * pause, _LONGEST_PAUSE)
                with self._plane.state.reading() as transaction:
                    if transaction.requests.updated(record.id) != record.updated:
                        record = transaction.requests.get(record.id)
        return self.answer(record)

    def _answer(self, record: RequestRecord, known: _Known) -> RequestAnswer:
        kept = known.answers.get(record.id)
        if kept is None or kept[0] != record.updated:
            while len(known.answers) >= _ANSWERS:  # who asks and cancels for ever leaves no trace here
                known.answers.pop(next(iter(known.answers)), None)
            kept = known.answers[record.id] = (record.updated, answer_of(record, known.installed))
        return kept[1]


def waits_for_person(record: RequestRecord) -> bool:
    """Whether nothing happens until somebody decides."""
    return record.status is Status.PENDING and record.classification is not None


_lock = threading.Lock()
_facts: dict[str, _Known] = {}


def _known(plane: ControlPlane, session: str) -> _Known:
    """What follows from the manifest of ``session``, found out again where that is another."""
    parsed = manifests.read(plane.project.store.layout, session)
    file = parsed.stamp[0]
    known = _facts.get(file)
    if known is not None and known.stamp == parsed.stamp:
        return known
    known = _Known(parsed.stamp, parsed.manifest, _installed(plane, parsed.manifest), {})
    with _lock:
        if len(_facts) >= _KEPT:
            _facts.pop(next(iter(_facts)))
        _facts[file] = known
    return known


def _installed(plane: ControlPlane, manifest: Manifest) -> tuple[Installed, ...]:
    """The distributions by name; one that several layers have is that of the first."""
    found: dict[str, Installed] = {}
    for layer in manifest.layers:
        imports = importnames.of_layer(plane.project.store.layout, layer)
        for package in layer.packages:
            installed = Installed(package.name, package.version, imports.get(package.name, ()), layer.name)
            found.setdefault(package.name, installed)
    return tuple(found[name] for name in sorted(found))
