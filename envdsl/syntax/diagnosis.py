"""All that is wrong with a text: the first error explained, then on to the next one."""

from __future__ import annotations

import re

from envdsl.errors import Diagnostic
from envdsl.model.span import Source, Span
from envdsl.syntax.automaton import STACK_LIMIT, TOKEN_LIMIT, Automaton, LimitExceeded, Token, Unexpected
from envdsl.syntax.builder import ERROR_LIMIT, TreeBuilder
from envdsl.syntax.depth import DEPTH_LIMIT
from envdsl.syntax.explain import explain
from envdsl.syntax.recovery import declaration_height, next_head, recover
from envdsl.syntax.tables import END

# What git writes around the sides of a conflict (git-merge(1), "How conflicts are presented"), on lines of their own.
_MARKER = re.compile(r"^(?:<{7}|\|{7}|={7}|>{7})(?=\s|\Z)", re.MULTILINE)
_ATTEMPTS = 2 * ERROR_LIMIT  # some errors are not worth a word of their own


def diagnose(
    automaton: Automaton, failure: Unexpected | LimitExceeded | None, builder: TreeBuilder
) -> list[Diagnostic]:
    """The errors of a text in their order, twenty at the most.

    ``failure`` is what stopped ``automaton``; None where only ``builder``, which holds what it refused, has findings.
    """
    errors: list[Diagnostic] = []
    for _ in range(_ATTEMPTS):
        if failure is None or len(errors) >= ERROR_LIMIT:
            break
        if isinstance(failure, LimitExceeded):
            errors.append(_limit(builder.source, failure))
            break
        if (conflict := _merge_conflict(builder.source, failure.token)) is not None:
            errors.append(conflict)  # what follows is two texts in one, of which nothing sensible can be said
            break
        if not _explain_one(automaton, failure.token, builder, errors):
            break
        failure = _go_on(automaton)
    errors += builder.diagnostics
    errors.sort(key=lambda diagnostic: diagnostic.span.start if diagnostic.span else 0)
    return errors[:ERROR_LIMIT]


def _merge_conflict(source: Source, token: Token) -> Diagnostic | None:
    """The conflict that git left in a text, at its first marker, if ``token`` stands in the line of any marker."""
    line = source.text.rfind("\n", 0, token.start) + 1
    first = _MARKER.search(source.text)
    if first is None or _MARKER.match(source.text, line) is None:
        return None
    return Diagnostic(
        "syntax-merge-conflict",
        "the file holds the conflict of a merge",
        Span(source, first.start(), first.end()),
        hint="keep what is right of both sides, and remove the lines with `<<<<<<<`, `=======` and `>>>>>>>`",
    )


def _go_on(automaton: Automaton) -> Unexpected | LimitExceeded | None:
    try:
        automaton.run()
    except (Unexpected, LimitExceeded) as failure:
        return failure
    return None


def _explain_one(automaton: Automaton, token: Token, builder: TreeBuilder, errors: list[Diagnostic]) -> bool:
    """Add the error at ``token`` and set the automaton up to go on; False where that is not possible."""
    automaton.settle()
    height = declaration_height(automaton)
    head = None if height is None else _swallowed_head(automaton, token, height)
    if height is not None and head is not None:
        found = _explain_cut(automaton, builder.source, height, head)
        errors.append(found or explain(automaton, token, builder.source, builder.comments))
        automaton.unwind(height)
        automaton.position = head
        return True
    diagnostic = explain(automaton, token, builder.source, builder.comments)
    if diagnostic.code != "syntax-unmatched-bracket" or not errors:  # it may close what an error left open
        errors.append(diagnostic)
    return recover(automaton, token)


def _swallowed_head(automaton: Automaton, token: Token, height: int) -> int | None:
    """Where the head of another declaration stands within the one that ``token`` broke."""
    if height == len(automaton.values):
        return None
    first = automaton.values[height]
    assert type(first) is Token  # each declaration begins with a word
    return next_head(automaton.text, first.end, token.start)


def _explain_cut(automaton: Automaton, source: Source, height: int, head: int) -> Diagnostic | None:
    """What the broken declaration lacks, had the text ended where the next one begins."""
    builder = TreeBuilder(source)
    cut = Automaton(automaton.tables, builder, source.text[:head], "file", automaton.values[height].start)
    cut.states[:] = automaton.states[: height + 1]
    cut.values[:] = automaton.values[:height]
    for _ in range(ERROR_LIMIT):
        failure = _go_on(cut)
        if not isinstance(failure, Unexpected):
            break
        cut.settle()
        if failure.token.kind == END:
            return explain(cut, failure.token, source, builder.comments)
        if not recover(cut, failure.token):  # what is wrong there has been reported before
            break
    return None


def _limit(source: Source, error: LimitExceeded) -> Diagnostic:
    span = Span(source, error.token.start, error.token.end)
    if error.limit == "nesting":
        return too_deep(span)
    return Diagnostic(
        "syntax-too-long",
        f"the text has more than {TOKEN_LIMIT:,} words and signs",
        span,
        hint="split it into several files; long lists can be read with `readLines`",
    )


def too_deep(span: Span) -> Diagnostic:
    """The tree is too deep at ``span``, or would be."""
    return Diagnostic(
        "syntax-too-deep",
        f"this is nested too deeply: the tree would have more than {DEPTH_LIMIT} levels,"
        f" or {STACK_LIMIT:,} brackets, names and operators would wait for what follows them",
        span,
        hint="give parts of it a name with `let`",
    )
