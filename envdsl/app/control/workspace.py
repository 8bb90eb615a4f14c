"""Wheels that an agent built in its workspace and names in a request.

The workspace belongs to the agent: between a check of a path and its use, any component may become a symbolic
link to elsewhere. So the path is walked with ``openat(2)`` and ``O_NOFOLLOW``, one component at a time.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import PurePosixPath
from typing import BinaryIO

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.session.manifest import Manifest


@contextmanager
def open_wheel(manifest: Manifest, path: str) -> Iterator[tuple[str, BinaryIO]]:
    """The name of the wheel at ``path`` in the session's workspace, and the file, open for reading.

    ``path`` is relative to the workspace, or absolute as the sandbox sees it (``/workspace/dist/x.whl``). Raises
    EnvdslError: ``app-no-workspace``, ``app-workspace-path`` for one that leaves the workspace, is a link or no file.
    """
    if manifest.workspace is None:
        raise EnvdslError.of(
            "app-no-workspace",
            f"the session {manifest.session} has no workspace on the host, so a wheel in it cannot be read",
            hint="upload the wheel instead, or bind the session to a workspace",
            exit_status=ExitStatus.USAGE,
        )
    asked = PurePosixPath(path)
    with suppress(ValueError):
        asked = asked.relative_to(manifest.workspace.target)
    if asked.is_absolute() or ".." in asked.parts or not asked.parts:
        raise _refused(path, f"leaves {manifest.workspace.target}")
    try:
        descriptor = _open_beneath(manifest.workspace.source, asked.parts)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _refused(path, f"cannot be opened: {reason}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _refused(path, "is not a file")
    with os.fdopen(descriptor, "rb") as file:
        yield asked.name, file


def _open_beneath(root: str, parts: tuple[str, ...]) -> int:
    directory = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            inner = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
            os.close(directory)
            directory = inner
        # Without O_NONBLOCK a FIFO of that name would wait for its writer.
        return os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    finally:
        os.close(directory)


def _refused(path: str, problem: str) -> EnvdslError:
    return EnvdslError.of(
        "app-workspace-path",
        f"{path} {problem}",
        hint="name a wheel file below the workspace, without links on the way",
        exit_status=ExitStatus.USAGE,
    )
