"""The OpenAPI 3.1 document, made from the table of endpoints: it cannot say anything else than what is served."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from envdsl import __version__
from envdsl.web.api.endpoint import PREFIX, Concerns, Endpoint
from envdsl.web.api.schemas import COMPONENTS, QUERY, is_required
from envdsl.web.problems import MEDIA_TYPE

_PARAMETER = re.compile(r"{(\w+)}")


@cache
def document() -> dict[str, Any]:
    """The whole document. It is the same for everybody, and holds nothing of the project."""
    from envdsl.web.api.table import ENDPOINTS

    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(PREFIX + endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "envdsl",
            "version": __version__,
            "description": "Ask for packages, decide on requests, look after sessions, layers and the store.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": dict(COMPONENTS),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "made by `envdsl token create`"}
            },
        },
        "security": [{"token": []}, {}],
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    value: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "tags": [endpoint.path.split("/")[1]],
        "parameters": [*_path_parameters(endpoint), *_query_parameters(endpoint)],
        "responses": {
            str(endpoint.status): _response(endpoint),
            "default": {"description": "What is wrong (RFC 9457).", "content": {MEDIA_TYPE: _schema("Problem")}},
        },
    }
    if endpoint.action is not None:
        value["x-action"] = str(endpoint.action)
    if endpoint.concerns is Concerns.NOTHING:
        value["security"] = [{}]
    if body := _request_body(endpoint):
        value["requestBody"] = body
    return value


def _path_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PARAMETER.findall(endpoint.path)
    ]


def _query_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    return [{"name": name, "in": "query", "schema": QUERY[name]} for name in endpoint.query]


def _response(endpoint: Endpoint) -> dict[str, Any]:
    content = {"application/json": _schema(endpoint.answer)}
    content |= {media: {"schema": {"type": "string"}} for media in endpoint.media}
    return {"description": endpoint.summary, "content": content}


def _request_body(endpoint: Endpoint) -> dict[str, Any] | None:
    if endpoint.upload:
        form = {"type": "object", "required": ["file"], "properties": {"file": {"type": "string", "format": "binary"}}}
        return {
            "required": True,
            "content": {"application/octet-stream": {"schema": {}}, "multipart/form-data": {"schema": form}},
        }
    if endpoint.body is None:
        return None
    return {"required": is_required(endpoint.body), "content": {"application/json": _schema(endpoint.body)}}


def _schema(name: str) -> dict[str, Any]:
    return {"schema": {"$ref": f"#/components/schemas/{name}"}}
