"""How long a test waits for what is promised within some seconds on a machine that does nothing else.

These are no measurements (``make bench`` measures): they tell an answer from a hang.
"""

SLOWER = 10  # a small virtual machine, with other tests on its other core

TWO_SECONDS = 2.0 * SLOWER
