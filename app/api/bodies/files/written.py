"""Texts of CSV, which say what the values of a column are."""

from enum import Flag, auto
from functools import reduce
from operator import or_
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from app.domain.inputs.labels import Column, different

_FRACTION = r"\.[0-9]*[1-9]"
_DECIMAL = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?$"
_WHOLE = r"^-?(0|[1-9][0-9]{0,14})(\.0+)?$"
# Options of pyarrow: a value is missing where nothing is written. NaN is there: some computation went wrong.
MISSING: Final = {"null_values": [""], "strings_can_be_null": True}


class Spelling(Flag):
    """Spelling of all texts of a column; that of several parts together is what each of them is (``&``)."""

    # Whole numbers, perhaps with zeros behind the point, as columns with missing values have them in pandas.
    WHOLE = auto()
    # As integers are usually written.
    INTEGERS = auto()
    NUMBERS = auto()
    # Without digits behind the point, but for zeros.
    NO_FRACTIONS = auto()
    # In any case: as in JSON, as pandas writes them, or as R and spreadsheets do.
    BOOLEANS = auto()

    @classmethod
    def of(cls, texts: pa.Array) -> "Spelling":
        """Spelling of different texts."""
        try:
            integers = texts.cast(pa.int64()).cast(pa.string()).equals(texts)
        except pa.ArrowInvalid:
            integers = False
        found = {
            cls.WHOLE: pc.all(pc.match_substring_regex(texts, _WHOLE), min_count=0).as_py(),
            cls.INTEGERS: integers,
            cls.NUMBERS: pc.all(pc.match_substring_regex(texts, _DECIMAL), min_count=0).as_py(),
            cls.NO_FRACTIONS: not pc.any(pc.match_substring_regex(texts, _FRACTION), min_count=0).as_py(),
            cls.BOOLEANS: {*map(str.lower, texts.to_pylist())} <= {"true", "false"},
        }
        return reduce(or_, (one for one, holds in found.items() if holds), cls(0))

    @property
    def settled(self) -> bool:
        """Are they texts whatever other rows have?"""
        return not self & ~Spelling.NO_FRACTIONS


def values_as_written(column: pa.ChunkedArray) -> list[Any]:
    """Values of an attribute: numbers or booleans where all are written as such, else texts; nothing where nothing is
    written.
    """
    codes, texts = different(column.fill_null("").dictionary_encode().combine_chunks())
    spelled = [text for text in texts.to_pylist() if text]
    spelling = Spelling.of(pa.array(spelled, pa.string()))
    read: dict[str, Any] = {text: text for text in spelled}
    if Spelling.NUMBERS in spelling:
        read = {text: float(text) for text in spelled}
    elif Spelling.BOOLEANS in spelling:
        read = {text: text.lower() == "true" for text in spelled}
    values = [read.get(text) for text in texts.to_pylist()]
    return [values[code] for code in codes.tolist()]


def as_written(column: pa.ChunkedArray, *, ids: bool, spelling: Spelling | None = None) -> Column:
    """Labels written as integers, other numbers or booleans as such, so that 2 comes before 10; all others as texts.

    Integers with leading zeros or a plus sign stay texts, and so do ids unless they are whole: nothing of them is lost.
    Of a part of a column the spelling of all of it decides.
    """
    coded = column.dictionary_encode().combine_chunks()
    codes, texts = different(coded)
    if not len(texts):
        return coded
    spelling = Spelling.of(texts) if spelling is None else spelling
    if Spelling.WHOLE in spelling:
        return _taken(texts.cast(pa.float64()).cast(pa.int64()), codes)
    if Spelling.INTEGERS in spelling:
        return _taken(texts.cast(pa.int64()), codes)
    if ids:
        return coded
    if Spelling.NUMBERS in spelling and Spelling.NO_FRACTIONS not in spelling:
        # Nobody's classes; whoever reads labels says so.
        return _taken(texts.cast(pa.float64()), codes)
    if Spelling.BOOLEANS in spelling:
        return _taken(pa.array([text.lower() == "true" for text in texts.to_pylist()]), codes)
    return coded


def _taken(values: pa.Array, codes: NDArray[Any]) -> NDArray[Any]:
    column: NDArray[Any] = values.to_numpy(zero_copy_only=False)[codes]
    return column
