"""One version of each distribution for all platforms of a layer.

uv resolves for one platform at a time. Each platform is asked to prefer what the others have got; a
preference bends where a platform has no such wheel, and then the others are asked again with what it took
instead. This goes on until all agree: a fixed point that needs no backtracking of our own, since uv's search
does that within each platform. Pins of the existing lock are the first preferences, which is what keeps a
change minimal.

Hard constraints are only: the layer's own, the pins of its base, and the exclusion of yanked versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from envdsl.errors import Diagnostic, EnvdslError
from envdsl.evaluate.spec import LayerSpec
from envdsl.lock.ambient import FIRST_INDEX
from envdsl.lock.explain import Circumstances, explain, requirement_span
from envdsl.lock.local import LocalWheels
from envdsl.lock.lock import Lock
from envdsl.lock.question import Answer, Question
from envdsl.lock.uv import Uv, UvFailure
from envdsl.model.names import Platform
from envdsl.reporter import Reporter


@dataclass(frozen=True, slots=True)
class Resolution:
    """An answer for each platform, at one version of each package; ``dependencies`` by package over all platforms."""

    answers: Mapping[Platform, Answer]
    dependencies: Mapping[str, set[str]]

    @property
    def pins(self) -> dict[str, str]:
        return {name: version for answer in self.answers.values() for name, version in answer.pins.items()}


class Resolver:
    """Resolves one layer. ``upgrade`` names the packages to ask the indexes anew about (``True``: all)."""

    def __init__(
        self,
        spec: LayerSpec,
        uv: Uv,
        *,
        base: Lock | None,
        local: LocalWheels,
        reporter: Reporter,
        exclude_newer: str | None = None,
        find_links: tuple[Path, ...] = (),
        upgrade: bool | tuple[str, ...] = False,
    ) -> None:
        self._spec = spec
        self._uv = uv
        self._local = local
        self._reporter = reporter
        self._upgrade = upgrade
        self._platforms = tuple(sorted(spec.platforms))
        self._base = base
        self._base_pins = {package.name: package.version for package in base.packages} if base else {}
        self._excluded: dict[str, str] = {}
        self._question = Question(
            python=spec.python,
            platform=self._platforms[0],
            requirements=tuple(requirement.text for requirement in spec.packages),
            overrides=self._with_base("overrides", tuple(requirement.text for requirement in spec.overrides)),
            excludes=self._with_base("excludes", spec.excludes),
            prereleases=spec.prereleases,
            exclude_newer=exclude_newer,
            exempt=tuple(sorted({*self._base_pins, *local.names})) if exclude_newer else (),
            find_links=find_links,
        )

    def resolve(self, pins: Mapping[str, str]) -> Resolution:
        """Resolve for all platforms, keeping ``pins`` where they fit. Raises EnvdslError (``lock-…``)."""
        preferred = {name: version for name, version in pins.items() if name not in self._base_pins}
        answers: dict[Platform, Answer] = {}
        # Each round settles at least the package that the round before disagreed on, in practice in one.
        with self._reporter.task(f"Resolving {self._spec.name}", len(self._platforms)) as task:
            for attempt in range(2 + len(self._platforms)):
                for platform in self._platforms:
                    if platform in answers and _agrees(answers[platform], preferred):
                        continue
                    task.describe(str(platform))
                    answers[platform] = self._ask(platform, preferred, refresh=attempt == 0)
                    preferred.update(answers[platform].pins)
                    if attempt == 0:
                        task.advance()
                if not _disagreements(answers):
                    return Resolution(answers, self._dependencies(answers))
        raise self._no_agreement(answers)

    def _ask(self, platform: Platform, preferred: dict[str, str], *, refresh: bool) -> Answer:
        """The answer for one platform, without any version that is yanked."""
        question = replace(
            self._question,
            platform=platform,
            constraints=tuple(self._constraints(platform)),
            preferences=preferred,
            refresh=self._upgrade if refresh else False,
        )
        answer = self._uv_answer(question)
        self._check_local(answer, platform)
        for name, reason in sorted(answer.yanked.items()):
            version = answer.packages[name].version
            if name in self._base_pins:
                self._warn_of_base(name, version, reason)
                continue
            # A pin of the old lock gives way to the next version; an exact requirement does not.
            self._excluded[name] = f"{name}!={version}"
            preferred.pop(name, None)
            try:
                return self._ask(platform, preferred, refresh=False)
            except EnvdslError as error:
                raise self._yanked(name, version, reason) from error
        return answer

    def _uv_answer(self, question: Question) -> Answer:
        try:
            # A route answers with one index; which of several counts is settled there.
            if self._uv.configuration.strategy == FIRST_INDEX or self._uv.route is not None:
                return self._uv.resolve(question)
            return self._among_several_indexes(question)
        except UvFailure as failure:
            circumstances = Circumstances(
                self._spec,
                question.platform,
                self._spec.base,
                self._base_pins,
                self._wheels_of,
                self._uv.configuration,
            )
            raise explain(failure.message, circumstances) from failure

    def _wheels_of(self, name: str) -> list[str]:
        """The names of the wheels that the indexes have of a project: of those that answer."""
        from packaging.utils import canonicalize_name

        from envdsl.lock.pages import Pages

        project, found = canonicalize_name(name), []
        pages = Pages(self._uv.configuration)
        for source in self._uv.configuration.sources_for(project):
            if source.directory is None and self._uv.offline:
                continue
            with suppress(EnvdslError):
                names = pages.filenames(source, project)
                wheels = [name for name in names if name.endswith(".whl")]
                found += [wheel for wheel in wheels if canonicalize_name(wheel.split("-")[0]) == project]
        return found

    def _among_several_indexes(self, question: Question) -> Answer:
        """Resolve where the best match of all indexes counts, as with pip's configuration.

        There uv passes over a preferred version altogether if the first index that knows it has no file that
        fits, whatever the next one has. So preferences are tried as constraints: all of them, and if that
        can't be, one by one those that uv moved.
        """
        try:
            return self._uv.resolve(self._pinning(question, question.preferences))
        except UvFailure:
            answer = self._uv.resolve(question)
        preferred = question.preferences
        for name in [name for name, version in answer.pins.items() if preferred.get(name, version) != version]:
            kept = {other: version for other, version in answer.pins.items() if preferred.get(other) == version}
            try:
                answer = self._uv.resolve(self._pinning(question, {**kept, name: preferred[name]}))
            except UvFailure:
                continue
        return answer

    # A preference beside the constraint would hide the very version again.
    def _pinning(self, question: Question, pins: Mapping[str, str]) -> Question:
        constraints = tuple(f"{name}=={version}" for name, version in pins.items() if name not in self._local)
        return replace(question, constraints=question.constraints + constraints, preferences={})

    def _constraints(self, platform: Platform) -> Iterator[str]:
        yield from (requirement.text for requirement in self._spec.constraints)
        yield from self._excluded.values()
        for name in self._local.names:
            if (wheel := self._local.best(name, self._spec.python, platform)) is not None:
                yield wheel.requirement
        for name, version in self._base_pins.items():
            if name not in self._local:
                yield f"{name}=={version}"

    def _dependencies(self, answers: Mapping[Platform, Answer]) -> dict[str, set[str]]:
        """What each package requires, as uv's annotations have it for each platform."""

        def ask(platform: Platform) -> dict[str, set[str]]:
            question = replace(self._question, platform=platform, constraints=tuple(self._constraints(platform)))
            return self._uv.dependents(self._pinning(question, answers[platform].pins))

        dependencies: dict[str, set[str]] = {}
        try:
            with ThreadPoolExecutor(len(self._platforms)) as pool:
                for dependents in pool.map(ask, self._platforms):
                    for name, parents in dependents.items():
                        for parent in parents:
                            dependencies.setdefault(parent, set()).add(name)
        except UvFailure as failure:
            raise explain(
                failure.message, Circumstances(self._spec, self._platforms[0], configuration=self._uv.configuration)
            ) from failure
        return dependencies

    def _with_base(self, key: str, own: tuple[str, ...]) -> tuple[str, ...]:
        """The layer's ``overrides`` or ``excludes`` with those of its base, under which the base's pins came about."""
        inherited = self._base.recorded.get(key, []) if self._base else []
        assert isinstance(inherited, list)
        named = {_name(item) for item in own}
        return own + tuple(item for item in inherited if _name(item) not in named)

    def _check_local(self, answer: Answer, platform: Platform) -> None:
        for name in answer.packages:
            if name in self._local and self._local.best(name, self._spec.python, platform) is None:
                wheels = self._local.of_name(name)
                raise EnvdslError.of(
                    "lock-no-wheel-for-platform",
                    f"{name} has no wheel for {platform} with Python {self._spec.python} among the layer's own "
                    f"({', '.join(wheel.label for wheel in wheels)})",
                    span=wheels[0].span or self._spec.span,
                    hint="add a wheel for that platform, or leave the platform out of `platforms`",
                )

    def _warn_of_base(self, name: str, version: str, reason: str) -> None:
        message = f"the base `{self._spec.base}` pins {name} {version}, which is yanked{_because(reason)}"
        hint = f"`envdsl lock {self._spec.base} --upgrade-package {name}` moves the pin"
        self._reporter.warn(Diagnostic("lock-yanked", message, hint=hint, severity="warning"))

    def _yanked(self, name: str, version: str, reason: str) -> EnvdslError:
        return EnvdslError.of(
            "lock-yanked",
            f"{name} {version} is yanked{_because(reason)}, and `{self._spec.name}` allows no other version",
            span=requirement_span(self._spec, [name]),
            hint="require another version",
        )

    def _no_agreement(self, answers: Mapping[Platform, Answer]) -> EnvdslError:
        name, versions = next(iter(sorted(_disagreements(answers).items())))
        spelled = ", ".join(f"{version} for {platform}" for platform, version in sorted(versions.items()))
        return EnvdslError.of(
            "lock-platforms-disagree",
            f"no one version of {name} serves all platforms of `{self._spec.name}`: {spelled}",
            span=requirement_span(self._spec, [name]),
            hint="a layer has one version of each package on all its platforms: constrain it, or declare a layer "
            "for each platform",
            details={str(platform): version for platform, version in versions.items()},
        )


def _agrees(answer: Answer, preferred: Mapping[str, str]) -> bool:
    return all(preferred.get(name, version) == version for name, version in answer.pins.items())


def _disagreements(answers: Mapping[Platform, Answer]) -> dict[str, dict[Platform, str]]:
    versions: dict[str, dict[Platform, str]] = {}
    for platform, answer in answers.items():
        for name, version in answer.pins.items():
            versions.setdefault(name, {})[platform] = version
    return {name: by_platform for name, by_platform in versions.items() if len(set(by_platform.values())) > 1}


def _because(reason: str) -> str:
    return f" ({reason.strip()})" if reason.strip() else ""


def _name(requirement: str) -> str:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    return canonicalize_name(Requirement(requirement).name)
