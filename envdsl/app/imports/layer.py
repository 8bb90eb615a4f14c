"""The text of a layer file for what was found."""

from __future__ import annotations

import re
from collections.abc import Iterable

from envdsl.app.imports.found import Found
from envdsl.model.names import LayerKind, Platform

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
    lines = [
        f"# Taken over from {_comment(found.label)} by `envdsl import`. The versions stand in the lock, and stay until",
        f"# `envdsl lock {name} --upgrade` moves them.",
        f"{kind.value} {_name(name)} {{",
        f"  python    = {_string(str(found.python))};",
        f"  platforms = [ {' '.join(_string(str(platform)) for platform in sorted(platforms))} ];",
        "  packages  = [",
        *(f"    {_string(package)}" for package in packages),
        "  ];",
    ]
    if any(_is_prerelease(pin.version) for pin in found.pins):
        lines.append("  prereleases = true;")
    return "\n".join([*lines, "}", ""])


def _is_prerelease(version: str) -> bool:
    from packaging.version import Version

    return Version(version).is_prerelease


def _name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) and name not in _WORDS else _string(name)


def _string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("${", "\\${")
    return f'"{escaped}"'


def _comment(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)
