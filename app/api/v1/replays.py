"""Answers of repeated requests with an `Idempotency-Key`: the object that the first one made, in its present state."""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final

from fastapi import Request
from starlette.responses import Response

from app.api.answers import json_response
from app.api.bodies.keyed import REPLAYED, Replay
from app.api.deps import Context, context, tag_change
from app.api.jobs import accepted
from app.api.presentation import evaluation_answer, requested_view
from app.api.v1.evaluations.evaluating import deleted, kept_evaluation
from app.domain.errors import NotFound, ShownOnce
from app.domain.operations import KeptResult, Kind


async def replay(request: Request, error: Exception) -> Response:
    """The answer once more: the handler of `Replay`.

    Raises:
        ResultDeleted: what was made is there no more.
        ShownOnce: it was answered with a secret.
    """
    assert isinstance(error, Replay)  # noqa: S101 - registered for this class only
    result = error.result
    try:
        answer = await _REPLAYS[result.kind](request, await context(request), result)
    except NotFound as missing:
        raise deleted(result) from missing
    answer.headers.update(REPLAYED)
    if request.method == "PUT":
        await tag_change(request, answer)
    return answer


async def _evaluation(request: Request, context: Context, result: KeptResult) -> Response:
    evaluation = await kept_evaluation(context, result, requested_view(request))
    headers = {"Location": f"/v1/evaluations/{result.object}"}
    return await evaluation_answer(requested_view(request), evaluation, result.status, headers)


async def _comparison(request: Request, context: Context, result: KeptResult) -> Response:
    answer = await context.services.comparisons.read(context.project, result.identifier)
    return requested_view(request).answer(answer, result.status, {"Location": f"/v1/comparisons/{result.object}"})


async def _check(request: Request, context: Context, result: KeptResult) -> Response:
    gate = request.path_params["name"]
    answer = await context.services.gates.read_check(context.project, gate, result.identifier)
    headers = {"Location": f"/v1/gates/{gate}/checks/{result.object}"}
    return requested_view(request).answer(answer, result.status, headers)


async def _gate(request: Request, context: Context, result: KeptResult) -> Response:
    name, gates = request.path_params["name"], context.services.gates
    # Versions of a gate that was deleted can still be read.
    await gates.read(context.project, name)
    gate = await gates.read(context.project, name, int(result.object))
    return json_response(
        gate, result.status, {"Location": f"/v1/gates/{name}"} if result.status == HTTPStatus.CREATED else None
    )


async def _job(_: Request, context: Context, result: KeptResult) -> Response:
    return accepted(await context.services.jobs.read(context.project, result.identifier))


async def _key(_: Request, __: Context, result: KeptResult) -> Response:
    raise ShownOnce(
        f"the key {result.object} was made, or given another secret, for this Idempotency-Key; its secret was shown "
        "then and is kept nowhere: rotate the key for another one"
    )


async def _webhook(request: Request, context: Context, result: KeptResult) -> Response:
    name = request.path_params["name"]
    if result.object != name:
        raise ShownOnce(
            f"the webhook {name} was made for this Idempotency-Key; its secret was shown then, and is not shown again: "
            "put the webhook with another one"
        )
    headers = {"Location": f"/v1/webhooks/{name}"} if result.status == HTTPStatus.CREATED else None
    return json_response(await context.services.webhooks.store.get(context.project, name), result.status, headers)


async def _delivery(request: Request, context: Context, result: KeptResult) -> Response:
    name = request.path_params["name"]
    retried = await context.services.webhooks.store.retried(context.project, name, result.identifier)
    return json_response(retried, result.status)


_REPLAYS: Final[Mapping[Kind, Callable[[Request, Context, KeptResult], Awaitable[Response]]]] = {
    Kind.EVALUATION: _evaluation,
    Kind.COMPARISON: _comparison,
    Kind.CHECK: _check,
    Kind.GATE: _gate,
    Kind.JOB: _job,
    Kind.KEY: _key,
    Kind.WEBHOOK: _webhook,
    Kind.DELIVERY: _delivery,
}
