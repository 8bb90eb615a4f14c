"""``envdsl lock`` from the command line; the room's own tests are in ``tests/lock``."""

from __future__ import annotations

from pathlib import Path

from packaging.pylock import Pylock

from tests.cli.conftest import LAYERS, PYTHON, Cli
from tests.wheels import make_wheel


def test_locking_writes_one_file_a_layer_and_again_changes_nothing(run: Cli, project: Path) -> None:
    """Issue 2.5: deterministic and idempotent; each lock passes packaging's validation."""
    import tomllib

    done = run("lock")
    assert done.status == 0, done.err
    locks = sorted((project / "layers.d").glob("pylock.*.toml"))
    assert [path.name for path in locks] == [f"pylock.{name}.toml" for name in ("alone", "core", "one", "two")]
    before = {path: path.read_bytes() for path in locks}
    for content in before.values():
        Pylock.from_dict(tomllib.loads(content.decode()))
    again = run("lock", "--json")
    assert {item["status"] for item in again.json["locks"]} == {"unchanged"}
    assert {path: path.read_bytes() for path in locks} == before


def test_an_x_lock_holds_the_increment_only(run: Cli, project: Path) -> None:
    """Issue 2.5: x under its base's pins, holding only the increment."""
    (project / "layers.d" / "all.layer").write_text(
        LAYERS.replace('x one on core { packages = [ "foo==1" ]; }', 'x one on core { packages = [ "foo==1" "bar" ]; }')
    )
    run("lock")
    lock = (project / "layers.d" / "pylock.one.toml").read_text()
    assert 'name = "foo"' in lock
    assert 'name = "bar"' not in lock


def test_check_says_what_changed_without_touching_anything(run: Cli, project: Path) -> None:
    """Issue 2.5: --check."""
    run("lock")
    assert run("lock", "--check").status == 0
    (project / "layers.d" / "all.layer").write_text(LAYERS.replace('"bar"', '"bar" "foo"', 1))
    before = (project / "layers.d" / "pylock.core.toml").read_bytes()
    done = run("lock", "--check")
    assert done.status == 1
    assert "stale\tcore" in done.out
    assert "`packages` gained foo" in done.out
    assert (project / "layers.d" / "pylock.core.toml").read_bytes() == before


def test_layers_on_a_base_that_moved_are_locked_after_it(run: Cli, project: Path) -> None:
    """Issue 2.5: locks re-lock in dependency order when a base moved."""
    run("lock")
    make_wheel(project / "wheels", "bar", "1.1")
    (project / "layers.d" / "all.layer").write_text(LAYERS.replace('[ "bar" ]', '[ "bar>=1.1" ]', 1))
    done = run("lock", "--json")
    status = {item["layer"]: item["status"] for item in done.json["locks"]}
    assert status == {"core": "updated", "one": "updated", "two": "updated", "alone": "unchanged"}
    assert next(item for item in done.json["locks"] if item["layer"] == "core")["changed"] == ["bar 1.0 -> 1.1"]
    assert run("lock", "--check").status == 0


def test_pins_move_only_when_asked(run: Cli, project: Path) -> None:
    """Issue 2.5: --upgrade, --upgrade-package; minimal change."""
    run("lock")
    make_wheel(project / "wheels", "bar", "2.0")
    assert {item["status"] for item in run("lock", "--json").json["locks"]} == {"unchanged"}
    done = run("lock", "core", "--upgrade-package", "bar", "--json")
    assert done.json["locks"][0]["changed"] == ["bar 1.0 -> 2.0"]


def test_upgrading_a_name_that_no_lock_holds_is_warned_about(run: Cli) -> None:
    done = run("lock", "core", "--upgrade-package", "baar")
    assert done.status == 0
    assert "app-upgrade-unknown" in done.err


def test_a_lock_of_no_layer_is_found(run: Cli, project: Path) -> None:
    run("lock")
    (project / "layers.d" / "pylock.old.toml").write_text("")
    done = run("lock", "--check")
    assert done.status == 1
    assert "orphaned\told" in done.out


def test_a_conflict_with_the_base_names_the_pin_and_the_way_out(run: Cli, project: Path) -> None:
    """Issue 2.7: conflict with the base's pin (names the pin and the base, suggests `iso`)."""
    make_wheel(project / "wheels", "bar", "0.9")
    (project / "layers.d" / "all.layer").write_text(f'{LAYERS}\nx old on core {{ packages = [ "bar<1" ]; }}\n')
    done = run("lock")
    assert done.status == 1
    assert "bar" in done.err
    assert "1.0" in done.err
    assert "core" in done.err
    assert "iso" in done.err
    # the other layers are locked all the same
    assert (project / "layers.d" / "pylock.alone.toml").exists()


def test_an_unknown_package_is_named_at_its_place(run: Cli, project: Path) -> None:
    """Issue 2.7: unknown package."""
    (project / "layers.d" / "all.layer").write_text(
        f'base core {{ python = "{PYTHON}"; packages = [ "no-such-thing" ]; }}\n'
    )
    done = run("lock")
    assert done.status == 1
    assert "no-such-thing" in done.err
    assert "layers.d/all.layer:1:" in done.err


def test_urls_are_written_when_asked_for(run: Cli, project: Path) -> None:
    """Issue 2.5: `urls = true`."""
    (project / "envdsl.toml").write_text((project / "envdsl.toml").read_text() + "[lock]\nurls = true\n")
    assert run("lock", "alone").status == 0
    assert "url = " in (project / "layers.d" / "pylock.alone.toml").read_text()


def test_an_unknown_layer_gets_the_nearest_name(run: Cli) -> None:
    done = run("lock", "aloen")
    assert done.status == 2
    assert "did you mean `alone`?" in done.err


def test_the_name_of_a_family_locks_all_its_variants(run: Cli, project: Path) -> None:
    """A lock is for every machine, so it does not depend on the interpreters of this one."""
    (project / "layers.d" / "all.layer").write_text(
        'for (v in [ "11" "12" ]) { base "many-py3${v}" { python = "3.${v}"; packages = [ "bar" ]; } }'
    )
    done = run("lock", "many", "--json")
    assert [item["layer"] for item in done.json["locks"]] == ["many-py311", "many-py312"]
    assert run("lock", "man").err.count("did you mean `many`?") == 1


def test_an_x_layer_may_be_for_fewer_platforms_than_its_base(run: Cli, project: Path) -> None:
    text = LAYERS.replace(
        'x one on core { packages = [ "foo==1" ]; }',
        'x one on core { packages = [ "foo==1" ]; platforms = [ "manylinux_2_28_x86_64" ]; }',
    )
    (project / "layers.d" / "all.layer").write_text(text)
    done = run("lock", "one")
    assert done.status == 0, done.err
    assert "aarch64" not in (project / "layers.d" / "pylock.one.toml").read_text()
    assert run("lock", "one", "--check").status == 0


def test_a_lock_that_a_merge_broke_is_repaired_and_only_what_changed_is_told(run: Cli, project: Path) -> None:
    """Issue 2.5: after a merge `lock` repairs what the merge broke, and pins that were kept are no news."""
    run("lock")
    lock = project / "layers.d" / "pylock.core.toml"
    lines = lock.read_text().splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("version"))
    lines[place:place] = ["<<<<<<< ours", "=======", ">>>>>>> theirs"]
    lock.write_text("\n".join(lines) + "\n")
    done = run("lock", "core", "--json")
    (core,) = [item for item in done.json["locks"] if item["layer"] == "core"]
    assert (core["status"], core["added"], core["changed"], core["reasons"]) == ("updated", [], [], ["it was damaged"])
