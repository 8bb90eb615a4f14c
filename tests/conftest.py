"""Settings of all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.postgres import database_url, postgres

__all__ = ["database_url", "postgres"]  # fixtures

# A slow machine is no finding: neither an example that takes long, nor a strategy that does.
settings.register_profile("envdsl", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("envdsl")
