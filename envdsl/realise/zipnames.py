"""Which names of archive members may become paths.

The rules are those of the installers' past: every one of them stands for a published attack or a name that two
systems read differently (PEP 427 itself says nothing). A name that passes is a relative POSIX path whose
components are plain, so that joining it to a directory stays below that directory.
"""

from __future__ import annotations

import re
from typing import NoReturn

from envdsl.realise.refusal import refusal

MAX_PATH_BYTES = 1000
MAX_COMPONENT_BYTES = 255  # NAME_MAX of every file system that matters here

_DEVICES = frozenset({"con", "prn", "aux", "nul", "conin$", "conout$"}).union(
    f"{port}{number}" for port in ("com", "lpt") for number in "123456789¹²³"
)
# What the ordinary name is made of; for one that matches only the device names are left to check.
_PLAIN = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.+-]{1,100}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x80-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_DRIVE = re.compile(r"[A-Za-z]:")


def check_name(wheel: str, name: str, checked: set[str]) -> None:
    """Raise the refusal of ``name`` (without the slash that ends a directory's), or return.

    ``checked`` are directories that have passed; those above ``name`` are added.
    """
    parent, slash, last = name.rpartition("/")
    if (slash and parent not in checked) or not _PLAIN.fullmatch(last) or len(name) > MAX_COMPONENT_BYTES:
        _check_path(wheel, name)
        while parent and parent not in checked:
            checked.add(parent)
            parent = parent.rpartition("/")[0]
    elif last.partition(".")[0].lower() in _DEVICES:
        _refuse_device(wheel, name)


def _check_path(wheel: str, name: str) -> None:
    if not name:
        raise refusal(wheel, "name-empty", "is an empty name", member=name)
    if "\0" in name:
        raise refusal(wheel, "name-nul", "has a NUL in its name", member=name)
    if "\\" in name:
        raise refusal(wheel, "name-backslash", "has a backslash in its name", member=name)
    if name.startswith("/") or _DRIVE.match(name):
        raise refusal(wheel, "name-absolute", "is an absolute path", member=name)
    if _CONTROL.search(name):
        raise refusal(wheel, "name-control", "has control characters in its name", member=name)
    components = name.split("/")
    if ".." in components:
        raise refusal(wheel, "name-parent", "climbs out of its directory with '..'", member=name)
    if "" in components or "." in components:
        raise refusal(wheel, "name-not-normal", "has an empty or '.' component in its path", member=name)
    length = len(name.encode())
    if length > MAX_PATH_BYTES:
        raise refusal(wheel, "name-long", f"has a path of {length} bytes (limit {MAX_PATH_BYTES})", member=name)
    for component in components:
        length = len(component.encode())
        if length > MAX_COMPONENT_BYTES:
            reason = f"has a name of {length} bytes in its path (limit {MAX_COMPONENT_BYTES})"
            raise refusal(wheel, "name-long", reason, member=name)
        if component.partition(".")[0].rstrip(" ").lower() in _DEVICES:
            _refuse_device(wheel, name)


def _refuse_device(wheel: str, name: str) -> NoReturn:
    raise refusal(wheel, "name-device", "has a name that is a device on some systems", member=name)
