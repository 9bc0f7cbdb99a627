"""Which values of samples a comparison needs: of each metric what samples contribute to it, row by row."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.kernel.metrics.card import Inputs, Metric
from app.kernel.metrics.expression import Every, Expression, Measure, is_smooth, measures
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.influence import Form, LinearMethod
from app.kernel.samples.scores import Scores

# Values of all runs together whose products are summed with each other.
_MOST = 64


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A metric that is the mean of what each sample contributes to it.

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
        """None where it is no such mean."""
        card = metric.card
        form = card.inference.influence
        if card.inputs is not Inputs.PROBABILITIES or form is None or form.row_mean is None:
            return None
        return cls(metric, of, {**card.defaults, **(parameters or {})}, form)

    @property
    def key(self) -> str:
        """Leaves of one key are the same."""
        return f"{self.metric.key}@{self.of}{sorted(self.parameters.items())!r}"

    @property
    def is_share(self) -> bool:
        """Does each sample count 1 or 0?"""
        return self.form.method is LinearMethod.WILSON

    def rows(self, scores: Scores) -> Array:
        """What each sample contributes (n): the same wherever it stands. NaN of scores that are no probabilities."""
        if not scores.are_probabilities:
            return np.full(scores.n_samples, np.nan)
        assert self.form.row_mean is not None  # noqa: S101 - others are not made
        with silently():
            return self.form.row_mean.values(scores, self.parameters)


# Leaves whose values are looked at together.
Group = tuple[Leaf, ...]


def parts_of(expression: Expression, n_classes: int) -> list[Expression]:
    """The V values of an expression, each as one of its own."""
    if isinstance(expression, Measure) and isinstance(expression.of, Every):
        return [Measure(expression.metric, expression.parameters, code) for code in range(n_classes)]
    return [expression]


def group_of(value: Expression, n_classes: int, n_runs: int) -> Group | None:
    """What one value is made of; None where a part is no mean, they are too many, or it has no derivatives by them."""
    if not is_smooth(value):
        return None
    found = [Leaf.made(*one) for one in _leaves(value, n_classes)]
    distinct = {leaf.key: leaf for leaf in found if leaf is not None}
    if None in found or len(distinct) * n_runs > _MOST:
        return None
    return tuple(distinct.values())


def groups_of(expressions: Sequence[Expression], n_classes: int, n_runs: int) -> dict[str, Group]:
    """All that some expressions are made of, by their keys; what is none of means is left out."""
    values = [value for expression in expressions for value in parts_of(expression, n_classes)]
    found = [group_of(value, n_classes, n_runs) for value in values]
    return {key_of(group): group for group in found if group is not None}


def key_of(group: Group) -> str:
    """Groups of one key are the same."""
    return " ".join(leaf.key for leaf in group)


def _leaves(value: Expression, n_classes: int) -> Iterator[tuple[Any, int | None, Mapping[str, Any]]]:
    for leaf in measures(value):
        for one in parts_of(leaf, n_classes):
            assert isinstance(one, Measure)  # noqa: S101 - what a measure is made of
            yield one.metric, one.of if isinstance(one.of, int) else None, one.parameters
