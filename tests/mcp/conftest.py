"""The bench of the control plane, asked through the official MCP client."""

from __future__ import annotations

from tests.app.control.bench import bench, light_bench, template
from tests.cli.conftest import pristine_store

__all__ = ["bench", "light_bench", "pristine_store", "template"]
