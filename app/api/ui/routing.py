"""Routes of pages: the key comes in a cookie, what is wrong is a page too, and empty fields of forms are no filters."""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter
from fastapi.exceptions import RequestValidationError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.api.deps import StrictRoute, let_pass_as
from app.api.problems import REFUSALS, Problem, refusal_of, refused_parameters, request_id
from app.api.ui.writing import KEY_COOKIE, PROJECT_COOKIE, Web, respond, write
from app.domain.errors import Unauthenticated
from app.domain.operations import Scope

NOT_GOOD: Final = "The key is not good: it is unknown, expired or revoked."
_TITLES: Final = {
    HTTPStatus.NOT_FOUND: "Nothing at this address",
    HTTPStatus.FORBIDDEN: "Not with this key",
    HTTPStatus.UNAUTHORIZED: "Sign in",
    HTTPStatus.TOO_MANY_REQUESTS: "Too many requests",
    HTTPStatus.SERVICE_UNAVAILABLE: "Not now",
    HTTPStatus.UNPROCESSABLE_ENTITY: "This cannot be shown",
}


class PageRoute(StrictRoute):
    """A route whose answers are pages."""

    async def admit(self, request: Request, scope: Scope) -> None:
        """Hold a request against the key in its header, else against that in its cookie.

        A cookie whose key is no longer good counts as none: cookies of another service on this machine come along too.
        """
        cookie = request.cookies.get(KEY_COOKIE)
        if cookie is None or "authorization" in request.headers:
            await super().admit(request, scope)
            return
        try:
            await let_pass_as(request, scope, f"Bearer {cookie}", request.cookies.get(PROJECT_COOKIE) or None)
        except Unauthenticated:
            await super().admit(request, scope)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Answer with a page whatever happens that is no fault of the service."""
        handle = super().get_route_handler()

        async def page_or_why(request: Request) -> Response:
            if any(value == "" for _, value in request.query_params.multi_items()):
                return _without_empty_fields(request)
            try:
                return await handle(request)
            except RequestValidationError as error:
                in_path = {str(entry["loc"][0]) for entry in error.errors()} == {"path"}
                problem = refusal_of(refused_parameters(error))
                return refused(request, replace(problem, status=HTTPStatus.NOT_FOUND) if in_path else problem)
            except REFUSALS as error:
                return refused(request, refusal_of(error))

        return page_or_why


def page_routes() -> APIRouter:
    """A router of pages, which stand in no document of the API."""
    return APIRouter(prefix="/ui", route_class=PageRoute, default_response_class=Response, include_in_schema=False)


def refused(request: Request, problem: Problem) -> Response:
    """The page that says what is wrong; where a key is needed it asks for one."""
    request.scope["state"]["code"] = problem.code
    web = Web.of(request)
    title = _TITLES.get(problem.status, problem.code.replace("_", " ").capitalize())
    if problem.status is HTTPStatus.UNAUTHORIZED:
        # What was asked for is shown after signing in.
        page = write("sign_in.html", web, page={"title": title, "reason": _why(request), "next": web.here})
    else:
        shown = {
            "title": title,
            "problem": problem,
            "status": problem.status.value,
            "request_id": request_id(request),
        }
        page = write("refused.html", web, page=shown)
    return respond(page, problem.status, problem.headers)


def _why(request: Request) -> str:
    """Why a key is asked for."""
    if KEY_COOKIE in request.cookies or "authorization" in request.headers:
        return NOT_GOOD
    return ""


def _without_empty_fields(request: Request) -> Response:
    """Redirect to the page by an address without the fields of a form that were left empty."""
    given = [(name, value) for name, value in request.query_params.multi_items() if value != ""]
    # Without a path it leads to the page itself, whatever its address looks like.
    return RedirectResponse(f"?{urlencode(given)}", HTTPStatus.SEE_OTHER)
