"""Values of expression trees: on one matrix and on batches."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from app.kernel.matrix.table import Table
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import (
    Combination,
    Every,
    Expression,
    Measure,
    bounds,
    compute,
    is_insensitive,
    is_list,
    measures,
)
from app.kernel.metrics.families.combinations import COMBINATIONS
from app.kernel.metrics.references import REFERENCES
from tests.bank import each

COUNTS = np.array([[8, 1, 1], [2, 5, 3], [0, 0, 20]])
RECALLS = [Fraction(8, 10), Fraction(5, 10), Fraction(1)]
PRECISIONS = [Fraction(8, 10), Fraction(5, 6), Fraction(20, 24)]


def measure(key: str, of: int | Every | None = None, **parameters: object) -> Measure:
    return Measure(catalogue().of_matrices.by_name[key], parameters, of)


EVERY_RECALL = measure("recall", Every.CLASS)


def value(expression: Expression) -> float:
    return float(compute(expression, Table(COUNTS)))


def test_a_measure_of_one_class() -> None:
    assert value(measure("recall", 1)) == 0.5
    assert value(measure("f_beta", 0, beta=2.0)) == pytest.approx(0.8, rel=1e-15)


def test_a_measure_of_every_class_is_a_list() -> None:
    got = compute(EVERY_RECALL, Table(COUNTS))
    assert got == pytest.approx([float(recall) for recall in RECALLS], rel=1e-15)
    assert is_list(EVERY_RECALL)
    assert not is_list(measure("recall", 0))
    assert not is_list(measure("accuracy"))
    assert not is_list(Combination("mean", (EVERY_RECALL,)))


def combination(function: str, parts: tuple[Expression, ...], n_values: int) -> Combination:
    """With weights 1, 2, 3, ... where it takes some, and every number at its default."""
    card = COMBINATIONS[function]
    parameters: dict[str, Any] = {parameter.name: parameter.default for parameter in card.parameters}
    if card.weighted is not None:
        parameters["weights"] = tuple(float(place + 1) for place in range(n_values))
    return Combination(function, parts, parameters)


# Functions that take any number of parts.
OF_ANY = [key for key, card in COMBINATIONS.items() if card.arity is None]


def exact(function: str, parts: list[Fraction]) -> float:
    harmonic = len(parts) / sum(1 / part for part in parts)
    center = 1 / harmonic
    weights = [Fraction(place + 1) for place in range(len(parts))]
    whole = sum(weights)
    answers: dict[str, float] = {
        "wgps": float(whole / sum(weight / part for weight, part in zip(weights, parts, strict=True))),
        "wmean": float(sum(weight * part for weight, part in zip(weights, parts, strict=True)) / whole),
        "wgmean": math.prod(float(part) ** float(weight / whole) for weight, part in zip(weights, parts, strict=True)),
        "gps": float(harmonic),
        "gps_sd": float(harmonic**2) / (len(parts) - 1) * float(sum((1 / part - center) ** 2 for part in parts)) ** 0.5,
        "mean": float(sum(parts) / len(parts)),
        "gmean": float(np.prod([float(part) for part in parts])) ** (1 / len(parts)),
        "min": float(min(parts)),
        "max": float(max(parts)),
        "range": float(max(parts) - min(parts)),
        "ratio": float(min(parts) / max(parts)),
    }
    return answers[function]


@each("function", OF_ANY)
def test_combinations_of_lists_and_single_measures(function: str) -> None:
    parts: tuple[Expression, ...] = (EVERY_RECALL, measure("precision", Every.CLASS), measure("accuracy"))
    flat = [*RECALLS, *PRECISIONS, Fraction(33, 40)]
    assert value(combination(function, parts, len(flat))) == pytest.approx(exact(function, flat), rel=1e-14)


def test_gps_of_the_recalls_is_the_harmonic_mean() -> None:
    assert value(Combination("gps", (EVERY_RECALL,))) == pytest.approx(value(measure("h_mean")), rel=1e-15)
    assert value(Combination("gps_sd", (EVERY_RECALL,))) == pytest.approx(value(measure("gps_recall_sd")), rel=1e-15)


def test_combinations_nest() -> None:
    inner = Combination("min", (EVERY_RECALL,))
    tree = Combination("mean", (inner, Combination("max", (EVERY_RECALL, inner))))
    assert value(tree) == 0.75
    assert len(measures(tree)) == 3


@pytest.mark.parametrize("function", ["gps", "gmean"])
def test_a_zero_makes_the_mean_zero_and_a_gap_makes_it_undefined(function: str) -> None:
    tree = Combination(function, (EVERY_RECALL,))
    assert compute(tree, Table([[0, 5], [1, 4]])) == 0
    assert np.isnan(compute(tree, Table([[0, 0], [1, 4]])))


def test_a_dispersion_needs_two_parts_and_no_zero() -> None:
    assert np.isnan(compute(Combination("gps_sd", (measure("accuracy"),)), Table(COUNTS)))
    assert np.isnan(compute(Combination("gps_sd", (EVERY_RECALL,)), Table([[0, 5], [1, 4]])))


@each("function", OF_ANY)
def test_a_batch_gives_what_its_matrices_give(function: str) -> None:
    batch = np.random.default_rng(8).integers(1, 40, (2, 5, 3, 3))
    tree = combination(function, (EVERY_RECALL, measure("precision", 2), measure("macro_f1")), 5)
    got = compute(tree, Table(batch))
    assert got.shape == (2, 5)
    alone = [[float(compute(tree, Table(counts))) for counts in row] for row in batch]
    assert got == pytest.approx(np.array(alone), rel=1e-13)
    assert compute(EVERY_RECALL, Table(batch)).shape == (2, 5, 3)
    assert compute(measure("recall", 1), Table(batch)).shape == (2, 5)


def test_an_expression_is_as_insensitive_as_its_parts() -> None:
    recalls, specificities = EVERY_RECALL, measure("specificity", Every.CLASS)
    assert is_insensitive(Combination("gps", (recalls,)), 5)
    assert is_insensitive(Combination("gps", (recalls, specificities)), 2)
    assert not is_insensitive(Combination("gps", (recalls, specificities)), 3)
    assert not is_insensitive(Combination("mean", (recalls, measure("accuracy"))), 2)


# What is declared of the functions.


@each("key", COMBINATIONS)
def test_a_card_of_a_function_says_what_a_reader_needs(key: str) -> None:
    card = COMBINATIONS[key]
    assert card.key == key
    assert card.name
    assert card.formula
    assert card.sentence.endswith(".")
    assert set(card.references) <= REFERENCES.keys()


@pytest.mark.parametrize("key", [key for key, card in COMBINATIONS.items() if card.slopes is not None])
def test_slopes_are_derivatives(key: str) -> None:
    card, parts, step = COMBINATIONS[key], np.array([0.3, 0.55, 0.9, 0.41]), 1e-6
    assert card.slopes is not None
    parameters = combination(key, (), parts.size).parameters
    moved = step * np.eye(parts.size)
    numeric = (card.compute(parts + moved, **parameters) - card.compute(parts - moved, **parameters)) / (2 * step)
    np.testing.assert_allclose(card.slopes(parts, **parameters), numeric, rtol=1e-8)


@each("key", OF_ANY)
def test_values_keep_to_the_bounds(key: str) -> None:
    """Lists count with all their values, metrics of several ranges with theirs."""
    signed = () if COMBINATIONS[key].of_positives is not None else (measure("mcc"), measure("informedness", 0))
    parts = (EVERY_RECALL, measure("likelihood_ratio_positive", 1), measure("error_rate"), *signed)
    random = np.random.default_rng(4)
    for chosen in ((0,), (0, 1), (2, 0), (len(parts) - 1, 2), tuple(range(len(parts)))):
        inside = tuple(parts[place] for place in chosen)
        tree = combination(key, inside, sum(3 if is_list(part) else 1 for part in inside))
        low, high = bounds(tree)
        values = compute(tree, Table(random.integers(1, 40, (500, 3, 3))))
        values = values[np.isfinite(values)]
        assert values.size > 0 or (key == "gps_sd" and len(chosen) == 1)
        assert low is None or (values >= low - 1e-12).all()
        assert high is None or (values <= high + 1e-12).all()


def test_bounds_of_extremes_are_those_of_the_parts_that_make_them() -> None:
    parts = (measure("mcc"), measure("accuracy"), measure("likelihood_ratio_positive", 0))
    assert bounds(Combination("min", parts)) == (-1.0, 1.0)
    assert bounds(Combination("max", parts)) == (0.0, None)
    assert bounds(Combination("mean", parts)) == (-1.0, None)
    assert bounds(Combination("range", parts)) == (0.0, None)
