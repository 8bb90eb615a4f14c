"""What a command says where the packages of its extra are not installed."""

from __future__ import annotations

import sys

import pytest

from tests.cli.conftest import Cli


@pytest.mark.parametrize(
    ("arguments", "missing", "importing", "extra"),
    [
        (["serve"], "uvicorn", "envdsl.web.serving", "web"),
        (["lsp"], "pygls", "envdsl.lsp.server", "lsp"),
    ],
)
def test_a_command_without_its_extra_says_which_to_install(
    run: Cli, monkeypatch: pytest.MonkeyPatch, arguments: list[str], missing: str, importing: str, extra: str
) -> None:
    monkeypatch.delitem(sys.modules, importing, raising=False)
    for name in [name for name in sys.modules if name.partition(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    done = run(*arguments)
    assert done.status == 4
    assert f"{missing} is not installed" in done.err
    assert "error[cli-extra-missing]" in done.err
    assert f"envdsl[{extra}]" in done.err
