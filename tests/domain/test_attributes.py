"""Attributes of samples: values of every type, their order, and what is refused."""

import math
from typing import Any

import numpy as np
import pytest

from app.domain.errors import InvalidInput
from app.domain.expressions.conditions import read_slice
from app.domain.inputs.attributes import Attributes, joined_attributes, read_attributes
from app.domain.inputs.classified import Predictions
from app.domain.inputs.folds import Folds
from app.domain.slices import places_in


def read(**given: list[Any]) -> Attributes:
    return read_attributes(given, len(next(iter(given.values()))), "/input/attributes")


def values_of(attributes: Attributes, name: str) -> list[Any]:
    one = attributes.by_name[name]
    return [one.values[code] for code in one.codes.tolist()]


def test_values_come_back_and_have_an_order() -> None:
    came = ["b", None, "null", "a", True, False, 1, 0, 1.5, "1"]
    found = read(mixed=came)
    assert [(type(one), one) for one in values_of(found, "mixed")] == [(type(one), one) for one in came]
    assert found.by_name["mixed"].values == (False, True, 0, 1, 1.5, "1", "a", "b", "null", None)


def test_numbers_are_numbers_also_with_gaps() -> None:
    found = read(age=[34, 51.0, None, 34.5], flag=[True, False, True, None], text=["1", "2", "3", "4"], gone=[None] * 4)
    assert [name for name, one in found.by_name.items() if one.is_number] == ["age"]
    assert found.by_name["age"].values == (34, 34.5, 51, None)


def test_a_column_of_all_of_them_is_read_back() -> None:
    found = read(site=["A", None, "ü"], age=[1, 2.25, None])
    again = Attributes.of_column(found.as_column())
    assert list(again.by_name) == ["site", "age"]
    for name in again.by_name:
        assert values_of(again, name) == values_of(found, name)


def test_folds_share_the_values_of_each_other() -> None:
    joined = joined_attributes([read(site=["B", "A"]), read(site=["C", None])])
    assert joined is not None
    assert values_of(joined, "site") == ["B", "A", "C", None]
    assert joined_attributes([read(site=["B"]), None]) is None
    fold = {"y_true": ["a", "b"], "y_pred": ["a", "b"], "labels": ["a", "b"]}
    first = Predictions(**fold, attributes={"site": ["A", "B"]})  # type: ignore[arg-type]  # members of JSON
    made = Folds(folds=[first, first]).read("/input")
    assert made.samples is not None
    assert made.samples.attributes is not None
    assert values_of(made.samples.attributes, "site") == ["A", "B", "A", "B"]
    with pytest.raises(InvalidInput) as refused:
        Folds(folds=[first, Predictions(**fold)]).read("/input")  # type: ignore[arg-type]
    assert refused.value.pointer == "/input/folds/1/attributes"


def test_samples_of_ignored_classes_take_their_attributes_with_them() -> None:
    made = Predictions(
        y_true=["a", "void", "b", "a"], y_pred=["a", "a", "b", "b"], ignore=["void"], attributes={"n": [1, 2, 3, 4]}
    ).read("/input")
    assert made.samples is not None
    assert made.samples.attributes is not None
    assert values_of(made.samples.attributes, "n") == [1, 3, 4]


@pytest.mark.parametrize(
    ("given", "code", "pointer"),
    [
        ({"a": [1, 2]}, "wrong_length", "/a"),
        ({"a": [1, [2], 3]}, "bad_attribute", "/a/1"),
        ({"a": [1, 2, float("inf")]}, "out_of_range", "/a/2"),
        ({"a": ["x", "y", "z" * 257]}, "bad_attribute", "/a/2"),
        ({"a": ["x", "y\x00", "z"]}, "bad_attribute", "/a/1"),
        ({str(place): [1, 2, 3] for place in range(51)}, "too_many", ""),
    ],
)
def test_what_is_no_attribute_is_refused(given: dict[str, list[Any]], code: str, pointer: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_attributes(given, 3, "/input/attributes")
    assert [(one.code, one.pointer) for one in refused.value.faults] == [(code, f"/input/attributes{pointer}")]


def test_a_name_in_a_pointer_is_one_part_of_it() -> None:
    with pytest.raises(InvalidInput) as refused:
        read(**{"sex/age~": [1.0, math.inf]})
    assert refused.value.pointer == "/input/attributes/sex~1age~0/1"


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 257, "\u00e9"])
def test_a_name_of_an_attribute_is_one(name: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(**{"e\u0301": [1, 2], name: [3, 4]})
    assert [(one.code, one.pointer) for one in refused.value.faults] == [("bad_attribute", f"/input/attributes/{name}")]


def test_texts_have_a_thousand_values_at_most_and_numbers_any() -> None:
    texts = [str(place) for place in range(1001)]
    with pytest.raises(InvalidInput, match="at most 1000 different values, got 1001"):
        read(id=texts)
    found = read(id=list(range(1001)))
    np.testing.assert_array_equal(found.by_name["id"].codes, np.arange(1001))


@pytest.mark.parametrize(
    ("text", "places"),
    [("age<2", [0]), ("age<=2", [0, 1]), ("age>2", [2]), ("age>=2", [1, 2]), ("age=2", [1]), ("age!=2", [0, 2, 3])],
)
def test_a_number_at_its_bound_is_within_it_or_not(text: str, places: list[int]) -> None:
    ages = {"age": [1, 2, 3, None]}
    source = Predictions(y_true=["a", "b", "a", "b"], y_pred=["a", "b", "b", "b"], attributes=ages).read("/input")
    assert places_in(source, read_slice(text), "").tolist() == places
