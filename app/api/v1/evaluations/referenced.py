"""Evaluations of data that is named: taken as jobs whatever the sender prefers, and carried out where jobs are."""

from functools import partial
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from fastapi import Request
from starlette.responses import Response

from app.api.answers import json_response
from app.api.bodies.files.table import MOST_ROWS
from app.api.bodies.parsing import Body
from app.api.bodies.received import LargeBody
from app.api.bodies.referenced import Asked, PartsOfData, check_data, count_data, estimated, read_data
from app.api.deps import CARRIED_OUT_BY, Context
from app.api.jobs import put_aside
from app.api.presentation import View
from app.api.problems import InvalidQuery
from app.api.v1.evaluations.evaluating import KeptAs, check_moment, evaluated, kept_as, require_names
from app.api.v1.requests.referenced import ReferencedRequest, referenced, with_columns, with_parts
from app.domain.errors import BeyondMemory
from app.domain.evaluation import EvaluationRecord
from app.services.evaluate.evaluations import NewEvaluation
from app.services.ports import DataSource, Engine
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
    data = context.services.data
    # Whether it may be read comes before what is wrong with it.
    is_here = data.source.check(request.uri)
    asked = request.asked(data.memory_bytes)
    if is_here:
        await context.services.compute.run(partial(check_data, data.source, asked))
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
    data.source.check(request.uri)
    asked = request.asked(data.memory_bytes)
    return json_response(await context.services.compute.run(partial(estimated, data.source, asked, STREAMED_FROM)))


async def evaluate_reference(http: Request, context: Context, body: Body, view: View, *, keep: bool) -> Response | None:
    """What a request that names data is answered: 202, or the evaluation when it is carried out as a job; None when it
    names none.
    """
    request = referenced(body)
    if request is None:
        return None
    if CARRIED_OUT_BY not in http.scope["state"]:
        await admit_reference(context, body)
        check_moment(request.created_at, keep=keep, dated=context.administers)
        if keep:
            require_names(*request.names())
        return await put_aside(http, context, body)
    data = context.services.data
    asked = request.asked(data.memory_bytes)
    # Made here, so that it goes also where the process is ended that fills it.
    with TemporaryDirectory(prefix="job-", dir=data.folder, ignore_cleanup_errors=True) as folder:
        work = partial(
            _evaluated,
            bytes(body),
            data.source,
            asked,
            data.engine,
            folder,
            kept_as(context, keep=keep),
            view,
        )
        written, record = await data.compute.run(work)
    if record is None:
        return view.response(written)
    await context.services.evaluations.keep(context.project, record)
    return view.response(written, HTTPStatus.CREATED, {"Location": f"/v1/evaluations/{record.id}"})


def _evaluated(
    body: bytes,
    source: DataSource,
    asked: Asked,
    engine: Engine,
    folder: str,
    kept: KeptAs,
    view: View,
) -> tuple[bytes, EvaluationRecord | None]:
    return evaluated(new_evaluation(body, source, asked, engine, Path(folder)), kept, view)


def new_evaluation(body: bytes, source: DataSource, asked: Asked, engine: Engine, folder: Path) -> NewEvaluation:
    """The evaluation, made in memory or of rows that are streamed: so many are read at most before that is decided.

    Raises:
        MalformedRequest, DataNotAllowed, InvalidInput, TooLarge: as `read_data`, `with_columns` and `with_parts`.
    """
    parts, refused = None, None
    if asked.folds:
        try:
            parts = PartsOfData(source, asked)
        except BeyondMemory as error:
            # Such rows may still fit.
            refused = error
    streams = asked.counts or parts is not None
    try:
        # The report is the other half, also below.
        with as_step(0, 2):
            return with_columns(body, read_data(source, asked, STREAMED_FROM if streams else MOST_ROWS))
    except BeyondMemory as error:
        if not streams:
            raise refused or error from None
    # What was read until then has gone with the error.
    if parts is not None:
        budget = asked.memory_bytes // 2
        return with_parts(body, parts, engine=engine, budget=budget, folder=folder)
    with as_step(0, 2), engine.opened(folder) as opened:
        return with_columns(body, count_data(source, asked, opened))
