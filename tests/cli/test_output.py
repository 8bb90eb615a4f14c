"""How diagnostics look: for a person, as JSON, and as annotations."""

from __future__ import annotations

import errno
import re
import subprocess
import sys

import pytest

from envdsl.cli import output
from envdsl.cli.progress import LineReporter, reporter
from envdsl.errors import Diagnostic, ExitStatus, Note
from envdsl.model.span import Source, Span

SOURCE = Source("layers.d/a.layer", 'base a {\n\tpakages = [ "中文" ];\n}\n')
SPAN = Span(SOURCE, SOURCE.text.index("pakages"), SOURCE.text.index("pakages") + len("pakages"))
DIAGNOSTIC = Diagnostic(
    "eval-unknown-attribute",
    "unknown attribute `pakages`",
    span=SPAN,
    trail=(Note("in layer `a`", Span(SOURCE, 0, 4)),),
    hint="did you mean `packages`?",
)


def test_a_person_sees_message_place_marked_line_trail_and_hint() -> None:
    """Issue 2.3: code, place, marked source line, trail and hint."""
    assert output.render(DIAGNOSTIC).split("\n") == [
        "error[eval-unknown-attribute]: unknown attribute `pakages`",
        "  --> layers.d/a.layer:2:2",
        "   |",
        ' 2 | \tpakages = [ "中文" ];',
        "   | \t^^^^^^^",
        "  = in layer `a` (layers.d/a.layer:1:1)",
        "  = hint: did you mean `packages`?",
    ]


def test_the_mark_is_as_wide_as_wide_characters_are() -> None:
    start = SOURCE.text.index("中文")
    rendered = output.render(Diagnostic("c", "m", span=Span(SOURCE, start, start + 2)))
    assert rendered.split("\n")[-1].endswith(" ^^^^")


def test_a_span_over_several_lines_marks_the_first() -> None:
    rendered = output.render(Diagnostic("c", "m", span=Span(SOURCE, 0, len(SOURCE.text))))
    assert rendered.split("\n")[-2:] == [" 1 | base a {", "   | ^^^^^^^^"]


def test_an_empty_span_at_the_end_of_the_file_is_marked() -> None:
    rendered = output.render(Diagnostic("c", "m", span=Span(SOURCE, len(SOURCE.text), len(SOURCE.text))))
    assert rendered.split("\n")[-1].endswith("| ^")


def test_a_very_long_line_is_shown_around_the_mark() -> None:
    source = Source("f", "x" * 100_000 + "HERE" + "y" * 100_000)
    rendered = output.render(Diagnostic("c", "m", span=Span(source, 100_000, 100_004)))
    shown, marks = rendered.split("\n")[-2:]
    assert len(shown) < 200
    assert shown[marks.index("^") : marks.rindex("^") + 1] == "HERE"


def test_json_has_places_that_count_from_one_with_an_exclusive_end() -> None:
    value = output.to_json(DIAGNOSTIC)
    assert value["place"] == {
        "file": "layers.d/a.layer",
        "line": 2,
        "column": 2,
        "end-line": 2,
        "end-column": 9,
        "text": '\tpakages = [ "中文" ];',
    }
    assert value["trail"][0]["place"]["line"] == 1


def test_annotations_escape_what_would_end_them() -> None:
    """Issue 2.3: --format github."""
    diagnostic = Diagnostic("c", "50% of\nit", span=Span(Source("a,b:c", "x"), 0, 1), hint="h")
    assert (
        output.to_github(diagnostic)
        == "::error title=c,file=a%2Cb%3Ac,line=1,endLine=1,col=1,endColumn=2::50%25 of%0Ait%0Ahint: h"
    )


def test_colour_marks_severity_only_when_asked_for() -> None:
    assert "\x1b[" not in output.render(DIAGNOSTIC)
    assert "\x1b[1;31merror" in output.render(DIAGNOSTIC, colour=True)


def test_a_full_disk_is_an_error_of_the_environment_with_a_remedy() -> None:
    diagnostic = output.of_os_error(OSError(errno.ENOSPC, "No space left on device", "/store/x"))
    assert diagnostic.exit_status == ExitStatus.ENVIRONMENT
    assert "envdsl gc" in (diagnostic.hint or "")


def test_sizes_are_in_powers_of_1024() -> None:
    assert [output.size(n) for n in (0, 1023, 1024, 5 * 2**20, 3 * 2**30)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "5.0 MiB",
        "3.0 GiB",
    ]


@pytest.mark.parametrize("quiet", [False, True])
@pytest.mark.parametrize("as_json", [False, True])
def test_without_a_terminal_each_stage_is_a_line_for_people(
    capsys: pytest.CaptureFixture[str], quiet: bool, as_json: bool
) -> None:
    output.configure(quiet=quiet, verbose=False, as_json=as_json)
    shown = LineReporter(patience=0.0) if type(reporter()) is LineReporter else reporter()
    for title, total, unit in (("Unpacking", 3 << 20, "B"), ("Probing", 0, ""), ("Locking", 2, "")):
        with shown.task(title, total, unit) as task:
            task.describe("numpy")
            task.advance()
    output.configure(quiet=False, verbose=False, as_json=False)
    lines = [] if quiet or as_json else ["Unpacking: 3.0 MiB", "Locking: 2"]
    assert capsys.readouterr().err.splitlines() == lines


def test_what_is_over_soon_needs_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    output.configure(quiet=False, verbose=False, as_json=False)
    with reporter().task("Locking", 2) as task:
        task.advance()
    with reporter().task("Python 3.12"):  # nobody knows how long that takes
        pass
    assert capsys.readouterr().err == "Python 3.12\n"


def test_verbose_names_each_item_and_how_long_it_took(capsys: pytest.CaptureFixture[str]) -> None:
    output.configure(quiet=False, verbose=True, as_json=False)
    with reporter().task("Unpacking", 2) as task:
        task.describe("numpy 2.1")
    output.configure(quiet=False, verbose=False, as_json=False)
    first, item, last = capsys.readouterr().err.splitlines()
    assert (first, item) == ("Unpacking: 2", "  numpy 2.1")
    assert re.fullmatch(r"Unpacking: done in \d+\.\d s", last)


def test_an_interruption_while_modules_are_imported_is_no_traceback() -> None:
    program = """
import sys

class Interrupted:
    def find_spec(self, name, path, target=None):
        if name == "envdsl.cli.group":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
sys.argv = ["envdsl", "ls"]
from envdsl.start import main
main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")
