"""Declarations: layers, let, import, for, on."""

from __future__ import annotations

import pytest

from envdsl.evaluate.project import evaluate
from envdsl.model.digest import blake3_hex
from envdsl.model.names import LayerKind, PythonVersion
from tests.evaluate.language import MemoryReader
from tests.evaluate.projects import errors, project, shown


def names(requirements: object) -> list[str]:
    return [requirement.text for requirement in requirements]  # type: ignore[attr-defined]


def test_the_example_of_the_design_evaluates() -> None:
    """Issue 2.1: base, x, iso, let, import and for, together."""
    spec = evaluate(
        ["layers.d/office.layer"],
        MemoryReader(
            {
                "layers.d/office.layer": """
                import "lib/common.layer" as common;
                let plotting = [ "matplotlib" "seaborn>=0.13" ];
                base office {
                  description = "Documents and data";
                  python      = "3.12";
                  platforms   = [ "manylinux_2_28_x86_64" "manylinux_2_28_aarch64" ];
                  packages    = common.documents ++ [ "numpy" "pdfplumber" ];
                  sources     = [ ../house-style ];          # a directory
                  probe       = [ "docx" "openpyxl" "pptx" ];
                  env         = { MPLBACKEND = "Agg"; };
                }
                x viz on office { packages = plotting; }
                iso legacy { python = "3.11"; packages = [ "numpy<2" "pandas<2.2" ]; }
                for (v in [ "3.11" "3.12" "3.13" ]) {
                  base "tools-py${replaceStrings ["."] [""] v}" { python = v; packages = [ "rich" "httpx2" ]; }
                }
                """,
                "layers.d/lib/common.layer": 'let documents = [ "python-docx" "lxml" ];',
                "house-style/style.css": "",
            }
        ),
    )
    assert list(spec.layers) == ["legacy", "office", "tools-py311", "tools-py312", "tools-py313", "viz"]
    office, viz = spec.layers["office"], spec.layers["viz"]
    assert names(office.packages) == ["python-docx", "lxml", "numpy", "pdfplumber"]
    assert [source.path for source in office.sources] == ["house-style"]
    assert office.env == (("MPLBACKEND", "Agg"),)
    assert (viz.kind, viz.base, viz.python, viz.platforms) == (LayerKind.X, "office", office.python, office.platforms)
    assert spec.layers["legacy"].kind is LayerKind.ISO
    assert [spec.layers[f"tools-py31{n}"].python for n in (1, 2, 3)] == [
        PythonVersion(11),
        PythonVersion(12),
        PythonVersion(13),
    ]


def test_each_file_read_is_an_input_with_its_digest() -> None:
    spec = project(
        'import "lib/a.layer" as a; base b { python = "3.12"; packages = readLines ./requirements.txt; }',
        lib__a_layer="let x = 1;",
        requirements_txt="rich\n",
    )
    assert list(spec.inputs) == ["lib/a.layer", "main.layer", "requirements.txt"]
    assert spec.inputs["requirements.txt"] == blake3_hex(b"rich\n")


def test_let_is_seen_before_its_line_and_is_lazy() -> None:
    spec = project(
        'base a { python = version; } let version = "3.${minor}"; let minor = "12"; let bad = throw "unused";'
    )
    assert spec.layers["a"].python == PythonVersion(12)


def test_the_words_of_declarations_are_names_in_expressions() -> None:
    spec = project('let x = x: x; let base = { on = "3.12"; iso = 1; }; base a { python = x base.on; }')
    assert spec.layers["a"].python == PythonVersion(12)


def test_an_import_offers_lets_and_the_aliases_of_its_own_imports() -> None:
    spec = project(
        'import "b.layer" as b; base a { python = b.c.version; packages = b.packages; }',
        b_layer='import "c.layer" as c; let packages = c.more ++ [ "b" ];',
        c_layer='let version = "3.12"; let more = [ "c" ];',
    )
    assert names(spec.layers["a"].packages) == ["c", "b"]


def test_imports_are_relative_to_the_importing_file() -> None:
    spec = project(
        'import "lib/b.layer" as b; base a { python = b.version; }',
        lib__b_layer='import "../lib/c.layer" as c; let version = c.version;',
        lib__c_layer='let version = "3.12";',
    )
    assert spec.layers["a"].python == PythonVersion(12)


def test_layers_of_an_imported_file_are_declared_and_reachable_after_on() -> None:
    library = 'base office { python = "3.12"; } base other { python = "3.11"; }'
    spec = project('import "lib.layer" as common; x viz on common.office { }', lib_layer=library)
    assert spec.layers["viz"].base == "office"
    assert set(spec.layers) == {"office", "other", "viz"}
    spec = project(
        'import "a.layer" as a; x viz on a.lib.office { }', a_layer='import "lib.layer" as lib;', lib_layer=library
    )
    assert spec.layers["viz"].base == "office"


def test_on_finds_a_base_of_another_file_by_its_name() -> None:
    spec = project("x viz on office { }", "other.layer", other_layer='base office { python = "3.12"; }')
    assert spec.layers["viz"].base == "office"


def test_on_takes_a_computed_name() -> None:
    spec = project(
        'for (v in [ 1 2 ]) { base "b${toString v}" { python = "3.12"; } x "x${toString v}" on "b${toString v}" { } }'
    )
    assert [spec.layers[f"x{n}"].base for n in (1, 2)] == ["b1", "b2"]


def test_loops_nest_and_have_a_scope_of_their_own() -> None:
    spec = project(
        """
        let v = "outer";
        for (v in [ "a" "b" ]) {
          for (w in [ 1 2 ]) {
            let name = "${v}${toString w}";
            base "${name}" { python = "3.12"; description = name; }
          }
        }
        base last { python = "3.12"; description = v; }
        """
    )
    assert {name: layer.description for name, layer in spec.layers.items()} == {
        "a1": "a1",
        "a2": "a2",
        "b1": "b1",
        "b2": "b2",
        "last": "outer",
    }


def test_loops_run_over_sets_and_may_be_empty() -> None:
    spec = project(
        'for (p in [ { n = "a"; v = "3.11"; } ]) { base "${p.n}" { python = p.v; } } for (n in [ ]) { base z { } }'
    )
    assert spec.layers["a"].python == PythonVersion(11)
    assert list(spec.layers) == ["a"]


def test_one_file_imported_twice_is_one_file() -> None:
    spec = project(
        'import "b.layer" as b; import "c.layer" as c; x y on b.office { }',
        b_layer='base office { python = "3.12"; }',
        c_layer='import "b.layer" as b; x z on b.office { }',
    )
    assert set(spec.layers) == {"office", "y", "z"}


def test_the_order_of_declarations_and_files_does_not_matter() -> None:
    a, b = 'base a { python = "3.12"; }', "x b on a { }"
    assert project(f"{a} {b}").layers == project(f"{b} {a}").layers
    files = MemoryReader({"a.layer": a, "b.layer": b})
    assert evaluate(["a.layer", "b.layer"], files) == evaluate(["b.layer", "a.layer"], files)


def test_a_name_that_is_used_twice_shows_both_places() -> None:
    found = errors(
        'base a { python = "3.12"; }\niso a { python = "3.12"; }',
        "other.layer",
        other_layer='base a { python = "3.11"; }',
    )
    assert [error.code for error in found] == ["eval-duplicate-layer"] * 2
    first = found[0].trail[0]
    assert "first" in first.message
    assert str(first.span) == "main.layer:1:6"
    assert {str(error.span) for error in found} == {"main.layer:2:5", "other.layer:1:6"}


def test_a_loop_that_repeats_a_name_says_in_which_turn() -> None:
    (error,) = errors('for (v in [ "1" "2" ]) { base a { python = "3.12"; } }')
    assert error.code == "eval-duplicate-layer"
    assert any('`v` is the string "2"' in note.message for note in error.trail)


def test_import_cycles_show_the_trail() -> None:
    """Issue 2.4: import cycles are errors."""
    (error,) = errors('import "b.layer" as b;', b_layer='import "c.layer" as c;', c_layer='import "main.layer" as m;')
    assert error.code == "eval-import-cycle"
    assert str(error.span) == "c.layer:1:8"
    assert [str(note.span) for note in error.trail] == ["b.layer:1:8", "main.layer:1:8"]
    (error,) = errors('import "./main.layer" as m;')
    assert (error.code, error.message) == ("eval-import-cycle", "`main.layer` imports itself")


def test_an_import_that_cannot_be_read_is_one_error_at_the_import() -> None:
    (error,) = errors(
        'import "nope.layer" as n; base a { python = n.version; packages = n.packages; } x y on n.office { }'
    )
    assert shown(error) == ('"nope.layer"', "eval-file-unreadable")
    (error,) = errors('import "../up.layer" as n;')
    assert error.code == "eval-path-outside-project"
    (error,) = errors('import "/etc/passwd" as n;')
    assert error.code == "eval-path-outside-project"


def test_a_syntax_error_in_one_file_hides_no_error_of_another_and_makes_no_echo() -> None:
    found = errors(
        'import "b.layer" as b; base a { python = b.version; pakages = [ ]; } x y on office { }', b_layer="let = ;"
    )
    assert [error.span.source.path for error in found if error.span] == ["main.layer", *["b.layer"] * (len(found) - 1)]
    assert shown(found[0]) == ("pakages", "eval-unknown-attribute")


def test_names_defined_twice_in_a_file() -> None:
    (error,) = errors("let a = 1;\nlet a = 2;")
    assert (error.code, str(error.span), str(error.trail[0].span)) == (
        "eval-duplicate-name",
        "main.layer:2:5",
        "main.layer:1:5",
    )
    (error,) = errors('import "b.layer" as a; let a = 2;', b_layer="")
    assert error.code == "eval-duplicate-name"


def test_unknown_names_are_found_in_code_that_never_runs() -> None:
    """Issue 2.3: an unknown name gets a "did you mean"."""
    found = errors('let plotting = [ ]; let unused = plottin; base a { python = "3.12"; packages = optionl true "x"; }')
    assert [(shown(error), error.hint) for error in found] == [
        (("plottin", "eval-undefined-name"), "did you mean `plotting`?"),
        (("optionl", "eval-undefined-name"), "did you mean `optional`?"),
    ]


@pytest.mark.parametrize(
    ("attribute", "hint"),
    [
        ('packages = [ "six=1.0" ]', 'one version is asked for with `==`: "six==1.0"'),
        ('packages = [ "pandas[excel] 2.2" ]', 'one version is asked for with `==`: "pandas[excel]==2.2"'),
        ('packages = [ "six>" ]', 'a requirement is a name, and what it may be: "pandas[excel]>=2.2"'),
        ('packages = "six"', 'a list is written in brackets: [ "six" ]'),
        ("sources = ./src", "a list is written in brackets: [ … ]"),
        (
            'platforms = [ "linux_x86_64" ]',
            'say which C library, and how old it may be: "manylinux_2_28_x86_64", "musllinux_1_2_x86_64"',
        ),
        (
            'platforms = [ "aarch64" ]',
            'say which C library, and how old it may be: "manylinux_2_28_aarch64", "musllinux_1_2_aarch64"',
        ),
        (
            'platforms = [ "manylinux2014_aarch64" ]',
            'write "manylinux_2_17_aarch64", which means the same (PEP 600)',
        ),
        ('platforms = [ "win_amd64" ]', 'layers are for Linux: "manylinux_2_28_x86_64"'),
        ('platforms = [ "manylinux_2_28_x86_46" ]', "did you mean `manylinux_2_28_x86_64`?"),
    ],
)
def test_habits_from_other_tools_get_what_to_write_instead(attribute: str, hint: str) -> None:
    (error,) = errors(f'base a {{ python = "3.12"; {attribute}; }}')
    assert error.hint == hint


def test_bases_that_do_not_exist_or_are_none() -> None:
    """Issue 2.3: an unknown base gets a "did you mean"."""
    text = 'base office { python = "3.12"; } iso old { python = "3.12"; } x viz on office { } '
    (error,) = errors(text + "x more on ofice { }")
    assert (shown(error), error.hint) == (("ofice", "eval-unknown-base"), "did you mean `office`?")
    (error,) = errors(text + "x more on old { }")
    assert shown(error) == ("old", "eval-not-a-base")
    (error,) = errors(text + "x more on viz { }")
    assert (error.code, error.hint) == ("eval-not-a-base", "did you mean its base, `office`?")
    (error,) = errors(text + "x more on lib.office { }")
    assert shown(error) == ("lib", "eval-undefined-name")
    (error,) = errors('import "b.layer" as lib; base office { python = "3.12"; } x y on lib.office { }', b_layer="")
    assert shown(error) == ("office", "eval-unknown-base")


def test_names_of_layers_are_checked() -> None:
    for name in ('"a.b"', '"-a"', '""', '"a b"', '"${"a/b"}"', '"ä"', '"' + "a" * 101 + '"'):
        (error,) = errors("base %s { }" % name)  # noqa: UP031 - braces
        assert error.code == "eval-layer-name", name


def test_a_loop_needs_a_list() -> None:
    (error,) = errors("for (v in 1) { }")
    assert shown(error) == ("1", "eval-type")
    (error,) = errors('for (v in throw "no") { }')
    assert error.code == "eval-throw"
