"""POSIX extended regular expressions, in time linear in the subject.

Nix runs them with the C++ library's backtracking matcher, where one hostile pattern hangs an evaluation. RE2
knows the same language (its POSIX syntax, leftmost-longest) and cannot hang; see
docs/decisions/regular-expressions.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from envdsl.evaluate.failure import EvaluationError

# An escaped character, or a bracket expression: there `]` may come first, and classes such as [:alpha:] hold
# brackets of their own.
_ESCAPE_OR_BRACKET = re.compile(r"\\.|\[\^?\]?(?:\[[:.=][^]]*[:.=]\]|[^]])*\]", re.DOTALL)
_MEMORY = 2 * 1024 * 1024


def full_match(pattern: str, subject: str) -> list[str | None] | None:
    """The groups of a match of the whole of ``subject`` (None for one that took no part); None without a match.

    Raises EvaluationError (``eval-regex``) for an invalid pattern.
    """
    found = _compile(pattern).fullmatch(subject)
    return None if found is None else list(found.groups())


def matches(pattern: str, subject: str) -> Iterator[tuple[int, int, list[str | None]]]:
    """Start, end and groups of each match in ``subject``, from the left, without overlap."""
    for found in _compile(pattern).finditer(subject):
        yield found.start(), found.end(), list(found.groups())


@lru_cache(maxsize=64)
def _compile(pattern: str) -> Any:
    import re2  # lazily: few layer files use a regular expression

    options = re2.Options()
    options.posix_syntax = True
    options.longest_match = True
    options.dot_nl = True
    options.one_line = True
    options.log_errors = False
    options.max_mem = _MEMORY
    # In POSIX a backslash within brackets stands for itself.
    text = _ESCAPE_OR_BRACKET.sub(
        lambda found: found[0].replace("\\", "\\\\") if found[0].startswith("[") else found[0], pattern
    )
    try:
        return re2.compile(text, options)
    except re2.error as error:
        reason = error.args[0] if error.args else "it cannot be compiled"
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise EvaluationError("eval-regex", f"invalid regular expression: {reason}") from None
