"""Ids of samples in one form, whatever column they came from, and which part of all ids each belongs to.

The integer 3 and the text "3" are the same id. So whole numbers of up to 18 digits are integers here, and all else is a
text: two ids are the same just where both are of one kind and equal.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from app.kernel.numerics.sorting import GOLDEN, Hashes, mixed

_MOST: Final = 10**18
_WHOLE: Final = r"^(0|-?[1-9][0-9]{0,17})$"


@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """Ids of one kind.

    Attributes:
        ids: (m) int64, or texts.
        rows: (m) where they stood.
        hashes: (m) the same for the same id, in any process.
    """

    ids: pa.Array
    rows: NDArray[np.intp]
    hashes: Hashes


def keys_of(ids: NDArray[Any]) -> tuple[Keys, Keys]:
    """Ids (n), integers or texts, as those that are integers and those that are texts."""
    if ids.dtype.kind != "U":
        whole = (ids < _MOST) & (ids > -_MOST)
        numbers, texts = ids[whole].astype(np.int64), ids[~whole].astype(np.str_)
    else:
        column = pa.array(ids, pa.string())
        whole = pc.match_substring_regex(column, _WHOLE).to_numpy(zero_copy_only=False).astype(np.bool_)
        numbers, texts = column.filter(pa.array(whole)).cast(pa.int64()).to_numpy(), ids[~whole]
    return _made(numbers, whole, _hashes), _made(texts, ~whole, _text_hashes)


def numbers_of(names: NDArray[Any]) -> Hashes:
    """A number (n) for each name of a group, the same for the same name in any process.

    They have 64 bits: of a million groups two have one number with a chance of 3 in 10^8.
    """
    numbers = np.empty(names.size, dtype=np.uint64)
    for keys in keys_of(names):
        numbers[keys.rows] = keys.hashes
    return numbers


def as_column(ids: NDArray[Any]) -> pa.Array:
    """Ids (n), integers or texts, in as much memory as they need."""
    return pa.array(ids, pa.int64() if ids.dtype.kind == "i" else pa.large_string())


def as_ids(column: pa.Array) -> NDArray[Any]:
    """A column as ids."""
    ids = np.asarray(column.to_numpy(zero_copy_only=False))
    return ids if pa.types.is_integer(column.type) else ids.astype(np.str_)


def together(columns: Sequence[pa.Array], *, texts: bool | None = None) -> pa.Array:
    """Columns of ids, at least one, as one: of texts where this says so; None: where one of them has texts."""
    if texts is None:
        texts = any(pa.types.is_large_string(one.type) for one in columns)
    return pa.concat_arrays([one.cast(pa.large_string() if texts else pa.int64()) for one in columns])


def _made(ids: NDArray[Any], chosen: NDArray[np.bool_], hashed: Callable[[NDArray[Any]], Hashes]) -> Keys:
    return Keys(as_column(ids), np.flatnonzero(chosen), hashed(ids))


def _hashes(numbers: NDArray[np.int64]) -> Hashes:
    return mixed(numbers.view(np.uint64))


def _text_hashes(texts: NDArray[np.str_]) -> Hashes:
    """Of each text the sum of its characters, each times a number of its place: how wide the column is says nothing."""
    # Not 0, so that the text without characters is not the integer 0.
    sums = np.full(texts.size, GOLDEN)
    if texts.size and texts.dtype.itemsize:
        characters = np.ascontiguousarray(texts).view(np.uint32).reshape(texts.size, -1)
        factors = mixed(np.arange(1, characters.shape[1] + 1, dtype=np.uint64)) | np.uint64(1)
        for place, factor in enumerate(factors):
            sums += characters[:, place].astype(np.uint64) * factor
    return mixed(sums)
