"""A project with unsaved texts over its files: parsed, linked and evaluated, each only as far as something changed."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from envdsl import config as configuration
from envdsl.app.formatting import imported_paths
from envdsl.app.project import Project
from envdsl.errors import Diagnostic, EnvdslError
from envdsl.evaluate.analysis.links import Links
from envdsl.evaluate.analysis.names import Names, names_of
from envdsl.evaluate.analysis.rename import Edits
from envdsl.evaluate.exploration import Exploration
from envdsl.evaluate.reader import DirectoryReader
from envdsl.model.span import Source, Span
from envdsl.reporter import Reporter
from envdsl.syntax.decode import decode
from envdsl.syntax.parser import parse_file
from envdsl.syntax.tolerant import Reading, read_file

if TYPE_CHECKING:
    from envdsl.evaluate.analysis.links import Link
    from envdsl.evaluate.modules import Parse
    from envdsl.lock.lock import Lock
    from envdsl.syntax import tree


class Workspace:
    """One project. Paths are POSIX and relative to ``root``; all methods may be called from any thread."""

    def __init__(self, root: Path, reporter: Reporter | None = None) -> None:
        self.root = root
        self.lock = threading.RLock()
        self._reporter = reporter or Reporter()
        self._texts: dict[str, str] = {}
        self._readings: dict[str, tuple[bytes, Reading]] = {}
        self._names: dict[str, tuple[Reading, Names]] = {}
        self._trees: dict[str, tuple[bytes, tree.File]] = {}
        self._files: tuple[str, ...] | None = None
        self._links: Links | None = None
        self._exploration: Exploration | None = None
        self._locks: dict[str, tuple[tuple[int, int], Lock | None]] = {}
        self._project: Project | None = None

    @classmethod
    def around(cls, file: Path, reporter: Reporter | None = None) -> Workspace:
        """The project that ``file`` lies in, or its directory where it lies in none."""
        return cls(configuration.find_root(file.parent) or file.parent, reporter)

    # -- the texts --

    def change(self, path: str, text: str | None) -> None:
        """The editor shows ``text`` for a file; None: it shows it no longer, what is on disk counts."""
        with self.lock:
            if text is None:
                self._texts.pop(path, None)
            else:
                self._texts[path] = text
            self._forget()

    def refresh(self) -> None:
        """Files on disk have changed."""
        with self.lock:
            self._project = None
            self._locks.clear()
            self._forget()

    def _forget(self) -> None:
        self._files = self._links = self._exploration = None

    @property
    def project(self) -> Project:
        """The project as it is on disk. Raises EnvdslError for a wrong ``envdsl.toml``."""
        with self.lock:
            if self._project is None:
                self._project = Project(configuration.load(self.root), self._reporter)
            return self._project

    @property
    def files(self) -> tuple[str, ...]:
        """The layer files of the project, on disk or open, and all that they import."""
        with self.lock:
            if self._files is None:
                self._files = tuple(sorted(self._listed()))
            return self._files

    def _listed(self) -> list[str]:
        try:
            listed = dict.fromkeys(self.project.layer_files)
        except EnvdslError:
            listed = {}
        listed.update(dict.fromkeys(self._texts))
        pending = list(listed)
        for path in pending:
            for imported in imported_paths(path, self.reading(path).file):
                if imported not in listed and not imported.startswith("../") and self._data(imported) is not None:
                    listed[imported] = None
                    pending.append(imported)
        return pending

    def _data(self, path: str) -> bytes | None:
        if path in self._texts:
            return self._texts[path].encode("utf-8", errors="replace")
        try:
            return DirectoryReader(self.root).read(path)
        except EnvdslError:
            return None

    def text(self, path: str) -> str:
        return self.reading(path).file.source.text

    def reading(self, path: str) -> Reading:
        """The tree of a file as far as it goes, and its syntax errors."""
        with self.lock:
            data = self._data(path) or b""
            known = self._readings.get(path)
            if known is None or known[0] != data:
                known = self._readings[path] = data, _read(path, data)
            return known[1]

    # -- what follows from them --

    def names(self, path: str) -> Names:
        with self.lock:
            reading = self.reading(path)
            known = self._names.get(path)
            if known is None or known[0] is not reading:
                known = self._names[path] = reading, names_of(reading.file)
            return known[1]

    @property
    def links(self) -> Links:
        with self.lock:
            if self._links is None:
                self._links = Links({path: self.names(path) for path in self.files})
            return self._links

    @property
    def exploration(self) -> Exploration:
        with self.lock:
            if self._exploration is None:
                self._exploration = self._explore(self._parse)
            return self._exploration

    def exploration_with(self, path: str, file: tree.File) -> Exploration:
        """What the project would be with ``file`` in place of what the editor shows for ``path``."""
        with self.lock:
            return self._explore(lambda other, data: file if other == path else self._parse(other, data))

    def _explore(self, parse: Parse) -> Exploration:
        try:
            platforms = self.project.config.platforms
        except EnvdslError:
            platforms = configuration.Config(self.root, self.root).platforms
        return Exploration(self.files, _Overlay(self), default_platforms=platforms, parse=parse)

    def _parse(self, path: str, data: bytes) -> tree.File:
        """The tree of a file without errors: one that did not change is not parsed again."""
        known = self._trees.get(path)
        if known is None or known[0] != data:
            reading = self._readings.get(path)
            if reading is not None and reading[0] == data and not reading[1].diagnostics:
                known = data, reading[1].file
            else:
                known = data, parse_file(decode(path, data))
            self._trees[path] = known
        return known[1]

    def diagnostics(self) -> Mapping[str, tuple[Diagnostic, ...]]:
        """What is wrong with each file of the project; files without errors are there too."""
        with self.lock:
            found: dict[str, list[Diagnostic]] = {path: [] for path in self.files}
            for diagnostic in self.exploration.diagnostics:
                path = diagnostic.span.source.path if diagnostic.span is not None else ""
                found.get(path, next(iter(found.values()), [])).append(diagnostic)
            return {path: tuple(items) for path, items in found.items()}

    @property
    def locked_layers(self) -> list[str]:
        """The layers that have a lock file."""
        try:
            config = self.project.config
        except EnvdslError:
            return []
        locks = (config.root / config.locks).glob("pylock.*.toml")
        return sorted(path.name.removeprefix("pylock.").removesuffix(".toml") for path in locks)

    def read_lock(self, layer: str) -> Lock | None:
        """The lock of a layer; None where there is none that can be read. Read again when its file changes."""
        with self.lock:
            try:
                path = self.project.config.lock_path(layer)
                status = path.stat()
            except (EnvdslError, OSError):
                return None
            stamp = status.st_mtime_ns, status.st_size
            known = self._locks.get(layer)
            if known is None or known[0] != stamp:
                from envdsl.lock.pylock import read_lock

                try:
                    known = stamp, read_lock(path)
                except EnvdslError:
                    known = stamp, None
                self._locks[layer] = known
            return known[1]

    # -- names --

    def link(self, path: str, offset: int) -> Link | None:
        """What the place speaks of."""
        with self.lock:
            return self.links.at(path, offset)

    def definition(self, path: str, offset: int) -> list[Span]:
        """Where that is defined; for the path of an ``import``, the beginning of that file."""
        with self.lock:
            imported = self._imported_at(path, offset)
            if imported is not None:
                return [Span(self.reading(imported).file.source, 0, 0)]
            link = self.link(path, offset)
            return list(link.target.sites) if link is not None else []

    def _imported_at(self, path: str, offset: int) -> str | None:
        for definition in self.names(path).definitions:
            node = definition.node
            place = getattr(node, "path", None)
            span = getattr(place, "span", None)
            if span is not None and span.start <= offset <= span.end:
                names = self.links.imported(definition)
                return names.path if names is not None else None
        return None

    def references(self, path: str, offset: int, *, definition: bool) -> list[Span]:
        with self.lock:
            link = self.link(path, offset)
            return self.links.references(link.target, definition=definition) if link is not None else []

    def renamable(self, path: str, offset: int) -> Span:
        """The name at the place. Raises EnvdslError where it cannot be renamed."""
        from envdsl.evaluate.analysis import rename

        with self.lock:
            link = self._named(path, offset)
            rename.check(self.links, link.target)
            return link.span

    def rename(self, path: str, offset: int, new: str) -> Edits:
        """The edits that give the name at the place another one. Raises EnvdslError where that is not safe."""
        from envdsl.evaluate.analysis import rename
        from envdsl.evaluate.builtins import GLOBALS

        with self.lock:
            link = self._named(path, offset)
            broken = [other for other in self.files if self.reading(other).diagnostics]
            if broken:
                raise EnvdslError.of(
                    "app-rename", f"{broken[0]} has syntax errors, so not all places of the name can be seen"
                )
            return rename.rename(self.links, link.target, new, GLOBALS.__contains__)

    def _named(self, path: str, offset: int) -> Link:
        link = self.link(path, offset)
        if link is None:
            raise EnvdslError.of("app-rename", "there is no name of this project here")
        return link

    # -- layers --

    def layers_at(self, path: str, offset: int) -> list[str]:
        """The layers that the declaration around the place declares; several inside of a loop."""
        with self.lock:
            for declaration, _, _ in self.names(path).layers:
                if declaration.span.start <= offset <= declaration.span.end:
                    return [
                        layer.name
                        for layer in self.exploration.layers.values()
                        if layer.file == path and layer.span.start == declaration.name.span.start
                    ]
            return []


def _read(path: str, data: bytes) -> Reading:
    try:
        return read_file(decode(path, data))
    except EnvdslError as error:
        empty = read_file(Source(path, "")).file
        return Reading(empty, error.diagnostics)


class _Overlay:
    """The files of a workspace, for evaluation."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._disk = DirectoryReader(workspace.root)

    def read(self, path: str) -> bytes:
        texts = self._workspace._texts
        return texts[path].encode("utf-8", errors="replace") if path in texts else self._disk.read(path)

    def exists(self, path: str) -> bool:
        return path in self._workspace._texts or self._disk.exists(path)

    def is_dir(self, path: str) -> bool:
        return self._disk.is_dir(path)
