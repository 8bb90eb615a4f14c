"""What can be imported of a distribution: ``sklearn`` of scikit-learn, ``PIL`` of pillow, ``google.protobuf``.

The files say it (RECORD, which lists what the wheel put below site-packages), since ``top_level.txt`` is neither
required nor written by most builders, and since of a namespace package its name alone says nothing: ``import google``
is no use to whoever asked for protobuf.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envdsl.app.files import write_file

if TYPE_CHECKING:
    from envdsl.session.manifest import BoundLayer
    from envdsl.store.layout import Layout

_FORMAT = 1
_DEPTH = 4  # google.cloud.storage.v2: whoever nests deeper is read up to here
_MANY = 8  # names below one namespace package, beyond which its own name says more
_EXTENSION = ".so"
# Directories that wheels carry by mistake; they are no namespace packages that anybody wants.
_NOISE = frozenset(
    {"benchmark", "benchmarks", "doc", "docs", "example", "examples", "script", "scripts", "test", "tests"}
)


class _Directory(dict[str, "_Directory"]):
    """A directory of modules: what is below, by name. ``regular``: it has an ``__init__``."""

    def __init__(self) -> None:
        super().__init__()
        self.regular = False
        self.module = False


def import_names(paths: Iterable[str], *, name: str = "") -> tuple[str, ...]:
    """The names to import of a distribution with the files ``paths`` (relative to site-packages, ``/``).

    Private names (``_cffi_backend``) are left out, as are directories of tests that a wheel carries by mistake. The one
    that is spelled like the distribution ``name`` comes first, the others by alphabet.
    """
    top = _tree(paths)
    found = sorted({".".join(parts) for parts in _named(top, ())})
    wanted = [item for item in found if item.partition(".")[0] not in _NOISE] or found
    spelled = _plain(name)
    return tuple(sorted(wanted, key=lambda item: (_plain(item) != spelled, item)))


def of_layer(layout: Layout, layer: BoundLayer) -> Mapping[str, tuple[str, ...]]:
    """The import names of each distribution of a bound layer, by the distribution's name.

    A layer never changes, so the answer is kept in the store's cache under its id.
    """
    place = layout.cache / "imports" / f"{layer.id}.json"
    if (known := _read(place)) is not None:
        return known
    site = Path(layer.path) / "site-packages"
    records = {_plain(info.name.partition("-")[0]): info / "RECORD" for info in site.glob("*.dist-info")}
    found = {
        package.name: import_names(_recorded(records.get(_plain(package.name))), name=package.name)
        for package in layer.packages
    }
    content = json.dumps({"format": _FORMAT, "imports": found}, sort_keys=True)
    with suppress(OSError):  # a store of somebody else's, or a full disk: it is found again next time
        write_file(place, content.encode())
    return found


def _read(place: Path) -> dict[str, tuple[str, ...]] | None:
    try:
        value: Any = json.loads(place.read_bytes())
        if value["format"] != _FORMAT:
            return None
        return {name: tuple(imports) for name, imports in value["imports"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _recorded(record: Path | None) -> Iterator[str]:
    """The paths that RECORD lists."""
    if record is None:
        return
    with record.open(encoding="utf-8", newline="") as file:
        for row in csv.reader(file):
            if row:
                yield row[0]


def _tree(paths: Iterable[str]) -> _Directory:
    top = _Directory()
    for path in paths:
        *directories, file = path.split("/")
        module = _module(file)
        if module is None or not all(part.isidentifier() for part in directories):
            continue  # data, metadata, scripts (`../../../bin/x`)
        place = top
        for part in directories:
            place = place.setdefault(part, _Directory())
        if module == "__init__":
            place.regular = True
        else:
            place.setdefault(module, _Directory()).module = True
    return top


def _module(file: str) -> str | None:
    """``a`` of ``a.py``, ``a.pyc`` and ``a.cpython-312-x86_64-linux-gnu.so``."""
    stem, dot, suffix = file.rpartition(".")
    if not dot or f".{suffix}" not in (".py", ".pyc", _EXTENSION):
        return None
    name = stem.partition(".")[0]
    return name if name.isidentifier() else None


def _named(directory: _Directory, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, inner in directory.items():
        if name.startswith("_"):
            continue
        here = (*above, name)
        if inner.regular or inner.module or len(here) >= _DEPTH:
            yield here
        else:
            below = list(_named(inner, here))
            yield from below if len(below) <= _MANY else [here]


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").replace(".", "").lower()
