"""From declared layers to specifications: every attribute evaluated and checked, bases before what stands on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from envdsl.errors import Note
from envdsl.evaluate.checks import Place
from envdsl.evaluate.declarations import Declared
from envdsl.evaluate.failure import EvaluationError
from envdsl.evaluate.findings import Findings
from envdsl.evaluate.machine import Machine
from envdsl.evaluate.schema import ATTRIBUTES
from envdsl.evaluate.spec import LayerSpec
from envdsl.evaluate.values import did_you_mean
from envdsl.model.names import LayerKind, Platform, PythonVersion


def validate(
    declared: Mapping[str, Declared],
    machine: Machine,
    findings: Findings,
    default_platforms: Sequence[Platform],
    *,
    complete: bool,
) -> dict[str, LayerSpec]:
    """The specifications by name, sorted; what is wrong goes to ``findings``.

    ``complete`` says that all layers of the project are among ``declared``, so that one that is not does not exist.
    """
    validator = _Validator(declared, machine, findings, tuple(default_platforms), complete)
    for layer in sorted(declared.values(), key=lambda layer: layer.kind is LayerKind.X):
        validator.add(layer)
    return dict(sorted(validator.specs.items()))


class _Validator:
    def __init__(
        self,
        declared: Mapping[str, Declared],
        machine: Machine,
        findings: Findings,
        default_platforms: tuple[Platform, ...],
        complete: bool,
    ) -> None:
        self._declared = declared
        self._machine = machine
        self._findings = findings
        self._default_platforms = default_platforms
        self._complete = complete
        self.specs: dict[str, LayerSpec] = {}

    def add(self, layer: Declared) -> None:
        fields: dict[str, Any] = {}
        for name in sorted(layer.attributes, key=lambda name: layer.names[name].start if name in layer.names else 0):
            attribute = ATTRIBUTES.get(name)
            if attribute is None:
                self._refuse(
                    layer,
                    EvaluationError(
                        "eval-unknown-attribute",
                        f"a layer has no attribute `{name}`",
                        span=layer.names.get(name, layer.span),
                        hint=did_you_mean(name, ATTRIBUTES),
                    ),
                )
                continue
            trail = (Note(f"while evaluating `{name}`", layer.names.get(name, layer.span)), *layer.trail)
            place = Place(self._machine, self._findings, layer.values.get(name, layer.span), trail)
            with self._findings.attempt(self._machine, place.span, *trail):
                fields[attribute.field] = attribute.check(place, layer.attributes[name])
        spec = self._on_base(layer, fields) if layer.kind is LayerKind.X else self._alone(layer, fields)
        if spec is not None:
            self.specs[layer.name] = spec

    def _alone(self, layer: Declared, fields: dict[str, Any]) -> LayerSpec | None:
        if "python" not in layer.attributes:
            self._refuse(
                layer,
                EvaluationError(
                    "eval-missing-attribute",
                    f"the layer `{layer.name}` does not say which Python it is for",
                    span=layer.span,
                    hint='add python = "3.12";',
                ),
            )
        if "python" not in fields:
            return None
        fields.setdefault("platforms", self._default_platforms)
        return LayerSpec(name=layer.name, kind=layer.kind, base=None, span=layer.span, **fields)

    def _on_base(self, layer: Declared, fields: dict[str, Any]) -> LayerSpec | None:
        name = self._base_name(layer)
        base = None if name is None else self.specs.get(name)
        if base is None:
            return None
        python: PythonVersion = fields.pop("python", base.python)
        if python != base.python:
            self._refuse(
                layer,
                EvaluationError(
                    "eval-base-mismatch",
                    f"`{layer.name}` is for Python {python}, but its base `{base.name}` for {base.python}",
                    span=layer.values.get("python", layer.span),
                    hint="leave the attribute out: an x layer has its base's",
                ),
            )
        platforms: tuple[Platform, ...] = fields.pop("platforms", base.platforms)
        foreign = [str(platform) for platform in platforms if platform not in base.platforms]
        if foreign:
            self._refuse(
                layer,
                EvaluationError(
                    "eval-base-mismatch",
                    f"`{layer.name}` is for {', '.join(foreign)}, but its base `{base.name}` is not",
                    span=layer.values.get("platforms", layer.span),
                    hint="leave the attribute out: an x layer has its base's",
                ),
            )
        return LayerSpec(
            name=layer.name,
            kind=layer.kind,
            base=base.name,
            python=base.python,
            platforms=platforms,
            span=layer.span,
            **fields,
        )

    def _base_name(self, layer: Declared) -> str | None:
        """The name of the base that ``layer`` stands on; None when there is none, which has been reported."""
        if layer.base is None:
            return None
        wanted = layer.base
        found = self._declared.get(wanted.name)
        if found is not None and wanted.file is not None and found.file != wanted.file:
            found = None
        if found is None:
            if self._complete or wanted.file is not None:
                known = [
                    other.name
                    for other in self._declared.values()
                    if other.kind is LayerKind.BASE and wanted.file in (None, other.file)
                ]
                where = "" if wanted.file is None else f" in `{wanted.file}`"
                self._refuse(
                    layer,
                    EvaluationError(
                        "eval-unknown-base",
                        f"there is no base `{wanted.name}`{where}",
                        span=wanted.span,
                        hint=did_you_mean(wanted.name, known),
                    ),
                )
            return None
        if found.kind is not LayerKind.BASE:
            failure = EvaluationError(
                "eval-not-a-base",
                f"`{found.name}` is an {found.kind} layer; an x layer stands on a base",
                span=wanted.span,
                hint=None if found.base is None else f"did you mean its base, `{found.base.name}`?",
            )
            failure.note(Note(f"`{found.name}` is declared here", found.span))
            self._refuse(layer, failure)
            return None
        return found.name

    def _refuse(self, layer: Declared, failure: EvaluationError) -> None:
        for note in layer.trail:
            failure.note(note)
        self._findings.failed(failure)
