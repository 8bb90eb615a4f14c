"""The vocabulary that all rooms share: digests, names, spans, canonical form. No input or output."""
