"""``@dataclass``, but for the time that it takes: methods are generated for a class when one of them is first called.

The standard decorator compiles six functions for each frozen class, half a millisecond before anybody has used it;
a build loads a hundred such classes. Fields, defaults, ``replace``, ``fields`` and matching are the standard ones.
Where it has no advantage (classes that can be ordered, or bring a comparison of their own) the standard one is used.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, **options: Any) -> Any:
        """See :func:`dataclasses.dataclass`; of its options ``frozen``, ``slots`` and ``eq`` are taken over."""
        if cls is None:
            return lambda cls: dataclass(cls, **options)
        slots, eq = options.get("slots", False), options.get("eq", True)
        if options.keys() - {"frozen", "slots", "eq"} or not options.get("frozen") or _special & cls.__dict__.keys():
            return dataclasses.dataclass(**options)(cls)
        if cls.__doc__ is None:
            cls.__doc__ = cls.__name__  # the standard one makes a signature for it, at some expense
        methods = ["__init__", *(["__eq__", "__hash__"] if eq else [])]
        cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
        for name in methods:
            setattr(cls, name, _first(cls, name, methods))
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = _repr
        cls.__setattr__, cls.__delattr__ = _assign, _delete
        if slots:
            cls.__getstate__, cls.__setstate__ = _state, _restore
        return cls


_special = {"__init__", "__eq__", "__hash__", "__post_init__", "__setattr__", "__getstate__"}


def _first(cls: type, name: str, methods: list[str]) -> Any:
    """What stands for the method ``name`` until it is called: then all ``methods`` are generated."""

    def generate(*values: Any, **named: Any) -> Any:
        scope: dict[str, Any] = {"_set": object.__setattr__, "_missing": dataclasses.MISSING}
        fields = dataclasses.fields(cls)
        exec("\n".join(_source(fields, scope)), scope)
        for method in methods:
            scope[method].__qualname__ = f"{cls.__qualname__}.{method}"
            setattr(cls, method, scope[method])
        return scope[name](*values, **named)

    return generate


def _source(fields: tuple[dataclasses.Field[Any], ...], scope: dict[str, Any]) -> list[str]:
    parameters, body = [], []
    for field in fields:
        name, value = field.name, field.name
        if field.default is not dataclasses.MISSING:
            scope[f"_default_{name}"] = field.default
            parameters.append(f"{name}=_default_{name}")
        elif field.default_factory is not dataclasses.MISSING:
            scope[f"_make_{name}"] = field.default_factory
            parameters.append(f"{name}=_missing")
            value = f"_make_{name}() if {name} is _missing else {name}"
        else:
            parameters.append(name)
        body.append(f" _set(self, {name!r}, {value})")

    def values(this: str, chosen: list[str]) -> str:
        return f"({''.join(f'{this}.{name}, ' for name in chosen)})"

    compared = [field.name for field in fields if field.compare]
    hashed = [field.name for field in fields if (field.compare if field.hash is None else field.hash)]
    return [
        f"def __init__(self, {', '.join(parameters)}):",
        *body,
        " return None",
        "def __eq__(self, other):",
        " if other.__class__ is not self.__class__: return NotImplemented",
        f" return {values('self', compared)} == {values('other', compared)}",
        f"def __hash__(self): return hash({values('self', hashed)})",
    ]


def _repr(self: Any) -> str:
    shown = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({shown})"


def _assign(self: Any, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
