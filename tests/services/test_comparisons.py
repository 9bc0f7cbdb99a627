"""What is said of two runs, without a server."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from app.domain.evaluation import DatasetRef, EvaluationRecord, ModelRef
from app.domain.identifiers import new_id
from app.domain.inputs.content import Content
from app.domain.inputs.samples import Samples
from app.domain.rules import definition_of
from app.kernel.compare.gates import Verdict
from app.kernel.matrix.table import confusion_counts
from app.services.compare.pairs import fold_test
from app.services.estimands import parse_estimands
from app.services.gate import check_gate, rule_estimands
from app.services.runs.aligned import Runs
from app.services.runs.comparison import Comparison
from app.services.runs.differences import BOTH_INFINITE, NO_VALUE, NOT_REACHED, ONE_INFINITE
from app.services.runs.differences import Test as Difference
from app.services.runs.matrix_draws import InferenceSettings
from app.services.runs.pairing import KeptSamples
from tests.bank import each


def kept(matrix: Any, dataset: str) -> EvaluationRecord:
    counts = np.array(matrix)
    return EvaluationRecord(
        id=new_id(),
        model=ModelRef("m"),
        dataset=DatasetRef(dataset),
        kind="confusion_matrix",
        labels=tuple(map(str, range(len(counts)))),
        positive=None,
        content=Content.counts,
        counts=counts,
        revision="",
        values={},
    )


def unpaired(first: Any, second: Any, *metrics: str, dataset: str = "other") -> list[Difference]:
    """The differences of two matrices of different samples, unless their dataset is the same."""
    runs = Runs.align([kept(first, "d"), kept(second, dataset)]).pair(KeptSamples())
    estimands = parse_estimands(metrics, runs.labels, 1)
    comparison = Comparison(runs, estimands, InferenceSettings(rope=0.0), pairs=[(0, 1)])
    return [comparison.differences(index)[0][0] for index in range(len(metrics))]


def paired_runs(first: Any, second: Any, truth: Any) -> Runs:
    """Two runs with labels for the same samples."""
    size = int(max(map(max, (truth, first, second)))) + 1
    records = [kept(confusion_counts(np.array(truth), np.array(one), size), "d") for one in (first, second)]
    ids = np.arange(len(truth))
    labels = {
        record.id: Samples(np.array(truth), np.array(one), ids=ids)
        for record, one in zip(records, (first, second), strict=True)
    }
    return Runs.align(records).pair(KeptSamples(labels))


def paired(
    first: Any, second: Any, truth: Any, *metrics: str, level: float = 0.95, rope: float = 0.0
) -> list[Difference]:
    """The differences of two runs with labels for the same samples, of metrics with one value."""
    runs = paired_runs(first, second, truth)
    estimands = parse_estimands(metrics, runs.labels, 1)
    comparison = Comparison(runs, estimands, InferenceSettings(level=level, rope=rope), pairs=[(0, 1)])
    return [comparison.differences(index)[0][0] for index in range(len(metrics))]


def spread(*cells: tuple[int, int, int, int]) -> tuple[Any, Any, Any]:
    """Predictions of two runs and the truth, from actual class, both predictions and how often."""
    truth, first, second, counts = np.array(cells).T
    return np.repeat(first, counts), np.repeat(second, counts), np.repeat(truth, counts)


# Paired runs.

SMOOTH = (
    "balanced_accuracy",
    "g_mean",
    "h_mean",
    "informedness@1",
    "mcc",
    "cohen_kappa",
    "f1@1",
    "macro_f1",
    "diagnostic_odds_ratio@1",
    "fnr@1",
    "recall@1",
)
OTHERS = ("accuracy", "error_rate", "min(recall@*)", "mean(recall@*)", "gps(recall@*, precision@1)", "range(recall@*)")


def test_four_positives_decide_nothing() -> None:
    """20 positives of 300, 4 right in the first run only: McNemar's mid-p is 0.0625, the exact p 0.125."""
    runs = spread((1, 1, 1, 12), (1, 1, 0, 4), (1, 0, 0, 4), (0, 0, 0, 270), (0, 1, 1, 10))
    assert not any(gate_passes(runs, metric, 0.95) for metric in (*SMOOTH, *OTHERS))
    for found in paired(*runs, *SMOOTH, *OTHERS):
        better = (
            found.probability_a_better
            if found.difference > 0
            else 1 - found.probability_a_better - found.probability_equivalent
        )
        assert found.p_value == pytest.approx(0.0625, rel=0.02) or found.p_value > 0.0625
        assert found.low <= 0.0 <= found.high
        assert max(better, found.probability_a_better) == pytest.approx(1 - found.p_value / 2)


def random_runs(seed: int) -> tuple[Any, Any, Any]:
    """Few or many samples of two or three classes, and runs that are often wrong on the same ones."""
    random = np.random.default_rng(seed)
    sizes = random.choice([2, 6, 25, 150], random.integers(2, 4))
    truth = np.repeat(np.arange(sizes.size), sizes)
    hard, shared = random.random(truth.size), random.random(truth.size) < random.choice([0.0, 0.8])
    wrong = (truth + random.integers(1, sizes.size, (2, truth.size))) % sizes.size
    accuracies = random.choice([0.6, 0.8, 0.95, 1.0], 2)
    right = np.where(shared, hard, random.random((2, truth.size))) < accuracies[:, None]
    first, second = np.where(right, truth, wrong)
    return first, second, truth


@pytest.mark.slow
@each("seed", range(6))
def test_limits_p_probabilities_and_verdicts_of_paired_runs_agree(seed: int) -> None:
    check_agreement(seed)


@pytest.mark.slow
@each("seed", range(6, 40))
def test_limits_p_probabilities_and_verdicts_of_more_paired_runs_agree(seed: int) -> None:
    check_agreement(seed)


def check_agreement(seed: int) -> None:
    runs = random_runs(seed)
    level = (0.8, 0.95, 0.99)[seed % 3]
    metrics = SMOOTH + OTHERS * (seed < 6)
    for metric, found in zip(metrics, paired(*runs, *metrics, level=level), strict=True):
        if np.isnan(found.p_value):
            assert np.isnan(found.difference) or found.reason is not None, metric
            continue
        surest = max(found.probability_a_better, 1 - found.probability_a_better - found.probability_equivalent)
        assert (found.low > 0 or found.high < 0) == (found.p_value < 1 - level), metric
        assert (surest > (1 + level) / 2) == (found.p_value < 1 - level), metric
        assert found.low <= found.difference <= found.high, metric
        assert gate_passes(runs, metric, level) == (found.probability_a_better > (1 + level) / 2), metric
        # Whether a margin is excluded, limits and the probability of more than it say alike.
        margin = found.difference / 2
        sure = paired(*runs, metric, level=level, rope=abs(margin))[0] if margin else found
        beyond = found.low > margin > 0 or found.high < margin < 0
        assert beyond == (
            max(sure.probability_a_better, 1 - sure.probability_a_better - sure.probability_equivalent)
            > (1 + level) / 2
        ), metric


def gate_passes(runs: tuple[Any, Any, Any], metric: str, level: float) -> bool:
    """Does a gate find the first run better than the second?"""
    rule = {"metric": metric, "better_than": "baseline", "bound": "lower", "level": level}
    definition, both = definition_of({"rules": [rule]}), paired_runs(*runs)
    return check_gate(definition, rule_estimands(definition, both), both).verdict is Verdict.PASS


def test_metrics_that_say_the_same_of_two_runs_are_equally_sure() -> None:
    random = np.random.default_rng(5)
    truth = np.repeat([0, 1], [200, 60])
    first, second = (np.where(random.random(truth.size) < accuracy, truth, 1 - truth) for accuracy in (0.9, 0.8))
    names = ("balanced_accuracy", "informedness@1", "mean(recall@*)", "mean(recall@0, recall@1)")
    ratios = ("diagnostic_odds_ratio@1", "discriminant_power@1")
    for same in (names, ratios):
        found = paired(first, second, truth, *same)
        for one in found[1:]:
            assert one.p_value == pytest.approx(found[0].p_value, rel=1e-4)
            assert one.probability_a_better == pytest.approx(found[0].probability_a_better, rel=1e-4)


# Ratios.

RATIOS = ("diagnostic_odds_ratio", "likelihood_ratio_positive", "likelihood_ratio_negative")
GOOD, BETTER = [[80, 20], [20, 80]], [[96, 4], [4, 96]]


def test_ratios_are_tested_by_their_logarithms() -> None:
    odds, positive, negative = unpaired(GOOD, BETTER, *RATIOS)
    z = (np.log(16) - np.log(576)) / np.sqrt(2 / 80 + 2 / 20 + 2 / 96 + 2 / 4)
    # Jeffreys limits of the recalls know that the logarithm is skewed.
    assert 0.005 < odds.p_value / (2 * norm.sf(abs(z))) < 1.0
    # The logarithm of a risk ratio has variance 1/a - 1/n + 1/b - 1/m (Katz et al. 1978).
    ratio = (np.log(4) - np.log(24)) / np.sqrt(1 / 80 + 1 / 20 + 1 / 96 + 1 / 4 - 4 / 100)
    assert 0.05 < positive.p_value / (2 * norm.sf(abs(ratio))) < 1.0
    assert negative.p_value == pytest.approx(positive.p_value, rel=1e-6)


@pytest.mark.parametrize("dataset", ["other", "d"])
def test_a_ratio_and_its_logarithm_say_the_same(dataset: str) -> None:
    odds, power = unpaired(GOOD, BETTER, "diagnostic_odds_ratio", "discriminant_power", dataset=dataset)
    assert odds.p_value == pytest.approx(power.p_value, rel=1e-6)
    if dataset == "d":
        assert odds.smallest == pytest.approx(power.smallest, rel=1e-6)
    else:
        assert odds.p_value < 8e-6
    assert odds.probability_a_better == pytest.approx(power.probability_a_better, rel=1e-6)
    assert power.probability_a_better < 0.001
    assert odds.high < 0
    assert power.high < 0


def test_a_ratio_of_nothing_has_the_limits_and_p_of_its_draws() -> None:
    """0 has no logarithm."""
    (found,) = unpaired([[80, 20], [0, 100]], GOOD, "likelihood_ratio_negative")
    assert found.difference == pytest.approx(-0.25)
    assert found.method == found.limits == "posterior"
    assert found.high < 0
    assert found.p_value < 0.05


# Values that have no difference.

PERFECT, NO_POSITIVES = [[100, 0], [0, 100]], [[100, 0], [0, 0]]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dataset", ["d", "other"])
@pytest.mark.parametrize(
    ("first", "second", "metric", "reason"),
    [
        (PERFECT, PERFECT, "diagnostic_odds_ratio@1", BOTH_INFINITE),
        (PERFECT, GOOD, "diagnostic_odds_ratio@1", ONE_INFINITE),
        (NO_POSITIVES, NO_POSITIVES, "recall@1", NO_VALUE),
        (GOOD, NO_POSITIVES, "precision@1", NOT_REACHED),
    ],
)
def test_what_has_no_difference_says_why(first: Any, second: Any, metric: str, reason: str, dataset: str) -> None:
    (found,) = unpaired(first, second, metric, dataset=dataset)
    assert np.isnan(found.difference)
    assert (found.reason, found.limits) == (reason, "none")


def test_a_class_that_no_run_has_samples_of_keeps_none_from_comparing() -> None:
    first, second = [[80, 20], [10, 90]], [[30, 10], [20, 140]]
    (two,) = unpaired(first, second, "precision@1")
    wider = [np.pad(one, (0, 1)) for one in (first, second)]
    (three,) = unpaired(wider[0], wider[1], "precision@1")
    assert (three.difference, three.low, three.high) == pytest.approx((two.difference, two.low, two.high))


@pytest.mark.filterwarnings("error")
def test_infinite_values_of_paired_runs_have_no_difference() -> None:
    runs = spread((0, 0, 0, 20), (1, 1, 1, 20))
    odds, recall = paired(*runs, "diagnostic_odds_ratio@1", "recall@1")
    assert np.isnan(odds.difference)
    assert odds.reason == BOTH_INFINITE
    assert (recall.difference, recall.reason) == (0.0, None)


def test_folds_without_spread_leave_no_doubt() -> None:
    found = fold_test(np.full(10, 0.95) - np.full(10, 0.7), None, InferenceSettings(rope=0.1), repeats=1, mixed=False)
    assert found is not None
    assert (found.probability_b_better, found.probability_equivalent, found.probability_a_better) == (0.0, 0.0, 1.0)
    assert found.p_value is not None
    assert np.isnan(found.p_value)
