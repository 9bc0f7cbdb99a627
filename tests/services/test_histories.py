"""Histories of many matrices: measured all at once as one by one, in time, and what is refused."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.domain.errors import OutOfReach
from app.domain.evaluation import AlikeEvaluations, DatasetRef, EvaluationRecord
from app.domain.inputs.content import GROUPS_FACT
from app.domain.inputs.samples import Samples
from app.kernel.matrix.table import confusion_counts
from app.services.estimands import make_estimand
from app.services.estimates.estimates import estimate, limits_of_many
from app.services.estimates.run_data import run_data
from app.services.history import HistoryChange, HistoryPage, HistoryQuery, HistoryService, Series, series
from app.services.runs.differences import OF_SIZES
from app.services.runs.pairing import KeptSamples
from tests.services.records import alike, record_of, scored

LABELS = ("a", "b", "c")
METRICS = (
    *("recall@b", "false_discovery_rate@b", "accuracy", "prevalence@a", "f1@c", "jaccard@a"),
    *("h_mean", "balanced_accuracy", "g_mean", "mcc", "kappa", "f1_macro", "mean(recall@a, recall@b, recall@c)"),
)


@pytest.mark.parametrize("times", [1, 10**7])
@pytest.mark.parametrize("metric", METRICS)
def test_many_matrices_have_the_limits_that_each_has(metric: str, times: int) -> None:
    """Also where classes are missed, flawless, rare or without samples, and where nothing is wrong."""
    random = np.random.default_rng(5)
    counts = random.poisson(np.array([[40, 3, 1], [2, 20, 1], [1, 0.5, 4]]), (30, 3, 3))
    counts[0, 2] = 0
    counts[1] = np.diag([9, 5, 3])
    counts[2, :, 1] = 0
    counts[3] = [[30, 1, 1], [0, 12, 0], [0, 0, 7]]
    counts *= times
    estimand = make_estimand(metric, LABELS, None)
    found = limits_of_many(estimand, counts.astype(float), LABELS)
    assert found is not None
    each = [estimate([estimand], run_data(record_of(one, labels=LABELS)))[0][0] for one in counts]
    for many, own in zip(found, ("value", "low", "high"), strict=True):
        single = np.array([getattr(one, own) for one in each])
        bare = np.isnan(found[1] + found[2])
        assert (bare == [one.reason is not None for one in each]).all()
        assert many[~bare] == pytest.approx(single[~bare], rel=1e-12)


@pytest.mark.parametrize("metric", ["accuracy", "h_mean", "macro_f1"])
def test_no_matrices_have_no_limits(metric: str) -> None:
    found = limits_of_many(make_estimand(metric, LABELS, None), np.ones((0, 3, 3)), LABELS)
    assert found is not None
    assert [part.shape for part in found] == [(0,)] * 3


@pytest.mark.parametrize("metric", ["f_beta(beta=2)@a", "min(recall@a, recall@b)", "lift@a"])
def test_what_has_no_closed_form_is_measured_one_by_one(metric: str) -> None:
    assert limits_of_many(make_estimand(metric, LABELS, None), np.ones((2, 3, 3)), LABELS) is None


def weeks(number: int, worse: int) -> AlikeEvaluations:
    """Of 300 samples each, from one on worse."""
    random = np.random.default_rng(8)
    hits = random.binomial(100, np.where(np.arange(number) < worse, 0.8, 0.6))
    alarms = random.binomial(200, 0.1, number)
    counts = np.array([[200 - alarms, alarms], [100 - hits, hits]]).transpose(2, 0, 1)
    ids = np.stack([np.arange(number) << 16, np.arange(number)[::-1]], axis=1).astype(np.uint64)
    return AlikeEvaluations(record_of(counts[0], positive=1), ids, [None] * number, counts)


def asked(*metrics: str, **members: Any) -> HistoryQuery:
    return HistoryQuery(model="m", dataset=DatasetRef("d"), metrics=metrics, **members)


def test_a_series_of_ten_thousand_takes_a_moment() -> None:
    """100 ms on one core; allowed is twice that, for machines on which others work."""
    whole, metrics = Series.of([weeks(10_000, 9_900)]), ("recall@B", "h_mean")
    least = np.inf
    for _ in range(2):
        began = time.process_time()
        answer = series(asked(*metrics, newest=True), whole, KeptSamples())
        least = min(least, time.process_time() - began)
    assert least < 0.2
    assert len(answer.items) == 50
    assert {one.metric for one in answer.changes} == {*metrics}
    first = next(one for one in answer.changes if one.metric == "recall@B")
    assert abs(whole.made_until(first.to).sum() - 9_901) < 10
    assert first.difference.high < 0


def test_ten_thousand_of_ten_sparse_classes_take_a_moment() -> None:
    """Nearly each has a class that is all missed, whose recall moves to its limit."""
    counts = np.random.default_rng(9).poisson(0.7, (10_000, 10, 10))
    ids = np.stack([np.arange(10_000)] * 2, axis=1).astype(np.uint64)
    whole = Series.of([AlikeEvaluations(record_of(counts[0]), ids, [None] * 10_000, counts)])
    began = time.process_time()
    answer = series(asked("macro_f1", newest=True), whole, KeptSamples())
    assert time.process_time() - began < 0.4
    assert all(one.metrics["macro_f1"].low is not None for one in answer.items)


def test_alike_or_each_alone_evaluations_are_one_series() -> None:
    known = [weeks(40, 20).record(place) for place in range(40)]
    parts = [[alike(known)], [alike([one]) for one in reversed(known)], [alike(known[::2]), alike(known[1::2])]]
    answers = [series(asked("precision@B", "mcc", limit=15), Series.of(some), KeptSamples()) for some in parts]
    assert answers[0].changes
    assert answers[0] == answers[1] == answers[2]
    rest = series(asked("mcc", after=answers[0].next_position, limit=40), Series.of(parts[2]), KeptSamples())
    assert [one.evaluation for one in rest.items] == [one.id for one in known[15:]]


def test_numbers_of_samples_change_only_among_evaluations_of_one_size() -> None:
    known = weeks(40, 20)
    (change,) = series(asked("fn@B"), Series.of([known]), KeptSamples()).changes
    # Parts of mixtures add up to differences of shares.
    assert change.causes is not None
    assert change.causes.items is None
    assert change.before == pytest.approx(20.0, abs=2.0)
    larger = replace(known, counts=known.counts * np.where(np.arange(40) < 20, 1, 10)[:, None, None])
    grown = ("fn@B", "dennis_similarity@B")
    answer = series(asked(*grown, "recall@B"), Series.of([larger]), KeptSamples())
    assert {one.metric for one in answer.changes} == {"recall@B"}
    for name in grown:
        value = answer.items[0].metrics[name]
        assert value.low is not None
        assert (value.expected, value.reason) == (None, OF_SIZES)


def test_limits_of_a_change_stay_within_the_range_of_differences() -> None:
    counts = [[[90, 10], [10, 90]]] * 15 + [[[90, 10], [0, 0]]] + [[[75, 25], [25, 75]]] * 15
    answer = series(asked("precision@B"), Series.of([alike([record_of(one) for one in counts])]), KeptSamples())
    assert next((one.before, one.after) for one in answer.changes) == pytest.approx((0.9, 0.0))
    for change in answer.changes:
        assert -1.0 <= change.difference.low < change.difference.value < change.difference.high <= 1.0
    assert {end for one in answer.changes for end in (one.difference.low, one.difference.high)} & {-1.0, 1.0}


def test_what_is_measured_one_by_one_may_be_a_thousand() -> None:
    whole = Series.of([weeks(1_001, 0)])
    with pytest.raises(OutOfReach, match="more than 1,000 evaluations, and limits of f_beta"):
        series(asked("f_beta(beta=2)@B"), whole, KeptSamples())


class _Kept:
    """A store of one series, whose samples nobody may read, and a pool that computes where it is asked."""

    def __init__(self, kind: str, metric: str) -> None:
        whole = weeks(1_001, 990)
        self._parts, self.metric = [replace(whole, first=replace(whole.first, kind=kind))], metric

    async def series(self, *_: object) -> Any:
        return self._parts

    async def run(self, work: Callable[[], Any]) -> Any:
        return work()

    def answer(self) -> HistoryPage:
        ports: Any = self
        history = HistoryService(ports, compute=ports)
        return asyncio.run(history.read("p", asked(self.metric, newest=True)))


def test_ids_of_many_predictions_are_not_read_and_what_needs_samples_is_refused() -> None:
    answer = _Kept("predictions", "recall@B").answer()
    assert len(answer.changes) == 1
    assert answer.notes[0].startswith("Which evaluations share samples is not known")
    with pytest.raises(OutOfReach, match="more than 1,000 evaluations whose samples are looked at one by one"):
        _Kept("probabilities", "log_loss").answer()


def told(metric: str, known: Sequence[tuple[EvaluationRecord, Samples]]) -> HistoryChange:
    """The one change of some evaluations with their samples."""
    kept = KeptSamples({record.id: samples for record, samples in known})
    (change,) = series(asked(metric), Series.of([alike([record]) for record, _ in known]), kept).changes
    return change


def test_a_change_of_a_loss_is_split_and_limits_are_of_groups_where_there_are_any() -> None:
    """Overconfident from the fifth on."""
    rng, alone, grouped = np.random.default_rng(3), list[Any](), list[Any]()
    for week in range(8):
        y = rng.choice(3, 150, p=(0.5, 0.3, 0.2))
        odds = (1.0 if week < 4 else 4.0) * (1.2 * np.eye(3)[y] + rng.normal(size=(150, 3)))
        chances = np.exp(odds - odds.max(axis=1, keepdims=True))
        record, samples = scored(y, chances / chances.sum(axis=1, keepdims=True))
        alone.append((record, samples))
        groups = np.array([f"{week}-{place // 5}" for place in range(150)])
        grouped.append((replace(record, facts={GROUPS_FACT: 30}), replace(samples, groups=groups)))
    items = []
    for known in (alone, grouped):
        change = told("log_loss", known)
        assert change.causes is not None
        assert change.causes.items is not None
        assert [one.factor.value for one in change.causes.items] == ["prevalence", "calibration", "refinement"]
        assert sum(one.value for one in change.causes.items) == pytest.approx(change.causes.difference, abs=1e-12)
        assert "log_loss rose" in change.message
        assert "because errors of calibration cost more" in change.message
        items.append(change.causes.items[1])
    assert items[0].value == pytest.approx(items[1].value)
    assert items[0].low != pytest.approx(items[1].low, rel=1e-6)


def test_causes_of_one_test_set_are_of_its_samples_and_not_of_each_time_that_they_were_seen() -> None:
    rng, truth, wide = np.random.default_rng(4), np.arange(400) % 2, list[float]()
    wrong = [rng.random(400) < share for share in (0.3, 0.05)]
    for ids in (np.arange(400), None):
        known = []
        for week in range(8):
            predicted = np.where(wrong[week >= 4], 1 - truth, truth)
            record = record_of(confusion_counts(truth, predicted, 2).astype(int), positive=1, kind="predictions")
            known.append((record, Samples(truth, predicted, ids=ids)))
        causes = told("precision@B", known).causes
        assert causes is not None
        assert causes.items is not None
        assert sum(one.value for one in causes.items) == pytest.approx(causes.difference, abs=1e-12)
        wide.append((causes.items[1].high or 0.0) - (causes.items[1].low or 0.0))
    assert wide[0] > 1.2 * wide[1]


def test_versions_that_hardly_differ_on_one_test_set_are_no_new_samples() -> None:
    """Two stretches of twelve versions that differ in a sample or two, of which the second is right on others by
    chance: as of independent evaluations that would be a change, and so it is where it is beyond chance on them.
    """
    rng, truth = np.random.default_rng(6), np.arange(400) % 2
    for share, apart, claimed in ((0.15, False, False), (0.3, False, True), (0.15, True, True)):
        known, wrong = (
            list[tuple[EvaluationRecord, Samples]](),
            [rng.permutation(400) < 400 * one for one in (0.1, share)],
        )
        for week in range(24):
            own = wrong[week >= 12].copy()
            own[week] = not own[week]
            predicted = np.where(own, 1 - truth, truth)
            record = record_of(confusion_counts(truth, predicted, 2).astype(int), positive=1, kind="predictions")
            ids = np.arange(400) + 400 * week * apart
            # Groups of one sample each are none, whatever they are called.
            record = replace(record, facts={GROUPS_FACT: 400})
            known.append((record, Samples(truth, predicted, ids=ids, groups=np.arange(400) + 1000 * week)))
        kept = KeptSamples({record.id: samples for record, samples in known})
        for metric in ("accuracy", "f_beta(beta=2)@B", "macro_f1"):
            answer = series(asked(metric), Series.of([alike([record]) for record, _ in known]), kept)
            assert bool(answer.changes) is claimed, (share, metric)
            assert [one[:35] for one in answer.notes] == ["The evaluations share their samples"] * (apart is False)
        if not apart:
            unknown = series(asked("min(recall@A, recall@B)"), Series.of([alike([one]) for one, _ in known[:3]]), kept)
            reasons = [one.metrics["min(recall@A, recall@B)"].reason for one in unknown.items]
            assert {str(one)[:34] for one in reasons} == {"the evaluations share samples, and"}
