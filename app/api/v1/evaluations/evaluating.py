"""Names, ids, dates and idempotency keys of evaluations, and large bodies that a compute process evaluates."""

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from fastapi import Query
from starlette.responses import Response

from app.api.bodies.parsing import parse_value
from app.api.bodies.received import LargeBody
from app.api.deps import Context
from app.api.presentation import View
from app.api.problems import MalformedRequest
from app.api.v1.requests import evaluations as requests
from app.api.v1.requests.fields import ADDRESS_OF_HISTORY
from app.domain.errors import DomainError, Fault, Forbidden, InvalidInput, NotFound, ResultDeleted
from app.domain.evaluation import DatasetRef, EvaluationRecord, ModelRef
from app.domain.operations import KeptResult
from app.services.evaluate.evaluations import Evaluation, NewEvaluation, evaluate_alone, evaluate_together
from app.services.present import part_id

Store = Annotated[bool, Query(description="false: compute, answer 200 and save nothing.")]


async def evaluate_large(context: Context, body: LargeBody, view: View, *, keep: bool) -> Response:
    """Read, compute and write in a process of its own. What it keeps is stored here, once all of that has gone well."""
    make = partial(_evaluated, kept_as(context, keep=keep), view)
    written, record = await body.apart(context.services.compute, requests.EvaluationRequest, make)
    if record is None:
        return view.response(written)
    await context.services.evaluations.keep(context.project, record)
    headers = {"Location": f"/v1/evaluations/{record.id}"}
    return view.response(written, HTTPStatus.CREATED, headers)


def _evaluated(
    kept: "KeptAs", view: View, request: requests.EvaluationRequest
) -> tuple[bytes, EvaluationRecord | None]:
    return evaluated(request.to_domain(), kept, view)


async def kept_evaluation(context: Context, result: KeptResult, view: View) -> Evaluation:
    """The evaluation that was saved under the key of a request.

    Raises:
        ResultDeleted: it was deleted since.
    """
    try:
        return await context.services.evaluations.read(context.project, result.identifier, view.chosen)
    except NotFound as missing:
        raise deleted(result) from missing


def deleted(result: KeptResult) -> ResultDeleted:
    """Return the error for a replayed request whose object was deleted."""
    return ResultDeleted(
        f"the {result.kind} {result.object} was made for this Idempotency-Key and deleted since; another key makes it "
        "again"
    )


@dataclass(frozen=True, slots=True)
class KeptAs:
    """Id and permission with which a compute process makes the record of an evaluation.

    Attributes:
        identifier: Its id; None when it is not to be kept.
        dated: Whether it may say when it was made.
    """

    identifier: UUID | None
    dated: bool


def kept_as(context: Context, *, keep: bool, place: int = 0) -> KeptAs:
    """A new id, where something is to be kept under it: of several things, that of the one at a place."""
    return KeptAs(part_id(place) if keep else None, context.administers)


def evaluated(new: NewEvaluation, kept: KeptAs, view: View) -> tuple[bytes, EvaluationRecord | None]:
    """The answer, and the record if there is an id to keep it under."""
    _check(new, kept)
    evaluation, record = evaluate_alone(replace(new, chosen=view.chosen), kept.identifier)
    return view.write(evaluation), record


def evaluated_together(
    asked: Sequence[tuple[Any, KeptAs]], view: View
) -> list[tuple[bytes, EvaluationRecord | None] | None]:
    """Evaluate several parsed bodies at once; None stands for those that are invalid or need a process of their own."""
    places: list[int] = []
    checked: list[tuple[NewEvaluation, UUID | None]] = []
    for place, (value, kept) in enumerate(asked):
        # Whoever evaluates it alone is told what is wrong.
        with suppress(DomainError, MalformedRequest):
            new = replace(parse_value(value, requests.EvaluationRequest).to_domain(), chosen=view.chosen)
            _check(new, kept)
            places.append(place)
            checked.append((new, kept.identifier))
    answers: list[tuple[bytes, EvaluationRecord | None] | None] = [None] * len(asked)
    found = evaluate_together(checked, briefly=view.is_brief)
    for place, one in zip(places, found, strict=True):
        if one is not None:
            evaluation, record = one
            answers[place] = view.write(evaluation), record
    return answers


def _check(new: NewEvaluation, kept: KeptAs) -> None:
    check_moment(new.created_at, keep=kept.identifier is not None, dated=kept.dated)
    if kept.identifier is not None:
        require_names(new.model, new.dataset)


async def keep_evaluation(context: Context, new: NewEvaluation, view: View) -> tuple[Evaluation, "asyncio.Task[None]"]:
    """Begin to keep an evaluation that has names. Its answer has what the view shows."""
    check_moment(new.created_at, keep=True, dated=context.administers)
    require_names(new.model, new.dataset)
    new = replace(new, chosen=view.chosen, brief=view.is_brief)
    return await context.services.evaluations.create(context.project, new)


async def compute_evaluation(context: Context, new: NewEvaluation, view: View) -> Evaluation:
    """Compute what is not to be kept. The answer has what the view shows."""
    check_moment(new.created_at, keep=False, dated=context.administers)
    return await context.services.evaluations.compute(replace(new, chosen=view.chosen, brief=view.is_brief))


def check_moment(moment: datetime | None, *, keep: bool, dated: bool) -> None:
    """Check that an evaluation may state its time of creation.

    Raises:
        Forbidden: only those may who administer the service.
        InvalidInput: it is not to be kept, or the moment is yet to come.
    """
    if moment is None:
        return
    if not keep:
        raise InvalidInput.at("/created_at", "not_kept", "expected none with store=false: only what is saved has one")
    if not dated:
        raise Forbidden("expected a key of the scope admin, which alone may say when an evaluation was made")
    if moment > datetime.now(UTC):
        raise InvalidInput.at("/created_at", "in_the_future", "expected a moment that is past")


def require_names(model: ModelRef | None, dataset: DatasetRef | None) -> None:
    """Check that an evaluation which is to be stored has a model and a dataset.

    Raises:
        InvalidInput: that is not said, or no address would lead to one.
    """
    if model is None or dataset is None:
        absent = [name for name, value in (("model", model), ("dataset", dataset)) if value is None]
        raise InvalidInput(
            [
                Fault(
                    f"/{name}",
                    "missing_field",
                    f"expected a {name} with a name, which a saved evaluation needs; store=false goes without",
                )
                for name in absent
            ]
        )
    for member, name in (("model", model.name), ("dataset", dataset.name)):
        if name in (".", ".."):
            detail = f"expected another name than {name!r}, which no address can end with"
            raise InvalidInput.at(f"/{member}/name", "wrong_value", detail)
    if re.search(ADDRESS_OF_HISTORY, model.name):
        detail = f"expected a name that does not end like the address of the history of a model, got {model.name!r}"
        raise InvalidInput.at("/model/name", "wrong_value", detail)
