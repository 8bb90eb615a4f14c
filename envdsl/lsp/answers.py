"""What ``app.editing`` says, in the words of the protocol."""

from __future__ import annotations

from lsprotocol import types

from envdsl.app.editing.completion import Item
from envdsl.app.editing.outline import Symbol
from envdsl.errors import Diagnostic
from envdsl.lsp.positions import Positions

_SEVERITIES = {"error": types.DiagnosticSeverity.Error, "warning": types.DiagnosticSeverity.Warning}

_SYMBOLS = {
    "base": types.SymbolKind.Class,
    "x": types.SymbolKind.Class,
    "iso": types.SymbolKind.Class,
    "for": types.SymbolKind.Namespace,
    "let": types.SymbolKind.Variable,
    "import": types.SymbolKind.Module,
    "attribute": types.SymbolKind.Property,
}

_ITEMS = {
    "keyword": types.CompletionItemKind.Keyword,
    "variable": types.CompletionItemKind.Variable,
    "function": types.CompletionItemKind.Function,
    "module": types.CompletionItemKind.Module,
    "attribute": types.CompletionItemKind.Property,
    "layer": types.CompletionItemKind.Class,
    "package": types.CompletionItemKind.Unit,
    "file": types.CompletionItemKind.File,
    "value": types.CompletionItemKind.Value,
}


def diagnostic(found: Diagnostic, positions: Positions, uri_of: dict[str, str], encoding: str) -> types.Diagnostic:
    """``found`` in its file; the places of its trail become related information where they have a file."""
    span = found.span
    message = found.message if found.hint is None else f"{found.message}\n{found.hint}"
    related = [
        types.DiagnosticRelatedInformation(
            types.Location(
                uri_of[note.span.source.path],
                Positions(note.span.source.text, encoding).range(note.span.start, note.span.end),
            ),
            note.message,
        )
        for note in found.trail
        if note.span is not None and note.span.source.path in uri_of
    ]
    return types.Diagnostic(
        range=positions.range(span.start, span.end) if span is not None else positions.range(0, 0),
        message=message,
        severity=_SEVERITIES.get(found.severity, types.DiagnosticSeverity.Information),
        code=found.code,
        source="envdsl",
        related_information=related or None,
    )


def symbol(found: Symbol, positions: Positions) -> types.DocumentSymbol:
    """A symbol with all below it."""
    return types.DocumentSymbol(
        name=found.name or "…",
        kind=_SYMBOLS[found.kind],
        range=positions.range(found.span.start, found.span.end),
        selection_range=positions.range(found.name_span.start, found.name_span.end),
        detail=found.detail or None,
        children=[symbol(child, positions) for child in found.children],
    )


def item(found: Item, place: types.Range) -> types.CompletionItem:
    return types.CompletionItem(
        label=found.label,
        kind=_ITEMS[found.kind],
        detail=found.detail or None,
        documentation=markdown(found.documentation) if found.documentation else None,
        text_edit=types.TextEdit(place, found.insert),
    )


def markdown(text: str) -> types.MarkupContent:
    return types.MarkupContent(types.MarkupKind.Markdown, text)
