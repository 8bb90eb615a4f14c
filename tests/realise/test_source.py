"""Source directories: copied by content, and only what belongs to the project."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from envdsl.errors import EnvdslError
from envdsl.graph.derivation import SourceTree
from envdsl.realise.source import copy_source, tree_hash
from envdsl.store.treehash import scan


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "style"
    (root / "pkg").mkdir(parents=True)
    (root / "pkg/__init__.py").write_text("x = 1\n")
    (root / "tool.sh").write_text("#!/bin/sh\n")
    (root / "tool.sh").chmod(0o755)
    (root / "latest").symlink_to("pkg/__init__.py")
    return root


def copied(directory: Path, out: Path) -> Path:
    out.mkdir()
    listing = copy_source(directory, SourceTree(tree_hash(directory), "style"), out)
    assert listing == scan(out)
    return out


def test_files_links_and_executable_bits_are_copied_and_sealed(tmp_path: Path, project: Path) -> None:
    out = copied(project, tmp_path / "out")
    assert (out / "pkg/__init__.py").read_text() == "x = 1\n"
    assert (out / "latest").readlink() == Path("pkg/__init__.py")
    modes = {path.name: stat.S_IMODE(path.lstat().st_mode) for path in out.rglob("*") if not path.is_symlink()}
    assert modes == {"pkg": 0o555, "__init__.py": 0o444, "tool.sh": 0o555}
    assert all(path.lstat().st_mtime == 1 for path in out.rglob("*"))


def test_what_a_checkout_would_not_have_is_no_part_of_it(tmp_path: Path, project: Path) -> None:
    before = tree_hash(project)
    for name in (".git/HEAD", "pkg/__pycache__/x.pyc", ".venv/bin/python", "pkg/old.pyc", ".mypy_cache/x", "pkg/a.py~"):
        place = project / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("noise")
    (project / "myenv").mkdir()
    (project / "myenv/pyvenv.cfg").write_text("")
    (project / "store").mkdir()
    (project / "store/envdsl.db").write_text("")
    (project / "store/other").write_text("x")
    (project / "empty").mkdir()
    assert tree_hash(project) == before
    assert sorted(path.name for path in copied(project, tmp_path / "out").iterdir()) == ["latest", "pkg", "tool.sh"]


def test_the_hash_depends_on_content_names_and_executable_bits(project: Path) -> None:
    seen = {tree_hash(project)}
    os.utime(project / "tool.sh", (5, 5))
    (project / "pkg/__init__.py").chmod(0o600)
    assert tree_hash(project) in seen
    (project / "tool.sh").chmod(0o644)
    seen.add(tree_hash(project))
    (project / "tool.sh").rename(project / "tool2.sh")
    seen.add(tree_hash(project))
    (project / "pkg/__init__.py").write_text("x = 2\n")
    seen.add(tree_hash(project))
    assert len(seen) == 4


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "pkg/../../outside", "../style/pkg"])
def test_a_link_that_leaves_the_directory_is_refused(project: Path, target: str) -> None:
    (project / "link").symlink_to(target)
    with pytest.raises(EnvdslError, match="link") as caught:
        tree_hash(project)
    assert caught.value.code == "source-link"


def test_a_link_that_leaves_through_another_link_is_refused(project: Path) -> None:
    (project / "here").symlink_to(".")
    (project / "out").symlink_to("here/../../outside")
    with pytest.raises(EnvdslError) as caught:
        tree_hash(project)
    assert caught.value.code == "source-link"


def test_a_pipe_is_refused(project: Path) -> None:
    os.mkfifo(project / "pipe")
    with pytest.raises(EnvdslError) as caught:
        tree_hash(project)
    assert caught.value.code == "source-special-file"


def test_a_missing_directory_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(EnvdslError, match="nowhere") as caught:
        tree_hash(tmp_path / "nowhere")
    assert caught.value.code == "source-missing"


def test_a_directory_that_changes_under_the_build_is_noticed(tmp_path: Path, project: Path) -> None:
    source = SourceTree(tree_hash(project), "style")
    (project / "pkg/new.py").write_text("")
    (tmp_path / "out").mkdir()
    with pytest.raises(EnvdslError, match="changed") as caught:
        copy_source(project, source, tmp_path / "out")
    assert caught.value.code == "source-changed"
