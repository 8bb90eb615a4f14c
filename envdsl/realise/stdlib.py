"""Which modules the standard library of a given Python has.

``sys.stdlib_module_names`` is that of the Python that runs envdsl; a layer has its own. A backport of what a release
removed (`audioop-lts`, `standard-imghdr`) shadows nothing there, and `typing` shadows something everywhere.
"""

from __future__ import annotations

import sys

# By feature release of Python 3: "What's New", "Removed" and "New modules".
_REMOVED = {
    12: "asynchat asyncore distutils imp smtpd",
    13: "aifc audioop cgi cgitb chunk crypt imghdr lib2to3 mailcap msilib nis nntplib ossaudiodev pipes sndhdr spwd "
    "sunau telnetlib uu xdrlib",
}
_ADDED = {11: "tomllib", 14: "annotationlib compression"}


def modules(minor: int) -> frozenset[str]:
    """The top-level modules of Python 3.``minor``'s standard library."""
    names = set(sys.stdlib_module_names)
    for release, removed in _REMOVED.items():
        (names.difference_update if minor >= release else names.update)(removed.split())
    for release, added in _ADDED.items():
        (names.update if minor >= release else names.difference_update)(added.split())
    return frozenset(names)
