"""From real wheels through the room ``realise`` to code in a sandbox."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from envdsl.graph.derivation import SourceTree
from envdsl.model.names import LayerKind
from envdsl.realise.python import Interpreter
from envdsl.realise.scheduler import realise
from envdsl.reporter import Reporter
from envdsl.session import bindings
from envdsl.session.compose import compose
from envdsl.session.layers import bind_layer
from envdsl.store.store import Store
from envdsl.store.treehash import scan
from tests.realise.building import Wheels, base_of, graph_of
from tests.session.layers import HERE
from tests.wheels import make_wheel

SCRIPT = """
import importlib.metadata, json, sys
import base_module, x_module, by_pth, house_style
import space.one, space.two
print(json.dumps({
    "versions": {name: importlib.metadata.version(name) for name in ("base-module", "x-module")},
    "cached": base_module.__cached__,
    "source": house_style.__file__,
    "pth": sys.by_pth_ran,
}))
"""


def test_wheels_become_layers_become_a_sandbox_that_imports_them(
    store: Store, interpreter: Interpreter, tmp_path: Path
) -> None:
    """Issue 2.9, 2.13: bytecode, ``.pth`` files, namespace packages, scripts found by PATH, sources."""
    base_wheel = make_wheel(
        tmp_path,
        "base-module",
        "1.0",
        files={
            "base_module.py": "def main():\n    print('from the base')\n",
            "space/one.py": "",
            "extra/by_pth.py": "",
            "base.pth": "extra\nimport sys; sys.by_pth_ran = True\n",
        },
        entry_points={"base-tool": "base_module:main"},
    )
    x_wheel = make_wheel(tmp_path, "x-module", "2.0", files={"x_module.py": "", "space/two.py": ""})
    (tmp_path / "style").mkdir()
    (tmp_path / "style" / "house_style.py").write_text("")
    source = SourceTree(scan(tmp_path / "style").tree_hash(), "style")
    base = base_of([base_wheel], HERE)
    x = base_of([x_wheel], HERE, kind=LayerKind.X, base=base, sources=[source])
    realise(
        graph_of(base=base, x=x),
        ["x"],
        store,
        fetch=Wheels(store, base_wheel, x_wheel),
        interpreters=lambda python: interpreter.executable,
        project=tmp_path,
        reporter=Reporter(),
        jobs=1,
    )
    layers = [bind_layer(store, name, layer.id) for name, layer in (("base", base), ("x", x))]
    session = bindings.create(store, compose("realised", layers, interpreter, store.layout))

    def run(*command: str) -> str:
        return subprocess.run([session.run, *command], capture_output=True, text=True, check=True).stdout

    found = json.loads(run("python3", "-c", SCRIPT))
    assert found["versions"] == {"base-module": "1.0", "x-module": "2.0"}
    assert found["cached"].startswith(f"{layers[0].path}/site-packages/__pycache__/")
    assert Path(found["cached"]).exists()
    assert found["source"] == f"{layers[1].sources[0].path}/house_style.py"
    assert found["pth"] is True
    assert run("base-tool") == "from the base\n"
    assert run("python3", "-I", "-c", "import x_module, by_pth; print(1)") == "1\n"
    packages = [(item.name, item.version) for layer in session.manifest.layers for item in layer.packages]
    assert packages == [("base-module", "1.0"), ("x-module", "2.0")]
