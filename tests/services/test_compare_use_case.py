"""Comparisons of runs without a database: what is equal under several names, what draws follow from, what is read."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from app.domain.evaluation import EvaluationRecord
from app.kernel.compare.paired import mcnemar, tango_interval
from app.services.compare.comparisons import ComparisonService, NewComparison
from tests.services.memory import PROJECT, Bench, Comparisons, labelled, matrix

Json = dict[str, Any]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def compare(bench: Bench, records: Sequence[EvaluationRecord], *metrics: str, **members: Any) -> Json:
    """The answer about some kept runs."""
    service = ComparisonService(
        bench.memory,  # type: ignore[arg-type]  # what it does not ask for is not there
        Comparisons(bench.memory),
        labels=bench.memory,
        compute=bench.compute,
        admission=bench.admission,
    )
    asked = NewComparison(evaluations=tuple(record.id for record in records), metrics=metrics, **members)
    return bench.run(lambda: service.create(PROJECT, asked))


def only(answer: Json, metric: str) -> Json:
    (difference,) = answer["metrics"][metric]["differences"]
    found: Json = difference
    return found


def noisy(truth: Any, accuracy: float, seed: int) -> Any:
    """Labels that are right that often, and else anything."""
    random = np.random.default_rng(seed)
    return np.where(random.random(truth.size) < accuracy, truth, random.integers(0, truth.max() + 1, truth.size))


TRUTH = np.random.default_rng(7).choice(2, 160, p=[0.8, 0.2])


def pair_of(bench: Bench, design: str) -> list[EvaluationRecord]:
    """Two runs on two classes: paired, of one test set, or independent with the same class mix."""
    predictions = [noisy(TRUTH, accuracy, seed) for seed, accuracy in enumerate((0.85, 0.7))]
    if design == "sample_ids":
        return [bench.keep(labelled(TRUTH, one), f"m{seed}", "d") for seed, one in enumerate(predictions)]
    counts = [np.array([[np.sum((t == TRUTH) & (one == p)) for p in (0, 1)] for t in (0, 1)]) for one in predictions]
    datasets = ("d", "d") if design == "same_test_set" else ("d", "e")
    return [bench.keep(matrix(one), f"m{seed}", datasets[seed]) for seed, one in enumerate(counts)]


# One quantity, the names it has besides, and the line that the name is of it: offset and slope.
NAMES = {
    "recall@0": {"specificity@1": 1, "fnr@0": -1, "fpr@1": -1},
    "accuracy": {
        "error_rate": -1, "micro_fnr": -1, "accuracy_ovr@0": 1, "error_rate_ovr@1": -1, "micro_f_beta": 1,
        "zero_one_loss_count": -160, "bennett_s": 2,
    },
    "precision@1": {"fdr@1": -1, "npv@0": 1},
}  # fmt: skip


@pytest.mark.parametrize("design", ["sample_ids", "same_test_set", "independent"])
@pytest.mark.parametrize("name", NAMES)
def test_one_quantity_has_one_test_under_all_its_names(bench: Bench, design: str, name: str) -> None:
    records = pair_of(bench, design)
    answer = compare(bench, records, name, *NAMES[name], seed=3, rope=0)
    assert answer["design"]["bond"] == design
    first = only(answer, name)
    assert first["p_value"] is not None
    for other, slope in NAMES[name].items():
        found = only(answer, other)
        for member in ("p_value", "p_range", "method", "discordant", "reason"):
            assert found.get(member) == pytest.approx(first.get(member)), (other, member)
        ends = [slope * first["low"], slope * first["high"]]
        assert (found["low"], found["high"]) == pytest.approx((min(ends), max(ends)), abs=1e-9), other
        assert found["probability_a_better"] == pytest.approx(first["probability_a_better"]), other


def test_rates_of_a_class_against_the_rest_have_tests_of_shares(bench: Bench) -> None:
    """Three classes: specificity is a share of the samples of the other two classes."""
    random = np.random.default_rng(1)
    truth = random.integers(0, 3, 300)
    first, second = noisy(truth, 0.8, 2), noisy(truth, 0.6, 3)
    records = [bench.keep(labelled(truth, one), f"m{seed}") for seed, one in enumerate((first, second))]
    answer = compare(bench, records, "specificity@0", "fpr@0", "accuracy_ovr@2")
    rest = truth != 0
    b, c = (float(np.sum(rest & (one != 0) & (other == 0))) for one, other in ((first, second), (second, first)))
    found = only(answer, "specificity@0")
    assert found["p_value"] == pytest.approx(float(mcnemar(b, c).mid_p))
    assert [found["low"], found["high"]] == pytest.approx(
        [float(end) for end in tango_interval(b, c, float(rest.sum()))]
    )
    assert found["discordant"] == b + c
    assert (found["low"], found["high"]) == (-only(answer, "fpr@0")["high"], -only(answer, "fpr@0")["low"])
    right = [(one == 2) == (truth == 2) for one in (first, second)]
    b, c = float(np.sum(right[0] & ~right[1])), float(np.sum(right[1] & ~right[0]))
    assert only(answer, "accuracy_ovr@2")["p_value"] == pytest.approx(float(mcnemar(b, c).mid_p))


def test_numbers_of_errors_are_not_compared_where_the_runs_differ_in_size(bench: Bench) -> None:
    records = [
        bench.keep(matrix([[80, 20], [20, 80]]), "a", "x"),
        bench.keep(matrix([[800, 200], [200, 800]]), "b", "y"),
    ]
    answer = compare(bench, records, "zero_one_loss_count", "error_rate")
    assert only(answer, "error_rate")["difference"] == 0
    assert only(answer, "zero_one_loss_count")["difference"] == -360
    assert only(answer, "zero_one_loss_count")["method"] == "posterior, delta"
