"""The audit log for those who read it: what happened, whether the chain holds, and a copy to keep elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envdsl.app.control.authorising import require
from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.digest import is_sha256
from envdsl.policy.access import Action, Principal
from envdsl.state import chain
from envdsl.state.chain import Anchor, Break
from envdsl.state.records import AuditEvent, RequestRecord

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane


@dataclass(frozen=True, slots=True)
class Verification:
    """What a verification found. ``head`` is the last event of what was looked at; whoever keeps it elsewhere can
    later say whether the log still has it. ``broken`` is the first place where the chain does not hold."""

    events: int
    head: Anchor
    broken: Break | None

    def to_json(self) -> dict[str, Any]:
        broken = self.broken
        return {
            "sound": broken is None,
            "events": self.events,
            "head": {"number": self.head.number, "hash": self.head.hash},
            "broken": None if broken is None else {"number": broken.number, "problem": broken.problem},
        }


def newest(
    plane: ControlPlane,
    principal: Principal,
    *,
    limit: int = 50,
    session: str | None = None,
    subject: str | None = None,
    before: int | None = None,
) -> Sequence[AuditEvent]:
    """The latest events of this store, the newest first: of a session, of a subject (a request's or token's id), with
    numbers below ``before``. Other stores may share the database; the chain runs through the events of all.

    Raises :class:`EnvdslError` ``app-forbidden``.
    """
    require(plane, principal, Action.SEE_AUDIT)
    with plane.state.reading() as tx:
        return tx.audit.newest(limit=limit, store=plane.store_id, session=session, subject=subject, before=before)


def of_request(plane: ControlPlane, record: RequestRecord) -> Sequence[AuditEvent]:
    """What happened to a request, in order: for whoever may see the request."""
    with plane.state.reading() as tx:
        return tx.audit.newest(limit=1000, subject=record.id)[::-1]


def verify(
    plane: ControlPlane,
    principal: Principal,
    *,
    first: int = 1,
    last: int | None = None,
    anchor: Anchor | None = None,
) -> Verification:
    """Whether the chain holds from ``first`` to ``last``, and whether the log still has ``anchor``.

    Raises :class:`EnvdslError` ``app-forbidden``.
    """
    require(plane, principal, Action.SEE_AUDIT)
    with plane.state.reading() as tx:
        broken = tx.audit.verify(first, last, anchor=anchor)
        head = tx.audit.head()
    return Verification(max(0, min(head.number, last or head.number) - first + 1), head, broken)


def export(plane: ControlPlane, principal: Principal, *, first: int = 1, last: int | None = None) -> Iterator[str]:
    """The events as lines of JSON, oldest first, each with its hash: a copy that anybody can verify.

    Raises :class:`EnvdslError` ``app-forbidden`` when the first line is asked for.
    """
    require(plane, principal, Action.SEE_AUDIT)
    with plane.state.reading() as tx:
        for event in tx.audit.range(first, last):
            yield json.dumps(chain.to_json(event), ensure_ascii=False)


def verify_export(file: Path) -> Verification:
    """Whether the chain in an export holds by itself; no database is asked.

    An export that begins later than with number 1 is taken to begin rightly. Raises :class:`EnvdslError`
    ``app-audit-export`` for a file that is none.
    """
    events = list(_read_export(file))
    begins_at_start = bool(events) and events[0].number == 1
    broken = chain.check(events, Anchor(0, chain.GENESIS) if begins_at_start else None)
    head = Anchor(events[-1].number, events[-1].hash) if events else Anchor(0, chain.GENESIS)
    return Verification(len(events), head, broken)


def read_anchor(text: str) -> Anchor:
    """An event that was written down earlier: ``NUMBER:HASH``, or a file that is a seal or an export (its last line).

    Raises :class:`EnvdslError` ``app-audit-anchor``.
    """
    number, separator, digest = text.partition(":")
    if separator and number.isdecimal() and is_sha256(digest):
        return Anchor(int(number), digest)
    try:
        content = Path(text).read_text(encoding="utf-8").strip()
        try:
            found = json.loads(content)["audit"]
        except json.JSONDecodeError:
            found = json.loads(content.splitlines()[-1])
        except KeyError:
            found = json.loads(content)  # an export of one event
        return Anchor(int(found["number"]), str(found["hash"]))
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise EnvdslError.of(
            "app-audit-anchor",
            f"{text} is neither NUMBER:HASH, nor a seal or an export of the audit log",
            hint="`envdsl session seal`, `audit-log export` and `audit-log verify` give one",
            exit_status=ExitStatus.USAGE,
        ) from error


def _read_export(file: Path) -> Iterator[AuditEvent]:
    with file.open(encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            try:
                yield chain.from_json(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise EnvdslError.of(
                    "app-audit-export",
                    f"line {number} of {file} is no audit event",
                    hint="`envdsl audit-log export` writes such files",
                    exit_status=ExitStatus.USAGE,
                ) from error
