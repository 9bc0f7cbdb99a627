"""What the cards claim, held against the functions: for every metric of the catalogue, both ways."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.kernel.metrics.card import DIVISION_BY_ZERO, INFINITE, AnyMetric, Explainer, Inputs, Orientation, Prevalence
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import silently
from tests.bank import each
from tests.kernel.closeness import RELATIVE, assert_close, is_of_class
from tests.kernel.kinds.kind import Kind
from tests.kernel.kinds.registry import KINDS, kind_of

METRICS = catalogue().metrics
EACH = each("metric", METRICS, ids=[metric.key for metric in METRICS])
# Of two classes these cannot move: the UPM is one and the same number, the two most probable are both, there is but one
# pair of classes.
# Whoever recognises everything with certainty has nothing to be calibrated, and what is decided need not be a class.
NOT_OF_RECOGNITION = {
    "calibration_intercept", "calibration_slope",
    "decision_share", "decision_share_of_class", "class_share_of_decision",
}  # fmt: skip
NOTHING_FOR_TWO_CLASSES = {"gps_upm_sd", "top_k_accuracy", "roc_auc_ovo_weighted"}


@cache
def cases(kind: Kind, classes: int) -> Sequence[Any]:
    return kind.cases(classes)


@cache
def degenerate(kind: Kind) -> Mapping[str, Any]:
    return kind.degenerate()


@cache
def batches(kind: Kind, classes: int) -> Sequence[tuple[Any, Sequence[Any]]]:
    return kind.batches(classes)


def stands(metric: AnyMetric, before: Any, after: Any, where: str, *, factor: float = 1.0) -> None:
    kind = kind_of(metric)
    want = factor * kind.values(metric, before)
    assert_close(metric, kind.values(metric, after), want, absolute=kind.rounding, where=where)


def moves(metric: AnyMetric, before: Any, after: Any) -> bool:
    """By more than rounding, somewhere."""
    one, two = (kind_of(metric).values(metric, example) for example in (before, after))
    with np.errstate(invalid="ignore"):
        return bool((np.abs(one - two) > 1e-9 * np.abs(one) + 1e-12).any())


def test_the_metrics_are_those_of_the_published_list() -> None:
    """The table in ``tests/data`` names every metric with its scope, its inputs and how it takes prevalence."""
    with (Path(__file__).parents[1] / "data" / "metrics.csv").open() as file:
        listed = {(row["key"], row["inputs"]): row for row in csv.DictReader(file)}
    assert listed.keys() == {(metric.key, metric.card.inputs) for metric in catalogue().metrics}
    for metric in catalogue().metrics:
        card, row = metric.card, listed[metric.key, metric.card.inputs]
        assert (card.scope, card.inputs, card.prevalence) == (row["scope"], row["inputs"], row["prevalence"]), card.key
        if card.inputs is Inputs.PROBABILITIES:
            assert set(card.aliases) == set(filter(None, row["aliases"].split(";"))), card.key


def test_is_insensitive() -> None:
    assert Prevalence.INSENSITIVE.is_insensitive(7)
    assert Prevalence.INSENSITIVE_BINARY.is_insensitive(2)
    assert not Prevalence.INSENSITIVE_BINARY.is_insensitive(3)
    assert not Prevalence.SENSITIVE.is_insensitive(2)


# Prevalence, size and order


@EACH
@each("classes", [2, 3, 5])
def test_prevalence(metric: AnyMetric, classes: int) -> None:
    """Insensitive: unchanged when whole classes are replicated. Sensitive: some example shows it."""
    kind = kind_of(metric)
    pairs = [(one, kind.replicated(one, (2, 7, 3, 4, 5)[:classes])) for one in cases(kind, classes)]
    if metric.card.prevalence.is_insensitive(classes):
        for before, after in pairs:
            stands(metric, before, after, f"K={classes}")
    elif not (classes == 2 and metric.key in NOTHING_FOR_TWO_CLASSES):
        assert any(moves(metric, before, after) for before, after in pairs)


@EACH
@each("classes", [2, 3])
def test_sample_size(metric: AnyMetric, classes: int) -> None:
    """Three times the same data: the value stands, or is multiplied too, or the metric needs numbers of samples."""
    kind = kind_of(metric)
    pairs = [(one, kind.replicated(one, (3,) * classes)) for one in cases(kind, classes)]
    if metric.card.degree is None:
        assert metric.card.needs_counts
        assert any(moves(metric, before, after) for before, after in pairs)
        return
    for before, after in pairs:
        stands(metric, before, after, "tripled", factor=3.0**metric.card.degree)


@EACH
def test_relabelling(metric: AnyMetric) -> None:
    """Listing the classes in another order: class values go along, overall values stand, unless the order of the
    classes counts.
    """
    rng, kind, moved = np.random.default_rng(9), kind_of(metric), False
    for classes in (2, 3, 5):
        for example in cases(kind, classes):
            order = rng.permutation(classes)
            before = kind.values(metric, example)
            after = kind.values(metric, kind.relabelled(example, order.tolist()))
            if metric.card.ordered:
                moved |= bool(abs(before - after) > 1e-9)
            elif not kind.depends_on_order(metric, example):
                want = before[order] if is_of_class(metric) else before
                assert_close(metric, after, want, relative=1e-10, absolute=kind.rounding, where="relabelled")
    assert moved is metric.card.ordered


# Range, ideal and orientation


def examples(kind: Kind) -> Iterator[tuple[str, Any]]:
    yield from degenerate(kind).items()
    for classes in (2, 3, 5):
        for number, example in enumerate(cases(kind, classes)):
            yield f"{classes} classes, {number}", example


@EACH
def test_range_and_ideal(metric: AnyMetric) -> None:
    card, kind = metric.card, kind_of(metric)
    low, high = card.range
    for name, example in examples(kind):
        values = kind.values(metric, example)
        values = values[np.isfinite(values)]
        assert low is None or (values >= low - kind.rounding).all(), name
        assert high is None or (values <= high * (1 + 1e-15) + kind.rounding).all(), name
    if card.ideal is not None:
        assert low is None or low <= card.ideal
        assert high is None or card.ideal <= high
    if card.orientation is Orientation.DESCRIPTIVE:
        assert card.ideal is None


@EACH
def test_perfection(metric: AnyMetric) -> None:
    """Whoever recognises everything has the ideal value, and nobody has a better one on the same data."""
    card, kind = metric.card, kind_of(metric)
    if metric.key in NOT_OF_RECOGNITION:
        return
    for classes in (2, 3, 5):
        for example in cases(kind, classes):
            perfect, other = kind.values(metric, kind.perfect(example)), kind.values(metric, example)
            # A p-value of 0 is approached only.
            if card.ideal is not None and metric.key != "accuracy_p_value":
                assert perfect == pytest.approx(card.ideal, rel=RELATIVE, abs=kind.rounding)
            if card.orientation is Orientation.HIGHER:
                assert not (perfect < other - kind.rounding).any()
            elif card.orientation is Orientation.LOWER:
                assert not (perfect > other + kind.rounding).any()
            elif card.orientation is Orientation.NEAREST:
                assert card.ideal == 0
                assert (np.abs(perfect) <= np.abs(other)).all()


# Batches


@EACH
@each("classes", [2, 5])
def test_a_batch_is_its_members_one_by_one(metric: AnyMetric, classes: int) -> None:
    """With one and with two leading axes, missing values included."""
    kind = kind_of(metric)
    for batch, alone in batches(kind, classes):
        want = np.stack([kind.values(metric, one) for one in alone])
        got = kind.values(metric, batch)
        axes = got.shape[:-1] if is_of_class(metric) else got.shape
        assert np.prod(axes) == len(alone)
        assert_close(metric, got.ravel(), want.ravel(), absolute=kind.rounding, where=f"axes {axes}")


# Missing values


@each(("inputs", "name"), [(inputs, name) for inputs, kind in KINDS.items() for name in degenerate(kind)])
def test_missing_values_have_a_reason(inputs: Inputs, name: str) -> None:
    check_gaps(inputs, degenerate(KINDS[inputs])[name])


def check_gaps(inputs: Inputs, example: Any) -> None:
    """Undefined if and only if a condition of the card holds; infinite if and only if all that hold have that code."""
    kind = KINDS[inputs]
    data = kind.data(example)
    explainer: Explainer[Any] = Explainer(data)
    for metric in METRICS:
        if metric.card.inputs is not inputs:
            continue
        # What would be infinite is clipped by default.
        bare = {"clip": 0.0} if "clip" in metric.card.defaults else {}
        values = np.atleast_1d(kind.values(metric, example, **bare))
        with silently():
            masks = [(condition, np.asarray(condition.holds(data))) for condition in metric.card.undefined]
        for k, value in enumerate(values):
            holding = {
                condition.code == "infinite"
                for condition, mask in masks
                if (mask[k] if is_of_class(metric) and mask.ndim else mask.any())
            }
            assert np.isnan(value) == (False in holding), f"{metric.key}: {value}"
            assert np.isinf(value) == (holding == {True}), f"{metric.key}: {value}"
            if holding:
                gap = explainer.explain(metric, k if is_of_class(metric) else None, float(value))
                assert gap.condition not in (DIVISION_BY_ZERO, INFINITE)
                assert (gap.condition.code == "infinite") == np.isinf(value)
