"""``python -m envdsl``."""

from envdsl.start import main

main()
