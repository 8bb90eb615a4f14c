"""The document is the service."""

from __future__ import annotations

import json
import re
from pathlib import Path

from jsonschema import Draft202012Validator
from starlette.routing import Route

from envdsl.policy.access import Action
from envdsl.web import serving
from envdsl.web.api.endpoint import PREFIX, Concerns
from envdsl.web.api.schemas import COMPONENTS, QUERY
from envdsl.web.api.table import ENDPOINTS
from envdsl.web.metrics import Metrics
from envdsl.web.openapi import document
from envdsl.web.settings import Settings
from tests.web.conftest import Service


def test_every_route_of_the_api_stands_in_the_document_and_nothing_else(service: Service) -> None:
    """Issue 4.8: HTTP API with OpenAPI."""
    served = {
        (method, route.path)
        for route in service.app.routes
        if isinstance(route, Route) and route.path.startswith(PREFIX)
        for method in (route.methods or set()) - {"HEAD"}
    }
    told = {(method.upper(), path) for path, item in document()["paths"].items() for method in item}
    assert told == served
    assert service.client().get(f"{PREFIX}/openapi.json").json() == json.loads(json.dumps(document()))


def test_the_document_is_one_of_openapi_3_1_whose_references_lead_somewhere() -> None:
    found = document()
    assert found["openapi"] == "3.1.0"
    assert found["info"].keys() >= {"title", "version"}
    text = json.dumps(found)
    for name in set(re.findall(r'"#/components/schemas/(\w+)"', text)):
        assert name in COMPONENTS, name
    for schema in (*COMPONENTS.values(), *QUERY.values()):
        Draft202012Validator.check_schema(schema)


def test_operations_have_names_of_their_own_and_say_what_they_give() -> None:
    operations = [operation for item in document()["paths"].values() for operation in item.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names) == len(ENDPOINTS)
    for operation in operations:
        assert operation["summary"].endswith("."), operation["operationId"]
        assert "default" in operation["responses"]


def test_each_row_of_the_table_asks_for_what_its_path_names() -> None:
    for endpoint in ENDPOINTS:
        parameters = set(re.findall(r"{(\w+)}", endpoint.path))
        if endpoint.concerns is Concerns.SESSION:
            assert "session" in parameters, endpoint.path
        elif endpoint.concerns is Concerns.REQUEST:
            assert "request" in parameters, endpoint.path
        else:
            assert not parameters & {"session", "request"}, f"{endpoint.path} would show every session to everybody"
        if endpoint.method != "GET":
            assert endpoint.action is not None
            assert endpoint.concerns in (Concerns.STORE, Concerns.SESSION, Concerns.REQUEST)
        assert set(endpoint.query) <= QUERY.keys()
        assert endpoint.answer in COMPONENTS
        assert endpoint.body is None or endpoint.body in COMPONENTS


def test_what_is_open_to_everybody_is_written_here_too() -> None:
    opened = [endpoint.path for endpoint in ENDPOINTS if endpoint.concerns is Concerns.NOTHING]
    assert opened == ["/openapi.json"]
    assert {endpoint.action for endpoint in ENDPOINTS} >= set(Action) - {None}, "every action can be done here"


def test_the_table_in_the_documentation_is_the_table() -> None:
    text = (Path(__file__).parents[2] / "docs" / "service.md").read_text()
    rows = re.findall(r"^\| (GET|POST|DELETE) \| `([^`]+)` \| ([a-z -]+) \|$", text, re.M)
    needs = {Concerns.NOTHING: "nothing", Concerns.CALLER: "to be known"}
    assert rows == [(row.method, row.path, needs.get(row.concerns, str(row.action))) for row in ENDPOINTS]


def test_the_documentation_names_every_metric_and_limit() -> None:
    text = (Path(__file__).parents[2] / "docs" / "service.md").read_text()
    for metric in Metrics().registry.collect():
        assert metric.name in text, metric.name
    settings = Settings()
    for part in (
        f"{settings.requests.per_second:g} a second, {settings.requests.burst} at once",
        f"{settings.failures.burst}, then one in {1 / settings.failures.per_second:g} s",
        f"{settings.max_body >> 20} MiB; a wheel {settings.max_upload >> 30} GiB",
        f"| {settings.max_wait:g} s;",
        f"| connections | {serving.CONNECTIONS};",
    ):
        assert part in text, part
