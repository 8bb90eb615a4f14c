"""What the first requests would otherwise wait for: modules, compiled SQL, validators.

Modules are imported where they are needed, so that a command starts quickly. A service has time before it listens, and
who asks first should not be the one who waits.
"""

from __future__ import annotations

import gc
from importlib import import_module
from typing import TYPE_CHECKING

from envdsl.web.api.schemas import validator
from envdsl.web.api.table import ENDPOINTS

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane

# What `status` and asking import when they are called.
_MODULES = (
    "envdsl.app.control.answers",
    "envdsl.app.control.asking",
    "envdsl.app.control.python_env",
    "envdsl.app.control.waiting",
    "envdsl.realise.python",
    "envdsl.session.bindings",
    "packaging.requirements",
    "packaging.utils",
)

_NOBODYS = f"envdsl_a_{'0' * 64}"  # a token that there is not


def preload(plane: ControlPlane) -> None:
    """Do once what the first look at a status and the first request for packages need. Changes nothing.

    Raises :class:`EnvdslError` ``state-…`` where the database fails.
    """
    for name in _MODULES:
        import_module(name)
    for body in {endpoint.body for endpoint in ENDPOINTS if endpoint.body is not None}:
        validator(body).is_valid(None)
    with plane.state.reading() as tx:
        tx.tokens.find(_NOBODYS, store=plane.store_id)
        tx.requests.recent(plane.store_id, "", ended=1)
        tx.requests.open_with(plane.store_id, "", "")
        tx.requests.open_count(plane.store_id, "")
    # What is there now stays for the life of the process. The garbage collector would go through all of it again and
    # again, for some ten milliseconds, while nobody gets an answer.
    gc.collect()
    gc.freeze()
