"""Rankings of queries against exact fractions over all orders of ties, scikit-learn, and recorded values of other
libraries.
"""

import json
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.expressions.expressions import parse, render
from app.kernel.metrics.card import Inputs, Metric, Task
from app.kernel.metrics.catalogue import Selection, catalogue
from app.kernel.metrics.expression import Measure
from app.kernel.numerics.arrays import Array
from app.kernel.units import queries
from app.kernel.units.queries import NOT_RETRIEVED, UNJUDGED, Queries
from tests.bank import each
from tests.kernel.units import exact
from tests.witnesses import sk

CLOSE = 1e-12
OF_RANKINGS: Selection[Metric[Queries]] = catalogue().for_task(Task.RANKING, frozenset({Inputs.QUERIES}))
METRICS = OF_RANKINGS.metrics
RECORDED = json.loads((Path(__file__).parents[2] / "data" / "rankings.json").read_text(encoding="utf-8"))
CHOICES = {"exponential": "gain", "attainable": "divide", "places": "divide"}

Query = tuple[list[float], list[float]]
QUERY: st.SearchStrategy[Query] = st.integers(1, 6).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 3), min_size=n, max_size=n),
        st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.5]), min_size=n, max_size=n),
    )
)
QUERIES = st.lists(QUERY, min_size=1, max_size=4)


@st.composite
def judged_apart(draw: st.DrawFn) -> Query:
    """A query of which some items were judged and not retrieved, others retrieved and not judged."""
    relevance, scores = draw(QUERY)
    missing = draw(st.lists(st.sampled_from("jrb"), min_size=len(scores), max_size=len(scores)))
    return (
        [UNJUDGED if how == "r" else one for one, how in zip(relevance, missing, strict=True)],
        [NOT_RETRIEVED if how == "j" else one for one, how in zip(scores, missing, strict=True)],
    )


APART = st.lists(judged_apart(), min_size=1, max_size=4)


def queries_of(queries: list[Query], weights: Any = None) -> Queries:
    codes = [code for code, (relevance, _) in enumerate(queries) for _ in relevance]
    relevance, scores = (list(chain.from_iterable(column)) for column in zip(*queries, strict=True))
    return Queries(codes, relevance, scores, weights)


def metric_of(name: str) -> tuple[Metric[Queries], dict[str, Any]]:
    """A metric and its parameters, of ``key choice``."""
    key, _, choice = name.partition(" ")
    return OF_RANKINGS.by_name[key], {CHOICES[choice]: choice} if choice else {}


def of_each(metric: Metric[Queries], data: Queries, **parameters: Any) -> Array:
    assert metric.card.inference.terms is not None
    return metric.card.inference.terms(data, **parameters).of_units


def with_k(metric: Metric[Queries], k: int) -> dict[str, Any]:
    return {"k": float(k)} if "k" in metric.card.defaults else {}


def test_every_metric_has_an_exact_definition() -> None:
    assert {name.partition(" ")[0] for name in exact.OF_ONE} == {metric.key for metric in METRICS}


@settings(max_examples=20, deadline=None)
@given(queries=QUERIES | APART, k=st.integers(1, 8))
@each("name", exact.OF_ONE)
def test_ties_count_with_the_mean_over_all_their_orders(name: str, queries: list[Query], k: int) -> None:
    metric, chosen = metric_of(name)
    found = of_each(metric, queries_of(queries), **chosen, **with_k(metric, k))
    expected = [exact.of_query(name, *query, k) for query in queries]
    assert found.tolist() == pytest.approx(
        [np.nan if value is None else value for value in expected], rel=CLOSE, abs=CLOSE, nan_ok=True
    )
    known = [value for value in expected if value is not None]
    value = metric(queries_of(queries), **chosen, **with_k(metric, k))
    counts = queries_of(queries)
    assert counts.retrieved_items.tolist() == [sum(one > NOT_RETRIEVED for one in scores) for _, scores in queries]
    assert counts.unjudged_items.tolist() == [relevance.count(UNJUDGED) for relevance, _ in queries]
    assert float(value) == pytest.approx(np.mean(known) if known else np.nan, rel=CLOSE, abs=CLOSE, nan_ok=True)


@each("text", RECORDED["values"])
def test_values_of_trec_eval_ranx_and_ir_measures(text: str) -> None:
    data = queries_of(list(zip(RECORDED["relevance"], RECORDED["scores"], strict=True)))
    measure = parse(text, [], None, inputs={Inputs.QUERIES})
    assert isinstance(measure, Measure)
    found = of_each(measure.metric, data, **measure.parameters)
    # These count a query without relevant items as 0, where it has no value here.
    for library, values in RECORDED["values"][text].items():
        assert library in measure.metric.card.elsewhere
        # gdeval, which ir_measures asks, prints five decimals.
        digits = 5e-6 if library == "ir_measures" else CLOSE
        assert np.nan_to_num(found).tolist() == pytest.approx(values, rel=CLOSE, abs=digits)
    without = np.array([not any(relevance) for relevance in RECORDED["relevance"]])
    assert without.any()
    assert bool(np.isnan(found[without]).all()) is (
        measure.metric.key
        not in {
            *("precision_at_k", "hit_rate_at_k", "dcg_at_k"),
            *("rank_biased_precision", "expected_reciprocal_rank"),
        }
    )


@pytest.mark.parametrize("levels", [3, 10_000])
@pytest.mark.parametrize("k", [1, 5, 12, 40])
def test_gains_of_sklearn(levels: int, k: int) -> None:
    random = np.random.default_rng(levels + k)
    relevance, scores = random.integers(0, 5, (50, 12)), random.integers(0, levels, (50, 12)) / levels
    data = Queries(np.repeat(np.arange(50), 12), relevance.ravel(), scores.ravel())
    by_name = OF_RANKINGS.by_name
    assert float(by_name["dcg_at_k"](data, k=float(k))) == pytest.approx(
        sk.dcg_score(relevance, scores, k=k), rel=CLOSE
    )
    assert float(by_name["ndcg_at_k"](data, k=float(k))) == pytest.approx(
        sk.ndcg_score(relevance, scores, k=k), rel=CLOSE
    )


def test_rankings_of_labels_without_ties_in_sklearn() -> None:
    random = np.random.default_rng(5)
    relevance = random.integers(0, 2, (60, 9))
    relevance[:, 0], relevance[:, 1] = 1, 0
    scores = random.random((60, 9))
    data = Queries(np.repeat(np.arange(60), 9), relevance.ravel(), scores.ravel())
    by_name = OF_RANKINGS.by_name
    expected = sk.label_ranking_average_precision_score(relevance, scores)
    assert float(by_name["mean_average_precision"](data)) == pytest.approx(expected, rel=CLOSE)
    assert float(by_name["query_auc"](data)) == pytest.approx(1.0 - sk.label_ranking_loss(relevance, scores), rel=CLOSE)


@settings(max_examples=20, deadline=None)
@given(queries=QUERIES, data=st.data())
@each("metric", METRICS, ids=lambda metric: metric.key)
def test_weights_count_queries(metric: Metric[Queries], queries: list[Query], data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(0, 3), min_size=len(queries), max_size=len(queries)))
    repeated = [query for query, count in zip(queries, counts, strict=True) for _ in range(count)]
    batch = queries_of(queries).with_weights([counts, [1] * len(queries)])
    expected = [float(metric(queries_of(repeated))) if repeated else np.nan, float(metric(queries_of(queries)))]
    assert metric(batch).tolist() == pytest.approx(expected, rel=CLOSE, abs=CLOSE, nan_ok=True)


def replicated(queries: list[Query], relevant: int, irrelevant: int) -> list[Query]:
    """Every relevant and every irrelevant item so many times, with the same score."""
    rows = [
        [(rel, score) for rel, score in zip(*query, strict=True) for _ in range(relevant if rel > 0 else irrelevant)]
        for query in queries
    ]
    return [([rel for rel, _ in row], [score for _, score in row]) for row in rows]


@settings(max_examples=20, deadline=None)
@given(queries=QUERIES, relevant=st.integers(1, 3), irrelevant=st.integers(1, 3))
@each("metric", [m for m in METRICS if m.card.prevalence.is_insensitive(2)], ids=lambda m: m.key)
def test_marked_insensitive_to_how_many_items_are_relevant(
    metric: Metric[Queries], queries: list[Query], relevant: int, irrelevant: int
) -> None:
    found = of_each(metric, queries_of(replicated(queries, relevant, irrelevant)))
    expected = of_each(metric, queries_of(queries))
    assert found.tolist() == pytest.approx(expected.tolist(), rel=CLOSE, abs=CLOSE, nan_ok=True)


@each("metric", [m for m in METRICS if not m.card.prevalence.is_insensitive(2)], ids=lambda m: m.key)
def test_marked_sensitive_and_moved_by_irrelevant_items(metric: Metric[Queries]) -> None:
    queries: list[Query] = [([0, 2, 0, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4]), ([1, 0], [0.3, 0.6])]
    both = [queries_of(queries), queries_of(replicated(queries, 1, 2))]
    found = [[float(metric(data, **with_k(metric, k))) for data in both] for k in (2, 3)]
    assert any(abs(before - after) > 1e-3 for before, after in found)


@settings(max_examples=20, deadline=None)
@given(queries=QUERIES, times=st.integers(2, 3))
@each("metric", METRICS, ids=lambda metric: metric.key)
def test_replicating_all_queries_moves_nothing(metric: Metric[Queries], queries: list[Query], times: int) -> None:
    expected = float(metric(queries_of(queries)))
    assert float(metric(queries_of(queries * times))) == pytest.approx(expected, rel=CLOSE, abs=CLOSE, nan_ok=True)


@settings(max_examples=20, deadline=None)
@given(queries=QUERIES | APART, k=st.integers(1, 9))
@each("metric", METRICS, ids=lambda metric: metric.key)
def test_within_the_range_and_undefined_only_with_a_reason(
    metric: Metric[Queries], queries: list[Query], k: int
) -> None:
    data = queries_of(queries)
    value = float(metric(data, **with_k(metric, k)))
    low, high = metric.card.range
    reasons = [one.code for one in metric.card.undefined if one.holds(data)]
    assert (not np.isfinite(value)) == bool(reasons)
    assert np.isinf(value) == (reasons == ["infinite"])
    assert not np.isfinite(value) or (low or 0.0) - CLOSE <= value <= (np.inf if high is None else high + CLOSE)


@each("metric", METRICS, ids=lambda metric: metric.key)
def test_the_best_order_has_the_ideal_value(metric: Metric[Queries]) -> None:
    data = queries_of([([3, 1, 0, 0], [0.4, 0.3, 0.2, 0.1]), ([1, 1, 0], [3.0, 2.0, 1.0])])
    if metric.card.ideal is None or metric.key == "fall_out_at_k":
        return
    assert float(metric(data, **with_k(metric, 2))) == pytest.approx(metric.card.ideal)


def test_long_blocks_of_ties() -> None:
    """One relevant item among a million that are tied: the mean of 1/m and of m over all places."""
    size = 1_000_000
    data = Queries(np.zeros(size, dtype=int), np.arange(size) == 7, np.ones(size))
    first = data.first_relevant
    harmonic = np.sum(1.0 / np.arange(1.0, size + 1.0))
    assert float(queries.expected_reciprocal(first)[0]) == pytest.approx(harmonic / size, rel=1e-11)
    assert float(queries.expected_rank(first)[0]) == (size + 1) / 2
    assert float(queries.chance_of_a_hit(first, 1000)[0]) == pytest.approx(1e-3, rel=CLOSE)


def test_cutoffs_are_written_out_where_they_are_the_default() -> None:
    assert render(parse("ndcg_at_k", [], None, inputs={Inputs.QUERIES}), []) == "ndcg_at_k(k=10)"
    assert render(parse("ndcg_at_k(gain=exponential)", [], None, inputs={Inputs.QUERIES}), []) == (
        "ndcg_at_k(k=10, gain=exponential)"
    )


@pytest.mark.parametrize(
    ("query", "relevance", "scores"),
    [
        ([], [], []),
        ([0, 2], [1, 1], [1, 2]),
        ([0, 0], [1, -2], [1, 2]),
        ([0, 0], [1, np.nan], [1, 2]),
        ([0, 0], [1, 1], [1, np.nan]),
        ([0, 0], [1, 1], [1, np.inf]),
        ([0, 0], [1], [1, 2]),
        ([-1, 0], [1, 1], [1, 2]),
    ],
)
def test_what_is_no_ranking(query: list[int], relevance: list[int], scores: list[float]) -> None:
    with pytest.raises(ValueError, match=r"quer|items|codes"):
        Queries(query, relevance, scores)


def test_what_a_query_is_worth_depends_on_no_other_and_on_no_order() -> None:
    """Bit for bit: so queries can be looked at some at a time, wherever their items lay."""
    random = np.random.default_rng(4)
    sizes = random.integers(1, 90, 200)
    codes = np.repeat(np.arange(200), sizes)
    # Scores with many ties, relevances that do not add up exactly.
    scores, relevance = random.integers(0, 12, codes.size).astype(float), random.random(codes.size)
    relevance[random.random(codes.size) < 0.6] = 0.0
    relevance[random.random(codes.size) < 0.1] = UNJUDGED
    missed = (random.random(codes.size) < 0.2) & (relevance > UNJUDGED)
    missed[codes < 3] |= relevance[codes < 3] > UNJUDGED
    scores[missed] = NOT_RETRIEVED
    shuffled = random.permutation(codes.size)
    whole = Queries(codes, relevance, scores)
    other = Queries(codes[shuffled], relevance[shuffled], scores[shuffled])
    parts = [np.flatnonzero((codes >= start) & (codes < start + 8)) for start in range(0, 200, 8)]
    few = [Queries(codes[rows] - codes[rows[0]], relevance[rows], scores[rows]) for rows in parts]
    for metric in METRICS:
        for parameters in ({"gain": "exponential"}, {}) if "gain" in metric.card.defaults else ({},):
            values = of_each(metric, whole, **parameters)
            np.testing.assert_array_equal(values, of_each(metric, other, **parameters), strict=True)
            apart = np.concatenate([of_each(metric, one, **parameters) for one in few])
            np.testing.assert_array_equal(values, apart, strict=True)
    np.testing.assert_array_equal(whole.tied_items, np.concatenate([one.tied_items for one in few]))
    of_each_query = [scores[codes == code].tolist() for code in range(200)]
    assert whole.tied_items.tolist() == [
        sum(own.count(one) > 1 for one in own if one > NOT_RETRIEVED) for own in of_each_query
    ]


def test_queries_of_very_different_length_are_sorted_alike() -> None:
    """One long query beside many short ones is sorted in another way than rows of one length."""
    random = np.random.default_rng(8)
    codes = np.concatenate([np.zeros(9000, dtype=int), 1 + np.arange(3000) // 2])
    scores, relevance = random.random(codes.size), random.integers(0, 2, codes.size).astype(float)
    scores[random.random(codes.size) < 0.3] = NOT_RETRIEVED
    whole = Queries(codes, relevance, scores)
    for metric in METRICS:
        alone = [
            of_each(metric, Queries(codes[rows] * 0, relevance[rows], scores[rows]))
            for rows in (codes == 0, codes == 7)
        ]
        np.testing.assert_array_equal(of_each(metric, whole)[[0, 7]], np.concatenate(alone))
    nowhere = Queries(codes, relevance, np.full(codes.size, NOT_RETRIEVED))
    assert float(METRICS[0](nowhere)) == 0.0
