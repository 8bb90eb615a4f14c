"""Issue 4.1: the catalog as a file that people edit."""

from __future__ import annotations

import re
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.policy.catalog import Catalog, parse_catalog
from envdsl.policy.classify import CODES
from envdsl.policy.quantities import parse_age, parse_size, spell_age, spell_size
from envdsl.policy.rules import UNLIMITED, Rules, Treatment

FULL = """
[allow]
packages = ["pandas>=2.2,<4", "Ruamel.YAML"]
groups = ["plotting"]
dependencies = true
unlisted = "deny"

[groups]
plotting = ["matplotlib>=3.8", "seaborn"]
learning = ["torch"]

[deny]
evil = "a known typing trap"
"requests<2.32" = "leaks"

[limits]
max-wheel-size = "50 MB"
max-closure-size = "1.5 GiB"
minimum-age = "7 days"
unknown-age = "allow"

[licences]
allowed = ["mit", "BSD-*"]
denied = ["AGPL-*"]
unknown = "ask"
unlisted = "deny"

[vulnerabilities]
known = "deny"
ignore = { "GHSA-1" = "on Windows only" }

[[session]]
pattern = "research-*"
allow = { groups = ["learning"], unlisted = "ask" }
limits.max-wheel-size = "none"

[[session]]
pattern = "research-secret-*"
deny.torch = "not here"
[session.licences]
allowed = ["Apache-2.0"]
"""


def parse(text: str) -> Catalog:
    return parse_catalog(dedent(text), name="layers.d/catalog.toml")


def mistakes(text: str) -> list[str]:
    """``line:column: message`` of each."""
    with pytest.raises(EnvdslError) as caught:
        parse(text)
    assert caught.value.exit_status is ExitStatus.USAGE
    found = []
    for item in caught.value.diagnostics:
        assert item.span is not None
        assert item.span.source.path == "layers.d/catalog.toml"
        found.append(f"{item.span.line}:{item.span.column}: {item.message}" + (f" ({item.hint})" if item.hint else ""))
    return found


def test_all_that_a_catalog_can_say_is_read() -> None:
    """Issue 4.1: allow, groups, deny with reason, sizes, licences, age, overrides."""
    catalog = parse(FULL)
    rules = catalog.rules
    assert [str(entry) for entry in rules.allow] == ["pandas<4,>=2.2", "ruamel-yaml"]
    assert [str(entry) for entry in catalog.listed] == ["pandas<4,>=2.2", "ruamel-yaml", "matplotlib>=3.8", "seaborn"]
    assert [(str(entry), entry.reason) for entry in rules.deny] == [
        ("evil", "a known typing trap"),
        ("requests<2.32", "leaks"),
    ]
    assert (rules.max_wheel_size, rules.max_closure_size) == (50_000_000, 1_610_612_736)
    assert rules.minimum_age == timedelta(days=7)
    assert rules.allowed_licences == ("MIT", "BSD-*")
    assert rules.ignored == ("GHSA-1",)
    assert catalog.allowed("pandas")[0].covers("2.3.1")
    assert not catalog.allowed("pandas")[0].covers("4.0")
    assert catalog.denied("requests")[0].covers("2.31.0")


def test_overrides_hold_for_the_sessions_that_match() -> None:
    """Issue 4.1: per-session overrides by pattern; lists add up, values replace."""
    catalog = parse(FULL)
    assert catalog.for_session("other").rules == catalog.rules
    research = catalog.for_session("research-7")
    assert research.rules.max_wheel_size == UNLIMITED
    assert research.rules.max_closure_size == catalog.rules.max_closure_size
    assert research.unlisted is Treatment.ASK
    assert research.allowed("torch")
    assert not catalog.allowed("torch")
    secret = catalog.for_session("research-secret-1")
    assert [entry.reason for entry in secret.denied("torch")] == ["not here"]
    assert secret.rules.allowed_licences == ("MIT", "BSD-*", "Apache-2.0")
    assert secret.for_session("anything").rules == secret.rules


def test_an_empty_catalog_lets_a_person_decide() -> None:
    assert parse("") == Catalog("layers.d/catalog.toml")
    assert parse("").unlisted is Treatment.ASK


def test_every_mistake_is_reported_with_its_place() -> None:
    """Issue 4.1: validated with places like layer files, all at once."""
    assert mistakes(
        """\
        [alow]
        [allow]
        packages = ["numpy", "pandas >", "numpy<3", 3, "x[y]", "a @ https://b/c"]
        group = []
        groups = ["ploting"]
        dependencies = "yes"
        [groups]
        plotting = "seaborn"
        "a b" = []
        [deny]
        evil = ""
        "not a name" = "x"
        Foo = "one"
        foo = "two"
        [limits]
        max-wheel-size = "50MiBs"
        minimum-age = 7
        [licences]
        allowed = ["MIT", "BSD", "MIT AND ISC", "AGPLL-*", "Apache 2"]
        unknown = "alow"
        [vulnerabilities]
        ignore = { "X" = 1 }
        [[session]]
        [[session]]
        pattern = "a/b"
        limit = {}
        """
    ) == [
        "1:2: unknown key `alow` (did you mean `allow`?)",
        "3:22: `pandas >` is no name with an optional specifier: expected semicolon (after name with no version "
        "specifier) or end",
        "3:34: numpy stands here twice, as `numpy` and as `numpy<3` "
        "(write one specifier; a comma means that both parts hold)",
        "3:45: this must be a string",
        "3:48: `x[y]` has extras, and a catalog lists names with specifiers only",
        "3:56: `a @ https://b/c` has an address, and a catalog lists names with specifiers only",
        "4:1: unknown key `group` in [allow] (did you mean `groups`?)",
        "5:11: `ploting` is no group of [groups]; did you mean `plotting`?",
        "6:16: `dependencies` must be true or false",
        "8:12: `plotting` must be an array of strings",
        "9:1: a group's name has letters, digits, `-` and `_` only",
        "11:8: why `evil` is denied must be a string; whoever asks for it reads it",
        "12:1: `not a name` is no name with an optional specifier: expected semicolon (after name with no version "
        "specifier) or end",
        "14:7: `foo` is denied already, as `Foo`",
        '16:18: `max-wheel-size` \'50MiBs\' is no size: write "50 MB" or "1.5 GiB"',
        '17:15: `minimum-age` \'7\' is no age: write "7 days", "12 hours" or "2 weeks"',
        "19:19: `BSD` is no SPDX licence id; the family is `BSD-*`",
        "19:26: `MIT AND ISC` is an expression; list its licences one by one",
        "19:41: `AGPLL-*` is no family of licences; did you mean `AGPL-*`?",
        "19:52: `Apache 2` is no SPDX licence id; did you mean `Apache-2.0`?",
        '20:11: `unknown` must be "allow", "ask" or "deny"; did you mean "allow"?',
        "22:18: why X does not count must be a string",
        '23:1: a [[session]] needs a `pattern`, such as "research-*"',
        "25:11: `pattern` has a character that no session's name has; `*` and `?` stand for any",
        "26:1: unknown key `limit` in [session] (did you mean `limits`?)",
    ]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[allow\n", "1:"),
        ("a = 1\na = 2\n", "2:"),
        ("x = [1,\n", "1:"),
        ("[allow]\npackages = [\n  'a'\n  'b'\n]\n", "4:"),
    ],
)
def test_what_is_no_toml_has_one_mistake_with_its_place(text: str, place: str) -> None:
    (found,) = mistakes(text)
    assert "is not valid TOML" in found
    assert found.startswith(place), found
    assert "line" not in found.partition("TOML")[2]


def test_wrong_tables_do_not_hide_other_mistakes() -> None:
    assert mistakes("allow = 3\nsession = 4\n[limits]\nmax-wheel-size = true\n") == [
        "1:9: `allow` must be a table",
        "2:11: `session` must be an array of tables: write [[session]]",
        "4:18: `max-wheel-size` must be a string",
    ]


def test_a_group_that_nothing_allows_is_warned_of() -> None:
    catalog = parse('[groups]\nplotting = ["seaborn"]\n')
    assert [item.message for item in catalog.warnings] == ["nothing allows the group `plotting`"]
    assert [item.severity for item in catalog.warnings] == ["warning"]
    assert not parse(FULL).warnings


@pytest.mark.parametrize(
    ("package", "session", "treatment", "certain", "words"),
    [
        ("pandas==2.3", None, "allow", True, "pandas<4,>=2.2 is allowed"),
        ("pandas", None, "allow", False, "pandas<4,>=2.2 is allowed"),
        ("pandas==5", None, "deny", True, "pandas 5 is not what is allowed (pandas<4,>=2.2)"),
        ("Seaborn", None, "allow", True, "seaborn is allowed"),
        ("evil==1", None, "deny", True, "evil is denied: a known typing trap"),
        ("requests==2.31", None, "deny", True, "requests<2.32 is denied: leaks"),
        ("requests", None, "deny", False, "requests is not listed; requests<2.32 is denied: leaks"),
        ("torch", None, "deny", True, "torch is not listed"),
        ("torch", "research-1", "allow", True, "torch is allowed"),
        ("torch", "research-secret-1", "deny", True, "torch is denied: not here"),
    ],
)
def test_explain_says_what_holds_for_a_name(
    package: str, session: str | None, treatment: str, certain: bool, words: str
) -> None:
    """Issue 4.1: ``explain PACKAGE``."""
    name, _, version = package.partition("==")
    catalog = parse(FULL)
    found = (catalog.for_session(session) if session else catalog).explain(name, version or None)
    assert (found.treatment, found.certain, found.message) == (treatment, certain, words)


def test_explain_names_the_groups_that_are_not_given() -> None:
    assert [entry.group for entry in parse(FULL).explain("torch").available] == ["learning"]


def test_the_catalog_of_the_curated_layers_is_valid() -> None:
    """Issue 4.1: a realistic catalog ships with the curated layers, and allows all that they are made of."""
    root = Path(__file__).parents[2]
    catalog = parse_catalog((root / "layers.d/catalog.toml").read_text(), name="layers.d/catalog.toml")
    assert not catalog.warnings
    listed = {entry.name for entry in (*catalog.rules.allow, *(e for group in catalog.groups.values() for e in group))}
    wanted = set()
    for lock in (root / "layers.d").glob("pylock.*.toml"):
        wanted |= set(re.findall(r'^name = "([a-z0-9-]+)"$', lock.read_text(), re.MULTILINE))
    assert wanted <= listed | {f"office-py3{minor}" for minor in (11, 12, 13)}  # of [tool.envdsl.base]


def test_the_example_of_the_documentation_is_valid_and_whole() -> None:
    """It shows every key that there is."""
    page = (Path(__file__).parents[2] / "docs/policy.md").read_text()
    example = page.partition("```toml\n")[2].partition("```")[0]
    assert not parse(example).warnings
    for key in (*(item.name for item in fields(Rules)), "pattern", "groups"):
        words = {"allow": "packages", "ignored": "ignore", "known_vulnerability": "known"}
        word = words.get(key, key.removeprefix("allowed_").removeprefix("denied_").removesuffix("_licence"))
        assert re.search(rf"^(\[)?{word.replace('_', '-')}\b", example, re.MULTILINE), key


def test_the_documentation_has_every_code() -> None:
    page = (Path(__file__).parents[2] / "docs/policy.md").read_text()
    assert set(re.findall(r"`(policy-[a-z-]+)`", page)) == set(CODES)


@given(st.integers(1, 999_999), st.sampled_from(["B", "kB", "MB", "GB", "KiB", "MiB", "GiB"]))
def test_sizes_are_read_as_they_are_written(number: int, unit: str) -> None:
    powers = {"B": 0, "k": 1, "K": 1, "M": 2, "G": 3}
    assert parse_size(f"{number} {unit}") == number * (1024 if "i" in unit else 1000) ** powers[unit[0]]


def test_quantities_for_people() -> None:
    assert [spell_size(count) for count in (0, 999, 1000, 12_345_678, 5 * 10**9)] == [
        "0 B",
        "999 B",
        "1 kB",
        "12.3 MB",
        "5 GB",
    ]
    assert [spell_age(timedelta(hours=hours)) for hours in (0, 1, 47, 48, 24 * 400)] == [
        "0 hours",
        "1 hour",
        "47 hours",
        "2 days",
        "400 days",
    ]
    assert parse_age("2 weeks") == timedelta(days=14)
