"""Columns as they came, one entry per sample, made arrays: numbers, rows of numbers, weights, flags, ids and groups."""

import contextlib
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.domain.errors import InvalidInput, TooLarge
from app.domain.inputs.attributes import Attributes
from app.domain.inputs.content import GROUPS_FACT, WEIGHT_FACT, WEIGHTS_FACT
from app.domain.inputs.labels import (
    LONGEST_NAME,
    Column,
    Numbers,
    as_labels,
    different,
    first_fraction,
    normalized,
    shown,
)
from app.domain.inputs.samples import Samples, Tally
from app.domain.wording import described

# Texts of ids lie side by side in memory, each as long as the longest, 4 bytes a character.
_LARGEST_IDS = 2**30
Rows = list[Any] | NDArray[Any]


def check_lengths(columns: Mapping[str, Any], pointer: str, *, unit: str = "sample") -> int:
    """Return how many entries each column has: at least one, and as many as the first. Raises InvalidInput."""
    first, column = next(iter(columns.items()))
    size = len(column)
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
    column: Numbers,
    pointer: str,
    lowest: float = -math.inf,
    highest: float = math.inf,
    *,
    missing: float | None = None,
) -> NDArray[np.float64]:
    """Return finite numbers (n) between two bounds, and what is ``missing`` for entries that are None in a list, or NaN
    in an array; without it none may be so. Raises InvalidInput.
    """
    if missing is None:
        values = _doubles(column, pointer)
        check_finite(values, pointer)
        check_range(values, pointer, lowest, highest)
        return values
    # Any number that may be stands where there is none while the others are looked at.
    some = max(lowest, 0.0)
    if isinstance(column, list):
        gaps = np.array([one is None for one in column], dtype=bool)
        column = [some if one is None else one for one in column]
    else:
        gaps = np.isnan(column)
        column = np.where(gaps, some, column)
    return np.where(gaps, missing, read_numbers(column, pointer, lowest, highest))


def read_weights(column: Numbers, pointer: str) -> NDArray[np.float64]:
    """Return weights (n), finite and 0 or more. Raises InvalidInput."""
    weights = _doubles(column, pointer)
    refuse_bad_weights(weights, pointer)
    return weights


def refuse_bad_weights(weights: NDArray[np.float64], pointer: str, where: Callable[..., str] | None = None) -> None:
    """Refuse the first weight that is below 0 or not finite. Raises InvalidInput as `refuse_first`."""
    bad = ~np.isfinite(weights) | (weights < 0)
    refuse_first(weights, bad, pointer, "bad_weight", "expected a finite weight of 0 or more", where)


def _doubles(column: Numbers, pointer: str) -> NDArray[np.float64]:
    if isinstance(column, list) and not set(map(type, column)) <= {int, float}:
        index = next(i for i, value in enumerate(column) if type(value) not in (int, float))
        raise _not_a_number(f"{pointer}/{index}", column[index])
    if isinstance(column, np.ndarray) and column.ndim > 1:
        raise _not_a_number(f"{pointer}/0", column[0].tolist())
    try:
        return np.asarray(column, dtype=np.float64)
    except OverflowError:
        # Whole numbers of JSON have any number of digits.
        return np.array([float(v) if abs(v) < 2**1023 else math.inf if v > 0 else -math.inf for v in column])


def read_flags(column: Column, pointer: str) -> NDArray[np.bool_]:
    """Return flags (n): true or false, or 1 or 0. Raises InvalidInput."""
    if isinstance(column, pa.Array):
        column = column.to_pylist()
    if isinstance(column, list):
        column = np.array([one if type(one) in (bool, int, float) and 0 <= one <= 1 else -1 for one in column])
    # A long column may have been made an array of rows.
    bad = ~((column == 0) | (column == 1)) if column.ndim == 1 else np.ones(1, dtype=np.bool_)
    if bad.any():
        raise InvalidInput.at(f"{pointer}/{int(np.argmax(bad))}", "not_a_flag", "expected true or false, or 1 or 0")
    return np.asarray(column == 1)


def read_rows(rows: Rows, pointer: str) -> NDArray[np.float64]:
    """Return rows of numbers, all of one length, as an array (n, K). They may be anything that a double holds.

    Raises:
        InvalidInput: a row is none, is longer or shorter than the first, or has something else than numbers.
    """
    if isinstance(rows, np.ndarray):
        if rows.ndim == 2:
            return rows.astype(np.float64, copy=False)
        rows = rows.tolist()
    width = len(rows[0]) if isinstance(rows[0], list) else 0
    for index, row in enumerate(rows):
        if not isinstance(row, list):
            detail = f"expected an array of numbers for every sample, got {described(row)}"
            raise InvalidInput.at(f"{pointer}/{index}", "not_a_row", detail)
        if len(row) != width:
            raise _ragged(f"{pointer}/{index}", width, len(row))
        if not set(map(type, row)) <= {int, float}:
            column = next(k for k, value in enumerate(row) if type(value) not in (int, float))
            raise _not_a_number(f"{pointer}/{index}/{column}", row[column])
    try:
        return np.array(rows, dtype=np.float64)
    except OverflowError:
        raise InvalidInput.at(pointer, "out_of_range", "expected numbers that fit a double") from None


def read_scores(column: Rows, pointer: str) -> NDArray[np.float64]:
    """Return finite numbers (n), or rows of numbers (n, K). Raises InvalidInput."""
    has_rows = column.ndim > 1 if isinstance(column, np.ndarray) else isinstance(column[0], list)
    return read_rows(column, pointer) if has_rows else read_numbers(column, pointer)


def read_table(rows: list[list[float]], pointer: str) -> NDArray[np.float64]:
    """Return a table of numbers with at least one row and one column. Raises InvalidInput."""
    if not rows:
        raise InvalidInput.at(pointer, "no_samples", "expected at least one row, got none")
    if not rows[0]:
        raise _ragged(f"{pointer}/0", 1, 0)
    return read_rows(rows, pointer)


def check_range(
    values: NDArray[np.float64], pointer: str, lowest: float, highest: float, *, what: str = "number"
) -> None:
    """Raises InvalidInput: a value, of any shape, lies outside of the bounds or is NaN."""
    bad = ~((values >= lowest) & (values <= highest))
    bounds = f"of {lowest:g} or more" if np.isinf(highest) else f"between {lowest:g} and {highest:g}"
    refuse_first(values, bad, pointer, "out_of_range", f"expected a {what} {bounds}")


def check_finite(values: NDArray[np.float64], pointer: str) -> None:
    """Raises InvalidInput: a value, of any shape, is infinite or NaN."""
    refuse_first(values, ~np.isfinite(values), pointer, "not_finite", "expected a finite number")


def refuse_first(
    values: NDArray[Any],
    bad: NDArray[np.bool_],
    pointer: str,
    code: str,
    expected: str,
    where: Callable[..., str] | None = None,
) -> None:
    """Refuse the first of some values (...) that is ``bad`` (...): the message begins with what was expected.

    ``where`` gives the pointer to one from its indices, where these are not its last parts. Raises InvalidInput.
    """
    if bad.any():
        first = tuple(np.argwhere(bad)[0].tolist())
        place = "/".join(map(str, (pointer, *first))) if where is None else where(*first)
        raise InvalidInput.at(place, code, f"{expected}, got {values[first]:g}")


def _ragged(pointer: str, width: int, length: int) -> InvalidInput:
    return InvalidInput.at(pointer, "ragged_row", f"expected {width} entries as in the first row, got {length}")


def _not_a_number(pointer: str, value: Any) -> InvalidInput:
    return InvalidInput.at(pointer, "not_a_number", f"expected a number, got {described(value)}")


# --- ids and groups --------------------------------------------------------------------------------------------------


def read_ids(sample_ids: Column, pointer: str) -> NDArray[Any]:
    """Return ids (n) that differ, the integer 3 and the string "3" being the same: runs are paired by them.

    Raises:
        InvalidInput, TooLarge: as `read_groups`, or an id is there twice.
    """
    ids = read_groups(sample_ids, pointer)
    # Sorting texts takes ten times as long as hashing them.
    if len(np.unique(ids) if ids.dtype.kind == "i" else set(ids.tolist())) == len(ids):
        return ids
    first: dict[Any, int] = {}
    index, one = next((index, one) for index, one in enumerate(ids.tolist()) if first.setdefault(one, index) != index)
    detail = f"expected ids that differ, got {shown(str(one))} at {first[one]} and again here"
    raise InvalidInput.at(f"{pointer}/{index}", "duplicate_sample_id", detail)


def read_groups(group_ids: Column, pointer: str) -> NDArray[Any]:
    """Return the group (n) of each sample: int64 where all are whole numbers that fit, else texts in the form NFC.

    Raises:
        InvalidInput: one is neither a text nor a whole number, or is too long.
        TooLarge: all of them take too much room.
    """
    if isinstance(group_ids, np.ndarray):
        if group_ids.dtype.kind == "b" and len(group_ids):
            raise _not_an_id(f"{pointer}/0", True)  # noqa: FBT003 - what came
        group_ids = as_labels(group_ids, pointer, code="not_an_id")
        if isinstance(group_ids, np.ndarray):
            return group_ids
    codes: NDArray[Any] | None = None
    if isinstance(group_ids, pa.Array):
        codes, entries = different(group_ids)
        texts = entries.to_pylist()
    else:
        types = set(map(type, group_ids))
        if not types <= {int, str}:
            index = next((index for index, one in enumerate(group_ids) if not _is_id(one)), None)
            if index is not None:
                raise _not_an_id(f"{pointer}/{index}", group_ids[index])
        if str not in types:
            with contextlib.suppress(OverflowError):
                return np.array(group_ids, dtype=np.int64)
        texts = [one if isinstance(one, str) else str(int(one)) for one in group_ids]
    found = list(map(normalized, texts))
    longest = max(map(len, found), default=0)
    if longest > LONGEST_NAME:
        place = next(place for place, text in enumerate(found) if len(text) > LONGEST_NAME)
        index = place if codes is None else int(np.argmax(codes == place))
        raise InvalidInput.at(
            f"{pointer}/{index}", "not_an_id", f"expected at most {LONGEST_NAME} characters, got {longest}"
        )
    if 4 * longest * len(group_ids) > _LARGEST_IDS:
        raise TooLarge(
            f"expected ids of at most {_LARGEST_IDS} bytes, got {len(group_ids)} of up to {longest} characters, "
            "4 bytes each",
            pointer=pointer,
        )
    ids = np.array(found, dtype=np.str_)
    return ids if codes is None else ids[codes]


def _not_an_id(pointer: str, value: Any) -> InvalidInput:
    return InvalidInput.at(pointer, "not_an_id", f"expected a string or an integer, got {described(value)}")


def _is_id(value: Any) -> bool:
    return type(value) in (int, str) or (type(value) is float and first_fraction(np.array([value])) is None)


# --- what stands beside that by which samples are judged -------------------------------------------------------------


def samples_of(
    read: Mapping[str, Any],
    truth: NDArray[Any],
    predicted: NDArray[np.int64],
    outputs: NDArray[np.float64] | None = None,
    *,
    tally: Tally | None = None,
    attributes: Attributes | None = None,
) -> Samples:
    """Return samples with the ids, weights and groups that are among columns."""
    ids, weights, groups = map(read.get, ("sample_ids", "sample_weight", "group_ids"))
    return Samples(truth, predicted, outputs, ids, weights, groups=groups, tally=tally, attributes=attributes)


def designed(samples: Samples) -> tuple[Samples, dict[str, Any]]:
    """Return all samples of an input, without weights that are all the same, and the facts of their design."""
    weight = samples.common_weight
    if weight is None:
        return samples, design_facts(samples)
    tally = None if samples.tally is None else Tally(samples.tally.times)
    plain = replace(samples, weights=None, tally=tally)
    return plain, {WEIGHT_FACT: weight, **design_facts(plain)}


def design_facts(samples: Samples) -> dict[str, Any]:
    """Return the facts that weights and groups make: what samples are worth, where two or more have a weight (Kish's
    (sum w)^2 / sum w^2), and how many groups there are.
    """
    groups = {} if samples.groups is None else {GROUPS_FACT: len(np.unique(samples.groups))}
    weights, sums = samples.weights, samples.weight_sums
    if weights is None or sums is None or sums.used.sum() < 2:
        return groups
    squares = sums.squares
    if samples.tally is None:
        # Those of some samples may all be so small that their squares are lost.
        weights = weights / weights.max()
        squares = weights * weights
    return {WEIGHTS_FACT: math.fsum(weights) ** 2 / math.fsum(squares), **groups}
