"""The frame of all pages: addresses, rendering, refusals, and signing in with a key."""

from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from hashlib import blake2b
from http import HTTPStatus
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode
from uuid import UUID

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from jinja2 import Environment
from starlette.responses import RedirectResponse, Response

from app.api.deps import UNKNOWN_PARAMETER, StrictRoute, let_pass_as, parameter_faults
from app.api.documents.document import Json
from app.api.problems import REFUSALS, InvalidQuery, Problem, refusal_of, refused_parameters, request_id
from app.api.report import styles, templates
from app.domain.catalogue import spoken
from app.domain.errors import Unauthenticated
from app.domain.members import rfc3339
from app.domain.operations import Scope
from app.domain.wording import dataset_name, percent, printable, run_name, sentence
from app.services.evaluate.reports import warm_up
from app.services.present import actor

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
# The key that was signed in with, and the project that was named by one of the scope `admin`, or without any.
KEY_COOKIE: Final = "prevail_key"
PROJECT_COOKIE: Final = "prevail_project"
_ASSETS: Final = {"style.css": "text/css", "ui.js": "text/javascript"}


@dataclass(frozen=True, slots=True)
class Web:
    """The address of a page, for its links: they are relative, so that they work behind a prefix too.

    Attributes:
        up: From the page to the root of the service.
        here: The page itself, from the root.
        current: The entry of the navigation that is marked.
        project: That is shown; None where nothing of any is, as where a key is asked for.
        key: Name of the key that was used; None without one.
        switched: Requests to copy have to name the project.
        base: The root of the service with its host, for requests to copy.
        passed_over: What is to be said of parameters that the page does not know.
    """

    up: str
    here: str
    current: str
    project: str | None
    key: str | None
    switched: bool
    version: str
    base: str
    passed_over: tuple[str, ...] = ()

    @classmethod
    def of(cls, request: Request, current: str = "") -> "Web":
        """Make the frame of the page that a request asks for."""
        path = request.scope.get("raw_path", b"").decode("latin-1").partition("?")[0] or quote(request.scope["path"])
        asked, state = request.scope["query_string"].decode("latin-1"), request.scope["state"]
        return cls(
            up="../" * (path.count("/") - 1),
            here=path.removeprefix("/") + (f"?{asked}" if asked else ""),
            current=current,
            project=state.get("project"),
            key=None if state.get("key_id") is None else actor().name,
            switched=PROJECT_COOKIE in request.cookies,
            version=request.app.version,
            base=str(request.base_url),
            passed_over=state.get(_PASSED_OVER, ()),
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
    """Return a page as a response."""
    return respond(write(template, Web.of(request, current), **values), status)


def respond(page: bytes, status: HTTPStatus = HTTPStatus.OK, headers: Mapping[str, str] | None = None) -> Response:
    """Return a page as a response."""
    return Response(page, status, {**HEADERS, **(headers or {})}, media_type="text/html")


def write(template: str, web: Web, **values: Any) -> bytes:
    """A page; what it says is escaped."""
    usual = {"layout": "frame.html", "web": web, "theme": None, "pictures": (), "places": ()}
    return _pages().get_template(template).render(**usual | values).encode()


# Parameters of an address that name a dataset, and the parts of it.
DATASET_PARTS: Final = {"dataset": "name", "dataset_version": "version", "split": "split"}


def dataset_query(dataset: Json) -> dict[str, str | None]:
    """Return the parameters of an address that name a dataset."""
    return {name: dataset.get(part) for name, part in DATASET_PARTS.items()}


@cache
def _pages() -> Environment:
    """Return the templates of pages, which read answers as they are."""
    made = templates("app.api.ui")
    made.filters |= {
        "dataset_name": dataset_name,
        "dataset_query": dataset_query,
        "percent": lambda share: percent(share, None).replace(" ", "\u00a0"),
        "printable": printable,
        "run_name": run_name,
        "rfc3339": rfc3339,
        "spoken": lambda metric: printable(spoken(metric)),
    }
    return made


def load_pages() -> None:
    """Load the templates and styles of pages, and what evaluates runs: pages are written in several processes."""
    warm_up()
    for name in _pages().list_templates(["html"]):
        _pages().get_template(name)
    for name in _ASSETS:
        _digest(name)


def attached(report: Response, identifier: UUID, form: str = "html") -> Response:
    """A report as a file to keep."""
    report.headers["Content-Disposition"] = f'attachment; filename="prevail-{identifier}.{form}"'
    report.headers["Vary"] = "Cookie"
    return report


@cache
def _asset(name: str) -> bytes:
    own = files(__package__).joinpath("static", name).read_text()
    return (str(styles()) + own if name == "style.css" else own).encode()


@cache
def _digest(name: str) -> str:
    return blake2b(_asset(name), digest_size=6).hexdigest()


def install_files(app: FastAPI) -> None:
    """Serve the files that pages load. There is nothing in them that a key would be needed for."""

    async def asset(request: Request) -> Response:
        name = request.url.path.rpartition("/")[2]
        kept = {**HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
        return Response(_asset(name), media_type=_ASSETS[name], headers=kept)

    for name in _ASSETS:
        app.add_route(f"/ui/{name}", asset, include_in_schema=False)


NOT_GOOD: Final = "The key is not good: it is unknown, expired or revoked."
_MOST_SAID: Final = 5
_TITLES: Final = {
    HTTPStatus.NOT_FOUND: "Nothing at this address",
    HTTPStatus.FORBIDDEN: "Not with this key",
    HTTPStatus.UNAUTHORIZED: "Sign in",
    HTTPStatus.TOO_MANY_REQUESTS: "Too many requests",
    HTTPStatus.SERVICE_UNAVAILABLE: "Not now",
    HTTPStatus.UNPROCESSABLE_ENTITY: "This cannot be shown",
}


# In the state of a request.
_PASSED_OVER: Final = "passed_over"


class PageRoute(StrictRoute):
    """A route whose answers are pages."""

    def check_parameters(self, request: Request) -> None:
        """Let a page say what it does not know: links carry parameters of others."""
        faults = parameter_faults(request)
        unknown = [one for one in faults if one.code == UNKNOWN_PARAMETER]
        if len(unknown) < len(faults):
            raise InvalidQuery(faults)
        said = [f"{printable(one.pointer)}: {one.detail}" + ("" if one.suggestions else ".") for one in unknown]
        request.scope["state"][_PASSED_OVER] = tuple(said[:_MOST_SAID])

    async def admit(self, request: Request, scope: Scope) -> None:
        """Hold a request against the key in its header, else against that in its cookie.

        A cookie whose key is no longer good counts as none: cookies of another service on this machine come along too.
        """
        key, project = request.cookies.get(KEY_COOKIE), request.cookies.get(PROJECT_COOKIE)
        if not (key or project) or "authorization" in request.headers:
            await super().admit(request, scope)
            return
        try:
            await let_pass_as(request, scope, _bearer(key), project or None)
        except Unauthenticated:
            await super().admit(request, scope)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Answer with a page whatever happens that is no fault of the service."""
        handle = super().get_route_handler()

        async def page_or_why(request: Request) -> Response:
            asked = request.query_params.multi_items()
            if any(value == "" for _, value in asked):
                # Without the fields of a form that were left empty; without a path it leads to the page itself,
                # whatever its address looks like.
                given = urlencode([(name, value) for name, value in asked if value != ""])
                return RedirectResponse(f"?{given}", HTTPStatus.SEE_OTHER)
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
    shown: dict[str, Any]
    if problem.status is HTTPStatus.UNAUTHORIZED:
        with_key = KEY_COOKIE in request.cookies or "authorization" in request.headers
        # What was asked for is shown after signing in.
        shown = {"title": title, "reason": NOT_GOOD if with_key else "", "next": web.here}
        page = write("sign_in.html", web, page=shown)
    else:
        status, identifier = problem.status.value, request_id(request)
        shown = {"title": title, "problem": problem, "status": status, "request_id": identifier}
        page = write("refused.html", web, page={**shown, "reasons": [*reasons_of(problem)]})
    return respond(page, problem.status, problem.headers)


def reasons_of(problem: Problem) -> Iterator[str]:
    """Yield what is wrong in sentences, each of which names its place."""
    further = (f"{one.parameter}: {one.detail}" if one.parameter else one.detail for one in problem.errors[1:])
    for one in (problem.detail, *further):
        # The key of a metric or the name of a parameter is small.
        said = one if "_" in one.partition(" ")[0] else sentence(one)
        yield said if one.endswith("?") else f"{said}."


_LONGEST_FORM: Final = 8192


async def sign_in(request: Request) -> Response:
    """Take a key and a project from the form, and keep them in cookies when they are good."""
    given = await _form(request)
    if given is None:
        detail = "expected the form of a page of this service: reload the page and try again"
        return refused(request, Problem(status=HTTPStatus.FORBIDDEN, code="foreign_form", detail=detail))
    # Without another key another project is shown by the same one.
    key = given.get("key", "").strip() or request.cookies.get(KEY_COOKIE)
    project, after = given.get("project", "").strip() or None, given.get("next", "")
    try:
        await let_pass_as(request, Scope.READ, _bearer(key), project)
    except Unauthenticated as error:
        page = {"title": "Sign in", "reason": NOT_GOOD, "next": after}
        headers = refusal_of(error).headers
        return respond(write("sign_in.html", Web.of(request), page=page), HTTPStatus.UNAUTHORIZED, headers)
    except REFUSALS as error:
        return refused(request, refusal_of(error))
    answer = RedirectResponse(f"../{_own_page(after)}", HTTPStatus.SEE_OTHER)
    for name, value in ((KEY_COOKIE, key), (PROJECT_COOKIE, project)):
        if value:
            # Without a path it is good for the folder of this address, whatever prefix the service is behind. It comes
            # along when a link from elsewhere is followed, but with no form of another page.
            secure = request.url.scheme == "https"
            answer.set_cookie(name, value, path=None, httponly=True, samesite="lax", secure=secure)
        else:
            _drop(answer, name)
    return answer


def _bearer(key: str | None) -> str | None:
    return f"Bearer {key}" if key else None


async def first_page(_: Request) -> Response:
    """Lead to the first page, which asks for a key where one is needed."""
    return RedirectResponse("../ui", HTTPStatus.SEE_OTHER)


async def sign_out(_: Request) -> Response:
    """Forget the key."""
    answer = RedirectResponse("../ui", HTTPStatus.SEE_OTHER)
    _drop(answer, KEY_COOKIE)
    _drop(answer, PROJECT_COOKIE)
    return answer


def _drop(answer: Response, name: str) -> None:
    answer.set_cookie(name, "", max_age=0, path=None, httponly=True, samesite="lax")


async def _form(request: Request) -> dict[str, str] | None:
    """The fields of a form; None for anything else."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    length = request.headers.get("content-length", "")
    if kind != "application/x-www-form-urlencoded" or not length.isdecimal() or int(length) > _LONGEST_FORM:
        return None
    return {name: value for name, value in (await request.form()).items() if isinstance(value, str)}


def _own_page(after: str) -> str:
    """An address below the root of the service, decoded and written again: its page, or else the first one."""
    path, mark, asked = after.partition("?")
    parts = unquote(path).split("/")
    return quote("/".join(parts)) + mark + asked if parts[0] == "ui" and not {".", ".."}.intersection(parts) else "ui"


def install_forms(app: FastAPI) -> None:
    """Take the forms of signing in and out; a form that was refused leaves its address in the browser."""
    app.add_route("/ui/sign-in", first_page, methods=["GET"], include_in_schema=False)
    app.add_route("/ui/sign-in", sign_in, methods=["POST"], include_in_schema=False)
    app.add_route("/ui/sign-out", sign_out, methods=["POST"], include_in_schema=False)
