"""Requests that their headers alone refuse: of pages of other sites, under names of other services, without a place.

A browser sends what any page asks of it, with the address of this machine and, under `/ui`, with the cookie. It also
says which page asked (Fetch Metadata, `Origin`) and under which name it knows the service (`Host`), which no page can
change.
"""

import re
from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.problems import Problem, not_found

_HOST: Final = re.compile(r"(\[[0-9a-f:.]+\]|[\w.-]*)(:\d{0,5})?", re.ASCII)
_LOOPBACK: Final = re.compile(r"(.+\.)?localhost|127(\.\d{1,3}){3}|::1")
_LENGTH: Final = re.compile(r"[0-9]{0,18}")
# They say nothing and do nothing; whoever probes may know the service by an address that it does not know itself.
_PROBES: Final = frozenset({"/healthz", "/readyz"})
# Names of models and of data sets may have a slash, so that an encoded one is part of the name.
_NAMED: Final = (b"/v1/models/", b"/v1/datasets/")
# What is left of the request is not read, so the connection cannot be used again.
_CLOSE: Final = {"Connection": "close"}


class HeaderChecks:
    """Looks at each request once, before anything else does."""

    def __init__(
        self, *, hosts: Iterable[str], origins: Iterable[str], needs_key: Callable[[], Awaitable[bool]]
    ) -> None:
        """Take the names that the service answers to, `*.` for all below a name, and origins whose pages may ask.

        Without names any name is right where a key is needed, and elsewhere those of this machine alone.
        """
        self._hosts, self._origins, self._needs_key = frozenset(hosts), frozenset(origins), needs_key

    async def refusal(self, scope: Scope) -> Problem | None:
        """The problem of a request; None when there is none."""
        headers = Headers(scope=scope)
        given = headers.getlist("host")
        host = _HOST.fullmatch("".join(given).lower())
        if host is None or len(given) > 1 or (not given and scope["http_version"] == "1.1"):
            return _bad("expected one header Host, with a name or an address")
        if _LENGTH.fullmatch(headers.get("content-length", "")) is None:
            return _bad("expected a Content-Length of at most 18 digits")
        path: bytes = scope.get("raw_path") or b""
        if b"%2f" in path.lower() and not path.startswith(_NAMED):
            return not_found()
        if scope["method"] not in ("GET", "HEAD", "OPTIONS") and self._is_foreign(headers):
            detail = "a browser sent this for a page of another site: PREVAIL_CORS_ORIGINS names those that may ask"
            return Problem(status=HTTPStatus.FORBIDDEN, code="cross_site", detail=detail, headers=_CLOSE)
        name = host[1].strip("[]").rstrip(".")
        if not given or scope["path"] in _PROBES or self._is_own(name, scope):
            return None
        if self._hosts or not await self._needs_key():
            detail = f"the service does not answer to the name {name[:100]!r}: PREVAIL_ALLOWED_HOSTS names those it has"
            return Problem(status=HTTPStatus.FORBIDDEN, code="unknown_host", detail=detail, headers=_CLOSE)
        return None

    def _is_foreign(self, headers: Headers) -> bool:
        """Did a page ask for it that is none of the service's, and none that the operator has named?"""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if "*" in self._origins or origin in self._origins:
            return False
        if site is not None:
            return site not in ("same-origin", "none")
        # Only the scheme may differ: something in front speaks TLS.
        return origin is not None and origin.partition("://")[2] != headers.get("host", "").lower()

    def _is_own(self, name: str, scope: Scope) -> bool:
        """Is it of this machine, the address that the connection was made to, or one that the operator has named?"""
        address = (scope.get("server") or ("",))[0].removeprefix("::ffff:")
        if name in self._hosts or name == address or _LOOPBACK.fullmatch(name):
            return True
        parents = [f"*{name[place:]}" for place, sign in enumerate(name) if sign == "."]
        return "*" in self._hosts or not self._hosts.isdisjoint(parents)


class CrossOrigin(CORSMiddleware):
    """Answers preflights and lets pages of other origins read; a preflight that its headers refuse goes on to be so."""

    def __init__(self, app: ASGIApp, /, *, checks: HeaderChecks, **options: Any) -> None:
        super().__init__(app, **options)
        self._checks = checks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] == "http" and scope["method"] == "OPTIONS" and await self._checks.refusal(scope) is not None:
            await self.app(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def _bad(detail: str) -> Problem:
    return Problem(status=HTTPStatus.BAD_REQUEST, code="bad_request", detail=detail, headers=_CLOSE)
