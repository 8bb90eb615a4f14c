"""Fresh locks: what an upgrade holds back, ``envdsl update``, and the recipes of docs/bots.md."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import re2
import yaml

from tests.cli.conftest import LAYERS, PYTHON, Cli
from tests.lock.index import Index, serve
from tests.wheels import make_wheel

ROOT = Path(__file__).parents[2]
BOTS = (ROOT / "docs" / "bots.md").read_text(encoding="utf-8")
BIN = Path(sys.executable).parent
IDENTITY = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=root, check=True, capture_output=True, text=True, env={**os.environ, **IDENTITY}
    )
    return done.stdout


@pytest.fixture
def committed(run: Cli, project: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The project of the fixtures, locked and in git; then a newer `bar` is published."""
    assert run("lock").status == 0
    git(project, "init", "-q", "-b", "main")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "before")
    publish(project, "bar", "1.5")
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    return run


def publish(project: Path, name: str, version: str) -> None:
    make_wheel(project / "wheels", name, version, files={f"{name}/__init__.py": ""})
    git(project, "add", "wheels")
    git(project, "commit", "-q", "-m", f"publish {name} {version}")


def state(project: Path) -> tuple[str, str, dict[str, bytes]]:
    """HEAD, what git says of index and working tree, and all files."""
    files = {
        path.relative_to(project).as_posix(): path.read_bytes()
        for path in project.rglob("*")
        if path.is_file() and ".git" not in path.parts
    }
    return git(project, "rev-parse", "HEAD"), git(project, "status", "--porcelain"), files


def test_locks_are_upgraded_in_place_and_the_message_says_what_it_means(
    committed: Cli, project: Path, tmp_path: Path
) -> None:
    """Issue 5.5: `envdsl update`, the diff as its message."""
    message = tmp_path / "message.txt"
    done = committed("update", "--message-file", message)
    assert done.status == 0, done.err
    assert "~ bar 1.0 -> 1.5" in done.out
    changed = git(project, "status", "--porcelain").split()
    assert "layers.d/pylock.core.toml" in changed
    subject, empty, *text = message.read_text().splitlines()
    assert (subject, empty) == ("Update locks: bar 1.5", "")
    assert "\n".join(text) == committed("diff", "HEAD").out.rstrip("\n")
    assert committed("lock", "--check").status == 0


def test_a_branch_has_one_commit_and_everything_else_stays(committed: Cli, project: Path) -> None:
    """Issue 5.5: branch-ready, without touching anything else of the working tree or the index."""
    (project / "staged.txt").write_text("staged")
    git(project, "add", "staged.txt")
    (project / "staged.txt").write_text("and changed")
    (project / "src" / "mine" / "new.py").write_text("")
    (project / "src" / "mine" / "__init__.py").write_text("ANSWER = 43\n")
    before = state(project)
    done = committed("update", "--branch", "update/locks", "--json")
    assert done.status == 0, done.err
    assert state(project) == before
    assert git(project, "rev-parse", "update/locks^") == before[0]
    assert git(project, "rev-parse", "update/locks").strip() == done.json["commit"]
    names = git(project, "diff", "--name-only", "HEAD", "update/locks").split()
    assert names == ["layers.d/pylock.core.toml", "layers.d/pylock.one.toml", "layers.d/pylock.two.toml"]
    assert git(project, "log", "-1", "--format=%B", "update/locks").strip() == done.json["message"].strip()
    assert committed("diff", "HEAD", "update/locks").out.strip() in done.json["message"]
    (moved,) = next(item for item in done.json["diff"]["layers"] if item["layer"] == "core")["packages"]
    assert (moved["name"], moved["before"], moved["after"]) == ("bar", "1.0", "1.5")
    git(project, "stash", "-q")
    git(project, "checkout", "-q", "update/locks")
    assert committed("lock", "--check").status == 0


def test_the_project_may_be_a_part_of_a_repository(committed: Cli, project: Path) -> None:
    shutil.rmtree(project / ".git")
    git(project.parent, "init", "-q")
    git(project.parent, "add", "project")
    git(project.parent, "commit", "-q", "-m", "before")
    assert committed("update", "core", "--branch", "update").status == 0
    assert git(project.parent, "diff", "--name-only", "HEAD", "update").split() == ["project/layers.d/pylock.core.toml"]


def test_where_nothing_is_newer_nothing_is_made(committed: Cli, project: Path, tmp_path: Path) -> None:
    """Issue 5.5: nothing changes when nothing is to be updated: exit 0, and it says so."""
    committed("update")
    git(project, "commit", "-q", "-a", "-m", "updated")
    before = state(project)
    message = tmp_path / "message.txt"
    done = committed("update", "--branch", "again", "--message-file", message)
    assert (done.status, done.out) == (0, "")
    assert "nothing to update" in done.err
    assert state(project) == before
    assert not message.exists()
    assert git(project, "branch", "--list", "again") == ""


def test_one_layer_may_be_updated(committed: Cli, project: Path) -> None:
    make_wheel(project / "wheels", "foo", "3")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "foo 3")
    assert committed("update", "alone", "--branch", "alone").status == 0
    assert git(project, "diff", "--name-only", "HEAD", "alone").split() == ["layers.d/pylock.alone.toml"]


@pytest.mark.parametrize("changed", ["layers.d/pylock.core.toml", "layers.d/all.layer", "envdsl.toml"])
def test_what_locks_are_made_from_has_to_be_committed(committed: Cli, project: Path, changed: str) -> None:
    """Issue 5.5: refused when the lock files have uncommitted changes, or what they answer."""
    with (project / changed).open("a") as file:
        file.write("\n")
    before = state(project)
    done = committed("update", "--branch", "update")
    assert done.status == 2
    assert "app-update-uncommitted" in done.err
    assert changed in done.err
    assert state(project) == before
    assert git(project, "branch", "--list", "update") == ""


def test_a_branch_that_exists_or_cannot_is_refused(committed: Cli, project: Path, tmp_path: Path) -> None:
    git(project, "branch", "taken")
    for name, code in (("taken", "app-branch-exists"), ("not a name", "app-branch-name"), ("a..b", "app-branch-name")):
        done = committed("update", "--branch", name)
        assert done.status == 2
        assert code in done.err
    shutil.rmtree(project / ".git")
    done = committed("update", "--branch", "update")
    assert done.status == 4
    assert "app-git" in done.err


def test_locks_are_as_they_were_if_locking_fails(committed: Cli, project: Path) -> None:
    layers = project / "layers.d" / "all.layer"
    layers.write_text(LAYERS.replace('packages = [ "foo" ]', 'packages = [ "foo" "nowhere" ]'))
    git(project, "commit", "-q", "-a", "-m", "a layer that cannot be locked")
    before = state(project)
    done = committed("update", "--branch", "update")
    assert done.status == 1
    assert "nowhere" in done.err
    assert state(project) == before


@pytest.fixture
def index(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """A served index instead of the directory, with a layer that waits for a week."""
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    with serve(tmp_path / "index") as served:
        (project / "envdsl.toml").write_text(
            f'[[index]]\nname = "corp"\nurl = "{served.simple}"\ndefault = true\npackages = ["corp-*"]\n'
        )
        (project / "layers.d" / "all.layer").write_text(
            f'base core {{ python = "{PYTHON}"; packages = [ "bar" ]; exclude-newer = "7 days"; }}\n'
            f'iso now {{ python = "{PYTHON}"; packages = [ "bar" ]; }}\n'
        )
        for version, days in (("1.0", 30), ("2.0", 2)):
            wheel = make_wheel(served.directory, "bar", version)
            served.upload_times[wheel.name] = (datetime.now(UTC) - timedelta(days=days)).isoformat()
        yield served


def test_an_upgrade_says_what_it_held_back_and_until_when(run: Cli, index: Index) -> None:
    """Issue 5.5: `envdsl lock --upgrade` says what it held back and until when, as text and JSON."""
    assert "held back" not in run("lock").out
    done = run("lock", "--upgrade")
    assert done.status == 0, done.err
    eligible = datetime.now(UTC) + timedelta(days=5)
    (said,) = re.findall(r"held back by exclude-newer until (.*) UTC: bar 2\.0", done.out)
    assert abs(datetime.fromisoformat(f"{said}+00:00") - eligible) < timedelta(minutes=5)
    core, now = run("lock", "-P", "bar", "--json").json["locks"]
    (held,) = core["held-back"]
    assert (held["name"], held["locked"], held["version"]) == ("bar", "1.0", "2.0")
    assert abs(datetime.fromisoformat(held["eligible"]) - eligible) < timedelta(minutes=5)
    assert now["held-back"] == []


def test_a_fixed_date_holds_back_until_it_is_moved(run: Cli, project: Path, index: Index) -> None:
    layers = project / "layers.d" / "all.layer"
    layers.write_text(layers.read_text().replace("7 days", f"{datetime.now(UTC) - timedelta(days=9):%Y-%m-%d}"))
    done = run("lock", "core", "--upgrade")
    assert "  held back by exclude-newer while its date stands: bar 2.0\n" in done.out


def test_an_index_without_upload_times_is_named_once(run: Cli, project: Path, index: Index) -> None:
    """Issue 5.5: an index without upload times: that is said once."""
    for name in ("bar", "other"):
        make_wheel(project / "vendored", name, "5.0")
    make_wheel(index.directory, "other", "1.0")
    with (project / "envdsl.toml").open("a") as file:
        file.write('[[index]]\nname = "vendored"\nurl = "vendored"\nformat = "flat"\n')
    layers = project / "layers.d" / "all.layer"
    layers.write_text(layers.read_text().replace('[ "bar" ]', '[ "bar" "other" ]', 1))
    done = run("lock", "core", "--upgrade")
    assert done.status == 0, done.err
    assert len(re.findall("the index `vendored` .* does not say when its files were uploaded", done.err)) == 1
    assert "bar 2.0" in done.out
    index.upload_times.clear()
    index.default_upload_time = None
    done = run("lock", "core", "--upgrade")
    assert done.status == 1  # uv takes nothing without a date
    assert "the index does not say when bar was uploaded" in done.err


def test_private_names_are_compared_with_their_index_in_outdated_and_audit(
    run: Cli, project: Path, index: Index, tmp_path: Path
) -> None:
    """Issue 5.6: looking tells a public index nothing either."""
    (project / "layers.d" / "all.layer").write_text(f'base core {{ python = "{PYTHON}"; packages = [ "corp-a" ]; }}\n')
    make_wheel(index.directory, "corp-a", "1.0")
    with serve(tmp_path / "public") as public:
        make_wheel(public.directory, "corp-a", "9.0")
        (project / "osv").mkdir()
        (project / "osv" / "X-1.json").write_text('{"id": "X-1", "modified": "2026-01-01T00:00:00Z", "affected": []}')
        text = (project / "envdsl.toml").read_text()
        (project / "envdsl.toml").write_text(
            f'[[index]]\nname = "public"\nurl = "{public.simple}"\n{text}[service]\nvulnerabilities = "osv"\n'
        )
        assert run("lock").status == 0
        make_wheel(index.directory, "corp-a", "2.0")
        assert run("outdated").rows == [["core", "corp-a", "1.0", "2.0"]]
        for command in (["audit"], ["licenses"], ["fetch", "--no-interpreter"], ["diff", "core", "core", "--fetch"]):
            done = run(*command)
            assert done.status == 0, done.err
        assert run("lock", "--upgrade").status == 0
        assert public.requests == []


def block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", BOTS, re.DOTALL)
    return str(found)


def renovate() -> list[dict[str, Any]]:
    managers: list[dict[str, Any]] = json.loads(block("json"))["customManagers"]
    return managers


def found_by(manager: dict[str, Any], path: Path, root: Path) -> list[tuple[str, str]]:
    """What Renovate's regex manager finds in a file, with the engine that it uses."""
    relative = path.relative_to(root).as_posix()
    if not any(re2.search(pattern.strip("/"), relative) for pattern in manager["managerFilePatterns"]):
        return []
    (pattern,) = manager["matchStrings"]
    return [
        (match["depName"], match["currentValue"]) for match in re2.finditer(pattern, path.read_text(encoding="utf-8"))
    ]


def test_renovates_expressions_find_every_pin_of_every_lock() -> None:
    """Issue 5.5: tested on Renovate's published rules as far as possible."""
    from envdsl.lock.pylock import read_lock

    locks, layers = renovate()
    paths = sorted((ROOT / "layers.d").glob("pylock.*.toml"))
    assert paths
    for path in paths:
        pins = [(package.name, package.version) for package in read_lock(path).packages]
        assert found_by(locks, path, ROOT) == pins
        assert found_by(layers, path, ROOT) == []
    for path in (ROOT / "layers.d").glob("*.layer"):
        assert found_by(locks, path, ROOT) == []


def test_renovates_expressions_find_exact_requirements_of_layers(project: Path) -> None:
    """Issue 5.5: name and version as intended, and nothing where there is a range."""
    layer = project / "layers.d" / "all.layer"
    layer.write_text(
        'base core {\n  packages = [ "a==1.0" "B.x[extra]==2!3.0+l" "c>=1" "d==1.*" ];\n'
        "  overrides = [ \"e == 5 ; python_version > '3'\" ];\n"
        '  constraints = [ "f~=1.0" "g===1" "h==1,<2" ];\n  python = "3.12"; env = { X = "y=1"; };\n}\n'
    )
    assert found_by(renovate()[1], layer, project) == [("a", "1.0"), ("B.x", "2!3.0+l"), ("e", "5"), ("h", "1")]


def test_what_renovate_writes_into_a_lock_is_refused_until_it_is_locked(committed: Cli, project: Path) -> None:
    """Issue 5.5: how a bot's change becomes a lock."""
    path = project / "layers.d" / "pylock.core.toml"
    assert ("bar", "1.0") in found_by(renovate()[0], path, project)
    path.write_text(path.read_text().replace('name = "bar"\nversion = "1.0"', 'name = "bar"\nversion = "1.5"'))
    publish(project, "bar", "1.6")
    assert committed("lock", "--check").status != 0
    assert committed("build", "core").status != 0
    commands = json.loads(block("json"))["postUpgradeTasks"]["commands"]
    assert commands == ["envdsl lock"]
    assert committed("lock").status == 0
    assert found_by(renovate()[0], path, project) == [("bar", "1.5")]  # what Renovate said, not the newest
    assert committed("lock", "--check").status == 0


def test_the_scheduled_job_pushes_a_branch_and_opens_a_pull_request(
    committed: Cli, project: Path, tmp_path: Path
) -> None:
    """Issue 5.5: the workflow of the page, but for GitHub itself."""
    remote = tmp_path / "remote.git"
    git(tmp_path, "init", "-q", "--bare", str(remote))
    git(project, "remote", "add", "origin", str(remote))
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "gh").write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/gh.txt\n')
    (programs / "gh").chmod(0o755)
    (programs / "envdsl").symlink_to(BIN / "envdsl")
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "RUNNER_TEMP": str(tmp_path)}
    steps = [step["run"] for step in yaml.safe_load(block("yaml"))["jobs"]["update"]["steps"] if "run" in step]
    assert steps[0] == "pip install envdsl"

    def work() -> None:
        for step in steps[1:]:
            subprocess.run(["bash", "-e", "-c", step], cwd=project, check=True, env=environment, capture_output=True)

    work()
    assert "Update locks: bar 1.5" in git(remote, "log", "-1", "--format=%s", "update-locks")
    assert (tmp_path / "body.md").read_text().startswith("### Layers: `HEAD` → `update-locks`")
    assert (tmp_path / "gh.txt").read_text().splitlines()[:2] == ["pr", "create"]
    # Once it is merged there is nothing to do.
    git(project, "merge", "-q", "--ff-only", "update-locks")
    git(project, "branch", "-d", "update-locks")
    (tmp_path / "gh.txt").unlink()
    work()
    assert not (tmp_path / "gh.txt").exists()
