"""Interpreters from python-build-standalone: uv's download, or an archive that somebody brought.

uv is called with explicit arguments into a directory of ours: it links nothing, reads no configuration
file, and touches none of its user's own installations. Network settings of the environment (proxies,
certificates, `UV_PYTHON_INSTALL_MIRROR`) stay in force.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from envdsl.errors import EnvdslError
from envdsl.model.names import PythonVersion
from envdsl.realise.python_host import NotUsableError

# Where the interpreter stands in an archive: `install_only` builds, and full ones.
_ROOTS = ("python", "python/install")
_AMBIENT = frozenset(
    {
        "UV_CACHE_DIR",
        "UV_CONFIG_FILE",
        "UV_OFFLINE",
        "UV_PROJECT",
        "UV_PYTHON",
        "UV_PYTHON_BIN_DIR",
        "UV_PYTHON_DOWNLOADS",
        "UV_PYTHON_INSTALL_DIR",
        "UV_PYTHON_PREFERENCE",
        "UV_WORKING_DIR",
        "VIRTUAL_ENV",
    }
)
_CAUSE = re.compile(r"(error|cause|Caused by):\s*")
_USERINFO = re.compile(r"(?<=://)[^/@\s]+@")
# The fallback waits for uv to give up: a proxy that hides a refusal makes it ask again for long, and a network that
# swallows everything lets each attempt take its whole time.
_PATIENCE = {"UV_HTTP_RETRIES": "1", "UV_HTTP_CONNECT_TIMEOUT": "3"}


def download(python: PythonVersion, directory: Path, *, mirror: str | None) -> Path:
    """Let uv install ``python`` below ``directory``; returns the executable. Raises :class:`NotUsableError`."""
    command = [_uv(), "python", "install", str(python), "--install-dir", str(directory), "--no-bin", "--no-config"]
    command += ["--no-cache", "--no-progress", "--color", "never"]
    if mirror is not None:
        command += ["--mirror", mirror]
    environment = _PATIENCE | {name: value for name, value in os.environ.items() if name not in _AMBIENT}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    except OSError as error:
        raise NotUsableError(f"uv does not run ({error})") from error
    if done.returncode != 0:
        raise NotUsableError(f"uv could not install it: {_reason(done.stderr)}")
    executable = next(directory.glob(f"cpython-{python}.*/bin/python{python}"), None)
    if executable is None:
        raise NotUsableError("uv reported success, and installed nothing")
    return executable


def unpack(archive: Path, sha256: str, directory: Path) -> Path:
    """Unpack a python-build-standalone archive (tar.gz or tar.zst) below ``directory``; returns the executable.

    The hash is checked before a byte of it is interpreted, over the same open file that is unpacked then. Raises
    EnvdslError: ``realise-python-archive`` (unreadable, not such an archive, a member that would land outside),
    ``realise-python-archive-hash``.
    """
    from zstandard import ZstdError

    try:
        with archive.open("rb") as file:
            actual = hashlib.file_digest(file, "sha256").hexdigest()
            if actual != sha256.lower():
                raise EnvdslError.of(
                    "realise-python-archive-hash",
                    f"{archive.name} is not the archive that was asked for: its sha256 is {actual}, not {sha256}",
                    hint="fetch the archive again, or take the sha256 from the publisher's own list of checksums",
                    details={"archive": archive.name, "expected": sha256, "actual": actual},
                )
            file.seek(0)
            with ExitStack() as stack:
                tar = stack.enter_context(_open(file, archive.name))
                tar.extractall(directory, filter="data")
    except tarfile.FilterError as error:
        raise _bad_archive(archive, f"refused: {error}") from error
    except (tarfile.TarError, OSError, EOFError, ZstdError) as error:
        raise _bad_archive(archive, f"can't be unpacked: {error}") from error
    for root in _ROOTS:
        executable = directory / root / "bin" / "python3"
        if executable.exists():
            return executable
    raise _bad_archive(archive, "holds no python/bin/python3")


@contextmanager
def _open(file: BinaryIO, name: str) -> Iterator[tarfile.TarFile]:
    if name.endswith((".zst", ".zstd")):
        import zstandard

        with (
            zstandard.ZstdDecompressor().stream_reader(file) as stream,
            tarfile.open(fileobj=stream, mode="r|") as tar,
        ):
            yield tar
    else:
        with tarfile.open(fileobj=file, mode="r:*") as tar:
            yield tar


def _bad_archive(archive: Path, problem: str) -> EnvdslError:
    return EnvdslError.of(
        "realise-python-archive",
        f"{archive.name} {problem}",
        hint="give a python-build-standalone archive of the kind install_only (cpython-3.12…-install_only.tar.gz)",
    )


def _uv() -> str:
    try:
        from uv import find_uv_bin

        return find_uv_bin()
    except (ImportError, FileNotFoundError) as error:
        raise NotUsableError("uv is not installed beside envdsl") from error


def _reason(stderr: str) -> str:
    """What failed and the cause that lies deepest, in one line, without credentials."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    causes = [number for number, line in enumerate(lines) if _CAUSE.match(line)]
    text = _CAUSE.sub("", lines[0]) if lines else "no message"
    if causes:
        text += f" ({_CAUSE.sub('', ' '.join(lines[causes[-1] :]))})"
    return _USERINFO.sub("", text)
