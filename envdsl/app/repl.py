"""``envdsl repl``: expressions and declarations, one after the other, with the project in scope.

Declarations that are typed form a file of their own in the project's root, which is evaluated with the project's: so
they may be anything that a layer file may hold, and a later one of the same name replaces an earlier one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from envdsl.app.language import specification
from envdsl.errors import Diagnostic, EnvdslError
from envdsl.evaluate.builtins import DOCUMENTATION, GLOBALS, TOPICS
from envdsl.evaluate.exploration import Exploration
from envdsl.evaluate.reader import DirectoryReader
from envdsl.evaluate.render import render_nix
from envdsl.evaluate.schema import ATTRIBUTES
from envdsl.evaluate.values import type_name
from envdsl.model.span import Source
from envdsl.syntax import tree
from envdsl.syntax.parser import parse_expression, parse_file
from envdsl.syntax.printer import format_expression
from envdsl.syntax.tolerant import is_unfinished

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.evaluate.values import Slot, Value

INPUT = "<repl>"
"""The path that texts of the prompt have in messages."""

_DEFINITION = re.compile(r"\s*([a-zA-Z_][a-zA-Z0-9_'-]*)\s*=(?!=)(.*)", re.DOTALL)
_DECLARATION = re.compile(r"\s*(?:base|x|iso|let|import|for)\b")
_PATH = re.compile(r"(?:[a-zA-Z_][a-zA-Z0-9_'-]*\.)*[a-zA-Z0-9_'-]*\Z")
_LONGEST = 100_000  # characters of a value that is set in lines


@dataclass(frozen=True, slots=True)
class Answer:
    """``text`` is the result, ``diagnostics`` what was wrong. ``unfinished``: the text goes on in the next line, and
    is to be given again with it. ``done``: the person wants to leave."""

    text: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()
    unfinished: bool = False
    done: bool = False


@dataclass(slots=True)
class Prompt:
    """The state of one conversation. Nothing that is typed raises: errors are answers."""

    project: Project
    _declared: dict[str, str] = field(default_factory=dict)  # by what it declares: the text
    _loaded: list[str] = field(default_factory=list)
    _exploration: Exploration | None = None

    def answer(self, text: str) -> Answer:
        """What to say to ``text``: a command, declarations, or an expression."""
        if not text.strip():
            return Answer()
        try:
            if text.lstrip().startswith(":"):
                return self._command(text.strip())
            return self._entered(text)
        except EnvdslError as error:
            return Answer(diagnostics=error.diagnostics)

    # -- texts --

    def _entered(self, text: str) -> Answer:
        source = Source(INPUT, text)
        is_declaration = _DECLARATION.match(text) is not None  # `base a { }` would be a call too
        if is_declaration and _is(parse_file, source):
            return self._declare(text)
        if _is(parse_expression, source):
            return Answer(self._shown(self._exploring().expression(source, self.names())))
        definition = _DEFINITION.fullmatch(text)
        if definition is not None:
            value = definition[2].rstrip().removesuffix(";")
            if is_unfinished(value, "expression"):
                return Answer(unfinished=True)
            return self._declare(f"let {definition[1]} ={value}\n;")
        if is_unfinished(text, "expression") or (is_declaration and is_unfinished(text, "file")):
            return Answer(unfinished=True)
        (parse_file if is_declaration else parse_expression)(source)
        raise AssertionError("this has been parsed before, with errors")

    def _declare(self, text: str) -> Answer:
        """Add the declarations of ``text`` to those that were typed before, if the project is right with them."""
        file = parse_file(Source(INPUT, text))
        before = dict(self._declared)
        for declaration in file.declarations:
            span = declaration.span
            self._declared.pop(_declares(declaration), None)
            self._declared[_declares(declaration)] = text[span.start : span.end]
        self._exploration = None
        found = [item for item in self._exploring().diagnostics if item.span and item.span.source.path == INPUT]
        if found:
            self._declared, self._exploration = before, None
        return Answer(diagnostics=tuple(found))

    def _shown(self, slot: Slot) -> str:
        text = render_nix(self._exploring().evaluate(slot))
        if len(text) > _LONGEST:
            return text
        try:
            return format_expression(Source(INPUT, text)).rstrip("\n")
        except EnvdslError:
            return text  # it holds functions, which have no notation

    # -- the project --

    def _exploring(self) -> Exploration:
        if self._exploration is None:
            reader = _WithInput(DirectoryReader(self.project.config.root), "\n".join(self._declared.values()))
            self._exploration = Exploration(
                (*self.project.layer_files, *self._loaded, *([INPUT] if self._declared else [])),
                reader,
                default_platforms=self.project.config.platforms,
                trace=self.project.reporter.trace,
            )
        return self._exploration

    def names(self) -> Mapping[str, Slot]:
        """What an expression sees besides the builtins; what was typed hides what was loaded, and that the layers."""
        exploration = self._exploring()
        layers: dict[str, Slot] = {name: _value(specification(spec)) for name, spec in exploration.specs.items()}
        names: dict[str, Slot] = {name: value for name, value in layers.items() if name not in GLOBALS}
        names["layers"] = layers
        for path in (*self._loaded, INPUT):
            names.update(exploration.names(path))
        return names

    # -- commands --

    def _command(self, text: str) -> Answer:
        word, _, rest = text.partition(" ")
        command = COMMANDS.get(word)
        if command is None:
            from envdsl.evaluate.values import did_you_mean

            hint = did_you_mean(word, COMMANDS) or "`:help` lists the commands"
            raise EnvdslError.of("repl-unknown-command", f"there is no command `{word}`", hint=hint)
        return command.run(self, rest.strip())

    def _type(self, text: str) -> Answer:
        slot = self._exploring().expression(Source(INPUT, text), self.names())
        return Answer(type_name(self._exploring().head(slot)))

    def _documentation(self, name: str) -> Answer:
        if not name:
            topics = (f"{topic.title}: {' '.join(sorted(topic.functions))}" for topic in TOPICS)
            return Answer("\n".join((*topics, f"Attributes of layers: {' '.join(ATTRIBUTES)}")))
        name = name.removeprefix("builtins.")
        if name in DOCUMENTATION:
            entry = DOCUMENTATION[name]
            return Answer(f"{entry.signature}\n  {entry.summary}\n  {entry.example}  =>  {entry.result}")
        if name in ATTRIBUTES:
            attribute = ATTRIBUTES[name]
            return Answer(f"{attribute.name}: {attribute.form}\n  {attribute.summary}")
        from envdsl.evaluate.values import did_you_mean

        hint = did_you_mean(name, [*DOCUMENTATION, *ATTRIBUTES]) or "`:doc` lists all there is"
        raise EnvdslError.of("repl-undocumented", f"there is no builtin or attribute `{name}`", hint=hint)

    def _load(self, path: str) -> Answer:
        root = self.project.config.root.resolve()
        file = (Path.cwd() / path).resolve()
        if not path or not file.is_file():
            raise EnvdslError.of("repl-load", f"there is no file `{path}`", hint="`:load layers.d/office.layer`")
        if not file.is_relative_to(root):
            raise EnvdslError.of("repl-load", f"{path} lies outside of the project {root}")
        inside = file.relative_to(root).as_posix()
        self._loaded = [*(other for other in self._loaded if other != inside), inside]
        self._exploration = None
        found = [item for item in self._exploring().diagnostics if item.span and item.span.source.path == inside]
        return Answer(" ".join(self._exploring().names(inside)), tuple(found))

    def _layers(self, _: str) -> Answer:
        specs = self._exploring().specs.values()
        rows = [
            f"{spec.kind.value:<5} {spec.name}{f' on {spec.base}' if spec.base else ''}, Python {spec.python}"
            for spec in specs
        ]
        return Answer("\n".join(rows), self._exploring().diagnostics)

    def _reload(self, _: str) -> Answer:
        self.project.reread()
        self._exploration = None
        return Answer(diagnostics=self._exploring().diagnostics)

    def _help(self, _: str) -> Answer:
        lines = [f"{command.usage:<12} {command.summary}" for command in _COMMANDS]
        return Answer("\n".join(("EXPRESSION   its value", "NAME = …     a name for a value; any declaration", *lines)))

    def _leave(self, _: str) -> Answer:
        return Answer(done=True)

    # -- completion --

    def complete(self, line: str) -> tuple[int, list[str]]:
        """What the end of ``line`` could become, and where in it that begins."""
        start = 0
        if line.startswith(":"):
            word, space, rest = line.partition(" ")
            start = len(line) - len(rest)
            if not space:
                return 0, [name for name in COMMANDS if name.startswith(word)]
            if word == ":doc":
                return start, sorted(name for name in (*DOCUMENTATION, *ATTRIBUTES) if name.startswith(rest))
            if word == ":load":
                return start, [path for path in self.project.layer_files if path.startswith(rest)]
        match = _PATH.search(line, start)
        path, _, word = (match[0] if match else "").rpartition(".")
        try:
            known = self._members(path) if path else (*self.names(), *GLOBALS)
        except EnvdslError:
            known = ()
        before = f"{path}." if path else ""
        found = sorted({f"{before}{name}" for name in known if name.startswith(word)})
        return (match.start() if match else len(line)), found

    def _members(self, path: str) -> Iterable[str]:
        exploration = self._exploring()
        value = exploration.head(exploration.expression(Source(INPUT, path), self.names()))
        return [str(name) for name in value] if isinstance(value, dict) else ()


def _is(parse: Callable[[Source], object], source: Source) -> bool:
    """Whether a text can be parsed so."""
    try:
        parse(source)
    except EnvdslError:
        return False
    return True


def _declares(declaration: tree.Declaration) -> str:
    """What a declaration is replaced by: another one of that."""
    match declaration:
        case tree.LetDeclaration(name=name) | tree.Import(alias=name):
            return f"let {name.text}"
        case tree.LayerDeclaration(name=tree.Name(text=text)):
            return f"layer {text}"
    span = declaration.span
    return span.source.text[span.start : span.end]


def _value(data: object) -> Value:
    """Plain data as a value of the language."""
    if isinstance(data, Mapping):
        return {str(name): _value(item) for name, item in data.items()}
    if isinstance(data, (list, tuple)):
        return [_value(item) for item in data]
    assert data is None or isinstance(data, (str, int))
    return data


@dataclass(frozen=True, slots=True)
class _WithInput:
    """A project with one file more: what was typed."""

    disk: DirectoryReader
    text: str

    def read(self, path: str) -> bytes:
        return self.text.encode("utf-8", errors="replace") if path == INPUT else self.disk.read(path)

    def exists(self, path: str) -> bool:
        return self.disk.exists(path)

    def is_dir(self, path: str) -> bool:
        return self.disk.is_dir(path)


@dataclass(frozen=True, slots=True)
class Command:
    usage: str
    summary: str
    run: Callable[[Prompt, str], Answer]


_COMMANDS = (
    Command(":t EXPR", "the type of an expression", Prompt._type),
    Command(":doc NAME", "what a builtin, or an attribute of layers, does", Prompt._documentation),
    Command(":layers", "the layers of the project", Prompt._layers),
    Command(":load FILE", "take the names of a layer file into scope", Prompt._load),
    Command(":reload", "read all files again", Prompt._reload),
    Command(":help", "this list", Prompt._help),
    Command(":q", "leave (Ctrl-D does too)", Prompt._leave),
)
COMMANDS: Mapping[str, Command] = {command.usage.split()[0]: command for command in _COMMANDS}
