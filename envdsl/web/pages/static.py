"""Style, script and icon: files of the package, which change with it alone."""

from __future__ import annotations

from importlib import resources

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope


class PackageFiles(StaticFiles):
    """The files of ``envdsl/web/static``. A browser keeps them for a while, then asks whether they changed."""

    def __init__(self) -> None:
        super().__init__(directory=str(resources.files("envdsl.web").joinpath("static")))

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "public, max-age=300"
        return response
