"""A worker of the service, in a process of its own (:mod:`envdsl.web.crew`).

What it is to work on comes as one line of JSON on its standard input (:class:`Assignment`: nothing of it, such as the
database's password, is for the list of processes). Each further line says that there may be work; the end of the input
that there is none any more: what is in hand is finished, and the process ends. So it never outlives its service.

Lines of JSON on its standard output say what the service wants to know: ``{"told": [...]}`` which requests have
changed, ``{"work": "build", "seconds": 1.5}`` how long something took.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.reporter import Reporter

_LOG = logging.getLogger("envdsl.web.worker")


@dataclass(frozen=True, slots=True)
class Assignment:
    """The project by its ``root`` (``curated``: that of the layers that ship with envdsl), its ``store``, the URL of
    the ``database``, the ``name`` of the worker, and whether the log is ``verbose``."""

    root: str
    store: str
    curated: bool
    database: str
    name: str
    verbose: bool

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    def project(self, reporter: Reporter) -> Project:
        """The project, opened anew."""
        from envdsl.app.curated import curated
        from envdsl.app.project import Project
        from envdsl.config import load

        store = Path(self.store)
        return Project(curated(store) if self.curated else load(Path(self.root), store=store), reporter)


def main() -> int:
    """Work until the input ends, or SIGTERM. The exit status is 1 where the database failed."""
    from envdsl.app.control import changes
    from envdsl.app.control.plane import ControlPlane
    from envdsl.app.control.worker import Worker
    from envdsl.errors import EnvdslError
    from envdsl.web import logs

    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    assignment = Assignment(**json.loads(sys.stdin.buffer.readline()))
    logs.configure(verbose=assignment.verbose)

    def listen() -> None:
        for _ in sys.stdin.buffer:
            changes.hear(changes.WORK)
        stop.set()
        changes.hear(changes.WORK)

    threading.Thread(target=listen, name="service", daemon=True).start()
    writing = threading.Lock()

    def say(**facts: Any) -> None:
        with writing:
            sys.stdout.write(json.dumps(facts) + "\n")
            sys.stdout.flush()

    project = assignment.project(logs.LogReporter())
    try:
        with (
            ControlPlane.open(project, url=assignment.database) as plane,
            changes.pass_on(lambda subjects: say(told=subjects)),
        ):
            took = lambda work, seconds: say(work=work, seconds=seconds)  # noqa: E731
            Worker(plane, name=assignment.name, took=took).run(stop)
    except EnvdslError as error:
        logging.getLogger("envdsl.web.worker").error(
            "worker stopped", extra={"fields": {"code": error.code, "detail": str(error)}}
        )
        return 1
    finally:
        project.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
