"""The machine of a request as a table. Pure; :meth:`envdsl.state.requests.Requests.transition` asks it.

    pending ──> approved, isolated ──> building ──> ready, failed
       └──────> ready (there was nothing to do), refused, denied, failed, cancelled, expired

A request goes back where what was decided no longer holds: from ``approved``, ``isolated`` or ``building`` to
``pending`` when resolving it again gives another digest, and from ``building`` to what it was when a worker hands it
back. ``pending`` to itself is the end of resolving where a person has to decide.
"""

from __future__ import annotations

from collections.abc import Mapping

from envdsl.state.records import Status

_BUILDABLE = frozenset({Status.BUILDING, Status.PENDING, Status.CANCELLED, Status.EXPIRED, Status.FAILED})

TRANSITIONS: Mapping[Status, frozenset[Status]] = {
    Status.PENDING: frozenset(
        {
            Status.PENDING,
            Status.APPROVED,
            Status.ISOLATED,
            Status.DENIED,
            Status.REFUSED,
            Status.READY,
            Status.CANCELLED,
            Status.EXPIRED,
            Status.FAILED,
        }
    ),
    Status.APPROVED: _BUILDABLE,
    Status.ISOLATED: _BUILDABLE,
    Status.BUILDING: frozenset({Status.READY, Status.FAILED, Status.APPROVED, Status.ISOLATED, Status.PENDING}),
    **{status: frozenset() for status in Status if status.ended},
}

OPEN = frozenset(status for status in Status if not status.ended)
ENDED = frozenset(status for status in Status if status.ended)
# What time alone may end: a build under way is never cut off.
EXPIRABLE = frozenset({Status.PENDING, Status.APPROVED, Status.ISOLATED})


def allowed(before: Status, after: Status) -> bool:
    """Whether a request may go from ``before`` to ``after``. Nothing leaves a state that has ended."""
    return after in TRANSITIONS[before]
