"""Samples with several labels each, beyond memory: sums over pairs of labels, and of what metrics say of each sample.

Samples that weigh the same have weights of 1; there is no other way for them.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from app.kernel.matrix.table import LabelTable
from app.kernel.metrics.card import Inputs, Metric, Task
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Expression, Subject
from app.kernel.metrics.families import score_ranking
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.numerics.weighted_units import Terms, WeightedUnits, mean_terms
from app.kernel.samples.label_units import CELLS, LabelScores, LabelSets
from app.kernel.samples.losses import Codes
from app.kernel.samples.scores import Scores, Side
from app.kernel.streamed.along import Along
from app.kernel.streamed.metrics import StreamedInfluences
from app.kernel.streamed.moments import Cubes
from app.kernel.streamed.rows import Rows, Table
from app.kernel.streamed.scores import StreamedScores
from app.kernel.streamed.together import joined
from app.kernel.uncertainty.designs import DesignedSums, LeftOut, labels_without_each
from app.kernel.uncertainty.groups import MOST_LEFT_OUT
from app.kernel.uncertainty.influence import Influences, LabelInfluences, Linearisation
from app.kernel.uncertainty.units import Units

# Cells from this one on are those of samples that have the label.
_ACTUAL: Final = 2
# Entries of cells of labels, and of probabilities, that are looked at together.
_CELLS_TOGETHER: Final = 1 << 22
_TOGETHER: Final = 1 << 17
# Sums of squares of deviations below it, relative to what they are differences of, are rounding.
_ROUNDING: Final = 1e-14


class Products:
    """Products (c, c) of numbers, the first of which is 1, summed over samples or groups, beside sums (c) in the
    weights that means are of.
    """

    def __init__(self, size: int) -> None:
        self.products, self.sums = np.zeros((size, size)), np.zeros(size)

    def add(self, weighed: NDArray[Any], numbers: NDArray[Any]) -> None:
        """Add samples (n, c), times their weights, and what they are multiplied with."""
        self.products += weighed.T @ numbers
        self.sums += weighed.sum(axis=0)

    def about_mean(self, slopes: Array, start: int = 0) -> float:
        """Sum of squared deviations of the other numbers, from one on times these slopes, from their mean."""
        each = np.zeros(self.sums.size)
        each[1 + start : 1 + start + slopes.size] = slopes
        mean = float(each @ self.sums) / float(self.sums[0])
        found = each @ self.products @ each - 2.0 * mean * self.products[0] @ each + mean * mean * self.products[0, 0]
        scale = np.abs(each) @ np.abs(self.products) @ np.abs(each)
        return float(found) if found > _ROUNDING * scale else 0.0

    def squares(self, values: Array) -> float:
        """Sum of squares about their mean of sums of values (L, 4) by cell, over all cells of labels but of neither."""
        return self.about_mean((values[:, 1:] - values[:, :1]).T.ravel())

    def deviations(self, values: Array) -> Array:
        """One number: the root of `squares`."""
        return np.sqrt([self.squares(values)])


class WeightedProducts:
    """Sums over samples of products of c numbers, the first of which is 1.

    Attributes:
        ends: The smallest weight above 0 and the largest.
        used: Sums (c) of the numbers, without weights.
        centred: In squared weights: those of weighted deviations.
        plain: In weights; the same where all are 1.
    """

    def __init__(self, size: int, *, weighted: bool) -> None:
        self.ends, self.used, self.centred = (np.inf, -np.inf), np.zeros(size), Products(size)
        self.plain = Products(size) if weighted else self.centred

    def add(self, numbers: NDArray[Any], weights: Array | None) -> None:
        """Add samples: numbers (n, c) and weights (n) above 0, None for 1 each."""
        self.used += numbers.sum(axis=0)
        if weights is None:
            self.centred.add(numbers, numbers)
            return
        self.ends = min(self.ends[0], float(weights.min())), max(self.ends[1], float(weights.max()))
        weighed = numbers * weights[:, None]
        self.plain.add(weighed, numbers)
        self.centred.add(weighed, weighed)

    def leave_weights(self) -> None:
        """Take weights that are all the same as none."""
        self.plain.products /= self.ends[0]
        # A sum of equal weights is rounded, and that of the numbers is not.
        self.plain.sums = self.used
        self.centred = self.plain

    @property
    def is_weighted(self) -> bool:
        """Do samples have weights?"""
        return self.plain is not self.centred

    @property
    def whole(self) -> Side:
        """All samples."""
        return Side(float(self.plain.sums[0]), float(self.centred.products[0, 0]), int(self.used[0]))

    @property
    def worth(self) -> tuple[int, float] | None:
        """Number of samples with weights, and their effective number (Kish 1965); None without weights."""
        return (self.whole.used, self.whole.effective) if self.is_weighted else None

    def design_effect(self, squares: float, plain: float) -> float | None:
        """Variance of a mean relative to that of equally many samples of one weight; NaN where it is 0, None without
        weights. Sums of squared deviations are in squared weights, and in weights.
        """
        if not self.is_weighted:
            return None
        return self.whole.used * squares / (self.whole.weight * plain) if squares and plain else float("nan")


class LabelMoments(WeightedProducts):
    """Sums over samples in two cells of L labels at once: a first cell that all samples are in, and for each label all
    cells but that of neither.
    """

    def __init__(self, n_labels: int, *, weighted: bool) -> None:
        super().__init__(1 + (CELLS - 1) * n_labels, weighted=weighted)
        self.n_labels = n_labels

    def add_labels(self, truth: Mask, predicted: Mask, weights: Array | None) -> None:
        """Add samples: labels that they have and predicted ones (n, L), and weights (n) above 0, None for 1 each."""
        rows = max(_CELLS_TOGETHER // self.used.size, 1)
        for start in range(0, len(truth), rows):
            there, said = truth[start : start + rows], predicted[start : start + rows]
            every = np.ones((len(there), 1), dtype=np.bool_)
            cells = np.concatenate([every, said & ~there, there & ~said, there & said], axis=1)
            # Sums of less than 2^24 ones are exact in float32.
            numbers = cells.astype(np.float32 if weights is None else np.float64)
            self.add(numbers, None if weights is None else weights[start : start + rows])

    @property
    def cells(self) -> Array:
        """Weight (L, 4) in each cell of each label, as `LabelPairs` counts them."""
        table = self.table
        return np.stack([table.tn, table.fp, table.fn, table.tp], axis=1)

    def sides(self, label: int) -> tuple[Side, Side]:
        """Samples with a label, and without it."""
        # Missed and found.
        own = [1 + place * self.n_labels + label for place in (1, 2)]
        used = int(self.used[own].sum())
        weight, squares = float(self.plain.sums[own].sum()), float(self.centred.products[0, own].sum())
        whole, none = self.whole, Side(0.0, 0.0, 0)
        others = Side(whole.weight - weight, whole.squares - squares, whole.used - used)
        return Side(weight, squares, used) if used else none, others if others.used else none

    @property
    def table(self) -> LabelTable:
        """The tables of the labels."""
        return _table(self.plain.sums)

    @property
    def designed(self) -> DesignedSums:
        """Rates of the labels of samples that are in no groups."""
        return DesignedSums.of_tables(self.table, *map(_table, (self.centred.products[0], self.used)))


def _table(sums: Array) -> LabelTable:
    false, missed, hits = sums[1:].reshape(CELLS - 1, -1)
    return LabelTable.among(hits, false, missed, sums[:1])


class SampleMeans(WeightedUnits):
    """Means over samples of what metrics say of each of them, as if all samples were one."""

    def __init__(self, metrics: Sequence[Metric[Any]], *, weighted: bool) -> None:
        super().__init__(1)
        self.metrics, self.places = metrics, {metric.key: place for place, metric in enumerate(metrics)}
        self.moments = WeightedProducts(1 + len(metrics), weighted=weighted)
        self.cubes = Cubes(len(metrics))
        # Deviations from the values of one sample are added up, so that what does not vary has no variance.
        self._about: Array | None = None

    def add(self, values: Array, weights: Array | None) -> None:
        """Add samples: values (m, n) and weights (n) above 0; None is 1 each."""
        self._about = values[:, :1].copy() if self._about is None else self._about
        away, each = values - self._about, np.ones(values.shape[1]) if weights is None else weights
        self.moments.add(np.vstack([np.ones(each.size), away]).T, weights)
        self.cubes.add(each, away * each)

    def remembered(self, name: Hashable, make: Callable[[], Terms]) -> Terms:  # noqa: ARG002 - nothing can be made
        """The mean of what a metric says; raises KeyError where that was not added up."""
        # The first part of a name is the key of the metric; none has parameters.
        key, *_ = name if isinstance(name, tuple) else (name,)
        return mean_terms(np.array([self.mean(key)]))

    def mean(self, key: str) -> float:
        """Weighted mean of what a metric says."""
        sums, place = self.moments.plain.sums, self.places[key]
        return float(sums[1 + place] / sums[0]) + (0.0 if self._about is None else float(self._about[place, 0]))


class LabelSums:
    """All that is added up of samples while they are read: of pairs of labels, and of what metrics say of samples.

    Attributes:
        rows: Samples so far, those that weigh nothing too.
    """

    def __init__(self, n_labels: int, *, weighted: bool, scored: bool) -> None:
        self.moments, self.rows = LabelMoments(n_labels, weighted=weighted), 0
        # Means over samples, of values that all of them have: of their sets of labels, and of the order of these.
        inputs = (Inputs.LABELS, Inputs.LABEL_SCORES) if scored else (Inputs.LABELS,)
        known = [catalogue().reported_of(Task.MULTILABEL, frozenset({one})).metrics for one in inputs]
        self.means = SampleMeans([metric for metrics in known for metric in metrics], weighted=weighted)

    def add(self, truth: Mask, predicted: Mask, scores: Array | None, weights: Array | None) -> Array:
        """Add samples, and return what metrics say of each (m, n).

        Args:
            truth: Labels that they have (n, L).
            predicted: Labels that were predicted (n, L).
            scores: Of the labels (n, L), or None.
            weights: (n), 0 or above; None is 1 each. What weighs nothing is left out.
        """
        self.rows += len(truth)
        values = np.empty((len(self.means.metrics), len(truth)))
        step = max(_TOGETHER // self.moments.n_labels, 1)
        for start in range(0, len(truth), step):
            part = slice(start, start + step)
            units: dict[Inputs, WeightedUnits] = {Inputs.LABELS: LabelSets(truth[part], predicted[part])}
            if scores is not None:
                units[Inputs.LABEL_SCORES] = LabelScores(truth[part], scores[part])
            for row, metric in zip(values, self.means.metrics, strict=True):
                terms: Any = metric.card.inference.terms
                row[part] = terms(units[metric.card.inputs]).above
        used = slice(None) if weights is None else np.flatnonzero(weights)
        if len(truth[used]):
            each = None if weights is None else weights[used]
            self.moments.add_labels(truth[used], predicted[used], each)
            self.means.add(values[:, used], each)
        return values

    @property
    def common_weight(self) -> float | None:
        """Weight of each sample, where all weigh the same and more than nothing; None without weights."""
        least, most = self.moments.ends
        return least if least == most and self.moments.whole.used == self.rows else None

    def leave_weights(self) -> None:
        """Take weights that are all the same as none."""
        self.moments.leave_weights()
        self.means.moments.leave_weights()


class LabelGroups:
    """Sums within groups: rates of the labels, and products of weights and of what lies in cells and metrics say.

    Attributes:
        sizes: Samples (G) of each group.
        weights: (G) what they weigh.
    """

    def __init__(self, moments: LabelMoments, n_values: int, sizes: Array, weights: Array) -> None:
        self.sizes, self.weights, self._n_labels = sizes, weights, moments.n_labels
        self.rates = DesignedSums(moments.n_labels, moments.whole.used / moments.whole.weight)
        self.products, self.cubes = Products(moments.used.size + n_values), Cubes(n_values)
        self._held = list[tuple[Array, Array]]()

    def left_out(self) -> LeftOut | None:
        """Tables of the labels without each group; None of too many groups."""
        if not self._held:
            return None
        (false, missed, hits), sizes = (np.concatenate(part, axis=-1) for part in zip(*self._held, strict=True))
        return labels_without_each(np.stack([hits, false, missed]), sizes)

    def add(self, sums: Array) -> None:
        """Add groups (G, c): their weight, what lies in cells predicted, actual and both, and what metrics say."""
        self.products.add(sums, sums)
        self.cubes.add(sums[:, 0], sums[:, 1 + (CELLS - 1) * self._n_labels :].T)
        cells = sums[:, 1 : 1 + (CELLS - 1) * self._n_labels].T.reshape(CELLS - 1, -1, len(sums))
        if cells[..., 0].size * self.weights.size <= MOST_LEFT_OUT:
            self._held.append((cells, sums[:, 0]))
        for label, (false, missed, hits) in enumerate(cells.transpose(1, 0, 2)):
            self.rates.add(label, np.array([hits, missed, false]), sums[:, 0])


class StreamedLabelScores(StreamedScores):
    """Probabilities of labels of samples that an engine holds. Each label is a class of its own against its absence.

    Rows are those of samples of weight above 0: ``p0``, ``p1``, ... and the cells of the labels, ``c0``, ``c1``, ...;
    the weight ``w`` and the code ``g`` of one of some groups, where there are some.
    """

    def __init__(self, rows: Rows, moments: LabelMoments, n_groups: int = 0) -> None:
        self._moments = moments
        # Calibration is looked at of classes alone.
        super().__init__(rows, moments.n_labels, probabilities=False, weighted=moments.is_weighted, n_groups=n_groups)
        # Labels are put in one order whatever their scores are, and however many; samples have several.
        self.in_one_order, self.n_strata = True, 1
        self.__dict__["n"] = np.asarray(self.whole.weight)

    def _counted(self) -> Sequence[tuple[Side, Side]]:
        return [*map(self._moments.sides, range(self.n_classes))]

    def _member(self, code: int) -> str:
        return f"c{code} >= {_ACTUAL}"

    @property
    def _truth(self) -> Sequence[str]:
        return [f"c{code}" for code in range(self.n_classes)]

    def strata(self, part: Table) -> Codes:
        """All samples are in one stratum."""
        return np.zeros(part["p0"].size, np.intp)

    @property
    def _averages(self) -> Sequence[Metric[Any]]:
        return [score_ranking.roc_auc_ovr_macro, score_ranking.roc_auc_ovr_weighted]

    @cached_property
    def joint(self) -> Along:
        """The scores of all labels in one order. Of many labels of each sample merging is less work than looking up."""
        curve, orders = self._of_all
        for cuts in joined(orders, weighted=self._weighted, threads=self.threads):
            curve.add(cuts)
        self._written.clear()
        return curve

    @property
    def have_entries(self) -> bool:
        """True: scores of labels compare with each other, whatever they are."""
        return True

    def part(self, part: Table) -> Scores:
        """Some samples in memory."""
        cells, outputs = (np.stack([part[name] for name in names]) for names in (self._truth, self.names))
        return LabelScores((cells >= _ACTUAL).T, outputs.T)

    @property
    def is_mirrored(self) -> bool:
        """False: each of two labels has its own order."""
        return False


class StreamedLabels(Units):
    """Samples with labels that are not in memory, as metrics and their limits take them."""

    at_hand = False

    def __init__(
        self, sums: LabelSums, groups: LabelGroups | None = None, scores: "StreamedLabelScores | None" = None
    ) -> None:
        super().__init__(sums.rows)
        self.sums, self.groups, self.scores = sums, groups, scores

    def subject(self, weights: Array | None = None) -> Subject:
        """Tables of the labels, means over samples, and scores where there are some. Raises TypeError for other
        weights.
        """
        if weights is not None:
            raise TypeError("streamed samples have no weights but their own")
        parts: dict[Inputs, Any] = {Inputs.MATRIX: self.sums.moments.table, Inputs.LABELS: self.sums.means}
        if self.scores is not None:
            parts |= {Inputs.PROBABILITIES: self.scores, Inputs.LABEL_SCORES: self.sums.means}
        return Subject(parts)

    def influences(self) -> "StreamedLabelInfluences":
        """Return the sampling errors of metrics."""
        moments, groups = self.sums.moments, self.groups
        found = (moments.centred, moments.designed) if groups is None else (groups.products, groups.rates)
        given = self.subject(), self.n_units, moments.n_labels, *found
        left_out = None if groups is None else groups.left_out()
        return StreamedLabelInfluences(*given, moments=moments, groups=groups, left_out=left_out)


@dataclass(frozen=True, eq=False)
class StreamedLabelInfluences(LabelInfluences):
    """Metrics of streamed samples with labels: what these add to sampling errors is added up, within
    groups if any.
    """

    moments: LabelMoments = field(kw_only=True)
    groups: LabelGroups | None = field(default=None, kw_only=True)
    added_up: ClassVar[bool] = True

    def of(
        self, metric: Metric[Any], class_index: int | None = None, *, parameters: Mapping[str, Any] | None = None
    ) -> Linearisation | None:
        """A metric as a sum over the samples, or over their groups; None where that is not known."""
        data = self.subject.parts.get(metric.card.inputs)
        if isinstance(data, SampleMeans):
            return self._mean(metric, data)
        return super().of(metric, class_index, parameters=parameters)

    @cached_property
    def _of_scores(self) -> Influences:
        return StreamedInfluences(self.subject.parts[Inputs.PROBABILITIES])

    def _mean(self, metric: Metric[Any], means: SampleMeans) -> Linearisation:
        (total, _, known), slope, place = self.moments.whole, np.ones(1), means.places[metric.key]
        plain, squares = (one.about_mean(slope, place) for one in (means.moments.plain, means.moments.centred))
        spread, about, sums, cubes, first = squares, None, means.moments.plain.sums, means.cubes, 1
        if self.groups is not None:
            sums, cubes, first = self.groups.products.sums, self.groups.cubes, self.moments.used.size
            spread = self.groups.products.about_mean(slope, first - 1 + place) if squares else 0.0
            about = self.groups.weights[None] * float(squares > 0)
        influence = np.sqrt([spread * known / (known - 1.0)]) / total if known > 1 else np.array([np.nan])
        found = self._of_mean(metric, means.mean(metric.key), influence, known, self._worth)
        third = cubes.of(place, 1.0, -float(sums[first + place] / sums[0])) / cubes.weight**3
        skewness = third * (total**2 / spread) ** 1.5 if spread else 0.0
        design_effect = means.moments.design_effect(squares, plain)
        return replace(found, about=about, skewness=skewness, design_effect=design_effect)

    @property
    def _worth(self) -> tuple[int, float] | None:
        return self.moments.worth

    def of_tables(self, expression: Expression) -> Linearisation | None:
        """An expression of the tables of the labels, with the samples of each group where there are some."""
        found = super().of_tables(expression)
        return found if found is None or self.groups is None else replace(found, about=self.groups.weights[None])

    def _design(self, by_cell: Array) -> float | None:
        squares, plain = (one.squares(by_cell) for one in (self.moments.centred, self.moments.plain))
        return self.moments.design_effect(squares, plain)

    def _centred(self, by_cell: Array) -> Array:
        size = self.moments.whole.used
        found: Array = self.pairs.deviations(by_cell) * (size / max(size - 1.0, 1.0)) ** 0.5
        return found
