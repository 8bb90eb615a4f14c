"""Wheels that are sent: as the whole body with ``?filename=``, or as the field ``file`` of a form."""

from __future__ import annotations

import tempfile
from functools import partial
from typing import IO, Any

from starlette.datastructures import UploadFile
from starlette.requests import Request

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.policy.encoding import to_json
from envdsl.web.api.endpoint import Call
from envdsl.web.threads import in_thread

_IN_MEMORY = 1 << 20  # bytes; the rest goes to a file


async def for_session(call: Call, request: Request) -> dict[str, Any]:
    """A wheel that whoever may ask for packages sends along."""
    return await _receive(call, request, call.session)


async def check(call: Call, request: Request) -> dict[str, Any]:
    """A wheel that somebody wants to have looked at."""
    return await _receive(call, request)


async def _receive(call: Call, request: Request, session: str | None = None) -> dict[str, Any]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        async with request.form(max_files=1, max_fields=5) as form:
            sent = form.get("file")
            if not isinstance(sent, UploadFile) or not sent.filename:
                raise _nothing("the form has no file in its field `file`")
            return await _take_in(call, request, sent.filename, sent.file, session)
    filename = call.query.get("filename")
    if filename is None:
        raise _nothing("`?filename=` says what the wheel in the body is called")
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as file:
        async for chunk in request.stream():
            file.write(chunk)
        file.seek(0)
        return await _take_in(call, request, filename, file, session)


async def _take_in(call: Call, request: Request, filename: str, file: IO[bytes], session: str | None) -> dict[str, Any]:
    from envdsl.app.control import uploads

    limit = request.app.state.settings.max_upload
    upload, report = await in_thread(
        request, partial(uploads.receive, call.plane, filename, file, limit=limit, session=session), slow=True
    )
    return {"upload": to_json(upload), "report": report.to_json()}


def _nothing(message: str) -> EnvdslError:
    return EnvdslError.of("web-invalid-upload", message, exit_status=ExitStatus.USAGE)
