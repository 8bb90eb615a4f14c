from __future__ import annotations

import os
from pathlib import Path

import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

from envdsl.errors import EnvdslError
from envdsl.store.treehash import Entry, Listing, ListingConflictError, scan

GOLDEN = "215138e65fcc30278f8bf0f6d76fa5cbd48d4409867966687e0cbdba83a980b3"


def by_the_book(directory: Path) -> tuple[str, int]:
    """docs/format.md, "Tree hash", word for word: digest and size of a directory."""
    block, total = b"", 0
    for place in sorted(directory.iterdir(), key=lambda member: os.fsencode(member.name)):
        name = os.fsencode(place.name)
        if place.is_symlink():
            target = os.fsencode(place.readlink())
            kind, digest, size = "l", blake3(target).hexdigest(), len(target)
        elif place.is_dir():
            kind, (digest, size) = "d", by_the_book(place)
        else:
            content = place.read_bytes()
            kind, digest, size = "x" if place.stat().st_mode & 0o100 else "f", blake3(content).hexdigest(), len(content)
        block += f"{kind} {digest} {size} ".encode() + name + b"\0"
        total += size
    return blake3(block, derive_key_context="envdsl tree 1 directory").hexdigest(), total


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "pkg" / "sub").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "pkg" / "__init__.py").write_text("")
    (root / "pkg" / "sub" / "a b.txt").write_text("spaces\n")
    (root / "pkg-1.0").write_text("sorts before pkg/ in a flat list")
    (root / "pkg" / "grüße.txt").write_text("hello")
    (root / "bin").mkdir()
    (root / "bin" / "tool").write_text("#!/bin/sh\n")
    (root / "bin" / "tool").chmod(0o755)
    (root / "bin" / "link").symlink_to("tool")
    Path(os.fsdecode(os.fsencode(root) + b"/bytes-\xff\xfe")).write_bytes(b"\0" * 300_000)
    return root


def test_the_tree_hash_is_what_the_format_says(tree: Path) -> None:
    """Issue 2.8: the tree hash is defined well enough to be computed by somebody else."""
    listing = scan(tree)
    assert (listing.tree_hash(), listing.size) == by_the_book(tree)


def test_the_tree_hash_of_a_fixed_tree_never_changes() -> None:
    listing = Listing(
        [
            Entry("bin/tool", "file", True, 10, blake3(b"#!/bin/sh\n").hexdigest()),
            Entry("bin/link", "symlink", False, 4, blake3(b"tool").hexdigest()),
            Entry("empty", "directory", False, 0, ""),
            Entry("pkg/__init__.py", "file", False, 0, blake3(b"").hexdigest()),
        ]
    )
    assert listing.tree_hash() == GOLDEN


def test_threads_owners_times_and_other_mode_bits_do_not_matter(tree: Path) -> None:
    before = scan(tree, threads=1)
    for place in tree.rglob("*"):
        if not place.is_symlink():
            os.utime(place, (5, 5))
            place.chmod(place.stat().st_mode & 0o700 | 0o004)
    assert scan(tree, threads=3).tree_hash() == before.tree_hash()


@pytest.mark.parametrize("change", ["content", "executable", "name", "link", "empty directory", "file moved up"])
def test_whatever_else_changes_changes_the_tree_hash(tree: Path, change: str) -> None:
    before = scan(tree).tree_hash()
    match change:
        case "content":
            (tree / "pkg" / "__init__.py").write_text(" ")
        case "executable":
            (tree / "bin" / "tool").chmod(0o644)
        case "name":
            (tree / "bin" / "tool").rename(tree / "bin" / "Tool")
        case "link":
            (tree / "bin" / "link").unlink()
            (tree / "bin" / "link").symlink_to("./tool")
        case "empty directory":
            (tree / "empty").rmdir()
        case "file moved up":
            (tree / "pkg" / "sub" / "a b.txt").rename(tree / "pkg" / "a b.txt")
    assert scan(tree).tree_hash() != before


def test_entries_come_in_the_order_of_a_walk(tree: Path) -> None:
    paths = [entry.path for entry in scan(tree)]
    assert paths[:5] == ["bin", "bin/link", "bin/tool", "bytes-\udcff\udcfe", "empty"]
    assert paths.index("pkg") < paths.index("pkg/sub/a b.txt") < paths.index("pkg-1.0")


def test_many_files_are_hashed_in_threads_with_the_same_result(tmp_path: Path) -> None:
    for number in range(600):
        (tmp_path / f"{number}.txt").write_text(f"content {number}")
    assert scan(tmp_path).tree_hash() == scan(tmp_path, threads=1).tree_hash() == by_the_book(tmp_path)[0]


def test_a_file_alone_is_a_listing_of_its_name(tmp_path: Path) -> None:
    wheel = tmp_path / "a-1-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    assert scan(wheel).tree_hash() == scan(tmp_path).tree_hash()


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(EnvdslError) as caught:
        scan(tmp_path)
    assert caught.value.code == "store-special-file"
    assert "pipe" in str(caught.value)


NAMES = st.text(st.characters(blacklist_characters="/\0", blacklist_categories=()), min_size=1, max_size=8).filter(
    lambda name: name not in (".", "..") and _encodable(name)
)


def _encodable(name: str) -> bool:
    try:
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape") == name
    except UnicodeEncodeError:
        return False


TREES = st.recursive(
    st.tuples(st.sampled_from(["file", "symlink"]), st.booleans(), st.binary(max_size=9)),
    lambda children: st.dictionaries(NAMES, children, max_size=4),
    max_leaves=12,
)


def entries_of(tree: object, path: str = "") -> list[Entry]:
    if isinstance(tree, dict):
        below = [
            entry for name, child in tree.items() for entry in entries_of(child, f"{path}/{name}" if path else name)
        ]
        return ([Entry(path, "directory", False, 0, "")] if path else []) + below
    kind, executable, content = tree  # type: ignore[misc]
    executable = executable and kind == "file"
    return [Entry(path, kind, executable, len(content), blake3(content).hexdigest())] if path else []


@settings(max_examples=60)
@given(TREES, st.randoms())
def test_a_listing_survives_encoding_and_does_not_depend_on_the_order_of_its_entries(tree: object, random) -> None:  # type: ignore[no-untyped-def]
    entries = entries_of(tree)
    listing = Listing(entries)
    random.shuffle(entries)
    assert Listing(entries).tree_hash() == listing.tree_hash()
    decoded = Listing.decode(listing.encode())
    assert decoded.entries == listing.entries
    assert decoded.tree_hash() == listing.tree_hash()
    assert Listing(listing.entries) == listing


@settings(max_examples=60)
@given(TREES, TREES)
def test_a_union_is_the_listing_of_all_entries(one: object, two: object) -> None:
    first, second = Listing(entries_of(one)), Listing(entries_of(two))
    kinds = [{entry.path: entry.type == "directory" for entry in listing} for listing in (first, second)]
    if any(kinds[0][path] != kinds[1][path] for path in kinds[0].keys() & kinds[1].keys()):
        with pytest.raises(ListingConflictError):
            first.union(second)
    else:
        merged = {entry.path: entry for entry in [*second, *first]}
        assert first.union(second, resolve=lambda mine, _: mine) == Listing(merged.values())


def test_listings_below_each_other_compose_to_what_a_scan_finds(tree: Path, tmp_path: Path) -> None:
    target = tmp_path / "whole" / "lib" / "python"
    target.parent.mkdir(parents=True)
    composed = (
        scan(tree)
        .prefix("lib/python")
        .union(Listing([Entry("layer.json", "file", False, 2, blake3(b"{}").hexdigest())]))
    )
    tree.rename(target)
    (tmp_path / "whole" / "layer.json").write_text("{}")
    assert composed == scan(tmp_path / "whole")


def test_a_union_refuses_or_asks_where_entries_differ() -> None:
    one = Listing([Entry("a/b", "file", False, 1, "1" * 64), Entry("same", "file", False, 1, "3" * 64)])
    two = Listing([Entry("a/b", "file", False, 1, "2" * 64), Entry("same", "file", False, 1, "3" * 64)])
    with pytest.raises(ListingConflictError, match="a/b") as caught:
        one.union(two)
    assert (caught.value.first.digest[0], caught.value.second.digest[0]) == ("1", "2")
    assert one.union(two, resolve=lambda first, second: second) == two
    assert one.union(two, resolve=lambda first, second: first) == one


@pytest.mark.parametrize("path", ["/a", "a//b", "./a", "a/../b", "", "a/", "a\0b", "a/" * 300 + "b"])
def test_paths_that_are_not_normal_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"not a normal relative path|too deep"):
        Listing([Entry(path, "file", False, 0, "0" * 64)])


def test_two_entries_at_one_path_are_refused() -> None:
    file = Entry("a", "file", False, 0, "0" * 64)
    for second in (file, Entry("a/b", "file", False, 0, "0" * 64), Entry("a", "directory", False, 0, "")):
        with pytest.raises(ValueError, match="two entries"):
            Listing([file, second])


@given(st.data())
def test_a_damaged_listing_is_noticed(data: st.DataObject) -> None:
    import zstandard

    entries = [Entry(f"d{n % 3}/f{n}", "file", n % 2 == 0, n, f"{n:064x}") for n in range(12)]
    listing = Listing(entries)
    text = bytearray(zstandard.decompress(listing.encode()))
    position = data.draw(st.integers(0, len(text) - 1))
    if data.draw(st.booleans()):
        text[position] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del text[position:]
    try:
        decoded = Listing.decode(zstandard.compress(bytes(text)))
    except ValueError:
        return
    assert decoded.tree_hash() != listing.tree_hash()  # the root's digest is compared by the store
