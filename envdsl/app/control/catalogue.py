"""``envdsl catalog``: the catalog of a project, checked and asked."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from envdsl.errors import Diagnostic, EnvdslError, ExitStatus
from envdsl.policy.catalog import Catalog, Explanation, parse_catalog
from envdsl.policy.quantities import NONE, spell_age, spell_size
from envdsl.policy.rules import UNLIMITED, Entry, Rules, Treatment

if TYPE_CHECKING:
    from envdsl.app.project import Project

_VERDICTS = {Treatment.ALLOW: "allowed", Treatment.ASK: "a person decides", Treatment.DENY: "refused"}


@dataclass(frozen=True, slots=True)
class CatalogReport:
    """``catalog`` is None where the file has errors, or is not there (then ``diagnostics`` are empty)."""

    file: str
    catalog: Catalog | None
    diagnostics: tuple[Diagnostic, ...]

    def to_json(self) -> dict[str, Any]:
        """But for the diagnostics, which a face renders."""
        catalog = self.catalog or Catalog()
        return {
            "file": self.file,
            "exists": self.catalog is not None or bool(self.diagnostics),
            "allowed": [str(entry) for entry in catalog.listed],
            "denied": [str(entry) for entry in catalog.rules.deny],
            "groups": {name: [str(entry) for entry in entries] for name, entries in catalog.groups.items()},
            "sessions": [item.pattern for item in catalog.sessions],
        }


def file_of(project: Project) -> str:
    """What messages call the catalog's file: its path relative to the project."""
    return project.config.service.catalog


def check(project: Project) -> CatalogReport:
    """Read the catalog and report all that is wrong with it."""
    name = file_of(project)
    try:
        catalog = read(project)
    except EnvdslError as error:
        return CatalogReport(name, None, error.diagnostics)
    return CatalogReport(name, catalog, catalog.warnings if catalog is not None else ())


def read(project: Project) -> Catalog | None:
    """The catalog, None where there is no such file. Raises EnvdslError ``policy-catalog-…`` with every mistake."""
    name = file_of(project)
    try:
        text = project.config.catalog.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        from envdsl.app.control.plane import unreadable

        raise unreadable(name, error) from error
    except UnicodeDecodeError as error:
        raise EnvdslError.of(
            "policy-catalog-syntax", f"{name} is not UTF-8: {error}", exit_status=ExitStatus.USAGE
        ) from error
    return parse_catalog(text, name=name)


def explain(project: Project, package: str, session: str | None) -> Explanation:
    """What the catalog says about ``package``, for sessions of that name or in general.

    ``package`` is a requirement (PEP 508) without a URL. Of its versions the catalog is asked about one where it names
    one (``==``), else about all.
    Raises EnvdslError ``policy-catalog-…``; ``app-package`` (exit status USAGE) for something that is no requirement.
    """
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        requirement = Requirement(package)
        if requirement.url:
            raise InvalidRequirement("it names a URL")
    except InvalidRequirement as error:
        raise EnvdslError.of(
            "app-package",
            f"{package!r} is not a requirement that an index could meet",
            hint="write a name and, if need be, versions: pandas, pandas==2.3.1, 'pandas>=2'",
            exit_status=ExitStatus.USAGE,
        ) from error
    catalog = read(project) or Catalog(file_of(project))
    effective = catalog.for_session(session) if session is not None else catalog
    pins = [item.version for item in requirement.specifier if item.operator in ("==", "===")]
    single = len(requirement.specifier) == 1 and len(pins) == 1 and not pins[0].endswith(".*")
    return effective.explain(requirement.name, pins[0] if single else None)


def described(explanation: Explanation, session: str | None) -> dict[str, Any]:
    """An explanation for machines: sizes in bytes, the age in hours, null for what is not limited."""
    rules = explanation.rules
    return {
        "package": explanation.name,
        "version": explanation.version,
        "session": session,
        "treatment": explanation.treatment.value,
        "certain": explanation.certain,
        "message": explanation.message,
        "allowed": [_entry(entry) for entry in explanation.allowed],
        "denied": [_entry(entry) for entry in explanation.denied],
        "available": [_entry(entry) for entry in explanation.available],
        "limits": {
            "max-wheel-size": _limit(rules.max_wheel_size),
            "max-closure-size": _limit(rules.max_closure_size),
            "minimum-age-hours": int(rules.minimum_age.total_seconds() // 3600) if rules.minimum_age else None,
            "licences-allowed": list(rules.allowed_licences),
            "licences-denied": list(rules.denied_licences),
            "dependencies": bool(rules.dependencies),
        },
    }


def whole(catalog: Catalog, session: str | None = None) -> dict[str, Any]:
    """A catalog for machines, as it is for ``session`` if one is named: sizes in bytes, ages in seconds.

    Rules leave out what the catalog does not say; a limit that it takes away (``"none"``) is null.
    """
    return {
        "file": catalog.name,
        "session": session,
        "rules": _rules(catalog.rules),
        "groups": {name: [_entry(entry) for entry in entries] for name, entries in catalog.groups.items()},
        "sessions": [{"pattern": item.pattern, "rules": _rules(item.rules)} for item in catalog.sessions],
    }


def _rules(rules: Rules) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for item in fields(rules):
        value = getattr(rules, item.name)
        if value is None:
            continue
        if isinstance(value, tuple):
            value = [_entry(part) if isinstance(part, Entry) else part for part in value]
        elif isinstance(value, timedelta):
            value = int(value.total_seconds())
        elif isinstance(value, Treatment):
            value = value.value
        elif value == UNLIMITED:
            value = None
        found[item.name.replace("_", "-")] = value
    return found


def lines(explanation: Explanation) -> list[str]:
    """An explanation for people."""
    verdict = _VERDICTS[explanation.treatment]
    title = " ".join(filter(None, (explanation.name, explanation.version)))
    certain = "" if explanation.certain else " (it depends on the version)"
    found = [f"{title}: {verdict}{certain}", f"  {explanation.message}"]
    found += [f"  allowed   {_spelled(entry)}" for entry in explanation.allowed]
    found += [f"  denied    {_spelled(entry)}: {entry.reason}" for entry in explanation.denied]
    found += [f"  not given {_spelled(entry)}" for entry in explanation.available]
    limits = _limits(explanation.rules)
    if limits and explanation.treatment is not Treatment.DENY:
        found.append("  if its wheels pass:")
        found += [f"    {label}  {value}" for label, value in limits]
    return found


def _limits(rules: Rules) -> list[tuple[str, str]]:
    found = [
        ("wheel at most  ", _size(rules.max_wheel_size)),
        ("request at most", _size(rules.max_closure_size)),
        ("older than     ", spell_age(rules.minimum_age) if rules.minimum_age else ""),
        ("licence        ", ", ".join(rules.allowed_licences)),
        ("licence not    ", ", ".join(rules.denied_licences)),
        ("what it needs  ", "is allowed with it" if rules.dependencies else "must be allowed, too"),
    ]
    return [(label, value) for label, value in found if value]


def _entry(entry: Entry) -> dict[str, Any]:
    place = str(entry.span) if entry.span is not None else None
    return {"entry": str(entry), "group": entry.group, "reason": entry.reason, "place": place}


def _spelled(entry: Entry) -> str:
    group = f", in the group {entry.group}" if entry.group else ""
    return f"{entry}  ({entry.span}{group})"


def _limit(size: int | None) -> int | None:
    return None if size == UNLIMITED else size


def _size(size: int | None) -> str:
    return "" if size is None else NONE if size == UNLIMITED else spell_size(size)
