"""Slices of an input: the samples that satisfy conditions on their attributes, and the input of these alone."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import InvalidExpression, InvalidInput
from app.domain.expressions.conditions import Condition, Slice, written
from app.domain.inputs.attributes import Attribute, Value, value_key
from app.domain.inputs.kinds import restricted as restricted
from app.domain.inputs.labels import listed, normalized
from app.domain.inputs.matrices import MatrixInput
from app.domain.wording import did_you_mean, nearest_labels, shown
from app.kernel.metrics.expression import Expression, OverSlices, Sliced, parts_of

Places = NDArray[np.intp]
_EQUAL, _UNEQUAL = "=", "!="


def places_of(source: MatrixInput, where: Slice, pointer: str) -> Places:
    """Places of the samples or queries that satisfy all conditions, rising; at least one.

    Raises:
        InvalidInput: as `places_in`, or there is no such sample.
    """
    found = places_in(source, where, pointer)
    if not found.size:
        raise InvalidInput.at(pointer, "no_such_slice", "expected a slice with samples, got one without any")
    return found


def places_in(source: MatrixInput, where: Slice, pointer: str) -> Places:
    """Places of the samples or queries that satisfy all conditions, rising.

    Raises:
        InvalidInput: there are no attributes, none of that name, or no such value.
    """
    known = attributes_of(source, pointer)
    mask = np.ones(1, dtype=np.bool_)
    for one in where:
        # Conditions of a body have a place each, those of an address one text.
        own = f"{pointer}/{one.name}" if pointer.startswith("/") else pointer
        attribute = attribute_named(known, one.name, own)
        mask = mask & _satisfied(one, attribute, own)[attribute.codes]
    return np.flatnonzero(mask)


def samples_at(source: MatrixInput, places: Places) -> int:
    """Number of samples or queries at some places: an entry may stand for many."""
    times = None if source.samples is None else source.samples.times
    return places.size if times is None else int(times[places].sum())


def refuse_unknown_slices(expression: Expression, source: MatrixInput) -> None:
    """Refuse an expression of slices that the samples of an input do not have.

    Raises:
        InvalidExpression: they have no such attribute or value.
    """
    try:
        _look_up_slices(expression, source)
    except InvalidInput as error:
        raise InvalidExpression(error.detail, suggestions=error.faults[0].suggestions) from None


def _look_up_slices(expression: Expression, source: MatrixInput) -> None:
    if isinstance(expression, Sliced):
        places_in(source, expression.where, "")
    if isinstance(expression, OverSlices):
        attribute_named(attributes_of(source, ""), expression.by, "")
    for part in parts_of(expression):
        _look_up_slices(part, source)


def attributes_of(source: MatrixInput, pointer: str) -> Mapping[str, Attribute]:
    """Attributes of the samples by name.

    Raises:
        InvalidInput: there are none.
    """
    samples = source.samples
    if samples is None or samples.attributes is None:
        detail = "expected samples with attributes (input.attributes) that were saved, which slices are made of"
        raise InvalidInput.at(pointer, "no_attributes", detail)
    return samples.attributes.by_name


def attribute_named(known: Mapping[str, Attribute], name: str, pointer: str) -> Attribute:
    """Return one of the attributes, whose names are in one form of Unicode.

    Raises:
        InvalidInput: there is none of that name.
    """
    name = normalized(name)
    if name not in known:
        near = nearest_labels(name, [*known])
        detail = (
            f"expected one of the attributes {listed([*known])}, got {shown(name)}{did_you_mean([*map(repr, near)])}"
        )
        raise InvalidInput.at(pointer, "unknown_name", detail, near)
    return known[name]


def _satisfied(one: Condition, attribute: Attribute, pointer: str) -> NDArray[np.bool_]:
    """Return for each value of an attribute if it satisfies a condition.

    Raises:
        InvalidInput: values that are no numbers are compared by size, or the attribute never has a value.
    """
    if one.operator in (_EQUAL, _UNEQUAL):
        kept = {value_key(value) for value in attribute.values}
        absent = [value for value in one.values if value_key(value) not in kept]
        if absent:
            raise _unknown_value(one.name, absent[0], attribute.values, pointer)
        named = {value_key(value) for value in one.values}
        same = np.array([value_key(value) in named for value in attribute.values], dtype=np.bool_)
        return same if one.operator == _EQUAL else ~same
    bound = one.values[0]
    if isinstance(bound, bool) or not isinstance(bound, int | float) or not attribute.is_number:
        detail = (
            f"expected numbers on both sides of {one.operator}, {one.name} {one.operator} {written(bound)} has none"
        )
        raise InvalidInput.at(pointer, "not_a_number", detail)
    # Nothing is neither below nor above a number.
    numbers = np.array([np.nan if value is None else float(value) for value in attribute.values])
    compare = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[one.operator]
    found: NDArray[np.bool_] = compare(numbers, float(bound))
    return found


def _unknown_value(name: str, value: Value, values: Sequence[Value], pointer: str) -> InvalidInput:
    texts = [*map(written, values)]
    near = nearest_labels(written(value), texts)
    detail = f"expected a value of {name}, which are {', '.join(texts[:10])}"
    detail += f" and {len(texts) - 10} more" if texts[10:] else ""
    return InvalidInput.at(pointer, "unknown_value", f"{detail}; got {written(value)}{did_you_mean(near)}", near)
