"""Numbers in place of names of groups."""

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from app.kernel.numerics.sorting import GOLDEN, Hashes, mixed

_MOST: Final = 10**18
_WHOLE: Final = r"^(0|-?[1-9][0-9]{0,17})$"


def numbers_of(names: NDArray[Any]) -> Hashes:
    """A number (n) for each name of a group, an integer or a text: the same for the same name in any process.

    They have 64 bits: of a million groups two have one number with a chance of 3 in 10^8.
    """
    if names.dtype.kind != "U":
        whole = (names < _MOST) & (names > -_MOST)
        integers, texts = names[whole].astype(np.int64), names[~whole].astype(np.str_)
    else:
        column = pa.array(names, pa.string())
        whole = pc.match_substring_regex(column, _WHOLE).to_numpy(zero_copy_only=False).astype(np.bool_)
        integers, texts = column.filter(pa.array(whole)).cast(pa.int64()).to_numpy(), names[~whole]
    numbers = np.empty(names.size, dtype=np.uint64)
    numbers[whole], numbers[~whole] = mixed(integers.view(np.uint64)), _text_hashes(texts)
    return numbers


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
