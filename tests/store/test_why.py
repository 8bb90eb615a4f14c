from __future__ import annotations

from pathlib import Path

import pytest

from envdsl.errors import EnvdslError
from envdsl.store import roots
from envdsl.store.roots import Root
from envdsl.store.store import Store
from envdsl.store.why import Chain, why_alive
from tests.store.conftest import key_of, put


@pytest.fixture
def layered(store: Store) -> Store:
    put(store, "wheel")
    put(store, "numpy", references=("wheel",))
    put(store, "base", kind="layer", references=("numpy",))
    put(store, "x", kind="layer", references=("base", "numpy"))
    put(store, "cpython", kind="python")
    return store


def test_each_root_is_named_with_its_shortest_chain(layered: Store) -> None:
    """Issue 3.6: why-alive PATH."""
    layout = layered.layout
    layout.current.symlink_to("layers/base")
    roots.write(layout, "project-1", ("project", "/"), lambda: {"viz": key_of("x")}, complete=True)
    (layout.gcroots / "by-hand").write_text("layers/base\n")
    chains = why_alive(layered, "unpacked/wheel", [Root("session s", key_of("x"))]).chains
    assert chains == (
        Chain("current", ("layers/base", "unpacked/numpy", "unpacked/wheel")),
        Chain("gcroots/by-hand", ("layers/base", "unpacked/numpy", "unpacked/wheel")),
        Chain("session s", ("layers/x", "unpacked/numpy", "unpacked/wheel")),
        Chain("viz of project /", ("layers/x", "unpacked/numpy", "unpacked/wheel")),
    )


def test_garbage_has_no_reason(layered: Store) -> None:
    assert why_alive(layered, "layers/x", []).chains == ()


def test_leases_and_interpreters_are_named(layered: Store) -> None:
    assert why_alive(layered, "python/cpython", []).chains == (Chain("an interpreter", ("python/cpython",)),)
    with layered.lease():
        layered.lookup(key_of("base"))
        (chain,) = why_alive(layered, "unpacked/numpy", []).chains
    assert chain == Chain("a running build or command", ("layers/base", "unpacked/numpy"))


@pytest.mark.parametrize("spelled", ["key", "path", "member", "absolute", "link"])
def test_a_path_is_named_in_any_way(layered: Store, tmp_path: Path, spelled: str) -> None:
    place = layered.layout.absolute("layers/base")
    link = tmp_path / "link"
    link.symlink_to(place)
    wanted = {
        "key": key_of("base"),
        "path": "layers/base",
        "member": "layers/base/layer.json",
        "absolute": f"{place}/module.py",
        "link": str(link),
    }[spelled]
    assert why_alive(layered, wanted, []).path == "layers/base"


def test_what_is_no_valid_path_is_refused(layered: Store, tmp_path: Path) -> None:
    (layered.layout.unpacked / "rubbish").mkdir()
    for wanted, said in [("unpacked/rubbish", "is rubbish"), ("layers/none", "no valid path"), (str(tmp_path), "no")]:
        with pytest.raises(EnvdslError, match=said) as caught:
            why_alive(layered, wanted, [])
        assert caught.value.code == "store-unknown-path"
