"""What a distribution says of itself: the core metadata (PyPA specification, ``*.dist-info/METADATA``).

Claims, not facts: they inform people and answer "why is this here"; no key and no check of a wheel depends on them.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

MOST_METADATA = 2 << 20  # bytes
_LONGEST = 200  # characters of what a wheel says of itself


@dataclass(frozen=True, slots=True)
class CoreMetadata:
    """``name`` is normalised. ``licence`` is the SPDX expression, or what the metadata has instead; None where they say
    nothing. ``requires`` are PEP 508 as they stand. ``urls`` are by label, lower case."""

    name: str
    version: str
    summary: str
    licence: str | None
    requires: tuple[str, ...] = ()
    urls: tuple[tuple[str, str], ...] = ()


def parse_metadata(data: bytes) -> CoreMetadata:
    """Raises ValueError where there is no name or version."""
    from packaging.metadata import parse_email
    from packaging.utils import canonicalize_name

    raw, _ = parse_email(data)
    if not raw.get("name") or not raw.get("version"):
        raise ValueError("the metadata have no name or no version")
    urls = {label.strip().lower(): url for label, url in raw.get("project_urls", {}).items()}
    if raw.get("home_page"):
        urls.setdefault("homepage", raw["home_page"])
    return CoreMetadata(
        canonicalize_name(raw["name"]),
        raw["version"],
        _line(raw.get("summary", "")),
        stated_licence(raw),
        tuple(raw.get("requires_dist", ())),
        tuple(sorted(urls.items())),
    )


def read_wheel(stream: IO[bytes] | Any) -> tuple[CoreMetadata, tuple[str, ...]]:
    """The metadata of the wheel in ``stream`` (binary, seekable), and the names of its members.

    Raises OSError, ValueError, ``zipfile.BadZipFile`` for what is no wheel, or has more metadata than anybody writes.
    """
    with zipfile.ZipFile(stream) as archive:
        members = tuple(item.filename for item in archive.infolist() if not item.is_dir())
        for member in members:
            directory, _, name = member.partition("/")
            if directory.endswith(".dist-info") and name == "METADATA":
                with archive.open(member) as file:
                    data = file.read(MOST_METADATA + 1)
                if len(data) > MOST_METADATA:
                    raise ValueError("METADATA is too long")
                return parse_metadata(data), members
    raise ValueError("no METADATA")


def stated_licence(raw: Mapping[str, Any]) -> str | None:
    """What metadata say about the licence: the SPDX expression of PEP 639; else free text that can be understood;
    else the classifiers, separated by semicolons; else the first line of the text. None where they say nothing."""
    from envdsl.policy.licences import alternatives

    if expression := str(raw.get("license_expression") or "").strip():
        return _line(expression)
    text = str(raw.get("license") or "").strip()
    if text and "\n" not in text and alternatives(text) is not None:
        return _line(text)
    classifiers = [item for item in raw.get("classifiers") or () if item.startswith("License :: ")]
    named = sorted({item.rpartition(" :: ")[2] for item in classifiers} - {"OSI Approved"})
    if named:
        return _line("; ".join(named))
    return _line(text.splitlines()[0]) if text else None


def _line(text: str) -> str:
    # A person decides by it, on a terminal or a page: nothing in it moves a cursor or turns the direction of text.
    words = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"
