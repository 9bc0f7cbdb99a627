"""Pages written: where a page stands, the headers it is sent with, and the files that it loads."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from http import HTTPStatus
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote, urlencode
from uuid import UUID

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from app.api.report import styles, templates

# Nothing comes from elsewhere, and nothing that stands in a page is run. Addresses of forms are the service's own. The
# referrer is what tells a form of ours from one of another page, where a browser sends nothing better.
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
    "Vary": "Cookie",
}
# The key that was signed in with, and the project that one of the scope `admin` named.
KEY_COOKIE: Final = "prevail_key"
PROJECT_COOKIE: Final = "prevail_project"
_ASSETS: Final = {"style.css": "text/css", "ui.js": "text/javascript"}


@dataclass(frozen=True, slots=True)
class Web:
    """Where a page stands, for its links: they are relative, so that they work behind a prefix too.

    Attributes:
        up: From the page to the root of the service.
        here: The page itself, from the root.
        current: The entry of the navigation that is marked.
        signed_in: A key came in a cookie.
    """

    up: str
    here: str
    current: str
    signed_in: bool
    version: str

    @classmethod
    def of(cls, request: Request, current: str = "") -> "Web":
        """Of the page that a request asks for."""
        path = request.scope.get("raw_path", b"").decode("latin-1").partition("?")[0] or quote(request.scope["path"])
        asked = request.scope["query_string"].decode("latin-1")
        return cls(
            up="../" * (path.count("/") - 1),
            here=path.removeprefix("/") + (f"?{asked}" if asked else ""),
            current=current,
            signed_in=KEY_COOKIE in request.cookies,
            version=request.app.version,
        )

    def at(self, path: str, **query: Any) -> str:
        """A link to an address of the service, its parts quoted; parameters that are None are left out."""
        given = {name: value for name, value in query.items() if value not in (None, "", [], ())}
        return self.up + quote(path, safe="/.") + (f"?{urlencode(given, doseq=True)}" if given else "")

    def asset(self, name: str) -> str:
        """A link to a file, another one whenever the file is."""
        return self.at(f"ui/{name}", v=_digest(name))


def render(
    request: Request, template: str, current: str, status: HTTPStatus = HTTPStatus.OK, **values: Any
) -> Response:
    """A page as a response."""
    return respond(write(template, Web.of(request, current), **values), status)


def respond(page: bytes, status: HTTPStatus = HTTPStatus.OK, headers: Mapping[str, str] | None = None) -> Response:
    """Return a page as a response."""
    return Response(page, status, {**HEADERS, **(headers or {})}, media_type="text/html")


def write(template: str, web: Web, **values: Any) -> bytes:
    """A page; what it says is escaped."""
    return (
        templates("app.api.ui")
        .get_template(template)
        .render(layout="frame.html", web=web, theme=None, **{"pictures": (), "drawn": True, **values})
        .encode()
    )


def attached(report: Response, identifier: UUID) -> Response:
    """A report as a file to keep."""
    report.headers["Content-Disposition"] = f'attachment; filename="prevail-{identifier}.html"'
    report.headers["Vary"] = "Cookie"
    return report


@cache
def _asset(name: str) -> bytes:
    own = files(__package__).joinpath("static", name).read_text()
    return (str(styles()) + own if name == "style.css" else own).encode()


@cache
def _digest(name: str) -> str:
    return blake2b(_asset(name), digest_size=6).hexdigest()


def install(app: FastAPI) -> None:
    """Serve the files that pages load. There is nothing in them that a key would be needed for."""

    async def asset(request: Request) -> Response:
        name = request.url.path.rpartition("/")[2]
        kept = {**HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
        return Response(_asset(name), media_type=_ASSETS[name], headers=kept)

    for name in _ASSETS:
        app.add_route(f"/ui/{name}", asset, include_in_schema=False)
