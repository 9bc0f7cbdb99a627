"""For which costs one of two runs is cheaper, and net benefits beside those of dcurves."""

import csv
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from scipy import stats

from app.api.answers import answer_model
from app.services.compare.answers import RunComparison
from tests.api.answers import Json, check_problem, create, evaluation
from tests.api.decisions import compare, keep, keep_labels, keep_probabilities, probabilities
from tests.witnesses import sm

DATA = Path(__file__).parents[1] / "data" / "dcurves"


def ranges(listed: list[Json]) -> list[tuple[float, float | None, str]]:
    return [(one["low"], one["high"], one["cheaper"]) for one in listed]


def of(answer: Json) -> Json:
    answer_model(RunComparison).model_validate(answer)
    (found,) = answer["cost_ranges"]
    result: Json = found
    return result


def test_two_matrices_change_places_where_they_cost_the_same(client: httpx.Client) -> None:
    """10 misses and 300 false alarms against 40 and 120: as much where 30 r = 180."""
    careful, bold = keep(client, [[600, 300], [10, 90]], "careful"), keep(client, [[780, 120], [40, 60]], "bold")
    found = of(compare(client, careful, bold, metrics=["accuracy"], paired=False))
    assert (found["positive"], found["prevalence"]) == ("1", pytest.approx(0.1))
    assert ranges(found["ranges"]) == [(0, pytest.approx(6), "b"), (pytest.approx(6), None, "a")]
    low, open_, high = ranges(found["beyond_doubt"])
    assert (low[2], open_[2], high[2]) == ("b", "undecided", "a")
    assert open_[0] < 6 < (open_[1] or 0)
    assert found["method"] == "fieller, agresti_caffo"
    assert "best_thresholds" not in found
    elsewhere = of(compare(client, careful, bold, metrics=["accuracy"], cost_ranges={"prevalence": 0.02}))
    assert elsewhere["prevalence"] == 0.02
    # (1 - pi) / pi times what they differ in false alarms over what they differ in misses.
    assert elsewhere["ranges"][0]["high"] == pytest.approx(49 * 0.2 / 0.3)


@pytest.mark.parametrize("ratio", [5.9, 6.1])
def test_costs_near_the_end_of_a_range_say_the_same(client: httpx.Client, ratio: float) -> None:
    careful, bold = keep(client, [[600, 300], [10, 90]], "careful"), keep(client, [[780, 120], [40, 60]], "bold")
    metric = f'expected_cost(costs="0,1;{ratio},0")'
    answer = compare(client, careful, bold, metrics=[metric], paired=False)
    assert answer["metrics"][metric]["best"] == (careful if ratio > 6 else bold)


def test_limits_of_paired_runs_are_narrower(client: httpx.Client) -> None:
    """At the ends of what is undecided the expected costs differ by z deviations."""
    random = np.random.default_rng(3)
    truth = (np.arange(600) % 3 == 0).astype(int)
    first = np.where(random.random(600) < 0.85, truth, 1 - truth)
    second = np.where((random.random(600) < 0.15) & (first == 1), 0, first)
    runs = [keep_labels(client, truth, one, f"m{number}") for number, one in enumerate((first, second))]
    paired = of(compare(client, *runs, metrics=["accuracy"]))
    alone = of(compare(client, *runs, metrics=["accuracy"], paired=False))
    assert paired["method"] == "fieller, bonett_price"
    assert ranges(paired["ranges"]) == ranges(alone["ranges"])
    near, far = (
        next(one for one in found["beyond_doubt"] if one["cheaper"] == "undecided") for found in (paired, alone)
    )
    assert far["low"] < near["low"] < paired["ranges"][0]["high"] < near["high"] < (far["high"] or np.inf)


def test_best_thresholds_along_the_curves(client: httpx.Client) -> None:
    truth = np.arange(240) % 2
    outputs = probabilities(truth, 1, 0.7), probabilities(truth, 2, 0.9)
    runs = [keep_probabilities(client, truth, one, f"m{number}") for number, one in enumerate(outputs)]
    found = of(compare(client, *runs, metrics=["accuracy"], cost_ranges={"best_thresholds": True, "prevalence": 0.3}))
    ends = [one["high"] for one in found["best_thresholds"]]
    for one in found["best_thresholds"]:
        inside = (one["low"] + (one["low"] + 2 if one["high"] is None else one["high"])) / 2
        costs = [lowest(truth, output[:, 1], 0.3, inside) for output in outputs]
        expected = "equal" if costs[0] == pytest.approx(costs[1]) else "a" if costs[0] < costs[1] else "b"
        assert one["cheaper"] == expected
    assert ends[-1] is None
    assert ends[:-1] == sorted(ends[:-1])


def lowest(truth: Any, score: Any, prevalence: float, ratio: float) -> float:
    """Expected cost of the best of all thresholds."""
    cuts = [*np.unique(score), np.inf]
    return min(
        float(
            prevalence * ratio * (score[truth == 1] < cut).mean() + (1 - prevalence) * (score[truth == 0] >= cut).mean()
        )
        for cut in cuts
    )


def test_what_cannot_be_said(client: httpx.Client) -> None:
    three = [keep(client, [[8, 1, 1], [1, 8, 1], [1, 1, 8]], name) for name in "ab"]
    assert "cost_ranges" not in compare(client, *three, metrics=["accuracy"])
    body = {"evaluations": three, "cost_ranges": {"prevalence": 0.5}}
    problem = check_problem(client.post("/v1/comparisons", json=body), 422, "invalid_input")
    assert problem["errors"][0]["pointer"] == "/cost_ranges"
    lacking = [keep(client, [[50, 10], [0, 0]], "c"), keep(client, [[40, 10], [3, 7]], "d")]
    found = of(compare(client, *lacking, metrics=["specificity@1"]))
    assert (found["ranges"], found["beyond_doubt"], found["method"]) == (None, None, None)
    assert "no samples" in found["reason"]
    body = {"evaluations": lacking, "metrics": ["specificity@1"], "cost_ranges": {"best_thresholds": True}}
    problem = check_problem(client.post("/v1/comparisons", json=body), 422, "incomparable_runs")
    assert "best_thresholds needs the probabilities" in problem["detail"]


def test_two_labels_are_no_two_classes(client: httpx.Client) -> None:
    random = np.random.default_rng(2)
    truth = random.integers(0, 2, (40, 2))
    runs = []
    for wrong in (0.1, 0.3):
        said = truth ^ (random.random(truth.shape) < wrong)
        source = {"kind": "multilabel", "labels": ["cat", "dog"], "y_true": truth.tolist(), "y_pred": said.tolist()}
        body = evaluation(input={**source, "sample_ids": list(range(40))})
        runs.append(create(client, body)["id"])
    answer = compare(client, *runs, metrics=["subset_accuracy"])
    assert not {"cost_ranges", "paired_tests"} & set(answer)
    body = {"evaluations": runs, "metrics": ["subset_accuracy"], "cost_ranges": {}}
    problem = check_problem(client.post("/v1/comparisons", json=body), 422, "invalid_input")
    assert "about multilabel" in problem["detail"]


def net_benefits() -> tuple[Any, dict[str, Any], list[dict[str, str]]]:
    """Truth, the probabilities of two models, and what dcurves says of them."""
    rows = np.loadtxt(DATA / "samples.csv", delimiter=",", skiprows=1)
    truth, family, age = rows.T
    fitted = sm.Logit(truth, sm.add_constant(age)).fit(disp=0).predict()
    with (DATA / "net_benefit.csv").open(encoding="utf-8", newline="") as file:
        return truth.astype(int), {"famhistory": family, "age": fitted}, list(csv.DictReader(file))


def test_differences_of_net_benefits_beside_dcurves(client: httpx.Client) -> None:
    truth, models, published = net_benefits()
    thresholds = ("0.05", "0.1", "0.14", "0.2", "0.3")
    runs = [keep_probabilities(client, truth, np.column_stack([1 - one, one]), name) for name, one in models.items()]
    texts = {text: f"net_benefit_at(threshold={text})@1" for text in thresholds}
    answer = compare(client, *runs, metrics=[*texts.values()])
    printed = {row["threshold"]: [float(row[name]) for name in models] for row in published}
    for text, metric in texts.items():
        found = answer["metrics"][metric]
        assert found["values"] == pytest.approx(printed[text], rel=1e-12, abs=1e-15)
        (difference,) = found["differences"]
        first, second = printed[text]
        assert difference["difference"] == pytest.approx(first - second, abs=1e-14)
        odds = float(text) / (1 - float(text))
        gains = [np.where(truth == 1, 1.0, -odds) * (one >= float(text)) for one in models.values()]
        test = stats.ttest_rel(*gains)
        limits = test.confidence_interval(0.95)
        assert difference["p_value"] == pytest.approx(float(test.pvalue), rel=1e-9)
        assert [difference["low"], difference["high"]] == pytest.approx([limits.low, limits.high], rel=1e-9)
        assert difference["method"] == "paired_t, paired_t"
