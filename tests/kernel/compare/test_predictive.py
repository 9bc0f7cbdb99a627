"""Predictive values of two runs on the same samples, and McNemar's test over classes."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.kernel.compare.paired.joint import JointCounts, combine
from app.kernel.compare.paired.tests import PredictiveValue, RunPair, p_of

# Half a unit of the seventh digit.
PRINTED = 5e-7
DTCOMPAIR = json.loads((Path(__file__).parents[2] / "data" / "dtcompair.json").read_text(encoding="utf-8"))


def joint_of(counts: dict[str, dict[str, int]]) -> JointCounts:
    """Two binary tests; the diseased are of class 1, the second test is the first run, as its ratios have it."""
    rows = []
    for truth, group in ((1, "diseased"), (0, "healthy")):
        cells = counts[group]
        rows += [(truth, 1, 1, cells["both"]), (truth, 0, 1, cells["only_1"])]
        rows += [(truth, 1, 0, cells["only_2"]), (truth, 0, 0, cells["neither"])]
    truth, first, second, sizes = np.array(rows).T
    return combine(truth, np.stack([first, second]), 2, times=sizes)


def compared(joint: JointCounts) -> dict[str, list[PredictiveValue]]:
    pair = RunPair(joint)
    return {
        name: [pair.predictive_value(k, absent=absent) for k in range(joint.n_classes)]
        for name, absent in (("ppv", False), ("npv", True))
    }


@pytest.mark.parametrize("name", ["ppv", "npv"])
def test_published_outputs_of_dtcompair(name: str) -> None:
    data = DTCOMPAIR["Paired1"]
    found, published = compared(joint_of(data["counts"]))[name][1], data[name]
    low, high = found.ratio_limits(0.95)
    ours = {
        "test1": found.second,
        "test2": found.first,
        "diff": found.first - found.second,
        "ratio": np.exp(found.log_ratio),
        "se_log_ratio": found.log_ratio_variance**0.5,
        "low": low,
        "high": high,
        "z": found.log_ratio / found.log_ratio_variance**0.5,
        "p": p_of(found.relative),
    }
    for key, value in ours.items():
        assert float(value) == pytest.approx(published[key], rel=PRINTED), key
    for key, statistic in (("generalized_score", found.score), ("weighted_generalized_score", found.weighted_score)):
        assert [statistic, p_of(statistic)] == pytest.approx(published[key], rel=PRINTED), key


@pytest.mark.parametrize("name", ["Paired1", "Lachenbruch and Lynch (1998)"])
def test_published_generalised_mcnemar(name: str) -> None:
    data = DTCOMPAIR[name]
    found = RunPair(joint_of(data["counts"])).equal_recalls()
    assert found.freedom == 2
    assert [found.statistic, found.p] == pytest.approx(data["generalized_mcnemar"], rel=PRINTED)


def samples(seed: int, n_classes: int, n: int) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    truth = random.integers(0, n_classes, n)
    noise = random.integers(0, n_classes, (2, n))
    return truth, np.where(random.random((2, n)) < 0.6, truth, noise)


def by_definition(truth: Any, runs: Any, k: int, *, positive: bool) -> dict[str, Fraction]:
    """The estimating equations, sample by sample: score of y ~ 1 + run with the empirical variance under the null."""
    chosen = [[(label == k) == positive for label in run] for run in runs.tolist()]
    hit = [Fraction((label == k) == positive) for label in truth.tolist()]
    n = [sum(run) for run in chosen]
    values = [sum(h for h, c in zip(hit, run, strict=True) if c) / Fraction(sum(run)) for run in chosen]
    total = Fraction(n[0] + n[1])
    pooled = (values[0] * n[0] + values[1] * n[1]) / total
    mean = Fraction(n[0]) / total
    score, square, both, log_variance = Fraction(0), Fraction(0), Fraction(0), Fraction(0)
    for h, first, second in zip(hit, *chosen, strict=True):
        part = (first * (1 - mean) - second * mean) * (h - pooled)
        score, square = score + part, square + part**2
        both += first * second * (h - pooled) ** 2
        log_variance += (
            first * (h - values[0]) / (n[0] * values[0]) - second * (h - values[1]) / (n[1] * values[1])
        ) ** 2
    weighted = (pooled * (1 - pooled) - 2 * both / total) * (Fraction(1, n[0]) + Fraction(1, n[1]))
    return {
        "first": values[0],
        "second": values[1],
        "score": score**2 / square,
        "weighted_score": (values[0] - values[1]) ** 2 / weighted,
        "log_ratio_variance": log_variance,
    }


@pytest.mark.parametrize(("seed", "n_classes", "n"), [(0, 2, 80), (1, 3, 120), (2, 5, 200), (3, 2, 400)])
def test_definitions_in_fractions(seed: int, n_classes: int, n: int) -> None:
    truth, runs = samples(seed, n_classes, n)
    found = compared(combine(truth, runs, n_classes))
    for name, positive in (("ppv", True), ("npv", False)):
        for k in range(n_classes):
            for key, exact in by_definition(truth, runs, k, positive=positive).items():
                assert getattr(found[name][k], key) == pytest.approx(float(exact), rel=1e-12), (name, k, key)


def of_kinds(*counts: int) -> PredictiveValue:
    """So many samples that the first only, the second only, or both predict as class 1, rightly and wrongly."""
    truth, first, second = [1, 0, 1, 0, 1, 0], [1, 1, 0, 0, 1, 1], [0, 0, 1, 1, 1, 1]
    joint = combine(np.array(truth), np.array([first, second]), 2, times=np.array(counts))
    return RunPair(joint).predictive_value(1)


def test_without_common_predictions_the_weighted_score_is_that_of_two_shares() -> None:
    """Kosinski (2013), what the generalised score is not."""
    x, n = np.array([30.0, 20.0]), np.array([50.0, 90.0])
    found = of_kinds(30, 20, 20, 70, 0, 0)
    share = x.sum() / n.sum()
    z = (x[0] / n[0] - x[1] / n[1]) ** 2 / (share * (1 - share) * (1 / n).sum())
    assert found.weighted_score == pytest.approx(z, rel=1e-12)
    assert found.score != pytest.approx(z, rel=1e-3)
    assert found.alone == 50


def test_what_has_no_value_and_what_does_not_vary() -> None:
    never = of_kinds(5, 2, 0, 0, 0, 0)
    assert np.isnan([never.second, never.score, never.weighted_score, never.relative]).all()
    same = of_kinds(0, 0, 0, 0, 8, 3)
    assert [same.score, same.weighted_score, same.relative] == [0, 0, 0]
    certain = of_kinds(4, 0, 6, 0, 8, 0)
    assert [certain.score, certain.weighted_score, certain.relative] == [0, 0, 0]
    assert certain.ratio_limits(0.95) == (1, 1)
    zero = of_kinds(0, 4, 3, 1, 0, 2)
    assert zero.first == 0
    assert zero.weighted_score > 0
    assert np.isnan([zero.log_ratio, zero.relative]).all()


def test_swapped_runs_have_the_same_tests() -> None:
    truth, runs = samples(4, 3, 150)
    for one, other in zip(*(compared(combine(truth, both, 3))["ppv"] for both in (runs, runs[::-1])), strict=True):
        assert one.score == pytest.approx(other.score, rel=1e-12)
        assert one.weighted_score == pytest.approx(other.weighted_score, rel=1e-12)
        assert one.log_ratio == pytest.approx(-other.log_ratio, rel=1e-12)
