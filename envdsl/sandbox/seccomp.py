"""The system call filter as it is shipped: compiled, one file a machine. ``make_filter`` says what it denies."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.digest import blake3_hex, store_hash

_FILTERS = Path(__file__).parent / "filters"


@cache
def compiled(machine: str | None = None) -> bytes:
    """The filter for ``machine`` (default: this one), as ``bwrap --seccomp FD`` reads it.

    Raises EnvdslError (``sandbox-no-filter``) for a machine that none is shipped for.
    """
    machine = machine or platform.machine()
    try:
        return (_FILTERS / f"{machine}.bpf").read_bytes()
    except FileNotFoundError as error:
        raise EnvdslError.of(
            "sandbox-no-filter",
            f"there is no system call filter for {machine}",
            hint="sandboxes run on x86_64 and aarch64",
            exit_status=ExitStatus.ENVIRONMENT,
        ) from error


def install(directory: Path) -> Path:
    """The filter as a file in ``directory`` (made where it is missing), for launchers that know no Python package.

    The name holds the content's hash: a newer envdsl adds a file and leaves those that scripts refer to.
    Raises OSError where it cannot be written.
    """
    data = compiled()
    path = directory / f"seccomp-{store_hash(blake3_hex(data))}.bpf"
    if not path.exists():
        directory.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_bytes(data)
        temporary.chmod(0o444)
        temporary.replace(path)
    return path
