"""Seals and the audit log for those who read it."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from envdsl.app import signing
from envdsl.app.control import auditing, sealing, tokens
from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.canonical import canonical_json
from envdsl.policy.access import Principal, Role
from envdsl.state.chain import Anchor, Break
from tests.app.control.bench import ADMIN, Bench, agent, owner


@pytest.fixture
def grown(bench: Bench) -> Bench:
    """A session that asked for something and got it."""
    bench.session("s")
    assert bench.settled("s", "foo==1").status == "ready"
    return bench


def written(document: Any, file: Path) -> Path:
    file.write_text(json.dumps(document))
    return file


def test_a_seal_names_layers_wheels_decisions_and_the_head_of_the_log(grown: Bench) -> None:
    """Issue 4.4: base hash, layer ids, wheels and decisions as one signed-off JSON."""
    [request] = _requests(grown)
    seal = sealing.seal(grown.plane, ADMIN, "s")
    manifest = grown.manifest("s")
    assert seal["base"]["id"] == str(manifest.foundation.id)
    assert seal["base"]["tree-hash"] == manifest.foundation.tree_hash
    assert [layer["id"] for layer in seal["layers"]] == [str(layer.id) for layer in manifest.layers]
    wheels = {wheel["filename"]: wheel["sha256"] for layer in seal["layers"] for wheel in layer["wheels"]}
    bound = {item.filename: item.sha256 for layer in manifest.layers for item in layer.packages}
    assert wheels == bound
    assert len(wheels) == 2
    [decision] = seal["decisions"]
    assert (decision["request"], decision["by"], decision["choice"]) == (request.id, "rule", "approve")
    assert decision["digest"] == request.digest
    assert [item["cause"] for item in seal["bindings"]] == ["create", "request"]
    assert seal["bindings"][-1]["manifest"] == seal["manifest"]
    head = grown.events()[-1]
    assert seal["audit"] == {"number": head.number, "hash": head.hash}
    assert (head.action, head.actor, head.data["manifest"]) == ("session.sealed", ADMIN.name, seal["manifest"])


def _requests(bench: Bench) -> list[Any]:
    with bench.plane.state.reading() as tx:
        return tx.requests.list(bench.plane.store_id)


def test_a_seal_is_checked_with_the_public_key_alone(grown: Bench, tmp_path: Path) -> None:
    seal = sealing.seal(grown.plane, ADMIN, "s")
    file = written(seal, tmp_path / "seal.json")
    public = grown.project.store.layout.root / "seal.key.pub"
    for trusted in (seal["signer"], str(public)):
        found = sealing.check(file, trusted=[trusted])
        assert (found.session, found.signer, found.broken) == ("s", seal["signer"], None)
    # and as docs/policy.md says it, with nothing of envdsl but the canonical form
    signature = bytes.fromhex(seal.pop("signature"))
    assert signing.is_signed(signing.read_public(public), signature, b"envdsl seal 1", canonical_json(seal))
    assert not signing.is_signed(signing.read_public(public), signature, b"envdsl bundle 1", canonical_json(seal))


def test_the_key_is_the_stores_own_and_for_its_owner_alone(grown: Bench, tmp_path: Path) -> None:
    first, second = (sealing.seal(grown.plane, ADMIN, "s") for _ in range(2))
    key = grown.project.store.layout.root / "seal.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert first["signer"] == second["signer"] == sealing.public_key(grown.plane)
    assert "PRIVATE" not in json.dumps(first)
    assert [path.name for path in key.parent.glob(".seal*")] == []


def test_sealing_for_the_first_time_in_many_threads_makes_one_key(bench: Bench) -> None:
    found: list[str] = []
    crew = [threading.Thread(target=lambda: found.append(sealing.public_key(bench.plane))) for _ in range(5)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    assert len(found) == 5
    assert len(set(found)) == 1


Spoil = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda seal: seal.update(session="other"), "app-seal-signature"),
        (lambda seal: seal["layers"][0]["wheels"][0].update(sha256="0" * 64), "app-seal-signature"),
        (lambda seal: seal["decisions"].append({"by": "mallory"}), "app-seal-signature"),
        (lambda seal: seal["audit"].update(number=1), "app-seal-signature"),
        (lambda seal: seal.update(more=1), "app-seal-signature"),
        (lambda seal: seal.update(more=0.5), "app-seal-signature"),
        (lambda seal: seal.update(signature="zz"), "app-seal-signature"),
        (lambda seal: seal.update(signature=seal["signature"][:-2]), "app-seal-signature"),
        (lambda seal: seal.update(signer="0" * 64), "app-seal-untrusted"),
        (lambda seal: seal.update(version=2), "app-seal-invalid"),
        (lambda seal: seal.pop("signature"), "app-seal-invalid"),
        (lambda seal: seal.update(audit=[]), "app-seal-invalid"),
        (lambda seal: seal.clear(), "app-seal-invalid"),
    ],
)
def test_a_seal_that_was_changed_is_refused(light_bench: Bench, tmp_path: Path, spoil: Spoil, code: str) -> None:
    light_bench.session("s")
    seal = sealing.seal(light_bench.plane, ADMIN, "s")
    spoil(seal)
    with pytest.raises(EnvdslError) as raised:
        sealing.check(written(seal, tmp_path / "seal.json"), plane=light_bench.plane)
    assert raised.value.code == code
    expected = ExitStatus.USAGE if code == "app-seal-invalid" else ExitStatus.REFUSED
    assert raised.value.exit_status == expected


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b"null", b"[" * 100_000, b'{"version": 1}'])
def test_a_file_that_is_no_seal_is_said(light_bench: Bench, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(EnvdslError) as raised:
        sealing.check(file, plane=light_bench.plane)
    assert raised.value.code == "app-seal-invalid"


def test_a_seal_shows_that_the_log_was_cut_off_since(grown: Bench, database_url: str, tmp_path: Path) -> None:
    """What a chain alone cannot show."""
    file = written(sealing.seal(grown.plane, ADMIN, "s"), tmp_path / "seal.json")
    assert sealing.check(file, plane=grown.plane).broken is None
    assert auditing.verify(grown.plane, ADMIN, anchor=auditing.read_anchor(str(file))).broken is None
    engine = create_engine(database_url)
    with engine.begin() as connection:  # as its owner can
        if engine.dialect.name == "sqlite":
            connection.execute(text("DROP TRIGGER audit_events_delete"))
        else:
            connection.execute(text("ALTER TABLE audit_events DISABLE TRIGGER USER"))
        connection.execute(text("DELETE FROM audit_events WHERE number > 3"))
    engine.dispose()
    assert auditing.verify(grown.plane, ADMIN).broken is None
    found = sealing.check(file, plane=grown.plane)
    assert found.broken is not None
    assert found.broken.number == 4
    assert auditing.verify(grown.plane, ADMIN, anchor=auditing.read_anchor(str(file))).broken == found.broken


@pytest.mark.parametrize("who", [agent("s"), owner("somebody else"), Principal(Role.READER, "r")])
def test_who_may_not_change_a_session_may_not_seal_it(light_bench: Bench, who: Principal) -> None:
    light_bench.session("s")
    with pytest.raises(EnvdslError) as raised:
        sealing.seal(light_bench.plane, who, "s")
    assert raised.value.code == "app-forbidden"


def test_an_export_is_a_copy_that_verifies_by_itself_and_anchors_the_log(grown: Bench, tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    lines = list(auditing.export(grown.plane, ADMIN))
    file.write_text("\n".join(lines) + "\n")
    found = auditing.verify_export(file)
    assert (found.events, found.broken) == (len(lines), None)
    assert auditing.read_anchor(str(file)) == found.head
    assert auditing.verify(grown.plane, ADMIN, anchor=found.head).broken is None
    part = tmp_path / "part.jsonl"
    part.write_text("\n".join(auditing.export(grown.plane, ADMIN, first=3, last=4)))
    assert auditing.verify_export(part).events == 2
    part.write_text(lines[0].replace("request.created", "request.denied") + "\n" + lines[1])
    assert auditing.verify_export(part).broken == Break(1, "event 1 was changed: its hash is another")
    one = tmp_path / "one.jsonl"
    one.write_text(lines[0])
    assert auditing.read_anchor(str(one)).number == 1
    del lines[2]
    file.write_text("\n".join(lines))
    broken = auditing.verify_export(file).broken
    assert broken is not None
    assert broken.number == 3


def test_the_program_in_the_documentation_verifies_an_export(light_bench: Bench, tmp_path: Path) -> None:
    """docs/policy.md: an export can be verified without envdsl."""
    documentation = (Path(__file__).parents[3] / "docs" / "policy.md").read_text()
    [program] = [block for block in re.findall(r"```python\n(.*?)```", documentation, re.DOTALL) if "blake3" in block]
    for name in ("zoë", "b", "c"):
        tokens.create(light_bench.plane, ADMIN, role=Role.READER, name=name)
    lines = list(auditing.export(light_bench.plane, ADMIN))
    for text_, status in (
        ("\n".join(lines), 0),
        ("\n".join(lines).replace('"c"', '"d"'), 1),
        ("\n".join(lines[1:]), 1),
    ):
        done = subprocess.run([sys.executable, "-c", program], input=text_, text=True, check=False, capture_output=True)
        assert done.returncode == status, done.stderr


def test_what_is_no_export_and_no_anchor_is_said(tmp_path: Path) -> None:
    file = tmp_path / "file"
    for content in ("{}", "nonsense", '{"number": 1}', "[1]"):
        file.write_text(content)
        with pytest.raises(EnvdslError) as raised:
            auditing.verify_export(file)
        assert raised.value.code == "app-audit-export"
    for anchor in ("", "5", "5:abc", str(tmp_path / "missing"), str(file)):
        with pytest.raises(EnvdslError) as raised:
            auditing.read_anchor(anchor)
        assert raised.value.code == "app-audit-anchor"
    assert auditing.read_anchor(f"5:{'a' * 64}") == Anchor(5, "a" * 64)


def test_the_audit_log_is_for_administrators_and_readers(light_bench: Bench) -> None:
    reader = Principal(Role.READER, "r")
    assert auditing.verify(light_bench.plane, reader).events == 0
    for who in (agent("s"), owner("alice")):
        for act in (auditing.newest, auditing.verify, lambda plane, who: list(auditing.export(plane, who))):
            with pytest.raises(EnvdslError) as raised:
                act(light_bench.plane, who)  # type: ignore[operator]
            assert raised.value.code == "app-forbidden"


def test_what_happened_to_a_request_is_told_in_order(grown: Bench) -> None:
    [record] = _requests(grown)
    actions = [event.action for event in auditing.of_request(grown.plane, record)]
    assert actions == ["request.created", "request.approved", "request.building", "binding.request", "request.ready"]
