"""Bytecode: every source file of a distribution compiled once, by the interpreter that will import it.

The files are unchecked-hash ``.pyc`` (PEP 552): the interpreter reads them without looking at the source, whose
time means nothing in a store. They are reproducible, because the workers run with a fixed hash seed and nothing
but themselves imported, and the name in each code object is the path inside the layer
(``site-packages/numpy/__init__.py``); the importer replaces it by the true place when it loads the file, so
tracebacks show their lines.

Workers are processes of the layer's interpreter (`bytecode_worker`) that live as long as the build. They only
read: what they compile comes back through a pipe, and is written, hashed and sealed here.
"""

from __future__ import annotations

import os
import resource
import select
import subprocess
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.graph.derivation import MAGIC_NUMBERS
from envdsl.model.names import PythonVersion
from envdsl.realise.crew import Cancelled
from envdsl.realise.writer import TreeWriter
from envdsl.store.treehash import Entry, Listing

WORKER = Path(__file__).with_name("bytecode_worker.py")
TIMEOUT = 120.0  # seconds for one file; the largest there are take two
MEMORY = 8 << 30
_CACHE_DIRECTORY = "__pycache__"
_PIPE_READ = 1 << 18
_BATCH_BYTES = 96 << 10
_BATCH_FILES = 24  # whose requests fit into a pipe, so that sending them never blocks


@dataclass(frozen=True)
class Compiled:
    """The bytecode of one distribution: what was written, and which sources could not be compiled."""

    listing: Listing
    skipped: tuple[str, ...]
    crashed: tuple[str, ...]


class Compiler:
    """Compiles for one feature release with ``processes`` workers. Use as a context manager, from any thread.

    ``executable`` is an interpreter of that release; it is started by the first file, not before.
    """

    def __init__(self, executable: Path, python: PythonVersion, processes: int) -> None:
        self._executable = executable
        self._python = python
        self._pool = ThreadPoolExecutor(processes, thread_name_prefix="bytecode")
        self._workers: list[_Worker] = []
        self._closing = False
        self._lock = threading.Lock()
        self._local = threading.local()

    def __enter__(self) -> Compiler:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the workers, also in the middle of their work."""
        self._closing = True
        with self._lock:
            for worker in self._workers:
                worker.kill()
        self._pool.shutdown(wait=True)
        for worker in self._workers:
            worker.close()

    def compile(self, unpacked: Path, sources: Iterable[Entry], root: Path) -> Compiled:
        """Compile the Python files of ``sources``, a listing of ``unpacked``, into the empty directory ``root``.

        Files that are not valid source of this release (templates, Python 2) are skipped, as pip does it.
        Raises EnvdslError ``bytecode-interpreter`` where the interpreter does not run or is of another release,
        :class:`~envdsl.realise.crew.Cancelled` where :meth:`close` was called meanwhile.
        """
        writer = TreeWriter(root)
        skipped: list[str] = []
        crashed: list[str] = []

        def work(batch: Sequence[Entry]) -> None:
            if self._closing:  # what waits in the pool ends here: futures that a pool drops are never done
                raise Cancelled
            for entry, pyc in self._compile(unpacked, batch):
                if pyc:
                    writer.write(self._target(entry.path), pyc)
                else:
                    (skipped if pyc is not None else crashed).append(entry.path)

        futures: list[Future[None]] = []
        try:
            for batch in _batches(filter(_is_source, sources)):
                futures.append(self._pool.submit(work, batch))  # noqa: PERF401 (those before a refusal count)
        except RuntimeError:  # the pool takes no more
            if not self._closing:
                raise
        wait(futures, return_when="FIRST_EXCEPTION")
        for future in futures:
            future.cancel()
        wait(futures)  # before anybody removes the directory that they write to
        for future in futures:
            if not future.cancelled():
                future.result()
        if self._closing:
            raise Cancelled
        writer.seal()
        return Compiled(Listing(writer.entries), tuple(sorted(skipped)), tuple(sorted(crashed)))

    def _target(self, source: str) -> str:
        """``a/b.py`` -> ``a/__pycache__/b.cpython-312.pyc`` (PEP 3147)."""
        directory, _, name = source.rpartition("/")
        return f"{directory}/{_CACHE_DIRECTORY}/{name[:-3]}.{self._python.cache_tag}.pyc"

    def _compile(self, unpacked: Path, batch: Sequence[Entry]) -> Iterator[tuple[Entry, bytes | None]]:
        """The bytecode of each file: empty where it does not compile, None where it brings the compiler down."""
        rest = list(batch)
        while rest:
            try:
                worker = self._worker()
                worker.request([(f"{unpacked}/{entry.path}", entry.path) for entry in rest])
                while rest:
                    pyc = worker.answer()
                    yield rest.pop(0), pyc
            except (_WorkerDiedError, BrokenPipeError):
                self._discard()
                if self._closing:
                    raise Cancelled from None
                entry = rest.pop(0)
                yield entry, self._alone(unpacked, entry)

    def _alone(self, unpacked: Path, entry: Entry) -> bytes | None:
        """A second try for the file at which a worker died, so that only a file that always kills is given up."""
        try:
            worker = self._worker()
            worker.request([(f"{unpacked}/{entry.path}", entry.path)])
            return worker.answer()
        except (_WorkerDiedError, BrokenPipeError):
            self._discard()
            return None

    def _worker(self) -> _Worker:
        worker: _Worker | None = getattr(self._local, "worker", None)
        if worker is None:
            worker = _Worker(self._executable, self._python)
            with self._lock:
                self._workers.append(worker)
            self._local.worker = worker
        return worker

    def _discard(self) -> None:
        worker: _Worker | None = self._local.worker
        self._local.worker = None
        if worker is not None:
            with self._lock:
                self._workers.remove(worker)
            worker.close()


class _WorkerDiedError(Exception):
    """The worker ended, or did not answer in time."""


class _Worker:
    """One process of the interpreter."""

    def __init__(self, executable: Path, python: PythonVersion) -> None:
        try:
            self._process = subprocess.Popen(
                # -s -S -B and the safe path: nothing of the user's, no site, nothing written. Not -I, under which
                # the interpreter would not read its hash seed.
                [executable, "-s", "-S", "-B", "-W", "ignore", WORKER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PYTHONHASHSEED": "0", "PYTHONSAFEPATH": "1", "PYTHONUTF8": "1"},
                start_new_session=True,  # an interrupt is for us; the worker ends with its pipe
            )
        except OSError as error:
            raise _unusable(executable, python, str(error)) from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout
        self._buffer = bytearray()
        self._poll = select.poll()
        self._poll.register(self._answers, select.POLLIN)
        with suppress(OSError, ValueError):
            resource.prlimit(self._process.pid, resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.prlimit(self._process.pid, resource.RLIMIT_CORE, (0, 0))
        try:
            magic = int.from_bytes(self._read(4)[:2], "little")
        except _WorkerDiedError:
            self.close()
            raise _unusable(executable, python, "it does not start") from None
        if magic != MAGIC_NUMBERS[python.minor]:
            self.close()
            raise _unusable(executable, python, f"its bytecode has the magic number {magic}")

    def request(self, files: Iterable[tuple[str, str]]) -> None:
        for text in (text for file in files for text in file):
            encoded = os.fsencode(text)
            self._requests.write(len(encoded).to_bytes(4, "little") + encoded)
        self._requests.flush()

    def answer(self) -> bytes:
        length = int.from_bytes(self._read(4), "little")
        return self._read(length) if length else b""

    def _read(self, length: int) -> bytes:
        """The next ``length`` bytes of the answers."""
        buffer = self._buffer
        while len(buffer) < length:
            if not self._poll.poll(TIMEOUT * 1000):
                raise _WorkerDiedError
            data = os.read(self._answers.fileno(), _PIPE_READ)
            if not data:
                raise _WorkerDiedError
            buffer += data
        result = bytes(buffer[:length])
        del buffer[:length]
        return result

    def kill(self) -> None:
        """Whoever waits for its answers finds that it died."""
        self._process.kill()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        with suppress(OSError):
            self._requests.close()
        self._answers.close()


def _is_source(entry: Entry) -> bool:
    return entry.type == "file" and entry.path.endswith(".py") and entry.path.startswith("site-packages/")


def _batches(sources: Iterable[Entry]) -> Iterator[list[Entry]]:
    """The largest files first, alone; the many small ones together."""
    batch: list[Entry] = []
    size = 0
    for entry in sorted(sources, key=lambda entry: (-entry.size, entry.path)):
        batch.append(entry)
        size += entry.size
        if size >= _BATCH_BYTES or len(batch) >= _BATCH_FILES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _unusable(executable: Path, python: PythonVersion, why: str) -> EnvdslError:
    return EnvdslError.of(
        "bytecode-interpreter",
        f"{executable} cannot compile for Python {python}: {why}",
        hint=f"`envdsl python install {python}` makes a working interpreter",
        exit_status=ExitStatus.ENVIRONMENT,
    )
