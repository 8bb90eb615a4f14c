"""Runs under the interpreter of a layer: compiles source files, one after another, as they are asked for.

Only the standard library, any Python from 3.8 on, and as few imports as possible: what is alive in a process
can show in its bytecode (a string that two code objects share is stored as a reference), so nothing here
depends on anything but the interpreter, and nothing of a file outlives its turn.

The protocol, little-endian: first the magic number goes out (4 bytes). A request is the length of a path and
the path, then the length of a name and the name that tracebacks are to show; the answer is the length of a
``.pyc`` and the ``.pyc``, length 0 for a file that cannot be compiled. End of input ends the process.
"""

import _imp
import marshal
import sys

MAGIC: bytes = sys.modules["_frozen_importlib_external"].MAGIC_NUMBER
SEED = int.from_bytes(MAGIC, "little")
UNCHECKED_HASH = (1).to_bytes(4, "little")  # PEP 552: hash-based, and never compared with the source


def compiled(path: str, name: str) -> bytes:
    """The ``.pyc`` of a source file; empty where it holds no valid source of this Python."""
    with open(path, "rb") as file:  # noqa: PTH123 (pathlib would be one more thing alive)
        source = file.read()
    try:
        code = compile(source, name, "exec", dont_inherit=True, optimize=0)
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
        return b""
    return MAGIC + UNCHECKED_HASH + _imp.source_hash(SEED, source) + marshal.dumps(code)


def main() -> None:
    requests, answers = sys.stdin.buffer, sys.stdout.buffer

    def text() -> str:
        length = requests.read(4)
        return requests.read(int.from_bytes(length, "little")).decode("utf-8", "surrogateescape")

    answers.write(MAGIC)
    answers.flush()
    while True:
        path = text()
        if not path:
            return
        pyc = compiled(path, text())
        answers.write(len(pyc).to_bytes(4, "little"))
        answers.write(pyc)
        answers.flush()


if __name__ == "__main__":
    main()
