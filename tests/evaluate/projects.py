"""Projects in tests: files in memory, and what they evaluate to or which errors they have."""

from __future__ import annotations

import re

import pytest

from envdsl.errors import Diagnostic, EnvdslError
from envdsl.evaluate.project import evaluate
from envdsl.evaluate.spec import LayerSpec, Spec
from tests.evaluate.language import MemoryReader


def project(text: str, *roots: str, **more: str | bytes) -> Spec:
    """The specification of ``main.layer`` with ``text``; a keyword ``lib__a_layer`` is the file ``lib/a.layer``."""
    return evaluate(("main.layer", *roots), reader(text, **more))


def reader(text: str, **more: str | bytes) -> MemoryReader:
    files: dict[str, str | bytes] = {"main.layer": text}
    for name, data in more.items():
        directory, _, file = name.rpartition("__")
        stem, _, suffix = file.rpartition("_")
        files["/".join(filter(None, (directory.replace("__", "/"), f"{stem}.{suffix}")))] = data
    return MemoryReader(files)


def errors(text: str, *roots: str, **more: str | bytes) -> tuple[Diagnostic, ...]:
    with pytest.raises(EnvdslError) as raised:
        project(text, *roots, **more)
    return raised.value.diagnostics


def base(attributes: str, **more: str | bytes) -> LayerSpec:
    """The layer ``base a`` for Python 3.12 with these attributes."""
    return project('base a { python = "3.12"; %s }' % attributes, **more).layers["a"]  # noqa: UP031 - braces


def marked(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Text with its expectations taken out: ``/*! code */`` stands right behind what the error ``code`` marks."""
    expected = [
        (match[1], match[2]) for match in re.finditer(r'("[^"\n]*"|[^\s;{}()\[\]"]+) ?/\*! ([a-z-]+) \*/', text)
    ]
    return text, expected


def shown(diagnostic: Diagnostic) -> tuple[str, str]:
    """The text that a diagnostic marks, and its code."""
    assert diagnostic.span is not None, diagnostic
    return diagnostic.span.source.text[diagnostic.span.start : diagnostic.span.end], diagnostic.code
