"""Influence of single samples, groups, queries and labels on metrics, and the limits that follow from it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.matrix.table import AdditiveGradient, LabelTable
from app.kernel.metrics.card import Inputs, Mean, Metric, Scale
from app.kernel.metrics.expression import Expression, Measure, Subject, bounds, compute, measures, usual_measure
from app.kernel.numerics.arrays import Array, kept, kish_effective_n, last_inside, silently, sums_by_code
from app.kernel.numerics.scipy_bridge import student_quantile
from app.kernel.numerics.weighted_units import Terms
from app.kernel.samples.areas import ROUNDING, hanley_mcneil_error
from app.kernel.samples.contingency import Contingency
from app.kernel.samples.influence import Influence, LinearMethod, Strata, WeightedSamples
from app.kernel.samples.label_units import CELLS, LabelPairs, LabelScores
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty import intervals
from app.kernel.uncertainty.closed_forms import FEW, moved_both_ways
from app.kernel.uncertainty.designs import RECALL, DesignedRate, DesignedSums, LeftOut, Sampled, surer
from app.kernel.uncertainty.groups import Grouping, carrying_freedom, moved_by_groups, widened
from app.kernel.uncertainty.intervals import (
    ProportionInterval,
    correlated,
    jeffreys,
    limits_around,
    proportion_limits,
    two_sided_z,
)

Bounds = tuple[float | None, float | None]


@dataclass(frozen=True, slots=True, eq=False)
class Linearisation:
    """A metric with what each sample adds to its sampling error.

    Attributes:
        value: The metric; NaN where it is undefined, and then the influence is too.
        influence: (n) in the order of the samples; the sum of squares is the variance.
        scale: On which limits are symmetric.
        strata: What its variance takes as fixed.
        method: How limits are made.
        bounds: Range of the metric, None where there is no end.
        freedom: Degrees of freedom of the variance, infinite where it is taken as known.
        sizes: Members and non-members of the class, for an area.
        worth: Of weighted samples, how many they are and how many of one weight are worth as much.
        n_samples: How many samples there are, where their influence was added up.
        n_groups: How many groups of one size are worth as many as there are, where the influence is that of groups.
        about: (S, G) weight of the samples of each group that have any influence, by class where a metric is of
            classes, where the influence is that of groups (G).
        weights: (n) of the samples; None is 1 each.
        classes: Class (n) of each sample, or whether it is in one, where a metric is of classes; several of these where
            it is made of several metrics.
        bias: How far noise moves the value upwards, taken off before limits are made; infinite where it is not known,
            and then there are none.
        second_order: Variance of the second order, which influences leave out.
        skewness: Of the sampling distribution, where it does not follow from the influence: of sums that were added up
            before, and 0 of what is no sum.
        design_effect: How many times larger the variance is than that of as many samples of one weight, where the
            influence of weighted samples was added up before.
    """

    value: float
    influence: Array
    scale: Scale = Scale.LINEAR
    strata: Strata = Strata.WHOLE
    method: LinearMethod = LinearMethod.INFLUENCE
    bounds: Bounds = (None, None)
    freedom: float = np.inf
    sizes: tuple[float, float] | None = None
    worth: tuple[int, float] | None = None
    n_samples: int | None = None
    n_groups: float | None = None
    about: Array | None = None
    weights: Array | None = None
    classes: tuple[NDArray[Any], ...] = ()
    design_effect: float | None = None
    bias: float = 0.0
    second_order: float = 0.0
    skewness: float | None = None

    @classmethod
    def of(cls, metric: Metric[Any], value: float, influence: Array, **known: Any) -> Self:
        """A metric with the range and the scale that its card says, and what else is known."""
        card = metric.card
        return cls(value, influence, card.inference.scale, bounds=card.range, **known)

    @property
    def variance(self) -> float:
        """Variance of the value's sampling distribution."""
        return float(np.vecdot(self.influence, self.influence)) + self.second_order

    def reach(self, level: float) -> Array:
        """Distances (2) of limits below and above the value, in standard errors: Student's quantile, a normal one where
        the variance is taken as known; further out where few samples carry the weight.

        Of a skewed mean the one on the long side lies further out: Student's t alone held losses in 85 to 92 % of cases
        (benchmarks/RESULTS.md). On the other side it would come nearer, which fails where weights differ much.
        """
        if self.n_groups is not None or np.isfinite(self.freedom):
            reach = float(student_quantile((1.0 + level) / 2.0, self.freedom))
        else:
            reach = two_sided_z(level) * (1.0 if self.worth is None else surer(level, *self.worth))
        return np.maximum(reach, np.array([1.0, -1.0]) * unskewed(np.array([reach, -reach]), self._skewness))

    @property
    def _skewness(self) -> float:
        """Skewness of the sampling distribution of a sum: that of one sample over the root of their number."""
        if self.method not in (LinearMethod.HALL_T, LinearMethod.INFLUENCE):
            return 0.0
        if self.skewness is not None:
            return self.skewness
        with silently():
            return float(np.power(self.influence, 3).sum() / self.variance**1.5)

    def as_counts(self, level: float) -> tuple[Array, Array]:
        """A share of the samples as hits and samples for intervals of proportions, as many as they are worth."""
        spread, units = self.variance, self.n_groups
        size = float(self.influence.size if self.n_samples is None else self.n_samples)
        if units is None:
            if self.worth is None:
                return np.asarray(self.value * size), np.asarray(size)
            size, units = self.worth
            spread *= (size - 1.0) / size
        return DesignedRate(*map(np.asarray, (self.value, spread, size, units, units))).as_counts(level)

    @property
    def guard(self) -> float:
        """Deviation of an area without variance, from the limits that it is given instead; 0 for all else."""
        found = limits(self)
        if found is None or found.method is not LinearMethod.NEWCOMBE:
            return 0.0
        return max(self.value - found.low, found.high - self.value) / two_sided_z(0.95)

    @property
    def sampled(self) -> Sampled:
        """The way in which its samples are drawn, which the name of the limits says."""
        return Sampled.of(grouped=self.n_groups is not None, weighted=self.worth is not None)


def unskewed(deviates: Array, skewness: float) -> Array:
    """Return the deviates (...) of a mean in standard errors whose cubic transformation has these deviates, so that it
    is as good as normal (Hall 1992, On the removal of skewness by transformation): t + g t^2 / 3 + g^2 t^3 / 27 + g / 6
    = x, with the skewness g.
    """
    moved = deviates - skewness / 6.0
    root = np.cbrt(1.0 + skewness * moved)
    found: Array = 3.0 * moved / (1.0 + root + root * root)
    return found


def by_influence(scale: Scale) -> LinearMethod:
    """Return the method of limits on a scale."""
    return LinearMethod.INFLUENCE_LOGIT if scale is Scale.LOGIT else LinearMethod.INFLUENCE


@dataclass(frozen=True, slots=True)
class LinearLimits:
    """Ends of an interval, and how they were made."""

    low: float
    high: float
    method: LinearMethod


class Influences(WeightedSamples):
    """Metrics of one set of samples, linearised; what several of them need is computed once."""

    @property
    def n_units(self) -> int:
        """Number of samples."""
        return self.scores.n_samples

    @property
    def n_classes(self) -> int:
        """K."""
        return self.scores.n_classes

    def of(
        self, metric: Metric[Scores], class_index: int | None = None, *, parameters: Mapping[str, Any] | None = None
    ) -> Linearisation | None:
        """A metric of probabilities as a sum over the samples; None where there is no closed form.

        Args:
            metric: Of probabilities.
            class_index: The class, for a metric of one class.
            parameters: Of the metric, its defaults where None.

        Raises:
            ValueError: a metric of one class comes without it.
        """
        card = metric.card
        form = card.inference.influence
        if form is None or not (form.of_weighted or self.scores.weights is None):
            return None
        chosen = {**card.defaults, **(parameters or {})}
        with silently():
            computed = metric.compute(self.scores, **chosen)
            if computed.ndim and class_index is None:
                raise ValueError(f"{metric.key} is a metric of one class")
            value = float(computed[class_index] if computed.ndim else computed)
            found = Influence(np.full(self.scores.n_samples, np.nan), form.method)
            if np.isfinite(value):
                found = form.make(self, class_index, chosen)
        worth = None if self.scores.weights is None else (self.scores.whole.used, self.scores.whole.effective)
        known = {"strata": found.strata, "method": found.method, "freedom": found.freedom, "sizes": found.sizes}
        if form.is_of_classes(found) and not isinstance(self.scores, LabelScores):
            known["classes"] = (self.scores.y if class_index is None else self.scores.members(class_index),)
        return Linearisation.of(metric, value, found.of_samples, worth=worth, weights=self.scores.weights, **known)


# Relative to the terms that are added up.
ROUNDING_OF_SUMS = 1e-13


def limits(
    linearisation: Linearisation, level: float = 0.95, share: ProportionInterval = ProportionInterval.WILSON
) -> LinearLimits | None:
    """Ends of the interval of a value; None where it is undefined or has no variance.

    What is a share of the samples has the limits of ``share``, a mean those of Student's t that lean as it does (Hall
    1992). An area of 0 or 1, or without variance, has the limits of Newcombe (2006), method 5.
    """
    value, method, spread = linearisation.value, linearisation.method, linearisation.variance
    if not np.isfinite(value) or np.isnan(spread) or np.isinf(linearisation.bias):
        return None
    if method is LinearMethod.WILSON:
        below, above = map(float, proportion_limits(*linearisation.as_counts(level), level, share))
        return LinearLimits(below, above, LinearMethod(share.value)) if below < above else None
    low, high = linearisation.bounds
    if spread == 0.0 and linearisation.scale is not Scale.LOGIT:
        return None
    if method is LinearMethod.DELONG_LOGIT and linearisation.sizes is not None and low is not None and high is not None:
        square = (high - low) ** 2
        spread = square * steadied((value - low) / (high - low), spread / square, *linearisation.sizes)
    ends = _limits_on_scale(linearisation, linearisation.reach(level) * spread**0.5)
    if ends is None and linearisation.sizes is not None and low is not None and high is not None:
        width, method = high - low, LinearMethod.NEWCOMBE
        of_area = newcombe_area_limits((value - low) / width, *linearisation.sizes, level)
        ends = low + width * of_area[0], low + width * of_area[1]
    return None if ends is None else LinearLimits(*ends, method)


def _limits_on_scale(linearisation: Linearisation, widths: Array) -> tuple[float, float] | None:
    """Ends of a value on the scale of the metric, so far (2) below and above it as it is linear; None where the logit
    scale has none, or they have no width.
    """
    value, (low, high) = linearisation.value - linearisation.bias, linearisation.bounds
    bounded = low is not None and high is not None and (not linearisation.bias or low < value < high)
    scale = Scale.LOGIT if linearisation.scale is Scale.LOGIT and bounded else Scale.LINEAR
    (below, _), (_, above) = np.array(limits_around(np.asarray(value), widths, scale, low, high)).tolist()
    return None if np.isnan(below) or np.isnan(above) else (below, above)


def effective_samples(linearisation: Linearisation) -> float:
    """Return the number of samples that carry the variance: (sum of squares)^2 / sum of fourth powers; NaN without
    variance.
    """
    squares = np.square(linearisation.influence)
    with silently():
        return float(np.divide(np.sum(squares) ** 2, np.sum(squares * squares)))


def area_alone(area: float, variance: float, positives: float, negatives: float) -> Linearisation:
    """An area with a variance, without what each sample adds to it."""
    method = LinearMethod.DELONG_LOGIT
    sizes = positives, negatives
    return Linearisation(area, np.array([variance**0.5]), Scale.LOGIT, Strata.BY_CLASS, method, (0.0, 1.0), sizes=sizes)


def steadied(area: float, variance: float, positives: float, negatives: float) -> float:
    """DeLong's variance of an area, made larger where few samples of a class say it.

    By luck few samples have a high area and a low variance at once: with 5 to 29 members DeLong's limits alone lay
    above the truth in 8 to 16 % of cases. Where Newcombe's variance is larger, it is the geometric mean of both, with
    as many parts of DeLong's as the rarer side has samples, and 20 of the other (benchmarks/RESULTS.md).
    """
    rarer = min(positives, negatives)
    if variance == 0.0 or rarer >= FEW:
        return variance
    expected = max(newcombe_variance(area, positives, negatives), variance)
    return float(variance * (expected / variance) ** (_STEADYING / (_STEADYING + rarer)))


# Samples that Newcombe's variance of an area counts as, beside those of the rarer side.
_STEADYING = 20.0


def newcombe_variance(area: float, positives: float, negatives: float) -> float:
    """Variance of an area A from itself and the class sizes m and n: A(1-A) (1 + s (1-A)/(2-A) + s A/(1+A)) / (m n),
    Hanley & McNeil's with s = (m + n)/2 - 1 for both class sizes less 1. Newcombe (2006), method 5.
    """
    size = (positives + negatives) / 2.0 - 1.0
    parts = (1.0 - area) / (2.0 - area) + area / (1.0 + area)
    return area * (1.0 - area) * (1.0 + size * parts) / (positives * negatives)


def newcombe_area_limits(area: float, positives: float, negatives: float, level: float = 0.95) -> tuple[float, float]:
    """Limits of an area from itself and the class sizes alone, of positive width also at 0 and 1. Newcombe (2006),
    method 5.

    The values t with (area - t)^2 <= z^2 V(t), V being `newcombe_variance`.
    """
    z = two_sided_z(level)

    def inside(t: float) -> bool:
        return (area - t) ** 2 <= z * z * newcombe_variance(t, positives, negatives)

    return last_inside(inside, area, 0.0), last_inside(inside, area, 1.0)


def hanley_mcneil_limits(area: float, positives: float, negatives: float, level: float = 0.95) -> tuple[float, float]:
    """Limits area -+ z standard errors from the area and the class sizes alone, cut at 0 and 1. Hanley & McNeil (1982).

    Without width where the area is 0 or 1.
    """
    sizes = np.asarray(area), np.asarray(positives), np.asarray(negatives)
    reach = two_sided_z(level) * float(hanley_mcneil_error(*sizes))
    return max(area - reach, 0.0), min(area + reach, 1.0)


def by_groups(linear: Linearisation, grouping: Grouping, about: Array | None = None) -> Linearisation:
    """Return the linearised metric with the influence of each group (G) in place of each sample.

    Influences are summed within the groups (Liang & Zeger 1986, Obuchowski 1997 for areas) and widened to what the
    value moves by without the group, as `widened` says: the variance is that of the jackknife. Degrees of freedom are
    those of as many groups of one weight as are worth as much, of metrics of classes of as many as carry the variance.
    NaN where all, or all of a class, is in one group.

    Args:
        linear: The metric.
        grouping: Groups of the samples.
        about: Weight (S, G) of the samples of each group that count; None is those that have any influence.
    """
    sums = linear.influence
    if linear.about is None:
        sums = sums_by_code(grouping.codes, linear.influence, grouping.n_groups)
        # Of groups that are all alike the sums are 0 but for rounding, and no variance is known.
        sizes = sums_by_code(grouping.codes, np.abs(linear.influence), grouping.n_groups)
        sums = np.where(np.abs(sums) <= ROUNDING_OF_SUMS * sizes, 0.0, sums)
    alone, about = about is None, samples_about(linear, grouping) if about is None else about
    worth = kish_effective_n(about.sum(axis=0))
    sums = widened(sums, about) if worth else sums
    carrying = carrying_freedom(sums, about, alone=alone)
    return replace(
        linear,
        influence=sums,
        freedom=min(linear.freedom, worth - 1.0, carrying) if worth else linear.freedom,
        sizes=None,
        n_samples=linear.influence.size if linear.n_samples is None else linear.n_samples,
        n_groups=worth or 2.0,
        second_order=0.0,
    )


def samples_about(linear: Linearisation, grouping: Grouping) -> Array:
    """Return what the samples of each group weigh that have any influence on a metric, by class where it is of classes
    (S, G).
    """
    if linear.about is not None:
        return linear.about
    used, each = linear.influence != 0, 1.0 if linear.weights is None else linear.weights
    if not linear.classes:
        return grouping.held((), used * each)
    concerned = grouping.held(linear.classes, used).sum(axis=1, keepdims=True) > 0
    held: Array = grouping.held(linear.classes, np.ones(used.size) * each) * concerned
    return held


@dataclass(frozen=True, slots=True, eq=False)
class UnitInfluences:
    """Metrics of one set of units, linearised.

    Attributes:
        subject: The units, in their weights.
        weights: (n) of the units, drawn with replacement; None is 1 each.
        left_out: Tables without each group; None of independent units, of too many groups, and where there are none.
        added_up: Is an influence one number, whose square is the sum of the squares of all units?
    """

    subject: Subject
    n_units: int
    n_classes: int
    weights: Array | None = field(default=None, kw_only=True)
    left_out: LeftOut | None = field(default=None, kw_only=True)
    added_up: ClassVar[bool] = False

    def of(
        self, metric: Metric[Any], class_index: int | None = None, *, parameters: Mapping[str, Any] | None = None
    ) -> Linearisation | None:
        """A metric whose card has ``terms`` or ``sums`` as a sum over the units; None for others.

        Of those with ``terms`` also None for one class.

        A ratio a / b of two sums has the influence (a_u - value b_u) / b (the delta method); of a mean over the m units
        that have a value these are the deviations from it, and m / (m - 1) makes their sum of squares the unbiased
        variance. Of units in weights both sums are weighted, and so is the influence of each.
        """
        card = metric.card
        terms, data = card.inference.terms, self.subject.parts[card.inputs]
        if isinstance(data, Contingency) and card.inference.sums:
            return self._of_table(metric, data, {**card.defaults, **(parameters or {})})
        if terms is None or class_index is not None:
            return None
        found: Terms = terms(data, **{**card.defaults, **(parameters or {})})
        each = np.ones(self.n_units) if self.weights is None else self.weights
        counted = each[(found.below != 0) & (each > 0)]
        known, worth = counted.size, self.worth_of(counted)
        with silently():
            below, above = float(each @ found.below), float(each @ found.above)
            value = above / below if below else np.nan
            expected = value * found.below
            deviations = each * (found.above - expected)
            # Of units that are all alike it is 0 but for rounding.
            if (np.abs(deviations) <= ROUNDING * each * np.abs(expected)).all():
                deviations[:] = 0.0
            influence = deviations * (np.sqrt(np.divide(known, known - 1.0)) / below)
        if known < 2:
            influence = np.full(influence.size, np.nan)
        return self._of_mean(metric, value, influence, known, worth)

    def between_groups(self, expression: Expression, linear: Linearisation) -> Linearisation:
        """A metric of tables with what it moves by without each group in place of influences, where that is known."""
        cards, left = [leaf.metric.card for leaf in measures(expression)], self.left_out
        if left is None or not np.isfinite(linear.value) or any(one.inputs not in left.subject.parts for one in cards):
            return linear
        if left.sizes.size > _MOST_BY_CHANCE and any("expected_information" in one.inference.sums for one in cards):
            return linear
        with silently():
            (moved,) = moved_by_groups(np.array([linear.value]), compute(expression, left.subject)[:, None])
        return replace(linear, influence=moved, about=(left.sizes * (moved != 0.0))[None], n_samples=self.n_units)

    def _of_table(
        self, metric: Metric[Contingency], table: Contingency, parameters: Mapping[str, Any]
    ) -> Linearisation:
        """A metric of classes by clusters."""
        card, n, worth = metric.card, float(table.n), None
        with silently():
            value, influence = float(metric.compute(table, **parameters)), np.full(self.n_units, np.nan)
            bias = second_order = 0.0
            if np.isfinite(value) and n > 1:
                function = partial(metric.compute, **parameters)
                if card.inference.biased:
                    bias, influence = table.jackknifed(function, card.inference.sums)
                else:
                    influence = table.influence(function, card.inference.sums)
                if self.weights is None:
                    second_order = table.second_order(function, card.inference.sums)
        if self.weights is not None:
            influence = influence * self.weights * (n / float(self.weights.sum()))
            worth = self.worth_of(self.weights[self.weights > 0])
        known = {"worth": worth, "bias": bias, "second_order": second_order, "skewness": 0.0}
        method = by_influence(card.inference.scale)
        return Linearisation.of(
            metric, value, influence, method=method, freedom=max(n - 1.0, 1.0), weights=self.weights, **known
        )

    def _of_mean(
        self, metric: Metric[Any], value: float, influence: Array, known: int, worth: tuple[int, float] | None = None
    ) -> Linearisation:
        """A ratio of sums over so many units that have a value."""
        method = LinearMethod.WILSON if metric.card.inference.is_share else LinearMethod.HALL_T
        freedom = max((known if worth is None else worth[1]) - 1.0, 1.0)
        size = self.n_units if self.added_up else None
        form = {"method": method, "freedom": freedom, "worth": worth, "n_samples": size, "weights": self.weights}
        return Linearisation.of(metric, value, influence, **form)

    def design_effect(self, linear: Linearisation) -> float:
        """Return the variance relative to that of equally many units of one weight; NaN where that is 0."""
        if linear.design_effect is not None:
            return linear.design_effect
        if self.weights is None:
            return 1.0
        used = self.weights > 0
        each, squares = self.weights[used], np.square(linear.influence[used])
        with silently():
            return float(each.size * squares.sum() / (each.sum() * (squares / each).sum()))

    def worth_of(self, counted: Array) -> tuple[int, float] | None:
        """Return the number of units with these weights, and their effective number; None without weights."""
        if self.weights is None:
            return None
        return counted.size, kish_effective_n(counted) if counted.size else 0.0


# With more groups information by chance takes too long without each of them.
_MOST_BY_CHANCE = 100
# Relative to the samples of a cell: so far it is moved up and down for a derivative.
_STEP = 2.0**-13
# Relative to the largest derivative: the two sides of a smooth function differ by less.
_SMOOTH = 0.01


class PairsOfLabels(Protocol):
    """Samples in two cells of labels at once. See `LabelPairs`."""

    def deviations(self, values: Array) -> Array:
        """Weighted deviations of samples, or of groups, from the mean of their sums of values (L, 4), or one number as
        their square root of squares.
        """
        ...

    def squares(self, values: Array) -> float:
        """Sum of squares of the sums of values (L, 4) of which the mean is 0."""
        ...


@dataclass(frozen=True, eq=False)
class LabelInfluences(UnitInfluences):
    """Metrics of samples with labels: those of single samples as of other units, areas of labels by DeLong, and those
    of the tables of the labels.

    Attributes:
        designed: Rates of the labels by the design of the samples.
    """

    pairs: PairsOfLabels
    designed: DesignedSums

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
            return super().of(metric, class_index, parameters=parameters)
        return self._of_scores.of(metric, class_index, parameters=parameters)

    @cached_property
    def _of_scores(self) -> Influences:
        return Influences(self.subject.parts[Inputs.PROBABILITIES])

    def of_tables(self, expression: Expression) -> Linearisation | None:
        """An expression of the tables of the labels with one value; None where it is another, or has no derivatives.

        NaN throughout where it has no value.
        """
        if any(leaf.metric.card.inputs is not Inputs.MATRIX for leaf in measures(expression)):
            return None
        value = compute(expression, self.table)
        if value.ndim:
            return None
        influence = np.full(1 if self.added_up else self.n_units, np.nan)
        design: float | None = np.nan
        if np.isfinite(value):
            derivatives = _declared(expression, self.table)
            if derivatives is None:
                derivatives = cell_derivatives(lambda table: compute(expression, table), self.table)
            if derivatives is None:
                return None
            influence, design = self._centred(derivatives), self._design(derivatives)
        card = expression.metric.card if isinstance(expression, Measure) else None
        scale = Scale.LINEAR if card is None else card.inference.scale
        form = scale, Strata.WHOLE, by_influence(scale), bounds(expression)
        size = self.n_units if self.added_up else None
        return Linearisation(
            float(value),
            influence,
            *form,
            worth=self._worth,
            n_samples=size,
            weights=self.weights,
            design_effect=design,
            skewness=0.0,
        )

    @property
    def _worth(self) -> tuple[int, float] | None:
        """Number and effective number of all samples that count; None without weights."""
        return None if self.weights is None else self.worth_of(self.weights[self.weights > 0])

    def _design(self, by_cell: Array) -> float | None:  # noqa: ARG002 - of samples that went by
        """Return the design effect of a metric where it does not follow from influences."""
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

    @kept
    def recall_means(self, level: float) -> Mapping[Mean, tuple[float, float]]:
        """Limits of the means of the recalls: MOVER on their Jeffreys limits and their correlation (Zou 2008).

        Labels of which no sample has two are classes, and then these are the limits of classes.
        """
        table = self.table
        recalls = self.designed.rates(RECALL)
        hits, among = recalls.as_counts(level)
        with silently():
            recall, per_sample = table.recall, 1.0 / table.actual
        spread = correlated(
            np.sqrt(recalls.variance), lambda rows: np.array([self._of_recalls(row * per_sample) for row in rows])
        )
        ends = intervals.mean_limits(recall, *jeffreys(hits, among, level), among, level=level, spread=spread)
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
        """Return for each sample (n) the sum of the values (L, 4) of its cells."""
        assert isinstance(self.pairs, LabelPairs)  # noqa: S101 - samples with weights are at hand
        return self.pairs.sums(values)

    def edge_moves(self, expression: Expression, level: float) -> Array:
        """Return the changes of the value (E) as the recall of a label of few samples, all found or none, goes to its
        limit.

        Derivatives see nothing of it there. Added by squares, as parts of a mean are (Zou & Donner 2008).
        """
        table = self.table
        worth_hits, worth = self.designed.rates(RECALL).as_counts(level)
        at_edge = ((table.tp == 0) | (table.tp == table.actual)) & (table.actual > 0) & (worth < FEW)
        codes = np.flatnonzero(at_edge)
        if not codes.size:
            return np.zeros(0)
        low, high = (ends[codes] for ends in jeffreys(worth_hits, worth, level))
        recall = np.where(table.tp[codes] == 0, high, low)
        hits, missed = (np.repeat(part[None], codes.size, axis=0) for part in (table.tp, table.fn))
        rows = np.arange(codes.size)
        moved = recall * table.actual[codes] - table.tp[codes]
        hits[rows, codes] += moved
        missed[rows, codes] -= moved
        others = LabelTable(hits, table.fp[None], missed, table.tn[None])
        with silently():
            moves: Array = compute(expression, others) - compute(expression, table)
        return moves[np.isfinite(moves)]


def _declared(expression: Expression, table: LabelTable) -> Array | None:
    """Derivatives (L, 4) by the card of the metric; None where it has none."""
    usual = usual_measure(expression)
    gradient = None if usual is None else usual.metric.card.inference.gradient
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
    moved, places = moved_both_ways(cells, lambda each: function(_table(each)), _STEP)
    labels, kinds = places.T
    with silently():
        sides = (moved[:, :, 0] - float(function(table))) * np.array([[1.0], [-1.0]])
    if not np.isfinite(sides).all():
        return None
    up, down = sides / _STEP
    if np.abs(up - down).max(initial=0.0) > _SMOOTH * np.abs(up + down).max(initial=0.0) / 2.0:
        return None
    derivatives = np.zeros(cells.shape)
    derivatives[labels, kinds] = (up + down) / (2.0 * cells[labels, kinds])
    return derivatives


def _table(cells: Array) -> LabelTable:
    """From cells (..., L, 4)."""
    return LabelTable(cells[..., 3], cells[..., 1], cells[..., 2], cells[..., 0])
