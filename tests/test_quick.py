"""The shortcut for a build with nothing to do: never a wrong answer, whatever happens to the cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from envdsl import quick
from envdsl.quick import Answer, Inputs


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose last build was written down."""
    monkeypatch.delenv("ENVDSL_STORE", raising=False)
    monkeypatch.delenv("ENVDSL_PROJECT", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "layers.d").mkdir()
    (tmp_path / "layers.d" / "a.layer").write_text("base a {}")
    (tmp_path / "layers.d" / "pylock.a.toml").write_text("lock")
    (tmp_path / "src" / "sub").mkdir(parents=True)
    (tmp_path / "src" / "sub" / "m.py").write_text("pass")
    layer = tmp_path / "store" / "layers" / "base-1"
    layer.mkdir(parents=True)
    (layer / "layer.json").touch()
    inputs = Inputs(("envdsl.toml", "layers.d/a.layer", "layers.d/pylock.a.toml"), ("layers.d",), ("src",))
    rows = [Answer("a", "base", "base-1", str(layer), "k", "t")]
    quick.remember(str(tmp_path), str(tmp_path / "store"), "", inputs, rows)
    return tmp_path


def test_nothing_changed_is_answered(project: Path) -> None:
    assert quick.answer([]) == f"a\tbase-1\t{project}/store/layers/base-1\n"
    assert quick.answer(["--offline", "-q"]) == quick.answer([])
    assert '"tree-hash": "t"' in (quick.answer(["--json"]) or "")


def test_a_request_that_was_not_made_is_not_answered(project: Path) -> None:
    assert quick.answer(["a"]) is None


def test_a_build_that_asked_for_less_does_not_answer_for_locked(project: Path) -> None:
    assert quick.answer(["--locked"]) is None


def test_an_option_that_the_shortcut_does_not_know_is_left_to_the_command(project: Path) -> None:
    assert quick.answer(["--dry-run"]) is None
    assert quick.answer(["--jobs=3"]) is None


@pytest.mark.parametrize("path", ["layers.d/a.layer", "layers.d/pylock.a.toml", "src/sub/m.py", "envdsl.toml"])
def test_a_changed_input_is_seen(project: Path, path: str) -> None:
    (project / path).write_text("changed")
    assert quick.answer([]) is None


def test_after_a_start_of_the_machine_the_store_is_asked(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boot = tmp_path / "boot"
    boot.write_text("another boot\n")
    monkeypatch.setattr(quick, "_BOOT", str(boot))
    assert quick.answer([]) is None


def test_touching_an_input_changes_nothing(project: Path) -> None:
    (project / "layers.d" / "a.layer").touch()
    (project / "src" / "sub" / "m.py").touch()
    assert quick.answer([]) is not None


def test_a_new_layer_file_is_seen(project: Path) -> None:
    (project / "layers.d" / "b.layer").touch()
    assert quick.answer([]) is None


def test_a_new_lock_is_seen(project: Path) -> None:
    (project / "layers.d" / "pylock.b.toml").touch()
    assert quick.answer([]) is None


def test_an_executable_bit_in_a_source_is_seen(project: Path) -> None:
    (project / "src" / "sub" / "m.py").chmod(0o755)
    assert quick.answer([]) is None


def test_a_layer_that_is_gone_is_seen(project: Path) -> None:
    (project / "store" / "layers" / "base-1" / "layer.json").unlink()
    assert quick.answer([]) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("envdsl build cache", "envdsl built cache"),
        lambda text: text.replace("directory\t", "directory\tx"),
        lambda text: text.replace("\nend\n", "\n"),
        lambda text: text.replace("base-1", "base-1\textra"),
        lambda text: "\0" * 100,
        lambda text: "",
        lambda text: text + "more\n",
    ],
)
def test_a_damaged_or_foreign_cache_is_no_answer(project: Path, damage: object) -> None:
    cache = project / "store" / "cache" / "build"
    cache.write_text(damage(cache.read_text()))  # type: ignore[operator]
    assert quick.answer([]) is None


def test_a_build_during_which_an_input_changed_is_not_remembered(project: Path) -> None:
    inputs = Inputs(("envdsl.toml", "layers.d/a.layer", "layers.d/pylock.a.toml"), ("layers.d",), ("src",))
    before = quick.state(str(project), inputs)
    (project / "layers.d" / "a.layer").write_text("saved while the old text was being built")
    row = Answer("a", "base", "base-1", str(project / "store/layers/base-1"), "k", "t")
    quick.remember(str(project), str(project / "store"), "", inputs, [row], before=before)
    assert quick.answer([]) is None


def test_answers_to_other_requests_are_kept_while_the_inputs_are_the_same(project: Path) -> None:
    inputs = Inputs(("envdsl.toml", "layers.d/a.layer", "layers.d/pylock.a.toml"), ("layers.d",), ("src",))
    row = Answer("a", "base", "base-1", str(project / "store/layers/base-1"), "k", "t")
    quick.remember(str(project), str(project / "store"), "a", inputs, [row])
    assert quick.answer([]) is not None
    assert quick.answer(["a"]) is not None


def test_another_store_is_found_as_configured(project: Path) -> None:
    (project / "envdsl.toml").write_text('# here\nstore = "elsewhere" # there\n')
    assert quick._configured_store(str(project)) == f"{project}/elsewhere"
    (project / "envdsl.toml").write_text('store = "a\\u0062"\n')
    assert quick._configured_store(str(project)) is None
    (project / "envdsl.toml").write_text('[lock]\nstore = "no"\n')
    assert quick._configured_store(str(project)) == f"{project}/store"


def test_the_shortcut_imports_next_to_nothing(project: Path) -> None:
    import subprocess
    import sys

    code = (
        "import sys; before = set(sys.modules); import envdsl.quick;"
        "print(sorted({name.partition('.')[0] for name in set(sys.modules) - before}))"
    )
    loaded = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True).stdout
    for heavy in ("typing", "re", "enum", "collections", "json", "pathlib", "tomllib", "click", "blake3", "hashlib"):
        assert f"'{heavy}'" not in loaded


@pytest.mark.parametrize("size", [10, 1 << 16, (1 << 16) + 1, 1 << 20])
def test_any_byte_of_an_input_counts_however_large_it_is(project: Path, size: int) -> None:
    lock = project / "layers.d" / "pylock.a.toml"
    lock.write_bytes(b"a" * size)
    assert quick.answer([]) is None
    inputs = Inputs(("layers.d/pylock.a.toml",), ("layers.d",), ())
    row = Answer("a", "base", "base-1", str(project / "store/layers/base-1"), "k", "t")
    quick.remember(str(project), str(project / "store"), "", inputs, [row])
    assert quick.answer([]) is not None
    assert (project / "store/cache/build").stat().st_size < (1 << 17)
    lock.write_bytes(b"a" * (size - 1) + b"b")
    assert quick.answer([]) is None


def test_what_was_copied_is_for_nobody_elses_eyes(project: Path) -> None:
    """``envdsl.toml`` may name a database with its password."""
    assert (project / "store/cache/build").stat().st_mode & 0o777 == 0o600
