"""The structure check itself: a sound document passes, and each fault is found."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.examples.ooxml import CONTENT_TYPES, MAIN_TYPE, faults

_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_RELS = "http://schemas.openxmlformats.org/package/2006/relationships"
_WML = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_STYLES_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.styles+xml"

SOUND = {
    CONTENT_TYPES: f"""<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Default Extension="png" ContentType="image/png"/>
<Override PartName="/word/document.xml" ContentType="{MAIN_TYPE}"/>
<Override PartName="/word/styles.xml" ContentType="{_STYLES_TYPE}"/>
</Types>""",
    "_rels/.rels": f"""<Relationships xmlns="{_RELS}">
<Relationship Id="rId1" Type="{_R}/officeDocument" Target="word/document.xml"/>
</Relationships>""",
    "word/_rels/document.xml.rels": f"""<Relationships xmlns="{_RELS}">
<Relationship Id="rId1" Type="{_R}/styles" Target="styles.xml"/>
<Relationship Id="rId2" Type="{_R}/image" Target="media/dot.png"/>
<Relationship Id="rId3" Type="{_R}/hyperlink" Target="https://example.org/" TargetMode="External"/>
</Relationships>""",
    "word/styles.xml": f'<w:styles xmlns:w="{_WML}"><w:style w:styleId="Title"/></w:styles>',
    "word/document.xml": f"""<w:document xmlns:w="{_WML}" xmlns:r="{_R}"><w:body>
<w:p><w:pPr><w:pStyle w:val="Title"/><w:jc w:val="center"/></w:pPr><w:r><w:drawing r:embed="rId2"/></w:r></w:p>
<w:tbl><w:tblPr/><w:tblGrid><w:gridCol/></w:tblGrid><w:tr><w:tc><w:p/></w:tc></w:tr></w:tbl>
<w:sectPr/></w:body></w:document>""",
    "word/media/dot.png": "\x89PNG\r\n\x1a\n",
}


def _write(path: Path, members: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content.encode("latin-1"))
    return path


def test_a_sound_document_has_no_faults(tmp_path: Path) -> None:
    assert faults(_write(tmp_path / "sound.docx", SOUND)) == []


def _without(name: str) -> Callable[[dict[str, str]], object]:
    return lambda members: members.pop(name)


def _replace(name: str, old: str, new: str) -> Callable[[dict[str, str]], object]:
    assert old in SOUND[name]
    return lambda members: members.update({name: members[name].replace(old, new)})


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (_without(CONTENT_TYPES), f"{CONTENT_TYPES} is missing"),
        (_without("word/media/dot.png"), "rId2 of word/document.xml leads to word/media/dot.png, which is not there"),
        (_without("word/styles.xml"), f"{CONTENT_TYPES} names /word/styles.xml, which is not there"),
        (_without("_rels/.rels"), "the package has 0 main documents"),
        (lambda members: members.update({"word/lost.png": SOUND["word/media/dot.png"]}), "leads to word/lost.png"),
        (lambda members: members.update({"word/media/dot.png": "GIF89a"}), "is declared as image/png and is none"),
        (_replace(CONTENT_TYPES, 'Extension="png"', 'Extension="gif"'), "word/media/dot.png has no content type"),
        (_replace(CONTENT_TYPES, MAIN_TYPE, "text/xml"), "word/document.xml has the content type 'text/xml'"),
        (_replace("word/_rels/document.xml.rels", '"rId2"', '"rId1"'), "word/_rels/document.xml.rels has rId1 twice"),
        (_replace("word/document.xml", "</w:body>", ""), "word/document.xml is not well-formed"),
        (_replace("word/document.xml", "w:body", "w:story"), "is no w:document with a w:body"),
        (_replace("word/document.xml", "<w:sectPr/>", ""), "w:body does not end with w:sectPr"),
        (_replace("word/document.xml", '"rId2"', '"rId9"'), "word/document.xml refers to rId9"),
        (_replace("word/document.xml", '"Title"', '"Titel"'), "style 'Titel' is used and not defined"),
        (_replace("word/document.xml", "<w:tc><w:p/>", "<w:tc>"), "a table cell does not end with a paragraph"),
        (
            _replace("word/document.xml", "<w:gridCol/>", "<w:gridCol/>" * 2),
            "has 1 columns, its grid 2",
        ),
        (_replace("word/document.xml", "<w:pPr>", '<w:pPr><w:jc w:val="left"/>'), "children of w:pPr are out of order"),
    ],
)
def test_a_fault_is_found(tmp_path: Path, damage: Callable[[dict[str, str]], object], fault: str) -> None:
    members = dict(SOUND)
    damage(members)
    found = faults(_write(tmp_path / "damaged.docx", members))
    assert any(fault in sentence for sentence in found), found


def test_what_is_no_zip_file_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "text.docx").write_text("text")
    assert faults(tmp_path / "text.docx")[0].startswith("not a ZIP file")
