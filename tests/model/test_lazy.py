"""The dataclasses of `model.lazy` behave as the standard ones do."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

import pytest

from envdsl.model import lazy

Decorate = Callable[..., Any]


def family(dataclass: Decorate) -> Any:
    """The same classes by this decorator."""

    @dataclass(frozen=True, slots=True)
    class Point:
        kind: ClassVar[str] = "point"
        x: int
        y: int = 0
        tags: list[str] = dataclasses.field(default_factory=list, hash=False)
        note: str = dataclasses.field(default="", compare=False, repr=False)

    @dataclass(frozen=True, slots=True)
    class Named(Point):
        name: str = "a"

    @dataclass(frozen=True, slots=True, eq=False)
    class Identity:
        value: int

    @dataclass(frozen=True)
    class Roomy:
        value: int

        @cached_property
        def double(self) -> int:
            return 2 * self.value

    return Point, Named, Identity, Roomy


@pytest.fixture(params=[dataclasses.dataclass, lazy.dataclass], ids=["standard", "lazy"])
def classes(request: pytest.FixtureRequest) -> Any:
    return family(request.param)


def test_fields_defaults_and_text(classes: Any) -> None:
    point, named, _, _ = classes
    made = point(1, note="n")
    assert (made.x, made.y, made.tags, made.note) == (1, 0, [], "n")
    assert repr(made) == "family.<locals>.Point(x=1, y=0, tags=[])"
    assert named(1, 2, ["t"], "n", "b").name == "b"
    assert [field.name for field in dataclasses.fields(named)] == ["x", "y", "tags", "note", "name"]
    assert point.__match_args__ == ("x", "y", "tags", "note")
    assert point(1).tags is not point(1).tags
    wrongs: list[tuple[Any, ...]] = [(), (1, 2, [], "", 5)]
    for wrong in wrongs:
        with pytest.raises(TypeError):
            point(*wrong)


def test_comparison_and_hash(classes: Any) -> None:
    point, named, identity, _ = classes
    assert point(1, note="a") == point(1, note="b")
    assert point(1) != point(2)
    assert point(1) != named(1)
    assert point(1) != 1
    assert hash(point(1, tags=["a"])) == hash(point(1, tags=["b"]))
    assert len({named(1), named(1), named(2)}) == 2
    assert identity(1) != identity(1)
    assert len({identity(1), identity(1)}) == 2


def test_comparing_and_hashing_need_no_instance_made_before(classes: Any) -> None:
    point, *_ = classes
    first, second = object.__new__(point), object.__new__(point)
    for made in (first, second):
        for name, value in (("x", 1), ("y", 2), ("tags", []), ("note", "")):
            object.__setattr__(made, name, value)
    assert hash(first) == hash(second)
    assert first == second


def test_instances_are_frozen(classes: Any) -> None:
    point, _, _, roomy = classes
    for made in (point(1), roomy(1)):
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
            made.x = 2
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
            del made.x
    assert not hasattr(point(1), "__dict__")
    assert roomy(2).double == 4


def test_replacing_and_copying(classes: Any) -> None:
    point, named, _, roomy = classes
    assert dataclasses.replace(named(1, name="b"), x=3) == named(3, name="b")
    assert copy.copy(point(1, 2)) == point(1, 2)
    assert copy.deepcopy(named(1, tags=["t"])) == named(1, tags=["t"])
    assert copy.copy(roomy(1)) == roomy(1)
    assert dataclasses.asdict(point(1)) == {"x": 1, "y": 0, "tags": [], "note": ""}


def test_instances_are_pickled() -> None:
    from envdsl.evaluate.spec import Requirement

    made = Requirement("numpy<2")
    assert pickle.loads(pickle.dumps(made)) == made
