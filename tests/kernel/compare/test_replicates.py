"""Resamples and permutations of samples with probabilities, beside loops that handle the samples one by one."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from app.domain.expressions.expressions import parse
from app.kernel.compare.replicates import importance, permutation_p, replicate
from app.kernel.metrics.card import Inputs
from app.kernel.metrics.expression import Subject, compute
from app.kernel.numerics.arrays import Array
from app.kernel.samples.losses import Codes
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.draws import generator
from app.kernel.uncertainty.resampling import Plan, values_of
from app.kernel.uncertainty.simulation import item_weights
from app.kernel.uncertainty.units import Run
from tests.witnesses import sk


def make(size: int, classes: int, seed: int, truth: Codes | None = None) -> Run:
    random = np.random.default_rng(seed)
    y = np.arange(size) % classes if truth is None else np.asarray(truth, dtype=np.intp)
    mass = np.exp(np.eye(classes)[y] + random.normal(size=(len(y), classes)))
    probabilities = mass / mass.sum(axis=1, keepdims=True)
    return Run(Scores(y, probabilities), probabilities.argmax(axis=1))


def functional(text: str, classes: int) -> Callable[[Subject], Array]:
    expression = parse(text, [str(code) for code in range(classes)], None, inputs=frozenset(Inputs))
    return lambda subject: compute(expression, subject)


def direct(text: str, y: Codes, probabilities: Array, predicted: Codes) -> float:
    run = Run(Scores(y, probabilities), predicted)
    return float(values_of(run, [functional(text, probabilities.shape[1])])[0][0])


MIXED = "mean(h_mean, average_precision@1)"
TEXTS = ("average_precision@1", MIXED, "expected_calibration_error", "ks_statistic@1", "equal_error_rate@0")


@pytest.mark.parametrize("classes", [2, 3])
def test_replicates_are_those_of_a_loop(classes: int) -> None:
    size, draws, seed = 60, 20, 5
    runs = [make(size, classes, number) for number in (1, 2)]
    found = replicate(runs, [functional(text, classes) for text in TEXTS], seed=seed, made=Plan(draws, size, size))
    y = runs[0].scores.y
    (weights,) = item_weights(y.astype(np.int64), draws=draws, random=generator(seed))
    assert np.bincount(y, weights[0]).tolist() == np.bincount(y).tolist()
    for index, text in enumerate(TEXTS):
        assert found[index].shape == (draws, 2, 1)
        for draw, weight in enumerate(weights):
            rows = np.repeat(np.arange(size), weight.astype(int))
            for number, run in enumerate(runs):
                expected = direct(text, y[rows], run.scores.probabilities[rows], run.predicted[rows])
                assert found[index][draw, number, 0] == pytest.approx(expected, abs=1e-12), text
    rows = np.repeat(np.arange(size), weights[0].astype(int))
    theirs = sk.average_precision_score(y[rows] == 1, runs[0].scores.probabilities[rows, 1])
    assert found[0][0, 0, 0] == pytest.approx(theirs)


def test_resamples_of_subsets_are_centered_on_the_data() -> None:
    runs = [make(6000, 2, number) for number in (1, 2)]
    functionals = [functional("average_precision@1", 2)]
    whole = replicate(runs, functionals, seed=1, made=Plan(300, 6000, 6000))[0]
    some = replicate(runs, functionals, seed=1, made=Plan(300, 2000, 6000))[0]
    values = [values_of(run, functionals)[0][0] for run in runs]
    for drawn in (whole, some):
        gaps = drawn[:, 0, 0] - drawn[:, 1, 0]
        assert abs(gaps.mean() - (values[0] - values[1])) < 4 * gaps.std() / np.sqrt(300) + 0.1 * gaps.std()
    assert some.std() == pytest.approx(whole.std(), rel=0.25)


def test_weights_bring_classes_to_shares() -> None:
    truth = np.array([0] * 30 + [1] * 10)
    run, shares = make(0, 2, 3, truth), np.array([0.5, 0.5])
    weights = importance(run.scores.y, shares)
    assert np.bincount(run.scores.y, weights).tolist() == [20, 20]
    repeated = np.concatenate([np.arange(30), np.repeat(np.arange(30, 40), 3)])
    value = values_of(run, [functional(MIXED, 2)], weights)[0][0]
    expected = direct(MIXED, truth[repeated], run.scores.probabilities[repeated], run.predicted[repeated])
    assert value == pytest.approx(expected)
    drawn = replicate([run], [functional(MIXED, 2)], seed=0, made=Plan(400, 40, 40), shares=shares)[0]
    assert drawn.mean() == pytest.approx(value, abs=4 * drawn.std())


def test_permutations_are_those_of_a_loop() -> None:
    size, draws = 40, 60
    first, second = make(size, 3, 1), make(size, 3, 2)
    functionals = [functional(text, 3) for text in TEXTS]
    found = permutation_p(first, second, functionals, draws=draws, random=generator(3), paired=True)
    y, kept = first.scores.y, generator(3).integers(0, 2, (draws, size)) == 1
    for text, p in zip(TEXTS, found, strict=True):

        def gap(own: NDArray[np.bool_], text: str = text) -> float:
            mine, theirs = (
                direct(
                    text,
                    y,
                    np.where(side[:, None], first.scores.probabilities, second.scores.probabilities),
                    np.where(side, first.predicted, second.predicted),
                )
                for side in (own, ~own)
            )
            return abs(mine - theirs)

        observed = gap(np.ones(size, dtype=bool))
        extreme = sum(gap(own) >= observed * (1 - 1e-9) for own in kept)
        assert p[0] == pytest.approx((1 + extreme) / (1 + draws)), text


def test_independent_runs_are_dealt_out_within_the_classes() -> None:
    """Runs that differ in nothing but luck and in how frequent the classes are have p-values spread evenly."""
    ps = []
    for seed in range(60):
        second = make(0, 2, 100 + seed, np.repeat([0, 1], [24, 26]))
        first = make(0, 2, 500 + seed, np.repeat([0, 1], [30, 20]))
        shares = np.array([0.5, 0.5])
        random = generator(seed)
        (p,) = permutation_p(
            first, second, [functional("average_precision@1", 2)], draws=99, random=random, paired=False, shares=shares
        )
        ps.append(float(p[0]))
    assert stats.kstest(ps, "uniform").pvalue > 0.001


def test_a_clear_difference_has_the_smallest_p() -> None:
    y = np.arange(80) % 2
    good = np.where(np.eye(2)[y] == 1, 0.8, 0.2)
    bad = np.random.default_rng(0).dirichlet([1, 1], 80)
    first, second = (Run(Scores(y, one), one.argmax(axis=1)) for one in (good, bad))
    functionals = [functional("average_precision@1", 2)]
    (p,) = permutation_p(first, second, functionals, draws=199, random=generator(0), paired=True)
    assert p[0] == pytest.approx(1 / 200)
