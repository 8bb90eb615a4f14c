"""Bytes as an open file, for programs that read from a descriptor."""

from __future__ import annotations

import os
from typing import BinaryIO


def memory_file(name: str, data: bytes) -> BinaryIO:
    """An anonymous file in memory that holds ``data``, at its start; ``name`` is for ``/proc`` alone."""
    file = os.fdopen(os.memfd_create(name), "w+b")
    file.write(data)
    file.seek(0)  # which writes out what is buffered
    return file
