"""From the text of a catalog to the catalog, or to all its mistakes at once, each with its place.

TOML itself is read by ``tomllib``; a text that is no TOML has one mistake, and the rest can't be judged.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from difflib import get_close_matches
from functools import partial
from typing import Any, TypeAlias, TypeVar

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envdsl.errors import Diagnostic, EnvdslError, ExitStatus
from envdsl.model.span import Source, Span
from envdsl.policy import licences, quantities
from envdsl.policy.catalog import Catalog, SessionRules
from envdsl.policy.places import Path, Places, Range, find_places
from envdsl.policy.rules import UNLIMITED, Entry, Rules, Treatment

T = TypeVar("T")
Convert: TypeAlias = Callable[[Any, Path], T]  # raises ValueError, whose text goes on where the key or item stands

_POSITION = re.compile(r" ?\(at line (\d+), column (\d+)\)| ?\(at end of document\)")
_GROUP = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_PATTERN = re.compile(r"[A-Za-z0-9._*?-]+")  # what a session's name can hold, and two wildcards
_RULES = ("allow", "deny", "limits", "licences", "vulnerabilities")


def read(text: str, name: str) -> Catalog:
    """As :func:`envdsl.policy.catalog.parse_catalog`."""
    source = Source(name, text)
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _no_toml(source, error) from error
    reader = _Reader(data, source, find_places(text))
    catalog = reader.catalog()
    if reader.found:
        raise EnvdslError(*sorted(reader.found, key=lambda item: item.span.start if item.span else 0))
    return catalog


class _Reader:
    """Reads tables by their known keys. What is wrong is noted in :attr:`found`, and reading goes on."""

    def __init__(self, data: Mapping[str, Any], source: Source, places: Places) -> None:
        self._data = data
        self._source = source
        self._places = places
        self._groups: Mapping[str, tuple[Entry, ...]] = {}
        self.found: list[Diagnostic] = []

    def catalog(self) -> Catalog:
        self._check_keys((), self._data, (*_RULES, "groups", "session"))
        groups = self._table((), self._data, "groups")
        for group in groups:
            if not _GROUP.fullmatch(group):
                self._key_wrong(("groups", group), "a group's name has letters, digits, `-` and `_` only")
        self._groups = {
            group: self._value(("groups",), groups, group, partial(self._packages, group=group)) or ()
            for group in groups
        }
        rules = self._rules((), self._data)
        sessions = self._value((), self._data, "session", self._tables) or ()
        overrides = [self._session(("session", number), table) for number, table in enumerate(sessions)]
        unused = tuple(self._unused_groups([rules, *(override.rules for override in overrides)]))
        return Catalog(self._source.path, rules, self._groups, tuple(overrides), unused)

    def _session(self, path: Path, table: Mapping[str, Any]) -> SessionRules:
        self._check_keys(path, table, ("pattern", *_RULES))
        pattern = self._value(path, table, "pattern", self._pattern)
        if pattern is None and "pattern" not in table:
            self._wrong(path, 'a [[session]] needs a `pattern`, such as "research-*"')
        return SessionRules(pattern or "", self._rules(path, table))

    def _rules(self, path: Path, table: Mapping[str, Any]) -> Rules:
        allow = self._section(path, table, "allow", ("packages", "groups", "dependencies", "unlisted"))
        limits = self._section(
            path, table, "limits", ("max-wheel-size", "max-closure-size", "minimum-age", "unknown-age")
        )
        licence = self._section(path, table, "licences", ("allowed", "denied", "unlisted", "unknown"))
        known = self._section(path, table, "vulnerabilities", ("known", "ignore"))
        deny = self._table(path, table, "deny")
        return Rules(
            allow=allow("packages", self._packages) or (),
            groups=allow("groups", partial(self._items, convert=self._group)) or (),
            dependencies=allow("dependencies", _boolean),
            unlisted=allow("unlisted", _treatment),
            deny=self._denied((*path, "deny"), deny),
            max_wheel_size=limits("max-wheel-size", _size),
            max_closure_size=limits("max-closure-size", _size),
            minimum_age=limits("minimum-age", _age),
            unknown_age=limits("unknown-age", _treatment),
            allowed_licences=licence("allowed", partial(self._items, convert=_licence)) or (),
            denied_licences=licence("denied", partial(self._items, convert=_licence)) or (),
            unlisted_licence=licence("unlisted", _treatment),
            unknown_licence=licence("unknown", _treatment),
            known_vulnerability=known("known", _treatment),
            ignored=known("ignore", self._ignored) or (),
        )

    def _section(
        self, path: Path, table: Mapping[str, Any], key: str, known: Sequence[str]
    ) -> Callable[[str, Convert[T]], T | None]:
        """A reader for the keys of the table ``key``."""
        section = self._table(path, table, key)
        self._check_keys((*path, key), section, known)
        return lambda item, convert: self._value((*path, key), section, item, convert)

    def _table(self, path: Path, table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        return self._value(path, table, key, _table) or {}

    def _value(self, path: Path, table: Mapping[str, Any], key: str, convert: Convert[T]) -> T | None:
        """The converted value of ``key``, None where it is missing or wrong."""
        if key not in table:
            return None
        place = (*path, key)
        try:
            return convert(table[key], place)
        except ValueError as error:
            self._wrong(place, f"`{key}` {error}")
            return None

    def _items(self, value: Any, path: Path, *, convert: Convert[T]) -> tuple[T, ...]:
        """An array of strings, each converted. Raises ValueError for anything but an array."""
        if not isinstance(value, list):
            raise ValueError("must be an array of strings")
        items: list[T] = []
        for number, text in enumerate(value):
            place = (*path, number)
            try:
                item = convert(_string(text, place), place)
            except ValueError as error:
                self._wrong(place, f"{_shown(text)} {error}")
                continue
            if item in items:
                self._note("policy-catalog-duplicate", place, f"{_shown(text)} stands here twice", "remove one of them")
            else:
                items.append(item)
        return tuple(items)

    def _packages(self, value: Any, path: Path, *, group: str | None = None) -> tuple[Entry, ...]:
        """A list of names with specifiers, each name once."""
        entries = self._items(value, path, convert=partial(self._requirement, group=group))
        seen: dict[str, Entry] = {}
        for entry in entries:
            first = seen.setdefault(entry.name, entry)
            if first is not entry and entry.span is not None:
                self.found.append(
                    _mistake(
                        "policy-catalog-duplicate",
                        entry.span,
                        f"{entry.name} stands here twice, as `{first}` and as `{entry}`",
                        "write one specifier; a comma means that both parts hold",
                    )
                )
        return entries

    def _requirement(self, text: str, path: Path, group: str | None) -> Entry:
        return self._entry(text, self._places.of_value(path), group)

    def _denied(self, path: Path, table: Mapping[str, Any]) -> tuple[Entry, ...]:
        entries: dict[Entry, str] = {}
        for key, reason in table.items():
            place = (*path, key)
            try:
                entry = self._entry(key, self._places.of_key(place))
            except ValueError as error:
                self._key_wrong(place, f"{_shown(key)} {error}")
                continue
            if not isinstance(reason, str) or not reason.strip():
                self._wrong(place, f"why `{key}` is denied must be a string; whoever asks for it reads it")
            elif entry in entries:
                self._note("policy-catalog-duplicate", place, f"`{key}` is denied already, as `{entries[entry]}`")
            else:
                entries[entry] = key
        return tuple(
            Entry(entry.name, entry.specifier, str(table[key]).strip(), None, entry.span)
            for entry, key in entries.items()
        )

    def _entry(self, text: str, place: Range, group: str | None = None) -> Entry:
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            reason = str(error).partition("\n")[0]
            raise ValueError(f"is no name with an optional specifier: {reason[:1].lower()}{reason[1:]}") from error
        if requirement.url or requirement.marker or requirement.extras:
            what = "an address" if requirement.url else "a marker" if requirement.marker else "extras"
            raise ValueError(f"has {what}, and a catalog lists names with specifiers only")
        specifier = str(requirement.specifier)
        return Entry(canonicalize_name(requirement.name), specifier, None, group, self._span(place))

    def _group(self, text: str, _: Path) -> str:
        if text not in self._groups:
            close = get_close_matches(text, self._groups, 1)
            raise ValueError(f"is no group of [groups]{f'; did you mean `{close[0]}`?' if close else ''}")
        return text

    def _pattern(self, value: Any, path: Path) -> str:
        text = _string(value, path)
        if not _PATTERN.fullmatch(text):
            raise ValueError("has a character that no session's name has; `*` and `?` stand for any")
        return text

    def _ignored(self, value: Any, path: Path) -> tuple[str, ...]:
        table = _table(value, path)
        for key, reason in table.items():
            if not isinstance(reason, str) or not reason.strip():
                self._wrong((*path, key), f"why {key} does not count must be a string")
        return tuple(table)

    def _tables(self, value: Any, _: Path) -> list[Mapping[str, Any]]:
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise ValueError("must be an array of tables: write [[session]]")
        return value

    def _check_keys(self, path: Path, table: Mapping[str, Any], known: Sequence[str]) -> None:
        for key in table:
            if key in known:
                continue
            close = get_close_matches(key, known, 1)
            where = f" in [{_header(path)}]" if path else ""
            self._note(
                "policy-catalog-key",
                (*path, key),
                f"unknown key `{key}`{where}",
                f"did you mean `{close[0]}`?" if close else f"known here: {', '.join(known)}",
                key=True,
            )

    def _unused_groups(self, rules: Sequence[Rules]) -> Iterator[Diagnostic]:
        used = {group for item in rules for group in item.groups}
        for group in sorted(self._groups.keys() - used):
            yield Diagnostic(
                "policy-catalog-unused",
                f"nothing allows the group `{group}`",
                self._span(self._places.of_key(("groups", group))),
                hint=f'write groups = ["{group}"] under [allow], there or in a [[session]]',
                severity="warning",
            )

    def _wrong(self, path: Path, message: str) -> None:
        self._note("policy-catalog-value", path, message)

    def _key_wrong(self, path: Path, message: str) -> None:
        self._note("policy-catalog-value", path, message, key=True)

    def _note(self, code: str, path: Path, message: str, hint: str | None = None, *, key: bool = False) -> None:
        place = self._places.of_key(path) if key else self._places.of_value(path)
        self.found.append(_mistake(code, self._span(place), message, hint))

    def _span(self, place: Range) -> Span:
        return Span(self._source, *place)


def _mistake(code: str, span: Span, message: str, hint: str | None) -> Diagnostic:
    return Diagnostic(code, message, span, hint=hint, exit_status=ExitStatus.USAGE)


def _no_toml(source: Source, error: Exception) -> EnvdslError:
    text = str(error) or "it is nested too deeply"
    start = max(0, len(source.text.rstrip()) - 1)
    if (match := _POSITION.search(text)) and match[1]:
        line = min(int(match[1]), len(source.line_starts))
        start = source.line_starts[line - 1] + int(match[2]) - 1
    span = Span(source, start, start + 1)
    message = f"{source.path} is not valid TOML: {_POSITION.sub('', text)}"
    return EnvdslError(_mistake("policy-catalog-syntax", span, message, None))


def _shown(value: Any) -> str:
    return f"`{value}`" if isinstance(value, str) else "this"


def _header(path: Path) -> str:
    return ".".join(str(part) for part in path if not isinstance(part, int))


def _string(value: Any, _: Path) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a string")
    return value


def _boolean(value: Any, _: Path) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _table(value: Any, _: Path) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("must be a table")
    return value


def _treatment(value: Any, _: Path) -> Treatment:
    if value not in list(Treatment):
        close = get_close_matches(value, list(Treatment), 1) if isinstance(value, str) else []
        also = f'; did you mean "{close[0]}"?' if close else ""
        raise ValueError(f'must be "allow", "ask" or "deny"{also}')
    return Treatment(value)


def _size(value: Any, path: Path) -> int:
    text = _number(value, path)
    return UNLIMITED if text == quantities.NONE else quantities.parse_size(text)


def _age(value: Any, path: Path) -> timedelta:
    text = _number(value, path)
    return timedelta(0) if text == quantities.NONE else quantities.parse_age(text)


def _number(value: Any, path: Path) -> str:
    """A bare number lacks its unit, which is said in words of its own."""
    return str(value) if type(value) is int else _string(value, path)


def _licence(text: str, _: Path) -> str:
    return licences.parse_pattern(text)
