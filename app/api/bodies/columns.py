"""Large bodies: arrays of numbers go from bytes to numpy without a Python object per number.

simdjson parses the document; what is not a column is lifted into ordinary objects and checked by pydantic like any
other body.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import simdjson
from numpy.typing import NDArray
from pydantic import BaseModel

from app.api.bodies.matrices import split_matrices
from app.api.bodies.parsing import Body, parse_body, parse_value

Model = TypeVar("Model", bound=BaseModel)
# Fields that may hold millions of values, wherever they stand in an input.
COLUMNS = frozenset({"y_true", "y_pred", "sample_ids", "group_ids", "sample_weight", "scores"})
# Lists whose members may hold columns.
_HOLDERS = frozenset({"folds", "evaluations"})


def parse_large_body(body: Body, model: type[Model]) -> Model:
    """The body as a model whose columns are arrays (int64 or float64) where they hold numbers only, lists otherwise.

    Raises:
        MalformedRequest: as ``parse_body``, which is asked for the words when simdjson finds no JSON.
    """
    split = split_matrices(body)
    try:
        document = simdjson.Parser().parse(bytes(split.rest))
    except (ValueError, RuntimeError):
        # simdjson does not say where: a bare NaN, a number too large, a comma too many, too many brackets.
        return parse_body(body, model)
    if not isinstance(document, simdjson.Object):
        return parse_body(body, model)
    try:
        lifter = _Lifter(split.matrices, flat=True)
        lifted = lifter.object(document)
        if lifter.arrays != split.rest.count(b"["):
            # A column may hold arrays, which a buffer would flatten in silence, or a text a bracket: look at each.
            lifted = _Lifter(split.matrices, flat=False).object(document)
    except (_RepeatedMember, RecursionError):
        # Both are to end as they do in a small body.
        return parse_body(body, model)
    return parse_value(lifted, model)


class _RepeatedMember(Exception):
    """An object names a member twice. simdjson would find the first one, all other readers take the last."""


class _Lifter:
    """Turns a parsed document into Python objects and counts the arrays it has seen."""

    def __init__(self, matrices: Mapping[str, NDArray[np.float64]], *, flat: bool) -> None:
        self._matrices = matrices
        self._flat = flat
        self.arrays = 0

    def object(self, node: Any) -> dict[str, Any]:
        # Members are asked for one by one: items() would turn whole columns into lists.
        names = list(node.keys())
        if len(set(names)) < len(names):
            raise _RepeatedMember
        return {name: self._member(name, node[name]) for name in names}

    def _member(self, key: str, value: Any) -> Any:
        if isinstance(value, simdjson.Object):
            return self.object(value)
        if not isinstance(value, simdjson.Array):
            return self._matrices.get(value, value) if isinstance(value, str) else value
        if key in _HOLDERS:
            self.arrays += 1
            return [self._item(value[index]) for index in range(len(value))]
        if key in COLUMNS and self._flat:
            self.arrays += 1
            return self._column(value)
        return self._item(value)

    def _item(self, value: Any) -> Any:
        if isinstance(value, simdjson.Object):
            return self.object(value)
        plain = value.as_list() if isinstance(value, simdjson.Array) else value
        self.arrays += _count_lists(plain)
        return plain

    @staticmethod
    def _column(array: Any) -> Any:
        if len(array) == 0:
            return []
        for code, kind in (("i", np.int64), ("d", np.float64)):
            # Whole numbers would pass as floats too, and labels have to stay whole.
            try:
                return np.frombuffer(array.as_buffer(of_type=code), dtype=kind)
            except (TypeError, ValueError):
                continue
        return array.as_list()


def byte_size(value: Any) -> int:
    """About how many bytes the arrays of a lifted object take, 8 per entry."""
    size, waiting = 0, [value]
    # By a list of what is to be looked at: what people send may be nested deeper than Python calls may be.
    while waiting:
        found = waiting.pop()
        if isinstance(found, np.ndarray):
            size += found.nbytes
        elif isinstance(found, dict):
            waiting += found.values()
        elif isinstance(found, list):
            size += 8 * len(found)
            waiting += [item for item in found if isinstance(item, list | dict | np.ndarray)]
    return size


def _count_lists(value: Any) -> int:
    if isinstance(value, list):
        # One pass in C over what are mostly numbers, in place of a question per entry.
        if {list, dict}.isdisjoint(map(type, value)):
            return 1
        return 1 + sum(_count_lists(item) for item in value)
    if isinstance(value, dict):
        return sum(_count_lists(item) for item in value.values())
    return 0
