"""Read each document again, and say what is in it: the proof that it was really made."""

from __future__ import annotations

from pathlib import Path

import pdfplumber
import pypdf
from docx import Document
from openpyxl import load_workbook
from PIL import Image
from pptx import Presentation

from report.rivers import RIVERS


def picture(path: Path) -> str:
    with Image.open(path) as image:
        image.verify()
        return f"{image.width} x {image.height} pixels"


def word(path: Path) -> str:
    document = Document(str(path))
    headings = [paragraph for paragraph in document.paragraphs if paragraph.style.name.startswith("Heading")]
    (table,) = document.tables
    _expect_names([row.cells[0].text for row in table.rows[1:]], path)
    return f"{len(headings)} headings, a table of {len(RIVERS)} rivers, {len(document.inline_shapes)} picture"


def workbook(path: Path) -> str:
    sheet = load_workbook(path).active
    _expect_names([sheet.cell(row, 1).value for row in range(2, 2 + len(RIVERS))], path)
    formulas = [cell for row in sheet.iter_rows() for cell in row if cell.data_type == "f"]
    return f"sheet {sheet.title!r}, {len(formulas)} formulas, {len(sheet._charts)} chart"


def slides(path: Path) -> str:
    presentation = Presentation(str(path))
    shapes = [shape for slide in presentation.slides for shape in slide.shapes]
    (chart,) = (shape.chart for shape in shapes if shape.has_chart)
    _expect_names(list(chart.plots[0].categories), path)
    pictures = sum(hasattr(shape, "image") for shape in shapes)
    return f"{len(presentation.slides)} slides, 1 chart, {pictures} picture"


def pdf(path: Path) -> str:
    with pdfplumber.open(path) as document:
        pages = len(document.pages)
        (table,) = document.pages[0].extract_tables()
    _expect_names([row[0] for row in table[1:]], path)
    embedded = set()
    for page in pypdf.PdfReader(path).pages:
        for font in page["/Resources"]["/Font"].values():
            descriptor = font.get_object().get("/FontDescriptor")
            if descriptor and "/FontFile2" in descriptor:  # a TrueType font, inside the file
                embedded.add(font["/BaseFont"].rpartition("+")[2])
    return f"{pages} page, a table of {len(table) - 1} rivers, fonts inside: {', '.join(sorted(embedded))}"


def _expect_names(names: list[str | None], path: Path) -> None:
    expected = [river.name for river in RIVERS]
    if names != expected:
        raise ValueError(f"{path.name} names {names}, not {expected}")
