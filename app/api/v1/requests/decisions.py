"""Requests of comparisons and gates."""

from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from app.api.bodies.parsing import Wire
from app.api.v1.requests.asked import Declared
from app.api.v1.requests.fields import (
    AlternativeName,
    DatasetField,
    Description,
    Expression,
    GateNameField,
    Level,
    ModelField,
    ProportionIntervalName,
    ReferenceField,
    RunField,
)
from app.domain.named_metrics import COMPARED, EACH_RECALL, MOST_CLASSES_COMPARED
from app.domain.options import check_one_sided
from app.domain.rules import Demand
from app.services.compare.across_datasets import Tournament
from app.services.compare.comparisons import CostQuestion, NewComparison

Multiplicity = Literal["none", "bonferroni", "holm", "hochberg", "benjamini_hochberg", "benjamini_yekutieli"]


def _paired(value: Any) -> Any:
    """The contract's three words; JSON's true and false mean the same."""
    return str(value).lower() if isinstance(value, bool) else value


class CostRangesField(Declared, of=CostQuestion):
    """Options of a comparison of costs."""


class ComparisonRequest(Declared, of=NewComparison):
    """Runs with the same classes, to be compared on any metrics."""

    metrics: list[Expression] | None = Field(
        None,
        min_length=1,
        max_length=50,
        description=f"When left out {', '.join(COMPARED)}, and {EACH_RECALL} of two runs with at most "
        f"{MOST_CLASSES_COMPARED} classes; of inputs that are more than a matrix their headline.",
    )
    cost_ranges: CostRangesField | None = None
    paired: Annotated[
        Literal["auto", "true", "false"],
        PlainValidator(_paired),
        WithJsonSchema({"anyOf": [{"type": "string", "enum": ["auto", "true", "false"]}, {"type": "boolean"}]}),
    ]

    def check(self) -> None:
        """Only the three words, before all else."""
        if self.paired not in ("auto", "true", "false"):
            raise ValueError("expected paired to be auto, true or false")
        super().check()


class TournamentRequest(Declared, of=Tournament):
    """Models on datasets; the latest evaluation of each model on each dataset counts."""

    multiplicity: Multiplicity


Baseline = Literal["baseline"]


class RuleField(Wire):
    """One rule: a metric and exactly one demand on it."""

    metric: Expression = Field(description="Any expression; of a list such as `recall@*` every class has to pass.")
    min: float | None = Field(None, description="The floor.")
    max: float | None = Field(None, description="The ceiling.")
    not_worse_than: Baseline | None = Field(None, description="Worse than the baseline by less than the margin.")
    better_than: Baseline | None = Field(None, description="Better than the baseline by more than the margin.")
    equivalent_to: Baseline | None = Field(None, description="Different from the baseline by less than the margin.")
    not_changed_since: Literal["last_change"] | None = Field(
        None, description="No change of the model is claimed at the evaluation: see its history."
    )
    margin: float | None = Field(None, ge=0, description="With a baseline, in units of the metric; 0 when left out.")
    bound: Literal["value", "lower", "upper"] = Field(
        "lower",
        description="`lower`: pass when the worse end of the interval clears the limit, fail when the better end does "
        "not. `upper`: a guardrail, which fails only for certain. `value`: the estimate alone.",
    )
    level: Level = Field(0.95, description="Of the interval; half of what is left is the one-sided error.")
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
        if demand is Demand.UNCHANGED and (self.bound != "lower" or self.alternative or self.proportion_interval):
            raise ValueError("expected no bound, alternative or proportion_interval with not_changed_since")
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
    """The rules of a gate; all have to pass."""

    rules: list[RuleField] = Field(min_length=1, max_length=100)
    minimum_samples: int | None = Field(None, ge=1, le=2**53, description="With fewer samples nothing passes.")
    applies_to: ReferenceField | None = Field(
        None,
        description="The evaluations that the gate is for: a check of another one is refused, and a reference to the "
        "latest evaluation looks among these.",
    )
    description: Description | None = None


class TriedField(Wire):
    """The latest evaluations of a model or a dataset, or one."""

    id: UUID | None = Field(None, description="One alone, of which nothing else is said.")
    latest: int = Field(20, ge=1, le=100, description="How many.")
    model: ModelField | None = None
    dataset: DatasetField | None = None

    @model_validator(mode="after")
    def check_alone(self) -> Self:
        """Nothing else beside an id."""
        if self.id is not None and len(self.model_fields_set) > 1:
            raise ValueError("expected an id alone, or the latest of a model or a dataset")
        return self


class TrialRequest(Wire):
    """Rules to be tried on evaluations that there are."""

    rules: list[RuleField] = Field(min_length=1, max_length=100)
    minimum_samples: int | None = Field(None, ge=1, le=2**53, description="With fewer samples nothing passes.")
    evaluations: TriedField
    baseline: RunField | None = Field(None, description="Needed when a rule compares with a baseline.")
    gate: GateNameField | None = Field(None, description="A gate whose rules are tried beside these.")

    def definition(self) -> dict[str, Any]:
        """Return the rules as a gate has them."""
        return self.model_dump(mode="json", exclude_none=True, include={"rules", "minimum_samples"})


class CheckRequest(Wire):
    """The evaluation to check, and its baseline."""

    evaluation: RunField = Field(description="Its id, or a reference to the latest of a model, dataset or tag.")
    baseline: RunField | None = Field(None, description="Needed when a rule compares with a baseline.")
