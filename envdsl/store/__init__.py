"""The store: immutable trees, each named by an opaque key. A leaf: it knows nothing of derivations, layers or sessions.

``docs/store.md`` says what is promised; ``docs/format.md`` defines the tree hash.
"""
