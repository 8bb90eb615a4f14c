"""``bundle.json``: what a bundle holds, as data, and the rules that it has to keep (``docs/airgap.md``).

A bundle has two parts: ``project/`` (the layer files with all that they read, their locks, local wheels, sources),
and ``store/`` (store paths). A manifest that parses is plain: its names are safe to join to a directory, no two
of them can mean one file anywhere, each tree hash is that of the listed members.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from blake3 import blake3

from envdsl.errors import EnvdslError
from envdsl.model.canonical import canonical_json
from envdsl.model.names import Platform
from envdsl.store.archive import Member, MemberType, refusal
from envdsl.store.treehash import Entry, Listing

FORMAT = 1
NAME = "bundle.json"
PROJECT = "project/"
STORE = "store/"
# What layers are hard links to, and what a project part may not touch.
_PARTS = ("unpack", "bytecode", "source")
_VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".jj"})
_KINDS = ("wheel", "python", "unpack", "bytecode", "source", "layer")


@dataclass(frozen=True, slots=True)
class Item:
    """A file, symbolic link, hard link or empty directory of a tree. ``path`` is relative to the tree; the ``target``
    of a hard link is the name of a member."""

    path: str
    type: MemberType
    size: int = 0
    digest: str = ""
    executable: bool = False
    target: str = ""

    def member(self, prefix: str) -> Member:
        if self.type == "file":
            return Member(prefix + self.path, "file", self.size, self.digest, self.executable)
        return Member(prefix + self.path, self.type, executable=self.executable, target=self.target)

    def entry(self) -> Entry:
        """As a listing has it."""
        if self.type == "symlink":
            target = self.target.encode()
            return Entry(self.path, "symlink", False, len(target), blake3(target).hexdigest())
        if self.type == "directory":
            return Entry(self.path, "directory", False, 0, "")
        return Entry(self.path, "file", self.executable, self.size, self.digest)

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = {"path": self.path, "type": self.type}
        if self.type in ("file", "link"):
            value |= {"size": self.size, "blake3": self.digest, "executable": self.executable}
        if self.type in ("symlink", "link"):
            value["target"] = self.target
        return value


@dataclass(frozen=True)
class BundledPath:
    """A store path in a bundle. ``facts`` say where an interpreter came from; other kinds have none."""

    kind: str
    path: str
    key: str
    tree_hash: str
    items: tuple[Item, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def prefix(self) -> str:
        """What stands before the paths of its items: a wheel is a file, all others are directories."""
        return STORE + (self.path.rpartition("/")[0] if self.kind == "wheel" else self.path) + "/"

    @cached_property
    def members(self) -> tuple[Member, ...]:
        return tuple(item.member(self.prefix) for item in self.items)

    @cached_property
    def listing(self) -> Listing:
        return Listing(item.entry() for item in self.items)

    def actual_tree_hash(self) -> str | None:
        """That of the members; None where they can be no tree."""
        try:
            return self.listing.tree_hash()
        except ValueError:
            return None

    def to_json(self) -> dict[str, Any]:
        value = {"kind": self.kind, "path": self.path, "key": self.key, "tree-hash": self.tree_hash}
        return {**value, "members": [item.to_json() for item in self.items], "facts": dict(self.facts)}


@dataclass(frozen=True)
class Bundle:
    """``platform`` is that of the machine that made it, ``layers`` are the declared names of what it serves, ``signer``
    is the public key of who signed it (:mod:`envdsl.app.bundles.signing`)."""

    platform: Platform
    layers: tuple[str, ...]
    project: tuple[Item, ...]
    paths: tuple[BundledPath, ...]
    signer: str | None = None

    @cached_property
    def project_members(self) -> tuple[Member, ...]:
        return tuple(item.member(PROJECT) for item in self.project)

    def members(self) -> Iterator[Member]:
        """All members after the manifest, in their order."""
        yield from self.project_members
        for path in self.paths:
            yield from path.members

    def encode(self) -> bytes:
        value = {
            "format": FORMAT,
            "layers": list(self.layers),
            "paths": [path.to_json() for path in self.paths],
            "platform": str(self.platform),
            "project": [item.to_json() for item in self.project],
        }
        return canonical_json(value if self.signer is None else {**value, "signer": self.signer})

    @classmethod
    def parse(cls, data: bytes, label: str) -> Bundle:
        """The inverse of :meth:`encode`, for the bundle ``label``.

        Raises EnvdslError ``archive-list`` (not what this module describes), ``archive-format-newer``, and
        ``archive-name-…``, ``archive-duplicate``, ``archive-case``, ``archive-link``, ``archive-tree-hash``.
        """
        try:
            value = json.loads(data)
            if isinstance(value, dict) and isinstance(value.get("format"), int) and value["format"] > FORMAT:
                raise refusal(label, "format-newer", f"has format {value['format']}; this envdsl reads format {FORMAT}")
            bundle = cls(
                Platform.parse(value["platform"]),
                tuple(_text(name) for name in value["layers"]),
                tuple(_item(item) for item in value["project"]),
                tuple(_path(path) for path in value["paths"]),
                _hexadecimal(value["signer"]) if "signer" in value else None,
            )
            # The one form: no member unknown to this version, none twice, nothing of another type.
            if value["format"] != FORMAT or bundle.encode() != data:
                raise ValueError("it is not in canonical form")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise refusal(label, "list", f"has a {NAME} that is none: {error!r}"[:500]) from None
        bundle.check(label)
        return bundle

    def check(self, label: str) -> None:
        """Raise the refusal of what breaks a rule."""
        check_names(self.members(), label)
        for item in self.project:
            if _VERSION_CONTROL.intersection(item.path.casefold().split("/")):
                raise refusal(label, "name-vcs", "would change how version control works", PROJECT + item.path)
            if item.type not in ("file", "symlink"):
                raise refusal(label, "link", "is neither a file nor a symbolic link", PROJECT + item.path)
            _check_symlink(item, PROJECT + item.path, label)
        files: dict[str, Member] = {}
        for path in self.paths:
            for item, member in zip(path.items, path.members, strict=True):
                _check_symlink(item, member.name, label)
                if item.type == "file" and path.kind in _PARTS:
                    files[member.name] = member
                elif item.type == "link":
                    _check_link(path.kind, item, member, files, label)
            if path.kind == "wheel" and [item.path for item in path.items] != [path.path.rpartition("/")[2]]:
                raise refusal(label, "list", "is a wheel that is more or less than a file", path.path)
            if path.actual_tree_hash() != path.tree_hash:
                raise refusal(label, "tree-hash", "has other members than its tree hash says", path.path)


def check_names(members: Iterable[Member], label: str) -> None:
    """The rules of wheels for names, and one name for one place on any file system."""
    from envdsl.realise.zipnames import check_name

    checked: set[str] = set()
    names: set[str] = set()
    seen: set[str] = set()
    places: dict[str, str] = {}
    others: set[str] = set()  # of members below which there can be nothing
    for member in members:
        name = member.name
        try:
            check_name(label, name, checked)
        except EnvdslError as error:
            facts = {"archive": label, "member": name, "rule": (rule := error.code.removeprefix("intake-"))}
            raise EnvdslError.of(f"archive-{rule}", str(error), details=facts) from None
        if name in names:
            raise refusal(label, "duplicate", "is on its list twice", name)
        names.add(name)
        if member.type != "directory":
            others.add(name)
        while name and name not in seen:
            seen.add(name)
            folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
            if places.setdefault(folded, name) != name:
                raise refusal(label, "case", f"differs from {places[folded]!a} in case or Unicode form only", name)
            name = name.rpartition("/")[0]
    for directory in checked & others:
        raise refusal(label, "duplicate", "is both a directory and something else", directory)


def _check_link(kind: str, item: Item, member: Member, files: Mapping[str, Member], label: str) -> None:
    target = files.get(item.target)
    if target is None or kind != "layer":
        raise refusal(label, "link", f"is a link to {item.target!a}, which is no file of a part of it", member.name)
    if (target.size, target.digest, target.executable) != (item.size, item.digest, item.executable):
        raise refusal(label, "link", "is a link to a file of another content", member.name)


def _check_symlink(item: Item, name: str, label: str) -> None:
    if item.type != "symlink":
        return
    depth = item.path.count("/")
    below = False
    for part in item.target.split("/"):
        # Upwards only at the beginning, where the directories are known to be real: behind another link, `..` is
        # anywhere.
        if part in ("", ".") or (part == ".." and (below or depth == 0)) or "\0" in part or "\\" in part:
            raise refusal(label, "link", f"is a symbolic link to {item.target!a}, which may lead out", name)
        below = part != ".."
        depth -= part == ".."


def _item(value: Any) -> Item:
    kind = value["type"]
    if kind not in ("file", "directory", "symlink", "link"):
        raise ValueError(f"no type: {kind!r}")
    size = value.get("size", 0)
    if type(size) is not int or size < 0:
        raise ValueError(f"no size: {size!r}")
    digest = _text(value.get("blake3", ""))
    if kind in ("file", "link"):
        _hexadecimal(digest)
    target = _text(value.get("target", ""))
    if (kind in ("symlink", "link")) != bool(target):
        raise ValueError("a link without a target, or a target without a link")
    return Item(_text(value["path"]), kind, size, digest, bool(value.get("executable", False)), target)


def _path(value: Any) -> BundledPath:
    if value["kind"] not in _KINDS:
        raise ValueError(f"no kind: {value['kind']!r}")
    return BundledPath(
        kind=value["kind"],
        path=_text(value["path"]),
        key=_hexadecimal(value["key"]),
        tree_hash=_hexadecimal(value["tree-hash"]),
        items=tuple(_item(item) for item in value["members"]),
        facts=dict(value["facts"]),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"not a string: {value!r}")
    value.encode()  # no lone surrogates: a name has to have bytes
    return value


def _hexadecimal(value: Any) -> str:
    text = _text(value)
    if len(text) != 64 or text.strip("0123456789abcdef"):
        raise ValueError(f"not a digest: {text[:80]!r}")
    return text
