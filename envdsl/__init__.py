"""envdsl: declarative, content-addressed Python layers for sandboxes.

The rooms, in the order in which a layer passes through them::

    syntax -> evaluate -> lock -> graph -> realise -> session -> sandbox

``store`` and ``sandbox`` are leaves; :mod:`envdsl.app` is the only module where all rooms meet.
"""

__version__ = "0.1.0"
