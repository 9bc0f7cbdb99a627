"""Changes of a series: worked numbers, the rate of false claims, and that bands and claims say the same."""

import time
from math import exp, sqrt

import numpy as np
import pytest

from app.kernel.history import History
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.intervals import wilson

WORKED = np.array([0.90, 0.91, 0.895, 0.90, 0.85, 0.845])
ERROR = sqrt(0.9 * 0.1 / 500)


def history(values: Array, size: float = 500.0, error: float = ERROR) -> History:
    return History(values, np.full(values.size, error), np.full(values.size, size))


def band(known: History, place: int) -> list[float]:
    """The ends of one."""
    found: list[float] = known.bands(np.array([place]))[0].tolist()
    return found


def _evidence(values: Array, error: float) -> list[float]:
    """E after each value, sum by sum; the errors are all the same."""
    found = []
    for t in range(1, values.size + 1):
        total = 1.0
        for j in range(1, t):
            weight = 0.5 * 0.02 * 0.98 ** (j - 1) + 0.5 / (j * (j + 1))
            variance = error**2 / j + error**2 / (t - j)
            gap = values[j:t].mean() - values[:j].mean()
            ratios = [
                sqrt(variance / (variance + tau**2)) * exp(0.5 * gap**2 * tau**2 / (variance * (variance + tau**2)))
                for tau in (error * size for size in (0.5, 1, 2, 4))
            ]
            total += weight * (sum(ratios) / 4 - 1.0)
        found.append(total)
    return found


def test_the_worked_series() -> None:
    assert _evidence(WORKED, ERROR) == pytest.approx([1, 0.923505, 0.874734, 0.844447, 1.986846, 83.893338], abs=5e-7)
    (change,) = history(WORKED).changes
    assert (change.start, change.after, change.claimed) == (0, 3, 5)
    assert change.p == pytest.approx(0.023840, abs=5e-7)
    assert [change.before, change.since] == pytest.approx([0.90125, 0.8475])
    # So far less a shift there would be no claim, at either end.
    for shift, inside in ((change.low, 1e-6), (change.high, -1e-6)):
        for moved, claims in ((shift + inside, False), (shift - inside, True)):
            values = WORKED - moved * (np.arange(6) > 3)
            assert (_evidence(values, ERROR)[-1] >= 40.0) is claims


def test_a_value_is_claimed_exactly_where_it_leaves_the_band() -> None:
    known = history(WORKED)
    assert np.isnan(band(known, 0)).all()
    for place in range(1, 6):
        for end, outward in zip(band(known, place), (-1e-6, 1e-6), strict=True):
            values = WORKED[: place + 1].copy()
            values[place] = end - outward
            assert not history(values).changes
            values[place] = end + outward
            assert history(values).changes[0].claimed == place
    assert not band(known, 5)[0] < WORKED[5]
    assert known.bands(np.arange(6))[1:] == pytest.approx(np.array([band(known, place) for place in range(1, 6)]))


def test_after_a_change_the_band_starts_anew_and_the_next_needs_more() -> None:
    random = np.random.default_rng(2)
    levels = np.repeat([0.9, 0.8, 0.9], 30)
    values = random.binomial(500, levels) / 500
    found = history(values)
    assert [one.after for one in found.changes] == pytest.approx([29, 59], abs=2)
    assert all(one.low < move < one.high for one, move in zip(found.changes, (-0.1, 0.1), strict=True))
    assert band(found, 20)[0] < 0.9 < band(found, 20)[1]
    assert band(found, 50)[0] < 0.8 < band(found, 50)[1] < 0.9


def test_of_values_that_share_samples_too_what_was_before_a_change_plays_no_part() -> None:
    """The band after a change is that of a series that begins there, at the rate of error that is left for it."""
    values = 0.9 + ERROR * np.random.default_rng(3).normal(size=60) - 0.1 * (np.arange(60) >= 30)
    blocks = np.arange(60) // 6
    shared = ERROR**2 * np.where(blocks[:, None] == blocks, 0.7 + 0.3 * np.eye(60), 0.0)

    def history_from(start: int, alpha: float) -> History:
        size = 60 - start
        given = np.full(size, ERROR), np.full(size, 500.0)
        return History(values[start:], *given, alpha=alpha, covariances=shared[start:, start:])

    whole = history_from(0, 0.05)
    (change,) = whole.changes
    start = change.after + 1
    # From 1 / (1 * 2) to 1 / (2 * 3) of it.
    alone, later = history_from(start, 0.05 / 3), np.arange(change.claimed + 1, 60)
    assert whole.bands(later) == pytest.approx(alone.bands(later - start))


@pytest.mark.parametrize("first", [0.0, 3.5])
def test_ten_thousand_values_take_a_tenth_of_a_second(first: float) -> None:
    """Also where the first is so far out that a change is near at every value after it."""
    values = np.random.default_rng(4).normal(size=10_000)
    values[0] = first
    least = np.inf
    for _ in range(3):
        began = time.process_time()
        known = history(values, 1.0, 1.0)
        assert not known.changes
        known.bands(np.arange(9_950, 10_000))
        least = min(least, time.process_time() - began)
    assert least < 0.1


def test_a_change_late_in_a_long_series_is_found() -> None:
    values = np.random.default_rng(4).normal(size=3_000)
    values[2_500:] += 1.5
    (change,) = history(values, 1.0, 1.0).changes
    assert change.claimed < 2_600
    assert change.after == pytest.approx(2_499, abs=10)


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "sizes"), [(0.9, (500, 501)), (0.98, (50, 51)), (0.9, (50, 5000)), (0.9, (30, 31))])
def test_false_claims_of_2000_series_without_a_change(rate: float, sizes: tuple[int, int]) -> None:
    """Of 40 values each, with errors from Wilson's limits; at most 5 % of the series may claim a change."""
    random = np.random.default_rng(5)
    claimed = 0
    for _ in range(2_000):
        n = random.integers(*sizes, 40).astype(float)
        hits = random.binomial(n.astype(int), rate).astype(float)
        low, high = wilson(hits, n, 0.95)
        claimed += bool(History(hits / n, (high - low) / 2 / 1.959964, n).changes)
    assert claimed / 2_000 < 0.05
