"""``envdsl tutorial``: the tour in a scratch directory, as steps that a face shows and runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Step:
    """``why`` says what the command does and what to look at. ``change`` is a file (relative to the scratch directory)
    with a text in it and what takes its place, before the command runs. ``fails``: that it fails is the point."""

    why: str
    command: tuple[str, ...]
    change: tuple[str, str, str] | None = None
    fails: bool = False


def steps(layer: str) -> tuple[Step, ...]:
    """The tour for a project whose base is called ``layer``."""
    file = f"layers.d/{layer}.layer"
    return (
        Step(
            "A new project: one file of configuration, one layer. Have a look at the layer file.",
            ("init", "--name", layer),
        ),
        Step("Layer files are checked as a whole: every mistake, with its place.", ("check",)),
        Step(
            "Locking asks the index once, and writes down each wheel with its sha256. The lock is committed to git.",
            ("lock",),
        ),
        Step(
            "Building fetches the wheels, checks each byte, and links the layer. Nothing of a wheel is executed. "
            "The name of the layer follows from what is in it: the same need gives the same path, on every machine.",
            ("build",),
        ),
        Step("Once more: there is nothing to do, and it takes no time to find that out.", ("build",)),
        Step(
            "A session is a name for exact layers, with all that a sandbox needs.",
            ("session", "create", "tour", "-l", layer),
        ),
        Step(
            "A command in the sandbox: read-only layers, no network, nothing of your home directory.",
            ("run", "tour", "--", "python3", "-c", "import rich; print(rich.__file__)"),
        ),
        Step(
            "What is not there cannot be installed from inside; the sandbox says how to ask for it.",
            ("run", "tour", "--", "pip", "install", "humanize"),
            fails=True,
        ),
        Step(
            "An extension holds what a base lacks; it is resolved under the base's lock.",
            ("lock", "more"),
            change=(
                file,
                f'#\n#   x "more" on "{layer}" {{ packages = [ "humanize" ]; }}\n',
                f'x "more" on "{layer}" {{ packages = [ "humanize" ]; }}\n',
            ),
        ),
        Step(
            "A second session with both. The first one stays as it is.",
            ("session", "create", "two", "-l", layer, "-l", "more"),
        ),
        Step(
            "In its sandbox both packages are there.",
            ("run", "two", "--", "python3", "-c", "import rich, humanize; print(humanize.__file__)"),
        ),
        Step(
            "What two sessions, layers, locks or git revisions differ in, as a reviewer would ask.",
            ("diff", "session:tour", "session:two"),
        ),
        Step("What the store would let go: nothing, while sessions need it.", ("gc", "--dry-run")),
    )


def apply(step: Step, directory: Path) -> None:
    """Make the change that comes before a step."""
    if step.change is not None:
        path, old, new = step.change
        text = (directory / path).read_text(encoding="utf-8")
        assert old in text
        (directory / path).write_text(text.replace(old, new), encoding="utf-8")
