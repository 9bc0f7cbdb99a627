"""Requests for curves and for the best decision rule."""

from typing import Any, Literal

from pydantic import Field

from app.api.bodies.parsing import Wire
from app.api.problems import InvalidQuery
from app.api.v1.requests.fields import Expression
from app.services.decide.curves import CalibrationForm, CurveName, CurveQuestion
from app.services.decide.thresholds import Correction, Limit, RuleQuestion

MOST_POINTS = 100_000


_MEMBERS = {CurveName.DECISION: {"prevalence"}, CurveName.CALIBRATION: {"form", "bins"}}


def curve_question(name: CurveName, label: str | None, max_points: int, given: dict[str, Any]) -> CurveQuestion:
    """A curve with what it is made with.

    Raises:
        InvalidQuery: something is given that this curve is not made with.
    """
    for member in given:
        if member not in _MEMBERS.get(name, ()):
            raise InvalidQuery.at(member, "not_for_this_curve", f"expected none for the {name.value} curve")
    if given.get("form") is CalibrationForm.ISOTONIC and "bins" in given:
        raise InvalidQuery.at("bins", "not_for_this_curve", "expected none with form=isotonic, which has no bins")
    return CurveQuestion(name=name, label=label, max_points=max_points, **given)


class ConstraintField(Wire):
    """What a metric has to keep to under the rule."""

    metric: Expression = Field(description="A metric expression with one value.")
    min: float | None = Field(None, description="Lowest value allowed.")
    max: float | None = Field(None, description="Highest value allowed.")


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
    seed: int = Field(0, ge=0, lt=2**63, description="Of the resamples.")
    max_points: int = Field(1000, ge=2, le=MOST_POINTS, description="Points of the curve at most.")
    guarantee: float | None = Field(
        None,
        ge=0.5,
        lt=1,
        description="Two classes: choose only among thresholds at which the constraints are met in the population with "
        "this probability, such as 0.95.",
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
        )


THRESHOLDS = {
    "balanced": {"objective": "h_mean"},
    "with a guarantee": {
        "objective": "balanced_accuracy",
        "constraints": [{"metric": "min(recall@*)", "min": 0.3}],
        "guarantee": 0.9,
    },
    "with a constraint": {"objective": "mcc", "constraints": [{"metric": "min(recall@*)", "min": 0.5}]},
}
