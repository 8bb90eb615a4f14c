"""Three slides: a title, a chart that PowerPoint can edit, the picture with a note for the speaker (python-pptx)."""

from __future__ import annotations

from pathlib import Path

from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.dml.color import RGBColor
from pptx.enum.chart import XL_CHART_TYPE
from pptx.slide import Slide
from pptx.util import Cm, Pt

from report.rivers import COLOURS, INTRODUCTION, RIVERS, SUBTITLE, TITLE


def write(path: Path, chart: Path) -> None:
    presentation = Presentation()
    presentation.slide_width, presentation.slide_height = Cm(33.87), Cm(19.05)  # 16:9
    presentation.core_properties.title = TITLE
    title, only_title = presentation.slide_layouts[0], presentation.slide_layouts[5]

    slide = presentation.slides.add_slide(title)
    slide.shapes.title.text = TITLE
    slide.placeholders[1].text = SUBTITLE
    _place(slide.shapes.title, top=6, height=3)
    _place(slide.placeholders[1], top=9.5, height=2)

    _basins(presentation.slides.add_slide(only_title))

    slide = presentation.slides.add_slide(only_title)
    _heading(slide, "Lengths")
    picture = slide.shapes.add_picture(str(chart), Cm(5), Cm(3.4), height=Cm(14.5))
    picture.left = (presentation.slide_width - picture.width) // 2
    slide.notes_slide.notes_text_frame.text = INTRODUCTION
    presentation.save(str(path))


def _basins(slide: Slide) -> None:
    _heading(slide, "Drainage basins, 1000 km²")
    data = CategoryChartData()
    data.categories = [river.name for river in RIVERS]
    data.add_series("Basin", [river.basin for river in RIVERS])
    frame = slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, Cm(2), Cm(3.4), Cm(29.87), Cm(14.5), data)
    chart = frame.chart
    chart.has_legend = chart.has_title = False
    chart.value_axis.has_major_gridlines = False
    chart.category_axis.tick_labels.font.size = chart.value_axis.tick_labels.font.size = Pt(14)
    plot = chart.plots[0]
    plot.gap_width = 40
    plot.has_data_labels = True
    for point, river in enumerate(RIVERS):
        fill = plot.series[0].points[point].format.fill
        fill.solid()
        fill.fore_color.rgb = RGBColor.from_string(COLOURS[river.script].removeprefix("#"))


def _heading(slide: Slide, text: str) -> None:
    slide.shapes.title.text = text
    _place(slide.shapes.title, top=0.8, height=2)
    slide.shapes.title.text_frame.paragraphs[0].font.size = Pt(32)


def _place(shape: object, *, top: float, height: float) -> None:
    """The default template is 4:3; its placeholders are set anew across the wide slide."""
    shape.left, shape.top, shape.width, shape.height = Cm(2), Cm(top), Cm(29.87), Cm(height)
