"""Derivations: layers and locks compiled into build steps, and their keys. Pure; see ``docs/format.md``."""
