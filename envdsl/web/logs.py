"""Structured logs: one JSON object a line on stderr, through the standard library's logging."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import IO, Any

from envdsl.errors import Diagnostic
from envdsl.redaction import redact
from envdsl.reporter import Reporter, Task

REQUESTS = logging.getLogger("envdsl.web.request")
_WORK = logging.getLogger("envdsl.work")


class JsonFormatter(logging.Formatter):
    """``time``, ``level``, ``logger``, ``message`` and what a record has as ``fields``; tokens and credentials in it
    are struck out, wherever they came from."""

    def format(self, record: logging.LogRecord) -> str:
        value: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        value |= getattr(record, "fields", {})
        if record.exc_info:
            value["traceback"] = self.formatException(record.exc_info)
        return json.dumps({key: _clean(item) for key, item in value.items()}, ensure_ascii=False)


def _clean(item: Any) -> Any:
    if item is None or isinstance(item, (bool, int, float)):
        return item
    return redact(str(item))


class LogReporter(Reporter):
    """What the rooms say while they work, as lines of the log."""

    @contextmanager
    def task(self, title: str, total: int | None = None, unit: str = "") -> Iterator[Task]:
        began = time.perf_counter()
        yield Task()
        _WORK.debug(title, extra={"fields": {"seconds": round(time.perf_counter() - began, 3)}})

    def warn(self, diagnostic: Diagnostic) -> None:
        _WORK.warning(diagnostic.message, extra={"fields": {"code": diagnostic.code, "hint": diagnostic.hint}})

    def note(self, message: str) -> None:
        _WORK.info(message)

    def trace(self, message: str) -> None:
        _WORK.info(message)


def configure(*, verbose: bool = False, stream: IO[str] | None = None) -> None:
    """Send what anybody logs to ``stream`` (stderr) as JSON lines: envdsl and uvicorn all, libraries their warnings."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.captureWarnings(True)
    for name in ("envdsl", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(logging.DEBUG if verbose and name == "envdsl" else logging.INFO)
        logger.propagate = False
    logging.getLogger("uvicorn.access").disabled = True  # ours says more, and no query strings


def log_request(scope: Any, route: str, status: int, seconds: float) -> None:
    """One line a request: the route's template, never the path or the query, which may hold anything."""
    state = scope["state"]
    principal = state.get("principal")
    fields = {
        "request-id": state["id"],
        "method": scope["method"],
        "route": route,
        "status": status,
        "ms": round(seconds * 1000, 2),
        "principal": principal.name if principal is not None else None,
        "role": str(principal.role) if principal is not None else None,
    }
    if problem := state.get("problem"):
        fields["problem"] = problem
    REQUESTS.info("request", extra={"fields": fields})
