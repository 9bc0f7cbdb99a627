"""Samples that come in groups, over HTTP: what comes in, what is answered at once and later, and what is refused."""

import json
from typing import Any
from uuid import uuid4

import httpx
import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from statsmodels.regression.linear_model import OLS

from tests.api.answers import Json, check_json, check_problem, compute, create, evaluation, refused
from tests.api.decisions import compare, probabilities
from tests.api.test_multipart import as_csv, as_parquet

LABELS = ["a", "b", "c"]
NAMED = ("design_effects",)


def patients(n_groups: int = 40, size: int = 8, seed: int = 0) -> tuple[Any, Any, Any]:
    """Group, truth and prediction of each sample: some patients are hard."""
    random = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), random.integers(size // 2, 2 * size, n_groups))
    truth = random.integers(0, 3, groups.size)
    right = random.random(groups.size) < random.beta(2, 1, n_groups)[groups]
    return groups, truth, np.where(right, truth, (truth + random.integers(1, 3, groups.size)) % 3)


def source_of(groups: Any, truth: Any, predicted: Any, **members: Any) -> Json:
    return {
        "kind": "predictions",
        "labels": LABELS,
        "y_true": [LABELS[code] for code in truth],
        "y_pred": [LABELS[code] for code in predicted],
        "group_ids": [f"patient {group}" for group in groups],
        **members,
    }


def scored_source(groups: Any, truth: Any, **members: Any) -> Json:
    return {
        "kind": "probabilities",
        "labels": LABELS,
        "y_true": [LABELS[code] for code in truth],
        "probabilities": probabilities(truth, 3).tolist(),
        "group_ids": np.asarray(groups).tolist(),
        **members,
    }


GROUPS, TRUTH, PREDICTED = patients()
PREDICTIONS = source_of(GROUPS, TRUTH, PREDICTED)
PROBABILITIES = scored_source(GROUPS, TRUTH)
INPUTS = {"predictions": PREDICTIONS, "probabilities": PROBABILITIES}


def ends(answer: Json, name: str) -> tuple[float, float]:
    interval = answer["intervals"][name]
    return interval["low"], interval["high"]


def width(answer: Json, name: str) -> float:
    low, high = ends(answer, name)
    return high - low


def codes(answer: Json) -> set[str]:
    return {finding["code"] for finding in answer["findings"]}


def test_headline_intervals_count_groups(client: httpx.Client) -> None:
    answer = compute(client, PREDICTIONS)
    plain = compute(client, {name: value for name, value in PREDICTIONS.items() if name != "group_ids"})
    assert answer["metrics"] == plain["metrics"]
    assert answer["per_class"] == plain["per_class"]
    methods = {name: interval["method"] for name, interval in answer["intervals"].items()}
    assert methods["accuracy"] == methods["recall@a"] == methods["precision@c"] == "grouped_wilson"
    assert methods["h_mean"] == "grouped_mover"
    assert methods["macro_f1"] == "cluster_delta_logit"
    assert methods["mcc"] == methods["cohen_kappa"] == "cluster_delta_fisher_z"
    assert set(answer["intervals"]) == set(plain["intervals"])
    assert {interval["given"] for interval in answer["intervals"].values()} == {"groups"}
    for name in ("accuracy", "balanced_accuracy", "macro_f1", "mcc"):
        effect = answer["groups"]["design_effects"][name]
        assert effect > 1.5
        assert width(answer, name) / width(plain, name) == pytest.approx(effect**0.5, rel=0.1)
    assert answer["input"]["n_groups"] == answer["groups"]["n_groups"] == 40
    sizes = np.bincount(GROUPS)
    assert (answer["groups"]["smallest"], answer["groups"]["largest"]) == (sizes.min(), sizes.max())
    assert answer["groups"]["effective_groups"] == pytest.approx(sizes.sum() ** 2 / (sizes**2).sum())
    assert "samples_in_groups" in codes(answer)
    assert "groups" not in plain
    assert "n_groups" not in plain["input"]


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("retain", ["full", "none"])
@pytest.mark.parametrize("intervals", ["headline", "all", "none"])
def test_what_is_read_later_is_what_was_answered(client: httpx.Client, kind: str, retain: str, intervals: str) -> None:
    metrics = ["mean(recall@a, precision@b)"]
    if kind == "probabilities":
        metrics.append("mean(roc_auc@a, recall@a)")
    options = {"retain": retain, "intervals": intervals, "draws": 200, "metrics": metrics}
    made = create(client, evaluation(dataset=uuid4().hex, input=INPUTS[kind], options=options))
    again = client.get(f"/v1/evaluations/{made['id']}").json()
    assert again == made
    assert made["groups"]["n_groups"] == 40
    assert bool(made["intervals"]) == (intervals != "none")
    if intervals == "all":
        found = made["intervals"]["mean(recall@a, precision@b)"]
        assert (found["method"], found["given"], found["draws"]) == ("cluster_bootstrap", "groups", 200)
        assert found["low"] < made["requested"]["mean(recall@a, precision@b)"] < found["high"]
        # Nothing is taken as independent.
        assert {interval["given"] for interval in made["intervals"].values()} == {"groups"}
    tagged = client.patch(f"/v1/evaluations/{made['id']}", json={"tags": {"a": "b"}}).json()
    assert {**tagged, "tags": {}} == made
    assert client.delete(f"/v1/evaluations/{made['id']}").status_code == 204


@pytest.mark.parametrize("kind", INPUTS)
def test_groups_of_one_are_independent_samples(client: httpx.Client, kind: str) -> None:
    alone = {**INPUTS[kind], "group_ids": list(range(len(TRUTH)))}
    plain = {name: value for name, value in alone.items() if name != "group_ids"}
    for intervals, tolerance in (("headline", 0.03), ("all", 0.25)):
        found = compute(client, alone, intervals=intervals)
        # Class counts are random with groups.
        expected = compute(client, plain, intervals=intervals, prevalence_design="sampled")
        for name, interval in expected["intervals"].items():
            if interval["low"] is None or found["intervals"][name]["low"] is None:
                continue
            scale = max(interval["high"] - interval["low"], 1e-3)
            for one, other in zip(ends(found, name), ends(expected, name), strict=True):
                assert abs(one - other) < tolerance * scale + 1e-9, (name, ends(found, name), ends(expected, name))


@pytest.mark.parametrize("kind", INPUTS)
def test_copies_in_a_group_are_no_evidence(client: httpx.Client, kind: str) -> None:
    """Every sample three times under one group: the closed forms are those of the samples once."""
    once = {**INPUTS[kind], "group_ids": list(range(len(TRUTH)))}
    columns = ("y_true", "y_pred", "probabilities", "group_ids")
    copied = {**once, **{name: [one for one in once[name] for _ in range(3)] for name in columns if name in once}}
    found, expected = compute(client, copied), compute(client, once)
    assert found["groups"]["design_effects"]["accuracy"] == pytest.approx(3.0, rel=0.01)
    for name in expected["intervals"]:
        # Sampling errors of means divide by n - 1 samples, of which there seem to be more.
        np.testing.assert_allclose(ends(found, name), ends(expected, name), rtol=2e-3, err_msg=name)
    np.testing.assert_allclose(ends(found, "accuracy"), ends(expected, "accuracy"), rtol=1e-9)


def test_intervals_of_probabilities_count_groups(client: httpx.Client) -> None:
    headline = compute(client, PROBABILITIES)
    methods = {name: interval["method"] for name, interval in headline["intervals"].items()}
    assert methods["roc_auc@a"] == "cluster_delong_logit"
    assert methods["log_loss"] == methods["au_imcp"] == "cluster_t"
    everything = compute(client, PROBABILITIES, intervals="all", draws=200)
    methods = {name: interval["method"] for name, interval in everything["intervals"].items()}
    assert methods["average_precision@b"] == "cluster_bootstrap"
    assert methods["expected_calibration_error"] == "cluster_bootstrap_inverted"
    assert methods["fraction_uncertain"] == "grouped_wilson"
    assert methods["roc_auc_ovo_macro"] == "cluster_influence_logit"
    assert everything["intervals"]["log_loss"] == headline["intervals"]["log_loss"]
    assert "spiegelhalter" not in everything["probabilities"]["per_class"]["a"]
    assert "chance_of_independent_samples" in codes(everything)


def test_few_groups_are_told_of(client: httpx.Client) -> None:
    few = compute(client, source_of(*patients(12)))
    found = next(f for f in few["findings"] if f["code"] == "intervals_of_few_groups")
    assert found["severity"] == "warning"
    assert found["evidence"]["n_groups"] == 12
    assert "intervals_of_few_groups" not in codes(compute(client, PREDICTIONS))
    assert "intervals_of_few_groups" not in codes(compute(client, source_of(*patients(12)), intervals="none"))
    # One group with half of all samples.
    groups = np.where(GROUPS < 20, 0, GROUPS)
    uneven = next(
        f
        for f in compute(client, source_of(groups, TRUTH, PREDICTED))["findings"]
        if f["code"] == "intervals_of_few_groups"
    )
    assert uneven["evidence"]["effective_groups"] < 10


def test_a_class_of_one_group_has_a_reason(client: httpx.Client) -> None:
    truth = np.where(GROUPS == 3, 0, np.where(TRUTH == 0, 1, TRUTH))
    answer = compute(client, source_of(GROUPS, truth, PREDICTED))
    for name in ("recall@a", "balanced_accuracy"):
        assert answer["intervals"][name]["low"] is None
        assert "one group" in answer["intervals"][name]["reason"]
    assert answer["intervals"]["recall@b"]["low"] is not None


def test_folds_share_their_groups(client: httpx.Client) -> None:
    """Leaving one patient out at a time, each fold is a group of its own; a patient in two folds is one group."""
    folds = []
    for group in range(40):
        kept = group == GROUPS
        folds.append(source_of(GROUPS[kept], TRUTH[kept], PREDICTED[kept]))
    answer = compute(client, {"kind": "folds", "folds": folds})
    whole = compute(client, PREDICTIONS)
    assert answer["intervals"] == whole["intervals"]
    assert answer["groups"] == whole["groups"]
    twice = compute(client, {"kind": "folds", "folds": [PREDICTIONS, PREDICTIONS]})
    assert twice["groups"]["n_groups"] == 40
    np.testing.assert_allclose(ends(twice, "accuracy"), ends(whole, "accuracy"), rtol=1e-9)
    mixed = [PREDICTIONS, {name: value for name, value in PREDICTIONS.items() if name != "group_ids"}]
    fault = refused(client, {"kind": "folds", "folds": mixed})
    assert (fault["pointer"], fault["code"]) == ("/input/folds/1/group_ids", "mixed_folds")
    fault = refused(client, {"kind": "folds", "folds": [folds[0], folds[0]]})
    assert (fault["pointer"], fault["code"]) == ("/input/folds", "one_group")


def test_weighted_samples_in_groups_of_one_weight_are_as_those_without(client: httpx.Client) -> None:
    body = evaluation(dataset=uuid4().hex, input={**PREDICTIONS, "sample_weight": [0.5] * len(TRUTH)})
    made, plain = create(client, body), compute(client, PREDICTIONS)
    assert made["intervals"].keys() == plain["intervals"].keys()
    for name in plain["intervals"]:
        np.testing.assert_allclose(ends(made, name), ends(plain, name), rtol=1e-9)
    effects = made["groups"].pop("design_effects"), plain["groups"].pop("design_effects")
    assert effects[0] == pytest.approx(effects[1], rel=1e-9)
    assert made["groups"] == plain["groups"]
    made["groups"]["design_effects"] = effects[0]
    assert client.get(f"/v1/evaluations/{made['id']}").json() == made


def test_weights_in_groups_count_in_the_limits(client: httpx.Client) -> None:
    heavy = [9.0 if group % 5 == 0 else 1.0 for group in GROUPS.tolist()]
    made, plain = compute(client, {**PREDICTIONS, "sample_weight": heavy}), compute(client, PREDICTIONS)
    wide, narrow = (float(np.ptp(ends(report, "accuracy"))) for report in (made, plain))
    assert wide > narrow


@pytest.mark.parametrize("kind", INPUTS)
def test_wrong_groups_are_refused_by_name(client: httpx.Client, kind: str) -> None:
    def fault(group_ids: list[Any], **members: Any) -> tuple[str, str]:
        found = refused(client, {**INPUTS[kind], "group_ids": group_ids}, **members)
        return found["pointer"], found["code"]

    size = len(TRUTH)
    assert fault([1] * size) == ("/input/group_ids", "one_group")
    assert fault([1, 2]) == ("/input/group_ids", "wrong_length")
    assert fault([1.5] + [2] * (size - 1)) == ("/input/group_ids/0", "not_an_id")
    assert fault([None] + [2] * (size - 1)) == ("/input/group_ids/0", "not_an_id")
    # The integer 1 and the text "1" are the same group.
    assert fault(["1"] + [1] * (size - 1)) == ("/input/group_ids", "one_group")
    for method in ("posterior", "delta", "bca"):
        asked = {"intervals": "all", "interval_method": method}
        found = fault(GROUPS.tolist(), options=asked)
        assert found == ("/options/interval_method", "not_for_groups")


def test_a_matrix_has_no_groups(client: httpx.Client) -> None:
    fault = refused(client, {"kind": "confusion_matrix", "matrix": [[1, 2], [3, 4]], "group_ids": [1, 2]})
    assert fault["pointer"] == "/input/group_ids"


def test_batches_and_large_bodies_take_groups(client: httpx.Client) -> None:
    items = [evaluation(input=PREDICTIONS), evaluation(input={**PREDICTIONS, "group_ids": [0] * len(TRUTH)})]
    reply = client.post("/v1/evaluations/batch", params={"store": "false"}, json={"evaluations": items})
    first, second = reply.json()["items"]
    assert first["evaluation"]["intervals"] == compute(client, PREDICTIONS)["intervals"]
    assert (second["status"], second["problem"]["errors"][0]["pointer"]) == (422, "/evaluations/1/input/group_ids")
    # Above 256 KiB columns are read without an object per number.
    times = 100
    large = {
        "kind": "predictions",
        "y_true": TRUTH.tolist() * times,
        "y_pred": PREDICTED.tolist() * times,
        "group_ids": GROUPS.tolist() * times,
    }
    assert len(json.dumps(large)) > 256 * 1024
    answer = compute(client, large)
    # The same samples a hundred times in the same groups.
    np.testing.assert_allclose(ends(answer, "accuracy"), ends(compute(client, PREDICTIONS), "accuracy"), rtol=1e-9)


@pytest.mark.parametrize("write", [as_parquet, as_csv])
def test_files_have_a_column_of_groups(client: httpx.Client, write: Any) -> None:
    columns = {"y_true": TRUTH, "y_pred": PREDICTED, "group_id": [f"p{group:03}" for group in GROUPS]}
    stated = {"input": {"kind": "predictions"}}
    files = {"data": ("samples", write({name: pa.array(column) for name, column in columns.items()}))}
    reply = client.post("/v1/metrics/compute", data={"evaluation": json.dumps(stated)}, files=files)
    assert reply.status_code == 200, reply.text
    expected = compute(
        client, {**PREDICTIONS, "labels": ["0", "1", "2"], "y_true": TRUTH.tolist(), "y_pred": PREDICTED.tolist()}
    )
    assert reply.json()["intervals"] == expected["intervals"]
    columns["fold"] = GROUPS % 4
    files = {"data": ("samples", write({name: pa.array(column) for name, column in columns.items()}))}
    reply = client.post(
        "/v1/metrics/compute", data={"evaluation": json.dumps({"input": {"kind": "folds"}})}, files=files
    )
    assert reply.status_code == 200, reply.text
    assert reply.json()["intervals"] == expected["intervals"]
    assert len(reply.json()["folds"]["accuracy"]["values"]) == 4


def kept(client: httpx.Client, source: Json, model: str, dataset: str) -> str:
    return str(create(client, evaluation(model=model, dataset=dataset, input=source))["id"])


def test_nothing_takes_them_as_independent_in_silence(client: httpx.Client) -> None:
    dataset = uuid4().hex
    first, second = (kept(client, scored_source(GROUPS, TRUTH), model, dataset) for model in "mn")
    plain = kept(client, {name: value for name, value in PROBABILITIES.items() if name != "group_ids"}, "o", dataset)
    for metrics in (["accuracy"], ["log_loss"]):
        reply = client.post("/v1/comparisons", json={"evaluations": [plain, first], "metrics": metrics})
        problem = check_problem(reply, 422, "incomparable_runs")
        assert "groups" in problem["detail"]
        assert "not paired" in problem["detail"]
    for metric in ("h_mean", "log_loss"):
        board = client.get("/v1/leaderboard", params={"dataset": dataset, "metric": metric}).json()
        assert len(board["items"]) == 3
        for line in board["items"]:
            grouped = line["model"]["name"] != "o"
            assert line["value"] is not None
            assert (line["low"] is None) == grouped
            assert ("groups" in (line["reason"] or "")) == grouped
    rules = [
        {"metric": "accuracy", "min": 0.01},
        {"metric": "log_loss", "max": 100.0},
        {"metric": "accuracy", "not_worse_than": "baseline", "margin": 0.5},
    ]
    gate = f"/v1/gates/{uuid4().hex}"
    reply = client.put(gate, json={"rules": rules})
    assert reply.status_code == 201, reply.text
    reply = client.post(f"{gate}/checks", json={"evaluation": first, "baseline": second})
    assert reply.status_code in (200, 201), reply.text
    assert reply.json()["verdict"] == "inconclusive"
    for result in reply.json()["results"]:
        assert result["low"] is None
        assert "groups" in result["message"]
    reply = client.post(
        f"/v1/evaluations/{first}/projections",
        json={"prevalence": {"a": 0.5, "b": 0.2, "c": 0.3}, "metrics": ["accuracy", "log_loss"]},
    )
    assert reply.status_code == 200, reply.text
    assert "groups" in json.dumps(reply.json()["notes"])
    reply = client.post(
        f"/v1/evaluations/{first}/prevalence-estimates", json={"predicted": {"a": 30, "b": 20, "c": 50}}
    )
    assert reply.status_code == 200, reply.text
    assert reply.json()["intervals"] == {}
    assert "groups" in json.dumps(reply.json()["warnings"])
    two = scored_source(GROUPS, TRUTH % 2, labels=["a", "b"])
    reply = client.post(
        f"/v1/evaluations/{kept(client, two, 'p', dataset)}/thresholds", json={"objective": "balanced_accuracy"}
    )
    assert reply.status_code == 200, reply.text
    check_json(reply, named=("constraints",))
    assert "groups" in reply.json()["note"]


IDS = {"sample_ids": list(range(len(TRUTH)))}
OTHER = np.where(np.random.default_rng(5).random(len(TRUTH)) < 0.3, TRUTH, PREDICTED)


def two_runs(client: httpx.Client, **members: Any) -> tuple[str, str]:
    dataset = uuid4().hex
    first, second = (source_of(GROUPS, TRUTH, predicted, **IDS) for predicted in (PREDICTED, OTHER))
    return kept(client, first, "m", dataset), kept(client, {**second, **members}, "n", dataset)


def test_paired_runs_are_compared_by_groups(client: httpx.Client) -> None:
    first, second = two_runs(client)
    answer = compare(client, first, second, metrics=["accuracy", "h_mean", "recall@*"], seed=1)
    design = answer["design"]
    assert (design["resampled"], design["n_groups"], design["class_counts"]) == ("groups", 40, "random")
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
    assert accuracy["method"] == "cluster_bootstrap, grouped_mcnemar"
    right = np.array([PREDICTED == TRUTH, OTHER == TRUTH])
    gaps = right[0].astype(float) - right[1]
    assert accuracy["difference"] == pytest.approx(gaps.mean())
    assert accuracy["discordant"] == np.count_nonzero(gaps)
    # The error of least squares, robust to groups, makes the same interval to first order.
    fit = OLS(gaps, np.ones(len(gaps))).fit(cov_type="cluster", cov_kwds={"groups": GROUPS})
    half = 2.02 * float(fit.bse[0])
    assert accuracy["low"] == pytest.approx(gaps.mean() - half, abs=0.25 * half)
    assert accuracy["high"] == pytest.approx(gaps.mean() + half, abs=0.25 * half)
    by_group = np.bincount(GROUPS, gaps)
    concerned = by_group[np.bincount(GROUPS, gaps != 0) > 0]
    # t over the groups with discordant samples, about 0.
    t = concerned.sum() / np.sqrt(len(concerned) / (len(concerned) - 1) * (concerned**2).sum())
    assert accuracy["p_value"] == pytest.approx(2 * stats.t.sf(abs(t), len(concerned) - 1), rel=1e-9)
    (balanced,) = answer["metrics"]["h_mean"]["differences"]
    assert balanced["method"] == "cluster_bootstrap, group_permutation"
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
    assert mixed["design"]["resampled"] == "groups"
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
    for members, why in (
        ({"group_ids": (GROUPS // 2).tolist()}, "same way"),
        ({"sample_ids": [-1 - index for index in range(len(TRUTH))]}, "not paired"),
    ):
        runs = two_runs(client, **members)
        reply = client.post("/v1/comparisons", json={"evaluations": runs, "metrics": ["accuracy"]})
        problem = check_problem(reply, 422, "incomparable_runs")
        assert why in problem["detail"]
    dataset = uuid4().hex
    scored = [kept(client, scored_source(GROUPS, TRUTH, **IDS), model, dataset) for model in "mn"]
    reply = client.post("/v1/comparisons", json={"evaluations": scored, "metrics": ["accuracy", "log_loss"]})
    assert "log_loss" in check_problem(reply, 422, "incomparable_runs")["detail"]
    same = compare(client, *scored, metrics=["accuracy"])["metrics"]["accuracy"]["differences"][0]
    assert (same["difference"], same["low"], same["high"], same["p_value"]) == (0.0, 0.0, 0.0, 1.0)
