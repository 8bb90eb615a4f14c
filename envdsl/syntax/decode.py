"""Bytes of a file to text."""

from __future__ import annotations

from envdsl.errors import EnvdslError
from envdsl.model.span import Source, Span

SIZE_LIMIT = 1024 * 1024
"""Bytes in a layer file; characters in any text that is parsed."""

_BYTE_ORDER_MARKS = ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"))


def decode(path: str, data: bytes) -> Source:
    """The text of a layer file, without the byte order mark that it may begin with.

    Raises EnvdslError, with the place, for a file that is too large, is not UTF-8, or holds a NUL.
    """
    if len(data) > SIZE_LIMIT:
        raise too_large(Source(path, ""), len(data))
    try:
        text = data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        source = Source(path, data.decode("utf-8", errors="replace"))
        start = len(data[: error.start].decode("utf-8"))
        encoding = next((name for mark, name in _BYTE_ORDER_MARKS if data.startswith(mark)), None)
        raise EnvdslError.of(
            "syntax-not-utf8",
            f"the file is {encoding}, not UTF-8"
            if encoding
            else f"the file is not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}",
            span=Span(source, start, start + 1),
            hint="save the file as UTF-8",
        ) from None
    source = Source(path, text)
    nul = text.find("\0")
    if nul >= 0:
        raise EnvdslError.of(
            "syntax-nul",
            "the file holds a NUL character: it is not a text file",
            span=Span(source, nul, nul + 1),
            hint="remove the character, or check that this is the right file",
        )
    return source


def too_large(source: Source, size: int) -> EnvdslError:
    return EnvdslError.of(
        "syntax-too-large",
        f"the text is too large: {size:,} bytes, and the limit is {SIZE_LIMIT:,}",
        span=Span(source, 0, 0),
        hint="split it into several files; long lists can be read with `readLines`",
    )
