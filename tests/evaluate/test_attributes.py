"""Attributes of layers: what each accepts, and how a bad one is reported."""

from __future__ import annotations

import pytest

from envdsl.errors import Diagnostic
from envdsl.evaluate.spec import Waivers
from tests.evaluate.projects import base, errors, project, shown


def one(attributes: str, **more: str | bytes) -> Diagnostic:
    """The only error of ``base a`` with these attributes."""
    (error,) = errors('base a { python = "3.12"; %s }' % attributes, **more)  # noqa: UP031 - braces
    return error


def test_all_attributes_together() -> None:
    layer = base(
        """
        platforms = [ "musllinux_1_2_x86_64" "manylinux_2_28_x86_64" "musllinux_1_2_x86_64" ];
        packages = [ "Pandas[excel] >= 2.2" "rich; python_version >= '3.11'" ];
        constraints = [ "numpy<3" ]; overrides = [ "idna==3.7" ]; excludes = [ "Typing_Extensions" ];
        wheels = [ ./vendor/foo-1.0-py3-none-any.whl ]; sources = [ ./src ];
        env = { B = "2"; A = "1"; }; env.C = "3"; probe = [ "docx" "os.path" "docx" ]; index = [ "internal" ];
        exclude-newer = "7 days"; prereleases = true; bytecode = false; description = "d";
        allow = { record-mismatch = [ "Foo.Bar" ]; collisions = [ "bin/*" "a" ]; };
        meta = { owner = "x"; n = [ 1 null true { } ]; };
        """,
        vendor__foo_x=b"",
        **{"vendor__foo-1.0-py3-none-any_whl": b"", "src__a_py": b""},
    )
    assert [str(platform) for platform in layer.platforms] == ["musllinux_1_2_x86_64", "manylinux_2_28_x86_64"]
    assert [requirement.text for requirement in layer.packages] == [
        "Pandas[excel]>=2.2",
        'rich; python_version >= "3.11"',
    ]
    assert layer.excludes == ("typing-extensions",)
    assert [wheel.path for wheel in layer.wheels] == ["vendor/foo-1.0-py3-none-any.whl"]
    assert [source.path for source in layer.sources] == ["src"]
    assert layer.env == (("A", "1"), ("B", "2"), ("C", "3"))
    assert layer.probe == ("docx", "os.path")
    assert (layer.index, layer.exclude_newer, layer.prereleases, layer.bytecode) == (
        ("internal",),
        "7 days",
        True,
        False,
    )
    assert layer.allow == Waivers(("foo-bar",), ("a", "bin/*"))
    assert layer.meta == {"owner": "x", "n": [1, None, True, {}]}
    assert all(type(text) is str for text in (layer.description, *layer.probe, *layer.env[0], layer.packages[0].text))


def test_platforms_default_to_the_projects() -> None:
    assert [str(platform) for platform in base("").platforms] == ["manylinux_2_28_x86_64", "manylinux_2_28_aarch64"]


def test_requirements_that_mean_the_same_count_once() -> None:
    layer = base('packages = [ "NumPy>=1,<3" "numpy <3, >=1" "numpy" "foo_bar[b,a]" "foo-bar[a,b]" ];')
    assert [requirement.text for requirement in layer.packages] == ["NumPy<3,>=1", "numpy", "foo_bar[a,b]"]


@pytest.mark.parametrize(
    ("attributes", "text", "code"),
    [
        ('packages = [ "rich" "numpy>>2" ];', '"numpy>>2"', "eval-requirement"),
        ('packages = [ "rich" "" ];', '""', "eval-requirement"),
        (
            'packages = [ "foo @ https://example.org/f.whl" ];',
            '"foo @ https://example.org/f.whl"',
            "eval-requirement-url",
        ),
        ('packages = [ "a" ] ++ [ "b=1" ];', '"b=1"', "eval-requirement"),
        ('packages = map (n: n) [ "b=1" ];', '"b=1"', "eval-requirement"),
        ('packages = map (n: "${n}=1") [ "b" ];', '"${n}=1"', "eval-requirement"),
        ('packages = [ (concatStringsSep "" [ "a" "=1" ]) ];', 'concatStringsSep "" [ "a" "=1" ]', "eval-requirement"),
        ('packages = let bad = "b=1"; in optional true bad;', '"b=1"', "eval-requirement"),
        ("packages = [ 1 ];", "[ 1 ]", "eval-type"),
        ('packages = "numpy";', '"numpy"', "eval-type"),
        ('packages = { a = "numpy"; };', "packages", "eval-type"),
        ("packages = [ ./numpy ];", "[ ./numpy ]", "eval-type"),
        ('constraints = [ "a[b]<2" ];', '"a[b]<2"', "eval-requirement"),
        ('excludes = [ "a<2" ];', '"a<2"', "eval-bad-value"),
        ("python = 3;", "3", "eval-type"),
        ('platforms = [ "linux_x86_64" ];', '"linux_x86_64"', "eval-bad-value"),
        ('platforms = [ "manylinux_2_28_riscv64" ];', '"manylinux_2_28_riscv64"', "eval-bad-value"),
        ("platforms = [ ];", "[ ]", "eval-bad-value"),
        ('wheels = [ "./a.whl" ];', '"./a.whl"', "eval-type"),
        ("wheels = [ ./a.whl ];", "[ ./a.whl ]", "eval-bad-value"),
        ("wheels = [ ./src ];", "[ ./src ]", "eval-bad-value"),
        ("wheels = [ ./src/notawheel.whl ];", "[ ./src/notawheel.whl ]", "eval-bad-value"),
        ("sources = [ ./nope ];", "[ ./nope ]", "eval-bad-value"),
        ("sources = [ ../up ];", "../up", "eval-path-outside-project"),
        ('env = { PATH = "/x"; };', '"/x"', "eval-bad-value"),
        ('env.LD_PRELOAD = "x";', '"x"', "eval-bad-value"),
        ('env."A=B" = "x";', '"x"', "eval-bad-value"),
        ("env = { A = 1; };", "env", "eval-type"),
        ("env = [ ];", "[ ]", "eval-type"),
        ('probe = [ "a-b" ];', '"a-b"', "eval-bad-value"),
        ('probe = [ "a..b" ];', '"a..b"', "eval-bad-value"),
        ('probe = [ "a; import os" ];', '"a; import os"', "eval-bad-value"),
        ('probe = [ "class" ];', '"class"', "eval-bad-value"),
        ('index = [ "https://example.org" ];', '"https://example.org"', "eval-bad-value"),
        ('exclude-newer = "2026-02-30";', '"2026-02-30"', "eval-bad-value"),
        ('exclude-newer = "soon";', '"soon"', "eval-bad-value"),
        ("exclude-newer = 7;", "7", "eval-type"),
        ('prereleases = "yes";', '"yes"', "eval-type"),
        ("bytecode = null;", "null", "eval-type"),
        ("description = 1;", "1", "eval-type"),
        ("allow = { colisions = [ ]; };", "allow", "eval-unknown-attribute"),
        ('allow.collisions = [ "/abs" ];', '"/abs"', "eval-bad-value"),
        ("meta = { f = x: x; };", "meta", "eval-bad-value"),
        ("pakages = [ ];", "pakages", "eval-unknown-attribute"),
        ('"no such" = 1;', '"no such"', "eval-unknown-attribute"),
        ('description = throw "no";', 'throw "no"', "eval-throw"),
    ],
)
def test_a_bad_value_is_shown_where_it_stands(attributes: str, text: str, code: str) -> None:
    """Issue 2.3: a bad specifier points at its own string in the file."""
    if attributes.startswith("python"):
        (error,) = errors("base a { " + attributes + " }")
    else:
        error = one(attributes, src__notawheel_whl=b"")
    assert shown(error) == (text, code)


@pytest.mark.parametrize("version", ["3.9", "3.15", "3", "3.12.1", "2.7", "", "python3.12", "3.012"])
def test_python_is_a_known_feature_release(version: str) -> None:
    (error,) = errors('base a { python = "%s"; }' % version)  # noqa: UP031 - braces
    assert shown(error) == (f'"{version}"', "eval-python")


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("2026-01-31", "2026-01-31"),
        ("2026-01-31T12:00:00z", "2026-01-31T12:00:00Z"),
        ("2026-01-31T12:00:00+02:00", "2026-01-31T12:00:00+02:00"),
        ("1 Day", "1 day"),
        ("7 days", "7 days"),
        ("2  weeks", "2 weeks"),
    ],
)
def test_exclude_newer_is_a_date_or_an_age(written: str, kept: str) -> None:
    assert base(f'exclude-newer = "{written}";').exclude_newer == kept


def test_python_is_needed() -> None:
    (error,) = errors("base a { }")
    assert (error.code, error.hint) == ("eval-missing-attribute", 'add python = "3.12";')
    assert shown(error) == ("a", "eval-missing-attribute")


def test_an_unknown_attribute_offers_the_nearest() -> None:
    """Issue 2.3: an unknown attribute gets a "did you mean"."""
    assert one("pakages = [ ];").hint == "did you mean `packages`?"
    assert one("exclude_newer = 1;").hint == "did you mean `exclude-newer`?"
    assert one("allow.colisions = [ ];").hint == "did you mean `collisions`?"


def test_all_errors_of_all_attributes_come_in_one_run_in_order_of_place() -> None:
    """Issue 2.3: all errors are reported."""
    found = errors(
        """
        base a { packages = [ "a=1" "b" "c=1" ]; probe = [ "x-y" ]; pakages = [ ]; python = "3.9"; }
        iso b { }
        x c on a { packages = [ "d=1" ]; }
        x d on nope { }
        """
    )
    assert [shown(error)[0] for error in found] == ['"a=1"', '"c=1"', '"x-y"', "pakages", '"3.9"', "b", '"d=1"', "nope"]


def test_a_shared_error_is_told_once() -> None:
    found = errors('let bad = throw "no"; base a { python = bad; } base b { python = bad; description = bad; }')
    assert [shown(error) for error in found] == [('throw "no"', "eval-throw")]


def test_an_x_layer_has_its_bases_python_and_platforms() -> None:
    text = 'base a { python = "3.12"; platforms = [ "manylinux_2_28_x86_64" "manylinux_2_28_aarch64" ]; } '
    spec = project(text + 'x b on a { python = "3.12"; platforms = [ "manylinux_2_28_aarch64" ]; }')
    assert [str(platform) for platform in spec.layers["b"].platforms] == ["manylinux_2_28_aarch64"]
    (error,) = errors(text + 'x b on a { python = "3.11"; }')
    assert shown(error) == ('"3.11"', "eval-base-mismatch")
    (error,) = errors(text + 'x b on a { platforms = [ "musllinux_1_2_x86_64" ]; }')
    assert error.code == "eval-base-mismatch"
    assert "musllinux_1_2_x86_64" in error.message


def test_spans_of_requirements_are_kept() -> None:
    layer = base('packages = [ "rich" ];')
    span = layer.packages[0].span
    assert span is not None
    assert span.source.text[span.start : span.end] == '"rich"'


def test_the_trail_says_attribute_layer_and_turn() -> None:
    (error,) = errors(
        'let f = n: n + 1; for (v in [ "3.12" ]) { base "a${toString 1}" { python = v; description = f "x"; } }'
    )
    assert [note.message for note in error.trail] == [
        "while calling `f`",
        "while evaluating `description`",
        "in the layer `a1`",
        'in the turn of the loop where `v` is the string "3.12"',
    ]
