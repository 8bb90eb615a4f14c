"""A bar chart with labels in four scripts (matplotlib)."""

from __future__ import annotations

import warnings
from pathlib import Path

from matplotlib import font_manager
from matplotlib import pyplot as plt

from report import fonts
from report.rivers import AXIS, COLOURS, RIVERS, SCRIPTS, SUBTITLE, TITLE


def draw(path: Path) -> None:
    font_manager.fontManager.addfont(fonts.chinese_file())
    # A list of families is a fallback for each letter, not for each text.
    style = {"font.family": [fonts.WESTERN, fonts.CHINESE], "font.size": 12}
    with plt.rc_context(style), warnings.catch_warnings():
        warnings.simplefilter("error")  # a letter that no font has would be drawn as a box, and only warned about
        figure, axes = plt.subplots(figsize=(10, 5.6), layout="constrained")
        for script in SCRIPTS:
            rows = [(row, river.length) for row, river in enumerate(RIVERS) if river.script == script]
            axes.barh(*zip(*rows, strict=True), color=COLOURS[script], label=script)
        axes.set_yticks(range(len(RIVERS)), [f"{river.name}  ({river.english})" for river in RIVERS])
        for row, river in enumerate(RIVERS):
            axes.annotate(
                f"{river.length:,}", (river.length, row), (5, 0), textcoords="offset points", va="center_baseline"
            )
        axes.invert_yaxis()
        axes.margins(x=0.09)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_xlabel(AXIS)
        axes.set_title(f"{TITLE}\n{SUBTITLE}", loc="left", fontsize=16)
        axes.legend(title="script", alignment="left", frameon=False, loc="lower right")
        figure.savefig(path, dpi=160)
        plt.close(figure)
