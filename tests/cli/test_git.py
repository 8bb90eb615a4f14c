"""envdsl in git and CI: hooks, the merge driver, and the snippets of docs/ci.md."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from envdsl.cli.group import cli
from tests.cli.conftest import PYTHON, Cli
from tests.wheels import make_wheel

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
IDENTITY = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(root: Path, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **IDENTITY, "PATH": f"{BIN}:{os.environ['PATH']}"}
    return subprocess.run(["git", *arguments], cwd=root, check=check, capture_output=True, text=True, env=environment)


@pytest.fixture
def merging(run: Cli, project: Path) -> Cli:
    """A project in git with the merge driver, locked with ``low`` 1 and ``other`` 1."""
    for name in ("low", "other", "extra"):
        for version in ("1", "2", "3"):
            make_wheel(project / "wheels", name, version)
    declare(project, "low<2", "other<2")
    assert run("lock").status == 0
    (project / ".gitattributes").write_text("layers.d/pylock.*.toml merge=envdsl-lock\n")
    git(project, "init", "-q", "-b", "main")
    git(project, "config", "merge.envdsl-lock.driver", "envdsl merge-lock %O %A %B %P")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "begin")
    return run


def declare(project: Path, *packages: str) -> None:
    lines = "\n".join(f'    "{package}"' for package in packages)
    (project / "layers.d" / "all.layer").write_text(
        f'base core {{\n  python = "{PYTHON}";\n  packages = [\n{lines}\n  ];\n}}\n'
    )


def on_branch(run: Cli, project: Path, branch: str, *packages: str) -> None:
    git(project, "checkout", "-q", "-B", branch, "main")
    declare(project, *packages)
    assert run("lock").status == 0
    git(project, "commit", "-q", "-a", "-m", branch)


def pins(project: Path) -> dict[str, str]:
    text = (project / "layers.d" / "pylock.core.toml").read_text()
    return dict(re.findall(r'^name = "(.+)"\nversion = "(.+)"$', text, re.MULTILINE))


def test_two_branches_that_locked_merge_without_a_conflict_and_have_to_lock_again(merging: Cli, project: Path) -> None:
    """Issue 5.9: a merge driver for locks."""
    on_branch(merging, project, "mine", "low==2", "other<2")
    on_branch(merging, project, "yours", "low<2", "other<2", "extra==1")
    git(project, "checkout", "-q", "mine")
    done = git(project, "merge", "yours", "-m", "merge")
    assert "run `envdsl lock`" in done.stderr + done.stdout
    assert pins(project) == {"low": "2", "other": "1", "extra": "1"}
    refused = merging("build", "core")
    assert refused.status == 1
    assert "error[lock-inconsistent]" in refused.err
    assert merging("lock", "--check").status == 1
    locked = merging("lock")
    assert locked.status == 0
    assert "its packages were merged or edited, and not resolved together yet" in locked.out
    assert "damaged" not in locked.out
    assert pins(project) == {"low": "2", "other": "1", "extra": "1"}
    assert merging("lock", "--check").status == 0


def test_of_a_package_that_both_moved_the_newer_version_is_taken_and_told(merging: Cli, project: Path) -> None:
    on_branch(merging, project, "mine", "low==2", "other<2")
    on_branch(merging, project, "yours", "low==3", "other<2")
    git(project, "checkout", "-q", "mine")
    done = git(project, "merge", "yours", check=False)
    assert "low: 2 here, 3 there; took 3" in done.stderr + done.stdout
    assert pins(project) == {"low": "3", "other": "1"}


def test_a_side_that_is_no_lock_is_a_conflict_for_git(merging: Cli, project: Path, tmp_path: Path) -> None:
    lock = project / "layers.d" / "pylock.core.toml"
    broken = tmp_path / "broken"
    broken.write_text("<<<<<<< ours\n")
    before = lock.read_bytes()
    done = merging("merge-lock", lock, lock, broken, "layers.d/pylock.core.toml")
    assert done.status == 1
    assert "not merged" in done.err
    assert lock.read_bytes() == before


def test_the_hooks_are_valid_and_their_commands_work(built: Cli, project: Path) -> None:
    """Issue 5.9: pre-commit hook definitions (fmt, check, lock --check)."""
    manifest = ROOT / ".pre-commit-hooks.yaml"
    subprocess.run([BIN / "pre-commit", "validate-manifest", manifest], check=True, capture_output=True)
    hooks: list[dict[str, Any]] = yaml.safe_load(manifest.read_text())
    assert [hook["id"] for hook in hooks] == ["envdsl-fmt", "envdsl-check", "envdsl-lock-check"]
    names = [str(path.relative_to(project)) for path in sorted(project.rglob("*")) if path.is_file()]
    for hook in hooks:
        matching = [name for name in names if re.search(hook["files"], name)]
        assert matching, hook["id"]
        files = matching if hook.get("pass_filenames", True) else []
        assert built(*hook["entry"].split()[1:], *files).status == 0
    layer = project / "layers.d" / "all.layer"
    layer.write_text(layer.read_text() + "x broken on nowhere { }\n")
    assert built("check").status == 1


def fenced(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_snippets_of_ci_are_yaml_with_commands_that_there_are() -> None:
    """Issue 5.9: ready snippets for GitHub Actions, GitLab CI and Jenkins with a cached store."""
    text = (ROOT / "docs" / "ci.md").read_text()
    hooks, github, gitlab = (yaml.safe_load(block) for block in fenced(text, "yaml"))
    assert [hook["id"] for hook in hooks["repos"][0]["hooks"]] == ["envdsl-fmt", "envdsl-check", "envdsl-lock-check"]
    assert any(step.get("uses", "").startswith("actions/cache@") for step in github["jobs"]["layers"]["steps"])
    assert gitlab["layers"]["cache"]["paths"] == [".envdsl-store"]
    (jenkins,) = fenced(text, "groovy")
    commands = re.findall(r"(?:run: |    - |sh ')(envdsl [^'>#\n]+)", text)
    assert len(commands) >= 12
    assert "envdsl build --locked" in jenkins
    for command in commands:
        parse(shlex.split(re.sub(r"\$\{\{.*?\}\}|\$\w+", "VALUE", command))[1:])


def parse(words: list[str]) -> None:
    """Raises click.UsageError for a command or an option that there is not."""
    context = click.Context(cli, info_name="envdsl")
    name, command, rest = cli.resolve_command(context, words)
    assert name is not None
    assert command is not None
    command.make_context(name, list(rest), parent=context)
