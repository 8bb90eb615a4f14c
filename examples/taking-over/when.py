"""One of the scripts that requirements.txt is for."""

import humanize
from dateutil.parser import parse

start, end = parse("1 March 2024"), parse("March 9th 2026")
print(f"{start:%d %B %Y} to {end:%d %B %Y}: {humanize.precisedelta(end - start, format='%d')}")
