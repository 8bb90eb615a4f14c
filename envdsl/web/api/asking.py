"""``python_env`` over HTTP: status, request, wait."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from envdsl.policy.proposal import Upload
from envdsl.web.api.endpoint import Call
from envdsl.web.threads import in_thread

if TYPE_CHECKING:
    from envdsl.app.control.python_env import PythonEnv
    from envdsl.state.records import RequestRecord


def status(call: Call) -> dict[str, Any]:
    from envdsl.app.control import hints
    from envdsl.app.control.answers import to_json
    from envdsl.web.problems import WAYS

    return to_json(hints.in_status(_environment(call).status(call.session), WAYS))


async def ask(call: Call, request: Request) -> dict[str, Any]:
    """One that waits for a person is told of at once: whoever wants to wait for that asks how it stands."""
    record = await in_thread(request, partial(_ask, call), writing=True)
    return await _settled(call, request, record, for_person=False)


async def wait(call: Call, request: Request) -> dict[str, Any]:
    return await _settled(call, request, call.request, for_person=True)


def cancel(call: Call) -> dict[str, Any]:
    from envdsl.app.control import asking

    return _answer(call, asking.cancel(call.plane, call.principal, call.request.id))


async def _settled(call: Call, request: Request, record: RequestRecord, *, for_person: bool) -> dict[str, Any]:
    """How the request stands once it has ended, at the latest after ``?wait=`` seconds, or when the service stops."""
    from envdsl.app.control import waiting

    state = request.app.state

    async def look(known: RequestRecord) -> RequestRecord:
        return await in_thread(request, partial(_look, call, known))

    seconds = min(call.query.get("wait", 0), state.settings.max_wait)
    record = await waiting.settled(record, seconds, look, for_person=for_person, stopping=state.stopping.is_set)
    return await in_thread(request, partial(_answer, call, record))


def _ask(call: Call) -> RequestRecord:
    from envdsl.app.control import asking

    uploads = [Upload(item["filename"], item["sha256"], item["size"]) for item in call.body.get("uploads", ())]
    requirements: Sequence[str] = call.body.get("requirements", ())
    reason, key = call.body.get("reason", ""), call.body.get("key")
    return asking.request(
        call.plane, call.principal, call.session, requirements, uploads=uploads, reason=reason, key=key
    )


def _look(call: Call, record: RequestRecord) -> RequestRecord:
    """``record`` as it is now; read again only where it has changed."""
    with call.plane.state.reading() as tx:
        return record if tx.requests.updated(record.id) == record.updated else tx.requests.get(record.id)


def _answer(call: Call, record: RequestRecord) -> dict[str, Any]:
    from envdsl.app.control import hints
    from envdsl.app.control.answers import to_json
    from envdsl.web.problems import WAYS

    return to_json(hints.in_request(_environment(call).answer(record), WAYS))


def _environment(call: Call) -> PythonEnv:
    from envdsl.app.control.python_env import PythonEnv

    return PythonEnv(call.plane, call.principal)
