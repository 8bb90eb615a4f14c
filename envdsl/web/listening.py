"""The sockets that the service listens on, opened before anything else starts: what cannot be had is said at once."""

from __future__ import annotations

import fcntl
import ipaddress
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from envdsl.errors import EnvdslError, ExitStatus

SOCKET_NAME = "envdsl.sock"
_MODE = 0o660
BACKLOG = 2048


@dataclass(frozen=True, slots=True)
class Address:
    """A TCP address; ``port`` 0 is any free one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """``127.0.0.1:8750``, ``[::1]:8750``, ``localhost:8750``. Raises ValueError."""
        host, separator, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not separator or not host or not port.isascii() or not port.isdecimal() or int(port) > 65535:
            raise ValueError(f"{text!r} is not HOST:PORT, such as 127.0.0.1:8750")
        return cls(host, int(port))

    @property
    def is_loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False  # a name may mean anything

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def listen_unix(path: Path) -> socket.socket:
    """A listening socket at ``path``, for its user and group alone (0660).

    What a service that died has left there is replaced. Raises :class:`EnvdslError`: ``web-socket-in-use``,
    ``web-socket`` (something else stands there, or it cannot be made).
    """
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _alone_in(path.parent):
            _clear(path)
            before = os.umask(0o777)  # nobody connects before the mode is what it should be
            try:
                found.bind(str(path))
            finally:
                os.umask(before)
            path.chmod(_MODE)
        found.listen(BACKLOG)
    except OSError as error:
        found.close()
        reason = error.strerror or str(error)
        raise _error(
            "web-socket", f"cannot listen at {path}: {reason}", "choose another place with --socket"
        ) from error
    except EnvdslError:
        found.close()
        raise
    return found


def listen_tcp(address: Address, *, behind_proxy: bool) -> socket.socket:
    """A listening TCP socket. Raises :class:`EnvdslError`: ``web-listen-exposed`` for an address that other machines
    reach where no proxy is said to stand in front, ``web-listen``."""
    if not address.is_loopback and not behind_proxy:
        raise _error(
            "web-listen-exposed",
            f"{address} can be reached from other machines, and this service speaks no TLS",
            "put a reverse proxy in front and name its address with --behind-proxy, or listen on 127.0.0.1",
        )
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        found = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _error("web-listen", f"cannot listen on {address}: {error.strerror}") from error
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(place)
        found.listen(BACKLOG)
    except OSError as error:
        found.close()
        raise _error("web-listen", f"cannot listen on {address}: {error.strerror}") from error
    return found


def remove(path: Path, inode: int) -> None:
    """Remove the socket at ``path`` if it is still the one with this inode: another service may have come since."""
    with _alone_in(path.parent):
        if inode_of(path) == inode:
            path.unlink()


def inode_of(path: Path) -> int | None:
    try:
        return path.lstat().st_ino
    except OSError:
        return None


def _clear(path: Path) -> None:
    """Remove a socket that nobody listens on any more."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise _error("web-socket", f"{path} exists, and is no socket", "choose another place with --socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise _error("web-socket-in-use", f"a service listens at {path} already", "stop it first, or choose --socket")


@contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    """Two services that start at once look one after the other: a lock on the directory leaves no file behind."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _error(code: str, message: str, hint: str | None = None) -> EnvdslError:
    status = ExitStatus.USAGE if code == "web-listen-exposed" else ExitStatus.ENVIRONMENT
    return EnvdslError.of(code, message, hint=hint, exit_status=status)
