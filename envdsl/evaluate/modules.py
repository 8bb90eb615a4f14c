"""The files of a project and what they import, parsed."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from envdsl.errors import EnvdslError, Note
from envdsl.evaluate.failure import EvaluationError
from envdsl.evaluate.files import Files, resolve
from envdsl.evaluate.findings import Findings
from envdsl.model.span import Span
from envdsl.syntax import tree
from envdsl.syntax.parser import decode, parse_file

Parse: TypeAlias = Callable[[str, bytes], tree.File]
"""Path and bytes of a file to its tree. Raises EnvdslError."""

_DEEPEST = 100  # imports within imports


@dataclass(slots=True, eq=False)
class Module:
    """A file. ``parsed`` is None when it cannot be read or parsed; ``imports`` maps each ``import`` of it."""

    path: str
    parsed: tree.File | None = None
    imports: dict[tree.Import, Module] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether it and everything that it imports could be parsed."""
        return self.parsed is not None and all(module.whole for module in self.imports.values())

    @property
    def directory(self) -> str:
        return posixpath.dirname(self.path)


def parse(path: str, data: bytes) -> tree.File:
    """The tree of a file's bytes. Raises EnvdslError."""
    return parse_file(decode(path, data))


def load(paths: Iterable[str], files: Files, findings: Findings, parse: Parse = parse) -> list[Module]:
    """The modules of ``paths`` and of all that they import, each once, after what it imports itself."""
    loader = _Loader(files, findings, parse)
    for path in paths:
        findings.file(path)
    for path in paths:
        try:
            loader.load(posixpath.normpath(path))
        except EvaluationError as failure:
            findings.failed(failure)
    return loader.modules


class _Loader:
    def __init__(self, files: Files, findings: Findings, parse: Parse) -> None:
        self._files = files
        self._parse = parse
        self._findings = findings
        self._by_path: dict[str, Module] = {}
        self._open: list[tuple[str, Span | None]] = []  # the chain of imports that leads here
        self.modules: list[Module] = []

    def load(self, path: str, span: Span | None = None) -> Module:
        """Raises EvaluationError when ``path`` itself is unusable, with the import at ``span`` as the place."""
        known = self._by_path.get(path)
        if known is not None and known.path not in [opened for opened, _ in self._open]:
            return known
        if known is not None:
            raise self._cycle(path, span)
        if len(self._open) >= _DEEPEST:
            raise EvaluationError("eval-import-depth", f"more than {_DEEPEST} imports within imports", span=span)
        module = self._by_path[path] = Module(path)
        self._findings.file(path)
        data = self._files.read(path)
        self._open.append((path, span))
        try:
            module.parsed = self._parse(path, data)
        except EnvdslError as error:
            for diagnostic in error.diagnostics:
                self._findings.add(diagnostic)
        else:
            for declaration in _imports(module.parsed.declarations):
                module.imports[declaration] = self._import(module, declaration)
        self._open.pop()
        self.modules.append(module)
        return module

    def _import(self, module: Module, declaration: tree.Import) -> Module:
        place = declaration.path.span
        try:
            return self.load(resolve(module.directory, declaration.path.text), place)
        except EvaluationError as failure:
            self._findings.failed(failure, place)
            return Module(declaration.path.text)

    def _cycle(self, path: str, span: Span | None) -> EvaluationError:
        chain = self._open[[opened for opened, _ in self._open].index(path) :]
        failure = EvaluationError(
            "eval-import-cycle",
            f"`{path}` imports itself" if len(chain) == 1 else f"`{path}` imports itself by way of `{chain[-1][0]}`",
            span=span,
            hint="move what both need into a third file",
        )
        for opened, importing in reversed(chain[1:]):
            failure.note(Note(f"`{opened}` is imported here", importing))
        return failure


def _imports(declarations: Iterable[tree.Declaration]) -> Iterator[tree.Import]:
    for declaration in declarations:
        if isinstance(declaration, tree.Import):
            yield declaration
        elif isinstance(declaration, tree.For):
            yield from _imports(declaration.declarations)
