"""Bounds of H, sweeps of weak recalls and curves of equal means."""

from typing import Any
from uuid import uuid4

import httpx
import numpy as np
import pytest

from app.services.decide.h_mean_bounds import BoundsOfRecalls, BoundsOfWeakClasses, Isocurves
from tests.api.answers import check_json, check_problem, check_shape, create, evaluation

Json = dict[str, Any]
MATRIX = [[800, 0, 0, 0], [0, 600, 0, 0], [0, 0, 500, 0], [40, 24, 20, 16]]


def ask(client: httpx.Client, path: str, shape: type, **members: Any) -> Json:
    reply = client.post(f"/v1/{path}", json=members)
    assert reply.status_code == 200, reply.text
    check_json(reply)
    check_shape(reply, shape)
    answer: Json = reply.json()
    return answer


def test_figure_2_in_one_call(client: httpx.Client) -> None:
    """Its captions: A = (r + 3)/4, G = r^(1/4), H = 4r/(1 + 3r), accuracy = 1 - share (1 - r)."""
    mixes = [[25, 25, 25, 25], [40, 30, 20, 10], [80, 10, 5, 5]]
    sweep = {"classes": [3], "steps": 21, "shares": mixes}
    answer = ask(client, "bounds/h-mean", BoundsOfRecalls, recalls=[1, 1, 1, 0.16], recall_sweep=sweep)
    found = answer["recall_sweep"]
    r = np.linspace(0, 1, 21)
    np.testing.assert_allclose(found["grid"], r, atol=1e-15)
    np.testing.assert_allclose(found["balanced_accuracy"], (r + 3) / 4, rtol=1e-14)
    np.testing.assert_allclose(found["g_mean"], r**0.25, rtol=1e-14)
    np.testing.assert_allclose(found["h_mean"], 4 * r / (1 + 3 * r), rtol=1e-14)
    for accuracy, share in zip(found["accuracy"], (0.25, 0.10, 0.05), strict=True):
        np.testing.assert_allclose(accuracy, 1 - share * (1 - r), rtol=1e-14)
    weak = ask(
        client, "bounds/h-mean", BoundsOfWeakClasses, classes=4, weak=1, recall_sweep={"from": 0.5, "steps": 11}
    )["recall_sweep"]
    assert weak["classes"] == [0]
    np.testing.assert_allclose(weak["h_mean"], found["h_mean"][10:], rtol=1e-14)
    assert "accuracy" not in weak


def test_bounds_of_an_evaluation(client: httpx.Client) -> None:
    made = create(client, evaluation(input={"kind": "confusion_matrix", "matrix": MATRIX}))
    path = f"evaluations/{made['id']}/bounds/h-mean"
    answer = ask(client, path, BoundsOfRecalls, target=0.5, recall_sweep={"steps": 5})
    given = ask(
        client, "bounds/h-mean", BoundsOfRecalls, recalls=[1, 1, 1, 0.16], target=0.5, recall_sweep={"steps": 5}
    )
    assert answer == given
    assert answer["h_mean"] == pytest.approx(made["metrics"]["prevalence_insensitive"]["h_mean"])
    assert answer["weakest"] == 3
    # 4/0.5 - 3 = 5: the fifth of a recall is what it takes.
    assert answer["needed_recall"] == pytest.approx(0.2)
    assert answer["recall_sweep"]["classes"] == [3]
    empty = create(client, evaluation(input={"kind": "confusion_matrix", "matrix": [[3, 1], [0, 0]]}))
    check_problem(client.post(f"/v1/evaluations/{empty['id']}/bounds/h-mean", json={}), 422, "invalid_input")
    check_problem(client.post(f"/v1/evaluations/{uuid4()}/bounds/h-mean", json={}), 404, "not_found")
    problem = check_problem(client.post(f"/v1/{path}", json={"recall_sweep": {"classes": [4]}}), 422, "invalid_input")
    assert problem["errors"][0]["pointer"] == "/recall_sweep"


@pytest.mark.parametrize(
    "sweep",
    [
        {"classes": [4]},
        {"classes": []},
        {"from": 0.5, "to": 0.5},
        {"to": 1.1},
        {"steps": 1},
        {"shares": [[1, 1]]},
        {"shares": [[0, 1, 1, 1]]},
    ],
)
def test_what_cannot_be_swept(client: httpx.Client, sweep: Json) -> None:
    body = {"recalls": [1, 1, 1, 0.2], "recall_sweep": sweep}
    check_problem(client.post("/v1/bounds/h-mean", json=body), 422, "invalid_request")


@pytest.mark.parametrize(("recall", "reachable"), [(0.5, True), (0.49, False)])
def test_a_class_at_the_critical_recall_lets_the_target_be_reached(
    client: httpx.Client, recall: float, reachable: bool
) -> None:
    """2 / (1/r + 1) is 2/3 at a recall of a half."""
    answer = ask(client, "bounds/h-mean", BoundsOfWeakClasses, classes=2, weak=1, weak_recall=recall, target=2 / 3)
    assert answer["critical_recall"] == 0.5
    assert answer["target_reachable"] is reachable


def test_a_sweep_of_very_many_classes_is_refused(client: httpx.Client) -> None:
    body = {"classes": 1_000_000, "weak": 1, "recall_sweep": {}}
    check_problem(client.post("/v1/bounds/h-mean", json=body), 422, "invalid_request")


def test_isocurves_go_through_their_point(client: httpx.Client) -> None:
    answer = ask(client, "isocurves", Isocurves, tpr=0.9, tnr=0.6, steps=11)
    assert answer["fpr"][4] == pytest.approx(0.4)
    for name, level in (("balanced_accuracy", 0.75), ("g_mean", 0.54**0.5), ("h_mean", 0.72)):
        assert answer[name]["level"] == pytest.approx(level, rel=1e-14)
        assert answer[name]["tpr"][4] == pytest.approx(0.9, rel=1e-12)
    # No sensitivity makes up for a specificity of 0 in G and H, and A asks for more than 1.
    assert [answer[name]["tpr"][-1] for name in ("balanced_accuracy", "g_mean", "h_mean")] == [None] * 3
    check_problem(client.post("/v1/isocurves", json={"tpr": 1.2, "tnr": 0.5}), 422, "invalid_request")
