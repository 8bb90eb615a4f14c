"""Golden keys. A key that changes here makes every store build everything again, and every mirror of layers
useless: it takes a higher recipe version and a line in the changelog. Then ``python -m tests.keys.test_golden``
writes the new ones."""

from __future__ import annotations

import json

from envdsl.graph.derivation import (
    BYTECODE_RECIPE,
    FORMAT,
    LAYER_RECIPE,
    MAGIC_NUMBERS,
    UNPACK_RECIPE,
    X_LAYER_RECIPE,
)
from envdsl.graph.output import output_path
from tests.keys.project import HERE, compiled, load

GOLDEN = HERE / "golden.json"


def keys() -> dict[str, object]:
    graph = compiled(load())
    return {
        "format": FORMAT,
        "recipes": {
            "unpack": UNPACK_RECIPE,
            "bytecode": BYTECODE_RECIPE,
            "layer": LAYER_RECIPE,
            "x layer": X_LAYER_RECIPE,
        },
        "layers": {name: {"id": str(layer.id), "key": layer.key} for name, layer in graph.layers.items()},
        "derivations": [
            {
                "key": derivation.key,
                "path": output_path(derivation),
                "canonical": derivation.canonical().decode(),
            }
            for derivation in graph.derivations.values()
        ],
    }


def test_keys_are_what_they_always_were() -> None:
    """Issue 2.8: keys, canonical forms and store paths of a fixed project."""
    assert keys() == json.loads(GOLDEN.read_text("utf-8"))


def test_magic_numbers_are_those_of_the_interpreters() -> None:
    """Python's own list (Lib/importlib/_bootstrap_external.py): 3.10 to 3.14 as released."""
    assert MAGIC_NUMBERS == {10: 3439, 11: 3495, 12: 3531, 13: 3571, 14: 3627}


def test_the_magic_number_of_this_interpreter_is_the_one_in_keys() -> None:
    import importlib.util
    import sys

    assert int.from_bytes(importlib.util.MAGIC_NUMBER[:2], "little") == MAGIC_NUMBERS[sys.version_info.minor]


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(keys(), indent=2) + "\n", "utf-8")
