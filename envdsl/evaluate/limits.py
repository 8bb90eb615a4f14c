"""The bounds of evaluation: a hostile file gets an error, never a hang or a crash."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What one evaluation (of a whole project, or of one expression) may use.

    They are counted, not measured, so that the same input meets the same limit on every machine. The
    defaults are some hundred times what a project of 1,000 layers takes, and keep a hostile file below
    two seconds and 300 MB.
    """

    steps: int = 400_000  # calls, thunks and elements that builtins walk over
    depth: int = 5_000  # calls and thunks that wait for one another
    memory: int = 96 * 1024 * 1024  # bytes of strings, lists and sets ever made, estimated
    string: int = 8 * 1024 * 1024  # characters of one string
    items: int = 250_000  # elements of one list or set
    nesting: int = 500  # brackets within brackets of JSON and TOML that is read
    pattern: int = 2_000  # characters of a regular expression
    subject: int = 256 * 1024  # characters that a regular expression is run over
    file: int = 4 * 1024 * 1024  # bytes of one file that is read
    files: int = 2_000  # files that one evaluation reads
    read: int = 32 * 1024 * 1024  # bytes of all files together
    layers: int = 20_000  # layers that a project declares
