"""A PDF with a table, the chart, and its fonts inside it (reportlab)."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

from reportlab.lib import colors
from reportlab.lib.enums import TA_RIGHT
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import cm
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Image, Paragraph, SimpleDocTemplate, Spacer, Table, TableStyle

from report import fonts
from report.rivers import COLUMNS, INTRODUCTION, RIVERS, SUBTITLE, TITLE

BOLD = f"{fonts.WESTERN} Bold"
TEXT = ParagraphStyle("text", fontName=fonts.WESTERN, fontSize=10, leading=15)
HEADING = ParagraphStyle("heading", TEXT, fontName=BOLD, fontSize=20, leading=26)
NUMBER = ParagraphStyle("number", TEXT, alignment=TA_RIGHT)
HEAD = ParagraphStyle("head", TEXT, fontName=BOLD, textColor=colors.white)
MUTED = ParagraphStyle("muted", TEXT, textColor=colors.HexColor("#555555"), fontSize=13, spaceAfter=12)


def write(path: Path, chart: Path) -> None:
    pdfmetrics.registerFont(TTFont(fonts.WESTERN, str(fonts.western_file())))
    pdfmetrics.registerFont(TTFont(BOLD, str(fonts.western_file(bold=True))))
    pdfmetrics.registerFont(TTFont(fonts.CHINESE, str(fonts.chinese_file())))

    document = SimpleDocTemplate(
        str(path), pagesize=A4, title=TITLE, author="envdsl", subject=SUBTITLE, lang="en", margin=2 * cm
    )
    picture = Image(str(chart))
    picture.drawWidth, picture.drawHeight = document.width, document.width * picture.imageHeight / picture.imageWidth
    story = [
        Paragraph(TITLE, HEADING),
        _paragraph(SUBTITLE, MUTED),
        _paragraph(INTRODUCTION, TEXT),
        Spacer(0, 0.5 * cm),
        _table(),
        Spacer(0, 0.7 * cm),
        picture,
    ]
    document.build(story, onFirstPage=_page_number, onLaterPages=_page_number)


def _paragraph(text: str, style: ParagraphStyle) -> Paragraph:
    """reportlab draws a letter that the font lacks as a box, so each stretch of text names the font that has it."""
    markup = "".join(
        escape(stretch) if font == fonts.WESTERN else f'<font name="{font}">{escape(stretch)}</font>'
        for font, stretch in fonts.runs(text)
    )
    return Paragraph(markup, style)


def _table() -> Table:
    rows = [
        [_paragraph(f"{value:,}", NUMBER) if isinstance(value, int) else _paragraph(value, TEXT) for value in river]
        for river in RIVERS
    ]
    table = Table([[Paragraph(column, HEAD) for column in COLUMNS], *rows], repeatRows=1)
    table.setStyle(
        TableStyle(
            [
                ("GRID", (0, 0), (-1, -1), 0.5, colors.HexColor("#BBBBBB")),
                ("BACKGROUND", (0, 0), (-1, 0), colors.HexColor("#0072B2")),
                ("ROWBACKGROUNDS", (0, 1), (-1, -1), [colors.white, colors.HexColor("#F2F6FA")]),
                ("VALIGN", (0, 0), (-1, -1), "MIDDLE"),
            ]
        )
    )
    return table


def _page_number(canvas: Canvas, document: SimpleDocTemplate) -> None:
    canvas.setFont(fonts.WESTERN, 9)
    canvas.drawCentredString(A4[0] / 2, 1.2 * cm, str(document.page))
