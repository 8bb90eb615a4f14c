"""The server: each request of the protocol is handed to the workspace of its file, and the answer converted.

A changed text takes effect at once; what is wrong with it is computed a moment later, in a thread, and not at all if
it has changed again by then.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any, NamedTuple

from lsprotocol import types
from pygls import uris
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from envdsl import __version__
from envdsl.app.editing import completion, outline
from envdsl.app.editing import hover as hovering
from envdsl.app.editing.workspace import Workspace
from envdsl.errors import EnvdslError
from envdsl.lsp import answers
from envdsl.lsp.positions import Positions
from envdsl.model.span import Span

LOCK = "envdsl.lock"
"""The command that locks layers; its arguments are the URI of a file and the names of the layers."""

_DELAY = 0.15  # seconds without a keystroke before errors are looked for
_WATCHED = ("**/*.layer", "**/pylock.*.toml", "**/envdsl.toml")


class Document(NamedTuple):
    """A file of the editor: its project, and its path there."""

    workspace: Workspace
    path: str
    positions: Positions

    def offset(self, position: types.Position) -> int:
        return self.positions.offset(position)


class Server(LanguageServer):
    """One server may serve several projects."""

    def __init__(self) -> None:
        super().__init__("envdsl", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full)
        self._workspaces: dict[Path, Workspace] = {}
        self._reported: dict[Path, set[str]] = {}  # the files with errors that the editor shows
        self._pending: dict[Path, asyncio.Task[None]] = {}

    @property
    def encoding(self) -> str:
        """The unit of columns that was agreed on."""
        agreed = self.workspace.position_encoding
        return str(getattr(agreed, "value", agreed) or "utf-16")

    def document(self, uri: str) -> Document | None:
        """None for what is no file on this machine."""
        name = uris.to_fs_path(uri)
        if name is None or not uri.startswith("file:"):
            return None
        file = Path(name)
        workspace = Workspace.around(file)
        workspace = self._workspaces.setdefault(workspace.root, workspace)
        path = file.relative_to(workspace.root).as_posix()
        return Document(workspace, path, self.positions(workspace.text(path)))

    def positions(self, text: str) -> Positions:
        return Positions(text, self.encoding)

    def uri(self, workspace: Workspace, path: str) -> str:
        """The URI of a file as the editor wrote it, if it did."""
        uri: str | None = uris.from_fs_path(str(workspace.root / path))
        assert uri is not None  # the path is not empty
        file = uris.to_fs_path(uri)
        known: list[str] = [open_ for open_ in self.workspace.text_documents if uris.to_fs_path(open_) == file]
        return known[0] if known else uri

    def location(self, workspace: Workspace, span: Span) -> types.Location:
        place = self.positions(span.source.text).range(span.start, span.end)
        return types.Location(self.uri(workspace, span.source.path), place)

    # -- texts --

    def changed(self, uri: str, *, closed: bool = False, delay: float = _DELAY) -> None:
        document = self.document(uri)
        if document is not None:
            text = None if closed else self.workspace.get_text_document(uri).source
            document.workspace.change(document.path, text)
            self.look_again(document.workspace, delay)

    def look_again(self, workspace: Workspace, delay: float = 0) -> None:
        """Report what is wrong after ``delay`` seconds, unless this is called again before."""
        if pending := self._pending.pop(workspace.root, None):
            pending.cancel()
        task = asyncio.get_running_loop().create_task(self._report(workspace, delay))
        task.add_done_callback(self._tell_defect)
        self._pending[workspace.root] = task

    def _tell_defect(self, task: asyncio.Task[None]) -> None:
        """Errors stay out of sight in a task that nobody waits for; the editor has a log for them."""
        if not task.cancelled() and (defect := task.exception()) is not None:
            text = f"{type(defect).__name__}: {defect} (a defect of envdsl: please report it)"
            self.window_log_message(types.LogMessageParams(types.MessageType.Error, text))

    async def _report(self, workspace: Workspace, delay: float) -> None:
        await asyncio.sleep(delay)
        found = await asyncio.to_thread(workspace.diagnostics)
        uri_of = {path: self.uri(workspace, path) for path in found}
        reported = self._reported.setdefault(workspace.root, set())
        for path, diagnostics in found.items():
            uri = uri_of[path]
            document = self.workspace.text_documents.get(uri)
            if not diagnostics and path not in reported and document is None:
                continue
            positions = self.positions(workspace.text(path))
            converted = [answers.diagnostic(item, positions, uri_of, self.encoding) for item in diagnostics]
            version = document.version if document is not None else None
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, converted, version))
        for path in reported - found.keys():  # deleted, or imported no longer
            gone = self.uri(workspace, path)
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(gone, []))
        self._reported[workspace.root] = {path for path, diagnostics in found.items() if diagnostics}

    def refresh(self) -> None:
        for workspace in self._workspaces.values():
            workspace.refresh()
            self.look_again(workspace)

    # -- the command --

    async def lock(self, uri: str, names: list[str]) -> list[dict[str, Any]]:
        """Lock layers as they are on disk, and say what became of them."""
        from envdsl.app import locking

        document = self.document(uri)
        if document is None:
            raise _failed("this file is in no project")
        workspace = document.workspace
        unsaved = [other for other in self.workspace.text_documents.values() if _is_unsaved(other.path, other.source)]
        if unsaved:
            raise _failed(f"{Path(unsaved[0].path).name} has unsaved changes: save it, then lock")
        workspace.refresh()
        try:
            outcomes = await asyncio.to_thread(locking.lock, workspace.project, names)
        except EnvdslError as error:
            text = "\n".join(diagnostic.message for diagnostic in error.diagnostics)
            self.window_show_message(types.ShowMessageParams(types.MessageType.Error, text))
            raise _failed(text) from None
        finally:
            workspace.refresh()
            self.look_again(workspace)
        text = ", ".join(f"{outcome.layer}: {outcome.status}" for outcome in outcomes)
        self.window_show_message(types.ShowMessageParams(types.MessageType.Info, text))
        return [outcome.to_json() for outcome in outcomes]


def _is_unsaved(path: str, text: str) -> bool:
    try:
        return Path(path).read_bytes() != text.encode("utf-8", errors="replace")
    except OSError:
        return True


def _failed(message: str) -> JsonRpcException:
    return JsonRpcException(message, int(types.LSPErrorCodes.RequestFailed))


def create() -> Server:
    """A server with all that it can do."""
    server = Server()
    _texts(server)
    _questions(server)
    _changes(server)
    return server


def _texts(server: Server) -> None:
    @server.feature(types.INITIALIZED)
    async def initialized(params: types.InitializedParams) -> None:
        capabilities = server.client_capabilities.workspace
        watching = capabilities.did_change_watched_files if capabilities is not None else None
        if watching is not None and watching.dynamic_registration:
            watchers = [types.FileSystemWatcher(pattern) for pattern in _WATCHED]
            options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
            registration = types.Registration("watch", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
            with contextlib.suppress(JsonRpcException):  # then files that others change are seen when one is saved
                await server.client_register_capability_async(types.RegistrationParams([registration]))

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: types.DidOpenTextDocumentParams) -> None:
        server.changed(params.text_document.uri, delay=0)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: types.DidChangeTextDocumentParams) -> None:
        server.changed(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def closed(params: types.DidCloseTextDocumentParams) -> None:
        server.changed(params.text_document.uri, closed=True)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def saved(params: types.DidSaveTextDocumentParams) -> None:
        server.refresh()

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def files_changed(params: types.DidChangeWatchedFilesParams) -> None:
        server.refresh()


def _questions(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        document = server.document(params.text_document.uri)
        if document is None:
            return None
        found = hovering.hover(document.workspace, document.path, document.offset(params.position))
        if found is None:
            return None
        return types.Hover(answers.markdown(found.text), document.positions.range(found.span.start, found.span.end))

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def definition(params: types.DefinitionParams) -> list[types.Location]:
        document = server.document(params.text_document.uri)
        if document is None:
            return []
        found = document.workspace.definition(document.path, document.offset(params.position))
        return [server.location(document.workspace, span) for span in found]

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    def references(params: types.ReferenceParams) -> list[types.Location]:
        document = server.document(params.text_document.uri)
        if document is None:
            return []
        found = document.workspace.references(
            document.path, document.offset(params.position), definition=params.context.include_declaration
        )
        return [server.location(document.workspace, span) for span in found]

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=[".", '"', "[", "="]))
    def complete(params: types.CompletionParams) -> types.CompletionList | None:
        document = server.document(params.text_document.uri)
        if document is None:
            return None
        found = completion.complete(document.workspace, document.path, document.offset(params.position))
        if found is None:
            return None
        place = document.positions.range(found.span.start, found.span.end)
        return types.CompletionList(False, [answers.item(item, place) for item in found.items])

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        document = server.document(params.text_document.uri)
        if document is None:
            return []
        file = document.workspace.reading(document.path).file
        return [answers.symbol(found, document.positions) for found in outline.outline(file.declarations)]


def _changes(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    def formatting(params: types.DocumentFormattingParams) -> list[types.TextEdit] | None:
        from envdsl.app.formatting import format_text

        document = server.document(params.text_document.uri)
        if document is None:
            return None
        text = document.workspace.text(document.path)
        after = format_text(document.path, text.encode("utf-8")).after
        if after is None or after == text:
            return None
        return [types.TextEdit(document.positions.range(0, len(text)), after)]

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    def prepare_rename(params: types.PrepareRenameParams) -> types.Range | None:
        document = server.document(params.text_document.uri)
        if document is None:
            return None
        try:
            span = document.workspace.renamable(document.path, document.offset(params.position))
        except EnvdslError as error:
            raise _failed(error.diagnostics[0].message) from None
        return document.positions.range(span.start, span.end)

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    def rename(params: types.RenameParams) -> types.WorkspaceEdit | None:
        document = server.document(params.text_document.uri)
        if document is None:
            return None
        try:
            edits = document.workspace.rename(document.path, document.offset(params.position), params.new_name)
        except EnvdslError as error:
            raise _failed(error.diagnostics[0].message) from None
        changes: dict[str, list[types.TextEdit]] = {}
        for path, found in edits.items():
            positions = server.positions(document.workspace.text(path))
            texts = [types.TextEdit(positions.range(span.start, span.end), text) for span, text in found]
            changes[server.uri(document.workspace, path)] = texts
        return types.WorkspaceEdit(changes)

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION)
    def code_actions(params: types.CodeActionParams) -> list[types.Command]:
        uri = params.text_document.uri
        document = server.document(uri)
        names = document.workspace.layers_at(document.path, document.offset(params.range.start)) if document else []
        if not names:
            return []
        title = f"Lock {names[0]}" if len(names) == 1 else f"Lock {names[0]} and {len(names) - 1} more"
        # A bare command: every client takes one, and some take a code action that holds only a command for one too.
        return [types.Command(title, LOCK, arguments=[uri, names])]

    @server.command(LOCK)
    async def lock(uri: str, names: list[str]) -> list[dict[str, Any]]:
        return await server.lock(uri, names)
