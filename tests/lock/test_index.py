"""Where wheels come from, and who we are there."""

from __future__ import annotations

import os
import traceback
from pathlib import Path

import pytest

from envdsl.errors import EnvdslError
from envdsl.lock.candidates import Candidates, known_places
from envdsl.lock.index import IndexConfiguration
from envdsl.lock.lock import LockedWheel
from envdsl.lock.source import IndexSource
from envdsl.transport import Retries
from tests.lock.conftest import X86, Project, layer
from tests.wheels import make_wheel, sha256

SECRET = "s3cret-w0rd/with:odd@signs"


def discover(home: Path, *declared: IndexSource, **variables: str) -> IndexConfiguration:
    environment = {"HOME": str(home), "XDG_CONFIG_DIRS": str(home / "xdg"), "PATH": os.environ["PATH"], **variables}
    return IndexConfiguration.discover(declared, environment=environment)


def urls(configuration: IndexConfiguration) -> list[str]:
    return [source.url for source in configuration.sources]


def public() -> str:
    from pypi_simple import PYPI_SIMPLE_ENDPOINT

    return PYPI_SIMPLE_ENDPOINT


def test_without_any_configuration_there_is_the_public_index(tmp_path: Path) -> None:
    assert urls(discover(tmp_path)) == [public()]


def test_the_project_goes_before_uv_and_uv_before_pip(tmp_path: Path) -> None:
    """Issue 2.6: what uv and pip are configured with, any index of envdsl.toml."""
    pip = {"PIP_EXTRA_INDEX_URL": "https://pip.example/simple https://pip2.example/simple"}
    uv = {"UV_INDEX": "corp=https://uv.example/simple"}
    assert urls(discover(tmp_path, **pip)) == [
        "https://pip.example/simple",
        "https://pip2.example/simple",
        public(),
    ]
    assert urls(discover(tmp_path, **pip, **uv)) == ["https://uv.example/simple", public()]
    own = IndexSource.of("https://own.example/simple", name="own")
    assert urls(discover(tmp_path, own, **pip, **uv)) == ["https://own.example/simple", public()]


def test_the_machines_mirror_stays_the_default_index_of_a_project_that_names_none(tmp_path: Path) -> None:
    own = IndexSource.of("https://own.example/simple", name="own")
    mirrored = discover(tmp_path, own, PIP_INDEX_URL="https://mirror.example/simple")
    assert urls(mirrored) == ["https://own.example/simple", "https://mirror.example/simple"]
    replacing = IndexSource.of("https://only.example/simple", default=True)
    assert urls(discover(tmp_path, replacing, UV_DEFAULT_INDEX="https://m.example")) == ["https://only.example/simple"]


def test_pips_files_are_read_the_users_over_the_systems(tmp_path: Path) -> None:
    for place, index in (("xdg/pip/pip.conf", "system"), (".config/pip/pip.conf", "user")):
        file = tmp_path / place
        file.parent.mkdir(parents=True)
        file.write_text(
            f"[global]\nindex-url = https://{index}.example/simple\n"
            f"find-links = {tmp_path}/flat\n[install]\nextra_index_url =\n    https://x.example/a\n    file:///opt/b\n"
        )
    configuration = discover(tmp_path)
    assert urls(configuration) == [
        (tmp_path / "flat").as_uri(),
        "https://x.example/a",
        "file:///opt/b",
        "https://user.example/simple",
    ]
    assert configuration.strategy == "unsafe-best-match"
    assert urls(discover(tmp_path, PIP_CONFIG_FILE=os.devnull)) == [public()]
    assert urls(discover(tmp_path, PIP_NO_INDEX="1")) == [(tmp_path / "flat").as_uri()]


def test_uvs_user_file_is_read_and_that_of_a_project_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / ".config/uv/uv.toml"
    file.parent.mkdir(parents=True)
    file.write_text(
        '[[index]]\nname = "corp"\nurl = "https://corp.example/simple"\n'
        '[[index]]\nname = "gpu"\nurl = "https://gpu.example/simple"\nexplicit = true\n'
        '[[index]]\nname = "wheels"\nurl = "./wheels"\nformat = "flat"\n'
        '[[index]]\nurl = "https://mirror.example/simple"\ndefault = true\n'
    )
    here = tmp_path / "project"
    here.mkdir()
    (here / "uv.toml").write_text('index-url = "https://evil.example/simple"\n')
    (here / "pyproject.toml").write_text('[tool.uv]\nindex-url = "https://evil.example/simple"\n')
    monkeypatch.chdir(here)
    configuration = discover(tmp_path)
    assert "https://evil.example/simple" not in urls(configuration)
    assert urls(configuration.restricted(())) == [
        (file.parent / "wheels").as_uri(),
        "https://corp.example/simple",
        "https://mirror.example/simple",
    ]
    assert urls(configuration.restricted(["gpu", "default"])) == [
        "https://gpu.example/simple",
        "https://mirror.example/simple",
    ]


def test_a_name_that_no_index_has_is_an_error_with_the_nearest(tmp_path: Path) -> None:
    configuration = discover(tmp_path, IndexSource.of("https://own.example/simple", name="internal"))
    with pytest.raises(EnvdslError) as caught:
        configuration.restricted(["intrnal"])
    assert caught.value.code == "lock-unknown-index"
    assert caught.value.diagnostics[0].hint == "did you mean `internal`?"


def test_a_broken_configuration_file_is_named_and_not_quoted(tmp_path: Path) -> None:
    file = tmp_path / ".config/uv/uv.toml"
    file.parent.mkdir(parents=True)
    file.write_text(f'index-url = "https://bob:{SECRET}@x.example\n')
    with pytest.raises(EnvdslError) as caught:
        print(discover(tmp_path).sources)
    assert str(file) in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_layer_may_be_restricted_to_named_indexes(project: Project) -> None:
    flat = project.root / "flat"
    make_wheel(flat, "alpha", "1.0")
    project.wheel("alpha", "9.0")
    project.sources.insert(0, IndexSource.of(str(flat), name="flat", flat=True))
    lock = project.lock(layer("office", ["alpha"], index=("flat",)))
    assert lock.packages[0].version == "1.0"
    assert project.index.requests == []


def credentials_by(way: str, project: Project) -> None:
    """Tell who we are in one of the ways there are."""
    index, home = project.index, Path(project.environment["HOME"])
    source = IndexSource.of(index.simple, name="corp", default=True)
    if way == "url":
        from urllib.parse import quote

        source = IndexSource.of(
            index.simple.replace("://", f"://bob:{quote(SECRET, safe='')}@"), name="corp", default=True
        )
    elif way == "environment":
        project.environment |= {"UV_INDEX_CORP_USERNAME": "bob", "UV_INDEX_CORP_PASSWORD": SECRET}
    elif way == "netrc":
        netrc = home / ".netrc"
        netrc.write_text(f"machine 127.0.0.1 login bob password {SECRET}\n")
        netrc.chmod(0o600)
    elif way == "keyring":
        keyring = home / "bin" / "keyring"
        keyring.parent.mkdir()
        keyring.write_text(
            "#!/bin/sh\n"
            f'case "$*" in *"--mode creds"*) echo bob; echo "{SECRET}";; *" bob") echo "{SECRET}";; *) exit 1;; esac\n'
        )
        keyring.chmod(0o755)
        project.environment["PATH"] = f"{keyring.parent}:{project.environment['PATH']}"
        project.environment["UV_KEYRING_PROVIDER"] = "subprocess"
    project.sources = [source]


@pytest.mark.parametrize("way", ["url", "environment", "netrc", "keyring"])
def test_credentials_work_and_are_never_shown_or_stored(
    way: str, project: Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Issue 2.6: credentials (netrc, keyring, environment) are never printed or stored."""
    wheel = project.wheel("alpha", "1.0")
    project.index.auth = ("bob", SECRET)
    project.index.sizes = False  # so that our own client has to ask, too
    credentials_by(way, project)
    monkeypatch.setenv("HOME", project.environment["HOME"])
    monkeypatch.delenv("NETRC", raising=False)
    said: list[str] = []

    lock = project.lock(layer("office", ["alpha"]), urls=True)
    said.append(repr(lock) + repr(project.configuration))
    locked = lock.packages[0].wheel(X86)
    assert locked is not None
    assert locked.url == f"{project.index.url}/files/{wheel.name}"
    candidates = list(Candidates(project.configuration)(locked))
    assert [candidate.url for candidate in candidates] == [locked.url]
    said.append(repr(candidates))

    error = project.refusal(layer("office", ["alpha>=2"]))
    said.append("".join(traceback.format_exception(error)) + repr(error.diagnostics))
    project.index.statuses["alpha"] = [500] * 20
    project.environment["UV_CACHE_DIR"] += "-2"
    error = project.refusal(layer("office", ["alpha>=0"]))
    assert error.code == "lock-index-unreachable"
    said.append("".join(traceback.format_exception(error)) + repr(error.diagnostics))
    with pytest.raises(EnvdslError) as caught:
        list(Candidates(project.configuration, retries=Retries(attempts=1))(locked))
    said.append("".join(traceback.format_exception(caught.value)) + repr(caught.value.diagnostics))

    shown = capfd.readouterr()
    said += [shown.out, shown.err, repr(project.reporter.notes), repr(project.reporter.warnings)]
    for text in said:
        assert "s3cret" not in text
    for file in [*project.root.rglob("*"), *Path(project.environment["UV_CACHE_DIR"]).rglob("*")]:
        if file.is_file():
            assert b"s3cret" not in file.read_bytes(), file


def test_credentials_are_no_argument_of_uv(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments of a process are for all users of a machine to read."""
    from envdsl.lock import uv

    project.wheel("alpha", "1.0")
    project.index.auth = ("bob", SECRET)
    credentials_by("url", project)
    real, seen = uv.find_uv(), project.root / "arguments"
    wrapper = project.root / "uv"
    wrapper.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {seen}\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setattr(uv, "find_uv", lambda: wrapper)
    project.lock(layer("office", ["alpha"]))
    assert project.index.simple in seen.read_text()
    assert "s3cret" not in seen.read_text()
    assert "bob" not in seen.read_text()


def test_credentials_are_sent_to_no_other_host(project: Project) -> None:
    """A page of our index that points elsewhere does not get our password to go there."""
    wheel = project.wheel("alpha", "1.0")
    project.index.auth = ("bob", SECRET)
    credentials_by("url", project)
    elsewhere = project.index.url.replace("127.0.0.1", "127.0.0.2")
    project.index.url = elsewhere
    (candidate,) = Candidates(project.configuration)(LockedWheel(wheel.name, sha256(wheel), 1))
    assert candidate.url == f"{elsewhere}/files/{wheel.name}"
    assert candidate.auth is None


def test_places_that_a_lock_names_are_candidates_before_any_lookup(project: Project) -> None:
    project.wheel("alpha", "1.0")
    vendored = make_wheel(project.root / "vendor", "beta", "1.0")
    lock = project.lock(layer("office", ["alpha", "beta"], wheels=[f"vendor/{vendored.name}"]), urls=True)
    known = known_places(lock, project.path("office").parent)
    project.index.requests.clear()
    found = {}
    for package in lock.packages:
        wheel = package.wheel(X86)
        assert wheel is not None
        found[package.name] = next(iter(Candidates(project.configuration, known=known)(wheel)))
    assert found["alpha"].url == f"{project.index.url}/files/alpha-1.0-py3-none-any.whl"
    assert found["beta"].path is not None
    assert found["beta"].path.samefile(vendored)
    assert project.index.requests == []


def test_a_project_page_is_asked_for_once_in_a_run(project: Project) -> None:
    wheels = [project.wheel("alpha", version) for version in ("1.0", "2.0")]
    candidates = Candidates(project.configuration)
    for wheel in wheels:
        (found,) = candidates(LockedWheel(wheel.name, sha256(wheel), wheel.stat().st_size))
        assert found.sha256 == sha256(wheel)
    assert [path for _, path, _ in project.index.requests] == ["/simple/alpha/"]


def test_pages_of_links_and_html_indexes_are_read(project: Project) -> None:
    wheel = project.wheel("alpha", "1.0")
    wanted = LockedWheel(wheel.name, sha256(wheel), 1)
    project.index.json = False
    project.sources = [
        IndexSource.of(project.index.flat, flat=True, name="page"),
        IndexSource.of(project.index.simple, default=True),
    ]
    found = list(Candidates(project.configuration)(wanted))
    assert [candidate.url for candidate in found] == [f"{project.index.url}/files/{wheel.name}"] * 2
    lock = project.lock(layer("office", ["alpha"], index=("page",)))
    assert lock.packages[0].version == "1.0"


def test_an_index_that_answers_with_something_else_is_said_to(project: Project) -> None:
    wheel = LockedWheel("alpha-1.0-py3-none-any.whl", "0" * 64, 1)
    project.sources = [IndexSource.of(f"{project.index.url}/files", default=True)]
    assert list(Candidates(project.configuration)(wheel)) == []  # a 404: it knows no such project
    (project.index.directory / "alpha").write_text("hello")
    with pytest.raises(EnvdslError, match="something that is no index page") as caught:
        list(Candidates(project.configuration)(wheel))
    assert caught.value.code == "lock-index-unreachable"
    project.sources = [IndexSource.of(project.index.simple, default=True)]
    project.index.auth = ("bob", "x")
    with pytest.raises(EnvdslError) as caught:
        list(Candidates(project.configuration)(wheel))
    assert caught.value.code == "lock-index-credentials"
