"""What a request asks for, parsed and checked against what the session has; no resolver is asked here."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envdsl.policy.classify import CONTRADICTIONS
from envdsl.policy.proposal import Problem, ProblemKind, Upload

if TYPE_CHECKING:
    from packaging.requirements import Requirement

    from envdsl.session.manifest import BoundLayer, Manifest
    from envdsl.store.layout import Layout


@dataclass(frozen=True, slots=True)
class Need:
    """``requirements`` are those that hold for the session's Python and platform, by text, an uploaded wheel's name
    among them; ``names`` what they name; ``wheels`` the uploads that the session lacks, by distribution (several for
    several platforms)."""

    requirements: tuple[str, ...]
    names: frozenset[str]
    wheels: Mapping[str, tuple[Upload, ...]]


def normalise(requirements: Sequence[str]) -> tuple[tuple[str, ...], Problem | None]:
    """The requirements as ``packaging`` spells them, each once, sorted; and what is wrong with those that are none,
    which stay as they are."""
    from packaging.utils import canonicalize_name

    from envdsl.evaluate.requirement import parse_requirement

    texts: set[str] = set()
    wrong: list[str] = []
    for text in requirements:
        parsed = parse_requirement(text.strip())
        if isinstance(parsed, str):
            wrong.append(f"{_quoted(text)}: {parsed}")
            texts.add(text.strip())
        elif parsed.url:
            wrong.append(f"{_quoted(text)} names an address: ask for a name with versions, or upload the wheel")
            texts.add(text.strip())
        else:
            texts.add(canonicalize_name(parsed.name) + parsed.text[len(parsed.name) :])
    problem = None
    if wrong:
        hint = 'write requirements like "pandas>=2.2" or "httpx[http2]"'
        problem = Problem(ProblemKind.INVALID, f"no requirement: {'; '.join(wrong)}", hint=hint)
    return tuple(sorted(texts)), problem


def examine(
    layout: Layout, session: Manifest, requirements: Sequence[str], uploads: Sequence[Upload]
) -> tuple[Need, Problem | None]:
    """What is lacking to be resolved, and what is wrong with it before anything is resolved. ``requirements`` are
    normalised and well-formed."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    wheels: dict[str, tuple[Upload, ...]] = {}
    problems: list[Problem] = []
    for upload in uploads:
        name, problem = _check_upload(layout, session, upload)
        if problem is not None:
            problems.append(problem)
        if name is not None:
            wheels[name] = (*wheels.get(name, ()), upload)
    problems += _unfitting(session, wheels)
    environment = marker_environment(session)
    needed: dict[str, Requirement] = {}
    for text in requirements:
        requirement = Requirement(text)
        try:
            if requirement.marker is None or requirement.marker.evaluate(environment):
                needed[text] = requirement
        except (KeyError, ValueError) as error:  # of `os_name ~= "a"` nobody can say whether it holds
            problems.append(Problem(ProblemKind.INVALID, f"{_quoted(text)} has a marker without a meaning: {error}"))
    problems += _contradictions(
        session, [item for item in needed.values() if canonicalize_name(item.name) not in wheels]
    )
    names = {canonicalize_name(requirement.name) for requirement in needed.values()}
    texts = sorted({*needed, *(wheels.keys() - names)})
    grave = [problem for problem in problems if problem.kind not in CONTRADICTIONS]
    return Need(tuple(texts), frozenset(names | wheels.keys()), wheels), next(iter([*grave, *problems]), None)


def satisfied(need: Need, present: Mapping[str, str]) -> bool:
    """Whether the session has all of it already, as far as that can be told without resolving: extras can't."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    return not need.wheels and all(
        not requirement.extras
        and (version := present.get(canonicalize_name(requirement.name))) is not None
        and requirement.specifier.contains(version, prereleases=True)
        for requirement in map(Requirement, need.requirements)
    )


def marker_environment(session: Manifest) -> dict[str, str]:
    """The environment markers (PEP 508) of the session's interpreter and platform."""
    foundation = session.foundation
    return {
        "implementation_name": "cpython",
        "implementation_version": session.interpreter.version,
        "os_name": "posix",
        "platform_machine": foundation.platform.machine,
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": session.interpreter.version,
        "python_version": str(foundation.python),
        "sys_platform": "linux",
    }


def _check_upload(layout: Layout, session: Manifest, upload: Upload) -> tuple[str | None, Problem | None]:
    """The distribution that an uploaded wheel would bring, None where the session has this very wheel."""
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    try:
        name, version, _, _ = parse_wheel_filename(upload.filename)
    except InvalidWheelFilename as error:
        return None, Problem(ProblemKind.INVALID, f"{_quoted(upload.filename)} is not named like a wheel: {error}")
    path = layout.root / "uploads" / upload.sha256 / upload.filename
    try:
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        message = f"{upload.filename} with the sha256 {upload.sha256} was not uploaded here"
        return None, Problem(ProblemKind.INVALID, message, (name,), hint="upload the wheel again")
    if sha256 != upload.sha256:
        message = f"{upload.filename} has the sha256 {sha256}, and was announced with {upload.sha256}"
        return None, Problem(ProblemKind.HASH_MISMATCH, message, (name,), hint="upload the wheel again")
    for layer in session.layers:
        for package in layer.packages:
            if package.name == name and package.sha256 == sha256:
                return None, None
            if package.name == name:
                return name, _other_wheel(layer, layer is session.foundation, name, str(version), package.version)
    return name, None


def _unfitting(session: Manifest, wheels: Mapping[str, tuple[Upload, ...]]) -> Iterator[Problem]:
    """Distributions of which no uploaded wheel runs in the session."""
    from envdsl.lock import tags

    python, platform = session.foundation.python, session.foundation.platform
    for name, uploads in wheels.items():
        if tags.best([upload.filename for upload in uploads], python, platform) is None:
            files = ", ".join(upload.filename for upload in uploads)
            message = f"{name} has no wheel for {platform} with Python {python} among those uploaded ({files})"
            yield Problem(ProblemKind.INVALID, message, (name,), hint="build it for that Python and platform")


def _contradictions(session: Manifest, requirements: Iterable[Requirement]) -> Iterator[Problem]:
    """Requirements that name what the session has in another version: no resolver need be asked about them."""
    from packaging.utils import canonicalize_name

    has = {package.name: (package.version, layer) for layer in session.layers for package in layer.packages}
    for requirement in requirements:
        name = canonicalize_name(requirement.name)
        if name in has and not requirement.specifier.contains(has[name][0], prereleases=True):
            version, layer = has[name]
            base = layer is session.foundation
            kind = ProblemKind.CONTRADICTS_BASE if base else ProblemKind.CONTRADICTS_SESSION
            what = f"{layer.kind} {layer.name}" if base else f"layer {layer.name}"
            message = f"the request needs {name}{requirement.specifier}, but the session's {what} has {name} {version}"
            yield Problem(kind, message, (name,), f"{name}=={version}")


def _other_wheel(layer: BoundLayer, foundation: bool, name: str, version: str, present: str) -> Problem:
    kind = ProblemKind.CONTRADICTS_BASE if foundation else ProblemKind.CONTRADICTS_SESSION
    other = f"another wheel of {name} {present}" if version == present else f"{name} {present}"
    message = f"the uploaded wheel brings {name} {version}, and the session's layer {layer.name} has {other}"
    return Problem(kind, message, (name,), f"{name}=={present}")


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 100 else f"{text[:99]}…")
