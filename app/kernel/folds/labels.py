"""Streamed samples with several labels each: decided labels, probabilities, weights, groups."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from app.kernel.folds.entries import Groups, NotFolded
from app.kernel.folds.folded import Fold, FoldedSamples
from app.kernel.folds.groups import GroupedLosses, GroupInfluence, GroupSums, GroupTotals
from app.kernel.folds.metrics import linearised
from app.kernel.folds.runs import InOrder, SortedRuns, Stretch, stretches
from app.kernel.matrix.table import LabelTable
from app.kernel.metrics.card import Inputs, Metric
from app.kernel.metrics.expression import Subject
from app.kernel.metrics.families.label_sets import (
    coverage_error,
    hamming_loss,
    label_ranking_average_precision,
    label_ranking_loss,
    one_error,
    samples_f1,
    samples_jaccard,
    samples_precision,
    samples_recall,
    subset_accuracy,
)
from app.kernel.metrics.families.score_ranking import roc_auc_ovr_macro
from app.kernel.numerics.arrays import Array, Mask, each, lazy
from app.kernel.numerics.exact_sums import BLOCK, ExactSums, Whole, row_sums, spread, weighted_powers, weighted_spread
from app.kernel.numerics.weighted_units import Terms, WeightedUnits, mean_terms
from app.kernel.samples.influence import LinearMethod, Strata
from app.kernel.samples.label_units import CELLS, CountedSets, LabelMoments, LabelPairs, LabelScores, LabelSets
from app.kernel.samples.losses import Codes
from app.kernel.uncertainty.influence import LabelInfluences, Linearisation
from app.kernel.uncertainty.units import Units, WeightedLabels

# Values are whole multiples of this power of 2: none is above 1,000, the number of labels.
_EXPONENT: Final = -52


class ValuesInGroups:
    """Sums within groups of what metrics say of each sample. States merge in any order and can be pickled.

    Args:
        metrics: Means over samples, of values between 0 and the number of labels, shares among them.
    """

    def __init__(self, metrics: Sequence[Metric[Any]]) -> None:
        # What counts for a share or not is a whole number.
        self._shares = {metric.key for metric in metrics if metric.card.inference.is_share}
        self._exponents = np.array([0 if metric.key in self._shares else _EXPONENT for metric in metrics])
        self._places = {metric.key: place for place, metric in enumerate(metrics)}
        self._sums = GroupSums(len(metrics))

    def add(self, groups: Groups, values: Array) -> None:
        """Add samples: groups (n) and what metrics say (m, n), which is rounded down to multiples of 2^-52."""
        whole = np.ldexp(values, -self._exponents[:, None]).astype(np.int64)
        self._sums.add(groups, np.zeros(groups.size, dtype=np.int64), whole)

    def merge(self, other: Self) -> None:
        """Take in the sums of others."""
        self._sums.merge(other._sums)

    @property
    def n_groups(self) -> int:
        """How many groups there were when they were looked at last."""
        return self._sums.n_groups

    @property
    def nbytes(self) -> int:
        """Bytes in memory then."""
        return self._sums.nbytes

    def totals(self) -> GroupTotals:
        """What there is so far, by rising groups."""
        return self._sums.read()

    def knows(self, key: str) -> bool:
        """Is it one of these metrics?"""
        return key in self._places

    def influence(self, key: str) -> GroupInfluence:
        """What groups add to the sampling error of a metric."""
        found, place = GroupedLosses(self._sums, 1, np.ldexp(1.0, self._exponents)), self._places[key]
        return found.share([place]) if key in self._shares else found.mean(place)


AnyUnits = TypeVar("AnyUnits", bound=WeightedUnits)


class SumOfSamples(NamedTuple):
    """Values of n samples, added up, and their squares, each rounded once."""

    total: Fraction
    squares: Fraction
    n_samples: int

    @property
    def mean(self) -> float:
        """Of the values."""
        return float(self.total / self.n_samples)

    @property
    def variance(self) -> float:
        """Of their mean."""
        if self.n_samples < 2:
            return float("nan")
        return spread(self.total, self.squares, self.n_samples) / self.n_samples


class Weighed(NamedTuple):
    """What samples weigh.

    Attributes:
        total: Sum of the weights.
        squares: Sum of their squares.
        n_samples: With a weight above 0.
    """

    total: Fraction
    squares: Fraction
    n_samples: int

    @property
    def worth(self) -> tuple[int, float]:
        """How many count, and their effective number (Kish 1965)."""
        return self.n_samples, float(self.total * self.total / self.squares)


class SumOfWeighted(NamedTuple):
    """Values of weighted samples, added up: sums of w v, w v^2, w^2 v and w^2 v^2, in exact products."""

    sums: Sequence[Fraction]
    weighed: Weighed

    @property
    def mean(self) -> float:
        """Of the values."""
        return float(self.sums[0] / self.weighed.total)

    @property
    def variance(self) -> float:
        """Of their mean, linearised."""
        if self.n_samples < 2:
            return float("nan")
        return float(self._spread / self.weighed.total**2)

    @property
    def n_samples(self) -> int:
        """That count."""
        return self.weighed.n_samples

    @property
    def design_effect(self) -> float:
        """How many times larger the variance is than that of as many samples of one weight; NaN where values are all
        the same.
        """
        mean, (first, second, *_), weighed = self._mean, self.sums, self.weighed
        plain = (second - 2 * mean * first + mean * mean * weighed.total) * weighed.total
        # Both spreads have the factor n / (n - 1).
        return float(self._spread * (weighed.n_samples - 1) / plain) if self._spread else float("nan")

    @property
    def _mean(self) -> Fraction:
        return self.sums[0] / self.weighed.total

    @property
    def _spread(self) -> Fraction:
        plain = self.weighed.squares, *self.sums[2:]
        return weighted_spread(self._mean, plain, self.weighed.n_samples, exact=True)


Summed = SumOfSamples | SumOfWeighted


class FoldedMeans(WeightedUnits):
    """Means over samples that went by, as if all samples were one.

    Attributes:
        sums: Of what metrics say of a sample, by their keys.
        in_groups: The same within groups, where samples are in some.
    """

    def __init__(self, sums: Mapping[str, Summed], in_groups: ValuesInGroups | None = None) -> None:
        super().__init__(1)
        self.sums, self.in_groups = sums, in_groups

    def remembered(self, name: Hashable, make: Callable[[], Terms]) -> Terms:  # noqa: ARG002 - nothing can be made
        """The mean of what a metric says.

        Raises:
            KeyError: that was not added up.
        """
        # The first part of a name is the key of the metric; none has parameters.
        key, *_ = name if isinstance(name, tuple) else (name,)
        return mean_terms(np.array([self.sums[key].mean]))


def said_of_samples(metrics: Sequence[Metric[AnyUnits]], samples: AnyUnits) -> Array:
    """What metrics say of each sample (m, n): means over samples, of values that all of them have."""
    found = []
    for metric in metrics:
        terms: Any = metric.card.inference.terms
        found.append(terms(samples).above)
    return np.stack(found)


# What is added up of the weights: they themselves, and their squares.
_WEIGHTS, _SQUARES = 0, 1
KINDS: Final = 2


class WeightedMoments:
    """Two facts about each of L labels of weighted samples that are not at hand any more.

    Attributes:
        weighed: What the samples weigh.
        ends: The smallest weight above 0, and the largest.
        cells: (L, 4), weight in each cell of each label.
        tables: Of the labels.

    Args:
        counts: (L, 4), samples in each cell of each label, as `LabelPairs` has them.
        pairs: Of weights and of their squares, sums over the samples in two cells at once, (2, 3 L, 3 L) in one row.
        weighed: See above.
        ends: See above.
    """

    def __init__(
        self, counts: NDArray[np.int64], pairs: list[Fraction], weighed: Weighed, ends: tuple[float, float]
    ) -> None:
        self.weighed, self.ends, size = weighed, ends, (CELLS - 1) * len(counts)
        # All of them are whole numbers of one power of 2.
        scale = max(one.denominator for one in (*pairs, *weighed[:KINDS]))
        whole = np.array([_times(one, scale) for one in pairs], dtype=object).reshape(KINDS, size, size)
        totals = [_times(one, scale) for one in weighed[:KINDS]]
        in_cells = [np.diagonal(kind) for kind in whole]
        self.cells = _cells(in_cells[_WEIGHTS], totals[_WEIGHTS], scale)
        sums, squares = (_weighted_table(own, total, scale) for own, total in zip(in_cells, totals, strict=True))
        false, missed, hits = counts.T[1:].astype(np.float64)
        samples = LabelTable(hits, missed + hits, false + hits, np.array([float(weighed.n_samples)]))
        self.tables = WeightedLabels(sums, squares, samples)
        means = in_cells[_WEIGHTS], totals[_WEIGHTS]
        self._centred = [
            _around_means(kind, own, total, means, scale)
            for kind, own, total in zip(whole, in_cells, totals, strict=True)
        ]

    @property
    def n_samples(self) -> int:
        """Samples that count."""
        return self.weighed.n_samples

    def deviations(self, values: Array) -> Array:
        """One number, whose square is that of the weighted deviations of all samples: of sums over their labels of the
        values (L, 4) of the cells that these are in, from their weighted mean.
        """
        return np.sqrt([self.squares(values)])

    def squares(self, values: Array) -> float:
        """That square."""
        return self._form(values, _SQUARES)

    def design_effect(self, values: Array) -> float:
        """How many times larger it is than that of as many samples of one weight; NaN where it is 0."""
        squares, plain = self.squares(values), self._form(values, _WEIGHTS)
        return self.n_samples * squares / (float(self.weighed.total) * plain) if squares and plain else float("nan")

    def _form(self, values: Array, kind: int) -> float:
        each = (values[:, 1:] - values[:, :1]).T.ravel()
        return max(float(each @ self._centred[kind] @ each), 0.0)


def _times(value: Fraction, scale: int) -> int:
    return value.numerator * (scale // value.denominator)


def _cells(in_cells: Whole, total: int, scale: int) -> Array:
    """Sums (L, 4) in all cells, from those in three of each label (3 L)."""
    others = np.stack(np.split(in_cells, CELLS - 1), axis=-1)
    cells = np.concatenate([total - others.sum(axis=-1, keepdims=True), others], axis=-1)
    return (cells / scale).astype(np.float64)


def _weighted_table(in_cells: Whole, total: int, scale: int) -> LabelTable:
    """From sums in three cells of each label (3 L)."""
    false, missed, hits = np.split(in_cells, CELLS - 1)
    parts = hits, missed + hits, false + hits, np.array([total], dtype=object)
    return LabelTable(*((part / scale).astype(np.float64) for part in parts))


def _around_means(pairs: Whole, in_cells: Whole, total: int, means: tuple[Whole, int], scale: int) -> Array:
    """Sums (3 L, 3 L) of weights, or of their squares, times products of deviations from weighted means, in whole
    numbers up to one division, row by row.
    """
    sums, whole = means
    found = np.empty(pairs.shape)
    for row, own, one, of_sums in zip(found, pairs, in_cells, sums, strict=True):
        product = own * whole**2 - whole * (one * sums + of_sums * in_cells) + total * of_sums * sums
        row[:] = product / (whole * whole * scale)
    return found


# What is said of the order of the labels of a sample: means over the samples, of values that all of them have.
OF_SAMPLES: Final[tuple[Metric[LabelScores], ...]] = (
    label_ranking_average_precision,
    label_ranking_loss,
    coverage_error,
    one_error,
)
# Probabilities that are looked at at once, so that what is made of them stays in the cache.
_ENTRIES: Final = 1 << 17


class LabelScoresFold(Fold):
    """Probabilities of L labels of samples that go by in batches. States merge in any order and give the same answers,
    bit for bit.

    Args:
        n_labels: L, at least 2.
        budget: Bytes of memory, about, that the orders of all labels may take; more goes into files.
        folder: Where files are made; None: everything stays in memory, and goes with a pickled state.
        grouped: Do samples have groups?

    Raises:
        ValueError: there are fewer than two labels.
    """

    def __init__(self, n_labels: int, budget: int, folder: Path | None, *, grouped: bool = False) -> None:
        super().__init__(n_labels, budget, grouped=grouped)
        self._rows = 0
        self._members: NDArray[np.int64] = np.zeros(n_labels, dtype=np.int64)
        self._sums = ExactSums((2, len(OF_SAMPLES)))
        self._orders = [SortedRuns(budget // n_labels, folder, grouped=grouped) for _ in range(n_labels)]
        self._in_groups = ValuesInGroups(OF_SAMPLES) if grouped else None

    @property
    def rows(self) -> int:
        """Samples so far."""
        return self._rows

    @property
    def bytes_of_groups(self) -> int:
        """Bytes in memory for sums within groups, as of when they were looked at last."""
        return 0 if self._in_groups is None else self._in_groups.nbytes

    def add(self, truth: Mask, probabilities: Array, groups: Groups | None = None) -> Self:
        """Add samples.

        Args:
            truth: Labels that they have (n, L).
            probabilities: Of the labels (n, L), in [0, 1].
            groups: A number for the group of each (n).

        Raises:
            ValueError: there are groups where there are to be none, or the other way round, the shapes do not fit, or a
                probability is no number in [0, 1]. Nothing was added then.
        """
        self._check_groups(groups, len(truth))
        if truth.shape != probabilities.shape or truth.shape[1:] != (self.classes,):
            expected = f"expected two tables (n, {self.classes})"
            raise ValueError(f"{expected}, got {truth.shape} and {probabilities.shape}")
        if probabilities.size and not (probabilities.min() >= 0.0 and probabilities.max() <= 1.0):
            raise ValueError("probabilities must be numbers in [0, 1]")
        self._rows += len(truth)
        self._members += truth.sum(axis=0)
        size = min(max(_ENTRIES // self.classes, 1), BLOCK)
        for start in range(0, len(truth), size):
            part = slice(start, start + size)
            values = said_of_samples(OF_SAMPLES, LabelScores(truth[part], probabilities[part]))
            if self._in_groups is not None and groups is not None:
                self._in_groups.add(groups[part], values)
            self._sums.add(np.stack([values, values * values]), row_sums)
        for label, order in enumerate(self._orders):
            order.add(np.ascontiguousarray(probabilities[:, label]), truth[:, label], groups)
        return self

    def merge(self, other: Self) -> Self:
        """Take in another state of the same labels, which is not to be used any more.

        Raises:
            ValueError: it has another number of labels, or one of them alone has groups.
        """
        self._check_mergeable(other)
        self._rows += other._rows
        self._members = self._members + other._members
        self._sums.merge(other._sums)
        if self._in_groups is not None and other._in_groups is not None:
            self._in_groups.merge(other._in_groups)
        for own, theirs in zip(self._orders, other._orders, strict=True):
            own.merge(theirs)
        return self

    def finish(self, in_order: InOrder = map) -> "FoldedLabelScores":
        """Everything that the probabilities say; the state stays as it is, and can go on.

        Args:
            in_order: Has stretches of the orders looked at, here or in other processes.

        Raises:
            ValueError: there is no sample.
        """
        self._release()
        exact, size = self._sums.exact(), len(OF_SAMPLES)
        sums = {
            metric.key: SumOfSamples(total, squares, self._rows)
            for metric, total, squares in zip(OF_SAMPLES, exact[:size], exact[size:], strict=True)
        }

        def stretches_of(label: int) -> Iterable[Stretch]:
            return stretches(self._orders[label].runs, [], self._reading_budget)

        left = FoldedMeans(sums, self._in_groups)
        return FoldedLabelScores(self._rows, self._members.tolist(), stretches_of, in_order, left)

    @property
    def _stores(self) -> Sequence[SortedRuns]:
        return self._orders


class FoldedLabelScores(FoldedSamples):
    """Probabilities of labels, without the samples: metrics of the order take it as they take `LabelScores`.

    Attributes:
        in_samples: What is left of the order of the labels of each sample.

    Args:
        n_samples: n.
        counts: Samples (L) with each label.
        stretches: All samples by falling probability of a label.
        in_order: Has stretches looked at, here or elsewhere, and gives what comes of them in turn.
        in_samples: See above.
    """

    _binned = False

    def __init__(
        self,
        n_samples: int,
        counts: Sequence[int],
        stretches: Callable[[int], Iterable[Stretch]],
        in_order: InOrder,
        in_samples: FoldedMeans,
    ) -> None:
        super().__init__(counts, stretches, in_order, grouped=in_samples.in_groups is not None)
        # A sample can have several labels, or none.
        self.n_samples, self.in_samples = n_samples, in_samples

    @property
    def is_mirrored(self) -> bool:
        """Never: two labels have an order each."""
        return False

    @lazy
    def n(self) -> Array:
        """All samples, shape ()."""
        return np.asarray(float(self.n_samples))

    @lazy
    def rest(self) -> Array:
        """Samples without each label, shape (L)."""
        return each(self.n) - self.actual


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


# What is said of the sets of a sample: means over the samples, of values that all of them have.
OF_SETS: Final[tuple[Metric[Any], ...]] = (
    subset_accuracy,
    hamming_loss,
    samples_precision,
    samples_recall,
    samples_f1,
    samples_jaccard,
)
# Sizes of sets that are gathered before they are counted together.
_GATHERED: Final = 1 << 18


class LabelFold:
    """Samples of L labels. States of parts are merged in any order and give the same answers, bit for bit.

    Args:
        n_labels: L.
        scores: Takes the probabilities of the labels, where there are some.
        grouped: Do samples have groups?
    """

    def __init__(self, n_labels: int, scores: LabelScoresFold | None = None, *, grouped: bool = False) -> None:
        self._moments, self._scores = LabelMoments(n_labels), scores
        self._in_groups = ValuesInGroups(OF_SETS) if grouped else None
        self._sizes: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []

    @property
    def n_groups(self) -> int:
        """How many groups there were when they were looked at last."""
        return 0 if self._in_groups is None else self._in_groups.n_groups

    @property
    def bytes_of_groups(self) -> int:
        """Bytes in memory for sums within groups then."""
        of_scores = 0 if self._scores is None else self._scores.bytes_of_groups
        return of_scores + (0 if self._in_groups is None else self._in_groups.nbytes)

    def add(
        self, truth: Mask, predicted: Mask, probabilities: Array | None = None, groups: Groups | None = None
    ) -> None:
        """Add samples.

        Args:
            truth: Labels that they have (n, L).
            predicted: Labels that were predicted (n, L).
            probabilities: Of the labels (n, L).
            groups: A number for the group of each (n).

        Raises:
            ValueError: there are probabilities or groups where there are to be none, or the other way round, the shapes
                do not fit, or a probability is no number in [0, 1]. Nothing was added then.
        """
        if truth.shape != predicted.shape or truth.shape[1:] != (self._moments.n_labels,):
            expected = f"expected two tables (n, {self._moments.n_labels})"
            raise ValueError(f"{expected}, got {truth.shape} and {predicted.shape}")
        if (self._scores is None) != (probabilities is None) or (self._in_groups is None) != (groups is None):
            raise ValueError("expected probabilities and groups of all samples, or of none")
        if self._scores is not None and probabilities is not None:
            self._scores.add(truth, probabilities, groups)
        if not len(truth):
            return
        self._moments.add(truth, predicted)
        sets, most = LabelSets(truth, predicted), self._moments.n_labels + 1
        if self._in_groups is not None and groups is not None:
            self._in_groups.add(groups, said_of_samples(OF_SETS, sets))
        codes = (sets.hits * most + sets.actual) * most + sets.predicted_size
        self._gather([np.unique(codes.astype(np.int64), return_counts=True)])

    def merge(self, other: "LabelFold") -> None:
        """Take in another state, of the same labels.

        Raises:
            ValueError: it has another number of labels, or one of them alone has probabilities or groups.
        """
        self._check_mergeable(other)
        if self._scores is not None and other._scores is not None:
            self._scores.merge(other._scores)
        self._moments.merge(other._moments)
        self._gather(other._sizes)
        if self._in_groups is not None and other._in_groups is not None:
            self._in_groups.merge(other._in_groups)

    def close(self) -> None:
        """Delete the files."""
        if self._scores is not None:
            self._scores.close()

    def finish(self, in_order: InOrder = map) -> FoldedLabels[LabelMoments]:
        """What is left of the samples.

        Args:
            in_order: Has stretches of the orders looked at, here or in other processes.

        Raises:
            ValueError: there is no sample.
        """
        if not self._sizes:
            raise ValueError("expected at least one sample")
        codes, times = self._counted()
        most = self._moments.n_labels + 1
        hits, actual, predicted = (
            part.astype(np.float64) for part in (codes // most**2, codes // most % most, codes % most)
        )
        sets = CountedSets(hits, actual, predicted, self._moments.n_labels, times.astype(np.float64))
        scores = None if self._scores is None else self._scores.finish(in_order)
        return FoldedLabels(self._moments, sets, scores, self._in_groups)

    def _check_mergeable(self, other: "LabelFold") -> None:
        own, theirs = self._moments.n_labels, other._moments.n_labels
        if own != theirs:
            raise ValueError(f"states of {own} and of {theirs} labels cannot be merged")
        if (self._scores is None) != (other._scores is None):
            raise ValueError("states with probabilities and without cannot be merged")
        if (self._in_groups is None) != (other._in_groups is None):
            raise ValueError("states with groups and without cannot be merged")

    def _gather(self, sizes: list[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> None:
        self._sizes += sizes
        if self._sizes and sum(codes.size for codes, _ in self._sizes[1:]) > max(_GATHERED, self._sizes[0][0].size):
            self._sizes = [self._counted()]

    def _counted(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        codes, places = np.unique(np.concatenate([codes for codes, _ in self._sizes]), return_inverse=True)
        times = np.zeros(codes.size, dtype=np.int64)
        np.add.at(times, places, np.concatenate([times for _, times in self._sizes]))
        return codes, times


# Sums of what metrics say: of w v, w v^2, w^2 v and w^2 v^2, and what rounding took from these.
_PRODUCTS: Final = 4


class WeightedLabelFold:
    """Samples of L labels with weights. States of parts are merged in any order and give the same answers, bit for bit.

    Samples of weight 0 are left out.

    Args:
        n_labels: L.
    """

    def __init__(self, n_labels: int) -> None:
        size = (CELLS - 1) * n_labels
        self._counts: NDArray[np.int64] = np.zeros((n_labels, CELLS), dtype=np.int64)
        self._used = 0
        self._ends = np.inf, -np.inf
        self._totals, self._pairs = ExactSums((KINDS,)), ExactSums((KINDS, size, size))
        self._values = ExactSums((2 * _PRODUCTS, len(OF_SETS)))

    @property
    def used(self) -> int:
        """Samples so far with a weight above 0."""
        return self._used

    def add(self, truth: Mask, predicted: Mask, weights: Array) -> None:
        """Add samples: labels that they have (n, L), those that were predicted (n, L), and weights (n), 0 or more."""
        used = weights > 0
        truth, predicted, weights = truth[used], predicted[used], weights[used]
        if not weights.size:
            return
        self._used += weights.size
        self._ends = min(self._ends[0], float(weights.min())), max(self._ends[1], float(weights.max()))
        self._counts += LabelPairs(truth, predicted).counts
        for start in range(0, weights.size, BLOCK):
            part = slice(start, start + BLOCK)
            self._add(truth[part], predicted[part], weights[part])

    def merge(self, other: "WeightedLabelFold") -> None:
        """Take in another state, of the same labels."""
        self._used += other._used
        self._ends = min(self._ends[0], other._ends[0]), max(self._ends[1], other._ends[1])
        self._counts = self._counts + other._counts
        for own, theirs in ((self._totals, other._totals), (self._pairs, other._pairs), (self._values, other._values)):
            own.merge(theirs)

    def finish(self) -> FoldedLabels[WeightedMoments]:
        """What is left of the samples.

        Raises:
            ValueError: there is no sample of a weight above 0.
        """
        if not self._used:
            raise ValueError("expected at least one sample")
        total, squares = self._totals.exact()
        weighed = Weighed(total, squares, self._used)
        exact, size = self._values.exact(), _PRODUCTS * len(OF_SETS)
        values = [rounded + rest for rounded, rest in zip(exact[:size], exact[size:], strict=True)]
        sums = {
            metric.key: SumOfWeighted(values[place :: len(OF_SETS)], weighed) for place, metric in enumerate(OF_SETS)
        }
        moments = WeightedMoments(self._counts, self._pairs.exact(), weighed, self._ends)
        return FoldedLabels(moments, FoldedMeans(sums))

    def _add(self, truth: Mask, predicted: Mask, weights: Array) -> None:
        both = np.stack([weights, weights * weights])
        self._totals.add(both.copy(), row_sums)
        cells = np.concatenate([predicted & ~truth, truth & ~predicted, truth & predicted], axis=1).astype(np.float64)
        self._pairs.add(both, partial(_in_pairs, cells))
        values = said_of_samples(OF_SETS, LabelSets(truth, predicted))
        # By weights and by their squares; what rounding took stands last.
        parts = zip(weighted_powers(weights, values), weighted_powers(weights * weights, values), strict=True)
        rows = np.concatenate([own for part in parts for own in part])
        self._values.add(rows.reshape(2 * _PRODUCTS, len(OF_SETS), -1), row_sums)


def _in_pairs(cells: Array, rows: Array) -> Array:
    """Sums (k, 3 L, 3 L) of rows (k, n) over the samples in two cells at once."""
    return np.stack([(cells * row[:, None]).T @ cells for row in rows])
