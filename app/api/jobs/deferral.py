"""`Prefer: respond-async`: a request is put aside, answered 202 with the address of its job, and carried out later.

What can be refused cheaply is refused at once: the address and its parameters, what the answer is to be written in, the
media type, the size, and the form of bodies that are not large. All else becomes the problem of the job.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import wraps
from http import HTTPStatus
from io import BytesIO
from typing import Any, Final, ParamSpec

from fastapi import Request
from pydantic import BaseModel
from starlette.responses import Response

from app.api.answers import answers, json_response
from app.api.bodies.multipart import is_multipart
from app.api.bodies.parsing import Body, check_media_type, parse_body, read_body
from app.api.bodies.received import put_down, put_down_form
from app.api.deps import Context
from app.api.presentation import AS_USUAL, Kind, view_of
from app.domain.operations.jobs import Job, KeptRequest

Parameters = ParamSpec("Parameters")
Endpoint = Callable[Parameters, Awaitable[Response]]
PREFERENCE: Final = "respond-async"
# Of a request, what decides about its answer.
_KEPT: Final = ("accept", "content-type")
# Beside them, where whoever sent the request administers the service; no header can have such a name.
ADMINISTERS: Final = ":administers"

LATER: Final[dict[int | str, dict[str, Any]]] = {
    HTTPStatus.ACCEPTED.value: {
        **answers(Job)[HTTPStatus.OK.value],
        "description": "With `Prefer: respond-async`, and always for data by reference: it is answered later.",
        "headers": {
            "Location": {
                "description": "The address of the job.",
                "required": True,
                "schema": {"type": "string", "format": "uri-reference"},
            },
            "Preference-Applied": {"schema": {"type": "string", "const": PREFERENCE}},
        },
        "links": {
            use: {"operationId": use, "parameters": {"identifier": "$response.body#/id"}}
            for use in ("getJob", "cancelJob", "getJobResult")
        },
    }
}


@dataclass(frozen=True, slots=True)
class _Form:
    """What a request has to look like, as far as that is known before it is carried out."""

    model: type[BaseModel]
    written: Kind | None
    large: bool
    files: bool
    admit: Callable[[Context, Body], Awaitable[object]] | None


def deferrable(
    model: type[BaseModel],
    written: Kind | None = None,
    *,
    large: bool = False,
    files: bool = False,
    admit: Callable[[Context, Body], Awaitable[object]] | None = None,
) -> Callable[[Endpoint[Parameters]], Endpoint[Parameters]]:
    """A route that may be answered later, if the request prefers that.

    Args:
        model: Of its body.
        written: The kind of its answer, where `Accept` decides how it is written.
        large: It takes bodies with columns of samples.
        files: It takes forms with a file.
        admit: Looks at a small body that is of another form than the model; None comes of one that is not.
    """
    form = _Form(model, written, large, files, admit)

    def decorate(endpoint: Endpoint[Parameters]) -> Endpoint[Parameters]:
        @wraps(endpoint)
        async def now_or_later(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Response:
            request: Any = kwargs["request"] if "request" in kwargs else args[0]
            if "prefer" not in request.headers or not _prefers(request):
                return await endpoint(*args, **kwargs)
            context: Any = kwargs["context"] if "context" in kwargs else args[1]
            if form.written is not None:
                asked: Any = kwargs.get("asked", AS_USUAL)
                view_of(request, form.written, asked)
            return await _put_aside(request, context, form)

        return now_or_later

    return decorate


def _prefers(request: Request) -> bool:
    return PREFERENCE in _preferences(request)


def _preferences(request: Request) -> list[str]:
    said = ",".join(request.headers.getlist("prefer"))
    return [one.strip().lower() for one in said.split(",")]


async def _put_aside(request: Request, context: Context, form: _Form) -> Response:
    jobs = context.services.jobs
    await jobs.require_room(context.project)
    kept = _kept(request)
    if form.files and is_multipart(request):
        async with put_down_form(request) as (media_type, file):
            kept = replace(kept, headers={**kept.headers, "content-type": media_type})
            job = await jobs.take(context.project, kept, file)
    elif form.large:
        check_media_type(request)
        async with put_down(request) as body:
            if isinstance(body, bytearray) and (form.admit is None or await form.admit(context, body) is None):
                parse_body(body, form.model)
            job = await jobs.take(context.project, kept, BytesIO(body) if isinstance(body, bytearray) else body)
    else:
        small = await read_body(request)
        parse_body(small, form.model)
        job = await jobs.take(context.project, kept, BytesIO(small))
    return accepted(job)


async def put_aside(request: Request, context: Context, body: Body) -> Response:
    """Take a request as a job whose body has been looked at; it need not prefer that.

    Raises:
        TooManyJobs, Overloaded: too many wait.
    """
    jobs = context.services.jobs
    await jobs.require_room(context.project)
    job = await jobs.take(context.project, _kept(request), BytesIO(body))
    return json_response(job, HTTPStatus.ACCEPTED, {"Location": f"/v1/jobs/{job.id}"})


def accepted(job: Job) -> Response:
    """What a request is answered that was put aside as it preferred."""
    headers = {"Location": f"/v1/jobs/{job.id}", "Preference-Applied": PREFERENCE}
    return json_response(job, HTTPStatus.ACCEPTED, headers)


def _kept(request: Request) -> KeptRequest:
    headers = {name: request.headers[name] for name in _KEPT if name in request.headers}
    if request.scope["state"].get("administers"):
        headers[ADMINISTERS] = "true"
    others = [one for one in _preferences(request) if one != PREFERENCE]
    if any(others):
        headers["prefer"] = ", ".join(others)
    return KeptRequest(
        kind=request.scope["route"].operation_id,
        method=request.method,
        path=request.scope["path"],
        query=request.scope["query_string"].decode("latin-1"),
        headers=headers,
    )
