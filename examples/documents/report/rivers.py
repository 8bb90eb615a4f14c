"""The figures: rivers by the name that the people on their banks use, in four scripts. Rounded."""

from __future__ import annotations

from typing import NamedTuple

TITLE = "Rivers by their own names"
SUBTITLE = "Реки · Ποτάμια · 河流"
INTRODUCTION = (
    "A river has the name that people on its banks gave it. These documents write each one in its own script: "
    "Волга and Днепр in Cyrillic, Έβρος and Αλιάκμονας in Greek, 长江 and 黄河 in Chinese."
)
AXIS = "length in km · длина · μήκος · 长度"


class River(NamedTuple):
    name: str
    english: str
    script: str
    length: int  # km
    basin: int  # thousands of square kilometres


RIVERS = (
    River("长江", "Yangtze", "Chinese", 6300, 1808),
    River("黄河", "Yellow River", "Chinese", 5464, 752),
    River("Лена", "Lena", "Cyrillic", 4294, 2490),
    River("Волга", "Volga", "Cyrillic", 3530, 1360),
    River("Donau", "Danube", "Latin", 2850, 801),
    River("Днепр", "Dnieper", "Cyrillic", 2201, 504),
    River("Rhein", "Rhine", "Latin", 1233, 185),
    River("Έβρος", "Evros", "Greek", 480, 53),
    River("Αλιάκμονας", "Haliacmon", "Greek", 297, 9),
)

SCRIPTS = ("Chinese", "Cyrillic", "Greek", "Latin")
COLUMNS = ("River", "In English", "Script", "Length, km", "Basin, 1000 km²")

# One colour a script, the same in every document; told apart by people who see no red and green (Okabe and Ito).
COLOURS = {"Chinese": "#D55E00", "Cyrillic": "#0072B2", "Greek": "#009E73", "Latin": "#7F7F7F"}
