"""The catalog: which packages sessions may have by themselves, which never, and which need a person.

``docs/policy.md`` describes the file. Three sentences hold everything: what is denied stays denied, whoever
allows it; lists of the general part and of the ``[[session]]`` tables that match add up; a single value of a
later table replaces that of an earlier one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from envdsl.errors import Diagnostic
from envdsl.policy.rules import Entry, Rules, Treatment


@dataclass(frozen=True, slots=True)
class SessionRules:
    """A ``[[session]]``: rules for the sessions whose name matches ``pattern`` (``*`` and ``?``)."""

    pattern: str
    rules: Rules


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a catalog says about one name: all entries for it, and those that hold for the version asked about.

    ``treatment`` is what the name by itself leads to (size, licence, age and vulnerabilities come on top of it);
    without a version, an entry with a specifier may still decide otherwise, and ``certain`` is false.
    """

    name: str
    version: str | None
    treatment: Treatment
    certain: bool
    message: str
    denied: tuple[Entry, ...]
    allowed: tuple[Entry, ...]
    available: tuple[Entry, ...]  # in groups that the session is not given
    rules: Rules


@dataclass(frozen=True, slots=True)
class Catalog:
    """A validated catalog. ``name`` is what messages call it; ``rules`` hold for every session, ``groups`` are all that
    there are. ``warnings`` are findings that do not stop anything."""

    name: str = "catalog"
    rules: Rules = field(default_factory=Rules)
    groups: Mapping[str, tuple[Entry, ...]] = field(default_factory=dict)
    sessions: tuple[SessionRules, ...] = ()
    warnings: tuple[Diagnostic, ...] = field(default=(), compare=False)

    def for_session(self, session: str) -> Catalog:
        """The catalog as it is for the session of that name: matching overrides applied in their order."""
        rules = self.rules
        for override in self.sessions:
            if fnmatchcase(session, override.pattern):
                rules = rules.under(override.rules)
        return replace(self, rules=rules, sessions=())

    @property
    def listed(self) -> tuple[Entry, ...]:
        """All entries that allow something: of ``[allow]`` and of the groups that are allowed."""
        return (*self.rules.allow, *(entry for group in self.rules.groups for entry in self.groups.get(group, ())))

    def allowed(self, name: str) -> tuple[Entry, ...]:
        """The entries that allow ``name`` (normalised)."""
        return tuple(entry for entry in self.listed if entry.name == name)

    def denied(self, name: str) -> tuple[Entry, ...]:
        """The entries that deny ``name`` (normalised)."""
        return tuple(entry for entry in self.rules.deny if entry.name == name)

    @property
    def unlisted(self) -> Treatment:
        return self.rules.unlisted or Treatment.ASK

    def explain(self, package: str, version: str | None = None) -> Explanation:
        """What the catalog says about ``package`` (any spelling), without looking at any wheel."""
        from packaging.utils import canonicalize_name

        name = canonicalize_name(package)
        denied, allowed = self.denied(name), self.allowed(name)
        holding = [entry for entry in denied if version is None or entry.denies(version)]
        fitting = [entry for entry in allowed if version is None or entry.covers(version)]
        if holding and (version is not None or not holding[0].specifier):
            treatment, certain = Treatment.DENY, True
            message = f"{holding[0]} is denied: {holding[0].reason}"
        elif fitting:
            treatment = Treatment.ALLOW
            certain = version is not None or (not holding and any(not entry.specifier for entry in fitting))
            message = f"{_one_of(fitting)} is allowed"
            message += f", and {_one_of(holding)} is denied: {holding[0].reason}" if holding else ""
        else:
            treatment, certain = self.unlisted, not holding
            listed = f"{name} {version} is not what is allowed ({_one_of(allowed)})" if allowed else None
            message = listed or f"{name} is not listed"
            if holding:
                message += f"; {_one_of(holding)} is denied: {holding[0].reason}"
        return Explanation(
            name,
            version,
            treatment,
            certain,
            message,
            denied,
            allowed,
            tuple(
                entry
                for group, entries in self.groups.items()
                if group not in self.rules.groups
                for entry in entries
                if entry.name == name
            ),
            self.rules,
        )


def _one_of(entries: tuple[Entry, ...] | list[Entry]) -> str:
    return " or ".join(dict.fromkeys(map(str, entries)))


def parse_catalog(text: str, *, name: str) -> Catalog:
    """The catalog with the content ``text``; ``name`` is the file as messages are to name it.

    Raises EnvdslError with every mistake there is, each with its place: ``policy-catalog-syntax``,
    ``policy-catalog-key`` (unknown, with the nearest that is known), ``policy-catalog-value`` and
    ``policy-catalog-duplicate``.
    """
    from envdsl.policy.reading import read

    return read(text, name)
