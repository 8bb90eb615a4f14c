"""readLines, readToml, readJson: inside the project only."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envdsl.errors import EnvdslError
from envdsl.evaluate.expression import evaluate_expression
from envdsl.evaluate.project import evaluate
from envdsl.evaluate.reader import DirectoryReader
from tests.evaluate.language import MemoryReader, error, value
from tests.evaluate.projects import errors, project, shown

REQUIREMENTS = """\
# what we need
numpy>=2            # arrays
pandas[excel] \\
    >=2.2

rich ; python_version >= "3.11"
"""


def files(**texts: str | bytes) -> MemoryReader:
    return MemoryReader({name.replace("_", "."): text for name, text in texts.items()})


def test_a_requirements_file_is_taken_over_as_it_is() -> None:
    """Issue 2.16: comments and blank lines fall away, lines that go on are joined."""
    reader = files(requirements_txt=REQUIREMENTS)
    assert value("readLines ./requirements.txt", reader) == (
        '[ "numpy>=2" "pandas[excel]     >=2.2" "rich ; python_version >= \\"3.11\\"" ]'
    )
    spec = project(
        'base a { python = "3.12"; packages = readLines ./requirements.txt; }', requirements_txt=REQUIREMENTS
    )
    assert [r.text for r in spec.layers["a"].packages] == [
        "numpy>=2",
        "pandas[excel]>=2.2",
        'rich; python_version >= "3.11"',
    ]


@pytest.mark.parametrize("text", ["", "\n\n", "# only\n", "\\\n", "\ufeff# bom\n"])
def test_a_file_without_requirements_gives_an_empty_list(text: str) -> None:
    assert value("readLines ./r.txt", files(r_txt=text)) == "[ ]"


def test_windows_line_ends_and_marks_at_the_start() -> None:
    assert value("readLines ./r.txt", files(r_txt="\ufeffa\r\nb # c\r\n")) == '[ "a" "b" ]'


def test_a_bad_requirement_points_into_the_file_that_it_stands_in() -> None:
    (found,) = errors('base a { python = "3.12"; packages = readLines ./r.txt; }', r_txt="rich\n  numpy>>2 # no\n")
    assert shown(found) == ("numpy>>2", "eval-requirement")
    assert str(found.span) == "r.txt:2:3"


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("-r other.txt", "readLines"),
        ("--requirement other.txt", "readLines"),
        ("-c constraints.txt", "constraints"),
        ("-e .", "sources"),
        ("--index-url https://example.org", "envdsl.toml"),
        ("--find-links x", "wheels"),
        ("numpy==1 --hash=sha256:00", "lock"),
        ("--pre", "attribute"),
    ],
)
def test_options_are_refused_with_the_way_out(line: str, hint: str) -> None:
    found = error("readLines ./r.txt", files(r_txt=f"rich\n{line}\n"))
    assert found.code == "eval-requirements-option"
    assert found.span is not None
    assert found.span.line == 2
    assert found.hint is not None
    assert hint in found.hint


def test_toml_and_json_become_values() -> None:
    reader = files(
        p_toml='[project]\ndependencies = ["a", "b"]\nsince = 2026-01-31\npi = 3.14\n[tool.x]\n"y z" = true\n',
        s_json='{"a": [1, null, {"b": "c"}], "f": 1.5}',
    )
    assert value("(readToml ./p.toml).project.dependencies", reader) == '[ "a" "b" ]'
    assert value("(readToml ./p.toml).project.since", reader) == '"2026-01-31"'
    assert value('(readToml ./p.toml).tool.x."y z"', reader) == "true"
    assert value("(readJson ./s.json).a", reader) == '[ 1 null { b = "c"; } ]'
    assert error("(readToml ./p.toml).project.pi", reader).code == "eval-number"
    assert error("(readJson ./s.json).f", reader).code == "eval-number"


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("readToml ./bad.toml", "eval-toml"),
        ("readJson ./bad.json", "eval-json"),
        ("readJson ./nan.json", "eval-json"),
        ("readJson ./surrogate.json", "eval-json"),
        ("readLines ./latin.txt", "eval-encoding"),
        ("readToml ./deep.toml", "eval-too-deep"),
        ("readJson ./deep.json", "eval-too-deep"),
        ("readLines ./nope.txt", "eval-file-unreadable"),
        ('readLines "r.txt"', "eval-type"),
        ("readLines 1", "eval-type"),
        ("readLines ../up.txt", "eval-path-outside-project"),
        ('readLines (./x + "/../../up.txt")', "eval-path-outside-project"),
    ],
)
def test_files_that_cannot_be_read(expression: str, code: str) -> None:
    """Issue 2.4: bytes that are not UTF-8, deep nesting, and paths out of the project are errors."""
    reader = files(
        bad_toml="a =",
        bad_json="{",
        nan_json="[NaN]",
        surrogate_json='["\\ud800"]',
        latin_txt=b"\xe9",
        deep_toml="a = " + "[" * 50_000,
        deep_json="[" * 100_000,
        r_txt="a",
    )
    assert error(expression, reader).code == code


def test_paths_are_relative_to_the_file_that_they_stand_in() -> None:
    spec = project(
        'import "lib/b.layer" as b; base a { python = "3.12"; packages = b.packages; sources = [ b.here ]; }',
        lib__b_layer="let packages = readLines ./r.txt; let here = ./.;",
        lib__r_txt="rich",
    )
    assert [source.path for source in spec.layers["a"].sources] == ["lib"]
    assert list(spec.inputs) == ["lib/b.layer", "lib/r.txt", "main.layer"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("./a", "./a"),
        ("./a/../b", "./b"),
        ("[ ./. ]", "[ ./. ]"),
        ("toString ./a", '"a"'),
        ('./a + "/b"', "./a/b"),
        ('./a + "b"', "./ab"),
        ("baseNameOf ./a/b", '"b"'),
        ("dirOf ./a/b", "./a"),
        ("dirOf ./a", "./."),
        ("./a == ./b/../a", "true"),
        ("./a < ./b", "true"),
        ("isPath ./a", "true"),
        ("typeOf ./a", '"path"'),
        ("toJSON ./a", '"\\"a\\""'),
    ],
)
def test_paths_are_values(expression: str, expected: str) -> None:
    assert value(expression) == expected


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ('"${./a}"', "eval-type"),
        ("./a + ./b", "eval-type"),
        ('"x" + ./a', "eval-type"),
        ("../a", "eval-path-outside-project"),
        ('./a + "/../../b"', "eval-path-outside-project"),
    ],
)
def test_what_paths_cannot_do(expression: str, code: str) -> None:
    assert error(expression).code == code


def test_a_path_out_of_the_project_hurts_only_when_it_is_used() -> None:
    assert value("{ a = ../x; b = 1; }.b") == "1"


# -- a project on disk -------------------------------------------------------------------------------


def read(root: Path, expression: str) -> str:
    return value(expression, DirectoryReader(root))


def refused(root: Path, expression: str) -> str:
    with pytest.raises(EnvdslError) as raised:
        evaluate_expression(expression, DirectoryReader(root))
    return raised.value.code


def test_a_directory_is_read_inside_its_root_only(tmp_path: Path) -> None:
    root = tmp_path / "project"
    (root / "sub").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("secret")
    (root / "a.txt").write_text("a")
    (root / "inside").symlink_to("sub/../a.txt")
    (root / "outside").symlink_to("../secret.txt")
    (root / "absolute").symlink_to(tmp_path / "secret.txt")
    (root / "up").symlink_to("..")
    (root / "loop").symlink_to("loop")
    assert read(root, "readLines ./inside") == '[ "a" ]'
    assert refused(root, "readLines ./outside") == "eval-path-outside-project"
    assert refused(root, "readLines ./absolute") == "eval-path-outside-project"
    assert refused(root, "readLines ./up/secret.txt") == "eval-path-outside-project"
    assert refused(root, "readLines ./loop") == "eval-file-unreadable"
    assert refused(root, "readLines ./sub") == "eval-file-unreadable"
    assert refused(root, "readLines ./nope") == "eval-file-unreadable"


def test_a_link_out_of_the_project_is_no_source(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "out").symlink_to(tmp_path)
    (root / "a.layer").write_text('base a { python = "3.12"; sources = [ ./out ]; }')
    with pytest.raises(EnvdslError) as raised:
        evaluate(["a.layer"], DirectoryReader(root))
    assert raised.value.code == "eval-bad-value"


def test_pipes_and_large_files_do_not_hang(tmp_path: Path) -> None:
    """Issue 2.4: file sizes are bounded."""
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(50 * 2**20)
    assert refused(tmp_path, "readLines ./pipe") == "eval-file-unreadable"
    assert refused(tmp_path, "readLines ./large") == "eval-file-too-large"
    with pytest.raises(EnvdslError) as raised:
        evaluate(["large"], DirectoryReader(tmp_path))
    assert raised.value.code == "eval-file-too-large"
