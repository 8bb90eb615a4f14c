"""``requirements.txt`` with exact versions and maybe hashes, as ``pip freeze`` and ``uv pip compile`` write it.

The format is pip's (https://pip.pypa.io/en/stable/reference/requirements-file-format/). Options that say where
wheels come from are for the tools: here that is configuration. As with pip, hashes are for all packages or none.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from envdsl.app.imports.found import OWN_CODE, VENDORED, Findings, Found, Pin, Target, environment
from envdsl.app.imports.pylock import unreadable
from envdsl.redaction import redact

_COMMENT = re.compile(r"(?:^|\s)#.*$")
_LIMIT = 16 << 20
_PINNED = re.compile(r"={2,3}\s*([^,*\s]+)")


def read_requirements(path: Path, target: Target) -> Found:
    """The packages that the file, and those that it includes, pin on the target's platforms.

    Raises EnvdslError ``import-unreadable``, ``import-python``, ``import-empty``, and for packages
    ``import-not-pinned``, ``import-direct-url``, ``import-editable``, ``import-no-hash``, ``import-wrong-platform``.
    """
    return _Reader(path, target).read()


class _Reader:
    def __init__(self, path: Path, target: Target) -> None:
        self._path = path
        self._target = target
        self._python = target.release(None, path.name)
        self._findings = Findings(path.name, target.without)
        self._pins: list[tuple[Pin, str]] = []
        self._hashed = False
        self._seen: set[Path] = set()

    def read(self) -> Found:
        self._file(self._path)
        roots = []
        for pin, root in self._pins:
            if self._hashed and not pin.hashes:
                self._findings.refuse(
                    pin.name, "no-hash", "has no sha256, and others have: with hashes, all packages need one"
                )
            self._findings.pin(pin)
            roots.append(root)
        pins = self._findings.pins()
        return Found(
            self._path.name,
            self._python,
            pins,
            roots=tuple(sorted(set(roots))),
            hashed=self._hashed,
            left_out=self._findings.left_out,
        )

    def _file(self, path: Path) -> None:
        if path.resolve() in self._seen:
            return
        self._seen.add(path.resolve())
        for number, line in _logical_lines(path):
            try:
                words = shlex.split(line, posix=False)
            except ValueError:
                words = line.split()
            if words[0].startswith("-"):
                self._option(path, words, line)
            else:
                self._requirement(line, f"{path.name}:{number}")

    def _option(self, path: Path, words: list[str], line: str) -> None:
        name, _, value = words[0].partition("=")
        if not name.startswith("--") and len(name) > 2:  # -rother.txt
            name, value = name[:2], name[2:]
        value = value or (words[1] if len(words) > 1 else "")
        match name:
            case "-r" | "--requirement":
                self._file(path.parent / value)
            case "-e" | "--editable":
                self._findings.refuse(value, "editable", "is an editable installation", OWN_CODE)
            case "-c" | "--constraint":
                self._findings.left_out[redact(line)] = "constraints choose versions; here they are chosen"
            case "--require-hashes":
                self._hashed = True
            case _:
                self._findings.left_out[name] = "an option of pip; indexes stand in envdsl.toml"

    def _requirement(self, line: str, place: str) -> None:
        from packaging.requirements import InvalidRequirement, Requirement
        from packaging.utils import canonicalize_name

        text, hashes = _without_options(line)
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            reason = "is a path, a URL or no requirement at all"
            hint = "a wheel of your own goes into `wheels`, a directory into `sources`"
            self._findings.refuse(f"{place}: {text}", "direct-url", reason, hint)
            return
        name = canonicalize_name(requirement.name)
        needed = [
            platform
            for platform in self._target.platforms
            if requirement.marker is None or requirement.marker.evaluate(dict(environment(self._python, platform)))
        ]
        if not needed:
            self._findings.left_out.setdefault(name, "not needed on these platforms")
            return
        if requirement.url is not None:
            self._findings.refuse(name, "direct-url", "comes from a URL, not from an index", VENDORED)
            return
        pinned = _PINNED.fullmatch(str(requirement.specifier))
        if pinned is None:
            hint = f"pin it first, or use the file in a layer as it is: packages = readLines ./{self._path.name};"
            self._findings.refuse(name, "not-pinned", f"has no exact version ({text})", hint)
            return
        self._hashed = self._hashed or bool(hashes)
        extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
        marker = "" if len(needed) == len(self._target.platforms) else f"; {requirement.marker}"
        sha256 = frozenset(value for algorithm, value in hashes if algorithm == "sha256")
        self._pins.append((Pin(name, pinned[1], frozenset(needed), sha256), f"{name}{extras}{marker}"))


def _without_options(line: str) -> tuple[str, list[tuple[str, str]]]:
    """The requirement of a line, and its hashes as (algorithm, digest)."""
    text, *options = re.split(r"\s+(?=--)", line)
    hashes = []
    for option in options:
        name, _, value = option.partition("=")
        if name.split()[0] == "--hash":
            algorithm, _, digest = (value or option.split()[-1]).strip().partition(":")
            hashes.append((algorithm, digest.lower()))
    return text.strip(), hashes


def _logical_lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with path.open("rb") as file:
            data = file.read(_LIMIT + 1)
        if len(data) > _LIMIT:
            raise unreadable(path.name, "it is larger than 16 MiB")
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise unreadable(path.name, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise unreadable(path.name, f"it is not UTF-8 (byte {error.start})") from error
    pending, first = "", 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        first = first or number
        if line.endswith("\\") and not line.lstrip().startswith("#"):
            pending += line[:-1] + " "
            continue
        logical = _COMMENT.sub("", pending + line).strip()
        if logical:
            yield first, logical
        pending, first = "", 0
