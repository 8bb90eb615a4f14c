"""Documents, built while the automaton reduces: a method for each rule or alias of ``grammar/layer.lark``.

The same automaton that makes the tree runs over the same text, with this builder in place of
:class:`~envdsl.syntax.builder.TreeBuilder`; so the layout sees every token, also the parentheses and separators
that no tree keeps. The text has been parsed before: it has no errors, and nothing in it is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from envdsl.syntax import operators
from envdsl.syntax.automaton import Token
from envdsl.syntax.formatting import chains, texts
from envdsl.syntax.formatting.chains import Chain
from envdsl.syntax.formatting.documents import (
    Doc,
    Group,
    Hug,
    IfBroken,
    Joined,
    Line,
    Nest,
    Text,
    absorbs,
    first_text,
    hugging,
    sequence,
    start_of,
)
from envdsl.syntax.formatting.trivia import Trivia

Values = list[Any]


@dataclass(frozen=True, slots=True)
class Condition:
    """``if … then … else …`` whose ``else`` may go on with another one."""

    parts: tuple[Doc, ...]

    @property
    def doc(self) -> Doc:
        return Group(Joined(self.parts))


class LayoutBuilder:
    """Builds the document of one text, whose comments ``trivia`` holds."""

    def __init__(self, text: str, trivia: Trivia) -> None:
        self.text = text
        self.trivia = trivia

    def comment(self, start: int, end: int) -> None:
        """Comments are known already."""

    def page(self, value: Any) -> Doc:
        """The whole text: what the start symbol became, and the comments behind it."""
        end = len(self.text)
        comments = self.trivia.leading.get(end)
        if not comments:
            return self._doc(value)
        return sequence(self._doc(value), Line(blank=self.trivia.blank_before(end)), Text("", comments))

    # -- tokens --

    def _word(self, token: Token, *, clings: bool = False) -> Text:
        leading = self.trivia.leading.get(token.start, ())
        return Text(
            self.text[token.start : token.end],
            leading,
            self.trivia.trailing.get(token.end, ()),
            bool(leading) and self.trivia.blank_directly_before(token.start),
            clings,
            start=token.start,
        )

    def _closing(self, token: Token) -> tuple[Doc | None, Text]:
        """A closing bracket, and the comments before it, which belong to what it closes."""
        word = self._word(token)
        if not word.leading:
            return None, word
        comments: list[Doc] = []
        if any(remark.own for remark in word.leading):
            comments.append(Text("", tuple(replace(remark, own=True) for remark in word.leading)))
        else:
            for remark in word.leading:
                comments += (Line(), Text("", (remark,)))
            del comments[0]
        return Joined(tuple(comments)), Text(word.text, (), word.trailing, start=token.start)

    def _doc(self, value: Any) -> Doc:
        """The document of any expression or name."""
        if type(value) is Token:
            return self._word(value)
        if isinstance(value, Chain):
            return chains.finish(value)
        doc: Doc = value.doc if isinstance(value, Condition) else value
        return doc

    # -- lists of values --

    def pass_through(self, values: Values) -> Any:
        return values[0]

    def empty_list(self, values: Values) -> Values:
        return []

    def first(self, values: Values) -> Values:
        return values

    pair = first

    def append(self, values: Values) -> Values:
        items: Values = values[0]
        items.append(values[1])
        return items

    def append_separated(self, values: Values) -> Values:
        items: Values
        items, separator, item = values
        items += (separator, item)
        return items

    # -- blocks --

    def _items(self, items: Sequence[Doc], closing: Doc | None) -> list[Doc]:
        """Items below one another, empty lines between them kept."""
        docs: list[Doc] = []
        for number, item in enumerate(items):
            docs += (Line(blank=number > 0 and self.trivia.blank_before(start_of(item))), item)
        if closing is not None:
            docs += (Line(), closing)
        return docs

    def _block(self, opening: Token, items: Sequence[Doc], closing: Token, before: str = "") -> Group:
        """``{ … }`` and ``[ … ]``."""
        comments, end = self._closing(closing)
        begin = self._word(opening)
        if not items and comments is None:
            return Group(sequence(begin, " ", end), absorbs=True)
        body = Nest(Joined(tuple(self._items(items, comments))))
        expanded = self.trivia.starts_line_after(opening.end)
        return Group(sequence(begin, body, Line(), end), expanded=expanded, absorbs=True)

    # -- declarations --

    def file(self, values: Values) -> Doc:
        return Joined(tuple(self._items(values[0], None)[1:]))

    def import_declaration(self, values: Values) -> Doc:
        return self._placed_words(values)

    def _placed_words(self, values: Values) -> Doc:
        *words, semicolon = values
        docs: list[Doc] = []
        for word in words:
            docs += (self._doc(word), Text(" "))
        return sequence(*docs[:-1], self._word(semicolon, clings=True))

    def let_declaration(self, values: Values) -> Doc:
        let, name, equals, value, semicolon = values
        head = sequence(self._word(let), " ", self._word(name))
        return self._assignment(head, equals, value, semicolon)

    def layer_declaration(self, values: Values) -> Doc:
        keyword, name, body = values
        return sequence(self._word(keyword), " ", self._doc(name), " ", body)

    def extension_declaration(self, values: Values) -> Doc:
        keyword, name, on, target, body = values
        head = (self._word(keyword), " ", self._doc(name), " ", self._word(on), " ")
        return sequence(*head, self._path(target), " ", body)

    def for_declaration(self, values: Values) -> Doc:
        word, opening, variable, in_, items, parenthesis, brace, declarations, end = values
        head = sequence(self._word(word), " ", self._word(opening), self._word(variable), " ", self._word(in_), " ")
        listed = self._doc(items)
        if not absorbs(listed):
            listed = Group(sequence(Nest(sequence(Line(""), listed)), Line("")))
        block = self._block(brace, declarations, end)
        if declarations:
            block = Group(block.body, expanded=True, absorbs=True)
        return sequence(head, listed, self._word(parenthesis), " ", block)

    def string_target(self, values: Values) -> Values:
        return values

    first_static_name = first
    next_static_name = append_separated

    def _path(self, names: Values) -> Doc:
        return Joined(tuple(self._doc(name) for name in names))

    # -- names --

    def static_name(self, values: Values) -> Doc:
        return self._word(values[0])

    string_name = pass_through
    inherited_string = pass_through

    def dynamic_name(self, values: Values) -> Doc:
        opening, expression, closing = values
        return texts.interpolation(self._word(opening), self._doc(expression), self._word(closing))

    # -- functions --

    def function(self, values: Values) -> Doc:
        name, colon, body = values
        return self._lambda(self._word(name), colon, body)

    def pattern_function(self, values: Values) -> Doc:
        pattern, colon, body = values
        return self._lambda(pattern, colon, body)

    def _lambda(self, parameter: Doc, colon: Token, body: Any) -> Doc:
        head = sequence(parameter, self._word(colon))
        inner = self._doc(body)
        broken = sequence(head, Line(), inner)
        return hugging(sequence(head, " "), inner, Group(broken)) or Group(broken)

    def pattern_before_name(self, values: Values) -> Doc:
        pattern, at, name = values
        return sequence(pattern, self._word(at), self._word(name))

    def pattern_after_name(self, values: Values) -> Doc:
        name, at, pattern = values
        return sequence(self._word(name), self._word(at), pattern)

    def no_formals(self, values: Values) -> Doc:
        return self._formals(values[0], [], values[-1])

    def only_ellipsis(self, values: Values) -> Doc:
        return self._formals(values[0], [self.static_name([values[1]])], values[-1])

    def closed_formals(self, values: Values) -> Doc:
        opening, fields, *comma, closing = values
        last = self._word(comma[0], clings=True) if comma else Text(",", clings=True)
        return self._formals(opening, [*fields, IfBroken(last)], closing)

    def open_formals(self, values: Values) -> Doc:
        opening, fields, comma, ellipsis, closing = values
        return self._formals(opening, [*fields, comma, self.static_name([ellipsis])], closing)

    def _formals(self, opening: Token, fields: Sequence[Any], closing: Token) -> Doc:
        items: list[Doc] = []
        for field in fields:
            if type(field) is Token:
                items[-1] = sequence(items[-1], self._word(field, clings=True))
            elif isinstance(field, IfBroken):
                items[-1] = sequence(items[-1], field)
            else:
                items.append(field)
        return self._block(opening, items, closing)

    def formal(self, values: Values) -> Doc:
        return self.static_name(values)

    def formal_with_default(self, values: Values) -> Doc:
        name, question, default = values
        head = sequence(self._word(name), " ", self._word(question))
        inner = self._doc(default)
        broken = Group(sequence(head, Nest(sequence(Line(), inner))))
        return hugging(sequence(head, " "), inner, broken) or broken

    # -- forms --

    def let(self, values: Values) -> Doc:
        word, bindings, in_, body = values
        comments, end = self._closing(in_)
        nested = Nest(Joined(tuple(self._items(bindings, comments))))
        doc = sequence(self._word(word), nested, Line(), end, Line(), self._doc(body))
        return Group(doc, expanded=self.trivia.starts_line_after(word.end))

    def empty_let(self, values: Values) -> Doc:
        word, in_, body = values
        return Group(sequence(self._word(word), " ", self._word(in_), Line(), self._doc(body)))

    def conditional(self, values: Values) -> Condition:
        if_, condition, then, yes, else_, no = values
        head = sequence(self._word(if_), " ", self._doc(condition), " ", self._word(then))
        parts: tuple[Doc, ...] = (head, Nest(sequence(Line(), self._doc(yes))), Line(), self._word(else_))
        if isinstance(no, Condition):
            return Condition((*parts, Text(" "), *no.parts))
        return Condition((*parts, Nest(sequence(Line(), self._doc(no)))))

    def assertion(self, values: Values) -> Doc:
        word, condition, semicolon, body = values
        head = sequence(self._word(word), " ", self._doc(condition), self._word(semicolon, clings=True))
        return Group(sequence(head, Line(), self._doc(body)))

    # -- operators --

    def operation(self, values: Values) -> Any:
        return operators.resolve(values[0], self.text, self._operator, self._no_clash)

    def _operator(self, token: Token, is_prefix: bool, operands: Values) -> Any:
        right = operands.pop()
        word = self._word(token)
        if is_prefix:
            operand = self._doc(right)
            # `-./a` would be a path.
            return sequence(word, " " if _is_path(first_text(operand)) else "", operand)
        left = operands.pop()
        operator = self.text[token.start : token.end]
        if operator == "?":
            return sequence(self._doc(left), " ", word, " ", self._path(right))
        return chains.join(self._operand(left), operator, word, self._operand(right))

    def _operand(self, value: Any) -> Doc | Chain:
        return value if isinstance(value, Chain) else self._doc(value)

    def _no_clash(self, first: Token, second: Token) -> None:
        raise AssertionError("the text has been parsed before")

    def begin_chain(self, values: Values) -> Values:
        operand, operator, more = values
        return [operand, operator, *more]

    def extend_chain(self, values: Values) -> Values:
        chain: Values
        chain, operator, more = values
        chain.append(operator)
        chain.extend(more)
        return chain

    begin_test = first

    def extend_test(self, values: Values) -> Values:
        chain: Values
        chain, operator, path = values
        chain += (operator, path)
        return chain

    def prefix(self, values: Values) -> Values:
        operand: Values
        operator, operand = values
        operand.insert(0, operator)
        return operand

    def application(self, values: Values) -> Doc:
        function, *arguments = (self._doc(value) for value in values[0])
        head: list[Doc] = [function]
        for argument in arguments[:-1]:
            head += (Text(" "), argument)
        rest = [part for argument in arguments for part in (Line(), argument)]
        broken = Group(sequence(function, Nest(Joined(tuple(rest)))))
        return hugging(sequence(*head, " "), arguments[-1], broken) or broken

    # -- selection --

    def select(self, values: Values) -> Doc:
        target, dot, path = values
        doc = self._doc(target)
        # `./a.b` would be a path, and `1.` a number.
        gap = " " if isinstance(doc, Text) and (_is_path(doc) or doc.text.isdigit()) else ""
        return sequence(doc, gap, self._word(dot), self._path(path))

    def select_with_default(self, values: Values) -> Doc:
        *selected, word, default = values
        return sequence(self.select(selected), " ", self._word(word), " ", self._doc(default))

    def call_of_or(self, values: Values) -> Doc:
        return sequence(self._doc(values[0]), " ", self._word(values[1]))

    # -- simple expressions --

    def variable(self, values: Values) -> Doc:
        return self._word(values[0])

    integer = variable
    path = variable

    def parenthesised(self, values: Values) -> Doc:
        opening, value, closing = values
        comments, end = self._closing(closing)
        inner = self._doc(value)
        if comments is not None:
            inner = sequence(inner, Line(), comments)
        begin = self._word(opening)
        if absorbs(inner):
            return sequence(begin, inner, end, absorbs=True)
        broken = Group(sequence(begin, Nest(sequence(Line(""), inner)), Line(""), end), absorbs=True)
        if isinstance(inner, Hug):
            return Hug(sequence(begin, inner.head), sequence(inner.tail, end, absorbs=True), broken)
        return broken

    def empty_list_literal(self, values: Values) -> Doc:
        return self._block(values[0], (), values[1])

    def list_literal(self, values: Values) -> Doc:
        opening, items, closing = values
        return self._block(opening, [self._doc(item) for item in items], closing)

    empty_set = empty_list_literal

    def set(self, values: Values) -> Doc:
        return self._block(values[0], values[1], values[2])

    def empty_recursive_set(self, values: Values) -> Doc:
        return sequence(self._word(values[0]), " ", self._block(values[1], (), values[2]), absorbs=True)

    def recursive_set(self, values: Values) -> Doc:
        return sequence(self._word(values[0]), " ", self._block(values[1], values[2], values[3]), absorbs=True)

    def binding(self, values: Values) -> Doc:
        path, equals, value, semicolon = values
        return self._assignment(self._path(path), equals, value, semicolon)

    def _assignment(self, name: Doc, equals: Token, value: Any, semicolon: Token) -> Doc:
        head = sequence(name, " ", self._word(equals))
        inner = self._doc(value)
        end = self._word(semicolon, clings=True)
        below = Group(sequence(head, Nest(sequence(Line(), inner))))
        return sequence(hugging(sequence(head, " "), inner, below) or below, end)

    def inherit(self, values: Values) -> Doc:
        word, names, semicolon = values
        return self._inherit(word, [], names, semicolon)

    def inherit_from(self, values: Values) -> Doc:
        word, opening, source, closing, names, semicolon = values
        from_ = self.parenthesised([opening, source, closing])
        return self._inherit(word, [Text(" "), from_], names, semicolon)

    def _inherit(self, word: Token, source: Sequence[Doc], names: Values, semicolon: Token) -> Doc:
        listed = [part for name in names for part in (Line(), self._doc(name))]
        body = sequence(self._word(word), *source, Nest(Joined(tuple(listed))))
        return sequence(Group(body), self._word(semicolon, clings=True))

    # -- strings --

    def plain_string(self, values: Values) -> Doc:
        token = values[0]
        word = self._word(token)
        if "\n" in word.text:
            return Joined((word,), absorbs=True)
        return word

    def append_interpolation(self, values: Values) -> Values:
        parts: Values
        parts, opening, expression, closing = values
        parts.append(texts.interpolation(self._word(opening), self._doc(expression), self._word(closing)))
        return parts

    def string(self, values: Values) -> Doc:
        opening, parts, closing = values
        return texts.quoted(self._word(opening), self._parts(parts), self._word(closing))

    def indented_string(self, values: Values) -> Doc:
        opening, parts, closing = values
        begin, end = self._word(opening), self._word(closing)
        return texts.indented(begin, self._parts(parts), end)

    def _parts(self, parts: Values) -> list[texts.Part]:
        return [(part.kind, self.text[part.start : part.end]) if type(part) is Token else part for part in parts]

    # -- what is refused before it gets here --

    def _refused(self, values: Values) -> Doc:
        raise AssertionError("the text has been parsed before")

    refused_with = refused_float = refused_uri = _refused
    refused_absolute_path = refused_home_path = refused_search_path = _refused


def _is_path(text: Text) -> bool:
    return "/" in text.text and text.text[0] not in "\"'"
