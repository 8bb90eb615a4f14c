"""Roots that are written down: ``current``, and what stands in ``gcroots/``.

A symbolic link there is a root: it leads into the store, directly or by way of links outside of it. A file is a list of
roots, one a line: a key or a store path, then whatever else is known of it::

    # project "/home/me/reports"
    310ef31c… office 1735689600
    27a5b3c4… office 1733011200 1735689600

A project whose directory is *missing* may have been deleted, or lie on a disk that is not mounted now. So the list of
one counts as long as it was not missing for a week; ``# missing 1735689600``, a line that gc writes, says since when.

The words after the key are a name, when it became a root of that name and, for one that is a root no more, when it
ceased to be (seconds since 1970). Those are the history that ``gc --keep-last`` reads; to everybody else a line with
four words says nothing. A file is written whole, by a rename.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from envdsl.store.failures import failures
from envdsl.store.layout import Layout
from envdsl.store.locks import exclusive

HISTORY = 100  # entries that are kept for a name
MISSING_AGE = 7 * 24 * 3600.0  # seconds that the lists of a project outlive its directory
_HEADER = re.compile(r"# (?P<kind>[a-z-]+) (?P<name>\".*\")")
_TEMPORARY = re.compile(r"\..*\.new")
_MISSING = re.compile(r"# missing (\d+)")
_OF_PROJECTS = ("project", "wheels-of")  # kinds of lists that are called after a directory


class Root(NamedTuple):
    """One root: ``name`` says to people what it is, ``target`` is a key, or a store path or something below one."""

    name: str
    target: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a list of roots; ``until`` is None for what is a root now."""

    target: str
    name: str = ""
    since: int = 0
    until: int | None = None

    @classmethod
    def parse(cls, line: str) -> Entry | None:
        """None for a line that lists nothing."""
        words = line.partition("#")[0].split()
        if not words:
            return None
        target, name, since, until = (words + [""] * 3)[:4]
        return cls(target, name, int(since) if since.isdecimal() else 0, int(until) if until.isdecimal() else None)

    def __str__(self) -> str:
        words = [self.target, *([self.name, str(self.since)] if self.name else [])]
        return " ".join(words if self.until is None else [*words, str(self.until)])


@dataclass(frozen=True, slots=True)
class Missing:
    """A project whose directory is not there: since when that is known (seconds since 1970), and its lists."""

    project: str
    since: int
    files: tuple[str, ...]


def written(layout: Layout, *, keep_last: int = 0, missing_age: float = MISSING_AGE) -> Iterator[Root]:
    """All roots that are written down; with ``keep_last`` the last so many of each name in each list. Lists of projects
    that are missing for ``missing_age`` seconds or longer count no more."""
    now = time.time()
    if layout.current.is_symlink() and (target := _inside(layout, layout.current)):
        yield Root("current", target)
    for place in _members(layout.gcroots):
        if place.is_symlink():
            if target := _inside(layout, place):
                yield Root(f"gcroots/{place.name}", target)
        elif place.is_file():
            title, entries = read(place)
            if (since := _missing_since(place, int(now))) is not None:
                if since <= now - missing_age:
                    continue
                title += " (missing)"
            for entry in _chosen(entries, keep_last):
                what = f"{entry.name} of {title}" if entry.name else title
                yield Root(what if entry.until is None else f"{what}, until {_date(entry.until)}", entry.target)


def ended(layout: Layout) -> dict[str, int]:
    """When keys and paths that lists name as roots of the past were roots last."""
    last: dict[str, int] = {}
    for place in _members(layout.gcroots):
        if place.is_file() and not place.is_symlink():
            for entry in read(place)[1]:
                if entry.until is not None:
                    last[entry.target] = max(entry.until, last.get(entry.target, 0))
    return last


def projects(layout: Layout) -> list[Path]:
    """The directories of the projects that keep layers here, whether they are there now or not; sorted."""
    lists = (place for place in _members(layout.gcroots) if place.name.startswith("project-") and place.is_file())
    return sorted({Path(project) for place in lists if (project := _project(place))})


def missing(layout: Layout) -> list[Missing]:
    """The projects that have lists here and are missing, by name."""
    found: dict[str, Missing] = {}
    for place in _members(layout.gcroots):
        if place.is_file() and (since := _missing_since(place, int(time.time()))) is not None:
            project = _project(place) or ""
            known = found.get(project, Missing(project, since, ()))
            found[project] = Missing(project, min(since, known.since), (*known.files, place.name))
    return [found[project] for project in sorted(found)]


def note_missing(layout: Layout) -> None:
    """Write into the lists of projects since when these are missing, and nothing of the kind into those of others."""
    for place in _members(layout.gcroots):
        if not place.is_file() or place.is_symlink() or _project(place) is None:
            continue
        with _writing(layout, place.name):
            since = _missing_since(place, int(time.time()))
            lines = [line for line in _lines(place) if not _MISSING.fullmatch(line)]
            if lines and since is not None:
                lines.insert(1, f"# missing {since}")
            if lines:
                _write(place, "".join(f"{line}\n" for line in lines).encode())


def forget_missing(layout: Layout, *, missing_age: float = MISSING_AGE) -> None:
    """Remove the lists that :func:`written` leaves out."""
    for place in _members(layout.gcroots):
        if place.is_file() and not place.is_symlink() and _project(place) is not None:
            with _writing(layout, place.name):
                since = _missing_since(place, int(time.time()))
                if since is not None and since <= time.time() - missing_age:
                    place.unlink(missing_ok=True)


def _project(place: Path) -> str | None:
    """The directory that a list is called after; None for a list of another kind."""
    lines = _lines(place)
    header = _HEADER.fullmatch(lines[0]) if lines else None
    if header is None or header["kind"] not in _OF_PROJECTS:
        return None
    try:
        name = json.loads(header["name"])
    except ValueError:
        return None
    return name if Path(name).is_absolute() else None


def _missing_since(place: Path, now: int) -> int | None:
    """Since when the project of a list is missing, as far as is known (``now`` where nobody noted it); None where it
    is there, or may be: a directory that this user cannot look into is no missing one."""
    project = _project(place)
    if project is None:
        return None
    try:
        Path(project).stat()
    except (FileNotFoundError, NotADirectoryError):
        noted = [int(found[1]) for line in _lines(place) if (found := _MISSING.fullmatch(line))]
        return min([now, *noted])
    except OSError:
        pass
    return None


def read(place: Path) -> tuple[str, list[Entry]]:
    """What a list of roots calls itself (else its file's name), and its entries; nothing for one that is not there."""
    lines = _lines(place)
    header = _HEADER.fullmatch(lines[0]) if lines else None
    title = f"gcroots/{place.name}"
    if header is not None:
        with contextlib.suppress(ValueError):
            title = f"{header['kind']} {json.loads(header['name'])}"
    return title, [entry for line in lines if (entry := Entry.parse(line)) is not None]


def write(
    layout: Layout,
    file: str,
    title: tuple[str, str],
    find: Callable[[], Mapping[str, str]],
    *,
    complete: bool,
    unnamed: Iterable[str] = (),
) -> Mapping[str, str]:
    """Let ``gcroots/<file>`` list what ``find`` returns (a key by name) and the keys ``unnamed``; returns the former.

    ``complete`` says that these are all: names of the list that are not among them become history, as the former key
    of a name does in any case. ``find`` is called while nobody else writes the same list, so that the last to look is
    the last to write. Raises EnvdslError ``store-…``.
    """
    place = layout.gcroots / file
    with _writing(layout, file):
        roots = find()
        _, before = read(place)
        bare = {*unnamed, *(entry.target for entry in before if not entry.name and not complete)}
        after = _merged([entry for entry in before if entry.name], roots, complete, int(time.time()))
        lines = [f"# {title[0]} {json.dumps(title[1])}", *map(str, after), *sorted(bare)]
        _write(place, "".join(f"{line}\n" for line in lines).encode())
    return roots


def _lines(place: Path) -> list[str]:
    try:
        return place.read_text("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return []


@contextlib.contextmanager
def _writing(layout: Layout, file: str) -> Iterator[None]:
    with failures("write roots", layout.root), exclusive(layout.tmp / "locks" / f"roots-{file}"):
        yield


def _merged(before: list[Entry], roots: Mapping[str, str], complete: bool, now: int) -> list[Entry]:
    after: dict[tuple[str, str], Entry] = {}
    for entry in before:
        ends = roots.get(entry.name, None if complete else entry.target) != entry.target
        after[entry.name, entry.target] = replace(entry, until=now) if ends and entry.until is None else entry
    for name, key in roots.items():
        present = after.get((name, key))
        if present is None or present.until is not None:
            after[name, key] = Entry(key, name, now)
    kept: list[Entry] = []
    for name in sorted({entry.name for entry in after.values()}):
        kept += sorted((entry for entry in after.values() if entry.name == name), key=_newest)[:HISTORY]
    return kept


def _newest(entry: Entry) -> tuple[bool, int, int, str]:
    return (entry.until is not None, -(entry.until or 0), -entry.since, entry.target)


def _chosen(entries: list[Entry], keep_last: int) -> Iterator[Entry]:
    seen: dict[str, int] = {}
    for entry in sorted(entries, key=_newest):
        number = seen[entry.name] = seen.get(entry.name, 0) + 1
        if entry.until is None or (entry.name and number <= keep_last):
            yield entry


def _inside(layout: Layout, link: Path) -> str | None:
    root = layout.root.resolve()
    target = Path(os.path.realpath(link))
    return target.relative_to(root).as_posix() if target.is_relative_to(root) else None


def _members(directory: Path) -> list[Path]:
    try:
        return sorted(place for place in directory.iterdir() if not _TEMPORARY.fullmatch(place.name))
    except FileNotFoundError:
        return []


def _date(seconds: int) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(seconds))


def _write(place: Path, content: bytes) -> None:
    """On disk before it has the name: what gc reads here decides what goes. The caller holds the list's lock."""
    try:
        if place.read_bytes() == content:
            return
    except FileNotFoundError:
        pass
    new = place.with_name(f".{place.name}.new")
    with new.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(place)
