"""The service: HTTP API, MCP endpoint and admin page. A face of :mod:`envdsl.app.control`: it decides nothing."""
