"""Bundles: a project's locks with what they need, as one file for a machine without network (``docs/airgap.md``)."""
