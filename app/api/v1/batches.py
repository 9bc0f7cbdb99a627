"""The route of many evaluations at once."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from itertools import count
from typing import Any, BinaryIO

import orjson
from fastapi import Request
from starlette.responses import Response

from app.api.answers import answers, json_response
from app.api.bodies.columns import byte_size
from app.api.bodies.keyed import REPLAYED, keyed_work
from app.api.bodies.parsing import parse_body, parse_value
from app.api.bodies.received import HEAVY_BYTES, LargeBody, receive
from app.api.cursors import Items
from app.api.deps import Context, UseContext, routes
from app.api.documentation import body_schema
from app.api.jobs.deferral import LATER, deferrable
from app.api.presentation import EVALUATION, View, json_view_of
from app.api.problems import Problem, ProblemValue, internal_error, problem_of, request_id
from app.api.v1.evaluating import (
    KeptAs,
    Store,
    compute_evaluation,
    evaluated,
    keep_evaluation,
    kept_as,
    kept_evaluation,
)
from app.api.v1.requests import evaluations as requests
from app.domain.evaluation import EvaluationRecord
from app.domain.members import LEFT_OUT, typed
from app.services.acting import make_part
from app.services.evaluate.evaluations import Evaluation
from app.services.idempotency import KeyedWork, keep_under
from app.services.ports.requests import KeyTakenError
from app.services.processes.progress import progressed

router = routes("evaluations")
# As many as one pass over the metrics takes: `services.evaluate.batching`.
_BATCH_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class BatchItem:
    """What became of one evaluation of a batch."""

    status: int
    evaluation: orjson.Fragment | None = field(default=None, metadata=LEFT_OUT | typed(Evaluation))
    problem: ProblemValue | None = field(default=None, metadata=LEFT_OUT)


@router.post(
    "/evaluations/batch",
    status_code=HTTPStatus.MULTI_STATUS,
    responses=answers(Items[BatchItem], status=207, name="BatchResponse") | LATER,
    openapi_extra=body_schema(requests.BatchRequest, requests.BATCHES),
    operation_id="createEvaluations",
)
@deferrable(requests.BatchRequest, large=True)
async def create_batch(
    request: Request,
    context: UseContext,
    *,
    store: Store = True,
) -> Response:
    """Evaluate and keep many inputs; each succeeds or fails on its own, in order. `Prefer: return=minimal` answers `id`
    and `headline` of each, which takes a fraction of the time.
    """
    view = json_view_of(request, EVALUATION)
    async with receive(request) as body:
        if isinstance(body, LargeBody):
            values = await context.services.compute.run(partial(_read_batch, body.read), body.file)
        else:
            values = [(value, False) for value in parse_body(body, requests.BatchRequest).evaluations]
    places = asyncio.Semaphore(_BATCH_AT_ONCE)
    ended = count(1)
    progressed(0, len(values))

    async def one(index: int, value: Any, *, heavy: bool) -> BatchItem:
        # Each in a task of its own.
        make_part(index)
        async with places:
            item = await _batch_item(request, context, index, value, view, store=store, heavy=heavy)
        progressed(next(ended), len(values))
        return item

    items = await asyncio.gather(*(one(index, value, heavy=heavy) for index, (value, heavy) in enumerate(values)))
    headers = _said_of(items, keyed_work(request))
    if view.applied:
        headers |= {"Preference-Applied": view.applied, "Vary": "Prefer"}
    return json_response(Items(items), HTTPStatus.MULTI_STATUS, headers)


def _said_of(items: Sequence[BatchItem], work: KeyedWork | None) -> dict[str, str]:
    """Whether everything that was kept for the batch was kept before."""
    if work is None or not work.results:
        return {}
    kept = {place for place, item in enumerate(items, start=1) if item.status == HTTPStatus.CREATED}
    return {} if kept - work.results.keys() else dict(REPLAYED)


def _read_batch(read: Callable[..., requests.BatchRequest], file: BinaryIO) -> list[tuple[Any, bool]]:
    """The items of a batch, none of them checked yet, and whether each is so large that it takes a process."""
    return [(value, byte_size(value) > HEAVY_BYTES) for value in read(file, requests.BatchRequest).evaluations]


async def _batch_item(
    request: Request, context: Context, index: int, value: Any, view: View, *, store: bool, heavy: bool
) -> BatchItem:
    try:
        # Others get their turn between two items.
        await asyncio.sleep(0)
        evaluate = partial(_evaluate_heavy if heavy else _evaluate_light, context, value, view, keep=store)
        written = await _evaluated_once(context, keyed_work(request), index + 1, view, evaluate)
    except Exception as error:  # noqa: BLE001 - it belongs to this item, and those before it are kept already
        return _failed(
            problem_of(error, prefix=f"/evaluations/{index}") or internal_error(error, request_id(request)), request
        )
    # As JSON, which takes a tenth of the memory that the values take as objects.
    return BatchItem(HTTPStatus.CREATED if store else HTTPStatus.OK, evaluation=orjson.Fragment(written))


async def _evaluated_once(
    context: Context, work: KeyedWork | None, item: int, view: View, evaluate: Callable[[], Awaitable[bytes]]
) -> bytes:
    """One evaluation, or what was kept for it when the batch came before with the same key."""
    if work is None:
        return await evaluate()
    kept = work.results.get(item)
    if kept is None:
        mark = work.mark.of_item(item)
        keep_under(mark)
        try:
            return await evaluate()
        except KeyTakenError:
            kept = await context.services.idempotency.result(mark)
    return view.write(await kept_evaluation(context, kept))


async def _evaluate_heavy(context: Context, value: Any, view: View, *, keep: bool) -> bytes:
    kept = kept_as(context, keep=keep)
    written, record = await context.services.compute.run_in_turn(partial(_evaluate_value, value, kept, view))
    if record is not None:
        await context.services.evaluations.keep(context.project, record)
    return written


async def _evaluate_light(context: Context, value: Any, view: View, *, keep: bool) -> bytes:
    new = parse_value(value, requests.EvaluationRequest).to_domain()
    if not keep:
        return view.write(await compute_evaluation(context, new))
    keeping = await keep_evaluation(context, new, view)
    await keeping.done()
    return view.write(keeping.evaluation)


def _evaluate_value(value: Any, kept: KeptAs, view: View) -> tuple[bytes, EvaluationRecord | None]:
    return evaluated(parse_value(value, requests.EvaluationRequest).to_domain(), kept, view)


def _failed(problem: Problem, request: Request) -> BatchItem:
    return BatchItem(problem.status, problem=problem.of_request(request_id(request)))
