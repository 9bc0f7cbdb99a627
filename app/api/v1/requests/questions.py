"""Requests of curves and thresholds, of another class prevalence, and of reported scores checked for consistency."""

from dataclasses import replace
from typing import Annotated, Any, Literal, Self
from uuid import UUID

import numpy as np
from fastapi import Query
from pydantic import Field, PlainValidator, StringConstraints, WithJsonSchema, model_validator
from pydantic.config import JsonDict

from app.api.bodies.parsing import Wire
from app.api.deps import parameters_of
from app.api.problems import InvalidQuery
from app.api.v1.requests.fields import (
    SOUGHT,
    AlternativeName,
    Expression,
    Identifier,
    LabelField,
    Level,
    Sought,
    check_one_sided,
)
from app.api.v1.requests.inputs import AnyInput
from app.domain.errors import InvalidInput, NeedsScores
from app.domain.inputs.matrices import MatrixInput
from app.domain.named_metrics import PROJECTED
from app.domain.options import DRAWS, FEWEST_DRAWS
from app.services.consistency import DEFAULT_BOUND, MOST_ITEMS, Aggregation, Printed, ReportedScores
from app.services.decide.curves import CurveName, CurveQuestion
from app.services.decide.thresholds import Limit, RuleQuestion
from app.services.project.prevalence_estimate import Unlabelled
from app.services.project.projection import MOST_NAMED, Marked, Scenario, Sweep

Share = Annotated[float, Field(ge=0, le=1)]


Shares = Annotated[dict[Sought, Share], Field(min_length=1, max_length=1000)]


def _exact_share(value: Any) -> float | Marked:
    if isinstance(value, str) and value in [*Marked]:
        return Marked(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"expected a share from 0 to 1, or one of {', '.join(Marked)}")
    return float(value)


_EXACT_SCHEMA: JsonDict = {
    "anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "string", "enum": [*Marked]}]
}
ExactShare = Annotated[float | Marked, PlainValidator(_exact_share), WithJsonSchema(_EXACT_SCHEMA)]
_MOST_ROWS = 100_000


class SweepField(Wire):
    """One class from a rare to a frequent one."""

    label: LabelField = Field(alias="class", description="The class whose share is varied.")
    start: Share = Field(alias="from")
    end: Share = Field(alias="to")
    steps: int = Field(50, ge=2, le=500)
    at: list[ExactShare] = Field(
        default_factory=list,
        max_length=100,
        description="Further shares that are points of the sweep exactly, within its ends or not: numbers, `observed` "
        "for the share in the data, `equal` for that of as many equally frequent classes.",
    )

    @model_validator(mode="after")
    def check_order(self) -> Self:
        """Refuse a sweep that does not go upwards."""
        if not self.start < self.end:
            raise ValueError("expected from to be smaller than to")
        return self

    def to_domain(self) -> Sweep:
        """The sweep as the services know it."""
        return self.filled(Sweep, label=str(self.label))


class _Projected(Wire):
    """The class prevalence of a projection: exactly one of prevalence, prevalence_range and sweep."""

    prevalence: Shares | None = Field(
        None, description="Shares by class. Classes not named share the rest in the proportions that they have."
    )
    prevalence_samples: float | None = Field(
        None, ge=1, description="How many samples the shares are worth; they are exact when it is left out."
    )
    prevalence_range: dict[Sought, Annotated[list[Share], Field(min_length=2, max_length=2)]] | None = Field(
        None, min_length=1, max_length=MOST_NAMED, description="Lowest and highest share of some classes."
    )
    sweep: SweepField | None = None
    recalibrate: bool = Field(
        default=False,
        description="Fit the saved probabilities to the shares (Elkan 2001) and decide again before measuring.",
    )
    old_prevalence: Shares | None = Field(
        None, description="With recalibrate: the shares they were calibrated to; the evaluation's when left out."
    )
    metrics: list[Expression] = Field(default_factory=lambda: list(PROJECTED), min_length=1, max_length=50)
    level: Level = Field(0.95)
    alternative: AlternativeName = Field(
        "two-sided", description="Two-sided limits, or one limit alone at this level: `greater` gives a lower limit."
    )
    seed: int | None = Field(None, ge=0, lt=2**63)
    draws: int = Field(DRAWS, ge=FEWEST_DRAWS, le=20_000)

    @model_validator(mode="after")
    def check_choice(self) -> Self:
        """Exactly one scenario, with what belongs to it."""
        check_one_sided(self.level, self.alternative)
        given = [name for name in ("prevalence", "prevalence_range", "sweep") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"expected exactly one of prevalence, prevalence_range and sweep, got {len(given)}")
        if self.prevalence_samples is not None and self.prevalence is None:
            raise ValueError("expected prevalence_samples with prevalence only")
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
        ends = None if self.prevalence_range is None else {a: tuple(b) for a, b in self.prevalence_range.items()}
        return self.filled(Scenario, samples=self.prevalence_samples, ranges=ends)


class ProjectionRequest(_Projected):
    """The class prevalence that a stored evaluation is projected to."""

    against: Identifier | None = Field(
        None, description="With a sweep: another run; at `crossings` the two change places."
    )

    @model_validator(mode="after")
    def check_against(self) -> Self:
        """A second run belongs to a sweep."""
        if self.against is not None and self.sweep is None:
            raise ValueError("expected against with a sweep only")
        return self


class InputProjectionRequest(_Projected):
    """The class prevalence that an input is projected to; it is not stored."""

    input: AnyInput


class EstimateRequest(Wire):
    """Predictions on samples without labels: counts of predicted classes, or probabilities."""

    predicted: dict[Sought, Annotated[int, Field(ge=0, le=2**53)]] | None = Field(
        None, min_length=1, max_length=1000, description="How often each class was predicted."
    )
    # The first fault is said: there may be a hundred thousand.
    probabilities: list[Annotated[list[Share], Field(fail_fast=True)]] | None = Field(
        None, min_length=1, max_length=_MOST_ROWS, fail_fast=True, description="N x K, in the order of the labels."
    )
    old_prevalence: Shares | None = Field(
        None, description="With probabilities: the shares they were calibrated to; the evaluation's when left out."
    )
    recalibrate: bool = Field(default=False, description="With probabilities: answer them for the new shares too.")
    level: Level = Field(0.95)
    seed: int | None = Field(None, ge=0, lt=2**63)

    @model_validator(mode="after")
    def check_choice(self) -> Self:
        """Refuse both or neither of the two forms, and rows of different lengths."""
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
        rows = self.probabilities
        return self.filled(Unlabelled, probabilities=None if rows is None else np.array(rows, dtype=np.float64))


MOST_POINTS = 100_000
MOST_OTHERS = 10
AskedOthers = Annotated[
    str | None,
    Query(
        alias="with",
        max_length=500,
        description=f"Ids of up to {MOST_OTHERS} other evaluations, with commas between them, that are shown too.",
    ),
]


CURVE_OF = (
    "The class, or `micro`, `macro` or `predicted` (calibration, of the predicted class). When left out all together "
    "where that makes sense, else the positive class; calibration is that of the positive class of two and of the "
    "predicted class of more."
)


def identifiers_in(text: str | None) -> list[UUID]:
    """Ids of evaluations with commas between them.

    Raises:
        InvalidQuery: something else stands there, or too many do.
    """
    if text is None:
        return []
    try:
        found = [UUID(one.strip()) for one in text.split(",")]
    except ValueError as error:
        raise InvalidQuery.at("with", "invalid_uuid", "expected ids of evaluations with commas between them") from error
    if len(found) > MOST_OTHERS:
        raise InvalidQuery.at("with", "too_many", f"expected at most {MOST_OTHERS} ids, got {len(found)}")
    return found


class CurveOptions(Wire):
    """Parameters of a curve, whatever class it is of."""

    max_points: int = Field(1000, ge=2, le=MOST_POINTS, description="Points at most.")
    prevalence: float | None = Field(
        None, gt=0, lt=1, description="Decision curves: share of the class where it is used; as observed by default."
    )
    form: Literal["bins", "isotonic"] | None = Field(
        None, description="Calibration curves: in `bins` of equal width, or `isotonic`, without bins."
    )
    bins: int | None = Field(None, ge=1, le=1000, description="Calibration curves: how many bins, 15 by default.")
    band: Literal["pointwise", "simultaneous"] | None = Field(
        None, description="Limits around the curve: point by point, or of the curve as a whole."
    )
    level: Level | None = Field(None, description="Level of the band, 0.95 by default.")
    seed: int | None = Field(None, ge=0, lt=2**63, description="Seed of the band's resamples.")


AskedCurve = Annotated[CurveOptions, parameters_of(CurveOptions)]


class CurveRequest(CurveOptions):
    """A curve of an input that is not saved."""

    input: AnyInput = Field(description="Probabilities or scores, or folds of them.")
    label: LabelField | None = Field(None, alias="class", description=CURVE_OF)

    def to_domain(self, name: CurveName) -> tuple[MatrixInput, CurveQuestion]:
        """The input, and the question as the services know it.

        Raises:
            InvalidInput: the input cannot be evaluated, or something is given that this curve is not made with.
        """
        question = self.filled(CurveQuestion, name=name, label=None if self.label is None else str(self.label))
        if faults := question.faults():
            raise InvalidInput([replace(fault, pointer=f"/{fault.pointer}") for fault in faults])
        return scored_input(self.input), question


def scored_input(given: AnyInput) -> MatrixInput:
    """An input with probabilities or scores.

    Raises:
        NeedsScores: it has none.
        InvalidInput: it cannot be evaluated.
    """
    source: MatrixInput = given.to_domain("/input")
    if not source.is_ordered:
        raise NeedsScores(f"expected probabilities or scores, got {source.kind}", pointer="/input/kind")
    return source


class ConstraintField(Wire):
    """Bounds on a metric that the decision rule must meet."""

    metric: Expression = Field(description="A metric expression with one value.")
    min: float | None = Field(None, description="Lowest value allowed.")
    max: float | None = Field(None, description="Highest value allowed.")


class SurfaceField(Wire):
    """A grid of class weights of which all rules are wanted."""

    steps: int = Field(
        20,
        ge=3,
        le=200,
        description="Weights are positive multiples of 1 / steps with sum 1; 20 are 171 points of 3 classes.",
    )


class ThresholdRequest(Wire):
    """The objective and constraints of a decision rule."""

    objective: Expression = Field(description="A metric expression with one value, such as `h_mean`.")
    constraints: list[ConstraintField] = Field(default_factory=list, max_length=20, description="All must be met.")
    correction: Literal["optimism", "632", "none"] = Field(
        "optimism", description="How to correct the value for having been searched: by searching again in resamples."
    )
    resamples: int | None = Field(
        None, ge=10, le=1000, description="How many; 100 for a threshold, 20 for class weights."
    )
    seed: int = Field(0, ge=0, lt=2**63, description="Seed of the resamples.")
    max_points: int = Field(1000, ge=2, le=MOST_POINTS, description="Points of the curve at most.")
    guarantee: float | None = Field(
        None,
        ge=0.5,
        lt=1,
        description="Two classes: choose only among thresholds at which the constraints are met in the population with "
        "this probability, such as 0.95.",
    )
    per_label: bool = Field(default=False, description="Labels: a threshold for each.")
    surface: SurfaceField | None = Field(
        None,
        description="Three or four classes: the objective and the recalls for every class weight of a grid, and which "
        "of these rules no other one beats in one recall without losing in another.",
    )

    def to_domain(self) -> RuleQuestion:
        """The question as the services know it."""
        limits = [Limit(one.metric, one.min, one.max) for one in self.constraints]
        steps = None if self.surface is None else self.surface.steps
        return self.filled(RuleQuestion, limits=limits, surface_steps=steps)


class InputThresholdRequest(ThresholdRequest):
    """The objective and constraints of a decision rule, and the input to find it for; nothing is stored."""

    input: AnyInput = Field(description="Probabilities or scores, or folds of them.")


Count = Annotated[int, Field(ge=1, le=1_000_000)]

# A string keeps the digits that were printed: they say how exact a score is.
Score = Annotated[str, StringConstraints(pattern=r"^-?[0-9]{1,9}(\.[0-9]{1,12})?$")]
ScoreName = Annotated[str, StringConstraints(min_length=1, max_length=256), SOUGHT]


class FoldField(Wire):
    """Numbers of samples of one fold."""

    p: Annotated[int, Field(ge=1, le=10_000)]
    n: Annotated[int, Field(ge=1, le=10_000)]


class ConsistencyRequest(Wire):
    """Scores as printed, with the numbers of samples: p and n as far as they are known, or classes, or folds."""

    scores: dict[ScoreName, Score] = Field(
        min_length=1,
        max_length=60,
        description='By name, as strings: "0.80" says more than 0.8. A metric with its parameters, such as '
        "`f_beta(beta=2)`, and with classes `recall@A` and the like.",
    )
    p: Count | None = Field(None, description="Positive samples; left out when they are not known.")
    n: Count | None = Field(None, description="Negative samples; left out when they are not known.")
    total: Annotated[int, Field(ge=2, le=DEFAULT_BOUND)] | None = Field(
        None, description="All samples, where it is not known how many are positive: every division is searched."
    )
    search_up_to: Annotated[int, Field(ge=2, le=DEFAULT_BOUND)] | None = Field(
        None,
        description="How far an unknown p or n is searched, or, with neither, p + n. As far as time allows when left "
        "out; needed when nothing else is known.",
    )
    classes: dict[ScoreName, Annotated[int, Field(ge=1, le=10_000)]] | None = Field(
        None, min_length=2, max_length=20, description="Samples of each class."
    )
    folds: list[FoldField] | None = Field(
        None, min_length=1, max_length=100, description="The scores are of these folds together."
    )
    aggregation: Aggregation = Field(
        Aggregation.MEAN_OF_SCORES,
        description="With folds: the mean of the scores of each, or the score of the counts of all.",
    )
    rounding: Literal["nearest", "truncated", "any"] = Field("nearest", description="How the scores were rounded.")
    metrics: list[Expression] = Field(
        default_factory=list, max_length=20, description="With p and n: further metrics whose range is wanted."
    )

    @model_validator(mode="after")
    def check_form(self) -> Self:
        """Refuse any but one complete form of the three."""
        sizes = (self.p, self.n, self.total, self.search_up_to)
        forms = [any(size is not None for size in sizes), self.classes is not None, self.folds is not None]
        if sum(forms) != 1:
            raise ValueError("expected exactly one of p and n (or total, or search_up_to), classes, and folds")
        known = self.p is not None and self.n is not None
        if known and (self.total is not None or self.search_up_to is not None):
            raise ValueError("expected neither total nor search_up_to when both p and n are known")
        if self.total is not None:
            if self.search_up_to is not None:
                raise ValueError("expected total or search_up_to, not both")
            if max(self.p or 0, self.n or 0) >= self.total:
                raise ValueError("expected a total that leaves samples of both classes")
        if self.p is not None and self.n is not None and min(self.p, self.n) > MOST_ITEMS:
            raise ValueError(f"expected at most {MOST_ITEMS} samples of the smaller class")
        pooled = self.aggregation is Aggregation.SCORE_OF_SUMS
        if pooled and self.folds is None:
            raise ValueError("expected aggregation with folds only")
        if self.metrics and not (known or pooled):
            raise ValueError("expected further metrics with p and n only")
        return self

    def to_domain(self) -> ReportedScores:
        """Convert the reported scores for the services."""
        return self.filled(
            ReportedScores,
            positives=self.p,
            negatives=self.n,
            up_to=self.search_up_to,
            folds=None if self.folds is None else tuple((fold.p, fold.n) for fold in self.folds),
            printed=Printed(self.rounding),
        )
