"""Metric expressions as trees: metrics with parameters, of one class or every class, and means over lists of them.

The tree is what the parser of ``app.domain.expressions`` makes of text, and what everything else evaluates: on a single
matrix as on a batch of a million, because its leaves are batch functions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf, isfinite
from types import MappingProxyType
from typing import Any, Self, TypeGuard

import numpy as np

from app.kernel.matrix.table import Table
from app.kernel.metrics.card import AnyMetric, Inputs, is_of_matrices
from app.kernel.metrics.families.combinations import COMBINATIONS, CombinationCard
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.scores import Scores


class Every(StrEnum):
    """The selector ``@*``: all classes as a list."""

    CLASS = "*"


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """Data of an evaluation by kind of input, for expressions that need more than a matrix.

    For classes: the matrix of the predictions and the scores behind them. For labels, clusters and rankings, the same
    names hold the data from which metrics of that name are computed there.
    """

    parts: Mapping[Inputs, Any]

    @classmethod
    def of_classes(cls, table: Table, scores: Scores) -> Self:
        """Subject with a matrix and scores."""
        return cls({Inputs.MATRIX: table, Inputs.PROBABILITIES: scores})

    @property
    def table(self) -> Table:
        """Table of confusion matrices."""
        table: Table = self.parts[Inputs.MATRIX]
        return table

    @property
    def scores(self) -> Scores:
        """Scores of samples."""
        scores: Scores = self.parts[Inputs.PROBABILITIES]
        return scores


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric with its parameters. ``of`` is a class index, every class, or None for an overall metric."""

    metric: AnyMetric
    parameters: Mapping[str, Any]
    of: int | Every | None


@dataclass(frozen=True, slots=True)
class Combination:
    """A named function of parts, with its parameters; ``weights`` (P) among them is one number for each value."""

    function: str
    parts: tuple["Expression", ...]
    parameters: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def card(self) -> CombinationCard:
        """Facts of the function."""
        return COMBINATIONS[self.function]

    def values(self, n_classes: int) -> list["Expression"]:
        """The parts, those that are lists as the expressions of one value that they are made of."""
        return [one for part in self.parts for one in of_each_class(part, n_classes)]


@dataclass(frozen=True, slots=True)
class Sliced:
    """An expression of the samples in one slice alone; ``where`` are its conditions, known to whom knows attributes."""

    part: "Expression"
    where: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class OverSlices:
    """A named function of the one value that a part has in every slice of an attribute of so many samples."""

    function: str
    part: "Expression"
    by: str
    fewest: int

    @property
    def card(self) -> CombinationCard:
        """Facts of the function."""
        return COMBINATIONS[self.function]


Expression = Measure | Combination | Sliced | OverSlices
Bounds = tuple[float | None, float | None]


def usual_measure(expression: Expression) -> Measure | None:
    """Return an expression that is one metric at its default parameters; None for others."""
    usual = isinstance(expression, Measure) and dict(expression.parameters) == expression.metric.card.defaults
    return expression if isinstance(expression, Measure) and usual else None


def is_list(expression: Expression) -> bool:
    """True if the expression has one value per class."""
    if isinstance(expression, Sliced):
        return is_list(expression.part)
    return isinstance(expression, Measure) and expression.of is Every.CLASS


def of_each_class(expression: Expression, n_classes: int) -> list[Expression]:
    """The expressions of one value that an expression is made of."""
    if isinstance(expression, Sliced):
        return [replace(expression, part=one) for one in of_each_class(expression.part, n_classes)]
    if not isinstance(expression, Measure) or not is_list(expression):
        return [expression]
    return [replace(expression, of=index) for index in range(n_classes)]


def is_of_slices(expression: Expression) -> bool:
    """True if the expression, or a part of it, is of slices, which samples fall into by their attributes."""
    if isinstance(expression, Combination):
        return any(map(is_of_slices, expression.parts))
    return not isinstance(expression, Measure)


def parts_of(expression: Expression) -> tuple[Expression, ...]:
    """Return the parts of the expression; a metric has none."""
    if isinstance(expression, Measure):
        return ()
    return (expression.part,) if isinstance(expression, Sliced | OverSlices) else expression.parts


def measures(expression: Expression) -> tuple[Measure, ...]:
    """Leaves of the expression, left to right."""
    if isinstance(expression, Measure):
        return (expression,)
    return tuple(leaf for part in parts_of(expression) for leaf in measures(part))


def is_biased(expression: Expression) -> bool:
    """True if noise moves a metric of the expression to one side."""
    return any(leaf.metric.card.inference.biased for leaf in measures(expression))


def is_smooth(expression: Expression) -> bool:
    """True if the expression has derivatives by the counts. Extremes and spreads have none where values are equal."""
    if isinstance(expression, Measure):
        return True
    if isinstance(expression, Sliced):
        return is_smooth(expression.part)
    return (
        isinstance(expression, Combination)
        and not is_of_slices(expression)
        and expression.card.slopes is not None
        and all(is_smooth(part) for part in expression.parts)
    )


def is_about_sample(expression: Expression) -> bool:
    """True if the expression holds a statistic of the sample that is no property of the classifier."""
    return any(leaf.metric.card.inference.about_sample for leaf in measures(expression))


def is_improper(expression: Expression) -> bool:
    """True if the expression scores the probabilities of all samples without being best for the true ones.

    A single class, or a slice, is no such score: its gain may be a loss of others.
    """
    if is_of_slices(expression) or (isinstance(expression, Measure) and isinstance(expression.of, int)):
        return False
    return all(leaf.metric.card.inference.proper is False for leaf in measures(expression))


def needs_counts(expression: Expression) -> bool:
    """True if a metric of the expression depends on the number of samples."""
    return any(leaf.metric.card.needs_counts for leaf in measures(expression))


def is_over_cuts(expression: Expression) -> TypeGuard[Measure]:
    """True if it is the largest value of a metric over all cuts of the scores."""
    return isinstance(expression, Measure) and expression.metric.card.inference.over_cuts


def depends_on_size(expression: Expression) -> bool:
    """True if twice as many samples of the same kind have another value."""
    return needs_counts(expression) or grows(expression)


def grows(expression: Expression) -> bool:
    """True if a metric of the expression moves on with the number of samples, as a number of samples does."""
    return any(leaf.metric.card.degree == 1 or leaf.metric.card.grows for leaf in measures(expression))


def of_probabilities(expression: Expression) -> bool:
    """True if a metric of the expression does not follow from a matrix."""
    return not all(is_of_matrices(leaf.metric) for leaf in measures(expression))


def compute(expression: Expression, subject: Table | Subject) -> Array:
    """Value of the expression: (..., K) when it is a list, else (...). Metrics of probabilities need a ``Subject``."""
    with silently():
        return _compute(expression, subject)


def _compute(expression: Expression, subject: Table | Subject) -> Array:
    if isinstance(expression, Measure):
        values = expression.metric.compute(data_of(expression.metric, subject), **expression.parameters)
        return values[..., expression.of] if isinstance(expression.of, int) else values
    if not isinstance(expression, Combination):
        raise TypeError("slices are made of samples with attributes, each as data of its own")
    parts = [_compute(part, subject) for part in expression.parts]
    columns = [
        part if is_list(source) else part[..., None] for part, source in zip(parts, expression.parts, strict=True)
    ]
    return expression.card.compute(np.concatenate(columns, axis=-1), **expression.parameters)


def value_over_slices(expression: OverSlices, values: Array) -> Array:
    """Value (...) of a function of the values (..., S) of slices, of which NaN takes no part; NaN of none, and of one
    where two are compared.
    """
    fewest = 1 if expression.card.ends is None else 2
    found = np.full(values.shape[:-1], np.nan)
    patterns, which = np.unique(np.isfinite(values).reshape(found.size, values.shape[-1]), axis=0, return_inverse=True)
    for place, there in enumerate(patterns):
        if there.sum() >= fewest:
            rows = which.reshape(found.shape) == place
            with silently():
                found[rows] = expression.card.compute(values[rows][:, there])
    return found


def data_of(metric: AnyMetric, subject: Table | Subject) -> Any:
    """Data for the function of a metric.

    Raises:
        TypeError: the metric needs the scores of samples, and there is only a table.
    """
    if isinstance(subject, Subject):
        return subject.parts[metric.card.inputs]
    if not is_of_matrices(metric):
        raise TypeError(f"{metric.key} needs the scores of samples")
    return subject


def bounds(expression: Expression) -> Bounds:
    """Range of the values of an expression."""
    if isinstance(expression, Measure):
        return expression.metric.card.range_with(expression.parameters)
    if isinstance(expression, Sliced):
        return bounds(expression.part)
    card = expression.card
    if card.range is not None:
        return card.range
    lows, highs = zip(*map(bounds, parts_of(expression)), strict=True)
    low = (card.picks or min)([-inf if end is None else end for end in lows])
    high = (card.picks or max)([inf if end is None else end for end in highs])
    return (low if isfinite(low) else None, high if isfinite(high) else None)


def is_insensitive(expression: Expression, n_classes: int) -> bool:
    """True if every metric of the expression is insensitive to prevalence for K classes."""
    return all(leaf.metric.card.prevalence.is_insensitive(n_classes) for leaf in measures(expression))
