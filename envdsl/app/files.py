"""Small files of the store that are replaced whole."""

from __future__ import annotations

import os
from pathlib import Path


def write_file(path: Path, content: bytes) -> None:
    """Make ``content`` the file at ``path``: whoever reads it sees the old one or the new one."""
    try:
        if path.read_bytes() == content:
            return
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_bytes(content)
    new.replace(path)


def point(link: Path, target: str) -> None:
    """Let the symbolic link ``link`` lead to ``target``, in one step for whoever follows it."""
    if link.is_symlink() and str(link.readlink()) == target:
        return
    new = link.with_name(f".{link.name}.{os.getpid()}")
    new.unlink(missing_ok=True)
    new.symlink_to(target)
    new.replace(link)
