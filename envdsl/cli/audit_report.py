"""What ``envdsl audit`` found as text, as JSON, and as SARIF 2.1.0 (OASIS) for code scanning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from envdsl import __version__
from envdsl.app.advisories import Audit, Finding
from envdsl.cli.output import count

_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


def lines(found: Audit) -> Iterator[str]:
    """One finding a paragraph: what it is, where, and what to do."""
    for item in found.findings:
        severity = f"  {item.severity}" if item.severity else ""
        aliases = f" ({', '.join(item.aliases)})" if item.aliases else ""
        yield f"{item.name} {item.version}  {item.id}{aliases}{severity}"
        yield f"  {item.message}"
        yield f"  in {', '.join(item.layers)}" + (f"; fixed in {', '.join(item.fixed)}" if item.fixed else "")
        if item.ignored is not None:
            yield f"  ignored: {item.ignored}"


def summary(found: Audit) -> str:
    ignored = len(found.findings) - len(found.counting)
    text = f"{count(found.packages, 'package')}, {count(len(found.counting), 'finding')}"
    return f"{text}{f', {ignored} ignored' if ignored else ''}; records: {', '.join(found.sources)}"


def to_json(found: Audit) -> dict[str, Any]:
    return {
        "sources": list(found.sources),
        "packages": found.packages,
        "counting": len(found.counting),
        "unreadable-records": found.unreadable,
        "expired-ignores": list(found.expired),
        "findings": [
            {
                "kind": item.kind,
                "id": item.id,
                "aliases": list(item.aliases),
                "package": item.name,
                "version": item.version,
                "layers": list(item.layers),
                "locks": [{"path": path, "line": line} for path, line in item.locks],
                "severity": item.severity,
                "summary": item.message,
                "fixed": list(item.fixed),
                "ignored": item.ignored,
            }
            for item in found.findings
        ],
    }


def to_sarif(found: Audit) -> dict[str, Any]:
    """One rule a vulnerability, one result a lock that pins the package; what is ignored is suppressed."""
    rules: dict[str, dict[str, Any]] = {}
    for item in found.findings:
        rules.setdefault(
            item.id, {"id": item.id, "shortDescription": {"text": item.message}, "properties": {"tags": ["security"]}}
        )
    order = list(rules)
    return {
        "$schema": _SARIF,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "envdsl audit", "version": __version__, "rules": list(rules.values())}},
                "results": [
                    _result(item, order.index(item.id), path, line)
                    for item in found.findings
                    for path, line in item.locks
                ],
            }
        ],
    }


def _result(item: Finding, rule: int, path: str, line: int) -> dict[str, Any]:
    fixed = f" Fixed in {', '.join(item.fixed)}." if item.fixed else ""
    result: dict[str, Any] = {
        "ruleId": item.id,
        "ruleIndex": rule,
        "level": "error",
        "message": {"text": f"{item.name} {item.version}: {item.message}.{fixed}"},
        "locations": [
            {"physicalLocation": {"artifactLocation": {"uri": path}, "region": {"startLine": line}}},
        ],
        "partialFingerprints": {"finding/v1": f"{item.id}/{item.name}/{path}"},
    }
    if item.ignored is not None:
        result["suppressions"] = [{"kind": "external", "justification": item.ignored}]
    return result
