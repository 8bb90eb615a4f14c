"""The output of the room ``evaluate``: what a project's layer files declare, validated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from envdsl.errors import Diagnostic
from envdsl.model.names import LayerKind, Platform, PythonVersion
from envdsl.model.span import Span


@dataclass(frozen=True, slots=True)
class Requirement:
    """A PEP 508 requirement in the form ``str(packaging.requirements.Requirement(text))``.

    Direct references (``name @ url``) are refused by the validation, so a requirement never names a place.
    ``span`` is where its string stands, and takes no part in comparison.
    """

    text: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ProjectPath:
    """A file or directory inside the project: its POSIX path relative to the project's root."""

    path: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Waivers:
    """``allow``: rules that a layer waives, each by package name or path pattern (sorted)."""

    record_mismatch: tuple[str, ...] = ()
    collisions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LayerSpec:
    """One declared layer. For an ``x`` layer ``python`` and ``platforms`` are its base's.

    Sequences keep the order of the file where it can matter to a reader; keys and digests sort them.
    """

    name: str
    kind: LayerKind
    base: str | None
    python: PythonVersion
    platforms: tuple[Platform, ...]
    packages: tuple[Requirement, ...] = ()
    constraints: tuple[Requirement, ...] = ()
    overrides: tuple[Requirement, ...] = ()
    excludes: tuple[str, ...] = ()
    wheels: tuple[ProjectPath, ...] = ()
    sources: tuple[ProjectPath, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    probe: tuple[str, ...] = ()
    index: tuple[str, ...] = ()
    exclude_newer: str | None = None
    prereleases: bool = False
    allow: Waivers = Waivers()
    bytecode: bool = True
    description: str = ""
    meta: Mapping[str, object] = field(default_factory=dict)
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Spec:
    """All layers of a project by name (sorted, bases before what stands on them is *not* implied).

    ``inputs`` maps each file that evaluation read (layer files, imports, ``readToml`` …), as a POSIX
    path relative to the project's root, to the blake3 of its bytes: while they are unchanged, so is
    this value. ``warnings`` are diagnostics that do not stop anything.
    """

    layers: Mapping[str, LayerSpec]
    inputs: Mapping[str, str]
    warnings: tuple[Diagnostic, ...] = ()
