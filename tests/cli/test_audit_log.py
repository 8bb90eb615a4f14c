"""``envdsl audit-log``, ``token`` and ``session seal``: stdout, stderr, exit statuses, JSON."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import Cli


@pytest.fixture
def command(run: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command line with a database of its own; the store is shared by many tests."""
    monkeypatch.setenv("ENVDSL_DATABASE", f"sqlite:///{tmp_path}/state.db")
    return run


def test_a_token_is_shown_once_and_listed_without_itself(command: Cli) -> None:
    """Issue 4.9: tokens hashed at rest, expiring, revocable."""
    made = command("token", "create", "--role", "reader", "--name", "monitoring", "--expires", "7d")
    assert made.status == 0
    assert re.fullmatch(r"envdsl_r_[0-9a-f]{64}\n", made.out)
    assert "not shown again" in made.err
    assert made.out.strip() not in made.err
    listed = command("token", "list")
    [row] = listed.rows
    assert (row[1:5], row[6]) == (["reader", "monitoring", "-", "valid"], "never used")
    assert made.out.strip() not in listed.out
    revoked = command("token", "revoke", row[0])
    assert (revoked.status, revoked.rows[0][:2]) == (0, [row[0], "revoked"])
    assert command("token", "list").out == ""
    [item] = command("token", "list", "--all", "--json").json["tokens"]
    assert (item["status"], item["role"], item["session"]) == ("revoked", "reader", None)
    assert [event["action"] for event in command("audit-log", "show", "--json").json["events"]] == [
        "token.revoked",
        "token.created",
    ]


def test_a_token_as_json_is_the_only_place_where_it_stands(command: Cli, tmp_path: Path) -> None:
    made = command("token", "create", "--role", "administrator", "--name", "alice", "--json")
    assert set(made.json) == {
        "token", "id", "role", "name", "session", "status", "created", "expires", "revoked", "used"
    }  # fmt: skip
    assert made.json["expires"] is None
    for file in tmp_path.glob("state.db*"):
        assert made.json["token"].encode() not in file.read_bytes()


def test_mistakes_with_tokens_are_usage_errors(command: Cli) -> None:
    for words, code in (
        (("create", "--role", "agent", "--name", "n"), "app-token-session"),
        (("create", "--role", "agent", "--name", "n", "--session", "missing"), "session-unknown"),
        (("create", "--role", "reader", "--name", ""), "app-token-name"),
        (("revoke", "tok-none"), "state-unknown-token"),
    ):
        done = command("token", *words)
        assert (done.status, done.out) == (2, "")
        assert f"error[{code}]" in done.err
    assert command("token", "create", "--role", "king", "--name", "n").status == 2
    assert command("token", "create", "--role", "reader", "--name", "n", "--expires", "soon").status == 2
    assert command("audit-log", "show", "--json").json == {"events": []}


def test_the_log_is_shown_verified_and_exported(command: Cli, tmp_path: Path) -> None:
    """Issue 4.4: `envdsl audit-log verify`."""
    empty = command("audit-log", "verify")
    assert (empty.status, empty.out) == (0, f"sound\t0:{'0' * 64}\n")
    for name in ("a", "b", "c"):
        command("token", "create", "--role", "reader", "--name", name, "-q")
    shown = command("audit-log", "show", "--limit", "2")
    assert [row[0] for row in shown.rows] == ["3", "2"]
    assert [row[0] for row in command("audit-log", "show", "--before", "2").rows] == ["1"]
    found = command("audit-log", "verify")
    assert found.status == 0
    assert re.fullmatch(r"sound\t3:[0-9a-f]{64}\n", found.out)
    assert "3 events verified" in found.err
    anchor = found.out.split()[1]
    lines = command("audit-log", "export").out.splitlines()
    assert [json.loads(line)["number"] for line in lines] == [1, 2, 3]
    file = tmp_path / "audit.jsonl"
    assert command("audit-log", "export", "-o", file, "--json").json == {"file": str(file), "events": 3}
    assert file.read_text().splitlines() == lines
    for words in (("--anchor", anchor), ("--anchor", file), ("--export", file), ("--from", "2", "--to", "3")):
        assert command("audit-log", "verify", *words).status == 0
    report = command("audit-log", "verify", "--json").json
    assert report == {
        "sound": True,
        "events": 3,
        "head": {"number": 3, "hash": anchor.partition(":")[2]},
        "broken": None,
    }
    assert command("audit-log", "verify", "--anchor", "nonsense").status == 2
    assert command("audit-log", "verify", "--export", file, "--from", "2").status == 2


def test_a_broken_chain_is_named_with_exit_status_1(command: Cli, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        command("token", "create", "--role", "reader", "--name", name, "-q")
    anchor = command("audit-log", "verify").out.split()[1]
    database = sqlite3.connect(tmp_path / "state.db")
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        database.execute("DELETE FROM audit_events WHERE number = 3")
    database.execute("DROP TRIGGER audit_events_delete")
    database.execute("DELETE FROM audit_events WHERE number = 3")
    database.commit()
    assert command("audit-log", "verify").status == 0
    cut = command("audit-log", "verify", "--anchor", anchor)
    assert (cut.status, cut.rows[0][:2]) == (1, ["broken", "3"])
    database.execute("DROP TRIGGER audit_events_update")
    database.execute("UPDATE audit_events SET actor = 'mallory' WHERE number = 1")
    database.commit()
    database.close()
    changed = command("audit-log", "verify", "--json")
    assert (changed.status, changed.json["sound"], changed.json["broken"]["number"]) == (1, False, 1)


def test_an_unreachable_database_is_exit_status_4_without_its_password(
    run: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 4.9: no credential in an error."""
    monkeypatch.setenv("ENVDSL_DATABASE", "postgresql+psycopg://envdsl:hunter2@127.0.0.1:1/plane")
    for words in (("audit-log", "verify"), ("token", "list", "--json"), ("audit-log", "show", "-v")):
        done = run(*words)
        assert (done.status, done.out) == (4, "")
        assert "state-unreachable" in done.err
        assert "127.0.0.1" in done.err
        assert "hunter2" not in done.err


def test_a_session_is_sealed_and_the_seal_is_checked(
    built: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 4.4: `envdsl session seal ID`."""
    monkeypatch.setenv("ENVDSL_DATABASE", f"sqlite:///{tmp_path}/state.db")
    name = f"sealed-{tmp_path.name[-20:]}"
    assert built("session", "create", name, "--layer", "core").status == 0
    try:
        done = built("session", "seal", name)
        seal = done.json
        assert f"signed with the key {seal['signer']}" in done.err
        assert {wheel["name"] for layer in seal["layers"] for wheel in layer["wheels"]} == {"bar"}
        file = tmp_path / "seal.json"
        assert built("session", "seal", name, "--output", file).out == f"{file}\n"
        checked = built("session", "verify-seal", file)
        assert (checked.status, checked.rows[0][:2]) == (0, ["sound", name])
        assert built("session", "verify-seal", file, "--trust", seal["signer"], "--json").json["sound"] is True
        other = built("session", "verify-seal", file, "--trust", "0" * 64)
        assert (other.status, "app-seal-untrusted" in other.err) == (3, True)
        for no_key in ("abc", str(file)):
            usage = built("session", "verify-seal", file, "--trust", no_key)
            assert (usage.status, usage.out) == (2, "")
            assert f"error[app-key]: {no_key} is no key to trust" in usage.err
            assert "64 hexadecimal digits" in usage.err
            assert "PEM file" in usage.err
        file.write_text(file.read_text().replace('"by": "', '"by": "not '))
        forged = built("session", "verify-seal", file)
        assert (forged.status, "app-seal-signature" in forged.err) == (3, True)
    finally:
        built("session", "remove", name)
