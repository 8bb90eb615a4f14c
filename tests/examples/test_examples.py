"""Every example does what its README says, command by command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.examples.conftest import ROOT

RUN = {"quickstart", "two-sessions", "vendored-wheel", "taking-over", "documents"}

Copy = Callable[[str], Path]
Run = Callable[[Path], None]


def test_every_example_is_run_by_a_test() -> None:
    """Issue 2.16: small projects, each run by a test."""
    assert {path.parent.name for path in (ROOT / "examples").glob("*/README.md")} == RUN


@pytest.mark.network
def test_quickstart(copy_example: Copy, run_readme: Run) -> None:
    """Issue 2.16: the quick start goes from a layer file to a package that is imported in a sandbox."""
    run_readme(copy_example("quickstart"))


@pytest.mark.network
def test_two_sessions(copy_example: Copy, run_readme: Run) -> None:
    """Issue 2.16, 2.13: two sessions have two versions of one package, as two x layers over an unchanged base."""
    run_readme(copy_example("two-sessions"))


@pytest.mark.network
def test_vendored_wheel(copy_example: Copy, run_readme: Run) -> None:
    """Issue 2.16: a wheel that is on no index is locked, built and imported like any other."""
    run_readme(copy_example("vendored-wheel"))


@pytest.mark.network
def test_taking_over(copy_example: Copy, run_readme: Run) -> None:
    """Issue 2.16: an existing requirements.txt and pyproject.toml become layers as they are."""
    run_readme(copy_example("taking-over"))
