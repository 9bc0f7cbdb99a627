"""Regions and answers brought to one form: for each item how much there is, was predicted, and belongs to both.

Raises InvalidInput with pointers relative to the ``input`` object it was given a pointer for.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import InvalidInput
from app.domain.inputs.beside import group_facts, read_groups, read_ids
from app.domain.inputs.content import Content
from app.domain.inputs.kinds import SETS
from app.domain.inputs.labels import Column, Numbers, as_labels, described, encode
from app.domain.inputs.matrices import MatrixInput, check_labels
from app.domain.inputs.probabilities import read_numbers
from app.domain.inputs.samples import Samples

# Sums of so many larger ones are not exact.
LARGEST_SIZE = 1e15
_SIZES = ("n_true", "n_predicted", "n_common")


@dataclass(frozen=True, slots=True)
class Beside:
    """What may come beside the sizes of the items."""

    exact: Column | None = None
    classes: Column | None = None
    sample_ids: Column | None = None
    group_ids: Column | None = None


def from_sizes(
    n_true: Numbers, n_predicted: Numbers, n_common: Numbers, beside: Beside, *, pointer: str
) -> MatrixInput:
    """Numbers of pixels or tokens, or areas: of what is there, of what was predicted, of what belongs to both."""
    given = dict(zip(_SIZES, (n_true, n_predicted, n_common), strict=True))
    _check_lengths(given, beside, pointer)
    sizes = np.stack([_read_sizes(column, f"{pointer}/{name}") for name, column in given.items()], axis=1)
    smaller = np.minimum(sizes[:, 0], sizes[:, 1])
    too_many = np.flatnonzero(sizes[:, 2] > smaller)
    if too_many.size:
        index = int(too_many[0])
        raise InvalidInput.at(
            f"{pointer}/n_common/{index}",
            "out_of_range",
            f"expected at most {smaller[index]:g}, as much as there is and as was predicted, got {sizes[index, 2]:g}",
        )
    return _made(sizes, beside, pointer)


def from_bags(y_true: Sequence[Any], y_pred: Sequence[Any], beside: Beside, *, pointer: str) -> MatrixInput:
    """Lists of tokens or ids, in which one may occur several times; their order is not looked at.

    Both have in common what occurs in both, as often as it does in the one with fewer of it (Rajpurkar et al. 2016).
    """
    _check_lengths({"y_true": y_true, "y_pred": y_pred}, beside, pointer)
    bags = {
        name: [_bag(row, f"{pointer}/{name}/{index}") for index, row in enumerate(rows)]
        for name, rows in (("y_true", y_true), ("y_pred", y_pred))
    }
    sizes = [
        (there.total(), said.total(), (there & said).total())
        for there, said in zip(bags["y_true"], bags["y_pred"], strict=True)
    ]
    return _made(np.array(sizes, dtype=np.float64), beside, pointer)


def _check_lengths(columns: dict[str, Any], beside: Beside, pointer: str) -> None:
    first = next(iter(columns))
    size = len(columns[first])
    if size == 0:
        raise InvalidInput.at(f"{pointer}/{first}", "no_samples", "expected at least one item, got none")
    others = {
        **columns,
        "exact": beside.exact,
        "item_classes": beside.classes,
        "sample_ids": beside.sample_ids,
        "group_ids": beside.group_ids,
    }
    for name, column in others.items():
        if column is not None and len(column) != size:
            raise InvalidInput.at(
                f"{pointer}/{name}", "wrong_length", f"expected {size} entries as in {first}, got {len(column)}"
            )


def _read_sizes(column: Numbers, pointer: str) -> NDArray[np.float64]:
    values = read_numbers(column, pointer)
    bad = np.flatnonzero(~((values >= 0.0) & (values <= LARGEST_SIZE)))
    if bad.size:
        index = int(bad[0])
        raise InvalidInput.at(
            f"{pointer}/{index}",
            "out_of_range",
            f"expected a number between 0 and {LARGEST_SIZE:g}, got {values[index]:g}",
        )
    return values


def _bag(row: Any, pointer: str) -> "Counter[Any]":
    listed = row.tolist() if isinstance(row, np.ndarray) else row
    if not isinstance(listed, list):
        raise InvalidInput.at(pointer, "not_a_row", f"expected a list of tokens or ids, got {described(row)}")
    for place, token in enumerate(listed):
        if type(token) not in (str, int):
            raise InvalidInput.at(
                f"{pointer}/{place}", "wrong_type", f"expected a text or a whole number, got {described(token)}"
            )
    return Counter(listed)


def _made(sizes: NDArray[np.float64], beside: Beside, pointer: str) -> MatrixInput:
    exact = _exact(sizes, beside.exact, f"{pointer}/exact")
    labels: tuple[str, ...] = ()
    codes = np.zeros(len(sizes), dtype=np.int64)
    if beside.classes is not None:
        coded = encode({"item_classes": as_labels(beside.classes, f"{pointer}/item_classes")}, None, pointer)
        labels, codes = check_labels(coded.labels, f"{pointer}/item_classes", fewest=1), coded.codes["item_classes"]
    ids = None if beside.sample_ids is None else read_ids(beside.sample_ids, f"{pointer}/sample_ids")
    groups = None if beside.group_ids is None else read_groups(beside.group_ids, f"{pointer}/group_ids")
    n_rows = max(len(labels), 1)
    counts = np.bincount(2 * codes + exact, minlength=2 * n_rows).reshape(n_rows, 2)
    return MatrixInput(
        kind=SETS,
        labels=labels,
        positive=None,
        content=Content.counts,
        counts=counts,
        facts={"rows": len(sizes), **group_facts(groups)},
        samples=Samples(truth=codes, predicted=exact.astype(np.int64), outputs=sizes, ids=ids, groups=groups),
    )


def _exact(sizes: NDArray[np.float64], given: Column | None, pointer: str) -> NDArray[np.bool_]:
    """Which items are exactly what was predicted: as given, or those with nothing that is not common."""
    common = sizes[:, 2]
    equal: NDArray[np.bool_] = (common == sizes[:, 0]) & (common == sizes[:, 1])
    if given is None:
        return equal
    values = given
    if not isinstance(values, np.ndarray):
        values = np.array([_flag(values[index]) for index in range(len(values))])
    bad = np.flatnonzero(~((values == 0) | (values == 1)))
    if bad.size:
        raise InvalidInput.at(f"{pointer}/{int(bad[0])}", "not_a_flag", "expected true or false, or 1 or 0")
    exact: NDArray[np.bool_] = values == 1
    unlike = np.flatnonzero(exact & ~equal)
    if unlike.size:
        index = int(unlike[0])
        raise InvalidInput.at(
            f"{pointer}/{index}",
            "not_exact",
            f"expected false, since there are {sizes[index, 0]:g}, {sizes[index, 1]:g} predicted and "
            f"{common[index]:g} in common",
        )
    return exact


def _flag(one: Any) -> float:
    """1 or 0, and another number for what is neither."""
    return float(one) if type(one) in (bool, int) and 0 <= one <= 1 else -1.0
