"""Requests that are deferred as jobs, and carried out later through the same routes."""

import copy
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from functools import wraps
from http import HTTPStatus
from io import BytesIO
from typing import Any, Final, ParamSpec

import orjson
from fastapi import FastAPI, Request
from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Message

from app.api.access import IDEMPOTENCY_KEY
from app.api.answers import answers, json_response, write_json
from app.api.bodies.multipart import is_multipart
from app.api.bodies.parsing import Body, check_media_type, parse_body, read_body
from app.api.bodies.received import put_down, put_down_form
from app.api.deps import CARRIED_OUT_BY, DOCUMENTED, Context, Services
from app.api.documentation import address, body_schema, header
from app.api.presentation import AS_USUAL, AnswerKind, preferences, view_of
from app.api.problems import RETRY_SECONDS, Problem, internal_error, refusal_of
from app.domain.errors import DomainError
from app.domain.operations import Job, JobEnd, JobResult, JobStatus, KeptRequest, Task

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
            "Location": address("The address of the job."),
            "Retry-After": header("Seconds.", required=True, type="integer"),
            "Preference-Applied": {"schema": {"type": "string", "const": PREFERENCE}},
        },
        "links": {
            use: {"operationId": use, "parameters": {"identifier": "$response.body#/id"}}
            for use in ("getJob", "cancelJob", "getJobResult")
        },
    }
}


def deferrable(
    model: type[BaseModel],
    written: AnswerKind | None = None,
    *,
    large: bool = False,
    files: bool = False,
    otherwise: type[BaseModel] | None = None,
    admit: Callable[[Context, Body], Awaitable[object]] | None = None,
) -> Callable[[Endpoint[Parameters]], Endpoint[Parameters]]:
    """A route that may be answered later, if the request prefers that.

    Args:
        model: Of its body.
        written: The kind of its answer, where `Accept` decides how it is written.
        large: It takes bodies with columns of samples.
        files: It takes forms with a file.
        otherwise: Another model that its body may have.
        admit: Looks at a small body that may be of that model; None comes of one that is not.
    """

    def decorate(endpoint: Endpoint[Parameters]) -> Endpoint[Parameters]:
        @wraps(endpoint)
        async def now_or_later(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Response:
            request: Any = kwargs["request"]
            context: Any = kwargs["context"]
            if PREFERENCE not in preferences(request):
                return await endpoint(*args, **kwargs)
            if written is not None:
                asked: Any = kwargs.get("asked", AS_USUAL)
                view_of(request, written, asked)
            return accepted(await taken(request, context))

        async def taken(request: Request, context: Context) -> Job:
            jobs, kept = context.services.jobs.store, _kept(request)
            if IDEMPOTENCY_KEY not in request.headers:
                # Else it may be there already.
                await jobs.require_room(context.project)
            if files and is_multipart(request):
                async with put_down_form(request) as (media_type, file):
                    kept = replace(kept, headers={**kept.headers, "content-type": media_type})
                    return await jobs.add(context.project, kept, file)
            if large:
                check_media_type(request)
                async with put_down(request) as body:
                    if not isinstance(body, bytearray):
                        return await jobs.add(context.project, kept, body)
                    if admit is None or await admit(context, body) is None:
                        parse_body(body, model)
                    return await jobs.add(context.project, kept, BytesIO(body))
            small = await read_body(request)
            parse_body(small, model)
            return await jobs.add(context.project, kept, BytesIO(small))

        schema = body_schema(model, with_file=files, otherwise=otherwise)
        vars(now_or_later)[DOCUMENTED] = {"responses": LATER, "openapi_extra": schema}
        return now_or_later

    return decorate


async def put_aside(request: Request, context: Context, body: Body) -> Response:
    """Take a request as a job whose body has been looked at; raises TooManyJobs or Overloaded where too many wait."""
    job = await context.services.jobs.store.add(context.project, _kept(request), BytesIO(body))
    return accepted(job, preferred=False)


def accepted(job: Job, *, preferred: bool = True) -> Response:
    """Answer 202 with the job that carries out a deferred request; ``preferred``: the request asked for that."""
    headers = {"Location": f"/v1/jobs/{job.id}", "Retry-After": str(RETRY_SECONDS)}
    if preferred:
        headers["Preference-Applied"] = PREFERENCE
    return json_response(job, HTTPStatus.ACCEPTED, headers)


def _kept(request: Request) -> KeptRequest:
    headers = {name: request.headers[name] for name in _KEPT if name in request.headers}
    if request.scope["state"].get("administers"):
        headers[ADMINISTERS] = "true"
    others = [one for one in preferences(request) if one != PREFERENCE]
    if any(others):
        headers["prefer"] = ", ".join(others)
    return KeptRequest(
        kind=request.scope["route"].operation_id,
        method=request.method,
        path=request.scope["path"],
        query=request.scope["query_string"].decode("latin-1"),
        headers=headers,
    )


class DeferredRequests:
    """The port `app.services.jobs.Requests` for the routes of an application."""

    def __init__(self, app: FastAPI, services: Services) -> None:
        """``services`` are those that carry them out, which have processes and deadlines of their own."""
        self._app, self._services = app, services
        # Who may do what, limits of bodies and the log of requests were seen to when the request came.
        bare = copy.copy(app)
        bare.user_middleware = []
        self._routes = bare.build_middleware_stack()

    async def answer(self, task: Task, body: AsyncIterator[bytes]) -> JobEnd:
        """Carry out a stored request and return its answer."""
        try:
            return _answered(task, await self.messages(task, body))
        except Exception as error:  # noqa: BLE001 - it belongs to the job, as it would to the request
            return _refused(task, internal_error(error, _request_id(task)))

    async def messages(self, task: Task, body: AsyncIterator[bytes] | None = None) -> list[Message]:
        """Carry out a stored request and return the messages of its answer; None is no body."""
        sent: list[Message] = []

        async def send(message: Message) -> None:
            sent.append(message)

        async def receive() -> Message:
            piece = None if body is None else await anext(body, None)
            return {"type": "http.request", "body": piece or b"", "more_body": piece is not None}

        await self._routes(self._scope(task), receive, send)
        return sent

    def refuse(self, task: Task, error: DomainError) -> JobEnd:
        """Return the answer of a request that ended with this error."""
        return _refused(task, refusal_of(error))

    def _scope(self, task: Task) -> dict[str, Any]:
        request, headers = task.request, dict(task.request.headers)
        administers = headers.pop(ADMINISTERS, None) is not None
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method,
            "scheme": "http",
            "path": request.path,
            "raw_path": request.path.encode(),
            "query_string": request.query.encode("latin-1"),
            "root_path": "",
            "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()],
            "client": None,
            "server": None,
            "app": self._app,
            "state": {
                "request_id": _request_id(task),
                "project": task.project,
                "key_id": task.actor.key,
                "administers": administers,
                CARRIED_OUT_BY: self._services,
            },
        }


def _request_id(task: Task) -> str:
    return task.actor.request or str(task.id)


def _refused(task: Task, problem: Problem) -> JobEnd:
    return _failed(write_json(problem.of_request(_request_id(task))))


def _failed(problem: bytes) -> JobEnd:
    return JobEnd(status=JobStatus.FAILED, problem=orjson.loads(problem))


def _answered(task: Task, sent: list[Message]) -> JobEnd:
    start, *rest = sent
    headers = Headers(raw=start["headers"])
    content = b"".join(message.get("body", b"") for message in rest)
    if start["status"] >= HTTPStatus.BAD_REQUEST:
        return _failed(content)
    if "location" in headers:
        return JobEnd(status=JobStatus.SUCCEEDED, result=headers["location"])
    kept = JobResult(headers["content-type"], content)
    return JobEnd(status=JobStatus.SUCCEEDED, result=f"/v1/jobs/{task.id}/result", content=kept)
