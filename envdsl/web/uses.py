"""When tokens were used, written down apart from the requests that used them.

A request that only reads would otherwise wait for its turn to write behind everybody who asks for packages.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from envdsl.errors import EnvdslError

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane

_PAUSE = 5.0  # seconds between writings
_LOG = logging.getLogger("envdsl.web")


class Uses:
    """Tokens whose use is due to be written (once a minute each). For any number of threads."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._lock = threading.Lock()
        self._due: set[str] = set()

    def note(self, token: str) -> None:
        """The token with this id was used."""
        with self._lock:
            self._due.add(token)

    def run(self, stop: threading.Event) -> None:
        """Write from time to time, until ``stop`` is set, and then what is left."""
        while not stop.wait(_PAUSE):
            self.write()
        self.write()

    def write(self) -> None:
        """Write down what was noted, in one transaction; what cannot be written now is noted by its next use."""
        with self._lock:
            due, self._due = self._due, set()
        if not due:
            return
        try:
            with self._plane.state.transaction() as tx:
                tx.tokens.touch(*due)
        except EnvdslError as error:
            _LOG.warning("uses of tokens were not written", extra={"fields": {"code": error.code}})
