"""The sha256 and size of wheels about which their index says too little (PEP 503 demands neither).

A file on this machine is read; for one of the network, its server is asked for the size, and if the hash is
missing there is no way but to fetch it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.lock.candidates import auth_for
from envdsl.lock.index import IndexConfiguration
from envdsl.lock.question import Distribution
from envdsl.redaction import public_url
from envdsl.transport import CONNECT_TIMEOUT, READ_TIMEOUT, Retries, new_session, reason

if TYPE_CHECKING:
    import requests

_CHUNK = 1 << 18


class Measurer:
    """Completes what is known of a distribution. ``sizes`` are known already, by sha256 (of the old lock)."""

    def __init__(
        self, configuration: IndexConfiguration, sizes: Mapping[str, int], retries: Retries | None = None
    ) -> None:
        self._configuration = configuration
        self._sizes = dict(sizes)
        self._retries = retries or Retries()
        self._session: requests.Session | None = None
        self._complete: dict[Distribution, Distribution] = {}

    def complete(self, offer: Distribution) -> Distribution:
        """``offer`` with sha256 and size. Raises EnvdslError ``lock-index-unreachable``, ``lock-hash-mismatch``."""
        if offer not in self._complete:
            self._complete[offer] = self._measure(offer)
        return self._complete[offer]

    def _measure(self, offer: Distribution) -> Distribution:
        if offer.path is not None:
            return self._of_file(offer, offer.path)
        if offer.sha256 is not None and offer.size is None:
            offer = replace(offer, size=self._sizes.get(offer.sha256))
        if offer.sha256 is not None and offer.size is not None:
            return offer
        import requests

        try:
            return self._retries.call(lambda: self._of_url(offer, offer.url or ""))
        except requests.RequestException as error:
            raise EnvdslError.of(
                "lock-index-unreachable",
                f"{public_url(offer.url or '')} cannot be fetched: {reason(error)}",
                hint="its index says no size or no hash, so the file has to be looked at",
                exit_status=ExitStatus.ENVIRONMENT,
            ) from error

    def _of_file(self, offer: Distribution, path: Path) -> Distribution:
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.seek(0, 2)
        if offer.sha256 not in (None, sha256):
            raise EnvdslError.of(
                "lock-hash-mismatch",
                f"{path} has the sha256 {sha256}, and its index says {offer.sha256}",
                hint="the file or its index page is damaged, or was tampered with",
            )
        return replace(offer, sha256=sha256, size=size)

    def _of_url(self, offer: Distribution, url: str) -> Distribution:
        session = self._session = self._session or new_session()
        auth = auth_for(url, self._configuration)
        timeout = CONNECT_TIMEOUT, READ_TIMEOUT
        identity = {"Accept-Encoding": "identity"}
        if offer.sha256 is not None:
            answer = session.head(url, auth=auth, timeout=timeout, headers=identity, allow_redirects=True)
            if answer.ok and answer.headers.get("Content-Length", "").isdigit():
                return replace(offer, size=int(answer.headers["Content-Length"]))
        with session.get(url, auth=auth, timeout=timeout, headers=identity, stream=True) as answer:
            answer.raise_for_status()
            digest, size = hashlib.sha256(), 0
            for chunk in answer.iter_content(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
        if offer.sha256 not in (None, digest.hexdigest()):
            raise EnvdslError.of(
                "lock-hash-mismatch",
                f"{public_url(url)} has the sha256 {digest.hexdigest()}, and its index says {offer.sha256}",
                hint="the file or its index page is damaged, or was tampered with",
            )
        return replace(offer, sha256=digest.hexdigest(), size=size)
