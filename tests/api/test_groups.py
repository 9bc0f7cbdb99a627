"""Samples that come in groups, over HTTP: what comes in, what is answered at once and later, and what is refused."""

import json
from typing import Any
from uuid import uuid4

import httpx
import numpy as np
import pyarrow as pa
import pytest

from tests.api.answers import Json, check_json, compute, create, evaluation, refused
from tests.api.grouped import (
    GROUPS,
    INPUTS,
    PREDICTED,
    PREDICTIONS,
    PROBABILITIES,
    TRUTH,
    kept,
    patients,
    scored_source,
    source_of,
)
from tests.api.test_multipart import as_csv, as_parquet

NAMED = ("design_effects",)


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


@pytest.mark.parametrize(
    ("kind", "retain", "intervals"),
    [
        ("predictions", "none", "headline"),
        ("predictions", "full", "all"),
        ("probabilities", "none", "all"),
        ("probabilities", "full", "headline"),
        ("probabilities", "full", "none"),
    ],
)
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


SETS = {"kind": "multilabel", "labels": ["a", "b"], "y_true": [[one % 2, one // 2] for one in map(int, TRUTH)]}
SETS["probabilities"] = [[0.1 * (place % 9), 0.8 - 0.4 * one] for place, one in enumerate((TRUTH % 2).tolist())]
ALONE = {**INPUTS, "multilabel": SETS, "weights": {**PREDICTIONS, "sample_weight": (1 + GROUPS % 3).tolist()}}


CLUSTERS = {"kind": "clustering", "y_true": PREDICTIONS["y_true"], "y_pred": PREDICTED.tolist()}


@pytest.mark.parametrize("source", [SETS, CLUSTERS], ids=lambda one: one["kind"])
@pytest.mark.parametrize("retain", ["full", "none"])
def test_what_is_read_later_of_other_kinds_is_what_was_answered(
    client: httpx.Client, source: Json, retain: str
) -> None:
    source, options = source | {"group_ids": GROUPS.tolist()}, {"retain": retain}
    made = create(client, evaluation(dataset=uuid4().hex, input=source, options=options))
    assert client.get(f"/v1/evaluations/{made['id']}").json() == made
    assert made["groups"]["n_groups"] == 40


@pytest.mark.parametrize("kind", ALONE)
def test_groups_of_one_are_independent_samples(client: httpx.Client, kind: str) -> None:
    alone = {**ALONE[kind], "group_ids": list(range(len(TRUTH)))}
    plain = {name: value for name, value in alone.items() if name != "group_ids"}
    for intervals in ("headline", "all"):
        found, expected = (compute(client, one, intervals=intervals) for one in (alone, plain))
        assert found["input"].pop("n_groups") == len(TRUTH)
        assert found == expected


@pytest.mark.parametrize("kind", INPUTS)
def test_copies_in_a_group_are_no_evidence(client: httpx.Client, kind: str) -> None:
    """Every sample three times in its group: the closed forms are those of the samples once."""
    once = {**INPUTS[kind], "group_ids": [max(place, 1) for place in range(len(TRUTH))]}
    columns = ("y_true", "y_pred", "probabilities", "group_ids")
    copied = {**once, **{name: [one for one in once[name] for _ in range(3)] for name in columns if name in once}}
    found, expected = compute(client, copied), compute(client, once)
    effects = (one["groups"]["design_effects"]["accuracy"] for one in (found, expected))
    assert next(effects) == pytest.approx(3.0 * next(effects), rel=0.01)
    for name in expected["intervals"]:
        # Sampling errors of means divide by n - 1 samples, of which there seem to be more.
        np.testing.assert_allclose(ends(found, name), ends(expected, name), rtol=2e-3, err_msg=name)
    np.testing.assert_allclose(ends(found, "accuracy"), ends(expected, "accuracy"), rtol=2e-4)


def test_intervals_of_probabilities_count_groups(client: httpx.Client) -> None:
    headline = compute(client, PROBABILITIES)
    methods = {name: interval["method"] for name, interval in headline["intervals"].items()}
    assert methods["roc_auc@a"] == "cluster_delong_logit"
    assert methods["log_loss"] == methods["au_imcp"] == "cluster_hall_t"
    everything = compute(client, PROBABILITIES, intervals="all", draws=200)
    methods = {name: interval["method"] for name, interval in everything["intervals"].items()}
    assert methods["average_precision@b"] == "cluster_influence_logit"
    assert methods["pr_auc_trapezoid@b"] == "cluster_bootstrap"
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


def test_weights_that_add_up_to_the_groups_leave_them_groups(client: httpx.Client) -> None:
    """The 40 patients weigh 40 together, as where each weighs 1; in one input and in folds."""
    weights = np.full(GROUPS.size, 1 / 16)
    weights[0] += 40 - weights.sum()
    whole = compute(client, {**PREDICTIONS, "sample_weight": weights.tolist()})
    folds = [
        source_of(GROUPS[kept], TRUTH[kept], PREDICTED[kept], sample_weight=weights[kept].tolist())
        for kept in (GROUPS < 20, GROUPS >= 20)
    ]
    answer = compute(client, {"kind": "folds", "folds": folds})
    assert answer["groups"]["n_groups"] == 40
    for name in ("accuracy", "macro_f1", "recall@a"):
        assert answer["intervals"][name]["given"] == "groups"
        np.testing.assert_allclose(ends(answer, name), ends(whole, name), rtol=1e-9)


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


def test_nothing_takes_them_as_independent_in_silence(client: httpx.Client) -> None:
    dataset = uuid4().hex
    first, second = (kept(client, scored_source(GROUPS, TRUTH), model, dataset) for model in "mn")
    plain = kept(client, {name: value for name, value in PROBABILITIES.items() if name != "group_ids"}, "o", dataset)
    for metrics in (["accuracy"], ["log_loss"]):
        reply = client.post("/v1/comparisons", json={"evaluations": [plain, first], "metrics": metrics})
        assert reply.status_code == 201, reply.text
        (found,) = reply.json()["metrics"][metrics[0]]["differences"]
        assert found["method"].startswith("grouped_t")
        assert found["low"] < 0 < found["high"]
    for metric in ("h_mean", "log_loss"):
        board = client.get("/v1/leaderboard", params={"dataset": dataset, "metric": metric}).json()
        assert len(board["items"]) == 3
        for line in board["items"]:
            assert line["low"] < line["value"] < line["high"]
            assert line["separable_from_best"] is False
            assert line["method"].startswith(("grouped", "cluster")) == (line["model"]["name"] != "o")
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
    *values, difference = reply.json()["results"]
    report = client.get(f"/v1/evaluations/{first}", params={"fields": "intervals"}).json()["intervals"]
    for result in values:
        shown = report[result["rule"]["metric"]]
        assert (result["low"], result["high"], result["method"]) == (shown["low"], shown["high"], shown["method"])
    assert difference["low"] < 0 < difference["high"]
    assert difference["method"].startswith("grouped_t")
    reply = client.post(
        f"/v1/evaluations/{first}/projections",
        json={"prevalence": {"a": 0.5, "b": 0.2, "c": 0.3}, "metrics": ["accuracy", "log_loss"]},
    )
    assert reply.status_code == 200, reply.text
    assert reply.json()["metrics"]["accuracy"]["method"] == "grouped_mover"
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
