"""A workbook with formulas and a chart of its own (openpyxl)."""

from __future__ import annotations

from pathlib import Path

from openpyxl import Workbook
from openpyxl.chart import BarChart, Reference
from openpyxl.styles import Alignment, Font, PatternFill
from openpyxl.worksheet.properties import PageSetupProperties
from openpyxl.worksheet.worksheet import Worksheet

from report.rivers import AXIS, COLUMNS, RIVERS, SUBTITLE, TITLE

FIRST, LAST = 2, 1 + len(RIVERS)  # rows of the sheet
DENSITY = "Basin per km, km²"


def write(path: Path) -> None:
    workbook = Workbook()
    workbook.properties.title = TITLE
    sheet = workbook.active
    sheet.title = "河流 Реки"
    _figures(sheet)
    _totals(sheet)
    _chart(sheet)
    workbook.save(path)


def _figures(sheet: Worksheet) -> None:
    sheet.append([*COLUMNS, DENSITY])
    for row, river in enumerate(RIVERS, FIRST):
        sheet.append([*river, f"=E{row}*1000/D{row}"])
    for cell in sheet[1]:
        cell.font = Font(bold=True, color="FFFFFF")
        cell.fill = PatternFill("solid", fgColor="0072B2")
        cell.alignment = Alignment(horizontal="center", vertical="center", wrap_text=True)
    sheet.row_dimensions[1].height = 32
    for column, width in zip("ABCDEF", (16, 16, 12, 12, 12, 14), strict=True):
        sheet.column_dimensions[column].width = width
    sheet.freeze_panes = "A2"
    sheet.page_setup.orientation = "landscape"
    sheet.page_setup.fitToHeight = 0
    sheet.sheet_properties.pageSetUpPr = PageSetupProperties(fitToPage=True)
    sheet.auto_filter.ref = f"A1:F{LAST}"


def _totals(sheet: Worksheet) -> None:
    for row, (label, function) in enumerate((("Together", "SUM"), ("On average", "AVERAGE")), LAST + 2):
        sheet.cell(row, 1, label)
        for column in "DE":
            sheet[f"{column}{row}"] = f"={function}({column}{FIRST}:{column}{LAST})"
        for cell in sheet[row]:
            cell.font = Font(bold=True)
    sheet.cell(LAST + 4, 1, "Longest")
    sheet.cell(LAST + 4, 4, f"=INDEX(A{FIRST}:A{LAST},MATCH(MAX(D{FIRST}:D{LAST}),D{FIRST}:D{LAST},0))")
    for column in "DEF":
        for row in range(FIRST, LAST + 4):
            sheet[f"{column}{row}"].number_format = "#,##0"


def _chart(sheet: Worksheet) -> None:
    chart = BarChart()
    chart.type = "bar"
    chart.title = SUBTITLE
    chart.y_axis.title = AXIS
    chart.add_data(Reference(sheet, min_col=4, min_row=1, max_row=LAST), titles_from_data=True)
    chart.set_categories(Reference(sheet, min_col=1, min_row=FIRST, max_row=LAST))
    chart.x_axis.scaling.orientation = "maxMin"  # the first river on top …
    chart.y_axis.crosses = "max"  # … and the scale below all the same
    chart.x_axis.delete = chart.y_axis.delete = False
    chart.legend = None
    chart.gapWidth = 40
    chart.width, chart.height = 20, 11  # cm
    sheet.add_chart(chart, f"H{FIRST}")
