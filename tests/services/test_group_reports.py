"""Reports on samples in groups: what is saved of them, and what is too much."""

from dataclasses import replace

import numpy as np
import pytest

from app.domain.errors import InvalidInput
from app.domain.inputs.classified import Predictions
from app.domain.inputs.clustering import Clustering
from app.domain.inputs.folds import Folds
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.multilabel import Multilabel
from app.domain.inputs.sets import Sets
from app.domain.options import IntervalChoice, IntervalMethod, Options, Sampling
from app.domain.report import Group
from app.kernel.metrics.card import INPUTS_OF, Task
from app.kernel.uncertainty import groups
from app.kernel.uncertainty.influence import UnitInfluences, by_groups, limits
from app.services.estimands import make_estimand
from app.services.estimates.estimates import estimate
from app.services.estimates.run_data import RunData
from app.services.evaluate.questions import ask
from app.services.evaluate.reports import evaluate, report_alone, sections_as_json, sections_from_json

ALL = Options(intervals=IntervalChoice.ALL, sampling=Sampling(method=IntervalMethod.BOOTSTRAP, draws=200))


def source(n_groups: int = 35) -> MatrixInput:
    random = np.random.default_rng(0)
    groups = np.repeat(np.arange(n_groups), 6)
    truth = random.integers(0, 3, groups.size)
    right = random.random(groups.size) < random.beta(2, 1, n_groups)[groups]
    predicted = np.where(right, truth, (truth + 1) % 3)
    return Predictions(y_true=truth, y_pred=predicted, group_ids=groups).read("/input")


@pytest.mark.parametrize("options", [Options(), ALL, Options(intervals=IntervalChoice.NONE)])
def test_a_report_is_made_again_from_what_was_said(options: Options) -> None:
    report = evaluate(source(), options)
    forgotten = replace(source(), samples=None)
    again = report_alone(ask(forgotten, options), sections_from_json(sections_as_json(report.of_samples)))
    assert again.intervals == report.intervals
    assert again.findings == report.findings
    assert again.groups == report.groups
    assert report.groups is not None
    assert report.groups["n_groups"] == 35


def test_what_only_balanced_values_lack_is_said_of_these_again() -> None:
    """A label that all samples have cannot be balanced with its absence."""
    truth = np.column_stack([np.ones(6, dtype=np.int64), np.tile([0, 1], 3)])
    report = evaluate(Multilabel(y_true=truth, y_pred=truth, labels=["a", "b"]).read("/input"), Options())
    assert any(gap.group is Group.BALANCED for gap in report.undefined)
    (again,) = sections_from_json(sections_as_json(report.of_samples)).values()
    assert again.undefined == report.undefined


def test_without_its_samples_and_what_was_said_of_them_there_is_no_report() -> None:
    with pytest.raises(ValueError, match="groups"):
        evaluate(replace(source(), samples=None), Options())


def test_intervals_of_everything_are_refused_where_they_would_take_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "_MOST_WORK", 5_000)
    with pytest.raises(InvalidInput) as refusal:
        evaluate(source(), ALL)
    (fault,) = refusal.value.faults
    assert (fault.pointer, fault.code) == ("/options/intervals", "too_many_groups")
    assert evaluate(source(), Options()).intervals["accuracy"]["low"] is not None


def test_seeds_are_followed() -> None:
    first, second, other = (evaluate(source(), replace(ALL, seed=seed)) for seed in (1, 1, 2))
    assert first.intervals == second.intervals
    assert first.intervals["h_mean"] != other.intervals["h_mean"]
    assert first.intervals["accuracy"] == other.intervals["accuracy"]


def test_findings_tell_what_samples_in_groups_are_worth() -> None:
    report = evaluate(source(), Options())
    found = next(finding for finding in report.findings if finding.code == "samples_in_groups")
    effect = found.evidence["design_effect"]
    assert effect > 1.2
    assert f"about {210 / effect:.0f} independent samples" in found.message
    assert all("may be anywhere" not in finding.message for finding in report.findings)
    few = evaluate(source(3), Options())
    small = next(finding for finding in few.findings if finding.code == "too_few_samples")
    assert "and beyond, as samples come in groups" in small.message


def cross_validated(repeats: int) -> MatrixInput:
    """Predictions of 100 samples, 80 of them right, in five folds, as often as they are repeated."""
    random, folds = np.random.default_rng(1), []
    for _ in range(repeats):
        for rows in np.split(random.permutation(100), 5):
            truth = rows % 2
            predicted = np.where(rows % 5 == 0, 1 - truth, truth)
            folds.append(Predictions(y_true=truth, y_pred=predicted, sample_ids=[f"s{row}" for row in rows]))
    return Folds(folds=folds, repeats=repeats).read("/input")


def test_samples_that_come_again_are_one_group_each() -> None:
    """Copies of 100 predictions say no more than the 100: with 5 of them they had .773 to .842."""
    once, *more = (evaluate(cross_validated(repeats), Options()).intervals["accuracy"] for repeats in (1, 5, 20))
    assert (once["method"], once["given"]) == ("wilson", "n")
    for found in more:
        assert found["given"] == "groups"
        assert (found["low"], found["high"]) == pytest.approx((once["low"], once["high"]), abs=0.002)


def test_groups_that_were_sent_are_kept_where_samples_come_again() -> None:
    patients = [
        replace(fold, group_ids=["p" if row < 5 else f"q{row}" for row in range(10)])
        for fold in [Predictions(y_true=[0, 1] * 5, y_pred=[0] * 10, sample_ids=list(range(10)))] * 4
    ]
    source = Folds(folds=patients).read("/input")
    assert source.facts["n_groups"] == 6
    assert source.samples is not None
    assert source.samples.ids is None


TWELVE, PAIR = np.arange(12), np.array([0, 1])


@pytest.mark.parametrize(
    ("kind", "units"),
    [
        (Multilabel(labels=["a", "b"], y_true=np.eye(2)[TWELVE % 2], y_pred=np.eye(2)[TWELVE % 3 % 2]), "samples"),
        (Clustering(y_true=TWELVE % 2, y_pred=TWELVE % 3), "samples"),
        (Sets(n_true=TWELVE + 1, n_predicted=TWELVE, n_common=TWELVE // 2), "items"),
    ],
)
def test_reports_on_more_than_classes_say_that_there_are_few_groups(
    kind: Multilabel | Clustering | Sets, units: str
) -> None:
    report = evaluate(replace(kind, group_ids=TWELVE // 4).read("/input"), Options())
    assert report.groups == {"n_groups": 3, "smallest": 4, "largest": 4, "effective_groups": 3.0}
    found = {one.code: one.message for one in report.findings}
    assert found["samples_in_groups"].startswith(f"The 12 {units} come in 3 groups")
    assert found["intervals_of_few_groups"].startswith("There are only 3 groups.")


def test_findings_on_equal_weights_do_not_say_that_they_differ() -> None:
    # Beside one that weighs nothing.
    codes = np.append(PAIR, PAIR[0])
    report = evaluate(Predictions(y_true=codes, y_pred=codes, sample_weight=[2.0, 2.0, 0.0]).read("/input"), Options())
    found = {one.code: one.message for one in report.findings}
    assert found["samples_with_weights"].startswith("The 2 samples have the weight 2 and carry")
    assert "differ" not in found["intervals_of_few_effective_samples"]


def test_limits_from_draws_stay_within_the_range_of_their_metric() -> None:
    """Drawn matrices of one sample of each class have less than no pairs within classes."""
    options = Options(intervals=IntervalChoice.ALL, sampling=Sampling(draws=200), seed=1)
    report = evaluate(Predictions(y_true=np.arange(3), y_pred=np.array([0, 1, 0])).read("/input"), options)
    assert report.intervals["adjusted_rand"]["low"] == -1.0


@pytest.mark.parametrize("key", ["v_measure", "mean(purity, bcubed_f1)"])
def test_measures_of_clusterings_have_limits_by_what_they_are_without_each_group(key: str) -> None:
    codes, random = np.arange(90) % 9, np.random.default_rng(8)
    truth = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2])[codes]
    clusters = np.where(random.random(90) < 0.7, truth, random.integers(0, 3, 90))
    run = RunData(Clustering(y_true=truth, y_pred=clusters, group_ids=codes).read("/input"))
    asked = make_estimand(key, (), None, INPUTS_OF[Task.CLUSTERING], Task.CLUSTERING)
    ((found,),) = estimate([asked], run)
    sums, influences, grouping = run.linear(asked), run.influences, run.grouping
    assert sums is not None
    assert grouping is not None
    assert isinstance(influences, UnitInfluences)
    expected = limits(by_groups(influences.between_groups(asked.expression, sums[0]), grouping))
    narrower = limits(by_groups(sums[0], grouping))
    assert expected is not None
    assert narrower is not None
    assert (found.low, found.high, found.method) == (expected.low, expected.high, f"cluster_{expected.method}")
    assert found.high - found.low > 1.001 * (narrower.high - narrower.low)
