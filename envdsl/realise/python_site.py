"""What a managed prefix holds so that layers behave like site-packages.

`PYTHONPATH` alone would not do: directories on it are searched, but their `.pth` files are not read; a
user's own `PYTHONPATH=src` would replace it; and `python -I` ignores it. So each prefix has one `.pth`
file of its own that hands the directories in `ENVDSL_SITE_DIRS` to :func:`site.addsitedir`, which reads
their `.pth` files and appends what `sys.path` lacks.
"""

from __future__ import annotations

# Separated by os.pathsep; set by a session's manifest. Part of the interface between prefix and session.
SITE_DIRS_VARIABLE = "ENVDSL_SITE_DIRS"

# What `pip` says in a sandbox, as a program (the session's shim) and as `python -m pip`.
PIP_MESSAGE = """\
pip does not install packages here: this environment is read-only and has no package index.
Ask for a package with the python_env tool:  action "request", e.g. {"action": "request", "packages": ["rich>=13"]}
or add it to a layer in a .layer file of the project and run:  envdsl lock && envdsl build
then bind it:  envdsl session rebase
"""

SITE_HOOK = {
    "envdsl.pth": "import _envdsl_site\n",
    "_envdsl_site.py": f'''\
"""Started by envdsl.pth: the layers of this session are site directories; what stands in for pip comes last."""
import os
import site
import sys

for _directory in os.environ.get("{SITE_DIRS_VARIABLE}", "").split(os.pathsep):
    if _directory:
        site.addsitedir(_directory)
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "envdsl-shims"))
''',
    "envdsl-shims/pip.py": f'''\
"""Stands in for pip where no layer brings it."""
import sys

MESSAGE = """\\
{PIP_MESSAGE}"""

if __name__ == "__main__":
    sys.stderr.write(MESSAGE)
    sys.exit(1)
raise ModuleNotFoundError("No module named 'pip'", name="pip")
''',
}

# PEP 668: what pip and uv say when they are asked to install into this prefix.
EXTERNALLY_MANAGED = """\
[externally-managed]
Error=This Python is read-only and managed by envdsl: packages come from layers.
 In a sandbox, ask for a package with the python_env tool (action "request").
 In a project, add it to a layer in a .layer file, then run: envdsl lock && envdsl build
"""
