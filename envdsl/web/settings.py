"""What whoever starts the service may choose, with defaults that are safe without any configuration."""

from __future__ import annotations

from dataclasses import dataclass

# Names that mean this machine in a Host header; ``envdsl`` is for clients of the Unix socket, which need some name.
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1", "envdsl"})


@dataclass(frozen=True, slots=True)
class Rate:
    """A token bucket: ``burst`` at once, then ``per_second``."""

    per_second: float
    burst: int


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one service.

    ``hosts`` are the names (without a port) that a Host header may have: any other is a rebound DNS name. ``https``
    says that a reverse proxy in front speaks TLS: cookies become Secure, and forwarded addresses count. ``trust_peer``:
    without a token, the user at the other end of a Unix socket is who asks.
    Sizes are in bytes, times in seconds.
    """

    hosts: frozenset[str] = LOCAL_NAMES
    https: bool = False
    trust_peer: bool = True
    login_lifetime: int = 12 * 3600
    login_idle: int = 2 * 3600
    requests: Rate = Rate(per_second=50, burst=200)  # of one principal; anonymous ones by address
    agents_requests: int = 64  # under way at once, of one session's agents: a wait holds a connection
    agents_uploads: int = 2  # the same of uploads, each of which may fill max_upload of the disk
    failures: Rate = Rate(per_second=0.1, burst=10)  # tokens that are none, by address
    max_body: int = 1 << 20
    max_upload: int = 1 << 30
    max_wait: float = 60
    threads: int = 6  # for calls that take milliseconds; see envdsl.web.threads
    writing_threads: int = 1
    slow_threads: int = 2
    workers: int = 1
    grace: float = 30  # for requests and builds, once the service is told to stop
