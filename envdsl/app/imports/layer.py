"""The text of a layer file for what was found."""

from __future__ import annotations

import re
from collections.abc import Iterable

from envdsl.app.imports.found import Found
from envdsl.model.names import LayerKind, Platform
from envdsl.model.span import Source

_PLAIN = re.compile(r"[a-z][a-z0-9-]*")
_WORDS = frozenset(
    [
        "assert",
        "base",
        "else",
        "false",
        "for",
        "if",
        "import",
        "in",
        "inherit",
        "iso",
        "let",
        "null",
        "on",
        "or",
        "rec",
        "then",
        "true",
        "x",
    ]
)


def layer_text(name: str, kind: LayerKind, found: Found, platforms: Iterable[Platform], packages: Iterable[str]) -> str:
    """A declaration of ``packages`` (requirements without versions: those stand in the lock)."""
    from envdsl.syntax.printer import format_file

    lines = [
        f"# Taken over from {comment(found.label)} by `envdsl import`. The versions stand in the lock, and stay until",
        f"# `envdsl lock {name} --upgrade` moves them.",
        f"{kind.value} {declared(name)} {{",
        f"  python = {literal(str(found.python))};",
        f"  platforms = [ {' '.join(literal(str(platform)) for platform in sorted(platforms))} ];",
        "  packages = [",
        *(f"    {literal(package)}" for package in packages),
        "  ];",
    ]
    if any(_is_prerelease(pin.version) for pin in found.pins):
        lines.append("  prereleases = true;")
    return format_file(Source(f"{name}.layer", "\n".join([*lines, "}", ""])))


def _is_prerelease(version: str) -> bool:
    from packaging.version import Version

    return Version(version).is_prerelease


def declared(name: str) -> str:
    """The name of a layer as a declaration spells it."""
    return name if _PLAIN.fullmatch(name) and name not in _WORDS else literal(name)


def literal(text: str) -> str:
    """``text`` as a string of the language."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("${", "\\${")
    return f'"{escaped}"'


def comment(text: str) -> str:
    """``text`` as it may stand in a comment."""
    return "".join(character if character.isprintable() else "?" for character in text)
