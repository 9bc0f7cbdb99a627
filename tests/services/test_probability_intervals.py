"""Intervals of metrics of probabilities as a report has them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from app.api.answers import write_json
from app.domain.inputs.classified import Predictions, Probabilities
from app.domain.inputs.content import Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.samples import Samples
from app.domain.options import IntervalChoice, IntervalMethod, Options, Sampling
from app.domain.report import Interval, Section, SectionName
from app.kernel.metrics.card import Scope
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty import resampling
from app.kernel.uncertainty.draws import Alternative, Shares
from app.services.estimates.run_data import RunData
from app.services.evaluate.questions import ask
from app.services.evaluate.reports import evaluate, sections_as_json, sections_from_json
from app.services.evaluate.sections.probability import probability_section
from tests.kernel.delong import delong
from tests.kernel.probability.problems import softmax_problem
from tests.witnesses import sk

LABELS = ("A", "B", "C", "D", "E")
ALL = Options(intervals=IntervalChoice.ALL, sampling=Sampling(draws=200))


def source_of(y: Any, p: Array, content: Content = Content.counts, weights: Array | None = None) -> MatrixInput:
    """An input of probabilities (n, K) or, with two classes, of scores (n)."""
    size = p.shape[1] if p.ndim == 2 else 2
    predicted = p.argmax(axis=1) if p.ndim == 2 else (p > 0).astype(np.int64)
    counts = sk.confusion_matrix(y, predicted, labels=range(size))
    return MatrixInput(
        kind="probabilities" if p.ndim == 2 else "scores",
        labels=LABELS[:size],
        positive=1 if size == 2 else None,
        content=content,
        counts=counts,
        samples=Samples(np.asarray(y, dtype=np.int64), predicted, p, weights=weights),
    )


def answered(source: MatrixInput, options: Options = ALL, *texts: str) -> Section:
    return probability_section(ask(source, replace(options, metrics=texts, seed=5)), RunData(source))


def ends(interval: Interval) -> tuple[float, float]:
    low, high = interval["low"], interval["high"]
    assert low is not None
    assert high is not None
    return low, high


def codes(part: Section) -> set[str]:
    return {finding.code for finding in part.findings}


@pytest.mark.parametrize("classes", [2, 3])
def test_all_are_every_metric_of_every_class(classes: int) -> None:
    source = source_of(*softmax_problem(120, classes, 0))
    part = answered(source)
    expected = {metric.key for metric in catalogue().of_probabilities.reported.of_scope(Scope.OVERALL)}
    for metric in catalogue().of_probabilities.reported.of_scope(Scope.CLASS):
        expected |= {f"{metric.key}@{label}" for label in source.labels}
    assert set(part.intervals) == expected
    values = {**part.values}
    for label, groups in part.per_class.items():
        both = {**groups["prevalence_insensitive"], **groups["prevalence_sensitive"]}
        values |= {f"{key}@{label}": value for key, value in both.items()}
    for name, interval in part.intervals.items():
        if name == "top_k_accuracy" and classes == 2:
            assert interval["low"] is None
            continue
        low, high = ends(interval)
        value = values[name]
        assert value is not None
        assert low - 1e-12 <= value <= high + 1e-12, name
        assert high > low, name
    assert {interval["method"] for interval in part.intervals.values()} >= {
        "delong_logit", "influence_logit", "hall_t", "wilson", "bootstrap", "bootstrap_basic",
    }  # fmt: skip


def test_resampled_intervals_say_from_what() -> None:
    part = answered(source_of(*softmax_problem(100, 3, 1)))
    interval = part.intervals["pr_auc_trapezoid@B"]
    assert (interval["seed"], interval["draws"], interval["given"]) == (5, 200, "actual_counts")
    assert interval["monte_carlo_error"] is not None
    assert 0.0 < interval["monte_carlo_error"] < 0.05
    assert "seed" not in part.intervals["log_loss"]
    sampled = replace(ALL, sampling=Sampling(draws=200, shares=Shares.SAMPLED))
    assert answered(source_of(*softmax_problem(100, 3, 1)), sampled).intervals["pr_auc_trapezoid@B"]["given"] == "n"


def test_the_headline_has_what_costs_nothing() -> None:
    y, p = softmax_problem(150, 3, 2)
    part = answered(source_of(y, p), Options(level=0.9))
    areas = {"roc_auc@A", "roc_auc@B", "roc_auc@C", "roc_auc_ovr_macro"}
    precisions = {f"average_precision@{label}" for label in "ABC"}
    assert set(part.intervals) == {*areas, *precisions, "log_loss", "brier_score", "au_imcp"}
    found = delong(y == 2, p[:, 2])
    center = stats.norm.ppf(0.95) * np.sqrt(found.covariance[0, 0]) / (found.areas[0] * (1 - found.areas[0]))
    logit = np.log(found.areas[0] / (1 - found.areas[0]))
    expected = tuple(1 / (1 + np.exp(-(logit + sign * center))) for sign in (-1, 1))
    assert ends(part.intervals["roc_auc@C"]) == pytest.approx(expected, rel=1e-10)
    everything = answered(source_of(y, p), replace(ALL, level=0.9)).intervals
    for name, interval in part.intervals.items():
        assert ends(interval) == pytest.approx(ends(everything[name]), rel=1e-10)
        assert interval["method"] == everything[name]["method"]


def test_two_classes_share_their_area() -> None:
    part = answered(source_of(*softmax_problem(80, 2, 3)), Options())
    assert part.intervals["roc_auc@A"] == part.intervals["roc_auc@B"]


def test_none_and_weighted_samples_get_none() -> None:
    y, p = softmax_problem(60, 2, 4)
    assert answered(source_of(y, p), Options(intervals=IntervalChoice.NONE)).intervals == {}
    weighted = source_of(y, p, Content.weights, np.linspace(0.5, 2.0, 60))
    assert answered(weighted, Options()).intervals == {}


def test_expressions_and_their_other_names() -> None:
    source = source_of(*softmax_problem(120, 2, 5))
    texts = (
        "mean(roc_auc@A, recall@A)", "auc@B", "gmean(roc_auc@A, roc_auc@B)", "log_loss(clip=0.1)",
        "median_phi(quantile=0.25)@*", "mean(ks_statistic@A, average_precision@A)",
        "max(roc_auc@A, average_precision@A)",
    )  # fmt: skip
    found = answered(source, ALL, *texts).intervals
    assert found["mean(roc_auc@A, recall@A)"]["method"] == "bootstrap"
    assert found["auc@B"] == found["roc_auc@B"]
    assert ends(found["gmean(roc_auc@A, roc_auc@B)"]) == pytest.approx(ends(found["roc_auc@A"]))
    assert found["log_loss(clip=0.1)"]["method"] == "hall_t"
    assert found["log_loss(clip=0.1)"]["high"] != found["log_loss"]["high"]
    assert {"median_phi(quantile=0.25)@A", "median_phi(quantile=0.25)@B"} <= set(found)
    assert found["mean(ks_statistic@A, average_precision@A)"]["method"] == "bootstrap_basic"
    assert found["max(roc_auc@A, average_precision@A)"]["method"] == "simultaneous"
    assert ends(found["max(roc_auc@A, average_precision@A)"])[1] == max(
        ends(found[name])[1] for name in ("roc_auc@A", "average_precision@A")
    )


def test_scores_have_intervals_of_what_orders_them() -> None:
    y, p = softmax_problem(120, 2, 6)
    part = answered(source_of(y, np.log(p[:, 1] / p[:, 0])), ALL, "mean(roc_auc@A, recall@A)")
    assert ends(part.intervals["average_precision@B"])
    assert ends(part.intervals["mean(roc_auc@A, recall@A)"])
    assert part.intervals["log_loss"]["low"] is None
    assert part.intervals["log_loss"]["method"] == "hall_t"
    assert "undefined" in part.intervals["expected_calibration_error"]["reason"]
    assert "median_phi@A" not in part.intervals
    assert set(answered(source_of(y, p[:, 1]), Options()).intervals) == {
        f"{area}@{label}" for area in ("roc_auc", "average_precision") for label in "AB"
    }


def test_a_perfect_order_has_newcombes_interval() -> None:
    y = np.repeat([0, 1], [15, 10])
    scores = np.where(y == 1, 2.0, -2.0) + np.linspace(0.0, 1.0, 25)
    for options in (Options(), ALL):
        interval = answered(source_of(y, scores), options).intervals["roc_auc@B"]
        assert interval["method"] == "newcombe_5"
        assert interval["low"] == pytest.approx(0.832, abs=5e-4)
        assert interval["high"] == 1.0


def test_one_class_alone() -> None:
    """Values that do not exist have no interval; the report says why."""
    y = np.zeros(30, dtype=np.intp)
    p = softmax_problem(30, 2, 7)[1]
    part = answered(source_of(y, p))
    assert "roc_auc@A" not in part.intervals
    assert "undefined" in part.intervals["roc_auc_ovr_macro"]["reason"]
    assert ends(part.intervals["log_loss"])
    assert "roc_auc@A" not in answered(source_of(y, p), Options()).intervals


def test_probabilities_that_are_all_alike_say_nothing_of_their_spread() -> None:
    y = np.tile([0, 1], 20)
    part = answered(source_of(y, np.full((40, 2), 0.5)))
    for name in ("log_loss", "pr_auc_trapezoid@A", "median_phi@B"):
        assert part.intervals[name]["low"] is None
        assert "variance is zero" in part.intervals[name]["reason"]


def test_errors_that_perfect_calibration_shows_too_may_be_none() -> None:
    rng = np.random.default_rng(8)
    p = rng.uniform(0.05, 0.95, 400)
    y = (rng.random(400) < p).astype(np.int64)
    part = answered(source_of(y, np.column_stack([1 - p, p])))
    for key in ("expected_calibration_error", "adaptive_calibration_error", "classwise_calibration_error"):
        assert part.details["calibration"][key]["p_value"] > 0.05
        low, high = ends(part.intervals[key])
        assert low == 0.0
        assert high > 0.0
    # Of probabilities that are far off, no interval reaches 0.
    off = answered(source_of(1 - y, np.column_stack([1 - p, p])))
    assert ends(off.intervals["expected_calibration_error"])[0] > 0.1


def test_a_lower_limit_alone_excludes_perfect_calibration_at_its_level() -> None:
    """A p of 0.068 is that of one side: 95 % on that side hold 0, as 95 % on both sides do, and 90 % do not."""
    rng = np.random.default_rng(70)
    p = rng.uniform(0.05, 0.95, 400)
    y = (rng.random(400) < p).astype(np.int64)
    source, key = source_of(y, np.column_stack([1 - p, p])), "expected_calibration_error"
    lower, both, narrow = (
        answered(source, replace(ALL, **options))
        for options in ({"alternative": Alternative.GREATER}, {}, {"level": 0.9})
    )
    assert 0.05 < both.details["calibration"][key]["p_value"] < 0.1
    lows = [ends(one.intervals[key])[0] for one in (lower, both, narrow)]
    assert lows[:2] == [0.0, 0.0]
    assert lows[2] > 0.0


def test_errors_of_a_class_are_inverted_whatever_their_norm() -> None:
    """Reflected percentiles of calibrated probabilities lie above the truth, which is near 0."""
    rng = np.random.default_rng(9)
    p = rng.uniform(0.05, 0.95, 2000)
    y = (rng.random(2000) < p).astype(np.int64)
    texts = [f"class_calibration_error(norm={norm})" for norm in ("l1", "l2", "max")]
    asked = ("class_calibration_error@B", *(f"{text}@B" for text in texts), "l2_calibration_error")
    found = answered(source_of(y, np.column_stack([1 - p, p])), ALL, *asked).intervals
    # Of two classes both have the gaps of one, and so has their mean.
    mean = found["classwise_calibration_error"]
    assert ends(found["class_calibration_error@B"]) == pytest.approx(ends(mean), abs=1e-9)
    for name in asked:
        assert found[name]["method"] == "bootstrap_inverted"
        low, high = ends(found[name])
        assert low == 0.0
        assert high > 0.0
    skewed = answered(source_of(y, np.column_stack([1 - p**2, p**2])), ALL, *asked).intervals
    assert all(ends(skewed[name])[0] > 0.05 for name in asked)


@pytest.mark.parametrize("design", ["plain", "weights", "groups"])
def test_the_largest_of_all_cuts_has_the_limits_of_its_own_cut_and_below_them_its_bias(design: str) -> None:
    y, p = softmax_problem(150, 2, 21)
    rng = np.random.default_rng(21)
    sample_weight = rng.uniform(0.5, 2.0, y.size) if design == "weights" else None
    group_ids = np.arange(y.size) // 5 if design == "groups" else None
    weights = np.ones(y.size) if sample_weight is None else sample_weight
    gaps = [
        np.average(p[y == 1, 1] >= cut, weights=weights[y == 1])
        - np.average(p[y == 0, 1] >= cut, weights=weights[y == 0])
        for cut in p[:, 1]
    ]
    called = (p[:, 1] >= p[np.argmax(gaps), 1]).astype(int)
    named = np.array(["A", "B"])
    own = {"y_true": named[y].tolist(), "sample_weight": sample_weight, "group_ids": group_ids}
    at_all_cuts = Probabilities(**own, probabilities=p, labels=["A", "B"])
    method = IntervalMethod.BOOTSTRAP if design == "groups" else IntervalMethod.POSTERIOR
    asked = replace(ALL, sampling=Sampling(draws=200, method=method))
    found = evaluate(at_all_cuts.read("/input"), asked).intervals
    assert found["ks_statistic@B"]["method"].endswith("mover_best_cut")
    assert ends(found["ks_statistic@A"]) == pytest.approx(ends(found["ks_statistic@B"]), abs=1e-12)
    at_the_best = Predictions(**own, y_pred=named[called].tolist()).read("/input")
    low, high = ends(evaluate(at_the_best, Options()).intervals["balanced_accuracy"])
    assert ends(found["ks_statistic@B"])[1] == pytest.approx(2 * high - 1, abs=1e-9)
    assert 2 * low - 1.1 < ends(found["ks_statistic@B"])[0] < 2 * low - 1


def test_what_to_be_careful_about() -> None:
    y, p = softmax_problem(60, 3, 9)
    part = answered(source_of(y, p))
    biased = next(f for f in part.findings if f.code == "intervals_of_biased_values")
    assert biased.severity == "note"
    assert "h_measure@A" in biased.evidence["metrics"]
    assert "ks_statistic@A" not in biased.evidence["metrics"]
    few = next(f for f in part.findings if f.code == "area_intervals_of_few_samples")
    assert few.evidence["smallest"] == np.bincount(y).min() == 9
    assert few.severity == "warning"
    y, p = softmax_problem(120, 3, 9)
    few = next(f for f in answered(source_of(y, p), Options()).findings if f.code == "area_intervals_of_few_samples")
    assert 10 <= few.evidence["smallest"] < 30
    assert few.severity == "note"
    y, p = softmax_problem(60, 5, 9)
    few = next(f for f in answered(source_of(y, p), Options()).findings if f.code == "area_intervals_of_few_samples")
    assert few.message.startswith("The intervals of the areas under the curves of 5 classes are rough")
    assert few.message.endswith(" They are A, B, C, D and E.")
    large = answered(source_of(*softmax_problem(3000, 2, 9)), ALL)
    assert "area_intervals_of_few_samples" not in codes(large)


def test_a_loss_of_one_confident_mistake_is_pointed_out() -> None:
    y = np.tile([0, 1], 50)
    p = np.where(y == 1, 0.98, 0.02) + np.linspace(0, 0.01, 100)
    p[1] = 1e-9
    part = answered(source_of(y, np.column_stack([1 - p, p])), Options())
    thin = next(f for f in part.findings if f.code == "intervals_rest_on_few_samples")
    assert thin.evidence["effective_samples"] < 1.5
    assert thin.severity == "warning"
    assert "log_loss" in thin.evidence["metrics"]
    # Of several the one that rests on the fewest is named.
    assert " are rough: they rest on few samples, that of brier_score on about 1." in thin.message
    assert "intervals_rest_on_few_samples" not in codes(answered(source_of(*softmax_problem(500, 2, 1)), Options()))


def test_a_loss_of_some_mistakes_is_noted() -> None:
    y = np.tile([0, 1], 100)
    p = np.where(y == 1, 0.95, 0.05) + np.linspace(0, 0.01, 200)
    p[1:12:2] = 0.02
    found = answered(source_of(y, np.column_stack([1 - p, p])), Options()).findings
    thin = next(f for f in found if f.code == "intervals_rest_on_few_samples")
    assert 5 < thin.evidence["effective_samples"] < 10
    assert thin.severity == "note"


def test_curves_with_few_mistakes_are_pointed_out() -> None:
    y = np.repeat([0, 1], 100)
    scores = y + np.linspace(0.0, 0.5, 200)
    scores[99] = 1.4
    part = answered(source_of(y, scores))
    few = next(f for f in part.findings if f.code == "curve_intervals_of_few_mistakes")
    assert few.evidence["classes"] == ["A", "B"]
    assert few.evidence["effective_samples"] < 5
    assert "curve_intervals_of_few_mistakes" not in codes(answered(source_of(*softmax_problem(400, 2, 1))))
    assert "curve_intervals_of_few_mistakes" not in codes(answered(source_of(y, scores), Options()))


def test_large_inputs_are_resampled_in_subsets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resampling, "_ENTRIES", 2_000_000)
    part = answered(source_of(*softmax_problem(9000, 3, 10)))
    note = next(f for f in part.findings if f.code == "bootstrap_of_subsets")
    assert note.evidence == {"n_samples": 9000, "subset": 2000}
    assert ends(part.intervals["ks_statistic@A"])
    monkeypatch.setattr(resampling, "MOST_ENTRIES", 1000)
    refused = answered(source_of(*softmax_problem(9000, 3, 10)))
    assert "too many samples, classes or expressions" in refused.intervals["ks_statistic@A"]["reason"]
    assert ends(refused.intervals["roc_auc@A"])


def test_without_a_class_in_too_many_resamples_there_is_none() -> None:
    y, p = softmax_problem(60, 2, 11)
    kept = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:2]])
    sampled = replace(ALL, sampling=Sampling(draws=400, shares=Shares.SAMPLED))
    interval = answered(source_of(y[kept], p[kept]), sampled).intervals["ks_statistic@B"]
    assert interval["low"] is None
    assert interval["undefined_draws"] > 20
    assert "5%" in interval["reason"]


def test_sections_are_stored_with_their_intervals() -> None:
    part = answered(source_of(*softmax_problem(60, 3, 12)))
    stored = sections_as_json({SectionName.PROBABILITIES: part})
    assert write_json(stored)
    assert sections_from_json(stored)[SectionName.PROBABILITIES].intervals == part.intervals
    del stored["intervals"]
    assert sections_from_json(stored)[SectionName.PROBABILITIES].intervals == {}


@pytest.mark.slow
def test_limits_do_not_depend_on_what_else_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every expression is work in every resample: what is too much has no limits, all others keep theirs."""
    monkeypatch.setattr(resampling, "_ENTRIES", 4_000_000)
    monkeypatch.setattr(resampling, "MOST_ENTRIES", 12_000_000)
    source = source_of(*softmax_problem(300, 3, 13))
    texts = [f"mean(h_measure(a={k + 2})@A, recall@A)" for k in range(180)]
    wanted = Options(intervals=IntervalChoice.ALL)
    alone, some, many = (answered(source, wanted, *asked).intervals for asked in ((), texts[:5], texts))
    assert alone["ks_statistic@A"]["draws"] == 740
    assert all(some[name] == interval == many[name] for name, interval in alone.items())
    assert ends(some[texts[0]])
    assert some[texts[0]] == many[texts[0]]
    assert "too many" in many[texts[-1]]["reason"]
