"""Which values of samples a comparison needs: of each metric what samples contribute to it.

A metric is a mean of values that each row has by itself, or an area: then the values are how many samples of the other
side stand on the wrong side of a sample in the order of a class, which all samples together say.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.kernel.metrics.card import Inputs, Metric
from app.kernel.metrics.expression import Every, Expression, Measure, is_smooth, measures
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.influence import AreaOf, Form, LinearMethod, Values
from app.kernel.samples.scores import Scores

# Values of all runs together whose products are summed with each other.
_MOST = 64


@dataclass(frozen=True, slots=True, eq=False)
class Summand:
    """A value of each sample.

    Attributes:
        key: Summands of one key are the same.
        code: The class in whose order it is counted; None where a row says it by itself.
    """

    key: str
    code: int | None = None
    values: Values | None = None
    parameters: Mapping[str, Any] | None = None

    def rows(self, scores: Scores) -> Array:
        """The values (n), each the same wherever its row stands; NaN of scores that are no probabilities. Of an order
        the scores of its class.
        """
        if self.code is not None:
            column: Array = scores.columns[self.code]
            return column
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
    def made(cls, metric: Any, of: int | None, parameters: Mapping[str, Any] | None, n_classes: int) -> "Leaf | None":
        """None where it is not."""
        card = metric.card
        form = card.inference.influence
        if card.inputs is not Inputs.PROBABILITIES or form is None:
            return None
        in_rows = form.row_mean is not None or form.skill is not None
        if not in_rows and (form.area is None or (form.area.of is AreaOf.PAIRS and n_classes > 2)):
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
        codes = range(n_classes)
        if area.of is AreaOf.ONE_CLASS or n_classes == 2:
            # Of two classes both have the same.
            codes = range(1, 2) if self.of is None else range(self.of, self.of + 1)
        return tuple(Summand(f"area@{code}", code) for code in codes)


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
        return any(one.code is not None for one in self.summands)


def parts_of(expression: Expression, n_classes: int) -> list[Expression]:
    """The V values of an expression, each as one of its own."""
    if isinstance(expression, Measure) and isinstance(expression.of, Every):
        return [Measure(expression.metric, expression.parameters, code) for code in range(n_classes)]
    return [expression]


def group_of(value: Expression, n_classes: int, n_runs: int) -> Group | None:
    """What one value is made of; None where a part has no such sums, they are too many, or it has no derivatives."""
    if not is_smooth(value):
        return None
    found = [Leaf.made(*one, n_classes) for one in _leaves(value, n_classes)]
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
