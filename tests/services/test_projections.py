"""Metrics at other class shares, without a server."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

from app.domain.errors import InvalidInput, OutOfReach
from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.content import GROUPS_FACT, Content
from app.domain.inputs.samples import Samples
from app.domain.options import Options
from app.kernel.matrix.prevalence import project
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import INPUTS_OF_CLASSES
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty import simulation as drawing
from app.services.estimands import parse_estimands
from app.services.estimates.estimate import LimitSettings, NoLimits
from app.services.estimates.estimates import estimate
from app.services.estimates.methods import simulation
from app.services.estimates.report_intervals import balanced_for_report
from app.services.estimates.run_data import RunData, run_data
from app.services.project.projection import (
    ExtremeValues,
    Highest,
    Lowest,
    Marked,
    ProjectedValue,
    Projection,
    Scenario,
    Sweep,
)
from app.services.project.simulator import simulated
from app.services.project.what_if import projected
from app.services.runs.aligned import Runs
from app.services.runs.pairing import KeptSamples
from tests.kernel.probability.problems import hall, softmax_problem
from tests.services.records import record_of, scored

TWO = [[90, 10], [15, 35]]
THREE = [[70, 20, 10], [5, 80, 15], [12, 8, 30]]


def answer(
    *records: EvaluationRecord,
    metrics: str,
    samples: Samples | None = None,
    worth: float | None = None,
    **scenario: Any,
) -> Projection:
    estimands = parse_estimands(metrics.split(), records[0].labels, records[0].positive, inputs=INPUTS_OF_CLASSES)
    runs, kept = Runs.align(records), KeptSamples({} if samples is None else {records[0].id: samples})
    asked = Scenario(**scenario, prevalence_samples=worth)
    return projected([runs.alone(index, kept) for index in range(len(runs))], estimands, asked)


def single(found: Projection, name: str) -> tuple[float, float, float]:
    entry = found.metrics[name]
    assert isinstance(entry, ProjectedValue)
    assert isinstance(entry.value, float)
    assert isinstance(entry.low, float)
    assert isinstance(entry.high, float)
    return entry.low, entry.value, entry.high


def extreme(found: Projection, name: str) -> tuple[Lowest, Highest]:
    entry = found.metrics[name]
    assert isinstance(entry, ExtremeValues)
    assert entry.lowest is not None
    assert entry.highest is not None
    return entry.lowest, entry.highest


def kappa_at(share: float) -> float:
    moved = project(np.array(TWO, dtype=float), np.array([1 - share, share]))
    return float(catalogue().of_matrices.by_name["cohen_kappa"].compute(Table(moved)))


def test_the_best_of_a_range_lies_between_the_points_of_a_grid() -> None:
    lowest, highest = extreme(
        answer(record_of(TWO), metrics="cohen_kappa", prevalence_range={"B": (0.05, 0.95)}), "cohen_kappa"
    )
    dense = max(kappa_at(share) for share in np.linspace(0.05, 0.95, 20_001))
    grid = max(kappa_at(share) for share in np.linspace(0.05, 0.95, 21))
    assert highest.value is not None
    assert grid < dense <= highest.value <= dense + 1e-8
    assert highest.value == pytest.approx(kappa_at(highest.prevalence["B"]), rel=1e-12)
    assert lowest.value == pytest.approx(min(kappa_at(0.05), kappa_at(0.95)))
    assert lowest.low is not None
    assert lowest.low < min(kappa_at(0.05), kappa_at(0.95))


def test_ranges_of_all_classes_and_of_some() -> None:
    """Recalls .7, .8, .6: the worst class is as frequent as it may be, then the second worst; or as rare."""
    shares = {"A": (0.2, 0.5), "B": (0.1, 0.4), "C": (0.3, 0.6)}
    for named in (shares, {"A": (0.2, 0.5), "C": (0.3, 0.6)}):
        lowest, highest = extreme(answer(record_of(THREE), metrics="accuracy", prevalence_range=named), "accuracy")
        assert lowest.prevalence["C"] == pytest.approx(0.6)
        assert highest.prevalence["C"] == pytest.approx(0.3)
        assert sum(lowest.prevalence.values()) == pytest.approx(1.0)
        if named is shares:
            assert lowest.value == pytest.approx(0.6 * 0.6 + 0.3 * 0.7 + 0.1 * 0.8)


@pytest.mark.parametrize(
    ("ranges", "pointer"),
    [
        ({"X": (0.1, 0.2)}, "/prevalence_range/X"),
        ({"A": (0.6, 0.7), "B": (0.5, 0.9)}, "/prevalence_range"),
        ({"A": (0.1, 0.2), "B": (0.1, 0.2), "C": (0.1, 0.2)}, "/prevalence_range"),
        ({"D": (0.0, 0.2)}, "/prevalence_range/D"),
    ],
)
def test_ranges_that_make_no_sense(ranges: dict[str, tuple[float, float]], pointer: str) -> None:
    record = record_of([[*row, 0] for row in THREE] + [[0, 0, 0, 0]])
    with pytest.raises(InvalidInput) as refused:
        answer(record, metrics="accuracy", prevalence_range=ranges)
    assert refused.value.faults[0].pointer == pointer
    assert "highest" not in str(refused.value)


def test_one_class_has_no_range_of_shares() -> None:
    with pytest.raises(InvalidInput, match="expected samples of two classes or more"):
        answer(record_of([[12, 8], [0, 0]]), metrics="recall@A", prevalence_range={"A": (0.0, 1.0)})


def test_equal_shares_are_the_balanced_test_set() -> None:
    found = answer(record_of(THREE), metrics="accuracy recall@A", prevalence={"A": 1 / 3, "B": 1 / 3, "C": 1 / 3})
    low, value, high = single(found, "accuracy")
    assert value == pytest.approx((0.7 + 0.8 + 0.6) / 3)
    assert low < value < high
    # Limits of a mean of recalls follow from theirs.
    assert (found.design.draws, found.design.method, found.design.seed) == (0, None, None)
    assert found.design.prevalence == "given"
    recall = found.metrics["recall@A"]
    assert isinstance(recall, ProjectedValue)
    assert recall.observed == 0.7


@pytest.mark.parametrize("counts", [[[95, 5], [4, 16]], THREE, [[9, 1, 0], [0, 10, 0], [2, 0, 8]]])
def test_one_quantity_has_one_interval_at_equal_shares(counts: list[list[int]]) -> None:
    """Accuracy is balanced accuracy there, and error the rest to 1: .767 to .941, where draws had .772 to .948."""
    record, metrics = record_of(counts), "accuracy balanced_accuracy error_rate mcc macro_f1 cohen_kappa"
    equal = dict.fromkeys(record.labels, 1 / len(record.labels))
    found = answer(record, metrics=metrics, prevalence=equal)
    low, value, high = single(found, "balanced_accuracy")
    assert single(found, "accuracy") == pytest.approx((low, value, high), abs=1e-12)
    assert single(found, "error_rate") == pytest.approx((1 - high, 1 - value, 1 - low), abs=1e-12)
    if record.labels == ("A", "B"):
        assert (low, high) == pytest.approx((0.767, 0.941), abs=5e-4)
    source = record
    report = balanced_for_report(RunData(source), Options())
    for name in ("accuracy", "mcc", "macro_f1", "cohen_kappa"):
        moved, shown = single(found, name), report[name]
        assert (moved[0], moved[2]) == pytest.approx((shown["low"], shown["high"]), abs=1e-12)
    if len(record.labels) == 2:
        swept = answer(record, metrics="mcc", sweep=Sweep(label="A", start=0.1, end=0.9, steps=2, at=(Marked.EQUAL,)))
        entry = swept.metrics["mcc"]
        assert isinstance(entry, ProjectedValue)
        assert isinstance(entry.low, list)
        assert entry.low[1] == pytest.approx(single(found, "mcc")[0])


def test_accuracy_at_a_share_is_a_mean_of_recalls_in_weights() -> None:
    """By hand: .9 r_A + .1 r_B, and the Jeffreys limits of both recalls by the quantiles of scipy."""
    found = single(answer(record_of([[95, 5], [4, 16]]), metrics="accuracy", prevalence={"A": 0.9}), "accuracy")
    recalls, sizes = np.array([0.95, 0.8]), np.array([100.0, 20.0])
    low, high = (beta.ppf(tail, recalls * sizes + 0.5, (1 - recalls) * sizes + 0.5) for tail in (0.025, 0.975))
    weights = np.array([0.9, 0.1])
    value = weights @ recalls
    expected = (
        value - np.hypot(*(weights * (recalls - low))),
        value,
        value + np.hypot(*(weights * (high - recalls))),
    )
    assert found == pytest.approx(expected, abs=1e-9)


def test_all_of_a_difference_from_the_observed_value_is_prevalence() -> None:
    """Its limits are those of the rows at both shares: of accuracy a sum of recalls in weights."""
    found = answer(record_of(TWO), metrics="accuracy precision@B recall@B", prevalence={"B": 0.04})
    values = {name: value for name, value in found.metrics.items() if isinstance(value, ProjectedValue)}
    causes = values["accuracy"].causes
    assert causes is not None
    assert causes.items is not None
    (part,) = causes.items
    assert (part.factor, part.value) == ("prevalence", values["accuracy"].value - 125 / 150)  # type: ignore[operator]
    assert causes.because == "all of it because B becomes rarer (33 % to 4 %)"
    deviation = (0.96 - 2 / 3) * np.sqrt(0.9 * 0.1 / 100 + 0.7 * 0.3 / 50)
    assert part.high is not None
    assert part.low is not None
    assert part.high - part.low == pytest.approx(2 * 1.96 * deviation, rel=0.03)
    assert values["precision@B"].causes.because == "all of it because B becomes rarer (33 % to 4 %)"  # type: ignore[union-attr]
    assert values["recall@B"].causes is None
    y, chances = softmax_problem(600, 3, 1)
    losses = -np.log(chances[np.arange(600), y])
    record, samples = scored(y, chances)
    for recalibrate in (False, True):
        of_loss = answer(record, metrics="log_loss", samples=samples, prevalence={"A": 0.6}, recalibrate=recalibrate)
        known = of_loss.metrics["log_loss"].causes  # type: ignore[union-attr]
        assert known is not None
        assert known.kind == "loss"
        assert (known.items is None) is recalibrate
        if known.items:
            (part,) = known.items
            classes = [losses[y == code] for code in range(3)]
            means, sizes, moved = (np.array([f(one) for one in classes]) for f in (np.mean, len, np.var))
            rest = sizes / sizes.sum()
            gaps = np.array([0.6, *(0.4 * rest[1:] / rest[1:].sum())]) - rest
            assert part.value == pytest.approx(gaps @ means, rel=1e-9)
            assert part.low is not None
            assert part.high is not None
            assert part.high - part.low == pytest.approx(2 * 1.96 * np.sqrt(gaps**2 @ (moved / sizes)), rel=0.05)


def test_many_points_are_measured_in_pieces() -> None:
    """Values over a sweep are those one by one."""
    found = answer(record_of(THREE), metrics="mcc", sweep=Sweep(label="A", start=0.0, end=1.0, steps=11), draws=200)
    entry = found.metrics["mcc"]
    assert isinstance(entry, ProjectedValue)
    assert isinstance(entry.value, list)
    assert found.grid is not None
    for share, value in zip(found.grid, entry.value, strict=True):
        rest = np.array([0.0, 100.0, 50.0]) / 150 * (1 - share)
        moved = project(np.array(THREE, dtype=float), np.array([share, rest[1], rest[2]]))
        with silently():
            expected = float(catalogue().of_matrices.by_name["mcc"].compute(Table(moved)))
        assert value == (None if np.isnan(expected) else pytest.approx(expected))


def test_draws_are_measured_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once those of 100 classes would need gigabytes; limits are the same."""
    measured: list[int] = []

    def noted(counts: Array, *more: Any) -> list[Array]:
        measured.append(len(counts) if counts.ndim > 2 else 1)
        return values_at(counts, *more)

    values_at = simulation.values_at
    monkeypatch.setattr(simulation, "values_at", noted)
    asked: dict[str, Any] = {"prevalence": {"A": 0.5, "B": 0.3, "C": 0.2}, "draws": 200}
    whole = [answer(record_of(THREE), metrics="macro_f1", worth=worth, **asked) for worth in (None, 40.0)]
    assert max(measured) == 200
    measured.clear()
    monkeypatch.setattr(drawing, "CELLS_PER_BATCH", 9 * 60)
    pieces = [answer(record_of(THREE), metrics="macro_f1", worth=worth, **asked) for worth in (None, 40.0)]
    assert max(measured) == 60
    assert [single(one, "macro_f1") for one in pieces] == [single(one, "macro_f1") for one in whole]


def test_two_runs_change_places() -> None:
    """Accuracies .9 p + .7 (1 - p) and .6 p + .8 (1 - p) meet at p = 1/4."""
    first, second = record_of([[90, 10], [30, 70]]), record_of([[60, 40], [20, 80]])
    sweep = Sweep(label="A", start=0.0, end=1.0, steps=3)
    found = answer(first, second, metrics="accuracy", sweep=sweep, draws=200)
    assert found.against == second.id
    assert found.crossings is not None
    assert found.crossings["accuracy"] == pytest.approx([0.25])


def test_probabilities_over_a_range_are_refined_as_far_as_it_is_affordable(monkeypatch: pytest.MonkeyPatch) -> None:
    record, samples = scored(*softmax_problem(200, 2, 3))
    ranges = {"B": (0.1, 0.6)}
    full = answer(record, metrics="average_precision accuracy", samples=samples, prevalence_range=ranges, draws=200)
    assert "until nothing was gained" in full.notes[0]
    assert (full.design.draws, full.design.samples) == (0, None)
    monkeypatch.setattr(simulation, "MOST_ENTRIES", 200 * 2 * 60)
    short = answer(record, metrics="average_precision", samples=samples, prevalence_range=ranges, draws=200)
    assert "as far as so many samples let it" in short.notes[0]
    (_, best), (_, found) = (extreme(each, "average_precision") for each in (full, short))
    assert found.value == pytest.approx(best.value)
    monkeypatch.setattr(simulation, "MOST_ENTRIES", 200 * 2 * 10)
    with pytest.raises(OutOfReach, match="at most 10 points"):
        answer(record, metrics="average_precision", samples=samples, prevalence_range=ranges, draws=200)


_STILL = "recall@* balanced_accuracy h_mean g_mean min(recall@*) recall_range power_mean_recall(r=2)"


def intervals_of(record: EvaluationRecord, metrics: str, samples: Samples | None = None) -> dict[str, Any]:
    """By name the limits that a report, a leaderboard and a gate have."""
    estimands = parse_estimands(metrics.split(), record.labels, record.positive, inputs=INPUTS_OF_CLASSES)
    found = estimate(estimands, run_data(record, samples), LimitSettings())
    return {
        name: (one.low, one.high, one.method)
        for estimand, estimates in zip(estimands, found, strict=True)
        for name, one in zip(estimand.names, estimates, strict=True)
    }


@pytest.mark.parametrize("counts", [TWO, THREE, [[5, 0], [1, 3]]], ids=["two", "three", "few"])
def test_what_prevalence_does_not_move_has_the_limits_of_the_report(counts: list[list[int]]) -> None:
    """One quantity, one interval: wherever it is shown, and at whatever shares."""
    record = record_of(counts)
    expected = intervals_of(record, _STILL)
    assert expected["recall@A"][2] == "wilson"
    at = answer(record, metrics=_STILL, prevalence={"A": 0.9})
    spread = answer(record, metrics=_STILL, prevalence={"A": 0.9}, worth=30)
    swept = answer(record, metrics=_STILL, sweep=Sweep(label="A", start=0.1, end=0.9, steps=3))
    ranged = answer(record, metrics=_STILL, prevalence_range={"A": (0.1, 0.9)})
    assert list(at.metrics) == list(expected)
    for name, (low, high, method) in expected.items():
        for found in (at, spread):
            entry = found.metrics[name]
            assert isinstance(entry, ProjectedValue)
            assert (entry.low, entry.high, entry.method) == (low, high, method)
        entry = swept.metrics[name]
        assert isinstance(entry, ProjectedValue)
        assert (entry.low, entry.high) == ([low] * 3, [high] * 3)
        lowest, highest = extreme(ranged, name)
        assert (lowest.low, highest.high) == (low, high)


def test_areas_that_prevalence_does_not_move_have_the_limits_of_the_report() -> None:
    record, samples = scored(*softmax_problem(120, 2, 5))
    metrics = "roc_auc@A recall@* balanced_log_loss mean(roc_auc@B,recall@A)"
    expected = intervals_of(record, metrics, samples)
    found = answer(record, metrics=metrics, samples=samples, prevalence={"B": 0.05})
    for name, (low, high, method) in expected.items():
        entry = found.metrics[name]
        assert isinstance(entry, ProjectedValue)
        assert (entry.low, entry.high, entry.method) == (low, high, method)


def test_the_least_of_what_prevalence_moves_follows_from_their_own_limits() -> None:
    """As in a report: drawn smallest values would lie below the smallest of the values."""
    record = record_of(THREE)
    found = answer(record, metrics="min(precision@*) precision@*", prevalence={"A": 0.05})
    low, value, high = single(found, "min(precision@*)")
    each = [single(found, f"precision@{label}") for label in "ABC"]
    assert value == min(middle for _, middle, _ in each)
    assert low == min(low for low, _, _ in each)
    assert high > value


def test_of_a_list_in_a_range_each_value_has_its_own_ends() -> None:
    record, ranges = record_of(THREE), {"A": (0.1, 0.6), "B": (0.05, 0.3)}
    together = answer(record, metrics="precision@*", prevalence_range=ranges)
    for label in record.labels:
        alone = answer(record, metrics=f"precision@{label}", prevalence_range=ranges)
        for one, other in zip(*(extreme(found, f"precision@{label}") for found in (together, alone)), strict=True):
            assert one.value == pytest.approx(other.value, abs=1e-9)
            assert [*one.prevalence.values()] == pytest.approx([*other.prevalence.values()], abs=1e-6)


def test_where_a_value_does_not_exist_nothing_has_caused_it() -> None:
    entry = answer(record_of(TWO), metrics="mcc", prevalence={"B": 1.0}).metrics["mcc"]
    assert isinstance(entry, ProjectedValue)
    assert entry.observed is not None
    assert (entry.value, entry.causes) == (None, None)


@pytest.mark.parametrize(("metric", "said"), [("precision@B", True), ("recall@B", False)])
def test_few_groups_are_said_of_what_prevalence_moves(metric: str, said: bool) -> None:
    y, p = softmax_problem(150, 2, 6)
    record, samples = scored(y, p)
    few = replace(samples, groups=np.arange(y.size) % 12)
    grouped = replace(record, facts={**record.facts, GROUPS_FACT: 12})
    notes = answer(grouped, metrics=metric, samples=few, prevalence={"B": 0.2}).notes
    assert any("The groups count as 12 equal ones" in note for note in notes) is said


def test_why_there_are_no_limits_is_said_with_the_value() -> None:
    rates = record_of([[0.9, 0.1], [0.2, 0.8]], content=Content.rates)
    for record, metric, reason in (
        (rates, "accuracy", NoLimits.NO_COUNTS),
        (record_of(TWO, groups=30), "accuracy", NoLimits.NO_GROUPS),
        (record_of(TWO, groups=30), "recall@A", NoLimits.NO_GROUPS),
    ):
        entry = answer(record, metrics=metric, prevalence={"B": 0.5}).metrics[metric]
        assert isinstance(entry, ProjectedValue)
        assert (entry.low, entry.high, entry.reason) == (None, None, reason.value)


def test_groups_count_at_any_shares() -> None:
    """Samples four times over are worth as much as once, whether prevalence moves a metric or not."""
    y, p = softmax_problem(150, 2, 6)
    record, samples = scored(np.repeat(y, 4), np.repeat(p, 4, axis=0))
    once, alone = scored(y, p)
    grouped = replace(record, facts={**record.facts, GROUPS_FACT: y.size})
    metrics = "recall@A mcc precision@B average_precision@B"
    copies = replace(samples, groups=np.repeat(np.arange(y.size), 4))
    found = answer(grouped, metrics=metrics, samples=copies, prevalence={"B": 0.2})
    plain = answer(once, metrics=metrics, samples=alone, prevalence={"B": 0.2})
    for name, method in (
        ("recall@A", "grouped_wilson"),
        ("mcc", "cluster_bootstrap"),
        ("precision@B", "cluster_bootstrap"),
        ("average_precision@B", "cluster_influence_logit"),
    ):
        entry = found.metrics[name]
        assert isinstance(entry, ProjectedValue)
        assert entry.method == method
        low, value, high = single(found, name)
        expected = single(plain, name)
        assert value == pytest.approx(expected[1])
        assert high - low == pytest.approx(expected[2] - expected[0], rel=0.2)
    assert (found.design.method, found.design.class_counts) == ("cluster_bootstrap", None)


def test_sums_at_other_shares_have_the_variance_of_samples_in_strata() -> None:
    y, p = softmax_problem(150, 2, 6)
    record, samples = scored(y, p)
    shares, metrics = np.array([0.9, 0.1]), "log_loss mean(brier_score,log_loss) average_precision@B"
    found = answer(record, metrics=metrics, samples=samples, prevalence={"B": 0.1})
    low, value, high = single(found, "log_loss")
    losses = -np.log(p[np.arange(y.size), y])
    parts = [losses[y == code] for code in (0, 1)]
    assert value == pytest.approx(shares @ [one.mean() for one in parts])
    each = [share * (one - one.mean()) / one.size for share, one in zip(shares, parts, strict=True)]
    assert (low, high) == pytest.approx(hall(value, np.concatenate(each), 1.99), rel=0.02)
    methods = [entry.method for entry in found.metrics.values() if isinstance(entry, ProjectedValue)]
    assert methods == ["hall_t", "influence", "influence_logit"]
    # Only one class left, the other certain.
    one = answer(record, metrics="average_precision@B", samples=samples, prevalence={"B": 1.0})
    entry = one.metrics["average_precision@B"]
    assert isinstance(entry, ProjectedValue)
    assert (entry.value, entry.low, entry.reason) == (1.0, None, NoLimits.DEGENERATE.value)
    # In the shares that the samples have, limits are those of a report but for the shares themselves.
    here = answer(record, metrics=metrics, samples=samples, prevalence={"B": float(np.mean(y == 1))})
    names = ["log_loss", "average_precision@B"]
    estimands = parse_estimands(names, record.labels, record.positive, inputs=INPUTS_OF_CLASSES)
    for name, (own,) in zip(names, estimate(estimands, run_data(record, samples)), strict=True):
        low, value, high = single(here, name)
        assert value == pytest.approx(own.value)
        assert 0.7 * (own.high - own.low) < high - low <= own.high - own.low + 1e-12


def test_limits_of_a_rate_of_groups_at_other_shares_are_those_of_survey_statistics() -> None:
    """Precision at a share s is a ratio of sums over groups in weights s/n and (1 - s)/m: the linearised variance."""
    random, share = np.random.default_rng(3), 0.2
    groups = np.repeat(np.arange(60), 8)
    y = random.integers(0, 2, groups.size)
    right = random.random(groups.size) < random.beta(6.0, 2.0, 60)[groups]
    predicted = np.where(right, y, 1 - y)
    record, samples = scored(y, np.column_stack([1.0 - predicted, predicted]) * 0.8 + 0.1)
    grouped = replace(record, facts={**record.facts, GROUPS_FACT: 60})
    found = answer(grouped, metrics="precision@B", samples=replace(samples, groups=groups), prevalence={"B": share})
    low, value, high = single(found, "precision@B")
    tpr, fpr = predicted[y == 1].mean(), predicted[y == 0].mean()
    both = share * tpr + (1 - share) * fpr
    assert value == pytest.approx(share * tpr / both)
    hits = np.where(y == 1, (predicted - tpr) / (y == 1).sum(), 0.0) * share * (1 - value) / both
    false = np.where(y == 0, (predicted - fpr) / (y == 0).sum(), 0.0) * (1 - share) * value / both
    influence = np.bincount(groups, hits - false)
    error = np.sqrt(60 / 59 * (influence**2).sum())
    assert high - low == pytest.approx(2 * 2.001 * error, rel=0.08)


def test_a_perfect_ranking_of_few_samples_is_not_certain() -> None:
    """All resamples agree on what was found, which says nothing about its uncertainty."""
    y = np.repeat([0, 1], 5)
    record, samples = scored(y, np.column_stack([1 - y, y]) * 0.8 + 0.1)
    entry = answer(record, metrics="average_precision@B", samples=samples, prevalence={"B": 0.1}).metrics
    found = entry["average_precision@B"]
    assert isinstance(found, ProjectedValue)
    assert found.value == 1.0
    assert (found.low, found.high, found.reason) == (None, None, NoLimits.DEGENERATE.value)


def test_where_false_alarms_cost_nothing_the_cost_has_the_limits_of_the_misses() -> None:
    found = simulated(record_of([[90, 10], [3, 17]]), 1, samples=False)
    ((_, low, high),) = found.recall
    assert low is not None
    assert high is not None
    _, *ends = found.at(0, 0.02, 0.0, 50.0).cost
    assert ends == pytest.approx([0.02 * 50.0 * (1.0 - high), 0.02 * 50.0 * (1.0 - low)])


def test_a_class_that_is_never_predicted_leaves_the_others_their_extremes() -> None:
    record = record_of([[0, 10, 0], [0, 40, 10], [0, 5, 35]])
    several = answer(record, metrics="precision@*", prevalence_range={"B": (0.2, 0.4)}).metrics
    alone = answer(record, metrics="precision@B", prevalence_range={"B": (0.2, 0.4)})
    assert several["precision@A"] == ExtremeValues(None, None, None)
    assert several["precision@B"] == alone.metrics["precision@B"]


def test_a_class_without_samples_leaves_precision_its_limits() -> None:
    two, three = (
        single(answer(record_of(counts), metrics="precision@B", prevalence={"B": 0.01}), "precision@B")
        for counts in ([[90, 10], [15, 35]], [[90, 10, 0], [15, 35, 0], [0, 0, 0]])
    )
    assert three == two
