"""Gates, leaderboards and comparisons across datasets on metrics that need the probabilities of the samples."""

from typing import Any
from uuid import uuid4

import httpx
import numpy as np
import pytest
from scipy import stats

from app.api.answers import answer_model
from app.kernel.uncertainty.influence import area_alone, limits
from app.services.gate import CheckAnswer
from app.services.rank import Leaderboard
from tests.api.answers import Json, check_json, check_problem, check_shape, create, evaluation
from tests.api.decisions import keep, keep_probabilities, probabilities
from tests.kernel.delong import area_difference, delong
from tests.kernel.probability.problems import hall
from tests.witnesses import sk

TRUTH = np.arange(400) % 2
CLASSES = np.arange(300) % 3


def check(client: httpx.Client, rules: list[Json], run: str, baseline: str | None = None) -> Json:
    """The check of a run against a gate of its own."""
    name = f"gate-{uuid4().hex}"
    reply = client.put(f"/v1/gates/{name}", json={"rules": rules})
    assert reply.status_code == 201, reply.text
    body = {"evaluation": run, **({} if baseline is None else {"baseline": baseline})}
    reply = client.post(f"/v1/gates/{name}/checks", json=body)
    assert reply.status_code == 201, reply.text
    check_json(reply, named=("each",))
    answer: Json = reply.json()
    answer_model(CheckAnswer).model_validate(answer)
    assert client.get(reply.headers["location"]).json() == answer
    return answer


def result(client: httpx.Client, rule: Json, run: str, baseline: str | None = None) -> Json:
    (found,) = check(client, [rule], run, baseline)["results"]
    answer: Json = found
    return answer


def test_floors_of_areas_use_the_interval_of_the_evaluation(client: httpx.Client) -> None:
    outputs = probabilities(TRUTH, 1)
    run = keep_probabilities(client, TRUTH, outputs)
    shown = client.get(f"/v1/evaluations/{run}").json()["intervals"]["roc_auc@1"]
    found = delong(TRUTH == 1, outputs[None, :, 1])
    ends = limits(area_alone(float(found.areas[0]), float(found.covariance[0, 0]), 200, 200))
    assert ends is not None
    low, high, method = ends.low, ends.high, ends.method
    rule = result(client, {"metric": "roc_auc@1", "min": low - 0.01}, run)
    assert (rule["value"], rule["low"], rule["high"]) == pytest.approx((found.areas[0], low, high))
    assert (rule["low"], rule["high"]) == pytest.approx((shown["low"], shown["high"]))
    assert rule["method"] == method
    assert rule["verdict"] == "pass"
    assert result(client, {"metric": "roc_auc", "min": high + 0.01}, run)["verdict"] == "fail"
    open_rule = result(client, {"metric": "roc_auc@1", "min": (low + found.areas[0]) / 2}, run)
    assert open_rule["verdict"] == "inconclusive"
    # Half the distance takes four times the samples, and to settle it in 80 % and not in half of the cases up to twice.
    assert 1600 < open_rule["needed_samples"] < 3300


def test_ceilings_of_losses(client: httpx.Client) -> None:
    outputs = probabilities(TRUTH, 1)
    run = keep_probabilities(client, TRUTH, outputs)
    losses = -np.log(outputs[np.arange(400), TRUTH])
    parts = (losses - losses.mean()) / np.sqrt(losses.size * (losses.size - 1))
    low, high = hall(losses.mean(), parts, stats.t.ppf(0.975, 399))
    rule = result(client, {"metric": "log_loss", "max": high + 0.01}, run)
    assert (rule["low"], rule["high"]) == pytest.approx((low, high))
    assert rule["verdict"] == "pass"
    assert result(client, {"metric": "log_loss", "max": low - 0.01}, run)["verdict"] == "fail"


@pytest.mark.parametrize("metric", ["pr_auc_trapezoid@1", "mean(h_mean, roc_auc@1)", "expected_calibration_error"])
def test_what_is_resampled_has_an_interval_too(client: httpx.Client, metric: str) -> None:
    run = keep_probabilities(client, TRUTH, probabilities(TRUTH, 1))
    rule = result(client, {"metric": metric, "min": 0.0}, run)
    assert rule["verdict"] == "pass"
    assert rule["low"] < rule["value"] < rule["high"]
    assert rule["method"].startswith("bootstrap")
    other = result(client, {"metric": metric, "min": 0.0}, run)
    assert other["value"] == rule["value"]


def test_every_class_has_to_pass(client: httpx.Client) -> None:
    outputs = probabilities(CLASSES, 1)
    # Of class 2 nothing is known.
    outputs[:, 2] = np.random.default_rng(0).random(300)
    outputs[:, :2] *= ((1 - outputs[:, 2]) / outputs[:, :2].sum(axis=1))[:, None]
    run = keep_probabilities(client, CLASSES, outputs)
    rule = result(client, {"metric": "roc_auc@*", "min": 0.6}, run)
    areas = [sk.roc_auc_score(code == CLASSES, outputs[:, code]) for code in range(3)]
    assert [one["value"] for one in rule["each"].values()] == pytest.approx(areas)
    assert rule["decided_by"] == "roc_auc@2"
    assert rule["verdict"] == "fail"
    assert rule["each"]["roc_auc@0"]["verdict"] == "pass"


def test_beside_a_baseline(client: httpx.Client) -> None:
    champion, candidate = probabilities(TRUTH, 1, 0.6), probabilities(TRUTH, 2, 1.0)
    first, second = (keep_probabilities(client, TRUTH, one) for one in (champion, candidate))
    expected = area_difference(delong(TRUTH == 1, np.stack([candidate[:, 1], champion[:, 1]])), 0, 1)
    rules: list[Json] = [
        {"metric": "roc_auc@1", "better_than": "baseline"},
        {"metric": "log_loss", "better_than": "baseline"},
        {"metric": "average_precision@1", "not_worse_than": "baseline", "margin": 0.01},
        {"metric": "mean(h_mean, roc_auc@1)", "not_worse_than": "baseline", "margin": 0.01},
        {"metric": "h_mean", "not_worse_than": "baseline", "margin": 0.01},
    ]
    answer = check(client, rules, second, first)
    assert answer["verdict"] == "pass", answer
    area, loss, *_ = answer["results"]
    assert (area["value"], area["low"], area["high"]) == pytest.approx(
        (expected.difference, expected.low, expected.high)
    )
    assert area["method"] == "delong, sample_ids"
    assert area["candidate_value"] - area["baseline_value"] == pytest.approx(area["value"])
    # Lower is better.
    assert loss["high"] < 0
    back = check(client, rules, first, second)
    assert [one["verdict"] for one in back["results"][:2]] == ["fail", "fail"]
    same = result(client, {"metric": "roc_auc@1", "not_worse_than": "baseline", "margin": 0.05}, first, first)
    assert same["verdict"] == "pass"


def test_weighted_samples_are_judged_by_their_value_and_by_limits(client: httpx.Client) -> None:
    outputs, weights = probabilities(TRUTH, 1), 1.0 + TRUTH
    run = keep_probabilities(client, TRUTH, outputs, sample_weight=weights.tolist())
    rule = result(client, {"metric": "log_loss", "max": 5, "bound": "value"}, run)
    assert rule["verdict"] == "pass"
    assert rule["value"] == pytest.approx(sk.log_loss(TRUTH, outputs, sample_weight=weights))
    limited = result(client, {"metric": "log_loss", "max": 5}, run)
    assert limited["verdict"] == "pass"
    assert limited["low"] < rule["value"] < limited["high"]
    other = keep_probabilities(client, TRUTH, outputs)
    gap = result(client, {"metric": "log_loss", "not_worse_than": "baseline", "bound": "value"}, run, other)
    # The weights change the mix of the classes and nothing else: at one mix the runs are the same.
    assert gap["value"] == pytest.approx(0.0, abs=1e-12)


def test_gates_need_the_samples(client: httpx.Client) -> None:
    good = keep_probabilities(client, TRUTH, probabilities(TRUTH, 1))
    forgotten = keep_probabilities(client, TRUTH, probabilities(TRUTH, 1), options={"retain": "none"})
    matrix = keep(client, [[150, 50], [40, 160]])
    name = f"gate-{uuid4().hex}"
    client.put(f"/v1/gates/{name}", json={"rules": [{"metric": "roc_auc@1", "not_worse_than": "baseline"}]})
    for body, pointer, why in (
        ({"evaluation": forgotten, "baseline": good}, "/evaluation", "retain=none"),
        ({"evaluation": good, "baseline": matrix}, "/baseline", "confusion matrix"),
    ):
        problem = check_problem(client.post(f"/v1/gates/{name}/checks", json=body), 422, "incomparable_runs")
        assert problem["errors"][0]["pointer"] == pointer
        assert why in problem["detail"]
        assert "roc_auc@1" in problem["detail"]
    # A rule on the candidate alone asks nothing of the baseline.
    rules: list[Json] = [{"metric": "roc_auc@1", "min": 0.5}, {"metric": "h_mean", "not_worse_than": "baseline"}]
    assert check(client, rules, good, matrix)["results"][0]["verdict"] == "pass"


def board(client: httpx.Client, dataset: str, metric: str, **parameters: Any) -> Json:
    reply = client.get("/v1/leaderboard", params={"dataset": dataset, "metric": metric, **parameters})
    assert reply.status_code == 200, reply.text
    check_json(reply)
    answer: Json = reply.json()
    check_shape(answer, Leaderboard)
    return answer


@pytest.fixture(scope="module")
def ranked(client: httpx.Client) -> tuple[str, list[Any]]:
    """A dataset with runs of rising skill, the last far ahead, and two without probabilities."""
    dataset = uuid4().hex
    outputs = [probabilities(TRUTH, seed, skill) for seed, skill in enumerate((0.5, 0.52, 1.2))]
    for number, one in enumerate(outputs):
        keep_probabilities(client, TRUTH, one, f"m{number}", dataset)
    keep_probabilities(client, TRUTH, probabilities(TRUTH, 9, 0.6), "forgetful", dataset, options={"retain": "none"})
    keep(client, [[150, 50], [40, 160]], "counted", dataset)
    return dataset, outputs


def test_leaderboards_have_intervals_and_groups(client: httpx.Client, ranked: tuple[str, list[Any]]) -> None:
    dataset, outputs = ranked
    answer = board(client, dataset, "log_loss")
    assert answer["better"] == "lower"
    assert answer["design"]["paired"]
    by_model = {line["model"]["name"]: line for line in answer["items"]}
    assert answer["items"][0]["model"]["name"] == "m2"
    losses = [-np.log(one[np.arange(400), TRUTH]) for one in outputs]
    for number, loss in enumerate(losses):
        line = by_model[f"m{number}"]
        assert line["value"] == pytest.approx(loss.mean())
        parts = (loss - loss.mean()) / np.sqrt(loss.size * (loss.size - 1))
        assert (line["low"], line["high"]) == pytest.approx(hall(loss.mean(), parts, stats.t.ppf(0.975, 399)))
        assert line["method"] == "hall_t"
    assert by_model["m2"]["separable_from_best"] is False
    assert by_model["m0"]["separable_from_best"] is by_model["m1"]["separable_from_best"] is True
    assert by_model["m0"]["group"] == by_model["m1"]["group"] == 2
    assert by_model["forgetful"]["value"] is not None
    assert by_model["forgetful"]["low"] is None
    assert "retain=none" in by_model["forgetful"]["reason"]
    assert by_model["counted"]["value"] is None
    assert "confusion matrix" in by_model["counted"]["reason"]


@pytest.mark.parametrize(
    ("metric", "method"),
    [
        ("roc_auc@1", "delong_logit"),
        ("average_precision@1", "influence_logit"),
        ("pr_auc_trapezoid@1", "bootstrap"),
        ("mean(h_mean, roc_auc@1)", "bootstrap"),
        ("log_loss(clip=0.01)", "hall_t"),
    ],
)
def test_leaderboards_of_what_is_not_stored(
    client: httpx.Client, ranked: tuple[str, list[Any]], metric: str, method: str
) -> None:
    dataset, outputs = ranked
    answer = board(client, dataset, metric)
    first = answer["items"][0]
    assert first["model"]["name"] == "m2"
    assert first["method"] == method
    assert first["low"] < first["value"] < first["high"]
    if metric == "roc_auc@1":
        assert first["value"] == pytest.approx(sk.roc_auc_score(TRUTH, outputs[2][:, 1]))
    by_model = {line["model"]["name"]: line for line in answer["items"]}
    assert by_model["m0"]["separable_from_best"] is True
    for name in ("forgetful", "counted"):
        assert by_model[name]["rank"] is None
        assert metric in by_model[name]["reason"]
    assert answer["winner"]["expected_optimism"] * (1 if answer["better"] == "higher" else -1) > -1e-12


def test_leaderboards_of_runs_on_other_samples(client: httpx.Client) -> None:
    dataset = uuid4().hex
    for number, skill in enumerate((0.5, 1.2)):
        keep_probabilities(
            client, TRUTH, probabilities(TRUTH, number, skill, shared=number), f"m{number}", dataset, sample_ids=None
        )
    answer = board(client, dataset, "roc_auc@1")
    assert not answer["design"]["paired"]
    assert [line["separable_from_best"] for line in answer["items"]] == [False, True]
    assert any("independent" in note for note in answer["notes"])


def test_leaderboards_look_at_so_many_samples_only(
    client: httpx.Client, ranked: tuple[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, outputs = ranked
    monkeypatch.setattr("app.services.runs.pairing.MOST_ENTRIES", 900)
    answer = board(client, dataset, "log_loss")
    assert answer["items"][0]["value"] == pytest.approx(sk.log_loss(TRUTH, outputs[2]))
    assert answer["items"][0]["low"] is None
    assert "more samples" in answer["items"][0]["reason"]
    reply = client.get("/v1/leaderboard", params={"dataset": dataset, "metric": "roc_auc@1"})
    assert "overall metric" in check_problem(reply, 422, "invalid_query")["detail"]


def test_leaderboards_of_perfect_areas(client: httpx.Client) -> None:
    """Two perfect runs cannot be told apart, and have intervals that are not points."""
    dataset, truth = uuid4().hex, np.arange(30) % 2
    for number, high in enumerate((0.9, 0.8)):
        keep_probabilities(client, truth, np.where(np.eye(2)[truth] == 1, high, 1 - high), f"m{number}", dataset)
    items = board(client, dataset, "roc_auc@1")["items"]
    assert [line["value"] for line in items] == [1, 1]
    assert {line["method"] for line in items} == {"newcombe_5"}
    assert [line["group"] for line in items] == [1, 1]


def test_across_datasets(client: httpx.Client) -> None:
    names = [uuid4().hex for _ in range(6)]
    expected = []
    for index, name in enumerate(names):
        truth = np.arange(60 + index) % 2
        row = []
        for number, skill in enumerate((0.5, 1.0)):
            outputs = probabilities(truth, 10 * index + number, skill, shared=index)
            keep_probabilities(client, truth, outputs, f"m{number}", name)
            row.append((sk.roc_auc_score(truth, outputs[:, 1]), sk.log_loss(truth, outputs)))
        expected.append(row)
    body = {"models": ["m0", "m1"], "datasets": names}
    for place, metric in enumerate(("roc_auc@1", "log_loss")):
        reply = client.post("/v1/comparisons/across-datasets", json={**body, "metric": metric})
        assert reply.status_code == 201, reply.text
        answer = reply.json()
        assert answer["values"] == [pytest.approx([one[place] for one in row]) for row in expected]
        assert answer["better"] == ("higher", "lower")[place]
        assert answer["average_ranks"][1] < answer["average_ranks"][0]
    create(client, evaluation(model="m0", dataset=names[3]))
    for metric in ("roc_auc@1", "log_loss"):
        reply = client.post("/v1/comparisons/across-datasets", json={**body, "metric": metric})
        problem = check_problem(reply, 422, "incomparable_runs")
        assert "confusion matrix" in problem["detail"]
        assert problem["errors"][0]["pointer"] == "/metric"
