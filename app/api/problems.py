"""Problems as RFC 9457 describes them: one type, status and wording for each error."""

import logging
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, get_args

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic_core.core_schema import ErrorType
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Send

from app.api.access import rate_headers
from app.api.answers import write_json
from app.domain.errors import (
    DomainError,
    Fault,
    Faulty,
    InvalidExpression,
    InvalidExpressions,
    TooManyRequests,
    Unauthenticated,
    UnknownLabel,
)
from app.domain.members import LEFT_OUT, SPREAD
from app.domain.wording import described, did_you_mean

# Codes, and what they mean.
PROBLEM_TYPES: Final[Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_name("problems.toml").read_text(encoding="utf-8")
)


_MOST_SHOWN: Final = 40
_LONGEST_NAME: Final = 60
_OF_NUMBERS: Final = frozenset({"greater_than", "greater_than_equal", "less_than", "less_than_equal", "multiple_of"})


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


# Codes of faults of form, by what pydantic calls them: the first that its name begins or ends with.
_CODES_OF_FORM: Final[tuple[tuple[str, str], ...]] = (
    ("extra_forbidden", "unknown_field"),
    ("missing", "missing_field"),
    ("union_tag_not_found", "missing_field"),
    ("finite_number", "not_finite"),
    ("datetime_", "wrong_value"),
    ("uuid_", "wrong_value"),
    ("int_parsing_size", "out_of_range"),
    ("less_than", "out_of_range"),
    ("greater_than", "out_of_range"),
    ("multiple_of", "out_of_range"),
    ("too_short", "wrong_length"),
    ("too_long", "wrong_length"),
    ("_type", "wrong_type"),
    ("_parsing", "wrong_type"),
)


_OF_PYDANTIC: Final = frozenset(get_args(ErrorType))


def code_of(kind: str) -> str:
    """The code of a fault of form that pydantic calls ``kind``; faults that we found ourselves have a code already."""
    if kind not in _OF_PYDANTIC:
        return kind
    return next((code for part, code in _CODES_OF_FORM if kind.startswith(part) or kind.endswith(part)), "wrong_value")


def near(name: str, known: Sequence[str]) -> tuple[str, ...]:
    """The names that somebody may have meant by one that is unknown: at most three, the nearest first."""
    meant = name if name in known else own_name(name)
    return (meant,) if meant in known else tuple(get_close_matches(name, known, n=3))


def own_name(name: str) -> str:
    """Our name of the field that others call so."""
    return _ALSO_CALLED.get(name.lower(), name.lower())


# What others call our fields.
_ALSO_CALLED: Final[Mapping[str, str]] = {
    "confusion_matrix": "matrix",
    "classes": "labels",
    "label_names": "labels",
    "target_names": "labels",
    "pos_label": "positive",
    "y": "y_true",
    "y_hat": "y_pred",
    "y_prob": "probabilities",
    "y_proba": "probabilities",
    "proba": "probabilities",
    "y_score": "scores",
    "y_scores": "scores",
    "weights": "sample_weight",
    "groups": "group_ids",
    "ids": "sample_ids",
    "confidence": "level",
    "baseline_id": "baseline",
    "evaluation_id": "evaluation",
    "evaluation_ids": "evaluations",
}


_WORDS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "finite_number": lambda _: "expected a finite number, got NaN, Infinity or one too large for a double",
    "missing": lambda _: "expected this field, it is missing",
    "extra_forbidden": lambda _: "there is no such field",
    "union_tag_invalid": lambda c: f"expected kind to be one of {c['expected_tags']}, got {c['tag'][:60]!r}",
    "union_tag_not_found": lambda _: "expected a field kind that says what this is",
    "too_short": lambda c: f"expected at least {_count(c['min_length'], 'entry', 'entries')}, got {c['actual_length']}",
    "too_long": lambda c: f"expected at most {_count(c['max_length'], 'entry', 'entries')}, got more",
    "string_too_short": lambda c: f"expected at least {_count(c['min_length'], 'character', 'characters')}",
    "string_too_long": lambda c: f"expected at most {c['max_length']} characters",
    "string_pattern_mismatch": lambda c: f"expected text that matches {c['pattern']}",
    "timezone_aware": lambda _: "expected a moment with its offset from UTC, such as 2026-01-31T12:00:00Z",
}


# What pydantic expected where something of another type came.
_TYPES: Final[Mapping[str, str]] = {
    "model_attributes_type": "an object",
    "model_type": "an object",
    "dict_type": "an object",
    "list_type": "an array",
    "tuple_type": "an array",
    "string_type": "a string",
    "float_type": "a number",
    "float_parsing": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "uuid_type": "an id (a UUID)",
    "uuid_parsing": "an id (a UUID)",
}
UNKNOWN: Final = object()


def worded(kind: str, message: str, context: Mapping[str, Any], given: Any = UNKNOWN) -> str:
    """Return the wording of a validation fault, with what came if that is known and plain."""
    if kind in _TYPES:
        short = isinstance(given, str) and len(given) <= _MOST_SHOWN
        came = f"the string {given!r}" if short else described(given)
        return f"expected {_TYPES[kind]}" + ("" if given is UNKNOWN else f", got {came}")
    words = _WORDS.get(kind)
    if words is not None:
        return words(context)
    text = message.replace("Input should be", "expected").removeprefix("Value error, ")
    text = text.replace("less than or equal to", "at most").replace("greater than or equal to", "at least")
    came = f", got {str(given)[:_MOST_SHOWN]}" if isinstance(given, int | float | str) and kind in _OF_NUMBERS else ""
    return text[:1].lower() + text[1:] + came


_log = logging.getLogger("prevail.api")
MEDIA_TYPE = "application/problem+json"
# Of errors of the domain, by their codes; 422 of those that are not here.
_STATUSES: Final[Mapping[str, HTTPStatus]] = {
    code: status
    for status, codes in {
        HTTPStatus.BAD_REQUEST: ("bad_request",),
        HTTPStatus.NOT_FOUND: ("not_found",),
        HTTPStatus.UNAUTHORIZED: ("unauthenticated",),
        HTTPStatus.FORBIDDEN: ("forbidden", "data_not_allowed"),
        HTTPStatus.TOO_MANY_REQUESTS: ("rate_limited", "quota_used_up", "project_quota_used_up", "too_many_jobs"),
        HTTPStatus.CONFLICT: (
            "too_many_webhooks",
            "job_ended",
            "no_samples_kept",
            "shown_once",
            "idempotency_key_in_flight",
        ),
        HTTPStatus.NOT_ACCEPTABLE: ("not_acceptable",),
        HTTPStatus.GONE: ("result_deleted",),
        HTTPStatus.PRECONDITION_FAILED: ("precondition_failed",),
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE: ("too_large", "not_enough_memory"),
        HTTPStatus.SERVICE_UNAVAILABLE: (
            "overloaded",
            "database_unavailable",
            "schema_outdated",
            "process_lost",
            "cluster_unavailable",
        ),
        HTTPStatus.GATEWAY_TIMEOUT: ("deadline_passed",),
        HTTPStatus.NOT_IMPLEMENTED: ("not_installed",),
        HTTPStatus.INSUFFICIENT_STORAGE: ("storage_quota_used_up", "spill_full", "no_space"),
        HTTPStatus.INTERNAL_SERVER_ERROR: ("job_lost",),
    }.items()
    for code in codes
}
RETRY_SECONDS = 1
# Of what the framework refuses, and of bodies.
_CODES = {
    HTTPStatus.BAD_REQUEST: "bad_request",
    HTTPStatus.NOT_FOUND: "not_found",
    HTTPStatus.METHOD_NOT_ALLOWED: "method_not_allowed",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "body_too_large",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "unsupported_media_type",
}
# In place of what the framework says.
_DETAILS = {
    HTTPStatus.NOT_FOUND: "there is no such address; /docs lists them all",
    HTTPStatus.METHOD_NOT_ALLOWED: "the address does not take this method; the header Allow lists those it takes",
}


class InvalidQuery(Faulty, code="invalid_query"):
    """A parameter of the address is unknown or has a wrong value. The pointers of the faults are its name."""


class InvalidPath(InvalidQuery, code="invalid_path"):
    """A part of the path has a wrong value."""


class NotAcceptable(DomainError, code="not_acceptable"):
    """The request accepts no form that this answer has."""

    def __init__(self, accepted: str, written: Sequence[str]) -> None:
        super().__init__(f"expected Accept to allow one of {', '.join(written)}, got {accepted[:200]!r}")


class MalformedRequest(Faulty, code="invalid_request"):
    """The body is not of the form that the operation takes."""


class UnreadableBody(MalformedRequest, code="bad_request"):
    """The body is no JSON, or not what its headers say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultValue:
    """One thing wrong with a request.

    Attributes:
        pointer: JSON pointer into the body, for faults of the body.
        parameter: Name of the parameter, for faults of the address.
        position: In a metric expression, counted in characters from 0.
        suggestions: The nearest names, for an unknown one.
        known: The classes, for an unknown one.
    """

    pointer: str | None = field(default=None, metadata=LEFT_OUT)
    parameter: str | None = field(default=None, metadata=LEFT_OUT)
    code: str
    detail: str
    position: int | None = field(default=None, metadata=LEFT_OUT)
    suggestions: Sequence[str] | None = field(default=None, metadata=LEFT_OUT)
    known: Sequence[str] | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemValue:
    """An error (RFC 9457).

    Attributes:
        code: Stable; never changes meaning.
        members: Further ones of this problem.
    """

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    errors: Sequence[FaultValue] | None = field(metadata=LEFT_OUT)
    members: Mapping[str, Any] = field(metadata=SPREAD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem before it is bound to a request."""

    status: HTTPStatus
    code: str
    detail: str
    errors: tuple[FaultValue, ...] = ()
    members: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def of_request(self, request_id: str) -> ProblemValue:
        """The problem as it is sent."""
        return ProblemValue(
            type=f"/problems/{self.code}",
            # The name of the problem: what the status says is in the status.
            title=self.code.replace("_", " ").capitalize(),
            status=self.status.value,
            detail=self.detail,
            instance=f"urn:request:{request_id}",
            code=self.code,
            errors=self.errors or None,
            members=self.members,
        )


class Refused(Exception):
    """A request is refused before a route has it."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


def problem_of(error: Exception, prefix: str = "") -> Problem | None:
    """The problem that an error is for the caller; None when it is a fault of ours.

    ``prefix`` is put before pointers, for requests that are part of another.
    """
    match error:
        case Refused():
            return error.problem
        case InvalidQuery():
            return _of_parameter(_faulty(HTTPStatus.UNPROCESSABLE_ENTITY, "", error.faults, ""), error.code)
        case Faulty():
            return _faulty(_status_of(error), error.code, error.faults, prefix)
        case InvalidExpression():
            return _expression_problem([error], prefix)
        case InvalidExpressions():
            return _expression_problem(error.errors, prefix)
        case DomainError():
            return _domain_problem(error, prefix)
        case HTTPException():
            return _of_status(HTTPStatus(error.status_code), error.headers, str(error.detail))
    return None


def refusal_of(error: Exception) -> Problem:
    """Return the problem of an error of the caller; raise any other error."""
    problem = problem_of(error)
    if problem is None:
        raise error
    return problem


def _place(pointer: str, prefix: str = "") -> dict[str, Any]:
    """Return the place of a fault: what does not begin as a JSON pointer does is the name of a parameter."""
    return {"parameter": pointer} if pointer[:1] not in ("", "/") else {"pointer": prefix + pointer}


def _faulty(status: HTTPStatus, code: str, faults: Sequence[Fault | InvalidExpression], prefix: str) -> Problem:
    listed = tuple(
        FaultValue(
            **_place(one.pointer or "", prefix),
            code=one.code,
            detail=one.detail,
            position=None if isinstance(one, Fault) else one.position,
            suggestions=one.suggestions or None,
            known=one.known[:50] if isinstance(one, UnknownLabel) else None,
        )
        for one in faults
    )
    return Problem(status=status, code=code, detail=faults[0].detail, errors=listed)


def _of_parameter(found: Problem, code: str) -> Problem:
    """Return a problem whose first fault is of a parameter of the address, which it names."""
    return replace(found, code=code, detail=f"{found.errors[0].parameter}: {found.detail}")


def _expression_problem(errors: Sequence[InvalidExpression], prefix: str) -> Problem:
    found = _faulty(HTTPStatus.UNPROCESSABLE_ENTITY, errors[0].code, errors, prefix)
    return found if found.errors[0].parameter is None else _of_parameter(found, "invalid_query")


def _status_of(error: DomainError) -> HTTPStatus:
    return _STATUSES.get(error.code, HTTPStatus.UNPROCESSABLE_ENTITY)


def _domain_problem(error: DomainError, prefix: str) -> Problem:
    status = _status_of(error)
    if error.pointer is None:
        return Problem(status=status, code=error.code, detail=error.detail, headers=_headers_of(error))
    return _faulty(status, error.code, [Fault(error.pointer, error.code, error.detail, error.suggestions)], prefix)


def _headers_of(error: DomainError) -> Mapping[str, str]:
    """Return the headers of a refusal: `WWW-Authenticate`, `Retry-After` and rate limits."""
    if isinstance(error, Unauthenticated):
        return {"WWW-Authenticate": 'Bearer realm="prevail"' + (', error="invalid_token"' if error.presented else "")}
    headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    if isinstance(error, TooManyRequests):
        headers |= rate_headers(error.times, error.window, 0, error.retry_after)
    return headers


def _of_status(status: HTTPStatus, headers: Mapping[str, str] | None = None, detail: str = "") -> Problem:
    """A problem of the framework; ``detail`` where there is nothing better to say."""
    said = _DETAILS.get(status, detail)
    return Problem(status=status, code=_CODES[status], detail=said, headers=headers or {})


def not_found() -> Problem:
    """An address that there is not."""
    return _of_status(HTTPStatus.NOT_FOUND)


def method_not_allowed(methods: str) -> Problem:
    """An address that takes these methods and no other."""
    return _of_status(HTTPStatus.METHOD_NOT_ALLOWED, {"Allow": methods})


# Python has no type for a thread that finds no memory for its stack.
_NO_THREAD: Final = "can't start new thread"


def internal_error(error: BaseException | None, request_id: str) -> Problem:
    """The problem for a fault of ours: the cause goes to the log, none of it to the caller.

    Want of memory is one of the moment: 503, and the same request may succeed a little later.
    """
    _log.error("request %s failed", request_id, exc_info=error)
    if isinstance(error, MemoryError) or str(error) == _NO_THREAD:
        return Problem(
            status=HTTPStatus.SERVICE_UNAVAILABLE,
            code="unavailable",
            detail="the service has too little memory at the moment; try again shortly",
            headers={"Retry-After": str(RETRY_SECONDS)},
        )
    return Problem(
        status=HTTPStatus.INTERNAL_SERVER_ERROR,
        code="internal_error",
        detail="the service failed; its log has the cause under the id in `instance`",
    )


def respond(problem: Problem, request: Request) -> Response:
    """A problem as the answer to a request."""
    request.scope.setdefault("state", {})["code"] = problem.code
    return response_of(problem, request_id(request))


def response_of(problem: Problem, request_id: str, headers: Mapping[str, str] = MappingProxyType({})) -> Response:
    """A problem as the answer to the request of an id."""
    content = write_json(problem.of_request(request_id))
    return Response(content, problem.status, {**problem.headers, **headers}, MEDIA_TYPE)


async def send_response(response: Response, send: Send) -> None:
    """Send an answer outside of what routes do."""
    await send({"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers})
    await send({"type": "http.response.body", "body": response.body})


def request_id(request: Request) -> str:
    """The id under which the request stands in the log and in ``X-Request-ID``."""
    return str(request.scope.get("state", {}).get("request_id", "unknown"))


# What is a problem of the caller, or of the moment, wherever it is raised; parameters of another type besides.
REFUSALS: tuple[type[Exception], ...] = (DomainError, HTTPException)


def refused_parameters(error: RequestValidationError) -> InvalidQuery:
    """Convert the framework's errors of parameters to ours."""
    entries = error.errors()
    kind = InvalidPath if entries[0]["loc"][0] == "path" else InvalidQuery
    return kind([_fault_of_parameter(entry) for entry in entries])


def _fault_of_parameter(entry: Mapping[str, Any]) -> Fault:
    name, kind = str(entry["loc"][1]), entry["type"]
    if kind == "missing":
        return Fault(name, code_of(kind), "expected this parameter, it is missing")
    detail = worded(kind, entry["msg"], entry.get("ctx", {}), entry.get("input", UNKNOWN))
    suggestions = alternatives(kind, entry.get("ctx", {}), entry.get("input"))
    return Fault(name, code_of(kind), detail + did_you_mean(suggestions), suggestions)


_QUOTED: Final = re.compile(r"'([^']*)'")


def alternatives(kind: str, context: Mapping[str, Any], given: Any) -> tuple[str, ...]:
    """The nearest of the values that may stand where another one came; none for faults of other kinds."""
    if kind not in ("literal_error", "enum", "union_tag_invalid"):
        return ()
    known = _QUOTED.findall(str(context.get("expected_tags", context.get("expected", ""))))
    return near(str(context.get("tag", given))[:_LONGEST_NAME], known)


def install(app: FastAPI) -> None:
    """Make every error of the application leave by this door; what is no problem of the caller goes to the envelope."""

    async def known(request: Request, error: Exception) -> Response:
        problem = refusal_of(error)
        addresses, path = request.app.state.addresses, request.scope["path"]
        if problem.code == "method_not_allowed":
            problem = method_not_allowed(addresses.methods(path))
        elif problem.detail == _DETAILS[HTTPStatus.NOT_FOUND]:
            problem = replace(problem, detail=problem.detail + did_you_mean(addresses.near(path)))
        return respond(problem, request)

    async def invalid_query(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this class only
        return await known(request, refused_parameters(error))

    async def unknown(_: Request, error: Exception) -> Response:
        raise error

    for kind in REFUSALS:
        app.add_exception_handler(kind, known)
    # What escapes from around the routes is answered by the server, which the framework would do in plain text.
    app.add_exception_handler(Exception, unknown)
    app.add_exception_handler(RequestValidationError, invalid_query)
