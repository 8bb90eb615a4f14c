"""What a request comes to, once it is resolved: the input of :func:`envdsl.policy.classify.classify`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Upload:
    """A wheel that came with a request. ``sha256`` is of the bytes that arrived."""

    filename: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Vulnerability:
    """A known vulnerability (OSV schema): its id, aliases such as the CVE, and one line of summary."""

    id: str
    aliases: tuple[str, ...] = ()
    summary: str = ""
    severity: str | None = None
    fixed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProposedWheel:
    """A wheel of the layer that would be built.

    ``size`` in bytes. ``released`` is when the index got it, ``licence`` an SPDX expression or the text that the
    metadata has instead; None where nobody says. ``yanked`` is the index's reason ("" for none given), None where it
    is not yanked. ``required_by`` are the requested names or distributions that bring it in; empty where it was asked
    for itself. ``imports`` are the import names of an uploaded wheel, which may be other than its name promises.
    """

    name: str
    version: str
    filename: str
    sha256: str
    size: int
    uploaded: bool = False
    released: datetime | None = None
    licence: str | None = None
    summary: str = ""
    yanked: str | None = None
    required_by: tuple[str, ...] = ()
    vulnerabilities: tuple[Vulnerability, ...] = ()
    imports: tuple[str, ...] = ()


class ProblemKind(StrEnum):
    """Why a request has no layer that could be built as it was asked for."""

    SDIST_ONLY = "sdist-only"
    UNRESOLVABLE = "unresolvable"
    CONTRADICTS_BASE = "contradicts-base"
    CONTRADICTS_SESSION = "contradicts-session"  # a bound x layer
    HASH_MISMATCH = "hash-mismatch"
    INVALID = "invalid"  # not a requirement, or not an acceptable wheel
    YANKED = "yanked"


@dataclass(frozen=True, slots=True)
class Problem:
    """Why there is no plan. ``packages`` are the names concerned, ``pin`` (``numpy==2.1``) what stands against them."""

    kind: ProblemKind
    message: str
    packages: tuple[str, ...] = ()
    pin: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A layer that could be built. ``lock`` is the PEP 751 text and ``digest`` its blake3: what is shown is built.

    ``note`` is what whoever decides has to know about it, such as that it leaves out what the session has now.
    """

    kind: str  # "x" or "iso"
    digest: str
    lock: str
    wheels: tuple[ProposedWheel, ...]
    note: str = ""

    @property
    def size(self) -> int:
        """Bytes of all wheels."""
        return sum(wheel.size for wheel in self.wheels)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A resolved request.

    ``requirements`` are normalised PEP 508; ``present`` is what the session has, by normalised name. ``extension`` is
    the x layer over the session's base, None where ``problem`` says why there is none, or where nothing is lacking.
    ``isolated`` is the layer that would replace the base, worked out where the request contradicts base or session.
    ``present_sha256`` are the wheels of ``present``; a proposal that was written before there was this has none.
    """

    session: str
    requirements: tuple[str, ...]
    uploads: tuple[Upload, ...]
    present: Mapping[str, str]
    extension: Plan | None = None
    isolated: Plan | None = None
    problem: Problem | None = None
    present_sha256: tuple[str, ...] = ()

    def has(self, wheel: ProposedWheel) -> bool:
        """Whether the session has this very wheel; another one of the same version is another one."""
        same = self.present.get(wheel.name) == wheel.version
        return same and (not self.present_sha256 or wheel.sha256 in self.present_sha256)


class Verdict(StrEnum):
    """How a request is sorted (DESIGN.md, "Policy and the python_env tool")."""

    PRESENT = "present"  # nothing to do: the session has it
    APPROVED = "approved"
    PERSON = "needs-person"
    REFUSED = "refused"


class Choice(StrEnum):
    """What a person may decide."""

    APPROVE = "approve"
    ISOLATE = "isolate"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason for a verdict. ``code`` is stable (``policy-unlisted``, ``policy-wheel-size`` …)."""

    code: str
    message: str
    package: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Classification:
    """The verdict with every reason, the gravest first, and the choices that a person has (none unless PERSON)."""

    verdict: Verdict
    reasons: tuple[Reason, ...]
    choices: tuple[Choice, ...] = ()
