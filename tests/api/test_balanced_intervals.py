"""Limits of values at balanced prevalence in reports."""

import httpx
import pytest

from tests.api.answers import FOUR_CLASSES, Json, compute, create, evaluation, matrix_input

MEMBER = "intervals_at_balanced_prevalence"
FOUR = matrix_input(FOUR_CLASSES, labels=list("ABCD"))
HEADLINE = {"accuracy", "macro_f1", "mcc", "cohen_kappa"}
TRUTH = ["a", "b"] * 20
PREDICTIONS = {"kind": "predictions", "y_true": TRUTH, "y_pred": [*TRUTH[:35], *TRUTH[1:6]]}


def balanced(answer: Json) -> Json:
    """The limits, each of which is of a value that is answered and lies around it."""
    found: Json = answer[MEMBER]
    for name, one in found.items():
        metric, _, label = name.partition("@")
        groups = answer["per_class"][label] if label else answer["metrics"]
        value = groups["at_balanced_prevalence"][metric]
        if one.get("reason") is None:
            assert one["low"] <= value <= one["high"], name
        else:
            assert one["low"] is one["high"] is None
    return found


def test_the_headline_has_them_in_every_report(client: httpx.Client) -> None:
    answer = compute(client, FOUR)
    found = balanced(answer)
    assert set(found) == HEADLINE
    # Accuracy is balanced accuracy there.
    assert found["accuracy"] == answer["intervals"]["balanced_accuracy"]
    assert all(one["given"] == "actual_counts" and one["method"] == "mover" for one in found.values())
    assert compute(client, FOUR, intervals="none")[MEMBER] == {}


def test_with_intervals_of_everything_they_are_those_of_a_projection(client: httpx.Client) -> None:
    made = create(client, evaluation(input=FOUR, options={"intervals": "all", "seed": 7}))
    found = balanced(made)
    assert set(found) >= {*HEADLINE, "precision@D", "f1@A"}
    assert {name for name in found if "@" not in name} == set(made["metrics"]["at_balanced_prevalence"])
    # Accuracy is balanced accuracy there. A report of everything draws what a projection has in closed form, as a
    # report of the headline has.
    assert found["accuracy"]["low"] == pytest.approx(made["intervals"]["balanced_accuracy"]["low"], rel=1e-12)
    body = {"prevalence": dict.fromkeys("ABCD", 0.25), "metrics": ["macro_jaccard", "precision@D"], "seed": 7}
    projected = client.post(f"/v1/evaluations/{made['id']}/projections", json=body).json()["metrics"]
    for name, one in projected.items():
        assert (found[name]["low"], found[name]["high"]) == (one["low"], one["high"]), name
    # Read again it is the same.
    assert client.get(f"/v1/evaluations/{made['id']}").json()[MEMBER] == found


def test_limits_on_one_side(client: httpx.Client) -> None:
    found = balanced(compute(client, FOUR, alternative="greater", level=0.975))
    both = balanced(compute(client, FOUR))
    for name, one in found.items():
        assert one["low"] == pytest.approx(both[name]["low"], rel=1e-12)
        assert (one["high"], one["alternative"], one["level"]) == (1.0, "greater", 0.975)


def test_a_class_without_samples(client: httpx.Client) -> None:
    for intervals in ("headline", "all"):
        found = balanced(compute(client, matrix_input([[8, 2, 0], [1, 9, 0], [0, 0, 0]]), intervals=intervals))
        assert set(found) >= HEADLINE
        assert {one["reason"] for one in found.values()} == {"the metric is undefined for this matrix"}


def test_samples_with_weights_and_in_groups(client: httpx.Client) -> None:
    weighted = balanced(compute(client, {**PREDICTIONS, "sample_weight": [1, 2] * 20}))
    methods = {name: one["method"] for name, one in weighted.items()}
    assert methods == dict.fromkeys(HEADLINE, "weighted_posterior") | {"accuracy": "weighted_mover"}
    grouped = balanced(compute(client, {**PREDICTIONS, "group_ids": [place // 2 for place in range(40)]}))
    assert set(grouped) == HEADLINE
    methods = {name: one["method"] for name, one in grouped.items()}
    assert methods == dict.fromkeys(HEADLINE, "cluster_bootstrap") | {"accuracy": "grouped_mover"}


def test_rates_have_none(client: httpx.Client) -> None:
    assert compute(client, matrix_input([[0.9, 0.1], [0.2, 0.8]], normalized=True))[MEMBER] == {}
