"""Ratios of sums over independent units, a mean among them: values, what each unit adds to the sampling error."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.kernel.metrics.card import Metric
from app.kernel.metrics.expression import Subject
from app.kernel.numerics.arrays import silently
from app.kernel.numerics.weighted_units import Terms
from app.kernel.samples.influence import LinearMethod, Strata
from app.kernel.uncertainty.of_samples.influence import Linearisation


@dataclass(frozen=True, slots=True, eq=False)
class UnitInfluences:
    """Metrics of one set of units without weights, linearised."""

    subject: Subject
    n_units: int
    n_classes: int

    def of(
        self, metric: Metric[Any], class_index: int | None = None, *, parameters: Mapping[str, Any] | None = None
    ) -> Linearisation | None:
        """A metric whose card has ``terms`` as a sum over the units; None for others, and for those of one class.

        A ratio a / b of two sums has the influence (a_u - value b_u) / b (the delta method); of a mean over the m units
        that have a value these are the deviations from it, and m / (m - 1) makes their sum of squares the unbiased
        variance.
        """
        card = metric.card
        terms = card.inference.terms
        if terms is None or class_index is not None:
            return None
        found: Terms = terms(self.subject.parts[card.inputs], **{**card.defaults, **(parameters or {})})
        known = int(np.count_nonzero(found.below))
        with silently():
            below, above = float(found.below.sum()), float(found.above.sum())
            value = above / below if below else np.nan
            influence = (found.above - value * found.below) / below * np.sqrt(np.divide(known, known - 1.0))
        if known < 2:
            influence = np.full(self.n_units, np.nan)
        return Linearisation(
            value,
            influence,
            card.inference.scale,
            Strata.WHOLE,
            LinearMethod.WILSON if card.inference.is_share else LinearMethod.T,
            card.range,
            freedom=float(max(known - 1, 1)),
        )
