"""The HTTP API, ``/api/v1``: :mod:`envdsl.web.api.table` is all of it at a glance."""
