"""Issue 4.1: licences, as wheels state them and as a catalog judges them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envdsl.policy.licences import alternatives, parse_pattern, rule
from envdsl.policy.rules import Rules, Treatment

RULES = Rules(allowed_licences=("MIT", "BSD-*", "Apache-2.0", "GPL-2.0-only"), denied_licences=("AGPL-*", "SSPL-1.0"))


@pytest.mark.parametrize(
    ("stated", "treatment", "why"),
    [
        ("MIT", "allow", ""),
        ("mit", "allow", ""),
        ("MIT License", "allow", ""),
        ("License :: OSI Approved :: BSD License", "allow", ""),
        ("BSD License; MIT License", "allow", ""),
        ("Apache Software License", "allow", ""),
        ("Apache-2.0 OR AGPL-3.0-only", "allow", ""),
        ("MIT AND BSD-3-Clause", "allow", ""),
        ("(MIT OR AGPL-3.0-only) AND BSD-2-Clause", "allow", ""),
        ("GPL-2.0-only WITH Classpath-exception-2.0", "allow", ""),
        ("AGPL-3.0-or-later", "deny", "AGPL-3.0-or-later"),
        ("GNU Affero General Public License v3", "deny", "AGPL-3.0-only"),
        ("MIT AND AGPL-3.0-only", "deny", "AGPL-3.0-only"),
        ("SSPL-1.0 OR AGPL-3.0-only", "deny", "AGPL-3.0-only and SSPL-1.0"),
        ("AGPL-3.0-only WITH Classpath-exception-2.0", "deny", "AGPL-3.0-only WITH Classpath-exception-2.0"),
        ("MPL-2.0", "ask", "MPL-2.0"),
        ("MIT AND MPL-2.0", "ask", "MPL-2.0"),
        ("MPL-2.0 OR AGPL-3.0-only", "ask", "MPL-2.0"),
        ("GNU General Public License (GPL)", "ask", "GPL-2.0-or-later and GPL-3.0-only and GPL-3.0-or-later"),
        ("MIT License; MPL 2.0", "ask", "MPL-2.0"),
    ],
)
def test_what_follows_from_a_licence(stated: str, treatment: str, why: str) -> None:
    found = rule(stated, RULES)
    assert (found.treatment, found.known, found.why) == (treatment, True, why)
    assert found.denied == (treatment == "deny")


@pytest.mark.parametrize(
    "stated", [None, "", "Dual License", "see LICENSE", "MIT OR", "MIT; whatever", "x" * 3000, "((("]
)
def test_what_is_not_understood_is_unknown(stated: str | None) -> None:
    found = rule(stated, RULES)
    assert (found.treatment, found.known) == (Treatment.ASK, False)
    assert rule(stated, Rules(unknown_licence=Treatment.DENY)).treatment is Treatment.DENY


def test_a_catalog_without_licences_asks_nothing() -> None:
    assert rule(None, Rules()).treatment is Treatment.ALLOW
    assert rule("AGPL-3.0-only", Rules()).treatment is Treatment.ALLOW


def test_only_a_list_of_denied_ones_allows_the_others() -> None:
    rules = Rules(denied_licences=("GPL-*",))
    assert rule("MPL-2.0", rules).treatment is Treatment.ALLOW
    assert rule("LGPL-3.0-only", rules).treatment is Treatment.ALLOW
    assert rule("GPL-3.0-or-later", rules).treatment is Treatment.DENY


def test_families_and_ids_are_spelled_as_spdx_has_them() -> None:
    assert [parse_pattern(text) for text in ("mit", "gpl-*", "cc-by-nc-*", "apache-2.0")] == [
        "MIT",
        "GPL-*",
        "CC-BY-NC-*",
        "Apache-2.0",
    ]


@given(
    st.lists(
        st.sampled_from(["MIT", "ISC", "AND", "OR", "(", ")", "WITH", "Classpath-exception-2.0", ";"]), max_size=40
    )
)
def test_no_expression_breaks_it(tokens: list[str]) -> None:
    found = alternatives(" ".join(tokens))
    assert found is None or all(isinstance(option, frozenset) for option in found)


def test_an_expression_that_explodes_is_unknown() -> None:
    assert alternatives(" AND ".join(["(MIT OR ISC)"] * 20)) == frozenset(
        {frozenset({"MIT"}), frozenset({"ISC"}), frozenset({"MIT", "ISC"})}
    )
    many = "MIT ISC Zlib MPL-2.0 BSD-2-Clause BSD-3-Clause 0BSD PSF-2.0 CC0-1.0 AFL-3.0 EPL-2.0 EUPL-1.2 Unlicense X11"
    pairs = many.split()
    assert (
        alternatives(" AND ".join(f"({one} OR {other})" for one, other in zip(pairs[::2], pairs[1::2], strict=True)))
        is None
    )
