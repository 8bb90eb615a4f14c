"""``envdsl audit`` against a dump of OSV records, a real OSV API on loopback, and an index that withdraws."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import PYTHON, Cli
from tests.lock.index import Index, serve
from tests.wheels import make_wheel

RECORDS = {
    "GHSA-low": {
        "id": "GHSA-low",
        "modified": "2026-05-04T00:00:00Z",
        "aliases": ["CVE-2026-1"],
        "summary": "low reads what it should not",
        "affected": [
            {
                "package": {"ecosystem": "PyPI", "name": "Low"},
                "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.1"}]}],
            }
        ],
        "database_specific": {"severity": "HIGH"},
    },
    "PYSEC-other": {
        "id": "PYSEC-other",
        "modified": "2026-04-01T00:00:00Z",
        "summary": "other",
        "affected": [{"package": {"ecosystem": "PyPI", "name": "lib"}, "versions": ["0.9"]}],
    },
}


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    wheels = tmp_path / "served"
    make_wheel(wheels, "low", "1.0")
    make_wheel(wheels, "lib", "1.0", requires=["low"])
    with serve(wheels) as served:
        yield served


@pytest.fixture
def locked(run: Cli, project: Path, index: Index) -> Cli:
    configure(project, index)
    (project / "layers.d" / "all.layer").write_text(f'base core {{ python = "{PYTHON}"; packages = [ "lib" ]; }}\n')
    assert run("lock").status == 0
    return run


def configure(project: Path, index: Index, more: str = "") -> None:
    text = f'[[index]]\nname = "local"\nurl = "{index.simple}"\ndefault = true\n'
    (project / "envdsl.toml").write_text(text + more)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    place = tmp_path / "osv"
    place.mkdir()
    for name, record in RECORDS.items():
        (place / f"{name}.json").write_text(json.dumps(record))
    return place


def test_a_local_database_tells_what_is_known_and_of_when_it_is(locked: Cli, dump: Path) -> None:
    """Issue 5.4: a local database file, its date shown; exit status for CI."""
    done = locked("audit", "--database", dump)
    assert done.status == 1
    assert done.out.splitlines() == [
        "low 1.0  GHSA-low (CVE-2026-1)  HIGH",
        "  low reads what it should not",
        "  in core; fixed in 1.1",
    ]
    assert "2 packages, 1 finding; records: osv of 2026-05-04" in done.err


def test_records_that_cannot_be_read_are_counted(locked: Cli, dump: Path) -> None:
    """Issue 5.4: a dump that is damaged in part is not taken for a whole one."""
    assert locked("audit", "--database", dump, "--json").json["unreadable-records"] == 0
    (dump / "GHSA-cut.json").write_text("{trunc")
    done = locked("audit", "--database", dump)
    assert done.status == 1
    assert "1 record could not be read" in done.err
    again = locked("audit", "--database", dump, "--json")
    assert (again.json["unreadable-records"], again.json["counting"]) == (1, 1)
    assert "1 record could not be read" in again.err


def test_json_and_sarif_name_the_line_of_the_lock(locked: Cli, project: Path, dump: Path) -> None:
    """Issue 5.4: SARIF and JSON."""
    (finding,) = locked("audit", "--database", dump, "--json").json["findings"]
    (place,) = finding["locks"]
    text = (project / place["path"]).read_text().splitlines()
    assert text[place["line"] - 1] == 'name = "low"'
    done = locked("audit", "--database", dump, "--format", "sarif")
    (run,) = done.json["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["GHSA-low"]
    (result,) = run["results"]
    assert result["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "layers.d/pylock.core.toml"},
        "region": {"startLine": place["line"]},
    }
    assert (done.status, done.json["version"], "suppressions" in result) == (1, "2.1.0", False)


def test_an_ignore_has_a_reason_and_an_end(locked: Cli, project: Path, index: Index, dump: Path) -> None:
    """Issue 5.4: an ignore list with reason and expiry."""
    today = datetime.now(UTC).date()
    for expires, status in ((today + timedelta(days=1), 0), (today, 1)):
        ignore = f'[[audit.ignore]]\nid = "CVE-2026-1"\nreason = "not reachable"\nexpires = {expires}\n'
        configure(project, index, ignore)
        done = locked("audit", "--database", dump)
        assert done.status == status
        assert ("ignored: not reachable" in done.out) is (status == 0)
        assert ("no longer ignored: CVE-2026-1 since" in done.err) is (status == 1)
    configure(project, index, f'[[audit.ignore]]\nid = "x"\nexpires = {today}\n')
    assert "`audit.ignore.reason`" in locked("audit", "--database", dump).err


class Osv(ThreadingHTTPServer):
    """As much of the API of osv.dev as is used, with answers in pages."""

    queries: list[dict[str, Any]]
    broken = False


@contextmanager
def osv() -> Iterator[tuple[str, Osv]]:
    class Handler(BaseHTTPRequestHandler):
        server: Osv

        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
            self.server.queries += asked
            self._send({"results": [self._answer(query) for query in asked]})

        def _answer(self, query: dict[str, Any]) -> dict[str, Any]:
            if query["package"]["name"] != "low":
                return {}
            return {"vulns": [{"id": "GHSA-low"}]} if "page_token" in query else {"vulns": [], "next_page_token": "2"}

        def do_GET(self) -> None:
            self._send(RECORDS[self.path.rpartition("/")[2]])

        def _send(self, value: object) -> None:
            body = b"<html>" if self.server.broken else json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = Osv(("127.0.0.1", 0), Handler)
    server.queries = []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_live_endpoint_by_configuration(locked: Cli, project: Path, index: Index) -> None:
    """Issue 5.4: OSV data from a live endpoint by configuration."""
    with osv() as (url, server):
        configure(project, index, f'[audit]\nendpoint = "{url}/"\n')
        (finding,) = locked("audit", "--json").json["findings"]
        assert (finding["id"], finding["package"], finding["fixed"]) == ("GHSA-low", "low", ["1.1"])
        assert server.queries[0] == {"package": {"name": "lib", "ecosystem": "PyPI"}, "version": "1.0"}
        server.broken = True
        done = locked("audit")
        assert (done.status, done.out) == (4, "")
        assert "error[app-audit-endpoint]" in done.err


def test_without_any_records_nothing_is_called_clean(locked: Cli) -> None:
    done = locked("audit")
    assert (done.status, done.out) == (2, "")
    assert "error[app-audit-no-records]" in done.err


def test_yanked_files_and_quarantined_projects_are_reported(locked: Cli, index: Index, dump: Path) -> None:
    """Issue 5.4: yanked and quarantined wheels are reported."""
    (dump / "GHSA-low.json").unlink()
    assert locked("audit", "--database", dump).status == 0
    index.yanked["lib-1.0-py3-none-any.whl"] = "broken build"
    index.project_statuses["low"] = {"status": "quarantined", "reason": "malware"}
    done = locked("audit", "--database", dump)
    assert done.status == 1
    assert done.out.splitlines() == [
        "lib 1.0  yanked",
        "  broken build",
        "  in core",
        "low 1.0  quarantined",
        "  malware",
        "  in core",
    ]
    assert locked("audit", "--database", dump, "--offline").status == 0
