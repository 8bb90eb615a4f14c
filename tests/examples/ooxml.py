"""A structure check of Word documents: what makes Word say "unreadable content", found without Word.

Three layers of rules, each by its part of ECMA-376: the package (part 2: ZIP members, content types, relationships),
the references between parts (every ``r:id`` leads somewhere), and the document (part 1: required elements, and the
order of children where the schema is a sequence). Standard library only.
"""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

CONTENT_TYPES = "[Content_Types].xml"
MAIN_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
_TYPES = "{http://schemas.openxmlformats.org/package/2006/content-types}"
_RELATIONSHIPS = "{http://schemas.openxmlformats.org/package/2006/relationships}"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_WP = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}"

_MAGIC = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff", "image/gif": b"GIF8"}

# Children of these elements come in this order (part 1, 17.3.1.26, 17.3.2.28, 17.4.59, 17.4.69).
_ORDER = {
    "pPr": "pStyle keepNext keepLines pageBreakBefore framePr widowControl numPr suppressLineNumbers pBdr shd tabs "
    "suppressAutoHyphens kinsoku wordWrap overflowPunct topLinePunct autoSpaceDE autoSpaceDN bidi adjustRightInd "
    "snapToGrid spacing ind contextualSpacing mirrorIndents suppressOverlap jc textDirection textAlignment "
    "textboxTightWrap outlineLvl divId cnfStyle rPr sectPr pPrChange",
    "rPr": "rStyle rFonts b bCs i iCs caps smallCaps strike dstrike outline shadow emboss imprint noProof snapToGrid "
    "vanish webHidden color spacing w kern position sz szCs highlight u effect bdr shd fitText vertAlign rtl cs em "
    "lang eastAsianLayout specVanish oMath",
    "tblPr": "tblStyle tblpPr tblOverlap bidiVisual tblStyleRowBandSize tblStyleColBandSize tblW jc tblCellSpacing "
    "tblInd tblBorders shd tblLayout tblCellMar tblLook tblCaption tblDescription",
    "tcPr": "cnfStyle tcW gridSpan hMerge vMerge tcBorders shd noWrap tcMar textDirection tcFitText vAlign hideMark",
    "tbl": "tblPr tblGrid tr",
}


@dataclass(frozen=True)
class Package:
    """The members of an OOXML file, its XML parsed; ``relationships`` by source part (``""`` is the package)."""

    members: dict[str, bytes]
    trees: dict[str, Element]
    types: dict[str, str]
    relationships: dict[str, dict[str, Element]]


def faults(path: Path) -> list[str]:
    """What is wrong with the Word document at ``path``, one sentence each; empty when it is sound."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [member.filename for member in archive.infolist() if not member.is_dir()]
            if damaged := archive.testzip():
                return [f"{damaged} is damaged"]
            members = {name: archive.read(name) for name in names}
    except zipfile.BadZipFile as error:
        return [f"not a ZIP file: {error}"]
    found = [f"{name} is there twice" for name in members if names.count(name) > 1]
    if CONTENT_TYPES not in members:
        return [*found, f"{CONTENT_TYPES} is missing"]
    trees: dict[str, Element] = {}
    for name, content in members.items():
        if name.endswith((".xml", ".rels")):
            try:
                trees[name] = ElementTree.fromstring(content)
            except ElementTree.ParseError as error:
                found.append(f"{name} is not well-formed: {error}")
    if found:
        return found
    package = Package(members, trees, _types(trees[CONTENT_TYPES], members), _relationships(trees))
    return [*_content_types(package), *_links(package), *_reached(package), *_references(package), *_document(package)]


def _types(tree: Element, members: dict[str, bytes]) -> dict[str, str]:
    defaults = {
        item.get("Extension", "").lower(): item.get("ContentType", "") for item in tree.iter(f"{_TYPES}Default")
    }
    overrides = {item.get("PartName", ""): item.get("ContentType", "") for item in tree.iter(f"{_TYPES}Override")}
    return {
        name: overrides.get(f"/{name}") or defaults.get(name.rpartition(".")[2], "")
        for name in members
        if name != CONTENT_TYPES
    }


def _relationships(trees: dict[str, Element]) -> dict[str, dict[str, Element]]:
    found = {}
    for name, tree in trees.items():
        if name.endswith(".rels"):
            directory, file = posixpath.split(name)
            source = posixpath.join(posixpath.dirname(directory), file.removesuffix(".rels"))
            found[source] = {item.get("Id", ""): item for item in tree.iter(f"{_RELATIONSHIPS}Relationship")}
    return found


def _content_types(package: Package) -> Iterator[str]:
    for name, kind in package.types.items():
        if not kind:
            yield f"{name} has no content type"
        elif kind in _MAGIC and not package.members[name].startswith(_MAGIC[kind]):
            yield f"{name} is declared as {kind} and is none"
    for item in package.trees[CONTENT_TYPES].iter(f"{_TYPES}Override"):
        if item.get("PartName", "").removeprefix("/") not in package.members:
            yield f"{CONTENT_TYPES} names {item.get('PartName')}, which is not there"


def _target(source: str, relationship: Element) -> str | None:
    """The part that a relationship leads to, or None for one that leads out of the file."""
    if relationship.get("TargetMode") == "External":
        return None
    return posixpath.normpath(posixpath.join("/", posixpath.dirname(source), relationship.get("Target", "")))[1:]


def _links(package: Package) -> Iterator[str]:
    for name, tree in package.trees.items():
        if name.endswith(".rels"):
            ids = [item.get("Id") for item in tree.iter(f"{_RELATIONSHIPS}Relationship")]
            yield from (f"{name} has {id_} twice" for id_ in sorted({i or "" for i in ids if ids.count(i) > 1}))
    for source, relationships in package.relationships.items():
        if source and source not in package.members:
            yield f"there are relationships of {source}, which is not there"
        for id_, relationship in relationships.items():
            target = _target(source, relationship)
            if target is not None and target not in package.members:
                yield f"{id_} of {source or 'the package'} leads to {target}, which is not there"


def _reached(package: Package) -> Iterator[str]:
    """Parts that no chain of relationships leads to: a reader never sees them."""
    reached: set[str] = set()
    waiting = [""]
    while waiting:
        source = waiting.pop()
        for relationship in package.relationships.get(source, {}).values():
            target = _target(source, relationship)
            if target is not None and target not in reached:
                reached.add(target)
                waiting.append(target)
    for name in package.types:
        if not name.endswith(".rels") and name not in reached:
            yield f"no relationship leads to {name}"


def _references(package: Package) -> Iterator[str]:
    for name, tree in package.trees.items():
        if name == CONTENT_TYPES or name.endswith(".rels"):
            continue
        known = package.relationships.get(name, {})
        for element in tree.iter():
            for attribute, value in element.attrib.items():
                if attribute.startswith(f"{{{_OFFICE}}}") and value not in known:
                    yield f"{name} refers to {value}, which is none of its relationships"


def _document(package: Package) -> Iterator[str]:
    main = [
        _target("", relationship)
        for relationship in package.relationships.get("", {}).values()
        if relationship.get("Type") == f"{_OFFICE}/officeDocument"
    ]
    if len(main) != 1 or main[0] is None:
        yield f"the package has {len(main)} main documents"
        return
    name = main[0]
    if name not in package.trees:
        return  # said already
    if package.types[name] != MAIN_TYPE:
        yield f"{name} has the content type {package.types[name]!r}"
    document = package.trees[name]
    if document.tag != f"{_W}document" or [child.tag for child in document][-1:] != [f"{_W}body"]:
        yield f"{name} is no w:document with a w:body"
        return
    body = document[-1]
    if len(body) == 0 or body[-1].tag != f"{_W}sectPr":
        yield "w:body does not end with w:sectPr"
    yield from _tables(document)
    yield from _styles(package, name)
    yield from _drawings(document)
    for part, tree in package.trees.items():
        if part.startswith("word/") and not part.endswith(".rels"):
            yield from _orders(part, tree)


def _tables(document: Element) -> Iterator[str]:
    for table in document.iter(f"{_W}tbl"):
        columns = len(table.findall(f"{_W}tblGrid/{_W}gridCol"))
        for number, row in enumerate(table.findall(f"{_W}tr"), 1):
            spans = [cell.find(f"{_W}tcPr/{_W}gridSpan") for cell in row.findall(f"{_W}tc")]
            width = sum(1 if span is None else int(span.get(f"{_W}val", "1")) for span in spans)
            if width != columns:
                yield f"row {number} of a table has {width} columns, its grid {columns}"
        for cell in table.iter(f"{_W}tc"):
            if len(cell) == 0 or cell[-1].tag != f"{_W}p":
                yield "a table cell does not end with a paragraph"


def _styles(package: Package, name: str) -> Iterator[str]:
    known = {
        style.get(f"{_W}styleId")
        for tree in package.trees.values()
        if tree.tag == f"{_W}styles"
        for style in tree.iter(f"{_W}style")
    }
    for kind in ("pStyle", "rStyle", "tblStyle"):
        for used in package.trees[name].iter(f"{_W}{kind}"):
            if used.get(f"{_W}val") not in known:
                yield f"style {used.get(f'{_W}val')!r} is used and not defined"


def _drawings(document: Element) -> Iterator[str]:
    ids = [item.get("id") for item in document.iter(f"{_WP}docPr")]
    if len(ids) != len(set(ids)):
        yield "two drawings have one id"


def _orders(part: str, tree: Element) -> Iterator[str]:
    for kind, order in _ORDER.items():
        places = {f"{_W}{name}": place for place, name in enumerate(order.split())}
        for element in tree.iter(f"{_W}{kind}"):
            found = [places[child.tag] for child in element if child.tag in places]
            if found != sorted(found):
                names = " ".join(child.tag.removeprefix(_W) for child in element)
                yield f"{part}: the children of w:{kind} are out of order: {names}"
