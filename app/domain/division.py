"""Samples divided by their attributes: columns of values or bins, and the slices that they are crossed to."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import InvalidInput, OutOfReach, in_pointer
from app.domain.expressions.conditions import Condition, Slice
from app.domain.inputs.attributes import Attribute, Attributes
from app.domain.inputs.labels import normalized
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.samples import Samples, Tally
from app.domain.slices import Places, attribute_named, attributes_of, samples_at
from app.kernel.numerics.arrays import Array

# Slices that samples are divided into, however small.
MOST_SLICES: Final = 20_000
# A slice by its conditions: a value of each attribute, or `from` and `to` of a number.
Where = Mapping[str, Any]
# Numbers with more different values are divided into quarters where no bins are asked for.
_MANY_NUMBERS, _QUARTERS = 20, 4
# What samples can say, so that it has a number.
_MOST_CELLS: Final = 1 << 62


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """An attribute whose values divide the samples: (n) the place of the value of each, and values as a condition says
    them, or `from` and `to`.
    """

    name: str
    codes: Places
    values: Sequence[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A slice by its conditions, with the places of its entries, which rise, and how many samples they are."""

    where: Where
    places: Places
    size: int

    @classmethod
    def of(cls, source: MatrixInput, where: Where, places: Places) -> "Part":
        """Make it of some samples of an input."""
        return cls(where, places, samples_at(source, places))


def crossed(source: MatrixInput, columns: Sequence[Column], depth: int, fewest: int) -> tuple[list[Part], list[Part]]:
    """Slices with so many conditions, of different columns, and those of too few samples.

    Raises:
        OutOfReach: they are too many.
    """
    parts: list[Part] = []
    small: list[Part] = []
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
            one = Part.of(source, where, places)
            (parts if one.size >= fewest else small).append(one)
    return parts, small


def columns_of(source: MatrixInput, names: Sequence[str], bins: Mapping[str, Sequence[float] | int]) -> list[Column]:
    """Columns of some attributes of an input, or of all where none are named.

    Raises:
        InvalidInput: there is no such attribute, or bins are asked of something else than a number.
    """
    known = attributes_of(source, "/by")
    for name in bins:
        if not attribute_named(known, name, f"/bins/{in_pointer(name)}").is_number:
            raise InvalidInput.at(
                f"/bins/{in_pointer(name)}", "not_a_number", f"expected a number to divide, {name} is none"
            )
    # Of a name that comes twice there is one column.
    chosen = {name: attribute_named(known, name, f"/by/{place}") for place, name in enumerate(names or known)}
    times = None if source.samples is None or source.samples.tally is None else source.samples.tally.times
    return [_column(name, one, bins.get(name), times) for name, one in chosen.items()]


def gathered(
    source: MatrixInput, columns: list[Column], reference: Places | None
) -> tuple[MatrixInput, list[Column], Places | None]:
    """Return samples that say the same as one entry, for metrics of a matrix: a slice costs what its entries do.

    ``reference`` has the places of those that slices are held against. Weighted samples stay as they are, since sums of
    weights would change in their last digits.
    """
    samples = source.samples
    if samples is None or source.is_weighted or samples.tally is not None:
        return source, columns, reference
    inside = np.zeros(samples.size, dtype=np.intp)
    if reference is not None:
        inside[reference] = 1
    names, groups = (None, inside * 0) if source.groups is None else np.unique(source.groups, return_inverse=True)
    codes = [samples.truth, samples.predicted, inside, groups, *(one.codes for one in columns)]
    sizes = [len(source.labels)] * 2 + [2, 1 if names is None else names.size, *(len(one.values) for one in columns)]
    if math.prod(sizes) > _MOST_CELLS:
        return source, columns, reference
    kept, times = np.unique(np.ravel_multi_index(codes, sizes), return_counts=True)
    truth, predicted, inside, groups, *others = np.unravel_index(kept, sizes)
    entries = [replace(one, codes=own) for one, own in zip(columns, others, strict=True)]
    attributes = Attributes({one.name: Attribute(one.codes, tuple(one.values)) for one in entries})
    samples = Samples(
        truth=truth.astype(np.int64),
        predicted=predicted.astype(np.int64),
        groups=None if names is None else names[groups],
        tally=Tally(times.astype(np.int64)),
        attributes=attributes,
    )
    held = None if reference is None else np.flatnonzero(inside)
    return replace(source, samples=samples, fold_counts=None), entries, held


def conditions_of(where: Where) -> Slice:
    """Conditions of a slice as a body names it."""
    found = []
    for name, value in where.items():
        ends = [(">=", value.get("from")), ("<", value.get("to"))] if isinstance(value, Mapping) else [("=", value)]
        found += [
            Condition(normalized(name), operator, (end,))
            for operator, end in ends
            if operator == "=" or end is not None
        ]
    return tuple(found)


def divided(source: MatrixInput, by: str, fewest: int) -> tuple[list[Part], list[Part]]:
    """The slices of one attribute, numbers of many values in quarters, and those of too few samples.

    Raises:
        InvalidInput: there is no such attribute.
    """
    return crossed(source, columns_of(source, [by], {}), 1, fewest)


def slice_text(where: Where) -> str:
    """Name a slice in a sentence: site B, age 30 to 50, no site."""
    return ", ".join(_condition(name, value) for name, value in where.items())


def _condition(name: str, value: Any) -> str:
    if value is None:
        return f"no {name}"
    if not isinstance(value, Mapping):
        return f"{name} {str(value).lower() if isinstance(value, bool) else value}"
    low, high = (None if end is None else f"{end:g}" for end in (value.get("from"), value.get("to")))
    if low is None:
        return f"{name} below {high}"
    return f"{name} from {low}" if high is None else f"{name} {low} to {high}"


def _column(
    name: str, attribute: Attribute, bins: Sequence[float] | int | None, times: NDArray[np.int64] | None
) -> Column:
    """A column of the values, or of bins of numbers: those asked for, or quarters where there are many. Each entry
    stands for ``times`` (n) samples, None is 1 each.
    """
    if bins is None and not (attribute.is_number and len(attribute.values) > _MANY_NUMBERS):
        return Column(name, attribute.codes, attribute.values)
    numbers = np.array([np.nan if one is None else one for one in attribute.values], dtype=np.float64)
    if isinstance(bins, Sequence):
        edges = np.array(bins, dtype=np.float64)
    else:
        sizes = np.bincount(attribute.codes, times, minlength=numbers.size).astype(np.int64)
        edges = _parted(numbers, sizes, bins or _QUARTERS)
        if not edges.size:
            return Column(name, attribute.codes, attribute.values)
    places = np.where(np.isnan(numbers), edges.size + 1, np.searchsorted(edges, numbers, side="right"))
    ends = [None, *edges.tolist(), None]
    values: list[Any] = [{"from": low, "to": high} for low, high in pairwise(ends)]
    return Column(name, places[attribute.codes], [*values, None])


def _parted(numbers: Array, sizes: NDArray[np.int64], parts: int) -> Array:
    """Return where parts with equally many samples begin, but the first one, of different numbers (V) that so many
    samples (V) have, NaN where a sample has none; nothing where all are equal.
    """
    there = np.flatnonzero(~np.isnan(numbers) & (sizes > 0))
    order = there[np.argsort(numbers[there])]
    rising, until = numbers[order], np.cumsum(sizes[order])
    if rising.size < 2:
        return rising[:0]
    found = np.unique(rising[np.searchsorted(until * parts, np.arange(1, parts) * until[-1])])
    # No sample lies below the smallest, which may have most of them.
    edges: Array = found[found > rising[0]]
    return edges if edges.size else rising[1:2]
