"""Realisation: derivations carried out, so that their outputs stand in the store. See `scheduler`."""
