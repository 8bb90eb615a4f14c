"""How our letters look: the module that the vendored wheel holds."""

from __future__ import annotations

from rich.console import Console
from rich.panel import Panel

__version__ = "1.0"


def letter(to: str, text: str) -> None:
    """Print a letter in the house style."""
    Console(width=60).print(Panel(f"Dear {to},\n\n{text}\n\nYours, the platform team", title="House & Co", width=60))
