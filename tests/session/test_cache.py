"""The session's cache: bounded, and hostile."""

from __future__ import annotations

import os
from pathlib import Path

from envdsl.session import cache


def fill(path: Path, kilobytes: int, age: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(os.urandom(kilobytes << 10))
    os.utime(path, (1_000_000_000 - age, 1_000_000_000 - age))
    return path


def test_what_was_longest_unused_goes_until_the_limit_is_kept(tmp_path: Path) -> None:
    """Issue 2.13: the session's cache is capped."""
    old, older, new = (
        fill(tmp_path / "fonts/old", 64, age=10),
        fill(tmp_path / "older", 64, age=20),
        fill(tmp_path / "new", 64, age=0),
    )
    assert cache.trim(tmp_path, 100 << 10) >= 128 << 10
    assert (old.exists(), older.exists(), new.exists()) == (False, False, True)
    assert cache.trim(tmp_path, 100 << 10) == 0


def test_files_that_the_sandbox_hid_count_and_go(tmp_path: Path) -> None:
    hidden = fill(tmp_path / "cache/hidden/file", 64, age=0)
    hidden.parent.chmod(0)
    cache.trim(tmp_path / "cache", 0)
    assert list(hidden.parent.iterdir()) == []


def test_links_lead_nowhere(tmp_path: Path) -> None:
    precious = fill(tmp_path / "outside/precious", 64, age=100)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/directory").symlink_to(precious.parent)
    (tmp_path / "cache/file").symlink_to(precious)
    cache.trim(tmp_path / "cache", 0)
    cache.remove(tmp_path / "cache")
    assert precious.stat().st_size == 64 << 10
    assert not (tmp_path / "cache").exists()
