"""Licences as the metadata of wheels states them, and what a catalog makes of them.

Since PEP 639 a wheel carries an SPDX expression. Older ones have a classifier, which may leave open what exactly
is meant ("BSD License"), or free text. A statement is read into *alternatives*: the sets of licences of which one
has to be accepted as a whole, so that ``MIT OR (GPL-2.0-only AND BSD-3-Clause)`` is ``{MIT}`` or ``{GPL-2.0-only,
BSD-3-Clause}``. A statement that leaves several licences open is all of them together: each may be the one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from envdsl.policy.rules import Rules, Treatment

_TOKEN = re.compile(r"[()]|[^\s()]+")
_CLASSIFIER = re.compile(r"^license :: (?:osi approved(?: :: |$))?")
_MOST_ALTERNATIVES = 64
_LONGEST = 500  # characters of a statement

# Families of SPDX ids that a pattern may name; any other would be a typing mistake that denies nothing.
FAMILIES = (
    *(
        "AFL",
        "AGPL",
        "Apache",
        "APSL",
        "Artistic",
        "BSD",
        "BUSL",
        "CC",
        "CC-BY",
        "CC-BY-NC",
        "CC-BY-NC-ND",
        "CC-BY-NC-SA",
    ),
    *("CC-BY-ND", "CC-BY-SA", "CDDL", "CECILL", "CPL", "ECL", "Elastic", "EPL", "EUPL", "GFDL", "GPL", "LGPL", "LPL"),
    *(
        "LPPL",
        "MPL",
        "MS",
        "NPL",
        "OFL",
        "OSL",
        "PSF",
        "PolyForm-Noncommercial",
        "Python",
        "SSPL",
        "UPL",
        "Unicode",
        "ZPL",
    ),
)

_BSD = frozenset({"BSD-2-Clause", "BSD-3-Clause"})
_GPL = frozenset({"GPL-2.0-only", "GPL-2.0-or-later", "GPL-3.0-only", "GPL-3.0-or-later"})
_LGPL = frozenset({"LGPL-2.1-only", "LGPL-2.1-or-later", "LGPL-3.0-only", "LGPL-3.0-or-later"})

# What the classifiers of trove (after "License ::", "OSI Approved ::" left out) and the commonest free texts mean.
# A text that fits no single licence means all that it may be.
_TEXTS: dict[str, frozenset[str]] = {
    "mit license": frozenset({"MIT"}),
    "the mit license": frozenset({"MIT"}),
    "mit license (mit)": frozenset({"MIT"}),
    "mit no attribution license (mit-0)": frozenset({"MIT-0"}),
    "expat license": frozenset({"MIT"}),
    "bsd": _BSD,
    "bsd license": _BSD,
    "bsd-like": _BSD,
    "new bsd": frozenset({"BSD-3-Clause"}),
    "new bsd license": frozenset({"BSD-3-Clause"}),
    "modified bsd license": frozenset({"BSD-3-Clause"}),
    "bsd 3-clause": frozenset({"BSD-3-Clause"}),
    "3-clause bsd license": frozenset({"BSD-3-Clause"}),
    "bsd 3-clause license": frozenset({"BSD-3-Clause"}),
    "bsd-3-clause license": frozenset({"BSD-3-Clause"}),
    "simplified bsd license": frozenset({"BSD-2-Clause"}),
    "bsd 2-clause license": frozenset({"BSD-2-Clause"}),
    "apache": frozenset({"Apache-2.0"}),
    "apache 2": frozenset({"Apache-2.0"}),
    "apache 2.0": frozenset({"Apache-2.0"}),
    "apache license": frozenset({"Apache-2.0"}),
    "apache license 2.0": frozenset({"Apache-2.0"}),
    "apache license, version 2.0": frozenset({"Apache-2.0"}),
    "apache license version 2.0": frozenset({"Apache-2.0"}),
    "apache software license": frozenset({"Apache-2.0"}),
    "apache software license 2.0": frozenset({"Apache-2.0"}),
    "isc license": frozenset({"ISC"}),
    "isc license (iscl)": frozenset({"ISC"}),
    "python software foundation license": frozenset({"PSF-2.0"}),
    "psf": frozenset({"PSF-2.0"}),
    "psf license": frozenset({"PSF-2.0"}),
    "mozilla public license 2.0 (mpl 2.0)": frozenset({"MPL-2.0"}),
    "mozilla public license 2.0": frozenset({"MPL-2.0"}),
    "mpl 2.0": frozenset({"MPL-2.0"}),
    "the unlicense (unlicense)": frozenset({"Unlicense"}),
    "zlib/libpng license": frozenset({"Zlib"}),
    "historical permission notice and disclaimer (hpnd)": frozenset({"HPND"}),
    "zope public license": frozenset({"ZPL-2.1"}),
    "academic free license (afl)": frozenset({"AFL-3.0"}),
    "boost software license 1.0 (bsl-1.0)": frozenset({"BSL-1.0"}),
    "cc0 1.0 universal (cc0 1.0) public domain dedication": frozenset({"CC0-1.0"}),
    "eclipse public license 2.0 (epl-2.0)": frozenset({"EPL-2.0"}),
    "european union public licence 1.2 (eupl 1.2)": frozenset({"EUPL-1.2"}),
    "sil open font license 1.1 (ofl-1.1)": frozenset({"OFL-1.1"}),
    "gnu general public license (gpl)": _GPL,
    "gpl": _GPL,
    "gnu gpl": _GPL,
    "gnu general public license v2 (gplv2)": frozenset({"GPL-2.0-only"}),
    "gnu general public license v2 or later (gplv2+)": frozenset({"GPL-2.0-or-later"}),
    "gnu general public license v3 (gplv3)": frozenset({"GPL-3.0-only"}),
    "gnu general public license v3 or later (gplv3+)": frozenset({"GPL-3.0-or-later"}),
    "gplv2": frozenset({"GPL-2.0-only"}),
    "gplv3": frozenset({"GPL-3.0-only"}),
    "gplv3+": frozenset({"GPL-3.0-or-later"}),
    "gnu affero general public license v3": frozenset({"AGPL-3.0-only"}),
    "gnu affero general public license v3 or later (agplv3+)": frozenset({"AGPL-3.0-or-later"}),
    "agplv3": frozenset({"AGPL-3.0-only"}),
    "gnu library or lesser general public license (lgpl)": _LGPL,
    "lgpl": _LGPL,
    "gnu lesser general public license v2 (lgplv2)": frozenset({"LGPL-2.0-only"}),
    "gnu lesser general public license v2 or later (lgplv2+)": frozenset({"LGPL-2.1-or-later"}),
    "gnu lesser general public license v3 (lgplv3)": frozenset({"LGPL-3.0-only"}),
    "gnu lesser general public license v3 or later (lgplv3+)": frozenset({"LGPL-3.0-or-later"}),
    "lgplv3": frozenset({"LGPL-3.0-only"}),
}


@dataclass(frozen=True, slots=True)
class Ruling:
    """What follows from a licence. ``known``: it could be read; ``denied``: the catalog denies it; ``why`` names the
    licences concerned."""

    treatment: Treatment
    known: bool = True
    denied: bool = False
    why: str = ""


def parse_pattern(text: str) -> str:
    """An entry of ``allowed`` or ``denied``: an SPDX id in its canonical spelling, or a family such as ``GPL-*``.

    Raises ValueError.
    """
    if text.endswith("*"):
        family = text.removesuffix("*").rstrip("-")
        for known in FAMILIES:
            if known.lower() == family.lower():
                return f"{known}-*"
        close = get_close_matches(family, FAMILIES, 1)
        also = f"did you mean `{close[0]}-*`?" if close else f"those are {', '.join(FAMILIES)}"
        raise ValueError(f"is no family of licences; {also}")
    try:
        identifier = canonicalize_license_expression(text)
    except InvalidLicenseExpression as error:
        raise ValueError(f"is no SPDX licence id{_near(text)}") from error
    if " " in identifier.replace(" WITH ", "-"):
        raise ValueError("is an expression; list its licences one by one")
    return str(identifier)


def _near(text: str) -> str:
    """What may have been meant by something that is no SPDX id."""
    for family in FAMILIES:
        if family.lower() == text.lower():
            return f"; the family is `{family}-*`"
    common = {identifier.lower(): identifier for meant in _TEXTS.values() for identifier in meant}
    close = get_close_matches(text.lower(), sorted(common), 1)
    return f"; did you mean `{common[close[0]]}`?" if close else "; see https://spdx.org/licenses"


def rule(licence: str | None, rules: Rules) -> Ruling:
    """What ``rules`` make of a wheel's statement ``licence`` (None: it has none)."""
    if not (rules.allowed_licences or rules.denied_licences or rules.unknown_licence):
        return Ruling(Treatment.ALLOW)
    found = alternatives(licence) if licence else None
    if found is None:
        return Ruling(rules.unknown_licence or Treatment.ASK, known=False)
    open_to = [option for option in found if not any(_matches(item, rules.denied_licences) for item in option)]
    if not open_to:
        culprits = sorted({item for option in found for item in option if _matches(item, rules.denied_licences)})
        return Ruling(Treatment.DENY, denied=True, why=" and ".join(culprits))
    if not rules.allowed_licences or any(
        all(_matches(item, rules.allowed_licences) for item in option) for option in open_to
    ):
        return Ruling(Treatment.ALLOW)
    missing = sorted({item for option in open_to for item in option if not _matches(item, rules.allowed_licences)})
    return Ruling(rules.unlisted_licence or Treatment.ASK, why=" and ".join(missing))


@lru_cache(maxsize=4096)
def alternatives(statement: str) -> frozenset[frozenset[str]] | None:
    """The sets of SPDX ids of which one is to be accepted; None for a statement that can't be read.

    Several statements, such as classifiers, are separated by semicolons, and hold together.
    """
    if len(statement) > _LONGEST:
        return None  # somebody put the whole licence there
    parts = [_statement(" ".join(part.split())) for part in statement.split(";") if part.strip()]
    if not parts or any(part is None for part in parts):
        return None
    try:
        found = parts[0] or frozenset()
        for part in parts[1:]:
            found = _together(found, part or frozenset())
        return found
    except _TooComplex:
        return None


def _statement(text: str) -> frozenset[frozenset[str]] | None:
    key = _CLASSIFIER.sub("", text.lower())
    if key in _TEXTS:
        return frozenset({_TEXTS[key]})
    try:
        return _Expression(_TOKEN.findall(canonicalize_license_expression(text))).parse()
    except (InvalidLicenseExpression, _TooComplex):
        return None


class _TooComplex(Exception):  # noqa: N818 - never leaves this module
    """An expression with more alternatives than anybody means."""


def _together(left: frozenset[frozenset[str]], right: frozenset[frozenset[str]]) -> frozenset[frozenset[str]]:
    if len(left) * len(right) > _MOST_ALTERNATIVES:
        raise _TooComplex
    return frozenset(one | other for one in left for other in right)


class _Expression:
    """A canonical SPDX expression; AND binds more tightly than OR, WITH belongs to its licence."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def parse(self) -> frozenset[frozenset[str]]:
        found = self._both()
        while self._next("OR"):
            found |= self._both()
        return found

    def _both(self) -> frozenset[frozenset[str]]:
        found = self._one()
        while self._next("AND"):
            found = _together(found, self._one())
        return found

    def _one(self) -> frozenset[frozenset[str]]:
        if self._next("("):
            found = self.parse()
            self._next(")")
            return found
        identifier = self._tokens[self._at]
        self._at += 1
        if self._next("WITH"):
            identifier = f"{identifier} WITH {self._tokens[self._at]}"
            self._at += 1
        return frozenset({frozenset({identifier})})

    def _next(self, token: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at] == token:
            self._at += 1
            return True
        return False


def _matches(identifier: str, patterns: Iterable[str]) -> bool:
    """A licence with an exception is what its licence is, unless the whole of it is listed. ``X+`` is X or newer."""
    plain = identifier.partition(" WITH ")[0].removesuffix("+")
    return any(
        pattern in (identifier, plain) or (pattern.endswith("*") and plain.startswith(pattern[:-1]))
        for pattern in patterns
    )
