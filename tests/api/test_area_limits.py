"""`area_interval`: limits of areas under ROC curves from the area and the class sizes, on request."""

from math import sqrt
from typing import Any

import httpx
import numpy as np
import pytest

from tests.api.answers import Json, compute, create, evaluation, refused

# Hanley and McNeil (1982), table 1: ratings of 58 normal and 51 abnormal images from 1 to 5; area .893, SE .032.
NORMAL, ABNORMAL = (33, 6, 6, 11, 2), (3, 2, 2, 11, 33)
RATINGS: Json = {
    "kind": "scores",
    "y_true": [0] * 58 + [1] * 51,
    "scores": [rating for group in (NORMAL, ABNORMAL) for rating, count in enumerate(group) for _ in range(count)],
    "threshold": 3,
}


def limits(client: httpx.Client, source: Json, name: str = "roc_auc@1", **options: Any) -> Json:
    found: Json = compute(client, source, **{"area_interval": "hanley_mcneil", **options})["intervals"][name]
    return found


def test_the_published_value(client: httpx.Client) -> None:
    answer = compute(client, RATINGS, metrics=["roc_auc"], area_interval="hanley_mcneil")
    found = answer["intervals"]["roc_auc@1"]
    area = answer["requested"]["roc_auc"]
    assert found["method"] == "hanley_mcneil"
    assert area == pytest.approx(0.893, abs=5e-4)
    assert (found["high"] - area) / 1.959964 == pytest.approx(0.032, abs=5e-4)
    assert area - found["low"] == pytest.approx(found["high"] - area, rel=1e-12)
    assert limits(client, RATINGS, area_interval="delong")["method"] == "delong_logit"


def test_by_the_formula_at_any_level_and_on_one_side(client: httpx.Client) -> None:
    found = limits(client, RATINGS, level=0.9, intervals="all", draws=200)
    area = (found["low"] + found["high"]) / 2
    first, second = area / (2 - area), 2 * area**2 / (1 + area)
    variance = area * (1 - area) + 50 * (first - area**2) + 57 * (second - area**2)
    assert found["high"] - area == pytest.approx(1.6448536269514722 * sqrt(variance / (51 * 58)), rel=1e-12)
    lower = limits(client, RATINGS, level=0.95, alternative="greater")
    assert (lower["low"], lower["high"]) == (pytest.approx(found["low"], rel=1e-12), 1.0)


def test_every_class_has_them_and_they_are_kept(client: httpx.Client) -> None:
    random = np.random.default_rng(2)
    rows = random.dirichlet(np.ones(3), 90).round(4)
    rows[:, 2] = 1 - rows[:, 0] - rows[:, 1]
    source = {
        "kind": "probabilities",
        "y_true": (np.arange(90) % 3).tolist(),
        "probabilities": rows.tolist(),
        "labels": [0, 1, 2],
    }
    made = create(client, evaluation(input=source, options={"area_interval": "hanley_mcneil"}))
    assert {made["intervals"][f"roc_auc@{k}"]["method"] for k in range(3)} == {"hanley_mcneil"}
    assert made["intervals"]["log_loss"]["method"] == "hall_t"
    read = client.get(f"/v1/evaluations/{made['id']}").json()
    assert read["intervals"] == made["intervals"]


def test_a_perfect_order_has_no_width(client: httpx.Client) -> None:
    found = limits(client, {"kind": "scores", "y_true": [0, 0, 1, 1], "scores": [1, 2, 3, 4], "threshold": 3})
    assert (found["low"], found["high"]) == (None, None)
    assert "variance is zero" in found["reason"]


@pytest.mark.parametrize(
    ("members", "options", "code"),
    [
        ({"group_ids": [i // 2 for i in range(109)]}, {}, "not_for_groups"),
        ({"sample_weight": [1.0 + i % 2 for i in range(109)]}, {}, "not_for_weights"),
        ({}, {"intervals": "none"}, "no_intervals"),
        (None, {}, "needs_scores"),
    ],
)
def test_refused_where_it_does_not_apply(client: httpx.Client, members: Json | None, options: Json, code: str) -> None:
    matrix = {"kind": "confusion_matrix", "matrix": [[5, 1], [2, 6]]}
    source = matrix if members is None else RATINGS | members
    fault = refused(client, source, options={"area_interval": "hanley_mcneil", **options})
    assert (fault["pointer"], fault["code"]) == ("/options/area_interval", code)
