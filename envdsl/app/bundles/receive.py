"""``envdsl bundle import``: into the store what the bundle's own locks call for, and nothing before all is checked.

The order: the list and its names; the project part, into a temporary directory; what its layer files and locks call
for, against the list; the store part, into temporary directories; the end of the archive. Only then are store
paths registered, and the project's files that are missing written.

What the checks can show is that a bundle is whole, that its wheels are those that its locks pin, and that all else
stands under the key that follows from them. That a *realised* tree or an interpreter is what building it would give,
no hash can show: for that one has to trust the sender (``--sha256``), or leave it out (``--no-layers``).
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envdsl import config as configuration
from envdsl.app import collecting, fetching
from envdsl.app.bundles import checks, signing
from envdsl.app.bundles.manifest import NAME, Bundle, BundledPath, Item
from envdsl.app.files import write_file
from envdsl.app.project import Project
from envdsl.errors import Diagnostic, EnvdslError, ExitStatus
from envdsl.model.digest import store_hash
from envdsl.store.archive import Member, Reader, refusal
from envdsl.store.failures import failures
from envdsl.store.tree import remove_tree

if TYPE_CHECKING:
    from envdsl.graph.derivation import Derivation
    from envdsl.realise.writer import TreeWriter
    from envdsl.reporter import Task

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Options:
    """What of a bundle to take. ``sha256``: what the whole file must have, known from elsewhere; ``trusted``: files of
    public keys, one of which must have signed it."""

    project: bool = True
    layers: bool = True
    interpreter: bool = True
    sha256: str | None = None
    trusted: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Received:
    """What ``bundle import`` prints: store paths that are new, those that were there, those that were left out with
    the reason, and the project's files that were written."""

    layers: tuple[str, ...]
    imported: tuple[str, ...]
    present: tuple[str, ...]
    left_out: Mapping[str, str]
    written: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "layers": list(self.layers),
            "imported": list(self.imported),
            "present": list(self.present),
            "left-out": dict(self.left_out),
            "written": list(self.written),
        }


def receive(project: Project, file: Path, options: Options) -> Received:
    """Import the bundle ``file`` into the store of ``project``, whose root may be a directory without a project yet.

    Raises EnvdslError ``archive-…`` for a bundle that is damaged or hostile, ``app-bundle-…`` for one that nobody who
    is trusted signed or that does not go with this project, and what evaluating its layer files raises; the store and
    the project are as before then.
    """
    with ExitStack() as stack:
        stream = stack.enter_context(file.open("rb"))
        if options.sha256 is not None:
            _check_sha256(stream, file.name, options.sha256)
        stack.enter_context(project.store.lease())
        staging = project.store.temporary("bundle")
        stack.callback(remove_tree, staging)
        return _Import(project, stream, file.name, options, staging).run()


@dataclass
class _Import:
    project: Project
    stream: BufferedReader
    label: str
    options: Options
    staging: Path
    places: dict[str, Path] = field(default_factory=dict)  # of each file of a store path, by member

    def run(self) -> Received:
        with failures(f"import {self.label}", self.project.store.layout.root):
            return self._run(Reader(self.stream, self.label))

    def _run(self, reader: Reader) -> Received:
        manifest = reader.read_list(NAME)
        bundle = Bundle.parse(manifest, self.label)
        signature = reader.read_list(signing.NAME) if bundle.signer is not None else b""
        if bundle.signer is not None and len(signature) != signing.SIZE:
            raise refusal(self.label, "list", "is no signature", signing.NAME)
        if self.options.trusted:
            signing.check(self.label, bundle.signer, signature, manifest, self.options.trusted)
        members = list(bundle.members())
        reader.expect(members)
        self._check_space(members)
        with self.project.reporter.task("Importing", sum(member.size for member in members), "B") as task:
            self._stage_project(bundle, reader, task)
            staged = Project(
                configuration.load(self.staging / "project", store=self.project.config.store), self.project.reporter
            )
            expected = checks.expected_outputs(bundle, staged, self.label)
            missing = checks.missing_files(bundle, self.project.config.root) if self.options.project else ()
            left_out = self._left_out(bundle)
            ready: list[tuple[BundledPath, Path | None]] = []
            for path in bundle.paths:
                task.describe(path.path)
                ready.append((path, self._take(path, reader, task, skip=path.path in left_out)))
            reader.finish()
        imported, present = self._register(ready, expected, left_out)
        for name in missing:
            self._put(name)
        if configuration.FILE_NAME in missing:
            self._say_where_the_store_is(staged)
        self._keep(bundle)
        self._record(expected, imported)
        return Received(bundle.layers, tuple(imported), tuple(present), left_out, tuple(missing))

    def _check_space(self, members: Iterable[Member]) -> None:
        needed = sum(member.size for member in members)
        free = shutil.disk_usage(self.project.store.layout.root).free
        if needed > free:
            raise EnvdslError.of(
                "store-full",
                f"{self.label} expands to {needed} bytes, and {free} are free in {self.project.store.layout.root}",
                hint="free space on that file system, or name another store: --store, ENVDSL_STORE",
                exit_status=ExitStatus.ENVIRONMENT,
            )

    def _stage_project(self, bundle: Bundle, reader: Reader, task: Task) -> None:
        from envdsl.realise.writer import TreeWriter

        root = self.staging / "project"
        root.mkdir()
        writer = TreeWriter(root)
        for item, member in zip(bundle.project, bundle.project_members, strict=True):
            _write(writer, item, _counted(reader.read(member), task))

    def _say_where_the_store_is(self, staged: Project) -> None:
        """The settings of a new project came with the bundle. They may name a store; the bundle is in ours."""
        named = configuration.load(staged.config.root, environment={}).store
        if named != staged.config.root / "store":
            self.project.reporter.warn(
                Diagnostic(
                    "app-bundle-store",
                    f"{configuration.FILE_NAME} of the bundle names a store; the bundle was imported into "
                    f"{self.project.config.store}",
                    hint=f"set ENVDSL_STORE={self.project.config.store} for builds, or edit `store` in the file",
                    severity="warning",
                )
            )

    def _left_out(self, bundle: Bundle) -> dict[str, str]:
        """The paths not to be taken, with the reasons."""
        here, there = self.project.platform, bundle.platform
        foreign = None
        if (here.machine, here.libc) != (there.machine, there.libc):
            foreign = f"made for {there}, and this machine is {here}"
        reasons: dict[str, str] = {}
        for path in bundle.paths:
            reason = None
            if path.kind == "python":
                reason = foreign if self.options.interpreter else "--no-interpreter"
                if reason is None and path.facts["kind"] == "fallback" and here < there:
                    reason = f"a copy of the Python of a newer system ({there}; this one is {here})"
            elif path.kind != "wheel":
                reason = foreign if self.options.layers else "--no-layers"
            if reason is not None:
                reasons[path.path] = reason
        return reasons

    def _take(self, path: BundledPath, reader: Reader, task: Task, *, skip: bool) -> Path | None:
        """Read the members of ``path``; returns where its tree stands now, None where it is not needed."""
        from envdsl.realise.writer import TreeWriter

        present = self.project.store.lookup(path.key)
        if present is not None and not skip and present.tree_hash != path.tree_hash:
            raise EnvdslError.of(
                "app-bundle-conflict",
                f"{path.path} is in the store with another content than in the bundle",
                hint="`envdsl verify` says whether the store's is damaged; else do not trust the bundle "
                "(--no-layers and --no-interpreter leave such parts out)",
            )
        if skip or present is not None:
            for member in path.members:
                for block in reader.read(member):
                    task.advance(len(block))
            if present is not None:
                self._locate(path, self.project.store.layout.absolute(present.path))
            return None
        tree = self.project.store.temporary(f"bundle-{path.kind}")
        writer = TreeWriter(tree)
        for item, member in zip(path.items, path.members, strict=True):
            blocks = _counted(reader.read(member), task)
            if item.type == "link":
                _exhaust(blocks)
                writer.directory(item.path.rpartition("/")[0])
                _link(self.places[item.target], tree / item.path)
            else:
                sha256 = hashlib.sha256()
                _write(writer, item, _hashed(blocks, sha256) if path.kind == "wheel" else blocks)
                if path.kind == "wheel" and sha256.hexdigest() != path.path.split("/")[1]:
                    raise refusal(self.label, "sha256", "is not the wheel that its lock pins", member.name)
        writer.seal()
        place = tree / path.items[0].path if path.kind == "wheel" else tree
        self._locate(path, place)
        return place

    def _locate(self, path: BundledPath, place: Path) -> None:
        for item, member in zip(path.items, path.members, strict=True):
            if item.type == "file":
                self.places[member.name] = place if path.kind == "wheel" else place / item.path

    def _register(
        self,
        ready: Iterable[tuple[BundledPath, Path | None]],
        expected: Mapping[str, Derivation],
        left_out: Mapping[str, str],
    ) -> tuple[list[str], list[str]]:
        from envdsl.realise import python_registry

        store = self.project.store
        imported, present = [], []
        for path, place in ready:
            if path.path in left_out:
                continue
            if place is None:
                present.append(path.path)
                continue
            if path.kind == "python":
                python_registry.note(store, path.path.partition("/")[2], checks.interpreter_source(path))
            references = [] if path.kind == "python" else [item.key for item in expected[path.path].dependencies()]
            with store.building(path.key):
                store.register(
                    place,
                    path.path,
                    key=path.key,
                    kind=path.kind,
                    listing=path.listing,
                    references=references,
                    sealed=True,
                )
            imported.append(path.path)
        store.flush()
        if interpreters := python_registry.installed(store):
            python_registry.write_source(store)
            newest = python_registry.find(store, max(item.python for item in interpreters))
            if newest is not None and python_registry.current(store) is None:
                python_registry.use(store, newest)
        return imported, present

    def _put(self, path: str) -> None:
        """Write a file of the project, with the modes of a file that somebody works on."""
        staged, place = self.staging / "project" / path, self.project.config.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if staged.is_symlink():
            place.symlink_to(staged.readlink())
            return
        new = place.with_name(f".{place.name}.{os.getpid()}")
        shutil.copyfile(staged, new)
        new.chmod(0o755 if staged.stat().st_mode & stat.S_IXUSR else 0o644)
        new.replace(place)

    def _keep(self, bundle: Bundle) -> None:
        """Keep what came from ``gc`` until it is built from, or another lock takes the place of these."""
        config = self.project.config
        home = Project(configuration.load(config.root, store=config.store), self.project.reporter)
        try:
            wheels = [path.key for path in bundle.paths if path.kind == "wheel"]
            layers = [path.key for path in bundle.paths if path.kind == "layer"]
            fetching.keep_wheels(home, wheels, prune=self.options.project)
            collecting.register_roots(home, layers, complete=False)
        finally:
            home.close()

    def _record(self, expected: Mapping[str, Derivation], imported: Iterable[str]) -> None:
        """How each imported path came to be, as a build writes it down."""
        layout = self.project.store.layout
        for path in imported:
            derivation = expected.get(path)
            if derivation is not None:
                write_file(layout.drv / f"{store_hash(derivation.key)}.json", derivation.canonical())


def _check_sha256(stream: BufferedReader, label: str, expected: str) -> None:
    actual = hashlib.file_digest(stream, "sha256").hexdigest()
    if actual != expected.lower():
        raise EnvdslError.of(
            "archive-sha256",
            f"{label} is not the bundle that was asked for: its sha256 is {actual}, not {expected}",
            hint="get it again, or ask who made it for the sha256 that `bundle create` printed",
        )


def _write(writer: TreeWriter, item: Item, blocks: Iterator[bytes]) -> None:
    if item.type == "file":
        writer.stream(item.path, blocks, executable=item.executable)
        return
    _exhaust(blocks)
    if item.type == "symlink":
        writer.symlink(item.path, item.target)
    else:
        writer.directory(item.path)


def _link(source: Path, target: Path) -> None:
    """A hard link, or a copy where the file system allows no more of them, or none at all."""
    try:
        target.hardlink_to(source)
    except OSError as error:
        if error.errno not in (errno.EMLINK, errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP):
            raise
        shutil.copy2(source, target)


def _counted(blocks: Iterator[bytes], task: Task) -> Iterator[bytes]:
    for block in blocks:
        task.advance(len(block))
        yield block


def _hashed(blocks: Iterator[bytes], hasher: Any) -> Iterator[bytes]:
    for block in blocks:
        hasher.update(block)
        yield block


def _exhaust(blocks: Iterator[bytes]) -> None:
    for _ in blocks:
        pass
