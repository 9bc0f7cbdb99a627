"""Tests and intervals on the discordant items of two runs."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from app.kernel.compare.paired.joint import JointCounts, combine
from app.kernel.compare.paired.tests import ChiSquared, RunPair, mcnemar_mid_p
from app.kernel.numerics.arrays import Array
from tests.bank import each
from tests.kernel.compare.tango import tango_interval, tango_z


def test_published_p_value() -> None:
    assert float(mcnemar_mid_p(1, 7)) == pytest.approx(0.0391, abs=5e-5)


def test_mid_p_agrees_with_statsmodels_and_scipy() -> None:
    from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar

    for b, c in [(1, 7), (7, 1), (40, 20), (0, 5), (120, 180)]:
        chance = binom.pmf(min(b, c), b + c, 0.5)
        exact = statsmodels_mcnemar([[10, b], [c, 5]], exact=True).pvalue
        assert float(mcnemar_mid_p(b, c)) == pytest.approx(exact - chance, rel=1e-9)
        assert float(mcnemar_mid_p(b, c)) == pytest.approx(binomtest(b, b + c).pvalue - chance, rel=1e-9)


def test_no_discordant_items_is_certainty_and_not_missing() -> None:
    assert [float(mcnemar_mid_p(count, count)) for count in (0, 3, 5)] == [1.0] * 3


def test_mid_p_is_elementwise_and_holds_for_millions() -> None:
    from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar

    found = mcnemar_mid_p(np.array([1.0, 500_000.0]), np.array([7.0, 501_000.0]))
    plain = statsmodels_mcnemar([[0, 500_000], [501_000, 0]], exact=False, correction=False).pvalue
    assert found.shape == (2,)
    assert float(found[1]) == pytest.approx(plain, rel=0.01)


def test_tango_interval_of_the_published_table() -> None:
    low, high = tango_interval(40, 20, 160)
    assert (float(low), float(high)) == pytest.approx((0.0309, 0.2181), abs=5e-5)


def test_tango_z_at_a_margin() -> None:
    assert float(tango_z(30, 34, 3000, -0.01)) == pytest.approx(3.02, abs=5e-3)
    assert float(tango_z(9, 7, 150, -0.01)) == pytest.approx(0.87, abs=5e-3)
    assert float(tango_z(7, 1, 100)) == pytest.approx(6 / np.sqrt(8))


def test_tango_interval_inverts_the_score_test_and_survives_the_edges() -> None:
    b, c, n = np.array([0.0, 5, 0, 100, 0, 30]), np.array([0.0, 0, 5, 0, 100, 34]), np.full(6, 100.0)
    low, high = tango_interval(b, c, n)
    difference = (b - c) / n
    assert np.all((low <= difference) & (difference <= high))
    assert low[4] == -1.0
    assert high[3] == 1.0
    np.testing.assert_allclose(low, -high[[0, 2, 1, 4, 3, 5]], atol=0.2)
    inner = [0, 1, 2, 5]
    np.testing.assert_allclose(tango_z(b[inner], c[inner], n[inner], low[inner]), 1.959964, atol=1e-5)
    np.testing.assert_allclose(tango_z(b[inner], c[inner], n[inner], high[inner]), -1.959964, atol=1e-5)
    mirrored_low, mirrored_high = tango_interval(c, b, n)
    np.testing.assert_allclose(low, -mirrored_high, atol=1e-12)
    np.testing.assert_allclose(high, -mirrored_low, atol=1e-12)


def test_the_nuisance_share_of_tango_maximises_the_likelihood() -> None:
    b, c, n, d = 9.0, 7.0, 150.0, -0.01
    shares = np.linspace(1e-4, 0.2, 200_001)
    likelihood = b * np.log(shares + d, where=shares + d > 0, out=np.full(shares.shape, -1e9))
    likelihood = likelihood + c * np.log(shares) + (n - b - c) * np.log(1 - 2 * shares - d)
    best = shares[likelihood.argmax()]
    variance = n * (2 * best + d * (1 - d))
    assert float(tango_z(b, c, n, d)) == pytest.approx((b - c - n * d) / np.sqrt(variance), abs=1e-4)


def test_the_unknown_pairing_leaves_p_open() -> None:
    assert float(mcnemar_mid_p(20, 0)) == pytest.approx(9.5e-7, rel=0.01)
    assert float(mcnemar_mid_p(100, 80)) == pytest.approx(0.137, abs=5e-4)


def of_table(table: Array) -> RunPair:
    """So many samples of each class by the first run (rows) and by the second (columns)."""
    first, second = np.nonzero(table)
    return RunPair(JointCounts(len(table), np.zeros_like(first), np.stack([first, second]), table[first, second]))


def stuart_maxwell(table: Array) -> ChiSquared:
    return of_table(table).stuart_maxwell()


def bhapkar(table: Array) -> ChiSquared:
    return of_table(table).bhapkar()


def bowker(table: Array) -> ChiSquared:
    return of_table(table).bowker()


DRIFT = np.array([[20.0, 10, 5], [3, 30, 15], [0, 5, 40]])


def test_published_statistics_of_drift() -> None:
    assert stuart_maxwell(DRIFT).statistic == pytest.approx(13.76, abs=5e-3)
    assert bhapkar(DRIFT).statistic == pytest.approx(15.42, abs=5e-3)
    assert bowker(DRIFT).statistic == pytest.approx(13.77, abs=5e-3)


def test_drift_agrees_with_statsmodels() -> None:
    from statsmodels.stats.contingency_tables import SquareTable

    theirs = SquareTable(DRIFT, shift_zeros=False)
    homogeneity, symmetry = theirs.homogeneity(), theirs.symmetry()
    ours = stuart_maxwell(DRIFT)
    assert (ours.statistic, ours.p) == pytest.approx((homogeneity.statistic, homogeneity.pvalue))
    assert (bowker(DRIFT).statistic, bowker(DRIFT).p) == pytest.approx((symmetry.statistic, symmetry.pvalue))


# Unaided distance vision of the right and the left eye of 7,477 women, Stuart (1955): Q = 11.96 by Stuart's test, 19.11
# by Bowker's, 11.98 by Bhapkar's (1966, who prints 11.976).
VISION = np.array([[1520.0, 266, 124, 66], [234, 1512, 432, 78], [117, 362, 1772, 205], [36, 82, 179, 492]])


def exact_margins(table: Array) -> Fraction:
    """d' S^-1 d without the last class, by elimination in fractions."""
    counts = [[Fraction(int(cell)) for cell in row] for row in table.tolist()]
    size = len(counts) - 1
    rows, columns = [sum(row) for row in counts], [sum(column) for column in zip(*counts, strict=True)]
    gaps = [rows[k] - columns[k] for k in range(size)]
    system = [
        [rows[i] + columns[i] - 2 * counts[i][i] if i == j else -counts[i][j] - counts[j][i] for j in range(size)]
        + [gaps[i]]
        for i in range(size)
    ]
    for i in range(size):
        pivot = next(row for row in range(i, size) if system[row][i])
        system[i], system[pivot] = system[pivot], system[i]
        system[i] = [value / system[i][i] for value in system[i]]
        for row in range(size):
            if row != i:
                system[row] = [a - system[row][i] * b for a, b in zip(system[row], system[i], strict=True)]
    return sum((gap * row[-1] for gap, row in zip(gaps, system, strict=True)), Fraction(0))


def exact_symmetry(table: Array) -> Fraction:
    counts = [[Fraction(int(cell)) for cell in row] for row in table.tolist()]
    return sum(
        (
            (counts[i][j] - counts[j][i]) ** 2 / (counts[i][j] + counts[j][i])
            for i, j in combinations(range(len(counts)), 2)
            if counts[i][j] + counts[j][i]
        ),
        Fraction(0),
    )


def test_published_statistics_of_the_eyes() -> None:
    assert round(stuart_maxwell(VISION).statistic, 2) == 11.96
    assert round(bowker(VISION).statistic, 2) == 19.11
    assert round(bhapkar(VISION).statistic, 3) == 11.976
    assert (stuart_maxwell(VISION).freedom, bowker(VISION).freedom) == (3, 6)


@pytest.mark.parametrize("seed", range(6))
def test_margins_and_symmetry_in_fractions_and_by_statsmodels(seed: int) -> None:
    from statsmodels.stats.contingency_tables import SquareTable

    table = VISION
    if seed:
        table = np.random.default_rng(seed).integers(0, 30, (seed + 1, seed + 1)).astype(float)
    margins, symmetry, wald = stuart_maxwell(table), bowker(table), bhapkar(table)
    exact = exact_margins(table)
    assert margins.statistic == pytest.approx(float(exact), rel=1e-11)
    assert wald.statistic == pytest.approx(float(exact / (1 - exact / int(table.sum()))), rel=1e-11)
    assert symmetry.statistic == pytest.approx(float(exact_symmetry(table)), rel=1e-12)
    theirs = SquareTable(table, shift_zeros=False)
    homogeneity = theirs.homogeneity(), theirs.homogeneity(method="bhapkar")
    for ours, other in zip((margins, wald), homogeneity, strict=True):
        assert [ours.statistic, ours.p] == pytest.approx([other.statistic, other.pvalue], rel=1e-11)
        assert ours.freedom == other.df
    assert [symmetry.statistic, symmetry.p] == pytest.approx(
        [theirs.symmetry().statistic, theirs.symmetry().pvalue], rel=1e-12
    )


def test_of_two_classes_all_are_mcnemars() -> None:
    table = np.array([[7.0, 12], [4, 20]])
    for found in (stuart_maxwell(table), bowker(table)):
        assert [found.statistic, found.freedom] == pytest.approx([4.0, 1], rel=1e-12)


def test_margins_that_do_not_vary_have_no_test_of_walds() -> None:
    """The first run says A of every sample, the second B: Stuart's statistic is n, and 1 - SM/n is 0."""
    table = np.array([[0.0, 5], [0, 0]])
    assert stuart_maxwell(table).statistic == pytest.approx(5)
    found = bhapkar(table)
    assert np.isnan([found.statistic, found.p]).all()
    assert found.freedom == 1


def test_recalls_are_tested_class_by_class() -> None:
    def equal_recalls(better: list[int], worse: list[int]) -> ChiSquared:
        codes = np.arange(4)
        truth, wrong = np.tile(codes, 2), np.roll(codes, 1)
        predictions = np.stack([np.concatenate([codes, wrong]), np.concatenate([wrong, codes])])
        return RunPair(combine(truth, predictions, 4, times=np.array([*better, *worse]))).equal_recalls()

    found = equal_recalls([4, 0, 9, 3], [1, 0, 1, 3])
    assert found.freedom == 3
    assert found.statistic == pytest.approx(9 / 5 + 64 / 10)
    none = equal_recalls([0] * 4, [0] * 4)
    assert (none.p, none.freedom) == (1.0, 0)


def test_drift_without_disagreement_and_with_separate_groups() -> None:
    assert stuart_maxwell(np.diag([3.0, 4, 5])).p == 1.0
    assert bowker(np.diag([3.0, 4, 5])).p == 1.0
    blocks = np.zeros((4, 4))
    blocks[:2, :2], blocks[2:, 2:] = [[5, 8], [2, 9]], [[7, 1], [6, 3]]
    ours = stuart_maxwell(blocks)
    assert ours.freedom == 2
    assert ours.statistic == pytest.approx(36 / 10 + 25 / 7)


def test_type_one_error_of_mid_p_and_tango() -> None:
    random = np.random.default_rng(0)
    n, share = 200, 0.15
    cells = random.multinomial(n, [share / 2, share / 2, 1 - share], size=20_000)
    p = mcnemar_mid_p(cells[:, 0], cells[:, 1])
    assert 0.04 <= (p < 0.05).mean() <= 0.06
    z = tango_z(cells[:, 0], cells[:, 1], n)
    assert 0.04 <= (np.abs(z) > 1.959964).mean() <= 0.06


def rejection_rates(items: int, discordant: float) -> tuple[float, float]:
    """Probability that the mid-p test and Tango's reject equal accuracies at 5 %, all outcomes added up."""
    counts = np.arange(items + 1)
    found = np.zeros(2)
    for count, chance in zip(counts, binom.pmf(counts, items, discordant / items), strict=True):
        first = np.arange(count + 1.0)
        mid_p = mcnemar_mid_p(first, count - first) < 0.05
        extreme = np.abs(tango_z(first, count - first, float(items))) > 1.959964
        found += chance * (np.stack([mid_p, extreme]) @ binom.pmf(first, count, 0.5))
    return float(found[0]), float(found[1])


@each("items", [40, 100, 300])
@each("discordant", [1, 5, 10, 15, 20])
def test_equal_runs_are_rarely_called_different(items: int, discordant: int) -> None:
    """Never in more than 6 of 100 cases, and from ten discordant items on in no fewer than 4."""
    for rate in rejection_rates(items, discordant):
        assert rate < 0.06
        if discordant >= 10:
            assert rate > 0.04
