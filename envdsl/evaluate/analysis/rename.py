"""Renaming: all places or none.

Whether a new name would be taken for something else, or hide it, is not reasoned about but tried: the files are
analysed again with the new name in them, and every place has to speak of the same definition as before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from envdsl.errors import EnvdslError
from envdsl.evaluate.analysis.links import Links
from envdsl.evaluate.analysis.names import Definition, Kind, Names, names_of
from envdsl.model.names import LAYER_NAME
from envdsl.model.span import Source, Span
from envdsl.syntax.tolerant import read_file

_IDENTIFIER = re.compile(r"[a-zA-Z_][a-zA-Z0-9_'-]*")
_WORDS = frozenset({"let", "in", "if", "then", "else", "assert", "with", "rec", "inherit", "or"})

_RENAMED = frozenset({Kind.LET, Kind.IMPORT, Kind.LOOP, Kind.BINDING, Kind.PARAMETER, Kind.LAYER})

Edits = Mapping[str, Sequence[tuple[Span, str]]]
"""For each file the spans to replace, in their order, with the new text."""


def check(links: Links, target: Definition) -> None:
    """Raises EnvdslError where ``target`` cannot be renamed, whatever the new name."""
    if target.kind not in _RENAMED:
        raise _refused(
            f"`{target.name}` is an {target.kind.value}: it may be asked for by its name anywhere", target.span
        )
    if target.kind is Kind.LAYER and target.name.startswith('"'):
        raise _refused(f"the name of this layer is computed: {target.name}", target.span)
    inherited = links.inherits(target)
    if inherited:
        raise _refused(
            f"`{target.name}` is inherited by a set, where its name is that of an attribute",
            inherited[0],
            hint=f"write `{target.name} = {target.name};` there first",
        )


def rename(links: Links, target: Definition, new: str, known: Callable[[str], bool]) -> Edits:
    """The edits that call ``target`` ``new`` everywhere.

    ``known`` says which names the language itself has. Raises EnvdslError (``eval-rename``) with the reason where
    ``new`` is no name, where one is called so already, or where a place would come to mean something else.
    """
    check(links, target)
    _check_name(target, new, known)
    spans: dict[str, list[Span]] = {}
    for span in links.references(target, definition=True):
        spans.setdefault(span.source.path, []).append(span)
    edits = {path: [(span, _spelled(span, target, new)) for span in found] for path, found in spans.items()}
    _check_meaning(links, edits, new)
    return edits


def _check_name(target: Definition, new: str, known: Callable[[str], bool]) -> None:
    if target.kind is Kind.LAYER:
        if LAYER_NAME.fullmatch(new) is None:
            raise _refused(f"a layer cannot be called `{new}`", target.span)
        return
    if _IDENTIFIER.fullmatch(new) is None or new in _WORDS:
        raise _refused(f"`{new}` cannot be a name", target.span)
    if known(new):
        raise _refused(f"`{new}` is a name of the language itself, which would be hidden", target.span)


def _spelled(span: Span, target: Definition, new: str) -> str:
    quoted = span.source.text.startswith('"', span.start)
    if quoted or (target.kind is Kind.LAYER and (_IDENTIFIER.fullmatch(new) is None or new in _WORDS)):
        return f'"{new}"'
    return new


def apply(source: Source, edits: Sequence[tuple[Span, str]]) -> str:
    """The text of ``source`` with ``edits`` done."""
    pieces: list[str] = []
    position = 0
    for span, text in edits:
        pieces += (source.text[position : span.start], text)
        position = span.end
    return "".join([*pieces, source.text[position:]])


def _check_meaning(links: Links, edits: Edits, new: str) -> None:
    after = Links({path: _edited(names, edits.get(path, ())) for path, names in links.files.items()})
    if _duplicates(after) - _duplicates(links):
        raise _refused(f"`{new}` is defined already", next(iter(edits.values()))[0][0])
    before_shape, after_shape = _shape(links), _shape(after)
    for path, places in before_shape.items():
        for (span, target), (_, other) in zip(places, after_shape[path], strict=False):
            if target != other or len(places) != len(after_shape[path]):
                raise _refused(f"`{new}` means something else here, or something else would mean this", span)


def _edited(names: Names, edits: Sequence[tuple[Span, str]]) -> Names:
    if not edits:
        return names_of(names.file)  # of its own, so that definitions can be told apart by number
    return names_of(read_file(Source(names.path, apply(names.file.source, edits))).file)


def _shape(links: Links) -> dict[str, list[tuple[Span, tuple[str, int] | None]]]:
    """What each variable, selected name and base speaks of, as the number of the definition in its file."""
    number = {
        id(definition): (path, index)
        for path, names in links.files.items()
        for index, definition in enumerate(names.definitions)
    }
    return {path: list(_places(links, names, number)) for path, names in links.files.items()}


def _places(
    links: Links, names: Names, number: Mapping[int, tuple[str, int]]
) -> list[tuple[Span, tuple[str, int] | None]]:
    found: list[tuple[Span, tuple[str, int] | None]] = [
        (use.span, number.get(id(use.target)) if use.target is not None else None) for use in names.uses
    ]
    targets = {link.span.start: link.target for link in links.all[names.path]}
    spans = [name.span for member in names.members for name in member.names]
    spans += [part.span for declaration, _, _ in names.layers for part in declaration.on or ()]
    for span in sorted(spans, key=lambda span: span.start):
        target = targets.get(span.start)
        found.append((span, number.get(id(target)) if target is not None else None))
    return found


def _duplicates(links: Links) -> set[tuple[str, int]]:
    """The definitions that share a scope and a name with an earlier one, and layers called like another."""
    found: set[tuple[str, int]] = set()
    layers: set[str] = set()
    for path, names in links.files.items():
        first = {id(definition) for scope in names.scopes for definition in scope.names.values()}
        for index, definition in enumerate(names.definitions):
            if definition.kind is Kind.LAYER:
                if definition.name in layers:
                    found.add((path, index))
                layers.add(definition.name)
            elif id(definition) not in first:
                found.add((path, index))
    return found


def _refused(message: str, span: Span, hint: str | None = None) -> EnvdslError:
    return EnvdslError.of("eval-rename", message, span=span, hint=hint)
