"""A process that hashes files for another one (:mod:`envdsl.store.hashing`).

A request is ``<size> <place>`` and NUL; its answer is a line, in the order of the requests: ``<blake3> <size>``, or
``! <errno>`` where the file cannot be read. The end of its input ends the process.
"""

from __future__ import annotations

import os
import signal
import sys

from envdsl.store.treehash import hash_file

_BLOCK = 1 << 16


def answer(request: bytes) -> str:
    """The line for ``request``, which is without its NUL."""
    likely, _, place = request.partition(b" ")
    try:
        size, digest = hash_file(place, int(likely))
    except OSError as error:
        return f"! {error.errno}\n"
    return f"{digest} {size}\n"


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for who asks; this process ends with its input
    pending = b""
    while block := os.read(0, _BLOCK):
        *requests, pending = (pending + block).split(b"\0")
        for request in requests:
            sys.stdout.write(answer(request))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
