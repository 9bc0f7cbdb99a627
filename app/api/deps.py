"""Dependencies of routes: the services, the project that a request acts in, its key, and the tag of its answer."""

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import blake2b
from http import HTTPStatus
from inspect import Parameter, Signature, signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request
from fastapi._compat import ModelField, field_annotation_is_sequence
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Message

from app.api.access import IDEMPOTENCY_KEY, PROJECT_HEADER, STORING, keeps, needed_scope, rate_headers
from app.api.bodies.keyed import keyed_by
from app.api.documentation import PROBLEMS
from app.api.presentation import Media, requested_view, require_acceptable
from app.api.problems import InvalidQuery, near
from app.domain.errors import Fault, InvalidExpression, InvalidInput, NotFound, PreconditionFailed
from app.domain.expressions.conditions import read_slice
from app.domain.expressions.syntax import LONGEST
from app.domain.identifiers import is_project_name
from app.domain.operations import DEFAULT_PROJECT, Scope
from app.domain.wording import did_you_mean
from app.services.access import Guard, KeyService, Quotas
from app.services.compare.across_datasets import TournamentService
from app.services.compare.comparisons import ComparisonService
from app.services.evaluate.evaluations import EvaluationService
from app.services.gate import GateService
from app.services.history import HistoryService
from app.services.idempotency import IdempotencyService
from app.services.inventory import InventoryService
from app.services.jobs import JobService
from app.services.ports import DataSource, Engine, StoreState
from app.services.present import act_as, begin_change, present_change
from app.services.processes.compute import ComputePool
from app.services.processes.rendering import Renderer
from app.services.project.what_if import WhatIfService
from app.services.rank import LeaderboardService
from app.services.sliced import SLICE
from app.services.webhooks import WebhookService


def unless_known(request: Request, answer: Response) -> Response:
    """An answer with its tag, which is weak: packed or not, it is the same; or 304 when the client names that one."""
    if answer.status_code != HTTPStatus.OK:
        return answer
    tag = _tag_of(answer)
    if _names(request.headers.get("if-none-match", ""), tag):
        vary = {"Vary": answer.headers["vary"]} if "vary" in answer.headers else {}
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": tag, **vary})
    answer.headers["ETag"] = tag
    return answer


def _tag_of(answer: Response) -> str:
    return f'W/"{blake2b(answer.body, digest_size=12).hexdigest()}"'


def _names(header: str, tag: str) -> bool:
    """Return True if a header names this tag, or any by ``*`` (weak comparison, RFC 9110, section 8.8.3.2)."""
    named = [one.strip().removeprefix("W/") for one in header.split(",")]
    return named == ["*"] or tag.removeprefix("W/") in named


async def changed(carry_out: Callable[[Request], Awaitable[Response]], request: Request) -> Response:
    """The answer of a request that changes an object, which has to be in the state that its preconditions name."""
    held = "if-match" in request.headers or "if-none-match" in request.headers
    change = begin_change(partial(check_preconditions, request) if held else None)
    try:
        answer = await carry_out(request)
    except NotFound:
        await change.meet()
        raise
    # Also where there was nothing to change.
    await change.meet()
    return answer


async def check_preconditions(request: Request) -> None:
    """Hold `If-Match` and `If-None-Match` of a change against what a GET of its address would answer now; raises
    PreconditionFailed where one is not met.
    """
    expected, refused = request.headers.get("if-match"), request.headers.get("if-none-match")
    tag = await _current_tag(request)
    if expected is not None and (tag is None or not _names(expected, tag)):
        there = "nothing is there" if tag is None else f"what is there has {tag}"
        raise PreconditionFailed(f"expected the state that If-Match names, {expected[:100]}; {there}")
    if refused is not None and tag is not None and _names(refused, tag):
        raise PreconditionFailed(f"expected another state than If-None-Match names, {refused[:100]}; there is {tag}")


async def tag_change(request: Request, answer: Response) -> None:
    """Give the answer of a PUT or PATCH the tag of what it left, which the answer itself may not be: that of a new
    webhook has its secret. It has none when somebody else has changed that since.
    """
    if request.method == "DELETE" or answer.status_code not in (HTTPStatus.OK, HTTPStatus.CREATED):
        return
    if request.method == "PATCH" and (view := requested_view(request)).media is Media.JSON and view.fields is None:
        # A GET would answer the same: nothing is computed once more.
        answer.headers["ETag"] = _tag_of(answer)
    else:
        tag, stands = await _current_tag(request), present_change().stands
        if tag is not None and (tag == _tag_of(answer) or (stands is not None and await stands())):
            answer.headers["ETag"] = tag


async def _current_tag(request: Request) -> str | None:
    """The tag of what is at the address of a request; None when nothing is."""
    services = request.scope["state"].get(CARRIED_OUT_BY) or request.app.state.services
    # Whoever may change it may know its tag.
    state = {**request.scope["state"], CARRIED_OUT_BY: services}
    # The answer to the change may be written otherwise.
    state.pop("view", None)
    # What a removal is of is what its filters leave of a list.
    filters = (
        [] if request.path_params else [pair for pair in request.query_params.multi_items() if pair[0] != "dry_run"]
    )
    scope = {
        **request.scope,
        "method": "GET",
        "query_string": urlencode(filters).encode(),
        "headers": [],
        "state": state,
    }
    started: list[Message] = []

    async def nothing() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def keep_start(message: Message) -> None:
        if message["type"] == "http.response.start":
            started.append(message)

    await request.app.router(scope, nothing, keep_start)
    return Headers(raw=started[0]["headers"]).get("etag") if started[0]["status"] == HTTPStatus.OK else None


# What pydantic reads as false.
_NO: Final = frozenset({"0", "f", "false", "n", "no", "off"})
# In the state of a request that is carried out as a job: whoever sent it was let pass when it came.
CARRIED_OUT_BY: Final = "carried_out_by"


@dataclass(frozen=True, slots=True)
class NamedData:
    """The parts that read data by reference.

    Attributes:
        compute: Where it is read, which may take longer than other work.
        memory_bytes: That columns may take.
        engine: What holds rows beyond memory.
        folder: Where it makes files; None where no jobs are carried out.
        spill_bytes: That files may take.
    """

    source: DataSource
    compute: ComputePool
    memory_bytes: int
    engine: Engine
    folder: Path | None = None
    spill_bytes: int = 1 << 40

    def room(self) -> TemporaryDirectory[str]:
        """A folder for files, made before the process that fills it: it goes also where that one is ended."""
        return TemporaryDirectory(prefix="job-", dir=self.folder, ignore_cleanup_errors=True)


@dataclass(frozen=True, slots=True)
class Services:
    """The services that routes use, built once by the wiring."""

    evaluations: EvaluationService
    inventory: InventoryService
    leaderboards: LeaderboardService
    history: HistoryService
    comparisons: ComparisonService
    tournaments: TournamentService
    gates: GateService
    what_if: WhatIfService
    jobs: JobService
    webhooks: WebhookService
    keys: KeyService
    guard: Guard
    quotas: Quotas
    idempotency: IdempotencyService
    compute: ComputePool
    data: NamedData
    renderer: Renderer
    readiness: Callable[[], Awaitable[StoreState]]
    # The metrics in the text format of Prometheus.
    exposition: Callable[[], Awaitable[bytes]] | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """The services, project and rights of a request, as one dependency: each adds 30 microseconds to every request."""

    services: Services
    project: str
    administers: bool


async def context(request: Request) -> Context:
    """The services, the project a request acts in, and whether it may do what takes the scope `admin`."""
    state = request.scope["state"]
    services = state.get(CARRIED_OUT_BY) or request.app.state.services
    return Context(services, state.get("project", DEFAULT_PROJECT), state.get("administers", False))


# Of an endpoint, what a decorator of it documents.
DOCUMENTED: Final = "documented"


class NamedRoute(APIRoute):
    """A route whose operation has the name of its function. Its usual status is the first that it documents: 204 where
    that is none, as of what is deleted.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        first, *rest = endpoint.__name__.split("_")
        more = vars(endpoint).get(DOCUMENTED, {})
        responses = {**options["responses"], **more.get("responses", {})}
        named = {
            "operation_id": "".join([first, *map(str.capitalize, rest)]),
            "status_code": next((int(one) for one in responses if int(one) < HTTPStatus.BAD_REQUEST), 204),
        }
        super().__init__(path, endpoint, **options | more | named | {"responses": responses})


class StrictRoute(NamedRoute):
    """A route that lets no request pass without the right key, and refuses parameters it does not know.

    A misspelt filter that lets everything pass is worse than an error.
    """

    @cached_property
    def query_params(self) -> list[ModelField]:
        """Query parameters of the route and of its dependencies."""
        return _query_params(self.dependant)

    async def admit(self, request: Request, scope: Scope) -> None:
        """Hold a request against its key; raises what `let_pass` does."""
        await let_pass(request, scope)

    async def check_quotas(self, request: Request) -> None:
        """Hold a request, and not its job again, against the quotas of its project; raises what `Quotas.check` does."""
        state = request.scope["state"]
        if request.method == "POST" and "project" in state and CARRIED_OUT_BY not in state:
            keeping = request.query_params.get("store", "").lower() not in _NO
            state["stores"] = keeping and self.operation_id in STORING
            await request.app.state.services.quotas.check(state["project"], keeping=state["stores"])

    def check_parameters(self, request: Request) -> None:
        """Check names of parameters, and how often they came; raises InvalidQuery."""
        faults = parameter_faults(request)
        if faults:
            raise InvalidQuery(faults)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Check who asks, and the parameters, before anything else is done."""
        handle = super().get_route_handler()
        direct = _wants_no_more_than_id(self.endpoint)
        method = next(iter(self.methods or ()), "")
        scope, reads, path = needed_scope(self.operation_id or "", method), method == "GET", self.path

        answered_in = [said.get("content", ()) for status, said in self.responses.items() if str(status) < "300"]
        only_json = {media for content in answered_in for media in content} == {"application/json"}
        keeping, changes = keeps(self.operation_id or "", method), method in ("PUT", "PATCH", "DELETE")

        async def check_and_handle(request: Request) -> Response:
            state = request.scope["state"]
            state["route"] = path
            if CARRIED_OUT_BY not in state:
                await self.admit(request, scope)
            key = request.headers.get(IDEMPOTENCY_KEY) if keeping else None
            if key is not None:
                asked = await context(request)
                check = partial(self.check_quotas, request)
                keyed = keyed_by(request, key, asked.services.idempotency, asked.project, check)
                answer = await keyed.answer(carried_out, request)
            else:
                await self.check_quotas(request)
                answer = await carried_out(request)
            if changes:
                await tag_change(request, answer)
            return unless_known(request, answer) if reads else answer

        async def answered(request: Request) -> Response:
            if only_json:
                require_acceptable(request, Media.JSON)
            if request.scope["query_string"]:
                self.check_parameters(request)
            elif direct and all(map(_ID.fullmatch, request.path_params.values())):
                # Nothing is left for FastAPI to find out, which would take a tenth of a millisecond and more.
                ids = {name: UUID(text) for name, text in request.path_params.items()}
                answer: Response = await self.endpoint(request=request, context=await context(request), **ids)
                return answer
            return await handle(request)

        carried_out = partial(changed, answered) if changes else answered
        return check_and_handle


def _query_params(dependant: Dependant) -> list[ModelField]:
    return [*dependant.query_params, *(field for inner in dependant.dependencies for field in _query_params(inner))]


async def let_pass(request: Request, scope: Scope) -> None:
    """Hold a request against the key in its headers; raises what `let_pass_as` does."""
    headers = request.headers
    await let_pass_as(request, scope, headers.get("authorization"), headers.get(PROJECT_HEADER))


async def let_pass_as(request: Request, scope: Scope, authorization: str | None, named: str | None) -> None:
    """Hold a request against a key and the project that it names. Raises as `Guard.admit` does, and InvalidQuery where
    the project cannot be one.
    """
    guard: Guard = request.app.state.services.guard
    state = request.scope["state"]
    admitted = await guard.admit(
        scope, authorization=authorization, project=named, local=is_local(request), request_id=state["request_id"]
    )
    if named is not None and not is_project_name(named):
        detail = "expected the name of a project: up to 64 lower-case letters, digits, dots, _ and -"
        raise InvalidQuery.at(PROJECT_HEADER, "invalid_project", detail)
    act_as(admitted.actor, admitted.project)
    state["project"], state["key_id"] = admitted.project, admitted.actor.key
    state["administers"] = admitted.administers
    if (limit := admitted.limit) is not None:
        state["answer_headers"] = rate_headers(limit.requests, limit.window, limit.left, limit.reset)


def routes(*tags: str) -> APIRouter:
    """A router of the first version. Its routes answer a response that they have written."""
    return APIRouter(
        prefix="/v1", responses=PROBLEMS, route_class=StrictRoute, default_response_class=Response, tags=[*tags]
    )


# An id as it is nearly always written.
_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def _wants_no_more_than_id(endpoint: Callable[..., Any]) -> bool:
    """Is it called with the request, the context and perhaps an id, everything else having a default?"""
    parameters = signature(endpoint).parameters.values()
    needed = {each.name for each in parameters if each.default is Parameter.empty}
    return needed - {"identifier"} == {"request", "context"}


def parameters_of(shape: type) -> Any:
    """Return the members of a dataclass, or of a request, as parameters, to stand in `Annotated`; a class would be
    called in a thread.
    """
    own = signature(shape)
    if issubclass(shape, BaseModel):
        own = Signature(
            [
                Parameter(
                    name,
                    Parameter.KEYWORD_ONLY,
                    default=one.default,
                    annotation=Annotated[one.rebuild_annotation(), Query(description=one.description)],
                )
                for name, one in shape.model_fields.items()
            ]
        )

    async def given(**members: Any) -> Any:
        return shape(**members)

    # What the framework asks for.
    vars(given)["__signature__"] = own
    return Depends(given)


UNKNOWN_PARAMETER: Final = "unknown_parameter"


def parameter_faults(request: Request) -> list[Fault]:
    """The parameters that the route does not know, that no database can hold, or that came too often."""
    known = [field.alias for field in request.scope["route"].query_params]
    faults = []
    for name, value in request.query_params.multi_items():
        if name not in known:
            meant = near(name[:128], known)
            hint = did_you_mean(meant) or (f"; known are {', '.join(known)}" if known else "")
            faults.append(Fault(name[:128], UNKNOWN_PARAMETER, f"there is no such parameter{hint}", meant))
        elif "\x00" in value:
            faults.append(Fault(name, "nul_character", "expected text without the character U+0000"))
    return faults + _repeated(request)


def _repeated(request: Request) -> list[Fault]:
    """Parameters that take one value and came with several, of which one would be passed over."""
    counts = Counter(name for name, _ in request.query_params.multi_items())
    return [
        Fault(field.alias, "repeated_parameter", f"expected it once, got it {counts[field.alias]} times")
        for field in request.scope["route"].query_params
        if counts[field.alias] > 1 and not field_annotation_is_sequence(field.field_info.annotation)
    ]


UseContext = Annotated[Context, Depends(context)]


async def sliced_context(
    context: UseContext,
    where: Annotated[
        str | None,
        Query(
            alias=SLICE,
            min_length=1,
            max_length=LONGEST,
            description='Only the samples of a slice: conditions on their attributes, such as `site="B", age<50`; also '
            '`!=`, `<=`, `>`, `>=`, `in ("A", "B")`, and `null`.',
        ),
    ] = None,
) -> Context:
    """The context of a request about a slice, whose services see the samples in it alone; raises InvalidInput."""
    if where is None:
        return context
    try:
        conditions = read_slice(where)
    except InvalidExpression as error:
        raise InvalidInput.at(SLICE, error.code, error.detail, error.suggestions) from error
    services = context.services
    sliced = replace(
        services,
        evaluations=services.evaluations.of_slice(conditions),
        what_if=services.what_if.of_slice(conditions),
    )
    return replace(context, services=sliced)


UseSlice = Annotated[Context, Depends(sliced_context)]


def is_local(request: Request) -> bool:
    """Does it come from this machine? A connection without an address is a socket of it."""
    if request.client is None:
        return True
    host = request.client.host.removeprefix("::ffff:")
    return host == "::1" or host.startswith("127.")
