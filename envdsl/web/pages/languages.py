"""What the pages say, in each language: message catalogs, and dates, sizes and plurals as the language has them.

A catalog is ``locales/<code>.toml``: tables of messages, named by their path (``layers.title``). ``{name}`` in a
message is filled in. A table whose keys are plural categories of CLDR (``one``, ``other``) is one message, chosen by
``count``. To add a language, add a file; ``tests/web/test_pages_languages.py`` says what it lacks.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib import resources
from typing import Any

from babel import Locale
from babel.dates import format_datetime, format_timedelta
from babel.numbers import format_decimal

DEFAULT = "en"
CODES = ("en", "zh")
_CATEGORIES = frozenset({"zero", "one", "two", "few", "many", "other"})
_UNITS = ("B", "KiB", "MiB", "GiB")


@dataclass(frozen=True, slots=True)
class Language:
    """One language. ``tag`` is its BCP 47 tag, for ``lang`` attributes; ``name`` what it calls itself."""

    code: str
    tag: str
    name: str
    locale: Locale
    messages: Mapping[str, str | Mapping[str, str]]

    def has(self, key: str) -> bool:
        return key in self.messages

    def text(self, key: str, /, **values: Any) -> str:
        """The message of ``key``. Raises KeyError for one that no catalog has: a defect of a page, found by tests."""
        message = self.messages[key]
        if isinstance(message, Mapping):
            category = self.locale.plural_form(values["count"])
            message = message.get(category, message["other"])
        shown = {name: self.number(value) if type(value) is int else value for name, value in values.items()}
        return message.format_map(shown)

    def number(self, value: int) -> str:
        return format_decimal(value, locale=self.locale)

    def size(self, count: int) -> str:
        """Bytes in powers of 1024, as the command line says them: ``12.3 MiB``."""
        value, power = float(count), 0
        while value >= 1023.95 and power < len(_UNITS) - 1:
            value, power = value / 1024, power + 1
        digits = "#,##0" if power == 0 else "#,##0.0"
        return f"{format_decimal(value, format=digits, locale=self.locale)} {_UNITS[power]}"

    def moment(self, at: datetime) -> str:
        """A date and a time of day, in UTC."""
        return f"{format_datetime(at, 'medium', locale=self.locale)} UTC"

    def ago(self, at: datetime, now: datetime) -> str:
        """``3 minutes ago``, or ``in 3 days`` for what is still to come."""
        return format_timedelta(at - now, add_direction=True, threshold=1.5, locale=self.locale)

    def duration(self, length: timedelta) -> str:
        return format_timedelta(length, threshold=1.5, locale=self.locale)


def language(code: str) -> Language:
    """The language called ``code``; the default one where there is none."""
    return _load(code if code in CODES else DEFAULT)


def negotiate(accept: str) -> str:
    """The code of the language that an ``Accept-Language`` header (RFC 9110, 12.5.4) likes best."""
    best, chosen = 0.0, DEFAULT
    for part in accept.split(",")[:20]:
        tag, _, parameter = part.strip().partition(";")
        code = tag.partition("-")[0].strip().lower()
        try:
            quality = float(parameter.strip().removeprefix("q=")) if parameter else 1.0
        except ValueError:
            continue
        if code in CODES and quality > best:
            best, chosen = quality, code
    return chosen


@cache
def _load(code: str) -> Language:
    text = resources.files("envdsl.web").joinpath("locales", f"{code}.toml").read_text("utf-8")
    catalog = tomllib.loads(text)
    about = catalog.pop("language")
    return Language(code, about["tag"], about["name"], Locale.parse(about["locale"]), dict(_flat(catalog, "")))


def _flat(table: Mapping[str, Any], prefix: str) -> list[tuple[str, str | Mapping[str, str]]]:
    found: list[tuple[str, str | Mapping[str, str]]] = []
    for name, value in table.items():
        if isinstance(value, str) or value.keys() <= _CATEGORIES:
            found.append((f"{prefix}{name}", value))
        else:
            found += _flat(value, f"{prefix}{name}.")
    return found
