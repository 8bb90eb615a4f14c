"""A plan as a shell script: starting a sandbox costs bubblewrap and nothing of Python."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from envdsl.errors import ExitStatus
from envdsl.sandbox.argv import ARGS_FD, SECCOMP_FD


def script(*, bwrap: Path, args: Path, seccomp_filter: Path, command: Sequence[str]) -> str:
    """The text of a POSIX shell script that starts the sandbox and becomes it: ``run [COMMAND [ARGUMENT...]]``.

    All paths absolute. ``args`` holds ``encode(arguments(plan))``, ``seccomp_filter`` is what
    ``seccomp.install`` returned. Without arguments the script runs ``command``.
    Exit status: the command's, 128 + N for signal N, and 4 where a file is missing.
    """
    files = (bwrap, args, seccomp_filter)
    if not all(path.is_absolute() for path in files):
        raise ValueError(f"a sandbox's script needs absolute paths: {[str(path) for path in files]}")
    return f"""\
#!/bin/sh
# Starts this sandbox: run [COMMAND [ARGUMENT...]]. Written by envdsl, and needs nothing of it.
bwrap={shlex.quote(str(bwrap))}
args={shlex.quote(str(args))}
filter={shlex.quote(str(seccomp_filter))}
refuse() {{
    printf 'envdsl: sandbox-%s\\n' "$1" >&2
    exit {int(ExitStatus.ENVIRONMENT)}
}}
[ -x "$bwrap" ] || refuse "no-bwrap: $bwrap is gone or cannot be run; 'envdsl doctor' says what to do"
[ -r "$args" ] || refuse "incomplete: $args is missing or cannot be read; create the session again"
[ -r "$filter" ] || refuse "incomplete: $filter is missing or cannot be read; create the session again"
[ $# -gt 0 ] || set -- {shlex.join(command)}
[ -t 0 ] && set -- --setenv TERM "${{TERM:-dumb}}" -- "$@" || set -- -- "$@"
exec "$bwrap" --args {ARGS_FD} "$@" {ARGS_FD}<"$args" {SECCOMP_FD}<"$filter"
"""
