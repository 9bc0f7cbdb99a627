"""Requests for curves and for the best decision rule."""

from dataclasses import replace
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from app.api.bodies.parsing import Wire
from app.api.problems import InvalidQuery
from app.api.v1.requests.evaluations import PROBABILITIES, SCORES
from app.api.v1.requests.fields import Expression, LabelField
from app.api.v1.requests.inputs import AnyInput
from app.domain.errors import InvalidInput
from app.domain.inputs.matrices import MatrixInput
from app.services.decide.curves import BandForm, CalibrationForm, CurveName, CurveQuestion
from app.services.decide.thresholds import Correction, Limit, RuleQuestion

MOST_POINTS = 100_000
MOST_OTHERS = 10


def refuse_misfits(question: CurveQuestion) -> CurveQuestion:
    """The question of an address, if everything in it is about its curve.

    Raises:
        InvalidQuery: something is given that this curve is not made with.
    """
    if faults := question.faults():
        raise InvalidQuery(faults)
    return question


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


class CurveRequest(Wire):
    """A curve of an input that is not kept."""

    input: AnyInput = Field(description="Probabilities or scores, or folds of them.")
    label: LabelField | None = Field(
        None,
        alias="class",
        description="The class, or `micro`, `macro` or `predicted` (calibration, of the predicted class). When "
        "left out all together where that makes sense, else the positive class; calibration is that of the "
        "positive class of two and of the predicted class of more.",
    )
    max_points: int = Field(1000, ge=2, le=MOST_POINTS, description="Points at most.")
    prevalence: float | None = Field(
        None, gt=0, lt=1, description="Decision curves: share of the class where the model is used."
    )
    form: Literal["bins", "isotonic"] | None = Field(None, description="Calibration curves: `bins` or `isotonic`.")
    bins: int | None = Field(None, ge=1, le=1000, description="Calibration curves: how many bins, 15 by default.")
    band: Literal["pointwise", "simultaneous"] | None = Field(
        None, description="Limits around the curve, point by point or of the whole."
    )
    level: float | None = Field(None, gt=0, lt=1, description="Level of the band, 0.95 by default.")
    seed: int | None = Field(None, ge=0, lt=2**63, description="Seed of the band's resamples.")

    def to_domain(self, name: CurveName) -> tuple[MatrixInput, CurveQuestion]:
        """The input, and the question as the services know it.

        Raises:
            InvalidInput: the input cannot be evaluated, or something is given that this curve is not made with.
        """
        question = CurveQuestion(
            name=name,
            label=None if self.label is None else str(self.label),
            max_points=self.max_points,
            prevalence=self.prevalence,
            form=None if self.form is None else CalibrationForm(self.form),
            bins=self.bins,
            band=None if self.band is None else BandForm(self.band),
            level=self.level,
            seed=self.seed,
        )
        if faults := question.faults():
            raise InvalidInput([replace(fault, pointer=f"/{fault.pointer}") for fault in faults])
        return scored_input(self.input), question


def scored_input(given: AnyInput) -> MatrixInput:
    """An input with probabilities or scores.

    Raises:
        InvalidInput: it has none, or cannot be evaluated.
    """
    source: MatrixInput = given.to_domain("/input")
    if not source.is_scored:
        raise InvalidInput.at("/input/kind", "needs_scores", f"expected probabilities or scores, got {source.kind}")
    return source


class ConstraintField(Wire):
    """What a metric has to keep to under the rule."""

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
    """What the decision rule is to be best for."""

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
    surface: SurfaceField | None = Field(
        None,
        description="Three or four classes: the objective and the recalls for every class weight of a grid, and which "
        "of these rules no other one beats in one recall without losing in another.",
    )

    def to_domain(self) -> RuleQuestion:
        """The question as the services know it."""
        return RuleQuestion(
            objective=self.objective,
            limits=[Limit(one.metric, one.min, one.max) for one in self.constraints],
            correction=Correction(self.correction),
            resamples=self.resamples,
            seed=self.seed,
            max_points=self.max_points,
            guarantee=self.guarantee,
            surface_steps=None if self.surface is None else self.surface.steps,
        )


class InputThresholdRequest(ThresholdRequest):
    """What the decision rule is to be best for, and the input that is decided about; nothing is kept."""

    input: AnyInput = Field(description="Probabilities or scores, or folds of them.")


THRESHOLDS = {
    "balanced": {"objective": "h_mean"},
    "with a guarantee": {
        "objective": "balanced_accuracy",
        "constraints": [{"metric": "min(recall@*)", "min": 0.3}],
        "guarantee": 0.9,
    },
    "with a constraint": {"objective": "mcc", "constraints": [{"metric": "min(recall@*)", "min": 0.5}]},
}
INPUT_THRESHOLDS: dict[str, Any] = {
    "balanced": {"input": SCORES["input"], "objective": "h_mean"},
    "several classes": {"input": PROBABILITIES["input"], "objective": "mcc"},
    "a surface": {"input": PROBABILITIES["input"], "objective": "h_mean", "surface": {"steps": 6}},
}
CURVES: dict[str, Any] = {
    "of a class": {"input": PROBABILITIES["input"], "class": "dog"},
    "with a limit on its points": {"input": SCORES["input"], "max_points": 100, "class": "ill"},
}
