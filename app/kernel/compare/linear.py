"""Runs compared on metrics of probabilities in closed form: every sample's influence, and what runs share of it.

Influences add up like the values they belong to, so the difference of two runs on the same samples has the difference
of their influences: for an area that is DeLong's test, for a mean loss the paired t test. Of streamed samples the sums
of values and their products say the same.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from app.kernel.compare.differences import StudentDifferences
from app.kernel.compare.paired.joint import JointCounts, combine
from app.kernel.compare.paired.tests import ChiSquared, quadratic
from app.kernel.metrics.card import Scale
from app.kernel.metrics.expression import Combination, Every, Expression, Measure, is_smooth, measures, of_each_class
from app.kernel.numerics.arrays import Array, Mask, silently
from app.kernel.samples.influence import AreaOf, LinearMethod, Strata
from app.kernel.samples.losses import Codes
from app.kernel.samples.scores import Scores
from app.kernel.streamed.influences import Leaf, RowSums, RunInfluences
from app.kernel.streamed.rows import Rows, Table
from app.kernel.streamed.scores import MOST_CLASSES, StreamedScores
from app.kernel.uncertainty.groups import Grouping, variance_freedom
from app.kernel.uncertainty.influence import Bounds, Influences, Linearisation, UnitInfluences, by_groups, samples_about

# Relative to those of the two runs, a variance of their difference below this is rounding.
_ROUNDING = 1e-14
# Relative to the values, a deviation below this is too.
_NO_DIFFERENCE = 1e-12


# Metrics of something as sums over its units.
Linear = Influences | UnitInfluences


def linearised(expression: Expression, of: Linear) -> list[Linearisation] | None:
    """The V values of an expression as sums over the samples; None where one of them has no closed form.

    Means of metrics have the mean of their influences, by the derivatives of the mean. None where influences were added
    up before, sample by sample of each metric: how these go together is not known then.
    """
    if isinstance(expression, Measure):
        metric = expression.metric
        classes = range(of.n_classes) if isinstance(expression.of, Every) else (expression.of,)
        found = [of.of(metric, code, parameters=expression.parameters) for code in classes]
        known = [one for one in found if one is not None]
        return known if len(known) == len(found) else None
    slopes = expression.card.slopes if isinstance(expression, Combination) else None
    if not isinstance(expression, Combination) or slopes is None:
        return None
    parts: list[Linearisation] = []
    for part in expression.parts:
        some = linearised(part, of)
        if some is None:
            return None
        parts.extend(some)
    if any(part.n_samples is not None for part in parts):
        return None
    values = np.array([part.value for part in parts])
    with silently():
        value, weights = (
            float(expression.card.compute(values, **expression.parameters)),
            slopes(values, **expression.parameters),
        )
    if np.isfinite(value) and not np.isfinite(weights).all():
        # At a part of 0 the mean has no derivative.
        return None
    influence = np.zeros(of.n_units)
    for weight, one in zip(weights.tolist(), parts, strict=True):
        influence += weight * one.influence
    return [_combined(value, influence, parts)]


def _combined(value: float, influence: Array, parts: Sequence[Linearisation]) -> Linearisation:
    on_logit = all(part.scale is Scale.LOGIT and part.bounds == parts[0].bounds for part in parts)
    by_class = all(part.strata is Strata.BY_CLASS for part in parts)
    return Linearisation(
        value,
        influence,
        Scale.LOGIT if on_logit else Scale.LINEAR,
        Strata.BY_CLASS if by_class else Strata.WHOLE,
        LinearMethod.INFLUENCE_LOGIT if on_logit else LinearMethod.INFLUENCE,
        _hull([part.bounds for part in parts]),
        freedom=float(np.min([part.freedom for part in parts])),
        worth=parts[0].worth,
        weights=parts[0].weights,
        classes=tuple(classes for part in parts for classes in part.classes),
    )


def _hull(bounds: Sequence[Bounds]) -> Bounds:
    lows, highs = [low for low, _ in bounds if low is not None], [high for _, high in bounds if high is not None]
    return min(lows) if len(lows) == len(bounds) else None, max(highs) if len(highs) == len(bounds) else None


@dataclass(frozen=True, slots=True, eq=False)
class LinearRuns:
    """One value of R runs with its sampling covariance.

    Attributes:
        values: (R), NaN where undefined.
        covariance: (R, R), 0 between runs on different samples.
        freedom: (R), of the variances.
        methods: (R), how the limits of each run alone are made.
        guards: (R), deviations to draw areas with that have no variance, such as 1: those of Newcombe's interval.
        at_end: (R), 1 at the upper end of the range, -1 at the lower, else 0.
        alike: (R, R), the largest covariance that an unknown pairing leaves possible; None where the pairing is known.
        against: The smallest.
        influences: By run, what each unit or group of units adds, where degrees of freedom follow from it.
        counted: Of a share of streamed samples without weights, which of these count for which runs: as predictions
            that are right where they do.
    """

    values: Array
    covariance: Array
    freedom: Array
    methods: tuple[LinearMethod, ...]
    guards: Array
    at_end: Array
    alike: Array | None = None
    against: Array | None = None
    influences: tuple[Array, ...] = ()
    counted: JointCounts | None = None

    def variance(self, first: int, second: int, covariance: Array | None = None) -> float:
        """Return the variance of the difference of two runs; with other covariances between them where these
        are given.
        """
        between = (self.covariance if covariance is None else covariance)[first, second]
        own = float(self.covariance[first, first] + self.covariance[second, second])
        found = own - 2.0 * float(between)
        exact = _NO_DIFFERENCE * float(np.abs(self.values[[first, second]]).max())
        return 0.0 if found <= max(_ROUNDING * own, exact * exact) else found

    def difference(self, first: int, second: int, covariance: Array | None = None) -> StudentDifferences:
        """First less second; of runs on one test set whose pairing is unknown at the smallest covariance, if no other
        is given.
        """
        least = self.against if covariance is None else covariance
        with silently():
            gap = self.values[first] - self.values[second]
        if abs(gap) <= _NO_DIFFERENCE:
            gap = np.zeros(())
        error, freedom = self.variance(first, second, least) ** 0.5, self.pair_freedom(first, second)
        return StudentDifferences(*(np.atleast_1d(np.asarray(one, np.float64)) for one in (gap, error, freedom)))

    def varies(self, run: int) -> bool:
        """Has the value of a run a sampling error?"""
        return bool(self.covariance[run, run] > (_NO_DIFFERENCE * self.values[run]) ** 2)

    def pair_freedom(self, first: int, second: int) -> float:
        """Degrees of freedom of the difference: those of Welch (1947) for independent runs, else the fewer."""
        both = self.freedom[[first, second]]
        numeric = bool(self.influences)
        if self.covariance[first, second] != 0.0 or not np.isfinite(both).all():
            if numeric and self.influences[first].shape == self.influences[second].shape:
                both = np.append(both, variance_freedom(self.influences[first] - self.influences[second]))
            return float(both.min())
        if numeric:
            both = np.minimum(both, [variance_freedom(self.influences[run]) for run in (first, second)])
        own = self.covariance[[first, second], [first, second]]
        with silently():
            found = float(own.sum() ** 2 / (own**2 / both).sum())
        return found if np.isfinite(found) else float(both.min())

    def equality(self) -> ChiSquared:
        """Wald's test that all R values are the same."""
        contrasts = np.eye(self.values.size)[:-1] - np.eye(self.values.size)[1:]
        gaps, spread = contrasts @ self.values, contrasts @ self.covariance @ contrasts.T
        return quadratic(gaps, spread)

    def draw(self, draws: int, random: np.random.Generator) -> Array:
        """Joint draws (D, R) around the values with the covariance; NaN for a run without a value or variance."""
        drawn = np.full((draws, self.values.size), np.nan)
        known = np.flatnonzero(np.isfinite(self.values) & np.isfinite(self.covariance.diagonal()))
        if not known.size:
            return drawn
        sizes, axes = np.linalg.eigh(self.covariance[np.ix_(known, known)])
        # Identical runs leave directions without variance.
        root = axes * np.sqrt(np.where(sizes > _ROUNDING * max(sizes[-1], 0.0), sizes, 0.0))
        away = random.standard_normal((draws, known.size)) @ root.T
        freedom = float(self.freedom[known].min())
        if np.isfinite(freedom):
            away *= np.sqrt(freedom / random.chisquare(freedom, draws))[:, None]
        drawn[:, known] = self.values[known] + away
        for run in np.flatnonzero(self.guards):
            noise = self.guards[run] * random.standard_normal(draws)
            if self.at_end[run]:
                # From the end of the range there is one way only.
                noise = -self.at_end[run] * np.abs(noise)
            drawn[:, run] = self.values[run] + noise
        return drawn


def join_runs(
    parts: Sequence[Linearisation],
    truths: Sequence[Codes],
    *,
    paired: bool,
    same_items: bool,
    groupings: Sequence[Grouping] = (),
) -> LinearRuns:
    """One value of R runs together.

    Args:
        parts: (R) of samples in one order when they are paired.
        truths: (R) class codes of the samples of each.
        paired: The samples of all runs are the same, in the same order.
        same_items: They are the same in an unknown order.
        groupings: (R) of samples that come in groups, the same for all paired runs; none where they are independent. Of
            paired runs a group counts that has any influence on one of them.
    """
    if groupings:
        about = [samples_about(part, one) for part, one in zip(parts, groupings, strict=True)]
        if paired:
            about = [np.max(about, axis=0)] * len(parts)
        parts = [by_groups(*each) for each in zip(parts, groupings, about, strict=True)]
    numeric = bool(groupings) or any(part.method is LinearMethod.JACKKNIFE for part in parts)
    influences = tuple(part.influence for part in parts) if numeric else ()
    if paired:
        together = np.stack([part.influence for part in parts])
        return replace(runs_of(parts, together @ together.T), influences=influences)
    covariance = np.diag([float(np.vecdot(part.influence, part.influence)) for part in parts])
    runs = replace(runs_of(parts, covariance), influences=influences)
    if not same_items:
        return runs
    if groupings or len({part.influence.size for part in parts}) > 1:
        # Nothing is known of how groups, or cells, go together but that no correlation is beyond 1.
        deviations = np.sqrt(np.diagonal(covariance))
        return replace(runs, alike=np.outer(deviations, deviations), against=-np.outer(deviations, deviations))
    # Within a class the sum of products is greatest when both are sorted alike (Hoeffding 1940).
    of_runs = [(part.influence, y) for part, y in zip(parts, truths, strict=True)]
    rising = np.stack([influence[np.lexsort((influence, y))] for influence, y in of_runs])
    falling = np.stack([influence[np.lexsort((-influence, y))] for influence, y in of_runs])
    return replace(runs, alike=rising @ rising.T, against=rising @ falling.T)


def runs_of(parts: Sequence[Linearisation], covariance: Array) -> LinearRuns:
    """One value of R runs with a covariance (R, R) that is known."""
    return LinearRuns(
        np.array([part.value for part in parts]),
        covariance,
        np.array([max(part.freedom, 1.0) for part in parts]),
        tuple(part.method for part in parts),
        np.array([part.guard for part in parts]),
        np.array([float(part.value == part.bounds[1]) - float(part.value == part.bounds[0]) for part in parts]),
    )


def hits_of(share: Linearisation) -> Array:
    """Return 1 for each sample (n) that counts for a share of samples, else 0, from their influence on it."""
    size = share.influence.size
    counted: Array = np.round(share.influence * np.sqrt(size * max(size - 1, 1)) + share.value)
    return counted


# Columns of the rows: the class of a sample, and its weight above 0.
TRUTH, WEIGHT = "y", "w"
# Values of all runs together whose products are summed with each other.
_MOST = 64


def output(run: int, code: int) -> str:
    """Name of the column with what a run says of a class."""
    return f"{_outputs(run)}{code}"


def _outputs(run: int) -> str:
    return f"output_{run}_"


def _leaves_of(value: Expression, n_classes: int, n_runs: int) -> list[Leaf] | None:
    """Return the metrics that one value is made of; None where one says nothing of single samples, they are too many,
    or the value has no derivatives.
    """
    if not is_smooth(value):
        return None
    found = [
        Leaf.made(leaf.metric, code, leaf.parameters)
        for leaf in measures(value)
        for code in (range(n_classes) if isinstance(leaf.of, Every) else (leaf.of,))
    ]
    leaves = [leaf for leaf in found if leaf is not None and (n_classes <= MOST_CLASSES or not _in_one_order(leaf))]
    few = len({leaf.key for leaf in leaves}) * n_runs <= _MOST
    return leaves if few and len(leaves) == len(found) else None


def _in_one_order(leaf: Leaf) -> bool:
    return leaf.form.area is not None and leaf.form.area.of in (AreaOf.ENTRIES, AreaOf.PAIRS, AreaOf.PAIR_SHARES)


def streamed_runs(
    rows: Rows, expressions: Sequence[Expression], n_classes: int, are_probabilities: Sequence[bool], *, weighted: bool
) -> "StreamedRuns":
    """Metrics of R runs on the same samples, by one pass along each order and one over all rows.

    Args:
        rows: `TRUTH`, `WEIGHT` and each `output`, of the samples that all runs have, with weights above 0.
        expressions: Metrics of probabilities.
        n_classes: K.
        are_probabilities: For each run, whether its outputs are; they are scores else.
        weighted: Have the samples weights?
    """
    runs = [
        StreamedScores(rows, n_classes, probabilities=sure, weighted=weighted, outputs=_outputs(run))
        for run, sure in enumerate(are_probabilities)
    ]
    values = [value for expression in expressions for value in of_each_class(expression, n_classes)]
    known = [leaves for value in values if (leaves := _leaves_of(value, n_classes, len(runs))) is not None]
    keys = [*{leaf.key: leaf for leaves in known for leaf in leaves}]
    shares = {leaves[0].key for leaves in known if len(leaves) == 1 and leaves[0].form.is_share and not weighted}
    counted: dict[Hashable, JointCounts] = {}
    alike = np.ones((len(runs), len(runs)), np.bool_)

    def count(part: Table, scores: Sequence[Scores], found: Array) -> None:
        y = part[TRUTH].astype(np.int64)
        for first, second in combinations(range(len(runs)), 2):
            alike[first, second] &= np.array_equal(scores[first].columns, scores[second].columns)
        for key in shares:
            own = found[:, keys.index(key)]
            if np.isfinite(own).all():
                # Samples that count are predictions that are right.
                joint = combine(y, np.where(own > 0, y, (y + 1) % n_classes), n_classes)
                counted[key] = counted[key].with_more(joint) if key in counted else joint

    sums = RowSums.of(runs, [leaf for leaves in known for leaf in leaves], known, count)
    return StreamedRuns(runs, n_classes, alike, sums, counted)


@dataclass(frozen=True, slots=True, eq=False)
class StreamedRuns:
    """Sums over the samples that R runs of K classes have in common.

    Attributes:
        scores: Of each run.
        alike: (R, R) do two runs, the earlier one first, say the same of every sample?
    """

    scores: Sequence[StreamedScores]
    n_classes: int
    alike: Mask
    _sums: RowSums
    _counted: Mapping[Hashable, JointCounts]

    def of(self, expression: Expression) -> tuple[LinearRuns, ...] | None:
        """The values of an expression; None where it was not summed, or has no closed form."""
        found = [self._of(value) for value in of_each_class(expression, self.n_classes)]
        known = tuple(one for one in found if one is not None)
        return known if len(known) == len(found) else None

    def values(self, expression: Expression) -> Array | None:
        """Values (R, V); None as above."""
        found = self.of(expression)
        return None if found is None else np.stack([one.values for one in found], axis=-1)

    def ruled_out(self, run: int) -> Codes:
        """Classes of which a run has samples whose value is infinite."""
        width = len(self._sums.leaves)
        return np.flatnonzero(self._sums.moments.infinite()[run * width : (run + 1) * width].any(axis=0))

    def _of(self, value: Expression) -> LinearRuns | None:
        leaves = _leaves_of(value, self.n_classes, len(self.scores))
        read = None if leaves is None else self._sums.read(leaves)
        if leaves is None or read is None:
            return None
        found = [linearised(value, RunInfluences(read, run)) for run in range(len(self.scores))]
        parts = [one[0] for one in found if one is not None]
        if len(parts) < len(found):
            return None
        covariance = read.covariance(parts)
        # As if one sample had all the influence.
        alone = [
            replace(part, influence=np.sqrt(np.maximum(covariance[[run], run], 0.0))) for run, part in enumerate(parts)
        ]
        counted = self._counted.get(leaves[0].key) if isinstance(value, Measure) else None
        return replace(runs_of(alone, covariance), counted=counted)
