"""What is left of samples with labels, in the form that metrics and limits take."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.kernel.folds.labels.scores import FoldedLabelOrders, FoldedLabelScores
from app.kernel.folds.metrics import linearised
from app.kernel.folds.not_folded import NotFolded
from app.kernel.matrix.label_table import LabelTable
from app.kernel.metrics.card import Inputs, Metric
from app.kernel.metrics.expression import Subject
from app.kernel.numerics.arrays import Array
from app.kernel.samples.labels.moments import LabelMoments
from app.kernel.samples.labels.sets import CountedSets
from app.kernel.samples.losses import Codes
from app.kernel.uncertainty.of_samples.influence import Linearisation
from app.kernel.uncertainty.of_samples.label_influence import LabelInfluences
from app.kernel.uncertainty.of_samples.units import Units


class FoldedLabels(Units):
    """Samples with labels that went by: metrics and limits in closed form, and nothing that is resampled.

    Args:
        pairs: The cells of their labels.
        sets: The sizes of their sets.
        scores: Their probabilities, where they have some.
    """

    def __init__(self, pairs: LabelMoments, sets: CountedSets, scores: FoldedLabelScores | None = None) -> None:
        self.pairs, self._sets, self._scores = pairs, sets, scores

    @property
    def n_units(self) -> int:
        """How many samples."""
        return self.pairs.n_samples

    @property
    def width(self) -> int:
        """Nothing can be drawn, whatever it costs."""
        return 1

    @property
    def at_hand(self) -> bool:
        """They are not."""
        return False

    @property
    def times(self) -> Array:
        """How many samples there are of each of the sizes of sets."""
        assert self._sets.weights is not None  # noqa: S101 - sets that are counted have some
        return self._sets.weights

    def subject(self, weights: Array | None = None) -> Subject:
        """Tables of the labels, sets, and scores where there are some. Raises NotFolded: other weights."""
        if weights is not None:
            raise NotFolded("samples that went by have no weights of their own")
        _, false, missed, hits = self.pairs.counts.T.astype(np.float64)
        table = LabelTable(hits, missed + hits, false + hits, np.array([float(self.n_units)]))
        parts: dict[Inputs, Any] = {Inputs.MATRIX: table, Inputs.LABELS: self._sets}
        if self._scores is not None:
            parts |= {Inputs.PROBABILITIES: self._scores, Inputs.LABEL_SCORES: self._scores.in_samples}
        return Subject(parts)

    def part(self, chosen: Codes) -> "FoldedLabels":
        """Raises NotFolded."""
        raise NotFolded(f"{chosen.size} samples that went by cannot be chosen")


@dataclass(frozen=True, slots=True, eq=False)
class FoldedLabelInfluences(LabelInfluences):
    """Metrics of samples with labels that went by: what these add to sampling errors was added up."""

    def of(
        self, metric: Metric[Any], class_index: int | None = None, *, parameters: Mapping[str, Any] | None = None
    ) -> Linearisation | None:
        """A metric as a sum over the samples. None for means of areas too: their covariances are not known."""
        data = self.subject.parts.get(metric.card.inputs)
        if isinstance(data, FoldedLabelScores):
            usual = {**metric.card.defaults, **(parameters or {})} == metric.card.defaults
            return linearised(data, metric, class_index) if usual and class_index is not None else None
        if isinstance(data, FoldedLabelOrders):
            summed = data.sums[metric.key]
            return self._of_mean(metric, summed.mean, np.sqrt([summed.variance]), self.n_units)
        return super(FoldedLabelInfluences, self).of(metric, class_index, parameters=parameters)
