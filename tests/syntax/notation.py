"""Trees in a compact notation, fully parenthesised, so that a test can state one on a line."""

from __future__ import annotations

from typing import get_args

from envdsl.errors import Diagnostic, EnvdslError
from envdsl.model.span import Source
from envdsl.syntax import tree
from envdsl.syntax.depth import children
from envdsl.syntax.parser import parse_expression, parse_file

EXPRESSIONS = get_args(tree.Expression)


def source(text: str) -> Source:
    return Source("test.layer", text)


def shape(text: str) -> str:
    """The notation of the tree of an expression."""
    return show(parse_expression(source(text)))


def shapes(text: str) -> list[str]:
    """The notations of all declarations of a file."""
    return [show(declaration) for declaration in parse_file(source(text)).declarations]


def findings(text: str, *, expression: bool = False) -> list[Diagnostic]:
    """What is wrong with a file, or with an expression; empty where nothing is."""
    try:
        (parse_expression if expression else parse_file)(source(text))
    except EnvdslError as error:
        return list(error.diagnostics)
    return []


def nodes(root: tree.File | tree.Node) -> list[tree.Node]:
    """All nodes, parents first."""
    found: list[tree.Node] = list(root.declarations) if isinstance(root, tree.File) else [root]
    for node in found:
        found.extend(children(node))
    return found


def show(node: object) -> str:
    match node:
        case str():
            return repr(node)
        case tree.Integer(value=value):
            return str(value)
        case tree.Variable(name=name):
            return name
        case tree.PathLiteral(text=text):
            return f"<{text}>"
        case tree.String(parts=parts, indented=indented):
            return ("indented" if indented else "string") + f"({' '.join(map(show, parts))})"
        case tree.Name(text=text):
            return text
        case tree.DynamicName(expression=expression):
            return f"${{{show(expression)}}}"
        case tree.Select(target=target, path=path, default=default):
            selected = f"{show(target)}.{_path(path)}"
            return f"({selected})" if default is None else f"({selected} or {show(default)})"
        case tree.HasAttribute(target=target, path=path):
            return f"({show(target)} ? {_path(path)})"
        case tree.Apply(function=function, argument=argument):
            return f"({show(function)} {show(argument)})"
        case tree.Lambda(parameter=parameter, body=body):
            return f"({show(parameter)}: {show(body)})"
        case tree.Pattern(fields=fields, open=is_open, bind=bind):
            inside = [*map(show, fields), *(["..."] if is_open else [])]
            return f"{{{', '.join(inside)}}}" + (f"@{bind}" if bind else "")
        case tree.Field(name=name, default=default):
            return name if default is None else f"{name} ? {show(default)}"
        case tree.Binding(path=path, value=value):
            return f"{_path(path)} = {show(value)};"
        case tree.Inherit(source=origin, names=names):
            return " ".join(["inherit", *([f"({show(origin)})"] if origin else []), *map(show, names)]) + ";"
        case tree.AttributeSet(bindings=bindings, recursive=recursive):
            return ("rec " if recursive else "") + f"{{{' '.join(map(show, bindings))}}}"
        case tree.ListLiteral(items=items):
            return f"[{' '.join(map(show, items))}]"
        case tree.Let(bindings=bindings, body=body):
            return f"(let {''.join(show(binding) + ' ' for binding in bindings)}in {show(body)})"
        case tree.If(condition=condition, then=then, otherwise=otherwise):
            return f"(if {show(condition)} then {show(then)} else {show(otherwise)})"
        case tree.Assert(condition=condition, body=body):
            return f"(assert {show(condition)}; {show(body)})"
        case tree.Unary(operator=operator, operand=operand):
            return f"({operator}{show(operand)})"
        case tree.Binary(operator=operator, left=left, right=right):
            return f"({show(left)} {operator} {show(right)})"
        case tree.Import(path=path, alias=alias):
            return f"import {show(path)} as {show(alias)}"
        case tree.LetDeclaration(name=name, value=value):
            return f"let {show(name)} = {show(value)}"
        case tree.LayerDeclaration(kind=kind, name=name, on=on, body=body):
            return f"{kind} {show(name)}" + (f" on {_path(on)}" if on else "") + f" {show(body)}"
        case tree.For(variable=variable, items=items, declarations=declarations):
            return f"for {show(variable)} in {show(items)}: " + "; ".join(map(show, declarations))
    raise AssertionError(f"no notation for {node!r}")


def _path(path: tuple[object, ...]) -> str:
    return ".".join(map(show, path))
