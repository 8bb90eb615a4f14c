"""``envdsl sbom``: what a layer or session is made of, as CycloneDX (ECMA-424), by its own library.

The same locks give the same bytes: the serial number follows from them, and there is no time of making, since it
says nothing of what is inside.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from envdsl import __version__
from envdsl.app import packages
from envdsl.app.subject import Subject, subject_of

if TYPE_CHECKING:
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component

    from envdsl.app.project import Project
    from envdsl.lock.facts import WheelFacts
    from envdsl.lock.lock import Lock, LockedPackage, LockedWheel
    from envdsl.model.names import Platform

SCHEMA = "1.6"
_NAMESPACE = uuid.UUID("4a0e2ac4-5bd8-5a5c-8ad5-1f5d0f0c0e5b")  # of our serial numbers (RFC 9562, version 5)


def sbom(project: Project, wanted: str, *, platform: Platform | None = None, offline: bool = False) -> dict[str, Any]:
    """The bill of materials of a layer with its base, or of a session, as CycloneDX JSON.

    ``platform``: whose wheels are meant, by default those of this machine. Raises EnvdslError ``app-unknown-layer``,
    ``app-lock-missing``, ``app-platform``, ``cli-extra-missing``.
    """
    subject = subject_of(project, wanted, platform)
    facts = packages.facts_of(project, subject.locks, offline=offline)
    bom = _bom(subject, facts)
    from cyclonedx.output.json import JsonV1Dot6

    found: dict[str, Any] = json.loads(JsonV1Dot6(bom).output_as_string())
    del found["metadata"]["timestamp"]
    return found


def _bom(subject: Subject, facts: Mapping[str, WheelFacts]) -> Bom:
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.model.tool import Tool

    digests = "".join(lock.digest for lock in subject.locks)
    bom = Bom(serial_number=uuid.uuid5(_NAMESPACE, f"{digests}{subject.platform}"))
    root = Component(
        name=subject.name,
        type=ComponentType.APPLICATION,
        bom_ref=f"envdsl:{subject.name}",
        properties=_properties({"kind": subject.kind, "platform": str(subject.platform)}),
    )
    bom.metadata.component = root
    bom.metadata.tools.tools.add(Tool(vendor="envdsl", name="envdsl", version=__version__))
    components: dict[str, Component] = {}
    present: list[tuple[Lock, LockedPackage]] = []
    for lock in subject.locks:
        for package in lock.packages:
            wheel = package.wheel(subject.platform)
            if wheel is not None and package.name not in components:
                components[package.name] = _component(lock, package, wheel, packages.fact_of(package, facts))
                present.append((lock, package))
    for component in components.values():
        bom.components.add(component)
    required = {name for _, package in present for name in package.dependencies}
    asked = [components[name] for lock in subject.locks for name in _asked(lock) if name in components]
    # What nothing requires and nobody asks for by name came by an extra of the layer's own requirement.
    bom.register_dependency(root, [*asked, *(item for name, item in components.items() if name not in required)])
    for _, package in present:
        needs = [components[name] for name in package.dependencies if name in components]
        bom.register_dependency(components[package.name], needs)
    return bom


def _asked(lock: Lock) -> Iterable[str]:
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    recorded = lock.recorded.get("packages", [])
    for text in recorded if isinstance(recorded, list) else []:
        try:
            yield canonicalize_name(Requirement(str(text)).name)
        except InvalidRequirement:
            continue


def _component(lock: Lock, package: LockedPackage, wheel: LockedWheel, fact: WheelFacts | None) -> Component:
    from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
    from cyclonedx.model.component import Component, ComponentType
    from packageurl import PackageURL

    purl = PackageURL("pypi", name=package.name, version=package.version, qualifiers={"file_name": wheel.filename})
    metadata = fact.metadata if fact is not None else None
    homepage = dict(metadata.urls).get("homepage") if metadata is not None else None
    return Component(
        name=package.name,
        version=package.version,
        type=ComponentType.LIBRARY,
        bom_ref=purl.to_string(),
        purl=purl,
        description=metadata.summary or None if metadata is not None else None,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=wheel.sha256)],
        licenses=_licences(fact.licence if fact is not None else None),
        external_references=[ExternalReference(type=ExternalReferenceType.WEBSITE, url=XsUri(homepage))]
        if homepage
        else (),
        properties=_properties({"layer": lock.layer, "size": str(wheel.size)}),
    )


def _licences(stated: str | None) -> Iterable[Any]:
    """An SPDX expression as that, anything else as a name: it is what the wheel says, not what we make of it."""
    from cyclonedx.contrib.license.factories import LicenseFactory

    return [LicenseFactory().make_from_string(stated)] if stated else []


def _properties(values: dict[str, str]) -> list[Any]:
    from cyclonedx.model import Property

    return [Property(name=f"envdsl:{name}", value=value) for name, value in values.items()]
