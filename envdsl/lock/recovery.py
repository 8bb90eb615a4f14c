"""The pins of a lock file that cannot be read: after a merge, those of both sides."""

from __future__ import annotations

import re

_TABLE = re.compile(r"\s*\[")
_NAME = re.compile(r"""\s*name\s*=\s*["']([A-Za-z0-9._-]+)["']\s*""")
_VERSION = re.compile(r"""\s*version\s*=\s*["']([^"']+)["']\s*""")


def recover_pins(text: str) -> dict[str, str]:
    """What versions ``text`` pins, read line by line so that damage costs no more than the lines it is in.

    Where two sides of a conflict pin a package, the newer version is kept: it is what one of them moved to.
    """
    from packaging.version import InvalidVersion, Version

    pins: dict[str, Version] = {}
    name: str | None = None
    for line in text.splitlines():
        if _TABLE.match(line):
            name = None
        elif match := _NAME.fullmatch(line):
            name = match[1]
        elif name and (match := _VERSION.fullmatch(line)):
            try:
                version = Version(match[1])
            except InvalidVersion:
                continue
            pins[name] = max(version, pins.get(name, version))
    return {name: str(version) for name, version in pins.items()}
