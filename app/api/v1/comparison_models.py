"""Requests and answers about comparisons of runs, and of models across datasets."""

from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, Field, PlainValidator, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from app.api.body import Wire
from app.api.v1.evaluation_models import DatasetField, Expression, ModelField, Name
from app.domain.evaluation import DatasetRef, ModelRef
from app.domain.named_metrics import COMPARED
from app.kernel.compare.multiplicity import Adjustment
from app.kernel.compare.signed_ranks import ZeroRule
from app.services.compare.across_datasets import MOST_DATASETS, MOST_MODELS, Tournament
from app.services.compare.comparisons import MOST_METRICS, MOST_RUNS, NewComparison
from app.services.runs.pairing import Wanted
from app.services.runs.simulation import DRAWS, FEWEST_DRAWS

MOST_DRAWS = 20_000


def _identifier(value: Any) -> UUID:
    try:
        return value if isinstance(value, UUID) else UUID(value)
    except (ValueError, TypeError, AttributeError):
        raise PydanticCustomError("uuid", "expected the id of an evaluation") from None


Identifier = Annotated[UUID, PlainValidator(_identifier), WithJsonSchema({"type": "string", "format": "uuid"})]
Multiplicity = Literal["none", "bonferroni", "holm", "hochberg", "benjamini_hochberg", "benjamini_yekutieli"]


def _paired(value: Any) -> Any:
    """The contract's three words; JSON's true and false mean the same."""
    return str(value).lower() if isinstance(value, bool) else value


class ComparisonRequest(Wire):
    """Runs with the same classes, to be compared on any metrics."""

    evaluations: list[Identifier] = Field(min_length=2, max_length=MOST_RUNS, description="Ids, all different.")
    metrics: list[Expression] = Field(default_factory=lambda: list(COMPARED), min_length=1, max_length=MOST_METRICS)
    baseline: Identifier | None = Field(None, description="Compare all others with this one only, not every pair.")
    level: float = Field(0.95, gt=0, lt=1, description="Of intervals and of the set of runs that may be best.")
    rope: float = Field(0.01, ge=0, description="Differences up to this are practically none, in units of the metric.")
    paired: Annotated[
        Literal["auto", "true", "false"],
        PlainValidator(_paired),
        WithJsonSchema({"enum": ["auto", "true", "false", True, False]}),
    ] = Field("auto", description="auto: by sample ids where they are known.")
    minimum_matched: float = Field(
        1.0, gt=0, le=1, description="Share of the largest run's sample ids that all runs must have in common."
    )
    multiplicity: Multiplicity = Field("holm", description="How p is adjusted over pairs and classes.")
    seed: int | None = Field(None, ge=0, lt=2**63, description="Derived from the request when left out.")
    draws: int = Field(DRAWS, ge=FEWEST_DRAWS, le=MOST_DRAWS, description="Simulated matrices per run.")

    @model_validator(mode="after")
    def check_runs(self) -> Self:
        """Different runs, and the baseline one of them."""
        if self.paired not in ("auto", "true", "false"):
            raise ValueError("expected paired to be auto, true or false")
        if len(set(self.evaluations)) < len(self.evaluations):
            raise ValueError("expected different evaluations, one is there twice")
        if self.baseline is not None and self.baseline not in self.evaluations:
            raise ValueError("expected the baseline to be one of the evaluations")
        return self

    def to_domain(self) -> NewComparison:
        """The request as the services know it."""
        return NewComparison(
            evaluations=tuple(self.evaluations),
            metrics=tuple(self.metrics),
            baseline=self.baseline,
            level=self.level,
            rope=self.rope,
            paired=Wanted(self.paired),
            minimum_matched=self.minimum_matched,
            multiplicity=Adjustment(self.multiplicity),
            seed=self.seed,
            draws=self.draws,
        )


class DifferenceValue(BaseModel):
    """a less b in the unit of the metric."""

    a: UUID
    b: UUID
    difference: float | None
    low: float | None
    high: float | None
    p_value: float | None = Field(
        description="Two-sided. With p_range its upper end, which holds whatever the pairing."
    )
    p_adjusted: float | None
    probability_a_better: float | None = Field(description="By more than the region of equivalence.")
    probability_equivalent: float | None
    probability_error: float | None = Field(description="Monte-Carlo standard error of the probabilities at most.")
    method: str = Field(description="Of the limits, and of p.")
    p_range: list[float | None] | None = Field(None, description="What the unknown pairing of one test set allows.")
    discordant: int | None = Field(None, description="Samples that exactly one of the two has right.")
    reason: str | None = Field(None, description="Why there is no test, or one that says little.")
    folds: dict[str, Any] | None = Field(
        None, description="For runs on the same folds: corrected t and the Bayesian correlated t over them."
    )


class ComparedMetric(BaseModel):
    """What is said of the runs by one metric; lists are in the order of the evaluations."""

    values: list[float | None]
    ranks: list[int | None]
    best: UUID | None
    better: Literal["higher", "lower", "nearest"]
    prevalence: Literal["insensitive", "observed", "reprojected", "incomparable"]
    observed_values: list[float | None] | None = None
    probability_best: list[float | None] | None
    expected_ranks: list[float | None] | None
    rank_intervals: list[list[float]] | None
    may_be_best: list[UUID] | None = Field(description="The runs that are not worse than the best beyond doubt.")
    omnibus: dict[str, Any] | None = Field(
        None, description="For three or more paired runs and values with a covariance: do all have the same?"
    )
    differences: list[DifferenceValue]


class RankAgreement(BaseModel):
    """Kendall's tau-b between the orders that the metrics give."""

    metrics: list[str]
    kendall_tau: list[list[float | None]]


class Disagreement(BaseModel):
    """Two metrics that prefer different runs."""

    metrics: list[str]
    prefer: list[UUID]
    message: str


class ComparisonResponse(BaseModel):
    """A comparison of runs."""

    id: UUID
    evaluations: list[dict[str, Any]]
    baseline: UUID | None
    design: dict[str, Any]
    metrics: dict[str, ComparedMetric]
    rank_agreement: RankAgreement
    disagreements: list[Disagreement]
    omnibus: dict[str, Any] | None = None
    prediction_drift: dict[str, Any] | None = None
    notes: list[str]


# A name alone stands for every version of it.
ModelName = Annotated[Name | ModelField, Field(union_mode="left_to_right")]
DatasetName = Annotated[Name | DatasetField, Field(union_mode="left_to_right")]


class TournamentRequest(Wire):
    """Models on datasets; the latest evaluation of each model on each dataset counts."""

    metric: Expression = Field(description="Any expression with one value.")
    models: list[ModelName] = Field(min_length=2, max_length=MOST_MODELS, description="Names, or name and version.")
    datasets: list[DatasetName] = Field(
        min_length=1, max_length=MOST_DATASETS, description="Names, or name, version and split; at least five."
    )
    level: float = Field(0.95, gt=0.5, lt=1)
    rope: float = Field(0.01, ge=0, description="Differences up to this are practically none, in units of the metric.")
    multiplicity: Multiplicity = "holm"
    zeros: Literal["split", "drop"] = Field("split", description="What Wilcoxon's test does with differences of 0.")
    tie_corrected: bool = Field(default=False, description="Correct Friedman's statistic for ties, as libraries do.")
    control: ModelName | None = Field(None, description="Compare the average ranks of all others with this one's.")
    complete: bool = Field(default=False, description="Leave out datasets that lack a model instead of refusing.")
    seed: int | None = Field(None, ge=0, lt=2**63)

    @model_validator(mode="after")
    def check_names(self) -> Self:
        """Different models and datasets, and the control one of the models."""
        if len(set(self.model_refs())) < len(self.models):
            raise ValueError("expected different models, one is there twice")
        if len(set(self.dataset_refs())) < len(self.datasets):
            raise ValueError("expected different datasets, one is there twice")
        if self.control is not None and _model(self.control) not in self.model_refs():
            raise ValueError("expected the control to be one of the models")
        return self

    def model_refs(self) -> tuple[ModelRef, ...]:
        """The models."""
        return tuple(map(_model, self.models))

    def dataset_refs(self) -> tuple[DatasetRef, ...]:
        """The datasets."""
        return tuple(DatasetRef(one) if isinstance(one, str) else one.to_domain() for one in self.datasets)

    def to_domain(self) -> Tournament:
        """The request as the services know it."""
        return Tournament(
            metric=self.metric,
            models=self.model_refs(),
            datasets=self.dataset_refs(),
            level=self.level,
            rope=self.rope,
            multiplicity=Adjustment(self.multiplicity),
            zeros=ZeroRule(self.zeros),
            tie_corrected=self.tie_corrected,
            control=None if self.control is None else _model(self.control),
            complete=self.complete,
            seed=self.seed,
        )


def _model(one: str | ModelField) -> ModelRef:
    return ModelRef(one) if isinstance(one, str) else one.to_domain()


class TournamentResponse(BaseModel):
    """Models across datasets; models are named by their place in `models`."""

    id: UUID
    metric: str
    better: str
    models: list[dict[str, str | None]]
    datasets: list[dict[str, str | None]]
    evaluations: list[list[UUID]]
    values: list[list[float | None]] = Field(description="By dataset, the value of each model.")
    average_ranks: list[float]
    friedman: dict[str, Any]
    pairwise: list[dict[str, Any]]
    cliques: list[list[int]] = Field(
        description="Maximal groups of models of which no two differ, by the pairwise tests."
    )
    nemenyi: dict[str, Any]
    control: list[dict[str, Any]] | None = None
    design: dict[str, Any]
    notes: list[str]
