"""What uv's refusal means for a layer: its explanation read, sorted, and said in the words of the layer file.

uv derives its answer as PubGrub does (Weizenbaum, "PubGrub: Next-Generation Version Solving"): "Because A and
B, we can conclude that C". The sentences are the interface here, as uv has no other; a sentence of an unknown
form ends in ``lock-unsatisfiable``, with uv's explanation as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.evaluate.spec import LayerSpec
from envdsl.lock.index import IndexConfiguration
from envdsl.lock.source import IndexSource
from envdsl.model.names import Platform
from envdsl.model.span import Span

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_EXTRAS = r"(?:\[[^\]]*\])?"
_SPECIFIER = r"(?:(?:[<>=!~]=?|===)[^\s]*[^\s,.])?"
_REQUIRED = re.compile(rf"you require (?P<name>{_NAME}){_EXTRAS}(?P<specifier>{_SPECIFIER})")
_UNKNOWN = re.compile(
    rf"(?P<name>{_NAME}){_EXTRAS} was not found in the (?:package registry|provided package locations)"
)
_OFFLINE = re.compile(rf"(?P<name>{_NAME}){_EXTRAS} was not found in the cache")
_SDIST = re.compile(rf"(?P<name>{_NAME}){_EXTRAS}(?P<specifier>{_SPECIFIER}) has no usable wheels")
_NO_WHEEL = re.compile(rf"(?P<name>{_NAME}){_EXTRAS}{_SPECIFIER} has no wheels with a matching (?P<what>[\w ]+?) tag")
_PYTHON = re.compile(
    rf"(?P<name>{_NAME}){_EXTRAS}{_SPECIFIER} (?:depends on|requires) Python ?(?P<specifier>{_SPECIFIER})"
)
_NO_VERSION = re.compile(rf"there (?:is|are) no versions? of (?P<name>{_NAME}){_EXTRAS}(?P<specifier>{_SPECIFIER})")
_ONLY = re.compile(
    rf"only (?P<name>{_NAME}){_EXTRAS}(?P<there>{_SPECIFIER}) is available and "
    rf"(?P<who>you require|\S+ depends on) (?P<need>(?P=name){_EXTRAS}{_SPECIFIER})"
)
_TOO_NEW = re.compile(rf"`(?P<name>{_NAME})` was filtered by `exclude-newer`")
_CLASH = re.compile(
    rf"(?:depends on|require) (?P<name>{_NAME}){_EXTRAS}{_SPECIFIER} and "
    rf"(?:\S+ depends on |you require |)(?P=name)(?![\w.-])"
)
_FETCH = re.compile(r"Failed to (?:fetch|download)[: ]+`?(?P<url>[^\s`]+)")
_WHEEL = re.compile(r"Failed to read `[^`]+ @ file:[^`]*/(?P<file>[^/`]+)`")
_NETWORK = re.compile(
    r"error sending request|client error|HTTP status|timed out|Request failed|dns error", re.IGNORECASE
)
_CREDENTIALS = re.compile(r"\((?P<url>\S+)\).*(?:401 Unauthorized|403 Forbidden)")
_PRERELEASE = re.compile(rf"Pre-releases are available for `?(?P<name>{_NAME})`?")
_AVAILABLE = re.compile(r"(?:following platforms?|following Python ABI tags?|following \w+ tags?): (?P<tags>.+)")

_SHOWN = 8  # tags


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What was asked when uv refused. ``base_pins`` are those of the base ``base`` of an x layer; ``wheels`` returns
    the names of the wheels that the indexes have of a project, as far as they can be asked; ``configuration`` knows
    these."""

    spec: LayerSpec
    platform: Platform
    base: str | None = None
    base_pins: Mapping[str, str] = field(default_factory=dict)
    wheels: Callable[[str], Iterable[str]] = lambda name: ()
    configuration: IndexConfiguration | None = None

    def place(self, url: str) -> str:
        """The index that ``url`` is of by its label, or else the URL."""
        source = self.configuration.source_of(url) if self.configuration else None
        return source.label if source is not None and source.name else url


def explain(message: str, asked: Circumstances) -> EnvdslError:
    """The error for a refusal of uv, ``message`` being its redacted stderr."""
    explanation, hints = _clean(message)
    facts = _normalise(explanation)
    layer, platform = asked.spec.name, asked.platform

    def error(code: str, text: str, *, about: Iterable[str] = (), **others: Any) -> EnvdslError:
        details = {"layer": layer, "platform": str(platform), "explanation": explanation}
        # The package concerned may be a dependency: then the requirement that led to it is the place.
        names = (*about, *(match["name"] for match in _REQUIRED.finditer(facts)))
        return EnvdslError.of(code, text, span=requirement_span(asked.spec, names), details=details, **others)

    def no_wheel(name: str, there_are: str) -> EnvdslError:
        return error(
            "lock-no-wheel-for-platform",
            f"{name} has no wheel for {platform} with Python {asked.spec.python} in the versions that `{layer}` allows",
            about=[name],
            hint=(f"it has wheels for {there_are}; " if there_are else "")
            + "allow a version that has one, leave the platform out of `platforms`, or use a marker",
        )

    if match := _CREDENTIALS.search(hints):
        return error(
            "lock-index-credentials",
            f"the index {asked.place(match['url'])} refuses our credentials, or wants some",
            hint="give them by netrc, a keyring, or UV_INDEX_<NAME>_USERNAME and _PASSWORD for an index with a name",
            exit_status=ExitStatus.ENVIRONMENT,
        )
    if match := _OFFLINE.search(facts):
        return error(
            "lock-offline",
            f"{match['name']} cannot be resolved offline: nothing about it is in uv's cache or the wheelhouse",
            about=[match["name"]],
            hint="lock once with network, or put its wheel into a flat index of envdsl.toml",
            exit_status=ExitStatus.ENVIRONMENT,
        )
    if match := _WHEEL.search(explanation):
        wheel = next((wheel for wheel in asked.spec.wheels if wheel.path.endswith(match["file"])), None)
        return EnvdslError.of(
            "lock-wheel-unreadable",
            f"the wheel {wheel.path if wheel else match['file']} cannot be used: {explanation.splitlines()[-1]}",
            span=wheel.span if wheel else asked.spec.span,
            hint="build it again",
        )
    if "unsatisfiable" not in explanation:
        if _NETWORK.search(explanation):
            return _unreachable(explanation, asked, error)
        return error("lock-uv-failed", f"uv could not resolve `{layer}` for {platform}:\n{explanation}")
    if match := _UNKNOWN.search(facts):
        owner = asked.configuration.owner(match["name"]) if asked.configuration is not None else None
        if owner is not None:
            return _unknown_to_owner(match["name"], owner, asked, error)
        return error(
            "lock-unknown-package",
            f"no index knows a package `{match['name']}`",
            about=[match["name"]],
            hint="check the spelling; for an internal package, name its index in envdsl.toml",
        )
    if found := _base_conflict(facts, asked, error):
        return found
    if match := _TOO_NEW.search(hints):
        name, cutoff = match["name"], asked.spec.exclude_newer
        untold = re.search(r"is missing an upload date", message)
        return error(
            "lock-exclude-newer",
            f"the index does not say when {name} was uploaded, so `exclude-newer` ({cutoff}) leaves nothing of it"
            if untold
            else f"all suitable versions of {name} are newer than `exclude-newer` ({cutoff})",
            about=[name],
            hint="use an index that tells (PEP 700), or leave `exclude-newer` out"
            if untold
            else "move `exclude-newer`, or relax the requirement",
        )
    if not _CLASH.search(facts):
        if match := _SDIST.search(facts):
            # uv says the same where wheels are for other Pythons and platforms, and a source distribution lies beside.
            if there_are := _tags(asked.wheels(match["name"]), match["specifier"]):
                return no_wheel(match["name"], there_are)
            return error(
                "lock-sdist-only",
                f"{match['name']} has no wheels in the versions that `{layer}` allows, only source distributions",
                about=[match["name"]],
                hint=f"envdsl builds nothing: choose a version with wheels, or build the wheel yourself "
                f"(`pip wheel {match['name']}`) and add it to `wheels`",
            )
        if match := _NO_WHEEL.search(facts):
            there = _AVAILABLE.search(hints)
            return no_wheel(match["name"], there["tags"] if there else "")
        if match := _PYTHON.search(facts):
            return error(
                "lock-python",
                f"{match['name']} wants Python{match['specifier']}, and `{layer}` has {asked.spec.python}",
                about=[match["name"]],
                hint="allow another version of it, or another `python`",
            )
        if match := _ONLY.search(facts) or _NO_VERSION.search(facts):
            there_are_some = "there are pre-releases: `prereleases = true` allows them"
            return error(
                "lock-no-version",
                _too_few(match, layer),
                about=[match["name"]],
                hint=there_are_some if _PRERELEASE.search(hints) else "relax the requirement",
            )
    return error(
        "lock-unsatisfiable",
        f"the requirements of `{layer}` contradict each other for {platform}:\n{explanation}",
        hint="relax one of them, or say with `overrides` which one is to hold",
    )


def _tags(wheels: Iterable[str], specifier: str) -> str:
    """The tags of those of ``wheels`` (file names) whose version is in ``specifier``; "" for none of them."""
    from packaging.specifiers import SpecifierSet
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    allowed = SpecifierSet(specifier)
    found: set[str] = set()
    for filename in wheels:
        try:
            _, version, _, tags = parse_wheel_filename(filename)
        except InvalidWheelFilename:
            continue
        if allowed.contains(version, prereleases=True):
            found |= {f"{tag.interpreter}-{tag.platform}" for tag in tags}
    shown = sorted(found)
    return ", ".join(f"`{tag}`" for tag in shown[:_SHOWN]) + (" and others" if len(shown) > _SHOWN else "")


def _too_few(match: re.Match[str], layer: str) -> str:
    if match.re is not _ONLY:
        return f"no version of {match['name']} is what `{layer}` asks for"
    who = f"`{layer}`" if match["who"] == "you require" else match["who"].removesuffix(" depends on")
    return f"{who} requires {match['need']}, and there is only {match['name']}{match['there']}"


def _base_conflict(facts: str, asked: Circumstances, error: Any) -> EnvdslError | None:
    for name, version in asked.base_pins.items():
        pin = re.escape(f"{name}=={version}")
        if re.search(rf"no versions? of {pin}(?![\w.+!-])", facts):
            return error(  # type: ignore[no-any-return]
                "lock-base-pin-missing",
                f"the base `{asked.base}` pins {name} {version}, and no index offers that version",
                hint=f"`envdsl lock {asked.base} --upgrade-package {name}` moves the pin",
            )
        if not re.search(rf"(?<![\w.-]){pin}(?![\w.+!-])(?! depends on| has no)", facts):
            continue
        wants = re.search(
            rf"(?:(?P<who>{_NAME}{_EXTRAS}{_SPECIFIER}) depends on|(?P<you>you require)) "
            rf"(?P<need>{re.escape(name)}{_EXTRAS}(?!=={re.escape(version)}(?![\w.]))(?:[<>=!~]=?|===)[^\s]*[^\s,.])",
            facts,
        )
        who = "it" if wants is None or wants["you"] else wants["who"]
        need = f"{who} needs {wants['need']}, but" if wants else "it needs another version, but"
        return error(  # type: ignore[no-any-return]
            "lock-base-conflict",
            f"`{asked.spec.name}` cannot stand on `{asked.base}`: {need} `{asked.base}` pins {name} {version}",
            about=[] if wants is None else [name if wants["you"] else re.split(r"[\[<>=!~]", wants["who"])[0]],
            hint=f"relax the requirement, or declare `iso {asked.spec.name}`, which replaces the base;"
            f" `envdsl lock {asked.base} --upgrade-package {name}` would move the pin",
        )
    return None


def _unknown_to_owner(name: str, owner: IndexSource, asked: Circumstances, error: Any) -> EnvdslError:
    if asked.configuration is not None and not asked.configuration.sources_for(name):
        return error(  # type: ignore[no-any-return]
            "lock-index-left-out",
            f"{name} belongs to the index {owner.label}, which the `index` of `{asked.spec.name}` leaves out",
            about=[name],
            hint=f'add "{owner.name}" to `index`, or do without the package',
        )
    return error(  # type: ignore[no-any-return]
        "lock-unknown-package",
        f"the index {owner.label} knows no package `{name}`, and by its `packages` no other index is asked for it",
        about=[name],
        hint="check the spelling, or publish it there; `packages` of that [[index]] in envdsl.toml claims the name",
    )


def _unreachable(explanation: str, asked: Circumstances, error: Any) -> EnvdslError:
    match = _FETCH.search(explanation)
    causes = [line.strip() for line in explanation.splitlines() if line.strip()]
    place = f"the index at {asked.place(match['url'])}" if match else "an index"
    return error(  # type: ignore[no-any-return]
        "lock-index-unreachable",
        f"{place} cannot be asked, after several attempts: {causes[-1] if causes else 'no reason given'}",
        hint="check the network and the index's address, or work with --offline from what is there",
        exit_status=ExitStatus.ENVIRONMENT,
    )


def _normalise(explanation: str) -> str:
    """The explanation in one line, each fact in one spelling: "all versions of a depend on b" is "a depends on b"."""
    text = re.sub(rf"all versions of ({_NAME})", r"\1", " ".join(explanation.split()))
    return text.replace(" depend on ", " depends on ").replace(" have no ", " has no ")


def _clean(message: str) -> tuple[str, str]:
    """uv's explanation without its frame, and its hints."""
    explanation: list[str] = []
    hints: list[str] = []
    target = explanation
    for line in message.splitlines():
        text = re.sub(r"^\s*(?:[×╰─▶│├]+\s*)?(?:error: |cause: |Caused by: )?", "", line)
        if re.match(r"(?:warning|Resolved|Using |Downloading )", text):
            continue
        if text.startswith("hint: "):
            target = hints
            text = text.removeprefix("hint: ")
        elif text.startswith("No solution found"):
            continue
        elif re.match(r"\s*(?:error|cause): ", line):
            target = explanation
        target.append(text.rstrip())
    return "\n".join(line for line in explanation if line), " ".join(line for line in hints if line)


def requirement_span(spec: LayerSpec, names: Iterable[str]) -> Span | None:
    """Where the first of ``names`` that the layer requires stands in its file; else the layer itself."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    spans: dict[str, Span] = {}
    for requirement in (*spec.overrides, *spec.constraints, *spec.packages):
        if requirement.span is not None:
            spans[canonicalize_name(Requirement(requirement.text).name)] = requirement.span
    return next((spans[name] for name in map(canonicalize_name, names) if name in spans), spec.span)
