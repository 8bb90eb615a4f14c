"""`make demo`: from the curated layer `office` to documents that were made in a sandbox.

Runs the commands that a person would type, and shows each of them. Everything it leaves behind is in
the store (`store/`) and in `examples/documents/out`.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
SESSION = "demo"


def main() -> int:
    steps = [
        ("Build the curated layer: wheels are fetched, checked, unpacked, compiled and linked.", "build", "office"),
        (
            "Bind a session to exactly this layer; its workspace is this example.",
            *("session", "create", SESSION, "--layer", "office", "--workspace", str(HERE)),
        ),
        (
            "Run the document job in the session's sandbox: no network, nothing of this host but /usr.",
            *("run", SESSION, "--", "python3", "make_documents.py"),
        ),
        ("What an agent in there sees of pip:", "run", SESSION, "--", "pip", "install", "requests"),
    ]
    # A demo of before must not stand in the way.
    envdsl("session", "remove", SESSION, show=False)
    for title, *arguments in steps:
        print(f"\n\x1b[1m{title}\x1b[0m" if sys.stdout.isatty() else f"\n{title}")
        status = envdsl(*arguments)
        refused_as_it_should = arguments[-3:-1] == ["pip", "install"] and status != 0
        if status != 0 and not refused_as_it_should:
            return status
    print(f"\nThe documents are in {relative(HERE / 'out')}:")
    for file in sorted((HERE / "out").iterdir()):
        print(f"  {file.name:<14} {file.stat().st_size:>8} bytes")
    store = Path(os.environ.get("ENVDSL_STORE") or PROJECT / "store")
    print(f"\nStart the sandbox again without envdsl: {relative(store / 'sessions' / SESSION / 'run')} python3")
    return 0


def envdsl(*arguments: str, show: bool = True) -> int:
    """Run one command of envdsl in the project, and show it as it would be typed."""
    if show:
        print(f"$ envdsl {shlex.join(arguments)}", flush=True)
    silence = None if show else subprocess.DEVNULL
    command = [sys.executable, "-m", "envdsl", *arguments]
    return subprocess.run(command, cwd=PROJECT, stdout=silence, stderr=silence, check=False).returncode


def relative(path: Path) -> str:
    return os.path.relpath(path)


if __name__ == "__main__":
    sys.exit(main())
