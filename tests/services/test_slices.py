"""Runs judged slice by slice: values, differences, ranges, searches, and what is said of them."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any, TypeVar

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as sklearn_metrics
from statsmodels.stats.multitest import multipletests

from app.domain.decisions import PairVerdict
from app.domain.division import divided
from app.domain.errors import InvalidInput, OutOfReach
from app.domain.inputs.classified import Predictions
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.ranking import Judgements, Ranking, Retrieved
from app.domain.inputs.samples import Tally, WeightSums
from app.domain.members import as_json
from app.domain.options import Options
from app.domain.slices import restricted
from app.kernel.metrics.card import INPUTS_OF_CLASSES, Scope
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.slices.gaps import RateDifferences
from app.kernel.uncertainty.intervals import wilson
from app.services.estimands import Better, parse_estimands
from app.services.evaluate.reports import evaluate
from app.services.slices.differences import Side, Whole
from app.services.slices.slices import SearchQuestion, SlicesQuestion, judge_slices
from tests.bank import each
from tests.golden.comparing import differences
from tests.services.slicing import attributes_of, classified, clinic

CLINIC = clinic()
_Some = TypeVar("_Some")


def known(one: _Some | None) -> _Some:
    """What is there."""
    assert one is not None
    return one


SAMPLES = known(CLINIC.samples)


def judged(source: MatrixInput = CLINIC, **asked: Any) -> Any:
    return judge_slices(source, SlicesQuestion(**asked))


def alone(source: MatrixInput, mask: Mask) -> MatrixInput:
    return restricted(source, np.flatnonzero(mask))


def of(found: Any, metric: str, **where: object) -> Any:
    return one_of(found, **where).metrics[metric]


def one_of(found: Any, **where: object) -> Any:
    (one,) = (one for one in found.slices if one.where == where)
    return one


def mask_of(source: MatrixInput, **where: object) -> Mask:
    known = attributes_of(source)
    mask: Mask = np.logical_and.reduce([known[name] == value for name, value in where.items()])
    return mask


# --- values ----------------------------------------------------------------------------------------------------------


def test_values_are_those_of_evaluating_each_slice_by_itself_exactly() -> None:
    names = [
        "recall@D",
        "precision@D",
        "accuracy",
        "h_mean",
        "mcc",
        "macro_f1",
        "cohen_kappa",
        "gps(recall@*, precision@D)",
    ]
    found = judged(by=("site", "sex"), metrics=tuple(names))
    assert len(found.slices) == 5
    for one in found.slices:
        mask = mask_of(CLINIC, **one.where)
        itself, rest = (evaluate(alone(CLINIC, part), Options(metrics=tuple(names))) for part in (mask, ~mask))
        for name in names:
            assert one.metrics[name].value == itself.requested[name]
            assert one.metrics[name].reference == rest.requested[name]
        assert one.n_samples == int(mask.sum())
        assert one.prevalence == {"D": SAMPLES.truth[mask].mean()}


def test_a_class_asked_for_alone_and_with_all_others_is_one_value() -> None:
    alone, together = (
        judged(by=("site",), metrics=metrics) for metrics in (("recall@D",), ("recall@D", "recall@*", "recall@healthy"))
    )
    assert [one.metric for one in together.ranges] == ["recall@D", "recall@healthy"]
    for one, other in zip(alone.slices, together.slices, strict=True):
        assert other.metrics.keys() == {"recall@D", "recall@healthy"}
        assert other.metrics["recall@D"].difference.value == one.metrics["recall@D"].difference.value


def test_values_of_weighted_samples_are_those_of_each_slice_too() -> None:
    samples = SAMPLES
    weights = np.random.default_rng(1).random(samples.size)
    source = classified(samples.truth, samples.predicted, attributes_of(CLINIC), weights=weights)
    found = judged(source, by=("site",), metrics=("recall@D", "mcc"))
    for one in found.slices:
        mask = mask_of(source, **one.where)
        truth, predicted = samples.truth[mask], samples.predicted[mask]
        by_hand = sklearn_metrics.recall_score(truth, predicted, sample_weight=weights[mask])
        assert one.metrics["recall@D"].value == pytest.approx(by_hand, rel=1e-12)
        assert one.metrics["mcc"].value == evaluate(alone(source, mask), Options(metrics=("mcc",))).requested["mcc"]


def test_values_are_those_of_scikit_learn_group_by_group() -> None:
    scores = {
        "recall@D": sklearn_metrics.recall_score,
        "precision@D": sklearn_metrics.precision_score,
        "f1@D": sklearn_metrics.f1_score,
        "mcc": sklearn_metrics.matthews_corrcoef,
        "accuracy": sklearn_metrics.accuracy_score,
        "balanced_accuracy": sklearn_metrics.balanced_accuracy_score,
    }
    found = judged(by=("site", "sex"), depth=2, metrics=tuple(scores), minimum_samples=1)
    truth, predicted = SAMPLES.truth, SAMPLES.predicted
    known = [one for one in found.slices if one.where["site"] != "F"]
    assert len(known) == 6
    for one in known:
        mask = mask_of(CLINIC, **one.where)
        for name, score in scores.items():
            own, rest = (float(score(truth[part], predicted[part])) for part in (mask, ~mask))
            assert one.metrics[name].value == pytest.approx(own, rel=1e-12)
            assert one.metrics[name].difference.value == pytest.approx(own - rest, rel=1e-9, abs=1e-12)


def test_limits_of_a_slice_are_those_of_its_samples_alone() -> None:
    value = of(judged(by=("site",), metrics=("recall@D",)), "recall@D", site="C")
    counts = value.counts
    low, high = wilson(np.array(counts.hits), np.array(counts.among))
    assert (value.low, value.high) == (float(low), float(high))
    assert counts.beyond == pytest.approx(counts.among * counts.reference_hits / counts.reference_among - counts.hits)


def test_counts_of_a_rate_are_those_that_its_value_is_a_share_of() -> None:
    names = ("recall@D", "fnr@D", "fpr@D", "predicted_prevalence@D", "predicted_prevalence@healthy", "error_rate")
    found = judged(by=("site",), metrics=names)
    for one in found.slices:
        for name in names:
            value, counts = one.metrics[name], one.metrics[name].counts
            assert value.value == pytest.approx(counts.hits / counts.among, rel=1e-12)
            assert value.reference == pytest.approx(counts.reference_hits / counts.reference_among, rel=1e-12)
    missed = of(found, "fnr@D", site="C").counts
    assert missed.beyond == pytest.approx(of(found, "recall@D", site="C").counts.beyond)
    of_missed = next(one for one in judged(by=("site",), metrics=("fnr@D",)).findings if one.code == "slice_worse")
    assert f"({int(missed.hits)} of {int(missed.among)}), elsewhere" in of_missed.message


def test_slices_of_weights_have_no_causes_of_what_needs_numbers_of_samples() -> None:
    truth, site = np.arange(240) % 2, np.repeat(["A", "B"], 120)
    sent = Predictions(
        y_true=truth.tolist(),
        y_pred=np.where(np.arange(240) % 7 == 0, 1 - truth, truth).tolist(),
        sample_weight=np.linspace(0.5, 2.0, 240).tolist(),
        attributes={"site": site.tolist()},
    )
    found = judge_slices(sent.read("/input"), SlicesQuestion(by=("site",), metrics=("adjusted_rand", "accuracy")))
    for one in found.slices:
        value = one.metrics["adjusted_rand"]
        assert (value.value, value.reference) == (None, None)
        assert value.causes is not None
        assert (value.causes.difference, value.causes.items) == (None, None)
        of_accuracy = one.metrics["accuracy"].causes
        assert of_accuracy is not None
        assert of_accuracy.items is not None


def test_slices_of_different_sizes_are_not_held_against_each_other_by_numbers_of_samples() -> None:
    names = ("tp@D", "support@D", "fossum_similarity@D", "zero_one_loss_count", "chi_squared", "kappa_standard_error")
    found = judged(by=("site",), metrics=names)
    assert [one.code for one in found.findings] == ["slices_too_small"]
    assert found.ranges == []
    for one in found.slices:
        for value in one.metrics.values():
            assert value.value is not None
            assert (value.difference.value, value.difference.p_value, value.at_reference_prevalence) == (None,) * 3
            assert value.difference.reason == "it depends on the number of samples, which slices do not share"
            assert value.causes is None or value.causes.items is None


def test_every_class_of_several_has_a_value() -> None:
    random = np.random.default_rng(2)
    truth = random.integers(0, 3, 900)
    predicted = np.where(random.random(900) < 0.8, truth, random.integers(0, 3, 900))
    source = classified(truth, predicted, {"lab": random.choice(["x", "y"], 900)}, ("a", "b", "c"))
    found = judged(source, by=("lab",))
    assert list(found.slices[0].metrics) == ["recall@a", "recall@b", "recall@c", "h_mean"]
    assert sum(found.slices[0].prevalence.values()) == pytest.approx(1.0)
    assert {one.metric for one in found.ranges} == set(found.slices[0].metrics)


# --- differences -----------------------------------------------------------------------------------------------------


def test_a_rate_differs_from_the_rest_by_newcombe() -> None:
    value = of(judged(by=("site",), metrics=("recall@D",)), "recall@D", site="C")
    counts = value.counts
    gap = RateDifferences(
        np.array([[counts.hits], [counts.reference_hits]]), np.array([[counts.among], [counts.reference_among]])
    )
    low, high = gap.limits(0.95)
    difference = value.difference
    assert (difference.value, difference.low, difference.high) == (gap.gaps[0], low[0], high[0])
    assert difference.p_value == gap.p[0]
    assert difference.verdict is PairVerdict.WORSE


def test_a_false_alarm_rate_is_worse_where_it_is_higher() -> None:
    truth = np.repeat([0, 0, 1], [400, 400, 200])
    predicted = np.concatenate([np.arange(400) < 100, np.arange(400) < 10, np.ones(200)])
    lab = np.repeat(["x", "y", "y"], [400, 400, 200])
    found = judged(classified(truth, predicted, {"lab": lab}), by=("lab",), metrics=("fpr@D",))
    value = of(found, "fpr@D", lab="x")
    assert value.difference.value == pytest.approx(0.225)
    assert value.difference.low < 0.225 < value.difference.high
    assert value.difference.verdict is PairVerdict.WORSE
    assert value.counts.beyond == pytest.approx(90.0)
    assert of(found, "fpr@D", lab="y").difference.verdict is PairVerdict.BETTER


def test_p_of_rates_are_adjusted_by_their_exact_mid_p() -> None:
    found = judged(by=("site", "sex", "age"), bins={"age": [30, 50, 70]}, metrics=("recall@D", "precision@D"))
    values = [value for one in found.slices for value in one.metrics.values()]
    exact = []
    for value in values:
        c = value.counts
        table = stats.hypergeom(c.among + c.reference_among, c.hits + c.reference_hits, c.among)
        middle = table.pmf(c.hits) / 2
        exact.append(min(2 * min(table.cdf(c.hits) - middle, table.sf(c.hits) + middle), 1.0))
    adjusted = multipletests(exact, method="fdr_bh")[1]
    for value, expected in zip(values, adjusted, strict=True):
        assert value.difference.p_adjusted == pytest.approx(max(expected, value.difference.p_value), rel=1e-6)


def test_a_number_that_most_samples_have_alike_is_divided_above_it() -> None:
    random = np.random.default_rng(3)
    truth = random.integers(0, 2, 400)
    visits = np.where(random.random(400) < 0.85, 0.0, random.integers(1, 60, 400))
    found = judged(classified(truth, truth, {"visits": visits}, ("N", "D")), by=("visits",), metrics=("accuracy",))
    first, size = float(visits[visits > 0].min()), np.count_nonzero(visits)
    assert [one.where["visits"] for one in found.slices] == [{"from": None, "to": first}, {"from": first, "to": None}]
    assert [one.n_samples for one in found.slices] == [400 - size, size]


def test_a_number_that_no_sample_of_a_slice_has_makes_one_of_those_without() -> None:
    truth = np.tile([0, 1], 50)
    age = np.array([*range(50), *[None] * 50], dtype=object)
    source = restricted(classified(truth, truth, {"age": age}, ("N", "D")), np.arange(50, 100))
    parts, small = divided(source, "age", 30)
    assert [(one.where, one.size) for one in parts] == [({"age": None}, 50)]
    assert small == []


def test_an_adjusted_p_is_never_below_the_p_that_goes_with_the_limits() -> None:
    """Fisher's mid-p of 38 and 30 of 40 is smaller than the p at which a limit of their difference touches 0."""
    predicted = np.concatenate([np.arange(40) < 38, np.arange(40) < 30])
    lab = np.repeat(["x", "y"], 40)
    found = judged(classified(np.ones(80), predicted, {"lab": lab}), by=("lab",), metrics=("recall@D",))
    difference = of(found, "recall@D", lab="x").difference
    table = stats.hypergeom(80, 68, 40)
    assert 2 * (table.sf(38) + table.pmf(38) / 2) < difference.p_value == difference.p_adjusted


def test_against_all_samples_a_rate_has_its_difference_to_the_rest_in_part() -> None:
    rest, overall = (
        of(judged(by=("site",), metrics=("recall@D", "h_mean"), reference=reference), "recall@D", site="C")
        for reference in ("rest", "overall")
    )
    part = 1.0 - rest.counts.among / (rest.counts.among + rest.counts.reference_among)
    assert overall.difference.value == pytest.approx(overall.value - overall.reference, rel=1e-9)
    for end in ("value", "low", "high"):
        assert getattr(overall.difference, end) == pytest.approx(part * getattr(rest.difference, end), rel=1e-12)
    assert overall.difference.p_value == rest.difference.p_value


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["h_mean", "mcc", "macro_f1"])
def test_what_is_no_rate_differs_as_often_as_resamples_do(metric: str) -> None:
    random = np.random.default_rng(7)
    samples = SAMPLES
    score = {
        "mcc": sklearn_metrics.matthews_corrcoef,
        "macro_f1": lambda y, p: sklearn_metrics.f1_score(y, p, average="macro"),
        "h_mean": lambda y, p: 2 / sum(1 / one for one in sklearn_metrics.recall_score(y, p, average=None)),
    }[metric]
    inside = mask_of(CLINIC, site="C")
    for reference in ("rest", "overall"):
        value = of(judged(by=("site",), metrics=(metric,), reference=reference), metric, site="C").difference
        drawn = []
        for _ in range(300):
            rows = random.integers(0, samples.size, samples.size)
            truth, predicted, mine = samples.truth[rows], samples.predicted[rows], inside[rows]
            other = ~mine if reference == "rest" else np.ones(rows.size, dtype=bool)
            drawn.append(score(truth[mine], predicted[mine]) - score(truth[other], predicted[other]))
        assert value.high - value.value == pytest.approx(1.96 * np.std(drawn), rel=0.12)


def test_a_slice_of_another_column_shares_samples_with_the_reference() -> None:
    found = judged(by=("site",), metrics=("recall@D", "h_mean", "precision@D"), reference={"sex": "f"})
    value = of(found, "recall@D", site="C")
    women = mask_of(CLINIC, sex="f")
    assert value.reference == evaluate(alone(CLINIC, women), Options(metrics=("recall@D",))).requested["recall@D"]
    mine, members = mask_of(CLINIC, site="C"), SAMPLES.truth == 1
    hits = SAMPLES.predicted == 1
    first, second = (np.where(one & members, hits - hits[one & members].mean(), 0.0) for one in (mine, women))
    rho = float(first @ second / np.sqrt((first @ first) * (second @ second)))
    assert 0.1 < rho < 0.9
    c = value.counts
    gap = RateDifferences(np.array([[c.hits], [c.reference_hits]]), np.array([[c.among], [c.reference_among]]), rho)
    assert value.difference.low == pytest.approx(gap.limits(0.95)[0][0], rel=1e-9)
    assert of(found, "h_mean", site="C").difference.p_value is not None


def test_a_part_of_the_reference_is_held_against_it_as_if_nothing_else_were_there() -> None:
    names = ("recall@D", "precision@D", "mcc")
    crossed = judged(by=("site", "sex"), depth=2, metrics=names, reference={"sex": "f"})
    women = judged(alone(CLINIC, mask_of(CLINIC, sex="f")), by=("site",), metrics=names, reference="overall")
    for name in names:
        one, other = of(crossed, name, site="C", sex="f"), of(women, name, site="C")
        assert (one.value, one.reference) == (other.value, other.reference)
        for end in ("value", "low", "high", "p_value"):
            assert getattr(one.difference, end) == pytest.approx(getattr(other.difference, end), rel=1e-9)


def test_the_level_is_that_of_the_verdicts_too() -> None:
    (p,) = {
        of(judged(by=("sex",), metrics=("precision@D",)), "precision@D", sex=sex).difference.p_adjusted for sex in "fm"
    }
    assert 0.05 < p < 0.95
    for level, verdict in ((1.0 - 0.9 * p, "undecided"), (1.0 - 1.1 * p, "worse")):
        found = [of(judged(by=("sex",), metrics=("precision@D",), level=level), "precision@D", sex=sex) for sex in "fm"]
        assert verdict in {one.difference.verdict.value for one in found}


def test_the_reference_is_not_held_against_itself() -> None:
    found = judged(by=("site",), metrics=("recall@D",), reference={"site": "A"})
    difference = of(found, "recall@D", site="A").difference
    assert (difference.value, difference.p_value, difference.p_adjusted) == (None, None, None)
    assert difference.verdict is PairVerdict.UNDECIDED
    assert difference.reason == "it is what the others are held against"

    few = judged(by=("site",), metrics=("recall@D",), reference={"site": "A"}, minimum_samples=1200)
    assert [one.where for one in few.slices] == [{"site": "A"}]
    assert few.slices[0].metrics["recall@D"].difference.reason == difference.reason


def test_a_rate_of_one_group_differs_by_as_much_as_its_values_do() -> None:
    """Its samples are fewer than those of the slice."""
    samples, site = SAMPLES, attributes_of(CLINIC)["site"]
    groups = np.where((site == "C") & (samples.truth == 1), -1, np.arange(samples.size))
    source = classified(samples.truth, samples.predicted, attributes_of(CLINIC), groups=groups)
    value = of(judged(source, by=("site",), metrics=("recall@D",)), "recall@D", site="C")
    assert value.difference.value == value.value - value.reference
    assert (value.difference.low, value.difference.p_value, value.difference.verdict.value) == (None, None, "undecided")
    assert "in one group" in value.difference.reason


def test_a_slice_with_all_samples_of_a_rate_is_no_different_from_all() -> None:
    samples, site = SAMPLES, attributes_of(CLINIC)["site"]
    truth = np.where(site == "C", samples.truth, 0)
    source = classified(truth, samples.predicted, attributes_of(CLINIC))
    value = of(judged(source, by=("site",), metrics=("recall@D",), reference="overall"), "recall@D", site="C")
    assert value.value == value.reference
    assert (value.difference.value, value.difference.low) == (0.0, None)
    assert "no other samples" in value.difference.reason


@pytest.mark.parametrize("reference", ["rest", "overall"])
def test_a_slice_of_which_the_rest_is_one_group_is_left_out_whatever_it_is_held_against(reference: str) -> None:
    samples, site = SAMPLES, attributes_of(CLINIC)["site"]
    groups = np.where(site == "A", np.arange(samples.size), -1)
    source = classified(samples.truth, samples.predicted, {"a": site == "A"}, groups=groups)
    found = judged(source, by=("a",), metrics=("accuracy",), reference=reference)
    assert [one.where for one in found.left_out] == [{"a": False}, {"a": True}]


def test_groups_count_as_one_each() -> None:
    samples = SAMPLES
    twice = {name: np.repeat(column, 4) for name, column in attributes_of(CLINIC).items()}
    groups = np.repeat(np.arange(samples.size), 4)
    source = classified(np.repeat(samples.truth, 4), np.repeat(samples.predicted, 4), twice, groups=groups)
    metrics = ("recall@D", "mcc", "precision@D")
    for reference in ("rest", "overall"):
        plain, grouped = (judged(one, by=("site",), metrics=metrics, reference=reference) for one in (CLINIC, source))
        for metric in metrics:
            one, other = (of(found, metric, site="C").difference for found in (plain, grouped))
            assert other.value == pytest.approx(one.value, rel=1e-9)
            assert other.high - other.low == pytest.approx(one.high - one.low, rel=0.02)


def test_groups_of_one_sample_are_samples() -> None:
    random, side = np.random.default_rng(3), 20
    size = 2 * side
    truth, wrong, lab = np.arange(size) % 2, random.random(size) < 0.3, np.repeat(["x", "y"], side)
    predicted = np.where(wrong, 1 - truth, truth)
    plain, grouped = (
        of(judged(one, by=("lab",), metrics=("mcc",), minimum_samples=5), "mcc", lab="x").difference
        for one in (
            classified(truth, predicted, {"lab": lab}),
            classified(truth, predicted, {"lab": lab}, groups=np.arange(size)),
        )
    )
    assert grouped == plain


def test_samples_in_groups_or_with_weights_have_no_exact_tails_and_groups_no_draws() -> None:
    random, size = np.random.default_rng(3), 240
    truth, lab = random.random(size) < 0.2, np.where(np.arange(size) % 4 < 1, "x", "y")
    predicted = np.where(truth, random.random(size) < 0.6, random.random(size) < 0.1)
    designs: dict[str, dict[str, Any]] = {
        "groups": {"groups": np.arange(size) // 8},
        "weights": {"weights": random.gamma(2.0, size=size)},
    }
    for name, design in designs.items():
        found = judged(classified(truth, predicted, {"lab": lab}, **design), by=("lab",), metrics=("recall@D",))
        difference = of(found, "recall@D", lab="x").difference
        # Both slices have the same p, which that of many is then.
        assert difference.p_adjusted == pytest.approx(difference.p_value, rel=1e-9), name
    plain, grouped = (
        of(judged(one, by=("lab",), metrics=("precision@D",)), "precision@D", lab="x").at_reference_prevalence
        for one in (
            classified(truth, predicted, {"lab": lab}),
            classified(truth, predicted, {"lab": lab}, **designs["groups"]),
        )
    )
    assert (plain.difference.method, grouped.difference.method) == ("posterior", "grouped_influence")


def test_mean_losses_differ_by_welch() -> None:
    random = np.random.default_rng(9)
    truth, lab = random.integers(0, 2, 500), random.choice(["x", "y"], 500, p=[0.3, 0.7])
    p = np.clip(np.where(truth == 1, 0.7, 0.3) + random.normal(0, 0.2, 500), 0.02, 0.98)
    outputs = np.stack([1 - p, p], axis=1)
    source = classified(truth, outputs.argmax(axis=1), {"lab": lab}, outputs=outputs)
    found = of(judged(source, by=("lab",), metrics=("log_loss", "roc_auc@D")), "log_loss", lab="x")
    losses = -np.log(outputs[np.arange(500), truth])
    expected = stats.ttest_ind(losses[lab == "x"], losses[lab == "y"], equal_var=False)
    assert found.difference.p_value == pytest.approx(expected.pvalue, rel=1e-6)
    assert found.difference.low == pytest.approx(expected.confidence_interval().low, rel=1e-6)
    assert found.difference.method == "welch_t"


def test_small_slices_have_no_adjusted_p_of_what_is_no_rate() -> None:
    found = judged(by=("age",), bins={"age": [22, 50]}, metrics=("mcc", "recall@D"))
    small = one_of(found, age={"from": None, "to": 22})
    assert 30 <= small.n_samples < 100
    difference = small.metrics["mcc"].difference
    assert difference.p_value is not None
    assert (difference.p_adjusted, difference.verdict) == (None, PairVerdict.UNDECIDED)
    assert "so few samples" in (difference.reason or "")


# --- prevalence ------------------------------------------------------------------------------------------------------


def test_a_gap_that_is_one_of_prevalence_is_called_that() -> None:
    found = judged(by=("site",), metrics=("recall@D", "precision@D"))
    value = of(found, "precision@D", site="B")
    assert value.difference.verdict is PairVerdict.WORSE
    at = value.at_reference_prevalence
    assert at is not None
    mask = mask_of(CLINIC, site="B")
    truth, predicted = SAMPLES.truth, SAMPLES.predicted
    share = truth[~mask].mean()
    recall, alarms = predicted[mask & (truth == 1)].mean(), predicted[mask & (truth == 0)].mean()
    by_hand = share * recall / (share * recall + (1 - share) * alarms)
    assert at.value == pytest.approx(by_hand, rel=1e-12)
    assert at.difference.value == pytest.approx(by_hand - value.reference, rel=1e-9)
    told = [finding for finding in found.findings if finding.code == "gap_of_prevalence"]
    assert [finding.evidence["where"] for finding in told] == [{"site": "B"}]
    assert "comes from prevalence: that D is rarer (4 % against 29 %, 37 of 887 against 606 of" in told[0].message
    assert of(found, "recall@D", site="B").at_reference_prevalence is None


@pytest.mark.parametrize(("against", "weighted"), [("rest", False), ("overall", False), ("overall", True)])
def test_causes_of_a_slice_are_shapley_values_whose_limits_follow_from_every_sample(
    against: str, weighted: bool
) -> None:
    mask = mask_of(CLINIC, sex="f")
    weights = np.random.default_rng(1).uniform(0.5, 2.0, mask.size) if weighted else None
    source = classified(SAMPLES.truth, SAMPLES.predicted, attributes_of(CLINIC), weights=weights)
    value = of(judged(source, by=("sex",), metrics=("precision@D",), reference=against), "precision@D", sex="f")
    weights = np.ones(mask.size) if weights is None else weights
    held = np.ones(mask.size, dtype=bool) if against == "overall" else ~mask
    parts = by_orders(sides := np.stack([in_cells(source, mask, weights), in_cells(source, held, weights)]))
    assert value.causes.difference == pytest.approx(value.difference.value, abs=1e-12)
    assert [one.value for one in value.causes.items] == pytest.approx(parts, abs=1e-12)
    assert sum(one.value for one in value.causes.items) == pytest.approx(value.difference.value, abs=1e-12)
    # What a sample adds to the parts, by giving it a little more weight on every side that it is on.
    step, variance = 1e-4, 0.0
    for place in range(4):
        for side in (mask, ~mask):
            cell = side & (SAMPLES.truth * 2 + SAMPLES.predicted == place)
            more = np.zeros((2, 4))
            more[:, place] = step * side[mask].all(), step * (held & side).any()
            moved = [np.array(by_orders(sides + sign * more.reshape(2, 2, 2))) for sign in (1, -1)]
            variance = variance + ((moved[0] - moved[1]) / (2 * step)) ** 2 * (weights[cell] ** 2).sum()
    ends = np.array([[one.low, one.high] for one in value.causes.items])
    known = np.array(variance) > 1e-12
    assert np.ptp(ends, axis=1)[known] / 2 == pytest.approx(1.96 * np.sqrt(variance)[known], rel=0.003)


def by_orders(sides: Array) -> list[float]:
    """Shapley values of precision@D by all orders of shares and both rows."""
    shares = [one.sum(axis=1) / one.sum() for one in sides]
    rows = [one / one.sum(axis=1, keepdims=True) for one in sides]

    def at(which: Sequence[int]) -> float:
        mixed = [shares[which[0]][k] * rows[which[1 + k]][k] for k in range(2)]
        return float(mixed[1][1] / (mixed[0][1] + mixed[1][1]))

    found = np.zeros(3)
    for order in permutations(range(3)):
        which = [1, 1, 1]
        for factor in order:
            before = at(which)
            which[factor] = 0
            found[factor] += (at(which) - before) / 6
    return found.tolist()


def in_cells(source: MatrixInput, mask: Mask, weights: Array) -> Array:
    samples = known(source.samples)
    cells = np.bincount(samples.truth[mask] * 2 + samples.predicted[mask], weights[mask], 4)
    return cells.reshape(2, 2).astype(np.float64)


def test_of_too_many_slices_and_classes_no_causes_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.services.slices.slices._SECONDS", 0.002)
    found = judged(by=("site",), metrics=("precision@D", "npv@D", "recall@D"))
    first, second, still = (of(found, name, site="B").causes for name in ("precision@D", "npv@D", "recall@D"))
    assert (first.reason, still) == (None, None)
    assert second.items is None
    assert "ask for fewer" in second.reason


def test_few_members_of_a_class_have_draws_of_their_rows() -> None:
    found = judged(by=("site",), metrics=("precision@D",))
    few, many = (of(found, "precision@D", site=site).at_reference_prevalence for site in ("B", "A"))
    assert (few.difference.method, many.difference.method) == ("posterior", "influence")
    assert few.difference.low < few.difference.value < few.difference.high


def test_a_class_that_a_slice_lacks_leaves_no_value_at_other_shares() -> None:
    samples = SAMPLES
    lab = np.where((samples.truth == 0) & (np.arange(samples.size) % 5 == 0), "x", "y")
    outputs = np.where(samples.predicted[:, None] == np.arange(2), 0.9, 0.1)
    found = judged(
        classified(samples.truth, samples.predicted, {"lab": lab}, outputs=outputs),
        by=("lab",),
        metrics=("precision@D", "recall@D", "log_loss"),
    )
    for name in ("precision@D", "log_loss"):
        at = of(found, name, lab="x").at_reference_prevalence
        assert at.value is None
        assert at.difference.reason.startswith("class_not_in_slice")
        assert of(found, name, lab="y").at_reference_prevalence.value is not None
    value = of(found, "recall@D", lab="x")
    assert (value.value, value.difference.value) == (None, None)
    assert value.reason is not None
    assert value.difference.verdict is PairVerdict.UNDECIDED


# --- ranges, left out, searches --------------------------------------------------------------------------------------


def test_ranges_are_over_the_slices_of_each_attribute() -> None:
    found = judged(by=("site", "sex"), metrics=("recall@D",))
    by_site, by_sex = found.ranges
    assert (by_site.by, by_sex.by) == ("site", "sex")
    values = {one.where["site"]: one.metrics["recall@D"].value for one in found.slices if "site" in one.where}
    assert by_site.difference == max(values.values()) - min(values.values())
    assert by_site.ratio == min(values.values()) / max(values.values())
    assert by_site.smallest == {"site": "C"}
    assert 0.0 < by_site.low < by_site.difference < by_site.high
    assert by_site.ratio_low < by_site.ratio < by_site.ratio_high


def test_slices_too_small_or_without_a_rest_are_left_out() -> None:
    found = judged(by=("site",), metrics=("recall@D",))
    assert [(one.where, one.n_samples, one.reason) for one in found.left_out] == [
        ({"site": "F"}, 9, "fewer than 30 samples")
    ]
    assert [finding.code for finding in found.findings][-1] == "slices_too_small"
    samples = SAMPLES
    source = classified(samples.truth, samples.predicted, {"site": np.full(samples.size, "A")})
    found = judged(source, by=("site",), metrics=("recall@D",))
    assert (found.slices, found.ranges) == ([], [])
    assert "no other samples" in found.left_out[0].reason


def test_rates_of_rare_errors_read_as_what_they_are() -> None:
    truth, site = np.zeros(20_000, dtype=np.intp), np.repeat(["A", "B"], 10_000)
    predicted = np.zeros_like(truth)
    predicted[:300] = predicted[10_000:10_004] = truth[-50:] = predicted[-50:] = 1
    found = judged(classified(truth, predicted, {"site": site}, ("healthy", "D")), by=("site",), metrics=("fpr@D",))
    (worse,) = (one.message for one in found.findings if one.code == "slice_worse")
    assert worse.startswith("In site A, fpr@D is 0.030 (300 of 10,000), elsewhere 0.0004 (4 of 9,950)")


def test_one_more_slice_is_one() -> None:
    truth, site = np.zeros(22 * 200, dtype=np.intp), np.repeat([f"s{place:02}" for place in range(22)], 200)
    predicted = np.zeros_like(truth)
    predicted[: 21 * 200] = np.tile(np.arange(200) < 100, 21)
    source = classified(truth, predicted, {"site": site}, ("healthy", "D"))
    found = judged(source, by=("site",), metrics=("fpr@D",), reference={"site": "s21"})
    (more,) = (one.message for one in found.findings if one.code == "more_slices_worse")
    assert more == "1 more slice is worse beyond chance."


def test_whom_it_is_worse_for_is_said_in_counts() -> None:
    found = judged(by=("site", "sex"), depth=2, metrics=("recall@D", "h_mean"))
    value = of(found, "recall@D", site="C", sex="f")
    missed = int(value.counts.among - value.counts.hits)
    first = found.findings[0]
    assert first.code == "slice_worse"
    assert f"In site C, sex f, {missed} of {int(value.counts.among)} D are missed, elsewhere" in first.message
    assert first.evidence["metrics_worse"] == ["recall@D", "h_mean"]


def test_a_search_finds_the_slice_that_is_worse_and_no_other() -> None:
    found = judged(search=SearchQuestion("recall@D", 3), bins={"age": 4})
    assert [one.where for one in found.slices] == [{"site": "C", "sex": "f"}]
    difference = found.slices[0].metrics["recall@D"].difference
    assert difference.verdict is PairVerdict.WORSE
    assert difference.p_adjusted < 1e-6
    assert found.searched.slices > 20
    nothing = judged(search=SearchQuestion("precision@D", 2), by=("sex",))
    assert (nothing.slices, nothing.searched.slices) == ([], 2)
    assert nothing.findings[0].code == "no_weak_slice"
    # More conditions than attributes there are none, and chance has no more to choose from.
    two, three = (judged(search=SearchQuestion("recall@D", depth), by=("site", "sex")).slices for depth in (2, 3))
    assert two[0].metrics["recall@D"].difference == three[0].metrics["recall@D"].difference


@each("design", ["weights", "groups"])
def test_a_search_knows_weights_and_groups(design: str) -> None:
    samples, random = SAMPLES, np.random.default_rng(2)
    more: dict[str, Any] = {"weights": random.choice([0.5, 1.5], samples.size)} if design == "weights" else {}
    more |= {"groups": np.arange(samples.size) // 3} if design == "groups" else {}
    source = classified(samples.truth, samples.predicted, attributes_of(CLINIC), **more)
    found = judged(source, search=SearchQuestion("recall@D", 2), bins={"age": 2})
    # Of the site and the women in it only one is worse, and which is clearer hangs on the weights.
    assert found.slices[0].where in ({"site": "C", "sex": "f"}, {"site": "C"})
    assert found.slices[0].metrics["recall@D"].difference.p_adjusted < 1e-4
    assert judged(source, search=SearchQuestion("specificity@D", 2), bins={"age": 2}).slices == []


@each("reference", ["rest", "overall"])
def test_a_slice_whose_samples_weigh_the_same_weighs_that_among_others(reference: str) -> None:
    at_b = mask_of(CLINIC, site="B")
    even = np.where(at_b, 3.0, np.linspace(0.5, 2.0, at_b.size))
    nearly = even * np.where(at_b, np.linspace(1.0, 1.0 + 1e-13, at_b.size), 1.0)
    metrics = ("recall@D", "mcc", "macro_f1")
    found, own = (
        of_weights(judged(classified(SAMPLES.truth, SAMPLES.predicted, attributes_of(CLINIC), weights=one), **asked))
        for asked in [{"by": ("site",), "metrics": metrics, "reference": reference}]
        for one in (even, nearly)
    )
    assert not list(differences(found, own))


def of_weights(found: Any) -> Any:
    return as_json([{name: one.difference for name, one in each.metrics.items()} for each in found.slices])


def test_samples_of_no_weight_make_no_slice_of_a_search_large_enough() -> None:
    random = np.random.default_rng(0)
    site, truth = np.tile([*"ABC"], 400), random.integers(0, 2, 1200)
    predicted = np.where(random.random(1200) < np.where(site == "B", 0.3, 0.9), truth, 1 - truth)
    weights = np.ones(1200)
    weights[np.flatnonzero(site == "B")[150:]] = 0.0
    source = classified(truth, predicted, {"site": site}, weights=weights)
    some, many = (judged(source, search=SearchQuestion("accuracy", 1), minimum_samples=size) for size in (100, 300))
    assert [one.where for one in some.slices] == [{"site": "B"}]
    assert (many.slices, many.searched.slices) == ([], 2)


def test_a_search_among_no_samples_finds_nothing() -> None:
    healthy, site = np.zeros(60, dtype=np.intp), np.repeat([*"AB"], 30)
    source = classified(healthy, healthy, {"site": site}, weights=np.linspace(1.0, 2.0, 60))
    found = judged(source, by=(), search=SearchQuestion(metric="recall@D", depth=1))
    assert (found.slices, found.searched.slices) == ([], 0)


def test_a_slice_of_samples_without_weight_has_no_values() -> None:
    site = np.repeat([*"ABC"], 40)
    y = np.arange(120) % 2
    source = classified(y, y, {"site": site}, weights=(site != "C").astype(float), groups=np.arange(120) // 2)
    assert one_of(judged(source, by=("site",), metrics=("accuracy",)), site="C").metrics["accuracy"].value is None


def test_what_rates_count_is_right_so_a_search_adds_up_the_others() -> None:
    for metric in catalogue().of_matrices.metrics:
        (found,) = parse_estimands((metric.key + "@*" * (metric.card.scope is Scope.CLASS),), ("0", "1", "2"), None)
        if found.rates is not None and found.preference is not None:
            assert (found.rates[0].line.slope > 0) is (found.preference.better is Better.HIGHER), metric.key
    right, wrong = (judged(search=SearchQuestion(metric, 2), by=("site",)) for metric in ("recall@D", "fnr@D"))
    assert [one.where for one in wrong.slices] == [one.where for one in right.slices] != []


def test_a_search_adds_up_losses_of_probabilities() -> None:
    random, samples = np.random.default_rng(8), SAMPLES
    high = np.clip(0.6 * samples.predicted + 0.4 * random.random(samples.size), 0.01, 0.99)
    outputs = np.stack([1 - high, high], 1)
    source = classified(samples.truth, samples.predicted, attributes_of(CLINIC), outputs=outputs)
    found = judged(source, search=SearchQuestion("log_loss", 2), by=("site", "sex"))
    first = found.slices[0]
    assert first.where == {"site": "C", "sex": "f"}
    assert first.metrics["log_loss"].value > first.metrics["log_loss"].reference
    weights = random.gamma(2.0, size=samples.size)
    weighted = classified(samples.truth, samples.predicted, attributes_of(CLINIC), weights=weights, outputs=outputs)
    (estimand,) = parse_estimands(("log_loss",), weighted.labels, 1, inputs=INPUTS_OF_CLASSES)
    lost = Whole(weighted, 0.95).mean_of_samples(estimand, Side(np.arange(samples.size), weighted))
    losses = -np.log(outputs[np.arange(samples.size), samples.truth])
    assert lost == pytest.approx(losses - np.average(losses, weights=weights), rel=1e-3)
    # Another metric is no sum over the samples.
    for metric in ("h_mean", "roc_auc@D"):
        with pytest.raises(InvalidInput, match="expected a rate"):
            judged(source, search=SearchQuestion(metric))


def test_more_conditions_than_attributes_and_too_many_values_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at least 2 attributes"):
        judged(by=("site",), depth=2)
    samples = SAMPLES
    source = classified(samples.truth, samples.predicted, {"id": (np.arange(samples.size) // 3).astype(str)})
    betas = tuple(f"f_beta(beta={beta})@*" for beta in range(2, 12))
    with pytest.raises(OutOfReach, match="1000 slices with 22 values"):
        judged(source, by=("id",), minimum_samples=1, metrics=("recall@*", *betas))


def test_rankings_are_sliced_by_query() -> None:
    random = np.random.default_rng(4)
    queries = np.repeat(np.arange(120), 4)
    relevance, scores = random.integers(0, 2, 480), random.random(480)
    language = np.where(queries % 2, "de", "en")
    source = Ranking(
        query_ids=queries.tolist(),
        relevance=relevance.tolist(),
        scores=scores.tolist(),
        attributes={"language": language.tolist()},
    ).read("/input")
    found = judged(source, by=("language",), metrics=("mean_average_precision",))
    assert (found.n_samples, [one.n_samples for one in found.slices]) == (120, [60, 60])
    value = of(found, "mean_average_precision", language="de")
    mine = (queries % 2 == 1) & (np.repeat(relevance.reshape(120, 4).sum(axis=1), 4) > 0)
    expected = np.mean(
        [
            sklearn_metrics.average_precision_score(relevance[rows], scores[rows])
            for query in np.unique(queries[mine])
            if (rows := queries == query).any()
        ]
    )
    assert value.value == pytest.approx(expected, rel=1e-12)
    assert value.difference.method == "welch_t"
    # Judgements apart from what was retrieved say whom a query is about too; some queries were never judged.
    items = np.tile(np.arange(4), 120)
    apart = Ranking(
        judgements=Judgements(query_ids=queries.tolist(), item_ids=items.tolist(), relevance=relevance.tolist()),
        retrieved=Retrieved(
            query_ids=[*queries.tolist(), 900], item_ids=[*items.tolist(), 1], scores=[*scores.tolist(), 1.0]
        ),
        attributes={"language": language.tolist()},
    ).read("/input")
    assert (
        of(
            judged(apart, by=("language",), metrics=("mean_average_precision",)),
            "mean_average_precision",
            language="de",
        )
        == value
    )


def _counted(source: MatrixInput) -> MatrixInput:
    """The same samples, those that say the same as one entry each."""
    samples = known(source.samples)
    attributes = known(samples.attributes)
    columns = [samples.truth, samples.predicted, *(one.codes for one in attributes.by_name.values())]
    if samples.groups is not None:
        columns.append(samples.groups)
    _, first, entries = np.unique(np.stack(columns), axis=1, return_index=True, return_inverse=True)
    weights, sums, times = samples.weights, None, np.bincount(entries)
    if weights is not None:
        squares = np.bincount(entries, weights**2).astype(np.float64)
        used = np.bincount(entries, weights > 0)
        each = [weights[entries == one] for one in range(first.size)]
        lightest, heaviest = np.array([one.min() for one in each]), np.array([one.max() for one in each])
        sums = WeightSums(squares, used.astype(np.int64), lightest, heaviest)
        weights = np.bincount(entries, weights).astype(np.float64)
    taken = replace(samples.taken(first), weights=weights, tally=Tally(times, sums))
    return replace(source, samples=taken)


@pytest.mark.parametrize("design", ["plain", "weights", "groups"])
def test_samples_that_say_the_same_may_be_one_entry(design: str) -> None:
    random = np.random.default_rng(3)
    samples, size = known(CLINIC.samples), 3000
    values = {name: column for name, column in attributes_of(CLINIC).items() if name != "age"}
    weights = random.integers(1, 4, size).astype(np.float64) if design == "weights" else None
    groups = np.arange(size) // 20 if design == "groups" else None
    source = classified(samples.truth, samples.predicted, values, weights=weights, groups=groups)
    asked = {"by": ("site",), "metrics": ("recall@D", "precision@D", "f1@D", "h_mean"), "reference": {"sex": "f"}}
    assert known(_counted(source).samples).size < 2000

    assert [*differences(as_json(judged(source, **asked)), as_json(judged(_counted(source), **asked)))] == []


def test_limits_of_a_difference_stay_within_the_range_of_differences() -> None:
    """Two groups of a slice, of which one is right and one wrong, are all there is of its variance."""
    truth = np.array([0, 1] * 8)
    said = np.concatenate([[0, 1, 1, 0], truth[4:]])
    source = Predictions(
        y_true=truth, y_pred=said, group_ids=np.arange(16) // 2, attributes={"site": ["x"] * 4 + ["y"] * 12}
    ).read("/input")
    found = of(judged(source, by=("site",), metrics=("h_mean",), minimum_samples=1), "h_mean", site="x").difference
    assert (found.value, found.low) == (-0.5, -1.0)
    assert found.high <= 1.0


def test_bins_have_equally_many_samples_however_many_an_entry_stands_for() -> None:
    random = np.random.default_rng(11)
    ages, times = random.permutation(40).astype(float), random.integers(1, 9, 40)
    entries = Predictions(
        y_true=[0, 1] * 20,
        y_pred=[0, 1, 1, 0] * 10,
        attributes={"age": ages.tolist()},
        tally=Tally(times.astype(np.int64)),
    ).read("/input")
    whole = Predictions(
        y_true=np.repeat([0, 1] * 20, times),
        y_pred=np.repeat([0, 1, 1, 0] * 10, times),
        attributes={"age": np.repeat(ages, times).tolist()},
    ).read("/input")
    for source in (entries, whole):
        parts, _ = divided(source, "age", 1)
        ends = [one.where["age"]["from"] for one in parts][1:]
        assert ends == np.quantile(np.repeat(ages, times), [0.25, 0.5, 0.75], method="inverted_cdf").tolist()
