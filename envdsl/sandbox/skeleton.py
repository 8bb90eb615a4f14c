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
import os
import posixpath
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.canonical import canonical_json
from envdsl.model.digest import blake3_hex, store_hash
from envdsl.sandbox.plan import GID, HOME, UID, USER, WORKSPACE, Mount, MountKind

_RECIPE = 1

_STATIC = {
    "etc/passwd": (
        "root:x:0:0:root:/root:/usr/sbin/nologin\n"
        f"{USER}:x:{UID}:{GID}:{USER}:{HOME}:/bin/sh\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    ),
    "etc/group": f"root:x:0:\n{USER}:x:{GID}:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nprotocols: files\nservices: files\n",
    "etc/hosts": "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost ip6-localhost ip6-loopback\n",
    "etc/host.conf": "multi on\n",
}

# Files of the host, by whichever name a distribution gives them. What is missing on this host is left out.
_FILES = (
    "etc/ld.so.cache",
    "etc/ld.so.conf",
    "etc/ld-musl-x86_64.path",
    "etc/ld-musl-aarch64.path",
    "etc/localtime",
    "etc/mime.types",
    "etc/os-release",
    "etc/pki/tls/certs/ca-bundle.crt",
    "etc/pki/tls/openssl.cnf",
    "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "etc/protocols",
    "etc/services",
    "etc/ssl/cert.pem",
    "etc/ssl/certs/ca-certificates.crt",
    "etc/ssl/openssl.cnf",
)
_TREES = ("etc/alternatives", "etc/fonts", "etc/ld.so.conf.d")

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
    stamp = _stamp(host)
    if not _is_current(root, stamp):
        try:
            with _locked(directory):
                if not _is_current(root, stamp):
                    content = _content(host) | {name: ("link", target) for name, target in links.items()}
                    _write(root, content, places | {f"/{name}": "directory" for name in directories})
                    _replace(_stamp_file(root), stamp)
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


def _stamp(host: Path) -> str:
    """Changes whenever a file of the host that is copied may have changed."""
    facts: list[list[str | int]] = []
    for name in (*_FILES, *_TREES, "etc/fonts/conf.d"):
        try:
            found = (host / name).stat()
        except OSError:
            continue
        facts.append([name, found.st_mtime_ns, found.st_size, found.st_ino])
    return json.dumps([_RECIPE, facts])


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


def _content(host: Path) -> dict[str, tuple[str, str | bytes]]:
    """Everything but directories: path -> ("file", bytes) or ("link", target)."""
    content: dict[str, tuple[str, str | bytes]] = {name: ("file", text.encode()) for name, text in _STATIC.items()}
    content["etc/mtab"] = ("link", "/proc/self/mounts")
    for name in _FILES:
        _add(content, host, name)
    for tree in _TREES:
        for path in _files_below(host / tree):
            _add(content, host, str(path.relative_to(host)))
    return content


def _add(content: dict[str, tuple[str, str | bytes]], host: Path, name: str) -> None:
    """A link that stays valid in the sandbox stays a link; anything else is copied."""
    path = host / name
    try:
        if path.is_symlink():
            target = posixpath.normpath(posixpath.join("/", posixpath.dirname(name), path.readlink()))
            if "/man/man" in target:
                return  # most of /etc/alternatives, and nothing runs it
            if target.startswith("/usr/"):
                content[name] = ("link", target)
                return
        content[name] = ("file", path.read_bytes())
    except OSError:
        return  # dangling, unreadable for this user, or gone meanwhile: as if the host had none


def _write(root: Path, content: dict[str, tuple[str, str | bytes]], places: dict[str, str]) -> None:
    for path, kind in places.items():
        if kind == "file":
            content[path[1:]] = ("file", b"")
    directories = {*_EMPTY, *(path[1:] for path, kind in places.items() if kind == "directory")}
    for name in sorted({*directories, *(posixpath.dirname(name) for name in content)}):
        _make_directory(root, name)
    for name, (kind, data) in content.items():
        if kind == "link":
            _replace_link(root / name, str(data))
        else:
            _replace(root / name, data)
    for present in _files_below(root / "etc"):
        if str(present.relative_to(root)) not in content:
            present.unlink()


def _files_below(directory: Path) -> list[Path]:
    """Everything that is not a directory; a link to a directory is not one."""
    found = (Path(parent, name) for parent, below, names in os.walk(directory) for name in (*below, *names))
    return [path for path in found if path.is_symlink() or not path.is_dir()]


def _make_directory(root: Path, name: str) -> None:
    root.mkdir(exist_ok=True)
    path = root
    path.chmod(0o755)
    for part in Path(name).parts:
        path /= part
        path.mkdir(exist_ok=True)
        path.chmod(0o755)  # whatever the umask: another user's sandbox needs it as well


def _replace(path: Path, data: str | bytes) -> None:
    data = data.encode() if isinstance(data, str) else data
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
