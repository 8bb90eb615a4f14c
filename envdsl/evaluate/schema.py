"""The attributes that a layer may have: their meaning, and the check of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from envdsl.evaluate import checks
from envdsl.evaluate.checks import Check


@dataclass(frozen=True, slots=True)
class Attribute:
    """``field`` is the attribute's name in :class:`~envdsl.evaluate.spec.LayerSpec`."""

    name: str
    form: str
    summary: str
    check: Check

    @property
    def field(self) -> str:
        return self.name.replace("-", "_")


ATTRIBUTES: Final = {
    attribute.name: attribute
    for attribute in (
        Attribute(
            "python",
            "string",
            'The Python release, `"3.12"`. Needed, but not in an `x` layer, which has its base\'s.',
            checks.python,
        ),
        Attribute(
            "platforms",
            "list of strings",
            'Platform tags to lock for, `"manylinux_2_28_x86_64"`. Without it the project\'s; an `x` layer has '
            "its base's, or some of them.",
            checks.platforms,
        ),
        Attribute("packages", "list of requirements", "What the layer is to hold (PEP 508).", checks.requirements),
        Attribute(
            "constraints", "list of requirements", "Versions to keep to for what comes along.", checks.constraints
        ),
        Attribute(
            "overrides",
            "list of requirements",
            "Requirements that replace those of any package for the same name.",
            checks.requirements,
        ),
        Attribute("excludes", "list of names", "Packages to leave out, whoever needs them.", checks.package_names),
        Attribute(
            "wheels",
            "list of paths",
            "Wheel files of the project: where their distributions come from, if `packages` asks for these.",
            checks.wheels,
        ),
        Attribute(
            "sources", "list of paths", "Directories of the project to put on the module search path.", checks.sources
        ),
        Attribute("env", "set of strings", "Environment variables of the sandbox.", checks.environment),
        Attribute("probe", "list of strings", "Modules to import in a sandbox after a build.", checks.modules),
        Attribute("index", "list of names", "Indexes of `envdsl.toml` to take wheels from.", checks.index_names),
        Attribute(
            "exclude-newer",
            "string",
            'Leave out what was published after a date or moment, or within an age (`"7 days"`).',
            checks.exclude_newer,
        ),
        Attribute("prereleases", "boolean", "Whether prereleases may be chosen.", checks.boolean),
        Attribute(
            "allow",
            "set",
            "Rules to waive: `record-mismatch` (names of packages) and `collisions` (path patterns).",
            checks.waivers,
        ),
        Attribute("bytecode", "boolean", "Whether to compile bytecode (true unless said).", checks.boolean),
        Attribute("description", "string", "For people; changes no layer.", checks.text),
        Attribute("meta", "set", "Data for other tools; changes no layer.", checks.data),
    )
}
