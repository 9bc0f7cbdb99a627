"""Closed-form intervals at equal class shares."""

import warnings
from functools import partial

import numpy as np
import pytest

from app.kernel.matrix.table import Table, at_equal_prevalence
from app.kernel.metrics.card import Metric
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.closed_forms import Headlines, Method, OverallInterval
from app.kernel.uncertainty.designs import Given, Independent, NoLimits
from app.kernel.uncertainty.intervals import jeffreys
from app.kernel.uncertainty.simulation import RowPosterior
from tests.kernel.matrices import matrices
from tests.kernel.uncertainty.resampled import posterior_intervals

SMOOTH = ("macro_f1", "mcc", "cohen_kappa")


def at_equal_shares(*counts: Array, level: float = 0.95) -> list[dict[str, OverallInterval]]:
    batch = np.array(counts, dtype=np.float64)[:, None]
    with silently():
        pairs = Table(np.concatenate([batch, at_equal_prevalence(batch)], axis=1))
    found = Headlines.of_pairs(pairs, level).at_equal_shares()
    return [{one.key: one for one in own} for own in found]


def test_two_classes_are_moved_by_each_recall() -> None:
    """By numbers: the moves of both recalls to their limits, each by a difference quotient, added by squares."""
    counts = np.array([[930.0, 20.0], [6.0, 44.0]])
    (found,) = at_equal_shares(counts)
    recalls = np.diagonal(counts) / counts.sum(axis=1)
    low, high = jeffreys(np.diagonal(counts), counts.sum(axis=1), 0.95)

    for key in SMOOTH:
        metric = catalogue().of_matrices.by_name[key]

        def at(first: float, second: float, metric: object = metric) -> float:
            return float(metric(Table(np.array([[first, 1 - first], [1 - second, second]]))))  # type: ignore[operator]

        step = 1e-6
        slopes = [
            (at(recalls[0] + step, recalls[1]) - at(recalls[0] - step, recalls[1])) / (2 * step),
            (at(recalls[0], recalls[1] + step) - at(recalls[0], recalls[1] - step)) / (2 * step),
        ]
        assert min(slopes) > 0
        expected = at(*recalls)
        assert found[key].low == pytest.approx(expected - np.hypot(*(slopes * (recalls - low))), rel=1e-6)
        assert found[key].high == pytest.approx(expected + np.hypot(*(slopes * (high - recalls))), rel=1e-6)
        assert (found[key].method, found[key].given) == (Method.MOVER, Given.ACTUAL)


def test_accuracy_is_balanced_accuracy() -> None:
    counts = np.array([[90.0, 8.0, 2.0], [3.0, 25.0, 2.0], [0.0, 1.0, 9.0]])
    (found,) = at_equal_shares(counts)
    own = {one.key: one for one in Headlines(Independent(Table(counts[None]))).overall[0]}["balanced_accuracy"]
    assert found["accuracy"] == own._replace(key="accuracy")
    assert set(found) == {"accuracy", *SMOOTH}


def at_twin(metric: Metric[Table], table: Table) -> Array:
    return metric(Table(at_equal_prevalence(table.counts)))


@pytest.mark.parametrize("size", [3, 5])
def test_they_lie_near_those_of_the_posterior(size: int) -> None:
    """Of many samples both say the same: the same rows are unknown."""
    random = np.random.default_rng(size)
    rows = 0.7 * np.eye(size) + 0.3 * random.dirichlet(np.ones(size), size)
    counts = np.round(rows * np.linspace(400, 4000, size)[:, None])
    (found,) = at_equal_shares(counts)
    metrics = [catalogue().of_matrices.by_name[key] for key in SMOOTH]
    asked = [partial(at_twin, metric) for metric in metrics]
    drawn = posterior_intervals(RowPosterior(counts), asked, seed=1, draws=2000)
    for key, one in zip(SMOOTH, drawn, strict=True):
        width = float((one.high - one.low)[0])
        assert abs(found[key].low - one.low[0]) < 0.12 * width, key
        assert abs(found[key].high - one.high[0]) < 0.12 * width, key


def test_what_has_no_value_has_no_limits() -> None:
    perfect, empty = np.diag([9.0, 9.0, 4.0]), np.array([[7.0, 3.0, 0.0], [2.0, 8.0, 0.0], [0.0, 0.0, 0.0]])
    without_errors, without_class = at_equal_shares(perfect, empty)
    for key in SMOOTH:
        assert without_errors[key].low < without_errors[key].high == 1.0
        assert without_class[key].refusal is NoLimits.UNDEFINED
    assert without_class["accuracy"].refusal is NoLimits.UNDEFINED


def test_they_hold_the_value_and_stay_in_its_range() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, counts in matrices().items():
            if counts.ndim != 2 or len(counts) < 2:
                continue
            (found,) = at_equal_shares(counts.astype(np.float64))
            with silently():
                twin = Table(at_equal_prevalence(counts.astype(np.float64)))
                values = {key: float(catalogue().of_matrices.by_name[key](twin)) for key in found}
            for key, one in found.items():
                if one.refusal is None:
                    assert one.low - 1e-12 <= values[key] <= one.high + 1e-12, (name, key)
                    assert -1.0 <= one.low <= one.high <= 1.0, (name, key)


def test_a_matrix_has_the_same_in_any_batch() -> None:
    random = np.random.default_rng(2)
    some = random.integers(0, 40, (6, 4, 4)).astype(np.float64)
    together = at_equal_shares(*some)
    for counts, found in zip(some, together, strict=True):
        assert at_equal_shares(counts)[0] == found
