"""What could be written at a place, with what there is to say about each."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envdsl.app.editing import packages
from envdsl.app.editing.hover import builtin_text
from envdsl.errors import EnvdslError
from envdsl.evaluate.analysis.completion import Place, Where, place_at
from envdsl.evaluate.analysis.names import Definition, Kind, names_of
from envdsl.evaluate.builtins import DOCUMENTATION, GLOBALS
from envdsl.evaluate.schema import ATTRIBUTES
from envdsl.model.names import DEFAULT_PLATFORMS, LayerKind
from envdsl.model.span import Source, Span

if TYPE_CHECKING:
    from envdsl.app.editing.workspace import Workspace

_WORDS = ("let", "if", "then", "else", "in", "assert", "rec", "inherit", "or")
_DECLARATIONS = {
    "base": ("base NAME { … }", "A curated set of distributions that sessions start from."),
    "x": ("x NAME on BASE { … }", "What a base lacks: an increment over it."),
    "iso": ("iso NAME { … }", "A set by itself, for needs that contradict the base."),
    "let": ("let NAME = VALUE;", "A name for a value, seen in the whole file."),
    "import": ('import "FILE" as NAME;', "Another file of the project."),
    "for": ("for (NAME in LIST) { … }", "The declarations inside, once for each element of the list."),
}
_WAIVERS = {
    "record-mismatch": "Packages whose RECORD may disagree with their files.",
    "collisions": "Path patterns that two wheels may both own.",
}
_REQUIREMENTS = frozenset({"packages", "constraints", "overrides", "excludes"})
_PYTHONS = ("3.11", "3.12", "3.13", "3.14")


@dataclass(frozen=True, slots=True)
class Item:
    """``kind`` is ``keyword``, ``variable``, ``function``, ``module``, ``attribute``, ``layer``, ``package``, ``file``
    or ``value``; ``insert`` replaces the word at the place."""

    label: str
    kind: str
    insert: str
    detail: str = ""
    documentation: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    span: Span
    items: tuple[Item, ...]


def complete(workspace: Workspace, path: str, offset: int) -> Completion | None:
    with workspace.lock:
        place = place_at(Source(path, workspace.text(path)), offset)
        if place is None:
            return None
        return Completion(place.span, tuple(_items(workspace, path, offset, place)))


def _items(workspace: Workspace, path: str, offset: int, place: Place) -> Iterator[Item]:
    match place.where:
        case Where.DECLARATION:
            for word, (form, summary) in _DECLARATIONS.items():
                yield Item(word, "keyword", word, form, summary)
        case Where.EXPRESSION:
            yield from _expression(workspace, place, offset)
        case Where.MEMBER:
            yield from _members(workspace, path, place, offset)
        case Where.ATTRIBUTE:
            yield from _attributes(place)
        case Where.BASE:
            yield from _bases(workspace, path, place)
        case Where.IMPORT:
            directory = posixpath.dirname(path)
            for other in workspace.files:
                if other != path:
                    yield Item(posixpath.relpath(other, directory), "file", posixpath.relpath(other, directory))
        case Where.STRING:
            yield from _strings(workspace, place)


def _expression(workspace: Workspace, place: Place, offset: int) -> Iterator[Item]:
    names = names_of(place.file)
    for name, definition in names.scope_at(offset).visible().items():
        yield _named(name, definition)
    for name in GLOBALS:
        yield _builtin(name)
    for word in _WORDS:
        yield Item(word, "keyword", word)
    if place.attribute[:1] == ("packages",):
        yield from _package_items(workspace, quoted=False, taken=frozenset())


def _named(name: str, definition: Definition) -> Item:
    kind = "module" if definition.kind is Kind.IMPORT else "variable"
    return Item(name, kind, name, definition.kind.value)


def _builtin(name: str) -> Item:
    entry = DOCUMENTATION.get(name)
    if entry is None:
        return Item(name, "value", name)
    return Item(name, "function", name, entry.signature, builtin_text(entry))


def _members(workspace: Workspace, path: str, place: Place, offset: int) -> Iterator[Item]:
    if place.root == "builtins" and not place.path:
        yield from (_builtin(name) for name in DOCUMENTATION)
        return
    names = names_of(place.file)
    root = names.scope_at(offset).lookup(place.root or "")
    if root is None:
        return
    # The tree of the text as it is being written, among the other files.
    links = type(workspace.links)({**workspace.links.files, path: names})
    current = root
    for following in links.follow(root, place.path):
        current = following
    found = links.members(current)
    for name, definition in found.items():
        yield _named(name, definition)
    if not found and root.kind is Kind.LET:
        yield from _evaluated(workspace, path, place)


def _evaluated(workspace: Workspace, path: str, place: Place) -> Iterator[Item]:
    """The attributes of a value that is a set only once it is evaluated: ``readToml ./pyproject.toml``."""
    exploration = workspace.exploration_with(path, place.file)
    try:
        value = exploration.evaluate(exploration.names(path).get(place.root or ""))
        for name in place.path:
            value = exploration.evaluate(value[name.text]) if isinstance(value, dict) else None
    except (EnvdslError, KeyError):
        return
    for name_ in value if isinstance(value, dict) else ():
        yield Item(str(name_), "attribute", str(name_))


def _attributes(place: Place) -> Iterator[Item]:
    if place.layer is None:
        return
    if place.attribute == ("allow",):
        for name, summary in _WAIVERS.items():
            if name not in place.taken:
                yield Item(name, "attribute", name, "list of strings", summary)
    if place.attribute:
        return
    for attribute in ATTRIBUTES.values():
        if attribute.name not in place.taken:
            yield Item(attribute.name, "attribute", attribute.name, attribute.form, attribute.summary)


def _bases(workspace: Workspace, path: str, place: Place) -> Iterator[Item]:
    if place.root is not None:
        root = workspace.names(path).outer.lookup(place.root)
        imported = workspace.links.imported(root) if root is not None else None
        wanted: Iterable[str] = (imported.path,) if imported is not None else ()
    else:
        wanted = workspace.files
        if not place.quoted:
            for name, definition in workspace.names(path).outer.names.items():
                if definition.kind is Kind.IMPORT:
                    yield _named(name, definition)
    for file in wanted:
        for declaration, _, definition in workspace.names(file).layers:
            if declaration.kind is LayerKind.BASE:
                name = definition.name
                plain = name.strip('"')
                yield Item(plain, "layer", plain if place.quoted else name, file)


def _strings(workspace: Workspace, place: Place) -> Iterator[Item]:
    if place.prefix:
        return  # behind a name: `numpy>=`
    match place.attribute:
        case (name,) if name in _REQUIREMENTS:
            yield from _package_items(workspace, quoted=True, taken=place.taken)
        case ("python",):
            yield from (Item(version, "value", version) for version in _PYTHONS)
        case ("platforms",):
            for platform in DEFAULT_PLATFORMS:
                if str(platform) not in place.taken:
                    yield Item(str(platform), "value", str(platform))
        case () if place.layer is None:
            yield from _package_items(workspace, quoted=True, taken=place.taken)  # a list that a `let` names


def _package_items(workspace: Workspace, *, quoted: bool, taken: frozenset[str]) -> Iterator[Item]:
    for name, locked in sorted(packages.locked_packages(workspace).items()):
        if name not in taken:
            yield Item(name, "package", name if quoted else f'"{name}"', ", ".join(locked.versions))
