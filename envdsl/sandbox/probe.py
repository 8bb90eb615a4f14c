"""What a sandbox says of itself, as JSON: a program of its own, which ``doctor`` and the tests run inside one.

Standard library only, and Python 3.7 is enough: it runs under the interpreter of the system. Its argument is the number
of a system call that the filter refuses.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import socket
import sys
from collections.abc import Callable

CLONE_NEWUSER = 0x10000000
# Addresses for documentation (RFC 5737, RFC 3849): nobody answers there, and here not even a route leads there.
ADDRESSES = ((socket.AF_INET, ("192.0.2.1", 9)), (socket.AF_INET6, ("2001:db8::1", 9)))
HOST_FILES = ("/etc/shadow", "/etc/machine-id", "/etc/resolv.conf", "/sys/kernel", "/run/systemd", "/boot", "/var/lib")
READ_ONLY = ("/etc/passwd", "/usr/bin/env", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger")

libc = ctypes.CDLL(None, use_errno=True)


def refused(call: Callable[..., int], *arguments: int) -> str | None:
    """The name of the error of a C call, or None where it succeeded."""
    return errno.errorcode[ctypes.get_errno()] if call(*arguments) == -1 else None


def connects(family: int, address: tuple[str, int]) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as connection:
            connection.settimeout(2)
            connection.connect(address)
            return True
    except OSError:
        return False


def routes() -> list[str]:
    """The interfaces that a route other than the loopback's leads to (tunnels without routes may exist anywhere)."""
    found = set()
    for path, column in (("/proc/net/route", 0), ("/proc/net/ipv6_route", -1)):
        if os.path.exists(path):  # noqa: PTH110
            with open(path) as file:  # noqa: PTH123
                found |= {line.split()[column] for line in file if not line.startswith("Iface")}
    return sorted(found - {"lo"})


def opens_for_writing(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_WRONLY))
    except OSError:
        return False
    return True


def main() -> None:
    with open("/proc/self/status") as file:  # noqa: PTH123
        status = {name: value.strip() for name, value in (line.split(":", 1) for line in file)}
    facts = {
        "capabilities": status["CapEff"],
        "bounding": status["CapBnd"],
        "no_new_privileges": status["NoNewPrivs"],
        "seccomp": status["Seccomp"],
        "routes": routes(),
        "connected": any(connects(family, address) for family, address in ADDRESSES),
        "filtered": refused(libc.syscall, int(sys.argv[1]), 0, 0, 0, 0, 0),
        "namespace": refused(libc.unshare, CLONE_NEWUSER),
        "host": [path for path in HOST_FILES if os.path.exists(path)],  # noqa: PTH110
        "writable": [path for path in READ_ONLY if opens_for_writing(path)],
        "processes": sorted(int(name) for name in os.listdir("/proc") if name.isdigit()),  # noqa: PTH208
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
