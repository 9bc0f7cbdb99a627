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
    """

    subject: Subject
    n_units: int
    n_classes: int
    weights: Array | None = field(default=None, kw_only=True)

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
        each = np.ones(self.n_units) if self.weights is None else self.weights
        counted = each[(found.below != 0) & (each > 0)]
        known, worth = counted.size, self.worth_of(counted)
        with silently():
            below, above = float(each @ found.below), float(each @ found.above)
            value = above / below if below else np.nan
            influence = each * (found.above - value * found.below) / below * np.sqrt(np.divide(known, known - 1.0))
        if known < 2:
            influence = np.full(self.n_units, np.nan)
        return Linearisation(
            value,
            influence,
            card.inference.scale,
            Strata.WHOLE,
            LinearMethod.WILSON if card.inference.is_share else LinearMethod.T,
            card.range,
            freedom=max((known if worth is None else worth[1]) - 1.0, 1.0),
            worth=worth,
        )

    def design_effect(self, linear: Linearisation) -> float:
        """How many times larger the variance is than that of as many units of one weight; NaN where that is 0."""
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
