"""What the operating system and the database refuse, as errors that say what to do."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from envdsl.errors import EnvdslError, ExitStatus

_FULL = {errno.ENOSPC, errno.EDQUOT}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


@contextmanager
def failures(action: str, root: Path) -> Iterator[None]:
    """Turn an OSError of the block (``action``: "write bytecode of numpy") into an EnvdslError.

    Codes: ``store-full``, ``store-permission`` and, for all other reasons, ``store-io``; exit status ENVIRONMENT.
    """
    try:
        yield
    except OSError as error:
        raise failure(action, root, error) from error


def failure(action: str, root: Path, error: OSError) -> EnvdslError:
    """The error to raise for ``error``."""
    reason = error.strerror or str(error)
    where = f" ({error.filename})" if error.filename else ""
    if error.errno in _FULL:
        return EnvdslError.of(
            "store-full",
            f"no space left to {action} in the store {root}",
            hint="free space on that file system (`envdsl gc` may help), or move the store: --store, ENVDSL_STORE",
            exit_status=ExitStatus.ENVIRONMENT,
        )
    if error.errno in _FORBIDDEN:
        return EnvdslError.of(
            "store-permission",
            f"not allowed to {action} in the store {root}: {reason}{where}",
            hint="run as the owner of the store, or use a store of your own: --store, ENVDSL_STORE",
            exit_status=ExitStatus.ENVIRONMENT,
        )
    return EnvdslError.of(
        "store-io",
        f"cannot {action} in the store {root}: {reason}{where}",
        hint="see the kernel's log for errors of the disk",
        exit_status=ExitStatus.ENVIRONMENT,
    )
