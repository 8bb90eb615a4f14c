"""What another binding would change for a session: the answer to "what happens if I rebase?". Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from envdsl.model.canonical import canonical_json
from envdsl.model.digest import blake3_hex
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

    ``layers`` are lines for people, ``packages`` are sorted by name, ``environment`` names variables. ``digest`` is the
    blake3 of what is bound before and after: whoever was shown a difference names it by that.
    """

    packages: tuple[PackageChange, ...] = ()
    layers: tuple[str, ...] = ()
    interpreter: str | None = None
    environment: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    digest: str = field(default="", compare=False)

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
    variables, changed = dict(before.environment), dict(after.environment)
    replaced = before.interpreter.key != after.interpreter.key
    return Difference(
        packages=tuple(
            PackageChange(name, *(side[name][0] if name in side else None for side in (old, new)))
            for name in sorted(old.keys() | new.keys())
            if old.get(name) != new.get(name)
        ),
        layers=tuple(_layers(before, after)),
        interpreter=f"~ interpreter {before.interpreter.name} -> {after.interpreter.name}" if replaced else None,
        environment=tuple(
            name
            for name in sorted((variables.keys() | changed.keys()) - _DERIVED)
            if variables.get(name) != changed.get(name)
        ),
        other=tuple(name for name, was, will_be in _settings(before, after) if was != will_be),
        digest=blake3_hex(canonical_json([_identity(before), _identity(after)])),
    )


def _identity(manifest: Manifest) -> list[object]:
    """What is bound, without what only a layer that is built has: a preview has the digest of what it foresees."""
    workspace = manifest.workspace.source if manifest.workspace is not None else None
    layers = [[layer.name, layer.key, layer.lock] for layer in manifest.layers]
    return [manifest.interpreter.key, layers, workspace]


def _settings(before: Manifest, after: Manifest) -> Iterable[tuple[str, object, object]]:
    yield "workspace", before.workspace, after.workspace
    yield "limits", before.limits, after.limits
    yield "command", before.isolation.command, after.isolation.command


def _packages(manifest: Manifest) -> dict[str, tuple[str, str]]:
    return {package.name: (package.version, package.sha256) for layer in manifest.layers for package in layer.packages}


def _layers(before: Manifest, after: Manifest) -> Iterable[str]:
    kept = {layer.id for layer in before.layers} & {layer.id for layer in after.layers}
    old, new = (
        {layer.name: layer.id for layer in manifest.layers if layer.id not in kept} for manifest in (before, after)
    )
    for name in sorted(old.keys() | new.keys()):
        if name not in new:
            yield f"- layer {name} {old[name]}"
        elif name not in old:
            yield f"+ layer {name} {new[name]}"
        else:
            yield f"~ layer {name} {old[name]} -> {new[name]}"
