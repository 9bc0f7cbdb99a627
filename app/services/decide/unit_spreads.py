"""How values of single queries, or of single items, are spread."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.domain.expressions.expressions import render
from app.domain.inputs.kinds import UNIT_KINDS
from app.domain.inputs.matrices import MatrixInput
from app.kernel.metrics.expression import Measure
from app.kernel.numerics.arrays import Array


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
    """Of the metrics that say something of single units; nothing where the kind of input has none.

    Raises:
        ValueError: the samples are not at hand.
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
