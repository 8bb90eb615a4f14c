"""Says which urllib3 this session has, and of which base it stands on."""

from __future__ import annotations

from pathlib import Path

import certifi
import urllib3

layer = Path(urllib3.__file__).parents[2].name
base = Path(certifi.__file__).parents[2].name
print(f"urllib3 {urllib3.__version__} from {layer}, over {base}")
