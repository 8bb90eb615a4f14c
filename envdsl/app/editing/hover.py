"""What is shown about a place: the value of a name, the documentation of a builtin or attribute, a package's lock."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envdsl.app.editing import packages
from envdsl.errors import EnvdslError
from envdsl.evaluate.analysis.names import Definition, Kind
from envdsl.evaluate.builtins import DOCUMENTATION
from envdsl.evaluate.render import render_nix
from envdsl.evaluate.schema import ATTRIBUTES
from envdsl.model.span import Source, Span
from envdsl.syntax import tree
from envdsl.syntax.depth import children
from envdsl.syntax.printer import format_expression

if TYPE_CHECKING:
    from envdsl.app.editing.workspace import Workspace
    from envdsl.evaluate.builtins import Documentation
    from envdsl.evaluate.values import Slot

_LONGEST = 2_000  # characters of a value
_MOST_LAYERS = 6


@dataclass(frozen=True, slots=True)
class Hover:
    """Markdown about the text at ``span``."""

    text: str
    span: Span


def hover(workspace: Workspace, path: str, offset: int) -> Hover | None:
    with workspace.lock:
        trail = nodes_at(workspace.reading(path).file, offset)
        node = trail[-1] if trail else None
        link = workspace.link(path, offset)
        if link is not None:
            text = _definition(workspace, link.target)
            return Hover(text, link.span) if text else None
        if isinstance(node, tree.Variable) and node.name in DOCUMENTATION:
            return Hover(builtin_text(DOCUMENTATION[node.name]), node.span)
        if isinstance(node, tree.String):
            return _package(workspace, node)
        if isinstance(node, tree.Name):
            return _name(workspace, path, trail)
        return None


def nodes_at(file: tree.File, offset: int) -> list[tree.Node]:
    """The nodes around a place, from the outside in."""
    trail: list[tree.Node] = []
    level: list[tree.Node] = list(file.declarations)
    while level:
        inside = [node for node in level if node.span.start <= offset <= node.span.end]
        if not inside:
            break
        node = min(inside, key=lambda node: node.span.end - node.span.start)
        trail.append(node)
        level = list(children(node))
    return trail


def builtin_text(entry: Documentation) -> str:
    return f"```nix\n{entry.signature}\n```\n{entry.summary}\n```nix\n{entry.example}\n# {entry.result}\n```"


def _definition(workspace: Workspace, target: Definition) -> str | None:
    head = f"{target.kind.value} **{target.name}**"
    exploration = workspace.exploration
    match target.kind:
        case Kind.LET if target.name in (names := exploration.names(target.path)):
            return f"{head}\n{value_text(workspace, names[target.name])}"
        case Kind.IMPORT:
            imported = workspace.links.imported(target)
            offered = ", ".join(f"`{name}`" for name in imported.outer.names) if imported is not None else ""
            where = imported.path if imported is not None else "an unreadable file"
            return f"{head}: {where}\n\n{offered}".rstrip()
        case Kind.LAYER:
            return _layer(workspace, target)
    if target.value is None:
        return head
    span = target.value.span
    text = span.source.text[span.start : span.end]
    if _sees_whole_file_only(workspace, target, span):
        source, directory = Source(target.path, text), posixpath.dirname(target.path)
        try:
            slot = exploration.expression(source, exploration.names(target.path), directory)
        except EnvdslError:
            return f"{head}\n{_code(text)}"
        return f"{head}\n{value_text(workspace, slot)}"
    return f"{head}\n{_code(text)}"


def _sees_whole_file_only(workspace: Workspace, target: Definition, value: Span) -> bool:
    """Whether a value speaks of nothing but what its whole file sees, or itself defines: then it can be evaluated by
    itself. What depends on a parameter or a loop has no one value."""
    names = workspace.names(target.path)
    if target.kind in (Kind.PARAMETER, Kind.FORMAL, Kind.LOOP):
        return False
    for use in names.uses:
        if value.start <= use.span.start < value.end and use.target is not None:
            inside = value.start <= use.target.span.start < value.end
            if not inside and names.outer.names.get(use.name) is not use.target:
                return False
    return True


def _layer(workspace: Workspace, target: Definition) -> str:
    lines = []
    for layer in workspace.exploration.layers.values():
        if layer.file != target.path or layer.span.start != target.span.start:
            continue
        spec = workspace.exploration.specs.get(layer.name)
        lock = workspace.read_lock(layer.name)
        facts = [f"Python {spec.python}", *([f"on {spec.base}"] if spec.base else [])] if spec is not None else []
        facts.append(_locked(len(lock.packages)) if lock is not None else "not locked")
        lines.append(f"- {layer.kind.value} **{layer.name}**: {', '.join(facts)}")
    return "\n".join(lines) or f"layer **{target.name}**"


def _locked(packages: int) -> str:
    return "1 package locked" if packages == 1 else f"{packages} packages locked"


def _name(workspace: Workspace, path: str, trail: list[tree.Node]) -> Hover | None:
    """A builtin behind ``builtins.``, or an attribute of a layer."""
    node, parent = trail[-1], trail[-2] if len(trail) > 1 else None
    assert isinstance(node, tree.Name)
    if isinstance(parent, tree.Select):
        target = parent.target
        if isinstance(target, tree.Variable) and target.name == "builtins" and node.text in DOCUMENTATION:
            return Hover(builtin_text(DOCUMENTATION[node.text]), node.span)
        return None
    layer = trail[-4] if len(trail) > 3 else None
    if not isinstance(parent, tree.Binding) or not isinstance(layer, tree.LayerDeclaration):
        return None
    attribute = ATTRIBUTES.get(node.text) if parent.path[0] is node else None
    if attribute is None:
        return None
    lines = [f"**{attribute.name}**: {attribute.form}", "", attribute.summary]
    values: dict[str, list[str]] = {}
    for declared in workspace.exploration.layers.values():
        if declared.file == path and declared.span.start == layer.name.span.start and node.text in declared.attributes:
            text = value_text(workspace, declared.attributes[node.text])
            values.setdefault(text, []).append(declared.name)
    for text, layers in list(values.items())[:_MOST_LAYERS]:
        lines += ["", *([", ".join(layers)] if len(values) > 1 else []), text]
    return Hover("\n".join(lines), node.span)


def _package(workspace: Workspace, node: tree.String) -> Hover | None:
    if len(node.parts) != 1 or not isinstance(node.parts[0], str):
        return None
    name = packages.requirement_name(node.parts[0])
    locked = packages.locked_packages(workspace).get(name) if name is not None else None
    if locked is None:
        return None
    lines = [f"**{locked.name}**"]
    known = packages.metadata(workspace, locked)
    if known is not None:
        lines += ["", known.summary, *([f"\nLicence: {known.licence}"] if known.licence else [])]
    lines.append("")
    lines += [f"- {version} in {', '.join(layers)}" for version, layers in locked.versions.items()]
    return Hover("\n".join(lines), node.span)


def value_text(workspace: Workspace, slot: Slot) -> str:
    """The value as a block of Markdown, or why there is none."""
    try:
        text = render_nix(workspace.exploration.evaluate(slot))
    except EnvdslError as error:
        return f"\n*{error.diagnostics[0].message}*"
    return _code(pretty(text))


def pretty(text: str) -> str:
    """A printed value in the canonical form, where it is an expression; as it is where it holds functions."""
    if len(text) > _LONGEST:
        return text[:_LONGEST] + "…"
    try:
        return format_expression(Source("<value>", text)).rstrip("\n")
    except EnvdslError:
        return text


def _code(text: str) -> str:
    return f"```nix\n{text if len(text) <= _LONGEST else text[:_LONGEST] + '…'}\n```"
