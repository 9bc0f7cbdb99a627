"""Merges of evaluations whose data was named: all of it is read again, as one. Taken as jobs, as the parts were."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from itertools import count
from typing import Any

import orjson
from fastapi import Request
from starlette.responses import Response

from app.api.bodies.parsing import Body, parse_body
from app.api.bodies.referenced import PartsOfData
from app.api.deps import CARRIED_OUT_BY, Context
from app.api.jobs import put_aside
from app.api.presentation import View
from app.api.v1.evaluations.evaluating import KeptAs, evaluated, kept_as, require_names
from app.api.v1.evaluations.referenced import STREAMED_FROM
from app.api.v1.requests import evaluations as requests
from app.api.v1.requests.referenced import each_part, streamed
from app.api.v1.reread import DataAgain, asked_again, check_allowed, in_parts, reading_again
from app.domain.errors import BeyondMemory, TooLarge
from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.merging import check_streamed, merged
from app.domain.options import Retain
from app.services.compare.elsewhere import of_run
from app.services.evaluate.evaluations import Merge
from app.services.evaluate.streamed.units import Part
from app.services.processes.worker import as_step, each_as_step


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
        work = partial(_evaluated, bytes(body), merge.records, again, data.memory_bytes, kept, view)
        answer, record = await data.compute.run(work)
    if record is None:
        raise ValueError("expected a record, since it is kept")
    await context.services.evaluations.keep(context.project, record)
    return view.response(answer, HTTPStatus.CREATED, {"Location": f"/v1/evaluations/{record.id}"})


def _evaluated(
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
                yield from each_as_step(next(done), steps, each_part(PartsOfData(again.source, asked)))


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
