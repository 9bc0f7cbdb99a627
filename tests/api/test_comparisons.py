"""Comparisons of runs from their matrices: independent ones, ones of one test set, ones of different class mixes."""

from typing import Any
from uuid import uuid4

import httpx
import numpy as np
import pytest

from app.api.answers import answer_model
from app.services.compare.answers import RunComparison
from tests.api.answers import check_problem, create, evaluation, matrix_input
from tests.api.decisions import compare, keep, only, with_ids
from tests.api.shown import BODIES
from tests.bank import each

C2 = [[40, 10], [5, 45]]
BETTER = [[45, 5], [6, 44]]


@pytest.fixture(scope="module")
def pair(client: httpx.Client) -> tuple[str, str]:
    return keep(client, C2, "old"), keep(client, BETTER, "new")


def test_independent_runs(client: httpx.Client, pair: tuple[str, str]) -> None:
    """Verified: balanced accuracy -0.040 in [-0.132, 0.051], P(A > B) = 0.194."""
    answer = compare(client, *pair, metrics=["balanced_accuracy"], rope=0, draws=20_000, seed=1)
    answer_model(RunComparison).model_validate(answer)
    assert not answer["design"]["paired"]
    assert answer["design"]["bond"] == "independent"
    found = only(answer, "balanced_accuracy")
    assert (found["a"], found["b"]) == pair
    assert found["difference"] == pytest.approx(-0.04)
    assert found["low"] == pytest.approx(-0.132, abs=0.003)
    assert found["high"] == pytest.approx(0.051, abs=0.004)
    assert found["probability_a_better"] == pytest.approx(0.194, abs=0.01)
    assert found["probability_error"] < 0.005
    assert 0.38 < found["p_value"] < 0.42
    metric = answer["metrics"]["balanced_accuracy"]
    assert metric["ranks"] == [2, 1]
    assert metric["best"] == pair[1]
    assert sorted(metric["may_be_best"]) == sorted(pair)
    assert sum(metric["probability_best"]) == pytest.approx(1)
    # Recalls 0.8 and 0.9 against 0.9 and 0.88.
    assert answer["recall_orders"] == [{"a": pair[0], "b": pair[1], "preferred": "b"}]


def test_two_runs_of_few_classes_are_compared_on_every_recall(client: httpx.Client, pair: tuple[str, str]) -> None:
    usual = {"h_mean", "balanced_accuracy", "accuracy", "macro_f1", "mcc"}
    assert compare(client, *pair)["metrics"].keys() == usual | {"recall@0", "recall@1"}
    assert compare(client, *pair, keep(client, C2, "third"))["metrics"].keys() == usual
    assert compare(client, *pair, metrics=sorted(usual))["metrics"].keys() == usual
    sizes = {n: [keep(client, (np.eye(n) * 9 + shift).tolist(), f"{n}-{shift}") for shift in (1, 2)] for n in (10, 11)}
    found = {n: compare(client, *runs)["metrics"].keys() for n, runs in sizes.items()}
    assert found == {10: usual | {f"recall@{place}" for place in range(10)}, 11: usual}


def test_plain_shares_are_compared_by_score_methods(client: httpx.Client) -> None:
    """Newcombe's 56/70 against 48/80: [0.0524, 0.3339]."""
    first = keep(client, [[56, 14], [0, 0]])
    second = keep(client, [[48, 32], [0, 0]])
    found = only(compare(client, first, second, metrics=["recall@0"]), "recall@0")
    assert found["low"] == pytest.approx(0.0524, abs=5e-5)
    assert found["high"] == pytest.approx(0.3339, abs=5e-5)
    assert found["method"] == "newcombe, newcombe"
    assert found["p_value"] == pytest.approx(0.0084, abs=0.001)


def test_one_test_set_without_ids_gives_the_range_of_p(client: httpx.Client) -> None:
    """Accuracies 0.92 and 0.90 of the same 1000 items: p between 9.5e-7 and 0.137."""
    dataset = uuid4().hex
    first = keep(client, [[460, 40], [40, 460]], "a", dataset)
    second = keep(client, [[450, 50], [50, 450]], "b", dataset)
    answer = compare(client, first, second, metrics=["accuracy", "h_mean", "mcc"])
    assert answer["design"]["bond"] == "same_test_set"
    assert "range" in answer["design"]["reason"]
    found = only(answer, "accuracy")
    # Mid-p of 20 discordant items all one way is half the exact 1.9e-6.
    assert found["p_range"][0] == pytest.approx(9.5e-7, rel=0.01)
    assert found["p_range"][1] == pytest.approx(0.137, abs=0.01)
    assert found["p_value"] == found["p_range"][1]
    assert found["low"] < 0 < found["difference"] < found["high"]
    for metric in ("h_mean", "mcc"):
        other = only(answer, metric)
        assert other["p_range"][0] < 1e-4
        assert other["p_range"][1] == pytest.approx(found["p_range"][1], abs=0.01)
        assert other["method"] == "score_of_widest_pairing, permutation_mid_p_of_any_pairing"
        assert (other["low"] > 0) is (other["p_value"] < 0.05)


def test_another_dataset_is_not_one_test_set(client: httpx.Client) -> None:
    first, second = keep(client, [[460, 40], [40, 460]]), keep(client, [[450, 50], [50, 450]])
    found = compare(client, first, second, metrics=["accuracy"])
    assert found["design"]["bond"] == "independent"
    assert "p_range" not in only(found, "accuracy")


def test_different_class_mixes(client: httpx.Client) -> None:
    """Same recalls, other mixes: the metrics differ as they are and not at one prevalence."""
    first = keep(client, [[400, 100], [5, 45]], "negatives")
    second = keep(client, [[40, 10], [50, 450]], "positives")
    answer = compare(client, first, second, metrics=["h_mean", "accuracy", "mcc", "precision"])
    answer_model(RunComparison).model_validate(answer)
    assert answer["design"]["common_prevalence"] == pytest.approx([0.5, 0.5])
    (note,) = answer["notes"]
    assert "accuracy, mcc, precision at one prevalence" in note
    h_mean = answer["metrics"]["h_mean"]
    assert h_mean["prevalence"] == "insensitive"
    assert "observed_values" not in h_mean
    for name, values in (("accuracy", 0.85), ("mcc", 0.7035), ("precision", 0.818)):
        metric = answer["metrics"][name]
        assert metric["prevalence"] == "reprojected"
        assert metric["values"] == pytest.approx([values, values], abs=5e-4)
        assert abs(metric["observed_values"][0] - metric["observed_values"][1]) > 0.05
        assert only(answer, name)["p_value"] > 0.99
        assert only(answer, name)["low"] < 0 < only(answer, name)["high"]


def test_a_class_that_one_run_lacks(client: httpx.Client) -> None:
    first = keep(client, [[40, 10, 1], [5, 45, 2], [1, 1, 30]])
    second = keep(client, [[40, 10, 1], [5, 45, 2], [0, 0, 0]])
    answer = compare(client, first, second, metrics=["recall@0", "accuracy", "h_mean"])
    assert answer["metrics"]["accuracy"]["prevalence"] == "incomparable"
    assert answer["metrics"]["accuracy"]["values"] == [None, None]
    assert answer["metrics"]["accuracy"]["observed_values"][0] is not None
    assert only(answer, "accuracy")["p_value"] is None
    assert only(answer, "recall@0")["difference"] == 0
    assert answer["metrics"]["h_mean"]["values"][1] is None
    assert any("Not compared" in note for note in answer["notes"])


def test_metrics_that_disagree(client: httpx.Client) -> None:
    first = keep(client, [[990, 10], [90, 10]], "lazy", "rare")
    second = keep(client, [[900, 100], [20, 80]], "careful", "rare")
    answer = compare(client, first, second, metrics=["accuracy", "h_mean", "balanced_accuracy"])
    assert answer["rank_agreement"]["metrics"] == ["accuracy", "h_mean", "balanced_accuracy"]
    assert answer["rank_agreement"]["kendall_tau"] == [[1, -1, -1], [-1, 1, 1], [-1, 1, 1]]
    (found,) = answer["disagreements"]
    assert found["metrics"] == ["accuracy", "h_mean", "balanced_accuracy"]
    assert found["prefer"] == [first, second]
    assert found["prefers"] == [
        {"evaluation_id": first, "metrics": ["accuracy"]},
        {"evaluation_id": second, "metrics": ["h_mean", "balanced_accuracy"]},
    ]
    assert found["message"] == (
        "accuracy prefers lazy (0.909) to careful (0.891), but h_mean (0.847 against 0.182) and balanced_accuracy "
        "(0.850 against 0.545) prefer careful to lazy."
    )


def test_lists_are_one_family(client: httpx.Client) -> None:
    first = keep(client, [[80, 10, 10], [10, 80, 10], [10, 10, 80]])
    second = keep(client, [[60, 20, 20], [10, 82, 8], [11, 10, 79]])
    metrics = compare(client, first, second, metrics=["recall@*", "accuracy"])["metrics"]
    assert list(metrics) == ["recall@0", "recall@1", "recall@2", "accuracy"]
    ps = [metrics[f"recall@{label}"]["differences"][0] for label in range(3)]
    assert ps[0]["p_adjusted"] == pytest.approx(3 * ps[0]["p_value"])
    assert all(p["p_adjusted"] > p["p_value"] for p in ps)
    alone = metrics["accuracy"]["differences"][0]
    assert alone["p_adjusted"] == alone["p_value"]
    raw = compare(client, first, second, metrics=["recall@*"], multiplicity="none")["metrics"]
    assert all(entry["differences"][0]["p_adjusted"] == entry["differences"][0]["p_value"] for entry in raw.values())


def test_one_of_many_differences_is_not_settled_by_its_limits_alone(client: httpx.Client) -> None:
    runs = [
        keep(client, [[hits, 100 - hits, 0], [10, 80, 10], [10, 10, 80]], dataset=f"one-of-{hits}") for hits in (82, 69)
    ]
    found = compare(client, *runs, metrics=["recall@*"])["metrics"]["recall@0"]["differences"][0]
    assert found["low"] > 0
    assert found["p_value"] < 0.05 < found["p_adjusted"]
    assert found["verdict"] == "undecided"
    alone = compare(client, *runs, metrics=["recall@0"])["metrics"]["recall@0"]["differences"][0]
    assert alone == {**found, "p_adjusted": alone["p_value"], "verdict": "better"}


def test_labels_in_another_order_are_brought_together(client: httpx.Client) -> None:
    first = keep(client, [[80, 20], [10, 90]], labels=["cat", "dog"])
    second = keep(client, [[90, 10], [20, 80]], labels=["dog", "cat"])
    answer = compare(client, first, second, metrics=["recall@cat", "precision@dog"])
    assert only(answer, "recall@cat")["difference"] == 0
    assert only(answer, "precision@dog")["difference"] == 0
    assert any("positive" in note for note in answer["notes"])


def test_many_runs_and_a_baseline(client: httpx.Client) -> None:
    runs = [keep(client, [[100 - wrong, wrong], [wrong, 100 - wrong]], f"m{wrong}") for wrong in (10, 12, 30, 50)]
    answer = compare(client, *runs, metrics=["h_mean"])
    metric = answer["metrics"]["h_mean"]
    assert len(metric["differences"]) == 6
    assert metric["ranks"] == [1, 2, 3, 4]
    assert metric["may_be_best"] == runs[:2]
    assert metric["expected_ranks"] == sorted(metric["expected_ranks"])
    assert metric["rank_intervals"][3] == [4, 4]
    against = compare(client, *runs, metrics=["h_mean"], baseline=runs[2])
    assert against["baseline_id"] == runs[2]
    assert [(d["a"], d["b"]) for d in against["metrics"]["h_mean"]["differences"]] == [
        (run, runs[2]) for run in runs if run != runs[2]
    ]


def test_lower_is_better(client: httpx.Client, pair: tuple[str, str]) -> None:
    answer = compare(client, *pair, metrics=["error_rate", "accuracy"], rope=0)
    error, accuracy = answer["metrics"]["error_rate"], answer["metrics"]["accuracy"]
    assert (error["better"], error["best"]) == ("lower", pair[1])
    assert error["differences"][0]["difference"] == pytest.approx(0.04)
    better = accuracy["differences"][0]["probability_a_better"]
    assert error["differences"][0]["probability_a_better"] == pytest.approx(better, rel=1e-12)
    assert answer["rank_agreement"]["kendall_tau"] == [[1, 1], [1, 1]]
    assert answer["disagreements"] == []


def test_identical_runs(client: httpx.Client) -> None:
    first, second = keep(client, C2), keep(client, C2)
    answer = compare(client, first, second, rope=0.5)
    for metric in answer["metrics"].values():
        (found,) = metric["differences"]
        assert (found["difference"], found["p_value"]) == (0, 1)
        assert found["probability_equivalent"] > 0.99
        assert metric["ranks"] == [1, 1]


def test_a_metric_without_a_value(client: httpx.Client) -> None:
    first, second = keep(client, [[50, 0], [10, 0]]), keep(client, [[45, 5], [5, 5]])
    answer = compare(client, first, second, metrics=["precision", "accuracy"])
    metric = answer["metrics"]["precision"]
    assert metric["values"][0] is None
    assert metric["ranks"] == [None, 1]
    assert metric["differences"][0]["difference"] is None
    assert metric["probability_best"] is None
    assert answer["rank_agreement"]["kendall_tau"][0] == [None, None]


def test_the_seed_decides(client: httpx.Client, pair: tuple[str, str]) -> None:
    first, second = (compare(client, *pair, metrics=["mcc"]) for _ in range(2))
    assert first["metrics"] == second["metrics"]
    assert first["id"] < second["id"]
    assert compare(client, *pair, metrics=["mcc"], seed=first["design"]["seed"])["metrics"] == first["metrics"]
    assert compare(client, *pair, metrics=["mcc"], seed=5)["metrics"] != first["metrics"]


def test_a_comparison_outlives_its_evaluations(client: httpx.Client) -> None:
    first, second = keep(client, C2), keep(client, BETTER)
    answer = compare(client, first, second)
    client.delete(f"/v1/evaluations/{first}")
    assert client.get(f"/v1/comparisons/{answer['id']}").json() == answer
    check_problem(client.post("/v1/comparisons", json={"evaluations": [first, second]}), 404, "not_found")


def test_many_classes(client: httpx.Client) -> None:
    def matrix(hits: int) -> list[list[int]]:
        return [[hits if r == c else 20 - hits if (r + 1) % 320 == c else 0 for c in range(320)] for r in range(320)]

    answer = compare(client, keep(client, matrix(19)), keep(client, matrix(17)), metrics=["accuracy", "h_mean"])
    assert answer["design"]["draws"] == 0
    assert only(answer, "accuracy")["p_value"] < 1e-6
    assert only(answer, "accuracy")["probability_a_better"] > 0.999
    assert only(answer, "h_mean")["low"] is None
    assert any("Too many classes" in note for note in answer["notes"])


@pytest.mark.parametrize("name", BODIES["createComparison"])
def test_the_examples_of_the_documentation(client: httpx.Client, name: str, pair: tuple[str, str]) -> None:
    reply = client.post("/v1/comparisons", json=with_ids(BODIES["createComparison"][name], *pair))
    assert reply.status_code == 201, reply.text
    answer_model(RunComparison).model_validate_json(reply.content)


# What is refused.


def test_different_labels_are_named(client: httpx.Client) -> None:
    first = keep(client, [[8, 1, 1], [1, 8, 1], [1, 1, 8]], labels=["cat", "dog", "bird"])
    second = keep(client, [[8, 1, 1], [1, 8, 1], [1, 1, 8]], labels=["cat", "dog", "fish"])
    problem = check_problem(
        client.post("/v1/comparisons", json={"evaluations": [first, second]}), 422, "different_labels"
    )
    assert "lacks 'bird' and has 'fish'" in problem["detail"]
    assert problem["errors"][0]["pointer"] == "/evaluations/1"


def test_weights_and_rates_have_no_uncertainty(client: httpx.Client, pair: tuple[str, str]) -> None:
    weights = keep(client, [[1.5, 1], [1, 2]])
    rates = create(client, evaluation(input=matrix_input([[0.9, 0.1], [0.2, 0.8]], normalized=True)))["id"]
    for bad in (weights, rates):
        reply = client.post("/v1/comparisons", json={"evaluations": [pair[0], bad]})
        problem = check_problem(reply, 422, "incomparable_runs")
        assert problem["errors"][0]["pointer"] == "/evaluations/1"


def test_pairing_that_cannot_be_is_refused(client: httpx.Client, pair: tuple[str, str]) -> None:
    for wanted in ("true", True):
        reply = client.post("/v1/comparisons", json={"evaluations": list(pair), "paired": wanted})
        problem = check_problem(reply, 422, "incomparable_runs")
        assert "sample ids" in problem["detail"]
    assert compare(client, *pair, paired=False)["design"]["reason"] == "asked for as independent runs"


@each(
    ("members", "code", "pointer"),
    [
        ({"metrics": ["support@0"]}, "not_comparable", "/metrics/0"),
        ({"metrics": ["accuracy", "accuarcy"]}, "unknown_metric", "/metrics/1"),
        ({"metrics": ["recall@horse"]}, "unknown_label", "/metrics/0"),
        ({"metrics": []}, "invalid_request", "/metrics"),
        ({"evaluations": ["x", "y"]}, "invalid_request", "/evaluations/0"),
        ({"evaluations": [str(uuid4())]}, "invalid_request", "/evaluations"),
        ({"evaluations": [str(uuid4()), str(uuid4())]}, "not_found", "/evaluations/0"),
        ({"level": 1.0}, "invalid_request", "/level"),
        ({"rope": -0.1}, "invalid_request", "/rope"),
        ({"paired": "maybe"}, "invalid_request", ""),
        ({"multiplicity": "tukey"}, "invalid_request", "/multiplicity"),
        ({"baseline": str(uuid4())}, "invalid_request", ""),
        ({"seed": -1}, "invalid_request", "/seed"),
        ({"draws": 10}, "invalid_request", "/draws"),
        ({"colour": "red"}, "invalid_request", "/colour"),
    ],
)
def test_what_is_refused(client: httpx.Client, pair: tuple[str, str], members: Any, code: str, pointer: str) -> None:
    reply = client.post("/v1/comparisons", json={"evaluations": list(pair), **members})
    problem = check_problem(reply, 404 if code == "not_found" else 422, code)
    assert problem["errors"][0]["pointer"] == pointer


def test_the_same_run_twice_is_refused(client: httpx.Client, pair: tuple[str, str]) -> None:
    reply = client.post("/v1/comparisons", json={"evaluations": [pair[0], pair[0]]})
    assert check_problem(reply, 422, "invalid_input")["errors"][0]["pointer"] == "/evaluations/1"


def test_too_many_differences_are_refused(client: httpx.Client) -> None:
    matrix = [[9 if row == column else 0 for column in range(60)] for row in range(60)]
    runs = [keep(client, matrix) for _ in range(30)]
    body = {"evaluations": runs, "metrics": ["recall@*"]}
    problem = check_problem(client.post("/v1/comparisons", json=body), 422, "out_of_reach")
    assert "baseline" in problem["detail"]
    assert client.post("/v1/comparisons", json={**body, "baseline": runs[0]}).status_code == 201


def test_there_is_no_such_comparison(client: httpx.Client) -> None:
    check_problem(client.get(f"/v1/comparisons/{uuid4()}"), 404, "not_found")
    check_problem(client.get("/v1/comparisons/none"), 422, "invalid_path")


def test_all_metrics_that_are_none_are_named_at_once(client: httpx.Client) -> None:
    runs = [create(client, evaluation(model=name))["id"] for name in ("one", "two")]
    asked = {"evaluations": runs, "metrics": ["no_such_metric", "accuracy", "another"]}
    problem = check_problem(client.post("/v1/comparisons", json=asked), 422, "unknown_metric")
    assert [fault["pointer"] for fault in problem["errors"]] == ["/metrics/0", "/metrics/2"]
