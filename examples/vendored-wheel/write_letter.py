"""Runs in the sandbox: uses the module of the vendored wheel."""

import house_style

house_style.letter("reader", "this module came from a wheel that no index has.")
