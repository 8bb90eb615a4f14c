"""The control plane: asking for packages, deciding, building, binding. Every face calls this, none does it itself."""
