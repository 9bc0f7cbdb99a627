"""Requests and answers about evaluations.

The answers are models for the documentation and the tests; what is sent is built by hand, for speed.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from app.api.bodies.parsing import Wire
from app.api.v1.requests.fields import (
    AlternativeName,
    ChangedTags,
    DatasetField,
    Expression,
    LabelField,
    Level,
    ModelField,
    PastMoment,
    ProportionIntervalName,
    RunField,
    Tags,
    check_one_sided,
)
from app.api.v1.requests.inputs import AnyInput
from app.domain.inputs.labels import MOST_CLASSES
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.samples import Tally
from app.domain.options import DRAWS, FEWEST_DRAWS, Costs, IntervalMethod, Options, Sampling, Shares
from app.services.evaluate.evaluations import Merge, NewEvaluation

NonNegativeRow = Annotated[list[Annotated[float, Field(ge=0)]], Field(max_length=MOST_CLASSES, fail_fast=True)]


class CostsField(Wire):
    """Costs of decisions."""

    matrix: list[NonNegativeRow] = Field(
        min_length=2, max_length=MOST_CLASSES, description="Rows are actual classes, columns what is decided."
    )
    decisions: list[LabelField] | None = Field(
        None,
        min_length=2,
        max_length=MOST_CLASSES,
        description="Names of the columns; the classes in their order when left out. Where they are not the classes, "
        "probabilities are needed: what is decided is what costs least by them.",
    )

    def to_domain(self) -> Costs:
        """Convert the costs for the domain."""
        decisions = None if self.decisions is None else tuple(map(str, self.decisions))
        return Costs(tuple(map(tuple, self.matrix)), decisions)


class OptionsField(Wire):
    """Options of a report, beyond the values that every report has."""

    metrics: list[Expression] = Field(
        default_factory=list,
        max_length=200,
        description="Metric expressions, such as `f_beta(beta=2)@D`; their values stand in `requested`.",
    )
    level: Level = Field(0.95, description="Coverage of the intervals.")
    seed: int | None = Field(
        None, ge=0, lt=2**63, description="Seed of everything random; derived from the input when left out."
    )
    intervals: Literal["headline", "all", "none"] = Field(
        "headline",
        description="`headline`: the usual metrics, every rate and what `metrics` asks for. `all`: every metric and "
        "every expression, by simulation where there is no closed form; needs counts. `none`: no intervals.",
    )
    interpretation: bool = Field(default=False, description="Answer the verbal scales of the literature too.")
    retain: Literal["full", "none"] = Field(
        "full",
        description="What is saved of the samples: `full` for curves, thresholds and paired comparisons later; `none` "
        "saves the values only.",
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
    pseudo_counts: list[NonNegativeRow] | None = Field(
        None, max_length=MOST_CLASSES, description="K x K, rows actual; with the prior `custom` only."
    )
    prevalence_design: Literal["observed", "sampled"] = Field(
        "observed",
        description="With `all`: were the numbers of samples per class chosen (`observed`), or are they random too "
        "(`sampled`)? Whole groups are drawn, so with `group_ids` they are random whatever is given here.",
    )
    costs: CostsField | None = Field(
        None,
        description="For metrics of costs that name none; `requested` then has `expected_cost`, `normalized_cost` and "
        "`cost_savings`, and with probabilities `minimum_cost`.",
    )
    proportion_interval: ProportionIntervalName = Field(
        "wilson",
        description="Limits of every rate that is a proportion of the samples, such as accuracy and recall; the method "
        "of an interval says which it is. `wald` has no width where a rate is 0 or 1, and is left out there. Limits "
        "that have to hold for several rates together are always those of Clopper and Pearson.",
    )
    area_interval: Literal["delong", "hanley_mcneil"] = Field(
        "delong",
        description="Limits of the area under the ROC curve of a class. `hanley_mcneil`: the area -+ z standard errors "
        "that follow from it and the class sizes alone, as in older reports; it has no width where the area is 1.",
    )
    alternative: AlternativeName = Field(
        "two-sided",
        description="`greater`: intervals have a lower limit at the level, `less` an upper one; the other end is that "
        "of the range of the metric, `null` where it has none. One-sided levels lie above 0.5.",
    )
    draws: int = Field(
        DRAWS,
        ge=FEWEST_DRAWS,
        le=100_000,
        description="With `all`: simulated matrices; of samples at most 1000 resamples.",
    )

    @model_validator(mode="after")
    def check_sides(self) -> Self:
        """Refuse a one-sided limit at a level of a half or less."""
        check_one_sided(self.level, self.alternative)
        return self

    def to_domain(self, *, grouped: bool) -> Options:
        """The domain's form, for samples that come in groups or do not."""
        usual = IntervalMethod.BOOTSTRAP if grouped else IntervalMethod.POSTERIOR
        method = usual if self.interval_method is None else IntervalMethod(self.interval_method)
        shares = Shares(self.prevalence_design)
        return self.filled(Options, sampling=self.filled(Sampling, method=method, shares=shares))


class NamedRequest(Wire):
    """An input, what is asked of it, and whose it is."""

    input: Any
    model: ModelField | None = Field(None, description="Required when the evaluation is saved.")
    dataset: DatasetField | None = Field(None, description="Required when the evaluation is saved.")
    tags: Tags = Field(default_factory=dict, description="Free pairs of text to find it by; a key has no colon.")
    options: OptionsField = Field(default_factory=OptionsField)
    created_at: PastMoment | None = Field(
        None,
        description="When it was made, for those who bring evaluations from elsewhere: past, with an offset, "
        "kept to the millisecond in UTC. Needs the scope `admin`. Now when left out.",
    )


class EvaluationRequest(NamedRequest):
    """An evaluation to be computed, and kept unless `store=false`."""

    input: AnyInput

    def to_domain(self, tally: Tally | None = None, *, part: bool = False) -> NewEvaluation:
        """The request as the services know it; with a ``tally`` every entry of predictions stands for many samples, and
        a ``part`` has some of the samples only.

        Raises:
            InvalidInput: the input has the right form but cannot be evaluated.
        """
        source: MatrixInput = self.input.to_domain("/input", tally=tally, part=part)
        options = self.options.to_domain(grouped=source.is_grouped)
        return self.filled(NewEvaluation, source=source, options=options)


class BatchRequest(Wire):
    """Many evaluations; each succeeds or fails on its own."""

    evaluations: list[Any] = Field(
        min_length=1,
        max_length=1000,
        description="Each as in POST /v1/evaluations.",
        json_schema_extra={"items": {"$ref": "#/components/schemas/EvaluationRequest"}},
    )


class MergeRequest(Wire):
    """Evaluations whose data is to be evaluated as one. They stay as they are."""

    evaluations: list[RunField] = Field(
        min_length=2,
        max_length=100,
        description="Ids, or references to the latest of each; of one kind, all different.",
    )
    mode: Literal["pooled", "folds"] = Field(
        "pooled", description="`pooled`: all samples or counts together. `folds`: each is a fold of the kind `folds`."
    )
    model: ModelField | None = Field(None, description="That of all of them when left out.")
    dataset: DatasetField | None = Field(None, description="That of all of them when left out.")
    tags: Tags = Field(default_factory=dict)
    options: OptionsField = Field(default_factory=OptionsField)

    def to_domain(self) -> Merge:
        """Convert the request for the services."""
        options = lambda grouped: self.options.to_domain(grouped=grouped)  # noqa: E731
        return self.filled(Merge, as_folds=self.mode == "folds", options=options)


class TagsRequest(Wire):
    """Changes of tags as a merge patch (RFC 7396): `null` removes a tag, tags that are not named stay."""

    tags: ChangedTags
