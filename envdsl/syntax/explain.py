"""What to say about a token that cannot stand where it does.

The parser knows the place, what could have come instead, and the stack of what is unfinished. From these, the
functions here and in :mod:`envdsl.syntax.mistakes` recognise what the writer most likely meant, from the particular
to the general; the first that has something to say is heard.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import islice

from envdsl.errors import Diagnostic, Note
from envdsl.model.span import Source, Span
from envdsl.syntax import mistakes
from envdsl.syntax.automaton import Automaton, Token
from envdsl.syntax.recovery import declaration_height, next_binding, skim
from envdsl.syntax.situation import Situation
from envdsl.syntax.tables import END
from envdsl.syntax.tree import Comment

_RESERVED = frozenset(("let", "in", "if", "then", "else", "assert", "with", "rec", "inherit", "or"))
_DECLARATIONS = ("base", "x", "iso", "let", "import", "for")
_DECLARATIONS_HINT = "a file holds `base`, `x … on …`, `iso`, `let`, `import` and `for` declarations"
_CLOSING = {"(": ")", "[": "]", "{": "}", "${": "}"}
_OPENING = {")": "(", "]": "[", "}": "{"}
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


def explain(automaton: Automaton, token: Token, source: Source, comments: Sequence[Comment]) -> Diagnostic:
    """The diagnostic for a token that ``automaton``, which has settled, could not take."""
    situation = Situation(source, token, list(automaton.values), automaton.acceptable(), comments)
    for rule in (*mistakes.RULES, *_RULES):
        diagnostic = rule(situation)
        if diagnostic is not None:
            break
    else:
        diagnostic = _anything(situation)
    suspect = _string_over_lines(automaton, token)
    if suspect is None:
        return diagnostic
    note = Note('this string runs on to another line: its closing `"` may be missing', Span(source, *suspect))
    return replace(diagnostic, trail=(*diagnostic.trail, note))


def _string_over_lines(automaton: Automaton, token: Token) -> tuple[int, int] | None:
    """The first string before ``token``, in the same declaration, that was opened on one line and closed on another."""
    height = declaration_height(automaton) or 0
    first = automaton.values[height] if height < len(automaton.values) else None
    start = first.start if type(first) is Token else 0
    opened = 0
    for piece in islice(skim(automaton.text, start), 5_000):
        if piece.start >= token.start:
            break
        if piece.text != '"':
            continue
        if not piece.open or piece.open[-1] != '"':
            opened = piece.start
        elif "\n" in automaton.text[opened : piece.end]:
            return opened, piece.end
    return None


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
            hint=_DECLARATIONS_HINT,
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
        hint=f"did you mean `{close[0]}`?" if close else _DECLARATIONS_HINT,
    )


def _declaration_head(it: Situation) -> Diagnostic | None:
    keyword = it.values[-2] if len(it.values) > 1 and type(it.values[-2]) is Token else None
    if "ON" in it.acceptable:
        return it.diagnostic(
            "syntax-missing-on",
            f"expected `on` and the name of a base, found {it.found_words}",
            "an x layer stands on a base: `x name on base { … }`",
        )
    if it.found == "on" and keyword is not None and keyword.kind in ("BASE", "ISO"):
        name = it.text_of(keyword)
        return Diagnostic(
            "syntax-unexpected-on",
            f"`{name}` layers stand on nothing: only an `x` layer has `on`",
            it.span,
            hint="write `x name on base { … }`",
        )
    if (keyword is not None and keyword.kind == "FOR") or (it.ends_with("FOR")):
        return it.diagnostic(
            "syntax-for",
            f"expected `(`, found {it.found_words}"
            if "OPEN_PAREN" in it.acceptable
            else f"expected a name, found {it.found_words}",
            "write `for (name in list) { … }`",
        )
    if "AS" in it.acceptable:
        return it.diagnostic(
            "syntax-missing-as",
            f"expected `as` and a name, found {it.found_words}",
            'write `import "file.layer" as name;`',
        )
    if it.ends_with("IMPORT"):
        written = re.compile(r"\.{0,2}/?[\w./+-]*\.layer\b").match(it.source.text, it.token.start)
        file = written[0].removeprefix("./") if written else "file.layer"
        return it.diagnostic(
            "syntax-import-path",
            f"expected the file to import in quotes, found {it.found_words}",
            f'write `import "{file}" as name;`; the path is relative to this file',
        )
    return None


# -- missing and mismatched signs ----------------------------------------------------------------------------


def _assignment(it: Situation) -> Diagnostic | None:
    """A `=` behind a value: the `;` of the binding before it is missing, or `==` was meant."""
    if it.found != "=" or (not it.has_operand and it.opener != "["):
        return None
    assign = it.innermost(("ASSIGN",))
    if assign is not None and it.opener in ("{", "", "[") and it.innermost(("IF", "ASSERT")) is None:
        start = next_binding(it.source.text, assign.end, it.token.start)
        if start is not None and it.opener == "[":
            return _unclosed(it)
        if start is not None:
            name = Span(it.source, start, it.before.start)
            return Diagnostic(
                "syntax-missing-semicolon",
                f"expected `;` {it.after_value()}",
                replace(it, token=Token("", start, start)).before,
                trail=(Note(f"`{it.source.text[start : name.end]}` begins the next binding", name),),
                hint="each binding ends with `;`",
            )
    return Diagnostic(
        "syntax-unexpected-assignment", "`=` cannot stand here", it.span, hint="a comparison is written `==`"
    )


def _unclosed(it: Situation) -> Diagnostic | None:
    """Brackets that do not match; also a `;` or `=` where only a bracket that was left open keeps it from standing."""
    closes = _OPENING.get(it.found)
    matches_nothing = closes is not None and closes not in (it.text_of(token)[-1] for token in it.waiting)
    if matches_nothing and it.opener not in ("(", "["):
        if "CLOSE_BRACE" in it.acceptable:
            return None
        return Diagnostic(
            "syntax-unmatched-bracket", f"this `{it.found}` closes nothing", it.span, hint=f"remove the `{it.found}`"
        )
    if it.opener not in _CLOSING or closes == it.opener[-1]:
        return None
    if closes is None and it.token.kind != END and not (it.opener in "([" and it.found in (";", "=")):
        return None
    return _left_open(it, it.waiting[-1])


def _left_open(it: Situation, opening: Token) -> Diagnostic:
    opener = it.text_of(opening)
    missing = _CLOSING[opener]
    trail = () if it.at_end else (Note(f"{it.found_words} stands where `{missing}` was expected", it.span),)
    return Diagnostic(
        "syntax-unclosed-bracket",
        f"unclosed `{opener}` opened at {it.place_of(opening)}",
        it.span_of(opening),
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
    construct = it.innermost(("ASSIGN", "IF", "THEN", "ASSERT", "WITH", "OPEN_PAREN", "INTERPOLATION", "QUESTION"))
    kind = construct.kind if construct else ""
    if kind == "ASSIGN" and "SEMICOLON" in it.acceptable:
        return Diagnostic(
            "syntax-missing-semicolon",
            f"expected `;` {it.after_value()}",
            it.before,
            trail=() if it.at_end else (Note(f"{it.found_words} stands here", it.span),),
            hint="each binding ends with `;`",
        )
    if kind == "IF" and "THEN" in it.acceptable:
        return it.diagnostic(
            "syntax-missing-then",
            f"expected `then` after the condition of `if`, found {it.found_words}",
            "write `if condition then value else other`",
        )
    if kind == "THEN" and "ELSE" in it.acceptable:
        return it.diagnostic(
            "syntax-missing-else",
            f"expected `else`, found {it.found_words}",
            "an `if` has a value in either case: write `if condition then value else other`",
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


def _end_of_import(it: Situation) -> Diagnostic | None:
    if it.acceptable != {"SEMICOLON"} or it.has_operand:
        return None
    return Diagnostic(
        "syntax-missing-semicolon",
        f"expected `;`, found {it.found_words}",
        it.before,
        hint="this declaration ends with `;`",
    )


def _missing_in(it: Situation) -> Diagnostic | None:
    if "IN" not in it.acceptable:
        return None
    if it.ends_with("IDENTIFIER"):
        return Diagnostic(
            "syntax-for", f"expected `in`, found {it.found_words}", it.span, hint="write `for (name in list) { … }`"
        )
    return it.diagnostic(
        "syntax-missing-in",
        f"expected another binding of `let`, or `in`, found {it.found_words}",
        "write `let name = value; in expression`",
    )


def _missing_assign(it: Situation) -> Diagnostic | None:
    if "ASSIGN" not in it.acceptable:
        return None
    loop = next((index for index, value in enumerate(it.values) if _is_for(value)), None)
    if loop is not None and it.values[loop + 1] in it.waiting:  # `for (v in [ … ] { base a { … } }` is a call so far
        return _left_open(it, it.values[loop + 1])
    written = it.source.text[: it.before.start].rsplit(None, 1)[-1].lstrip("{;")[-60:]
    return it.diagnostic(
        "syntax-missing-assign",
        f"expected `=` after `{written}`, found {it.found_words}",
        f"write `{written} = value;`",
    )


def _is_for(value: object) -> bool:
    return type(value) is Token and value.kind == "FOR"


def _missing_value(it: Situation) -> Diagnostic | None:
    if not it.wants_operand or it.opener == "[":
        return None
    last = it.values[-1] if it.values else None
    what = "expected an expression"
    if type(last) is Token:
        if last.kind == "ASSIGN":
            what = f"expected a value for `{it.name_before(last)}`"
        else:
            what = f"expected an expression after `{it.text_of(last)}`"
    return it.diagnostic(
        "syntax-missing-expression",
        f"{what}, found {it.found_words}",
    )


def _pattern_alone(it: Situation) -> Diagnostic | None:
    """`{ a, b }` without a body."""
    if not {"COLON", "AT"} >= it.acceptable:
        return None
    return it.diagnostic(
        "syntax-missing-body",
        f"names in braces are the arguments of a function: expected `:` and its body, found {it.found_words}",
        "write `{ a, b }: body`; a set is written `{ a = value; }`",
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
    return it.diagnostic(
        "syntax-unexpected-token",
        f"expected {expected}, found {it.found_words}" if expected else f"{it.found_words} cannot stand here",
    )


_RULES: tuple[Callable[[Situation], Diagnostic | None], ...] = (
    _declaration,
    _declaration_head,
    _assignment,
    _unclosed,
    _reserved_word,
    _continuation,
    _end_of_import,
    _missing_in,
    _pattern_alone,
    _attribute_in_nothing,
    _missing_assign,
    _missing_value,
)
