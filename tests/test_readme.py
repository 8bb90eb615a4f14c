"""What the README shows is what happens: its tour, command by command, from an empty directory."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.examples import console

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.network
def test_the_tour_does_what_the_readme_says(tmp_path: Path) -> None:
    """Issue 2.18: a five-minute tour with real output, from an empty directory to a layer of one's own."""
    layer = re.search(r"^```nix\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert layer is not None
    # The tour names the newest Python that is common; the one that runs the tests is always there.
    python = f"3.{sys.version_info.minor}"
    place = tmp_path / "tour"
    (place / "layers.d").mkdir(parents=True)
    (place / "layers.d" / "report.layer").write_text(layer[1].replace("3.12", python), encoding="utf-8")
    (place / "README.md").write_text(README.replace("cp312", f"cp3{sys.version_info.minor}"), encoding="utf-8")
    console.run(place / "README.md", environment=console.environment(tmp_path / "bin"))


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if "://" not in target:
            assert (ROOT / target).exists(), target


def test_every_command_that_the_readme_names_exists() -> None:
    from envdsl.cli.group import COMMANDS

    for name in re.findall(r"`envdsl ([a-z-]+)", README):
        assert name in COMMANDS, name
