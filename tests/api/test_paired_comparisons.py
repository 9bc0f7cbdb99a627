"""Comparisons sample by sample: runs whose labels were saved with ids."""

import itertools
import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from app.api.answers import answer_model
from app.services.compare.answers import RunComparison
from tests.api.answers import Json, check_problem, create, evaluation
from tests.api.decisions import compare


def keep(client: httpx.Client, truth: Any, predicted: Any, model: str = "m", ids: Any = None) -> str:
    columns = {"y_true": np.asarray(truth).tolist(), "y_pred": np.asarray(predicted).tolist()}
    chosen = range(len(columns["y_true"])) if ids is None else ids
    source = {"kind": "predictions", **columns, "sample_ids": np.asarray(chosen).tolist()}
    return str(create(client, evaluation(model=model, dataset="paired", input=source))["id"])


def discordant(client: httpx.Client, only_first: int, only_second: int, total: int) -> tuple[str, str]:
    """Two runs on two classes with that many items that only one of them has right; both have half of the rest."""
    truth = np.arange(total) % 2
    first, second = truth.copy(), truth.copy()
    second[:only_first] ^= 1
    first[only_first : only_first + only_second] ^= 1
    rest = slice(only_first + only_second, only_first + only_second + (total - only_first - only_second) // 2)
    first[rest] ^= 1
    second[rest] ^= 1
    return keep(client, truth, first, "first"), keep(client, truth, second, "second")


def only(answer: Json, metric: str) -> Json:
    (difference,) = answer["metrics"][metric]["differences"]
    found: Json = difference
    return found


def test_mcnemar_and_tango(client: httpx.Client) -> None:
    """b = 40, c = 20, n = 160: 0.125 in [0.0309, 0.2181]; (1, 7): mid-p 0.0391."""
    answer = compare(client, *discordant(client, 40, 20, 160), metrics=["accuracy"])
    answer_model(RunComparison).model_validate(answer)
    assert answer["design"]["paired"]
    assert answer["design"]["reason"] == "same 160 sample ids"
    found = only(answer, "accuracy")
    assert (found["low"], found["difference"], found["high"]) == pytest.approx((0.0309, 0.125, 0.2181), abs=5e-5)
    assert found["discordant"] == 60
    clear = compare(client, *discordant(client, 40, 10, 160), metrics=["accuracy", "error_rate"])
    assert [only(clear, metric)["verdict"] for metric in ("accuracy", "error_rate")] == ["better", "better"]
    assert only(clear, "error_rate")["difference"] < 0.0
    alike = only(compare(client, *discordant(client, 0, 0, 20), metrics=["accuracy"]), "accuracy")
    assert (alike["identical"], alike["verdict"]) == (True, "same")
    assert alike["probability_equivalent"] < 0.95
    small = only(compare(client, *discordant(client, 1, 7, 60), metrics=["accuracy"]), "accuracy")
    assert small["p_value"] == pytest.approx(0.0391, abs=5e-5)
    assert small["method"] == "tango, mcnemar_mid_p"


def test_pairing_goes_by_id_and_not_by_order(client: httpx.Client) -> None:
    random = np.random.default_rng(0)
    truth = random.integers(0, 3, 400)
    first = np.where(random.random(400) < 0.8, truth, random.integers(0, 3, 400))
    second = np.where(random.random(400) < 0.9, first, random.integers(0, 3, 400))
    metrics = ["accuracy", "h_mean", "mcc", "recall@*"]
    order = random.permutation(400)
    a, b = keep(client, truth, first), keep(client, truth, second)
    shuffled = keep(client, truth[order], second[order], ids=order)
    text = keep(client, truth[order], second[order], ids=[str(index) for index in order])
    straight = compare(client, a, b, metrics=metrics, seed=1)["metrics"]
    for other in (shuffled, text):
        answer = compare(client, a, other, metrics=metrics, seed=1)
        assert answer["design"]["paired"]
        for name, metric in answer["metrics"].items():
            assert metric["values"] == straight[name]["values"]
            mine, theirs = metric["differences"][0], straight[name]["differences"][0]
            assert {k: v for k, v in mine.items() if k not in "ab"} == {
                k: v for k, v in theirs.items() if k not in "ab"
            }


def test_pairing_sees_more_than_independence(client: httpx.Client) -> None:
    first, second = discordant(client, 30, 10, 1000)
    metrics = ["h_mean", "macro_f1", "mcc"]
    paired = compare(client, first, second, metrics=metrics)
    alone = compare(client, first, second, metrics=metrics, paired=False)
    assert paired["design"]["bond"] == "sample_ids"
    assert alone["design"]["bond"] == "independent"
    for metric in metrics:
        near, far = only(paired, metric), only(alone, metric)
        assert near["difference"] == pytest.approx(far["difference"])
        assert near["p_value"] < 0.01 < far["p_value"]
        assert near["high"] - near["low"] < 0.5 * (far["high"] - far["low"])
        assert near["method"] == "score, permutation_mid_p"
        assert near["probability_a_better"] > far["probability_a_better"]
    assert {"stuart_maxwell", "bhapkar", "bowker"} <= set(paired["prediction_drift"])


def columns(counts: dict[str, dict[str, int]]) -> tuple[Any, Any, Any]:
    """Truth and the labels of two tests, sample by sample."""
    cells = [
        (truth, *labels, counts[group][name])
        for truth, group in ((1, "diseased"), (0, "healthy"))
        for name, labels in (("both", (1, 1)), ("only_1", (1, 0)), ("only_2", (0, 1)), ("neither", (0, 0)))
    ]
    truth, first, second, sizes = np.array(cells).T
    return np.repeat(truth, sizes), np.repeat(first, sizes), np.repeat(second, sizes)


def test_predictive_values_of_the_data_of_dtcompair(client: httpx.Client) -> None:
    data = json.loads((Path(__file__).parents[1] / "data" / "dtcompair.json").read_text(encoding="utf-8"))["Paired1"]
    truth, first, second = columns(data["counts"])
    # Their ratio is of the second to the first.
    answer = compare(client, keep(client, truth, second), keep(client, truth, first), metrics=["precision@1", "npv@1"])
    answer_model(RunComparison).model_validate(answer)
    (found,) = answer["paired_tests"]
    assert (found["a"], found["b"]) == tuple(one["id"] for one in answer["evaluations"])
    for name, metric in (("ppv", "precision@1"), ("npv", "npv@1")):
        ours, printed = found["predictive_values"]["1"][name], data[name]
        assert ours["values"] == pytest.approx([printed["test2"], printed["test1"]], rel=5e-7)
        assert ours["values"] == pytest.approx(answer["metrics"][metric]["values"], rel=1e-12)
        assert ours["difference"] == pytest.approx(printed["diff"], rel=1e-6)
        limits = [ours["ratio_low"], ours["ratio"], ours["ratio_high"]]
        assert limits == pytest.approx([printed["low"], printed["ratio"], printed["high"]], rel=5e-7)
        tests = {one["test"]: one for one in ours["tests"]}
        for test in ("generalized_score", "weighted_generalized_score"):
            assert [tests[test]["statistic"], tests[test]["p_value"]] == pytest.approx(printed[test], rel=5e-7)
            assert tests[test]["df"] == 1
        assert tests["relative_predictive_value"]["p_value"] == pytest.approx(printed["p"], rel=5e-7)
        assert "reason" not in ours
    tests = {one["test"]: one for one in found["tests"]}
    general = tests["generalized_mcnemar"]
    assert [general["statistic"], general["p_value"]] == pytest.approx(data["generalized_mcnemar"], rel=5e-7)
    for name in ("stuart_maxwell", "bhapkar", "bowker"):
        assert {key: tests[name][key] for key in ("statistic", "df", "p_value")} == answer["prediction_drift"][name]


def test_every_pair_and_every_class_is_tested(client: httpx.Client) -> None:
    random = np.random.default_rng(5)
    truth = random.integers(0, 3, 200)
    runs = [keep(client, truth, np.where(random.random(200) < 0.7, truth, random.integers(0, 3, 200))) for _ in "abc"]
    found = compare(client, *runs, metrics=["accuracy"])["paired_tests"]
    assert [(one["a"], one["b"]) for one in found] == [*itertools.combinations(runs, 2)]
    assert all(list(one["predictive_values"]) == ["0", "1", "2"] for one in found)
    against = compare(client, *runs, metrics=["accuracy"], baseline=runs[1])["paired_tests"]
    assert [(one["a"], one["b"]) for one in against] == [(runs[0], runs[1]), (runs[2], runs[1])]


def test_runs_that_move_every_sample_alike(client: httpx.Client) -> None:
    """One says A of everything, the other B: Wald's variance is 0, and neither has both predictive values."""
    truth = [0, 1] * 10
    answer = compare(client, keep(client, truth, [0] * 20), keep(client, truth, [1] * 20), metrics=["accuracy"])
    drift = answer["prediction_drift"]
    assert drift["stuart_maxwell"]["statistic"] == pytest.approx(20)
    assert (drift["bhapkar"]["statistic"], drift["bhapkar"]["p_value"]) == (None, None)
    assert "variance" in drift["bhapkar"]["reason"]
    ppv = answer["paired_tests"][0]["predictive_values"]["1"]["ppv"]
    assert ppv["values"] == [None, 0.5]
    assert ppv["reason"] == "a run never predicts this"
    assert [one["p_value"] for one in ppv["tests"]] == [None] * 3


def test_few_samples_that_one_run_only_predicts_are_named(client: httpx.Client) -> None:
    truth = np.arange(200) % 2
    first, second = truth.copy(), truth.copy()
    first[:40], second[20:64] = 1, 1
    answer = compare(client, keep(client, truth, first), keep(client, truth, second), metrics=["accuracy"])
    assert "fewer than 5 are right" in answer["paired_tests"][0]["predictive_values"]["1"]["ppv"]["reason"]
    second[101:111:2] = 0
    answer = compare(client, keep(client, truth, first), keep(client, truth, second), metrics=["accuracy"])
    assert "reason" not in answer["paired_tests"][0]["predictive_values"]["1"]["ppv"]


def test_runs_that_never_differ_say_so(client: httpx.Client) -> None:
    truth, predicted = [0, 1] * 10, [0, 1, 1, 0] * 5
    (found,) = compare(client, keep(client, truth, predicted), keep(client, truth, predicted))["paired_tests"]
    for one in found["tests"]:
        assert (one["statistic"], one["df"], one["p_value"]) == (0, 0, 1)
        assert "never differ" in one["reason"]
    ppv = found["predictive_values"]["1"]["ppv"]
    assert [one["p_value"] for one in ppv["tests"]] == [1, 1, 1]
    assert (ppv["ratio_low"], ppv["ratio"], ppv["ratio_high"]) == (1, 1, 1)
    assert "do not vary" in ppv["reason"]


def test_unpaired_runs_have_no_paired_tests(client: httpx.Client) -> None:
    first, second = discordant(client, 30, 10, 200)
    assert "paired_tests" not in compare(client, first, second, metrics=["accuracy"], paired=False)


def test_cochrans_q_for_three_runs(client: httpx.Client) -> None:
    """Q of 7.0 with 2 degrees of freedom, p 0.030."""
    truth = np.zeros(20, dtype=int)
    truth[10:] = 1
    runs = []
    # Hits 18, 13, 11 of 20 on items that the runs share as little as can be.
    for wrong in ([0, 1], [0, 1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 7, 8, 9, 10, 11]):
        predicted = truth.copy()
        predicted[wrong] ^= 1
        runs.append(keep(client, truth, predicted))
    answer = compare(client, *runs, metrics=["accuracy"])
    right = np.ones((3, 20))
    for row, wrong in enumerate(([0, 1], [0, 1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 7, 8, 9, 10, 11])):
        right[row, wrong] = 0
    hits, per_item = right.sum(axis=1), right.sum(axis=0)
    q = 2 * (3 * (hits**2).sum() - hits.sum() ** 2) / (3 * hits.sum() - (per_item**2).sum())
    assert answer["omnibus"]["statistic"] == pytest.approx(q)
    assert answer["omnibus"]["df"] == 2
    assert len(answer["metrics"]["accuracy"]["differences"]) == 3


def test_per_class_tests_with_holm(client: httpx.Client) -> None:
    random = np.random.default_rng(1)
    truth = np.repeat([0, 1, 2], 200)
    first = np.where(random.random(600) < 0.9, truth, (truth + 1) % 3)
    second = first.copy()
    spoiled = np.flatnonzero(truth == 2)[:40]
    second[spoiled] = 0
    answer = compare(client, keep(client, truth, first), keep(client, truth, second), metrics=["recall@*"])
    found = [answer["metrics"][f"recall@{label}"]["differences"][0] for label in range(3)]
    assert [one["p_value"] for one in found[:2]] == [1, 1]
    assert found[2]["p_value"] < 1e-6
    assert found[2]["p_adjusted"] == pytest.approx(3 * found[2]["p_value"])
    assert found[2]["low"] > 0


def test_runs_that_agree_everywhere(client: httpx.Client) -> None:
    truth = [0, 1] * 30
    answer = compare(client, keep(client, truth, truth), keep(client, truth, truth), metrics=["accuracy", "mcc"])
    for metric in ("accuracy", "mcc"):
        assert only(answer, metric)["p_value"] == 1


def test_only_some_ids_in_common(client: httpx.Client) -> None:
    truth = np.array([0, 1] * 50)
    first = keep(client, truth, truth, ids=np.arange(100))
    second = keep(client, truth, 1 - truth, ids=np.arange(10, 110))
    answer = compare(client, first, second, metrics=["accuracy"])
    assert answer["design"]["bond"] == "same_test_set"
    assert "only 90 of 100 sample ids" in answer["design"]["reason"]
    matched = compare(client, first, second, metrics=["accuracy"], minimum_matched=0.9)
    assert matched["design"]["paired"]
    assert only(matched, "accuracy")["discordant"] == 90
    assert any("in common" in note for note in matched["notes"])
    reply = client.post("/v1/comparisons", json={"evaluations": [first, second], "paired": "true"})
    detail = check_problem(reply, 422, "incomparable_runs")["detail"]
    # What would be said of runs that need not be paired is no reason.
    assert detail == "the runs cannot be paired: only 90 of 100 sample ids are common to all runs"


def test_truths_that_contradict_each_other(client: httpx.Client) -> None:
    truth = np.array([0, 1] * 20)
    other = truth.copy()
    other[[3, 4]] = other[[4, 3]]
    first, second = keep(client, truth, truth), keep(client, other, truth)
    reply = client.post("/v1/comparisons", json={"evaluations": [first, second], "paired": True})
    assert "sample 3 has another true class in run 2" in check_problem(reply, 422, "incomparable_runs")["detail"]
    assert not compare(client, first, second)["design"]["paired"]


def test_one_run_without_ids(client: httpx.Client) -> None:
    truth = [0, 1] * 20
    first = keep(client, truth, truth)
    source = {"kind": "predictions", "y_true": truth, "y_pred": truth}
    second = create(client, evaluation(dataset="paired", input=source))["id"]
    answer = compare(client, first, second)
    assert "1 of 2 runs came without sample ids" in answer["design"]["reason"]


@pytest.mark.slow
def test_many_runs(client: httpx.Client) -> None:
    """Thirty runs: 435 pairs with a test each."""
    random = np.random.default_rng(2)
    truth = random.integers(0, 4, 500)
    runs = [keep(client, truth, np.where(random.random(500) < 0.8, truth, 3 - truth)) for _ in range(30)]
    answer = compare(client, *runs, metrics=["macro_f1"])
    differences = answer["metrics"]["macro_f1"]["differences"]
    assert len(differences) == 435
    assert {one["method"] for one in differences} == {"score, permutation_mid_p"}
    assert 0.02 < np.mean([one["p_value"] < 0.05 for one in differences]) < 0.12
    assert answer["omnibus"]["df"] == 29
    assert len(answer["metrics"]["macro_f1"]["may_be_best"]) > 15
    assert "paired_tests" not in answer
    assert any("paired_tests: true" in note for note in answer["notes"])
    against = {"baseline": runs[0], "metrics": ["accuracy"]}
    assert len(compare(client, *runs, **against, paired_tests=True)["paired_tests"]) == 29
    assert "paired_tests" not in compare(client, *runs[:2], metrics=["accuracy"], paired_tests=False)


def test_gates_and_leaderboards_pair_too(client: httpx.Client) -> None:
    """(b, c, n) = (30, 34, 3000) with a margin of 0.01: pass although the point is worse."""
    candidate, baseline = discordant(client, 30, 34, 3000)
    rule = {"metric": "accuracy", "not_worse_than": "baseline", "margin": 0.01}
    client.put("/v1/gates/paired", json={"rules": [rule]})
    body = {"evaluation": candidate, "baseline": baseline}
    (result,) = client.post("/v1/gates/paired/checks", json=body).json()["results"]
    assert (result["verdict"], result["method"]) == ("pass", "tango, sample_ids")
    assert result["value"] < 0
    # (9, 7, 150): inconclusive although it is better.
    candidate, baseline = discordant(client, 9, 7, 150)
    (result,) = client.post("/v1/gates/paired/checks", json={"evaluation": candidate, "baseline": baseline}).json()[
        "results"
    ]
    assert result["verdict"] == "inconclusive"
    assert result["value"] > 0
    assert result["needed_samples"] > 150
    keep(client, np.arange(4), np.arange(4))
    board = client.get("/v1/leaderboard", params={"dataset": "paired", "metric": "accuracy"}).json()
    assert any("not have the same classes" in note for note in board["notes"])
