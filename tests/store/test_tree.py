from __future__ import annotations

import os
from pathlib import Path

import pytest

from envdsl.store import tree
from envdsl.store.tree import Account, disk_usage, exchange, remove_tree
from tests.store.conftest import write_tree


@pytest.mark.parametrize("kernel", [True, False], ids=["renameat2", "three-renames"])
@pytest.mark.parametrize("kind", ["directories", "files", "nothing there", "a file for a directory"])
def test_two_trees_change_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel: bool, kind: str) -> None:
    if not kernel:
        monkeypatch.setattr(tree, "_exchange", lambda *_: False)
    new, old = tmp_path / "new" / "x", tmp_path / "old" / "x"
    new.parent.mkdir()
    old.parent.mkdir()
    if kind == "files":
        new.write_text("new")
    else:
        write_tree(new, {"a": "new"}).chmod(0o555)
    if kind == "directories":
        write_tree(old, {"a": "old"}).chmod(0o555)
    elif kind != "nothing there":
        old.write_text("old")
    before = {place: place.stat().st_ino for place in (new, old) if place.exists()}
    exchange(new, old)
    assert old.stat().st_ino == before[new]
    assert new.exists() == (old in before)
    if old in before:
        assert new.stat().st_ino == before[old]
    assert sorted(os.listdir(tmp_path / "new")) == (["x"] if old in before else [])  # noqa: PTH208


def test_what_would_be_freed_is_what_is_freed(tmp_path: Path) -> None:
    """Hard links within a tree, between trees, and to a name that stays."""
    one = write_tree(tmp_path / "one", {"a": "a" * 50_000, "b/c": "c" * 70_000, "empty": ""})
    two = write_tree(tmp_path / "two", {"d": "d" * 90_000})
    (tmp_path / "stays").write_text("s" * 110_000)
    os.link(one / "a", one / "b" / "again")
    os.link(one / "b" / "c", two / "c")
    os.link(tmp_path / "stays", two / "stays")
    (two / "link").symlink_to("nowhere")
    account = Account()
    planned = [account.remove(one), account.remove(two), account.remove(tmp_path / "gone")]
    assert sum(planned) == disk_usage([one, two])
    assert [remove_tree(one), remove_tree(two), remove_tree(tmp_path / "gone")] == planned
    assert planned[1] >= 160_000
    assert sum(planned) < 50_000 + 70_000 + 90_000 + 110_000
