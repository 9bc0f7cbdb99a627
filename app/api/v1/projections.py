"""Routes of what-if questions: other prevalences, and what the prevalence is where a model is used."""

from typing import Annotated, Any, Self
from uuid import UUID

import numpy as np
from fastapi import APIRouter, Request
from pydantic import BaseModel, Field, model_validator
from starlette.responses import Response

from app.api.body import Wire, parse_body, read_body
from app.api.deps import Project, StrictRoute, UseServices
from app.api.documentation import PROBLEMS, body_schema
from app.api.v1 import decision_examples as examples
from app.api.v1.comparison_models import Identifier
from app.api.v1.evaluation_models import Expression
from app.api.v1.inputs import LabelField
from app.api.v1.present import json_response
from app.domain.named_metrics import PROJECTED
from app.services.project.projection import MOST_BOXED
from app.services.project.scenarios import Scenario, Sweep
from app.services.project.what_if import Unlabelled
from app.services.runs.simulation import DRAWS, FEWEST_DRAWS

router = APIRouter(prefix="/v1", responses=PROBLEMS, tags=["what-if"], route_class=StrictRoute)
Share = Annotated[float, Field(ge=0, le=1)]
Shares = Annotated[dict[str, Share], Field(min_length=1, max_length=1000)]
_HEAVY_BYTES = 256 * 1024
_MOST_ROWS = 100_000


class SweepField(Wire):
    """One class from a rare to a frequent one."""

    label: LabelField = Field(alias="class", description="The class whose share is varied.")
    start: Share = Field(alias="from")
    end: Share = Field(alias="to")
    steps: int = Field(50, ge=2, le=500)

    @model_validator(mode="after")
    def check_order(self) -> Self:
        """A sweep goes upwards."""
        if not self.start < self.end:
            raise ValueError("expected from to be smaller than to")
        return self


class ProjectionRequest(Wire):
    """At which class shares: exactly one of prevalence, prevalence_range and sweep."""

    prevalence: Shares | None = Field(
        None, description="Shares by class. Classes not named share the rest in the proportions that they have."
    )
    prevalence_samples: float | None = Field(
        None, ge=1, description="How many samples the shares are worth; they are exact when it is left out."
    )
    prevalence_range: dict[str, Annotated[list[Share], Field(min_length=2, max_length=2)]] | None = Field(
        None, min_length=1, max_length=MOST_BOXED, description="Lowest and highest share of some classes."
    )
    sweep: SweepField | None = None
    against: Identifier | None = Field(
        None, description="With a sweep: the run with which places are changed at `crossings`."
    )
    recalibrate: bool = Field(
        default=False,
        description="Fit the kept probabilities to the shares (Elkan 2001) and decide anew by them before measuring.",
    )
    old_prevalence: Shares | None = Field(
        None, description="With recalibrate: the shares they were calibrated to; the evaluation's when left out."
    )
    metrics: list[Expression] = Field(default_factory=lambda: list(PROJECTED), min_length=1, max_length=50)
    level: float = Field(0.95, gt=0, lt=1)
    seed: int | None = Field(None, ge=0, lt=2**63)
    draws: int = Field(DRAWS, ge=FEWEST_DRAWS, le=20_000)

    @model_validator(mode="after")
    def check_choice(self) -> Self:
        """Exactly one scenario, with what belongs to it."""
        given = [name for name in ("prevalence", "prevalence_range", "sweep") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"expected exactly one of prevalence, prevalence_range and sweep, got {len(given)}")
        if self.prevalence_samples is not None and self.prevalence is None:
            raise ValueError("expected prevalence_samples with prevalence only")
        if self.against is not None and self.sweep is None:
            raise ValueError("expected against with a sweep only")
        if self.recalibrate and self.prevalence_range is not None:
            raise ValueError("expected recalibrate with prevalence or a sweep: within a range the shares are not known")
        if self.old_prevalence is not None and not self.recalibrate:
            raise ValueError("expected old_prevalence with recalibrate only")
        for label, (low, high) in (self.prevalence_range or {}).items():
            if low > high:
                raise ValueError(f"expected a range from low to high for {label!r}")
        return self

    def to_domain(self) -> Scenario:
        """The scenario as the services know it."""
        sweep = self.sweep
        ranges = self.prevalence_range
        return Scenario(
            prevalence=self.prevalence,
            samples=self.prevalence_samples,
            sweep=None
            if sweep is None
            else Sweep(label=str(sweep.label), start=sweep.start, end=sweep.end, steps=sweep.steps),
            ranges=None if ranges is None else {label: (ends[0], ends[1]) for label, ends in ranges.items()},
            recalibrate=self.recalibrate,
            old_prevalence=self.old_prevalence,
            level=self.level,
            seed=self.seed,
            draws=self.draws,
        )


class EstimateRequest(Wire):
    """Predictions on samples without labels: counts of predicted classes, or probabilities."""

    predicted: dict[str, Annotated[int, Field(ge=0, le=2**53)]] | None = Field(
        None, min_length=1, max_length=1000, description="How often each class was predicted."
    )
    probabilities: list[list[Share]] | None = Field(
        None, min_length=1, max_length=_MOST_ROWS, description="N x K, in the order of the labels."
    )
    old_prevalence: Shares | None = Field(
        None, description="With probabilities: the shares they were calibrated to; the evaluation's when left out."
    )
    recalibrate: bool = Field(default=False, description="With probabilities: answer them for the new shares too.")
    level: float = Field(0.95, gt=0, lt=1)
    seed: int | None = Field(None, ge=0, lt=2**63)

    @model_validator(mode="after")
    def check_choice(self) -> Self:
        """One of the two, and rows of one length."""
        if (self.predicted is None) == (self.probabilities is None):
            raise ValueError("expected exactly one of predicted and probabilities")
        if self.probabilities is None and (self.old_prevalence is not None or self.recalibrate):
            raise ValueError("expected old_prevalence and recalibrate with probabilities only")
        if self.probabilities is not None:
            lengths = set(map(len, self.probabilities))
            if len(lengths) > 1 or 0 in lengths:
                raise ValueError("expected rows of probabilities of one length")
        return self

    def to_domain(self) -> Unlabelled:
        """The predictions as the services know them."""
        return Unlabelled(
            predicted=self.predicted,
            probabilities=None if self.probabilities is None else np.array(self.probabilities, dtype=np.float64),
            old_prevalence=self.old_prevalence,
            recalibrate=self.recalibrate,
            level=self.level,
            seed=self.seed,
        )


class ProjectionResponse(BaseModel):
    """Metrics at other class shares: single values, lists over the grid of a sweep, or the extremes of a range."""

    evaluation: UUID
    prevalence: dict[str, float] | None = None
    prevalence_samples: float | None = None
    prevalence_range: dict[str, list[float]] | None = None
    sweep: dict[str, Any] | None = None
    grid: list[float] | None = None
    metrics: dict[str, dict[str, Any]] = Field(
        description="By metric: value, low, high and observed, the value as it is; or lowest, highest and observed."
    )
    against: UUID | None = None
    crossings: dict[str, list[float]] | None = Field(None, description="Shares at which the two runs change places.")
    design: dict[str, Any]
    notes: list[str]


class EstimateResponse(BaseModel):
    """Estimated class shares."""

    evaluation: UUID
    method: str
    n_samples: float
    prevalence: dict[str, float]
    intervals: dict[str, dict[str, float | None]]
    at_vertex: bool
    converged: bool
    warnings: list[str]
    condition: float | None = None
    old_prevalence: dict[str, float] | None = None
    seed: int
    probabilities: list[list[float]] | None = None


@router.post(
    "/evaluations/{identifier}/projections",
    response_class=Response,
    responses={200: {"model": ProjectionResponse}},
    openapi_extra=body_schema("ProjectionRequest", examples.PROJECTIONS),
    operation_id="projectEvaluation",
)
async def project_evaluation(identifier: UUID, request: Request, services: UseServices, project: Project) -> Response:
    """Compute metrics anew at other class shares: given ones, uncertain ones, a range, or a sweep of one class."""
    asked = parse_body(await read_body(request), ProjectionRequest)
    answer = await services.what_if.project(project, identifier, tuple(asked.metrics), asked.to_domain(), asked.against)
    return json_response(answer)


@router.post(
    "/evaluations/{identifier}/prevalence-estimates",
    response_class=Response,
    responses={200: {"model": EstimateResponse}},
    openapi_extra=body_schema("EstimateRequest", examples.ESTIMATES),
    operation_id="estimatePrevalence",
)
async def estimate_prevalence(identifier: UUID, request: Request, services: UseServices, project: Project) -> Response:
    """Estimate the class shares where a model is used, from its predictions on samples without labels."""
    body = await read_body(request)
    seen = await services.compute.run(
        lambda: parse_body(body, EstimateRequest).to_domain(), heavy=len(body) > _HEAVY_BYTES
    )
    return json_response(await services.what_if.estimate(project, identifier, seen))
