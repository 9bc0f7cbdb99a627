"""Runs compared on few queries, label sets or items: Student's t on the differences of each."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from app.domain.inputs import ranking
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.multilabel import Multilabel
from app.domain.inputs.sets import Sets
from app.domain.options import IntervalChoice, Options
from app.services.compare.answers import ComparedPair, RunComparison
from app.services.compare.comparisons import compare
from app.services.evaluate.reports import evaluate
from app.services.runs.pairing import PairingMode
from tests.services.referenced import asked_of_sources
from tests.witnesses import sk

ITEMS = 12


def grades_of(queries: int, seed: int) -> NDArray[np.float64]:
    random = np.random.default_rng(seed)
    grades = np.where(random.random((queries, ITEMS)) < 0.6, 0.0, random.integers(1, 4, (queries, ITEMS)))
    grades[:, 0] = np.maximum(grades[:, 0], 1.0)
    return grades


def ranked(grades: NDArray[np.float64], scores: NDArray[np.float64]) -> MatrixInput:
    names = np.repeat(np.arange(len(grades)), ITEMS)
    return ranking.Ranking(query_ids=names, relevance=grades.ravel(), scores=scores.ravel()).read("/input")


def compared(sources: list[MatrixInput], metric: str, **asked: Any) -> RunComparison:
    new, kept = asked_of_sources(sources, [metric], **asked)
    return compare(new, kept, identifier=new.runs.records[0].id)


def numbers_of(pair: ComparedPair) -> tuple[float, float, float]:
    """Limits and p, which have to be there."""
    assert pair.low is not None
    assert pair.high is not None
    assert pair.p_value is not None
    return pair.low, pair.high, pair.p_value


def two_rankings(queries: int, seed: int) -> tuple[NDArray[np.float64], RunComparison]:
    """Differences of nDCG@5 of each query by scikit-learn, and the comparison."""
    grades, random = grades_of(queries, seed), np.random.default_rng(seed + 1000)
    first, second = (grades + random.normal(0, 2, grades.shape) for _ in range(2))
    values = [
        [float(sk.ndcg_score(truth[None], scores[None], k=5)) for truth, scores in zip(grades, run, strict=True)]
        for run in (first, second)
    ]
    found = compared([ranked(grades, first), ranked(grades, second)], "ndcg_at_k(k=5)")
    return np.subtract(values[0], values[1]), found


@pytest.mark.parametrize("queries", [6, 20])
def test_limits_and_p_of_rankings_are_those_of_one_t_distribution(queries: int) -> None:
    differences, found = two_rankings(queries, 3)
    (pair,) = found.metrics["ndcg_at_k(k=5)"].differences
    witness = stats.ttest_1samp(differences, 0.0)
    limits = witness.confidence_interval(0.95)
    assert pair.difference == pytest.approx(differences.mean(), abs=1e-12)
    assert numbers_of(pair) == pytest.approx((limits.low, limits.high, witness.pvalue), abs=1e-9)


@pytest.mark.slow
def test_equal_rankings_of_few_queries_are_rarely_told_apart() -> None:
    found = [two_rankings(6, seed)[1].metrics["ndcg_at_k(k=5)"].differences[0] for seed in range(100)]
    apart = [(low > 0 or high < 0, p < 0.05) for low, high, p in map(numbers_of, found)]
    assert all(by_limits == by_p for by_limits, by_p in apart)
    assert sum(by_limits for by_limits, _ in apart) <= 10


def test_fewer_than_six_queries_have_no_limits() -> None:
    _, found = two_rankings(5, 1)
    (pair,) = found.metrics["ndcg_at_k(k=5)"].differences
    assert np.isnan(numbers_of(pair)).all()
    assert "fewer than 6 queries" in str(pair.reason)


def test_skewed_differences_of_few_queries_are_warned_of() -> None:
    grades = grades_of(8, 5)
    scores = grades + 0.001 * np.arange(ITEMS)
    worse = scores.copy()
    worse[0] = -worse[0]
    found = compared([ranked(grades, scores), ranked(grades, worse)], "ndcg_at_k(k=5)")
    assert [finding.code for finding in found.findings or ()] == ["few_queries_skewed"]
    # The difference of two that are skewed alike, on queries of their own, is not.
    new, kept = asked_of_sources([ranked(grades, worse)] * 2, ["ndcg_at_k(k=5)"])
    apart = replace(new, new=replace(new.new, paired=PairingMode.FALSE))
    assert not compare(apart, kept, identifier=new.runs.records[0].id).findings


def test_label_sets_have_limits_that_agree_with_p() -> None:
    random = np.random.default_rng(8)
    members = random.random((40, 5)) < 0.4
    sources = [
        Multilabel(y_true=members, y_pred=members ^ (random.random((40, 5)) < share), sample_ids=np.arange(40)).read(
            "/input"
        )
        for share in (0.15, 0.1)
    ]
    (pair,) = compared(sources, "hamming_loss").metrics["hamming_loss"].differences
    low, high, p = numbers_of(pair)
    assert (low > 0 or high < 0) == (p < 0.05)


def test_shares_of_label_sets_that_are_not_paired_have_the_same_limits_of_any_number_of_labels() -> None:
    random = np.random.default_rng(8)
    members = random.random((40, 5)) < 0.4
    wrong = [random.random(40) < share for share in (0.4, 0.3)]
    found = []
    for labels in (2, 5):
        sources = [
            Multilabel(y_true=members[:, :labels], y_pred=members[:, :labels] ^ one[:, None]).read("/input")
            for one in wrong
        ]
        new, kept = asked_of_sources(sources, ["subset_accuracy"])
        any_pairing = replace(new, new=replace(new.new, paired=PairingMode.AUTO))
        answer = compare(any_pairing, kept, identifier=new.runs.records[0].id)
        found.append(numbers_of(answer.metrics["subset_accuracy"].differences[0]))
    assert np.isfinite(found[0]).all()
    assert found[0] == found[1]


def test_groups_that_are_all_alike_have_no_limits() -> None:
    """What rounding leaves of sums that are 0 is no variance: it made limits without width."""
    of_group = {"n_true": [1, 1, 0, 1, 1, 0], "n_predicted": [1, 1, 1, 1, 0, 1], "n_common": [1, 1, 0, 1, 0, 0]}
    columns: dict[str, Any] = {name: np.array(10 * each, dtype=np.float64) for name, each in of_group.items()}
    report = evaluate(Sets(**columns, group_ids=np.arange(60) // 6).read(""), Options(intervals=IntervalChoice.ALL))
    reasons = {name: interval.get("reason", "") for name, interval in report.intervals.items()}
    for name in ("samples_f1", "pooled_f1", "pooled_precision", "pooled_recall"):
        assert "variance is zero" in reasons[name], name
