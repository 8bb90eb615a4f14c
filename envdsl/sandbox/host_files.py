"""What a sandbox gets of the host's ``/etc``: a list of what programs need, and nothing that names the host."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from envdsl.sandbox.plan import GID, HOME, UID, USER

_WRITTEN = {
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

# By whichever name a distribution gives them. What is missing on this host is left out.
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
_STAMPED = (*_FILES, *_TREES, "etc/fonts/conf.d")


@dataclass(frozen=True, slots=True)
class HostFiles:
    """By path relative to the root: files with their content, symbolic links with their target."""

    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)


def collect(host: Path) -> HostFiles:
    """Read everything. ``host`` is the host's root."""
    found = HostFiles({name: text.encode() for name, text in _WRITTEN.items()}, {"etc/mtab": "/proc/self/mounts"})
    for name in _FILES:
        _add(found, str(host), name)
    for tree in _TREES:
        for name in paths_below(host / tree):
            _add(found, str(host), f"{tree}/{name}")
    return found


def stamp(host: Path) -> list[list[str | int]]:
    """Facts that change whenever what :func:`collect` reads may have changed; cheap to have."""
    facts: list[list[str | int]] = []
    for name in _STAMPED:
        try:
            found = (host / name).stat()
        except OSError:
            continue
        facts.append([name, found.st_mtime_ns, found.st_size, found.st_ino])
    return facts


def paths_below(directory: Path) -> Iterator[str]:
    """Everything below that is not a directory (a link to a directory is not one), relative."""
    for parent, directories, names in os.walk(directory):
        links = [name for name in directories if Path(parent, name).is_symlink()]
        relative = parent[len(str(directory)) + 1 :]
        for name in (*names, *links):
            yield f"{relative}/{name}" if relative else name


def _add(found: HostFiles, host: str, name: str) -> None:
    """A link that stays valid in the sandbox stays a link; anything else is copied."""
    path = posixpath.join(host, name)
    try:
        target = os.readlink(path)  # noqa: PTH115 - hundreds of these, and Path's cost ten times as much
    except OSError:
        target = ""  # no link
    target = posixpath.normpath(posixpath.join("/", posixpath.dirname(name), target)) if target else ""
    if "/man/man" in target:
        return  # most of /etc/alternatives, and nothing runs it
    if target.startswith("/usr/"):
        found.links[name] = target
        return
    try:
        found.files[name] = Path(path).read_bytes()
    except OSError:
        return  # dangling, unreadable for this user, or gone meanwhile: as if the host had none
