"""What to say about a token that cannot stand where it does.

The parser knows the place, what could have come instead, and the stack of what is unfinished. From these, the
functions below recognise what the writer most likely meant, from the particular to the general; the first that has
something to say is heard.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from itertools import islice
from typing import Any, get_args

from envdsl.errors import Diagnostic, Note
from envdsl.model.span import Source, Span
from envdsl.syntax.automaton import Automaton, Token
from envdsl.syntax.recovery import open_constructs, skim
from envdsl.syntax.tables import END
from envdsl.syntax.tree import Comment, Expression

_FOUND = re.compile(r"""[a-zA-Z_][a-zA-Z0-9_'-]*|[0-9]+|\$\{|''|\.\.\.|\+\+|//|->|==|!=|<=|>=|&&|\|\||=>|/\*|[\s\S]""")
_EXPRESSIONS = get_args(Expression)
_RESERVED = frozenset(("let", "in", "if", "then", "else", "assert", "with", "rec", "inherit", "or"))
_DECLARATIONS = ("base", "x", "iso", "let", "import", "for")
_CLOSING = {"(": ")", "[": "]", "{": "}", "${": "}"}
_SPELLING = {
    "SEMICOLON": "`;`",
    "ASSIGN": "`=`",
    "COLON": "`:`",
    "COMMA": "`,`",
    "DOT": "`.`",
    "AT": "`@`",
    "QUESTION": "`?`",
    "ELLIPSIS": "`...`",
    "OPEN_BRACE": "`{`",
    "CLOSE_BRACE": "`}`",
    "OPEN_PAREN": "`(`",
    "CLOSE_PAREN": "`)`",
    "OPEN_BRACKET": "`[`",
    "CLOSE_BRACKET": "`]`",
    "THEN": "`then`",
    "ELSE": "`else`",
    "IN": "`in`",
    "ON": "`on`",
    "AS": "`as`",
    END: "the end of the text",
}
_LOOKALIKES = {
    "“": '"',
    "”": '"',
    "„": '"',
    "«": '"',
    "»": '"',
    "‘": "'",
    "’": "'",
    "–": "-",
    "—": "-",
    "…": "...",
    "；": ";",
    "：": ":",
    "，": ",",
    "＝": "=",
}


@dataclass(frozen=True)
class Situation:
    """An unexpected token and what the parser knows about its place."""

    source: Source
    token: Token
    values: Sequence[Any]
    acceptable: frozenset[str]
    comments: Sequence[Comment]

    @cached_property
    def at_end(self) -> bool:
        return self.token.start >= len(self.source.text)

    @cached_property
    def found(self) -> str:
        """The word, number or sign that stands there; empty at the end of the text."""
        match = _FOUND.match(self.source.text, self.token.start)
        return match[0] if match else ""

    @cached_property
    def span(self) -> Span:
        return Span(self.source, self.token.start, self.token.start + len(self.found))

    @cached_property
    def found_words(self) -> str:
        return f"`{self.found}`" if self.found else "the end of the text"

    @cached_property
    def waiting(self) -> list[Token]:
        """What is open: brackets and quotes, outermost first."""
        return [item for item in open_constructs(self.values) if item.kind not in ("LET", "ASSERT", "WITH")]

    @cached_property
    def opener(self) -> str:
        """The innermost open bracket or quote."""
        return self.text_of(self.waiting[-1]).strip() if self.waiting else ""

    @cached_property
    def before(self) -> Span:
        """The empty span behind the last thing before the token."""
        text, position = self.source.text, self.token.start
        ends = {comment.span.end: comment.span.start for comment in self.comments}
        while True:
            position = len(text[:position].rstrip(" \t\r\n"))
            if position not in ends:
                break
            position = ends[position]
        return Span(self.source, position, position)

    @property
    def wants_operand(self) -> bool:
        return "INTEGER" in self.acceptable and "OPERATOR" not in self.acceptable

    @property
    def has_operand(self) -> bool:
        """A complete operand stands before the token: reduced to an expression already, or about to be."""
        return "OPERATOR" in self.acceptable or bool(self.values and isinstance(self.values[-1], _EXPRESSIONS))

    def text_of(self, token: Token) -> str:
        return self.source.text[token.start : token.end]

    def span_of(self, token: Token) -> Span:
        return Span(self.source, token.start, token.end)

    def place_of(self, token: Token) -> str:
        line, column = self.source.position(token.start)
        return f"{line}:{column}"


def explain(automaton: Automaton, token: Token, source: Source, comments: Sequence[Comment]) -> Diagnostic:
    """The diagnostic for a token that ``automaton`` could not take."""
    situation = Situation(source, token, list(automaton.values), automaton.acceptable(), comments)
    for rule in _RULES:
        diagnostic = rule(situation)
        if diagnostic is not None:
            return diagnostic
    return _anything(situation)


# -- text that is no token -----------------------------------------------------------------------------------


def _unterminated(it: Situation) -> Diagnostic | None:
    if it.found == "/*":
        return Diagnostic(
            "syntax-unterminated-comment",
            f"unterminated comment opened at {it.place_of(it.token)}",
            it.span,
            hint="close it with `*/`",
        )
    if it.opener not in ('"', "''") or it.token.kind != END:
        return None
    opening = it.waiting[-1]
    quote = it.opener
    return Diagnostic(
        "syntax-unterminated-string",
        f"unterminated string opened at {it.place_of(opening)}",
        Span(it.source, opening.start, opening.start + len(quote)),
        hint=f"close it with `{quote}`",
    )


def _path_with_interpolation(it: Situation) -> Diagnostic | None:
    text = it.source.text
    start = it.token.start
    if it.found == "${":
        path = re.compile(r"[a-zA-Z0-9._+/~-]*/[a-zA-Z0-9._+-]*\Z").search(text, max(0, start - 200), start)
        if path is None:
            return None
        start = path.start()
    elif not re.compile(r"[.~]{0,2}/[a-zA-Z0-9._+/-]*\$\{").match(text, start):
        return None
    end = text.index("${", start) + 2
    return Diagnostic(
        "syntax-path-interpolation",
        "a path cannot hold `${}`",
        Span(it.source, start, end),
        hint='join a path and a string: `./dir + "/${name}"`',
    )


def _lone_dots(it: Situation) -> Diagnostic | None:
    match = re.compile(r"\.{1,2}/?(?![.a-zA-Z0-9_+-])").match(it.source.text, it.token.start)
    if match is None or not it.wants_operand:
        return None
    fix = "./." if match[0].rstrip("/") == "." else "./.."
    return Diagnostic(
        "syntax-incomplete-path",
        f"`{match[0]}` is not a path",
        Span(it.source, match.start(), match.end()),
        hint=f"write `{fix}`",
    )


def _odd_character(it: Situation) -> Diagnostic | None:
    character = it.found
    if it.token.kind or (len(character) != 1 and character != "=>"):
        return None
    if character in _LOOKALIKES:
        return Diagnostic(
            "syntax-unexpected-character",
            f"`{character}` (U+{ord(character):04X}) has no meaning outside strings",
            it.span,
            hint=f"did you mean `{_LOOKALIKES[character]}`?",
        )
    if character == "'":
        return Diagnostic(
            "syntax-unexpected-character",
            "`'` does not begin a string",
            it.span,
            hint="strings are written `\"…\"`, or `''…''` over several lines",
        )
    if it.found == "=>" or character in ("%", "&", "|", "^", "~", "`", "$", "\\"):
        hints = {
            "&": "the logical and is written `&&`",
            "|": "the logical or is written `||`",
            "=>": "a function is written `name: body`",
        }
        return Diagnostic(
            "syntax-unexpected-character",
            f"`{character}` is no operator of this language",
            it.span,
            hint=hints.get(character, "the operators are those of Nix"),
        )
    if character.isprintable() and character.isascii():
        return None
    shown = f"`{character}` (U+{ord(character):04X})" if character.isprintable() else f"U+{ord(character):04X}"
    return Diagnostic(
        "syntax-unexpected-character",
        f"the character {shown} has no meaning outside strings",
        it.span,
        hint="remove it, or put it in a string",
    )


# -- habits from other languages -----------------------------------------------------------------------------


def _inherit(it: Situation) -> Diagnostic | None:
    inherit = next((value for value in reversed(it.values) if type(value) is Token), None)
    if inherit is None or inherit.kind not in ("INHERIT", "CLOSE_PAREN") or "SEMICOLON" not in it.acceptable:
        return None
    if "ASSIGN" in it.acceptable or it.has_operand:
        return None
    return Diagnostic(
        "syntax-missing-semicolon",
        f"expected another name of `inherit`, or `;`, found {it.found_words}",
        it.before if it.found != "," else it.span,
        hint="names are separated by spaces: `inherit a b;`",
    )


def _comma(it: Situation) -> Diagnostic | None:
    if it.found != ",":
        return None
    if it.opener == "[":
        return Diagnostic(
            "syntax-comma",
            "the items of a list are separated by spaces, not by commas",
            it.span,
            hint="remove the `,`",
        )
    if "SEMICOLON" in it.acceptable and it.opener in ("{", ""):
        return Diagnostic(
            "syntax-comma",
            f"{_after_value(it)} stands `;`, not `,`",
            it.span,
            hint="write `;`",
        )
    return None


def _colon(it: Situation) -> Diagnostic | None:
    if it.found != ":":
        return None
    if "ASSIGN" in it.acceptable:
        return Diagnostic(
            "syntax-colon", "a name and its value are joined by `=`, not by `:`", it.span, hint="write `name = value;`"
        )
    if it.has_operand or it.opener == "[":
        return Diagnostic(
            "syntax-unexpected-function",
            "a function inside an operation, a call or a list needs parentheses",
            it.span,
            hint="write `(name: body)`",
        )
    return None


def _semicolon_in_list(it: Situation) -> Diagnostic | None:
    if it.found != ";" or it.opener != "[":
        return None
    # The list may have been meant to end here; then its `]` never comes.
    for piece in islice(skim(it.source.text, it.token.end, ["["]), 1_000):
        if piece.open == ["["] and piece.text == "]":
            return Diagnostic(
                "syntax-semicolon-in-list",
                "the items of a list are separated by spaces, not by `;`",
                it.span,
                hint="remove the `;`",
            )
        if piece.text == "}" or (len(piece.open) == 1 and "=" in piece.text):
            break
    return None


def _operation_in_list(it: Situation) -> Diagnostic | None:
    if it.opener != "[":
        return None
    if it.found in ("++", "+", "-", "*", "/", "//", "==", "!=", "<", ">", "<=", ">=", "&&", "||", "->", "!", "?"):
        return Diagnostic(
            "syntax-operator-in-list",
            f"an operation (`{it.found}`) inside a list needs parentheses: items are separated by spaces",
            it.span,
            hint="write `[ (a + b) ]`" if it.found not in "-!" else f"write `[ ({it.found}a) ]`",
        )
    return None


def _form_as_operand(it: Situation) -> Diagnostic | None:
    if it.found not in ("if", "let", "assert", "with") or "INTEGER" not in it.acceptable:
        return None
    return Diagnostic(
        "syntax-needs-parentheses",
        f"`{it.found}` inside an operation, a call or a list needs parentheses",
        it.span,
        hint=f"write `({it.found} …)`",
    )


# -- declarations --------------------------------------------------------------------------------------------


def _declaration(it: Situation) -> Diagnostic | None:
    if "BASE" not in it.acceptable or it.at_end or it.found == "}":
        return None
    if it.found == "in":
        return Diagnostic(
            "syntax-let-in",
            "a `let` outside of expressions is a declaration and has no `in`",
            it.span,
            hint="the name holds for the whole file: remove `in`; each declaration `let` holds one name",
        )
    if it.found == ";":
        return Diagnostic(
            "syntax-stray-semicolon",
            "this `;` ends nothing: a declaration that ends with `}` takes none",
            it.span,
            hint="remove the `;`",
        )
    if not re.match(r"[a-zA-Z_]", it.found):
        return Diagnostic(
            "syntax-declaration",
            f"a declaration cannot begin with {it.found_words}",
            it.span,
            hint="a file holds `base`, `x … on …`, `iso`, `let`, `import` and `for` declarations",
        )
    after = it.source.text[it.token.start + len(it.found) :][:40].lstrip()
    if after.startswith(("=", ".")):
        return Diagnostic(
            "syntax-declaration",
            f"`{it.found}` stands outside of any layer",
            it.span,
            hint=f"to name a value, write `let {it.found} = …;`; an attribute of a layer stands inside its braces",
        )
    close = get_close_matches(it.found, _DECLARATIONS, 1, 0.6)
    return Diagnostic(
        "syntax-declaration",
        f"unknown declaration `{it.found}`",
        it.span,
        hint=f"did you mean `{close[0]}`?"
        if close
        else "a file holds `base`, `x … on …`, `iso`, `let`, `import` and `for` declarations",
    )


def _declaration_head(it: Situation) -> Diagnostic | None:
    keyword = it.values[-2] if len(it.values) > 1 and type(it.values[-2]) is Token else None
    if "ON" in it.acceptable:
        return Diagnostic(
            "syntax-missing-on",
            f"expected `on` and the name of a base, found {it.found_words}",
            it.span if not it.at_end else it.before,
            hint="an x layer stands on a base: `x name on base { … }`",
        )
    if it.found == "on" and keyword is not None and keyword.kind in ("BASE", "ISO"):
        name = it.text_of(keyword)
        return Diagnostic(
            "syntax-unexpected-on",
            f"`{name}` layers stand on nothing: only an `x` layer has `on`",
            it.span,
            hint="write `x name on base { … }`",
        )
    if (keyword is not None and keyword.kind == "FOR") or (it.values and _is(it.values[-1], "FOR")):
        return Diagnostic(
            "syntax-for",
            f"expected `(`, found {it.found_words}"
            if "OPEN_PAREN" in it.acceptable
            else f"expected a name, found {it.found_words}",
            it.span if not it.at_end else it.before,
            hint="write `for (name in list) { … }`",
        )
    if "AS" in it.acceptable:
        return Diagnostic(
            "syntax-missing-as",
            f"expected `as` and a name, found {it.found_words}",
            it.span if not it.at_end else it.before,
            hint='write `import "file.layer" as name;`',
        )
    if it.values and _is(it.values[-1], "IMPORT"):
        return Diagnostic(
            "syntax-import-path",
            f"expected the file to import in quotes, found {it.found_words}",
            it.span if not it.at_end else it.before,
            hint='write `import "file.layer" as name;`; the path is relative to this file',
        )
    return None


# -- missing and mismatched signs ----------------------------------------------------------------------------


def _assignment(it: Situation) -> Diagnostic | None:
    """A `=` behind a value: the `;` of the binding before it is missing, or `==` was meant."""
    if it.found != "=" or (not it.has_operand and it.opener != "["):
        return None
    assign = _innermost(it, ("ASSIGN",))
    text = it.source.text
    if assign is not None and it.opener in ("{", "", "[") and _innermost(it, ("IF", "ASSERT")) is None:
        name = re.compile(
            r"""(?:[\w'-]+|"[^"\n]*"|\$\{[^}\n]*\})(?:\s*\.\s*(?:[\w'-]+|"[^"\n]*"|\$\{[^}\n]*\}))*\s*\Z"""
        ).search(text, max(assign.end, it.token.start - 500), it.token.start)
        if name is not None and text[assign.end : name.start()].strip():
            if it.opener == "[":
                return _unclosed(it)
            behind = Situation(it.source, Token("", name.start(), name.start()), it.values, frozenset(), it.comments)
            return Diagnostic(
                "syntax-missing-semicolon",
                f"expected `;` {_after_value(it)}",
                behind.before,
                trail=(
                    Note(f"`{name[0].strip()}` begins the next binding", Span(it.source, name.start(), it.token.end)),
                ),
                hint="each binding ends with `;`",
            )
    return Diagnostic(
        "syntax-unexpected-assignment", "`=` cannot stand here", it.span, hint="a comparison is written `==`"
    )


def _unclosed(it: Situation) -> Diagnostic | None:
    closes = {")": "(", "]": "[", "}": "{"}.get(it.found)
    if not it.waiting:
        if closes is None or "CLOSE_BRACE" in it.acceptable:
            return None
        return Diagnostic(
            "syntax-unmatched-bracket", f"this `{it.found}` closes nothing", it.span, hint=f"remove the `{it.found}`"
        )
    opener = it.opener
    if opener not in _CLOSING:
        return None
    if closes is not None and closes == opener[-1]:
        return None
    if not it.at_end and closes is None and not (opener in "([" and it.found in (";", "=")) and it.token.kind != END:
        return None
    missing = _CLOSING[opener]
    trail = () if it.at_end else (Note(f"{it.found_words} stands where `{missing}` was expected", it.span),)
    return Diagnostic(
        "syntax-unclosed-bracket",
        f"unclosed `{opener}` opened at {it.place_of(it.waiting[-1])}",
        it.span_of(it.waiting[-1]),
        trail=trail,
        hint=f"close it with `{missing}`",
    )


def _reserved_word(it: Situation) -> Diagnostic | None:
    if it.found not in _RESERVED or "IDENTIFIER" not in it.acceptable or it.has_operand:
        return None
    if it.wants_operand and it.found in ("then", "else", "in", "or", "inherit"):
        return Diagnostic(
            "syntax-missing-expression", f"expected an expression before `{it.found}`", it.span, hint=None
        )
    return Diagnostic(
        "syntax-reserved-word",
        f"`{it.found}` is a reserved word and cannot be a name here",
        it.span,
        hint=f'as an attribute it can be quoted: `"{it.found}"`' if "ASSIGN" not in it.acceptable else None,
    )


def _continuation(it: Situation) -> Diagnostic | None:
    """A value is complete, and what should follow does not."""
    if not it.has_operand or it.opener == "[":
        return None
    construct = _innermost(it, ("ASSIGN", "IF", "THEN", "ASSERT", "WITH", "OPEN_PAREN", "INTERPOLATION", "QUESTION"))
    kind = construct.kind if construct else ""
    if kind == "ASSIGN" and "SEMICOLON" in it.acceptable:
        return Diagnostic(
            "syntax-missing-semicolon",
            f"expected `;` {_after_value(it)}",
            it.before,
            trail=() if it.at_end else (Note(f"{it.found_words} stands here", it.span),),
            hint="each binding ends with `;`",
        )
    if kind == "IF" and "THEN" in it.acceptable:
        return Diagnostic(
            "syntax-missing-then",
            f"expected `then` after the condition of `if`, found {it.found_words}",
            it.before if it.at_end else it.span,
            hint="write `if condition then value else other`",
        )
    if kind == "THEN" and "ELSE" in it.acceptable:
        return Diagnostic(
            "syntax-missing-else",
            f"expected `else`, found {it.found_words}",
            it.before if it.at_end else it.span,
            hint="an `if` has a value in either case: write `if condition then value else other`",
        )
    if kind in ("ASSERT", "WITH") and "SEMICOLON" in it.acceptable:
        assert construct is not None
        return Diagnostic(
            "syntax-missing-semicolon",
            f"expected `;` after the condition of `{it.text_of(construct)}`",
            it.before,
            hint="write `assert condition; value`",
        )
    return None


def _missing_in(it: Situation) -> Diagnostic | None:
    if "IN" not in it.acceptable:
        return None
    if _is(it.values[-1], "IDENTIFIER"):
        return Diagnostic(
            "syntax-for", f"expected `in`, found {it.found_words}", it.span, hint="write `for (name in list) { … }`"
        )
    return Diagnostic(
        "syntax-missing-in",
        f"expected another binding of `let`, or `in`, found {it.found_words}",
        it.before if it.at_end else it.span,
        hint="write `let name = value; in expression`",
    )


def _missing_assign(it: Situation) -> Diagnostic | None:
    if "ASSIGN" not in it.acceptable:
        return None
    written = it.source.text[: it.before.start].rsplit(None, 1)[-1].lstrip("{;")[-60:]
    return Diagnostic(
        "syntax-missing-assign",
        f"expected `=` after `{written}`, found {it.found_words}",
        it.before if it.at_end else it.span,
        hint=f"write `{written} = value;`",
    )


def _missing_value(it: Situation) -> Diagnostic | None:
    if not it.wants_operand or it.opener == "[":
        return None
    last = it.values[-1] if it.values else None
    what = "expected an expression"
    if type(last) is Token:
        if last.kind == "ASSIGN":
            what = f"expected a value for `{_name_before(it, last)}`"
        else:
            what = f"expected an expression after `{it.text_of(last)}`"
    return Diagnostic(
        "syntax-missing-expression", f"{what}, found {it.found_words}", it.before if it.at_end else it.span
    )


def _pattern_alone(it: Situation) -> Diagnostic | None:
    """`{ a, b }` without a body."""
    if not {"COLON", "AT"} >= it.acceptable:
        return None
    return Diagnostic(
        "syntax-missing-body",
        f"names in braces are the arguments of a function: expected `:` and its body, found {it.found_words}",
        it.before if it.at_end else it.span,
        hint="write `{ a, b }: body`; a set is written `{ a = value; }`",
    )


def _attribute_in_nothing(it: Situation) -> Diagnostic | None:
    """`;` where a binding begins."""
    if it.found == ";" and "INHERIT" in it.acceptable:
        return Diagnostic("syntax-stray-semicolon", "this `;` ends nothing", it.span, hint="remove the `;`")
    return None


def _anything(it: Situation) -> Diagnostic:
    names = [_SPELLING[kind] for kind in _SPELLING if kind in it.acceptable]
    if "INTEGER" in it.acceptable and not it.has_operand:
        names = ["an expression", *(name for name in names if name in ("`]`", "`)`", "`}`"))]
    elif "IDENTIFIER" in it.acceptable and not it.has_operand:
        names.insert(0, "a name")
    elif it.has_operand:
        names = [name for name in names if name not in ("`.`", "`?`", "`(`", "`[`", "`{`")]
    expected = " or ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else "".join(names)
    return Diagnostic(
        "syntax-unexpected-token",
        f"expected {expected}, found {it.found_words}" if expected else f"{it.found_words} cannot stand here",
        it.before if it.at_end else it.span,
    )


def _is(value: Any, kind: str) -> bool:
    return type(value) is Token and value.kind == kind


def _innermost(it: Situation, kinds: tuple[str, ...]) -> Token | None:
    """The last unfinished token of one of ``kinds``, but none outside the innermost bracket that opens anew."""
    for value in reversed(it.values):
        if type(value) is Token:
            if value.kind in kinds:
                return value
            if value.kind in ("OPEN_PAREN", "INTERPOLATION") or (it.opener != "[" and value.kind == "OPEN_BRACE"):
                return None
    return None


def _name_before(it: Situation, assign: Token) -> str:
    index = it.values.index(assign)
    name = it.values[index - 1]
    if type(name) is Token:
        return it.text_of(name)
    return it.source.text[name[0].span.start : name[-1].span.end]


def _after_value(it: Situation) -> str:
    assign = _innermost(it, ("ASSIGN",))
    return f"after the value of `{_name_before(it, assign)}`" if assign else "after this value"


_RULES: tuple[Callable[[Situation], Diagnostic | None], ...] = (
    _unterminated,
    _path_with_interpolation,
    _lone_dots,
    _odd_character,
    _inherit,
    _comma,
    _colon,
    _semicolon_in_list,
    _operation_in_list,
    _form_as_operand,
    _declaration,
    _declaration_head,
    _assignment,
    _unclosed,
    _reserved_word,
    _continuation,
    _missing_in,
    _pattern_alone,
    _attribute_in_nothing,
    _missing_assign,
    _missing_value,
)
