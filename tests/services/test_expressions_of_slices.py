"""Values of slices in expressions: in reports, comparisons, gates and leaderboards."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.domain.errors import InvalidExpression
from app.domain.evaluation import DatasetRef, EvaluationRecord
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.multilabel import Multilabel
from app.domain.inputs.ranking import Ranking
from app.domain.inputs.samples import Samples
from app.domain.options import Options
from app.domain.rules import definition_of
from app.domain.slices import restricted
from app.kernel.compare.gates import Verdict
from app.kernel.numerics.arrays import Mask
from app.kernel.uncertainty.draws import Alternative
from app.kernel.uncertainty.intervals import ProportionInterval
from app.services.estimands import parse_estimands, preference
from app.services.estimates.estimate import LimitSettings
from app.services.estimates.estimates import estimate
from app.services.estimates.run_data import RunData
from app.services.evaluate.reports import evaluate
from app.services.gate import check_gate, rule_estimands
from app.services.history import HistoryQuery, Series, series
from app.services.project.projection import Scenario, Sweep
from app.services.project.what_if import project_input
from app.services.rank import LeaderboardQuery, rank_candidates
from app.services.runs.aligned import Runs
from app.services.runs.comparison import Comparison
from app.services.runs.matrix_draws import InferenceSettings
from app.services.runs.pairing import KeptSamples
from app.services.slices.slices import SlicesQuestion, judge_slices
from app.services.stored import inputs_of_all
from tests.bank import each
from tests.services.records import alike, record_of
from tests.services.slicing import attributes_of, classified, clinic

CLINIC = clinic()
# Of four sites so many of 100 members of D are found: worked in the paper of methods.
HITS = (90, 85, 70, 92)


def reported(source: MatrixInput, *texts: str, **options: Any) -> Any:
    return evaluate(source, Options(metrics=texts, **options))


def alone(source: MatrixInput, mask: Mask) -> MatrixInput:
    return restricted(source, np.flatnonzero(mask))


def worked() -> MatrixInput:
    """400 members of D at four sites, and as many others who are all told apart."""
    site = np.repeat(["A", "B", "C", "E"], 200)
    truth = np.tile(np.repeat([True, False], 100), 4)
    predicted = np.concatenate([np.arange(200) < hits for hits in HITS])
    return classified(truth, predicted, {"site": site})


# --- values and limits -----------------------------------------------------------------------------------------------


def with_scores(source: MatrixInput) -> MatrixInput:
    """The same patients, with probabilities."""
    random, samples = np.random.default_rng(8), source.samples
    assert samples is not None
    high = np.clip(0.6 * samples.predicted + 0.4 * random.random(samples.size), 0.01, 0.99)
    return classified(samples.truth, samples.predicted, attributes_of(source), outputs=np.stack([1 - high, high], 1))


def again(**more: Any) -> MatrixInput:
    """The same patients, with weights or groups."""
    assert CLINIC.samples is not None
    return classified(CLINIC.samples.truth, CLINIC.samples.predicted, attributes_of(CLINIC), **more)


WEIGHTED = again(weights=np.random.default_rng(4).uniform(0.5, 2.0, 3000))
GROUPED = again(groups=np.arange(3000) // 4)
PLAIN_LIMITS = LimitSettings()
PLAIN = ("recall@D", "precision@D", "h_mean", "recall@*", "min(recall@*)")


@each(
    ("source", "names"),
    [
        (CLINIC, PLAIN),
        (with_scores(CLINIC), ("roc_auc@D", "brier_score")),
        (WEIGHTED, PLAIN[:3]),
        (GROUPED, PLAIN[:3]),
    ],
)
def test_a_value_in_brackets_has_value_and_limits_of_the_slice_by_itself(
    source: MatrixInput, names: Sequence[str]
) -> None:
    where, known = 'site="C", sex!="m", age<60', attributes_of(source)
    mask = (known["site"] == "C") & (known["sex"] != "m") & (known["age"].astype(float) < 60)
    whole, itself = reported(source, *(f"{name}[{where}]" for name in names)), reported(alone(source, mask), *names)
    for name in names:
        assert whole.requested[f"{name}[{where}]"] == itself.requested[name], name
        assert estimates_of(source, f"{name}[{where}]") == estimates_of(alone(source, mask), name), name


def estimates_of(source: MatrixInput, text: str, settings: LimitSettings = PLAIN_LIMITS) -> Any:
    inputs = inputs_of_all([kept(source)[0]])
    (one,) = parse_estimands([text], source.labels, source.positive, inputs=inputs, sliceable=True)
    return estimate([one], RunData(source), settings)[0]


@each("text", ["min(recall@D, by=site)", "max(mcc, by=site)", "range(h_mean, by=sex)", "ratio(precision@D, by=age)"])
def test_over_slices_a_function_is_of_the_values_of_each(text: str) -> None:
    function, _, rest = text.partition("(")
    inside, _, by = rest.rstrip(")").rpartition(", by=")
    column = attributes_of(CLINIC)[by]
    # Ages come in quarters.
    edges = np.quantile(column.astype(float), [0.25, 0.5, 0.75], method="inverted_cdf") if by == "age" else None
    codes = column if edges is None else np.searchsorted(edges, column.astype(float), side="right")
    masks = [codes == code for code in np.unique(codes)]
    values = [reported(alone(CLINIC, mask), inside).requested[inside] for mask in masks if mask.sum() >= 30]
    wanted = {
        "min": min(values),
        "max": max(values),
        "range": max(values) - min(values),
        "ratio": min(values) / max(values),
    }[function]
    assert reported(CLINIC, text).requested[text] == wanted


def test_ranges_of_slices_are_what_the_expressions_are() -> None:
    metrics = ("recall@D", "f1@D", "h_mean", "mcc", "informedness@D", "prevalence@D")
    for one in judge_slices(CLINIC, SlicesQuestion(by=("sex", "site"), metrics=metrics)).ranges:
        (wanted,) = estimates_of(CLINIC, f"range({one.metric}, by={one.by})")
        found = [one.difference, one.low, one.high]
        assert found == [
            None if np.isnan(value) else pytest.approx(value) for value in (wanted.value, wanted.low, wanted.high)
        ]
        if one.ratio is not None:
            (wanted,) = estimates_of(CLINIC, f"ratio({one.metric}, by={one.by})")
            assert one.ratio == pytest.approx(wanted.value)
            assert [one.ratio_low, one.ratio_high] == [
                None if np.isnan(value) else pytest.approx(value) for value in (wanted.low, wanted.high)
            ]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("min(recall@D, by=site)", (0.70, 0.604151, 0.807974)),
        ("max(miss_rate@D, by=site)", (0.30, 0.192026, 0.395849)),
        ("range(recall@D, by=site)", (0.22, 0.063669, 0.323444)),
        ("ratio(recall@D, by=site)", (0.760870, 0.653088, 0.924491)),
    ],
)
def test_limits_hold_though_a_slice_was_picked(text: str, wanted: tuple[float, float, float]) -> None:
    report = reported(worked(), text)
    found = report.intervals[text]
    assert (report.requested[text], found["low"], found["high"]) == pytest.approx(wanted, abs=5e-7)
    assert found["method"] == "simultaneous"
    # The headline shows the same.
    assert report.headline["requested"][text]["low"] == found["low"]


def test_an_answer_says_which_slices_took_part() -> None:
    text = "min(recall@D, by=site)"
    (one,) = (found for found in reported(CLINIC, text).findings if found.code == "over_slices")
    assert one.evidence["smallest"] == {"site": "C"}
    assert one.evidence["slices"] == 3
    assert one.evidence["left_out"] == [{"where": {"site": "F"}, "n_samples": 9, "reason": "fewer than 30"}]
    assert "Left out: site F (9 samples, fewer than 30)." in one.message
    # A slice without the class has no value, and takes no part either.
    truth, site = np.arange(200) < 50, np.repeat(["A", "B"], 100)
    (gap,) = reported(classified(truth, truth, {"site": site}), "min(recall, by=site)").findings[-1:]
    assert gap.evidence["left_out"] == [{"where": {"site": "B"}, "n_samples": 100, "reason": "no value"}]


def test_what_does_not_exist_is_null_with_a_reason() -> None:
    nothing = classified(np.arange(120) % 4 == 0, np.zeros(120), {"site": np.repeat(["A", "B"], 60)})
    zeros, empty, nobody = "ratio(recall@D, by=site)", 'precision@D[site="A"]', 'recall@*[site="A", site="B"]'
    few = "range(recall@D, by=site, minimum_samples=90)"
    report = reported(nothing, zeros, few, empty, nobody)
    assert [*report.requested.values()] == [None, None, None, {"healthy": None, "D": None}]
    reasons = {one.metric: (one.code, one.reason) for one in report.undefined}
    assert reasons[zeros] == ("undefined", "recall@D by site: all values are 0")
    assert reasons[few] == ("few_slices", "recall@D by site: too few slices have enough samples and a value")
    assert "never predicted" in reasons[empty][1]
    assert '(of the samples with site="A")' in reasons[empty][1]
    assert reasons[nobody] == ("empty_slice", 'there are no samples with site="A", site="B"')


def test_what_is_asked_of_one_slice_keeps_no_other_from_being_read() -> None:
    some = alone(CLINIC, attributes_of(CLINIC)["site"] == "A")
    report = reported(some, 'recall@D[site="B"]', 'min(recall@D[site="B"], by=sex)', "min(recall@D, by=site)")
    assert [*report.requested.values()] == [None, None, estimates_of(some, "recall@D")[0].value]
    assert report.intervals['recall@D[site="B"]']["reason"] == "there are no samples"


def test_labels_and_queries_have_slices_too() -> None:
    site = ["A", "B"] * 60
    random = np.random.default_rng(3)
    truth, said = (random.random((120, 3)) < 0.4 for _ in range(2))
    labels = Multilabel(
        y_true=truth.tolist(), y_pred=said.tolist(), labels=["x", "y", "z"], attributes={"site": site}
    ).read("/input")
    texts = ('micro_f1[site="A"]', 'recall@x[site="A"]', "min(micro_f1, by=site)")
    whole, itself = reported(labels, *texts), reported(alone(labels, np.array(site) == "A"), "micro_f1", "recall@x")
    assert [whole.requested[text] for text in texts[:2]] == [*itself.requested.values()]
    other = reported(alone(labels, np.array(site) == "B"), "micro_f1").requested["micro_f1"]
    assert whole.requested[texts[2]] == min(other, itself.requested["micro_f1"])
    queries = Ranking(
        query_ids=np.repeat(np.arange(80), 5).tolist(),
        relevance=(random.random(400) < 0.4).astype(int).tolist(),
        scores=random.random(400).tolist(),
        attributes={"device": np.repeat(["web", "app"], 200).tolist()},
    ).read("/input")
    found = reported(queries, 'ndcg[device="web"]', "range(ndcg, by=device)")
    each_device = [
        reported(alone(queries, mask), "ndcg").requested["ndcg"] for mask in np.eye(2, dtype=bool).repeat(40, 1)
    ]
    assert found.requested['ndcg[device="web"]'] == each_device[0]
    assert found.requested["range(ndcg, by=device)"] == abs(each_device[0] - each_device[1])


def test_an_input_without_attributes_is_refused_with_what_it_has() -> None:
    matrix = MatrixInput("confusion_matrix", CLINIC.labels, 1, CLINIC.content, CLINIC.counts)
    with pytest.raises(InvalidExpression, match="samples with attributes") as caught:
        reported(matrix, "accuracy", 'recall[site="B"]')
    assert caught.value.pointer == "/options/metrics/1"
    with pytest.raises(InvalidExpression, match="expected one of the attributes 'site', 'sex', 'age', got 'town'"):
        reported(CLINIC, "min(recall, by=town)")


def test_a_limit_on_one_side_is_that_of_the_two_sided_level() -> None:
    text = "range(recall@D, by=sex)"
    one = reported(CLINIC, text, alternative=Alternative.GREATER).intervals[text]
    assert one["low"] == reported(CLINIC, text, level=0.9).intervals[text]["low"]
    assert one["high"] is None


# --- several runs ----------------------------------------------------------------------------------------------------


def kept(source: MatrixInput, ids: NDArray[Any] | None = None) -> tuple[EvaluationRecord, Samples]:
    """A run as it is stored, with its samples."""
    assert source.samples is not None
    record = record_of(source.counts, source.content, None, source.labels, source.positive, source.kind, source.facts)
    return record, replace(source.samples, ids=ids)


def runs_of(*sources: MatrixInput, ids: NDArray[Any] | None = None) -> Runs:
    known = [kept(source, ids) for source in sources]
    return Runs.align([one for one, _ in known]).pair(KeptSamples({one.id: samples for one, samples in known}))


def second(seed: int = 9, worse: str = "B") -> MatrixInput:
    """Another model on the patients of the clinic, which misses more of those at one site."""
    assert CLINIC.samples is not None
    random, known, truth = np.random.default_rng(seed), attributes_of(CLINIC), CLINIC.samples.truth == 1
    found = random.random(truth.size) < np.where(known["site"] == worse, 0.5, 0.8)
    return classified(truth, np.where(truth, found, random.random(truth.size) < 0.1), known)


def compared(runs: Runs, *texts: str) -> Comparison:
    estimands = parse_estimands(texts, runs.labels, runs.positive, inputs=inputs_of_all(runs.records), sliceable=True)
    return Comparison(runs, estimands, InferenceSettings(), pairs=[(0, 1)])


IDS = np.arange(3000)


@pytest.mark.parametrize("ids", [IDS, None])
def test_in_one_slice_runs_are_compared_as_their_samples_alone_are(ids: NDArray[Any] | None) -> None:
    names, where = ("recall@D", "h_mean", "recall@*", "precision@D"), 'site="B"'
    both = CLINIC, second()
    mask = attributes_of(CLINIC)["site"] == "B"
    whole = compared(runs_of(*both, ids=ids), *(f"{name}[{where}]" for name in names))
    itself = compared(runs_of(*(alone(one, mask) for one in both), ids=None if ids is None else ids[mask]), *names)
    for index in range(len(names)):
        assert whole.differences(index) == itself.differences(index)
        np.testing.assert_array_equal(whole.values[index], itself.values[index])
        np.testing.assert_array_equal(whole.drawn(index), itself.drawn(index))


def test_over_slices_differences_are_mover_over_the_limits_of_each_run() -> None:
    text = "min(recall@D, by=site)"
    runs = runs_of(CLINIC, second(), ids=IDS)
    ((found,),) = compared(runs, text).differences(0)
    own = [estimates_of(one, text)[0] for one in (CLINIC, second())]
    gap = own[0].value - own[1].value
    assert found.difference == pytest.approx(gap, abs=1e-15)
    assert found.low == pytest.approx(gap - np.hypot(own[0].value - own[0].low, own[1].high - own[1].value), abs=1e-9)
    assert found.high == pytest.approx(gap + np.hypot(own[0].high - own[0].value, own[1].value - own[1].low), abs=1e-9)
    assert found.method == "mover"


def test_of_paired_runs_differences_in_the_slices_that_may_be_worst_say_more() -> None:
    """The smallest value of one less that of the other lies between the differences in their worst slices."""
    assert CLINIC.samples is not None
    known, own = attributes_of(CLINIC), second(worse="C").samples
    assert own is not None
    copies = np.random.default_rng(3).random(3000) < 0.8
    other = classified(CLINIC.samples.truth, np.where(copies, CLINIC.samples.predicted, own.predicted), known)
    runs = runs_of(CLINIC, other, ids=IDS)
    for text, places in (("min(recall@D, by=site)", "C"), ("max(recall@D, by=site)", "AB")):
        paired, apart = (compared(one, text).differences(0)[0][0] for one in (runs, runs_of(CLINIC, other)))
        alone = [compared(runs, f'recall@D[site="{one}"]').differences(0)[0][0] for one in places]
        assert paired.difference == apart.difference
        ends = max(apart.low, min(one.low for one in alone)), min(apart.high, max(one.high for one in alone))
        # Tango's limits of 37 samples are wider than those of independent rates, so they correlate below 0.
        assert (paired.low, paired.high) == pytest.approx(ends, abs=2e-3 if text.startswith("max") else 1e-12)
        assert paired.high - paired.low < apart.high - apart.low
    for text in ("range(recall@D, by=site)", "ratio(recall@D, by=site)"):
        paired, apart = (compared(one, text).differences(0)[0][0] for one in (runs, runs_of(CLINIC, other)))
        assert paired.high - paired.low <= apart.high - apart.low
        # That both have the same samples says nothing more of a ratio, however much they go together.
        assert ((paired.low, paired.high) == (apart.low, apart.high)) is text.startswith("ratio")
    ((same,),) = compared(runs_of(CLINIC, CLINIC, ids=IDS), "min(recall@D, by=site)").differences(0)
    assert same.difference == 0.0
    assert same.low < 0.0 < same.high


ODDS = "equalized_odds_difference(by=site)"
GAPS = ("range(recall@D, by=site)", "range(fpr@D, by=site)")


def test_what_is_picked_from_values_over_slices_follows_from_their_limits() -> None:
    report = reported(CLINIC, ODDS, *GAPS)
    whole, *each = (report.intervals[text] for text in (ODDS, *GAPS))
    assert report.requested[ODDS] == max(report.requested[text] for text in GAPS)
    assert whole["high"] == max(one["high"] for one in each)
    # Below is what holds for both gaps together.
    assert 0.0 <= whole["low"] <= max(one["low"] for one in each)
    assert [one.message.partition(" is of")[0] for one in report.findings if one.code == "over_slices"] == [
        *GAPS,
        *GAPS,
    ]
    ((found,),) = compared(runs_of(CLINIC, second(), ids=IDS), ODDS).differences(0)
    gaps = [max(reported(one, *GAPS).requested.values()) for one in (CLINIC, second())]
    assert found.difference == pytest.approx(gaps[0] - gaps[1], abs=1e-15)
    assert found.low < found.difference < found.high
    nothing = reported(CLINIC, "max(range(recall@D, by=site, minimum_samples=2000), accuracy)")
    assert [one.code for one in nothing.undefined if one.metric.startswith("max(range")] == ["few_slices"]


MEAN = "mean(recall@D, by=site)"
# Of each site the samples of D.
SITES = [f'recall@D[site="{site}"]' for site in "ABC"]
MEAN_GAP = "equalized_odds_difference(by=site, agg=mean)"


def test_a_mean_over_slices_counts_each_the_same() -> None:
    """Its limits move as the root of squares does, but where groups have samples in several slices."""
    for source, independent in (
        (CLINIC, True),
        (WEIGHTED, True),
        (again(groups=np.arange(3000)), True),
        (GROUPED, False),
    ):
        (found,) = estimates_of(source, MEAN)
        exact = LimitSettings(proportions=ProportionInterval.CLOPPER_PEARSON)
        each = [estimates_of(source, text, exact)[0] for text in SITES]
        values, low, high = np.array([(one.value, one.low, one.high) for one in each]).T
        reach = np.sqrt((((values - low) ** 2 + (high - values) ** 2) / 2).sum()) / 3
        ends = (values.mean() - reach, values.mean() + reach) if independent else (low.mean(), high.mean())
        assert (found.value, found.low, found.high) == pytest.approx((values.mean(), *ends), rel=1e-12)
        assert found.method == "mover"
        assert (found.note is None) is independent
    assert [one.evidence["slices"] for one in reported(CLINIC, MEAN).findings if one.code == "over_slices"] == [3]


def test_the_mean_of_one_slice_is_what_the_slice_is() -> None:
    (found,) = estimates_of(CLINIC, "mean(recall@D, by=site, minimum_samples=1000)")
    assert found == estimates_of(CLINIC, SITES[0])[0]


def test_average_odds_are_those_of_aif360() -> None:
    """Its differences are those of the unprivileged group less those of the privileged one; here they have no sign."""
    samples, women = CLINIC.samples, attributes_of(CLINIC)["sex"] == "f"
    assert samples is not None
    rates = [
        [samples.predicted[group & (samples.truth == code)].mean() for code in (1, 0)] for group in (women, ~women)
    ]
    tpr, fpr = np.array(rates[0]) - np.array(rates[1])
    names = "average_odds_difference(by=sex)", "average_abs_odds_difference(by=sex)"
    report = reported(CLINIC, *names)
    assert tpr < 0.0 < fpr, "gaps of opposite signs, of which the first hides a part"
    assert [*report.requested.values()] == pytest.approx([abs(tpr + fpr) / 2, (abs(tpr) + abs(fpr)) / 2], rel=1e-12)
    for name in names:
        assert report.intervals[name]["low"] < report.requested[name] < report.intervals[name]["high"]


def test_a_mean_of_values_of_slices_has_limits_that_hold_for_all_of_them() -> None:
    together = LimitSettings().of_any(2)
    (found,) = estimates_of(CLINIC, MEAN_GAP)
    each = [estimates_of(CLINIC, text, together)[0] for text in GAPS]
    assert (found.value, found.low, found.high) == pytest.approx(
        [np.mean([getattr(one, name) for one in each]) for name in ("value", "low", "high")]
    )
    (weighted,) = estimates_of(CLINIC, f'wmean({", ".join(GAPS)}, weights="3,1")')
    assert weighted.low == pytest.approx(0.75 * each[0].low + 0.25 * each[1].low)
    some = reported(CLINIC, "mean(range(recall@D, by=site, minimum_samples=2000), accuracy)")
    assert [one.code for one in some.undefined if one.metric.startswith("mean(")] == ["few_slices"]


@pytest.mark.parametrize("ids", [np.arange(3000), None])
@pytest.mark.parametrize("text", [MEAN, MEAN_GAP, f'wmean({SITES[0]}, recall@*[site="B"], weights="2,1,1")'])
def test_differences_of_means_are_means_of_differences(text: str, ids: NDArray[Any] | None) -> None:
    """Of paired runs no further than those of the parts, whose limits know what the runs have in common."""
    assert CLINIC.samples is not None
    copies = np.random.default_rng(3).random(3000) < 0.9
    own = second().samples
    assert own is not None
    other = classified(
        CLINIC.samples.truth, np.where(copies, CLINIC.samples.predicted, own.predicted), attributes_of(CLINIC)
    )
    comparison = compared(runs_of(CLINIC, other, ids=ids), text)
    ((found,),) = comparison.differences(0)
    values = [reported(one, text).requested[text] for one in (CLINIC, other)]
    assert found.difference == pytest.approx(values[0] - values[1], abs=1e-15)
    assert found.low < found.difference < found.high
    assert "as independent" not in " ".join(comparison.notes)
    ((apart,),) = compared(runs_of(CLINIC, other), text).differences(0)
    width, widest = found.high - found.low, apart.high - apart.low
    assert width < 0.8 * widest if ids is not None else width == widest


def test_means_over_slices_go_wherever_other_values_of_slices_do() -> None:
    runs = runs_of(second(), CLINIC, ids=IDS)
    rules = [{"metric": MEAN_GAP, "max": 0.5}, {"metric": MEAN, "not_worse_than": "baseline", "margin": 0.2}]
    definition = definition_of({"rules": [{**rule, "bound": "lower", "level": 0.95} for rule in rules]})
    assert [one.verdict for one in check_gate(definition, rule_estimands(definition, runs), runs).results] == [
        Verdict.PASS,
        Verdict.PASS,
    ]
    known = [kept(source, IDS) for source in (second(), CLINIC)]
    (one,) = parse_estimands([MEAN_GAP], CLINIC.labels, 1, sliceable=True)
    better = preference(one.expression)
    assert better is not None
    query = LeaderboardQuery(dataset=DatasetRef("d"), metric=MEAN_GAP, limit=10)
    candidates = [record for record, _ in known]
    board = rank_candidates(query, better, candidates, KeptSamples({record.id: some for record, some in known}))
    assert [line.value for line in board.items] == sorted(
        estimates_of(run, MEAN_GAP)[0].value for run in (second(), CLINIC)
    )
    texts = ("mean(precision@D, by=site)", 'mean(precision@D[site="A"], range(precision@D, by=sex))')
    sweep = Sweep(label="D", start=0.1, end=0.5, steps=2)
    moved: Any = project_input(CLINIC, Scenario(sweep=sweep, metrics=texts)).metrics
    for text in texts:
        at = moved[text]
        assert all(low < value < high for low, value, high in zip(at.low, at.value, at.high, strict=True))


def test_a_slice_takes_part_in_a_comparison_where_all_runs_have_it() -> None:
    known = attributes_of(CLINIC)
    assert CLINIC.samples is not None
    town = np.where(known["site"] == "C", "B", known["site"])
    other = classified(CLINIC.samples.truth, CLINIC.samples.predicted, {**known, "site": town})
    comparison = compared(runs_of(CLINIC, other), "min(recall@D, by=site)")
    assert "over 2 slices with a value and at least 30 samples in each run" in " ".join(comparison.notes)
    assert comparison.values[0][1, 0] == min(
        reported(alone(other, town == one), "recall@D").requested["recall@D"] for one in ("A", "B")
    )


@pytest.mark.parametrize("ids", [IDS, None])
@pytest.mark.parametrize("text", ["min(recall@D, by=site)", "range(recall@D, by=site)", "mean(recall@D, by=site)"])
def test_runs_without_a_common_slice_have_no_difference(text: str, ids: NDArray[Any] | None) -> None:
    known = attributes_of(CLINIC)
    assert CLINIC.samples is not None
    elsewhere = {**known, "site": np.char.add("not ", known["site"])}
    other = classified(CLINIC.samples.truth, CLINIC.samples.predicted, elsewhere)
    comparison = compared(runs_of(CLINIC, other, ids=ids), text)
    ((test,),) = comparison.differences(0)
    assert np.isnan(comparison.values[0]).all()
    assert test.reason == "too few slices have enough samples and a value"
    assert np.isnan(test.low)


def test_gates_hold_a_run_to_its_worst_slice() -> None:
    rules = [
        {"metric": "min(recall@D, by=site)", "min": 0.5, "bound": "lower", "level": 0.95},
        {"metric": 'recall@D[site="B"]', "min": 0.9, "bound": "lower", "level": 0.95},
        {"metric": "range(recall@D, by=sex)", "max": 0.1, "bound": "lower", "level": 0.95},
        {
            "metric": "min(recall@D, by=site)",
            "not_worse_than": "baseline",
            "margin": 0.01,
            "bound": "lower",
            "level": 0.95,
        },
    ]
    definition, runs = definition_of({"rules": rules}), runs_of(CLINIC, second(), ids=IDS)
    checked = check_gate(definition, rule_estimands(definition, runs), runs)
    verdicts = [one.verdict for one in checked.results]
    assert verdicts == [Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.FAIL, Verdict.INCONCLUSIVE]
    assert "site C" in " ".join(one.message for one in checked.findings)
    lacking = definition_of({"rules": [{**rules[0], "metric": "min(recall@D, by=town)"}]})
    with pytest.raises(InvalidExpression, match="'town'") as caught:
        check_gate(lacking, rule_estimands(lacking, runs), runs)
    assert caught.value.pointer == "/rules/0/metric"


def test_the_history_of_a_slice_is_that_of_its_samples_alone() -> None:
    known = attributes_of(CLINIC)
    weeks = [second(seed, worse) for seed, worse in enumerate("AAAABBBB")]
    runs_of = [[kept(one) for one in weeks], [kept(alone(one, known["site"] == "B")) for one in weeks]]
    found = []
    for text, runs in zip(('recall@D[site="B"]', "recall@D"), runs_of, strict=True):
        query = HistoryQuery(model="m", dataset=DatasetRef("d"), metrics=(text,), limit=10)
        whole = Series.of([alike([one]) for one, _ in runs])
        answer = series(query, whole, KeptSamples({one.id: some for one, some in runs}))
        found.append(([one.metrics[text] for one in answer.items], [one.difference for one in answer.changes]))
    assert found[0] == found[1]
    assert found[0][1]


def test_leaderboards_rank_by_the_worst_slice_and_say_who_has_none() -> None:
    assert CLINIC.samples is not None
    bare = replace(CLINIC, samples=replace(CLINIC.samples, attributes=None))
    known = [kept(one, IDS) for one in (second(), CLINIC, bare)]
    samples = KeptSamples({record.id: some for record, some in known})
    for text in ("min(recall@D, by=site)", 'recall@D[site="B"]'):
        query = LeaderboardQuery(dataset=DatasetRef("d"), metric=text, limit=10)
        (one,) = parse_estimands([text], CLINIC.labels, 1, sliceable=True)
        better = preference(one.expression)
        assert better is not None
        board = rank_candidates(query, better, [record for record, _ in known], samples)
        assert [line.rank for line in board.items] == [1, 2, None]
        assert board.items[0].value == estimates_of(CLINIC, text)[0].value
        assert "samples with attributes" in str(board.items[2].reason)
        assert board.items[1].separable_from_best is not None


def test_at_other_shares_a_slice_is_projected_as_its_samples_alone_are() -> None:
    metrics = ('precision@D[site="C"]', "min(precision@D, by=site)", "range(recall@D, by=sex)", 'macro_f1[sex="f"]')
    scenario = Scenario(sweep=Sweep(label="D", start=0.1, end=0.5, steps=2), metrics=metrics)
    found: Any = project_input(CLINIC, scenario).metrics

    def alone_at(metric: str, **where: str) -> Any:
        (name, value), *_ = where.items()
        some = alone(CLINIC, attributes_of(CLINIC)[name] == value)
        return project_input(some, replace(scenario, metrics=(metric,))).metrics[metric]

    assert found[metrics[0]] == alone_at("precision@D", site="C")
    assert found[metrics[3]] == alone_at("macro_f1", sex="f")
    sites = [alone_at("precision@D", site=site) for site in "ABC"]
    worst = found[metrics[1]]
    assert worst.value == [min(values) for values in zip(*(one.value for one in sites), strict=True)]
    assert worst.low == [min(values) for values in zip(*(one.low for one in sites), strict=True)]
    assert all(low < value < high for low, value, high in zip(worst.low, worst.value, worst.high, strict=True))
    # Recall does not move, so its range is that of the report.
    assert len(set(found[metrics[2]].value)) == 1
    assert found[metrics[2]].observed == found[metrics[2]].value[0]


def test_a_slice_that_lacks_a_class_has_no_value_at_other_shares() -> None:
    samples = CLINIC.samples
    assert samples is not None
    sites = np.where((attributes_of(CLINIC)["site"] == "A") & (samples.truth == 0), "healthy only", "others")
    source = classified(samples.truth, samples.predicted, {"site": sites})
    texts = ('accuracy[site="healthy only"]', "min(accuracy, by=site)", 'accuracy[site="others"]')
    scenario = Scenario(prevalence={"D": 0.5}, metrics=texts)
    found: Any = project_input(source, scenario).metrics
    assert (found[texts[0]].value, found[texts[0]].low) == (None, None)
    assert found[texts[0]].reason.startswith("a class has no samples")
    assert found[texts[1]].value == found[texts[2]].value
    with pytest.raises(InvalidExpression, match="expected one of the attributes 'site'"):
        project_input(source, replace(scenario, metrics=("min(accuracy, by=age)",)))
