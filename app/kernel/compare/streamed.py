"""Runs on the same streamed samples compared on metrics of probabilities, from sums of values and their products."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kernel.compare.linear import LinearRuns, linearised, runs_of
from app.kernel.compare.paired.joint import JointCounts, combine, merged
from app.kernel.metrics.card import Inputs, Metric
from app.kernel.metrics.expression import Every, Expression, Measure, is_smooth, measures
from app.kernel.numerics.arrays import Array, Mask, silently
from app.kernel.samples.areas import ROUNDING
from app.kernel.samples.influence import AreaOf, InfluenceForm, LinearMethod, Over, Skill, Strata, Values
from app.kernel.samples.losses import Codes
from app.kernel.samples.scores import Scores
from app.kernel.streamed.along import Along, Side, along
from app.kernel.streamed.rows import Rows, Table
from app.kernel.uncertainty.influence import Linearisation

# Columns of the rows: the class of a sample, and its weight above 0.
TRUTH, WEIGHT = "truth", "weight"


def output(run: int, code: int) -> str:
    """Name of the column with what a run says of a class."""
    return f"output_{run}_{code}"


class ClassMoments(NamedTuple):
    """What is left of V values of n samples of K classes, which weigh w.

    Attributes:
        counts: (K) samples.
        masses: (K) sums of w.
        squares: (K) sums of w^2.
        means: (K, V) in the weights; NaN without samples.
        away: (K, V) the mean of the class less that of all samples; 0 without samples.
        products: (K, V, V) sums of w^2 times products of deviations from the means of the class.
        leaning: (K, V) sums of w^2 times deviations; 0 where all weights are 1.
        overall: (V) means of all samples in the weights.
        areas: (V) of values that are counted in an order; NaN of others.
    """

    counts: Array
    masses: Array
    squares: Array
    means: Array
    away: Array
    products: Array
    leaning: Array
    overall: Array
    areas: Array


class Moments:
    """Sums over the samples of each class, and of all products of two values of a sample.

    A value that is not finite makes what it is in infinite or undefined.

    Args:
        n_classes: K.
        n_values: V.
    """

    def __init__(self, n_classes: int, n_values: int) -> None:
        self.counts, self._masses, self._squares = np.zeros((3, n_classes))
        # Values that are infinite, and that are no numbers.
        self._beyond = np.zeros((2, n_classes, n_values))
        # Deviations are from one value of the class: so products lose no digits, and are 0 where nothing varies.
        self._from, self._sums, self._mixed = np.zeros((3, n_classes, n_values))
        self._products = np.zeros((n_classes, n_values, n_values))

    def add(self, code: int, values: Array, weights: Array) -> None:
        """Add values (V, n) of samples of one class, at least one, with weights (n) above 0."""
        finite = np.isfinite(values)
        if not finite.all():
            self._beyond[:, code] += np.isinf(values).sum(axis=1), np.isnan(values).sum(axis=1)
            values = np.where(finite, values, 0.0)
        if not self.counts[code]:
            self._from[code] = np.median(values, axis=1)
        away = values - self._from[code][:, None]
        weighed = weights * away
        self.counts[code] += weights.size
        self._masses[code] += weights.sum()
        self._squares[code] += weights @ weights
        self._sums[code] += weighed.sum(axis=1)
        self._mixed[code] += weighed @ weights
        self._products[code] += weighed @ weighed.T

    def infinite(self) -> Mask:
        """Has a class samples of which a value is infinite, (V, K)?"""
        found: Mask = self._beyond[0].T > 0
        return found

    def read(self, areas: Array) -> ClassMoments:
        """Means, and sums of products about them, with the areas (V) of the values."""
        filled = self._masses > 0
        moved = np.divide(self._sums, self._masses[:, None], out=np.zeros_like(self._sums), where=filled[:, None])
        means = np.where(filled[:, None], self._from + moved, np.nan)
        first = means[np.argmax(filled)]
        overall = first + self._masses @ np.where(filled[:, None], means - first, 0.0) / self._masses.sum()
        away = np.where(filled[:, None], means - overall, 0.0)
        squares = self._squares[:, None]
        leaning = self._mixed - squares * moved
        one = moved[:, :, None] * self._mixed[:, None, :]
        both = squares[:, :, None] * moved[:, :, None] * moved[:, None, :]
        crossed = self._products - one - one.transpose(0, 2, 1) + both
        for kind, worth in zip(self._beyond, (np.inf, np.nan), strict=True):
            for code, value in np.argwhere(kind):
                means[code, value] = overall[value] = worth
                away[code, value] = crossed[code, value, :] = crossed[code, :, value] = np.nan
        leaning[np.isnan(crossed).any(axis=2)] = np.nan
        return ClassMoments(self.counts, self._masses, self._squares, means, away, crossed, leaning, overall, areas)


# Values of all runs together whose products are summed with each other.
_MOST = 64


@dataclass(frozen=True, slots=True)
class Order:
    """What is brought into one order: samples by the scores of a class, or all scores of all of them.

    Attributes:
        code: The class, whose samples are the members; None: every score is an entry by itself, and those of the
            actual classes are the members.
        against: The class that all others are of; None: they are of any other.
    """

    code: int | None
    against: int | None = None

    def along(self, rows: Rows, run: int, sides: Sequence[Side], *, weighted: bool) -> Along | None:
        """Its entries of a run in order; None without members or without others.

        Args:
            rows: Of the runs.
            run: Which one.
            sides: Samples of each class (K).
            weighted: Have the samples weights?
        """
        n_classes = len(sides)
        inside = range(n_classes) if self.code is None else [self.code]
        outside = [self.against] if self.against is not None else {*range(n_classes)} - {self.code}
        members, others = _together(sides[code] for code in inside), _together(sides[code] for code in outside)
        if self.code is None:
            # Each sample is there once for each of the other classes too.
            more = n_classes - 1
            others = Side(more * members.weight, more * members.squares, more * members.used)
        if not members.weight or not others.weight:
            return None
        parts = [{"score": output(run, code), "member": f"{TRUTH} = {code}"} for code in inside]
        some = rows if self.against is None else rows.where(f"{TRUTH} IN ({self.code}, {self.against})")
        some = some.stacked("class", parts) if self.code is None else some.having(**parts[0])
        return along(some, "score", "member", WEIGHT if weighted else None, sides=(members, others))

    def rows(self, y: Codes) -> NDArray[np.intp] | slice:
        """Which samples with codes (n) are in it."""
        return slice(None) if self.against is None else np.flatnonzero((y == self.code) | (y == self.against))

    def members(self, y: Codes, n_classes: int) -> Mask:
        """Which of its entries (m) are members."""
        found: Mask = (
            (y[:, None] == np.arange(n_classes)).ravel() if self.code is None else y[self.rows(y)] == self.code
        )
        return found

    def scores(self, run: Scores) -> Array:
        """Of its entries (m)."""
        found: Array = run.probabilities.ravel() if self.code is None else run.columns[self.code][self.rows(run.y)]
        return found

    def of_samples(self, found: Array, y: Codes, n_classes: int) -> Array:
        """From values of its entries (m) those of the samples (n): their sums, 0 of samples that are not in it."""
        values = np.zeros(y.size)
        if self.code is None:
            for column in found.reshape(y.size, n_classes).T:
                values += column
        else:
            values[self.rows(y)] = found
        return values


@dataclass(frozen=True, slots=True, eq=False)
class Summand:
    """A value of each sample.

    Attributes:
        key: Summands of one key are the same.
        order: In which it is counted; None where a row says it by itself.
    """

    key: str
    order: Order | None = None
    values: Values | None = None
    parameters: Mapping[str, Any] | None = None

    def rows(self, scores: Scores) -> Array:
        """The values (n), each the same wherever its row stands; NaN of scores that are no probabilities."""
        if not scores.are_probabilities or self.values is None:
            return np.full(scores.n_samples, np.nan)
        with silently():
            return self.values(scores, self.parameters or {})


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A metric that sums of summands say.

    Attributes:
        of: The class, for a metric of one class.
        parameters: All of them.
    """

    metric: Metric[Scores]
    of: int | None
    parameters: Mapping[str, Any]
    form: InfluenceForm

    @classmethod
    def made(cls, metric: Any, of: int | None, parameters: Mapping[str, Any] | None) -> "Leaf | None":
        """None where it is not."""
        card = metric.card
        form = card.inference.influence
        if card.inputs is not Inputs.PROBABILITIES or form is None:
            return None
        if form.row_mean is None and form.skill is None and form.area is None:
            return None
        return cls(metric, of, {**card.defaults, **(parameters or {})}, form)

    @property
    def is_share(self) -> bool:
        """Does each sample count 1 or 0?"""
        return self.form.method is LinearMethod.WILSON

    def summands(self, n_classes: int) -> tuple[Summand, ...]:
        """What it is made of."""
        area, in_rows = self.form.area, self.form.row_mean or self.form.skill
        if area is None:
            key = f"{self.metric.key}{sorted(self.parameters.items())!r}"
            return (Summand(key, None, None if in_rows is None else in_rows.values, self.parameters),)
        if area.of is AreaOf.ENTRIES:
            return (Summand("area of entries", Order(None)),)
        if area.of in (AreaOf.PAIRS, AreaOf.PAIR_SHARES) and n_classes > 2:
            return tuple(Summand(f"area@{one}|{other}", Order(one, other)) for one, other in pairs_of(n_classes))
        codes = range(n_classes)
        if area.of is AreaOf.ONE_CLASS or n_classes == 2:
            # Of two classes both have the same.
            codes = range(1, 2) if self.of is None else range(self.of, self.of + 1)
        return tuple(Summand(f"area@{code}", Order(code)) for code in codes)


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Summands whose values are looked at together.

    Attributes:
        share: Are they of a share of the samples, each of which counts 1 or 0?
    """

    summands: tuple[Summand, ...]
    share: bool = False

    @property
    def key(self) -> str:
        """Groups of one key are the same."""
        return " ".join([*(["share"] if self.share else []), *(one.key for one in self.summands)])


def pairs_of(n_classes: int) -> list[tuple[int, int]]:
    """Ordered pairs of classes."""
    return [(one, other) for one in range(n_classes) for other in range(n_classes) if one != other]


def parts_of(expression: Expression, n_classes: int) -> list[Expression]:
    """The V values of an expression, each as one of its own."""
    if isinstance(expression, Measure) and isinstance(expression.of, Every):
        return [Measure(expression.metric, expression.parameters, code) for code in range(n_classes)]
    return [expression]


def group_of(value: Expression, n_classes: int, n_runs: int) -> Group | None:
    """What one value is made of; None where a part has no such sums, they are too many, or it has no derivatives."""
    if not is_smooth(value):
        return None
    found = [Leaf.made(*one) for one in _leaves(value, n_classes)]
    leaves = [leaf for leaf in found if leaf is not None]
    distinct = {one.key: one for leaf in leaves for one in leaf.summands(n_classes)}
    if len(leaves) < len(found) or len(distinct) * n_runs > _MOST:
        return None
    return Group(tuple(distinct.values()), isinstance(value, Measure) and leaves[0].is_share)


def groups_of(expressions: Sequence[Expression], n_classes: int, n_runs: int) -> dict[str, Group]:
    """All that some expressions are made of, by their keys; what has no such sums is left out."""
    values = [value for expression in expressions for value in parts_of(expression, n_classes)]
    found = [group_of(value, n_classes, n_runs) for value in values]
    return {group.key: group for group in found if group is not None}


def _leaves(value: Expression, n_classes: int) -> Iterator[tuple[Any, int | None, Mapping[str, Any]]]:
    for leaf in measures(value):
        for one in parts_of(leaf, n_classes):
            assert isinstance(one, Measure)  # noqa: S101 - what a measure is made of
            yield one.metric, one.of if isinstance(one.of, int) else None, one.parameters


@dataclass(frozen=True, slots=True)
class Plan:
    """Sums to be made of R runs of K classes.

    Attributes:
        weighted: Have the samples weights?
        are_probabilities: For each run, whether its outputs are; they are scores else.
    """

    expressions: tuple[Expression, ...]
    n_classes: int
    n_runs: int
    are_probabilities: tuple[bool, ...]
    weighted: bool = False

    def groups(self) -> dict[str, Group]:
        """What is to be summed, by key."""
        return groups_of(self.expressions, self.n_classes, self.n_runs)

    def scores(self, run: int, batch: Table) -> Scores:
        """What a run says of the samples of a batch."""
        made = Scores if self.are_probabilities[run] else Scores.of_class_scores
        return made(batch[TRUTH], np.column_stack([batch[output(run, code)] for code in range(self.n_classes)]))

    @property
    def columns(self) -> list[str]:
        """Of the rows."""
        return [TRUTH, WEIGHT, *(output(run, code) for run in range(self.n_runs) for code in range(self.n_classes))]


# Samples that are looked at together, so that what is made of them stays in the cache.
_ROWS = 1 << 16


def streamed_runs(rows: Rows, plan: Plan) -> "StreamedRuns":
    """Metrics of runs on the same samples, by one pass along each order and one over all rows.

    Args:
        rows: `Plan.columns` of the samples that all runs have, with weights above 0.
        plan: What is summed.
    """
    groups = plan.groups()
    summands = {one.key: one for group in groups.values() for one in group.summands}
    orders = {key: one.order for key, one in summands.items() if one.order is not None}
    sides = _sides(rows, plan.n_classes) if orders else []
    curves = {
        key: tuple(
            # Scores say nothing in an order of all classes.
            order.along(rows, run, sides, weighted=plan.weighted) if sure or order.code is not None else None
            for run, sure in enumerate(plan.are_probabilities)
        )
        for key, order in orders.items()
    }
    moments = {key: Moments(plan.n_classes, len(one.summands) * plan.n_runs) for key, one in groups.items()}
    counted: dict[str, list[JointCounts]] = {}
    for batch in rows.batches(*plan.columns) if groups else ():
        for start in range(0, batch[TRUTH].size, _ROWS):
            some = {name: column[start : start + _ROWS] for name, column in batch.items()}
            # One class after the other.
            order = np.argsort(some[TRUTH].astype(np.int16), kind="stable")
            some = {name: column[order] for name, column in some.items()}
            runs = [plan.scores(run, some) for run in range(plan.n_runs)]
            known = {key: _known(one, runs, curves.get(key, ())) for key, one in summands.items()}
            present, starts = np.unique(some[TRUTH], return_index=True)
            ends = np.append(starts[1:], order.size)
            for key, group in groups.items():
                # One run after the other.
                values = np.concatenate(np.stack([known[one.key] for one in group.summands], axis=1))
                for code, first, end in zip(present.tolist(), starts, ends, strict=True):
                    moments[key].add(code, values[:, first:end], some[WEIGHT][first:end])
                if group.share and not plan.weighted and np.isfinite(values).all():
                    joint = _counted(some[TRUTH].astype(np.int64), values, plan.n_classes)
                    counted[key] = [merged([*counted.get(key, ()), joint], plan.n_runs, plan.n_classes)]
    sums = {
        key: _Sums(
            group,
            moments[key].read(_areas(group, curves, plan.n_runs)),
            moments[key].infinite(),
            counted[key][0] if key in counted else None,
            plan.weighted,
        )
        for key, group in groups.items()
    }
    return StreamedRuns(plan.n_runs, plan.n_classes, sums, curves)


def _together(sides: Iterable[Side]) -> Side:
    weight, squares, used = zip(*sides, strict=True)
    return Side(sum(weight), sum(squares), sum(used))


def _sides(rows: Rows, n_classes: int) -> list[Side]:
    """Samples of each class."""
    found = rows.sums(TRUTH, n="1", mass=WEIGHT, square=f"{WEIGHT} * {WEIGHT}")
    made = [Side(0.0, 0.0, 0)] * n_classes
    for code, size, mass, square in zip(found[TRUTH], found["n"], found["mass"], found["square"], strict=True):
        made[code] = Side(float(mass), float(square), int(size))
    return made


def _areas(group: Group, curves: Mapping[str, Sequence[Along | None]], n_runs: int) -> Array:
    """Of the values of a group, one run after the other."""
    none: Sequence[Along | None] = [None] * n_runs
    found = [[curves.get(one.key, none)[run] for one in group.summands] for run in range(n_runs)]
    return np.array([np.nan if one is None else one.area for curves_of_run in found for one in curves_of_run])


def _known(summand: Summand, runs: Sequence[Scores], curves: Sequence[Along | None]) -> Array:
    """The values (R, n) of a summand."""
    order = summand.order
    if order is None:
        return np.stack([summand.rows(run) for run in runs])
    y, n_classes = runs[0].y, runs[0].n_classes
    members = order.members(y, n_classes)
    found = []
    for run, curve in zip(runs, curves, strict=True):
        lost = None if curve is None else _lost(curve, order.scores(run), members)
        found.append(np.full(y.size, np.nan) if lost is None else order.of_samples(lost, y, n_classes))
    return np.stack(found)


def _lost(curve: Along, scores: Array, members: Mask) -> Array:
    """For entries (n), of which some are members, twice the weight on the wrong side of each: others above a member,
    members below another; equal scores count once.
    """
    lost, inside, outside = np.empty(scores.size), np.flatnonzero(members), np.flatnonzero(~members)
    lost[inside] = 2.0 * curve.others.weight * curve.places.lost(scores.take(inside))
    lost[outside] = 2.0 * curve.members.weight * (1.0 - curve.places.won(scores.take(outside)))
    return lost


def _counted(y: NDArray[np.int64], values: Array, n_classes: int) -> JointCounts:
    """Which samples count for which runs, as predictions that are right where they do."""
    decided = np.where(values > 0, y, (y + 1) % n_classes)
    return combine(y, decided.astype(np.int64), n_classes)


_ALL = slice(None)


class StreamedValue(NamedTuple):
    """One value of all runs.

    Attributes:
        parts: Of each run, as if one sample had all the influence.
        runs: The same together.
        counted: Of a share of samples without weights, which count for which runs, as predictions that are right where
            they do.
    """

    parts: tuple[Linearisation, ...]
    runs: LinearRuns
    counted: JointCounts | None


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    group: Group
    moments: ClassMoments
    infinite: Mask
    counted: JointCounts | None
    weighted: bool

    @property
    def worth(self) -> tuple[int, float] | None:
        """Of weighted samples, how many they are and how many of one weight are worth as much."""
        if not self.weighted:
            return None
        moments = self.moments
        return int(moments.counts.sum()), float(_effective(moments.masses.sum(), moments.squares.sum()))

    @property
    def width(self) -> int:
        """Values of one run."""
        return len(self.group.summands)


@dataclass(frozen=True, slots=True, eq=False)
class StreamedRuns:
    """What is left of the samples that R runs of K classes have in common."""

    n_runs: int
    n_classes: int
    _sums: Mapping[str, _Sums]
    _curves: Mapping[str, Sequence[Along | None]]

    def hull(self, run: int, code: int) -> tuple[Array, Array]:
        """Vertices (tp, fp) of the upper convex hull of the ROC curve of a class, whose area was asked for.

        Raises:
            KeyError: it was not.
            ValueError: there are no members or no others.
        """
        curve = self._curves[f"area@{code}"][run]
        if curve is None:
            raise ValueError("expected members and others")
        return curve.hull

    def of(self, expression: Expression) -> tuple[StreamedValue, ...] | None:
        """The values of an expression; None where it was not summed, or has no closed form."""
        found = [self._of(value) for value in parts_of(expression, self.n_classes)]
        known = tuple(one for one in found if one is not None)
        return known if len(known) == len(found) else None

    def values(self, expression: Expression) -> Array | None:
        """Values (R, V); None as above."""
        found = self.of(expression)
        return None if found is None else np.stack([one.runs.values for one in found], axis=-1)

    def ruled_out(self, run: int) -> Codes:
        """Classes of which a run has samples whose value is infinite."""
        each = [sums.infinite[run * sums.width : (run + 1) * sums.width].any(axis=0) for sums in self._sums.values()]
        return np.flatnonzero(np.stack(each).any(axis=0)) if each else np.zeros(0, dtype=np.intp)

    def _of(self, value: Expression) -> StreamedValue | None:
        group = group_of(value, self.n_classes, self.n_runs)
        sums = None if group is None else self._sums.get(group.key)
        if sums is None:
            return None
        parts = []
        for run in range(self.n_runs):
            found = linearised(value, _StreamedInfluences(sums, run, self.n_classes))
            if found is None:
                return None
            parts.append(found[0])
        covariance = _covariance(sums.moments, np.stack([part.influence for part in parts]))
        alone = tuple(
            replace(part, influence=np.sqrt(np.maximum(covariance[[run], run], 0.0))) for run, part in enumerate(parts)
        )
        return StreamedValue(alone, runs_of(alone, covariance), sums.counted)


def _covariance(moments: ClassMoments, influences: Array) -> Array:
    """Of influences (R, K * (V + 1)): coefficients of the deviations of V values, and what is the same in a class."""
    size, width = moments.means.shape
    unknown: Mask = np.logical_or.reduce(~np.isfinite(influences), axis=1)
    by_class = np.where(unknown[:, None], 0.0, influences).reshape(len(influences), size, width + 1)
    # What is not known is of the runs without a value.
    products, leaning = (np.where(np.isnan(one), 0.0, one) for one in (moments.products, moments.leaning))
    found = np.zeros((len(influences), len(influences)))
    for code, square in enumerate(moments.squares):
        inner, means = by_class[:, code, :width], by_class[:, code, width]
        mixed = np.outer(inner @ leaning[code], means)
        found += inner @ products[code] @ inner.T + mixed + mixed.T + square * np.outer(means, means)
    found[unknown, :] = found[:, unknown] = np.nan
    return found


class _Made(NamedTuple):
    """One value of a run, and what samples add to its influence in each unit of weight.

    Attributes:
        slopes: (K, S) by the deviations within the classes.
        levels: (K) the same for all of a class.
    """

    value: float
    slopes: Array
    levels: Array
    freedom: float = np.inf
    sizes: tuple[float, float] | None = None


class _StreamedInfluences:
    """Metrics of one run as coefficients of what sums are known of."""

    def __init__(self, sums: _Sums, run: int, n_classes: int) -> None:
        self._sums, self._moments, self.n_classes = sums, sums.moments, n_classes
        self._places = {one.key: run * sums.width + place for place, one in enumerate(sums.group.summands)}
        self._width: int = self._moments.means.shape[1] + 1

    @property
    def n_units(self) -> int:
        """How many coefficients."""
        return self.n_classes * self._width

    def of(
        self, metric: Any, class_index: int | None = None, *, parameters: Mapping[str, Any] | None = None
    ) -> Linearisation | None:
        """A metric of the group."""
        leaf = Leaf.made(metric, class_index, parameters)
        if leaf is None:
            return None
        at = [self._places[one.key] for one in leaf.summands(self.n_classes)]
        made = _made(leaf, self._moments, at)
        coefficients = np.zeros((self.n_classes, self._width))
        coefficients[:, at], coefficients[:, -1] = made.slopes, made.levels
        if not np.isfinite(made.value):
            coefficients[:] = np.nan
        card, one_area = leaf.metric.card, leaf.form.area is not None and made.sizes is not None
        return Linearisation(
            made.value,
            coefficients.ravel(),
            card.inference.scale,
            Strata.BY_CLASS if one_area or _by_class(leaf) else Strata.WHOLE,
            LinearMethod.DELONG_LOGIT if one_area else leaf.form.method,
            card.range,
            made.freedom,
            made.sizes,
            self._sums.worth,
        )


def _by_class(leaf: Leaf) -> bool:
    return leaf.form.row_mean is not None and leaf.form.row_mean.over is not Over.SAMPLES


def _made(leaf: Leaf, moments: ClassMoments, at: Sequence[int]) -> _Made:
    if leaf.form.row_mean is not None:
        made = _MEANS[leaf.form.row_mean.over](leaf, moments, at[0])
        return made._replace(freedom=np.inf) if leaf.is_share else made
    return _of_areas(leaf, moments, at) if leaf.form.skill is None else _of_skill(leaf.form.skill, moments, at[0])


def _of_skill(skill: Skill, moments: ClassMoments, at: int) -> _Made:
    each, mean = _scale(moments), float(moments.overall[at])
    shares = moments.masses / moments.masses.sum()
    with silently():
        reference, moves = skill.reference(shares)
    if not reference > 0.0:
        return _Made(np.nan, np.zeros((shares.size, 1)), np.zeros(shares.size))
    moves = np.where(shares > 0.0, moves, 0.0)
    moved = mean / reference**2 * (moves - float(shares @ moves))
    slopes, levels = np.full((shares.size, 1), -each / reference), -moments.away[:, at] / reference + moved
    return _Made(1.0 - mean / reference, slopes, each * levels, _freedom(moments))


def _of_samples(_: Leaf, moments: ClassMoments, at: int) -> _Made:
    each = _scale(moments)
    slopes = np.full((moments.counts.size, 1), each)
    return _Made(float(moments.overall[at]), slopes, each * moments.away[:, at], _freedom(moments))


def _of_class_means(_: Leaf, moments: ClassMoments, at: int) -> _Made:
    n_classes = moments.counts.size
    squares, means = moments.products[:, at, at], moments.means[:, at]
    # Of a class without variance all of it is rounding.
    varies = squares > moments.squares * (ROUNDING * means) ** 2
    slopes = np.array([_scale(moments, inside) / n_classes for inside in np.eye(n_classes, dtype=np.bool_)])
    slopes = np.where(varies, slopes, 0.0)
    parts = np.where(varies, slopes**2 * squares, 0.0)
    per_freedom = float((parts**2 / np.maximum(_effective(moments.masses, moments.squares) - 1.0, 1.0)).sum())
    freedom = float(parts.sum()) ** 2 / per_freedom if per_freedom else np.inf
    return _Made(float(means.mean()), slopes[:, None], np.zeros(n_classes), freedom)


def _of_members(leaf: Leaf, moments: ClassMoments, at: int) -> _Made:
    code, n_classes = leaf.of or 0, moments.counts.size
    inside, slopes = np.arange(n_classes) == code, np.zeros((n_classes, 1))
    slopes[code] = _scale(moments, inside)
    return _Made(float(moments.means[code, at]), slopes, np.zeros(n_classes), _freedom(moments, inside))


_MEANS: Mapping[Over, Callable[[Leaf, ClassMoments, int], _Made]] = {
    Over.SAMPLES: _of_samples,
    Over.CLASS_MEANS: _of_class_means,
    Over.MEMBERS: _of_members,
}


def _scale(moments: ClassMoments, inside: Mask | slice = _ALL) -> float:
    """What makes of deviations times weights influences on the mean over all classes, or over some."""
    size, mass = float(moments.counts[inside].sum()), float(moments.masses[inside].sum())
    return float(np.sqrt(size / max(size - 1.0, 1.0))) / mass if mass else 0.0


def _freedom(moments: ClassMoments, inside: Mask | slice = _ALL) -> float:
    """Degrees of freedom of the variance of that mean."""
    worth = _effective(moments.masses[inside].sum(), moments.squares[inside].sum())
    return max(float(worth) - 1.0, 1.0)


def _effective(masses: Array, squares: Array) -> Array:
    """Kish's effective numbers of samples (...) from sums of weights and of their squares; 0 where there are none."""
    found: Array = np.divide(masses * masses, squares, out=np.zeros_like(masses), where=squares > 0)
    return found


def _of_areas(leaf: Leaf, moments: ClassMoments, at: Sequence[int]) -> _Made:
    """A line of one area, or an average of those of all classes or pairs."""
    area, n_classes = leaf.form.area, moments.counts.size
    assert area is not None  # noqa: S101 - who calls has looked
    if area.of is AreaOf.ENTRIES:
        return _of_entries(moments, at[0])
    if area.of in (AreaOf.PAIRS, AreaOf.PAIR_SHARES) and n_classes > 2:
        return _of_pairs(area.of, moments, at)
    if len(at) == 1:
        one = _of_area(moments, at[0], 1 if leaf.of is None else leaf.of)
        return one._replace(
            value=1.0 - area.slope * (1.0 - one.value), slopes=area.slope * one.slopes, levels=area.slope * one.levels
        )
    each = [_of_area(moments, place, code) for code, place in enumerate(at)]
    values, levels = np.array([one.value for one in each]), np.stack([one.levels for one in each])
    shares = np.full(n_classes, 1.0 / n_classes)
    if area.of is AreaOf.CLASS_SHARES:
        shares = moments.masses / moments.masses.sum()
    value = float(shares @ values)
    moved = shares @ levels
    if area.of is AreaOf.CLASS_SHARES:
        # The shares of the classes are random too.
        moved = moved + _scale(moments) * (values - value)
    slopes = np.concatenate([share * one.slopes for share, one in zip(shares, each, strict=True)], axis=1)
    return _Made(value, slopes, moved)


def _of_entries(moments: ClassMoments, at: int) -> _Made:
    """Of all scores of all samples; a value is twice what is on the wrong side of the scores of a sample."""
    pairs = float(moments.masses.sum()) * (moments.counts.size - 1)
    slope = -_scale(moments) / (2.0 * pairs)
    slopes = np.full((moments.counts.size, 1), slope)
    # What is lost by members to others is lost by others to members.
    return _Made(float(moments.areas[at]), slopes, slope * moments.away[:, at])


def _of_pairs(of: AreaOf, moments: ClassMoments, at: Sequence[int]) -> _Made:
    """An average of the areas of ordered pairs of classes (Hand & Till 2001)."""
    masses, n_classes = moments.masses, moments.counts.size
    shares = masses / masses.sum()
    if not shares.all():
        return _Made(np.nan, np.zeros((n_classes, len(at))), np.zeros(n_classes))
    each = np.full((n_classes, n_classes), 1.0 / (n_classes * (n_classes - 1)))
    if of is AreaOf.PAIR_SHARES:
        each = (shares[:, None] + shares) / (2.0 * (n_classes - 1))
    scales = [_scale(moments, inside) for inside in np.eye(n_classes, dtype=np.bool_)]
    areas, slopes = np.zeros((n_classes, n_classes)), np.zeros((n_classes, len(at)))
    for place, (one, other) in enumerate(pairs_of(n_classes)):
        areas[one, other] = moments.areas[at[place]]
        slopes[one, place] = -each[one, other] * scales[one] / (2.0 * masses[other])
        slopes[other, place] = -each[one, other] * scales[other] / (2.0 * masses[one])
    levels = np.zeros(n_classes)
    if of is AreaOf.PAIR_SHARES:
        # The shares of the classes are random too.
        moves = (areas.sum(axis=0) + areas.sum(axis=1)) / (2.0 * (n_classes - 1))
        levels = _scale(moments) * (moves - float(shares @ moves))
    return _Made(float((each * areas).sum()), slopes, levels)


def _of_area(moments: ClassMoments, at: int, code: int) -> _Made:
    """DeLong's influences, of members and others apart; values are twice what is on the wrong side of a sample."""
    sizes, masses = moments.counts, moments.masses
    inside = np.arange(sizes.size) == code
    positives, negatives = float(masses[code]), float(masses[~inside].sum())
    if not positives or not negatives:
        return _Made(np.nan, np.full((sizes.size, 1), np.nan), np.full(sizes.size, np.nan))
    of_members, of_rest = -_scale(moments, inside) / (2.0 * negatives), -_scale(moments, ~inside) / (2.0 * positives)
    slopes = np.where(inside, of_members, of_rest)
    lost = np.where(sizes > 0, moments.means[:, at], 0.0)
    of_others = float(masses[~inside] @ lost[~inside]) / negatives
    levels = np.where(inside | (sizes == 0), 0.0, slopes * (lost - of_others))
    worth = tuple(float(_effective(masses[side].sum(), moments.squares[side].sum())) for side in (inside, ~inside))
    return _Made(float(moments.areas[at]), slopes[:, None], levels, sizes=(worth[0], worth[1]))
