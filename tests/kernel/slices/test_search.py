"""The search for weak slices: exact tails, everything counted by hand, and what it names in noise."""

from fractions import Fraction
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from scipy.stats import hypergeom, ttest_ind
from scipy.stats import t as student

from app.kernel.numerics.arrays import Mask
from app.kernel.numerics.hypergeometric import hypergeometric_mid_p, hypergeometric_tails
from app.kernel.slices.search import Codes, Condition, MeanLosses, SampleLosses, WeakSlice, find_weak, sample_losses


def _exact_tail(events: int, size: int, all_events: int, total: int) -> Fraction:
    ways = sum(
        comb(all_events, x) * comb(total - all_events, size - x)
        for x in range(max(events, 0), min(size, all_events) + 1)
        if size - x <= total - all_events
    )
    return Fraction(ways, comb(total, size))


def test_a_worked_tail() -> None:
    tail, _ = hypergeometric_tails(np.array(30), np.array(125), np.array(200), np.array(2000))
    assert float(tail) == pytest.approx(1.871168e-6, rel=5e-7)
    assert float(tail) * 3 * 1700 == pytest.approx(0.009543, abs=5e-7)
    assert float(tail) * 30_000 == pytest.approx(0.056135, abs=5e-7)


def test_tails_are_those_of_fractions_for_all_small_numbers() -> None:
    cases = [(x, m, k, n) for n in range(1, 10) for m in range(n + 1) for k in range(n + 1) for x in range(-1, n + 2)]
    tails, masses = hypergeometric_tails(*np.array(cases).T)
    expected = [float(_exact_tail(*case)) for case in cases]
    np.testing.assert_allclose(tails, expected, rtol=1e-11, atol=1e-14)
    above = [float(_exact_tail(x + 1, m, k, n)) for x, m, k, n in cases]
    np.testing.assert_allclose(masses, np.subtract(expected, above), rtol=1e-9, atol=1e-13)


def test_tails_of_large_numbers_are_those_of_scipy() -> None:
    x = np.array([1200.0, 1050.0, 900.0, 1400.0])
    tails, _ = hypergeometric_tails(x, np.full(4, 10_000.0), np.full(4, 100_000.0), np.full(4, 1_000_000.0))
    np.testing.assert_allclose(tails, hypergeom.sf(x - 1, 1_000_000, 100_000, 10_000), rtol=1e-6)


def test_the_mid_p_is_the_same_from_both_sides() -> None:
    one = (np.array([3.0, 8.0, 0.0]), np.array([20.0, 40.0, 0.0]))
    other = (np.array([30.0, 8.0, 4.0]), np.array([60.0, 40.0, 9.0]))
    p = hypergeometric_mid_p(*one, *other)
    np.testing.assert_allclose(p, hypergeometric_mid_p(*other, *one), rtol=1e-12)
    tail = 1 - _exact_tail(4, 20, 33, 80)
    mass = _exact_tail(3, 20, 33, 80) - _exact_tail(4, 20, 33, 80)
    assert p[0] == pytest.approx(float(2 * (tail - mass / 2)), rel=1e-10)
    assert p[1] == pytest.approx(1.0, abs=1e-12)
    assert np.isnan(p[2])


def lost(events: Mask) -> SampleLosses:
    return sample_losses(events.astype(float))


def _found(columns: list[Codes], events: Mask) -> list[WeakSlice]:
    return find_weak(columns, lost(events))[0]


def _samples(seed: int, size: int, add: float, n_columns: int = 6) -> tuple[list[Codes], Mask, Mask]:
    random = np.random.default_rng(seed)
    columns = [random.integers(0, int(random.integers(2, 5)), size) for _ in range(n_columns)]
    weak = (columns[0] == 0) & (columns[1] == 1)
    return columns, random.random(size) < 0.1 + add * weak, weak


def _all_slices(
    columns: list[Codes], events: Mask, depth: int, fewest: int
) -> list[list[tuple[float, tuple[Condition, ...]]]]:
    """By depth the exact p and the conditions of all slices with enough samples."""
    found = []
    for d in range(1, depth + 1):
        own = []
        for chosen in combinations(range(len(columns)), d):
            for values in product(*(sorted(set(columns[place].tolist()) - {-1}) for place in chosen)):
                mask = np.logical_and.reduce([columns[c] == v for c, v in zip(chosen, values, strict=True)])
                if mask.sum() >= fewest:
                    p = _exact_tail(int(events[mask].sum()), int(mask.sum()), int(events.sum()), events.size)
                    own.append((float(p), tuple(zip(chosen, values, strict=True))))
        found.append(own)
    return found


@pytest.mark.parametrize("seed", [1, 2])
def test_the_first_find_is_the_clearest_of_all_slices(seed: int) -> None:
    columns, events, weak = _samples(seed, 600, 0.45, 4)
    # Some values are missing, and one column has many values, most of them too rare.
    columns[2] = np.where(np.arange(600) % 9 == 0, -1, columns[2])
    columns[3] = np.arange(600) % 40 * (np.arange(600) % 3)
    expected = _all_slices(columns, events, 3, 12)
    found, looked_at = find_weak(columns, lost(events), depth=3, fewest=12)
    assert looked_at == tuple(len(own) for own in expected)
    adjusted = min(p * 3 * len(own) for own in expected for p, _ in own)
    first = found[0]
    assert first.conditions == ((0, 0), (1, 1))
    assert (first.size, first.lost) == (int(weak.sum()), int(events[weak].sum()))
    assert first.p == pytest.approx({c: p for p, c in expected[1]}[first.conditions], rel=1e-9)
    assert first.p_adjusted >= adjusted * (1.0 - 1e-9)
    assert len(found) == 1


def test_a_condition_that_adds_nothing_is_dropped() -> None:
    random = np.random.default_rng(5)
    bad, other = random.random(4000) < 0.1, random.integers(0, 2, 4000)
    events = random.random(4000) < np.where(bad, 0.4, 0.1)
    found, _ = find_weak([bad.astype(int), other, random.integers(0, 3, 4000)], lost(events))
    assert [one.conditions for one in found] == [((0, 1),)]


def test_a_condition_that_may_be_worse_by_chance_is_dropped() -> None:
    """Either of two conditions could have been the one, so that p within the wider slice counts twice."""
    random = np.random.default_rng(75)
    bad, other = random.random(1000) < 0.08, random.integers(0, 2, 1000)
    events = random.random(1000) < np.where(bad, np.where(other == 1, 0.32, 0.14), 0.1)
    narrow = bad & (other == 1)
    within = hypergeom(bad.sum(), events[bad].sum(), narrow.sum())
    assert 0.025 < within.sf(events[narrow].sum() - 1) < 0.05
    (wider,) = find_weak([bad.astype(int)], lost(events))[0]
    (found,) = find_weak([bad.astype(int), other], lost(events))[0]
    assert found.p == wider.p
    assert found.conditions == ((0, 1),)


def test_samples_of_a_find_are_taken_out_before_the_next() -> None:
    random = np.random.default_rng(6)
    columns = [random.integers(0, 4, 6000), random.integers(0, 4, 6000)]
    events = random.random(6000) < np.where((columns[0] == 0) | (columns[1] == 0), 0.3, 0.05)
    found, _ = find_weak(columns, lost(events))
    assert {one.conditions for one in found} == {((0, 0),), ((1, 0),)}
    first, second = (columns[one.conditions[0][0]] == 0 for one in found)
    assert found[1].size == int((second & ~first).sum())


@pytest.mark.parametrize("events", [np.zeros(100, dtype=bool), np.ones(100, dtype=bool)])
def test_where_all_samples_are_alike_nothing_is_weak(events: Mask) -> None:
    assert find_weak([np.arange(100) % 2], lost(events)) == ([], (2, 0, 0))


def test_slices_too_small_are_not_looked_at() -> None:
    assert find_weak([np.arange(100) % 10], lost(np.arange(100) % 10 == 0))[1] == (0, 0, 0)
    assert find_weak([], lost(np.zeros(10, dtype=bool)), depth=1) == ([], (0,))


def test_means_are_compared_as_scipy_does_by_welch() -> None:
    random = np.random.default_rng(3)
    inside = np.arange(400) < 120
    # The slice varies more than all others, so that its own variance counts.
    losses = np.where(inside, random.exponential(1.6, 400), random.exponential(1.0, 400))
    counts = MeanLosses(losses)
    p = counts.p(counts.table(np.arange(400), inside.astype(np.intp), 2))[1]
    expected = ttest_ind(losses[inside], losses[~inside], equal_var=False, alternative="greater")
    t = counts.table(np.arange(400), inside.astype(np.intp), 2)[1, 2]
    assert t == pytest.approx(expected.statistic, rel=2e-3)
    assert p == pytest.approx(student.sf(t, 119), rel=1e-12)


def test_groups_and_weights_are_added_up_as_by_hand() -> None:
    random = np.random.default_rng(4)
    groups, weights = np.repeat(np.arange(300), 4), random.lognormal(0, 0.3, 1200)
    losses, inside = random.normal(0, 1, 1200) + random.normal(0, 1, 300)[groups], random.random(1200) < 0.6
    counts = MeanLosses(losses, weights, groups)
    table = counts.table(np.arange(1200), inside.astype(np.intp), 2)[1]
    mean, rest = (np.average(losses[some], weights=weights[some]) for some in (inside, ~inside))
    w, other = weights[inside].sum(), weights[~inside].sum()
    moves = np.where(inside, weights * (losses - mean) / w, -weights * (losses - rest) / other)
    variance = np.bincount(groups, moves)
    own = np.bincount(groups, np.where(inside, weights, 0.0))
    worth = w**2 / (own @ own)
    there = own > 0
    # What a sample and its group vary by, from the sums of squares of both.
    centred = weights * (losses - np.average(losses, weights=weights))
    sigma = (centred @ centred) / (weights @ weights)
    sizes, squares = np.bincount(groups, weights), (np.bincount(groups, centred) ** 2).sum()
    rho = (squares / sigma - weights @ weights) / (sizes @ sizes - weights @ weights)
    assert 0.3 < rho < 0.7
    pooled = sigma * (rho * (own @ own) + (1 - rho) * (weights[inside] @ weights[inside])) / w**2
    alone = np.bincount(groups, np.where(inside, moves, 0.0))
    total = ((variance[there] ** 2).sum() + max(pooled - alone @ alone, 0.0)) * worth / (worth - 1)
    total += (variance[~there] ** 2).sum()
    assert table[2] == pytest.approx((mean - rest) / total**0.5, rel=1e-9)
    assert table[3] == pytest.approx(worth, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["losses", "weights", "groups"])
def test_noise_in_means_has_a_weak_slice_at_most_as_often_as_the_level_says(kind: str) -> None:
    named = []
    for seed in range(60):
        random, groups = np.random.default_rng([seed, 1]), np.arange(2000) // 4
        columns = [random.integers(0, 3, 2000) for _ in range(8)]
        rates = random.beta(4.5, 0.5, 500)[groups]
        some = {
            "losses": sample_losses(random.exponential(size=2000)),
            "weights": sample_losses((random.random(2000) < 0.9).astype(float), random.lognormal(0, 0.5, 2000)),
            "groups": sample_losses((random.random(2000) < rates).astype(float), None, groups),
        }[kind]
        named.append(bool(find_weak(columns, some, fewest=100)[0]))
    assert np.mean(named) <= 0.1


@pytest.mark.slow
def test_noise_has_a_weak_slice_at_most_as_often_as_the_level_says() -> None:
    named = [bool(_found(*_samples(seed, 1000, 0.0, 10)[:2])) for seed in range(200)]
    assert np.mean(named) < 0.06


@pytest.mark.slow
def test_a_weak_slice_is_found_and_named_exactly() -> None:
    found = [_found(*_samples(seed, 2000, 0.3, 10)[:2]) for seed in range(40)]
    exact = [bool(one) and one[0].conditions == ((0, 0), (1, 1)) for one in found]
    assert np.mean(exact) > 0.85
    assert np.mean([len(one) > 1 for one in found]) < 0.1
