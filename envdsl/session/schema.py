"""``python -m envdsl.session.schema > docs/manifest.schema.json`` writes the published schema."""

from __future__ import annotations

import json
import sys

from envdsl.session.manifest import manifest_schema

if __name__ == "__main__":
    json.dump(manifest_schema(), sys.stdout, indent=2)
    sys.stdout.write("\n")
