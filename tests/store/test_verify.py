from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from blake3 import blake3

from envdsl.reporter import Reporter, Task
from envdsl.store import hashing
from envdsl.store import verify as verifying
from envdsl.store.gc import collect
from envdsl.store.store import Store
from envdsl.store.treehash import _CHUNK, hash_file, scan
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


class Meanwhile(Reporter):
    """Does ``work`` once, when the path ``before`` is about to be looked at."""

    def __init__(self, before: str, work: Callable[[], object]) -> None:
        self._before = before
        self._work: Callable[[], object] | None = work

    @contextmanager
    def task(self, title: str, total: int | None = None, unit: str = "") -> Iterator[Task]:
        yield self  # type: ignore[misc]

    def advance(self, amount: int = 1) -> None: ...

    def describe(self, item: str) -> None:
        if item == self._before and self._work is not None:
            work, self._work = self._work, None
            work()


@pytest.mark.parametrize("before", ["a", "b", "c"])
def test_a_path_that_is_collected_meanwhile_is_no_finding(store: Store, before: str) -> None:
    """Issue 3.5: verify runs together with gc."""
    for name in ("a", "b", "c"):
        put(store, name)
    meanwhile = Meanwhile(f"unpacked/{before}", lambda: collect(store, [key_of("a"), key_of("c")]))
    verified = verify(store, reporter=meanwhile)
    assert store.registry.by_key(key_of("b")) is None
    assert verified.paths == 3
    assert verified.findings == ()


def test_a_path_that_is_built_anew_meanwhile_is_looked_at_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(store, "a", **{"m.py": "1"})
    collect(store, [])
    real = verifying._Comparison.findings
    seen: list[list[Finding]] = []

    def rebuilt(comparison: verifying._Comparison) -> list[Finding]:
        found = real(comparison)
        if not seen:
            put(store, "a", **{"m.py": "2"})
        seen.append(found)
        return found

    monkeypatch.setattr(verifying._Comparison, "findings", rebuilt)
    assert verify(store, paths=[path]).findings == ()
    assert [len(found) for found in seen] == [1, 0]


def test_what_the_disk_refuses_to_read_is_a_finding_like_others(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bad sector in one file keeps nothing else from being looked at."""
    put(store, "a", **{"bad.py": "1", "good.py": "2"})
    changed = put(store, "b", **{"c.py": "3"})
    change(store.layout.absolute(changed.path) / "c.py", "content")
    real = hashing.hash_file

    def failing(place: bytes, likely: int) -> tuple[int, str]:
        if place.endswith(b"bad.py"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(place, likely)

    monkeypatch.setattr(hashing, "hash_file", failing)
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


def test_what_stands_below_a_directory_that_is_extra_or_gone_is_named_too(store: Store) -> None:
    path = put(store, "x", **{"a/b/c": "1", "d": ""})
    place = store.layout.absolute(path.path)
    subprocess.run(["chmod", "-R", "u+w", place], check=True)
    (place / "a").rename(place / "e")
    (place / "e" / "f\udcff").write_text("")
    subprocess.run(["chmod", "-R", "a-w", place], check=True)
    assert [(finding.member, finding.problem) for finding in verify(store).findings] == [
        ("a", Problem.MISSING),
        ("a/b", Problem.MISSING),
        ("a/b/c", Problem.MISSING),
        ("e", Problem.EXTRA),
        ("e/b", Problem.EXTRA),
        ("e/b/c", Problem.EXTRA),
        ("e/f\udcff", Problem.EXTRA),
    ]


@pytest.mark.parametrize("size", [0, 1, _CHUNK - 1, _CHUNK, _CHUNK + 1, 3 * _CHUNK])
def test_a_file_is_read_to_its_end_whatever_size_it_seemed_to_have(tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    place = tmp_path / "file"
    place.write_bytes(content)
    for likely in (0, 1, size - 1, size, size + 1, _CHUNK, 2 * _CHUNK):
        if likely >= 0:
            assert hash_file(os.fsencode(place), likely) == (size, blake3(content).hexdigest())
