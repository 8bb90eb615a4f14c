"""What threads need is imported before they start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.wheels import make_wheel

PROJECT = Path(__file__).parents[2]

SCRIPT = """
import sys
from pathlib import Path

from envdsl.realise.scheduler import realise
from envdsl.realise.steps import Steps
from envdsl.reporter import Reporter
from envdsl.store.store import Store
from tests.realise.building import Wheels, base_of, graph_of

assert "installer" not in sys.modules
wheels = [Path(place) for place in sys.argv[2:]]
unpack = Steps.unpack

def watched(self, *arguments):
    assert "installer.records" in sys.modules
    unpack(self, *arguments)

Steps.unpack = watched
with Store.open(Path(sys.argv[1])) as store:
    realise(graph_of(a=base_of(wheels)), ["a"], store, fetch=Wheels(store, *wheels), interpreters=lambda _: Path(),
            project=Path(), reporter=Reporter(), jobs=2)
print("built")
"""


def test_threads_that_unpack_find_installer_imported(tmp_path: Path) -> None:
    """Two that imported different parts of it first got "partially initialized module" now and then."""
    wheels = [make_wheel(tmp_path, name, "1") for name in ("one", "two")]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path / "store", *wheels], cwd=PROJECT, capture_output=True, text=True
    )
    assert done.stdout == "built\n", done.stderr
