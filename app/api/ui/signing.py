"""Signing in with a key, which a cookie keeps until the browser is closed, and out again."""

import re
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs, urlsplit

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.api.deps import let_pass_as
from app.api.problems import REFUSALS, Problem, refusal_of
from app.api.ui.routing import NOT_GOOD, refused
from app.api.ui.writing import KEY_COOKIE, PROJECT_COOKIE, Web, respond, write
from app.domain.errors import Unauthenticated
from app.domain.operations.access import Scope

_LONGEST_FORM: Final = 8192
# A page of ours, from the root: no other host, nothing that climbs.
_PAGE: Final = re.compile(r"ui(?:[/?](?:(?!\.\.)[A-Za-z0-9/_.~%?&=@:+,*()!'-])*)?")


async def sign_in(request: Request) -> Response:
    """Take a key from the form, and keep it in a cookie when it is good."""
    given = await _form(request)
    if given is None:
        return _refused_form(request)
    key, project = given.get("key", "").strip(), given.get("project", "").strip() or None
    after = given.get("next", "")
    try:
        await let_pass_as(request, Scope.READ, f"Bearer {key}", project)
    except Unauthenticated as error:
        page = {"title": "Sign in", "reason": NOT_GOOD, "next": after}
        headers = refusal_of(error).headers
        return respond(write("sign_in.html", Web.of(request), page=page), HTTPStatus.UNAUTHORIZED, headers)
    except REFUSALS as error:
        return refused(request, refusal_of(error))
    answer = RedirectResponse(f"../{after}" if _PAGE.fullmatch(after) else "../ui", HTTPStatus.SEE_OTHER)
    _keep(request, answer, KEY_COOKIE, key)
    if project is None:
        _drop(answer, PROJECT_COOKIE)
    else:
        _keep(request, answer, PROJECT_COOKIE, project)
    return answer


async def sign_out(request: Request) -> Response:
    """Forget the key."""
    if not _is_ours(request):
        return _refused_form(request)
    answer = RedirectResponse("../ui", HTTPStatus.SEE_OTHER)
    _drop(answer, KEY_COOKIE)
    _drop(answer, PROJECT_COOKIE)
    return answer


def _keep(request: Request, answer: Response, name: str, value: str) -> None:
    # Without a path it is good for the folder of this address, whatever prefix the service is behind. It comes along
    # when a link from elsewhere is followed, but with no form of another page.
    secure = request.url.scheme == "https"
    answer.set_cookie(name, value, path=None, httponly=True, samesite="lax", secure=secure)


def _drop(answer: Response, name: str) -> None:
    answer.set_cookie(name, "", max_age=0, path=None, httponly=True, samesite="lax")


async def _form(request: Request) -> dict[str, str] | None:
    """The fields of a form of one of our own pages; None for anything else."""
    if not _is_ours(request) or not _is_form(request):
        return None
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _LONGEST_FORM:
            return None
    try:
        fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=10)
    except ValueError:
        return None
    return {name: values[0] for name, values in fields.items()}


def _is_form(request: Request) -> bool:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/x-www-form-urlencoded"


def _is_ours(request: Request) -> bool:
    """Was it sent by a page of this service? A browser says so itself; one that does not, names where it comes from."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = request.headers.get("origin", "")
    return bool(origin) and urlsplit(origin).netloc.lower() == request.headers.get("host", "").lower()


def _refused_form(request: Request) -> Response:
    detail = "expected the form of a page of this service: reload the page and try again"
    problem = Problem(status=HTTPStatus.FORBIDDEN, code="foreign_form", detail=detail)
    return refused(request, problem)


def install(app: FastAPI) -> None:
    """Take the forms of signing in and out."""
    app.add_route("/ui/sign-in", sign_in, methods=["POST"], include_in_schema=False)
    app.add_route("/ui/sign-out", sign_out, methods=["POST"], include_in_schema=False)
