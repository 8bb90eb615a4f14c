"""Where the output of a derivation stands: the store path that its key and its names give."""

from __future__ import annotations

from envdsl.graph.derivation import Bytecode, Derivation, Layer, SourceTree, Unpack, WheelFile
from envdsl.store.layout import Layout


def output_path(derivation: Derivation) -> str:
    """The store path (relative to the store's root) of what ``derivation`` makes."""
    match derivation:
        case WheelFile():
            return Layout.wheel_path(derivation.sha256, derivation.filename)
        case Unpack():
            return Layout.unpacked_path(derivation.key, derivation.name, derivation.version)
        case Bytecode():
            unpack = derivation.unpack
            return Layout.bytecode_path(derivation.key, unpack.name, unpack.version, derivation.python.tag)
        case SourceTree():
            return Layout.source_path(derivation.key)
        case Layer():
            return Layout.layer_path(derivation.id)
