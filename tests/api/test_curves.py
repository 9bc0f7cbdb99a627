"""Curves of stored evaluations."""

from typing import Any
from uuid import uuid4

import httpx
import numpy as np
import pytest
from sklearn import metrics as sk

from app.kernel.samples.curves import CLASS_CURVES, OVERALL_CURVES, CurveName
from app.services.decide.curves import CurvePoints
from tests.api.answers import check_json, check_problem, check_shape, create, evaluation
from tests.api.test_probabilities import make, make_scores

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
    check_shape(reply, CurvePoints)
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
    assert answer["class"] == (None if name in OVERALL_CURVES else "1")
    assert all(answer["axes"].values())


def test_areas_are_those_of_the_metrics(client: httpx.Client, binary: Json) -> None:
    values = {**binary["metrics"]["prevalence_insensitive"], **binary["metrics"]["prevalence_sensitive"]}
    for name, expected in (
        ("roc", values["roc_auc"]),
        ("pr", values["pr_auc_trapezoid"]),
        ("det", 1 - values["roc_auc"]),
        ("mcp", values["au_mcp"]),
        ("imcp", values["au_imcp"]),
        ("calibration", values["expected_calibration_error"]),
    ):
        assert read(client, binary, name)["area"] == pytest.approx(expected, rel=1e-10), name


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
    check_problem(ask(many["id"], "imcp", **{"class": "1"}), 422, "unknown_class")
    check_problem(ask(many["id"], "spiral"), 422, "invalid_query")
    check_problem(ask(many["id"], "roc", max_points=1), 422, "invalid_query")
    check_problem(ask(many["id"], "roc", max_point=10), 422, "invalid_query")
    check_problem(ask(uuid4(), "roc"), 404, "not_found")
    matrix = create(client, evaluation())
    assert "confusion_matrix" in check_problem(ask(matrix["id"], "roc"), 409, "no_samples_kept")["detail"]
    unkept = create(client, evaluation(input=make(), options={"retain": "none"}))
    assert "retain" in check_problem(ask(unkept["id"], "imcp"), 409, "no_samples_kept")["detail"]
    one = create(client, evaluation(input=make(n=10, classes=2, y_true=[1] * 10, labels=[0, 1])))
    check_problem(ask(one["id"], "roc"), 422, "undefined_curve")
    client.delete(f"/v1/evaluations/{one['id']}")
    check_problem(ask(one["id"], "roc"), 404, "not_found")
