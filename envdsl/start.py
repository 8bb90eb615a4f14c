"""The entry point. A build with nothing to do is answered here, before click or a parser is imported."""

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> None:
    """Run ``envdsl`` with ``sys.argv`` and exit with the command's status."""
    try:
        _main()
    except KeyboardInterrupt:  # while modules are imported, or at the very end; commands see to their own
        sys.stderr.write("interrupted\n")
        os._exit(130)


def _main() -> None:
    if sys.argv[1:2] == ["build"]:
        from envdsl.quick import answer

        text = answer(sys.argv[2:])
        if text is not None and _print(text):
            os._exit(0)  # nothing is open and no thread runs: tearing down would take a sixth of the time
    # What imports make is no garbage: the collector would look at it a hundred times, and find nothing.
    gc.set_threshold(100_000, 20, 100)
    from envdsl.cli.group import run

    _leave(run(sys.argv[1:]))


def _print(text: str) -> bool:
    """Whether ``text`` could be written. If not, the full command says why."""
    try:
        print(text, end="", flush=True)
    except OSError:
        return False
    return True


def _leave(status: int) -> "NoReturn":
    """End the process without freeing one object after the other, which takes a tenth of a build.

    What has to happen at the end happens: buffers are written and exit handlers run. Where threads are left, or a
    buffer cannot be written, the interpreter ends as it always does.
    """
    import atexit
    import threading

    if threading.active_count() == 1:
        try:
            atexit._run_exitfuncs()
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:  # closed by whoever started us
                    stream.flush()
        except OSError:
            sys.exit(status)
        os._exit(status)
    sys.exit(status)
