"""A real client of the protocol, with a server of its own at the other end of two pipes."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

T = TypeVar("T")
_PATIENCE = 60  # seconds; a machine may be busy


class Editor:
    """What an editor does, one step after the other. Positions are lines and UTF-16 columns, from 0."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.client = LanguageClient("test", "1")
        self.published: dict[str, types.PublishDiagnosticsParams] = {}
        self.messages: list[str] = []
        self._news = threading.Condition()
        self._versions: dict[str, int] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            with self._news:
                self.published[params.uri] = params
                self._news.notify_all()

        @self.client.feature(types.WINDOW_SHOW_MESSAGE)
        def shown(params: types.ShowMessageParams) -> None:
            with self._news:
                self.messages.append(params.message)
                self._news.notify_all()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE)

    def start(self, encodings: list[types.PositionEncodingKind] | None = None) -> types.InitializeResult:
        self.run(self.client.start_io(sys.executable, "-m", "envdsl", "lsp", cwd=str(self.root)))
        general = types.GeneralClientCapabilities(position_encodings=encodings)
        result = self.run(
            self.client.initialize_async(
                types.InitializeParams(
                    capabilities=types.ClientCapabilities(general=general), root_uri=self.root.as_uri()
                )
            )
        )
        self.client.initialized(types.InitializedParams())
        return result

    def stop(self) -> None:
        try:
            self.run(self.client.shutdown_async(None))
            self.client.exit(None)
            self.run(self.client.stop())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_PATIENCE)
            self._loop.close()

    # -- texts --

    def uri(self, name: str) -> str:
        return (self.root / name).as_uri()

    def document(self, name: str) -> types.TextDocumentIdentifier:
        return types.TextDocumentIdentifier(self.uri(name))

    def open(self, name: str, text: str | None = None) -> str:
        """Open a file as it is on disk, or with ``text``."""
        if text is None:
            text = (self.root / name).read_bytes().decode()
        self._versions[name] = 1
        item = types.TextDocumentItem(self.uri(name), "layer", 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return text

    def close(self) -> None:
        """Close all files."""
        for name in self._versions:
            self.client.text_document_did_close(types.DidCloseTextDocumentParams(self.document(name)))
        self._versions.clear()

    def type(self, name: str, text: str) -> None:
        """The text of a file becomes another one."""
        self._versions[name] += 1
        identifier = types.VersionedTextDocumentIdentifier(self._versions[name], self.uri(name))
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [change]))

    def diagnostics(
        self, name: str, wanted: Callable[[list[types.Diagnostic]], bool] | None = None
    ) -> list[types.Diagnostic]:
        """What the server says of the newest version of a file, once ``wanted`` is true of it."""
        uri = self.uri(name)

        def current() -> bool:
            found = self.published.get(uri)
            if found is None or found.version not in (None, self._versions.get(name)):
                return False
            return wanted is None or wanted(list(found.diagnostics))

        with self._news:
            assert self._news.wait_for(current, _PATIENCE), self.published.get(uri)
            return list(self.published[uri].diagnostics)

    def message(self) -> str:
        with self._news:
            assert self._news.wait_for(lambda: bool(self.messages), _PATIENCE)
            return self.messages.pop(0)

    # -- questions; a place is the file and a text in it with `|` where the cursor is --

    def position(self, name: str, marked: str, text: str | None = None) -> types.Position:
        """The place of `|` in ``marked``, a piece of the file that occurs in it once."""
        text = (self.root / name).read_bytes().decode() if text is None else text
        piece = marked.replace("|", "")
        assert text.count(piece) == 1, piece
        offset = text.index(piece) + marked.index("|")
        line = text.count("\n", 0, offset)
        start = text.rfind("\n", 0, offset) + 1
        return types.Position(line, len(text[start:offset].encode("utf-16-le")) // 2)

    def hover(self, name: str, marked: str) -> str:
        params = types.HoverParams(self.document(name), self.position(name, marked))
        found = self.run(self.client.text_document_hover_async(params))
        if found is None:
            return ""
        assert isinstance(found.contents, types.MarkupContent)
        return found.contents.value

    def definition(self, name: str, marked: str) -> list[tuple[str, str]]:
        """File and text of each place where it is defined."""
        params = types.DefinitionParams(self.document(name), self.position(name, marked))
        found = self.run(self.client.text_document_definition_async(params))
        assert isinstance(found, list)
        return [self.shown(item) for item in found if isinstance(item, types.Location)]

    def references(self, name: str, marked: str, *, declaration: bool = True) -> list[tuple[str, int]]:
        """File and line (from 1) of each place."""
        params = types.ReferenceParams(
            types.ReferenceContext(declaration), self.document(name), self.position(name, marked)
        )
        found = self.run(self.client.text_document_references_async(params)) or []
        return [(self.shown(item)[0], item.range.start.line + 1) for item in found]

    def complete(self, name: str, position: types.Position) -> dict[str, types.CompletionItem]:
        params = types.CompletionParams(self.document(name), position)
        found = self.run(self.client.text_document_completion_async(params))
        items = found.items if isinstance(found, types.CompletionList) else found or []
        return {item.label: item for item in items}

    def typed(self, name: str, marked: str) -> dict[str, types.CompletionItem]:
        """What is proposed at the `|` of a text that is the whole file."""
        text = marked.replace("|", "", 1)
        self.type(name, text)
        offset = marked.index("|")
        line = text.count("\n", 0, offset)
        return self.complete(name, types.Position(line, offset - text.rfind("\n", 0, offset) - 1))

    def rename(self, name: str, marked: str, new: str) -> dict[str, str]:
        """The new text of each file that changes."""
        params = types.RenameParams(self.document(name), self.position(name, marked), new)
        edit = self.run(self.client.text_document_rename_async(params))
        assert edit is not None
        assert edit.changes is not None
        return {
            Path(uri.removeprefix("file://")).relative_to(self.root).as_posix(): apply(
                Path(uri.removeprefix("file://")).read_bytes().decode(), list(edits)
            )
            for uri, edits in edit.changes.items()
        }

    def shown(self, location: types.Location) -> tuple[str, str]:
        path = Path(location.uri.removeprefix("file://"))
        text = path.read_bytes().decode()
        return path.relative_to(self.root).as_posix(), piece(text, location.range)


def offset_of(text: str, position: types.Position) -> int:
    """The offset of a position, counted in UTF-16 as the protocol says, by other means than the server's."""
    lines = text.replace("\r\n", "\r\r").replace("\r\r", "\r\n").split("\n")
    before = sum(len(line) + 1 for line in lines[: position.line])
    encoded = lines[position.line].encode("utf-16-le")[: 2 * position.character]
    return before + len(encoded.decode("utf-16-le"))


def piece(text: str, place: types.Range) -> str:
    return text[offset_of(text, place.start) : offset_of(text, place.end)]


def apply(text: str, edits: list[types.TextEdit]) -> str:
    for edit in sorted(edits, key=lambda edit: (edit.range.start.line, edit.range.start.character), reverse=True):
        start, end = offset_of(text, edit.range.start), offset_of(text, edit.range.end)
        text = text[:start] + edit.new_text + text[end:]
    return text


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """One server for all tests of a worker: it serves any number of projects."""
    found = Editor(tmp_path_factory.mktemp("editor"))
    found.start()
    try:
        yield found
    finally:
        found.stop()


@pytest.fixture
def editor(server: Editor, tmp_path: Path) -> Iterator[Editor]:
    """An editor in an empty project."""
    server.root = tmp_path / "project"
    (server.root / "layers.d" / "lib").mkdir(parents=True)
    server.messages.clear()
    yield server
    server.close()
