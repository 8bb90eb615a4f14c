"""Where things go: schemes, scripts and entry points."""

from __future__ import annotations

from tests.realise.corpus.case import Case, Wheel

OURS = b"#!/usr/bin/env python3\n"
SCRIPT = OURS[:-1].decode()

PLACES = (
    Case(
        "data-directory-without-version",
        "PyO3/maturin#2450",
        "files in example.data are in no scheme of any distribution",
        Wheel(data={"data/share/x": b""}, data_directory="demo.data"),
        code="intake-identity",
    ),
    Case(
        "data-directory-not-normalised",
        "pypa/packaging.python.org#1789",
        "a .data directory that spells name and version in a way of its own",
        Wheel(data={"data/share/x": b"x"}, data_directory="Demo-1.0.0.data"),
        holds=lambda root: (root / "share/x").read_bytes() == b"x",
    ),
    Case(
        "scheme-that-does-not-exist",
        "pypa/pip#8656",
        "a file in .data that is in no scheme",
        Wheel(data={"nonsense/x": b""}),
        code="intake-scheme",
    ),
    Case(
        "file-beside-the-schemes",
        "pypa/pip#8656",
        "a file directly in .data",
        Wheel(data={"README": b""}),
        code="intake-scheme",
    ),
    Case(
        "headers-by-two-schemes",
        "conda/conda-pypi#246",
        "pybind11-global ships its headers by .data/headers and by .data/data/include",
        Wheel(data={"headers/demo.h": b"h", "data/include/demo.h": b"h"}),
        holds=lambda root: (
            (root / "include/demo/demo.h").read_bytes() == (root / "include/demo.h").read_bytes() == b"h"
        ),
    ),
    Case(
        "data-files-into-site-packages",
        "pypa/auditwheel#233",
        "an extension module below .data/data/lib/python3.8/site-packages",
        Wheel(data={"data/lib/python3.8/site-packages/evil.py": b""}),
        code="intake-data-in-site-packages",
    ),
    Case(
        "absolute-data-files-in-site-packages",
        "capstone-engine/capstone#783",
        "absolute data_files ended below site-packages: useless, and harmless",
        Wheel(files={"usr/lib/python3.5/site-packages/demo/lib.so": b"x"}),
        holds=lambda root: (root / "site-packages/usr/lib/python3.5/site-packages/demo/lib.so").is_file(),
    ),
    Case(
        "relative-data-files",
        "pypa/wheel#120",
        "data_files that older tools put into site-packages go to the prefix",
        Wheel(data={"data/publicsuffix.txt": b"x"}),
        holds=lambda root: (root / "publicsuffix.txt").read_bytes() == b"x",
    ),
    Case(
        "pth-with-an-import",
        "BerriAI/litellm#24521",
        "a .pth with code: legal, used for good and ill; nothing of it runs when the wheel is taken in",
        Wheel(files={"demo_init.pth": b"import os; os.abort()\n"}),
        holds=lambda root: (root / "site-packages/demo_init.pth").is_file(),
    ),
    Case(
        "pythonw",
        "prefix-dev/rip#59",
        "a script of a graphical program",
        Wheel(data={"scripts/gui": b"#!pythonw\nprint(1)\n"}),
        holds=lambda root: (root / "bin/gui").read_bytes() == OURS + b"print(1)\n",
    ),
    Case(
        "shebang-with-carriage-return",
        "pnpm/pnpm#14586",
        "#!python\\r\\n of a wheel that was made on Windows",
        Wheel(data={"scripts/tool": b"#!python\r\nprint(1)\r\n"}),
        holds=lambda root: (root / "bin/tool").read_bytes() == OURS + b"print(1)\r\n",
    ),
    Case(
        "shebang-with-arguments",
        "pypa/pip#10663",
        "arguments after #!python",
        Wheel(data={"scripts/tool": b"#!python -E\nprint(1)\n"}),
        holds=lambda root: (root / "bin/tool").read_bytes() == OURS + b"print(1)\n",
    ),
    Case(
        "shebang-of-the-builder",
        "jmcnamara/XlsxWriter#211",
        "the interpreter of the machine that built the wheel; what is no #!python is left alone",
        Wheel(data={"scripts/tool": b"#!/Users/John/bin/python\n"}),
        holds=lambda root: (root / "bin/tool").read_bytes() == b"#!/Users/John/bin/python\n",
    ),
    Case(
        "shebang-without-an-end",
        "pypa/wheel#6",
        "a script that is nothing but its first line, without a line end",
        Wheel(data={"scripts/tool": b"#!python"}),
        holds=lambda root: (root / "bin/tool").read_bytes() == OURS,
    ),
    Case(
        "encoding-in-the-second-line",
        "astral-sh/uv#21280",
        "a declared encoding counts in the first two lines alone (PEP 263)",
        Wheel(data={"scripts/tool": b"#!python\n# coding=windows-1252\nprint('\x80')\n"}),
        holds=lambda root: (root / "bin/tool").read_bytes().split(b"\n")[1] == b"# coding=windows-1252",
    ),
    Case(
        "scripts-without-executable-bit",
        "pypa/installer#68",
        "scripts are executable, whatever the archive says",
        Wheel(data={"scripts/tool": b"#!python\n"}),
        holds=lambda root: (root / "bin/tool").stat().st_mode & 0o777 == 0o555,
    ),
    Case(
        "entry-point-with-extras",
        "FFY00/python-install#7",
        "black: blackd = blackd:patched_main [d]; the extra is no code",
        Wheel(entry_points="[console_scripts]\nblackd = demo:patched_main [d]\n"),
        holds=lambda root: "sys.exit(patched_main())" in (root / "bin/blackd").read_text(),
    ),
    Case(
        "entry-point-in-capitals",
        "pypa/pip#2834",
        "configparser makes names small unless it is told not to",
        Wheel(entry_points="[console_scripts]\nUppercaseInEntryPoints = demo:main\n"),
        holds=lambda root: (root / "bin/UppercaseInEntryPoints").is_file(),
    ),
    Case(
        "entry-points-that-differ-in-case",
        "pypa/pip#3168",
        "Pweave has both Pweave and pweave",
        Wheel(entry_points="[console_scripts]\nPweave = demo:main\npweave = demo:main\n"),
        holds=lambda root: (root / "bin/Pweave").is_file() and (root / "bin/pweave").is_file(),
    ),
    Case(
        "entry-points-indented",
        "pypa/pip#1306",
        "gunicorn's entry_points.txt begins with white space",
        Wheel(entry_points="\n    [console_scripts]\n    gunicorn=demo:run\n    unicorn=demo:run\n"),
        holds=lambda root: (root / "bin/gunicorn").is_file() and (root / "bin/unicorn").is_file(),
    ),
    Case(
        "entry-point-with-a-colon",
        "pypa/pip#3901",
        "names with colons in groups that are no scripts",
        Wheel(entry_points="[demo.plugins]\nns:name = demo:main\n"),
        holds=lambda root: not (root / "bin").exists(),
    ),
    Case(
        "entry-point-without-attribute",
        "pypa/installer#338",
        "a console script that names a module alone cannot be called",
        Wheel(entry_points="[console_scripts]\ndemo = demo\n"),
        code="intake-entry-point-malformed",
    ),
    Case(
        "entry-point-with-interpolation",
        "pypi/warehouse#20362",
        "%(x)s: what is checked and what is written would differ",
        Wheel(entry_points="[console_scripts]\ndemo = demo:%(other)s\n"),
        code="intake-entry-point-malformed",
    ),
    Case(
        "entry-point-that-climbs",
        "pypa/setuptools#390",
        "a console script called ../../name is written wherever it says",
        Wheel(entry_points="[console_scripts]\n../../demo = demo:main\n"),
        code="intake-script-name",
    ),
    Case(
        "entry-point-and-script-of-one-name",
        "pypa/wheel#79",
        "a wrapper in the wheel and the entry point that it wraps",
        Wheel(data={"scripts/demo": b"#!python\n"}, entry_points="[console_scripts]\ndemo = demo:main\n"),
        code="intake-place-twice",
    ),
)
