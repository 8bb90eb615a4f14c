"""What another binding would change for a session: the answer to "what happens if I rebase?". Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from envdsl.session.manifest import Manifest


@dataclass(frozen=True, slots=True)
class PackageChange:
    """One distribution: ``before`` is None where it is new, ``after`` where it is gone. Both equal: another wheel."""

    name: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        if self.before is None:
            return f"+ {self.name} {self.after}"
        if self.after is None:
            return f"- {self.name} {self.before}"
        if self.before == self.after:
            return f"~ {self.name} {self.before} (another wheel)"
        return f"~ {self.name} {self.before} -> {self.after}"


@dataclass(frozen=True, slots=True)
class Difference:
    """Between two manifests of one session. Falsy when there is none that a program in the sandbox could see.

    ``layers`` are lines for people, ``packages`` are sorted by name, ``environment`` names variables.
    """

    packages: tuple[PackageChange, ...] = ()
    layers: tuple[str, ...] = ()
    interpreter: str | None = None
    environment: tuple[str, ...] = ()
    other: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.packages or self.layers or self.interpreter or self.environment or self.other)

    def lines(self) -> list[str]:
        """One line a change."""
        return [
            *self.layers,
            *([self.interpreter] if self.interpreter else []),
            *map(str, self.packages),
            *(f"~ environment variable {name}" for name in self.environment),
            *(f"~ {name}" for name in self.other),
        ]


# Their values hold store paths, so they change with every layer, and say nothing new.
_DERIVED = frozenset({"ENVDSL_SITE_DIRS", "PATH", "PYTHONPATH"})


def difference(before: Manifest, after: Manifest) -> Difference:
    """What changes from ``before`` to ``after``."""
    old, new = _packages(before), _packages(after)
    variables, others = dict(before.environment), dict(after.environment)
    interpreters = before.interpreter, after.interpreter
    return Difference(
        packages=tuple(
            PackageChange(name, old[name][0] if name in old else None, new[name][0] if name in new else None)
            for name in sorted(old.keys() | new.keys())
            if old.get(name) != new.get(name)
        ),
        layers=tuple(_layers(before, after)),
        interpreter=None
        if interpreters[0].key == interpreters[1].key
        else f"~ interpreter {interpreters[0].name} -> {interpreters[1].name}",
        environment=tuple(
            name
            for name in sorted((variables.keys() | others.keys()) - _DERIVED)
            if variables.get(name) != others.get(name)
        ),
        other=tuple(name for name in ("workspace", "limits") if getattr(before, name) != getattr(after, name)),
    )


def _packages(manifest: Manifest) -> dict[str, tuple[str, str]]:
    return {package.name: (package.version, package.sha256) for layer in manifest.layers for package in layer.packages}


def _layers(before: Manifest, after: Manifest) -> Iterable[str]:
    old, new = ({layer.name: layer.id for layer in manifest.layers} for manifest in (before, after))
    for name in sorted(old.keys() | new.keys()):
        if name not in new:
            yield f"- layer {name} {old[name]}"
        elif name not in old:
            yield f"+ layer {name} {new[name]}"
        elif old[name] != new[name]:
            yield f"~ layer {name} {old[name]} -> {new[name]}"
