"""Requests about gates and their checks."""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from app.api.bodies.parsing import Wire
from app.api.v1.requests.fields import (
    FIRST,
    SECOND,
    AlternativeName,
    Description,
    Expression,
    ProportionIntervalName,
    RunField,
    check_one_sided,
)
from app.domain.rules import Demand

Baseline = Literal["baseline"]


class RuleField(Wire):
    """One rule: a metric and exactly one demand on it."""

    metric: Expression = Field(description="Any expression; of a list such as `recall@*` every class has to pass.")
    min: float | None = Field(None, description="The floor.")
    max: float | None = Field(None, description="The ceiling.")
    not_worse_than: Baseline | None = Field(None, description="Worse than the baseline by less than the margin.")
    better_than: Baseline | None = Field(None, description="Better than the baseline by more than the margin.")
    equivalent_to: Baseline | None = Field(None, description="Different from the baseline by less than the margin.")
    margin: float | None = Field(None, ge=0, description="With a baseline, in units of the metric; 0 when left out.")
    bound: Literal["value", "lower", "upper"] = Field(
        "lower",
        description="`lower`: pass when the worse end of the interval clears the limit, fail when the better end does "
        "not. `upper`: a guardrail, which fails only for certain. `value`: the estimate alone.",
    )
    level: float = Field(0.95, gt=0, lt=1, description="Of the interval; half of what is left is the one-sided error.")
    alternative: AlternativeName | None = Field(
        None,
        description="With the bound `lower`. `greater`: a lower limit alone, at the level, of the value or of "
        "candidate less baseline; the other end is that of the range. So a floor passes or stays open, and a ceiling "
        "fails or stays open. `less` is the mirror image.",
    )
    proportion_interval: ProportionIntervalName | None = Field(
        None,
        description="Limits of a metric that is a proportion, with `min` or `max`; `wilson` when left out. Limits that "
        "have to hold for several values together are always those of Clopper and Pearson.",
    )

    @model_validator(mode="after")
    def check_demand(self) -> Self:
        """Exactly one demand, and a margin only where it means something."""
        given = [demand for demand in Demand if getattr(self, demand) is not None]
        if len(given) != 1:
            raise ValueError(f"expected exactly one of {', '.join(Demand)}, got {' and '.join(given) or 'none'}")
        demand = given[0]
        if not demand.needs_baseline and self.margin is not None:
            raise ValueError(f"expected no margin with {demand}: it belongs to rules with a baseline")
        if demand is Demand.EQUIVALENT and not self.margin:
            raise ValueError("expected a margin above 0: nothing is exactly equivalent")
        if self.bound == "upper" and demand in (Demand.BETTER, Demand.EQUIVALENT):
            raise ValueError(f"expected the bound lower or value with {demand}")
        if self.alternative in ("greater", "less") and (self.bound != "lower" or demand is Demand.EQUIVALENT):
            raise ValueError("expected limits on both sides with equivalent_to, and with the bounds value and upper")
        check_one_sided(self.level, self.alternative)
        if self.proportion_interval is not None and (demand.needs_baseline or self.bound == "value"):
            what = "a difference" if demand.needs_baseline else "an estimate alone"
            raise ValueError(f"expected no proportion_interval for {what}, which has no limits of a proportion")
        return self


class GateRequest(Wire):
    """What a gate asks for; all rules have to pass."""

    rules: list[RuleField] = Field(min_length=1, max_length=100)
    minimum_samples: int | None = Field(None, ge=1, le=2**53, description="With fewer samples nothing passes.")
    description: Description | None = None


class CheckRequest(Wire):
    """What is to be checked."""

    evaluation: RunField = Field(description="Its id, or a reference to the latest of a model, dataset or tag.")
    baseline: RunField | None = Field(None, description="Needed when a rule compares with a baseline.")


GATES: dict[str, Any] = {
    "promotion": {
        "description": "What a model has to show before it goes into production.",
        "minimum_samples": 100,
        "rules": [
            {"metric": "h_mean", "min": 0.8},
            {"metric": "min(recall@*)", "min": 0.5, "bound": "lower"},
            {"metric": "h_mean", "not_worse_than": "baseline", "margin": 0.01, "level": 0.95},
        ],
    },
    "guardrails": {
        "rules": [
            {"metric": "recall@*", "not_worse_than": "baseline", "margin": 0.05, "bound": "upper"},
            {"metric": "error_rate", "max": 0.1, "bound": "value"},
            {"metric": "accuracy", "better_than": "baseline"},
        ]
    },
}
CHECKS: dict[str, Any] = {"against a baseline": {"evaluation": FIRST, "baseline": SECOND}}
