"""Fixtures of all tests of the control plane."""

from __future__ import annotations

from tests.app.control.bench import bench, light_bench, template
from tests.app.control.stage import prepared, stage
from tests.cli.conftest import pristine_store

__all__ = ["bench", "light_bench", "prepared", "pristine_store", "stage", "template"]
