"""Who is at the other end of a Unix socket: the kernel says so (SO_PEERCRED, unix(7)), no client can say otherwise."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol as Protocol
else:
    # What uvicorn's own `auto` does: a parser in C where there is one. Both have what is used here.
    from uvicorn.protocols.http.auto import AutoHTTPProtocol as Protocol

STATE = "peer_uid"
# Seconds in which the head of a request has to come, from the connection on, or from its first byte on one that is
# kept. uvicorn has a limit only for those that are kept and silent.
HEAD = 15.0
_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid


def peer_uid(connection: Any) -> int | None:
    """The user id of the process that connected; None for a connection that is not of a Unix socket.

    The kernel took it when the connection was made: a process that changes its user later changes nothing.
    """
    if connection is None or connection.family != socket.AF_UNIX:
        return None
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _pid, uid, _gid = _CREDENTIALS.unpack(found)
    return cast(int, uid)


class PeerProtocol(Protocol):
    """HTTP/1.1 whose every request carries the uid of its connection as ``request.state.peer_uid``.

    It goes through what uvicorn copies into each request's ``scope["state"]``, which nothing of a request's bytes
    can reach. On TCP it is None.

    Who does not come to the end of a head is hung up on: there are only so many places.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, STATE: peer_uid(transport.get_extra_info("socket"))}
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._waits_for_head():
            self._expect_nothing()
        elif self._deadline is None:
            self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_nothing()
        super().connection_lost(exc)

    def _waits_for_head(self) -> bool:
        """Whether no request is under way: it begins with the end of its head."""
        return self.cycle is None or self.cycle.response_complete

    def _expect_head(self) -> None:
        self._deadline = self.loop.call_later(HEAD, self._hang_up)

    def _expect_nothing(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _hang_up(self) -> None:
        self._deadline = None
        if self._waits_for_head() and not self.transport.is_closing():
            self.transport.close()
