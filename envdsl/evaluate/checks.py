"""Checks of attribute values: each takes a slot, and gives what the specification holds, or reports why not."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias, TypeVar

from envdsl.errors import Note
from envdsl.evaluate.failure import EvaluationError
from envdsl.evaluate.findings import Findings
from envdsl.evaluate.hints import for_list, for_platform, for_requirement
from envdsl.evaluate.machine import Machine, expected
from envdsl.evaluate.requirement import PACKAGE_NAME, Parsed, canonical_name, check_wheel_name, parse_requirement
from envdsl.evaluate.spec import ProjectPath, Requirement, Waivers
from envdsl.evaluate.values import PathValue, Slot, Text, Value, did_you_mean, with_article
from envdsl.model.names import Platform, PythonVersion
from envdsl.model.span import Span

T = TypeVar("T")

OLDEST_PYTHON: Final = 10
NEWEST_PYTHON: Final = 14

# Names that decide which interpreter and libraries run in a sandbox: the launcher's business.
RESERVED_VARIABLES: Final = frozenset(
    {"PATH", "HOME", "PYTHONPATH", "PYTHONHOME", "PYTHONPLATLIBDIR", "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT"}
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INDEX = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_AGE = re.compile(r"([1-9][0-9]{0,4}) +(hour|day|week)s?")


@dataclass(frozen=True, slots=True)
class Place:
    """One attribute of one layer while it is checked; ``span`` is its value's, ``trail`` ends each error's."""

    machine: Machine
    findings: Findings
    span: Span
    trail: tuple[Note, ...]

    def refuse(self, failure: EvaluationError, value: Value = None) -> None:
        """Record ``failure``, at the string ``value`` itself if that knows its place."""
        failure.at(value.span if isinstance(value, Text) else self.span)
        for note in self.trail:
            failure.note(note)
        self.findings.failed(failure)

    def each(self, slot: Slot, what: str, check: Callable[[Place, Value], T | None]) -> tuple[T, ...]:
        """The results of ``check`` for each element of a list; a bad element hides none of the others."""
        items = self.machine.force(slot)
        if not isinstance(items, list):
            failure = expected(what, items)
            if isinstance(items, (str, PathValue)):
                failure = EvaluationError("eval-type", failure.message, hint=for_list(items))
            raise failure
        results: list[T] = []
        for item in items:
            with self.findings.attempt(self.machine, self.span, *self.trail):
                result = check(self, self.machine.force(item))
                if result is not None:
                    results.append(result)
        return tuple(results)


Check: TypeAlias = Callable[[Place, Slot], Any]


def _bad(message: str, hint: str | None = None) -> EvaluationError:
    return EvaluationError("eval-bad-value", message, hint=hint)


def _string(place: Place, value: Value, what: str) -> str | None:
    """A string, or None after a report."""
    if isinstance(value, str):
        return str(value)
    place.refuse(expected(what, value))
    return None


def _unique(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))


# -- scalars -----------------------------------------------------------------------------------------


def boolean(place: Place, slot: Slot) -> bool:
    return place.machine.boolean(slot)


def text(place: Place, slot: Slot) -> str:
    return str(place.machine.string(slot))


def python(place: Place, slot: Slot) -> PythonVersion:
    value = place.machine.force(slot)
    hint = f'a feature release in quotes, from "3.{OLDEST_PYTHON}" to "3.{NEWEST_PYTHON}"'
    if not isinstance(value, str):
        raise EvaluationError("eval-type", expected("a Python version", value).message, hint=hint)
    try:
        version = PythonVersion.parse(value)
    except ValueError:
        version = None
    if version is None or not OLDEST_PYTHON <= version.minor <= NEWEST_PYTHON:
        failure = EvaluationError("eval-python", f"`{value}` is not a Python version to build for", hint=hint)
        raise failure.at(value.span) if isinstance(value, Text) else failure
    return version


def exclude_newer(place: Place, slot: Slot) -> str:
    """A date, a moment (RFC 3339), or an age; as written but for case and spaces of an age."""
    value = place.machine.string(slot)
    stripped = value.strip()
    age = _AGE.fullmatch(stripped.lower())
    if age is not None:
        return f"{age[1]} {age[2]}{'' if age[1] == '1' else 's'}"
    if _DATE.fullmatch(stripped) or _TIMESTAMP.fullmatch(stripped):
        try:
            datetime.fromisoformat(stripped.upper())
        except ValueError:
            pass
        else:
            return stripped.upper()
    failure = _bad(
        f"`{value}` is neither a date nor an age",
        'write "2026-01-31", "2026-01-31T12:00:00Z", or an age such as "7 days"',
    )
    raise failure.at(value.span) if isinstance(value, Text) else failure


# -- lists -------------------------------------------------------------------------------------------


def platforms(place: Place, slot: Slot) -> tuple[Platform, ...]:
    found = _unique(place.each(slot, "a list of platforms", _platform))
    if not found and place.machine.list(slot) == []:
        raise _bad("a layer needs a platform", "leave the attribute out to get the project's platforms")
    return found


def _platform(place: Place, value: Value) -> Platform | None:
    name = _string(place, value, "a platform")
    if name is None:
        return None
    try:
        return Platform.parse(name)
    except ValueError:
        place.refuse(_bad(f"`{name}` is not a platform tag that layers can be for", for_platform(name)), value)
        return None


def requirements(place: Place, slot: Slot) -> tuple[Requirement, ...]:
    return _requirements(place, slot, _requirement)


def constraints(place: Place, slot: Slot) -> tuple[Requirement, ...]:
    return _requirements(place, slot, _constraint)


def _requirements(
    place: Place, slot: Slot, check: Callable[[Place, Value], tuple[Parsed, Requirement] | None]
) -> tuple[Requirement, ...]:
    found = place.each(slot, "a list of requirements", check)
    unique: dict[object, Requirement] = {}
    for parsed, requirement in found:
        unique.setdefault(parsed.identity, requirement)
    return tuple(unique.values())


def _requirement(place: Place, value: Value) -> tuple[Parsed, Requirement] | None:
    written = _string(place, value, "a requirement")
    if written is None:
        return None
    parsed = parse_requirement(written)
    if isinstance(parsed, str):
        place.refuse(
            EvaluationError(
                "eval-requirement", f"`{written}` is not a requirement: {parsed}", hint=for_requirement(written)
            ),
            value,
        )
        return None
    if parsed.url:
        place.refuse(
            EvaluationError(
                "eval-requirement-url",
                f"the requirement `{parsed.name}` names a place to download from",
                hint="wheels come from an index; a wheel of your own goes into `wheels`, code into `sources`",
            ),
            value,
        )
        return None
    return parsed, Requirement(parsed.text, value.span if isinstance(value, Text) else place.span)


def _constraint(place: Place, value: Value) -> tuple[Parsed, Requirement] | None:
    found = _requirement(place, value)
    if found is not None and found[0].extras:
        place.refuse(
            EvaluationError(
                "eval-requirement",
                f"the constraint `{found[1].text}` has extras",
                hint="a constraint limits versions; ask for extras in `packages`",
            ),
            value,
        )
        return None
    return found


def package_names(place: Place, slot: Slot) -> tuple[str, ...]:
    return _unique(place.each(slot, "a list of package names", _package_name))


def _package_name(place: Place, value: Value) -> str | None:
    name = _string(place, value, "the name of a package")
    if name is None:
        return None
    if PACKAGE_NAME.fullmatch(name) is None:
        place.refuse(_bad(f"`{name}` is not the name of a package", "write the name alone, without a version"), value)
        return None
    return canonical_name(name)


def modules(place: Place, slot: Slot) -> tuple[str, ...]:
    return _unique(place.each(slot, "a list of module names", _module))


def _module(place: Place, value: Value) -> str | None:
    name = _string(place, value, "the name of a module")
    if name is None:
        return None
    if not name.isascii() or not all(part.isidentifier() and not keyword.iskeyword(part) for part in name.split(".")):
        place.refuse(_bad(f"`{name}` cannot be imported", 'write what stands after `import`: "docx", "os.path"'), value)
        return None
    return name


def index_names(place: Place, slot: Slot) -> tuple[str, ...]:
    return _unique(place.each(slot, "a list of index names", _index))


def _index(place: Place, value: Value) -> str | None:
    name = _string(place, value, "the name of an index")
    if name is None:
        return None
    if _INDEX.fullmatch(name) is None:
        place.refuse(
            _bad(f"`{name}` is not the name of an index", "write its name in envdsl.toml, not its address"), value
        )
        return None
    return name


# -- paths -------------------------------------------------------------------------------------------


def wheels(place: Place, slot: Slot) -> tuple[ProjectPath, ...]:
    return _unique(place.each(slot, "a list of wheel files", _wheel))


def _wheel(place: Place, value: Value) -> ProjectPath | None:
    path = _path(place, value, "the path of a wheel", "./vendor/name-1.0-py3-none-any.whl")
    if path is None:
        return None
    files = place.machine.files
    if not files.exists(path) or files.is_dir(path):
        place.refuse(_bad(f"there is no file `{path}` in the project"))
        return None
    problem = check_wheel_name(path.rpartition("/")[2])
    if problem is not None:
        place.refuse(_bad(f"`{path}` is not named like a wheel: {problem}"))
        return None
    return ProjectPath(path, place.span)


def sources(place: Place, slot: Slot) -> tuple[ProjectPath, ...]:
    return _unique(place.each(slot, "a list of directories", _source))


def _source(place: Place, value: Value) -> ProjectPath | None:
    path = _path(place, value, "the path of a directory", "./src")
    if path is None:
        return None
    if not place.machine.files.is_dir(path):
        place.refuse(_bad(f"there is no directory `{path}` in the project"))
        return None
    return ProjectPath(path, place.span)


def _path(place: Place, value: Value, what: str, example: str) -> str | None:
    if isinstance(value, PathValue):
        return value.path
    hint = f"write a path, without quotes: {example}" if isinstance(value, str) else None
    place.refuse(EvaluationError("eval-type", expected(what, value).message, hint=hint), value)
    return None


# -- sets --------------------------------------------------------------------------------------------


def environment(place: Place, slot: Slot) -> tuple[tuple[str, str], ...]:
    """Variables by name, sorted."""
    found: list[tuple[str, str]] = []
    attributes = place.machine.set(slot)
    for name in sorted(attributes):
        with place.findings.attempt(place.machine, place.span, *place.trail):
            value = place.machine.force(attributes[name])
            if not isinstance(value, str):
                hint = "write it in quotes, or use `toString`" if isinstance(value, (int, bool)) else None
                raise EvaluationError(
                    "eval-type", f"`{name}` must be a string, but is {with_article(value)}", hint=hint
                )
            where = value.span if isinstance(value, Text) else place.span
            if _VARIABLE.fullmatch(name) is None:
                raise _bad(f"`{name}` is not a name for an environment variable").at(where)
            if name in RESERVED_VARIABLES:
                raise _bad(f"`{name}` is set by the sandbox itself; a layer cannot change it").at(where)
            if "\0" in value:
                raise _bad(f"the value of `{name}` holds a NUL character").at(where)
            found.append((name, str(value)))
    return tuple(found)


_WAIVERS: Final = ("record-mismatch", "collisions")


def waivers(place: Place, slot: Slot) -> Waivers:
    attributes = place.machine.set(slot)
    for name in sorted(attributes.keys() - set(_WAIVERS)):
        place.refuse(
            EvaluationError(
                "eval-unknown-attribute",
                f"`allow` has no attribute `{name}`",
                hint=did_you_mean(name, _WAIVERS) or f"it has {' and '.join(_WAIVERS)}",
            )
        )
    mismatch = package_names(place, attributes.get("record-mismatch", []))
    collisions = place.each(attributes.get("collisions", []), "a list of path patterns", _pattern)
    return Waivers(tuple(sorted(set(mismatch))), tuple(sorted(set(collisions))))


def _pattern(place: Place, value: Value) -> str | None:
    pattern = _string(place, value, "a path pattern")
    if pattern is None:
        return None
    if not pattern or pattern.startswith("/") or ".." in pattern.split("/"):
        place.refuse(_bad(f"`{pattern}` is not a path pattern", 'relative to the layer, such as "bin/*"'), value)
        return None
    return pattern


def data(place: Place, slot: Slot) -> dict[str, object]:
    """A set of anything that JSON can hold."""
    return {str(name): _plain(place.machine, value) for name, value in sorted(place.machine.set(slot).items())}


def _plain(machine: Machine, slot: Slot) -> object:
    value = machine.force(slot)
    match value:
        case bool() | int() | None:
            return value
        case str():
            return str(value)
        case list() | dict():
            depth = machine.enter()
            plain: object = (
                [_plain(machine, item) for item in value]
                if isinstance(value, list)
                else {str(name): _plain(machine, item) for name, item in sorted(value.items())}
            )
            machine.depth = depth
            return plain
        case _:
            raise _bad(
                f"{with_article(value)} cannot be kept as data", "strings, integers, booleans, null, lists and sets can"
            )
