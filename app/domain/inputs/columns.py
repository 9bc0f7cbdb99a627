"""Columns as they came, one entry per sample, made arrays: numbers, rows of numbers, weights, ids and groups."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import InvalidInput, TooLarge
from app.domain.inputs.content import GROUPS_FACT, LARGEST_TOTAL, WEIGHTS_FACT
from app.domain.inputs.labels import (
    LONGEST_NAME,
    CodedTexts,
    Column,
    Numbers,
    as_labels,
    described,
    first_fraction,
    shown,
)
from app.domain.inputs.samples import Tally, ids_as_array

# Texts of ids lie side by side in memory, each as long as the longest, 4 bytes a character.
_LARGEST_IDS = 2**30
Rows = list[Any] | NDArray[Any]


def check_lengths(first: str, columns: Mapping[str, Any], pointer: str, *, unit: str = "sample") -> int:
    """Entries of the column ``first``, at least one, of which every column has as many. Raises InvalidInput."""
    size = len(columns[first])
    if size == 0:
        raise InvalidInput.at(f"{pointer}/{first}", "no_samples", f"expected at least one {unit}, got none")
    for name, column in columns.items():
        if len(column) != size:
            raise InvalidInput.at(
                f"{pointer}/{name}", "wrong_length", f"expected {size} entries as in {first}, got {len(column)}"
            )
    return size


# --- numbers ---------------------------------------------------------------------------------------------------------


def read_numbers(
    column: Numbers, pointer: str, lowest: float = -math.inf, highest: float = math.inf
) -> NDArray[np.float64]:
    """Finite numbers (n) between two bounds. Raises InvalidInput."""
    if isinstance(column, list) and not set(map(type, column)) <= {int, float}:
        index = next(i for i, value in enumerate(column) if type(value) not in (int, float))
        raise _not_a_number(f"{pointer}/{index}", column[index])
    try:
        values = np.asarray(column, dtype=np.float64)
    except OverflowError:
        index = next(i for i, value in enumerate(column) if abs(value) > 1e300)
        raise InvalidInput.at(f"{pointer}/{index}", "not_finite", "expected a number that fits a double") from None
    bad = ~np.isfinite(values)
    if bad.any():
        index = int(np.argmax(bad))
        raise InvalidInput.at(f"{pointer}/{index}", "not_finite", f"expected a finite number, got {values[index]}")
    check_range(values, pointer, lowest, highest)
    return values


def read_rows(rows: Rows, pointer: str) -> NDArray[np.float64]:
    """Rows of numbers, all of one length, as an array (n, K). The numbers may be anything that a double holds.

    Raises:
        InvalidInput: a row is none, is longer or shorter than the first, or has something else than numbers.
    """
    if isinstance(rows, np.ndarray):
        if rows.ndim != 2:
            raise InvalidInput.at(f"{pointer}/0", "not_a_row", "expected an array of numbers for every sample")
        return rows.astype(np.float64, copy=False)
    width = len(rows[0]) if isinstance(rows[0], list) else 0
    for index, row in enumerate(rows):
        if not isinstance(row, list):
            raise InvalidInput.at(
                f"{pointer}/{index}", "not_a_row", f"expected an array of numbers, got {described(row)}"
            )
        if len(row) != width:
            raise _ragged(f"{pointer}/{index}", width, len(row))
        if not set(map(type, row)) <= {int, float}:
            column = next(k for k, value in enumerate(row) if type(value) not in (int, float))
            raise _not_a_number(f"{pointer}/{index}/{column}", row[column])
    try:
        return np.array(rows, dtype=np.float64)
    except OverflowError:
        raise InvalidInput.at(pointer, "out_of_range", "expected numbers that fit a double") from None


def read_table(rows: list[list[float]], pointer: str) -> NDArray[np.float64]:
    """A table of numbers with at least one row and one column. Raises InvalidInput."""
    width = len(rows[0]) if rows else 0
    for index, row in enumerate(rows):
        if len(row) != width or not row:
            raise _ragged(f"{pointer}/{index}", max(width, 1), len(row))
    if not rows:
        raise InvalidInput.at(pointer, "no_samples", "expected at least one row, got none")
    return np.array(rows, dtype=np.float64)


def check_range(
    values: NDArray[np.float64], pointer: str, lowest: float, highest: float, *, what: str = "number"
) -> None:
    """Raises InvalidInput: a value, of any shape, lies outside of the bounds or is NaN."""
    bad = ~((values >= lowest) & (values <= highest))
    if bad.any():
        first = tuple(np.argwhere(bad)[0].tolist())
        bounds = f"of {lowest:g} or more" if np.isinf(highest) else f"between {lowest:g} and {highest:g}"
        place = "/".join(map(str, (pointer, *first)))
        raise InvalidInput.at(place, "out_of_range", f"expected a {what} {bounds}, got {values[first]:g}")


def _ragged(pointer: str, width: int, length: int) -> InvalidInput:
    return InvalidInput.at(pointer, "ragged_row", f"expected {width} entries as in the first row, got {length}")


def _not_a_number(pointer: str, value: Any) -> InvalidInput:
    return InvalidInput.at(pointer, "not_a_number", f"expected a number, got {described(value)}")


# --- weights, ids and groups -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Beside:
    """Columns (n) beside what samples are judged by; None for those that did not come."""

    ids: NDArray[Any] | None
    weights: NDArray[np.float64] | None
    groups: NDArray[Any] | None

    def facts(self, tally: Tally | None = None) -> dict[str, Any]:
        """Facts of an input with these columns."""
        return {**weight_facts(self.weights, tally), **group_facts(self.groups)}

    @property
    def is_empty(self) -> bool:
        """Are there no such columns?"""
        return self.ids is None and self.weights is None and self.groups is None


def read_beside(columns: Mapping[str, Any], pointer: str) -> Beside:
    """Weights, ids and groups among columns. Raises InvalidInput."""
    readers: Mapping[str, Any] = {"sample_ids": read_ids, "sample_weight": read_weights, "group_ids": read_groups}
    found = {
        name: read(columns[name], f"{pointer}/{name}") if name in columns else None for name, read in readers.items()
    }
    return Beside(*found.values())


def read_weights(column: Numbers, pointer: str) -> NDArray[np.float64]:
    """Weights (n), finite and 0 or more. Raises InvalidInput."""
    if isinstance(column, list) and not set(map(type, column)) <= {int, float}:
        index, value = next((i, v) for i, v in enumerate(column) if type(v) not in (int, float))
        raise _not_a_number(f"{pointer}/{index}", value)
    try:
        weights = np.asarray(column, dtype=np.float64)
    except OverflowError:
        weights = np.array([float(v) if -LARGEST_TOTAL <= v <= LARGEST_TOTAL else math.inf for v in column])
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        index = int(np.argmax(bad))
        raise InvalidInput.at(
            f"{pointer}/{index}", "bad_weight", f"expected a finite weight of 0 or more, got {weights[index]:g}"
        )
    return weights


def read_ids(sample_ids: Column, pointer: str) -> NDArray[Any]:
    """Ids (n) that differ, the integer 3 and the string "3" being the same: runs are paired by them.

    Raises:
        InvalidInput, TooLarge: as `read_groups`, or an id is there twice.
    """
    ids = read_groups(sample_ids, pointer)
    # Sorting texts takes ten times as long as hashing them.
    if len(np.unique(ids) if ids.dtype.kind == "i" else set(ids.tolist())) == len(ids):
        return ids
    seen: dict[Any, int] = {}
    for index, one in enumerate(ids.tolist()):
        if one in seen:
            raise InvalidInput.at(
                f"{pointer}/{index}",
                "duplicate_sample_id",
                f"expected ids that differ, got {shown(str(one))} at {seen[one]} and again here",
            )
        seen[one] = index
    raise AssertionError("ids that differ in number differ somewhere")


def read_groups(group_ids: Column, pointer: str) -> NDArray[Any]:
    """The group (n) of each sample, int64 or texts.

    Raises:
        InvalidInput: one is neither a text nor a whole number, or is too long.
        TooLarge: all of them take too much room.
    """
    _check_ids(group_ids, pointer)
    if isinstance(group_ids, np.ndarray) and group_ids.dtype.kind != "U":
        return np.asarray(as_labels(group_ids, pointer, code="not_an_id"))
    texts = group_ids.texts if isinstance(group_ids, CodedTexts) else map(str, group_ids)
    longest = max(map(len, texts), default=0)
    if longest > LONGEST_NAME:
        index = next(index for index in range(len(group_ids)) if len(str(group_ids[index])) > LONGEST_NAME)
        raise InvalidInput.at(
            f"{pointer}/{index}", "not_an_id", f"expected at most {LONGEST_NAME} characters, got {longest}"
        )
    if 4 * longest * len(group_ids) > _LARGEST_IDS:
        raise TooLarge(
            f"expected ids of at most {_LARGEST_IDS} bytes, got {len(group_ids)} of up to {longest} characters, "
            "4 bytes each",
            pointer=pointer,
        )
    return ids_as_array(group_ids)


def _check_ids(ids: Column, pointer: str) -> None:
    """Strings, integers and whole numbers; those of JSON may be mixed."""
    if isinstance(ids, CodedTexts):
        return
    index: int | None = None
    if isinstance(ids, np.ndarray):
        index = first_fraction(ids) if ids.dtype.kind == "f" else 0 if ids.dtype.kind == "b" and len(ids) else None
    elif not set(map(type, ids)) <= {int, str}:
        index = next((i for i, v in enumerate(ids) if not _is_id(v)), None)
    if index is not None:
        raise InvalidInput.at(
            f"{pointer}/{index}", "not_an_id", f"expected a string or an integer, got {described(ids[index])}"
        )


def _is_id(value: Any) -> bool:
    return type(value) in (int, str) or (type(value) is float and first_fraction(np.array([value])) is None)


def weight_facts(weights: NDArray[Any] | None, tally: Tally | None = None) -> dict[str, Any]:
    """The effective number of weighted samples, where there are two or more of them: Kish's (sum w)^2 / sum w^2."""
    if weights is not None and tally is not None and tally.weights is not None:
        worth = math.fsum(weights) ** 2 / math.fsum(tally.weights.squares)
        return {WEIGHTS_FACT: worth} if tally.used.sum() > 1 else {}
    if weights is None or np.count_nonzero(weights) < 2:
        return {}
    # Of weights between the ends of what doubles hold no square is lost.
    relative = weights / weights.max()
    return {WEIGHTS_FACT: float(math.fsum(relative) ** 2 / math.fsum(relative * relative))}


def group_facts(groups: NDArray[Any] | None) -> dict[str, Any]:
    """The number of groups, where samples come in groups."""
    return {} if groups is None else {GROUPS_FACT: len(np.unique(groups))}
