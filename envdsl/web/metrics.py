"""Prometheus metrics, in a registry of their own: nothing is global, so two services in one process stay apart."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

if TYPE_CHECKING:
    from envdsl.state.webhooks import Undelivered

MEDIA_TYPE = CONTENT_TYPE_LATEST
_LATENCY = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)
_BUILD = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900)


class Metrics:
    """What ``/metrics`` shows. Labels are routes' templates and states, whose number is bounded; never a name or id."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._latency = Histogram(
            "envdsl_http_request_seconds",
            "Time from a request's headers to the end of its answer.",
            ("method", "route"),
            buckets=_LATENCY,
            registry=self.registry,
        )
        self._answers = Counter(
            "envdsl_http_requests", "HTTP requests.", ("method", "route", "status"), registry=self.registry
        )
        self._requests = Gauge(
            "envdsl_requests", "Requests for packages, by status.", ("status",), registry=self.registry
        )
        self._queue = Gauge(
            "envdsl_queue_length", "Requests that wait for a worker or are in one's hands.", registry=self.registry
        )
        self._waiting = Gauge("envdsl_waiting_for_person", "Requests that wait for a person.", registry=self.registry)
        self._workers = Gauge("envdsl_workers", "Workers of this service that are alive.", registry=self.registry)
        self._undelivered = Gauge(
            "envdsl_webhook_undelivered",
            "Webhook deliveries that are still to be made: new ones, and those that failed and are tried again.",
            ("state",),
            registry=self.registry,
        )
        self._oldest = Gauge(
            "envdsl_webhook_oldest_seconds",
            "Age of the oldest webhook delivery that is still to be made; 0 without one.",
            registry=self.registry,
        )
        self._worked = Histogram(
            "envdsl_worker_seconds",
            "Time that workers took for one request: to resolve and sort it, or to build and bind its layer.",
            ("work",),
            buckets=_BUILD,
            registry=self.registry,
        )

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """One answered request of HTTP."""
        method = method if method in _METHODS else "other"
        self._latency.labels(method, route).observe(seconds)
        self._answers.labels(method, route, str(status)).inc()

    def worked(self, work: str, seconds: float) -> None:
        """A worker of this service has done one thing: ``resolve`` or ``build``."""
        self._worked.labels(work).observe(seconds)

    def show(
        self, statuses: Mapping[str, int], *, unresolved: int, workers: int, undelivered: Undelivered, now: datetime
    ) -> bytes:
        """The text of ``/metrics``, with what the database says now: requests by status, how many of the pending ones
        wait for a worker, and what is still to be announced."""
        self._requests.clear()
        for status, count in statuses.items():
            self._requests.labels(status).set(count)
        self._queue.set(unresolved + sum(statuses.get(status, 0) for status in _BUILDABLE))
        self._waiting.set(statuses.get("pending", 0) - unresolved)
        self._workers.set(workers)
        self._undelivered.labels("new").set(undelivered.count - undelivered.failing)
        self._undelivered.labels("failing").set(undelivered.failing)
        self._oldest.set(max(0.0, (now - undelivered.oldest).total_seconds()) if undelivered.oldest else 0)
        return generate_latest(self.registry)


_BUILDABLE = ("approved", "isolated", "building")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
