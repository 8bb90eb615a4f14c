"""``envdsl env``, ``requests``, ``worker`` and ``session``: asking and deciding on the command line."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, Result, clone
from tests.wheels import make_wheel

CATALOG = '[allow]\npackages = ["foo"]\n[deny]\nevil = "it phones home"\n'


@pytest.fixture
def own(project: Path, pristine_store: Path, run: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command line with a store of the test's own, its layers built, and a session ``s`` on ``core``."""
    monkeypatch.setenv("ENVDSL_STORE", str(clone(pristine_store, tmp_path / "store")))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    monkeypatch.delenv("ENVDSL_DATABASE", raising=False)
    for name in ("evil", "unlisted"):
        make_wheel(project / "wheels", name, "1")
    (project / "layers.d" / "catalog.toml").write_text(CATALOG)
    assert run("lock").status == 0
    assert run("session", "create", "s", "-l", "core").status == 0
    return run


def imports(run: Cli, *modules: str) -> Result:
    return run("run", "s", "--", "python3", "-c", f"import {', '.join(modules)}")


def test_asking_works_without_a_service(own: Cli) -> None:
    """Issue 4.6: envdsl env; the work is done by the command where no worker is alive."""
    done = own("env", "request", "s", "foo==1", "--reason", "to try")
    assert done.status == 0, done.err
    assert "foo==1: ready, decided by rule" in done.out
    assert "import foo" in done.out
    assert imports(own, "foo", "bar").status == 0
    status = own("env", "status", "s", "--json").json
    assert [(item["name"], item["imports"]) for item in status["installed"]] == [("bar", ["bar"]), ("foo", ["foo"])]
    assert own("env", "request", "s", "bar", "--json").json["status"] == "present"


def test_exit_status_3_where_policy_refuses(own: Cli) -> None:
    """Issue 4.6: what was refused, and why."""
    done = own("env", "request", "s", "evil")
    assert done.status == 3
    assert "it phones home" in done.out
    assert own("env", "request", "s", "no-such-thing").status == 3
    assert own("env", "request", "s", "a b").status == 2
    assert own("env", "request", "nobody", "foo").status == 2


def test_a_person_decides_on_the_command_line(own: Cli) -> None:
    """Issue 4.7: requests list, show, approve; the digest shown is the digest built."""
    first = own("env", "request", "s", "unlisted", "--json")
    asked = first.json
    assert (asked["status"], first.status) == ("pending", 75)  # nothing is there yet
    assert own("env", "wait", "s", asked["id"], "--timeout", "0").status == 75
    (listed,) = own("requests", "list", "--json").json["requests"]
    assert (listed["id"], listed["needs-person"]) == (asked["id"], True)
    assert "needs a person" in own("requests", "list").out
    card = own("requests", "show", asked["id"], "--json").json
    assert card["card"]["id"] == asked["id"]
    assert own("requests", "show", asked["id"], "--format", "markdown").out.startswith("# Request req")
    shown = own("requests", "show", asked["id"]).out
    assert f"  digest    {listed['digest']}\n" in shown
    assert "  status    needs a person\n" in shown
    assert not {"#", "|", "**", "\\"} & set(shown.split())
    without = own("requests", "approve", asked["id"])
    assert without.status == 2
    assert "app-digest-missing" in without.err
    done = own("requests", "approve", asked["id"], "--digest", listed["digest"], "--comment", "fine")
    assert done.status == 0, done.err
    assert done.out.split()[-1] == "ready"
    assert own("env", "wait", "s", asked["id"]).status == 0
    assert imports(own, "unlisted").status == 0
    assert own("requests", "list").out == ""
    assert (
        own("requests", "list", "--all", "--status", "ready", "--json").json["requests"][0]["decision"]["comment"]
        == "fine"
    )
    again = own("requests", "deny", asked["id"])
    assert again.status == 1
    assert "state-conflict" in again.err


def completed(project: Path, *words: str) -> list[str]:
    """What the shell is offered for the last of ``words``, by click's own protocol."""
    environment = {"_ENVDSL_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(("envdsl", *words))}
    done = subprocess.run(
        [sys.executable, "-m", "envdsl"],
        cwd=project,
        env={**os.environ, **environment, "COMP_CWORD": str(len(words)), "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=True,
    )
    return [line.removeprefix("plain,") for line in done.stdout.splitlines() if line]


def test_ids_of_requests_and_tokens_are_completed(own: Cli, project: Path) -> None:
    asked = own("env", "request", "s", "unlisted", "--json").json["id"]
    ended = own("env", "request", "s", "evil", "--json").json["id"]
    assert completed(project, "requests", "show", "req") == [ended, asked]
    assert completed(project, "requests", "approve", "req") == [asked]
    assert completed(project, "env", "wait", "s", asked) == [asked]
    token = own("token", "create", "--role", "reader", "--name", "monitor", "--json").json["id"]
    assert completed(project, "token", "revoke", "tok") == [token]
    assert own("token", "revoke", token).status == 0
    assert completed(project, "token", "revoke", "tok") == []


def test_completing_makes_no_database(run: Cli, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVDSL_STORE", str(tmp_path / "none"))
    assert completed(project, "requests", "show", "") == []
    assert not (tmp_path / "none").exists()


def test_denying_and_cancelling(own: Cli) -> None:
    """Issue 4.7: requests deny; whoever asked reads why."""
    asked = own("env", "request", "s", "unlisted", "--json").json["id"]
    assert own("requests", "deny", asked, "--comment", "use foo").status == 0
    waited = own("env", "wait", "s", asked)
    assert waited.status == 3
    assert "use foo" in waited.out
    asked = own("env", "request", "s", "unlisted", "--json").json["id"]
    assert own("requests", "cancel", asked, "--json").json["status"] == "cancelled"
    assert own("env", "wait", "s", asked).status == 1


def test_a_wheel_of_ones_own(own: Cli, tmp_path: Path) -> None:
    """Issue 4.2: uploaded wheels."""
    wheel = make_wheel(tmp_path / "dist", "mine", "1", requires=["foo"])
    asked = own("env", "request", "s", "--wheel", wheel, "--json").json
    assert (asked["status"], asked["reasons"][0]["code"]) == ("pending", "policy-upload")
    digest = own("requests", "show", asked["id"], "--json").json["digest"]
    assert own("requests", "approve", asked["id"], "--digest", digest).status == 0
    assert imports(own, "mine", "foo").status == 0
    broken = tmp_path / "dist" / "broken-1-py3-none-any.whl"
    broken.write_bytes(b"no wheel")
    done = own("env", "request", "s", "--wheel", broken)
    assert done.status == 1
    assert "intake-" in done.err


def test_promote_writes_what_git_keeps(own: Cli, project: Path) -> None:
    """Issue 4.7: requests promote."""
    asked = own("env", "request", "s", "foo==2", "--json").json["id"]
    done = own("requests", "promote", asked, "--name", "fine")
    assert done.out.splitlines() == ["layers.d/fine.layer", "layers.d/pylock.fine.toml"]
    assert own("lock", "--check").status == 0
    built = {row[0]: row[1] for row in own("build").rows}
    assert built["fine"] == own("requests", "list", "--all", "--json").json["requests"][0]["layer"]
    assert "fine" in own("ls").out


def test_a_workers_stop_finishes_what_it_has_in_hand(own: Cli, project: Path) -> None:
    """Issue 4.3: envdsl worker; SIGTERM ends it, with exit status 0."""
    process = subprocess.Popen(
        [sys.executable, "-m", "envdsl", "worker", "--jobs", "2"],
        cwd=project,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        asked = own("env", "request", "s", "foo", "--json").json
        assert asked["status"] == "ready"
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert "working on requests with 2 threads" in said
    assert imports(own, "foo").status == 0


def test_a_worker_that_runs_once_ends_when_nothing_is_left(own: Cli) -> None:
    assert own("env", "request", "s", "foo", "--wait", "0").status == 75
    own("env", "request", "s", "evil", "--wait", "0")
    assert own("worker", "--once", "-q").status == 0
    found = own("requests", "list", "--all", "--json").json["requests"]
    assert sorted(item["status"] for item in found) == ["ready", "refused"]


def test_on_a_terminal_the_card_is_shown_and_asked_about(own: Cli, project: Path) -> None:
    """Issue 4.7: what is approved on a terminal is what was just shown."""
    asked = own("env", "request", "s", "unlisted", "--json").json["id"]
    for answer, status in ((b"n\n", "pending"), (b"y\n", "ready")):
        main, side = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "envdsl", "requests", "approve", asked],
            cwd=project,
            stdin=side,
            stdout=side,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        os.close(side)
        shown = b""
        deadline = time.monotonic() + 60
        while b"approve this?" not in shown and time.monotonic() < deadline:
            shown += os.read(main, 4096)
        os.write(main, answer)
        while True:
            try:
                if not os.read(main, 4096):
                    break
            except OSError:  # the other side is closed
                break
        process.wait(timeout=60)
        os.close(main)
        assert b"unlisted" in shown
        (found,) = own("requests", "list", "--all", "--json").json["requests"]
        assert found["status"] == status


def test_history_undo_seal_and_rebase_on_the_command_line(own: Cli, tmp_path: Path) -> None:
    """Issue 4.5: session history, session undo, session seal."""
    own("env", "request", "s", "foo==1")
    assert [row[2] for row in own("session", "history", "s").rows] == ["request", "create"]
    sealed = json.loads(own("session", "seal", "s").out)
    assert sealed["session"] == "s"
    assert own("session", "undo", "s", "--dry-run", "--json").json["dry-run"] is True
    assert own("session", "undo", "s").status == 0
    assert imports(own, "foo").status == 1
    assert own("session", "undo", "s", "--to", "2", "--json").json["changes"]
    assert imports(own, "foo").status == 0
    assert own("session", "history", "s", "--json").json["bindings"][0]["cause"] == "undo"
    work = tmp_path / "work"
    work.mkdir()
    preview = own("session", "rebase", "s", "--workspace", work, "--drop", "requested-foo", "--dry-run")
    digest = preview.err.split()[-1]
    other = own("session", "rebase", "s", "--drop", "requested-foo", "--expect", digest)
    assert (other.status, "is not the one that was shown" in other.err) == (1, True)
    assert (
        preview.out.splitlines()
        == own(
            "session", "rebase", "s", "--workspace", work, "--drop", "requested-foo", "--expect", digest
        ).out.splitlines()
    )
    assert "~ workspace" in preview.out
    assert imports(own, "foo").status == 1


def test_a_session_belongs_to_whom_its_creator_says(own: Cli) -> None:
    """Issue 4.7: the session's owner may decide."""
    assert own("session", "create", "t", "-l", "core", "--owner", "alice").status == 0
    assert own("session", "history", "t").rows[0][2] == "create"
    asked = own("env", "request", "t", "unlisted", "--json").json["id"]
    assert own("requests", "show", asked, "--json").json["card"]["owner"] == "alice"
    assert own("session", "remove", "t").status == 0
    assert own("requests", "list", "--json").json["requests"] == []
