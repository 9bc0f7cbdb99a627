"""Distributions for figures: scores of a class beside those of all others, and values of single queries or items."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from app.domain.expressions.expressions import render
from app.domain.inputs.kinds import UNIT_KINDS
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.samples import DecidedBy
from app.kernel.metrics.expression import Measure
from app.kernel.numerics.arrays import Array
from app.services.stored import scores_of

# Between two classes the one of the higher probability is decided for.
_HALF: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Histogram:
    """The scores of one class for samples of that class, and for all other samples.

    Attributes:
        edges: Of the bins, one more than there are bins.
        inside: Shares of the samples of the class, which add up to 1.
        outside: The same of all other samples.
        n_inside: How many samples the class has; a sum of weights where samples have them.
        cut: From here on the class is decided for; None where no single cut decides.
    """

    edges: Array
    inside: Array
    outside: Array
    n_inside: float
    n_outside: float
    cut: float | None
    are_probabilities: bool


def histogram_of(source: MatrixInput, place: int, bins: int) -> Histogram:
    """The histogram of the scores of a class, by its place. Raises ValueError without probabilities or scores."""
    scores = scores_of(source)
    values: Array = scores.probabilities[:, place]
    weights: Array = np.ones(len(values)) if scores.weights is None else scores.weights
    known = scores.are_probabilities
    low, high = (0.0, 1.0) if known else (float(values.min()), float(values.max()))
    if low == high:
        room = max(0.5, 1e-9 * abs(low))
        low, high = low - room, high + room
    # In halves, which add up within a double; scores next to each other have fewer bins between them.
    edges = np.unique(2.0 * np.linspace(0.5 * low, 0.5 * high, bins + 1))
    belongs = scores.y == place
    totals = [float(weights[one].sum()) for one in (belongs, ~belongs)]
    inside, outside = (
        np.histogram(values[one], edges, weights=weights[one])[0] / (total or 1.0)
        for one, total in zip((belongs, ~belongs), totals, strict=True)
    )
    return Histogram(
        edges=edges,
        inside=inside,
        outside=outside,
        n_inside=totals[0],
        n_outside=totals[1],
        cut=_cut(source, place, are_probabilities=known),
        are_probabilities=known,
    )


def _cut(source: MatrixInput, place: int, *, are_probabilities: bool) -> float | None:
    """The threshold as it lies on the scores of this class; argmax of two probabilities is a threshold of a half."""
    facts: Mapping[str, Any] = source.facts
    threshold = facts.get("threshold")
    if len(source.labels) != 2:
        return None
    if threshold is None and are_probabilities and facts.get("rule") == DecidedBy.ARGMAX:
        return _HALF
    if not isinstance(threshold, int | float):
        return None
    if place == (1 if source.positive is None else source.positive):
        return float(threshold)
    return 1.0 - threshold if are_probabilities else -float(threshold)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnitSpread:
    """The values of one metric for each query or item, from 0 to 1.

    Attributes:
        metric: As an expression.
        edges: Of the bins, one more than there are bins.
        counts: Queries or items in each bin; the last holds what is 1.
        quartiles: Three; empty where no query has a value.
        lowest: How many are 0.
        highest: How many are 1.
        known: How many have a value.
        without: How many have none.
    """

    metric: str
    edges: Sequence[float]
    counts: Sequence[int]
    quartiles: Sequence[float]
    lowest: int
    highest: int
    known: int
    without: int


def unit_spreads(source: MatrixInput, bins: int) -> list[UnitSpread]:
    """Return the spread over single units of each metric that has a value for each; none for other kinds of input.

    Raises:
        ValueError: the samples are not known.
    """
    kind = None if source.task is None else UNIT_KINDS[source.task]
    if kind is None or not kind.of_units:
        return []
    subject, found = kind.units(source).subject(), []
    for metric in kind.of_units:
        terms, parameters = metric.card.inference.terms, metric.card.defaults
        if terms is None:
            raise TypeError(f"{metric.key} is no sum over units")
        values: Array = terms(subject.parts[metric.card.inputs], **parameters).of_units
        found.append(_spread(render(Measure(metric, parameters, None), ()), values, bins))
    return found


def _spread(metric: str, values: Array, bins: int) -> UnitSpread:
    known = values[~np.isnan(values)]
    counts, edges = np.histogram(known, bins, (0.0, 1.0))
    return UnitSpread(
        metric=metric,
        edges=edges.tolist(),
        counts=counts.tolist(),
        quartiles=np.quantile(known, (0.25, 0.5, 0.75)).tolist() if known.size else [],
        lowest=int(np.count_nonzero(known == 0.0)),
        highest=int(np.count_nonzero(known == 1.0)),
        known=known.size,
        without=values.size - known.size,
    )
