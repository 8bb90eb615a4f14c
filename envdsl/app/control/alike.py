"""Sessions that are alike ask for the same at the same time: what one's request resolved to holds for the others.

A fleet of sandboxes over one base is the usual case. What a request resolves to depends on the session's layers, the
need, the catalog and the index; the first three are compared, and for the fourth an answer is kept for a minute only.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from envdsl.app.control.asking import fingerprint
from envdsl.policy.proposal import ProblemKind, Proposal, Upload

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane
    from envdsl.policy.catalog import Catalog
    from envdsl.session.manifest import Manifest

_KEPT = 60.0  # seconds
_MOST = 64  # proposals; one holds a lock and what is known of its wheels
_PASSING = frozenset({ProblemKind.UNRESOLVABLE})  # may be mended on the index while somebody looks


@dataclass(frozen=True, slots=True)
class _Kept:
    at: float
    catalog: Catalog
    proposal: Proposal


_lock = threading.Lock()
_proposals: dict[tuple[str, str], _Kept] = {}


def propose(plane: ControlPlane, session: Manifest, requirements: Sequence[str], uploads: Sequence[Upload]) -> Proposal:
    """As :func:`envdsl.app.control.proposing.propose`, which is asked once a minute for sessions that are alike."""
    from envdsl.app.control import proposing

    key = (plane.store_id, fingerprint(session, requirements, uploads))
    catalog = plane.catalog.for_session(session.session)
    with _lock:
        kept = _proposals.get(key)
    if kept is not None and time.monotonic() - kept.at < _KEPT and kept.catalog == catalog:
        return replace(kept.proposal, session=session.session)
    proposal = proposing.propose(plane, session, requirements, uploads)
    if proposal.problem is None or proposal.problem.kind not in _PASSING:
        with _lock:
            _proposals.pop(key, None)
            if len(_proposals) >= _MOST:
                del _proposals[next(iter(_proposals))]
            _proposals[key] = _Kept(time.monotonic(), catalog, proposal)
    return proposal
