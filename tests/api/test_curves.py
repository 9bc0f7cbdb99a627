"""Curves of stored evaluations."""

from typing import Any
from uuid import uuid4

import httpx
import numpy as np
import pytest

from app.kernel.samples.curves import CLASS_CURVES, OVERALL_CURVES, CurveName
from app.services.decide.curves import CurvePoints, RunCurves
from tests.api.answers import check_json, check_problem, check_shape, create, evaluation
from tests.api.test_probabilities import make, make_scores
from tests.witnesses import sk

Json = dict[str, Any]


@pytest.fixture(scope="module")
def binary(client: httpx.Client) -> Json:
    return create(client, evaluation(input=make(n=500, classes=2)))


@pytest.fixture(scope="module")
def many(client: httpx.Client) -> Json:
    return create(client, evaluation(input=make(n=300)))


def read(client: httpx.Client, made: Json, name: str, **parameters: Any) -> Json:
    reply = client.get(f"/v1/evaluations/{made['id']}/curves/{name}", params=parameters)
    assert reply.status_code == 200, reply.text
    check_json(reply)
    check_shape(reply, RunCurves)
    answer: Json = reply.json()
    sizes = {len(answer[key]) for key in ("x", "y", "thresholds")}
    sizes |= {len(values) for values in answer["references"].values()}
    assert len(sizes) == 1
    assert sizes.pop() <= answer["n_points"]
    return answer


@pytest.mark.parametrize("name", list(CurveName))
def test_every_curve_of_two_classes(client: httpx.Client, binary: Json, name: CurveName) -> None:
    answer = read(client, binary, name.value)
    assert answer["curve"] == name.value
    assert answer["class"] == (None if name in OVERALL_CURVES and name is not CurveName.CALIBRATION else "1")
    assert all(answer["axes"].values())


def test_areas_are_those_of_the_metrics(client: httpx.Client, binary: Json) -> None:
    values = {**binary["metrics"]["prevalence_insensitive"], **binary["metrics"]["prevalence_sensitive"]}
    for name, expected in (
        ("roc", values["roc_auc"]),
        ("pr", values["pr_auc_trapezoid"]),
        ("det", 1 - values["roc_auc"]),
        ("mcp", values["au_mcp"]),
        ("imcp", values["au_imcp"]),
    ):
        assert read(client, binary, name)["area"] == pytest.approx(expected, rel=1e-10), name
    predicted = read(client, binary, "calibration", **{"class": "predicted"})
    assert predicted["area"] == pytest.approx(values["expected_calibration_error"], rel=1e-10)


def test_calibration_without_a_class(client: httpx.Client, binary: Json, many: Json) -> None:
    """Of two classes it is that of the positive one, of more that of the predicted class; each can be asked for."""
    own, positive, predicted = (
        read(client, binary, "calibration", **given) for given in ({}, {"class": "1"}, {"class": "predicted"})
    )
    assert own == positive
    assert own["axes"] == {"x": "mean probability", "y": "observed frequency"}
    assert predicted["class"] is None
    assert predicted["axes"] == {"x": "mean confidence", "y": "accuracy"}
    assert min(predicted["x"]) >= 0.5 > min(own["x"])
    assert read(client, many, "calibration") == read(client, many, "calibration", **{"class": "predicted"})


def test_roc_is_that_of_scikit_learn(client: httpx.Client, binary: Json) -> None:
    source = make(n=500, classes=2)
    x, y, _ = sk.roc_curve(source["y_true"], [row[1] for row in source["probabilities"]], drop_intermediate=False)
    answer = read(client, binary, "roc", max_points=100_000)
    np.testing.assert_allclose(answer["x"], x, atol=1e-12)
    np.testing.assert_allclose(answer["y"], y, atol=1e-12)
    assert answer["thresholds"][0] is None


def test_thinning_keeps_ends_and_area(client: httpx.Client, binary: Json) -> None:
    whole, thin = (read(client, binary, "roc", max_points=points) for points in (100_000, 40))
    assert len(thin["x"]) == 40 < whole["n_points"] == thin["n_points"]
    assert thin["area"] == whole["area"]
    assert [thin["x"][0], thin["y"][0], thin["x"][-1], thin["y"][-1]] == [0, 0, 1, 1]
    assert np.trapezoid(thin["y"], thin["x"]) == pytest.approx(whole["area"], abs=0.005)


def test_curves_of_many_classes(client: httpx.Client, many: Json) -> None:
    for name in CLASS_CURVES:
        assert read(client, many, name.value, **{"class": "2"})["class"] == "2"
    for name in OVERALL_CURVES:
        assert read(client, many, name.value)["class"] is None
    area = many["per_class"]["2"]["prevalence_sensitive"]["roc_auc"]
    assert read(client, many, "roc", **{"class": "2"})["area"] == pytest.approx(area, rel=1e-12)


def test_bars_say_which_class_they_are_of(client: httpx.Client, many: Json) -> None:
    whole = read(client, many, "imcp", max_points=50)
    assert len(whole["classes"]) == len(whole["widths"]) == len(whole["x"]) == 50
    assert [whole[name][at] for name in ("classes", "widths") for at in (0, -1)] == [None] * 4
    assert set(whole["classes"][1:-1]) == {"0", "1", "2"}
    assert whole["references"] == {}
    assert whole["levels"]["certainly_right_above"] == pytest.approx(1 - (1 - 0.5**0.5) ** 0.5)
    assert whole["levels"]["certainly_wrong_below"] == pytest.approx(1 - (1 - 3**-0.5) ** 0.5)
    parts = [read(client, many, "imcp", max_points=1000, **{"class": label}) for label in ("0", "1", "2")]
    assert [set(part["classes"]) for part in parts] == [{"0"}, {"1"}, {"2"}]
    assert [sum(part["widths"]) for part in parts] == pytest.approx([1 / 3] * 3)
    assert sum(part["area"] for part in parts) == pytest.approx(whole["area"], rel=1e-12)
    assert sum(part["n_points"] for part in parts) == whole["n_points"] - 2
    assert set(read(client, many, "mcp", **{"class": "1"})["classes"]) == {"1", None}
    assert "classes" not in read(client, many, "roc", **{"class": "1"})


def test_curves_of_scores(client: httpx.Client) -> None:
    made = create(client, evaluation(input=make_scores()))
    assert read(client, made, "roc")["area"] == made["metrics"]["prevalence_insensitive"]["roc_auc"]
    reply = client.get(f"/v1/evaluations/{made['id']}/curves/imcp")
    check_problem(reply, 422, "undefined_curve")


def test_what_curves_are_made_with(client: httpx.Client, binary: Json, many: Json) -> None:
    rows = np.array(make(n=500, classes=2)["probabilities"])[:, 1]
    elsewhere = read(client, binary, "decision", prevalence=0.01)
    odds = np.array(elsewhere["x"]) / (1 - np.array(elsewhere["x"]))
    np.testing.assert_allclose(elsewhere["references"]["treat_all"], 0.01 - 0.99 * odds)
    binned = read(client, binary, "calibration", bins=4, **{"class": "1"})
    assert len(binned["x"]) <= 4
    assert sum(binned["weights"]) == pytest.approx(1)
    steps = read(client, binary, "calibration", form="isotonic", max_points=100_000, **{"class": "1"})
    assert steps["x"] == pytest.approx(np.unique(rows))
    assert (np.diff(steps["y"]) >= 0).all()
    assert steps["axes"]["y"] == "calibrated probability"
    assert read(client, many, "calibration", form="isotonic")["class"] is None
    refused: list[tuple[str, dict[str, str]]] = [
        ("roc", {"bins": "3"}),
        ("calibration", {"prevalence": "0.5"}),
        ("decision", {"form": "isotonic"}),
        ("calibration", {"form": "isotonic", "bins": "3"}),
        ("calibration", {"bins": "0"}),
        ("decision", {"prevalence": "1"}),
    ]
    for name, given in refused:
        reply = client.get(f"/v1/evaluations/{binary['id']}/curves/{name}", params={**given, "class": "1"})
        problem = check_problem(reply, 422, "invalid_query")
        assert problem["errors"][0]["parameter"] in given


def test_curves_that_cannot_be(client: httpx.Client, many: Json) -> None:
    def ask(identifier: Any, name: str, **parameters: Any) -> httpx.Response:
        return client.get(f"/v1/evaluations/{identifier}/curves/{name}", params=parameters)

    check_problem(ask(many["id"], "roc"), 422, "unknown_class")
    check_problem(ask(many["id"], "roc", **{"class": "x"}), 422, "unknown_class")
    named = create(client, evaluation(input=make(labels=["cat", "dog", "fox"], y_true=["cat", "dog", "fox"] * 20)))
    (fault,) = check_problem(ask(named["id"], "roc", **{"class": "fxo"}), 422, "unknown_class")["errors"]
    assert (fault["parameter"], fault["suggestions"]) == ("class", ["fox"])
    check_problem(ask(many["id"], "spiral"), 422, "invalid_path")
    check_problem(ask(many["id"], "roc", max_points=1), 422, "invalid_query")
    check_problem(ask(many["id"], "roc", max_point=10), 422, "invalid_query")
    check_problem(ask(uuid4(), "roc"), 404, "not_found")
    matrix = create(client, evaluation())
    assert "confusion_matrix" in check_problem(ask(matrix["id"], "roc"), 422, "needs_scores")["detail"]
    unkept = create(client, evaluation(input=make(), options={"retain": "none"}))
    assert "retain" in check_problem(ask(unkept["id"], "imcp"), 409, "no_samples_kept")["detail"]
    one = create(client, evaluation(input=make(n=10, classes=2, y_true=[1] * 10, labels=[0, 1])))
    check_problem(ask(one["id"], "roc"), 422, "undefined_curve")
    client.delete(f"/v1/evaluations/{one['id']}")
    check_problem(ask(one["id"], "roc"), 404, "not_found")


def compute(client: httpx.Client, name: str, **body: Any) -> Json:
    reply = client.post(f"/v1/curves/{name}", json=body)
    assert reply.status_code == 200, reply.text
    check_json(reply)
    check_shape(reply, CurvePoints)
    answer: Json = reply.json()
    return answer


def test_a_curve_without_keeping_is_the_same(client: httpx.Client, many: Json) -> None:
    source = make(n=300)
    before = client.get("/v1/evaluations").json()["items"][0]["id"]
    for name, given in (
        ("roc", {"class": "1", "max_points": 40}),
        ("roc", {"class": "micro"}),
        ("imcp", {}),
        ("calibration", {"form": "isotonic"}),
        ("pr", {"class": "2", "band": "simultaneous", "seed": 4, "level": 0.8}),
    ):
        assert compute(client, name, input=source, **given) == read(client, many, name, **given)
    assert client.get("/v1/evaluations").json()["items"][0]["id"] == before


def test_a_large_input_is_read_by_columns(client: httpx.Client) -> None:
    truth = np.arange(60_000) % 2
    scores = np.round(np.random.default_rng(1).normal(truth), 6)
    answer = compute(client, "roc", input={"kind": "scores", "y_true": truth.tolist(), "scores": scores.tolist()})
    assert answer["area"] == pytest.approx(sk.roc_auc_score(truth, scores), rel=1e-12)


def test_inputs_that_have_no_curve(client: httpx.Client) -> None:
    def refused(name: str, code: str, pointer: str | None = None, **body: Any) -> None:
        problem = check_problem(client.post(f"/v1/curves/{name}", json=body), 422, code)
        if pointer is not None:
            assert problem["errors"][0]["pointer"] == pointer

    matrix = {"kind": "confusion_matrix", "matrix": [[1, 2], [3, 4]]}
    refused("roc", "needs_scores", "/input/kind", input=matrix)
    refused("roc", "invalid_input", "/bins", input=make(), bins=3)
    refused("roc", "invalid_input", "/input/probabilities", input={**make(), "y_true": [1]})
    refused("roc", "invalid_request", "/input", max_points=10)
    refused("roc", "unknown_class", "/class", input=make())
    refused("roc", "invalid_input", "/level", input=make(), level=0.9)


def test_averages_over_the_classes(client: httpx.Client, many: Json) -> None:
    source = make(n=300)
    truth, rows = np.array(source["y_true"]), np.array(source["probabilities"])
    micro, macro = (read(client, many, "roc", **{"class": name}) for name in ("micro", "macro"))
    assert (micro["class"], macro["class"]) == ("micro", "macro")
    assert micro["area"] == pytest.approx(sk.roc_auc_score(np.eye(3)[truth].ravel(), rows.ravel()), rel=1e-12)
    assert macro["area"] == pytest.approx(sk.roc_auc_score(truth, rows, multi_class="ovr"), rel=1e-12)
    for name, average in (("calibration", "micro"), ("pr", "macro"), ("roc", "predicted")):
        reply = client.get(f"/v1/evaluations/{many['id']}/curves/{name}", params={"class": average})
        check_problem(reply, 422, "unknown_class")
    # A class of this name comes first.
    named = create(
        client, evaluation(input=make(n=50, labels=["0", "1", "micro"], y_true=["0", "1", "micro"] * 16 + ["0", "1"]))
    )
    own, third = (read(client, named, "roc", **{"class": name}) for name in ("micro", "1"))
    assert own["area"] == named["per_class"]["micro"]["prevalence_sensitive"]["roc_auc"] != third["area"]


@pytest.mark.parametrize(
    ("name", "given", "method"),
    [
        ("roc", {"class": "1"}, "posterior"),
        ("roc", {"class": "micro"}, "cluster_posterior"),
        ("det", {"class": "1"}, "posterior"),
        ("pr", {"class": "1"}, "posterior"),
        ("decision", {"class": "1"}, "posterior"),
        ("decision", {"class": "1", "prevalence": 0.1}, "posterior"),
        ("calibration", {"class": "1"}, "wilson"),
        ("calibration", {}, "wilson"),
        ("calibration", {"form": "isotonic"}, "consistency"),
    ],
)
def test_bands(client: httpx.Client, binary: Json, name: str, given: Json, method: str) -> None:
    plain, narrow, wide = (
        read(client, binary, name, **given, **band)
        for band in ({}, {"band": "pointwise", "max_points": 200}, {"band": "simultaneous", "max_points": 200})
    )
    assert "band" not in plain
    together = "clopper_pearson" if method == "wilson" else method
    assert (narrow["band"]["method"], wide["band"]["method"]) == (method, together)
    assert (narrow["band"]["draws"] > 0) == (method != "wilson")
    x, y, low, high, below, above = (
        np.array(values, dtype=float)
        for values in (narrow["x"], narrow["y"], narrow["low"], narrow["high"], wide["low"], wide["high"])
    )
    some = np.isfinite(low)
    assert some.mean() > 0.9
    assert (low <= high)[some].all()
    assert (below <= low + 1e-12)[some].all()
    assert (high <= above + 1e-12)[some].all()
    if method != "consistency":
        # Steps have two heights at one x, and the limits are those of the upper one.
        upper = np.array([y[x == here].max() if name != "det" else y[x == here].min() for here in x])
        inside = (low - 1e-9 <= upper) & (upper <= high + 1e-9)
        assert inside[some].mean() > 0.95


def test_bands_of_weights_and_groups(client: httpx.Client) -> None:
    grouped = make(n=200, classes=2, group_ids=[str(index // 4) for index in range(200)])
    weighted = make(n=200, classes=2, sample_weight=[1.0 + index % 2 for index in range(200)])
    for source, methods in (
        (grouped, {"roc": "cluster_posterior", "calibration": "grouped_wilson"}),
        (weighted, {"roc": "weighted_posterior", "calibration": "weighted_wilson"}),
    ):
        for name, method in methods.items():
            answer = compute(client, name, input=source, band="pointwise", **{"class": "1"})
            assert answer["band"]["method"] == method
            assert np.isfinite([one for one in answer["low"] if one is not None]).all()
        body = {"input": source, "band": "pointwise", "form": "isotonic"}
        check_problem(client.post("/v1/curves/calibration", json=body), 422, "undefined_curve")


def test_bands_that_cannot_be(client: httpx.Client, binary: Json, many: Json) -> None:
    def refused(made: Json, name: str, code: str, **given: Any) -> None:
        check_problem(client.get(f"/v1/evaluations/{made['id']}/curves/{name}", params=given), 422, code)

    refused(binary, "imcp", "invalid_query", band="pointwise")
    refused(binary, "roc", "invalid_query", band="wide")
    refused(binary, "roc", "invalid_query", level="0.9")
    refused(binary, "roc", "invalid_query", seed="3")
    refused(binary, "roc", "invalid_query", band="pointwise", max_points="2001")
    refused(many, "roc", "undefined_curve", band="pointwise", **{"class": "macro"})
    source = make_scores(n=150_000)
    body = {"input": source, "band": "pointwise"}
    reply = client.post("/v1/curves/roc", json=body)
    assert reply.status_code == 200, reply.text
    body = {"input": make_scores(n=400_000), "band": "pointwise"}
    check_problem(client.post("/v1/curves/roc", json=body), 422, "out_of_reach")


def test_several_evaluations_in_one_answer(client: httpx.Client, binary: Json) -> None:
    others = [create(client, evaluation(input=make(n=100, classes=2, seed=seed))) for seed in (5, 6)]
    ids = [made["id"] for made in others]
    answer = read(client, binary, "roc", **{"with": ",".join(ids)})
    assert [one["evaluation_id"] for one in answer["with"]] == ids
    for one, made in zip(answer["with"], others, strict=True):
        assert {name: value for name, value in one.items() if name != "evaluation_id"} == read(client, made, "roc")
    assert {name: value for name, value in answer.items() if name != "with"} == read(client, binary, "roc")
    address = f"/v1/evaluations/{binary['id']}/curves/roc"
    check_problem(client.get(address, params={"with": "x"}), 422, "invalid_query")
    check_problem(client.get(address, params={"with": ",".join([ids[0]] * 11)}), 422, "invalid_query")
    check_problem(client.get(address, params={"with": str(uuid4())}), 404, "not_found")
    matrix = create(client, evaluation())
    check_problem(client.get(address, params={"with": matrix["id"]}), 422, "needs_scores")
    three = create(client, evaluation(input=make(n=100)))
    problem = check_problem(client.get(address, params={"with": three["id"]}), 422, "unknown_class")
    assert three["id"] in problem["detail"]
