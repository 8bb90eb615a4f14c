"""The catalog as people read it, and what it says of one package."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from starlette.responses import Response

from envdsl.errors import Diagnostic, EnvdslError
from envdsl.policy.quantities import spell_size
from envdsl.policy.rules import UNLIMITED, Rules, Treatment
from envdsl.web.pages.visit import Visit

if TYPE_CHECKING:
    from envdsl.policy.catalog import Catalog, Explanation


# The rules that are no lists of names, in the order in which they are shown; their messages are ``limit.…``.
LIMITS = (
    "wheel-size",
    "closure-size",
    "minimum-age",
    "dependencies",
    "unlisted",
    "unknown-age",
    "unlisted-licence",
    "unknown-licence",
    "vulnerability",
    "allowed-licences",
    "denied-licences",
    "ignored-vulnerabilities",
)


@dataclass(frozen=True, slots=True)
class Limit:
    """One rule that is no list of names: one of ``size``, ``age``, ``treatment``, ``yes``, ``names`` is what it says;
    none of them where there is no limit. ``key`` is its message."""

    key: str
    size: str | None = None
    age: timedelta | None = None
    treatment: str | None = None
    yes: bool | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CatalogView:
    """``catalog`` is None where the file has mistakes: ``problems``. The rest is the form and its answer."""

    catalog: Catalog | None
    problems: Sequence[Diagnostic] = ()
    package: str = ""
    version: str = ""
    session: str = ""
    explanation: Explanation | None = None

    @staticmethod
    def limits(rules: Rules) -> list[Limit]:
        return list(_limits(rules))


def catalog(visit: Visit) -> Response:
    package, version, session = visit.query("package"), visit.query("version"), visit.query("session")
    try:
        found = visit.plane.catalog
    except EnvdslError as error:
        return visit.page("catalog.html", CatalogView(None, error.diagnostics))
    effective = found.for_session(session) if session else found
    explanation = effective.explain(package, version or None) if package else None
    return visit.page("catalog.html", CatalogView(found, (), package, version, session, explanation))


def _limits(rules: Rules) -> Iterator[Limit]:
    values = (
        rules.max_wheel_size,
        rules.max_closure_size,
        rules.minimum_age,
        rules.dependencies,
        rules.unlisted,
        rules.unknown_age,
        rules.unlisted_licence,
        rules.unknown_licence,
        rules.known_vulnerability,
        rules.allowed_licences,
        rules.denied_licences,
        rules.ignored,
    )
    for key, value in zip(LIMITS, values, strict=True):
        match value:
            case None | ():
                pass
            case bool():
                yield Limit(key, yes=value)
            case int():
                yield Limit(key, size=spell_size(value) if value < UNLIMITED else None)
            case timedelta():
                yield Limit(key, age=value)
            case Treatment():
                yield Limit(key, treatment=value.value)
            case _:
                yield Limit(key, names=value)
