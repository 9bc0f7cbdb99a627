"""Samples with any number of labels, over HTTP: what comes in, what is answered at once and later, what is refused."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest

from app.api.bodies.parsing import parse_large_body
from app.api.v1.requests.evaluations import EvaluationRequest
from tests.api.answers import Json, check_problem, compute, create, evaluation, refused
from tests.api.decisions import compare
from tests.api.test_multipart import FORMATS, Columns, as_csv, as_npz, as_parquet, send
from tests.bank import each
from tests.witnesses import sk

LABELS = ["cat", "dog", "bird"]


def problem(seed: int = 0, size: int = 60, wrong: float = 0.15) -> tuple[Any, Any]:
    """What is there and what is said, samples without labels among them."""
    random = np.random.default_rng(seed)
    truth = np.random.default_rng(7).random((size, 3)) < [0.5, 0.3, 0.15]
    return truth, truth ^ (random.random(truth.shape) < wrong)


def lists(members: Any) -> list[list[str]]:
    return [[LABELS[code] for code in np.flatnonzero(row)] for row in members]


def source_of(truth: Any, predicted: Any, **members: Any) -> Json:
    return {"kind": "multilabel", "labels": LABELS, "y_true": lists(truth), "y_pred": lists(predicted), **members}


def keep(client: httpx.Client, source: Json, **members: Any) -> Json:
    return create(client, evaluation(input=source) | members)


TRUTH, PREDICTED = problem()
SOURCE = source_of(TRUTH, PREDICTED)
PROBABILITIES = np.clip(np.where(PREDICTED, 0.7, 0.2) + np.random.default_rng(1).normal(0, 0.05, PREDICTED.shape), 0, 1)

SCORED = {key: value for key, value in SOURCE.items() if key != "y_pred"} | {"probabilities": PROBABILITIES.tolist()}
RAW = np.log(PROBABILITIES + 0.01) * 3.0 + 2.0
RAW_SCORED = {key: value for key, value in SOURCE.items() if key != "y_pred"} | {"scores": RAW.tolist()}
IN_ORDER = each(("source", "outputs"), [(SCORED, PROBABILITIES), (RAW_SCORED, RAW)])


def test_lists_columns_and_probabilities_are_one_evaluation(client: httpx.Client) -> None:
    from_lists = compute(client, SOURCE)
    columns = {**SOURCE, "y_true": TRUTH.astype(int).tolist(), "y_pred": PREDICTED.astype(int).tolist()}
    scored = {key: value for key, value in SOURCE.items() if key != "y_pred"} | {
        "probabilities": PROBABILITIES.tolist(),
        "thresholds": [0.5, 0.45, 0.4],
    }
    assert compute(client, columns)["metrics"] == from_lists["metrics"]
    found = compute(client, scored)
    for group, values in from_lists["metrics"].items():
        assert {key: found["metrics"][group][key] for key in values} == values
    assert found["input"]["threshold"] == [0.5, 0.45, 0.4]


def test_the_report_has_what_scikit_learn_has(client: httpx.Client) -> None:
    answer = compute(client, SOURCE)
    insensitive, sensitive = (answer["metrics"][f"prevalence_{group}"] for group in ("insensitive", "sensitive"))
    expected = {
        "subset_accuracy": sk.accuracy_score(TRUTH, PREDICTED),
        "hamming_loss": sk.hamming_loss(TRUTH, PREDICTED),
        "samples_f1": sk.f1_score(TRUTH, PREDICTED, average="samples", zero_division=1),
        "macro_f1": sk.f1_score(TRUTH, PREDICTED, average="macro"),
        "weighted_f1": sk.f1_score(TRUTH, PREDICTED, average="weighted"),
        "micro_f_beta": sk.f1_score(TRUTH, PREDICTED, average="micro"),
    }
    assert {key: sensitive[key] for key in expected} == pytest.approx(expected, rel=1e-12)
    recalls = sk.recall_score(TRUTH, PREDICTED, average=None)
    assert insensitive["h_mean"] == pytest.approx(3 / (1 / recalls).sum(), rel=1e-12)
    assert insensitive["g_mean"] == pytest.approx(recalls.prod() ** (1 / 3), rel=1e-12)
    assert answer["input"]["n_samples"] == 60
    assert answer["input"]["label_matrices"] == dict(
        zip(LABELS, sk.multilabel_confusion_matrix(TRUTH, PREDICTED).tolist(), strict=True)
    )
    assert answer["per_class"]["dog"]["prevalence_insensitive"]["recall"] == pytest.approx(recalls[1])
    assert answer["intervals"]["h_mean"]["method"] == "mover"
    assert answer["intervals"]["macro_f1"]["method"] == "influence_logit"
    assert answer["intervals"]["subset_accuracy"]["method"] == "wilson"
    assert answer["intervals"]["recall@dog"]["method"] == "wilson"


def test_expressions_speak_of_labels(client: httpx.Client) -> None:
    asked = ["gps(recall@*, precision@dog)", "f_beta(beta=2)@cat", "hamming_loss", "recall@*"]
    answer = compute(client, SOURCE, metrics=asked, intervals="all")
    assert list(answer["requested"]) == asked
    assert answer["requested"]["hamming_loss"] == pytest.approx(sk.hamming_loss(TRUTH, PREDICTED))
    interval = answer["intervals"]["gps(recall@*, precision@dog)"]
    assert interval["low"] < answer["requested"]["gps(recall@*, precision@dog)"] < interval["high"]
    fault = refused(client, SOURCE, options={"metrics": ["mcc"]})
    assert fault["pointer"] == "/options/metrics/0"
    assert "multilabel" in fault["detail"]


def test_micro_averages_are_of_all_labels(client: httpx.Client) -> None:
    asked = ["micro_f1", "precision_micro", "recall_score(average=micro)", "recall_weighted", "micro_specificity"]
    answer = compute(client, SOURCE, metrics=asked, intervals="all")
    expected = [
        *(score(TRUTH, PREDICTED, average="micro") for score in (sk.f1_score, sk.precision_score, sk.recall_score)),
        sk.recall_score(TRUTH, PREDICTED, average="weighted"),
        np.mean(~PREDICTED.astype(bool)[~TRUTH.astype(bool)]),
    ]
    for name, value in zip(asked, expected, strict=True):
        assert answer["requested"][name] == pytest.approx(value)
        assert answer["intervals"][name]["low"] < value < answer["intervals"][name]["high"]
    fault = refused(client, SOURCE, options={"metrics": ["accuracy"]})
    assert fault["suggestions"] == ["subset_accuracy"]


def test_samples_without_labels_have_their_own_reason(client: httpx.Client) -> None:
    source = {"kind": "multilabel", "labels": ["cat", "dog"], "y_true": [[], []], "y_pred": [[], ["cat"]]}
    asked = ["weighted_f1", "micro_recall", "micro_f_beta(beta=2)", "micro_jaccard"]
    answer = compute(client, source, metrics=asked)
    reasons = {one["metric"]: one["code"] for one in answer["undefined"]}
    assert {name: reasons.get(name) for name in asked[:2]} == dict.fromkeys(asked[:2], "no_labels")
    assert answer["requested"]["micro_jaccard"] == 0.0
    assert "no_samples" not in reasons.values()


@pytest.mark.parametrize("retain", ["full", "none"])
def test_what_is_stored_answers_the_same(client: httpx.Client, retain: str) -> None:
    made = keep(
        client, SOURCE, dataset={"name": f"retained {retain}"}, options={"retain": retain, "metrics": ["samples_f1"]}
    )
    again = client.get(f"/v1/evaluations/{made['id']}").json()
    assert again == made
    listed = client.get("/v1/evaluations", params={"dataset": made["dataset"]["name"]}).json()["items"]
    assert listed[0]["metrics"]["hamming_loss"] == made["metrics"]["prevalence_sensitive"]["hamming_loss"]
    assert listed[0]["input"]["n_samples"] == 60


def test_runs_are_compared_sample_by_sample(client: httpx.Client) -> None:
    ids = [f"s{number}" for number in range(60)]
    good, bad = problem(1, wrong=0.05)[1], problem(2, wrong=0.4)[1]
    first = keep(client, source_of(TRUTH, good, sample_ids=ids))
    order = np.random.default_rng(3).permutation(60)
    # In another order of samples and of labels.
    turned = {
        "kind": "multilabel",
        "labels": LABELS[::-1],
        "y_true": TRUTH[order][:, ::-1].astype(int).tolist(),
        "y_pred": bad[order][:, ::-1].astype(int).tolist(),
        "sample_ids": [ids[place] for place in order],
    }
    second = keep(client, turned)
    found = compare(client, first["id"], second["id"], metrics=["h_mean", "subset_accuracy", "recall@*"])
    assert found["design"]["paired"] is True
    (difference,) = found["metrics"]["h_mean"]["differences"]
    assert difference["difference"] == pytest.approx(
        first["metrics"]["prevalence_insensitive"]["h_mean"] - second["metrics"]["prevalence_insensitive"]["h_mean"]
    )
    assert difference["low"] < difference["difference"] < difference["high"]
    assert difference["p_value"] < 0.01
    assert difference["method"] == "jackknife_t, jackknife_t"
    assert {"recall@cat", "recall@dog", "recall@bird"} <= found["metrics"].keys()


def test_gates_and_leaderboards_take_labels(client: httpx.Client) -> None:
    dataset = {"name": "pets of gates"}
    ids = list(range(60))
    runs = [
        keep(
            client,
            source_of(TRUTH, problem(seed, wrong=wrong)[1], sample_ids=ids),
            dataset=dataset,
            model={"name": f"m{seed}"},
        )
        for seed, wrong in ((1, 0.05), (2, 0.4))
    ]
    rules = [
        {"metric": "h_mean", "min": 0.5},
        {"metric": "recall@*", "min": 0.1},
        {"metric": "subset_accuracy", "not_worse_than": "baseline", "margin": 0.01},
    ]
    assert client.put("/v1/gates/labels", json={"rules": rules}).status_code in (200, 201)
    asked = {"evaluation": runs[0]["id"], "baseline": runs[1]["id"]}
    check = client.post("/v1/gates/labels/checks", json=asked).json()
    assert [result["verdict"] for result in check["results"]] == ["pass", "pass", "pass"]
    for metric in ("h_mean", "hamming_loss", "gps(recall@*, precision@cat)"):
        board = client.get("/v1/leaderboard", params={"dataset": dataset["name"], "metric": metric}).json()
        assert [item["model"]["name"] for item in board["items"]] == ["m1", "m2"]
        assert board["items"][0]["low"] < board["items"][0]["value"] < board["items"][0]["high"]
        assert board["items"][1]["separable_from_best"] is True


def test_what_makes_no_sense_for_labels_is_refused(client: httpx.Client) -> None:
    made = keep(client, SOURCE)
    path = f"/v1/evaluations/{made['id']}"
    for answer in (
        client.get(f"{path}/confusion-matrix"),
        client.post(f"{path}/projections", json={"prevalence": {"cat": 0.5}, "metrics": ["recall@cat"]}),
    ):
        check_problem(answer, 422, "not_for_this_kind")
    for answer in (
        client.get(f"{path}/curves/roc"),
        client.post(f"{path}/thresholds", json={"objective": "h_mean", "per_label": True}),
    ):
        check_problem(answer, 422, "needs_scores")
    other = keep(client, {"kind": "predictions", "y_true": LABELS * 5, "y_pred": LABELS * 5})
    answer = client.post("/v1/comparisons", json={"evaluations": [made["id"], other["id"]]})
    check_problem(answer, 422, "incomparable_runs")


@each(
    ("change", "pointer", "code"),
    [
        ({"y_true": []}, "/input/y_true", "no_samples"),
        ({"y_pred": [["cat"]]}, "/input/y_pred", "wrong_length"),
        ({"y_true": [["cat", "cow"], *SOURCE["y_true"][1:]]}, "/input/y_true/0/1", "unknown_label"),
        ({"y_true": [["cat"], ["dog", "dog"], *SOURCE["y_true"][2:]]}, "/input/y_true/1", "duplicate_label"),
        ({"y_true": ["cat", *SOURCE["y_true"][1:]]}, "/input/y_true/0", "not_a_row"),
        ({"y_true": [[1, 0]] * 60}, "/input/y_true/0", "wrong_label_count"),
        ({"y_true": [["cat", None], *SOURCE["y_true"][1:]]}, "/input/y_true/0/1", "not_a_label"),
        ({"labels": ["cat"]}, "/input/labels", "too_few_classes"),
        ({"y_pred": None}, "/input/y_pred", "missing_field"),
        ({"thresholds": 0.3}, "/input/thresholds", "thresholds_need_probabilities"),
        ({"sample_ids": [1] * 60}, "/input/sample_ids/1", "duplicate_sample_id"),
        ({"sample_weight": [-1.0] * 60}, "/input/sample_weight/0", "bad_weight"),
        ({"group_ids": ["a"] * 60}, "/input/group_ids", "one_group"),
        ({"probabilities": [[0.5, 0.5, 0.5]] * 60}, "/input/probabilities", "one_of"),
        ({"scores": [[0.5, 0.5, 0.5]] * 60}, "/input/scores", "one_of"),
        ({"y_pred": None, "scores": [[0.5, 0.5]] * 60}, "/input/labels", "wrong_label_count"),
        (
            {"y_pred": None, "probabilities": [[0.5] * 3] * 60, "thresholds": [0.5, 0.5, 1.5]},
            "/input/thresholds/2",
            "out_of_range",
        ),
        ({"y_pred": None, "probabilities": [[0.5, 0.5]] * 60}, "/input/labels", "wrong_label_count"),
        ({"y_pred": None, "probabilities": [[0.5, 0.5, 1.5]] * 60}, "/input/probabilities/0/2", "out_of_range"),
        ({"y_pred": None, "probabilities": [[0.5, 0.5, "x"]] * 60}, "/input/probabilities/0/2", "not_a_number"),
        ({"y_pred": None, "probabilities": [[0.5] * 3] * 59 + [[0.5]]}, "/input/probabilities/59", "ragged_row"),
        (
            {"y_pred": None, "probabilities": [[0.5] * 3] * 60, "thresholds": [0.5]},
            "/input/thresholds",
            "wrong_length",
        ),
    ],
)
def test_faults_have_their_place(client: httpx.Client, change: Json, pointer: str, code: str) -> None:
    source = {key: value for key, value in {**SOURCE, **change}.items() if value is not None}
    fault = refused(client, source)
    assert (fault["pointer"], fault["code"]) == (pointer, code)


def test_weights_and_groups(client: httpx.Client) -> None:
    weighted = compute(client, {**SOURCE, "sample_weight": [1.0, 3.0] * 30})
    plain = compute(client, SOURCE)
    assert weighted["intervals"]["samples_f1"]["method"] == "weighted_hall_t"
    limits = (one["intervals"]["samples_f1"] for one in (weighted, plain))
    width, own = (one["high"] - one["low"] for one in limits)
    # They are worth 48 samples.
    assert width / own == pytest.approx((60 / 48) ** 0.5, rel=0.15)
    grouped = compute(client, {**SOURCE, "group_ids": [number // 4 for number in range(60)]})
    assert grouped["input"]["n_groups"] == 15
    assert grouped["intervals"]["h_mean"]["method"] == "cluster_influence"
    assert grouped["intervals"]["macro_f1"]["method"] == "cluster_influence_logit"
    assert grouped["intervals"]["recall@dog"]["method"] == "grouped_wilson"


COLUMNS: dict[str, Any] = {f"y_true.{label}": TRUTH[:, code].astype(int) for code, label in enumerate(LABELS)}
SAID: dict[str, Any] = {f"y_pred.{label}": PREDICTED[:, code].astype(int) for code, label in enumerate(LABELS)}
IDS = {"sample_id": [f"s{number}" for number in range(60)]}


@pytest.mark.parametrize("write", FORMATS.values(), ids=FORMATS.keys())
def test_files_have_a_column_for_each_label(client: httpx.Client, write: Callable[[Columns], bytes]) -> None:
    expected = compute(client, {**SOURCE, "sample_ids": IDS["sample_id"]}, seed=0)
    data = write({**COLUMNS, **SAID, **IDS})
    for members in ({}, {"labels": LABELS}):
        reply = send(client, {"kind": "multilabel", **members}, data, options={"seed": 0})
        assert reply.status_code == 200, reply.text
        assert reply.json() == expected
    scores = {f"probabilities.{label}": PROBABILITIES[:, code] for code, label in enumerate(LABELS)}
    found = send(client, {"kind": "multilabel", "labels": LABELS[::-1]}, write({**COLUMNS, **scores})).json()
    assert found["input"]["labels"] == LABELS[::-1]
    assert found["metrics"]["prevalence_sensitive"]["coverage_error"] == pytest.approx(
        sk.coverage_error(TRUTH, PROBABILITIES)
    )
    raw = {f"score.{label}": RAW[:, code] for code, label in enumerate(LABELS)}
    found = send(client, {"kind": "multilabel"}, write({**COLUMNS, **raw})).json()
    assert found["metrics"] == compute(client, RAW_SCORED)["metrics"]


def test_files_have_arrays_of_all_labels(client: httpx.Client) -> None:
    expected = compute(client, SOURCE, seed=0)
    data = as_npz({"y_true": TRUTH, "y_pred": PREDICTED.astype(float)})
    reply = send(client, {"kind": "multilabel", "labels": LABELS}, data, options={"seed": 0})
    assert reply.json() == expected
    booleans = {name: np.asarray(column, dtype=bool) for name, column in {**COLUMNS, **SAID}.items()}
    assert send(client, {"kind": "multilabel"}, as_parquet(booleans), options={"seed": 0}).json() == expected


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        (COLUMNS, "missing_column"),
        ({**COLUMNS, **SAID, "more": TRUTH[:, 0].astype(int)}, "unknown_column"),
        ({**COLUMNS, **dict(list(SAID.items())[1:])}, "missing_column"),
        (SAID, "missing_column"),
    ],
)
def test_faults_of_files(client: httpx.Client, columns: Columns, code: str) -> None:
    reply = send(client, {"kind": "multilabel"}, as_csv(columns))
    (fault,) = check_problem(reply, 422, reply.json()["code"])["errors"]
    assert (fault["pointer"], fault["code"]) == ("/data", code)


def test_columns_of_files_hold_0_and_1(client: httpx.Client) -> None:
    wrong = {**COLUMNS, **SAID, "y_pred.bird": np.where(np.arange(len(TRUTH)) == 41, 2, 0)}
    reply = send(client, {"kind": "multilabel"}, as_csv(wrong))
    (fault,) = check_problem(reply, 422, reply.json()["code"])["errors"]
    assert (fault["pointer"], fault["code"]) == ("/input/y_pred/41/2", "out_of_range")
    assert fault["detail"] == "expected 0 or 1 for the label 'bird', got 2"
    # The first row is told, whichever column comes first.
    wrong["y_pred.cat"] = np.where(np.arange(len(TRUTH)) == 50, 3, 0)
    reply = send(client, {"kind": "multilabel"}, as_csv(wrong))
    assert check_problem(reply, 422, reply.json()["code"])["errors"] == [fault]


def test_columns_of_large_bodies_are_arrays() -> None:
    truth = np.tile(TRUTH, (200, 1)).astype(int)
    body = json.dumps({"input": {"kind": "multilabel", "y_true": truth.tolist(), "labels": LABELS}}).encode()
    column = parse_large_body(body, EvaluationRequest).input.y_true
    assert isinstance(column, np.ndarray)
    assert (column == truth).all()


def test_rows_are_no_classes(client: httpx.Client) -> None:
    large = [[0, 1]] * 60_000
    reply = client.post(
        "/v1/metrics/compute", json={"input": {"kind": "predictions", "y_true": large, "y_pred": [0] * 60_000}}
    )
    (fault,) = check_problem(reply, 422, reply.json()["code"])["errors"]
    assert (fault["pointer"], fault["code"]) == ("/input/y_true/0", "not_a_label")


@pytest.mark.parametrize("accept", ["text/plain", "text/markdown", "text/csv"])
def test_texts_speak_of_labels(client: httpx.Client, accept: str) -> None:
    made = keep(client, SOURCE)
    reply = client.get(f"/v1/evaluations/{made['id']}", headers={"Accept": accept})
    assert reply.status_code == 200, reply.text
    assert "dog" in reply.text
    assert "h_mean" in reply.text or "harmonic" in reply.text


def test_two_labels_are_no_two_classes(client: httpx.Client) -> None:
    sources = [
        {
            "kind": "multilabel",
            "labels": ["a", "b"],
            "y_true": TRUTH[:, :2].astype(int).tolist(),
            "y_pred": problem(seed, wrong=0.2)[1][:, :2].astype(int).tolist(),
        }
        for seed in (1, 2)
    ]
    made = [keep(client, source) for source in sources]
    found = compare(client, *(one["id"] for one in made), metrics=["macro_f1"])
    assert "cost_ranges" not in found
    assert found["design"]["bond"] == "same_test_set"
    asked = {"evaluations": [one["id"] for one in made], "metrics": ["macro_f1"], "cost_ranges": {}}
    reply = client.post("/v1/comparisons", json=asked)
    (fault,) = check_problem(reply, 422, reply.json()["code"])["errors"]
    assert fault["pointer"] == "/cost_ranges"


def test_runs_of_labels_are_ranked_by_what_is_not_stored_with_them(client: httpx.Client) -> None:
    dataset = {"name": "labels in one order", "split": "test"}
    for name, outputs in (("good", RAW), ("poor", RAW[::-1])):
        keep(client, RAW_SCORED | {"scores": outputs.tolist()}, model={"name": name}, dataset=dataset)
    query = {"dataset": dataset["name"], "metric": "roc_auc_ovr_micro"}
    first, second = client.get("/v1/leaderboard", params=query).json()["items"]
    expected = [sk.roc_auc_score(TRUTH, outputs, average="micro") for outputs in (RAW, RAW[::-1])]
    assert [first["model"]["name"], second["model"]["name"]] == ["good", "poor"]
    assert [first["value"], second["value"]] == pytest.approx(expected, rel=1e-12)


def test_scores_have_the_measures_of_the_order(client: httpx.Client) -> None:
    """Also with thresholds of their own, and with those of 0 that are assumed."""
    answer = compute(client, RAW_SCORED, metrics=["roc_auc_ovr_micro", "average_precision@dog"])
    values = answer["metrics"]["prevalence_insensitive"] | answer["metrics"]["prevalence_sensitive"]
    values |= answer["requested"]
    expected = {
        "average_precision@dog": sk.average_precision_score(TRUTH[:, 1], RAW[:, 1]),
        "roc_auc_ovr_macro": sk.roc_auc_score(TRUTH, RAW),
        "roc_auc_ovr_micro": sk.roc_auc_score(TRUTH, RAW, average="micro"),
        "macro_average_precision": sk.average_precision_score(TRUTH, RAW),
        "coverage_error": sk.coverage_error(TRUTH, RAW),
        "label_ranking_loss": sk.label_ranking_loss(TRUTH, RAW),
        "label_ranking_average_precision": sk.label_ranking_average_precision_score(TRUTH, RAW),
        "macro_f1": sk.f1_score(TRUTH, RAW >= 0, average="macro"),
    }
    assert {key: values[key] for key in expected} == pytest.approx(expected, rel=1e-12)
    facts = {name: answer["input"][name] for name in ("outputs", "threshold", "threshold_assumed")}
    assert facts == {"outputs": "scores", "threshold": 0.0, "threshold_assumed": True}
    assert "threshold_assumed" in {one["code"] for one in answer["findings"]}
    assert "threshold_assumed" not in compute(client, RAW_SCORED | {"thresholds": [-1.0, 2.5, 0.0]})["input"]
    made = keep(client, RAW_SCORED)
    why = client.get(f"/v1/evaluations/{made['id']}/curves/calibration", params={"class": "dog"})
    assert "probabilities" in check_problem(why, 422, "undefined_curve")["detail"]
    assert refused(client, RAW_SCORED, options={"metrics": ["log_loss"]})["pointer"] == "/options/metrics/0"


@IN_ORDER
def test_curves_of_a_label_are_those_of_its_outputs(client: httpx.Client, source: Json, outputs: Any) -> None:
    made = keep(client, source)
    path = f"/v1/evaluations/{made['id']}/curves"
    there, scores = TRUTH[:, 1], outputs[:, 1]
    roc = client.get(f"{path}/roc", params={"class": "dog", "band": "pointwise"}).json()
    assert roc["class"] == "dog"
    assert roc["area"] == pytest.approx(sk.roc_auc_score(there, scores), rel=1e-12)
    for x, y, cut in zip(roc["x"][1:], roc["y"][1:], roc["thresholds"][1:], strict=True):
        assert (x, y) == pytest.approx(((scores[~there] >= cut).mean(), (scores[there] >= cut).mean()), rel=1e-12)
    unkept = client.post("/v1/curves/pr", json={"input": source, "class": "dog"}).json()
    assert unkept == client.get(f"{path}/pr", params={"class": "dog"}).json()
    check_problem(client.get(f"{path}/roc"), 422, "unknown_class")
    check_problem(client.get(f"{path}/roc", params={"class": "cow"}), 422, "unknown_class")


@IN_ORDER
def test_every_label_has_the_threshold_that_is_best_for_it(client: httpx.Client, source: Json, outputs: Any) -> None:
    """The best of all thresholds, tried one by one; with these thresholds the report has these values."""
    made = keep(client, source)
    asked = {"objective": "f1", "per_label": True, "correction": "none"}
    found = client.post(f"/v1/evaluations/{made['id']}/thresholds", json=asked).json()
    again = compute(client, source | {"thresholds": found["thresholds"]})
    for code, label in enumerate(LABELS):
        there, said = TRUTH[:, code], outputs[:, code] >= outputs[:, code, None]
        cuts = 2.0 * (said & there).sum(axis=1) / (said.sum(axis=1) + there.sum())
        objective = found["rules"][label]["objective"]
        assert objective["value"] == pytest.approx(max(cuts), rel=1e-12)
        assert again["per_class"][label]["prevalence_sensitive"]["f1"] == pytest.approx(objective["value"], rel=1e-12)
        assert objective["default"] == made["per_class"][label]["prevalence_sensitive"]["f1"]
    unkept = client.post("/v1/thresholds", json={"input": source, **asked}).json()
    assert unkept["thresholds"] == found["thresholds"]


def test_a_label_without_a_rule_has_none_and_says_why(client: httpx.Client) -> None:
    nobody = {**SCORED, "y_true": [[label for label in row if label != "bird"] for row in SCORED["y_true"]]}
    asked = {"input": nobody, "objective": "recall", "per_label": True, "correction": "none"}
    found = client.post("/v1/thresholds", json=asked).json()
    assert found["thresholds"][2] is found["rules"]["bird"] is None
    assert list(found["undefined"]) == ["bird"]
    assert None not in found["thresholds"][:2]
    labels = client.post("/v1/thresholds", json={"input": SCORED, "objective": "recall"})
    assert check_problem(labels, 422, "invalid_input")["errors"][0]["pointer"] == "/per_label"
    classes = {"kind": "scores", "y_true": [0, 1, 1], "scores": [0.1, 0.4, 0.3]}
    check_problem(client.post("/v1/thresholds", json=asked | {"input": classes}), 422, "invalid_input")
