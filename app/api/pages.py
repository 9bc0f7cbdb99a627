"""The page that shows the document of the API: Swagger UI, of a fixed version and served by the service itself."""

from functools import cache
from importlib.resources import files
from typing import Final

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

# Nothing comes from elsewhere. Swagger UI sets styles on its elements.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
# Addresses are relative, so that the page works behind a prefix too.
_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Prevail</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<noscript>This page needs JavaScript; the document itself is <a href="openapi.json">openapi.json</a>.</noscript>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
"""
# Without the validator, which asks a host on the internet.
_START: Final = """SwaggerUIBundle({
  url: "openapi.json", dom_id: "#swagger-ui", deepLinking: true, validatorUrl: null,
  layout: "BaseLayout", presets: [SwaggerUIBundle.presets.apis]
});
"""
_KINDS: Final = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript"}


@cache
def _asset(name: str) -> bytes:
    return files("fastapi_offline").joinpath("static", name).read_bytes()


def install(app: FastAPI) -> None:
    """Serve the page and what it loads."""

    async def page(_: Request) -> Response:
        return Response(_PAGE, media_type="text/html", headers=_HEADERS)

    async def start(_: Request) -> Response:
        return Response(_START, media_type="text/javascript", headers=_HEADERS)

    async def asset(request: Request) -> Response:
        name = request.url.path.rpartition("/")[2]
        kept = {**_HEADERS, "Cache-Control": "public, max-age=86400"}
        return Response(_asset(name), media_type=_KINDS[name], headers=kept)

    app.add_route("/docs", page, include_in_schema=False)
    app.add_route("/docs/start.js", start, include_in_schema=False)
    for name in _KINDS:
        app.add_route(f"/docs/{name}", asset, include_in_schema=False)
