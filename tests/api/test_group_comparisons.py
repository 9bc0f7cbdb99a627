"""Runs on samples in groups, compared over HTTP."""

from typing import Any
from uuid import uuid4

import httpx
import numpy as np
import pytest

from tests.api.answers import Json, check_problem
from tests.api.decisions import compare
from tests.api.grouped import GROUPS, PREDICTED, TRUTH, kept, scored_source, source_of

IDS = {"sample_ids": list(range(len(TRUTH)))}
OTHER = np.where(np.random.default_rng(5).random(len(TRUTH)) < 0.3, TRUTH, PREDICTED)


def two_runs(client: httpx.Client, **members: Any) -> tuple[str, str]:
    dataset = uuid4().hex
    first, second = (source_of(GROUPS, TRUTH, predicted, **IDS) for predicted in (PREDICTED, OTHER))
    return kept(client, first, "m", dataset), kept(client, {**second, **members}, "n", dataset)


def test_paired_runs_are_compared_by_groups(client: httpx.Client) -> None:
    from statsmodels.regression.linear_model import OLS

    first, second = two_runs(client)
    answer = compare(client, first, second, metrics=["accuracy", "h_mean", "recall@*"], seed=1)
    design = answer["design"]
    assert (design["n_groups"], design["class_counts"]) == (40, "random")
    assert any("40 groups" in note for note in answer["notes"])
    drift, (counted,) = answer["prediction_drift"], answer["paired_tests"]
    by_name = {one["test"]: one for one in counted["tests"]}
    for name in ("stuart_maxwell", "bhapkar", "bowker"):
        assert drift[name].items() <= by_name[name].items()
        assert by_name[name]["p_value"] is not None
    moves = np.stack([np.bincount(GROUPS, (k == PREDICTED).astype(float) - (k == OTHER)) for k in range(3)])
    sums, spread = moves.sum(axis=1), moves @ moves.T
    expected = float(sums @ np.linalg.pinv(spread, hermitian=True) @ sums)
    assert drift["stuart_maxwell"]["statistic"] == pytest.approx(expected, rel=1e-9)
    value = counted["predictive_values"]["b"]["ppv"]
    assert [one["p_value"] is None for one in value["tests"]] == [False, True, False]
    assert "in groups" in value["reason"]
    (accuracy,) = answer["metrics"]["accuracy"]["differences"]
    assert accuracy["method"] == "grouped_t, grouped_t"
    right = np.array([PREDICTED == TRUTH, OTHER == TRUTH])
    gaps = right[0].astype(float) - right[1]
    assert accuracy["difference"] == pytest.approx(gaps.mean())
    # The error of least squares, robust to groups, makes the same interval to first order.
    fit = OLS(gaps, np.ones(len(gaps))).fit(cov_type="cluster", cov_kwds={"groups": GROUPS})
    half = 2.02 * float(fit.bse[0])
    assert accuracy["low"] == pytest.approx(gaps.mean() - half, abs=0.05 * half)
    assert accuracy["high"] == pytest.approx(gaps.mean() + half, abs=0.05 * half)
    assert accuracy["p_value"] == pytest.approx(float(fit.pvalues[0]), abs=0.02)
    (balanced,) = answer["metrics"]["h_mean"]["differences"]
    assert balanced["method"] == "grouped_t, grouped_t"
    assert set(answer["metrics"]) == {"accuracy", "h_mean", "recall@a", "recall@b", "recall@c"}
    again = compare(client, first, second, metrics=["accuracy", "h_mean", "recall@*"], seed=1)
    assert again["metrics"] == answer["metrics"]


def test_groups_of_one_compare_as_independent_samples(client: httpx.Client) -> None:
    alone = {"group_ids": list(range(len(TRUTH)))}
    dataset = uuid4().hex
    found, plain = [], []
    for predicted, model in ((PREDICTED, "m"), (OTHER, "n")):
        source = source_of(GROUPS, TRUTH, predicted, **IDS)
        found.append(kept(client, {**source, **alone}, model, dataset))
        del source["group_ids"]
        plain.append(kept(client, source, model, dataset))
    metrics: Json = {"metrics": ["accuracy", "macro_f1"], "seed": 3}
    grouped, expected = compare(client, *found, **metrics), compare(client, *plain, **metrics)
    for name in metrics["metrics"]:
        (one,), (other,) = (answer["metrics"][name]["differences"] for answer in (grouped, expected))
        width = other["high"] - other["low"]
        assert one["difference"] == other["difference"]
        assert abs(one["low"] - other["low"]) < 0.1 * width
        assert abs(one["high"] - other["high"]) < 0.1 * width
        assert one["p_value"] == pytest.approx(other["p_value"], abs=0.03)
    (of_groups,), (of_samples,) = (answer["paired_tests"] for answer in (grouped, expected))
    for one, other in zip(of_groups["tests"], of_samples["tests"], strict=True):
        close = 0.02 if one["test"] == "bhapkar" else 1e-9
        assert (one["statistic"], one["p_value"]) == pytest.approx((other["statistic"], other["p_value"]), rel=close)
    # One run with groups is enough to know them, and what they are called does not matter.
    mixed = compare(client, found[0], plain[1], **metrics)
    assert (
        mixed["metrics"]["accuracy"]["differences"][0]["low"] == grouped["metrics"]["accuracy"]["differences"][0]["low"]
    )


def test_three_runs_are_compared_with_one(client: httpx.Client) -> None:
    first, second = two_runs(client)
    third = kept(client, source_of(GROUPS, TRUTH, TRUTH, **IDS), "o", uuid4().hex)
    answer = compare(client, first, second, third, metrics=["accuracy"], baseline=first)
    assert "omnibus" not in answer
    assert "prediction_drift" not in answer
    assert [(one["a"], one["b"]) for one in answer["paired_tests"]] == [(second, first), (third, first)]
    found = answer["metrics"]["accuracy"]
    assert len(found["differences"]) == 2
    assert found["may_be_best"] == [third]
    assert all(entry["low"] is not None for entry in found["differences"])


def test_ranges_of_costs_count_groups(client: httpx.Client) -> None:
    random, dataset = np.random.default_rng(11), uuid4().hex
    group = np.repeat(np.arange(30), 10)
    truth = (random.random(group.size) < 0.4).astype(int)
    hard = random.beta(0.5, 1.5, (2, 30))[:, group]
    # A bold run that some patients fool, and a careful one that others do.
    bold = np.where(random.random(group.size) < hard[0], 1, truth)
    careful = np.where(random.random(group.size) < hard[1], 0, truth)
    labels = {"labels": ["well", "ill"], "positive": "ill"}

    def found(members: Json) -> Json:
        runs = []
        for name, said in (("bold", bold), ("careful", careful)):
            columns = {"y_true": truth.tolist(), "y_pred": said.tolist(), "sample_ids": list(range(group.size))}
            named = {key: [labels["labels"][code] for code in columns[key]] for key in ("y_true", "y_pred")}
            source = {"kind": "predictions", **labels, **columns, **named, **members}
            runs.append(kept(client, source, name, dataset))
        (answer,) = compare(client, *runs, metrics=["accuracy"])["cost_ranges"]
        return dict(answer)

    def undecided(answer: Json) -> Json:
        return next(dict(one) for one in answer["beyond_doubt"] if one["cheaper"] == "undecided")

    plain, grouped = found({}), found({"group_ids": group.tolist()})
    alone = found({"group_ids": list(range(group.size))})
    assert grouped["ranges"] == plain["ranges"]
    assert (plain["method"], grouped["method"]) == ("fieller, bonett_price", "fieller, grouped_bonett_price")
    assert undecided(grouped)["low"] < 0.8 * undecided(plain)["low"]
    assert (undecided(grouped)["high"] or np.inf) > 1.2 * undecided(plain)["high"]
    for end in ("low", "high"):
        assert undecided(alone)[end] == pytest.approx(undecided(plain)[end], rel=0.03)
    one = found({"group_ids": np.where(truth == 1, 0, 1 + group).tolist()})
    assert (one["beyond_doubt"], one["method"]) == (None, None)
    assert "all in one group" in one["reason"]


def test_groups_that_do_not_fit_are_refused(client: httpx.Client) -> None:
    runs = two_runs(client, group_ids=(GROUPS // 2).tolist())
    reply = client.post("/v1/comparisons", json={"evaluations": runs, "metrics": ["accuracy"]})
    assert "same way" in check_problem(reply, 422, "incomparable_runs")["detail"]


def test_runs_on_other_samples_have_the_variance_of_their_own_groups(client: httpx.Client) -> None:
    runs = two_runs(client, sample_ids=[-1 - index for index in range(len(TRUTH))])
    metrics = ["accuracy", "h_mean"]
    together = compare(client, *two_runs(client), metrics=metrics)
    apart = compare(client, *runs, metrics=metrics, paired="false")
    assert apart["design"]["paired"] is False
    for metric in metrics:
        (one,), (other,) = (answer["metrics"][metric]["differences"] for answer in (apart, together))
        assert one["difference"] == pytest.approx(other["difference"])
        assert one["method"] == "grouped_t, grouped_t"
        assert (one["low"] > 0 or one["high"] < 0) is (one["p_value"] < 0.05)


def test_groups_of_samples_with_probabilities(client: httpx.Client) -> None:
    dataset = uuid4().hex
    scored = [kept(client, scored_source(GROUPS, TRUTH, **IDS), model, dataset) for model in "mn"]
    answer = compare(client, *scored, metrics=["accuracy", "log_loss", "average_precision@a"])
    for metric in answer["metrics"].values():
        (same,) = metric["differences"]
        assert (same["difference"], same["p_value"], same["identical"]) == (0.0, 1.0, True)
    odd = scored_source(GROUPS, TRUTH, **IDS)
    rows = np.array(odd["probabilities"])
    odd["probabilities"] = (0.7 * rows + 0.1 * np.roll(rows, 1, axis=0) + 0.2 / rows.shape[1]).tolist()
    third = kept(client, odd, "o", dataset)
    answer = compare(client, scored[0], third, metrics=["log_loss", "average_precision@a", "h_mean"])
    for metric in answer["metrics"].values():
        (found,) = metric["differences"]
        assert found["method"] == "grouped_t, grouped_t"
        assert found["low"] <= found["difference"] <= found["high"]
