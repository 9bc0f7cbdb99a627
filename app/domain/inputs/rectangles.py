"""Lists of rows as arrays of numbers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import InvalidInput
from app.domain.inputs.labels import described


def rectangle(rows: list[Any], pointer: str) -> NDArray[np.float64]:
    """Rows of numbers, all of one length, as an array (n, K). The numbers may be anything that a double holds.

    Raises:
        InvalidInput: a row is none, is longer or shorter than the first, or has something else than numbers.
    """
    if not isinstance(rows[0], list):
        raise InvalidInput.at(f"{pointer}/0", "not_a_row", f"expected an array of numbers, got {described(rows[0])}")
    width = len(rows[0])
    for index, row in enumerate(rows):
        if not isinstance(row, list):
            raise InvalidInput.at(
                f"{pointer}/{index}", "not_a_row", f"expected an array of numbers, got {described(row)}"
            )
        if len(row) != width:
            raise InvalidInput.at(
                f"{pointer}/{index}", "ragged_row", f"expected {width} entries as in the first row, got {len(row)}"
            )
        if not set(map(type, row)) <= {int, float}:
            column = next(k for k, value in enumerate(row) if type(value) not in (int, float))
            raise not_a_number(f"{pointer}/{index}/{column}", row[column])
    try:
        return np.array(rows, dtype=np.float64)
    except OverflowError:
        raise InvalidInput.at(pointer, "out_of_range", "expected numbers that fit a double") from None


def not_a_number(pointer: str, value: Any) -> InvalidInput:
    """What is said of an entry that is no number."""
    return InvalidInput.at(pointer, "not_a_number", f"expected a number, got {described(value)}")
