"""Small real wheels for tests, built by the tests themselves."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path


def make_wheel(
    directory: Path,
    name: str,
    version: str,
    *,
    files: Mapping[str, str | bytes] | None = None,
    requires: Sequence[str] = (),
    tag: str = "py3-none-any",
    entry_points: Mapping[str, str] | None = None,
    data: Mapping[str, str | bytes] | None = None,
    executable: Sequence[str] = (),
    extra_metadata: str = "",
    compression: int = zipfile.ZIP_DEFLATED,
) -> Path:
    """Write ``<name>-<version>-<tag>.whl`` and return its path; the same arguments give the same bytes.

    ``files`` are members below site-packages (by default one module ``<name>.py`` with ``__version__``),
    ``data`` members below ``<name>-<version>.data/`` (``scripts/tool``), ``entry_points`` console scripts.
    """
    distribution = name.replace("-", "_")
    if files is None:
        files = {f"{distribution}.py": f'__version__ = "{version}"\n'}
    info = f"{distribution}-{version}.dist-info"
    members: dict[str, bytes] = {path: _bytes(content) for path, content in files.items()}
    for path, content in (data or {}).items():
        members[f"{distribution}-{version}.data/{path}"] = _bytes(content)
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {requirement}\n" for requirement in requires) + extra_metadata
    members[f"{info}/METADATA"] = metadata.encode()
    pure = "true" if tag.endswith("-any") else "false"
    members[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: envdsl-tests\nRoot-Is-Purelib: {pure}\nTag: {tag}\n".encode()
    )
    if entry_points:
        lines = "".join(f"{script} = {target}\n" for script, target in entry_points.items())
        members[f"{info}/entry_points.txt"] = f"[console_scripts]\n{lines}".encode()
    record = "".join(f"{path},{_record_hash(content)},{len(content)}\n" for path, content in members.items())
    members[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()

    directory.mkdir(parents=True, exist_ok=True)
    wheel = directory / f"{distribution}-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, content in members.items():
            member = zipfile.ZipInfo(path, date_time=(2020, 1, 1, 0, 0, 0))
            member.external_attr = (0o100755 if path in executable else 0o100644) << 16
            archive.writestr(member, content, compress_type=compression)
    return wheel


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


def _record_hash(content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"sha256={digest}"
