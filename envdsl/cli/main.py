"""The entry point. A build with nothing to do is answered here, before click or a parser is imported."""

import gc
import os
import sys


def main() -> None:
    """Run ``envdsl`` with ``sys.argv`` and exit with the command's status."""
    if sys.argv[1:2] == ["build"]:
        from envdsl.app.quick import answer

        text = answer(sys.argv[2:])
        if text is not None:
            _leave(text)
    # What imports make is no garbage: the collector would look at it a hundred times, and find nothing.
    gc.set_threshold(100_000, 20, 100)
    from envdsl.cli.group import run

    sys.exit(run(sys.argv[1:]))


def _leave(text: str) -> None:
    """Print ``text`` and end the process at once.

    Nothing is open and no thread runs, so nothing is lost by not tearing the interpreter down, which would take a
    sixth of the time. Returns only if ``text`` cannot be written: the full command says why.
    """
    try:
        print(text, end="", flush=True)
    except OSError:
        return
    os._exit(0)
