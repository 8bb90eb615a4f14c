"""Mistakes that show in the unexpected text itself: no token at all, or a habit from another language."""

from __future__ import annotations

import re
from collections.abc import Callable

from envdsl.errors import Diagnostic
from envdsl.model.span import Span
from envdsl.syntax.automaton import Token
from envdsl.syntax.recovery import list_goes_on
from envdsl.syntax.situation import Situation
from envdsl.syntax.tables import END

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
            f"{it.after_value()} stands `;`, not `,`",
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
    if it.found != ";" or it.opener != "[" or not list_goes_on(it.source.text, it.token.end):
        return None
    return Diagnostic(
        "syntax-semicolon-in-list",
        "the items of a list are separated by spaces, not by `;`",
        it.span,
        hint="remove the `;`",
    )


def _operation_in_list(it: Situation) -> Diagnostic | None:
    if it.opener != "[":
        return None
    if it.found in ("++", "+", "-", "*", "/", "//", "==", "!=", "<", ">", "<=", ">=", "&&", "||", "->", "!", "?"):
        hint = "write `[ (a + b) ]`" if it.found not in "-!" else f"write `[ ({it.found}a) ]`"
        if it.found in ("==", "!=", "<", ">", "<=", ">="):
            hint = f'a requirement is a string: write `[ "name{it.found}1.0" ]`'
        return Diagnostic(
            "syntax-operator-in-list",
            f"an operation (`{it.found}`) inside a list needs parentheses: items are separated by spaces",
            it.span,
            hint=hint,
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


RULES: tuple[Callable[[Situation], Diagnostic | None], ...] = (
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
)
