"""Whether a lock still answers its layer's declaration: decided from files alone, never from the network.

What is recorded in a lock are the *inputs of its resolution*: all that can change which wheels are chosen, and
nothing else. Descriptions, environment variables, probes, sources, bytecode and waivers are no part of them,
nor is the configuration of indexes, so that a lock is as current behind one mirror as behind another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from envdsl.errors import EnvdslError
from envdsl.evaluate.spec import LayerSpec, ProjectPath, Spec
from envdsl.lock.lock import Lock
from envdsl.model.canonical import canonical_json
from envdsl.model.digest import blake3_hex

Inputs: TypeAlias = dict[str, object]

_SCALARS = ("kind", "python", "base", "exclude-newer", "prereleases")
_LISTS = ("platforms", "packages", "constraints", "overrides", "excludes", "index")


def resolution_inputs(spec: LayerSpec, root: Path) -> Inputs:
    """What the resolution of ``spec`` depends on, in a form for TOML and JSON; what is empty is left out.

    ``root`` is the project's directory, for the digests of local wheels. Raises EnvdslError
    (``lock-wheel-missing``) for one that cannot be read.
    """
    inputs: Inputs = {
        "kind": spec.kind.value,
        "python": str(spec.python),
        "base": spec.base,
        "platforms": sorted(map(str, spec.platforms)),
        "packages": sorted({requirement.text for requirement in spec.packages}),
        "constraints": sorted({requirement.text for requirement in spec.constraints}),
        "overrides": sorted({requirement.text for requirement in spec.overrides}),
        "excludes": _normalised(spec.excludes),
        "index": list(spec.index),
        "exclude-newer": spec.exclude_newer,
        "prereleases": spec.prereleases,
        "wheels": {wheel.path: wheel_sha256(root, wheel) for wheel in sorted(spec.wheels, key=lambda w: w.path)},
    }
    always = ("kind", "python", "platforms", "packages")
    return {key: value for key, value in inputs.items() if value or key in always}


def _normalised(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    from packaging.utils import canonicalize_name

    return sorted({canonicalize_name(name) for name in names})


def digest_of(inputs: Mapping[str, object]) -> str:
    return blake3_hex(canonical_json(dict(inputs)))


def inputs_digest(spec: LayerSpec, root: Path) -> str:
    """blake3 of the canonical form of :func:`resolution_inputs`."""
    return digest_of(resolution_inputs(spec, root))


def staleness(spec: LayerSpec, lock: Lock, base: Lock | None, root: Path) -> tuple[str, ...]:
    """What has changed since ``lock`` was made for ``spec``, a sentence each; empty while it is current.

    ``base`` is the present lock of an x layer's base (None if that has none). Raises as
    :func:`resolution_inputs` does.
    """
    inputs = resolution_inputs(spec, root)
    reasons = list(_differences(lock.recorded, inputs)) if digest_of(inputs) != lock.inputs else []
    if spec.base is not None and "base" not in _changed_keys(lock.recorded, inputs):
        if base is None:
            reasons.append(f"the base `{spec.base}` has no lock")
        elif lock.base is None or lock.base.digest != base.digest:
            reasons.append(f"the lock of the base `{spec.base}` changed")
    return tuple(reasons)


def order(spec: Spec) -> tuple[LayerSpec, ...]:
    """All layers, each after the base that it stands on; otherwise by name."""
    return tuple(sorted(spec.layers.values(), key=lambda layer: (layer.base is not None, layer.name)))


def wheel_sha256(root: Path, wheel: ProjectPath) -> str:
    """sha256 of a local wheel. Raises EnvdslError (``lock-wheel-missing``)."""
    try:
        with (root / wheel.path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise EnvdslError.of(
            "lock-wheel-missing",
            f"the wheel {wheel.path} cannot be read: {error.strerror}",
            span=wheel.span,
            hint="`wheels` names files of the project, relative to the layer file",
        ) from error


def _changed_keys(old: Mapping[str, object], new: Inputs) -> set[str]:
    return {key for key in {*old, *new} if old.get(key) != new.get(key)}


def _differences(old: Mapping[str, object], new: Inputs) -> Iterator[str]:
    changed = _changed_keys(old, new)
    for key in _SCALARS:
        if key in changed:
            before, after = old.get(key), new.get(key)
            if before in (None, False):
                yield f"`{key}` is now {_spell(after)}"
            elif after in (None, False):
                yield f"`{key}` is no longer {_spell(before)}"
            else:
                yield f"`{key}` changed from {_spell(before)} to {_spell(after)}"
    for key in _LISTS:
        if key in changed:
            before_list, after_list = _strings(old.get(key)), _strings(new.get(key))
            gained = [item for item in after_list if item not in before_list]
            lost = [item for item in before_list if item not in after_list]
            if gained:
                yield f"`{key}` gained {', '.join(gained)}"
            if lost:
                yield f"`{key}` lost {', '.join(lost)}"
            if not gained and not lost:
                yield f"`{key}` has another order"
    if "wheels" in changed:
        yield from _wheel_differences(old.get("wheels"), new.get("wheels"))
    if not changed:
        yield "the lock file was edited or merged by hand"


def _wheel_differences(old: object, new: object) -> Iterator[str]:
    before = old if isinstance(old, dict) else {}
    after = new if isinstance(new, dict) else {}
    for path in sorted({*before, *after}):
        if path not in before:
            yield f"`wheels` gained {path}"
        elif path not in after:
            yield f"`wheels` lost {path}"
        elif before[path] != after[path]:
            yield f"the wheel {path} has other bytes"


def _strings(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def _spell(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
