"""Build ``vendor/house_style-1.0-py3-none-any.whl``: the same bytes on every machine, since the lock pins its sha256.

So the members have a fixed date, order and mode, and are stored rather than compressed: two versions of zlib may
compress the same text differently. Needs the standard library alone; the format is the wheel specification's
(packaging.python.org, "Binary distribution format").
"""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
NAME, VERSION, TAG = "house_style", "1.0", "py3-none-any"
INFO = f"{NAME}-{VERSION}.dist-info"
METADATA = f"""\
Metadata-Version: 2.1
Name: house-style
Version: {VERSION}
Summary: How our letters look
Requires-Python: >=3.11
Requires-Dist: rich>=13
"""
WHEEL = f"""\
Wheel-Version: 1.0
Generator: build_wheel.py
Root-Is-Purelib: true
Tag: {TAG}
"""


def main() -> None:
    members = {
        f"{NAME}.py": (HERE / "house-style" / f"{NAME}.py").read_bytes(),
        f"{INFO}/METADATA": METADATA.encode(),
        f"{INFO}/WHEEL": WHEEL.encode(),
    }
    record = "".join(f"{path},sha256={_digest(content)},{len(content)}\n" for path, content in members.items())
    members[f"{INFO}/RECORD"] = f"{record}{INFO}/RECORD,,\n".encode()

    wheel = HERE / "vendor" / f"{NAME}-{VERSION}-{TAG}.whl"
    wheel.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_STORED) as archive:
        for path, content in members.items():
            member = zipfile.ZipInfo(path, date_time=(2020, 1, 1, 0, 0, 0))
            member.create_system = 3  # Unix, whatever it is built on
            member.external_attr = 0o100644 << 16
            archive.writestr(member, content)
    print(f"{hashlib.sha256(wheel.read_bytes()).hexdigest()}  {wheel.relative_to(HERE)}")


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    main()
