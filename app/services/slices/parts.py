"""Samples divided by their attributes: columns of values or bins, and the slices that they are crossed to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import OutOfReach
from app.domain.inputs.matrices import MatrixInput
from app.kernel.matrix.table import confusion_counts
from app.kernel.numerics.arrays import Mask
from app.services.slices.answers import SliceLeftOut, Where

# Slices that samples are divided into, however small.
MOST_SLICES: Final = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """An attribute whose values divide the samples.

    Attributes:
        name: Of the attribute.
        codes: (n) place of the value of each sample.
        values: As a condition says them: a value, or `from` and `to`.
    """

    name: str
    codes: NDArray[np.intp]
    values: Sequence[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A slice with its samples.

    Attributes:
        where: Its conditions.
        places: Which samples are in it, rising.
    """

    where: Where
    places: NDArray[np.intp]


def crossed(columns: Sequence[Column], depth: int, fewest: int) -> tuple[list[Part], list[SliceLeftOut]]:
    """Slices with so many conditions, of different columns, and those of too few samples.

    Raises:
        OutOfReach: they are too many.
    """
    parts: list[Part] = []
    small: list[SliceLeftOut] = []
    for chosen in combinations(columns, depth):
        cells = np.zeros(chosen[0].codes.size, dtype=np.intp)
        for column in chosen:
            cells = cells * len(column.values) + column.codes
        order = np.argsort(cells, kind="stable")
        found, starts = np.unique(cells[order], return_index=True)
        if len(parts) + len(small) + found.size > MOST_SLICES:
            raise OutOfReach(
                f"the samples fall into more than {MOST_SLICES} slices; name fewer attributes, or bins of numbers",
                pointer="/by",
            )
        shape = [len(column.values) for column in chosen]
        for cell, places in zip(found.tolist(), np.split(order, starts[1:]), strict=True):
            codes = np.unravel_index(cell, shape)
            where = {column.name: column.values[int(code)] for column, code in zip(chosen, codes, strict=True)}
            if places.size >= fewest:
                parts.append(Part(where, places))
            else:
                small.append(SliceLeftOut(where, places.size, f"fewer than {fewest} samples"))
    return parts, small


# Edges of bins of a number where none are named: it has more values than are slices.
_QUANTILES = 4
# A number with so many different values at most is divided by these.
_FEW_VALUES = 20


def columns_of(source: MatrixInput, names: Sequence[str], bins: Mapping[str, Sequence[float] | int]) -> list[Column]:
    attributes = source.samples.attributes or {}
    out = []
    for name in names or attributes:
        values = attributes[name]
        out.append(_column(name, values, bins.get(name)))
    return out


def _column(name: str, values: NDArray[Any], bins: Sequence[float] | int | None) -> Column:
    if bins is None:
        vals, codes = np.unique(values, return_inverse=True)
        return Column(name, codes, vals.tolist())
    edges = (
        np.asarray(bins, float) if not isinstance(bins, int) else np.quantile(values, np.linspace(0, 1, bins + 1)[1:-1])
    )
    ends = [None, *edges.tolist(), None]
    return Column(name, np.searchsorted(edges, values, "right"), [{"from": a, "to": b} for a, b in zip(ends, ends[1:])])


def named_places(source, where, bins):
    mask = np.ones(source.samples.size, bool)
    for c in columns_of(source, list(where), bins):
        mask &= c.codes == c.values.index(where[c.name])
    return np.flatnonzero(mask)


def restricted(source: MatrixInput, mask: Mask) -> MatrixInput:
    s = source.samples
    take = lambda a: None if a is None else a[mask]
    samples = replace(
        s,
        truth=s.truth[mask],
        predicted=s.predicted[mask],
        outputs=take(s.outputs),
        ids=take(s.ids),
        weights=take(s.weights),
        groups=take(s.groups),
    )
    return replace(
        source,
        samples=samples,
        counts=confusion_counts(samples.truth, samples.predicted, len(source.labels), samples.weights),
    )
