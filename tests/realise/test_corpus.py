"""The corpus of real troublemakers: each is accepted, warned about or refused as its case says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from envdsl.errors import EnvdslError
from envdsl.realise.intake import open_wheel
from envdsl.store.treehash import scan
from tests.realise.building import unpack_of, unpacked
from tests.realise.corpus import CASES
from tests.realise.corpus.case import Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_troublemaker_ends_as_its_case_says(tmp_path: Path, case: Case) -> None:
    """Issue 3.1: odd wheels from public issue trackers, each with its reason."""
    wheel = case.wheel.build(tmp_path)
    if case.code is None:
        listing = unpacked(wheel, tmp_path / "out")
        assert listing == scan(tmp_path / "out")
        assert case.holds(tmp_path / "out"), case.reason
        with open_wheel(wheel, unpack_of(wheel)) as intake:
            assert [bool(case.warning) and case.warning in oddity for oddity in intake.oddities] == (
                [True] if case.warning else []
            )
        return
    with pytest.raises(EnvdslError) as caught:
        unpacked(wheel, tmp_path / "out")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == case.code, str(caught.value)
    assert wheel.name in diagnostic.message
    if case.waivable:
        assert "record-mismatch" in (diagnostic.hint or "")
        unpacked(wheel, tmp_path / "waived", record_mismatch=True)
        assert case.holds(tmp_path / "waived"), case.reason
    else:
        with pytest.raises(EnvdslError) as again:
            unpacked(wheel, tmp_path / "waived", record_mismatch=True)
        assert again.value.code == case.code


def test_every_case_names_its_reason_and_where_it_was_reported() -> None:
    """At least 25 of them, each from one public thread (``owner/repository#number``)."""
    assert len({case.reference for case in CASES}) >= 25
    assert len({case.name for case in CASES}) == len(CASES)
    for case in CASES:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+#[0-9]+", case.reference), case.name
        assert case.reason
