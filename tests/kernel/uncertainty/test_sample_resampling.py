"""The bootstrap of samples against loops with scikit-learn, and that of subsets against closed forms."""

from dataclasses import replace

import numpy as np
import pytest

from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Combination, Every, Measure, Subject, compute
from app.kernel.numerics.arrays import Array
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.draws import Shares, Summary, generator, tail_ranks
from app.kernel.uncertainty.influence import Influences
from app.kernel.uncertainty.resampling import (
    DRAWS,
    FEWEST_DRAWS,
    MOST_ENTRIES,
    Plan,
    Resampled,
    SampleFunctional,
    bootstrap_samples,
    plan,
    reflected,
    resampled,
    resamples,
)
from app.kernel.uncertainty.simulation import item_weights
from app.kernel.uncertainty.units import Run
from tests.kernel.probability.problems import softmax_problem, tied_problem
from tests.witnesses import sk


def functional(key: str, of: int | Every | None = None) -> SampleFunctional:
    metric = catalogue().of_probabilities.by_name[key]
    return lambda subject: compute(Measure(metric, metric.card.defaults, of), subject)


def bootstrap(
    scores: Scores, keys: list[SampleFunctional], made: Plan, shares: Shares = Shares.SAMPLED
) -> list[Summary]:
    asked = [Resampled(key) for key in keys]
    return bootstrap_samples(Run(scores, scores.predicted), asked, seed=3, made=made, shares=shares)


@pytest.mark.parametrize("fixed", [True, False])
def test_limits_are_those_of_a_loop_with_scikit_learn(fixed: bool) -> None:
    y, p = tied_problem(120, 3, 1)
    draws = 60
    strata = (y if fixed else np.zeros(120)).astype(np.int64)
    loop: list[float] = []
    order = Run(Scores(y, p), p.argmax(axis=1)).order(None)
    for weights in item_weights(strata, draws=draws, random=generator(3), order=order):
        loop.extend(sk.average_precision_score(y == 1, p[:, 1], sample_weight=row) for row in weights)
    design = Shares.OBSERVED if fixed else Shares.SAMPLED
    made = Plan(draws, 120, 120)
    (found,) = bootstrap(Scores(y, p), [functional("average_precision", 1)], made, design)
    first, last = tail_ranks(draws, 0.95)
    assert (found.low[0], found.high[0]) == pytest.approx((sorted(loop)[first], sorted(loop)[last]), rel=1e-10)
    assert found.deviation[0] == pytest.approx(np.std(loop, ddof=1), rel=1e-9)
    assert found.estimate[0] == pytest.approx(sk.average_precision_score(y == 1, p[:, 1]), rel=1e-12)


def test_matrix_and_probabilities_are_resampled_together() -> None:
    """Half the accuracy plus half the AUC of a replicate: both from the same samples."""
    y, p = softmax_problem(100, 2, 2)
    recall = catalogue().of_matrices.by_name["accuracy"]
    area = catalogue().of_probabilities.by_name["roc_auc"]
    mixed = Combination("mean", (Measure(recall, {}, None), Measure(area, {}, 1)))
    loop = []
    order = Run(Scores(y, p), p.argmax(axis=1)).order(None)
    for weights in item_weights(np.zeros(100, dtype=np.int64), draws=40, random=generator(3), order=order):
        for row in weights:
            right = sk.accuracy_score(y, p.argmax(axis=1), sample_weight=row)
            loop.append((right + sk.roc_auc_score(y, p[:, 1], sample_weight=row)) / 2.0)
    (found,) = bootstrap(Scores(y, p), [lambda subject: compute(mixed, subject)], Plan(40, 100, 100))
    assert found.deviation[0] == pytest.approx(np.std(loop, ddof=1), rel=1e-9)
    first, last = tail_ranks(40, 0.95)
    assert (found.low[0], found.high[0]) == pytest.approx((sorted(loop)[first], sorted(loop)[last]), rel=1e-10)


def test_memory_is_bounded_by_batches_that_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = Scores(*softmax_problem(50, 2, 3))
    made = Plan(30, 50, 50)
    keys = [functional("equal_error_rate", 1)]
    sizes: list[int] = []

    def watched(subject: Subject) -> Array:
        weights = subject.scores.weights
        sizes.append(1 if weights is None or weights.ndim == 1 else len(weights))
        return keys[0](subject)

    monkeypatch.setattr("app.kernel.uncertainty.resampling._AT_ONCE", 700)
    (found,) = bootstrap(scores, [watched], made)
    assert max(sizes) == 7
    assert sum(sizes[1:]) == 30
    assert np.isfinite([found.low[0], found.high[0]]).all()


def test_replicates_without_a_class_are_counted() -> None:
    y, p = softmax_problem(60, 2, 4)
    kept = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:2]])
    scores = Scores(y[kept], p[kept])
    (random,) = bootstrap(scores, [functional("ks_statistic", 1)], Plan(400, kept.size, kept.size))
    # Two of n are both left out with a chance of about exp(-2).
    assert 0.08 < random.undefined[0] / 400 < 0.20
    assert np.isnan(random.low[0])
    (within,) = bootstrap(scores, [functional("ks_statistic", 1)], Plan(100, kept.size, kept.size), Shares.OBSERVED)
    assert within.undefined[0] == 0
    assert np.isfinite(within.low[0])


@pytest.mark.parametrize("fixed", [True, False])
def test_replicates_of_subsets_are_as_large_as_the_data(fixed: bool) -> None:
    scores = Scores(*softmax_problem(5000, 3, 5))
    design = Shares.OBSERVED if fixed else Shares.SAMPLED
    counts = np.bincount(scores.y)
    total, subsets = 0, []
    for chosen, stands_for, batches in resamples(Run(scores, scores.predicted), Plan(200, 600, 5000), 1, design):
        assert chosen is not None
        assert stands_for is not None
        assert np.unique(chosen).size == chosen.size
        codes = scores.y[chosen]
        assert chosen.size == pytest.approx(600, abs=3)
        np.testing.assert_allclose(np.bincount(codes, stands_for), counts)
        for weights in batches:
            total += len(weights)
            assert (weights.sum(axis=1) == 5000).all()
            by_class = np.stack([np.bincount(codes, row) for row in weights])
            assert (by_class == counts).all() == fixed
        subsets.append(set(chosen.tolist()))
    assert total == 200
    assert len(subsets) == 10
    assert len(set.union(*subsets)) > 3000


@pytest.mark.slow
@pytest.mark.parametrize("key", ["log_loss", "roc_auc_ovr_macro", "au_imcp", "brier_skill_score"])
def test_spread_over_subsets_is_that_of_closed_forms(key: str) -> None:
    scores = Scores(*softmax_problem(20_000, 3, 6))
    (found,) = bootstrap(scores, [functional(key)], Plan(600, 2000, 20_000))
    linear = Influences(scores).of(catalogue().of_probabilities.by_name[key])
    assert linear is not None
    assert found.deviation[0] == pytest.approx(np.sqrt(linear.variance), rel=0.12)
    assert (found.low[0] + found.high[0]) / 2.0 == pytest.approx(linear.value, abs=0.3 * found.deviation[0])


def test_a_rare_class_is_kept_whole() -> None:
    y = np.repeat([0, 1], [9_950, 50])
    p = np.linspace(0.01, 0.99, 10_000)
    scores = Scores(y, np.column_stack([1 - p, p]))
    run = Run(scores, scores.predicted)
    for chosen, _, _ in resamples(run, Plan(20, 2000, 10_000), 0, Shares.OBSERVED):
        assert chosen is not None
        assert np.count_nonzero(y[chosen] == 1) == 50


def test_a_seed_gives_the_same_limits() -> None:
    scores = Scores(*softmax_problem(5000, 3, 7))
    keys = [functional("macro_average_precision")]
    for made in (Plan(20, 5000, 5000), Plan(20, 800, 5000)):
        first, again = bootstrap(scores, keys, made)[0], bootstrap(scores, keys, made)[0]
        assert (first.low[0], first.high[0]) == (again.low[0], again.high[0])


@pytest.mark.parametrize(
    ("n", "classes", "draws", "of_all"),
    [(100, 2, 1000, True), (8000, 10, 421, True), (100_000, 10, 1000, False), (1_000_000, 2, 1000, False)],
)
def test_plans(n: int, classes: int, draws: int, of_all: bool) -> None:
    made = plan(n, classes)
    assert made is not None
    assert (made.draws, made.of_all) == (draws, of_all)
    assert made.n_samples == n
    assert made.subset == n if of_all else made.subset >= n**0.6 - 1


def test_plans_keep_to_their_limits() -> None:
    for n in (10, 1000, 30_000, 10**6):
        for classes in (2, 7, 40, 100):
            made = plan(n, classes)
            assert made is not None
            assert FEWEST_DRAWS <= made.draws <= DRAWS
            assert made.subset <= n
            assert made.draws * classes * made.subset <= MOST_ENTRIES
            # All metrics of the catalogue fit into the time that anyone waits.
            assert made.loads(classes) >= 1.0
    assert plan(10**6, 200) is None
    assert plan(100, 2, draws=300) == Plan(300, 100, 100)


@pytest.mark.parametrize("top", [1.0, None])
def test_reflected_limits_take_off_the_bias_twice_on_its_side(top: float | None) -> None:
    """On the root of what is missing to the upper end, if there is one."""
    found = Summary(*(np.array([one]) for one in (0.64, 0.51, 0.91, 0.1, 0.0, 0.0, False)))
    turned = reflected(found, (0.0, top))
    if top is None:
        bias = (0.51 + 0.91) / 2 - 0.64
        assert (turned.low[0], turned.high[0]) == pytest.approx((2 * 0.64 - 0.91 - bias, 2 * 0.64 - 0.51))
        # What noise makes smaller is moved up.
        mirrored = reflected(replace(found, estimate=-found.estimate, low=-found.high, high=-found.low), (None, None))
        assert (mirrored.high[0], mirrored.low[0]) == pytest.approx((-turned.low[0], -turned.high[0]))
        return
    bias = 0.6 - (0.7 + 0.3) / 2
    assert turned.low[0] == pytest.approx(1 - (2 * 0.6 - 0.3 + bias) ** 2)
    assert turned.high[0] == pytest.approx(1 - (2 * 0.6 - 0.7) ** 2)


def calibration_error(key: str) -> Resampled:
    metric = catalogue().of_probabilities.by_name[key]
    return resampled(Measure(metric, metric.card.defaults, None), metric.card.range)


@pytest.mark.parametrize(
    ("key", "parameters"),
    [
        ("expected_calibration_error", {}),
        ("adaptive_calibration_error", {}),
        ("maximum_calibration_error", {}),
        ("classwise_calibration_error", {}),
        ("l2_calibration_error", {}),
        *(("class_calibration_error", {"norm": norm}) for norm in ("l1", "l2", "max")),
    ],
)
def test_gaps_add_up_to_the_errors(key: str, parameters: dict[str, str]) -> None:
    metric = catalogue().of_probabilities.by_name[key]
    gaps = metric.card.inference.gaps
    assert gaps is not None
    y, p = softmax_problem(300, 3, 6)
    for weights in (None, np.random.default_rng(1).poisson(1.0, (4, 300)).astype(float)):
        scores = Scores(y, p, weights)
        found = gaps.combined(gaps.of(scores, bins=7.0, **parameters), parameters)
        np.testing.assert_allclose(found, metric.compute(scores, bins=7.0, **parameters))


@pytest.mark.slow
def test_limits_of_an_error_hold_the_truth() -> None:
    """Class-wise errors of two classes whose logits are 1.3 times too large: the basic bootstrap holds it in 81 %."""
    truth, hits, replicates = 0.0375, 0, 80
    random = np.random.default_rng(100)
    for replicate in range(replicates):
        y = random.integers(0, 2, 100)
        logits = random.normal(size=(100, 2)) * 1.2
        logits[np.arange(100), y] += 1.2**2
        odds = np.exp(1.3 * (logits[:, 1] - logits[:, 0]))
        p = odds / (1 + odds)
        scores = Scores(y, np.column_stack([1 - p, p]))
        asked = [calibration_error("classwise_calibration_error")]
        (found,) = bootstrap_samples(Run(scores, scores.predicted), asked, seed=replicate, made=Plan(200, 100, 100))
        hits += bool(found.low[0] <= truth <= found.high[0])
    assert hits >= 0.9 * replicates
