"""Requests of curves and thresholds, of another class prevalence, and of reported scores checked for consistency."""

from dataclasses import replace
from typing import Annotated, Any, Literal
from uuid import UUID

import numpy as np
from fastapi import Query
from pydantic import Field, PlainValidator, StringConstraints, WithJsonSchema
from pydantic.config import JsonDict

from app.api.bodies.parsing import Wire
from app.api.deps import parameters_of
from app.api.problems import InvalidQuery
from app.api.v1.requests.asked import Declared
from app.api.v1.requests.fields import SOUGHT, LabelField, RunField
from app.api.v1.requests.inputs import AnyInput
from app.domain.errors import InvalidInput, NeedsScores
from app.domain.inputs.kinds import refuse_without_curves
from app.domain.inputs.matrices import MatrixInput
from app.services.consistency import Aggregation, ReportedScores
from app.services.decide.curves import CurveName, CurveQuestion
from app.services.decide.thresholds import Limit, RuleQuestion, Surface
from app.services.project.prevalence_estimate import Unlabelled
from app.services.project.projection import Marked, Scenario, Sweep

Share = Annotated[float, Field(ge=0, le=1)]


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


class SweepField(Declared, of=Sweep):
    """One class from a rare to a frequent one."""

    at: Annotated[list[ExactShare], Field(max_length=100)]


class _Projected(Declared, of=Scenario):
    """The class prevalence of a projection."""

    sweep: SweepField | None = None


class ProjectionRequest(_Projected):
    """The class prevalence that a stored evaluation is projected to."""

    against: RunField | None = Field(
        None,
        description="With a sweep: another run, by its id or a reference; at `crossings` the two change places.",
    )

    def check(self) -> None:
        """One scenario, and a second run with a sweep only."""
        super().check()
        if self.against is not None and self.sweep is None:
            raise ValueError("expected against with a sweep only")


class InputProjectionRequest(_Projected):
    """The class prevalence that an input is projected to; it is not stored."""

    input: AnyInput


class EstimateRequest(Declared, of=Unlabelled):
    """Predictions on samples without labels: counts of predicted classes, or probabilities."""

    # The first fault is said: there may be a hundred thousand.
    probabilities: (
        Annotated[
            list[Annotated[list[Share], Field(fail_fast=True)]],
            Field(min_length=1, max_length=_MOST_ROWS, fail_fast=True),
        ]
        | None
    ) = None

    def check(self) -> None:
        """Refuse both or neither of the two forms, and rows of different lengths."""
        if (self.predicted is None) == (self.probabilities is None):
            raise ValueError("expected exactly one of predicted and probabilities")
        if self.probabilities is None and (self.old_prevalence is not None or self.recalibrate):
            raise ValueError("expected old_prevalence and recalibrate with probabilities only")
        if self.probabilities is not None:
            lengths = set(map(len, self.probabilities))
            if len(lengths) > 1 or 0 in lengths:
                raise ValueError("expected rows of probabilities of one length")

    def to_domain(self, **others: Any) -> Any:
        """The predictions as the services know them."""
        rows = self.probabilities
        return super().to_domain(probabilities=None if rows is None else np.array(rows, dtype=np.float64), **others)


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


class CurveOptions(Declared, of=CurveQuestion):
    """Parameters of a curve, whatever class it is of."""


AskedCurve = Annotated[CurveOptions, parameters_of(CurveOptions)]


class CurveRequest(CurveOptions):
    """A curve of an input that is not saved."""

    input: AnyInput = Field(description="Probabilities or scores, or folds of them.")
    label: LabelField | None = Field(None, alias="class", description=CURVE_OF)

    def question(self, name: CurveName) -> tuple[MatrixInput, CurveQuestion]:
        """The input, and the question as the services know it.

        Raises:
            InvalidInput: the input cannot be evaluated, or something is given that this curve is not made with.
        """
        question = self.to_domain(name=name, label=self.label)
        if faults := question.faults():
            raise InvalidInput([replace(fault, pointer=f"/{fault.pointer}") for fault in faults])
        return scored_input(self.input), question


def scored_input(given: AnyInput) -> MatrixInput:
    """An input with probabilities or scores.

    Raises:
        NotForKind: none of its kind has curves.
        NeedsScores: it has none.
        InvalidInput: it cannot be evaluated.
    """
    source: MatrixInput = given.to_domain("/input")
    refuse_without_curves(source, pointer="/input/kind")
    if not source.is_ordered:
        raise NeedsScores(f"expected probabilities or scores, got {source.kind}", pointer="/input/kind")
    return source


class ConstraintField(Declared, of=Limit):
    """Bounds on a metric that the decision rule must meet."""


class SurfaceField(Declared, of=Surface):
    """A grid of class weights of which all rules are wanted."""


class ThresholdRequest(Declared, of=RuleQuestion):
    """The objective and constraints of a decision rule."""

    limits: Annotated[list[ConstraintField], Field(max_length=20)]
    correction: Literal["optimism", "632", "none"]
    surface: SurfaceField | None = None


class InputThresholdRequest(ThresholdRequest):
    """The objective and constraints of a decision rule, and the input to find it for; nothing is stored."""

    input: AnyInput = Field(description="Probabilities or scores, or folds of them.")


# A string keeps the digits that were printed: they say how exact a score is.
Score = Annotated[str, StringConstraints(pattern=r"^-?[0-9]{1,9}(\.[0-9]{1,12})?$")]
ScoreName = Annotated[str, StringConstraints(min_length=1, max_length=256), SOUGHT]


class FoldField(Wire):
    """Numbers of samples of one fold."""

    p: Annotated[int, Field(ge=1, le=10_000)]
    n: Annotated[int, Field(ge=1, le=10_000)]

    def to_domain(self) -> tuple[int, int]:
        """Both numbers."""
        return self.p, self.n


class ConsistencyRequest(Declared, of=ReportedScores):
    """Scores as printed, with the numbers of samples: p and n as far as they are known, or classes, or folds."""

    scores: Annotated[dict[ScoreName, Score], Field(min_length=1, max_length=60)]
    classes: (
        Annotated[dict[ScoreName, Annotated[int, Field(ge=1, le=10_000)]], Field(min_length=2, max_length=20)] | None
    ) = None
    folds: Annotated[list[FoldField], Field(min_length=1, max_length=100)] | None = None
    aggregation: Aggregation
