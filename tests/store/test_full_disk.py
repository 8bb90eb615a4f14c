"""A disk that is really full: a small file system in memory, in a namespace of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.conftest import PROJECT

UNSHARE = ["unshare", "--user", "--map-root-user", "--mount"]

SCRIPT = """
import os, sys
from pathlib import Path
from envdsl.errors import EnvdslError
from envdsl.store.gc import collect
from envdsl.store.store import Store
from envdsl.store.verify import verify
from tests.store.conftest import key_of, put

root = Path(sys.argv[1])
with Store.open(root / "store") as store:
    put(store, "kept")
    for number in range(20):
        put(store, f"garbage{number}", data="x" * 200_000)
    store.flush()
for file in root.glob("store/envdsl.db-*"):
    file.unlink()  # a log that exists could be written to again
with (root / "fill").open("wb", buffering=0) as fill:
    try:
        while True:
            fill.write(bytes(4096))
    except OSError:
        pass
if sys.argv[2] == "spent":
    (root / "store" / "reserved").write_bytes(b"")
    with (root / "more").open("wb", buffering=0) as fill:
        try:
            while True:
                fill.write(bytes(4096))
        except OSError:
            pass
with Store.open(root / "store") as store:
    try:
        put(store, "more", data="x" * 100_000)
    except (EnvdslError, OSError) as error:
        print(getattr(error, "code", error.__class__.__name__))
with Store.open(root / "store") as store:
    try:
        collected = collect(store, [key_of("kept")])
    except EnvdslError as error:
        print(error.code)
        sys.exit()
    reserved = (root / "store" / "reserved").stat().st_size
    print(len(collected.paths), collected.freed > 4_000_000, verify(store).findings, reserved)
    put(store, "more", data="x" * 100_000)
"""


@pytest.fixture
def small(tmp_path: Path) -> list[str]:
    """What runs a command with 16 MiB at ``tmp_path``."""
    if shutil.which("unshare") is None or subprocess.run([*UNSHARE, "true"], capture_output=True).returncode != 0:
        pytest.skip("no namespaces of one's own here")
    mount = f'mount -t tmpfs -o size=16m envdsl {tmp_path} && exec "$@"'
    return [*UNSHARE, "sh", "-c", mount, "sh"]


@pytest.mark.parametrize(
    ("reserve", "said"), [("there", ["20 True () 4194304"]), ("spent", ["store-full"])], ids=["there", "spent"]
)
def test_gc_frees_a_disk_that_is_full_to_the_last_byte(
    small: list[str], tmp_path: Path, reserve: str, said: list[str]
) -> None:
    """Deleting a row writes first; without the space that is set aside, gc could not begin."""
    command = [*small, sys.executable, "-c", SCRIPT, str(tmp_path), reserve]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
    first, *rest = done.stdout.splitlines()
    assert first in ("store-full", "OSError"), done.stderr
    assert rest == said, done.stderr
