"""Requests for metrics at other class shares, and for the shares where a model is used."""

from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field, PlainValidator, WithJsonSchema, model_validator
from pydantic.config import JsonDict

from app.api.bodies.parsing import Wire
from app.api.v1.requests.evaluations import TUMOURS
from app.api.v1.requests.fields import (
    SECOND,
    AlternativeName,
    Expression,
    Identifier,
    LabelField,
    Sought,
    check_one_sided,
)
from app.api.v1.requests.inputs import AnyInput
from app.domain.named_metrics import PROJECTED
from app.domain.options import DRAWS, FEWEST_DRAWS, Alternative
from app.services.project.projection import MOST_NAMED, Marked, Scenario, Sweep
from app.services.project.what_if import Unlabelled

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
        """A sweep goes upwards."""
        if not self.start < self.end:
            raise ValueError("expected from to be smaller than to")
        return self

    def to_domain(self) -> Sweep:
        """The sweep as the services know it."""
        return Sweep(label=str(self.label), start=self.start, end=self.end, steps=self.steps, at=tuple(self.at))


class _Projected(Wire):
    """At which class shares: exactly one of prevalence, prevalence_range and sweep."""

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
        description="Fit the kept probabilities to the shares (Elkan 2001) and decide again before measuring.",
    )
    old_prevalence: Shares | None = Field(
        None, description="With recalibrate: the shares they were calibrated to; the evaluation's when left out."
    )
    metrics: list[Expression] = Field(default_factory=lambda: list(PROJECTED), min_length=1, max_length=50)
    level: float = Field(0.95, gt=0, lt=1)
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
        sweep = self.sweep
        ranges = self.prevalence_range
        return Scenario(
            prevalence=self.prevalence,
            samples=self.prevalence_samples,
            sweep=None if sweep is None else sweep.to_domain(),
            ranges=None if ranges is None else {label: (ends[0], ends[1]) for label, ends in ranges.items()},
            recalibrate=self.recalibrate,
            old_prevalence=self.old_prevalence,
            level=self.level,
            alternative=Alternative(self.alternative),
            seed=self.seed,
            draws=self.draws,
        )


class ProjectionRequest(_Projected):
    """At which class shares a stored evaluation is to be projected."""

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
    """At which class shares an input that is not kept is to be projected."""

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
    level: float = Field(0.95, gt=0, lt=1)
    seed: int | None = Field(None, ge=0, lt=2**63)

    @model_validator(mode="after")
    def check_choice(self) -> Self:
        """One of the two, and rows of one length."""
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
        return Unlabelled(
            predicted=self.predicted,
            probabilities=None if self.probabilities is None else np.array(self.probabilities, dtype=np.float64),
            old_prevalence=self.old_prevalence,
            recalibrate=self.recalibrate,
            level=self.level,
            seed=self.seed,
        )


PROJECTIONS: dict[str, Any] = {
    "at deployment": {"prevalence": {"0": 0.99, "1": 0.01}, "metrics": ["accuracy", "precision@1", "h_mean"]},
    "uncertain": {"prevalence": {"1": 0.05}, "prevalence_samples": 200, "metrics": ["accuracy", "mcc"]},
    "within a range": {"prevalence_range": {"1": [0.01, 0.1]}, "metrics": ["precision@1"]},
    "sweep": {
        "sweep": {"class": "1", "from": 0.01, "to": 0.5, "steps": 20},
        "metrics": ["accuracy", "f1@1"],
        "against": SECOND,
    },
}
INPUT_PROJECTIONS: dict[str, Any] = {
    "at deployment": {
        "input": TUMOURS["input"],
        "prevalence": {"D": 0.3},
        "metrics": ["accuracy", "h_mean", "precision@D"],
    },
    "sweep": {"input": TUMOURS["input"], "sweep": {"class": "D", "from": 0.01, "to": 0.5, "steps": 10}},
}
ESTIMATES: dict[str, Any] = {
    "predicted labels": {"predicted": {"0": 900, "1": 100}},
    "probabilities": {"probabilities": [[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.7, 0.3]], "recalibrate": True},
}
