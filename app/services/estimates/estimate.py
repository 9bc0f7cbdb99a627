"""An estimate: a value with its limits in the one form that every use case answers with, at any class shares."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import isfinite, isnan, nan
from typing import Final, Self

import numpy as np

from app.domain.expressions.expressions import parse, render
from app.domain.options import Sampling
from app.domain.report import Interval
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Metric
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Bounds, Combination, Every, Expression, Measure, usual_measure
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.closed_forms import OverallInterval
from app.kernel.uncertainty.designs import NoLimits as NoLimits
from app.kernel.uncertainty.draws import Alternative, AreaInterval, bonferroni_level, generator, seed_of
from app.kernel.uncertainty.intervals import ProportionInterval
from app.services.estimands import Estimand


@dataclass(frozen=True, slots=True, eq=False)
class ClassShares:
    """Shares (G, K) at which values are wanted.

    Attributes:
        points: Shares (G, K).
        worth: How many samples they are worth: their uncertainty. None takes them as exact.
        calibrated_to: Shares (K) that the probabilities are calibrated to, where they are to be fitted to every point
            and decisions made anew; None leaves both as they are.
        in_all: So many points share the time that simulation may take, where they are not asked for together.
    """

    points: Array
    worth: float | None = None
    calibrated_to: Array | None = None
    in_all: int | None = None

    def __len__(self) -> int:
        return len(self.points)

    @property
    def work(self) -> int:
        """Number of points that are simulated in all."""
        return max(len(self), self.in_all or 0)

    def leave(self, estimand: Estimand) -> bool:
        """Has the estimand the same value and the same limits at all of them?"""
        return estimand.insensitive and self.calibrated_to is None

    def from_samples(self, estimand: Estimand) -> bool:
        """Is the estimand computed from samples? With other probabilities the matrix is another one too."""
        return estimand.scored or self.calibrated_to is not None

    def drawn(self, draws: int, seed: int) -> list[Array]:
        """For every point the shares (1 or draws, K) of each draw; a share of 0 stays 0."""
        return [one[None] if self.worth is None else _spread(one, self.worth, draws, seed) for one in self.points]


def _spread(shares: Array, worth: float, draws: int, seed: int) -> Array:
    present = np.flatnonzero(shares)
    spread = np.zeros((draws, shares.size))
    # Parameters are expected shares times an equivalent number of samples.
    spread[:, present] = generator(seed_of(seed, "shares")).dirichlet(shares[present] * worth, size=draws)
    return spread


# Texts that name no class mean the same for all classes.
_ANY = ("0", "1")


def canonical(expression: Expression, labels: Sequence[str]) -> Expression:
    """The one form that all ways to ask for a quantity share.

    The mean of the recalls of all classes is balanced accuracy; the worst recall is the smallest of all recalls, since
    what is picked from several values has limits that follow from theirs.
    """
    if isinstance(expression, Measure):
        known = _combinations().get(expression.metric.key) if usual_measure(expression) else None
        return known if known is not None and known.card.picks is not None else expression
    if not isinstance(expression, Combination):
        return expression
    plain = expression.card.weighted
    if plain is not None and len(set(expression.parameters["weights"])) == 1:
        expression = Combination(plain, expression.parts)
    if expression.parameters:
        return expression
    every = replace(expression, parts=_of_all_classes(expression.parts, len(labels)))
    named = _names().get(render(every, labels))
    if named is None or every.card.picks is not None:
        return every
    return Measure(named, named.card.defaults, None)


def _of_all_classes(parts: tuple[Expression, ...], n_classes: int) -> tuple[Expression, ...]:
    """The parts, in short where they are one metric of every class."""
    first = parts[0]
    if not isinstance(first, Measure) or len(parts) != n_classes:
        return parts
    every = replace(first, of=Every.CLASS)
    alike = all(isinstance(part, Measure) and replace(part, of=Every.CLASS) == every for part in parts)
    classes = {part.of for part in parts if isinstance(part, Measure)}
    return (every,) if alike and classes == set(range(n_classes)) else parts


@cache
def _combinations() -> dict[str, Combination]:
    """By the key of a metric the function of others that it is."""
    texts = {metric.key: metric.card.inference.same_as for metric in catalogue().of_matrices.metrics}
    trees = {key: parse(text, _ANY, None) for key, text in texts.items() if text is not None}
    return {key: tree for key, tree in trees.items() if isinstance(tree, Combination)}


@cache
def _names() -> dict[str, Metric[Table]]:
    """By the text of a function of metrics the metric that it is."""
    return {render(tree, _ANY): catalogue().of_matrices.by_name[key] for key, tree in _combinations().items()}


_SAMPLING: Final = Sampling()


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    """Settings of limits.

    Attributes:
        level: Share of cases in which they are to hold the truth.
        seed: Of what is simulated; None derives it from the counts of the run, so that the same run has the same
            limits whatever else is asked of it.
        together: One of so many values is picked for what it shows, so that the limits of all have to hold together.
        simulate: Prefer simulation to approximations in closed form. Rates have their own methods all the same.
        sampling: Of what is simulated.
        proportions: Limits of what is a proportion of independent samples.
        areas: Limits of areas under ROC curves of independent samples.
        alternative: Limits on both sides, or one of them alone at that level.
    """

    level: float = 0.95
    seed: int | None = None
    together: int = 1
    simulate: bool = False
    sampling: Sampling = _SAMPLING
    proportions: ProportionInterval = ProportionInterval.WILSON
    areas: AreaInterval = AreaInterval.DELONG
    alternative: Alternative = Alternative.TWO_SIDED

    @property
    def proportions_of_each(self) -> ProportionInterval:
        """Method of single proportions: limits that hold together are far out in the tails, where only those of Clopper
        and Pearson keep their level.
        """
        return self.proportions if self.together == 1 else ProportionInterval.CLOPPER_PEARSON

    @property
    def stated_level_of_each(self) -> float:
        """At which every single value has its limits, as these are said to hold."""
        return self.level if self.together == 1 else bonferroni_level(self.level, self.together)

    @property
    def level_of_each(self) -> float:
        """Level of two-sided limits, from which one-sided limits are taken too."""
        return self.alternative.two_sided_level(self.stated_level_of_each)

    def of_any(self, count: int) -> Self:
        """Return the settings where each value is one of ``count`` that may be picked."""
        return replace(self, together=self.together * count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value with its limits, and how they were made.

    Attributes:
        value: NaN where the metric is undefined.
        low: Lower limit, NaN where there is none.
        high: Upper limit, NaN where there is none.
        level: Share of cases in which such limits hold the truth.
        alternative: Are they limits on both sides? Where one of them was asked for the other end is that of the range.
        method: How they were made; None where they could not be.
        given: The counts that they take as fixed.
        prior: Of a posterior.
        seed: Of what was simulated.
        draws: How many of them.
        monte_carlo_error: Standard error that a limit has from the number of draws; NaN where there are no limits.
        undefined_draws: Draws in which the metric does not exist; they are left out.
        stretched: The value lay outside of what the simulation leaves likely; the limits were stretched to hold it.
        effective_samples: How many samples or groups carry the variance, where these are too few for the limits.
        reason: Why there are no limits.
    """

    value: float
    low: float = nan
    high: float = nan
    level: float
    alternative: Alternative = Alternative.TWO_SIDED
    method: str | None = None
    given: str | None = None
    prior: str | None = None
    seed: int | None = None
    draws: int | None = None
    monte_carlo_error: float | None = None
    undefined_draws: int = 0
    stretched: bool = False
    effective_samples: float | None = None
    reason: NoLimits | None = None
    note: str | None = None

    @classmethod
    def of(cls, form: OverallInterval, level: float) -> Self:
        """A value with its limits in closed form at a level."""
        found = cls(value=form.value, level=level, method=form.method, given=form.given.value)
        return replace(found, low=form.low, high=form.high, reason=form.refusal)

    def without_limits(self, reason: NoLimits) -> Self:
        """The value alone, and why."""
        error = None if self.monte_carlo_error is None else nan
        return replace(self, low=nan, high=nan, monte_carlo_error=error, stretched=False, reason=reason)

    def limited(self, low: float, high: float, otherwise: NoLimits) -> Self:
        """With these limits, or the reason why there are none where they are no interval."""
        return replace(self, low=low, high=high) if low < high else self.without_limits(otherwise)

    def opened(self, alternative: Alternative, bounds: Bounds) -> Self:
        """With the one limit that is asked for, where there are limits."""
        if alternative is Alternative.TWO_SIDED or self.reason is not None:
            return self
        low, high = alternative.opened(self.low, self.high, bounds)
        return replace(self, low=low, high=high, alternative=alternative)

    def of_values(self, values: Array) -> "Estimates":
        """Return an estimate with the same limits for each of several values."""
        return tuple(replace(self, value=value) for value in values.tolist())

    def as_interval(self) -> Interval:
        """The limits as a report answers them.

        Raises:
            ValueError: no method was chosen, so a report would say nothing.
        """
        if self.method is None or self.given is None:
            raise ValueError(f"expected limits or what keeps a method from making them, got {self.reason}")
        interval: Interval = {
            "low": self.low if isfinite(self.low) else None,
            "high": self.high if isfinite(self.high) else None,
            "level": self.level,
            "method": self.method,
            "given": self.given,
        }
        if self.alternative is not Alternative.TWO_SIDED:
            interval["alternative"] = self.alternative.value
        if self.prior is not None:
            interval["prior"] = self.prior
        if self.seed is not None:
            interval["seed"] = self.seed
        if self.draws is not None:
            interval["draws"] = self.draws
        if self.monte_carlo_error is not None:
            interval["monte_carlo_error"] = None if isnan(self.monte_carlo_error) else self.monte_carlo_error
        if self.undefined_draws:
            interval["undefined_draws"] = self.undefined_draws
        if self.reason is not None:
            interval["reason"] = self.reason.value
        elif self.note is not None:
            interval["note"] = self.note
        return interval


# The values of one estimand.
Estimates = tuple[Estimate, ...]
