"""Runs in a sandbox: shows where its packages come from, and that there is nothing else."""

from __future__ import annotations

import socket
import sys
from importlib.metadata import distributions
from pathlib import Path

import inflect
from rich.console import Console
from rich.table import Table


def main() -> None:
    found = {(item.name.lower(), item.version, _layer(Path(str(item.locate_file(""))))) for item in distributions()}
    table = Table("package", "version", "layer")
    for row in sorted(found):
        table.add_row(*row)
    Console(width=60).print(table)
    print(f"{inflect.engine().number_to_words(len(found)).capitalize()} packages, Python 3.{sys.version_info.minor}.")
    print(f"The network: {_network()}.")


def _layer(site_packages: Path) -> str:
    """The kind of the layer that a directory belongs to: `base` of `…/layers/base-<hash>/site-packages`."""
    return site_packages.parent.name.partition("-")[0]


def _network() -> str:
    try:
        socket.create_connection(("192.0.2.1", 80), timeout=1).close()
    except OSError as error:
        return error.strerror or "not reachable"
    return "reachable"


if __name__ == "__main__":
    main()
