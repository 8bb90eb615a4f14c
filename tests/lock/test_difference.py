"""What a reviewer is told about two states of a lock."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from envdsl.lock.difference import Kind, Traits, difference, grouped
from envdsl.lock.lock import BaseReference, Lock, LockedPackage, LockedWheel
from envdsl.model.names import LayerKind, Platform, PythonVersion

X86 = Platform.parse("manylinux_2_28_x86_64")
ARM = Platform.parse("manylinux_2_28_aarch64")


def wheel(name: str, version: str, digit: str = "0", *, tag: str = "py3-none-any", size: int = 100) -> LockedWheel:
    return LockedWheel(f"{name}-{version}-{tag}.whl", digit * 64, size)


def package(
    name: str, version: str, digit: str = "0", *, size: int = 100, platforms: tuple[Platform, ...] = (X86, ARM)
):  # type: ignore[no-untyped-def]
    return LockedPackage(name, version, tuple((item, wheel(name, version, digit, size=size)) for item in platforms))


def lock(*packages: LockedPackage, layer: str = "office", **facts: object) -> Lock:
    made = Lock(layer, LayerKind.BASE, PythonVersion.parse("3.12"), (ARM, X86), "i", None, packages, "d")
    return replace(made, **facts)  # type: ignore[arg-type]


def test_what_came_went_and_moved() -> None:
    """Issue 5.2: packages added, removed, moved, with the change in size."""
    before = lock(package("a", "1", "a"), package("b", "1", "b", size=50))
    after = lock(package("b", "2", "c", size=70), package("c", "1", "d"))
    found = difference(before, after)
    assert [(item.kind, item.name, item.before, item.after, item.size) for item in found.packages] == [
        (Kind.ADDED, "c", None, "1", 100),
        (Kind.REMOVED, "a", "1", None, -100),
        (Kind.MOVED, "b", "1", "2", 20),
    ]
    assert (found.size_before, found.size_after) == (150, 170)


def test_the_same_version_and_file_with_another_hash_is_a_repin_and_comes_first() -> None:
    """Issue 5.2: repinned with the same version and another hash: an alarm."""
    found = difference(lock(package("z", "1", "a")), lock(package("a", "1"), package("z", "1", "b")))
    assert [item.kind for item in found.packages] == [Kind.REPINNED, Kind.ADDED]
    ((before, after),) = found.packages[0].files
    assert before is not None
    assert after is not None
    assert (before.filename, before.sha256[0], after.sha256[0]) == (after.filename, "a", "b")


def test_another_file_of_the_same_version_is_no_repin() -> None:
    one = LockedPackage("a", "1", ((X86, wheel("a", "1", "a")),))
    other = LockedPackage("a", "1", ((X86, wheel("a", "1", "b", tag="cp312-cp312-manylinux_2_28_x86_64")),))
    assert [item.kind for item in difference(lock(one), lock(other)).packages] == [Kind.REBUILT]


def test_a_platform_of_the_whole_layer_is_one_line() -> None:
    """Issue 5.2: platforms."""
    before = lock(package("a", "1", platforms=(X86,)), platforms=(X86,))
    found = difference(before, lock(package("a", "1")))
    assert found.settings == ("+ platform manylinux_2_28_aarch64",)
    assert found.packages == ()


def test_a_package_that_one_platform_needs_no_more_is_said() -> None:
    found = difference(lock(package("a", "1")), lock(package("a", "1", platforms=(X86,))))
    assert [(item.kind, item.platforms_lost) for item in found.packages] == [(Kind.PLATFORMS, (ARM,))]


def test_licences_and_import_names_are_compared_where_both_are_known() -> None:
    """Issue 5.2: licences, import names gained and lost."""
    traits = {"a" * 64: Traits("MIT", ("a", "old")), "b" * 64: Traits("GPL-3.0-only", ("a", "new"))}
    before, after = lock(package("a", "1", "a")), lock(package("a", "2", "b"))
    (found,) = difference(before, after, traits).packages
    assert (found.licence_before, found.licence_after, found.gained, found.lost) == (
        "MIT",
        "GPL-3.0-only",
        ("new",),
        ("old",),
    )
    (half,) = difference(before, after, {"b" * 64: traits["b" * 64]}).packages
    assert (half.licence_before, half.licence_after, half.gained, half.lost) == (None, None, (), ())
    (added,) = difference(lock(), after, traits).packages
    assert (added.licence_after, added.gained) == ("GPL-3.0-only", ("a", "new"))


def test_settings_of_the_layer_are_compared() -> None:
    before = lock(base=BaseReference("one", "x"))
    after = lock(base=BaseReference("two", "y"), kind=LayerKind.X, python=PythonVersion.parse("3.13"))
    assert difference(before, after).settings == ("kind base → x", "Python 3.12 → 3.13", "base one → two")


def test_a_layer_that_is_new_or_gone_differs_even_without_packages() -> None:
    assert difference(None, lock())
    assert difference(lock(), None)
    assert not difference(lock(), lock())


def test_variants_that_changed_alike_are_told_once_but_never_a_repin() -> None:
    def changed(layer: str, first: str, second: str) -> object:
        return difference(lock(package("a", "1", first), layer=layer), lock(package("a", second, "e"), layer=layer))

    alike = grouped([changed("x-py311", "a", "2"), changed("x-py312", "b", "2"), changed("y", "a", "3")])  # type: ignore[list-item]
    assert [names for names, _ in alike] == [("x-py311", "x-py312"), ("y",)]
    repinned = grouped([changed("x-py311", "a", "1"), changed("x-py312", "b", "1")])  # type: ignore[list-item]
    assert len(repinned) == 2


_PACKAGES = st.dictionaries(st.sampled_from("abcde"), st.tuples(st.sampled_from("123"), st.sampled_from("0af")))


@given(_PACKAGES, _PACKAGES)
def test_nothing_differs_exactly_where_the_pins_are_equal(before: dict, after: dict) -> None:  # type: ignore[type-arg]
    one, other = (lock(*(package(name, *pin) for name, pin in sorted(pins.items()))) for pins in (before, after))
    assert bool(difference(one, other)) == (before != after)
    there, back = difference(one, other).packages, difference(other, one).packages
    assert {(item.name, item.before, item.after) for item in there} == {
        (item.name, item.after, item.before) for item in back
    }
