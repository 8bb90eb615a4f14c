"""What stands in `<store>/bin`, last before the system's own programs on a sandbox's PATH.

`pip` there says how to ask for a package, and fails. A layer that brings pip comes before it.
"""

from __future__ import annotations

import os
from pathlib import Path

# The managed prefix has the text (`envdsl.realise.python_site`); -P: not whatever is called pip.py in the workspace.
_PIP = '#!/bin/sh\nexec python3 -P -m pip "$@"\n'
SHIMS = {"pip": _PIP, "pip3": _PIP}


def write_shims(directory: Path) -> None:
    """Bring the shims in ``directory`` up to date, each by a rename. Raises OSError."""
    for name, text in SHIMS.items():
        path = directory / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        directory.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f".{name}.{os.getpid()}")
        new.write_text(text, encoding="utf-8")
        new.chmod(0o555)
        new.replace(path)
