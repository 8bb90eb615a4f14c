"""Wheels that come with a request: received, taken in as strictly as those of an index, and kept for the build.

They stand in ``uploads/<sha256>/<file name>`` of the store, beside an empty ``<session>.sent`` for each session that
sent them. What is checked here is all that a build checks, so that whoever sends a wheel hears at once what is wrong
with it: nothing of it is executed.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from envdsl.app.control.importnames import import_names
from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.digest import is_sha256
from envdsl.policy.proposal import Upload
from envdsl.state.machine import OPEN
from envdsl.state.records import Status

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane
    from envdsl.store.layout import Layout

LIMIT = 512 << 20  # bytes of one wheel, where nobody says another limit
MOST_UNPACKED = 4 << 30  # bytes of its files
MOST_UNUSED = 50  # wheels that one session sent and no request of it names
MOST_UNUSED_BYTES = 4 << 30  # of those
_RESERVE = 0.05  # of the disk, which no upload takes
_BLOCK = 1 << 20
_SENT = ".sent"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+!-]{0,250}\.whl")


class Stream(Protocol):
    """What bytes are read from: a file, a request's body."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class IntakeReport:
    """What was found in a wheel that passed.

    ``size`` in bytes of the wheel, ``unpacked`` of its files, of which there are ``files``. ``scripts`` are commands
    that it brings, ``imports`` its import names, ``requires`` its own requirements (PEP 508), ``licence`` what its
    metadata says; ``oddities`` are sentences about what is legal, yet worth a look.
    """

    filename: str
    name: str
    version: str
    sha256: str
    size: int
    files: int
    unpacked: int
    scripts: tuple[str, ...]
    imports: tuple[str, ...]
    requires: tuple[str, ...]
    requires_python: str | None
    licence: str | None
    summary: str
    oddities: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {key.replace("_", "-"): value for key, value in asdict(self).items()}


def place(layout: Layout, upload: Upload) -> Path:
    """Where an upload is kept."""
    return layout.root / "uploads" / upload.sha256 / upload.filename


def receive(
    plane: ControlPlane, filename: str, stream: Stream, *, limit: int = LIMIT, session: str | None = None
) -> tuple[Upload, IntakeReport]:
    """Take in the wheel that ``stream`` holds, called ``filename``, and keep it.

    ``limit`` in bytes. ``session`` is the one that it is for, if any. Raises EnvdslError: ``app-upload-name``;
    ``app-upload-size`` (nothing is read beyond the limit, nor unpacked beyond the room that there is);
    ``app-too-many-uploads`` where the session has sent a lot that no request of it names; and ``intake-…`` for whatever
    a build would refuse; nothing is kept then.
    """
    if _NAME.fullmatch(filename) is None:
        raise EnvdslError.of(
            "app-upload-name",
            f"{filename[:100]!r} is not the file name of a wheel",
            hint="send it under the name that it was built with: NAME-VERSION-PYTHON-ABI-PLATFORM.whl",
            exit_status=ExitStatus.USAGE,
        )
    store = plane.project.store
    if session is not None:
        _check_unused(plane, session)
    directory = store.temporary("upload")
    try:
        wheel = directory / filename
        upload = _write(wheel, filename, stream, limit)
        report = _take_in(directory, wheel, upload)
        target = place(store.layout, upload)
        target.parent.mkdir(parents=True, exist_ok=True)
        wheel.chmod(0o444)
        wheel.replace(target)
        if session is not None:
            (target.parent / f"{session}{_SENT}").touch()
    finally:
        from envdsl.store.tree import remove_tree

        remove_tree(directory)
    return upload, report


def known(plane: ControlPlane, uploads: Iterable[Upload]) -> None:
    """Raises EnvdslError ``app-upload-unknown`` where one of ``uploads``, as an asker names it, is not kept here."""
    for upload in uploads:
        spelled = _NAME.fullmatch(upload.filename) is not None and is_sha256(upload.sha256)
        path = place(plane.project.store.layout, upload) if spelled else None
        if path is None or not path.is_file() or path.stat().st_size != upload.size:
            raise EnvdslError.of(
                "app-upload-unknown",
                f"{upload.filename[:100]!r} with the sha256 {upload.sha256[:16]!r}… was not uploaded here",
                hint="upload the wheel first, then name it in the request",
                exit_status=ExitStatus.USAGE,
            )


def prune(plane: ControlPlane, *, keep: Iterable[str], older_than: float) -> list[Path]:
    """Remove uploads that came more than ``older_than`` seconds ago, but for those with a sha256 of ``keep``."""
    root = plane.project.store.layout.root / "uploads"
    kept, removed = set(keep), []
    for wheel in sorted(root.glob("*/*.whl")):
        if wheel.parent.name not in kept and wheel.stat().st_mtime < time.time() - older_than:
            wheel.unlink(missing_ok=True)
            removed.append(wheel)
            if not any(wheel.parent.glob("*.whl")):
                for mark in wheel.parent.glob(f"*{_SENT}"):
                    mark.unlink(missing_ok=True)
                wheel.parent.rmdir()
    return removed


def _check_unused(plane: ControlPlane, session: str) -> None:
    root = plane.project.store.layout.root / "uploads"
    with plane.state.reading() as transaction:
        statuses = [Status.READY, *OPEN]  # one that was cancelled uses nothing
        records = transaction.requests.list(plane.store_id, sessions=[session], statuses=statuses, limit=None)
    used = {upload["sha256"] for record in records for upload in record.uploads}
    sent = [mark.parent for mark in root.glob(f"*/{session}{_SENT}") if mark.parent.name not in used]
    sizes = [wheel.stat().st_size for directory in sent for wheel in directory.glob("*.whl")]
    if len(sizes) >= MOST_UNUSED or sum(sizes) >= MOST_UNUSED_BYTES:
        raise EnvdslError.of(
            "app-too-many-uploads",
            f"{session} has sent {len(sizes)} wheels ({sum(sizes)} bytes) that no request of it names",
            hint="ask for those first; what nobody asks for is removed after a while",
            exit_status=ExitStatus.REFUSED,
        )


def _write(wheel: Path, filename: str, stream: Stream, limit: int) -> Upload:
    digest, size = hashlib.sha256(), 0
    with wheel.open("wb") as file:
        while block := stream.read(_BLOCK):
            size += len(block)
            if size > limit:
                raise EnvdslError.of(
                    "app-upload-size",
                    f"{filename} has more than {limit} bytes",
                    hint="the limit of uploads is an administrator's to raise",
                    exit_status=ExitStatus.REFUSED,
                )
            digest.update(block)
            file.write(block)
    return Upload(filename, digest.hexdigest(), size)


def _take_in(directory: Path, wheel: Path, upload: Upload) -> IntakeReport:
    """All checks of a build, the content of each member against RECORD among them; what is unpacked is not kept."""
    from packaging.metadata import parse_email
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    from envdsl.graph.derivation import Unpack, WheelFile
    from envdsl.realise.intake import open_wheel
    from envdsl.realise.unpack import Unpacking

    try:
        name, version, _, _ = parse_wheel_filename(upload.filename)
    except InvalidWheelFilename as error:
        raise EnvdslError.of("app-upload-name", f"{upload.filename}: {error}", exit_status=ExitStatus.USAGE) from error
    unpack = Unpack(name, str(version), WheelFile(upload.filename, upload.sha256, upload.size))
    tree = directory / "unpacked"
    tree.mkdir()
    with open_wheel(wheel, unpack, hashed=True) as intake:
        # Nobody has approved it yet: an archive that claims a lot must not fill the disk of all sessions.
        size, disk = sum(member.size for member in intake.members), shutil.disk_usage(directory)
        if size > min(MOST_UNPACKED, disk.free - _RESERVE * disk.total):
            raise EnvdslError.of(
                "app-upload-size",
                f"{upload.filename} has {size} bytes of files, more than there is room for",
                hint=f"the limit is {MOST_UNPACKED} bytes, and a twentieth of the disk stays free",
                exit_status=ExitStatus.REFUSED,
            )
        unpacking = Unpacking(intake, tree)
        for batch in unpacking.batches:
            unpacking.write(batch)
        listing = unpacking.finish()
        oddities, dist_info = intake.oddities, intake.dist_info
    raw, _ = parse_email((tree / "site-packages" / dist_info / "METADATA").read_bytes())
    files = [entry for entry in listing if entry.type != "directory"]
    modules = (entry.path.partition("/")[2] for entry in files if entry.path.startswith("site-packages/"))
    return IntakeReport(
        filename=upload.filename,
        name=name,
        version=str(version),
        sha256=upload.sha256,
        size=upload.size,
        files=len(files),
        unpacked=listing.size,
        scripts=tuple(sorted(entry.path[4:] for entry in files if entry.path.startswith("bin/"))),
        imports=import_names(modules, name=name),
        requires=tuple(raw.get("requires_dist", ())),
        requires_python=raw.get("requires_python"),
        licence=_licence(raw),
        summary=raw.get("summary", ""),
        oddities=oddities,
    )


def _licence(raw: Mapping[str, Any]) -> str | None:
    """The SPDX expression, else the first line of the old ``License`` field."""
    text = str(raw.get("license_expression") or raw.get("license") or "").strip()
    return text.splitlines()[0][:80] if text else None
