"""Weighted samples with labels over HTTP: limits, what the weights are worth, comparisons and leaderboards."""

import httpx
import numpy as np
import pytest

from tests.api.answers import Json, compute
from tests.api.decisions import compare
from tests.api.test_multilabel import keep, problem, source_of

SIZE = 90
TRUTH, FIRST = problem(1, size=SIZE, wrong=0.1)
SECOND = problem(2, size=SIZE, wrong=0.3)[1]
WEIGHTS = np.random.default_rng(0).gamma(2.0, 1.0, SIZE)
EFFECTIVE = WEIGHTS.sum() ** 2 / (WEIGHTS**2).sum()


def weighted(said: np.ndarray, weights: np.ndarray = WEIGHTS, **members: object) -> Json:
    ids = [f"s{place}" for place in range(SIZE)]
    return source_of(TRUTH, said, sample_ids=ids, sample_weight=weights.tolist(), **members)


def test_the_report_says_what_the_weights_are_worth(client: httpx.Client) -> None:
    kept = keep(client, weighted(FIRST))
    assert kept["input"]["effective_samples"] == pytest.approx(EFFECTIVE)
    assert kept["weights"]["effective_samples"] == pytest.approx(EFFECTIVE)
    assert kept["weights"]["n_samples"] == SIZE
    assert {"h_mean", "macro_f1", "subset_accuracy"} <= kept["weights"]["design_effects"].keys()
    assert all(effect > 1.0 for effect in kept["weights"]["design_effects"].values())
    assert "samples_with_weights" in [finding["code"] for finding in kept["findings"]]
    assert client.get(f"/v1/evaluations/{kept['id']}").json() == kept
    unkept = keep(client, weighted(FIRST), options={"retain": "none"})
    assert client.get(f"/v1/evaluations/{unkept['id']}").json()["weights"] == kept["weights"]


def test_limits_have_the_linearised_variance(client: httpx.Client) -> None:
    answer = compute(client, weighted(FIRST), intervals="all")
    for name in ("recall@cat", "h_mean", "macro_f1", "subset_accuracy", "samples_f1"):
        found = answer["intervals"][name]
        assert found["low"] < found["high"], name
        assert found["method"].startswith("weighted_"), name
    plain = compute(client, source_of(TRUTH, FIRST))["intervals"]["samples_f1"]
    assert answer["intervals"]["samples_f1"]["high"] - answer["intervals"]["samples_f1"]["low"] > (
        plain["high"] - plain["low"]
    )


def test_weighted_runs_are_compared_and_ranked(client: httpx.Client) -> None:
    first, second = (
        keep(client, weighted(said), dataset={"name": "weighed"}, model={"name": model})["id"]
        for model, said in (("one", FIRST), ("two", SECOND))
    )
    answer = compare(client, first, second, metrics=["subset_accuracy"], draws=500)
    assert answer["design"]["paired"] is True
    (difference,) = answer["metrics"]["subset_accuracy"]["differences"]
    right = ((TRUTH == FIRST).all(axis=1) * 1.0, (TRUTH == SECOND).all(axis=1) * 1.0)
    gaps = right[0] - right[1]
    assert difference["difference"] == pytest.approx(np.average(gaps, weights=WEIGHTS))
    error = np.sqrt((WEIGHTS**2 * (gaps - difference["difference"]) ** 2).sum()) / WEIGHTS.sum()
    assert difference["high"] - difference["low"] == pytest.approx(3.92 * error, rel=0.2)
    board = client.get("/v1/leaderboard", params={"dataset": "weighed", "metric": "subset_accuracy"}).json()
    assert [line["model"]["name"] for line in board["items"]] == ["one", "two"]
    assert all(line["low"] < line["value"] < line["high"] for line in board["items"])
    rules = [{"metric": "subset_accuracy", "min": 0.2}, {"metric": "subset_accuracy", "better_than": "baseline"}]
    client.put("/v1/gates/weighed", json={"rules": rules}).raise_for_status()
    checked = client.post("/v1/gates/weighed/checks", json={"evaluation": first, "baseline": second}).json()
    assert [one["verdict"] for one in checked["results"]] == ["pass", "pass"]


def test_runs_that_weigh_samples_differently_are_not_paired(client: httpx.Client) -> None:
    first, second = keep(client, weighted(FIRST))["id"], keep(client, weighted(SECOND, WEIGHTS[::-1]))["id"]
    design = compare(client, first, second, metrics=["subset_accuracy"], draws=200)["design"]
    assert design["paired"] is False
    assert "weighs the samples" in design["reason"]
