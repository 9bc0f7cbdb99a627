"""Bands around curves: the same from the definitions, and how often they hold a curve that is known."""

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta, norm

from app.kernel.samples.calibration import equal_width
from app.kernel.samples.curves import isotonic
from app.kernel.samples.rankings import Ranking
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.curve_bands import (
    BandForm,
    BandSettings,
    Envelope,
    Rates,
    band_around,
    bins_band,
    consistency_band,
    consistent_curves,
    fnr_between,
    net_benefit_between,
    precision_between,
    read_band,
    simulated_rates,
    tpr_between,
)
from app.kernel.uncertainty.draws import generator
from app.kernel.uncertainty.groups import Grouping
from app.kernel.uncertainty.simulation import item_weights
from tests.witnesses import sk

RANDOM = np.random.default_rng(11)
TRUTH = RANDOM.integers(0, 2, 200)
VALUES: NDArray[np.float64] = np.clip(RANDOM.normal(0.35 + 0.3 * TRUTH, 0.2), 0.01, 0.99).round(2)
ORDER = np.argsort(-VALUES, kind="stable")
RANKING = Ranking(VALUES[ORDER], TRUTH[ORDER] == 1, places=ORDER)
POINTWISE = BandSettings(BandForm.POINTWISE, 0.9)
SIMULTANEOUS = BandSettings(BandForm.SIMULTANEOUS, 0.9)


def of_samples(ranking: Ranking) -> Rates:
    cuts = ranking.cuts()
    tpr, fpr = (np.stack([one, one]) for one in (cuts.tp / cuts.positives, cuts.fp / cuts.negatives))
    return Rates(tpr, fpr, cuts.positives / (cuts.positives + cuts.negatives), cuts.thresholds)


def of_resamples(ranking: Ranking, weights: NDArray[np.float64]) -> Iterator[Rates]:
    for one in weights[:, ranking.places]:
        yield of_samples(Ranking(ranking.values, ranking.members, one))


def test_curves_of_the_samples_lie_within_what_their_rates_allow() -> None:
    fpr, tpr, _ = sk.roc_curve(TRUTH, VALUES, drop_intermediate=False)
    grid, rates = np.linspace(0, 1, 41), of_samples(RANKING)
    for read, expected in ((tpr_between, np.interp(grid, fpr, tpr)), (fnr_between, 1 - np.interp(grid, fpr, tpr))):
        low, high = read(grid)(rates)
        assert (low <= expected + 1e-12).all()
        assert (expected <= high + 1e-12).all()
    # Between cuts no other rates are known than those at the next ones.
    low, high = tpr_between(fpr[5:6] + 1e-9)(rates)
    assert (low[0], high[0]) == (tpr[fpr == fpr[5]].max(), tpr[fpr > fpr[5]].min())


def test_precision_is_that_of_the_cuts_beside_a_recall() -> None:
    precision, recall, _ = sk.precision_recall_curve(TRUTH, VALUES)
    reached = np.unique(recall[recall > 0])[[3, 20, -2]]
    low, high = precision_between(reached)(of_samples(RANKING))
    for wanted, least, most in zip(reached, low, high, strict=True):
        # scikit-learn goes from the lowest threshold up.
        assert least <= precision[np.flatnonzero(recall >= wanted)[-1]] <= most + 1e-12


@pytest.mark.parametrize("prevalence", [None, 0.1])
def test_net_benefit_by_its_definition(prevalence: float | None) -> None:
    share = TRUTH.mean() if prevalence is None else prevalence
    for cut in (0.2, 0.33, 0.6):
        acted = cut <= VALUES
        tpr, fpr = acted[TRUTH == 1].mean(), acted[TRUTH == 0].mean()
        expected = share * tpr - (1 - share) * fpr * cut / (1 - cut)
        found = net_benefit_between(np.array([cut]), prevalence)(of_samples(RANKING))
        assert found.ravel() == pytest.approx([expected, expected], rel=1e-12)


def test_isotonic_values_are_those_of_scikit_learn() -> None:
    from sklearn.isotonic import IsotonicRegression

    at = np.unique(VALUES)
    expected = IsotonicRegression().fit(VALUES, TRUTH).predict(at)
    curve = isotonic(Scores(TRUTH, np.column_stack([1 - VALUES, VALUES])), 1)
    np.testing.assert_allclose(curve.x, at)
    np.testing.assert_allclose(curve.y, expected, atol=1e-12)


def test_simulated_isotonic_curves_are_those_of_scikit_learn() -> None:
    from sklearn.isotonic import IsotonicRegression

    at = np.unique(VALUES)[[0, 3, 20, -1]]
    found = consistent_curves(RANKING, draws=40, seed=5, at=at)
    random = generator(5)
    for curve in found:
        happened = random.random(RANKING.values.size) < RANKING.values
        expected = IsotonicRegression().fit(RANKING.values, happened).predict(at)
        np.testing.assert_allclose(curve, expected, atol=1e-12)


def test_limits_are_quantiles_of_curves_in_resamples() -> None:
    weights = RANDOM.multinomial(200, np.full(200, 1 / 200), 300).astype(float)
    cuts = np.array([0.2, 0.4, 0.6])
    read = net_benefit_between(cuts, 1 - 1e-12)
    low, high = band_around(map(read, of_resamples(RANKING, weights)), POINTWISE)
    hits = (cuts <= VALUES[:, None]) & (TRUTH == 1)[:, None]
    curves = np.repeat(weights @ hits / (weights @ (TRUTH == 1))[:, None], 2, axis=0)
    np.testing.assert_allclose([low, high], np.quantile(curves, [0.05, 0.95], axis=0), rtol=1e-9)


def test_a_simultaneous_band_holds_whole_curves() -> None:
    drawn = np.cumsum(RANDOM.normal(size=(2000, 30)), axis=1)
    for settings, least, most in ((SIMULTANEOUS, 0.9, 0.92), (POINTWISE, 0.2, 0.75)):
        low, high = read_band(drawn, settings)
        share = ((drawn >= low) & (drawn <= high)).all(axis=1).mean()
        assert least <= share <= most


def test_of_one_point_both_forms_are_nearly_the_same() -> None:
    drawn = RANDOM.normal(size=(4000, 1))
    pointwise, simultaneous = read_band(drawn, POINTWISE), read_band(drawn, SIMULTANEOUS)
    np.testing.assert_allclose(pointwise, simultaneous, atol=0.05)
    np.testing.assert_allclose(pointwise, [[norm.ppf(0.05)], [norm.ppf(0.95)]], atol=0.1)


@pytest.mark.slow
def test_curves_of_calibrated_probabilities_lie_in_their_consistency_band() -> None:
    from sklearn.isotonic import IsotonicRegression

    held = []
    for seed in range(60):
        random = np.random.default_rng(seed)
        p = np.sort(np.round(random.random(300), 2))[::-1]
        happened = random.random(300) < p
        at = np.unique(p)[5:-5]
        band = consistency_band(Ranking(p, happened), draws=300, seed=seed, at=at, settings=SIMULTANEOUS)
        own = IsotonicRegression().fit(p, happened).predict(at)
        held.append(bool(((own >= band[0]) & (own <= band[1])).all()))
    assert 0.8 <= np.mean(held) <= 1.0
    # Outcomes that are the opposite of what is said lie far outside.
    reverse = IsotonicRegression().fit(p, p < 0.5).predict(at)
    assert not ((reverse >= band[0]) & (reverse <= band[1])).all()


def test_a_consistency_band_holds_whole_curves_of_a_thousand_samples() -> None:
    """A tail in common to all points, beyond the outermost of 1,000 curves, held .86 of them for .95."""
    p = np.sort(np.random.default_rng(0).random(1000))[::-1]
    ranking, at = Ranking(p, p > 0.5), np.sort(p)
    level = BandSettings(BandForm.SIMULTANEOUS, 0.95)
    low, high = consistency_band(ranking, draws=1000, seed=1, at=at, settings=level)
    others = consistent_curves(ranking, draws=1000, seed=2, at=at)
    assert 0.93 <= ((others >= low) & (others <= high)).all(axis=1).mean() <= 0.97
    assert (high - low).mean() < 0.32


def test_a_simultaneous_consistency_band_is_the_same_at_whatever_points() -> None:
    everywhere = np.unique(VALUES)
    whole, some = (
        consistency_band(RANKING, draws=200, seed=3, at=at, settings=SIMULTANEOUS)
        for at in (everywhere, everywhere[::40])
    )
    np.testing.assert_array_equal(np.array(whole)[:, ::40], some)


@pytest.mark.parametrize("design", ["plain", "weights", "groups"])
def test_bins_hold_together_as_often_as_promised(design: str) -> None:
    """Ten bins of 10 calibrated samples each, in groups of five that mostly share their luck; limits of Wilson held .89
    of 50 to 100 samples for .95, and those of resamples of weights and groups .27 and .58.
    """
    level, held, groups = 0.95, 0, np.arange(100) // 5
    random, grouping = np.random.default_rng(0), Grouping.of(groups) if design == "groups" else None
    for _ in range(400):
        p = np.sort((np.arange(10)[:, None] + random.random((10, 10))).ravel() / 10)[::-1]
        luck, weights = random.random(100), None
        if design == "groups":
            luck = np.where(random.random(100) < 0.6, random.random(20)[groups], luck)
        if design == "weights":
            weights = np.exp(random.normal(size=100))
        ranking = Ranking(p, luck < p, weights)
        bins = equal_width(ranking, 10)
        low, high = bins_band(ranking, 10, BandSettings(BandForm.SIMULTANEOUS, level), grouping)
        mean, known = (bins.expected / bins.weight)[::-1], np.isfinite(low)
        held += bool(((low <= mean) & (mean <= high))[known].all())
    assert held / 400 >= level


def test_weights_that_are_alike_and_copies_in_groups_change_no_band() -> None:
    """Three copies of a sample in a group are the sample, and so are samples that all weigh 2."""
    heavy = Ranking(RANKING.values, RANKING.members, np.full(200, 2.0), ORDER)
    copies = Ranking(
        RANKING.values.repeat(3), RANKING.members.repeat(3), places=(3 * ORDER[:, None] + range(3)).ravel()
    )
    grid = np.linspace(0, 1, 21)
    for read in (tpr_between(grid), precision_between(grid[1:]), net_benefit_between(grid[1:-1], None)):
        plain, twice, alone, thrice = (
            np.array(band_around(map(read, simulated_rates(ranking, draws=50, seed=3, grouping=grouping)), POINTWISE))
            for ranking, grouping in (
                (RANKING, None),
                (heavy, None),
                (RANKING, Grouping.of(np.arange(200))),
                (copies, Grouping.of(np.arange(600) // 3)),
            )
        )
        np.testing.assert_allclose(thrice, alone, rtol=1e-9)
        np.testing.assert_allclose(twice, plain, rtol=1e-9)
    for settings in (POINTWISE, SIMULTANEOUS):
        one, other = (bins_band(ranking, 10, settings) for ranking in (RANKING, heavy))
        np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("design", ["weights", "groups"])
def test_bands_of_weights_and_groups_hold_curves_as_often_as_promised(design: str) -> None:
    """Scores of two normal distributions one apart; in groups of four half of their variance is that of the group."""
    random, grid, held, size = np.random.default_rng(5), np.linspace(0.02, 0.98, 25), [0, 0], 160
    expected = norm.sf(norm.isf(grid) - 1.0)
    groups = np.arange(size) // 4
    for _ in range(120):
        truth, luck = random.random(size) < 0.3, random.normal(size=size)
        grouping, weights = None, None
        if design == "groups":
            luck = (luck + random.normal(size=size // 4)[groups]) / np.sqrt(2.0)
            grouping = Grouping.of(groups)
        else:
            weights = np.exp(0.7 * random.normal(size=size))
        order = np.argsort(-(luck + truth))
        ranking = Ranking(
            (luck + truth)[order], truth[order], None if weights is None else weights[order], places=order
        )
        rates = [*simulated_rates(ranking, draws=300, seed=1, grouping=grouping)]
        for place, settings in enumerate((POINTWISE, SIMULTANEOUS)):
            low, high = band_around(map(tpr_between(grid), rates), settings)
            within = (low <= expected) & (expected <= high)
            held[place] += within.mean() if settings is POINTWISE else within.all()
    assert min(held) / 120 >= 0.9


def test_limits_of_a_single_rate_are_those_of_two_beta_distributions() -> None:
    # As good as all samples are positive where it is decided, so the net benefit is the true positive rate.
    cut, share = 0.62, 1 - 1e-12
    settings = BandSettings(BandForm.POINTWISE, 0.9)
    read = net_benefit_between(np.array([cut]), share)
    low, high = band_around(map(read, simulated_rates(RANKING, draws=20_000, seed=1)), settings)
    positives, hits = (TRUTH == 1).sum(), ((cut <= VALUES) & (TRUTH == 1)).sum()

    def mixed(x: float) -> float:
        parts = beta(hits, positives - hits + 1).cdf(x), beta(hits + 1, positives - hits).cdf(x)
        return float(np.mean(parts))

    assert mixed(low[0]) == pytest.approx(0.05, abs=0.006)
    assert mixed(high[0]) == pytest.approx(0.95, abs=0.006)


@pytest.mark.slow
@pytest.mark.parametrize(
    "read",
    [
        tpr_between(np.array([0.1, 0.4, 0.7])),
        fnr_between(np.array([0.1, 0.4, 0.7])),
        precision_between(np.array([0.2, 0.5, 0.8])),
        net_benefit_between(np.array([0.2, 0.4, 0.6]), None),
        net_benefit_between(np.array([0.2, 0.4, 0.6]), 0.1),
    ],
)
def test_with_many_samples_both_ways_agree(read: Envelope) -> None:
    random = np.random.default_rng(2)
    truth = random.integers(0, 2, 20_000)
    values = np.clip(random.normal(0.35 + 0.3 * truth, 0.2), 0.001, 0.999)
    order = np.argsort(-values)
    ranking = Ranking(values[order], truth[order] == 1, places=order)
    found = np.array(band_around(map(read, simulated_rates(ranking, draws=600, seed=3)), POINTWISE))
    weights = np.concatenate([*item_weights(np.zeros(20_000, dtype=np.int64), draws=600, random=random)])
    expected = np.array(band_around(map(read, of_resamples(ranking, weights)), POINTWISE))
    np.testing.assert_allclose(found, expected, atol=0.15 * (expected[1] - expected[0]).max() + 2e-4)


def test_where_there_are_no_samples_left_the_limits_are_open() -> None:
    # All positives are above all negatives, which 5 of each do not prove.
    ranking = Ranking(np.arange(10.0)[::-1], np.arange(10) < 5)
    low, high = band_around(
        map(tpr_between(np.array([0.0, 0.2])), simulated_rates(ranking, draws=2000, seed=1)), POINTWISE
    )
    assert (high == 1).all()
    assert (low < 0.75).all()
    low, high = band_around(
        map(fnr_between(np.array([0.2, 1.0])), simulated_rates(ranking, draws=2000, seed=1)), POINTWISE
    )
    assert (low[1], high[1]) == (0, 0)
    assert high[0] > 0.25
    low, high = band_around(
        map(precision_between(np.array([0.0, 0.5])), simulated_rates(ranking, draws=2000, seed=1)), POINTWISE
    )
    assert np.isnan([low[0], high[0]]).all()
    assert low[1] < 0.9
