"""Two fonts that the layer brings, so that nothing depends on what the host has installed.

DejaVu Sans comes with matplotlib and covers Latin, Greek and Cyrillic; Noto Sans SC comes with the wheel ``zhplot``
and covers Chinese. No one font has all the letters (Noto Sans SC lacks accented Greek), so text is split into runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.metadata import distribution
from itertools import groupby
from pathlib import Path

import matplotlib
from fontTools.ttLib import TTFont

WESTERN = "DejaVu Sans"
CHINESE = "Noto Sans SC"


def western_file(*, bold: bool = False) -> Path:
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return Path(matplotlib.get_data_path(), "fonts", "ttf", name)


def chinese_file() -> Path:
    """The font is all that is wanted of this wheel: it is found by the wheel's metadata, and no code of it is run."""
    return Path(str(distribution("zhplot").locate_file("zhplot/fonts/NotoSansSC-Regular.ttf")))


def runs(text: str) -> Iterator[tuple[str, str]]:
    """``text`` as (font, stretch of text): the western font where it has the letter, else the Chinese one."""
    for font, letters in groupby(text, key=_font):
        yield font, "".join(letters)


def _font(letter: str) -> str:
    if ord(letter) in _letters(western_file()):
        return WESTERN
    if ord(letter) in _letters(chinese_file()):
        return CHINESE
    raise LookupError(f"no font of this layer has {letter!r} (U+{ord(letter):04X})")


@cache
def _letters(file: Path) -> frozenset[int]:
    with TTFont(file, lazy=True) as font:
        return frozenset(font.getBestCmap())
