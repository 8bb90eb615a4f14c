"""What a managed prefix holds so that layers behave like site-packages.

`PYTHONPATH` alone would not do: directories on it are searched, but their `.pth` files are not read; a
user's own `PYTHONPATH=src` would replace it; and `python -I` ignores it. So each prefix has one `.pth`
file of its own that hands the directories in `ENVDSL_SITE_DIRS` to :func:`site.addsitedir`, which reads
their `.pth` files and appends what `sys.path` lacks.
"""

from __future__ import annotations

# Separated by os.pathsep; set by a session's manifest. Part of the interface between prefix and session.
SITE_DIRS_VARIABLE = "ENVDSL_SITE_DIRS"

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


# Distributions that are not called like what is imported, as far as nearly everybody meets them.
_DISTRIBUTIONS = {{
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "fitz": "pymupdf",
    "pptx": "python-pptx",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}}


def _say_how_to_ask(kind, error, trace, _print=sys.excepthook):
    """Print the traceback; below one of a module that is not there, how to ask for it."""
    _print(kind, error, trace)
    name = getattr(error, "name", None)
    if kind is ModuleNotFoundError and name and "." not in name and sys.stderr is not None:
        distribution = _DISTRIBUTIONS.get(name, name)
        sys.stderr.write(
            f"hint: {{name}} is not in this environment. Ask with the python_env tool: "
            f'{{{{"action": "request", "packages": ["{{distribution}}"]}}}}\\n'
        )


if os.environ.get("ENVDSL_SESSION"):
    sys.excepthook = _say_how_to_ask
''',
    "envdsl-shims/pip.py": '''\
"""Stands in for pip where no layer brings it."""
import json
import sys

MESSAGE = """\\
pip does not install packages here: this environment is read-only and has no package index.
"""
ASK = """\\
Ask for a package with the python_env tool:  {request}
or, on the host:  envdsl env request {session} {packages}
Start a new process when the answer is "ready".
"""
LOOK = """\\
What is installed says the python_env tool:  {{"action": "status"}}
or, on the host:  envdsl env status {session}
"""


WITH_VALUE = {"-c", "-e", "-i", "-r", "-t", "--constraint", "--editable", "--index-url", "--requirement", "--target"}


def message(arguments, session):
    """What to do instead of ``pip`` with these arguments."""
    packages = []
    if arguments[:1] == ["install"]:
        pairs = zip(arguments, arguments[1:])
        packages = [item for before, item in pairs if item[:1] != "-" and before not in WITH_VALUE]
        packages = [item for item in packages if "/" not in item and not item.endswith((".whl", ".txt"))]
        packages = packages or ["NAME"]
    if not packages:
        return MESSAGE + LOOK.format(session=session)
    request = json.dumps({"action": "request", "packages": packages})
    quoted = " ".join("\'" + item.replace("\'", "") + "\'" for item in packages)
    return MESSAGE + ASK.format(request=request, session=session, packages=quoted)


if __name__ == "__main__":
    import os

    sys.stderr.write(message(sys.argv[1:], os.environ.get("ENVDSL_SESSION", "SESSION")))
    sys.exit(1)
raise ModuleNotFoundError("No module named \'pip\'", name="pip")
''',
}

# PEP 668: what pip and uv say when they are asked to install into this prefix.
EXTERNALLY_MANAGED = """\
[externally-managed]
Error=This Python is read-only and managed by envdsl: packages come from layers.
 In a sandbox, ask for a package with the python_env tool (action "request").
 In a project, add it to a layer in a .layer file, then run: envdsl lock && envdsl build
"""
