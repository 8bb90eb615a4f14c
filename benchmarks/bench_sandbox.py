"""Starting a sandbox: our script against bare bubblewrap, and our minimal root against the host's root.

The host-root sandbox is alike in everything but the mounts: the host's ``/`` read-only, a tmpfs home and
``/tmp``, four binds; and ``/dev`` and ``/proc`` of its own, without which nothing can open ``/dev/null`` and a PID
namespace sees the processes outside. The plan measured is what ``session create`` makes of a base layer: workspace,
cache, interpreter, layer, the directory with the pip shim.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.harness import Row, pairs, spawn
from benchmarks.scratch import Scratch
from envdsl.sandbox import bwrap, seccomp, skeleton
from envdsl.sandbox.argv import ARGS_FD, SECCOMP_FD, arguments, encode
from envdsl.sandbox.plan import HOME, Mount, SandboxPlan
from envdsl.sandbox.script import script

RUN_SCRIPT = "starting a sandbox through `sessions/ID/run`"
MINIMAL_ROOT = "a sandbox of our manifest, `/bin/true`"

_COMMAND = ("/bin/true",)
_RUNS = 200


@dataclass(frozen=True)
class _Setting:
    program: Path
    plan: SandboxPlan
    args: Path
    seccomp_filter: Path
    run: Path
    binds: tuple[Path, ...]


@contextmanager
def _setting() -> Iterator[_Setting]:
    with tempfile.TemporaryDirectory(prefix="envdsl-bench-") as name:
        here = Path(name)
        shared = here / "store" / "sessions" / ".sandbox"
        program = bwrap.find(shared)
        layer, prefix, shim = here / "store/layers/base-x", here / "store/python/cpython", here / "store/bin"
        workspace, cache = here / "workspace", here / "store/sessions/one/cache"
        for directory in (layer, prefix, shim, workspace, cache):
            directory.mkdir(parents=True)
        (layer / "layer.json").write_text("{}")
        mounts = [Mount.writable(str(cache), f"{HOME}/.cache"), Mount.writable(str(workspace), "/workspace")]
        mounts += [Mount.read_only(str(place), str(place)) for place in (prefix, layer, shim)]
        environment = {"PATH": "/usr/bin:/bin", "HOME": HOME} | {f"VARIABLE_{number}": "value" for number in range(14)}
        plan = SandboxPlan.of(
            skeleton.prepare(shared, mounts), mounts, environment=environment, lock_files=[f"{layer}/layer.json"]
        )
        args, run = here / "bwrap.args", here / "run"
        args.write_bytes(encode(arguments(plan)))
        filter_file = seccomp.install(shared)
        run.write_text(script(bwrap=program, args=args, seccomp_filter=filter_file, command=_COMMAND))
        run.chmod(0o755)
        yield _Setting(program, plan, args, filter_file, run, (layer, prefix, shim, workspace))


def _host_root(setting: _Setting) -> bytes:
    """Our arguments with the mounts of a launcher without envdsl: what differs is the root, and nothing else."""
    alike = replace(setting.plan, base=setting.plan.base[:1], mounts=(), lock_files=(), cwd="/")
    options = arguments(alike)
    options[options.index("--ro-bind") + 1] = "/"
    mounts = ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/home", "--tmpfs", "/tmp"]
    for number, path in enumerate(setting.binds):
        mounts += ["--bind", str(path), f"/tmp/bind-{number}"]
    return encode([*options, *mounts])


def run_script(scratch: Scratch) -> Row:
    """``sessions/ID/run`` is bubblewrap and a shell that execs it."""
    with _setting() as setting:
        bare, files = _bare(setting)
        return pairs(
            RUN_SCRIPT,
            "bare bwrap with the same arguments",
            1.2,
            lambda _: spawn([str(setting.run), *_COMMAND], scratch.environment),
            lambda _: spawn(bare, scratch.environment, files=files),
            runs=scratch.runs(_RUNS),
            warmups=10,
        )


def minimal_root(scratch: Scratch) -> Row:
    """All alike but the mounts; see docs/sandbox.md."""
    with _setting() as setting:
        bare, files = _bare(setting)
        host = setting.args.with_name("host.args")
        host.write_bytes(_host_root(setting))
        host_files = [(ARGS_FD, host), *files[1:]]
        return pairs(
            MINIMAL_ROOT,
            "a host-root sandbox",
            1.0,
            lambda _: spawn(bare, scratch.environment, files=files),
            lambda _: spawn(bare, scratch.environment, files=host_files),
            runs=scratch.runs(_RUNS),
            warmups=10,
            note="all alike but the mounts",
        )


def _bare(setting: _Setting) -> tuple[list[str], list[tuple[int, Path]]]:
    command = [str(setting.program), "--args", str(ARGS_FD), "--", *_COMMAND]
    return command, [(ARGS_FD, setting.args), (SECCOMP_FD, setting.seccomp_filter)]


LINES = {RUN_SCRIPT: run_script, MINIMAL_ROOT: minimal_root}
