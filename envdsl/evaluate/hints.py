"""What to write instead: hints for what people bring along from other tools."""

from __future__ import annotations

import re
from typing import Final

from envdsl.evaluate.values import PathValue, did_you_mean
from envdsl.model.names import MACHINES

# The tags before PEP 600, and the version of glibc that each stands for.
_LEGACY_GLIBC: Final = {"manylinux1": "2_5", "manylinux2010": "2_12", "manylinux2014": "2_17"}
_ONE_VERSION = re.compile(r"\s*(?P<name>[A-Za-z0-9][\w.-]*(\[[^\]]*\])?)(\s*=|\s)\s*(?P<version>v?[0-9][\w.+!*-]*)\s*")
_LONGEST = 60  # characters of a string that a hint repeats


def for_list(value: str | PathValue) -> str:
    """Where a list is wanted, and one item stands."""
    if isinstance(value, str) and len(value) <= _LONGEST and '"' not in value:
        return f'a list is written in brackets: [ "{value}" ]'
    return "a list is written in brackets: [ … ]"


def for_requirement(written: str) -> str:
    """For a string that is no PEP 508 requirement."""
    if match := _ONE_VERSION.fullmatch(written):
        return f'one version is asked for with `==`: "{match["name"]}=={match["version"]}"'
    return 'a requirement is a name, and what it may be: "pandas[excel]>=2.2"'


def for_platform(name: str) -> str:
    """For a tag that is none of PEP 600 or PEP 656, or of no machine that layers are for."""
    legacy, _, machine = name.partition("_")
    if legacy in _LEGACY_GLIBC and machine in MACHINES:
        return f'write "manylinux_{_LEGACY_GLIBC[legacy]}_{machine}", which means the same (PEP 600)'
    if name in MACHINES or (legacy == "linux" and machine in MACHINES):
        machine = name if name in MACHINES else machine
        return f'say which C library, and how old it may be: "manylinux_2_28_{machine}", "musllinux_1_2_{machine}"'
    if name.startswith(("win", "macosx", "any")):
        return 'layers are for Linux: "manylinux_2_28_x86_64"'
    return (
        did_you_mean(name, ("manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "musllinux_1_2_x86_64"))
        or 'a platform is spelled "manylinux_2_28_x86_64": libc, its version, machine'
    )
