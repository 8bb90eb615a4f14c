"""``envdsl serve``: the application under uvicorn, from the first connection to the last."""

from __future__ import annotations

import logging
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from envdsl.web import listening
from envdsl.web.listening import Address
from envdsl.web.peer import PeerProtocol
from envdsl.web.preloading import preload
from envdsl.web.server import application
from envdsl.web.settings import Settings

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from envdsl.app.control.plane import ControlPlane

_LOG = logging.getLogger("envdsl.web")
_KEEP_ALIVE = 30  # seconds that an idle connection is kept
CONNECTIONS = 2000
# Connections that are accepted before anybody who is connected already is answered again. asyncio takes this for the
# length of the kernel's queue as well, which is to be longer.
_ACCEPTED = 16
# Seconds after which a busy thread lets another one run. The default (5 ms) is what the event loop would wait for, once
# for each thread that is busy, before it can answer anybody.
_SWITCH = 0.001


def serve(
    plane: ControlPlane,
    *,
    unix: Path,
    tcp: Address | None = None,
    proxies: Sequence[str] = (),
    settings: Settings,
    ready: Callable[[list[str]], None] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, then let what runs come to its end within ``settings.grace``.

    ``proxies`` are the addresses of reverse proxies that speak TLS for us. ``ready`` hears where the service
    listens, once it answers there.
    Raises :class:`EnvdslError` (:mod:`envdsl.web.listening`).
    """
    with ExitStack() as stack:
        sockets = [stack.enter_context(listening.listen_unix(unix))]
        inode = listening.inode_of(unix)
        if inode is not None:
            stack.callback(listening.remove, unix, inode)
        if tcp is not None:
            sockets.append(stack.enter_context(listening.listen_tcp(tcp, behind_proxy=bool(proxies))))
        preload(plane)
        places = [_name(item) for item in sockets]
        app = application(plane, settings=settings)

        def answering() -> None:
            _LOG.info("listening", extra={"fields": {"at": " ".join(places), "workers": settings.workers}})
            if ready is not None:
                ready(places)

        server = Server(configuration(app, settings, proxies), app, answering)
        sys.setswitchinterval(_SWITCH)
        _allow_files()
        server.run(sockets)
        _LOG.info("stopped")


def _allow_files() -> None:
    """As many open files as the system lets us have: each connection is one, and the usual limit is 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * CONNECTIONS if hard == resource.RLIM_INFINITY else min(hard, 4 * CONNECTIONS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def configuration(app: Starlette, settings: Settings, proxies: Sequence[str] = ()) -> uvicorn.Config:
    """uvicorn as this service needs it: credentials of sockets' peers, no WebSockets, our own log."""
    return uvicorn.Config(
        app,
        http=PeerProtocol,
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        # Without a proxy, an address that is forwarded is one that anybody may make up.
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        limit_concurrency=CONNECTIONS,
        backlog=_ACCEPTED,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=max(1, int(settings.grace)),
    )


class Server(uvicorn.Server):
    """uvicorn's server, whose workers and long waits hear of the end when it begins, and which ends in peace.

    uvicorn raises the signal again when all is done, so that the process dies of it; a service that was asked to stop
    and did has nothing to die of.
    """

    def __init__(self, config: uvicorn.Config, app: Starlette, answering: Callable[[], None] = lambda: None) -> None:
        super().__init__(config)
        self._answering = answering
        self._stopping: threading.Event = app.state.stopping

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(listening.BACKLOG)
        if self.started:
            self._answering()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._stopping.set()
        super().handle_exit(sig, frame)


def _name(listener: socket.socket) -> str:
    place = listener.getsockname()
    return f"unix:{place}" if isinstance(place, str) else f"http://{Address(*place[:2])}"
