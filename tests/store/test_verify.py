from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from envdsl.store import verify as verifying
from envdsl.store.gc import collect
from envdsl.store.store import Store
from envdsl.store.treehash import scan
from envdsl.store.verify import Finding, Problem, verify
from tests.store.conftest import key_of, put


def test_an_untouched_store_has_no_findings(store: Store) -> None:
    put(store, "x", **{"a/b": "1", "c": ""})
    put(store, "y")
    verified = verify(store)
    assert verified.findings == ()
    assert (verified.paths, verified.bytes) == (2, sum(path.size for path in store.paths()))


def change(place: Path, kind: str) -> None:
    place.parent.chmod(0o755)
    match kind:
        case "content":
            place.chmod(0o644)
            place.write_text("2")
            place.chmod(0o444)
        case "mode":
            place.chmod(0o644)
        case "executable":
            place.chmod(0o555)
        case "missing":
            place.unlink()
        case "extra":
            (place.parent / "extra").write_text("")
        case "type":
            place.unlink()
            place.symlink_to("elsewhere")
    place.parent.chmod(0o555)


@pytest.mark.parametrize(
    ("kind", "member", "problem"),
    [
        ("content", "a/b", Problem.CONTENT),
        ("mode", "a/b", Problem.MODE),
        ("executable", "a/b", Problem.MODE),
        ("missing", "a/b", Problem.MISSING),
        ("extra", "a/extra", Problem.EXTRA),
        ("type", "a/b", Problem.TYPE),
    ],
)
def test_any_change_is_named(store: Store, kind: str, member: str, problem: Problem) -> None:
    path = put(store, "x", **{"a/b": "1", "c": ""})
    put(store, "y")
    change(store.layout.absolute(path.path) / "a" / "b", kind)
    (finding,) = verify(store).findings
    assert (finding.path, finding.key, finding.member, finding.problem) == (path.path, path.key, member, problem)
    assert str(finding).startswith(f"unpacked/x/{member}: {problem}")
    assert verify(store, paths=store.paths("layer")).findings == ()


def test_modes_of_directories_and_of_the_path_itself_are_checked(store: Store) -> None:
    path = put(store, "x", **{"a/b": "1"})
    store.layout.absolute(path.path).chmod(0o755)
    (store.layout.absolute(path.path) / "a").chmod(0o700)
    assert [(finding.member, finding.problem, finding.found) for finding in verify(store).findings] == [
        ("", Problem.MODE, "0755"),
        ("a", Problem.MODE, "0700"),
    ]


def test_a_path_that_is_gone_is_one_finding(store: Store) -> None:
    path = put(store, "x", **{"a/b": "1"})
    subprocess.run(["rm", "-rf", store.layout.absolute(path.path)], check=True)
    assert [str(finding) for finding in verify(store).findings] == ["unpacked/x: missing"]


def test_a_wheel_is_verified_as_a_file(store: Store) -> None:
    wheel = store.temporary("download") / "a.whl"
    wheel.write_bytes(b"wheel")
    path = store.layout.wheel_path("ab" * 32, wheel.name)
    store.register(wheel, path, key=key_of("w"), kind="wheel", listing=scan(wheel))
    assert verify(store).findings == ()
    store.layout.absolute(path).chmod(0o644)
    store.layout.absolute(path).write_bytes(b"whale")
    store.layout.absolute(path).chmod(0o444)
    (finding,) = verify(store).findings
    assert (finding.path, finding.member, finding.problem) == (path, "a.whl", Problem.CONTENT)


def test_a_damaged_file_is_found_in_all_trees_that_have_a_hard_link_of_it(store: Store) -> None:
    part = put(store, "part", **{"m.py": "1"})
    for name in ("one", "two"):
        temporary = store.temporary(name)
        os.link(store.layout.absolute(part.path) / "m.py", temporary / "m.py")
        store.register(
            temporary, f"layers/{name}", key=key_of(name), kind="layer", listing=scan(temporary), sealed=True
        )
    change(store.layout.absolute(part.path) / "m.py", "content")
    assert [finding.path for finding in verify(store).findings] == ["layers/one", "layers/two", "unpacked/part"]


def test_a_path_that_is_collected_meanwhile_is_no_finding(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 3.5: verify runs together with gc."""
    for name in ("a", "b", "c"):
        put(store, name)
    real = verifying._compared

    def collected(*arguments: Any) -> list[Finding]:
        if store.registry.by_key(key_of("b")) is not None:
            collect(store, [key_of("a"), key_of("c")])
        return real(*arguments)

    monkeypatch.setattr(verifying, "_compared", collected)
    verified = verify(store)
    assert verified.paths == 3
    assert verified.findings == ()


def test_a_path_that_is_built_anew_meanwhile_is_looked_at_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(store, "a", **{"m.py": "1"})
    real = verifying._compared
    seen: list[list[Finding]] = []

    def rebuilt(*arguments: Any) -> list[Finding]:
        if not seen:
            collect(store, [])
            seen.append(real(*arguments))
            put(store, "a", **{"m.py": "2"})
            return seen[0]
        return real(*arguments)

    monkeypatch.setattr(verifying, "_compared", rebuilt)
    assert verify(store, paths=[path]).findings == ()
    assert len(seen[0]) == 1


def test_what_the_disk_refuses_to_read_is_a_finding_like_others(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bad sector in one file keeps nothing else from being looked at."""
    put(store, "a", **{"bad.py": "1", "good.py": "2"})
    changed = put(store, "b", **{"c.py": "3"})
    change(store.layout.absolute(changed.path) / "c.py", "content")
    real = verifying.hash_file

    def failing(place: bytes) -> tuple[int, str]:
        if place.endswith(b"bad.py"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(place)

    monkeypatch.setattr(verifying, "hash_file", failing)
    found = verify(store).findings
    assert [(item.member, item.problem) for item in found] == [
        ("bad.py", Problem.UNREADABLE),
        ("c.py", Problem.CONTENT),
    ]
    assert str(found[0]) == "unpacked/a/bad.py: unreadable: Input/output error"


def test_a_damaged_listing_is_a_finding(store: Store) -> None:
    put(store, "a")
    put(store, "b")
    with store.registry.writing() as connection:
        connection.execute("UPDATE listings SET data = x'00' WHERE key = ?", (key_of("a"),))
        connection.execute("DELETE FROM listings WHERE key = ?", (key_of("b"),))
    assert [(item.path, item.problem) for item in verify(store).findings] == [
        ("unpacked/a", Problem.LISTING),
        ("unpacked/b", Problem.LISTING),
    ]
