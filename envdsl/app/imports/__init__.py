"""Existing work as a layer, with the same versions: what another tool has locked or installed."""
