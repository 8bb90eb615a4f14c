"""Which names of archive members may become paths.

The rules are those of the installers' past: every one of them stands for a published attack or a name that two
systems read differently (PEP 427 itself says nothing). A name that passes is a relative POSIX path whose
components are plain, so that joining it to a directory stays below that directory.
"""

from __future__ import annotations

import re

from envdsl.realise.refusal import refusal

MAX_PATH_BYTES = 1000
MAX_COMPONENT_BYTES = 255  # NAME_MAX of every file system that matters here

_CONTROL = re.compile(r"[\x00-\x1f\x7f\x80-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_DRIVE = re.compile(r"[A-Za-z]:")
_DEVICE = re.compile(
    r"(?:^|/)(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[1-9¹²³])[ ]*(?:\.[^/]*)?(?:/|$)", re.IGNORECASE
)
# Everything that the ordinary name is made of; what matches needs none of the finer checks but the device names.
_PLAIN = re.compile(r"(?:(?!\.{1,2}/)[A-Za-z0-9_.+\- ]{1,100}/){0,8}(?!\.{1,2}$)[A-Za-z0-9_.+\- ]{1,100}")


def check_name(wheel: str, name: str) -> None:
    """Raise the refusal of ``name`` (without the slash that ends a directory's), or return."""
    if _DEVICE.search(name):
        raise refusal(wheel, "name-device", "has a name that is a device on some systems", member=name)
    if _PLAIN.fullmatch(name):
        return
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
    encoded = name.encode("utf-8", "surrogateescape")
    if len(encoded) > MAX_PATH_BYTES:
        raise refusal(wheel, "name-long", f"has a path of {len(encoded)} bytes (limit {MAX_PATH_BYTES})", member=name)
    longest = max(len(component.encode("utf-8", "surrogateescape")) for component in components)
    if longest > MAX_COMPONENT_BYTES:
        raise refusal(
            wheel, "name-long", f"has a name of {longest} bytes in its path (limit {MAX_COMPONENT_BYTES})", member=name
        )
