"""Routes of gates and of their checks."""

from dataclasses import asdict, replace
from functools import partial
from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Query, Request
from starlette.responses import Response

from app.api.answers import answers, json_response
from app.api.bodies.parsing import parse_body, read_body
from app.api.cursors import Items, Listing, Paging, paging_of
from app.api.deps import Context, UseContext, routes
from app.api.documentation import body_schema, made
from app.api.jobs import deferrable
from app.api.presentation import AS_USUAL, CHECK, FormatOfCheck, view_of, written_as
from app.api.v1.requests import decisions as requests
from app.api.v1.requests.fields import GateName, OfModel
from app.domain.decisions import CheckFilter, CheckSummary, GateVersion, Verdict
from app.domain.evaluation import Reference
from app.services.gate import CheckAnswer, GateTrial

router = routes("gates")


async def _check_filter(
    verdict: Annotated[Verdict | None, Query(description="Only those that ended so.")] = None,
    model: OfModel = None,
) -> CheckFilter:
    return CheckFilter(verdict=verdict, model=model)


UseCheckFilter = Annotated[CheckFilter, Depends(_check_filter)]
_USES = ("getGate", "listGateVersions", "deleteGate", "createCheck", "listChecks")
_OF_A_CHECK = {"name": "$request.path.name", "identifier": "$response.body#/id"}


@router.put(
    "/gates/{name}",
    responses=answers(GateVersion) | made(GateVersion, _USES, {"name": "$response.body#/name"}, "The gate is new."),
    openapi_extra=body_schema(requests.GateRequest),
)
async def put_gate(name: GateName, request: Request, context: UseContext) -> Response:
    """Define a gate. Another definition makes a new version; the same one changes nothing."""
    asked = parse_body(await read_body(request), requests.GateRequest)
    gate, made = await context.services.gates.put(
        context.project, name, asked.model_dump(mode="json", exclude_none=True)
    )
    headers = {"Location": f"/v1/gates/{name}"} if made else None
    return json_response(gate, HTTPStatus.CREATED if made else HTTPStatus.OK, headers)


@router.get("/gates", responses=answers(Listing[GateVersion], name="GatePage"))
async def list_gates(context: UseContext, paging: Annotated[Paging, paging_of(GateVersion)]) -> Response:
    """List the gates in their latest versions, by name."""
    return await paging.page(partial(context.services.gates.page, context.project), {"list": "gates"}, str)


@router.get("/gates/{name}", responses=answers(GateVersion))
async def get_gate(
    name: GateName,
    context: UseContext,
    version: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="The latest when left out.")] = None,
) -> Response:
    """Read a version of a gate."""
    return json_response(await context.services.gates.read(context.project, name, version))


@router.get("/gates/{name}/versions", responses=answers(Items[GateVersion], name="GateVersions"))
async def list_gate_versions(name: GateName, context: UseContext) -> Response:
    """List all versions of a gate, latest first; those of a deleted one too."""
    return json_response(Items(await context.services.gates.versions(context.project, name)))


@router.delete("/gates/{name}")
async def delete_gate(name: GateName, context: UseContext) -> None:
    """Delete a gate: it checks nothing any more. Its versions and checks can still be read."""
    await context.services.gates.delete(context.project, name)


@router.post("/gates/{name}/checks", responses=written_as(CHECK, made(CheckAnswer, ["getCheck"], _OF_A_CHECK)))
@deferrable(requests.CheckRequest, CHECK)
async def create_check(
    name: GateName, request: Request, context: UseContext, asked: FormatOfCheck = AS_USUAL
) -> Response:
    """Check an evaluation by the latest version of a gate: pass, fail, or inconclusive and what would settle it."""
    view = view_of(request, CHECK, asked)
    body = parse_body(await read_body(request), requests.CheckRequest)
    answer = await context.services.gates.check(context.project, name, body.evaluation, body.baseline)
    return view.answer(answer, HTTPStatus.CREATED, {"Location": f"/v1/gates/{name}/checks/{answer.id}"})


@router.post(
    "/gates/trials",
    responses=answers(GateTrial, description="Not saved."),
    openapi_extra=body_schema(requests.TrialRequest),
)
async def try_gate(request: Request, context: UseContext) -> Response:
    """Try rules on evaluations that there are: what they would have said; nothing is saved."""
    return json_response(await tried(context, parse_body(await read_body(request), requests.TrialRequest)))


async def tried(context: Context, body: requests.TrialRequest) -> GateTrial:
    """Try rules as a request for it says; nothing is saved."""
    model, dataset = body.evaluations.model, body.evaluations.dataset
    return await context.services.gates.trial(
        context.project,
        body.definition(),
        Reference(None if model is None else model.to_domain(), None if dataset is None else dataset.to_domain()),
        latest=body.evaluations.latest,
        alone=body.evaluations.id,
        baseline=body.baseline,
        beside=body.gate,
    )


@router.get("/gates/{name}/checks", responses=answers(Listing[CheckSummary], name="CheckPage"))
async def list_checks(
    name: GateName, context: UseContext, wanted: UseCheckFilter, paging: Annotated[Paging, paging_of(CheckSummary)]
) -> Response:
    """List the checks of a gate, latest first."""
    return await _checks(context, replace(wanted, gate=name), paging)


@router.get("/gate-checks", responses=answers(Listing[CheckSummary], name="CheckPage"))
async def list_all_checks(
    context: UseContext, wanted: UseCheckFilter, paging: Annotated[Paging, paging_of(CheckSummary)]
) -> Response:
    """List the checks of all gates, latest first."""
    return await _checks(context, wanted, paging)


async def _checks(context: Context, wanted: CheckFilter, paging: Paging) -> Response:
    read = partial(context.services.gates.checks, context.project, wanted)
    return await paging.page(read, {"list": "checks", **asdict(wanted)}, UUID)


@router.get("/gates/{name}/checks/{identifier}", responses=written_as(CHECK))
async def get_check(
    name: GateName, identifier: UUID, request: Request, context: UseContext, asked: FormatOfCheck = AS_USUAL
) -> Response:
    """Read a check as it was answered."""
    view = view_of(request, CHECK, asked)
    return view.answer(await context.services.gates.read_check(context.project, name, identifier))
