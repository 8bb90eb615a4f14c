"""``envdsl build`` with nothing to do, answered by what the last build wrote down.

The cache (``<store>/cache/build``) holds a copy of everything that the answer depends on: the
configuration, the layer files and what they read, the locks, digests of large files and of source directories, and
the *names* of the layer files, so that a new one counts. While all is the same and the layers
still stand in the store, so does the answer. It ends with the boot of the machine: a build does not
wait for the disk, and what that has lost the store alone finds out (``docs/decisions/durability.md``).
``gc`` and ``verify --repair`` delete the cache before they touch anything. A cache that is missing,
stale, foreign or damaged means a full build, which writes a new one.

This module is on the path of every no-op, so it stands in no package below ``envdsl`` and imports ``os``, which
is there already: no typing (which a NamedTuple needs, and which takes as long as all else together), no
pathlib, no json, no click. Comparing needs no hash, and so no library to load that has one, unless an input is large.
The format is lines of tab-separated fields for the same reason, and behind them the inputs as they were; a name with a
tab or a line break in it is simply not cached.
"""

import os

from envdsl import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from hashlib import blake2b

_HEADER = f"envdsl build cache 4 {__version__}"
_COPIED = 1 << 16  # bytes; of larger inputs, such as wheels, the digest is kept
_END = b"\nend\n"
_BOOT = "/proc/sys/kernel/random/boot_id"
_FLAGS = ("--locked", "--offline", "--json", "-q", "--quiet")


class Answer:
    """One built layer, as ``build`` reports it; ``path`` is absolute."""

    __slots__ = ("id", "key", "kind", "name", "path", "tree_hash")

    def __init__(self, name: str, kind: str, id: str, path: str, key: str, tree_hash: str) -> None:
        self.name = name
        self.kind = kind
        self.id = id
        self.path = path
        self.key = key
        self.tree_hash = tree_hash

    def fields(self) -> tuple[str, ...]:
        """In the order of the constructor."""
        return self.name, self.kind, self.id, self.path, self.key, self.tree_hash


class Inputs:
    """What an answer depends on; paths are relative to the project's root.

    ``directories`` are those whose layer files and locks count by their names: a new one is a change.
    """

    __slots__ = ("directories", "files", "trees")

    def __init__(self, files: tuple[str, ...], directories: tuple[str, ...], trees: tuple[str, ...]) -> None:
        self.files = files
        self.directories = directories
        self.trees = trees


def answer(arguments: "Sequence[str]") -> str | None:
    """The output of ``envdsl build ARGUMENTS`` if nothing is to be done, else None.

    None as well for an option that this shortcut does not know, and for whatever goes wrong: the full
    command says what.
    """
    names = [argument for argument in arguments if not argument.startswith("-")]
    flags = [argument for argument in arguments if argument.startswith("-")]
    if any(flag not in _FLAGS for flag in flags):
        return None
    try:
        root = _find_root(os.environ.get("ENVDSL_PROJECT") or os.getcwd())
        if root is None:
            return None
        store = os.environ.get("ENVDSL_STORE") or _configured_store(root)
        if store is None:
            return None
        rows = _recall(root, os.path.abspath(store), request(names, locked="--locked" in flags))
    except (OSError, ValueError):
        return None
    if rows is None or not all(os.path.exists(f"{row.path}/layer.json") for row in rows):
        return None
    return render(rows, as_json="--json" in flags, built=0)


def request(names: "Sequence[str]", *, locked: bool) -> str:
    """What tells one build from another: what was asked for, and whether all locks had to be current for it."""
    return " ".join(["--locked", *names] if locked else names)


def render(rows: "Iterable[Answer]", *, as_json: bool, built: int) -> str:
    """The result of a build, the same from this shortcut and from the full command."""
    if not as_json:
        return "".join(f"{row.name}\t{row.id}\t{row.path}\n" for row in rows)
    import json

    layers = [
        {
            "name": row.name,
            "kind": row.kind,
            "id": row.id,
            "path": row.path,
            "key": row.key,
            "tree-hash": row.tree_hash,
        }
        for row in rows
    ]
    return json.dumps({"layers": layers, "built": built}, indent=2) + "\n"


def state(root: str, inputs: Inputs) -> bytes | None:
    """What ``inputs`` are like now, for :func:`remember`; None if one of them cannot be read."""
    try:
        return _state(root, inputs)
    except OSError:
        return None


def remember(
    root: str, store: str, asked: str, inputs: Inputs, rows: "Sequence[Answer]", *, before: bytes | None = None
) -> None:
    """Write down that ``rows`` answer ``asked`` (see :func:`request`) while ``inputs`` are as they are.

    ``before`` is the :func:`state` that the build began with: rows are the answer to that one, so nothing is
    written down if somebody has changed an input meanwhile. Other requests' answers are kept while they stand on
    the same inputs. Failing to write is no error.
    """
    fields = [*inputs.files, *inputs.directories, *inputs.trees, *(field for row in rows for field in row.fields())]
    if any("\t" in field or "\n" in field for field in fields):
        return
    try:
        now = _state(root, inputs)
        if before not in (None, now):
            return
        head = _head(root, inputs)
        found = _read(store)
        kept = found[1] if found is not None and (found[0], found[2]) == (head, now) else []
        kept = [block for block in kept if block[0] != f"request\t{asked}"]
        kept.append([f"request\t{asked}", *("layer\t" + "\t".join(row.fields()) for row in rows)])
        lines = [*head, *(line for block in kept for line in block), "end"]
        os.makedirs(f"{store}/cache", exist_ok=True)
        temporary = f"{store}/cache/build.{os.getpid()}"
        # What is copied may hold what others may not read.
        with open(temporary, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(("\n".join(lines) + "\n").encode(errors="surrogateescape") + now)
        os.replace(temporary, f"{store}/cache/build")
    except (OSError, ValueError):
        return


def _head(root: str, inputs: Inputs) -> list[str]:
    return [
        _HEADER,
        f"boot\t{_boot()}",
        f"root\t{root}",
        *(f"file\t{path}" for path in inputs.files),
        *(f"directory\t{path}" for path in inputs.directories),
        *(f"tree\t{path}" for path in inputs.trees),
    ]


def _boot() -> str:
    """What tells this boot of the machine from any other. Raises OSError where the kernel does not say."""
    with open(_BOOT, encoding="utf-8") as file:
        return file.read().strip()


def _read(store: str) -> tuple[list[str], list[list[str]], bytes] | None:
    """The head, the blocks (a request and its layers) and the inputs of the cache, or None if it is not whole."""
    try:
        with open(f"{store}/cache/build", "rb") as file:
            text, end, inputs = file.read().partition(_END)
    except FileNotFoundError:
        return None
    lines = text.decode(errors="surrogateescape").split("\n")
    if not end or lines[0] != _HEADER:
        return None
    head: list[str] = []
    blocks: list[list[str]] = []
    for line in lines:
        if line.startswith("request\t"):
            blocks.append([line])
        elif blocks:
            blocks[-1].append(line)
        else:
            head.append(line)
    return head, blocks, inputs


def _recall(root: str, store: str, asked: str) -> list[Answer] | None:
    found = _read(store)
    if found is None:
        return None
    head, blocks, before = found
    wanted = next((block for block in blocks if block[0] == f"request\t{asked}"), None)
    if wanted is None:
        return None
    fields = [line.split("\t") for line in head[1:]]
    inputs = Inputs(*(tuple(value for kind, value in fields if kind == name) for name in ("file", "directory", "tree")))
    if head != _head(root, inputs) or before != _state(root, inputs):
        return None
    rows = [line.split("\t")[1:] for line in wanted[1:]]
    return [Answer(*row) for row in rows] if all(len(row) == len(Answer.__slots__) for row in rows) else None


def _state(root: str, inputs: Inputs) -> bytes:
    """Names and contents of the inputs, each behind its length: two states are equal where all inputs are."""
    return b"".join(_parts(root, inputs))


def _parts(root: str, inputs: Inputs) -> "Iterator[bytes]":
    for path in inputs.files:
        try:
            with open(f"{root}/{path}", "rb") as file:
                content = file.read()
        except FileNotFoundError:
            yield f"\0absent {path}\0".encode(errors="surrogateescape")
            continue
        if len(content) > _COPIED:
            from hashlib import blake2b

            content = blake2b(content).digest()
        yield f"\0file {path} {len(content)}\0".encode(errors="surrogateescape")
        yield content
    for path in inputs.directories:
        names = sorted(
            name
            for name in os.listdir(f"{root}/{path}")
            if name.endswith(".layer") or (name.startswith("pylock.") and name.endswith(".toml"))
        )
        yield f"\0names {path} {names}\0".encode(errors="surrogateescape")
    if inputs.trees:
        from hashlib import blake2b

        for path in inputs.trees:
            hasher = blake2b(digest_size=32)
            _digest_tree(hasher, f"{root}/{path}")
            yield f"\0tree {path} {hasher.hexdigest()}\0".encode(errors="surrogateescape")


def _digest_tree(hasher: "blake2b", directory: str) -> None:
    """Content, kind and executable bit of everything below ``directory``: nothing that `touch` changes."""
    with os.scandir(directory) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_symlink():
                described, content = "link", os.readlink(entry.path).encode(errors="surrogateescape")
            elif entry.is_dir():
                hasher.update(f"\0enter {entry.name}\0".encode(errors="surrogateescape"))
                _digest_tree(hasher, entry.path)
                hasher.update(b"\0leave\0")
                continue
            else:
                with open(entry.path, "rb") as file:
                    described, content = f"file {bool(entry.stat().st_mode & 0o100)}", file.read()
            hasher.update(f"\0{described} {entry.name} {len(content)}\0".encode(errors="surrogateescape"))
            hasher.update(content)


def _find_root(start: str) -> str | None:
    """:func:`envdsl.config.find_root` without pathlib."""
    directory = os.path.abspath(start)
    while True:
        if os.path.isfile(f"{directory}/envdsl.toml") or os.path.isdir(f"{directory}/layers.d"):
            return directory
        parent = os.path.dirname(directory)
        if parent == directory:
            return None
        directory = parent


def _configured_store(root: str) -> str | None:
    """``store`` of ``envdsl.toml`` where it is spelled in the plainest way, else None.

    A misreading could only find a cache that names other inputs than the ones it was written for.
    """
    try:
        with open(f"{root}/envdsl.toml", encoding="utf-8") as file:
            lines = file.read().split("\n")
    except FileNotFoundError:
        return f"{root}/store"
    for line in lines:
        if line.startswith("["):
            break
        name, equals, value = line.partition("=")
        if equals and name.strip().strip("\"'") == "store":
            plain = value.partition("#")[0].strip()
            if len(plain) < 3 or plain[0] not in "\"'" or plain[-1] != plain[0] or "\\" in plain:
                return None
            return os.path.join(root, plain[1:-1])
    return f"{root}/store"
