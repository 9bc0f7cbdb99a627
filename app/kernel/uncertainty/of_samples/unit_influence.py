"""Ratios of sums over independent units, a mean among them: values, what each unit adds to the sampling error."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from app.kernel.metrics.card import Metric
from app.kernel.metrics.expression import Subject
from app.kernel.numerics.arrays import Array, kish_effective_n, silently
from app.kernel.numerics.weighted_units import Terms
from app.kernel.samples.influence import LinearMethod, Strata
from app.kernel.uncertainty.of_samples.influence import Linearisation


@dataclass(frozen=True, slots=True, eq=False)
class UnitInfluences:
    """Metrics of one set of units, linearised.

    Attributes:
        subject: The units, in their weights.
        weights: (n) of the units, drawn with replacement; None is 1 each.
        times: (m) how many units there are of each that the subject has; None is 1 each. What they add to an error is
            added up then.
    """

    subject: Subject
    n_units: int
    n_classes: int
    weights: Array | None = field(default=None, kw_only=True)
    times: Array | None = field(default=None, kw_only=True)

    def of(
        self, metric: Metric[Any], class_index: int | None = None, *, parameters: Mapping[str, Any] | None = None
    ) -> Linearisation | None:
        """A metric whose card has ``terms`` as a sum over the units; None for others, and for those of one class.

        A ratio a / b of two sums has the influence (a_u - value b_u) / b (the delta method); of a mean over the m units
        that have a value these are the deviations from it, and m / (m - 1) makes their sum of squares the unbiased
        variance. Of units in weights both sums are weighted, and so is the influence of each.
        """
        card = metric.card
        terms = card.inference.terms
        if terms is None or class_index is not None:
            return None
        found: Terms = terms(self.subject.parts[card.inputs], **{**card.defaults, **(parameters or {})})
        each = self._each
        counted = each[(found.below != 0) & (each > 0)]
        known, worth = counted.size if self.times is None else int(counted.sum()), self.worth_of(counted)
        with silently():
            below, above = float(each @ found.below), float(each @ found.above)
            value = above / below if below else np.nan
            deviations = (found.above - value * found.below) / below
            scale = np.sqrt(np.divide(known, known - 1.0))
            influence = each * deviations * scale if self.times is None else self._added_up(deviations) * scale
        if known < 2:
            influence = np.full(influence.size, np.nan)
        return self._of_mean(metric, value, influence, known, worth)

    def _of_mean(
        self, metric: Metric[Any], value: float, influence: Array, known: int, worth: tuple[int, float] | None = None
    ) -> Linearisation:
        """A ratio of sums over so many units that have a value."""
        card = metric.card
        return Linearisation(
            value,
            influence,
            card.inference.scale,
            Strata.WHOLE,
            LinearMethod.WILSON if card.inference.is_share else LinearMethod.T,
            card.range,
            freedom=max((known if worth is None else worth[1]) - 1.0, 1.0),
            worth=worth,
            n_samples=None if self.times is None else self.n_units,
        )

    @property
    def _each(self) -> Array:
        """What each unit of the subject counts."""
        if self.times is not None:
            return self.times
        return np.ones(self.n_units) if self.weights is None else self.weights

    def _added_up(self, deviations: Array) -> Array:
        """One number, whose square is the sum of the squares (m) of all units."""
        found: Array = np.sqrt([self._each @ np.square(deviations)])
        return found

    def design_effect(self, linear: Linearisation) -> float:
        """How many times larger the variance is than that of as many units of one weight; NaN where that is 0."""
        if linear.design_effect is not None:
            return linear.design_effect
        if self.weights is None:
            return 1.0
        used = self.weights > 0
        each, squares = self.weights[used], np.square(linear.influence[used])
        with silently():
            return float(each.size * squares.sum() / (each.sum() * (squares / each).sum()))

    def worth_of(self, counted: Array) -> tuple[int, float] | None:
        """How many units with these weights there are, and their effective number; None without
        weights.
        """
        if self.weights is None:
            return None
        return counted.size, kish_effective_n(counted) if counted.size else 0.0
