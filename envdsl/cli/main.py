"""The entry point. A build with nothing to do is answered here, before click or a parser is imported."""

import sys


def main() -> None:
    """Run ``envdsl`` with ``sys.argv`` and exit with the command's status."""
    if sys.argv[1:2] == ["build"]:
        from envdsl.app.quick import answer

        text = answer(sys.argv[2:])
        if text is not None:
            sys.stdout.write(text)
            return
    from envdsl.cli.group import run

    sys.exit(run(sys.argv[1:]))
