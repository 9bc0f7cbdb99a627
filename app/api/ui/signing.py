"""Signing in with a key, which a cookie keeps until the browser is closed, and out again."""

from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs, quote, unquote

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.api.deps import let_pass_as
from app.api.problems import REFUSALS, Problem, refusal_of
from app.api.ui.routing import NOT_GOOD, refused
from app.api.ui.writing import KEY_COOKIE, PROJECT_COOKIE, Web, respond, write
from app.domain.errors import Unauthenticated
from app.domain.operations import Scope

_LONGEST_FORM: Final = 8192


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
    answer = RedirectResponse(f"../{_own_page(after)}", HTTPStatus.SEE_OTHER)
    _keep(request, answer, KEY_COOKIE, key)
    if project is None:
        _drop(answer, PROJECT_COOKIE)
    else:
        _keep(request, answer, PROJECT_COOKIE, project)
    return answer


async def sign_out(_: Request) -> Response:
    """Forget the key."""
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
    """The fields of a form; None for anything else."""
    if not _is_form(request):
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


def _own_page(after: str) -> str:
    """An address below the root of the service, decoded and written again: its page, or else the first one."""
    path, mark, asked = after.partition("?")
    parts = unquote(path).split("/")
    return quote("/".join(parts)) + mark + asked if parts[0] == "ui" and not {".", ".."}.intersection(parts) else "ui"


def _refused_form(request: Request) -> Response:
    detail = "expected the form of a page of this service: reload the page and try again"
    problem = Problem(status=HTTPStatus.FORBIDDEN, code="foreign_form", detail=detail)
    return refused(request, problem)


def install(app: FastAPI) -> None:
    """Take the forms of signing in and out."""
    app.add_route("/ui/sign-in", sign_in, methods=["POST"], include_in_schema=False)
    app.add_route("/ui/sign-out", sign_out, methods=["POST"], include_in_schema=False)
