"""Records as JSON: kebab-case keys, moments in RFC 3339."""

from __future__ import annotations

from typing import Any

from envdsl.policy.encoding import to_json
from envdsl.state.records import RequestRecord, TokenRecord

# What a worker needs to build it, and what holds it: no answer's business.
_INTERNAL = frozenset({"store", "fingerprint", "classification", "proposal", "worker", "lease", "key"})


def request(record: RequestRecord) -> dict[str, Any]:
    """A request for whoever looks after it."""
    classification = record.classification or {}
    value = {key: item for key, item in to_json(record).items() if key not in _INTERNAL}
    return value | {
        "verdict": classification.get("verdict"),
        "choices": list(classification.get("choices", ())),
        "reasons": list(classification.get("reasons", ())),
    }


def token(record: TokenRecord) -> dict[str, Any]:
    """A token without its secret, which is nowhere."""
    value: dict[str, Any] = to_json(record)
    value.pop("store", None)
    return value
