"""The base of the nodes of the syntax tree: frozen, with slots, compared by identity.

What ``@dataclass(frozen=True, slots=True, eq=False)`` gives, but each class gets its ``__init__`` when it is first
called, and none that is never called: generating code for as many classes as a syntax tree has took longer than
checking a project.
"""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn, dataclass_transform


@dataclass_transform(eq_default=False, frozen_default=True)
class RecordType(type):
    """Makes the annotated names of a class its fields, after those of the class that it extends; none has a default."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> RecordType:
        # The importing module has `from __future__ import annotations`, so they stand here in every Python.
        fields = tuple(field for field in namespace.get("__annotations__", ()) if field != "__match_args__")
        inherited = bases[0].__match_args__ if bases else ()  # type: ignore[attr-defined]
        namespace |= {"__slots__": fields, "__match_args__": (*inherited, *fields), "__init__": _first_init}
        return super().__new__(cls, name, bases, namespace)


def _first_init(self: Any, *values: Any, **named: Any) -> None:
    cls = type(self)
    names = cls.__match_args__
    assignments = "".join(f"\n _set(self, {name!r}, {name})" for name in names)
    scope: dict[str, Any] = {"_set": object.__setattr__}
    exec(f"def __init__(self, {', '.join(names)}):{assignments}", scope)
    cls.__init__ = scope["__init__"]
    self.__init__(*values, **named)


class Record(metaclass=RecordType):
    """A frozen object that takes a value for each of its fields, by position or by name."""

    __match_args__: ClassVar[tuple[str, ...]]

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"cannot delete field {name!r}")

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
        return f"{type(self).__name__}({fields})"
