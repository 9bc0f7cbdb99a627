"""A kept request carried out: by the same routes as any other, for whoever sent it, with nobody at the other end."""

import copy
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

import orjson
from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.types import Message

from app.api.answers import write_json
from app.api.deps import CARRIED_OUT_BY, Services
from app.api.jobs.deferral import ADMINISTERS
from app.api.problems import Problem, internal_error, refusal_of
from app.domain.errors import DomainError
from app.domain.operations.jobs import Task
from app.services.jobs import Answered


class KeptRequests:
    """The port `app.services.jobs.Requests` for the routes of an application."""

    def __init__(self, app: FastAPI, services: Services) -> None:
        """``services`` are those that carry them out, which have processes and deadlines of their own."""
        self._app, self._services = app, services
        # Who may do what, limits of bodies and the log of requests were seen to when the request came.
        bare = copy.copy(app)
        bare.user_middleware = []
        self._routes = bare.build_middleware_stack()

    async def answer(self, task: Task, body: AsyncIterator[bytes]) -> Answered:
        """What the request is answered now."""
        sent: list[Message] = []

        async def send(message: Message) -> None:
            sent.append(message)

        async def receive() -> Message:
            piece = await anext(body, None)
            return {"type": "http.request", "body": piece or b"", "more_body": piece is not None}

        try:
            await self._routes(self._scope(task), receive, send)
        except Exception as error:  # noqa: BLE001 - it belongs to the job, as it would to the request
            return _refused(task, internal_error(error, _request_id(task)))
        return _answered(sent)

    def refuse(self, task: Task, error: DomainError) -> Answered:
        """What it is answered when an error comes of it."""
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


def _refused(task: Task, problem: Problem) -> Answered:
    return Answered(problem=orjson.loads(write_json(problem.of_request(_request_id(task)))))


def _answered(sent: list[Message]) -> Answered:
    start, *rest = sent
    headers = Headers(raw=start["headers"])
    content = b"".join(message.get("body", b"") for message in rest)
    if start["status"] >= HTTPStatus.BAD_REQUEST:
        return Answered(problem=orjson.loads(content))
    return Answered(location=headers.get("location"), media_type=headers["content-type"], content=content)
