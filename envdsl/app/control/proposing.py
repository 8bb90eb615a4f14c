"""From a request to a proposal: the layer that would be built, with all that somebody who decides wants to know.

Whatever a person can be told is told as a :class:`~envdsl.policy.proposal.Problem`, not raised. An EnvdslError
(an index that can't be reached, a store without the lock of a bound layer) says that nothing could be found out
now, and nothing about the request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from envdsl.app.control import need as needs
from envdsl.app.control.bound_locks import kept_wheel
from envdsl.app.control.need import Need
from envdsl.app.control.resolving import NAME, Resolved, Resolver
from envdsl.app.control.vulnerabilities import Vulnerabilities
from envdsl.app.locking import index_configuration
from envdsl.app.traits import read_file
from envdsl.errors import EnvdslError, ExitStatus
from envdsl.lock.facts import FactsReader, WheelFacts
from envdsl.lock.lock import LockedPackage
from envdsl.policy.catalog import Catalog
from envdsl.policy.classify import CONTRADICTIONS
from envdsl.policy.proposal import Plan, Problem, ProblemKind, Proposal, ProposedWheel, Upload
from envdsl.store.layout import Layout

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane
    from envdsl.lock.index import IndexConfiguration
    from envdsl.lock.lock import LockedWheel
    from envdsl.session.manifest import Manifest

# What the codes of the room `lock` mean for a request, and what whoever asked can do.
_PROBLEMS: Mapping[str, tuple[ProblemKind, str]] = {
    "lock-unknown-package": (
        ProblemKind.UNRESOLVABLE,
        "check the spelling: the name to install may not be the import's",
    ),
    "lock-sdist-only": (
        ProblemKind.SDIST_ONLY,
        "nothing is built from source here: ask for a version that has wheels, or build the wheel and upload it",
    ),
    "lock-no-wheel-for-platform": (ProblemKind.UNRESOLVABLE, "ask for a version that has a wheel, or upload one"),
    "lock-python": (ProblemKind.UNRESOLVABLE, "ask for another version, or for a session with another Python"),
    "lock-no-version": (ProblemKind.UNRESOLVABLE, "relax the versions that are asked for"),
    "lock-unsatisfiable": (ProblemKind.UNRESOLVABLE, "relax the versions that are asked for"),
    "lock-base-conflict": (ProblemKind.UNRESOLVABLE, "relax the versions that are asked for"),
    "lock-base-pin-missing": (ProblemKind.UNRESOLVABLE, "ask whoever looks after the base to lock it again"),
    "lock-exclude-newer": (ProblemKind.UNRESOLVABLE, "relax the versions that are asked for"),
    "lock-platforms-disagree": (ProblemKind.UNRESOLVABLE, "ask for one version"),
    "lock-uv-failed": (ProblemKind.UNRESOLVABLE, "ask for less at once, to find out what cannot be had"),
    "lock-yanked": (ProblemKind.YANKED, "ask for another version"),
    "lock-hash-mismatch": (ProblemKind.HASH_MISMATCH, "a released file does not change: ask who changed it"),
    "lock-wheel-name": (ProblemKind.INVALID, "build the wheel again, and upload it"),
    "lock-wheel-missing": (ProblemKind.INVALID, "upload the wheel again"),
    "lock-wheel-unreadable": (ProblemKind.INVALID, "build the wheel again, and upload it"),
}
_ISOLATE = "an isolated environment, in place of what the session stands on, can have it: a person decides on that"
_NAMED = re.compile(
    r"no index knows a package `(?P<unknown>[^`]+)`|^no version of (?P<object>\S+) is"
    r"|^(?P<subject>[a-z0-9][a-z0-9._-]*) (?:has|wants|\S+ is yanked)\b"
)


def propose(plane: ControlPlane, session: Manifest, requirements: Sequence[str], uploads: Sequence[Upload]) -> Proposal:
    """Resolve what ``session`` asks for: PEP 508 ``requirements``, and wheels that were uploaded.

    Runs uv and asks indexes. Raises EnvdslError where nothing can be said about the request: ``lock-index-…``,
    ``app-lock-not-kept``, ``session-layer-damaged``, ``policy-catalog-…``.
    """
    layout = Layout(plane.project.config.store)
    texts, problem = needs.normalise(requirements)
    present = {package.name: package.version for layer in session.layers for package in layer.packages}
    ordered = tuple(sorted(set(uploads), key=lambda upload: (upload.filename, upload.sha256)))
    bound = sorted({package.sha256 for layer in session.layers for package in layer.packages})
    proposal = Proposal(session.session, texts, ordered, present, problem=problem, present_sha256=tuple(bound))
    if problem is not None:
        return proposal
    need, problem = needs.examine(layout, session, texts, ordered)
    if problem is None and needs.satisfied(need, present):
        return proposal
    configuration = index_configuration(plane.project)
    resolver = Resolver(
        session, need, layout=layout, configuration=configuration, reporter=plane.project.reporter, now=plane.now()
    )
    proposer = _Proposer(session, need, plane.catalog.for_session(session.session), resolver)
    if problem is None:
        outcome = proposer.extension()
    elif problem.kind in CONTRADICTIONS:
        outcome = proposer.contradiction(problem)
    else:
        outcome = _Outcome(problem=problem)
    describe = _Describer(plane, layout, configuration, frozenset(bound), need)
    return replace(
        proposal,
        extension=describe.plan(outcome.extension) if outcome.extension else None,
        isolated=describe.plan(outcome.isolated, outcome.note) if outcome.isolated else None,
        problem=outcome.problem,
    )


@dataclass(frozen=True, slots=True)
class _Outcome:
    """``failure`` is why the need has no solution even by itself."""

    extension: Resolved | None = None
    isolated: Resolved | None = None
    note: str = ""
    problem: Problem | None = None
    failure: EnvdslError | None = None


class _Proposer:
    """Finds out what there can be: an extension, nothing to do, an iso layer, or a problem."""

    def __init__(self, session: Manifest, need: Need, catalog: Catalog, resolver: Resolver) -> None:
        self._session = session
        self._need = need
        self._catalog = catalog
        self._resolver = resolver

    def extension(self) -> _Outcome:
        pins = self._resolver.pins
        try:
            found = self._resolver.extension(self._catalog, pins=pins)
        except EnvdslError as error:
            _raise_others(error)
            return self._without_extension(error, pins)
        present = self._resolver.present
        lacking = [item for item in found.lock.packages if present.get(item.name) != item.version]
        return _Outcome(extension=found if lacking or self._need.wheels else None)

    def contradiction(self, problem: Problem) -> _Outcome:
        """The way out of a contradiction that shows without resolving."""
        outcome = self._isolated(problem)
        if outcome.failure is not None and not self._need.wheels:
            return _Outcome(problem=_problem(outcome.failure))
        return replace(outcome, problem=replace(problem, hint=_ISOLATE if outcome.isolated else None))

    def _without_extension(self, error: EnvdslError, pins: Mapping[str, str]) -> _Outcome:
        if error.code in ("lock-unknown-package", "lock-hash-mismatch") or error.code.startswith("lock-wheel-"):
            return _Outcome(problem=_problem(error))
        try:
            alone = self._resolver.isolated(Catalog(), self._need.requirements)
        except EnvdslError as failure:
            _raise_others(failure)
            return _Outcome(problem=_problem(failure))
        problem = self._contradicts_session(pins) or self._contradicts_base(error, alone)
        return replace(self._isolated(problem, alone), problem=problem)

    def _isolated(self, problem: Problem, alone: Resolved | None = None) -> _Outcome:
        """The iso layer that keeps all that the session was declared with; else all but what ``problem`` names; else
        ``alone``, which has nothing but what was asked for."""
        everything = self._resolver.requirements_in_place()
        most = self._resolver.requirements_in_place(without=problem.packages)
        lost = ", ".join(sorted(set(everything) - set(most)))
        attempts = {everything: ""}
        attempts.setdefault(most, f"It gives up what the session's layers were declared with: {lost}.")
        attempts.setdefault(
            self._need.requirements,
            "It has nothing but what was asked for: together with what the session has, there is no solution.",
        )
        failure: EnvdslError | None = None
        for requirements, note in attempts.items():
            if alone is not None and requirements == self._need.requirements:
                return _Outcome(isolated=alone, note=note)
            try:
                return _Outcome(isolated=self._resolver.isolated(self._catalog, requirements), note=note)
            except EnvdslError as error:
                _raise_others(error)
                failure = error
        return _Outcome(failure=failure)

    def _contradicts_session(self, pins: Mapping[str, str]) -> Problem | None:
        """The problem, where the need could be had but for what the bound x layers have."""
        if not pins:
            return None
        try:
            found = self._resolver.extension(self._catalog, pins={})
        except EnvdslError as error:
            _raise_others(error)
            return None
        versions = {package.name: package.version for package in found.lock.packages}
        moved = [name for name, version in sorted(pins.items()) if versions.get(name, version) != version]
        if not moved:
            return None
        layers = {package.name: layer.name for layer in self._session.layers[1:] for package in layer.packages}
        clashes = "; ".join(
            f"it comes to {name} {versions[name]}, and the session's layer {layers[name]} has {name} {pins[name]}"
            for name in moved
        )
        return Problem(
            ProblemKind.CONTRADICTS_SESSION, clashes, tuple(moved), f"{moved[0]}=={pins[moved[0]]}", _ISOLATE
        )

    def _contradicts_base(self, error: EnvdslError, isolated: Resolved) -> Problem:
        base, message = self._session.foundation, str(error)
        has = {package.name: package.version for package in base.packages}
        versions = {package.name: package.version for package in isolated.lock.packages}
        moved = sorted(name for name, version in has.items() if versions.get(name, version) != version)
        if error.code == "lock-base-conflict":
            message = message.partition(": ")[2].replace("it needs", "the request needs", 1)
            moved.sort(key=lambda name: f"pins {name} " not in message)
            message = message.replace(f"`{base.name}` pins", f"the session's {base.kind} {base.name} has")
        elif moved:
            there = ", ".join(f"{name} {has[name]}" for name in moved)
            wanted = ", ".join(f"{name} {versions[name]}" for name in moved)
            message = f"it can be had with {wanted} only, and the session's {base.kind} {base.name} has {there}"
        else:
            message = f"it cannot be had on top of the session's {base.kind} {base.name}: {_spoken(error)}"
        pin = f"{moved[0]}=={has[moved[0]]}" if moved else None
        return Problem(ProblemKind.CONTRADICTS_BASE, message, tuple(moved), pin, _ISOLATE)


class _Describer:
    """From locks to plans: the wheels with what is known of each."""

    def __init__(
        self,
        plane: ControlPlane,
        layout: Layout,
        configuration: IndexConfiguration,
        bound: frozenset[str],
        need: Need,
    ) -> None:
        self._plane = plane
        self._layout = layout
        self._configuration = configuration
        self._bound = bound
        self._need = need

    def plan(self, resolved: Resolved, note: str = "") -> Plan:
        lock = resolved.lock
        (platform,) = lock.platforms
        found = [(package, wheel) for package in lock.packages if (wheel := package.wheel(platform)) is not None]
        lacking = [wheel for _, wheel in found if wheel.sha256 not in self._bound]
        facts = FactsReader(self._configuration, partial(kept_wheel, self._layout)).read(lacking)
        uploads = {upload.sha256 for items in self._need.wheels.values() for upload in items}
        parents = self._parents(lock.packages)
        known = self._vulnerabilities()
        wheels = []
        for package, wheel in found:
            fact = facts.get(wheel.sha256, WheelFacts())
            wheels.append(
                ProposedWheel(
                    name=package.name,
                    version=package.version,
                    filename=wheel.filename,
                    sha256=wheel.sha256,
                    size=wheel.size,
                    uploaded=wheel.sha256 in uploads,
                    released=fact.released,
                    licence=fact.licence,
                    summary=fact.summary,
                    yanked=fact.yanked,
                    required_by=parents[package.name],
                    vulnerabilities=known.of(package.name, package.version) if known else (),
                    imports=self._imports(wheel) if wheel.sha256 in uploads else (),
                )
            )
        return Plan(lock.kind.value, lock.digest, resolved.text, tuple(wheels), note)

    def _imports(self, wheel: LockedWheel) -> tuple[str, ...]:
        path = kept_wheel(self._layout, wheel)
        traits = read_file(path) if path is not None else None
        return traits.imports if traits is not None else ()

    def _vulnerabilities(self) -> Vulnerabilities | None:
        dump = self._plane.project.config.service.vulnerabilities
        return Vulnerabilities.open(dump, cache=self._layout.cache) if dump is not None else None

    def _parents(self, packages: Sequence[LockedPackage]) -> dict[str, tuple[str, ...]]:
        """What requires each package; nothing for those that were asked for by name. A package that no other of the
        layer requires comes by an extra of what the session has."""
        parents: dict[str, set[str]] = {package.name: set() for package in packages}
        for package in packages:
            for name in package.dependencies:
                if name in parents:
                    parents[name].add(package.name)
        others = self._need.names - parents.keys() or self._need.names
        return {
            name: () if name in self._need.names else tuple(sorted(found or others)) for name, found in parents.items()
        }


def _raise_others(error: EnvdslError) -> None:
    """Go on only with what says something about the request."""
    if error.exit_status is ExitStatus.ENVIRONMENT or error.code not in _PROBLEMS:
        raise error


def _problem(error: EnvdslError) -> Problem:
    kind, hint = _PROBLEMS[error.code]
    match = _NAMED.search(str(error))
    name = match[match.lastgroup or 0] if match else None
    return Problem(kind, _spoken(error), (name,) if name else (), hint=hint)


def _spoken(error: EnvdslError) -> str:
    """The message in the words of whoever asked, who knows of no layer."""
    return str(error).replace(f"`{NAME}`", "the request")
