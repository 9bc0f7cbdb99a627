"""What is left of samples with labels, in the form that metrics and limits take."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import numpy as np

from app.kernel.folds.labels.groups import ValuesInGroups
from app.kernel.folds.labels.means import FoldedMeans, SumOfWeighted
from app.kernel.folds.labels.moments import WeightedMoments
from app.kernel.folds.labels.scores import FoldedLabelScores
from app.kernel.folds.metrics import linearised
from app.kernel.folds.not_folded import NotFolded
from app.kernel.matrix.label_table import LabelTable
from app.kernel.metrics.card import Inputs, Metric
from app.kernel.metrics.expression import Subject
from app.kernel.metrics.families.probabilities.ranking import roc_auc_ovr_macro
from app.kernel.numerics.arrays import Array
from app.kernel.samples.influence import LinearMethod, Strata
from app.kernel.samples.labels.moments import LabelMoments
from app.kernel.samples.labels.sets import CountedSets
from app.kernel.samples.losses import Codes
from app.kernel.uncertainty.of_samples.influence import Linearisation
from app.kernel.uncertainty.of_samples.label_influence import LabelInfluences
from app.kernel.uncertainty.of_samples.label_units import WeightedLabels
from app.kernel.uncertainty.of_samples.units import Units

Pairs = TypeVar("Pairs", LabelMoments, WeightedMoments)


class FoldedLabels(Units, Generic[Pairs]):
    """Samples with labels that went by: metrics and limits in closed form, and nothing that is resampled.

    Args:
        pairs: The cells of their labels, counted or weighed.
        sets: The sizes of their sets, or of weighted samples what metrics say of them.
        scores: Their probabilities, where they have some.
        in_groups: What metrics say of the sets of each, within groups, where samples are in some.
    """

    def __init__(
        self,
        pairs: Pairs,
        sets: CountedSets | FoldedMeans,
        scores: FoldedLabelScores | None = None,
        in_groups: ValuesInGroups | None = None,
    ) -> None:
        self.pairs: Pairs = pairs
        self._sets, self._scores, self.in_groups = sets, scores, in_groups

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
        """How many samples there are of each of the sizes of sets; 1 where these are not counted."""
        return np.ones(1) if self._sets.weights is None else self._sets.weights

    @property
    def weighted(self) -> WeightedLabels | None:
        """Tables of the labels of samples with weights."""
        pairs: LabelMoments | WeightedMoments = self.pairs
        return pairs.tables if isinstance(pairs, WeightedMoments) else None

    def subject(self, weights: Array | None = None) -> Subject:
        """Tables of the labels, sets, and scores where there are some. Raises NotFolded: other weights."""
        if weights is not None:
            raise NotFolded("samples that went by have no weights of their own")
        parts: dict[Inputs, Any] = {Inputs.MATRIX: _table(self.pairs), Inputs.LABELS: self._sets}
        if self._scores is not None:
            parts |= {Inputs.PROBABILITIES: self._scores, Inputs.LABEL_SCORES: self._scores.in_samples}
        return Subject(parts)

    def part(self, chosen: Codes) -> "FoldedLabels[Pairs]":
        """Raises NotFolded."""
        raise NotFolded(f"{chosen.size} samples that went by cannot be chosen")


def _table(pairs: LabelMoments | WeightedMoments) -> LabelTable:
    if isinstance(pairs, WeightedMoments):
        return pairs.tables.sums
    _, false, missed, hits = pairs.counts.T.astype(np.float64)
    return LabelTable(hits, missed + hits, false + hits, np.array([float(pairs.n_samples)]))


@dataclass(frozen=True, slots=True, eq=False)
class FoldedLabelInfluences(LabelInfluences):
    """Metrics of samples with labels that went by: what these add to sampling errors was added up.

    Attributes:
        in_groups: What metrics say of the sets of each sample, within groups, where samples are in some.
    """

    pairs: LabelMoments | WeightedMoments  # type: ignore[assignment]  # what samples leave of theirs
    in_groups: ValuesInGroups | None = field(default=None, kw_only=True)

    def of(
        self, metric: Metric[Any], class_index: int | None = None, *, parameters: Mapping[str, Any] | None = None
    ) -> Linearisation | None:
        """A metric as a sum over the samples, or over their groups. None for means of areas of samples that are in no
        groups too: their covariances are not known.
        """
        data, in_groups = self.subject.parts.get(metric.card.inputs), self.in_groups
        if isinstance(data, FoldedLabelScores):
            if {**metric.card.defaults, **(parameters or {})} != metric.card.defaults:
                return None
            return self._mean_of_areas(metric, data) if class_index is None else linearised(data, metric, class_index)
        if isinstance(data, FoldedMeans):
            summed, in_groups = data.sums[metric.key], data.in_groups
            weighed = summed if isinstance(summed, SumOfWeighted) else None
            worth = None if weighed is None else weighed.weighed.worth
            found: Linearisation | None = replace(
                self._of_mean(metric, summed.mean, np.sqrt([summed.variance]), summed.n_samples, worth),
                design_effect=None if weighed is None else weighed.design_effect,
            )
        else:
            found = super(FoldedLabelInfluences, self).of(metric, class_index, parameters=parameters)
        if found is None or in_groups is None or not in_groups.knows(metric.key):
            return found
        sums, about = in_groups.influence(metric.key)
        return replace(found, influence=sums, about=about)

    @property
    def _worth(self) -> tuple[int, float] | None:
        return self.pairs.weighed.worth if isinstance(self.pairs, WeightedMoments) else None

    def _design(self, by_cell: Array) -> float | None:
        return self.pairs.design_effect(by_cell) if isinstance(self.pairs, WeightedMoments) else None

    def _mean_of_areas(self, metric: Metric[Any], scores: FoldedLabelScores) -> Linearisation | None:
        """The mean over the labels, of samples in groups: what a group adds to all areas is known."""
        if self.in_groups is None or metric is not roc_auc_ovr_macro:
            return None
        value, counts = float(metric.compute(scores)), self.in_groups.totals().counts.astype(np.float64)
        influence = np.full(counts.size, np.nan)
        if np.isfinite(value):
            influence = sum(
                (ranking.area_of_groups.influence.sums for ranking in map(scores.ranking, range(scores.n_classes))),
                np.zeros(counts.size),
            )
        return Linearisation(
            value,
            influence / scores.n_classes,
            metric.card.inference.scale,
            Strata.WHOLE,
            LinearMethod.INFLUENCE_LOGIT,
            metric.card.range,
            n_samples=self.n_units,
            about=counts,
        )
