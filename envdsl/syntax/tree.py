"""The syntax tree: what :func:`envdsl.syntax.parser.parse_file` and ``parse_expression`` give.

Every node carries its span, and a file keeps its comments, so that the formatter and the language
server can work from the tree alone. Nodes are frozen, and compared by identity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from envdsl.model.names import LayerKind
from envdsl.model.span import Source, Span


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    span: Span


# -- expressions ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Integer(Node):
    value: int


@dataclass(frozen=True, slots=True, eq=False)
class String(Node):
    """``"…"`` or ``''…''``: literal text with escapes and indentation already resolved, and ``${}`` parts."""

    parts: tuple[str | Expression, ...]
    indented: bool


@dataclass(frozen=True, slots=True, eq=False)
class PathLiteral(Node):
    """``./x`` or ``../x``, as written: relative to the directory of the file that it stands in."""

    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Variable(Node):
    """A name; ``true``, ``false`` and ``null`` are names too, as in Nix."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Name(Node):
    """A static attribute name: an identifier or a string without ``${}``."""

    text: str


@dataclass(frozen=True, slots=True, eq=False)
class DynamicName(Node):
    """``${e}`` or ``"a${e}"`` where an attribute name stands."""

    expression: Expression


AttributeName: TypeAlias = Name | DynamicName


@dataclass(frozen=True, slots=True, eq=False)
class Select(Node):
    """``target.a.b`` and ``target.a.b or default``."""

    target: Expression
    path: tuple[AttributeName, ...]
    default: Expression | None


@dataclass(frozen=True, slots=True, eq=False)
class HasAttribute(Node):
    """``target ? a.b``."""

    target: Expression
    path: tuple[AttributeName, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Apply(Node):
    function: Expression
    argument: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Field(Node):
    """One formal of a set pattern: ``name`` or ``name ? default``."""

    name: str
    default: Expression | None


@dataclass(frozen=True, slots=True, eq=False)
class Pattern(Node):
    """``{ a, b ? 1, ... }``, with ``bind`` for the name of ``p@{ … }`` or ``{ … }@p``."""

    fields: tuple[Field, ...]
    open: bool
    bind: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Lambda(Node):
    parameter: Name | Pattern
    body: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Binding(Node):
    """``a.b = value;``."""

    path: tuple[AttributeName, ...]
    value: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Inherit(Node):
    """``inherit a b;`` or ``inherit (source) a b;``."""

    source: Expression | None
    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True, eq=False)
class AttributeSet(Node):
    bindings: tuple[Binding | Inherit, ...]
    recursive: bool


@dataclass(frozen=True, slots=True, eq=False)
class ListLiteral(Node):
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Let(Node):
    bindings: tuple[Binding | Inherit, ...]
    body: Expression


@dataclass(frozen=True, slots=True, eq=False)
class If(Node):
    condition: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Assert(Node):
    condition: Expression
    body: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Unary(Node):
    """``operator`` is ``-`` or ``!``."""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Binary(Node):
    """``operator`` is one of ``++ // + - * / == != < <= > >= && || ->``."""

    operator: str
    left: Expression
    right: Expression


Expression: TypeAlias = (
    Integer
    | String
    | PathLiteral
    | Variable
    | Select
    | HasAttribute
    | Apply
    | Lambda
    | AttributeSet
    | ListLiteral
    | Let
    | If
    | Assert
    | Unary
    | Binary
)

# -- declarations --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Import(Node):
    """``import "lib/common.layer" as common;``; the path is relative to the importing file."""

    path: Name
    alias: Name


@dataclass(frozen=True, slots=True, eq=False)
class LetDeclaration(Node):
    """``let name = value;``: exactly one binding."""

    name: Name
    value: Expression


@dataclass(frozen=True, slots=True, eq=False)
class LayerDeclaration(Node):
    """``base name { … }``, ``x name on base { … }``, ``iso name { … }``.

    ``name`` is a :class:`Name` (identifier, or string without ``${}``) or a :class:`DynamicName` whose
    expression is a :class:`String`. ``on`` is given for ``x`` alone: a path of names (``common.office``),
    or one string, which may hold ``${}``.
    """

    kind: LayerKind
    name: AttributeName
    on: tuple[AttributeName, ...] | None
    body: AttributeSet


@dataclass(frozen=True, slots=True, eq=False)
class For(Node):
    """``for (variable in items) { declarations }``."""

    variable: Name
    items: Expression
    declarations: tuple[Declaration, ...]


Declaration: TypeAlias = Import | LetDeclaration | LayerDeclaration | For


@dataclass(frozen=True, slots=True, eq=False)
class Comment(Node):
    """``# …`` to the end of the line or ``/* … */``, delimiters included."""

    text: str


@dataclass(frozen=True, slots=True, eq=False)
class File:
    """One parsed ``.layer`` file; the output of the room ``syntax``."""

    source: Source
    declarations: tuple[Declaration, ...]
    comments: tuple[Comment, ...]
