"""gc that does not take everything: --free, --older-than, --keep-last; and the roots files that remember names."""

from __future__ import annotations

import os
import time

import pytest

from envdsl.store import roots
from envdsl.store.gc import Collected, collect
from envdsl.store.retention import Policy
from envdsl.store.store import Store
from envdsl.store.tree import disk_usage
from tests.store.conftest import key_of, put

DAY = 24 * 3600


def names(collected: Collected) -> list[str]:
    return [path.path.partition("/")[2] for path in collected.paths]


def age(store: Store, **days: int) -> None:
    """Let paths have been used so many days ago."""
    with store.registry.writing() as connection:
        for name, number in days.items():
            when = int(time.time()) - number * DAY
            connection.execute("UPDATE paths SET used = ?, registered = ? WHERE key = ?", (when, when, key_of(name)))


@pytest.fixture
def garbage(store: Store) -> Store:
    """Two layers nobody needs, one old and one new, over a shared part and one of their own, each a megabyte."""
    for name in ("shared", "old-part", "new-part"):
        put(store, name, data=name * (1 << 17))
    put(store, "old", kind="layer", references=("shared", "old-part"))
    put(store, "new", kind="layer", references=("shared", "new-part"))
    age(store, **{"shared": 40, "old-part": 40, "new-part": 20, "old": 30, "new": 10})
    return store


def test_the_longest_unused_goes_first_and_no_more_than_is_asked_for(garbage: Store) -> None:
    """Issue 3.6: gc --free SIZE."""
    assert names(collect(garbage, [], policy=Policy(free=1), dry_run=True)) == ["old"]
    planned = collect(garbage, [], policy=Policy(free=1 << 20), dry_run=True)
    done = collect(garbage, [], policy=Policy(free=1 << 20))
    assert names(planned) == names(done) == ["old", "old-part"]
    assert (planned.freed, planned.kept, planned.alive) == (done.freed, done.kept, done.alive)
    assert done.freed >= 1 << 20
    assert (done.kept, done.alive) == (3, 0)
    assert sorted(path.path for path in garbage.paths()) == ["layers/new", "unpacked/new-part", "unpacked/shared"]


def test_more_than_there_is_takes_all_garbage(garbage: Store) -> None:
    assert len(collect(garbage, [key_of("new-part")], policy=Policy(free=1 << 40)).paths) == 4


def test_nothing_goes_before_what_stands_on_it(garbage: Store) -> None:
    """A part that was used longest ago is as young as the youngest garbage that references it."""
    age(garbage, shared=100)
    done = collect(garbage, [], policy=Policy(unused_since=int(time.time()) - 15 * DAY))
    assert sorted(names(done)) == ["old", "old-part"]
    for path in garbage.paths():
        assert all(garbage.lookup(reference) for reference in path.references)


def test_what_was_used_since_stays(garbage: Store) -> None:
    """Issue 3.6: gc --older-than AGE."""
    for days, expected in [(35, []), (25, ["old", "old-part"])]:
        done = collect(garbage, [], policy=Policy(unused_since=int(time.time()) - days * DAY))
        assert sorted(names(done)) == expected
    assert sorted(names(collect(garbage, []))) == ["new", "new-part", "shared"]


def test_both_together_are_both_limits(garbage: Store) -> None:
    young = int(time.time()) - 15 * DAY
    assert names(collect(garbage, [], policy=Policy(free=1, unused_since=young), dry_run=True)) == ["old"]
    assert sorted(names(collect(garbage, [], policy=Policy(free=1 << 40, unused_since=young)))) == ["old", "old-part"]


def test_rubbish_goes_before_any_path(garbage: Store) -> None:
    (garbage.layout.unpacked / "rubbish").write_bytes(b"x" * (2 << 20))
    done = collect(garbage, [], policy=Policy(free=1 << 20))
    assert (names(done), done.rubbish) == ([], ("unpacked/rubbish",))


def test_hard_links_are_counted_when_the_last_of_them_goes(store: Store) -> None:
    """Issue 3.6: an account of bytes really freed (hard links counted once)."""
    part = put(store, "part", data="x" * (1 << 20))
    for name in ("one", "two"):
        temporary = store.temporary(name)
        os.link(store.layout.absolute(part.path) / "data", temporary / "data")
        store.register(
            temporary,
            f"layers/{name}",
            key=key_of(name),
            kind="layer",
            listing=store.listing(part.key),
            references=[part.key],
            sealed=True,
        )
    age(store, one=3, two=2, part=1)
    link = disk_usage([store.layout.absolute("layers/one")])
    assert link < 1 << 20
    assert names(collect(store, [], policy=Policy(free=link), dry_run=True)) == ["one"][: bool(link)]
    planned = collect(store, [], policy=Policy(free=1 << 20), dry_run=True)
    done = collect(store, [], policy=Policy(free=1 << 20))
    assert names(planned) == names(done) == ["one", "two", "part"]
    assert planned.freed == done.freed >= 1 << 20


def test_leases_and_gc_note_when_paths_are_used(garbage: Store) -> None:
    before = {path.key: path.used for path in garbage.paths()}
    with garbage.lease():
        garbage.lookup(key_of("old"))
    collect(garbage, [key_of("new-part")], policy=Policy(unused_since=0))
    after = {path.key: path.used for path in garbage.paths()}
    changed = {key for key, used in after.items() if used != before[key]}
    assert changed == {key_of("old"), key_of("new-part")}
    assert all(time.time() - after[key] < 60 for key in changed)


def test_a_lookup_again_within_the_hour_writes_nothing(garbage: Store) -> None:
    put(garbage, "fresh")
    before = garbage.registry.by_key(key_of("fresh"))
    with garbage.lease():
        garbage.lookup(key_of("fresh"))
    assert garbage.registry.by_key(key_of("fresh")) == before


def register(store: Store, *, complete: bool = True, **layers: str) -> None:
    roots.write(
        store.layout,
        "project-1",
        ("project", "/home/me"),
        lambda: {name: key_of(key) for name, key in layers.items()},
        complete=complete,
    )


def test_the_last_layers_of_a_name_stay(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 3.6: gc --keep-last N per layer name."""
    moment = time.time()
    for number in range(4):
        for name in ("office", "data"):
            put(store, f"{name}{number}", kind="layer")
        monkeypatch.setattr(time, "time", lambda number=number: moment + number * 100)
        register(store, office=f"office{number}", data=f"data{number}")
    register(store, office="office3")  # `data` is declared no more
    kept = {
        keep_last: names(collect(store, [], policy=Policy(keep_last=keep_last), dry_run=True))
        for keep_last in (0, 1, 2, 4)
    }
    assert kept == {
        0: ["data0", "data1", "data2", "data3", "office0", "office1", "office2"],
        1: ["data0", "data1", "data2", "office0", "office1", "office2"],
        2: ["data0", "data1", "office0", "office1"],
        4: [],
    }


def test_the_time_until_which_something_was_a_root_counts_as_use(store: Store) -> None:
    for name in ("first", "second"):
        put(store, name, kind="layer")
    age(store, first=50, second=50)
    register(store, office="first")
    register(store, office="second")
    policy = Policy(unused_since=int(time.time()) - DAY)
    assert names(collect(store, [], policy=policy, dry_run=True)) == []
    (store.layout.gcroots / "project-1").unlink()
    assert names(collect(store, [], policy=policy, dry_run=True)) == ["first", "second"]


def test_a_build_of_some_layers_leaves_the_others_roots(store: Store) -> None:
    for name in ("a", "b", "c"):
        put(store, name, kind="layer")
    register(store, office="a", data="b")
    register(store, complete=False, office="c")
    assert names(collect(store, [], dry_run=True)) == ["a"]
    register(store, complete=True, office="a")  # back again
    assert names(collect(store, [], dry_run=True)) == ["b", "c"]
    title, entries = roots.read(store.layout.gcroots / "project-1")
    assert title == "project /home/me"
    assert [(entry.name, entry.target, entry.until is None) for entry in entries] == [
        ("data", key_of("b"), False),
        ("office", key_of("a"), True),
        ("office", key_of("c"), False),
    ]


def test_nothing_is_written_where_nothing_changes(store: Store) -> None:
    register(store, office="a")
    before = (store.layout.gcroots / "project-1").stat()
    register(store, office="a")
    register(store, complete=False, office="a")
    assert (store.layout.gcroots / "project-1").stat() == before


def test_the_history_of_a_name_is_bounded(store: Store) -> None:
    for number in range(roots.HISTORY + 20):
        register(store, office=f"{number}")
    entries = roots.read(store.layout.gcroots / "project-1")[1]
    assert len(entries) == roots.HISTORY
    assert entries[0].target == key_of(str(roots.HISTORY + 19))


def test_keys_without_a_name_gather_until_a_list_is_complete(store: Store) -> None:
    layout = store.layout
    for complete, unnamed, expected in [(False, ["k1"], {"k1"}), (False, ["k2"], {"k1", "k2"}), (True, ["k3"], {"k3"})]:
        roots.write(layout, "p", ("project", "x"), lambda: {"a": "key"}, complete=complete, unnamed=unnamed)
        assert {entry.target for entry in roots.read(layout.gcroots / "p")[1] if not entry.name} == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", None),
        ("  # said by hand", None),
        ("layers/a", roots.Entry("layers/a")),
        ("layers/a  # because", roots.Entry("layers/a")),
        ("k office 5", roots.Entry("k", "office", 5)),
        ("k office 5 9", roots.Entry("k", "office", 5, 9)),
        ("k said by hand too", roots.Entry("k", "said")),
    ],
)
def test_a_line_is_a_root_with_what_is_known_of_it(line: str, expected: roots.Entry | None) -> None:
    assert roots.Entry.parse(line) == expected
