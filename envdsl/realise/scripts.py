"""The scripts of a wheel's entry points: read from ``entry_points.txt``, written as ``installer`` writes them.

Written here, not taken from `installer`: that brings ``email``, ``zipfile`` and ``importlib.resources`` with it, more
than the rest of unpacking. `tests/realise/test_differential.py` holds the two together.

Specification: "Entry points" of the packaging specifications.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

SHEBANG = b"#!/usr/bin/env python3\n"

_REFERENCE = re.compile(r"([\w.]+)\s*(?::\s*([\w.]+))\s*(?:\[.*\])?\s*$")
_SECTIONS = {"console_scripts": "console", "gui_scripts": "gui"}
_TEMPLATE = """\
# -*- coding: utf-8 -*-
import re
import sys
from {module} import {name}
if __name__ == "__main__":
    sys.argv[0] = re.sub(r"(-script\\.pyw|\\.exe)?$", "", sys.argv[0])
    sys.exit({attribute}())
"""


class EntryPoint(NamedTuple):
    """A script to generate: ``name`` calls ``module:attribute``."""

    name: str
    module: str
    attribute: str
    section: str


def read_entry_points(text: str) -> Iterator[EntryPoint]:
    """The scripts that ``entry_points.txt`` declares. Raises ValueError, configparser.Error."""
    from configparser import ConfigParser

    parser = ConfigParser(delimiters="=")
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(text)
    for section in parser.sections():
        if section not in _SECTIONS:
            continue
        for name, value in parser.items(section):
            reference = _REFERENCE.match(value)
            if reference is None:
                raise ValueError("no attribute")
            yield EntryPoint(name, reference[1], reference[2], _SECTIONS[section])


def script(point: EntryPoint) -> bytes:
    """The program that calls ``point``; its first line finds ``python3`` on PATH, as the sandbox sets it."""
    first = point.attribute.partition(".")[0]
    return SHEBANG + _TEMPLATE.format(module=point.module, name=first, attribute=point.attribute).encode()


def with_shebang(content: bytes | bytearray) -> bytes | bytearray:
    """``content`` with a first line ``#!python…`` replaced by one that finds ``python3`` on PATH, as the sandbox
    sets it: with the place of an interpreter in it the output would not be the same everywhere."""
    if not content.startswith(b"#!python"):
        return content
    _, _, rest = content.partition(b"\n")
    return SHEBANG + rest
