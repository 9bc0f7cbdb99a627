"""Values with limits: one way to them for reports, gates and leaderboards, whatever a quantity is called."""

import json
from dataclasses import replace
from itertools import product
from math import isnan
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, binom

from app.api.answers import write_json
from app.domain.errors import InvalidInput, NotComparable
from app.domain.evaluation import DatasetRef, EvaluationRecord
from app.domain.inputs.classified import Predictions
from app.domain.inputs.content import Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.samples import Samples
from app.domain.options import IntervalChoice, IntervalMethod, Options, Sampling
from app.domain.report import Interval
from app.domain.rules import check_rules, definition_of
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import INPUTS_OF_CLASSES, Inputs
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Measure, compute
from app.kernel.uncertainty.draws import chosen_seed
from app.kernel.uncertainty.intervals import wilson
from app.services.estimands import make_estimand, preference, require_comparable
from app.services.estimates.estimate import Estimate, LimitSettings, NoLimits, canonical
from app.services.estimates.estimates import estimate
from app.services.estimates.run_data import RunData, run_data
from app.services.evaluate.reports import evaluate
from app.services.gate import check_gate, rule_estimands
from app.services.rank import LeaderboardQuery, rank_candidates
from app.services.runs.aligned import Runs
from app.services.runs.pairing import KeptSamples
from tests.bank import each
from tests.kernel.matrices import matrices
from tests.kernel.probability.problems import softmax_problem
from tests.services.records import record_of, scored

TWO = [[45, 5], [10, 40]]
THREE = [[40, 6, 4], [5, 30, 15], [2, 3, 25]]
EVERYTHING_OF_IT = LimitSettings(simulate=True)


def source(counts: Any, content: Content = Content.counts) -> MatrixInput:
    size = len(counts)
    return MatrixInput(
        "confusion_matrix", tuple("ABCDEFGHIJ"[:size]), 1 if size == 2 else None, content, np.array(counts)
    )


def grouped(n_classes: int = 2) -> MatrixInput:
    random = np.random.default_rng(3)
    groups = np.repeat(np.arange(40), 5)
    truth = random.integers(0, n_classes, groups.size)
    right = random.random(groups.size) < random.beta(3, 1, 40)[groups]
    predicted = np.where(right, truth, (truth + 1) % n_classes)
    return Predictions(y_true=truth, y_pred=predicted, group_ids=groups).read("/input")


def found(run: RunData | MatrixInput, *texts: str, settings: LimitSettings | None = None) -> list[Estimate]:
    """The first value of each expression."""
    data = run if isinstance(run, RunData) else RunData(run)
    labels, positive = data.source.labels, data.source.positive
    inputs = INPUTS_OF_CLASSES if data.source.is_scored else frozenset({Inputs.MATRIX})
    estimands = [make_estimand(text, labels, positive, inputs) for text in texts]
    return [values[0] for values in estimate(estimands, data, settings or LimitSettings())]


def test_a_list_over_two_classes_has_the_limits_of_each() -> None:
    """Both are lines of one rate, and not the same line."""
    for text in ("prevalence@*", "predicted_prevalence@*", "recall@*"):
        asked = [make_estimand(one, ("A", "B"), 1) for one in (text, text.replace("*", "A"), text.replace("*", "B"))]
        listed, *each = estimate(asked, RunData(source(TWO)))
        assert [ends(one) for one in listed] == [ends(one) for (one,) in each]


def ends(one: Estimate) -> tuple[float, float]:
    assert one.reason is None
    return one.low, one.high


def same(interval: Interval, one: Estimate) -> None:
    """Are both the same, but for the rounding of sums?"""
    other = one.as_interval()
    assert interval.keys() == other.keys()
    for member in interval:
        expected = other[member]  # type: ignore[literal-required]  # a name of its own
        found = interval[member]  # type: ignore[literal-required]
        assert found == (pytest.approx(expected, rel=1e-13) if isinstance(expected, float) else expected), member


def check(record: EvaluationRecord, outputs: dict[Any, Samples] | None, *rules: dict[str, Any]) -> list[dict[str, Any]]:
    definition = definition_of({"rules": list(rules)})
    runs = Runs.align([record]).alone(0, KeptSamples(outputs or {}))
    results = check_gate(definition, rule_estimands(definition, runs), runs).results
    answered: list[dict[str, Any]] = json.loads(write_json(results))
    return answered


def rule(metric: str, bound: str = "lower", level: float = 0.95) -> dict[str, Any]:
    return {"metric": metric, "min": 0.5, "bound": bound, "level": level}


def ranked(record: EvaluationRecord, metric: str, outputs: dict[Any, Samples] | None = None) -> tuple[float, float]:
    """Limits on a leaderboard of one run."""
    estimand = make_estimand(metric, record.labels, record.positive, INPUTS_OF_CLASSES)
    better = preference(estimand.expression)
    assert better is not None
    query = LeaderboardQuery(dataset=DatasetRef("d"), metric=metric)
    (line,) = rank_candidates(query, better, [record], KeptSamples(outputs or {})).items
    assert line.low is not None
    assert line.high is not None
    return line.low, line.high


# One quantity of two classes under its names: offset and slope of the first.
NAMES = {
    "recall@A": {"specificity@B": (0, 1), "fnr@A": (1, -1), "fpr@B": (1, -1)},
    "precision@B": {"npv@A": (0, 1), "fdr@B": (1, -1)},
    "accuracy": {
        "error_rate": (1, -1), "micro_fnr": (1, -1), "micro_recall": (0, 1), "accuracy_ovr@A": (0, 1),
        "error_rate_ovr@B": (1, -1), "bennett_s": (-1, 2), "zero_one_loss_count": (100, -100),
    },
}  # fmt: skip


@pytest.mark.parametrize("settings", [LimitSettings(), EVERYTHING_OF_IT, LimitSettings(together=3)])
@pytest.mark.parametrize("name", NAMES)
def test_one_quantity_has_the_same_limits_under_all_its_names(name: str, settings: LimitSettings) -> None:
    first, *others = found(source(TWO), name, *NAMES[name], settings=settings)
    for other, (offset, slope) in zip(others, NAMES[name].values(), strict=True):
        assert other.value == pytest.approx(offset + slope * first.value)
        assert sorted(ends(other)) == pytest.approx(sorted(offset + slope * end for end in ends(first)))
        assert (other.method, other.given) == (first.method, first.given)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rates_of_samples_in_groups_have_the_same_limits_too(n_classes: int) -> None:
    run = RunData(grouped(n_classes))
    texts = ["accuracy", "error_rate", "recall@0", "fnr@0", "precision@1", "fdr@1"]
    accuracy, error, recall, fnr, precision, fdr = found(run, *texts)
    for one, other in ((accuracy, error), (recall, fnr), (precision, fdr)):
        assert one.method == other.method == "grouped_wilson"
        assert ends(other) == pytest.approx((1 - one.high, 1 - one.low))


def test_every_proportion_of_the_catalogue_has_exact_limits_in_every_mode() -> None:
    metrics = [one for one in catalogue().of_matrices.metrics if one.card.inference.proportion is not None]
    texts = [f"{one.key}@A" if one.card.scope.value == "class" else one.key for one in metrics]
    for counts, settings in product((TWO, THREE), (LimitSettings(), EVERYTHING_OF_IT)):
        for text, one in zip(texts, found(source(counts), *texts, settings=settings), strict=True):
            assert one.method == "wilson", text
            assert one.low <= one.value <= one.high, text


def test_names_of_functions_of_metrics_are_kept_to() -> None:
    labels = tuple("ABC")
    for text in (
        "mean(recall@*)",
        "gmean(recall@*)",
        "gps(recall@*)",
        "mean(f1@*)",
        "gps(recall@A, recall@B, recall@C)",
    ):
        named = canonical(make_estimand(text, labels, None).expression, labels)
        assert isinstance(named, Measure)
        plain, told = found(source(THREE), text, named.metric.key)
        assert ends(plain) == ends(told)
        assert plain.method == told.method
    for text in ("min(recall@*)", "max(recall@*)"):
        plain, told = found(source(THREE), text, text.replace("(recall@*)", "_recall"))
        assert (plain.low, plain.high, plain.method) == (told.low, told.high, "simultaneous")


def test_one_class_as_often_as_there_are_classes_is_not_all_of_them() -> None:
    twice, once = found(source([[90, 10], [1, 9]]), "mean(recall@A, recall@A)", "recall@A")
    assert twice.value == once.value
    assert ends(twice) == pytest.approx(ends(once), abs=0.01)


def test_the_lowest_of_all_is_not_the_one_that_came_out_lowest() -> None:
    """One value, two quantities: the upper limit of the lowest holds for all together, and the answer says so."""
    counts = source([[800, 0, 0, 0], [0, 600, 0, 0], [0, 0, 500, 0], [40, 24, 20, 16]])
    lowest, of_d, highest, one = found(counts, "min(recall@*)", "recall@D", "max(recall@*)", "min(recall@D)")
    assert lowest.value == of_d.value == 0.16
    # Wilson's limits of 16 of 100, and the upper one of Clopper and Pearson at a quarter of the error.
    assert (lowest.low, of_d.high) == pytest.approx((0.10095, 0.24420), abs=5e-6)
    assert lowest.low == of_d.low
    assert lowest.high == pytest.approx(beta.ppf(1 - 0.05 / 8, 17, 84), rel=1e-10)
    assert "upper limit holds for all of them together" in lowest.as_interval()["note"]
    assert "lower limit holds for all of them together" in highest.as_interval()["note"]
    for alone in (of_d, one):
        assert "note" not in alone.as_interval()
    assert ends(one) == ends(of_d)


@each("kind", ["dense", "accurate", "dominant_class", "sparse"])
@each("size", [2, 3, 5])
def test_a_metric_has_the_values_of_the_function_of_metrics_that_it_says_it_is(kind: str, size: int) -> None:
    counts = matrices()[f"{kind}-{size}-0"]
    labels = tuple(map(str, range(size)))
    for metric in catalogue().of_matrices.metrics:
        if metric.card.inference.same_as is not None:
            tree = make_estimand(metric.card.inference.same_as, labels, None).expression
            np.testing.assert_allclose(
                compute(tree, Table(counts)), metric(Table(counts)), rtol=1e-12, err_msg=metric.key
            )


EXPRESSIONS = (
    "recall@A",
    "error_rate",
    "mcc",
    "h_mean",
    "f1@B",
    "gps(recall@*, precision@B)",
    "min(f1@*)",
    "g_measure@A",
)


@each("metric", EXPRESSIONS)
@each("counts", [TWO, [[50, 0], [0, 60]], [[40, 2], [0, 3]]])
def test_gate_and_leaderboard_have_the_limits_of_the_one_way(metric: str, counts: Any) -> None:
    record = record_of(counts, positive=1)
    (own,) = found(run_data(record), metric)
    (result,) = check(record, None, rule(metric))
    if own.reason is None:
        assert (result["low"], result["high"]) == ends(own) == ranked(record, metric)
        assert result["method"] == own.method
    else:
        assert result["low"] is None
        assert str(own.reason) in result["message"]


@pytest.mark.parametrize(
    "metric", ["log_loss", "roc_auc@B", "ks_statistic@A", "expected_calibration_error", "mean(roc_auc@A, recall@B)"]
)
def test_gate_and_leaderboard_have_the_limits_of_a_report_on_probabilities(metric: str) -> None:
    record, samples = scored(*softmax_problem(150, 2, 3))
    outputs = {record.id: samples}
    data = run_data(record, samples)
    report = evaluate(data.source, Options(intervals=IntervalChoice.ALL, metrics=(metric,)))
    shown = report.intervals[metric]
    (result,) = check(record, outputs, rule(metric))
    limits = pytest.approx((shown["low"], shown["high"]), rel=1e-12)
    assert (result["low"], result["high"]) == limits
    assert ranked(record, metric, outputs) == limits
    assert result["method"] == shown["method"]


@pytest.mark.parametrize("counts", [TWO, THREE, [[40, 2], [0, 3]], np.diag([10, 20, 30])])
def test_quick_intervals_of_a_report_are_those_of_the_one_way(counts: Any) -> None:
    report = evaluate(source(counts), Options())
    for interval, one in zip(report.intervals.values(), found(source(counts), *report.intervals), strict=True):
        same(interval, one)


@pytest.mark.parametrize("method", list(IntervalMethod))
def test_intervals_of_everything_are_those_of_the_one_way(method: IntervalMethod) -> None:
    sampling = Sampling(method=method, draws=300)
    asked = ("min(recall@*)", "gps(recall@*, precision@B)")
    report = evaluate(source(TWO), Options(intervals=IntervalChoice.ALL, sampling=sampling, metrics=asked))
    names = ["mcc", "f1@A", "error_rate", *asked]
    settings = replace(EVERYTHING_OF_IT, sampling=sampling)
    for name, one in zip(names, found(source(TWO), *names, settings=settings), strict=True):
        same(report.intervals[name], one)


def test_what_is_asked_twice_leaves_others_their_limits() -> None:
    asked = ("f_beta(beta=2)@A", "lift@A", "min(recall@A, recall@B)")
    once, twice = (evaluate(source(TWO), Options(metrics=metrics)).intervals for metrics in (asked, asked[:1] + asked))
    assert {text: twice[text] for text in asked} == {text: once[text] for text in asked}


def test_limits_do_not_depend_on_what_else_is_asked() -> None:
    for settings in (LimitSettings(), EVERYTHING_OF_IT):
        texts = ("f1@A", "min(f1@*)", "mcc", "gps(f1@*)")
        for text, one in zip(texts, found(source(THREE), *texts, settings=settings), strict=True):
            same(found(source(THREE), text, settings=settings)[0].as_interval(), one)
    record = record_of(THREE)
    (only,) = check(record, None, rule("min(recall@*)"))
    first, *_ = check(record, None, rule("min(recall@*)"), rule("mcc"), rule("f1@*"))
    assert (only["low"], only["high"]) == (first["low"], first["high"])


def test_the_weakest_class_has_one_lower_limit() -> None:
    report = evaluate(source(THREE), Options(intervals=IntervalChoice.ALL, metrics=("min(recall@*)",)))
    shown, weakest = report.intervals["min(recall@*)"], report.intervals["recall@B"]
    assert shown["low"] == weakest["low"]
    assert shown == report.intervals["min_recall"]
    record = record_of(THREE)
    smallest, every = check(record, None, rule("min(recall@*)"), rule("recall@*"))
    assert (smallest["low"], smallest["high"]) == (shown["low"], shown["high"])
    assert every["decided_by"] == "recall@B"
    assert every["low"] == shown["low"]
    # A rule that one class can fail asks for limits of all classes together: the same as those of the smallest. Each
    # stands alone here, since rules of one gate share what may fail by chance.
    (above,), (all_above,) = (check(record, None, rule(name, "upper")) for name in ("min(recall@*)", "recall@*"))
    assert above["decided_on"]["high"] == min(one["decided_on"]["high"] for one in all_above["each"].values())


def test_the_upper_limit_of_the_smallest_holds_for_all_together() -> None:
    (one,) = found(source(THREE), "min(recall@*)", settings=LimitSettings(level=0.9))
    hits, sizes = np.diag(THREE), np.sum(THREE, axis=1)
    tail = 0.05 / 3
    assert one.high == pytest.approx(beta.ppf(1 - tail, hits + 1, sizes - hits).min())
    assert one.low == pytest.approx(float(wilson(hits.astype(float), sizes.astype(float), 0.9)[0].min()))


@pytest.mark.parametrize("recalls", [(0.9, 0.9, 0.9), (0.6, 0.95, 0.95), (0.5, 0.7, 0.9), (0.99, 0.99, 0.99)])
@pytest.mark.parametrize("size", [10, 20])
def test_limits_of_the_smallest_hold_the_truth(recalls: tuple[float, ...], size: int) -> None:
    """Over all outcomes. Draws of the smallest recall hold it in 79 % of the cases with three classes of .9."""
    sizes = np.full(3, float(size))
    hits = np.array(list(product(range(size + 1), repeat=3)), dtype=float)
    chance = np.prod([binom.pmf(hits[:, k], size, recalls[k]) for k in range(3)], axis=0)
    low = wilson(hits, sizes, 0.95)[0].min(axis=1)
    tail = 0.025 / 3
    high = np.where(hits < size, beta.ppf(1 - tail, hits + 1, np.maximum(size - hits, 1)), 1.0).min(axis=1)
    for row in np.random.default_rng(0).choice(len(hits), 20):
        counts = np.array([[x, size - x, 0] for x in hits[row]], dtype=int)
        counts[1], counts[2] = np.roll(counts[1], 1), np.roll(counts[2], 2)
        (one,) = found(source(counts), "min(recall@*)")
        assert ends(one) == pytest.approx((low[row], high[row]))
    held = (low <= min(recalls)) & (min(recalls) <= high)
    assert float(chance @ held) > 0.95


def test_what_nothing_can_be_said_of_says_why() -> None:
    (p_value,) = found(source(TWO), "accuracy_p_value")
    assert (p_value.reason, isnan(p_value.low)) == (NoLimits.ABOUT_SAMPLE, True)
    (rates,) = found(source(np.array(TWO) / 100, Content.rates), "mcc")
    assert (rates.reason, rates.method) == (NoLimits.NO_COUNTS, None)
    with pytest.raises(ValueError, match="number of samples"):
        rates.as_interval()
    (forgotten,) = found(replace(grouped(), samples=None), "mcc")
    assert forgotten.reason is NoLimits.NO_GROUPS
    (undefined,) = found(source([[5, 0], [3, 0]]), "mcc")
    assert (undefined.reason, isnan(undefined.value)) == (NoLimits.UNDEFINED, True)
    (smallest,) = found(source([[5, 1], [0, 0]]), "min(recall@*)")
    assert smallest.reason is NoLimits.UNDEFINED


def test_too_many_classes_are_not_simulated() -> None:
    counts = np.eye(460, dtype=int) * 3
    counts[0, 1] = 2
    big = MatrixInput("confusion_matrix", tuple(map(str, range(460))), None, Content.counts, counts)
    assert found(big, "macro_jaccard")[0].reason is NoLimits.TOO_MANY_CLASSES
    assert found(big, "accuracy")[0].reason is None


@pytest.mark.parametrize("metric", ["accuracy_p_value", "kappa_standard_error", "mean(accuracy, accuracy_p_value)"])
def test_nothing_is_decided_by_what_describes_the_sample(metric: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        check_rules(definition_of({"rules": [rule("mcc"), rule(metric)]}))
    (fault,) = refusal.value.faults
    assert (fault.pointer, fault.code) == ("/rules/1/metric", "not_comparable")
    assert "no property of the classifier" in fault.detail
    with pytest.raises(NotComparable) as stored:
        check(record_of(TWO), None, rule("mcc"), rule(metric))
    assert stored.value.pointer == "/rules/1/metric"
    estimand = make_estimand(metric, ("A", "B"), 1)
    with pytest.raises(NotComparable, match="describes this sample") as compared:
        require_comparable([estimand], ["mcc", metric])
    assert compared.value.pointer == "/metrics/1"


def test_sums_of_weights_that_differ_by_rounding_have_one_seed() -> None:
    weights = np.array([[12.3456789012345, 0.0], [5.0, 1 / 3]])
    assert chosen_seed(None, weights) == chosen_seed(None, weights * (1 + 4e-16))
    assert chosen_seed(None, weights) != chosen_seed(None, weights * 1.001)
    assert chosen_seed(None, np.array([2.0**53])) != chosen_seed(None, np.array([2.0**53 + 2]))
    with np.errstate(all="raise", under="ignore"):
        assert chosen_seed(None, np.array([5e-324, 1e-310])) != chosen_seed(None, np.array([0.5, 1e300]))
