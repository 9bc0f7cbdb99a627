"""What stands beside samples: weights, ids and groups."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import InvalidInput, TooLarge
from app.domain.inputs.content import GROUPS_FACT, LARGEST_TOTAL, WEIGHTS_FACT
from app.domain.inputs.labels import CodedTexts, Column, Numbers, as_labels, described, first_fraction, shown
from app.domain.inputs.names import LONGEST_NAME
from app.domain.inputs.samples import Tally, ids_as_array

# Texts of ids lie side by side in memory, each as long as the longest, 4 bytes a character.
_LARGEST_IDS = 2**30


def read_weights(column: Numbers, pointer: str) -> NDArray[np.float64]:
    """Weights (n), finite and 0 or more."""
    if isinstance(column, list) and not set(map(type, column)) <= {int, float}:
        index, value = next((i, v) for i, v in enumerate(column) if type(v) not in (int, float))
        raise InvalidInput.at(f"{pointer}/{index}", "not_a_number", f"expected a number, got {described(value)}")
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
    """Ids (n) that differ, the integer 3 and the string "3" being the same: pairing of two runs goes by them."""
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
    """The group (n) of each sample, int64 or texts."""
    ids = group_ids
    _check_ids(ids, pointer)
    if isinstance(ids, np.ndarray) and ids.dtype.kind != "U":
        return np.asarray(as_labels(ids, pointer, code="not_an_id"))
    texts = ids.texts if isinstance(ids, CodedTexts) else map(str, ids)
    longest = max(map(len, texts), default=0)
    if longest > LONGEST_NAME:
        index = next(index for index in range(len(ids)) if len(str(ids[index])) > LONGEST_NAME)
        raise InvalidInput.at(
            f"{pointer}/{index}", "not_an_id", f"expected at most {LONGEST_NAME} characters, got {longest}"
        )
    if 4 * longest * len(ids) > _LARGEST_IDS:
        raise TooLarge(
            f"expected ids of at most {_LARGEST_IDS} bytes, got {len(ids)} of up to {longest} characters, 4 bytes each",
            pointer=pointer,
        )
    return ids_as_array(ids)


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
    """What weighted samples are worth, where there are two or more of them."""
    if weights is not None and tally is not None and tally.weights is not None:
        worth = math.fsum(weights) ** 2 / math.fsum(tally.weights.squares)
        return {WEIGHTS_FACT: worth} if tally.used.sum() > 1 else {}
    if weights is None or np.count_nonzero(weights) < 2:
        return {}
    # Of weights between the ends of what doubles hold no square is lost.
    relative = weights / weights.max()
    return {WEIGHTS_FACT: float(math.fsum(relative) ** 2 / math.fsum(relative * relative))}


def group_facts(groups: NDArray[Any] | None) -> dict[str, Any]:
    """How many groups there are, where samples come in groups."""
    return {} if groups is None else {GROUPS_FACT: len(np.unique(groups))}
