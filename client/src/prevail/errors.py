"""Exceptions of the client: each names the place, the expectation, and a remedy."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from prevail.wire.steps import Lost, Reply

_MOST_SHOWN: Final = 5
# Of the body of an evaluation: members that are arguments of their own in Python and on the command line.
_FLAT: Final = ("input", "options")


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a request.

    Attributes:
        place: Where, as the caller wrote it: ``metrics[1]``, ``matrix[2][0]``, ``limit``; empty where it is about all.
        pointer: The same as the service says it: ``/options/metrics/1``.
    """

    place: str
    code: str
    detail: str
    pointer: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.detail}" if self.place else self.detail


class PrevailError(Exception):
    """Base of all exceptions of the client.

    Attributes:
        code: The service's, which never changes its meaning; of what the client found by itself one of its own.
        faults: Everything that is wrong, with its place.
        status: Of the answer, None where there was none.
        request_id: Under which the service's log knows the request.
        problem: All of the answer (RFC 9457).
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "client",
        faults: Sequence[Fault] = (),
        status: int | None = None,
        request_id: str | None = None,
        problem: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.faults = tuple(faults)
        self.status = status
        self.request_id = request_id
        self.problem = dict(problem or {})


class InvalidInput(PrevailError, ValueError):
    """The data or an option is refused, by the service or before anything was sent."""


class NotFound(PrevailError, LookupError):
    """The service has no such object."""


class NotAllowed(PrevailError, PermissionError):
    """A key is missing, is not valid, or may not do this."""


class Conflict(PrevailError):
    """The request does not fit the present state of an object."""


class TooLarge(PrevailError, ValueError):
    """The data is larger than the service takes."""


class Overloaded(PrevailError):
    """The service has no room now, or asks to come less often; nothing was saved."""


class NoAnswer(PrevailError, ConnectionError):
    """The service did not answer."""


class ServerFault(PrevailError):
    """The service failed, or what answered is not the service."""


class JobFailed(PrevailError):
    """A job ended without a result."""


class UndefinedValue(PrevailError, ValueError):
    """A value that does not exist was used as a number."""


class MissingPackage(PrevailError, ImportError):
    """An optional package is not installed."""


class GateFailed(PrevailError, AssertionError):
    """A gate was required to pass and fails."""


class GateInconclusive(PrevailError, AssertionError):
    """A gate was required to pass, and there is not enough data to decide."""


_BY_STATUS: Final[Mapping[int, type[PrevailError]]] = {
    401: NotAllowed,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    410: NotFound,
    412: Conflict,
    413: TooLarge,
    429: Overloaded,
    503: Overloaded,
    504: Overloaded,
}


def _kind(status: object) -> type[PrevailError]:
    if not isinstance(status, int):
        return ServerFault
    return _BY_STATUS.get(status, ServerFault if status >= 500 else InvalidInput)


def no_answer(lost: Lost, tries: str) -> NoAnswer:
    """The exception of a request that nobody answered."""
    kept = "nothing was saved" if lost.unsent else "it is unknown whether anything was saved"
    hint = "Is the service running there? Start one: prevail serve" if lost.unsent and not lost.lasting else ""
    message = f"no answer from {lost.url} ({lost.reason}){tries}; {kept}. {hint}".rstrip(" ")
    return NoAnswer(message.removesuffix(". ") if not hint else message, code="no_answer")


def failure(reply: Reply, tries: str = "") -> PrevailError:
    """The exception of an answer that is no success."""
    problem = _problem(reply)
    request_id = reply.headers.get("x-request-id")
    kind = _kind(reply.status)
    if problem is None:
        message = (
            f"{reply.url} answered {reply.status} with something that the service does not send{tries}: "
            f"{_beginning(reply)}. Is this its address?"
        )
        known = kind if kind in (NotAllowed, Overloaded) else ServerFault
        return known(message, code="unexpected_answer", status=reply.status, request_id=request_id)
    faults = _faults(problem)
    detail = str(problem.get("detail") or problem.get("title") or reply.status)
    message = _message(detail, faults) + tries
    if kind is NotAllowed and reply.status == 401:
        message += ". Set PREVAIL_API_KEY to a key of this service"
    return kind(
        message,
        code=str(problem.get("code", "unknown")),
        faults=faults,
        status=reply.status,
        request_id=request_id,
        problem=problem,
    )


def unexpected(reply: Reply) -> ServerFault:
    """The exception of a success that says nothing that can be understood."""
    return ServerFault(
        f"{reply.url} answered {reply.status} without the JSON that the service sends: {_beginning(reply)}. "
        "Is this its address?",
        code="unexpected_answer",
        status=reply.status,
        request_id=reply.headers.get("x-request-id"),
    )


def _problem(reply: Reply) -> Mapping[str, Any] | None:
    if not reply.is_json:
        return None
    try:
        found = reply.json()
    except ValueError:
        return None
    return found if isinstance(found, Mapping) and ("code" in found or "detail" in found) else None


def problem_error(problem: Mapping[str, Any]) -> PrevailError:
    """The exception of a problem that is part of another answer: of a batch, or of a job."""
    faults, kind = _faults(problem), _kind(problem.get("status"))
    code, detail = str(problem.get("code", "unknown")), str(problem.get("detail", "it failed"))
    return kind(_message(detail, faults), code=code, faults=faults, problem=problem)


def _faults(problem: Mapping[str, Any]) -> list[Fault]:
    listed = problem.get("errors")
    return [_fault(one) for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []


def _fault(one: Mapping[str, Any]) -> Fault:
    pointer = one.get("pointer")
    place = in_words(pointer) if isinstance(pointer, str) else str(one.get("parameter") or "")
    return Fault(place, str(one.get("code", "")), str(one.get("detail", "")), str(pointer or ""))


def in_words(pointer: str) -> str:
    """A JSON pointer as one would write the place in Python: ``/options/metrics/1`` is ``metrics[1]``."""
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    if len(parts) > 1 and parts[0] in _FLAT:
        parts = parts[1:]
    text = ""
    for part in parts:
        text += f"[{part}]" if re.fullmatch("[0-9]+", part) else f".{part}" if text else part
    return text


def _message(detail: str, faults: Sequence[Fault]) -> str:
    if not faults:
        return detail
    lines = [str(one) for one in faults[:_MOST_SHOWN]]
    if len(faults) > _MOST_SHOWN:
        lines.append(f"and {len(faults) - _MOST_SHOWN} more")
    return "\n".join(lines)


def _beginning(reply: Reply) -> str:
    text = " ".join(reply.text[:200].split())
    return repr(text[:80]) if text else "an empty body"
