"""The control plane as it opens: ids, owners, principals, the catalog as it is now."""

from __future__ import annotations

import os
import pwd
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from envdsl.app.control import catalogue
from envdsl.app.control.plane import ControlPlane
from envdsl.app.project import Project
from envdsl.errors import EnvdslError, ExitStatus
from envdsl.policy.access import Principal, Role
from envdsl.policy.catalog import Catalog
from envdsl.reporter import Reporter
from tests.app.control.bench import Bench

ME = pwd.getpwuid(os.geteuid()).pw_name


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with a name that a URL would have to quote, and nothing in it."""
    for name in ("ENVDSL_STORE", "ENVDSL_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    root = tmp_path / "pro?ject #1 %20"
    (root / "layers.d").mkdir(parents=True)
    return Project.find(root, store=None, reporter=Reporter())


def test_a_store_has_one_id_whoever_asks_first(project: Project) -> None:
    barrier = threading.Barrier(6)
    found: list[str] = []

    def first() -> None:
        with ControlPlane.open(project) as plane:
            del plane.__dict__["store_id"]
            (project.config.store / "id").unlink(missing_ok=True)
            barrier.wait()
            found.append(plane.store_id)

    crew = [threading.Thread(target=first) for _ in range(6)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    assert len(found) == 6
    assert len(set(found)) == 1
    assert [path.name for path in project.config.store.iterdir() if path.name.startswith(".id")] == []
    with ControlPlane.open(project) as plane:
        assert plane.store_id == found[0]


def test_an_id_that_was_damaged_is_not_replaced_by_another(project: Project) -> None:
    """Requests and bindings belong to the id: a new one would orphan them."""
    ControlPlane.open(project).close()
    (project.config.store / "id").write_text("")
    with pytest.raises(EnvdslError) as raised:
        ControlPlane.open(project)
    assert (raised.value.code, raised.value.exit_status) == ("app-store-id", ExitStatus.ENVIRONMENT)


def test_without_a_setting_the_database_lies_in_the_store(project: Project) -> None:
    with ControlPlane.open(project):
        assert (project.config.store / "state.db").is_file()


def test_root_the_owner_of_the_store_and_whom_the_configuration_names_are_administrators(project: Project) -> None:
    config = replace(project.config, service=replace(project.config.service, administrators=("daemon",)))
    named = Project(config, Reporter())
    daemon, nobody = pwd.getpwnam("daemon").pw_uid, pwd.getpwnam("nobody").pw_uid
    with ControlPlane.open(named) as plane:
        assert plane.principal_of_user(0) == Principal(Role.ADMINISTRATOR, "root")
        assert plane.principal_of_user(os.geteuid()) == Principal(Role.ADMINISTRATOR, ME)
        assert plane.principal_of_user(daemon) == Principal(Role.ADMINISTRATOR, "daemon")
        assert plane.principal_of_user(nobody) == Principal(Role.OWNER, "nobody")
        assert plane.principal_of_user(3_999_999_999) == Principal(Role.OWNER, "uid:3999999999")


def test_a_session_belongs_to_the_user_of_its_directory_until_it_is_given_away(bench: Bench) -> None:
    bench.session("s")
    assert bench.plane.owner_of("s") == ME
    if os.geteuid() == 0:
        shutil.chown(bench.project.store.layout.sessions / "s", "daemon")
        assert bench.plane.owner_of("s") == "daemon"
    with bench.plane.state.transaction() as tx:
        tx.sessions.give(bench.plane.store_id, "s", "alice", actor="root")
    assert bench.plane.owner_of("s") == "alice"


@pytest.mark.parametrize("name", ["nope", "", "..", "../..", ".sandbox", "a/b", "a\0b", "s\n"])
def test_the_owner_of_a_session_that_is_not_there_is_an_error(bench: Bench, name: str) -> None:
    bench.session("s")
    with pytest.raises(EnvdslError) as raised:
        bench.plane.owner_of(name)
    assert raised.value.code == "session-unknown"


def test_the_catalog_is_read_again_when_its_file_changes_and_only_then(light_bench: Bench) -> None:
    plane = light_bench.plane
    before = plane.catalog
    assert plane.catalog is before
    light_bench.catalog('[deny]\nfoo = "not now"\n')
    assert [entry.name for entry in plane.catalog.denied("foo")] == ["foo"]
    light_bench.catalog("[deny\n")
    with pytest.raises(EnvdslError, match=r"catalog\.toml"):
        _ = plane.catalog
    light_bench.project.config.catalog.write_bytes(b"\xff")
    with pytest.raises(EnvdslError) as raised:
        _ = plane.catalog
    assert raised.value.code == "policy-catalog-syntax"
    light_bench.project.config.catalog.unlink()
    assert plane.catalog == Catalog()


def test_a_catalog_that_cannot_be_read_is_an_error_and_no_empty_one(light_bench: Bench) -> None:
    """Without permission, or with something else in its place: nothing is decided by a rule that is not known."""
    light_bench.project.config.catalog.unlink()
    light_bench.project.config.catalog.mkdir()
    for read in (lambda: light_bench.plane.catalog, lambda: catalogue.read(light_bench.project)):
        with pytest.raises(EnvdslError, match=r"catalog\.toml cannot be read") as raised:
            read()
        assert (raised.value.code, raised.value.exit_status) == ("policy-catalog-unreadable", ExitStatus.ENVIRONMENT)


def test_two_stores_in_one_database_do_not_see_each_other(
    bench: Bench, tmp_path: Path, template: Path, database_url: str
) -> None:
    """Several hosts share a PostgreSQL; a session of the same name elsewhere is another session."""
    from envdsl.app.control import tokens

    other = Project.find(bench.root, store=tmp_path / "other-store", reporter=Reporter())
    bench.session("s")
    with ControlPlane.open(other, url=database_url) as plane:
        assert plane.store_id != bench.plane.store_id
        record = bench.ask("s", "foo")
        admin = plane.principal_of_user(0)
        token, _ = tokens.create(bench.plane, admin, role=Role.AGENT, name="n", session="s")
        assert tokens.find(bench.plane, token) is not None
        assert tokens.find(plane, token) is None
        assert tokens.listing(plane, admin) == []
        with plane.state.reading() as tx:
            assert tx.requests.list(plane.store_id) == []
            assert tx.requests.get(record.id).store == bench.plane.store_id
        with plane.state.transaction() as tx:
            assert tx.requests.claim("w", 60, plane.store_id) is None
    other.close()
