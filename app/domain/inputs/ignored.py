"""Samples that are left out because of their actual class, such as "void" or "not annotated"."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import Fault, InvalidInput, moved_faults
from app.domain.inputs.labels import MOST_CLASSES, Label, encode, label_text, listed, unknown_label

IGNORED = (
    "Samples whose actual class is one of these are left out, and counted in `input.ignored`. Such a label is no "
    "class, unless a sample that is left is predicted as it or `labels` of samples name it: then it is a class without "
    "actual samples."
)
_TRUTH = "y_true"


class NothingLeft(InvalidInput):
    """All samples are of classes that are ignored.

    Attributes:
        left_out: How many of each.
    """

    def __init__(self, fault: Fault, left_out: Mapping[str, float]) -> None:
        super().__init__([fault])
        self.left_out = left_out


def samples_left(
    ignore: Sequence[Label], truth: Any, times: NDArray[np.int64] | None, pointer: str
) -> tuple[NDArray[np.intp], dict[str, int]]:
    """Places of the samples whose actual class (n) is not ignored, and how many of each ignored class are left out;
    each entry stands for ``times`` (n) samples, None is 1 each.

    Raises:
        InvalidInput: an entry is no label.
        NothingLeft: all samples are ignored.
    """
    texts = [*dict.fromkeys(map(label_text, ignore))]
    coded = encode({_TRUTH: truth}, None, pointer, MOST_CLASSES + len(texts))
    kept = np.array([text not in texts for text in coded.labels])
    rows = np.flatnonzero(kept[coded.codes[_TRUTH]])
    counts = np.bincount(coded.codes[_TRUTH], times, minlength=len(coded.labels)).astype(np.int64).tolist()
    found = dict(zip(coded.labels, counts, strict=True))
    left_out = {text: found.get(text, 0) for text in texts}
    if not rows.size:
        raise _nothing_left(f"{pointer}/ignore", left_out)
    return rows, left_out


def at_their_places(rows: NDArray[np.intp], columns: Collection[str], pointer: str) -> AbstractContextManager[None]:
    """Faults of entries that are left, told by where the entries stand among all."""

    def moved(fault: Fault) -> Fault:
        name, _, rest = fault.pointer.removeprefix(f"{pointer}/").partition("/")
        place, slash, inner = rest.partition("/")
        if name not in columns or not place.isdigit():
            return fault
        return replace(fault, pointer=f"{pointer}/{name}/{rows[int(place)]}{slash}{inner}")

    return moved_faults(moved)


def classes_left(
    matrix: NDArray[np.float64], labels: Sequence[str], ignore: Sequence[Label], pointer: str
) -> tuple[NDArray[np.float64], tuple[str, ...], dict[str, float]]:
    """A matrix (rows actual) without the samples of some classes, its labels, and what was in each row that went.

    The column of a class goes with its row, unless samples of other classes are in it: these are errors, and the class
    stays, without actual samples.

    Raises:
        InvalidInput: a label is none of the matrix, or nothing is left.
    """
    texts = [*dict.fromkeys(map(label_text, ignore))]
    unknown = next((index for index, text in enumerate(texts) if text not in labels), None)
    if unknown is not None:
        raise unknown_label(f"{pointer}/ignore/{unknown}", texts[unknown], labels)
    places = [labels.index(text) for text in texts]
    sums = [float(matrix[place].sum()) for place in places]
    left_out = {text: int(one) if one.is_integer() else one for text, one in zip(texts, sums, strict=True)}
    matrix = matrix.copy()
    matrix[places] = 0.0
    if not matrix.any():
        raise _nothing_left(f"{pointer}/ignore", left_out)
    stays = np.array([place not in places or bool(matrix[:, place].any()) for place in range(len(labels))])
    return matrix[np.ix_(stays, stays)], tuple(np.array(labels, dtype=object)[stays]), left_out


def _nothing_left(pointer: str, left_out: Mapping[str, float]) -> NothingLeft:
    detail = f"expected at least one sample of another class than {listed([*left_out])}, got none"
    return NothingLeft(Fault(pointer, "no_samples", detail), left_out)
