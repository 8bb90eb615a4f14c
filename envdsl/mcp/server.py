"""One tool, ``python_env``, over :class:`envdsl.app.control.python_env.PythonEnv`.

Over stdio the server is started for one session. Over HTTP it is mounted into ``envdsl serve``, which has found out
who is calling before a message gets here; an agent's token names its session.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import anyio
import anyio.to_thread
from anyio import CapacityLimiter
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, InputRequiredResult, TextContent, ToolAnnotations
from pydantic import Field, ValidationError

from envdsl import __version__
from envdsl.app.control import asking, hints, uploads
from envdsl.app.control.answers import RequestAnswer, StatusAnswer, to_json, to_text
from envdsl.app.control.authorising import require
from envdsl.app.control.python_env import PythonEnv
from envdsl.app.control.waiting import settled
from envdsl.app.control.workspace import open_wheel
from envdsl.errors import EnvdslError
from envdsl.policy.access import Action, Principal
from envdsl.policy.proposal import Upload

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp

    from envdsl.app.control.plane import ControlPlane
    from envdsl.state.records import RequestRecord

T = TypeVar("T")

MOST_WAIT = 60.0  # seconds; clients give up on a call that takes much longer
MOST_WHEELS = 20  # of one call
_QUICK, _SLOW = 8, 2  # calls that run at once: those that take milliseconds, and intakes of wheels

INSTRUCTIONS = """\
Commands of this session run in a sandbox without a network, where pip cannot install anything. Use python_env to see \
which Python packages are there, to ask for more, and to wait until they are. What is granted can be imported by the \
next command that is started; a process that runs already does not see it."""

DESCRIPTION = """\
Python packages of the sandbox: what is installed, and asking for more.

action "status": what can be imported now, and which requests are open.
action "request": ask for packages, e.g. {"action": "request", "packages": ["rich>=13"], "reason": "tables in the \
report"}. Versions are chosen to fit what is there. Most answers come at once; some need a person, who reads the reason.
action "wait": wait for the answer to a request, e.g. {"action": "wait", "request": "req-..."}.

Start a new process after a package was granted. When something is refused, the answer says what to do instead."""

# What an agent can do where the hint of an error names a command.
_WAYS = {"state-unknown-request": 'call {"action": "status"}: it lists the requests of the session'}
# What each argument has to be, and how it is written.
_ARGUMENTS = {
    "action": ("status, request or wait", '{"action": "status"}'),
    "packages": ("a list of requirements", '{"action": "request", "packages": ["rich>=13"]}'),
    "wheels": (
        f"a list of up to {MOST_WHEELS} wheel files in the workspace",
        '{"action": "request", "wheels": ["dist/mine-1.0-py3-none-any.whl"]}',
    ),
    "reason": ("a text", '{"action": "request", "packages": ["rich"], "reason": "tables in the report"}'),
    "request": ("the id of a request", '{"action": "wait", "request": "req-…"}; status lists them'),
    "timeout": (f"a number of seconds from 0 to {MOST_WAIT:g}", '{"timeout": 20}'),
    "session": ("the name of a session", '{"session": "…"}'),
}

Who = Callable[[Context[Any, Any]], Principal]


class _Server(MCPServer[Any]):
    """The library's server, which answers arguments that do not fit as it answers everything else."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            return _failed(EnvdslError.all(_argument_errors(error.__cause__)))


def _argument_errors(found: ValidationError) -> list[EnvdslError]:
    """One error for each argument that is wrong; what was written is not repeated: it may be long."""
    wrong = {str(item["loc"][0]): item["type"] for item in found.errors(include_url=False, include_input=False)}
    errors = []
    for name, kind in wrong.items():
        wanted, example = _ARGUMENTS[name]
        message = f"`{name}` is missing" if kind == "missing" else f"`{name}` has to be {wanted}"
        errors.append(_usage("mcp-argument", message, f"write {example}"))
    return errors


def server(plane: ControlPlane, who: Who) -> MCPServer[Any]:
    """The server; ``who`` says who is calling."""
    quick, slow = CapacityLimiter(_QUICK), CapacityLimiter(_SLOW)
    mcp = _Server("envdsl", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING")

    @mcp.tool(
        description=DESCRIPTION,
        annotations=ToolAnnotations(
            title="Python packages", read_only_hint=False, destructive_hint=False, idempotent_hint=True
        ),
    )
    async def python_env(
        context: Context[Any, Any],
        action: Literal["status", "request", "wait"],
        packages: Annotated[
            list[str], Field(description="For request: requirements such as rich or rich>=13,<15.")
        ] = [],  # noqa: B006 # never changed; the schema shows it
        wheels: Annotated[
            list[str],
            Field(
                max_length=MOST_WHEELS,
                description="For request: wheel files in the workspace, such as dist/mine-1.0-py3-none-any.whl.",
            ),
        ] = [],  # noqa: B006
        reason: Annotated[str, Field(description="For request: what it is needed for, in a sentence.")] = "",
        request: Annotated[str | None, Field(description="For wait: the id of the request.")] = None,
        timeout: Annotated[
            float, Field(ge=0, le=MOST_WAIT, description="For request and wait: seconds to wait for an answer.")
        ] = 20.0,
        session: Annotated[str | None, Field(description="The session; needed only where several can be seen.")] = None,
    ) -> CallToolResult:
        try:
            caller = _Caller(plane, who(context), session, quick, slow)
            match action:
                case "status":
                    answer: StatusAnswer | RequestAnswer = hints.in_status(await caller.status(), _WAYS)
                case "request":
                    answer = hints.in_request(await caller.request(packages, wheels, reason, timeout), _WAYS)
                case "wait":
                    answer = hints.in_request(await caller.wait(request, timeout), _WAYS)
        except EnvdslError as error:
            return _failed(error)
        return CallToolResult(
            content=[TextContent(type="text", text=to_text(answer))],
            structured_content=json.loads(json.dumps(to_json(answer))),
        )

    return mcp


def run_stdio(plane: ControlPlane, principal: Principal) -> None:
    """Serve one session over the standard streams, until the client closes them."""
    server(plane, lambda context: principal).run("stdio")


def mounted(plane: ControlPlane, path: str) -> tuple[ASGIApp, Callable[[], AbstractAsyncContextManager[None]]]:
    """The application that answers at ``path`` of the service, and what its lifespan has to enter.

    Stateless, so that it does not matter which process of several a message reaches, or whether one was restarted.
    The service guards hosts, origins and sizes for all its routes; it puts the caller into ``request.state``.
    """
    mcp = server(plane, _principal_of_request)
    application = mcp.streamable_http_app(streamable_http_path=path, stateless_http=True, json_response=True, host="")
    return application, mcp.session_manager.run


def _principal_of_request(context: Context[Any, Any]) -> Principal:
    request: Request | None = context.request_context.request
    assert request is not None
    principal = request.state.principal
    assert isinstance(principal, Principal)
    return principal


class _Caller:
    """What one call does. Whoever waits holds no thread: an agent that waits often would take them from all others."""

    def __init__(
        self,
        plane: ControlPlane,
        principal: Principal,
        session: str | None,
        quick: CapacityLimiter,
        slow: CapacityLimiter,
    ) -> None:
        name = session or principal.session
        if name is None:
            raise _usage("app-session-needed", "say which session is meant", 'add {"session": "…"}')
        self._plane = plane
        self._principal = principal
        self._session = name
        self._environment = PythonEnv(plane, principal)
        self._quick = quick
        self._slow = slow

    async def status(self) -> StatusAnswer:
        return await self._in_thread(partial(self._environment.status, self._session))

    async def request(self, packages: list[str], wheels: list[str], reason: str, timeout: float) -> RequestAnswer:
        """One that waits for a person is told of at once."""
        if not packages and not wheels:
            raise _usage("app-packages-needed", "nothing is asked for", 'add {"packages": ["rich>=13"]}')
        received = await anyio.to_thread.run_sync(partial(self._received, wheels), limiter=self._slow) if wheels else []
        record = await self._in_thread(
            partial(
                asking.request,
                self._plane,
                self._principal,
                self._session,
                packages,
                uploads=received,
                reason=reason,
            )
        )
        return await self._settled(record, timeout, for_person=False)

    async def wait(self, request: str | None, timeout: float) -> RequestAnswer:
        if not request:
            raise _usage(
                "app-request-needed", "say which request is meant", 'add {"request": "req-…"}; status lists them'
            )
        record = await self._in_thread(partial(self._environment.find, self._session, request))
        return await self._settled(record, timeout, for_person=True)

    def _received(self, wheels: list[str]) -> list[Upload]:
        # Before anything is read: who may see a session may not yet have its files taken in.
        require(self._plane, self._principal, Action.REQUEST, self._session)
        received = []
        for path in wheels:
            with open_wheel(self._environment.manifest(self._session), path) as (filename, file):
                received.append(uploads.receive(self._plane, filename, file, session=self._session)[0])
        return received

    async def _settled(self, record: RequestRecord, timeout: float, *, for_person: bool) -> RequestAnswer:
        async def look(known: RequestRecord) -> RequestRecord:
            return await self._in_thread(partial(self._environment.find, self._session, known.id))

        record = await settled(record, timeout, look, for_person=for_person)
        return await self._in_thread(partial(self._environment.answer, record))

    async def _in_thread(self, function: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(function, limiter=self._quick)


def _usage(code: str, message: str, hint: str) -> EnvdslError:
    from envdsl.errors import ExitStatus

    return EnvdslError.of(code, message, hint=hint, exit_status=ExitStatus.USAGE)


def _failed(error: EnvdslError) -> CallToolResult:
    found = [
        {"code": item.code, "message": item.message, **({"instead": hint} if hint else {})}
        for item in error.diagnostics
        for hint in [hints.elsewhere(item.code, item.hint, _WAYS)]
    ]
    if error.code == "session-unknown":  # its hint names a session that is called alike, whoever's it is
        found = [{"code": error.code, "message": "there is no such session"}]
    lines = [
        f"{item['message']} ({item['code']})" + (f" Instead: {item['instead']}" if "instead" in item else "")
        for item in found
    ]
    return CallToolResult(
        content=[TextContent(type="text", text="\n".join(lines))], structured_content={"errors": found}, is_error=True
    )
