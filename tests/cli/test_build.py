"""``envdsl build`` and ``envdsl ensure``."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import LAYERS, PYTHON, Cli
from tests.wheels import make_wheel


def test_build_prints_name_id_and_path_of_each_layer(built: Cli) -> None:
    """Issue 2.9: prints each layer's id and path."""
    done = built("build")
    assert [row[0] for row in done.rows] == ["alone", "core", "one", "two"]
    for name, identifier, path in done.rows:
        assert Path(path).name == identifier, name
        assert (Path(path) / "layer.json").is_file()


def test_a_second_build_does_nothing_and_says_the_same(built: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from envdsl.app import building

    first = built("build", "--json").json
    monkeypatch.setattr(building, "build", lambda *_, **__: pytest.fail("the shortcut was not taken"))
    assert built("build", "--json").json == {**first, "built": 0}


def test_ids_do_not_depend_on_names_order_place_or_store(built: Cli, project: Path, tmp_path: Path) -> None:
    """Issue 2.8: two checkouts, layers renamed, declarations reordered: same ids and same tree hashes."""
    first = {item["name"]: (item["id"], item["tree-hash"]) for item in built("build", "--json").json["layers"]}
    other = tmp_path / "elsewhere" / "checkout"
    shutil.copytree(project, other, ignore=shutil.ignore_patterns("pylock.*"))
    renamed = "\n".join(
        [
            f'iso solo {{ packages = [ "foo" ]; python = "{PYTHON}"; }}',
            'x zwei on grund { packages = [ "foo==2" ]; }',
            'x eins on grund { packages = [ "foo==1" ]; }',
            f'base grund {{ env = {{ FLAVOUR = "core"; }}; sources = [ ../src ]; packages = [ "bar" ]; '
            f'python = "{PYTHON}"; probe = [ "bar" ]; description = "Ein Grund"; }}',
        ]
    )
    (other / "layers.d" / "all.layer").unlink()
    (other / "layers.d" / "anders.layer").write_text(renamed)
    (other / "envdsl.toml").write_text((other / "envdsl.toml").read_text().replace('"core"', '"grund"'))
    assert built("lock", "--project", other).status == 0
    done = built("build", "--json", "--project", other)
    assert done.status == 0, done.err
    second = {item["name"]: (item["id"], item["tree-hash"]) for item in done.json["layers"]}
    assert second == {
        "grund": first["core"],
        "eins": first["one"],
        "zwei": first["two"],
        "solo": first["alone"],
    }


def test_a_stale_lock_is_refused_and_says_what_changed(built: Cli, project: Path) -> None:
    """Issue 2.7: a stale lock on build (what changed)."""
    (project / "layers.d" / "all.layer").write_text(LAYERS.replace('[ "bar" ]', '[ "bar" "foo" ]', 1))
    done = built("build", "core")
    assert done.status == 1
    assert "app-lock-stale" in done.err
    assert "`packages` gained foo" in done.err
    assert "envdsl lock core" in done.err
    # a layer whose own lock is current builds; for CI the whole project has to be
    assert built("build", "alone").status == 0
    assert built("build", "alone", "--locked").status == 1


def test_a_missing_lock_is_refused(run: Cli) -> None:
    done = run("build", "core")
    assert done.status == 1
    assert "app-lock-missing" in done.err


def test_dry_run_lists_the_steps_and_does_none(run: Cli, project: Path, tmp_path: Path) -> None:
    """Issue 2.9: --dry-run."""
    run("lock")
    store = tmp_path / "fresh"
    done = run("build", "alone", "--dry-run", "--store", store)
    assert done.status == 0
    assert [row[0] for row in done.rows] == ["python", "wheel", "unpack", "bytecode", "layer"]
    assert not store.exists()


def test_a_wheel_whose_bytes_differ_from_the_lock_is_refused_and_named(run: Cli, project: Path) -> None:
    """Issue 2.9: a wheel whose bytes differ from the lock is refused; a failed build leaves no valid path."""
    run("lock", "alone")
    wheel = project / "wheels" / "foo-2-py3-none-any.whl"
    make_wheel(project / "wheels", "foo", "2", files={"foo.py": "evil = True\n"})
    (project / "layers.d" / "all.layer").write_text(
        f'iso alone {{ python = "{PYTHON}"; packages = [ "foo" ]; env = {{ ONLY = "here"; }}; }}'
    )
    fresh = project.parent / "fresh-store"
    done = run("build", "alone", "--store", fresh)
    assert done.status == 1
    assert wheel.name in done.err
    assert "fetch-hash-mismatch" in done.err
    assert not list((fresh / "layers").iterdir())
    assert not list((fresh / "unpacked").iterdir())


def test_a_failing_probe_fails_the_build_with_the_traceback(run: Cli, project: Path) -> None:
    """Issue 2.10: probes run inside the sandbox after a build; a failure fails it with the traceback."""
    make_wheel(project / "wheels", "broken", "1", files={"broken.py": "raise RuntimeError('as it was made')\n"})
    (project / "layers.d" / "all.layer").write_text(
        f'base core {{ python = "{PYTHON}"; packages = [ "broken" ]; probe = [ "broken" ]; }}'
    )
    run("lock")
    done = run("build")
    assert done.status == 1
    assert "app-probe-failed" in done.err
    assert "RuntimeError: as it was made" in done.err
    assert run("build").status == 1, "a failure is not remembered as an answer"


def test_a_probe_sees_no_network(run: Cli, project: Path) -> None:
    """Issue 2.10: the probe runs in the sandbox."""
    code = (
        "import socket\n"
        "try:\n    socket.create_connection(('192.0.2.1', 80), 2)\n"
        "except OSError as error:\n    assert error.errno == 101, error\n"
        "else:\n    raise RuntimeError('network')\n"
    )
    make_wheel(project / "wheels", "curious", "1", files={"curious.py": code})
    (project / "layers.d" / "all.layer").write_text(
        f'base core {{ python = "{PYTHON}"; packages = [ "curious" ]; probe = [ "curious" ]; }}'
    )
    run("lock")
    assert run("build").status == 0


def test_current_points_at_the_default_base(built: Cli, interpreter_store: Path) -> None:
    core = built("path", "core").out.strip()
    assert (interpreter_store / "current").resolve() == Path(core).resolve()


def test_ensure_makes_a_root_ready_in_one_go_and_again_does_nothing(run: Cli, project: Path) -> None:
    """Issue 2.9: ensure: locks where missing, layers, current, probes; idempotent."""
    first = run("ensure", "--json")
    assert first.status == 0, first.err
    assert [layer["name"] for layer in first.json["layers"]] == ["alone", "core", "one", "two"]
    assert (project / "layers.d" / "pylock.core.toml").exists()
    again = run("ensure", "--json")
    assert again.json == {**first.json, "built": 0}


def test_offline_builds_from_the_wheelhouse(built: Cli, project: Path) -> None:
    """Issue 2.9: --offline."""
    shutil.rmtree(project / "wheels")
    (project / "layers.d" / "all.layer").write_text(
        LAYERS.replace('env      = { FLAVOUR = "core"; };', 'env = { FLAVOUR = "other"; };')
    )
    done = built("build", "core", "--offline", "--json")
    assert done.status == 0, done.err
    assert done.json["built"] == 1


def test_python_m_envdsl_works_in_a_process_of_its_own(built: Cli, project: Path, interpreter_store: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "envdsl", "build", "core", "--store", str(interpreter_store)],
        capture_output=True,
        text=True,
        cwd=project,
        check=True,
    )
    assert done.stdout == built("build", "core").out


def test_a_reader_that_leaves_is_no_failure(built: Cli, project: Path, interpreter_store: Path) -> None:
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{sys.executable} -m envdsl ls --json --store {interpreter_store} | true"],
        capture_output=True,
        text=True,
        cwd=project,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_was_edited_during_a_build_is_not_answered_by_it(
    built: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from envdsl.app import probing

    file = project / "layers.d" / "all.layer"
    file.write_text(LAYERS.replace('FLAVOUR = "core"', 'FLAVOUR = "during"'))
    edited = LAYERS.replace('FLAVOUR = "core"', 'FLAVOUR = "after"')
    monkeypatch.setattr(probing, "probe", lambda *_: file.write_text(edited))
    first = built("build", "core").out
    monkeypatch.setattr(probing, "probe", lambda *_: None)
    assert built("build", "core").out != first
