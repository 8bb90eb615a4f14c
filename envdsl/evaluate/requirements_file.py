"""``readLines``: a requirements file as a list of requirement strings.

Lines that end with a backslash go on in the next one; comments and blank lines fall away, as pip has it
(https://pip.pypa.io/en/stable/reference/requirements-file-format/). Options do not: they configure pip.
"""

from __future__ import annotations

import re

from envdsl.evaluate.failure import EvaluationError
from envdsl.evaluate.values import Text
from envdsl.model.span import Source, Span

_COMMENT = re.compile(r"(?:^|\s)#.*$")

_HINTS = {
    "-r": "write it in the layer file: packages = readLines ./a.txt ++ readLines ./b.txt",
    "-c": "use the attribute `constraints` of the layer: constraints = readLines ./constraints.txt",
    "-e": "a directory of your own code goes into the attribute `sources` of the layer",
    "-i": "the index is configuration: see envdsl.toml and the attribute `index`",
    "-f": "wheels of your own go into the attribute `wheels` of the layer",
}
_LONG = {
    "--requirement": "-r",
    "--constraint": "-c",
    "--editable": "-e",
    "--index-url": "-i",
    "--extra-index-url": "-i",
    "--no-index": "-i",
    "--find-links": "-f",
}


def read_lines(source: Source) -> list[Text]:
    """The lines of ``source`` that say something, each with its place.

    Raises EvaluationError (``eval-requirements-option``) for an option line or an option in a line.
    """
    lines: list[Text] = []
    pending = ""
    begin = offset = 0
    for line in source.text.splitlines(keepends=True):
        text = line.rstrip("\r\n")
        if not pending:
            begin = offset
        offset += len(line)
        if text.endswith("\\") and not text.lstrip().startswith("#"):
            pending += text[:-1]
            continue
        _finish(source, pending + text, begin, offset - len(line) + len(text), lines)
        pending = ""
    if pending:
        _finish(source, pending, begin, offset, lines)
    return lines


def _finish(source: Source, text: str, begin: int, end: int, lines: list[Text]) -> None:
    stripped = _COMMENT.sub("", text).strip()
    if not stripped:
        return
    start = begin + len(text) - len(text.lstrip())
    # One line is marked exactly; of a continued one, all.
    span = Span(source, start, min(end, start + len(stripped)) if "\n" not in source.text[begin:end] else end)
    option = re.search(r"(?:^|\s)(--?[A-Za-z][A-Za-z-]*)", stripped)
    if option is not None:
        name = option[1]
        hint: str | None
        if name.startswith("--hash"):
            hint = "remove the hashes: the lock pins every wheel by its sha256"
        else:
            hint = _HINTS.get(_LONG.get(name, name[:2] if not name.startswith("--") else ""))
        raise EvaluationError(
            "eval-requirements-option",
            f"`{name}` is an option of pip, not a requirement",
            span=span,
            hint=hint or "remove it: a layer file has an attribute for what can be set",
        )
    lines.append(Text.at(stripped, span))
