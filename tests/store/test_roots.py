"""Lists of roots whose project is gone."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from envdsl.store import roots
from envdsl.store.store import Store
from tests.store.conftest import key_of, put

DAY = 24 * 3600


@pytest.fixture
def project(store: Store, tmp_path: Path) -> Path:
    directory = tmp_path / "project"
    directory.mkdir()
    put(store, "base", kind="layer")
    for kind in ("project", "wheels-of"):
        roots.write(store.layout, f"{kind}-1", (kind, str(directory)), lambda: {"base": key_of("base")}, complete=True)
    return directory


def alive(store: Store, **options: float) -> set[str]:
    return {root.target for root in roots.written(store.layout, **options)}


def missing_since(store: Store, days: float) -> None:
    for place in store.layout.gcroots.iterdir():
        lines = place.read_text().splitlines()
        lines[1:1] = [f"# missing {int(time.time() - days * DAY)}"]
        place.write_text("\n".join(lines) + "\n")


def test_a_missing_project_keeps_its_roots_for_a_week(store: Store, project: Path) -> None:
    shutil.rmtree(project)
    roots.note_missing(store.layout)
    assert alive(store) == {key_of("base")}
    roots.forget_missing(store.layout)
    assert alive(store) == {key_of("base")}
    (found,) = roots.missing(store.layout)
    assert (found.project, found.files) == (str(project), ("project-1", "wheels-of-1"))
    assert found.since == pytest.approx(time.time(), abs=60)
    missing_since(store, 8)
    assert alive(store) == set()
    roots.forget_missing(store.layout)
    assert not list(store.layout.gcroots.iterdir())


def test_the_week_begins_when_it_is_first_noticed(store: Store, project: Path) -> None:
    shutil.rmtree(project)
    missing_since(store, 3)
    roots.note_missing(store.layout)
    (found,) = roots.missing(store.layout)
    assert found.since == pytest.approx(time.time() - 3 * DAY, abs=60)


def test_missing_projects_can_be_dropped_at_once(store: Store, project: Path) -> None:
    shutil.rmtree(project)
    assert alive(store, missing_age=0.0) == set()


def test_a_project_that_comes_back_is_as_before(store: Store, project: Path) -> None:
    missing_since(store, 30)
    assert alive(store) == {key_of("base")}
    assert roots.missing(store.layout) == []
    roots.note_missing(store.layout)
    assert not any("missing" in place.read_text() for place in store.layout.gcroots.iterdir())


def test_why_a_path_lives_says_that_its_project_is_missing(store: Store, project: Path) -> None:
    shutil.rmtree(project)
    assert {root.name for root in roots.written(store.layout)} == {
        f"base of project {project} (missing)",
        f"base of wheels-of {project} (missing)",
    }


def test_a_list_of_something_else_is_never_missing(store: Store, project: Path) -> None:
    put(store, "other", kind="layer")
    (store.layout.gcroots / "by-hand").write_text('# notes "/no/such/place"\nlayers/other\n')
    (store.layout.gcroots / "bare").write_text("layers/other\n")
    shutil.rmtree(project)
    roots.note_missing(store.layout)
    roots.forget_missing(store.layout, missing_age=0.0)
    assert sorted(place.name for place in store.layout.gcroots.iterdir()) == ["bare", "by-hand"]
