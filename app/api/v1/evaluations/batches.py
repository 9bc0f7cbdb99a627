"""The route of many evaluations at once."""

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from itertools import chain
from typing import Any

import numpy as np
import orjson
from fastapi import Request
from starlette.responses import Response

from app.api.answers import answers, write_json
from app.api.bodies.keyed import REPLAYED, keyed_work
from app.api.bodies.parsing import parse_body, parse_value
from app.api.bodies.received import HEAVY_BYTES, LargeBody, receive
from app.api.cursors import Items
from app.api.deps import Context, UseContext, routes
from app.api.jobs import deferrable
from app.api.presentation import AS_USUAL, EVALUATION, MembersOfEvaluation, View, json_view_of
from app.api.problems import ProblemValue, internal_error, problem_of, request_id
from app.api.v1.evaluations.evaluating import (
    KeptAs,
    Store,
    compute_evaluation,
    evaluated,
    evaluated_together,
    keep_evaluation,
    kept_as,
    kept_evaluation,
)
from app.api.v1.requests import evaluations as requests
from app.domain.errors import Overloaded
from app.domain.evaluation import EvaluationRecord
from app.domain.members import LEFT_OUT, typed
from app.services.evaluate.evaluations import Evaluation
from app.services.idempotency import KeyedWork, keep_under
from app.services.ports import KeyTakenError
from app.services.present import make_part
from app.services.processes.worker import progressed

_log = logging.getLogger("prevail.api")
router = routes("evaluations")
# As many as one pass over the metrics takes: `services.evaluate.reports`.
_BATCH_AT_ONCE = 32
# Matrices that a process computes at once, where a batch has more: two passes.
_PIECE = 64
# Pieces of a batch that are computed side by side, where processes are free.
_SIDE_BY_SIDE = 2
# Of an entry of an array.
_BYTES = 8
Computed = list[tuple[bytes, EvaluationRecord | None] | None]


@dataclass(frozen=True, slots=True)
class BatchItem:
    """The result of one evaluation of a batch."""

    status: int
    evaluation: orjson.Fragment | None = field(default=None, metadata=LEFT_OUT | typed(Evaluation))
    problem: ProblemValue | None = field(default=None, metadata=LEFT_OUT)


@router.post("/evaluations/batch", responses=answers(Items[BatchItem], status=207, name="BatchResponse"))
@deferrable(requests.BatchRequest, large=True)
async def create_evaluations(
    request: Request,
    context: UseContext,
    *,
    store: Store = True,
    asked: MembersOfEvaluation = AS_USUAL,
) -> Response:
    """Evaluate and keep many inputs; each succeeds or fails on its own, in order. `Prefer: return=minimal` answers `id`
    and `headline` of each, which takes a fraction of the time; `fields` chooses members of each.
    """
    view = json_view_of(request, EVALUATION, asked)
    async with receive(request) as body:
        large = isinstance(body, LargeBody)
        if isinstance(body, LargeBody):
            values = await body.apart(context.services.compute, requests.BatchRequest, _items)
        else:
            values = [(value, False) for value in parse_body(body, requests.BatchRequest).evaluations]
    batch = _Batch(request, context, view, keyed_work(request), values, keep=store)
    await batch.evaluate(apart=large and len(values) > _PIECE)
    headers = batch.said()
    if view.applied:
        headers |= {"Preference-Applied": view.applied, "Vary": "Prefer"}
    return batch.answer(headers)


class _Batch:
    """The items of one request, each answered on its own."""

    def __init__(
        self,
        request: Request,
        context: Context,
        view: View,
        work: KeyedWork | None,
        values: Sequence[tuple[Any, bool]],
        *,
        keep: bool,
    ) -> None:
        """Take the items as they came, with whether each is so large that it takes a process."""
        self._request, self._context, self._view, self._work, self._values = request, context, view, work, values
        self._keep = keep
        self._places = asyncio.Semaphore(_BATCH_AT_ONCE)
        # As JSON, which takes a tenth of the memory that the values take as objects.
        self._found: dict[int, bytes] = {}
        self._made_places: set[int] = set()

    async def evaluate(self, *, apart: bool) -> None:
        """Find out what becomes of all of them; ``apart``: light ones may be computed in a process."""
        progressed(0, len(self._values))
        light = self._light() if apart else []
        alone = sorted({*range(len(self._values))}.difference(light))
        await asyncio.gather(self._all_apart(light), *map(self._one, alone))

    def answer(self, headers: Mapping[str, str]) -> Response:
        """Return the results in the order of the request: `Items[BatchItem]`."""
        written = b'{"items":[%b]}' % b",".join(self._found.pop(index) for index in range(len(self._values)))
        return Response(written, HTTPStatus.MULTI_STATUS, headers, media_type="application/json")

    def said(self) -> dict[str, str]:
        """Return the header of a replay if every stored evaluation had been stored by an earlier request."""
        if self._work is None or not self._work.results:
            return {}
        kept = {index + 1 for index in self._made_places} if self._keep else set()
        return {} if kept - self._work.results.keys() else dict(REPLAYED)

    def _light(self) -> list[int]:
        """Places of light items that were not saved before."""
        known = {} if self._work is None else self._work.results
        return [index for index, (_, heavy) in enumerate(self._values) if not heavy and index + 1 not in known]

    def _done(self, index: int, item: bytes) -> None:
        self._found[index] = item
        progressed(len(self._found), len(self._values))

    async def _one(self, index: int, failure: BaseException | None = None) -> None:
        """Evaluate an item alone, or say why it could not be kept."""
        # Each in a task of its own.
        make_part(index)
        async with self._places:
            try:
                # Others get their turn between two items.
                await asyncio.sleep(0)
                written = await self._evaluated_once(index, failure)
            except Exception as error:  # noqa: BLE001 - it belongs to this item, and those before it are kept already
                identifier = request_id(self._request)
                problem = problem_of(error, prefix=f"/evaluations/{index}") or internal_error(error, identifier)
                self._done(index, write_json(BatchItem(problem.status, problem=problem.of_request(identifier))))
            else:
                self._made(index, _item(written, keep=self._keep))

    def _made(self, index: int, item: bytes) -> None:
        self._made_places.add(index)
        self._done(index, item)

    async def _evaluated_once(self, index: int, failure: BaseException | None) -> bytes:
        """Evaluate one item, or return the stored result if the batch came before with the same key."""
        if self._work is None:
            return await self._evaluated(index, failure)
        kept = self._work.results.get(index + 1)
        if kept is None:
            mark = self._work.mark.of_item(index + 1)
            keep_under(mark)
            try:
                return await self._evaluated(index, failure)
            except KeyTakenError:
                kept = await self._context.services.idempotency.result(mark)
        return self._view.write(await kept_evaluation(self._context, kept, self._view))

    async def _evaluated(self, index: int, failure: BaseException | None) -> bytes:
        if failure is not None:
            raise failure
        value, heavy = self._values[index]
        context, view = self._context, self._view
        if heavy:
            work = partial(_evaluate_value, value, kept_as(context, keep=self._keep), view)
            written, record = await context.services.compute.run_in_turn(work)
            if record is not None:
                await context.services.evaluations.keep(context.project, record)
            return written
        new = parse_value(value, requests.EvaluationRequest).to_domain()
        if not self._keep:
            return view.write(await compute_evaluation(context, new, view))
        evaluation, kept = await keep_evaluation(context, new, view)
        await kept
        return view.write(evaluation)

    # Many at once.

    async def _all_apart(self, places: Sequence[int]) -> None:
        """Compute items in processes, piece by piece."""
        pieces = iter([places[first : first + _PIECE] for first in range(0, len(places), _PIECE)])
        async with asyncio.TaskGroup() as tasks:
            for _ in range(_SIDE_BY_SIDE):
                tasks.create_task(self._some_apart(pieces))

    async def _some_apart(self, pieces: Iterator[Sequence[int]]) -> None:
        """Compute pieces as long as there are any; while one is kept, the next is computed."""
        keeping: asyncio.Task[None] | None = None
        async with asyncio.TaskGroup() as tasks:
            for piece in pieces:
                computed = await self._computed(piece)
                if computed is None:
                    # Processes have other work for long: the rest is computed here.
                    await asyncio.gather(*map(self._one, chain(piece, *pieces)))
                    return
                if keeping is not None:
                    # Not more at once, so that others find room in the queue of what is to be kept.
                    await keeping
                keeping = tasks.create_task(self._kept(dict(zip(piece, computed, strict=True))))

    async def _computed(self, piece: Sequence[int]) -> Computed | None:
        """Compute a piece in a compute process; return None if none is free."""
        asked = [(self._values[index][0], kept_as(self._context, keep=self._keep, place=index)) for index in piece]
        try:
            return await self._context.services.compute.run_piece(partial(_evaluate_piece, asked, self._view))
        except Overloaded:
            return None
        except Exception:  # noqa: BLE001 - of an item, not of the batch
            # What goes wrong with one of them must not cost the others anything: each is evaluated alone then.
            _log.exception("a piece of a batch could not be computed together; its items are evaluated alone")
            return [None] * len(piece)

    async def _kept(self, computed: Mapping[int, tuple[bytes, EvaluationRecord | None] | None]) -> None:
        """Keep a piece; those that were not computed, or cannot be kept, go on alone."""
        found = {index: one for index, one in computed.items() if one is not None}
        records = {index: record for index, (_, record) in found.items() if record is not None}
        mark = None if self._work is None else self._work.mark
        marked = [(record, None if mark is None else mark.of_item(index + 1)) for index, record in records.items()]
        kept = await self._context.services.evaluations.keep_together(self._context.project, marked)
        failures = {index: error for index, error in zip(records, kept, strict=True) if error is not None}
        for index in found.keys() - failures.keys():
            self._made(index, found[index][0])
        rest = [index for index in computed if index not in found or index in failures]
        await asyncio.gather(*(self._one(index, failures.get(index)) for index in rest))


def _items(batch: requests.BatchRequest) -> list[tuple[Any, bool]]:
    """The items of a batch, none of them checked yet, and whether each is so large that it takes a process."""
    return [(value, _BYTES * entries_of(value) > HEAVY_BYTES) for value in batch.evaluations]


def entries_of(value: Any) -> int:
    """Number of entries of all arrays in a parsed object."""
    if isinstance(value, np.ndarray):
        return value.size
    if isinstance(value, dict):
        return sum(map(entries_of, value.values()))
    return len(value) + sum(map(entries_of, value)) if isinstance(value, list) else 0


def _evaluate_value(value: Any, kept: KeptAs, view: View) -> tuple[bytes, EvaluationRecord | None]:
    return evaluated(parse_value(value, requests.EvaluationRequest).to_domain(), kept, view)


def _evaluate_piece(asked: Sequence[tuple[Any, KeptAs]], view: View) -> Computed:
    """Evaluate several at once: the items of the answer, and the records.

    None for what is refused, or takes a way of its own.
    """
    made = evaluated_together(asked, view)
    return [one and (_item(one[0], keep=one[1] is not None), one[1]) for one in made]


def _item(written: bytes, *, keep: bool) -> bytes:
    """Return the JSON of an item whose evaluation was made."""
    status = HTTPStatus.CREATED if keep else HTTPStatus.OK
    return write_json(BatchItem(status, evaluation=orjson.Fragment(written)))
