"""The document job on the curated layer `office`: made in a sandbox, then looked at from outside."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.examples.conftest import ROOT
from tests.examples.ooxml import faults


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """A copy of the example inside a copy of the project whose layers it uses."""
    project = tmp_path / "project"
    shutil.copytree(ROOT / "layers.d", project / "layers.d")
    shutil.copy(ROOT / "envdsl.toml", project)
    ignore = shutil.ignore_patterns("out", "__pycache__")
    return Path(shutil.copytree(ROOT / "examples" / "documents", project / "examples" / "documents", ignore=ignore))


@pytest.mark.network
def test_documents(documents: Path, run_readme: Callable[[Path], None]) -> None:
    """Issue 2.16: a document job (docx, xlsx, pptx, a chart with non-Latin text, a PDF) whose docx passes an OOXML
    structure check."""
    run_readme(documents)
    made = {path.name: path.read_bytes()[:4] for path in (documents / "out").iterdir()}
    assert made == {
        "index.html": b"<!do",
        "rivers.docx": b"PK\x03\x04",
        "rivers.pdf": b"%PDF",
        "rivers.png": b"\x89PNG",
        "rivers.pptx": b"PK\x03\x04",
        "rivers.xlsx": b"PK\x03\x04",
    }
    assert faults(documents / "out" / "rivers.docx") == []
