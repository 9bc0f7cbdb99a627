"""What-if: other class shares, exact, uncertain, within a range, swept; and estimated from unlabelled predictions."""

from typing import Any
from uuid import uuid4

import httpx
import numpy as np
import pytest

from app.api.answers import answer_model
from app.services.project.prevalence_estimate import PrevalenceEstimate
from app.services.project.projection import Projection
from tests.api.answers import FOUR_CLASSES, Json, check_json, check_problem
from tests.api.decisions import keep, with_ids
from tests.api.shown import BODIES
from tests.bank import each

C2 = [[45, 5], [10, 40]]


@pytest.fixture(scope="module")
def binary(client: httpx.Client) -> str:
    """Recalls 0.9 and 0.8 of 50 each."""
    return keep(client, C2)


@pytest.fixture(scope="module")
def four(client: httpx.Client) -> str:
    return keep(client, FOUR_CLASSES, labels=["A", "B", "C", "D"])


def project(client: httpx.Client, identifier: str, **body: Any) -> Json:
    reply = client.post(f"/v1/evaluations/{identifier}/projections", json=body)
    assert reply.status_code == 200, reply.text
    check_json(reply, named=("metrics", "prevalence_range", "crossings"))
    answer_model(Projection).model_validate_json(reply.content)
    answer: Json = reply.json()
    return answer


def estimate(client: httpx.Client, identifier: str, **body: Any) -> Json:
    reply = client.post(f"/v1/evaluations/{identifier}/prevalence-estimates", json=body)
    assert reply.status_code == 200, reply.text
    answer_model(PrevalenceEstimate).model_validate_json(reply.content)
    answer: Json = reply.json()
    return answer


def test_one_percent_of_positives(client: httpx.Client, binary: str) -> None:
    """Verified: accuracy 0.899, F1, MCC, kappa and predictive value fall, the means of the recalls stay."""
    metrics = ["accuracy", "macro_f1", "mcc", "cohen_kappa", "precision", "balanced_accuracy", "g_mean", "h_mean"]
    answer = project(client, binary, prevalence={"1": 0.01}, metrics=metrics)
    assert answer["prevalence"] == pytest.approx({"0": 0.99, "1": 0.01})
    found = answer["metrics"]
    assert found["accuracy"]["value"] == pytest.approx(0.99 * 0.9 + 0.01 * 0.8)
    assert found["precision"]["value"] == pytest.approx(0.008 / (0.008 + 0.099))
    assert found["mcc"]["value"] < 0.3 < 0.7 < found["mcc"]["observed"]
    for key in ("balanced_accuracy", "g_mean", "h_mean"):
        assert found[key]["value"] == pytest.approx(found[key]["observed"])
    for entry in found.values():
        assert entry["low"] < entry["value"] < entry["high"]
    assert any("Prevalence does not move balanced_accuracy, g_mean, h_mean" in note for note in answer["notes"])


def test_the_verified_case(client: httpx.Client) -> None:
    """Recalls 0.8 and 0.9 at 1 % positives: accuracy .801, macro F1 .486, MCC .172, kappa .065, precision .043."""
    run = keep(client, [[40, 10], [5, 45]])
    answer = project(
        client, run, prevalence={"1": 0.01}, metrics=["accuracy", "macro_f1", "mcc", "cohen_kappa", "precision"]
    )
    values = [answer["metrics"][key]["value"] for key in ("accuracy", "macro_f1", "mcc", "cohen_kappa", "precision")]
    assert values == pytest.approx([0.801, 0.486, 0.172, 0.065, 0.043], abs=6e-4)


def test_uniform_shares(client: httpx.Client, four: str) -> None:
    """At uniform shares accuracy is balanced accuracy, 0.79, and MCC 0.751."""
    answer = project(client, four, prevalence=dict.fromkeys("ABCD", 0.25), metrics=["accuracy", "mcc"])
    assert answer["metrics"]["accuracy"]["value"] == pytest.approx(0.79)
    assert answer["metrics"]["mcc"]["value"] == pytest.approx(0.751, abs=5e-4)
    assert answer["metrics"]["mcc"]["observed"] == pytest.approx(0.939, abs=5e-4)
    report = client.get(f"/v1/evaluations/{four}").json()["metrics"]["at_balanced_prevalence"]
    assert answer["metrics"]["mcc"]["value"] == pytest.approx(report["mcc"])


@pytest.mark.parametrize(
    "metric", ["accuracy_p_value", "chi_squared", "adjusted_rand", "mean(accuracy, weighted_alpha)"]
)
def test_what_depends_on_the_number_of_samples_is_not_projected(client: httpx.Client, four: str, metric: str) -> None:
    asked = {"prevalence": {"D": 0.5}, "metrics": ["accuracy", metric]}
    problem = check_problem(client.post(f"/v1/evaluations/{four}/projections", json=asked), 422, "invalid_input")
    (fault,) = problem["errors"]
    assert (fault["pointer"], fault["code"]) == ("/metrics/1", "needs_counts")


def test_classes_not_named_keep_their_proportions(client: httpx.Client, four: str) -> None:
    shares = project(client, four, prevalence={"D": 0.5})["prevalence"]
    assert shares == pytest.approx({"A": 0.5 * 8 / 19, "B": 0.5 * 6 / 19, "C": 0.5 * 5 / 19, "D": 0.5})
    assert sum(shares.values()) == pytest.approx(1)


def test_the_shares_as_they_are_change_nothing(client: httpx.Client, four: str) -> None:
    answer = project(client, four, prevalence={"D": 0.05}, metrics=["accuracy", "mcc", "precision@*"])
    for entry in answer["metrics"].values():
        assert entry["value"] == pytest.approx(entry["observed"], rel=1e-12)
    assert list(answer["metrics"]) == ["accuracy", "mcc", *(f"precision@{label}" for label in "ABCD")]


def test_uncertain_shares_widen_the_interval(client: httpx.Client, binary: str) -> None:
    exact = project(client, binary, prevalence={"1": 0.1}, metrics=["precision", "h_mean"], seed=1)
    loose = project(
        client, binary, prevalence={"1": 0.1}, prevalence_samples=40, metrics=["precision", "h_mean"], seed=1
    )
    assert loose["prevalence_samples"] == 40
    assert loose["metrics"]["precision"]["value"] == exact["metrics"]["precision"]["value"]
    width = [
        answer["metrics"]["precision"]["high"] - answer["metrics"]["precision"]["low"] for answer in (exact, loose)
    ]
    assert width[1] > 1.15 * width[0]
    assert loose["metrics"]["h_mean"] == exact["metrics"]["h_mean"]


def test_a_range_of_shares(client: httpx.Client, binary: str) -> None:
    answer = project(client, binary, prevalence_range={"1": [0.01, 0.1]}, metrics=["precision", "accuracy", "h_mean"])
    precision = answer["metrics"]["precision"]
    assert precision["lowest"]["prevalence"]["1"] == pytest.approx(0.01)
    assert precision["highest"]["prevalence"]["1"] == pytest.approx(0.1)
    for word, share, end in (("lowest", 0.01, "low"), ("highest", 0.1, "high")):
        single = project(client, binary, prevalence={"1": share}, metrics=["precision"])["metrics"]["precision"]
        assert precision[word]["value"] == pytest.approx(single["value"])
        assert precision[word][end] == pytest.approx(single[end], abs=0.01)
    assert answer["metrics"]["accuracy"]["lowest"]["prevalence"]["1"] == pytest.approx(0.1)
    h_mean = answer["metrics"]["h_mean"]
    assert h_mean["lowest"]["value"] == h_mean["highest"]["value"] == h_mean["observed"]


def test_a_range_of_two_classes(client: httpx.Client, four: str) -> None:
    ranges = {"C": [0.2, 0.6], "D": [0.1, 0.7]}
    entry = project(client, four, prevalence_range=ranges, metrics=["accuracy"])["metrics"]["accuracy"]
    assert entry["highest"]["prevalence"]["D"] == pytest.approx(0.1)
    assert entry["lowest"]["prevalence"]["D"] == pytest.approx(0.7)
    assert entry["lowest"]["value"] == pytest.approx(1 - 0.84 * 0.7)


def test_a_range_is_searched_to_its_corners(client: httpx.Client, four: str) -> None:
    """Where the ranges together reach 1, the extreme lies in a corner that no grid over them hits."""
    ranges = {"C": [0.11, 0.8], "D": [0.23, 0.6]}
    entry = project(client, four, prevalence_range=ranges, metrics=["accuracy"])["metrics"]["accuracy"]
    # Recalls are 1 but for D, 0.16; the fewest of D leave the rest to the others.
    assert entry["highest"]["value"] == pytest.approx(1 - 0.84 * 0.23)
    ranges = {"C": [0.11, 0.57], "D": [0.23, 0.91]}
    entry = project(client, four, prevalence_range=ranges, metrics=["accuracy"])["metrics"]["accuracy"]
    assert entry["lowest"]["prevalence"]["D"] == pytest.approx(0.89)
    assert entry["lowest"]["value"] == pytest.approx(1 - 0.84 * 0.89)


def test_a_range_of_all_classes(client: httpx.Client, binary: str) -> None:
    ranges = {"0": [0.5, 0.97], "1": [0.1, 0.6]}
    entry = project(client, binary, prevalence_range=ranges, metrics=["accuracy"])["metrics"]["accuracy"]
    # Recalls 0.9 and 0.8: shares of class 0 from 0.5, which its own range sets, to 0.9, which that of class 1 does.
    assert entry["lowest"]["value"] == pytest.approx(0.9 * 0.5 + 0.8 * 0.5)
    assert entry["highest"]["value"] == pytest.approx(0.9 * 0.9 + 0.8 * 0.1)


def test_a_sweep(client: httpx.Client, binary: str) -> None:
    sweep = {"class": "1", "from": 0.0, "to": 1.0, "steps": 11}
    answer = project(client, binary, sweep=sweep, metrics=["accuracy", "precision", "h_mean"])
    assert answer["grid"] == pytest.approx(np.linspace(0, 1, 11).tolist())
    accuracy = answer["metrics"]["accuracy"]
    assert accuracy["value"] == pytest.approx([0.9 - 0.1 * share for share in answer["grid"]])
    assert accuracy["observed"] == pytest.approx(0.85)
    assert all(
        low < value < high for low, value, high in zip(*(accuracy[k] for k in ("low", "value", "high")), strict=True)
    )
    precision = answer["metrics"]["precision"]["value"]
    assert precision == sorted(precision)
    assert (precision[0], precision[-1]) == (0, 1)
    h_mean = answer["metrics"]["h_mean"]
    # Without any sample of a class there is no recall of it, but how it is predicted is known all the same.
    assert h_mean["value"] == pytest.approx([h_mean["observed"]] * 11)


def test_a_sweep_with_exact_points(client: httpx.Client, four: str) -> None:
    """Shares that are asked for besides are points, each once, in their place."""
    sweep = {"class": "D", "from": 0.1, "to": 0.4, "steps": 4, "at": ["observed", "equal", 0.2, 0.02, 0.7]}
    answer = project(client, four, sweep=sweep, metrics=["accuracy", "recall@D"])
    own = 100 / sum(map(sum, FOUR_CLASSES))
    assert answer["sweep"] == {"class": "D", "from": 0.1, "to": 0.4, "steps": 4, "observed": own, "equal": 0.25}
    grid = answer["grid"]
    assert grid == sorted(grid)
    assert grid == pytest.approx(sorted([0.02, 0.1, 0.2, 0.25, 0.3, 0.4, 0.7, own]))
    assert {own, 0.25, 0.2, 0.02, 0.7} <= set(grid)
    # A step that is 0.30000000000000004 is what was asked for as 0.3.
    between = project(client, four, sweep={**sweep, "to": 0.9, "steps": 9, "at": [0.3]}, metrics=["accuracy"])["grid"]
    assert (len(between), between[2]) == (9, 0.3)
    accuracy = answer["metrics"]["accuracy"]
    place = grid.index(own)
    assert accuracy["value"][place] == pytest.approx(accuracy["observed"], rel=1e-12)
    assert accuracy["low"][place] < accuracy["value"][place] < accuracy["high"][place]
    assert len(accuracy["value"]) == len(answer["metrics"]["recall@D"]["low"]) == len(grid)


def test_shares_of_some_classes_that_leave_less_than_nothing_are_refused(client: httpx.Client, four: str) -> None:
    reply = client.post(f"/v1/evaluations/{four}/projections", json={"prevalence": {"A": 0.7, "B": 0.6}})
    problem = check_problem(reply, 422, "invalid_input")
    assert problem["errors"][0]["code"] == "shares_do_not_sum_to_one"


def test_equal_shares_are_those_of_classes_with_samples(client: httpx.Client) -> None:
    run = keep(client, [[8, 2, 0], [1, 9, 0], [0, 0, 0]], labels=["a", "b", "c"])
    sweep = {"class": "a", "from": 0.1, "to": 0.9, "steps": 2, "at": ["equal"]}
    answer = project(client, run, sweep=sweep, metrics=["accuracy"])
    assert answer["sweep"]["equal"] == 0.5
    assert answer["metrics"]["accuracy"]["value"][1] == pytest.approx(0.85)


def test_where_two_runs_change_places(client: httpx.Client, binary: str) -> None:
    """Recalls (0.9, 0.8) against (0.95, 0.6): accuracies are equal where 0.05 (1 - pi) = 0.2 pi, at 0.2."""
    other = keep(client, [[95, 5], [40, 60]])
    sweep = {"class": "1", "from": 0.01, "to": 0.99}
    answer = project(client, binary, sweep=sweep, metrics=["accuracy", "recall@*", "h_mean"], against=other)
    assert answer["against"] == other
    assert answer["crossings"]["accuracy"] == pytest.approx([0.2])
    assert answer["crossings"]["recall@0"] == answer["crossings"]["h_mean"] == []
    client.patch(f"/v1/evaluations/{other}", json={"tags": {"is": other}}).raise_for_status()
    answer = project(client, binary, sweep=sweep, metrics=["accuracy"], against={"tags": {"is": other}})
    assert (answer["against"], answer["crossings"]["accuracy"]) == (other, pytest.approx([0.2]))


def test_the_seed_decides(client: httpx.Client, binary: str) -> None:
    first, second = (project(client, binary, prevalence={"1": 0.1}, metrics=["mcc"]) for _ in range(2))
    assert first == second
    seed = first["design"]["seed"]
    assert project(client, binary, prevalence={"1": 0.1}, metrics=["mcc"], seed=seed) == first
    assert project(client, binary, prevalence={"1": 0.1}, metrics=["mcc"], seed=3)["metrics"] != first["metrics"]


def test_rates_are_projected_without_intervals(client: httpx.Client) -> None:
    run = keep(client, [[0.9, 0.1], [0.2, 0.8]], normalized=True)
    answer = project(client, run, prevalence={"1": 0.01}, metrics=["accuracy"])
    assert answer["metrics"]["accuracy"]["value"] == pytest.approx(0.899)
    assert answer["metrics"]["accuracy"]["low"] is None
    assert any("numbers of samples" in note for note in answer["notes"])


@each(
    ("body", "code", "pointer"),
    [
        ({}, "invalid_request", ""),
        ({"prevalence": {"1": 0.1}, "sweep": {"class": "1", "from": 0, "to": 1}}, "invalid_request", ""),
        ({"prevalence": {"1": 1.5}}, "invalid_request", "/prevalence/1"),
        ({"prevalence": {"2": 0.5}}, "invalid_input", "/prevalence/2"),
        ({"prevalence": {"0": 0.5, "1": 0.4}}, "invalid_input", "/prevalence"),
        ({"prevalence": {"0": 0.9, "1": 0.4}}, "invalid_input", "/prevalence"),
        ({"sweep": {"class": "9", "from": 0, "to": 1}}, "invalid_input", "/sweep/class"),
        ({"sweep": {"class": "1", "from": 0.5, "to": 0.5}}, "invalid_request", "/sweep"),
        ({"sweep": {"class": "1", "from": 0, "to": 1, "steps": 1}}, "invalid_request", "/sweep/steps"),
        ({"sweep": {"class": "1", "from": 0, "to": 1, "at": ["half"]}}, "invalid_request", "/sweep/at/0"),
        ({"sweep": {"class": "1", "from": 0, "to": 1, "at": [1.5]}}, "invalid_request", "/sweep/at/0"),
        ({"prevalence_range": {"1": [0.5, 0.1]}}, "invalid_request", ""),
        ({"prevalence_range": {"0": [0.6, 0.9], "1": [0.6, 0.9]}}, "invalid_input", "/prevalence_range"),
        ({"prevalence_range": {"0": [0.1, 0.4], "1": [0.2, 0.5]}}, "invalid_input", "/prevalence_range"),
        ({"prevalence": {"1": 0.1}, "against": str(uuid4())}, "invalid_request", ""),
        ({"sweep": {"class": "1", "from": 0, "to": 1}, "against": str(uuid4())}, "not_found", "/against"),
        ({"prevalence": {"1": 0.1}, "metrics": ["accuarcy"]}, "unknown_metric", "/metrics/0"),
    ],
)
def test_what_is_refused(client: httpx.Client, binary: str, body: Json, code: str, pointer: str) -> None:
    reply = client.post(f"/v1/evaluations/{binary}/projections", json=body)
    problem = check_problem(reply, 404 if code == "not_found" else 422, code)
    assert problem["errors"][0]["pointer"] == pointer


def test_a_class_without_samples_gets_no_share(client: httpx.Client) -> None:
    run = keep(client, [[9, 1, 0], [1, 9, 0], [0, 0, 0]])
    url = f"/v1/evaluations/{run}/projections"
    problem = check_problem(client.post(url, json={"prevalence": {"2": 0.1}}), 422, "invalid_input")
    assert problem["errors"][0]["code"] == "no_samples"
    assert client.post(url, json={"prevalence": {"0": 0.3}}).status_code == 200
    sweep = {"class": "2", "from": 0, "to": 0.5}
    check_problem(client.post(url, json={"sweep": sweep}), 422, "invalid_input")
    check_problem(client.post(f"/v1/evaluations/{uuid4()}/projections", json={"sweep": sweep}), 404, "not_found")


# Estimates.


def test_shares_from_predicted_labels(client: httpx.Client, binary: str) -> None:
    """Expected predictions at 30 % positives: 0.3 x 0.8 + 0.7 x 0.1 = 31 %."""
    answer = estimate(client, binary, predicted={"0": 6900, "1": 3100})
    assert answer["method"] == "bbse"
    assert answer["prevalence"] == pytest.approx({"0": 0.7, "1": 0.3})
    assert answer["intervals"]["1"]["low"] < 0.3 < answer["intervals"]["1"]["high"]
    assert answer["condition"] < 2
    assert (answer["converged"], answer["at_vertex"], answer["warnings"]) == (True, False, [])
    assert estimate(client, binary, predicted={"0": 6900, "1": 3100}) == answer


def test_shares_beyond_the_edge(client: httpx.Client, binary: str) -> None:
    answer = estimate(client, binary, predicted={"0": 990, "1": 10})
    assert answer["prevalence"] == {"0": 1, "1": 0}
    assert answer["at_vertex"]
    assert len(answer["warnings"]) == 2


def test_shares_from_probabilities(client: httpx.Client, binary: str) -> None:
    random = np.random.default_rng(0)
    y = random.random(4000) < 0.2
    # Calibrated at equal shares: x ~ N(+-1, 1) has p = 1 / (1 + exp(-2x)).
    p = 1 / (1 + np.exp(-2 * (np.where(y, 1, -1) + random.normal(size=4000))))
    rows = np.round(np.column_stack([1 - p, p]), 9).tolist()
    answer = estimate(client, binary, probabilities=rows, recalibrate=True)
    assert answer["method"] == "saerens_em"
    assert answer["old_prevalence"] == {"0": 0.5, "1": 0.5}
    assert answer["prevalence"]["1"] == pytest.approx(0.2, abs=0.02)
    assert answer["intervals"]["1"]["low"] < 0.2 < answer["intervals"]["1"]["high"]
    adjusted = np.array(answer["probabilities"])
    assert adjusted.shape == (4000, 2)
    np.testing.assert_allclose(adjusted.sum(axis=1), 1)
    assert adjusted[:, 1].mean() == pytest.approx(answer["prevalence"]["1"], abs=1e-6)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "invalid_request"),
        ({"predicted": {"0": 1}, "probabilities": [[0.5, 0.5]]}, "invalid_request"),
        ({"predicted": {"9": 1}}, "invalid_input"),
        ({"predicted": {"0": 0}}, "invalid_input"),
        ({"predicted": {"0": 1}, "recalibrate": True}, "invalid_request"),
        ({"probabilities": [[0.5, 0.5], [1.0]]}, "invalid_request"),
        ({"probabilities": [[0.2, 0.3, 0.5]]}, "invalid_input"),
        ({"probabilities": [[0.2, 0.3]]}, "invalid_input"),
    ],
)
def test_predictions_that_are_refused(client: httpx.Client, binary: str, body: Json, code: str) -> None:
    check_problem(client.post(f"/v1/evaluations/{binary}/prevalence-estimates", json=body), 422, code)


def test_probabilities_are_fitted_to_a_share_of_every_class(client: httpx.Client, binary: str) -> None:
    asked = {"probabilities": [[0.5, 0.5]], "old_prevalence": {"0": 1}}
    problem = check_problem(
        client.post(f"/v1/evaluations/{binary}/prevalence-estimates", json=asked), 422, "invalid_input"
    )
    (error,) = problem["errors"]
    assert (error["pointer"], error["code"]) == ("/old_prevalence", "no_samples")
    assert "share of '1'" in error["detail"]


def test_classes_that_are_predicted_alike(client: httpx.Client) -> None:
    run = keep(client, [[5, 5], [5, 5]])
    problem = check_problem(
        client.post(f"/v1/evaluations/{run}/prevalence-estimates", json={"predicted": {"0": 3}}),
        422,
        "incomparable_runs",
    )
    assert "cannot be told apart" in problem["detail"]


@pytest.mark.parametrize("title", BODIES["projectEvaluation"])
def test_the_projections_of_the_documentation(client: httpx.Client, binary: str, title: str) -> None:
    other = keep(client, [[95, 5], [40, 60]])
    project(client, binary, **with_ids(BODIES["projectEvaluation"][title], binary, other))


@pytest.mark.parametrize("title", BODIES["estimatePrevalence"])
def test_the_estimates_of_the_documentation(client: httpx.Client, binary: str, title: str) -> None:
    estimate(client, binary, **BODIES["estimatePrevalence"][title])
