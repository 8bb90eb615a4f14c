"""A comparison of locks as text, as Markdown for a pull request, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from envdsl.app.comparing import Comparison
from envdsl.cli.output import count, size
from envdsl.lock.difference import Kind, LockDifference, PackageDifference, grouped

_SIGNS = {
    Kind.REPINNED: "!",
    Kind.ADDED: "+",
    Kind.REMOVED: "-",
    Kind.MOVED: "~",
    Kind.REBUILT: "~",
    Kind.PLATFORMS: "~",
}
_HEADINGS = {
    Kind.ADDED: "Added",
    Kind.REMOVED: "Removed",
    Kind.MOVED: "Moved",
    Kind.REBUILT: "Same version, other wheel",
    Kind.PLATFORMS: "Other platforms",
}
# What HTML or Markdown would read as more than itself.
_MARKUP = str.maketrans({mark: f"&#{ord(mark)};" for mark in "&<>\\`*_[]@#~"})
_ALARM = "same version and file name, another hash"
_UNKNOWN = "licences and import names are not known"


def to_text(found: Comparison) -> str:
    return "\n".join(_text(found))


def to_markdown(found: Comparison) -> str:
    return "\n".join(_markdown(found))


def to_json(found: Comparison) -> dict[str, Any]:
    return {
        "before": found.before,
        "after": found.after,
        "alarm": any(layer.of_kind(Kind.REPINNED) for layer in found.layers),
        "unknown-wheels": found.unknown,
        "layers": [_layer_json(layer) for layer in found.layers],
    }


def _text(found: Comparison) -> Iterator[str]:
    for names, layer in grouped(found.layers):
        yield f"{', '.join(names)}: {_headline(layer)}"
        yield from (f"  {line}" for line in layer.settings)
        for package in layer.packages:
            yield f"  {_SIGNS[package.kind]} {_package(package)}"
            if package.kind is Kind.REPINNED:
                yield from (f"      {line}" for line in _hashes(package))
    if found.unknown:
        yield f"({count(found.unknown, 'package')}: {_UNKNOWN}; --fetch gets their wheels)"


def _headline(layer: LockDifference) -> str:
    if layer.before is None:
        return f"new, {count(len(layer.packages), 'package')}, {size(layer.size_after)}"
    if layer.after is None:
        return "removed"
    return f"{size(layer.size_before)} → {size(layer.size_after)} ({_signed(layer.size_after - layer.size_before)})"


def _package(package: PackageDifference) -> str:
    remarks = list(_remarks(package))
    return f"{package.name} {_versions(package)}" + (f"  ({'; '.join(remarks)})" if remarks else "")


def _versions(package: PackageDifference) -> str:
    if package.kind is Kind.MOVED:
        return f"{package.before} → {package.after}"
    return package.after or package.before or ""


def _remarks(package: PackageDifference) -> Iterator[str]:
    if package.kind is Kind.REPINNED:
        yield _ALARM
    elif package.kind is Kind.REBUILT:
        yield "another wheel"
    if package.size:
        yield _signed(package.size)
    if package.before and package.after and package.licence_before != package.licence_after:
        if package.licence_before or package.licence_after:
            yield f"licence {package.licence_before or 'none stated'} → {package.licence_after or 'none stated'}"
    elif package.kind is Kind.ADDED and package.licence_after:
        yield package.licence_after
    if package.gained:
        yield f"import {', '.join(package.gained)}"
    if package.lost:
        yield f"no more import {', '.join(package.lost)}"
    for sign, platforms in (("+", package.platforms_gained), ("-", package.platforms_lost)):
        yield from (f"{sign} {platform}" for platform in platforms)


def _hashes(package: PackageDifference) -> Iterator[str]:
    for before, after in package.files:
        if before and after and before.filename == after.filename:
            yield f"{before.filename}: sha256 {before.sha256} → {after.sha256}"


def _signed(count_: int) -> str:
    return f"{'−' if count_ < 0 else '+'}{size(abs(count_))}"


def _markdown(found: Comparison) -> Iterator[str]:
    groups = grouped(found.layers)
    yield f"### Layers: {_code(found.before)} → {_code(found.after)}"
    yield ""
    if not groups:
        yield "Nothing differs."
        return
    alarms = [(names, package) for names, layer in groups for package in layer.of_kind(Kind.REPINNED)]
    for names, package in alarms:
        yield "> [!CAUTION]"
        yield (
            f"> **{_cell(package.name)} {_cell(package.after or '')}** in {', '.join(map(_code, names))}: {_ALARM}. "
            "No index does this: find out where the wheel came from before you merge."
        )
        yield from (f"> `{line}`" for line in _hashes(package))
        yield ""
    yield "| layer | added | removed | moved | size |"
    yield "|---|--:|--:|--:|---|"
    for names, layer in groups:
        counts = " | ".join(str(len(layer.of_kind(kind))) for kind in (Kind.ADDED, Kind.REMOVED, Kind.MOVED))
        yield f"| {', '.join(map(_code, names))} | {counts} | {_headline(layer)} |"
    for names, layer in groups:
        yield ""
        yield f"<details{' open' if len(groups) == 1 else ''}><summary>{', '.join(map(_escape, names))}</summary>"
        yield ""
        yield from (f"- {line}" for line in layer.settings)
        yield from _table(layer)
        yield ""
        yield "</details>"
    if found.unknown:
        yield ""
        yield f"<sub>{count(found.unknown, 'package')}: {_UNKNOWN}.</sub>"


def _table(layer: LockDifference) -> Iterator[str]:
    if not any(layer.of_kind(kind) for kind in _HEADINGS):
        return
    yield ""
    yield "| | package | before | after | |"
    yield "|---|---|---|---|---|"
    for kind, heading in _HEADINGS.items():
        for package in layer.of_kind(kind):
            before, after = _cell(package.before or ""), _cell(package.after or "")
            yield f"| {heading} | {_cell(package.name)} | {before} | {after} | {_cell('; '.join(_remarks(package)))} |"


def _code(text: str) -> str:
    return f"`{text.replace('`', '').replace('|', '')}`"


def _cell(text: str) -> str:
    """Text that neither ends a cell nor becomes markup: a wheel's licence is anybody's text."""
    return _escape(" ".join(text.split())).replace("|", "\\|")


def _escape(text: str) -> str:
    return text.translate(_MARKUP)


def _layer_json(layer: LockDifference) -> dict[str, Any]:
    return {
        "layer": layer.name,
        "before": layer.before,
        "after": layer.after,
        "size-before": layer.size_before,
        "size-after": layer.size_after,
        "settings": list(layer.settings),
        "packages": [_package_json(package) for package in layer.packages],
    }


def _package_json(package: PackageDifference) -> dict[str, Any]:
    return {
        "name": package.name,
        "change": package.kind.value,
        "before": package.before,
        "after": package.after,
        "size-change": package.size,
        "licence-before": package.licence_before,
        "licence-after": package.licence_after,
        "imports-gained": list(package.gained),
        "imports-lost": list(package.lost),
        "platforms-gained": [str(platform) for platform in package.platforms_gained],
        "platforms-lost": [str(platform) for platform in package.platforms_lost],
        "files": [
            {
                side: {"filename": wheel.filename, "sha256": wheel.sha256, "size": wheel.size} if wheel else None
                for side, wheel in (("before", before), ("after", after))
            }
            for before, after in package.files
        ],
    }
