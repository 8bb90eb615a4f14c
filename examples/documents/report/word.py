"""A Word document with headings, a table, a picture and a page number (python-docx)."""

from __future__ import annotations

from pathlib import Path

from docx import Document
from docx.document import Document as DocumentType
from docx.enum.table import WD_TABLE_ALIGNMENT
from docx.enum.text import WD_ALIGN_PARAGRAPH
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.shared import Cm
from docx.text.paragraph import Paragraph

from report import fonts
from report.rivers import COLUMNS, INTRODUCTION, RIVERS, SUBTITLE, TITLE

WIDTHS = (3.6, 3.4, 2.6, 2.7, 3.2)  # cm


def write(path: Path, chart: Path) -> None:
    document = Document()
    document.core_properties.title = TITLE
    document.core_properties.author = "envdsl"
    document.sections[0].page_width, document.sections[0].page_height = Cm(21), Cm(29.7)
    _use_fonts(document)
    document.add_heading(TITLE, level=0)
    document.add_paragraph(SUBTITLE, style="Subtitle")

    document.add_heading("What this is", level=1)
    document.add_paragraph(INTRODUCTION)

    document.add_heading("The figures", level=1)
    _table(document)

    document.add_heading("The chart", level=1)
    picture = document.add_picture(str(chart), width=Cm(14))
    # What a screen reader says instead of the picture.
    picture._inline.docPr.set("descr", "Bar chart of the lengths of nine rivers")
    document.paragraphs[-1].paragraph_format.keep_with_next = True
    document.add_paragraph("Figure 1. Lengths in kilometres.", style="Caption")

    footer = document.sections[0].footer.paragraphs[0]
    footer.alignment = WD_ALIGN_PARAGRAPH.CENTER
    _page_number(footer)
    document.save(str(path))


def _use_fonts(document: DocumentType) -> None:
    """Word chooses a font for each script: `eastAsia` is the one for Chinese, and python-docx has no call for it."""
    for name in ("Normal", "Title", "Subtitle", "Heading 1"):
        style = document.styles[name]
        style.font.name = fonts.WESTERN
        attributes = style.element.get_or_add_rPr().get_or_add_rFonts()
        for theme in ("asciiTheme", "hAnsiTheme", "eastAsiaTheme", "cstheme"):  # a theme font would go first
            attributes.attrib.pop(qn(f"w:{theme}"), None)
        attributes.set(qn("w:eastAsia"), fonts.CHINESE)


def _table(document: DocumentType) -> None:
    table = document.add_table(rows=1, cols=len(COLUMNS), style="Light Grid Accent 1")
    table.alignment = WD_TABLE_ALIGNMENT.CENTER
    table.autofit = False
    for cell, heading in zip(table.rows[0].cells, COLUMNS, strict=True):
        cell.text = heading
    for river in RIVERS:
        cells = table.add_row().cells
        for column, value in enumerate(river):
            cells[column].text = f"{value:,}" if isinstance(value, int) else value
            if isinstance(value, int):
                cells[column].paragraphs[0].alignment = WD_ALIGN_PARAGRAPH.RIGHT
    for column, width in zip(table.columns, WIDTHS, strict=True):
        column.width = Cm(width)
        for cell in column.cells:
            cell.width = Cm(width)
    # The heading row again on each page that the table reaches.
    table.rows[0]._tr.get_or_add_trPr().append(OxmlElement("w:tblHeader"))


def _page_number(paragraph: Paragraph) -> None:
    field = OxmlElement("w:fldSimple")
    field.set(qn("w:instr"), "PAGE")
    paragraph._p.append(field)
