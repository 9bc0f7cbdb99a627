"""What each sample with several labels adds to the sampling error of metrics of the labels' tables, without resampling.

A metric of the tables is a function of how many samples are in each of the four cells of each label. A sample is in one
cell of every label, and moves the metric by the sum of its derivatives there (the infinitesimal jackknife, Efron 1982):
what labels of one sample share is in these sums.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from app.kernel.matrix.gradient import AdditiveGradient
from app.kernel.matrix.label_table import LabelTable
from app.kernel.metrics.card import Inputs, Mean, Metric, Scale
from app.kernel.metrics.expression import Expression, Measure, bounds, compute, measures
from app.kernel.metrics.proportion import Cells, Rate
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.influence import LinearMethod, Strata
from app.kernel.samples.labels.moments import LabelMoments
from app.kernel.samples.labels.pairs import CELLS, LabelPairs
from app.kernel.uncertainty.intervals import jeffreys
from app.kernel.uncertainty.of_matrices import mover
from app.kernel.uncertainty.of_matrices.headline import FEW
from app.kernel.uncertainty.of_samples.influence import Influences, Linearisation
from app.kernel.uncertainty.of_samples.label_units import WeightedLabels
from app.kernel.uncertainty.of_samples.unit_influence import UnitInfluences

_RECALL = Rate(Cells.TP, Cells.ACTUAL, None)
# Relative to the samples of a cell: so far it is moved up and down for a derivative.
_STEP = 2.0**-13
# Relative to the largest derivative: the two sides of a smooth function differ by less.
_SMOOTH = 0.01
# Numbers in the tables that are looked at together.
_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class LabelInfluences(UnitInfluences):
    """Metrics of samples with labels: those of single samples as of other units, areas of labels by DeLong, and those
    of the tables of the labels.

    Attributes:
        weighted: The tables of samples that have weights.
    """

    pairs: LabelPairs | LabelMoments
    weighted: WeightedLabels | None = None
    _recall_means: dict[float, Mapping[Mean, tuple[float, float]]] = field(default_factory=dict, repr=False)
    _of_scores: dict[Inputs, Influences] = field(default_factory=dict, repr=False)

    @property
    def table(self) -> LabelTable:
        """The tables of the labels."""
        table: LabelTable = self.subject.parts[Inputs.MATRIX]
        return table

    def of(
        self, metric: Metric[Any], class_index: int | None = None, *, parameters: Mapping[str, Any] | None = None
    ) -> Linearisation | None:
        """A metric as a sum over the samples: of their labels, or of areas of each label against its absence."""
        inputs = metric.card.inputs
        if inputs is not Inputs.PROBABILITIES or inputs not in self.subject.parts:
            return super(LabelInfluences, self).of(metric, class_index, parameters=parameters)
        if inputs not in self._of_scores:
            self._of_scores[inputs] = Influences(self.subject.parts[inputs])
        return self._of_scores[inputs].of(metric, class_index, parameters=parameters)

    def of_tables(self, expression: Expression) -> Linearisation | None:
        """An expression of the tables of the labels with one value; None where it is another, or has no derivatives.

        NaN throughout where it has no value.
        """
        if any(leaf.metric.card.inputs is not Inputs.MATRIX for leaf in measures(expression)):
            return None
        value = compute(expression, self.table)
        if value.ndim:
            return None
        influence, design = np.full(self.n_units if self.times is None else 1, np.nan), None
        if np.isfinite(value):
            derivatives = _declared(expression, self.table)
            if derivatives is None:
                derivatives = cell_derivatives(lambda table: compute(expression, table), self.table)
            if derivatives is None:
                return None
            influence, design = self._centred(derivatives), self._design(derivatives)
        card = expression.metric.card if isinstance(expression, Measure) else None
        scale = Scale.LINEAR if card is None else card.inference.scale
        method = LinearMethod.INFLUENCE_LOGIT if scale is Scale.LOGIT else LinearMethod.INFLUENCE
        return Linearisation(
            float(value),
            influence,
            scale,
            Strata.WHOLE,
            method,
            bounds(expression),
            worth=self._worth,
            n_samples=None if self.times is None else self.n_units,
            design_effect=design,
        )

    @property
    def _worth(self) -> tuple[int, float] | None:
        """What all samples that count are worth; None without weights."""
        return None if self.weights is None else self.worth_of(self.weights[self.weights > 0])

    def _design(self, by_cell: Array) -> float | None:  # noqa: ARG002 - of samples that went by
        """How many times larger the variance of such a metric is than that of as many samples of one weight, where it
        does not follow from influences.
        """
        return None

    def _centred(self, by_cell: Array) -> Array:
        """Influences from the derivatives (L, 4) by the cells of the labels."""
        size = float(self.n_units)
        if self.weights is None:
            found = self.pairs.deviations(by_cell)
        else:
            each, derivatives, size = self.weights, self._sums(by_cell), float(np.count_nonzero(self.weights))
            found = each * (derivatives - each @ derivatives / each.sum())
        found *= np.sqrt(size / max(size - 1.0, 1.0))
        return found

    def _recalls(self, level: float) -> tuple[Array, Array, Array]:
        """Hits and samples (L) with each label, or their effective numbers, and variances of the recalls."""
        table = self.table
        if self.weighted is None:
            with silently():
                return table.tp, table.actual, table.recall * (1.0 - table.recall) / table.actual
        rates = self.weighted.rates(_RECALL)
        return *rates.as_counts(level), rates.variance

    def recall_means(self, level: float) -> Mapping[Mean, tuple[float, float]]:
        """Limits of the means of the recalls: MOVER on their Jeffreys limits and their correlation (Zou 2008).

        Labels of which no sample has two are classes, and then these are the limits of classes.
        """
        if level not in self._recall_means:
            self._recall_means[level] = self._limits_of_recall_means(level)
        return self._recall_means[level]

    def _limits_of_recall_means(self, level: float) -> Mapping[Mean, tuple[float, float]]:
        table = self.table
        with silently():
            per_sample = 1.0 / table.actual
        hits, among, variance = self._recalls(level)
        error = np.sqrt(variance)

        def spread(moved: Array) -> Array:
            """For two sides (2, L): moves in standard errors are weights of the errors of the recalls."""
            varies = error > 0
            with silently():
                shares = np.where(varies, moved / error, 0.0) * per_sample
            alone = np.where(varies, 0.0, moved)
            together = [self._of_recalls(row) for row in shares]
            found: Array = np.sqrt(np.array(together) + (alone * alone).sum(axis=-1))
            return found

        ends = mover.mean_limits(table.recall, *jeffreys(hits, among, level), spread=spread)
        return {mean: (float(ends[mean, 0]), float(ends[mean, 1])) for mean in Mean}

    def _of_recalls(self, slopes: Array) -> float:
        """Variance of a sum of hits less expected hits of the labels, in these multiples (L)."""
        values = np.zeros((slopes.size, CELLS))
        values[:, 2], values[:, 3] = -slopes * self.table.recall, slopes * (1.0 - self.table.recall)
        if self.weights is None:
            return self.pairs.squares(values)
        summed = self.weights * self._sums(values)
        return float(summed @ summed)

    def _sums(self, values: Array) -> Array:
        """Of each sample (n) that of the values (L, 4) of its cells."""
        assert isinstance(self.pairs, LabelPairs)  # noqa: S101 - samples with weights are at hand
        return self.pairs.sums(values)

    def edge_moves(self, expression: Expression, level: float) -> Array:
        """What the value moves by (E) as the recall of a label of few samples, all found or none, goes to its limit.

        Derivatives see nothing of it there. Added by squares, as parts of a mean are (Zou & Donner 2008).
        """
        table = self.table
        worth_hits, worth, _ = self._recalls(level)
        at_edge = ((table.tp == 0) | (table.tp == table.actual)) & (table.actual > 0) & (worth < FEW)
        codes = np.flatnonzero(at_edge)
        if not codes.size:
            return np.zeros(0)
        low, high = (ends[codes] for ends in jeffreys(worth_hits, worth, level))
        recall = np.where(table.tp[codes] == 0, high, low)
        hits, predicted = (np.repeat(part[None], codes.size, axis=0) for part in (table.tp, table.predicted))
        rows = np.arange(codes.size)
        moved = recall * table.actual[codes] - table.tp[codes]
        hits[rows, codes] += moved
        predicted[rows, codes] += moved
        others = LabelTable(hits, np.broadcast_to(table.actual, hits.shape), predicted, table.n_each[None])
        with silently():
            moves: Array = compute(expression, others) - compute(expression, table)
        return moves[np.isfinite(moves)]


def _declared(expression: Expression, table: LabelTable) -> Array | None:
    """Derivatives (L, 4) by the card of the metric; None where it has none."""
    if not isinstance(expression, Measure) or dict(expression.parameters) != expression.metric.card.defaults:
        return None
    gradient = expression.metric.card.inference.gradient
    if gradient is None:
        return None
    with silently():
        found: AdditiveGradient = gradient(table)
        by_cell = (
            np.zeros_like(found.rows),
            found.columns,
            found.rows,
            found.diagonal + found.rows + found.columns,
        )
        derivatives: Array = np.stack(by_cell, axis=-1) / table.n_each[:, None]
    return derivatives if np.isfinite(derivatives).all() else None


def cell_derivatives(function: Callable[[LabelTable], Array], table: LabelTable) -> Array | None:
    """Derivatives (L, 4) of an overall value by the samples in each cell of each label, 0 for an empty cell.

    Central differences: cells are moved up and down by a small part of what they hold. None where the two sides do not
    meet in one slope, or the function does not exist beside the table.
    """
    cells = np.stack([table.tn, table.fp, table.fn, table.tp], axis=-1)
    steps = _STEP * cells
    filled = np.flatnonzero(cells)
    value = float(function(table))
    sides = np.zeros((2, cells.size))
    chunk = max(1, _AT_ONCE // (2 * cells.size))
    for start in range(0, filled.size, chunk):
        places = filled[start : start + chunk]
        moved = np.broadcast_to(cells.ravel(), (2, places.size, cells.size)).copy()
        rows = np.arange(places.size)
        for side, sign in enumerate((1.0, -1.0)):
            moved[side, rows, places] += sign * steps.ravel()[places]
        with silently():
            values = function(_table(moved.reshape(2, places.size, *cells.shape)))
        sides[:, places] = (values - value) * np.array([[1.0], [-1.0]])
    if not np.isfinite(sides).all():
        return None
    up, down = sides / _STEP
    if np.abs(up - down).max() > _SMOOTH * np.abs(up + down).max() / 2.0:
        return None
    with silently():
        derivatives = np.where(cells.ravel() > 0, (up + down) / (2.0 * cells.ravel()), 0.0)
    return derivatives.reshape(cells.shape)


def _table(cells: Array) -> LabelTable:
    """From cells (..., L, 4)."""
    hits, false, missed = cells[..., 3], cells[..., 1], cells[..., 2]
    return LabelTable(hits, missed + hits, false + hits, cells.sum(axis=-1))
