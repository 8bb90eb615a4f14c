"""A project with many layers, and the process that evaluates, checks and keys them.

``python -m benchmarks.many_layers DIRECTORY`` does what stands between a project and its graph, and prints as JSON the
seconds that it took, without the interpreter's start and the imports: ``evaluate`` (parse, evaluate, validate),
``check`` (read each lock and see whether it is current), ``key`` (compile the graph).
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envdsl.app.compiling import compile_layers
from envdsl.app.locking import require_current
from envdsl.app.project import Project
from envdsl.evaluate.spec import LayerSpec
from envdsl.lock.freshness import digest_of, order, resolution_inputs
from envdsl.lock.lock import BaseReference, Lock, LockedPackage, LockedWheel
from envdsl.lock.pylock import finish
from envdsl.model.names import Platform
from envdsl.reporter import Reporter

# What the stages import when they begin.
_IMPORTED = ("envdsl.evaluate.project", "envdsl.lock.pylock", "packaging.pylock", "envdsl.graph.compile")

FAMILY = 20  # layers of a file: two bases with eight x layers each, and two iso layers

_LIBRARY = """\
# What all files share: package lists, and functions over them.
let core = [ "alpha>=1.0" "beta" "gamma[extra]>=2,<3" "delta" "epsilon~=1.2" ];
let pythons = { old = "3.11"; new = "3.12"; };
let names = prefix: count: map (n: "${prefix}-${toString n}") (range 1 count);
let packages = suffix: core ++ names "package-${suffix}" 6;
"""

_FILE = """\
import "lib/common.layer" as common;

let number = "@NUMBER@";

for (age in [ "old" "new" ]) {
  base "base-${number}-${age}" {
    description = "A base with a dozen packages";
    python = common.pythons.${age};
    packages = common.packages number;
    probe = [ "alpha" "beta" ];
    env = { MODE = if age == "old" then "compatible" else "strict"; NUMBER = number; };
  }

  for (n in range 1 8) {
    x "x-${number}-${age}-${toString n}" on "base-${number}-${age}" {
      packages = [ "zeta-${number}-${toString n}>=1" "eta" ] ++ optional (n > 4) "theta!=1.5";
    }
  }
}

for (n in [ 1 2 ]) {
  iso "iso-${number}-${toString n}" {
    python = "3.13";
    packages = filter (name: !(hasPrefix "beta" name)) (common.packages "${number}-${toString n}");
  }
}
"""


def write_project(directory: Path, count: int) -> None:
    """A project of ``count`` layers (a multiple of FAMILY), FAMILY in a file, with a current lock for each."""
    layers = directory / "layers.d"
    (layers / "lib").mkdir(parents=True)
    (layers / "lib/common.layer").write_text(_LIBRARY)
    for number in range(count // FAMILY):
        (layers / f"family-{number}.layer").write_text(_FILE.replace("@NUMBER@", str(number)))
    project = Project.find(directory, store=None, reporter=Reporter())
    locks: dict[str, Lock] = {}
    for layer in order(project.spec):
        path = project.config.lock_path(layer.name)
        text, locks[layer.name] = finish(_lock(layer, locks[layer.base] if layer.base else None, directory), path)
        path.write_text(text)
    if len(locks) != count:
        raise ValueError(f"{len(locks)} layers instead of {count}")


def _lock(layer: LayerSpec, base: Lock | None, root: Path) -> Lock:
    inputs = resolution_inputs(layer, root)
    names = {canonicalize_name(Requirement(item.text).name) for item in layer.packages}
    return Lock(
        layer=layer.name,
        kind=layer.kind,
        python=layer.python,
        platforms=tuple(sorted(layer.platforms)),
        inputs=digest_of(inputs),
        base=BaseReference(base.layer, base.digest) if base is not None else None,
        packages=tuple(_package(name, layer.platforms) for name in sorted(names)),
        digest="",
        recorded=inputs,
    )


def _package(name: str, platforms: Iterable[Platform]) -> LockedPackage:
    wheels = []
    for platform in sorted(platforms):
        filename = f"{name.replace('-', '_')}-1.5-py3-none-{platform}.whl"
        digest = hashlib.sha256(filename.encode()).hexdigest()
        wheels.append((platform, LockedWheel(filename, digest, 100_000 + len(filename))))
    return LockedPackage(name, "1.5", tuple(wheels))


def measure(directory: Path) -> dict[str, float]:
    """Seconds by stage."""
    for name in _IMPORTED:
        import_module(name)
    project = Project.find(directory, store=None, reporter=Reporter())
    seconds: dict[str, float] = {}
    begin = time.perf_counter()
    layers = project.select(())
    seconds["evaluate"] = time.perf_counter() - begin
    require_current(project, ())
    seconds["check"] = time.perf_counter() - begin - sum(seconds.values())
    graph = compile_layers(project, layers)
    seconds["key"] = time.perf_counter() - begin - sum(seconds.values())
    assert len(graph.layers) == len(layers)
    return seconds


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]))))
