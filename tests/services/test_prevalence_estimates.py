"""Estimated class shares: what their intervals count in, and how often they hold the truth."""

from collections.abc import Mapping

import numpy as np
import pytest

from app.domain.errors import InvalidInput
from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.content import Content
from app.kernel.numerics.arrays import Array
from app.services.project.prevalence_estimate import PrevalenceEstimate, Unlabelled, estimate_prevalence
from tests.services.records import record_of


def estimate(
    record: EvaluationRecord, probabilities: Array, given: Mapping[str, float] | None = None
) -> PrevalenceEstimate:
    return estimate_prevalence(record, Unlabelled(probabilities=probabilities, old_prevalence=given, seed=0))


def ends(found: PrevalenceEstimate, label: str) -> tuple[float, float]:
    limits = found.intervals[label]
    assert limits.low is not None
    assert limits.high is not None
    return limits.low, limits.high


def samples(old: Array, new: Array, size: int, random: np.random.Generator) -> Array:
    """Probabilities calibrated to the old shares, of samples with the new ones."""
    y = random.choice(old.size, size, p=new)
    logits = random.normal(size=(size, old.size)) * 1.2 + np.log(old)
    logits[np.arange(size), y] += 1.2**2
    mass = np.exp(logits)
    found: Array = mass / mass.sum(axis=1, keepdims=True)
    return found


@pytest.mark.slow
def test_shares_of_few_labelled_samples_hold_the_truth() -> None:
    """A hundred labelled samples and 5,000 without labels: taken as exact the labelled shares left 53 % of 95 %."""
    random, old, new, replicates, hits = np.random.default_rng(1), np.full(2, 0.5), np.array([0.8, 0.2]), 60, 0
    for _ in range(replicates):
        first = int(random.binomial(100, 0.5))
        low, high = ends(estimate(record_of([[first, 0], [0, 100 - first]]), samples(old, new, 5000, random)), "B")
        hits += low <= 0.2 <= high
    assert hits >= 0.9 * replicates


@pytest.mark.slow
@pytest.mark.parametrize(("labelled", "share", "size"), [(30, 0.01, 1000), (100, 0.02, 1000), (30, 0.05, 5000)])
def test_rare_classes_have_limits_that_hold(labelled: int, share: float, size: int) -> None:
    """Few labelled samples and a rare class: derivatives left 73 to 83 % of 95 %, since estimates of 0 stay 0."""
    random, replicates, above = np.random.default_rng(7), 150, 0
    for _ in range(replicates):
        of_class = int(random.binomial(labelled, 0.5))
        new = samples(np.full(2, 0.5), np.array([1 - share, share]), size, random)
        above += ends(estimate(record_of([[labelled - of_class, 0], [0, of_class]]), new), "B")[1] < share
    assert above <= 0.1 * replicates


def test_a_share_of_0_may_be_due_to_the_labelled_shares() -> None:
    """Twelve of 30 labelled are of a class that is half of all: .00035 [0, .030] by derivatives, where .05 is true."""
    new = samples(np.full(2, 0.5), np.array([0.95, 0.05]), 1000, np.random.default_rng(4))
    low, high = ends(estimate(record_of([[12, 0], [0, 18]]), new), "B")
    assert low == 0.0
    assert high > 0.05
    exact = ends(estimate(record_of([[12, 0], [0, 18]]), new, {"A": 0.4, "B": 0.6}), "B")
    assert exact[1] < 0.04


def test_probabilities_may_be_rounded_as_those_of_evaluations_may() -> None:
    record = record_of([[20, 5, 1], [5, 20, 2], [1, 3, 20]])
    exact = samples(np.full(3, 1 / 3), np.array([0.6, 0.3, 0.1]), 400, np.random.default_rng(2))
    for rounded in (exact.astype(np.float32).astype(np.float64), np.round(exact, 3)):
        found = estimate(record, rounded).prevalence
        assert found == pytest.approx(estimate(record, exact).prevalence, abs=2e-3)
    with pytest.raises(InvalidInput, match=r"sum to 1 within 1e-06, got 1\.0000015$"):
        estimate(record, np.array([[0.2, 0.3, 0.5000015]]))


def test_given_shares_are_exact_and_counted_ones_are_not() -> None:
    probabilities = samples(np.full(2, 0.5), np.array([0.7, 0.3]), 1000, np.random.default_rng(2))
    record = record_of([[20, 5], [5, 20]])
    exact, counted = estimate(record, probabilities, {"A": 0.5, "B": 0.5}), estimate(record, probabilities)
    assert exact.prevalence == counted.prevalence
    (low, high), (wide_low, wide_high) = ends(exact, "B"), ends(counted, "B")
    assert wide_low < low < high < wide_high
    # Ten times as many labelled samples say more.
    more = ends(estimate(record_of([[200, 50], [50, 200]]), probabilities), "B")
    assert wide_low < more[0] < low < high < more[1] < wide_high


def test_no_interval_without_width_at_the_edge() -> None:
    found = estimate(record_of([[90, 10], [10, 90]]), np.tile([0.999999, 0.000001], (300, 1)))
    assert found.at_vertex
    assert found.prevalence["B"] == pytest.approx(0.0, abs=1e-6)
    low, high = ends(found, "B")
    assert low <= found.prevalence["B"]
    # A share of 0 stays 0 whatever the old share: the limit is that of the likelihood, 1.96^2 = 3.84 below its maximum.
    assert high == pytest.approx(1 - np.exp(-(1.959964**2) / 600), rel=1e-3)
    beyond = estimate_prevalence(record_of([[60, 40], [1, 99]]), Unlabelled(predicted={"A": 1000}, seed=0))
    assert beyond.at_vertex
    assert ends(beyond, "B")[1] > 0.001


@pytest.mark.parametrize(
    "record", [record_of([[40, 10], [10, 40]], Content.weights), record_of([[40, 10], [10, 40]], groups=7)]
)
def test_labelled_shares_of_unknown_error_leave_no_interval(record: EvaluationRecord) -> None:
    probabilities = samples(np.full(2, 0.5), np.array([0.7, 0.3]), 200, np.random.default_rng(3))
    found = estimate(record, probabilities)
    assert found.intervals == {}
    assert any("not known" in warning for warning in found.warnings)
    given = estimate(record, probabilities, {"A": 0.5, "B": 0.5})
    assert set(given.intervals) == {"A", "B"}
    # What one share leaves to the other is as well known as it is.
    assert estimate(record, probabilities, {"A": 0.5}).intervals == given.intervals
