"""Which values of samples a comparison needs: of each metric what samples contribute to it.

A metric is a mean of values that each row has by itself, or an area: then the values are how many samples of the other
side stand on the wrong side of a sample in the order of a class, which all samples together say.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kernel.metrics.card import Inputs, Metric
from app.kernel.metrics.expression import Every, Expression, Measure, is_smooth, measures
from app.kernel.numerics.arrays import Array, Mask, silently
from app.kernel.samples.influence import AreaOf, Form, LinearMethod, Values
from app.kernel.samples.losses import Codes
from app.kernel.samples.scores import Scores

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
    form: Form

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
