"""Every error as problem+json (RFC 9457): one shape, a stable code, and for inputs a pointer to each fault."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from app.domain.errors import (
    Conflict,
    DomainError,
    Fault,
    InvalidExpression,
    InvalidInput,
    NoSamples,
    NotFound,
    Overloaded,
    SchemaOutdated,
    Unavailable,
    UnknownLabel,
    UnknownMetric,
)
from app.services.ports import StoreOverloadedError, StoreUnavailableError

_log = logging.getLogger("prevail.api")
MEDIA_TYPE = "application/problem+json"
STATUSES: tuple[tuple[type[DomainError], HTTPStatus], ...] = (
    (NotFound, HTTPStatus.NOT_FOUND),
    (Conflict, HTTPStatus.CONFLICT),
    (NoSamples, HTTPStatus.CONFLICT),
    (Overloaded, HTTPStatus.SERVICE_UNAVAILABLE),
    (Unavailable, HTTPStatus.SERVICE_UNAVAILABLE),
    (SchemaOutdated, HTTPStatus.SERVICE_UNAVAILABLE),
)
RETRY_SECONDS = 1
_CODES = {
    HTTPStatus.BAD_REQUEST: "bad_request",
    HTTPStatus.NOT_FOUND: "not_found",
    HTTPStatus.METHOD_NOT_ALLOWED: "method_not_allowed",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "body_too_large",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "unsupported_media_type",
    HTTPStatus.UNPROCESSABLE_ENTITY: "invalid_request",
    HTTPStatus.SERVICE_UNAVAILABLE: "unavailable",
    HTTPStatus.INTERNAL_SERVER_ERROR: "internal_error",
}


class InvalidQuery(Exception):
    """A parameter of the address is unknown or has a wrong value. The pointers of the faults are its name."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__(faults[0].detail)
        self.faults = tuple(faults)


class MalformedRequest(Exception):
    """The body is no JSON, or not of the form the operation takes."""

    def __init__(self, faults: Sequence[Fault], *, status: HTTPStatus = HTTPStatus.UNPROCESSABLE_ENTITY) -> None:
        super().__init__(faults[0].detail)
        self.faults = tuple(faults)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem before it is bound to a request."""

    status: HTTPStatus
    code: str
    detail: str
    errors: tuple[Mapping[str, Any], ...] = ()
    members: tuple[tuple[str, Any], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()

    def body(self, request_id: str) -> dict[str, Any]:
        """The members of problem+json."""
        answer: dict[str, Any] = {
            "type": f"/problems/{self.code}",
            "title": self.status.phrase,
            "status": self.status.value,
            "detail": self.detail,
            "instance": f"urn:request:{request_id}",
            "code": self.code,
        }
        if self.errors:
            answer["errors"] = list(self.errors)
        answer.update(self.members)
        return answer


def problem_of(error: Exception, prefix: str = "") -> Problem | None:
    """The problem that an error is for the caller; None when it is a fault of ours.

    ``prefix`` is put before pointers, for requests that are part of another.
    """
    match error:
        case MalformedRequest():
            return Problem(
                status=error.status,
                code=_CODES[error.status],
                detail=error.faults[0].detail,
                errors=_listed(error.faults, prefix),
            )
        case InvalidQuery():
            first = error.faults[0]
            return Problem(
                status=HTTPStatus.UNPROCESSABLE_ENTITY,
                code="invalid_query",
                detail=f"{first.pointer}: {first.detail}",
                errors=tuple({"parameter": f.pointer, "code": f.code, "detail": f.detail} for f in error.faults),
            )
        case InvalidInput():
            return Problem(
                status=HTTPStatus.UNPROCESSABLE_ENTITY,
                code=error.code,
                detail=error.detail,
                errors=_listed(error.faults, prefix),
            )
        case InvalidExpression():
            return _expression_problem(error, prefix)
        case StoreOverloadedError():
            return _retry(
                "overloaded", "more writes are waiting than the service takes; nothing was kept", RETRY_SECONDS
            )
        case StoreUnavailableError():
            return _retry("database_unavailable", "the database does not answer; try again shortly", RETRY_SECONDS)
        case Overloaded():
            return _retry(error.code, error.detail, error.retry_after)
        case DomainError():
            status = next((s for kind, s in STATUSES if isinstance(error, kind)), HTTPStatus.UNPROCESSABLE_ENTITY)
            fault = () if error.pointer is None else (Fault(error.pointer, error.code, error.detail),)
            return Problem(status=status, code=error.code, detail=error.detail, errors=_listed(fault, prefix))
        case HTTPException(status_code=HTTPStatus.NOT_FOUND):
            return Problem(
                status=HTTPStatus.NOT_FOUND, code="not_found", detail="there is no such address; /docs lists them all"
            )
        case HTTPException(status_code=HTTPStatus.METHOD_NOT_ALLOWED):
            return Problem(
                status=HTTPStatus.METHOD_NOT_ALLOWED,
                code="method_not_allowed",
                detail="the address does not take this method; the header Allow lists those it takes",
                headers=tuple((error.headers or {}).items()),
            )
        case HTTPException():
            status = HTTPStatus(error.status_code)
            return Problem(
                status=status,
                code=_CODES.get(status, "http_error"),
                detail=str(error.detail),
                headers=tuple((error.headers or {}).items()),
            )
    return None


def _listed(faults: Sequence[Fault], prefix: str) -> tuple[Mapping[str, Any], ...]:
    return tuple({"pointer": prefix + f.pointer, "code": f.code, "detail": f.detail} for f in faults)


def _expression_problem(error: InvalidExpression, prefix: str) -> Problem:
    entry: dict[str, Any] = {"pointer": prefix + (error.pointer or ""), "code": error.code, "detail": error.detail}
    if error.position is not None:
        entry["position"] = error.position
    match error:
        case UnknownMetric():
            entry["suggestions"] = list(error.suggestions)
        case UnknownLabel():
            entry["known"] = list(error.known[:50])
    return Problem(status=HTTPStatus.UNPROCESSABLE_ENTITY, code=error.code, detail=error.detail, errors=(entry,))


def _retry(code: str, detail: str, seconds: int) -> Problem:
    return Problem(
        status=HTTPStatus.SERVICE_UNAVAILABLE, code=code, detail=detail, headers=(("Retry-After", str(seconds)),)
    )


def internal_error(error: Exception, request_id: str) -> Problem:
    """The problem for a fault of ours: the cause goes to the log, none of it to the caller."""
    _log.error("request %s failed", request_id, exc_info=error)
    return Problem(
        status=HTTPStatus.INTERNAL_SERVER_ERROR,
        code="internal_error",
        detail="the service failed; its log has the cause under the id in `instance`",
    )


def worded(kind: str, message: str, context: Mapping[str, Any]) -> str:
    """What pydantic found, in our words where its own are for programmers."""
    match kind:
        case "finite_number":
            return "expected a finite number, got NaN, Infinity or one too large for a double"
        case "missing":
            return "expected this field, it is missing"
        case "extra_forbidden":
            return "unknown field"
        case "union_tag_invalid":
            return f"expected kind to be one of {context['expected_tags']}, got {context['tag'][:60]!r}"
        case "union_tag_not_found":
            return "expected a field kind that says what the input is"
        case "model_attributes_type" | "model_type" | "dict_type":
            return "expected an object"
        case "list_type":
            return "expected an array"
        case "too_short":
            return (
                f"expected at least {_count(context['min_length'], 'entry', 'entries')}, got {context['actual_length']}"
            )
        case "too_long":
            return f"expected at most {_count(context['max_length'], 'entry', 'entries')}, got more"
        case "string_too_short":
            return f"expected at least {_count(context['min_length'], 'character', 'characters')}"
        case "string_too_long":
            return f"expected at most {context['max_length']} characters"
    text = message.replace("Input should be", "expected").removeprefix("Value error, ")
    return text[:1].lower() + text[1:]


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def respond(problem: Problem, request: Request) -> Response:
    """A problem as the answer to a request."""
    return Response(
        orjson.dumps(problem.body(request_id(request))),
        status_code=problem.status.value,
        media_type=MEDIA_TYPE,
        headers=dict(problem.headers),
    )


def _methods(request: Request) -> list[str]:
    """Every method that the address takes; routes of one address may be several."""
    methods = []
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        scope = {**request.scope, "method": method}
        if any(route.matches(scope)[0] is Match.FULL for route in request.app.router.routes):
            methods.append(method)
    return methods


def request_id(request: Request) -> str:
    """The id under which the request stands in the log and in ``X-Request-ID``."""
    return str(request.scope.get("state", {}).get("request_id", "unknown"))


def install(app: FastAPI) -> None:
    """Make every error of the application leave by this door; what is no problem of the caller goes to the envelope."""

    async def known(request: Request, error: Exception) -> Response:
        problem = problem_of(error)
        if problem is None:
            raise error
        if problem.code == "method_not_allowed":
            problem = replace(problem, headers=(("Allow", ", ".join(_methods(request))),))
        return respond(problem, request)

    async def invalid_query(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this class only
        faults = [
            Fault(str(entry["loc"][1]), entry["type"], worded(entry["type"], entry["msg"], entry.get("ctx", {})))
            for entry in error.errors()
        ]
        return await known(request, InvalidQuery(faults))

    for kind in (
        InvalidQuery,
        MalformedRequest,
        DomainError,
        StoreOverloadedError,
        StoreUnavailableError,
        HTTPException,
    ):
        app.add_exception_handler(kind, known)
    app.add_exception_handler(RequestValidationError, invalid_query)
