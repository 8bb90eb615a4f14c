"""The output of the room ``session``: the binding of a session to exact layers, as data.

``docs/manifest.schema.json`` is the published schema of :meth:`Manifest.to_json`.
"""

from __future__ import annotations
