"""Evaluations of data that is named, and merges of such, for which all of it is read again as one: taken as jobs
whatever the sender prefers, and carried out where jobs are.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from itertools import count
from typing import Any, Final, cast

import numpy as np
import orjson
from fastapi import Request
from starlette.responses import Response

from app.api.answers import json_response
from app.api.bodies.files.table import MOST_ROWS
from app.api.bodies.parsing import Body, parse_body
from app.api.bodies.received import LargeBody
from app.api.bodies.referenced import Asked, NamedRows, Reading, estimated
from app.api.deps import CARRIED_OUT_BY, Context
from app.api.jobs import put_aside
from app.api.presentation import EVALUATION, View, json_view_of
from app.api.problems import InvalidQuery
from app.api.v1.evaluations.evaluating import KeptAs, check_moment, evaluated, kept_as, require_names
from app.api.v1.requests import evaluations as requests
from app.api.v1.requests.referenced import ReferencedRequest, each_part, of_model, referenced, streamed, with_columns
from app.api.v1.reread import DataAgain, admit, asked_again, check_allowed, in_parts, reading_again
from app.domain.errors import BeyondMemory, TooLarge
from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.content import DATA_FACT
from app.domain.inputs.ignored import NothingLeft
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.merging import check_streamed, merged
from app.domain.options import Retain
from app.services.compare.elsewhere import of_run
from app.services.evaluate.evaluations import Merge, NewEvaluation
from app.services.evaluate.streamed.units import Part
from app.services.processes.worker import as_step, each_as_step

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
    await admit(context, _asked(context, request, body))
    return request


def _asked(context: Context, request: ReferencedRequest, body: Body) -> Asked:
    """Return what a request asks of the data it names. Whether it may be read comes before what is wrong with it."""
    data, named = context.services.data, request.input.data
    for one in (named, named.labels.data) if named.labels else (named,):
        data.source.check(one.uri)
    return request.asked(body, data.memory_bytes)


async def estimate_reference(context: Context, body: Body | LargeBody) -> Response:
    """Size of the data that a request names, and how long its evaluation takes; nothing is evaluated.

    Raises:
        MalformedRequest, InvalidInput, DataNotAllowed: as `admit_reference`, or it names none.
    """
    request = None if isinstance(body, LargeBody) else referenced(body)
    if request is None:
        raise InvalidQuery.at("estimate", "no_reference", "expected input.data: only data that is named is estimated")
    asked = _asked(context, request, cast(Body, body))
    measure = partial(estimated, context.services.data.source, asked, STREAMED_FROM)
    return json_response(await context.services.compute.run(measure))


async def evaluate_reference(http: Request, context: Context, body: Body, view: View, *, keep: bool) -> Response | None:
    """Answer a request that names data: 202, or the evaluation when a job carries it out. None if it names no data."""
    request = referenced(body)
    if request is None:
        return None
    data, asked = context.services.data, _asked(context, request, body)
    if CARRIED_OUT_BY not in http.scope["state"]:
        await admit(context, asked)
        check_moment(request.created_at, keep=keep, dated=context.administers)
        if keep:
            for model in request.names:
                with of_model(model if request.models else None):
                    require_names(model, request.dataset.to_domain() if request.dataset else None)
        return await put_aside(http, context, body)
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
        MalformedRequest, DataNotAllowed, InvalidInput, TooLarge: as `NamedRows`, `with_columns` and `streamed`.
    """
    named = NamedRows(reading.source, asked)
    try:
        # The report is the other half, also below.
        with as_step(0, 2):
            most_rows = STREAMED_FROM if asked.counts or named.streams else MOST_ROWS
            return with_columns(asked.request, named.whole(most_rows))
    except BeyondMemory:
        if not (asked.counts or asked.streams):
            raise
    # What was read until then has gone with the error.
    if asked.streams:
        facts = lambda rows: {DATA_FACT: named.facts(rows)}  # noqa: E731
        return streamed(asked.kind, each_part(named), facts, reading, asked.memory_bytes // 2)
    with as_step(0, 2), reading.engine.opened(reading.folder) as opened:
        return with_columns(asked.request, named.counted(opened))


# --- merges ----------------------------------------------------------------------------------------------------------


async def merge_elsewhere(http: Request, context: Context, body: Body, merge: Merge, view: View) -> Response:
    """Answer a merge whose data is read again: 202, or the evaluation when a job carries it out.

    Raises:
        DataNotAllowed: data may not be read any more.
        InvalidInput: it has changed, or no model or dataset is given, and the parts are of several.
        IncomparableRuns, IncomparableLabels: the parts cannot be one.
        TooLarge: there is more than memory holds, of a kind that is not streamed.
    """
    data = context.services.data
    if CARRIED_OUT_BY not in http.scope["state"]:
        check_allowed(data.source, merge.records)
        if _streams(merge.records):
            check_streamed(merge.records)
        require_names(merge.names["model"], merge.names["dataset"])
        return await put_aside(http, context, body)
    with reading_again(data) as again:
        kept = kept_as(context, keep=True)
        work = partial(_evaluated_as_one, bytes(body), merge.records, again, data.memory_bytes, kept, view)
        answer, record = await data.compute.run(work)
    if record is None:
        raise ValueError("expected a record, since it is kept")
    await context.services.evaluations.keep(context.project, record)
    return view.response(answer, HTTPStatus.CREATED, {"Location": f"/v1/evaluations/{record.id}"})


def _evaluated_as_one(
    body: bytes, records: Sequence[EvaluationRecord], again: DataAgain, memory_bytes: int, kept: KeptAs, view: View
) -> tuple[bytes, EvaluationRecord | None]:
    asked = parse_body(body, requests.MergeRequest)
    merge = replace(asked.to_domain(), records=records)
    if _streams(records):
        options = orjson.loads(body).get("options", {})
        parts = each_part_again(records, again, options)
        # What is known of all of it is where each part was read from.
        facts: Mapping[str, Any] = merge.facts
        new = replace(streamed(records[0].kind, parts, lambda _: facts, again, memory_bytes // 2), **merge.names)
    else:
        new = merge.evaluation(_together(records, again, memory_bytes))
        new = replace(new, options=replace(new.options, retain=Retain.NONE))
    return evaluated(new, kept, view)


def _streams(records: Sequence[EvaluationRecord]) -> bool:
    """Are rows of this kind streamed, and so many of them?"""
    parts = [part for record in records for part in record.elsewhere]
    rows = sum(part.data["rows"] for part in parts if part.data is not None)
    return rows > STREAMED_FROM and asked_again(parts[0], 0).streams


def each_part_again(
    records: Sequence[EvaluationRecord], again: DataAgain, options: Mapping[str, Any]
) -> Iterator[Part]:
    """All rows of all of them, part by part."""
    done, steps = count(), sum(len(record.elsewhere) for record in records)
    for place, record in enumerate(records):
        with of_run(place):
            for one in in_parts(record):
                # A threshold that was assumed is assumed again, of all.
                asked = again.at_hand(asked_again(one, 0, decided=False))
                asked = replace(asked, request={**asked.request, "options": options})
                found = each_as_step(next(done), steps, each_part(NamedRows(again.source, asked)))
                yield from map(_with_groups_as_texts, found)


def _with_groups_as_texts(part: Part) -> Part:
    """A part whose groups have the type of those of other data: the integer 3 and the text "3" are one group."""
    samples = part.source.samples if isinstance(part, NewEvaluation) else None
    if isinstance(part, NothingLeft) or samples is None or samples.groups is None:
        return part
    samples = replace(samples, groups=samples.groups.astype(np.str_))
    return replace(part, source=replace(part.source, samples=samples))


def _together(records: Sequence[EvaluationRecord], again: DataAgain, memory_bytes: int) -> MatrixInput:
    """All of them in memory, as one input."""
    sources = []
    for place, record in enumerate(records):
        with as_step(place, len(records) + 1), of_run(place):
            try:
                sources.append(again.whole(record, memory_bytes // len(records)))
            except BeyondMemory:
                raise TooLarge(
                    f"expected data that memory holds together with that of the others, since it is not streamed: at "
                    f"most {memory_bytes} bytes (PREVAIL_DATA_MEMORY_BYTES) in all"
                ) from None
    return merged(sources)
