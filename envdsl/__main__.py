"""``python -m envdsl``."""

from envdsl.cli.main import main

main()
