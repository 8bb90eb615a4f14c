"""Private indexes: whose names are whose, and what happens when one of them fails."""

from __future__ import annotations

import base64
import os
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from envdsl import config
from envdsl.errors import EnvdslError, ExitStatus
from envdsl.graph.derivation import WheelFile
from envdsl.lock import routing
from envdsl.lock.candidates import Candidates
from envdsl.lock.index import IndexConfiguration
from envdsl.lock.lock import Lock
from envdsl.lock.routing import Route, routed
from envdsl.lock.source import IndexSource
from envdsl.realise.fetch import Fetcher
from envdsl.reporter import Reporter
from envdsl.store.store import Store
from envdsl.transport import Retries
from tests.lock.conftest import X86, Project, layer, pins
from tests.lock.index import Index, serve
from tests.wheels import make_wheel

SECRET = "s3cret-w0rd/with:odd@signs"
PACKAGES = ("corp-*", "internal")


@dataclass
class Company:
    """A project with a public index and a private one; each serves what its ``directory`` holds."""

    project: Project
    public: Index
    private: Index

    def private_wheel(self, name: str, version: str, *requires: str) -> Path:
        return make_wheel(self.private.directory, name, version, requires=requires)

    def public_wheel(self, name: str, version: str, *requires: str) -> Path:
        return make_wheel(self.public.directory, name, version, requires=requires)

    def declare(self, *, public_first: bool = False, **private: object) -> None:
        corp = IndexSource.of(self.private.simple, name="corp", **private)  # type: ignore[arg-type]
        public = IndexSource.of(self.public.simple, name="public", default=not public_first)
        self.project.sources = [public, corp] if public_first else [corp, public]

    def asked_in_public(self) -> set[str]:
        return {path for _, path, _ in self.public.requests}


@pytest.fixture
def company(project: Project, tmp_path: Path) -> Iterator[Company]:
    with serve(tmp_path / "private") as private:
        company = Company(project, project.index, private)
        company.declare(packages=PACKAGES)
        yield company


def url_of(lock: Lock, name: str) -> str:
    wheel = next(package for package in lock.packages if package.name == name).wheel(X86)
    assert wheel is not None
    assert wheel.url is not None
    return wheel.url


@pytest.mark.parametrize("public_first", [False, True])
def test_a_higher_version_of_a_private_name_on_the_public_index_is_never_taken(
    company: Company, public_first: bool
) -> None:
    """Issue 5.6: packages of a private index are never taken from a public one, wherever it stands in the order."""
    company.declare(public_first=public_first, packages=PACKAGES)
    company.private_wheel("corp_tools", "1.0", "corp-base", "requests")
    company.private_wheel("corp-base", "2.0")
    company.public_wheel("corp-tools", "99.0")
    company.public_wheel("corp-base", "99.0")
    company.public_wheel("requests", "3.0", "internal")
    company.private_wheel("internal", "1.5")
    company.public_wheel("internal", "99.0")
    lock = company.project.lock(layer("office", ["Corp.Tools"]), urls=True)
    assert pins(lock) == {"corp-base": "2.0", "corp-tools": "1.0", "internal": "1.5", "requests": "3.0"}
    assert url_of(lock, "internal").startswith(company.private.url)
    assert url_of(lock, "requests").startswith(company.public.url)
    assert company.asked_in_public() == {
        "/simple/requests/",
        "/files/requests-3.0-py3-none-any.whl.metadata",
    }


def test_a_private_name_that_its_index_lacks_is_looked_for_nowhere_else(company: Company) -> None:
    """Issue 5.6: a private index that lacks the name, asked for by the layer or only by a wheel."""
    company.public_wheel("corp-gone", "99.0")
    company.private_wheel("corp-app", "1.0", "corp-gone")
    for wanted in ("corp-gone", "corp-app"):
        error = company.project.refusal(layer("office", [wanted]))
        assert error.code == "lock-unknown-package"
        assert str(error) == (
            f"the index `corp` ({company.private.simple}) knows no package `corp-gone`, "
            "and by its `packages` no other index is asked for it"
        )
    assert company.asked_in_public() == set()


def test_other_names_come_from_the_first_index_that_knows_them(company: Company) -> None:
    """Issue 5.6: ordered."""
    company.private_wheel("patched", "1.0")
    company.public_wheel("patched", "9.0")
    company.public_wheel("other", "1.0")
    lock = company.project.lock(layer("office", ["patched", "other"]))
    assert pins(lock) == {"other": "1.0", "patched": "1.0"}
    assert "/simple/patched/" not in company.asked_in_public()
    assert "/simple/other/" in [path for _, path, _ in company.private.requests]


def test_an_explicit_index_is_asked_for_its_names_only(company: Company) -> None:
    company.declare(packages=PACKAGES, explicit=True)
    company.private_wheel("corp-a", "1.0", "patched")
    company.private_wheel("patched", "1.0")
    company.public_wheel("patched", "9.0")
    assert pins(company.project.lock(layer("office", ["corp-a"]))) == {"corp-a": "1.0", "patched": "9.0"}
    assert "/simple/patched/" not in [path for _, path, _ in company.private.requests]
    named = layer("named", ["patched"], index=("corp",))
    assert pins(company.project.lock(named)) == {"patched": "1.0"}


def test_a_layer_that_leaves_the_owner_out_cannot_have_its_packages(company: Company) -> None:
    """A layer's ``index`` holds for private names, too; nobody is asked then."""
    company.private_wheel("corp-a", "1.0")
    company.public_wheel("corp-a", "9.0")
    error = company.project.refusal(layer("office", ["corp-a"], index=("public",)))
    assert error.code == "lock-index-left-out"
    assert "belongs to the index `corp`" in str(error)
    assert company.private.requests == company.public.requests == []
    assert pins(company.project.lock(layer("office", ["corp-a"], index=("corp",)))) == {"corp-a": "1.0"}


def test_wheels_of_private_names_are_asked_of_their_index_alone(company: Company, tmp_path: Path) -> None:
    """Issue 5.6: fetching does not tell a public index what we call our packages."""
    wheel = company.private_wheel("corp-a", "1.0")
    lock = company.project.lock(layer("office", ["corp-a"]))
    locked = lock.packages[0].wheel(X86)
    assert locked is not None
    company.public_wheel("corp-a", "1.0")
    (candidate,) = Candidates(company.project.configuration)(locked)
    assert candidate.url == f"{company.private.url}/files/{wheel.name}"
    wheel.unlink()
    assert list(Candidates(company.project.configuration)(locked)) == []
    assert company.asked_in_public() == set()


def test_a_flat_directory_may_own_names_and_may_not_hold_those_of_others(company: Company, tmp_path: Path) -> None:
    flat = tmp_path / "vendored"
    make_wheel(flat, "corp-a", "50.0")
    make_wheel(flat, "ours-x", "1.0", requires=["corp-a"])
    company.public_wheel("ours-x", "50.0")
    company.private_wheel("corp-a", "1.0")
    company.project.sources.append(IndexSource.of(str(flat), name="vendored", flat=True, packages=("ours-*",)))
    spec = layer("office", ["ours-x"])
    assert pins(company.project.lock(spec)) == {"corp-a": "1.0", "ours-x": "1.0"}
    assert company.asked_in_public() == set()
    # Offline, from uv's cache and the directory, the same holds.
    again = company.project.lock(layer("office", ["ours-x>=1"]), offline=True)
    assert pins(again) == {"corp-a": "1.0", "ours-x": "1.0"}


def test_the_answer_on_loopback_is_for_uv_alone(company: Company) -> None:
    """Whoever asks without uv's password learns nothing, as the answers are had with our credentials."""
    import requests

    company.private_wheel("corp-a", "1.0")
    with routed(company.project.configuration) as route:
        assert route is not None
        assert requests.get(f"{route.url}/corp-a/", timeout=5).status_code == 403
        assert requests.get(f"{route.url}/corp-a/", timeout=5, auth=("envdsl", "guess")).status_code == 403
        assert company.private.requests == []
        known = requests.get(f"{route.url}/corp-a/", timeout=5, auth=route.credentials)
        assert [file["filename"] for file in known.json()["files"]] == ["corp_a-1.0-py3-none-any.whl"]
        with routed(company.project.configuration) as second:  # somebody locks the same project at once
            assert second is not None
            assert second.url != route.url
            assert requests.get(f"{second.url}/corp-a/", timeout=5, auth=second.credentials).ok
    with routed(company.project.configuration) as later:
        assert later is not None
        assert later.url == route.url


def sign_in(way: str, company: Company, password: str = SECRET) -> None:
    company.private.auth = ("bob", SECRET)
    home = Path(company.project.environment["HOME"])
    if way == "environment":
        company.project.environment |= {"UV_INDEX_CORP_USERNAME": "bob", "UV_INDEX_CORP_PASSWORD": password}
    else:
        netrc = home / ".netrc"
        netrc.write_text(f"machine 127.0.0.1 login bob password {password}\n")
        netrc.chmod(0o600)


@pytest.mark.parametrize("way", ["environment", "netrc"])
@pytest.mark.parametrize("packages", [PACKAGES, ()], ids=["owned", "ordered"])
def test_credentials_get_through_and_are_nowhere_to_be_seen(
    way: str,
    packages: tuple[str, ...],
    company: Company,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Issue 5.6: authentication; a wrong password is an error that says so, and no public index is asked."""
    company.declare(packages=packages)
    company.private_wheel("corp-a", "1.0", "other")
    company.public_wheel("corp-a", "99.0")
    company.public_wheel("other", "1.0")
    sign_in(way, company)
    monkeypatch.setenv("HOME", company.project.environment["HOME"])
    monkeypatch.delenv("NETRC", raising=False)
    said: list[str] = []
    lock = company.project.lock(layer("office", ["corp-a"]), urls=True)
    assert pins(lock) == {"corp-a": "1.0", "other": "1.0"}
    said.append(repr(lock) + repr(company.project.configuration))

    if way == "environment":  # of netrc, the public index of this test has the same host
        expected = base64.b64encode(f"bob:{SECRET}".encode()).decode()
        assert all(expected not in repr(headers) for _, _, headers in company.public.requests)
    company.public.requests.clear()
    sign_in(way, company, password=f"not-{SECRET}")
    company.project.environment["UV_CACHE_DIR"] += "-2"
    error = company.project.refusal(layer("office", ["corp-a>=1"]))
    assert error.code == "lock-index-credentials"
    assert error.exit_status is ExitStatus.ENVIRONMENT
    assert f"`corp` ({company.private.simple})" in str(error)
    assert "/simple/corp-a/" not in company.asked_in_public()

    said.append("".join(traceback.format_exception(error)) + repr(error.diagnostics))
    shown = capfd.readouterr()
    said += [shown.out, shown.err, repr(company.project.reporter.notes), repr(company.project.reporter.warnings)]
    assert "s3cret" not in "".join(said)
    places = [company.project.root, *Path(company.project.environment["HOME"]).parent.glob("uv-cache*")]
    for file in [file for place in places for file in place.rglob("*") if file.is_file()]:
        assert b"s3cret" not in file.read_bytes(), file


FAULTS = {
    "refuses": (403, "lock-index-credentials", "refuses our credentials"),
    "breaks": (500, "lock-index-unreachable", "500"),
    "throttles": (429, "lock-index-unreachable", "429"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("packages", [PACKAGES, ()], ids=["owned", "ordered"])
def test_an_index_that_fails_is_not_passed_over(
    fault: str, packages: tuple[str, ...], company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 5.6: answers 500, throttles, refuses: exit status 4, naming index and cause, and no fallthrough."""
    status, code, cause = FAULTS[fault]
    company.declare(packages=packages)
    company.private_wheel("corp-a", "1.0")
    company.public_wheel("corp-a", "99.0")
    company.private.statuses["corp-a"] = [status] * 30
    impatient(monkeypatch)
    error = company.project.refusal(layer("office", ["corp-a"]))
    assert (error.code, error.exit_status) == (code, ExitStatus.ENVIRONMENT)
    assert "`corp` (" in str(error)
    assert cause in str(error) + str(error.diagnostics[0].details)
    assert company.asked_in_public() == set()


@pytest.mark.parametrize("packages", [PACKAGES, ()], ids=["owned", "ordered"])
def test_an_index_that_cannot_be_reached_is_not_passed_over(
    packages: tuple[str, ...], company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 5.6: nobody answers there."""
    company.declare(packages=packages)
    dead = IndexSource.of("http://127.0.0.1:9/simple", name="corp", packages=packages)
    company.project.sources[0] = dead
    company.public_wheel("corp-a", "99.0")
    impatient(monkeypatch)
    error = company.project.refusal(layer("office", ["corp-a"]))
    assert (error.code, error.exit_status) == ("lock-index-unreachable", ExitStatus.ENVIRONMENT)
    assert "`corp` (http://127.0.0.1:9/simple)" in str(error)
    assert company.asked_in_public() == set()


@pytest.mark.parametrize("packages", [PACKAGES, ()], ids=["owned", "ordered"])
def test_an_index_that_does_not_answer_is_not_passed_over(packages: tuple[str, ...], company: Company) -> None:
    """Issue 5.6: times out. How long is waited is uv's setting."""
    import socket

    company.project.environment |= {"UV_HTTP_TIMEOUT": "1", "UV_HTTP_RETRIES": "1"}
    company.public_wheel("corp-a", "99.0")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/simple"
        company.declare(packages=packages)
        company.project.sources[0] = IndexSource.of(url, name="corp", packages=packages)
        error = company.project.refusal(layer("office", ["corp-a"]))
    assert (error.code, error.exit_status) == ("lock-index-unreachable", ExitStatus.ENVIRONMENT)
    assert f"`corp` ({url})" in str(error)
    assert company.asked_in_public() == set()


def impatient(monkeypatch: pytest.MonkeyPatch, waited: list[float] | None = None) -> None:
    """No waiting between attempts; ``waited`` gets what would have been waited."""
    sleep = (waited if waited is not None else []).append
    monkeypatch.setattr(
        routing, "Route", lambda configuration: Route(configuration, Retries(first_delay=0.01, sleep=sleep))
    )


@pytest.mark.parametrize("status", [429, 500])
def test_trouble_that_passes_is_waited_for_as_the_index_asks(
    status: int, company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 5.6: throttles (Retry-After is honoured), answers 500 once (asked again)."""
    company.private_wheel("corp-a", "1.0")
    company.private.statuses["corp-a"] = [status, status]
    company.private.retry_after = "7"
    waited: list[float] = []
    impatient(monkeypatch, waited)
    assert pins(company.project.lock(layer("office", ["corp-a"]))) == {"corp-a": "1.0"}
    assert waited == [7.0, 7.0]


def test_a_connection_that_drops_in_the_middle_is_taken_up_again(company: Company, tmp_path: Path) -> None:
    """Issue 5.6: drops connections: while pages and metadata are read, and while a wheel comes."""
    wheel = company.private_wheel("corp-a", "1.0")
    company.private.drop_after[f"{wheel.name}.metadata"] = [5]
    company.private.drop_after["corp-a"] = [20]
    company.private.auth = ("bob", SECRET)
    sign_in("environment", company)
    lock = company.project.lock(layer("office", ["corp-a"]))
    locked = lock.packages[0].wheel(X86)
    assert locked is not None
    assert not any(company.private.drop_after.values())
    company.private.drop_after[wheel.name] = [100, 50]
    company.private.requests.clear()
    store = Store.open(tmp_path / "store")
    retries = Retries(first_delay=0.01, sleep=lambda seconds: None)
    fetcher = Fetcher(
        store, Candidates(company.project.configuration, retries=retries), reporter=Reporter(), retries=retries
    )
    file = WheelFile(locked.filename, locked.sha256, locked.size)
    fetcher([file])
    assert store.lookup(file.key) is not None
    asked = [headers.get("Range") for _, path, headers in company.private.requests if path.endswith(".whl")]
    assert asked == [None, "bytes=100-", "bytes=150-"]
    assert company.asked_in_public() == set()


def configuration(*sources: IndexSource) -> IndexConfiguration:
    return IndexConfiguration.discover(sources, environment={"HOME": "/nonexistent", "PATH": os.environ["PATH"]})


def test_patterns_match_names_however_they_are_spelled() -> None:
    corp = IndexSource.of("https://a.example", name="a", packages=("Corp_*", "inter.nal"))
    both = IndexSource.of("https://b.example", name="b", packages=("corp-x",), default=True)
    found = configuration(corp, both)
    assert found.owner("corp-x") == corp  # the first
    assert found.owner("inter-nal") == corp
    assert found.owner("corp") is None
    assert found.owner("internal") is None
    assert found.sources_for("other") == (corp, both)
    assert found.restricted(["b"]).sources_for("corp-x") == ()


def test_the_same_url_may_stand_for_owned_names_and_for_the_rest() -> None:
    owned = IndexSource.of("https://a.example/simple", name="a", packages=("corp-*",), explicit=True)
    rest = IndexSource.of("https://a.example/simple", name="mirror", default=True)
    found = configuration(owned, rest).restricted(())
    assert found.sources == (rest,)
    assert found.sources_for("corp-x") == (owned,)


def test_without_patterns_uv_asks_the_indexes_itself(company: Company) -> None:
    company.declare()
    with routed(company.project.configuration) as route:
        assert route is None


@pytest.mark.parametrize("pattern", ["corp-[ab]", "corp ?", "", "-", "corp>=1", "@corp/x"])
def test_a_pattern_that_is_none_is_refused(pattern: str, tmp_path: Path) -> None:
    (tmp_path / "envdsl.toml").write_text(f'[[index]]\nname = "a"\nurl = "w"\npackages = ["ok-*", "{pattern}"]\n')
    with pytest.raises(EnvdslError, match=r"index\.packages") as caught:
        config.load(tmp_path, environment={})
    assert (caught.value.code, caught.value.exit_status) == ("config-invalid", ExitStatus.USAGE)


def test_the_address_of_a_route_goes_by_all_that_its_answers_depend_on() -> None:
    owner = IndexSource.of("https://a.example", name="a", packages=("corp-*",))
    rest = IndexSource.of("https://b.example", name="b", default=True)
    variants = [
        (owner, rest),
        (replace(owner, packages=("corp-x",)), rest),
        (replace(owner, explicit=True), rest),
        (owner, replace(rest, url="https://c.example")),
    ]
    addresses = [Route(configuration(*sources).restricted(())).url for sources in variants]
    assert len(set(addresses)) == len(variants)
    assert addresses[0] == Route(configuration(owner, rest).restricted(())).url
    assert addresses[0] != Route(configuration(owner, rest).restricted(["a"])).url
