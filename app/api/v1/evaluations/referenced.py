"""Evaluations of data that is named: taken as jobs whatever the sender prefers, and carried out where jobs are."""

from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from typing import Final, cast

from fastapi import Request
from starlette.responses import Response

from app.api.answers import json_response
from app.api.bodies.files.table import MOST_ROWS
from app.api.bodies.parsing import Body
from app.api.bodies.received import LargeBody
from app.api.bodies.referenced import Asked, PartsOfData, Reading, count_data, estimated, read_data
from app.api.deps import CARRIED_OUT_BY, Context
from app.api.jobs import put_aside
from app.api.presentation import EVALUATION, View, json_view_of
from app.api.problems import InvalidQuery
from app.api.v1.evaluations.evaluating import KeptAs, check_moment, evaluated, kept_as, require_names
from app.api.v1.requests.referenced import ReferencedRequest, each_part, of_model, referenced, streamed, with_columns
from app.api.v1.reread import admit, reading_again
from app.domain.errors import BeyondMemory
from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.content import DATA_FACT
from app.services.evaluate.evaluations import NewEvaluation
from app.services.processes.worker import as_step

# Kinds that can be streamed are so when there are more rows.
STREAMED_FROM: Final = 100_000


async def admit_reference(context: Context, body: Body) -> ReferencedRequest | None:
    """The request if it names data, and what can be refused at once is refused; None if it does not.

    Raises:
        MalformedRequest, InvalidInput: it is of another form, or the data does not fit and lies on this machine.
        DataNotAllowed: the data does not lie where the operator allows it.
    """
    request = referenced(body)
    if request is None:
        return None
    # Whether it may be read comes before what is wrong with it.
    for uri in request.uris:
        context.services.data.source.check(uri)
    await admit(context, request.asked(body, context.services.data.memory_bytes))
    return request


async def estimate_reference(context: Context, body: Body | LargeBody) -> Response:
    """Size of the data that a request names, and how long its evaluation takes; nothing is evaluated.

    Raises:
        MalformedRequest, InvalidInput, DataNotAllowed: as `admit_reference`, or it names none.
    """
    request = None if isinstance(body, LargeBody) else referenced(body)
    if request is None:
        raise InvalidQuery.at("estimate", "no_reference", "expected input.data: only data that is named is estimated")
    data = context.services.data
    for uri in request.uris:
        data.source.check(uri)
    asked = request.asked(cast(Body, body), data.memory_bytes)
    return json_response(await context.services.compute.run(partial(estimated, data.source, asked, STREAMED_FROM)))


async def evaluate_reference(http: Request, context: Context, body: Body, view: View, *, keep: bool) -> Response | None:
    """Answer a request that names data: 202, or the evaluation when a job carries it out. None if it names no data."""
    request = referenced(body)
    if request is None:
        return None
    if CARRIED_OUT_BY not in http.scope["state"]:
        await admit_reference(context, body)
        check_moment(request.created_at, keep=keep, dated=context.administers)
        if keep:
            for model in request.names:
                with of_model(model if request.models else None):
                    require_names(model, request.dataset.to_domain() if request.dataset else None)
        return await put_aside(http, context, body)
    data = context.services.data
    asked = request.asked(body, data.memory_bytes)
    together = request.models is not None
    view = json_view_of(http, EVALUATION) if together else view
    kept = [kept_as(context, keep=keep, place=place) for place in range(len(request.names))]
    with reading_again(data) as reading:
        made = await data.compute.run(partial(_evaluated, reading, asked, kept, view))
    records = [record for _, record in made if record is not None]
    await context.services.evaluations.keep_all(context.project, records)
    status = HTTPStatus.CREATED if records else HTTPStatus.OK
    if together:
        return view.response(b'{"items":[%b]}' % b",".join(one for one, _ in made), status)
    [(answer, record)] = made
    return view.response(answer, status, {"Location": f"/v1/evaluations/{record.id}"} if record else {})


def _evaluated(
    reading: Reading, asked: Asked, kept: Sequence[KeptAs], view: View
) -> list[tuple[bytes, EvaluationRecord | None]]:
    """The answer about each model, and its record. All rows are read once."""
    if not asked.is_copied:
        return [evaluated(new_evaluation(reading, asked), kept[0], view)]
    with as_step(0, 2):
        each = reading.copied(asked)
    made = []
    for done, (one, own) in enumerate(zip(each, kept, strict=True)):
        with as_step(len(each) + done, 2 * len(each)), of_model(asked.models[done][0] if asked.models else None):
            made.append(evaluated(new_evaluation(reading, one), own, view))
    return made


def new_evaluation(reading: Reading, asked: Asked) -> NewEvaluation:
    """The evaluation, made in memory or of rows that are streamed: so many are read at most before that is decided.

    Raises:
        MalformedRequest, DataNotAllowed, InvalidInput, TooLarge: as `read_data`, `with_columns` and `streamed`.
    """
    source, parts, refused = reading.source, None, None
    if asked.streams:
        try:
            parts = PartsOfData(source, asked)
        except BeyondMemory as error:
            # Such rows may still fit.
            refused = error
    streams = asked.counts or parts is not None
    try:
        # The report is the other half, also below.
        with as_step(0, 2):
            return with_columns(asked.request, read_data(source, asked, STREAMED_FROM if streams else MOST_ROWS))
    except BeyondMemory as error:
        if not streams:
            raise refused or error from None
    # What was read until then has gone with the error.
    if parts is not None:
        facts = lambda rows: {DATA_FACT: parts.facts(rows)}  # noqa: E731
        return streamed(asked.kind, each_part(parts), facts, reading, asked.memory_bytes // 2)
    with as_step(0, 2), reading.engine.opened(reading.folder) as opened:
        return with_columns(asked.request, count_data(source, asked, opened))
