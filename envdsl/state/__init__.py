"""The control plane's state: requests, bindings, audit, tokens. A leaf: it knows tables, not layers."""
