"""Requests to check reported scores."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from app.api.bodies.parsing import Wire
from app.api.v1.requests.fields import SOUGHT, Expression
from app.services.consistency import DEFAULT_BOUND, MOST_ITEMS, Aggregation, Printed, ReportedScores

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
        """One of the three forms, complete."""
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
        """What was reported, as the services know it."""
        return ReportedScores(
            scores=self.scores,
            positives=self.p,
            negatives=self.n,
            total=self.total,
            up_to=self.search_up_to,
            aggregation=self.aggregation,
            classes=self.classes,
            folds=None if self.folds is None else tuple((fold.p, fold.n) for fold in self.folds),
            printed=Printed(self.rounding),
            metrics=tuple(self.metrics),
        )


CONSISTENCY: dict[str, Any] = {
    "impossible": {"p": 100, "n": 200, "scores": {"accuracy": "0.9567", "recall": "0.8545", "specificity": "0.9734"}},
    "possible": {"p": 50, "n": 50, "scores": {"f1": "0.80", "accuracy": "0.80"}, "metrics": ["mcc", "h_mean"]},
    "classes": {"classes": {"A": 100, "B": 50, "C": 20}, "scores": {"accuracy": "0.900", "recall@C": "0.50"}},
    "folds": {"folds": [{"p": 10, "n": 20}, {"p": 11, "n": 19}], "scores": {"accuracy": "0.85", "recall": "0.75"}},
    "only the total": {"total": 57, "scores": {"recall": "0.8500", "specificity": "0.9459"}},
}
