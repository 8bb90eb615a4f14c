"""The minimal root that the sandboxes of a store share: of the host, ``/usr`` and a few files of ``/etc``.

Every mount costs start-up time, so everything that is not a mount of its own is prepared once in one
directory, ``root-<hash>``, bound read-only as the sandbox's ``/``: the configuration that the loader, name
lookup, TLS, fonts and time zones need, the links of a merged ``/usr``, and the places where mounts go
(bubblewrap cannot make those in a read-only root). The hash stands for these places alone: where the host's
files change, the directory is brought up to date in place, file by file and each by a rename, so that what
refers to it stays valid, running sandboxes included.

Nothing here says which machine this is: no host name, no machine id, none of its users.
"""

from __future__ import annotations

import fcntl
import json
import posixpath
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.canonical import canonical_json
from envdsl.model.digest import blake3_hex, store_hash
from envdsl.sandbox import host_files
from envdsl.sandbox.host_files import HostFiles, paths_below
from envdsl.sandbox.plan import HOME, WORKSPACE, Mount, MountKind

_RECIPE = 1
_TOP_LEVEL = ("bin", "lib", "lib32", "lib64", "libx32", "sbin")
_EMPTY = ("dev", "proc", "tmp", "usr", "root", "run", "var/tmp", HOME[1:], WORKSPACE[1:])


def prepare(directory: Path, mounts: Iterable[Mount] = (), *, host: Path = Path("/")) -> tuple[Mount, ...]:
    """Make or refresh the root below ``directory`` in which ``mounts`` find their places.

    Returns the base mounts of a plan: root, ``/usr``, devices, processes, ``/tmp`` and home. Cheap when there is
    nothing to do: it stats the host's files and reads nothing. ``host`` is the host's root, for tests.

    Raises EnvdslError (``sandbox-root-unwritable``) where there is no such root yet and none can be made.
    """
    places = _mountpoints(mounts)
    directories, links = _top_level(host)
    recipe = {"recipe": _RECIPE, "places": places, "directories": directories, "links": links}
    root = directory / f"root-{store_hash(blake3_hex(canonical_json(recipe)))}"
    stamp = json.dumps([_RECIPE, host_files.stamp(host)])
    if not _is_current(root, stamp):
        try:
            with _locked(directory):
                if not _is_current(root, stamp):
                    content = host_files.collect(host)
                    content.links.update(links)
                    content.files.update({path[1:]: b"" for path, kind in places.items() if kind == "file"})
                    wanted = [path[1:] for path, kind in places.items() if kind == "directory"]
                    _write(root, content, [*wanted, *directories])
                    _replace(_stamp_file(root), stamp.encode())
        except OSError as error:
            if not root.is_dir() or not _stamp_file(root).exists():
                raise EnvdslError.of(
                    "sandbox-root-unwritable",
                    f"cannot make the sandbox's root {root}: {error.strerror}",
                    hint="run the command once as the owner of the store, or choose another store with --store",
                    exit_status=ExitStatus.ENVIRONMENT,
                ) from error
            # Somebody else's store: its root stands, and only misses what changed on the host since.
    system = [Mount.read_only(str(host / name), f"/{name}") for name in ("usr", *directories)]
    return (
        Mount.read_only(str(root), "/"),
        *system,
        Mount(MountKind.DEV, "/dev"),
        Mount(MountKind.PROC, "/proc"),
        Mount.tmpfs("/tmp", mode=0o1777),
        Mount.tmpfs(HOME, mode=0o700),
    )


def _mountpoints(mounts: Iterable[Mount]) -> dict[str, str]:
    """The places that the root must offer: path -> "directory" or "file".

    Not those inside another mount: bubblewrap makes them there, or they exist there.
    """
    given = [Mount.tmpfs(f"/{name}") for name in ("dev", "proc", "tmp", "usr", HOME[1:])]
    places: dict[str, str] = {}
    for mount in mounts:
        if not any(earlier.covers(mount.target) for earlier in given):
            is_file = mount.source is not None and Path(mount.source).is_file()
            places[mount.target] = "file" if is_file else "directory"
        given.append(mount)
    return places


def _top_level(host: Path) -> tuple[list[str], dict[str, str]]:
    """The directories and the symbolic links beside ``/usr`` that programs and their loader are found through."""
    directories, links = [], {}
    for name in _TOP_LEVEL:
        path = host / name
        if path.is_symlink():
            links[name] = str(path.readlink()).lstrip("/")
        elif path.is_dir():
            directories.append(name)  # a host whose /usr is not merged
    return directories, links


def _stamp_file(root: Path) -> Path:
    return root.with_name(f"{root.name}.stamp")


def _is_current(root: Path, stamp: str) -> bool:
    try:
        return _stamp_file(root).read_text() == stamp
    except OSError:
        return False


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _write(root: Path, content: HostFiles, directories: Iterable[str]) -> None:
    """Bring ``root`` to hold exactly this below ``etc``, and at least this elsewhere."""
    is_new = not root.exists()
    for name in sorted({"", *_EMPTY, *directories, *map(posixpath.dirname, (*content.files, *content.links))}):
        _make_directory(root, name)
    for name, target in content.links.items():
        if is_new:
            (root / name).symlink_to(target)
        else:
            _replace_link(root / name, target)
    for name, data in content.files.items():
        _replace(root / name, data)
    if not is_new:
        for name in list(paths_below(root / "etc")):
            if f"etc/{name}" not in content.files and f"etc/{name}" not in content.links:
                (root / "etc" / name).unlink()


def _make_directory(root: Path, name: str) -> None:
    path = root
    for part in ("", *Path(name).parts):
        path /= part
        try:
            path.mkdir()
        except FileExistsError:
            continue
        path.chmod(0o755)  # whatever the umask: another user's sandbox needs it as well


def _replace(path: Path, data: bytes) -> None:
    try:
        if not path.is_symlink() and path.read_bytes() == data:
            return
    except OSError:
        pass
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_bytes(data)
    temporary.chmod(0o644)
    temporary.replace(path)


def _replace_link(path: Path, target: str) -> None:
    try:
        if str(path.readlink()) == target:
            return
    except OSError:
        pass
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(path)
