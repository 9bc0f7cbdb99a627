"""Requests and answers about evaluations.

The answers are models for the documentation and the tests; what is sent is built by hand, for speed.
"""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, Field, StringConstraints

from app.api.body import Wire
from app.api.v1.inputs import AnyInput, clean_text
from app.domain.evaluation import DatasetRef, ModelRef
from app.domain.inputs.matrices import MOST_CLASSES
from app.domain.report import IntervalChoice, IntervalMethod, Options, Retain, Sampling
from app.kernel.uncertainty.design import Prior, Shares
from app.kernel.uncertainty.estimation import DRAWS
from app.services.estimates.full_intervals import FEWEST_DRAWS, MOST_DRAWS
from app.services.evaluate.evaluations import NewEvaluation
from app.services.evaluate.matrix_report import MOST_EXPRESSIONS

Name = Annotated[str, StringConstraints(min_length=1, max_length=256), AfterValidator(clean_text)]
TagKey = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[^:\x00]+$")]
TagValue = Annotated[str, StringConstraints(max_length=1024), AfterValidator(clean_text)]
Tags = Annotated[dict[TagKey, TagValue], Field(max_length=64)]
PseudoCount = Annotated[float, Field(ge=0)]
Expression = Annotated[str, StringConstraints(min_length=1, max_length=2000), AfterValidator(clean_text)]


class ModelField(Wire):
    """A model, one version of it."""

    name: Name = Field(description="Name of the model.")
    version: Name | None = Field(None, description="Its version.")

    def to_domain(self) -> ModelRef:
        """The domain's name for it."""
        return ModelRef(self.name, self.version)


class DatasetField(Wire):
    """A dataset, one split of one version of it."""

    name: Name = Field(description="Name of the dataset.")
    version: Name | None = Field(None, description="Its version.")
    split: Name | None = Field(None, description="The split, such as test.")

    def to_domain(self) -> DatasetRef:
        """The domain's name for it."""
        return DatasetRef(self.name, self.version, self.split)


class OptionsField(Wire):
    """What is computed beyond the report that everyone gets."""

    metrics: list[Expression] = Field(
        default_factory=list,
        max_length=MOST_EXPRESSIONS,
        description="Metric expressions, such as `f_beta(beta=2)@D`; their values stand in `requested`.",
    )
    level: float = Field(0.95, gt=0, lt=1, description="Coverage of the intervals.")
    seed: int | None = Field(
        None, ge=0, lt=2**63, description="Of everything random; derived from the input when left out."
    )
    intervals: Literal["headline", "all", "none"] = Field(
        "headline",
        description="`headline`: closed forms for the usual metrics and every rate. `all`: every metric and every "
        "expression, by simulation where there is no closed form; needs counts. `none`: no intervals.",
    )
    interpretation: bool = Field(default=False, description="Answer the verbal scales of the literature too.")
    retain: Literal["full", "none"] = Field(
        "full",
        description="What is kept of the samples: `full` for curves, thresholds and paired comparisons later; `none` "
        "keeps the values only.",
    )
    interval_method: Literal["posterior", "delta", "bootstrap", "bca"] | None = Field(
        None,
        description="With `all`, for what is no plain rate: row-wise Dirichlet posterior, delta method, bootstrap with "
        "percentile limits or with bias-corrected and accelerated ones. When left out `posterior`; with `group_ids` "
        "`bootstrap`, of whole groups, and nothing else.",
    )
    prior: Literal["edge", "jeffreys_recall", "uniform", "custom"] = Field(
        "edge",
        description="With `posterior`: what every row is given before its counts. `edge`: nothing, except where a "
        "recall is 0 or 1. `custom`: `pseudo_counts`.",
    )
    pseudo_counts: list[list[PseudoCount]] | None = Field(
        None, max_length=MOST_CLASSES, description="K x K, rows actual; with the prior `custom` only."
    )
    prevalence_design: Literal["observed", "sampled"] = Field(
        "observed",
        description="With `all`: were the numbers of samples per class chosen (`observed`), or are they random too "
        "(`sampled`)? Groups are drawn whole, so with `group_ids` they are random whatever stands here.",
    )
    draws: int = Field(
        DRAWS,
        ge=FEWEST_DRAWS,
        le=MOST_DRAWS,
        description="With `all`: simulated matrices; of samples at most 1000 resamples.",
    )

    def to_domain(self, *, grouped: bool) -> Options:
        """The domain's form, for samples that come in groups or do not."""
        usual = IntervalMethod.BOOTSTRAP if grouped else IntervalMethod.POSTERIOR
        return Options(
            metrics=tuple(self.metrics),
            level=self.level,
            seed=self.seed,
            intervals=IntervalChoice(self.intervals),
            interpretation=self.interpretation,
            retain=Retain(self.retain),
            sampling=Sampling(
                method=usual if self.interval_method is None else IntervalMethod(self.interval_method),
                prior=Prior(self.prior),
                pseudo_counts=None if self.pseudo_counts is None else tuple(map(tuple, self.pseudo_counts)),
                shares=Shares(self.prevalence_design),
                draws=self.draws,
            ),
        )


class EvaluationRequest(Wire):
    """An evaluation to be computed, and kept unless `store=false`."""

    input: AnyInput
    model: ModelField | None = Field(None, description="Required when the evaluation is kept.")
    dataset: DatasetField | None = Field(None, description="Required when the evaluation is kept.")
    tags: Tags = Field(default_factory=dict, description="Free pairs of text to find it by; a key has no colon.")
    options: OptionsField = Field(default_factory=OptionsField)

    def to_domain(self) -> NewEvaluation:
        """The request as the services know it.

        Raises:
            InvalidInput: the input has the right form but cannot be evaluated.
        """
        source = self.input.to_domain("/input")
        return NewEvaluation(
            source=source,
            options=self.options.to_domain(grouped=source.is_grouped),
            model=self.model.to_domain() if self.model else None,
            dataset=self.dataset.to_domain() if self.dataset else None,
            tags=self.tags,
        )


class BatchRequest(Wire):
    """Many evaluations; each succeeds or fails on its own."""

    evaluations: list[Any] = Field(
        min_length=1,
        max_length=1000,
        description="Each as in POST /v1/evaluations.",
        json_schema_extra={"items": {"$ref": "#/components/schemas/EvaluationRequest"}},
    )


class TagsRequest(Wire):
    """The tags that take the place of all tags."""

    tags: Tags


Metrics = dict[str, float | None]


class GroupedMetrics(BaseModel):
    """Values by what prevalence does to them."""

    prevalence_insensitive: Metrics = Field(description="Unchanged when classes are replicated.")
    prevalence_sensitive: Metrics = Field(description="Move with the mix of the classes.")
    at_balanced_prevalence: Metrics = Field(
        description="The sensitive ones again, on the matrix with its rows scaled to equal totals."
    )


class UndefinedValue(BaseModel):
    """Why a value is null."""

    metric: str = Field(description="A key, an expression as it was asked, or `*` for every metric of the group.")
    code: str
    reason: str
    label: str | None = Field(None, alias="class", description="The class, for a value of one class.")
    group: str | None = Field(None, description="Given when only the values of this group are meant.")


class IntervalValue(BaseModel):
    """An interval for a metric."""

    low: float | None
    high: float | None
    level: float
    method: str
    given: str = Field(description="The counts that it takes as fixed.")
    prior: str | None = Field(None, description="What every row of the matrix was given before its counts.")
    seed: int | None = Field(None, description="Of the simulation: the same seed gives the same interval.")
    draws: int | None = Field(None, description="Simulated matrices, or resamples of the samples.")
    monte_carlo_error: float | None = Field(
        None, description="Standard error of an end that comes from the finite number of draws."
    )
    undefined_draws: int | None = Field(
        None, description="Resamples in which the metric did not exist, when there were some; they are left out."
    )
    reason: str | None = Field(None, description="Why there is none.")


class FindingValue(BaseModel):
    """What the numbers mean."""

    code: str
    severity: Literal["critical", "warning", "note"]
    message: str
    evidence: dict[str, Any]


class FoldStatistics(BaseModel):
    """A metric over the folds."""

    mean: float | None
    sd: float | None
    values: list[float | None]


class InputSummary(BaseModel):
    """What was evaluated, rows actual."""

    kind: str
    content: Literal["counts", "weights", "rates"]
    n_samples: float | None = Field(description="null when the entries are rates.")
    n_classes: int
    labels: list[str]
    positive: str | None
    orientation: Literal["actual_rows"]
    confusion_matrix: list[list[float]]
    prevalence: dict[str, float]


class GroupDesign(BaseModel):
    """The groups that samples came in."""

    n_groups: int
    smallest: int = Field(description="Samples of the smallest group.")
    largest: int = Field(description="Samples of the largest group.")
    effective_groups: float = Field(description="So many groups of equal size are worth as much.")
    design_effects: dict[str, float | None] | None = Field(
        None,
        description="By metric, how many times larger its variance is than that of as many independent samples; left "
        "out for weighted samples.",
    )


class EvaluationResponse(BaseModel):
    """An evaluation with its report."""

    id: UUID | None
    created_at: datetime | None
    model: dict[str, str | None] | None
    dataset: dict[str, str | None] | None
    tags: dict[str, str]
    input: InputSummary
    metrics: GroupedMetrics
    per_class: dict[str, GroupedMetrics]
    requested: dict[str, float | dict[str, float | None] | None]
    intervals: dict[str, IntervalValue]
    undefined: list[UndefinedValue]
    findings: list[FindingValue]
    probabilities: dict[str, Any] | None = Field(
        None, description="For probabilities and scores: what belongs to their metrics and is none itself."
    )
    groups: GroupDesign | None = Field(None, description="For samples with group_ids.")
    folds: dict[str, FoldStatistics] | None = None
    interpretation: dict[str, dict[str, str]] | None = None


class SummaryInput(BaseModel):
    """What was evaluated, without the matrix."""

    kind: str
    content: str
    n_samples: float | None
    n_classes: int
    labels: list[str]
    positive: str | None


class EvaluationSummaryResponse(BaseModel):
    """An evaluation in a list."""

    id: UUID
    created_at: datetime
    model: dict[str, str | None]
    dataset: dict[str, str | None]
    tags: dict[str, str]
    input: SummaryInput
    metrics: Metrics


class EvaluationPage(BaseModel):
    """Some evaluations; `next_cursor` is null on the last page."""

    items: list[EvaluationSummaryResponse]
    next_cursor: str | None


class ModelPage(BaseModel):
    """Some model versions."""

    items: list[dict[str, str | None]]
    next_cursor: str | None


class DatasetPage(BaseModel):
    """Some datasets."""

    items: list[dict[str, str | None]]
    next_cursor: str | None


class BatchItem(BaseModel):
    """What became of one evaluation of a batch."""

    status: int
    evaluation: EvaluationResponse | None = None
    problem: dict[str, Any] | None = None


class BatchResponse(BaseModel):
    """One entry per evaluation, in order."""

    items: list[BatchItem]
