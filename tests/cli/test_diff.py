"""``envdsl diff``: what a reviewer sees."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.wheels import make_wheel


def git(root: Path, *arguments: str) -> None:
    identity = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, env={**os.environ, **identity})


@pytest.fixture
def committed(built: Cli, project: Path) -> Cli:
    """The project of the fixtures in git, then changed: `bar` moves, `two` gains `new`, `alone` is gone."""
    git(project, "init", "-q")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "before")
    make_wheel(
        project / "wheels", "bar", "1.5", files={"bar/__init__.py": ""}, extra_metadata="License-Expression: MIT\n"
    )
    make_wheel(
        project / "wheels", "new", "3", files={"novel/__init__.py": ""}, extra_metadata="License-Expression: 0BSD\n"
    )
    layers = project / "layers.d" / "all.layer"
    text = layers.read_text().replace('[ "bar" ]', '[ "bar>=1.5" ]').replace('[ "foo==2" ]', '[ "foo==2" "new" ]')
    layers.write_text(text.replace("iso alone", "# iso alone"))
    assert built("lock").status == 0
    (project / "layers.d" / "pylock.alone.toml").unlink()
    return built


def test_against_head_is_what_my_changes_mean(committed: Cli) -> None:
    """Issue 5.2: git revisions; packages added, removed, moved; a layer that is gone."""
    done = committed("diff")
    assert done.status == 0, done.err
    sizes = re.sub(r"[+−]?[\d.]+ (B|KiB)", "N", done.out)
    assert sizes.splitlines() == [
        "alone: removed",
        "  - foo 2  (N; no more import foo)",
        "core: N → N (N)",
        "  ~ bar 1.0 → 1.5  (N)",
        "two: N → N (N)",
        "  + new 3  (N)",
        "(2 packages: licences and import names are not known; --fetch gets their wheels)",
    ]


def test_fetch_tells_licences_and_import_names(committed: Cli) -> None:
    """Issue 5.2: licences, import names gained and lost."""
    found = {item["layer"]: item for item in committed("diff", "--fetch", "--json").json["layers"]}
    (bar,) = found["core"]["packages"]
    assert (bar["licence-before"], bar["licence-after"], bar["imports-gained"]) == (None, "MIT", [])
    (new,) = found["two"]["packages"]
    assert (new["change"], new["licence-after"], new["imports-gained"]) == ("added", "0BSD", ["novel"])


def test_markdown_is_made_for_a_pull_request(committed: Cli) -> None:
    """Issue 5.2: the Markdown is made for a pull request."""
    text = committed("diff", "HEAD", "--format", "markdown", "--fetch").out
    assert text.startswith("### Layers: `HEAD` → `the working tree`\n\n| layer | added | removed | moved | size |\n")
    assert re.search(r"\| `core` \| 0 \| 0 \| 1 \| .* → .* \([+−]", text)
    assert re.search(r"\| Added \| new \|  \| 3 \| \+\d+ B; 0BSD; import novel \|", text)
    assert "CAUTION" not in text


def test_a_swapped_wheel_is_an_alarm_in_every_format(built: Cli, project: Path) -> None:
    """Issue 5.2: repinned with the same version and another hash, shown as an alarm."""
    path = project / "layers.d" / "pylock.one.toml"
    before = project / "pylock.one.toml"
    before.write_bytes(path.read_bytes())
    make_wheel(project / "wheels", "foo", "1", files={"foo/__init__.py": "import evil\n"})
    assert built("lock", "one", "--upgrade").status == 0
    assert path.read_bytes() != before.read_bytes()

    done = built("diff", before, path)
    assert done.status == 1
    assert "! foo 1  (same version and file name, another hash" in done.out
    assert re.search(r"foo-1-py3-none-any.whl: sha256 [0-9a-f]{64} → [0-9a-f]{64}", done.out)
    markdown = built("diff", before, path, "--format", "markdown")
    assert markdown.status == 1
    assert "> [!CAUTION]\n> **foo 1** in `one`: same version and file name, another hash." in markdown.out
    assert built("diff", before, path, "--json").json["alarm"] is True


def test_layers_locks_and_sessions_can_be_compared(built: Cli, project: Path) -> None:
    """Issue 5.2: layers, lock files, sessions."""
    built("session", "create", "diffed", "-l", "core", "-l", "one")
    assert "~ foo 1 → 2" in built("diff", "one", "two").out
    assert "one → two" in built("diff", project / "layers.d" / "pylock.one.toml", "layer:two").out
    assert "+ foo 1" in built("diff", "layer:core", "session:diffed").out
    same = built("diff", "one", "one", "--exit-code")
    assert (same.status, same.out) == (0, "")
    assert built("diff", "one", "two", "--exit-code").status == 1


def test_what_cannot_be_compared_is_said(committed: Cli) -> None:
    for arguments, code in (
        (["nowhere"], "app-diff-unknown"),
        (["session:nowhere"], "app-diff-unknown"),
        (["one", "HEAD"], "app-diff-unlike"),
        (["git:--output=x"], "app-diff-unknown"),
    ):
        done = committed("diff", *arguments)
        assert (done.status, done.out) == (2, "")
        assert f"error[{code}]" in done.err


def test_hostile_metadata_stays_text_in_markdown(committed: Cli, project: Path) -> None:
    """Issue 5.2: what a wheel says of itself is anybody's text."""
    licence = "License: <img src=x onerror=alert(1)> | [click](javascript:x) @everyone\n"
    make_wheel(project / "wheels", "new", "4", files={"novel/__init__.py": ""}, extra_metadata=licence)
    assert committed("lock", "two", "--upgrade-package", "new").status == 0
    text = committed("diff", "--format", "markdown", "--fetch").out
    line = next(line for line in text.splitlines() if line.startswith("| Added | new"))
    assert not re.search(r"[<\[@]|(?<!\\)\|\s*\[", line.removeprefix("| Added | new |"))
    assert line.count("|") - line.count("\\|") == 6


def test_where_git_has_nothing_to_compare_with_the_reason_is_said(run: Cli, project: Path) -> None:
    assert run("lock").status == 0
    for arguments in ((), ("HEAD",), ("git:HEAD",)):
        done = run("diff", *arguments)
        assert done.status == 2
        assert f"git finds no repository in {project}" in done.err
        assert "no layer" not in done.err
    git(project, "init", "-q")
    for arguments in ((), ("HEAD",), ("git:HEAD",)):
        done = run("diff", *arguments)
        assert done.status == 2
        assert "the git repository has no commit yet" in done.err
    other = run("diff", "nobody")
    assert "it is no layer, lock file or session, and the git repository has no commit yet" in other.err
    git(project, "commit", "-q", "--allow-empty", "-m", "first")
    assert "cannot compare nobody: it is no layer, lock file, session or git revision" in run("diff", "nobody").err
    assert "there is no such revision" in run("diff", "git:nobody").err


def test_revisions_are_compared_while_the_layer_files_are_broken(committed: Cli, project: Path) -> None:
    git(project, "branch", "feat")
    layers = project / "layers.d" / "all.layer"
    layers.write_text("base core {\n<<<<<<< HEAD\n")
    for sides in (("HEAD", "feat"), ("git:HEAD", "git:feat"), ("HEAD~0", "git:feat")):
        done = committed("diff", *sides)
        assert (done.status, done.err.count("error[")) == (0, 0), done.err
    changed = committed("diff")
    assert (changed.status, "~ bar 1.0 → 1.5" in changed.out) == (0, True), changed.err
    for side in ("core", "nobody"):  # it may well be a layer
        named = committed("diff", side)
        assert (named.status, "error[syntax-merge-conflict]" in named.err) == (1, True), named.err
