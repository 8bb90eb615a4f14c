"""Announcing requests that wait for a person, to whoever ``[service.webhook]`` names.

A delivery follows Standard Webhooks (https://www.standardwebhooks.com): ``webhook-id`` stays the same when one is
repeated, ``webhook-signature`` is the base64 of the HMAC-SHA256 over ``<id>.<timestamp>.<body>``, so that a receiver
can tell who sent it, when, and whether it has seen it. Deliveries come at least once, in no promised order.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from envdsl.errors import Diagnostic, EnvdslError, ExitStatus

if TYPE_CHECKING:
    from pathlib import Path

    from envdsl.app.control.plane import ControlPlane
    from envdsl.config import WebhookSetting
    from envdsl.state.records import RequestRecord, WebhookRecord
    from envdsl.state.transaction import Transaction

WAITING = "request.waiting"

_TIMEOUT = (5.0, 15.0)  # seconds to connect, and without a byte
_LEASE = 120.0  # seconds that a delivery may take
_FIRST_DELAY = 5.0  # seconds; four times as long after each failure
_LONGEST_DELAY = 6 * 3600.0
_ATTEMPTS = 14  # over about two days
_SECRET_PREFIX = "whsec_"  # what follows is base64
_SHORTEST_SECRET = 16  # bytes
_GONE = 410
MOST_ANNOUNCED = 30  # of one session within an hour: who asks and cancels all the time is not to ring all the time


def announcement(plane: ControlPlane, record: RequestRecord) -> Mapping[str, Any] | None:
    """What is announced of a request that waits for a person: its card. None where nobody wants to be told."""
    if plane.project.config.service.webhook is None:
        return None
    from envdsl.app.control.card import card

    return {"request": record.id, "session": record.session, "card": card(plane, record).to_json()}


def announce(plane: ControlPlane, transaction: Transaction, told: Mapping[str, Any]) -> None:
    """Put what :func:`announcement` says into the outbox, unless its session has been announced a lot of late: its
    request waits where requests are listed, like all of them."""
    since = plane.now() - timedelta(hours=1)
    if transaction.webhooks.count_since(plane.store_id, told["session"], since) < MOST_ANNOUNCED:
        transaction.webhooks.put(plane.store_id, WAITING, told)


def deliver_due(plane: ControlPlane) -> int:
    """Deliver what is due; returns how many deliveries were tried. One that fails is tried again later, and given up
    after two days, or where the receiver says that it is gone (410)."""
    setting = plane.project.config.service.webhook
    if setting is None:
        return 0
    with plane.state.reading() as transaction:
        if not transaction.webhooks.waiting(plane.store_id):
            return 0
    with plane.state.transaction() as transaction:
        due = transaction.webhooks.due(plane.store_id, lease_seconds=_LEASE, limit=1)
    for event in due:
        problem = _deliver(setting, event, plane.now())
        with plane.state.transaction() as transaction:
            if problem is None:
                transaction.webhooks.delivered(event.id)
            elif problem == _refused(_GONE) or event.attempts >= _ATTEMPTS:
                transaction.webhooks.give_up(event.id, problem)
            else:
                transaction.webhooks.retry(event.id, plane.now() + delay(event.attempts), problem)
        if problem is not None:
            message = f"the webhook was not told of {event.id} (attempt {event.attempts}): {problem}"
            plane.project.reporter.warn(Diagnostic("app-webhook-failed", message, severity="warning"))
    return len(due)


def warn_of_secret(plane: ControlPlane) -> None:
    """Warn of a secret that cannot be read, for whoever starts to deliver; no delivery could be made with it."""
    setting = plane.project.config.service.webhook
    if setting is None:
        return
    try:
        read_secret(setting.secret_file)
    except EnvdslError as error:
        plane.project.reporter.warn(replace(error.diagnostics[0], severity="warning"))


def delay(attempts: int) -> timedelta:
    """How long to wait after so many failed attempts."""
    seconds = min(_FIRST_DELAY * 4.0 ** (attempts - 1), _LONGEST_DELAY)
    return timedelta(seconds=seconds * random.uniform(0.8, 1.2))


def body_of(event: WebhookRecord) -> bytes:
    """The document that is delivered: its type, when it happened, and the event's own data."""
    document = {"type": event.event, "timestamp": event.created.isoformat(), "data": dict(event.payload)}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


def headers_of(event_id: str, body: bytes, secret: bytes, now: datetime) -> dict[str, str]:
    """The headers of one delivery, its signature among them."""
    timestamp = str(int(now.timestamp()))
    signed = b".".join([event_id.encode(), timestamp.encode(), body])
    signature = base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()
    return {
        "Content-Type": "application/json",
        "User-Agent": "envdsl",
        "webhook-id": event_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{signature}",
    }


def read_secret(file: Path) -> bytes:
    """The secret in ``file``: ``whsec_`` and base64, or any text. Raises EnvdslError ``app-webhook-secret``, without a
    byte of what the file holds."""
    try:
        text = file.read_text("utf-8").strip()
        secret = base64.b64decode(text.removeprefix(_SECRET_PREFIX), validate=True)
        secret = secret if text.startswith(_SECRET_PREFIX) else text.encode()
    except binascii.Error:
        secret = b"" if text.startswith(_SECRET_PREFIX) else text.encode()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise _bad_secret(file, f"cannot be read: {why}") from None
    if len(secret) < _SHORTEST_SECRET:
        raise _bad_secret(file, f"holds no secret of {_SHORTEST_SECRET} bytes or more")
    return secret


def _bad_secret(file: Path, problem: str) -> EnvdslError:
    return EnvdslError.of(
        "app-webhook-secret",
        f"the webhook's secret file {file} {problem}",
        hint=f"write one: echo {_SECRET_PREFIX}$(openssl rand -base64 32) > {file.name}",
        exit_status=ExitStatus.ENVIRONMENT,
    )


def _deliver(setting: WebhookSetting, event: WebhookRecord, now: datetime) -> str | None:
    """None where it was taken, else why not, in words without the URL: its path may be a secret."""
    import requests

    from envdsl.transport import new_session

    body = body_of(event)
    try:
        headers = headers_of(event.id, body, read_secret(setting.secret_file), now)
        with new_session() as session:
            # A redirect could lead anywhere; netrc's passwords are nobody's business here.
            answer = session.post(
                setting.url, data=body, headers=headers, timeout=_TIMEOUT, allow_redirects=False, auth=_anonymous
            )
    except EnvdslError as error:
        return str(error)
    except requests.RequestException as error:
        return type(error).__name__
    return None if 200 <= answer.status_code < 300 else _refused(answer.status_code)


def _anonymous(request: Any) -> Any:
    return request


def _refused(status: int) -> str:
    return f"it answered {status}"
