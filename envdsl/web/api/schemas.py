"""JSON Schemas (2020-12) of what the API takes and gives: components of the OpenAPI document, checked at the door.

Bodies are closed: an unknown key is a mistake that somebody wants to hear of. Answers are open, so that a field can be
added; a test holds every answer against its schema here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.policy.access import Role
from envdsl.policy.proposal import Choice, Verdict
from envdsl.policy.rules import Treatment
from envdsl.state.records import Status

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean"}
MOMENT: Schema = {"type": "string", "format": "date-time"}
TEXTS: Schema = {"type": "array", "items": TEXT}
ANY_OBJECT: Schema = {"type": "object"}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(name: str) -> Schema:
    return {"type": "array", "items": _ref(name)}


def _answer(required: Mapping[str, Schema], **optional: Schema) -> Schema:
    """An object that has all of ``required``; ``optional`` with ``_`` for ``-``."""
    more = {key.replace("_", "-"): schema for key, schema in optional.items()}
    return {"type": "object", "required": list(required), "properties": {**required, **more}}


def _body(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    schema = {"type": "object", "properties": {**required, **(optional or {})}, "additionalProperties": False}
    return schema | ({"required": list(required)} if required else {})


_STATUS: Schema = {"enum": [str(status) for status in Status]}
_SHA256: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 200}
_COMMENT: Schema = {"type": "string", "maxLength": 2000}
_TREATMENT: Schema = {"enum": [str(treatment) for treatment in Treatment]}
_LIMIT: Schema = {"anyOf": [COUNT, {"type": "null"}], "description": "bytes; null: no limit"}
_REQUIREMENT: Schema = {"type": "string", "minLength": 1, "maxLength": 500}

COMPONENTS: Mapping[str, Schema] = {
    "Problem": _answer(
        {"type": TEXT, "title": TEXT, "status": COUNT, "detail": TEXT, "code": TEXT},
        hint=TEXT,
        instance=TEXT,
        errors={"type": "array", "items": _answer({"code": TEXT, "detail": TEXT}, hint=TEXT)},
    ),
    "Caller": _answer({"name": TEXT, "role": {"enum": [str(role) for role in Role]}, "session": _or_null(TEXT)}),
    # python_env
    "Installed": _answer({"name": TEXT, "version": TEXT, "layer": TEXT}, imports=TEXTS),
    "Refusal": _answer({"code": TEXT, "message": TEXT}, package=TEXT, instead=TEXT),
    "RequestAnswer": _answer(
        {"session": TEXT, "status": {"enum": [*map(str, Status), "present"]}, "next": TEXT},
        id=TEXT,
        requirements=TEXTS,
        packages=TEXTS,
        imports=TEXTS,
        reasons=_list("Refusal"),
        decided_by=TEXT,
    ),
    "StatusAnswer": _answer(
        {"session": TEXT, "python": TEXT, "layers": TEXTS, "next": TEXT},
        installed=_list("Installed"),
        requests=_list("RequestAnswer"),
    ),
    "Upload": _body({"filename": _NAME, "sha256": _SHA256, "size": COUNT}),
    "Ask": _body(
        {},
        {
            "requirements": {"type": "array", "items": _REQUIREMENT, "maxItems": 100},
            "uploads": {"type": "array", "items": _ref("Upload"), "maxItems": 20},
            "reason": _COMMENT,
            "key": {**_NAME, "description": "chosen by the asker: the same key is the same request for ever"},
        },
    )
    | {"anyOf": [{"required": ["requirements"]}, {"required": ["uploads"]}]},
    # sessions
    "BoundLayer": _answer({"name": TEXT, "id": TEXT, "kind": TEXT, "packages": COUNT}),
    "Session": _answer(
        {"name": TEXT, "owner": TEXT, "python": TEXT, "layers": _list("BoundLayer")},
    ),
    "Sessions": _answer({"sessions": _list("Session"), "more": FLAG}),
    "Binding": _answer(
        {"number": COUNT, "cause": TEXT, "actor": TEXT, "at": MOMENT, "manifest": TEXT, "layers": {"type": "array"}},
        request=_or_null(TEXT),
    ),
    "Bindings": _answer({"session": TEXT, "bindings": _list("Binding")}),
    "Rebase": _body(
        {},
        {
            "base": _NAME,
            "add": {"type": "array", "items": _NAME, "maxItems": 50},
            "drop": {"type": "array", "items": _NAME, "maxItems": 50},
            "dry-run": FLAG,
            "digest": {**TEXT, "description": "of the difference that was shown; another one is refused"},
        },
    ),
    "Undo": _body({}, {"number": {**COUNT, "description": "of the binding; without it, the one before the present"}}),
    "PackageChange": _answer({"name": TEXT, "before": _or_null(TEXT), "after": _or_null(TEXT)}),
    "Change": _answer(
        {"session": TEXT, "dry-run": FLAG, "digest": TEXT, "changes": TEXTS, "packages": _list("PackageChange")},
    ),
    "Seal": ANY_OBJECT,
    # requests
    "Decision": _answer({"by": TEXT, "choice": TEXT, "at": MOMENT, "digest": _or_null(TEXT)}, comment=TEXT),
    "Request": _answer(
        {
            "id": TEXT,
            "session": TEXT,
            "requester": TEXT,
            "reason": TEXT,
            "requirements": TEXTS,
            "uploads": {"type": "array"},
            "status": _STATUS,
            "verdict": _or_null({"enum": [str(verdict) for verdict in Verdict]}),
            "choices": {"type": "array", "items": {"enum": [str(choice) for choice in Choice]}},
            "digest": _or_null(TEXT),
            "decision": _or_null(_ref("Decision")),
            "layer": _or_null(TEXT),
            "problem": _or_null(ANY_OBJECT),
            "created": MOMENT,
            "updated": MOMENT,
            "expires": _or_null(MOMENT),
        }
    ),
    "Requests": _answer({"requests": _list("Request")}),
    "Card": ANY_OBJECT,
    "Decide": _body(
        {"choice": {"enum": [str(choice) for choice in Choice]}}, {"digest": _or_null(TEXT), "comment": _COMMENT}
    ),
    "Promote": _body({}, {"name": _NAME}),
    "Promoted": _answer({"paths": TEXTS}),
    # wheels, layers, store
    "Received": _answer({"upload": _ref("Upload"), "report": ANY_OBJECT}),
    "Layer": _answer(
        {
            "id": TEXT,
            "kind": TEXT,
            "names": TEXTS,
            "python": TEXT,
            "platform": TEXT,
            "packages": COUNT,
            "size": COUNT,
            "registered": MOMENT,
            "used": MOMENT,
            "base": _or_null(TEXT),
            "sessions": TEXTS,
            "others": COUNT,
        }
    ),
    "Layers": _answer({"layers": _list("Layer")}),
    "LayerContents": _answer(
        {
            "layer": _ref("Layer"),
            "key": TEXT,
            "tree-hash": TEXT,
            "environment": ANY_OBJECT,
            "packages": {"type": "array", "items": _answer({"name": TEXT, "version": TEXT, "sha256": TEXT})},
        }
    ),
    "LayerUsers": _answer({"id": TEXT, "sessions": TEXTS, "others": COUNT, "held-by": TEXTS}),
    "Collect": _body({}, {"free": COUNT, "older-than": {"type": "number", "minimum": 0}, "keep-last": COUNT}),
    "Collected": _answer(
        {"dry-run": FLAG, "paths": TEXTS, "rubbish": TEXTS, "freed": COUNT, "alive": COUNT, "kept": COUNT}
    ),
    "CatalogEntry": _answer(
        {"entry": TEXT, "group": _or_null(TEXT), "reason": _or_null(TEXT), "place": _or_null(TEXT)}
    ),
    "CatalogRules": _answer(
        {
            "allow": _list("CatalogEntry"),
            "groups": TEXTS,
            "deny": _list("CatalogEntry"),
            "allowed-licences": TEXTS,
            "denied-licences": TEXTS,
            "ignored": {**TEXTS, "description": "ids of vulnerabilities that do not count"},
        },
        dependencies=FLAG,
        unlisted=_TREATMENT,
        max_wheel_size=_LIMIT,
        max_closure_size=_LIMIT,
        minimum_age={**COUNT, "description": "seconds"},
        unknown_age=_TREATMENT,
        unlisted_licence=_TREATMENT,
        unknown_licence=_TREATMENT,
        known_vulnerability=_TREATMENT,
    ),
    "CatalogSession": _answer({"pattern": TEXT, "rules": _ref("CatalogRules")}),
    "Catalog": _answer(
        {
            "file": TEXT,
            "session": _or_null(TEXT),
            "rules": _ref("CatalogRules"),
            "groups": {"type": "object", "additionalProperties": _list("CatalogEntry")},
            "sessions": _list("CatalogSession"),
        }
    ),
    "Explanation": _answer(
        {
            "package": TEXT,
            "version": _or_null(TEXT),
            "session": _or_null(TEXT),
            "treatment": _TREATMENT,
            "certain": {**FLAG, "description": "false where it depends on the version"},
            "message": TEXT,
            "allowed": _list("CatalogEntry"),
            "denied": _list("CatalogEntry"),
            "available": {**_list("CatalogEntry"), "description": "in groups that are not allowed"},
            "limits": _answer(
                {
                    "max-wheel-size": _LIMIT,
                    "max-closure-size": _LIMIT,
                    "minimum-age-hours": _or_null(COUNT),
                    "licences-allowed": TEXTS,
                    "licences-denied": TEXTS,
                    "dependencies": FLAG,
                }
            ),
        }
    ),
    # audit, tokens, health
    "AuditEvent": _answer(
        {
            "number": COUNT,
            "at": MOMENT,
            "actor": TEXT,
            "action": TEXT,
            "session": _or_null(TEXT),
            "subject": _or_null(TEXT),
            "data": ANY_OBJECT,
            "previous": TEXT,
            "hash": TEXT,
        }
    ),
    "AuditEvents": _answer({"events": _list("AuditEvent")}),
    "AuditVerified": _answer({"sound": FLAG, "events": COUNT, "head": ANY_OBJECT, "broken": _or_null(ANY_OBJECT)}),
    "Token": _answer(
        {
            "id": TEXT,
            "role": {"enum": [str(role) for role in Role]},
            "name": TEXT,
            "session": _or_null(TEXT),
            "created": MOMENT,
            "expires": _or_null(MOMENT),
            "revoked": _or_null(MOMENT),
            "used": _or_null(MOMENT),
        }
    ),
    "Tokens": _answer({"tokens": _list("Token")}),
    "NewToken": _body(
        {"role": {"enum": [str(role) for role in Role]}, "name": _NAME},
        {"session": _NAME, "lifetime": {"type": "integer", "minimum": 1, "description": "seconds"}},
    ),
    "MadeToken": _answer({"token": {**TEXT, "description": "shown this once"}, "record": _ref("Token")}),
    "Check": _answer({"name": TEXT, "sound": FLAG, "detail": TEXT}, hint=TEXT),
    "Health": _answer({"sound": FLAG, "version": TEXT, "checks": _list("Check")}),
    "Document": ANY_OBJECT,
}

QUERY: Mapping[str, Schema] = {
    "wait": {"type": "number", "minimum": 0, "maximum": 60, "description": "seconds to wait for an end, at most"},
    "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
    "status": _STATUS,
    "session": _NAME,
    "before": {**COUNT, "description": "only events with a lower number"},
    "first": {"type": "integer", "minimum": 1, "default": 1},
    "last": {"type": "integer", "minimum": 1},
    "after": {**_NAME, "description": "only sessions whose names come after this one"},
    "before-request": {**_NAME, "description": "only requests older than the one with this id"},
    "version": _NAME,
    "filename": {**_NAME, "description": "of a wheel that is the whole body"},
    "older-than": {"type": "number", "minimum": 0, "description": "seconds"},
    "keep-last": COUNT,
    "free": {**COUNT, "description": "bytes"},
}


_LARGEST = 2**63  # what a database holds


@cache
def validator(name: str) -> Validator:
    """The validator of a component."""
    from jsonschema import Draft202012Validator

    document = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": dict(COMPONENTS)}}
    return Draft202012Validator(document)


def is_required(name: str) -> bool:
    """Whether a body of this schema has to be sent: where nothing has to be said, none is an empty object."""
    return not validator(name).is_valid({})


def check(name: str, value: Any) -> None:
    """Raises :class:`EnvdslError` ``web-invalid-body``, which says all that is wrong, where ``value`` does not fit."""
    found = sorted(validator(name).iter_errors(value), key=lambda error: list(map(str, error.absolute_path)))
    if found:
        raise EnvdslError.all(
            EnvdslError.of("web-invalid-body", _sentence(error), exit_status=ExitStatus.USAGE) for error in found[:20]
        )


def _sentence(error: Any) -> str:
    place = ".".join(str(part) for part in error.absolute_path)
    return f"{place or 'the body'}: {error.message[:300]}"


def check_query(known: Iterable[str], items: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The parameters of a query, of the types that :data:`QUERY` gives them.

    Raises :class:`EnvdslError` ``web-invalid-query`` for an unknown or repeated one, or a value that does not fit.
    """
    known, found = tuple(known), {}
    for name, text in items:
        if name not in known:
            hint = f"known here: {', '.join(known)}" if known else "this takes none"
            raise _query_error(f"unknown parameter `{name[:50]}`", hint)
        if name in found:
            raise _query_error(f"`{name}` is there twice")
        found[name] = _convert(name, text)
    return found


def _convert(name: str, text: str) -> Any:
    from jsonschema import Draft202012Validator

    schema = QUERY[name]
    value: Any = text
    try:
        if schema.get("type") == "integer":
            value = int(text)
        elif schema.get("type") == "number":
            value = float(text)
    except ValueError:
        raise _query_error(f"`{name}` must be a number") from None
    if isinstance(value, int | float) and not abs(value) < _LARGEST:
        raise _query_error(f"`{name}` is out of range")  # nan passes any minimum and maximum, and no wait would end
    if (error := next(Draft202012Validator(schema).iter_errors(value), None)) is not None:
        raise _query_error(f"`{name}`: {error.message[:200]}")
    return value


def _query_error(message: str, hint: str | None = None) -> EnvdslError:
    return EnvdslError.of("web-invalid-query", message, hint=hint, exit_status=ExitStatus.USAGE)
