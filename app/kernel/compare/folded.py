"""Runs on the same streamed samples compared on metrics of probabilities, from sums of values and their products."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import count
from math import isqrt
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.compare.linear import LinearRuns, linearised, runs_of
from app.kernel.compare.paired.joint import JointCounts, combine, merged
from app.kernel.folds.entries import Digits, Grid, carried
from app.kernel.folds.runs import Reader, Run, floors_of
from app.kernel.folds.scores import sortable
from app.kernel.metrics.card import Inputs, Metric
from app.kernel.metrics.expression import Every, Expression, Measure, is_smooth, measures
from app.kernel.numerics.arrays import Array, Mask, silently
from app.kernel.numerics.exact_sums import BLOCK, ExactSums, Halves, products
from app.kernel.samples.areas import ROUNDING
from app.kernel.samples.influence import AreaOf, InfluenceForm, LinearMethod, Over, Skill, Strata, Values
from app.kernel.samples.losses import Codes, sums_by_code
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.influence import Linearisation


class ClassMoments(NamedTuple):
    """What is left of V values of n samples of K classes, which weigh w, or 1.

    Attributes:
        counts: (K) samples.
        masses: (K) sums of w.
        squares: (K) sums of w^2.
        means: (K, V) in the weights; NaN without samples.
        away: (K, V) the mean of the class less that of all samples; 0 without samples.
        products: (K, V, V) sums of w^2 times products of deviations from the means of the class.
        leaning: (K, V) sums of w^2 times deviations; 0 without weights.
        overall: (V) means of all samples in the weights.
    """

    counts: Array
    masses: Array
    squares: Array
    means: Array
    away: Array
    products: Array
    leaning: Array
    overall: Array


class _OfClass(NamedTuple):
    """Exact sums over the samples of one class.

    Attributes:
        mass: Of w.
        square: Of w^2.
        sums: (V) of w v.
        mixed: (V) of w w v.
    """

    mass: Fraction
    square: Fraction
    sums: list[Fraction]
    mixed: list[Fraction]

    def product(self, first: int, second: int, crossed: Fraction) -> float:
        """Of w^2 times deviations of two values, from the sum of w v w u; rounded once."""
        one, other = self.sums[first], self.sums[second]
        leaning = one * self.mixed[second] + other * self.mixed[first]
        found = (crossed * self.mass - leaning) * self.mass + one * other * self.square
        return float(found / (self.mass * self.mass))

    def lean(self, value: int) -> float:
        """Of w^2 times deviations of a value; rounded once."""
        return float((self.mixed[value] * self.mass - self.sums[value] * self.square) / self.mass)


class Moments:
    """Sums over the samples of each class, and of all products of two values of a sample.

    States merge in any order and give the same, bit for bit. A value that is not finite makes what it is in infinite
    or undefined.

    Args:
        n_classes: K.
        n_values: V.
        weighted: Have the samples weights?
    """

    def __init__(self, n_classes: int, n_values: int, *, weighted: bool = False) -> None:
        self.n_classes, self.n_values, self.weighted = n_classes, n_values, weighted
        self.counts: NDArray[np.int64] = np.zeros(n_classes, dtype=np.int64)
        # Values that are infinite, and that are no numbers: (2, V, K).
        self._beyond: NDArray[np.int64] = np.zeros((2, n_values, n_classes), dtype=np.int64)
        # Behind the values stand the weights.
        rows = n_values + weighted
        self._sums = ExactSums((rows, n_classes))
        # Row i: products of value i with itself and those behind it.
        self._products = [ExactSums((rows - first, n_classes)) for first in range(rows)]

    def add(self, values: Array, y: Codes, weights: Array | None = None) -> None:
        """Add values (V, n) of samples with codes (n) and, where they have some, weights (n) above 0."""
        for start in range(0, y.size, BLOCK):
            part = slice(start, start + BLOCK)
            self._add(values[:, part], y[part], None if weights is None else weights[part])

    def merge(self, other: Self) -> Self:
        """Take in the sums of others."""
        self.counts = self.counts + other.counts
        self._beyond = self._beyond + other._beyond
        self._sums.merge(other._sums)
        for own, theirs in zip(self._products, other._products, strict=True):
            own.merge(theirs)
        return self

    def infinite(self) -> Mask:
        """Has a class samples of which a value is infinite, (V, K)?"""
        found: Mask = self._beyond[0] > 0
        return found

    def read(self) -> ClassMoments:
        """Means and sums of products about them, each rounded once."""
        classes = self._classes()
        total = sum((one.mass for one in classes), start=Fraction(0))
        shape = self.n_classes, self.n_values
        means, away, leaning = np.full(shape, np.nan), np.zeros(shape), np.zeros(shape)
        crossed = np.zeros((*shape, self.n_values))
        wholes = [sum((one.sums[value] for one in classes), start=Fraction(0)) for value in range(self.n_values)]
        wholes = [one / total if total else Fraction(0) for one in wholes]
        filled = [(code, one) for code, one in enumerate(classes) if one.mass]
        for code, one in filled:
            own = [value / one.mass for value in one.sums]
            means[code] = [float(mean) for mean in own]
            away[code] = [float(mean - whole) for mean, whole in zip(own, wholes, strict=True)]
            leaning[code] = [one.lean(value) for value in range(self.n_values)]
        for first, sums in enumerate(self._products[: self.n_values]):
            exact = self._as_table(sums)
            for second in range(first, self.n_values):
                for code, one in filled:
                    found = one.product(first, second, exact[second - first][code])
                    crossed[code, first, second] = crossed[code, second, first] = found
        overall = np.array([float(one) for one in wholes])
        self._spoil(means, away, crossed, overall)
        leaning[np.isnan(crossed).any(axis=2)] = np.nan
        masses, squares = np.array([[float(one.mass), float(one.square)] for one in classes]).T
        return ClassMoments(self.counts.astype(np.float64), masses, squares, means, away, crossed, leaning, overall)

    def _classes(self) -> list[_OfClass]:
        sums = self._as_table(self._sums)
        if not self.weighted:
            sizes = [Fraction(size) for size in self.counts.tolist()]
            return [_OfClass(size, size, own := [row[code] for row in sums], own) for code, size in enumerate(sizes)]
        *values, masses = sums
        # The last row of each table is that of products with the weights.
        mixed = [self._as_table(products)[-1] for products in self._products]
        *of_values, squares = mixed
        return [
            _OfClass(mass, squares[code], [row[code] for row in values], [row[code] for row in of_values])
            for code, mass in enumerate(masses)
        ]

    def _spoil(self, means: Array, away: Array, crossed: Array, overall: Array) -> None:
        for kind, worth in enumerate((np.inf, np.nan)):
            for value, code in np.argwhere(self._beyond[kind]):
                means[code, value] = overall[value] = worth
                away[code, value] = crossed[code, value, :] = crossed[code, :, value] = np.nan

    def _as_table(self, sums: ExactSums) -> list[list[Fraction]]:
        flat, size = sums.exact(), self.n_classes
        return [flat[start : start + size] for start in range(0, len(flat), size)]

    def _add(self, given: Array, y: Codes, weights: Array | None) -> None:
        gather = partial(sums_by_code, y, n_classes=self.n_classes)
        self.counts += np.bincount(y, minlength=self.n_classes)
        values, finite = given.copy(), np.isfinite(given)
        if not finite.all():
            for held, there in zip(self._beyond, (np.isinf(given), np.isnan(given)), strict=True):
                held += gather(there.astype(np.float64)).astype(np.int64)
            values[~finite] = 0.0
        if weights is not None:
            values = np.vstack([values * weights, weights])
        halves = Halves.of(values)
        for first, sums in enumerate(self._products):
            for part in products(halves.at(first), halves.at(slice(first, None))):
                sums.add(part, gather)
        self._sums.add(values, gather)


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

    def entries(self, n_classes: int) -> float:
        """How many it has for each sample; of pairs of classes on average over all of them."""
        if self.code is None:
            return n_classes
        return 1.0 if self.against is None else 2.0 / n_classes

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
        # Of one row alone numpy adds up the columns in another order.
        alone = scores.n_samples == 1
        some = Scores(scores.y.repeat(2), scores.probabilities.repeat(2, axis=0)) if alone else scores
        with silently():
            return self.values(some, self.parameters or {})[: scores.n_samples]


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

    @property
    def ordered(self) -> bool:
        """Is one of them counted in an order?"""
        return any(one.order is not None for one in self.summands)


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


# Samples that are looked at together, so that what is made of them stays in the cache.
_ROWS = 1 << 15

# Values of all runs (R, n) by the keys of summands.
Known = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be summed of R runs of K classes. Can be sent to another process.

    Attributes:
        weighted: Have the samples weights?
    """

    expressions: tuple[Expression, ...]
    n_classes: int
    n_runs: int
    weighted: bool = False

    def groups(self, *, ordered: bool) -> dict[str, Group]:
        """Those that rows say, or those that need an order, by key."""
        found = groups_of(self.expressions, self.n_classes, self.n_runs)
        return {key: group for key, group in found.items() if group.ordered is ordered}

    def orders(self) -> dict[str, Order]:
        """In what is counted, by the keys of the summands."""
        summands = (one for group in self.groups(ordered=True).values() for one in group.summands)
        return {one.key: one.order for one in summands if one.order is not None}

    @property
    def entries(self) -> float:
        """How many a sample has in all orders of a run."""
        return sum(order.entries(self.n_classes) for order in self.orders().values())


class PairedSums:
    """Sums of some groups. States merge in any order, and can be sent to another process."""

    def __init__(self, plan: Plan, *, ordered: bool) -> None:
        self.plan, self.ordered = plan, ordered
        groups = plan.groups(ordered=ordered)
        self.moments = {
            key: Moments(plan.n_classes, len(one.summands) * plan.n_runs, weighted=plan.weighted)
            for key, one in groups.items()
        }
        self._counted: dict[str, list[JointCounts]] = {}

    @property
    def counted(self) -> Mapping[str, JointCounts]:
        """Of shares which samples count for which runs, as predictions that are right where they do; without
        weights.
        """
        self.add_up()
        return {key: found for key, (found,) in self._counted.items()}

    @property
    def nbytes(self) -> int:
        """Bytes in memory of what grows with the samples."""
        return sum(one.nbytes for joints in self._counted.values() for one in joints)

    def add_up(self) -> None:
        """What was counted of one share becomes one."""
        for key, joints in self._counted.items():
            if len(joints) > 1:
                self._counted[key] = [merged(joints, self.plan.n_runs, self.plan.n_classes)]

    def add(self, y: Codes, runs: Sequence[Scores], weights: Array | None = None) -> Self:
        """Add samples: their codes (n), what each of the runs says of them, and their weights (n) above 0."""
        groups = self.plan.groups(ordered=self.ordered)
        for start in range(0, y.size, _ROWS):
            rows = slice(start, start + _ROWS)
            known = known_of(groups, [_some(run, rows) for run in runs])
            self._add(y[rows], known, None if weights is None else weights[rows], groups)
        return self

    def add_known(self, y: Codes, known: Known, weights: Array | None = None) -> Self:
        """The same where the values are known."""
        groups = self.plan.groups(ordered=self.ordered)
        for start in range(0, y.size, _ROWS):
            rows = slice(start, start + _ROWS)
            some = {key: values[:, rows] for key, values in known.items()}
            self._add(y[rows], some, None if weights is None else weights[rows], groups)
        return self

    def merge(self, other: Self) -> Self:
        """Take in the sums of others."""
        for key, moments in self.moments.items():
            moments.merge(other.moments[key])
        for key, joints in other._counted.items():
            self._counted.setdefault(key, []).extend(joints)
        return self

    def _add(self, y: Codes, known: Known, weights: Array | None, groups: Mapping[str, Group]) -> None:
        for key, group in groups.items():
            # One run after the other.
            values = np.concatenate(np.stack([known[one.key] for one in group.summands], axis=1))
            self.moments[key].add(values, y, weights)
            if group.share and weights is None and np.isfinite(values).all():
                size = self.plan.n_classes
                decided = np.where(values > 0, y, (y + 1) % size)
                joint = combine(y.astype(np.int64), decided.astype(np.int64), size)
                self._counted.setdefault(key, []).append(joint)


def known_of(groups: Mapping[str, Group], runs: Sequence[Scores]) -> dict[str, Array]:
    """The values of the summands of some groups that rows say by themselves."""
    summands = {one.key: one for group in groups.values() for one in group.summands if one.order is None}
    return {key: np.stack([one.rows(run) for run in runs]) for key, one in summands.items()}


def _some(run: Scores, rows: slice) -> Scores:
    part = Scores(run.y[rows], run.probabilities[rows])
    part.are_probabilities = run.are_probabilities
    return part


# Bytes of a number.
_NUMBER = 8
# What a stretch of the order comes to, or samples to sums: here or in other processes, in turn.
InOrder = Callable[[Callable[..., object], Iterable[object]], Iterable[object]]


class Ranked(NamedTuple):
    """What one run says of the entries of a block in an order.

    Attributes:
        keys: (d) distinct scores, rising, as whole numbers.
        places: (m) which of them each entry has.
        members: (L, d) digits of how many members have each, or of what they weigh.
        others: (L, d) and of others.
        undefined: Are they scores that say nothing in this order?
    """

    keys: NDArray[np.uint64]
    places: NDArray[np.uint32]
    members: Digits
    others: Digits
    undefined: bool = False

    @classmethod
    def of(cls, order: Order, run: Scores, digits: Digits | None = None) -> Self:
        """Of samples with weights as digits (L, n)."""
        scores, members = order.scores(run), order.members(run.y, run.n_classes)
        if digits is not None:
            digits = np.repeat(digits, run.n_classes, axis=1) if order.code is None else digits[:, order.rows(run.y)]
        keys, places = np.unique(sortable(scores), return_inverse=True)
        inside, all_of_them = (
            carried(_added(places[some], None if digits is None else digits[:, some], keys.size))
            for some in (members, slice(None))
        )
        undefined = order.code is None and not run.are_probabilities
        return cls(keys, places.astype(np.uint32), inside, carried(all_of_them - inside), undefined)


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Samples that all runs have, as far as groups need them whose summands are counted in orders.

    Attributes:
        y: (n) codes.
        weights: (n) above 0; None is 1 each.
        grid: On which they are whole numbers.
        known: Values (R, n) of rows by the keys of summands.
        ranked: By the key of the summand that is counted in an order what each run says.
    """

    y: Codes
    weights: Array | None
    grid: Grid
    known: Known
    ranked: Mapping[str, tuple[Ranked, ...]]

    @classmethod
    def of(cls, plan: Plan, y: Codes, runs: Sequence[Scores], weights: Array | None = None) -> "Block | None":
        """Of codes (n), what the runs say, and weights (n); None where nothing is counted in orders."""
        groups = plan.groups(ordered=True)
        if not groups:
            return None
        # So often a sample can be in an order.
        most = plan.n_classes
        grid = Grid.of(Fraction(most * y.size), 0) if weights is None else Grid.of_part(weights, most)
        digits = None if weights is None else grid.digits(weights)
        ranked = {key: tuple(Ranked.of(order, run, digits) for run in runs) for key, order in plan.orders().items()}
        return cls(y, weights, grid, known_of(groups, runs), ranked)


class _Stretch(NamedTuple):
    """What several blocks have between two scores, and how many members and others are above, and members in all, or
    what they weigh, in units of a grid.
    """

    grid: Grid
    keys: Sequence[NDArray[np.uint64]]
    members: Sequence[Digits]
    others: Sequence[Digits]
    above: tuple[int, int]
    positives: int


def lost_of(stretch: _Stretch) -> list[Array]:
    """For each block (2, d): of a member and of another with each score twice how many are on the wrong side of it, or
    what these weigh.

    Equal scores count once. A pure function, for any process.
    """
    grid, keys = stretch.grid, np.concatenate(stretch.keys)
    distinct, places = np.unique(keys, return_inverse=True)
    sides = (np.concatenate(side, axis=1) for side in (stretch.members, stretch.others))
    inside, outside = held = [carried(_added(places, side, distinct.size)) for side in sides]
    # Members and others with at least each score.
    tp, fp = (grid.cumulated(side[:, ::-1], above)[:, ::-1] for side, above in zip(held, stretch.above, strict=True))
    below = grid.of_units(stretch.positives) - tp
    lost = np.stack([grid.rounded(carried(one)) for one in (2 * fp - outside, 2 * below + inside)])[:, places]
    ends = np.cumsum([one.size for one in stretch.keys])[:-1]
    return np.split(lost, ends, axis=1)


def _added(places: NDArray[np.intp], digits: Digits | None, size: int) -> Digits:
    """Sums (L, size) of digits (L, n), or how many there are, by their places: no more than 2^23 have one."""
    if digits is None:
        return np.bincount(places, minlength=size)[None].astype(np.int64, copy=False)
    return np.stack([np.bincount(places, row, size) for row in digits]).astype(np.int64)


class _Column:
    """What one run says of one block in an order, in a file: keys, members, others, and what is found.

    Attributes:
        grid: On which members and others are whole numbers.
        positives: What all members come to.
        total: And all entries.
    """

    def __init__(self, path: Path, ranked: Ranked, grid: Grid) -> None:
        self.path, self.size, self.stride = path, ranked.keys.size, max(isqrt(ranked.keys.size), 1)
        self.marks = ranked.keys[:: self.stride].copy()
        self.grid, self.undefined = grid, ranked.undefined
        self.positives = grid.fraction(grid.total(ranked.members))
        self.total = self.positives + grid.fraction(grid.total(ranked.others))
        with path.open("wb") as file:
            for part in (ranked.keys, ranked.members, ranked.others, np.zeros(2 * self.size), ranked.places):
                part.tofile(file)

    def reader(self) -> "_ColumnReader":
        """From the highest score down."""
        return _ColumnReader(self)

    def sides(self, start: int, stop: int) -> tuple[Digits, Digits]:
        """Members and others (L, m) from a place to another."""
        rows = [
            np.fromfile(self.path, np.int64, stop - start, offset=self._at(row, start))
            for row in range(1, 1 + 2 * self.grid.size)
        ]
        return np.stack(rows[: self.grid.size]), np.stack(rows[self.grid.size :])

    def write(self, start: int, lost: Array) -> None:
        """What was found (2, m) from a place on."""
        with self.path.open("r+b") as file:
            for row, found in enumerate(lost, start=self._found):
                file.seek(self._at(row, start))
                found.tofile(file)

    def values(self, members: NDArray[np.bool_]) -> Array:
        """What was found for each entry (m), of which some are members."""
        if self.undefined:
            return np.full(members.size, np.nan)
        places = np.fromfile(self.path, np.uint32, offset=self._at(self._found + 2, 0))
        of_members, of_others = (
            np.fromfile(self.path, np.float64, self.size, offset=self._at(self._found + side, 0)) for side in range(2)
        )
        return np.where(members, of_members.take(places), of_others.take(places))

    @property
    def _found(self) -> int:
        """The row behind keys, members and others."""
        return 1 + 2 * self.grid.size

    def _at(self, row: int, start: int) -> int:
        return (row * self.size + start) * _NUMBER


class _ColumnReader(Reader):
    """Knows where what it took stood."""

    def __init__(self, column: _Column) -> None:
        super().__init__(Run(column.size, column.marks, column.stride, None, [column.path, *[None] * 4]))
        self.column, self.left = column, column.size

    def next(self, floor: np.uint64) -> tuple[int, NDArray[np.uint64]]:
        """Where the keys from a key on begin that were not taken yet, and these."""
        keys = self.take(floor).keys.view(np.uint64)
        self.left -= keys.size
        return self.left, keys


@dataclass(frozen=True, slots=True, eq=False)
class _Written:
    """A block whose columns are in files."""

    path: Path
    size: int
    names: tuple[str, ...]
    columns: Mapping[str, tuple[_Column, ...]]
    weighted: bool

    def read(self, orders: Mapping[str, Order], plan: Plan) -> tuple[Codes, Known, Array | None]:
        """The codes of the samples, all values, and weights."""
        y = np.fromfile(self.path, np.intp, self.size)
        rest = np.fromfile(self.path, np.float64, offset=self.size * y.itemsize)
        weights, rest = (rest[: self.size], rest[self.size :]) if self.weighted else (None, rest)
        known = dict(zip(self.names, rest.reshape(len(self.names), plan.n_runs, self.size), strict=True))
        for key, columns in self.columns.items():
            order = orders[key]
            found = (column.values(order.members(y, plan.n_classes)) for column in columns)
            known[key] = np.stack([order.of_samples(one, y, plan.n_classes) for one in found])
        return y, known, weights


class Orders:
    """Blocks of samples, kept in files until all of them are there.

    Args:
        plan: What is summed.
        folder: Where files are made; who made it removes it.
        budget: Bytes of memory, about.
    """

    def __init__(self, plan: Plan, folder: Path, budget: int) -> None:
        self._plan, self._folder, self._budget = plan, folder, budget
        self._blocks: list[_Written] = []
        self._numbers = count()

    def add(self, block: Block) -> None:
        """Take in the samples of a block."""
        path, grid, weights = self._path(), block.grid, block.weights
        with path.open("wb") as file:
            for values in (block.y, *([] if weights is None else [weights]), *block.known.values()):
                values.tofile(file)
        columns = {
            key: tuple(_Column(self._path(), ranked, grid) for ranked in runs) for key, runs in block.ranked.items()
        }
        self._blocks.append(_Written(path, block.y.size, tuple(block.known), columns, weights is not None))

    def sums(self, in_order: InOrder = map) -> PairedSums:
        """What all samples come to.

        Args:
            in_order: Has stretches of orders and samples of blocks looked at, here or in other processes.
        """
        orders = self._plan.orders()
        for key in orders:
            for run in range(self._plan.n_runs):
                self._count([block.columns[key][run] for block in self._blocks], in_order)
        whole = PairedSums(self._plan, ordered=True)
        read = (block.read(orders, self._plan) for block in self._blocks)
        for sums in in_order(partial(_summed, self._plan), read):
            assert isinstance(sums, PairedSums)  # noqa: S101 - what was made
            whole.merge(sums)
        return whole

    def _path(self) -> Path:
        return self._folder / f"order-{next(self._numbers)}"

    def _count(self, columns: Sequence[_Column], in_order: InOrder) -> None:
        """Go through one order, and write what was found to where it belongs."""
        places: list[list[tuple[_Column, int]]] = []
        found = in_order(lost_of, self._stretches(columns, places))
        for number, lost in enumerate(found):
            assert isinstance(lost, list)  # noqa: S101 - what was made
            for (column, start), one in zip(places[number], lost, strict=True):
                column.write(start, one)
            places[number] = []

    def _stretches(self, columns: Sequence[_Column], places: list[list[tuple[_Column, int]]]) -> Iterator[_Stretch]:
        readers, above = [column.reader() for column in columns], (0, 0)
        total = sum((column.total for column in columns), start=Fraction(0))
        grid = Grid.of(total, min((column.grid.exponent for column in columns), default=0))
        positives = grid.whole(sum((column.positives for column in columns), start=Fraction(0)))
        for floor in floors_of(readers, self._budget, _distinct):
            taken = [(reader.column, *reader.next(floor)) for reader in readers]
            taken = [(column, start, keys) for column, start, keys in taken if keys.size]
            if not taken:
                continue
            read = [column.sides(start, start + keys.size) for column, start, keys in taken]
            members, others = (
                [grid.taken(both[side], column.grid) for both, (column, *_) in zip(read, taken, strict=True)]
                for side in range(2)
            )
            places.append([(column, start) for column, start, _ in taken])
            yield _Stretch(grid, [keys for *_, keys in taken], members, others, above, positives)
            above = above[0] + sum(map(grid.total, members)), above[1] + sum(map(grid.total, others))


def _summed(plan: Plan, block: tuple[Codes, Known, Array | None]) -> PairedSums:
    return PairedSums(plan, ordered=True).add_known(*block)


def _distinct(marks: NDArray[np.uint64]) -> Iterator[np.uint64]:
    yield from np.unique(marks)[::-1]


_ALL = slice(None)


class FoldedValue(NamedTuple):
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
class FoldedRuns:
    """What is left of the samples that R runs of K classes have in common."""

    n_runs: int
    n_classes: int
    _sums: Mapping[str, _Sums]

    @classmethod
    def read(cls, sums: Sequence[PairedSums]) -> Self:
        """What sums of one plan say."""
        found: dict[str, _Sums] = {}
        plan = sums[0].plan
        for one in sums:
            groups = plan.groups(ordered=one.ordered)
            found |= {
                key: _Sums(groups[key], moments.read(), moments.infinite(), one.counted.get(key), plan.weighted)
                for key, moments in one.moments.items()
            }
        return cls(plan.n_runs, plan.n_classes, found)

    def of(self, expression: Expression) -> tuple[FoldedValue, ...] | None:
        """The values of an expression; None where it was not folded, or has no closed form."""
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

    def _of(self, value: Expression) -> FoldedValue | None:
        group = group_of(value, self.n_classes, self.n_runs)
        sums = None if group is None else self._sums.get(group.key)
        if sums is None:
            return None
        parts = []
        for run in range(self.n_runs):
            found = linearised(value, _FoldedInfluences(sums, run, self.n_classes))
            if found is None:
                return None
            parts.append(found[0])
        covariance = _covariance(sums.moments, np.stack([part.influence for part in parts]))
        alone = tuple(
            replace(part, influence=np.sqrt(np.maximum(covariance[[run], run], 0.0))) for run, part in enumerate(parts)
        )
        return FoldedValue(alone, runs_of(alone, covariance), sums.counted)


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


class _FoldedInfluences:
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
    return _Made(1.0 - float(moments.overall[at]) / (4.0 * pairs), slopes, slope * moments.away[:, at])


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
        areas[one, other] = 1.0 - moments.means[one, at[place]] / (2.0 * masses[other])
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
    return _Made(1.0 - float(lost[code]) / (2.0 * negatives), slopes[:, None], levels, sizes=(worth[0], worth[1]))
