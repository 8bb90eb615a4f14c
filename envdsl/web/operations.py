"""``/healthz`` and ``/metrics``: for supervisors and Prometheus. What is wrong, ``/api/v1/health`` says."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from envdsl.policy.access import Action
from envdsl.web import authorisation
from envdsl.web.metrics import MEDIA_TYPE, Metrics
from envdsl.web.threads import in_thread

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane


async def liveness(_request: Request) -> Response:
    """The process answers. It touches nothing: a database that is away is no reason to restart the service."""
    return JSONResponse({"status": "ok"})


async def metrics(request: Request) -> Response:
    """Prometheus's text format, for whoever may see the store."""
    authorisation.require(request.state.principal, Action.SEE_STORE)
    state = request.app.state
    text = await in_thread(request, partial(_show, state.plane, state.metrics, state.crew.alive))
    return Response(text, media_type=MEDIA_TYPE)


def _show(plane: ControlPlane, shown: Metrics, workers: int) -> bytes:
    with plane.state.reading() as tx:
        counts, unresolved = tx.requests.counts(plane.store_id), tx.requests.unresolved(plane.store_id)
        undelivered = tx.webhooks.undelivered(plane.store_id)
    statuses = {status.value: count for status, count in counts.items()}
    return shown.show(statuses, unresolved=unresolved, workers=workers, undelivered=undelivered, now=plane.now())
