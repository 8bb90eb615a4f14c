"""What the grammar reads but the language refuses, and why.

Most of it is Nix's. The grammar knows these constructs so that a file which uses one is parsed to its end, and every
use is reported.
"""

from __future__ import annotations

from typing import NamedTuple

from envdsl.errors import Diagnostic
from envdsl.model.span import Span

LARGEST_INTEGER = 2**63 - 1
"""Nix's integers have 64 bits."""


class Refusal(NamedTuple):
    """Templates: ``{0}`` is the text that is refused, ``{1}`` what the rule says besides."""

    code: str
    message: str
    hint: str

    def at(self, span: Span, *facts: str) -> Diagnostic:
        text = span.source.text[span.start : span.end]
        return Diagnostic(self.code, self.message.format(text, *facts), span, hint=self.hint.format(text, *facts))


WITH = Refusal(
    "syntax-with",
    "`with` is not in this language: it hides where a name comes from",
    "name the set (`lib.name`), or bring names in with `let inherit (lib) name; in …`",
)
FLOAT = Refusal("syntax-float", "`{0}`: numbers are integers here", 'write a version as a string: "{0}"')
LARGE_INTEGER = Refusal("syntax-integer-too-large", f"integers go up to {LARGEST_INTEGER}", "write it as a string")
URI = Refusal(
    "syntax-uri",
    "`{0}` reads as a URI without quotes, which is not in this language",
    'quote it ("{0}"); if it is a function, put a space after the `:`',
)
ABSOLUTE_PATH = Refusal(
    "syntax-absolute-path",
    "`{0}` is an absolute path: layers read inside the project only, so that they mean the same everywhere",
    "write a path relative to this file, such as `./dir`; for a division put spaces around `/`",
)
HOME_PATH = Refusal(
    "syntax-home-path",
    "`{0}` is a path in a home directory: layers read inside the project only, so that they mean the same everywhere",
    "copy the file into the project and write a path relative to this file",
)
SEARCH_PATH = Refusal(
    "syntax-search-path",
    "`{0}` is looked up along NIX_PATH in Nix; there is no such path here, since its meaning depends on the machine",
    'use `import "file.layer" as name;` at the top of the file; for a comparison put spaces around `<`',
)
PATH_SLASH = Refusal("syntax-path-slash", "the path `{0}` ends with a slash", "remove the slash")
DYNAMIC_IMPORT = Refusal(
    "syntax-dynamic-import",
    "an import names its file with a plain string: `${{}}` is not evaluated here",
    "write the path out",
)
DYNAMIC_INHERIT = Refusal(
    "syntax-dynamic-inherit",
    "`inherit` takes plain names: `${{}}` is not evaluated here",
    "write a binding: `${{name}} = source.${{name}};`",
)
DYNAMIC_LET = Refusal(
    "syntax-dynamic-let",
    "`let` binds plain names: a computed one could not be referred to",
    "put it in a set: `let set = {{ ${{name}} = …; }}; in …`",
)
DUPLICATE_FORMAL = Refusal(
    "syntax-duplicate-formal", "`{1}` occurs twice in this pattern", "give one of them another name"
)
COMPARISON_CHAIN = Refusal(
    "syntax-not-associative",
    "`{1}` and `{0}` cannot follow each other without parentheses",
    "write `a {1} b && b {0} c`, or put parentheses around one of them",
)
TEST_CHAIN = Refusal(
    "syntax-not-associative",
    "`{1}` and `{0}` cannot follow each other without parentheses",
    "put parentheses around the first test",
)
