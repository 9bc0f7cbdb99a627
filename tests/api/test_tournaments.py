"""Comparisons across datasets: Demsar's table through HTTP, and what is refused."""

from typing import Any
from uuid import uuid4

import httpx
import numpy as np
import pytest

from app.api.answers import answer_model
from app.services.compare.answers import ModelComparison
from tests.api.answers import Json, check_json, check_problem, create, evaluation, matrix_input
from tests.api.shown import BODIES
from tests.kernel.compare.test_across_datasets import SCORES


def matrix(accuracy: float) -> list[list[int]]:
    """Ten thousand samples of two classes with this accuracy."""
    right = round(accuracy * 10_000)
    return [[right // 2, 0], [10_000 - right, right - right // 2]]


def keep_table(client: httpx.Client, scores: Any, prefix: str) -> tuple[list[str], list[str]]:
    """Kept evaluations with these accuracies, by dataset and model; names of models and datasets."""
    models = [f"{prefix}m{index}" for index in range(len(scores[0]))]
    datasets = [f"{prefix}d{index:02}" for index in range(len(scores))]
    items = [
        evaluation(model=model, dataset=dataset, input=matrix_input(matrix(scores[row][column])))
        for row, dataset in enumerate(datasets)
        for column, model in enumerate(models)
    ]
    reply = client.post("/v1/evaluations/batch", json={"evaluations": items})
    assert {item["status"] for item in reply.json()["items"]} == {201}
    return models, datasets


def judge(client: httpx.Client, **body: Any) -> Json:
    reply = client.post("/v1/comparisons/across-datasets", json=body)
    assert reply.status_code == 201, reply.text
    check_json(reply)
    answer_model(ModelComparison).model_validate_json(reply.content)
    assert client.get(reply.headers["location"]).content == reply.content
    answer: Json = reply.json()
    return answer


@pytest.fixture(scope="module")
def demsar(client: httpx.Client) -> tuple[list[str], list[str]]:
    """Demsar (2006), table 6, to four decimals so that the tie of the printed table is none."""
    return keep_table(client, SCORES, uuid4().hex[:6])


def test_published_values(client: httpx.Client, demsar: tuple[list[str], list[str]]) -> None:
    models, datasets = demsar
    answer = judge(client, metric="accuracy", models=models, datasets=datasets, control=models[0], tie_corrected=False)
    assert answer["average_ranks"] == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=5e-4)
    assert answer["friedman"]["chi_squared"] == pytest.approx(9.28, abs=5e-3)
    assert answer["friedman"]["iman_davenport"]["f"] == pytest.approx(3.69, abs=5e-3)
    assert answer["friedman"]["iman_davenport"]["df"] == [3, 39]
    assert answer["nemenyi"]["critical_difference"] == pytest.approx(1.254, abs=5e-4)
    text = client.get(f"/v1/comparisons/{answer['id']}", headers={"Accept": "text/plain"}).text
    assert "has the best average rank, 1.96 over 14 datasets." in " ".join(text.split())
    (listed,) = [one for one in client.get("/v1/comparisons").json()["items"] if one["id"] == answer["id"]]
    assert len({run["id"] for run in listed["evaluations"]}) == len(models) * len(datasets)
    assert [entry["p_adjusted"] for entry in answer["control"]] == pytest.approx([0.047, 0.608, 0.047], abs=6e-4)
    assert np.array(answer["values"]) == pytest.approx(SCORES, abs=1e-9)
    assert len(answer["evaluations"]) == 14
    corrected = judge(client, metric="accuracy", models=models, datasets=datasets)
    assert corrected["friedman"]["chi_squared"] == pytest.approx(10.23, abs=5e-3)


def test_two_models(client: httpx.Client, demsar: tuple[list[str], list[str]]) -> None:
    """Wilcoxon T = 12, p .0078 with zeros split, 6.5 and .0073 without them; Bayesian at a rope of 0.008."""
    models, datasets = demsar
    answer = judge(client, metric="accuracy", models=models[:2], datasets=datasets, rope=0.008, seed=1)
    (pair,) = answer["pairwise"]
    assert (pair["a"], pair["b"]) == (0, 1)
    assert pair["wilcoxon"]["statistic"] == 12
    assert pair["wilcoxon"]["p_value"] == pytest.approx(0.0078, abs=1e-4)
    assert pair["wilcoxon"]["zeros"] == 2
    alike = [
        judge(client, metric="accuracy", models=models[:2], datasets=datasets, level=level)["cliques"]
        for level in (0.99, 0.995)
    ]
    assert [[0, 1] in one for one in alike] == [False, True]
    dropped = judge(client, metric="accuracy", models=models[:2], datasets=datasets, zeros="drop")["pairwise"][0]
    assert dropped["wilcoxon"]["statistic"] == 6.5
    assert dropped["wilcoxon"]["p_value"] == pytest.approx(0.0073, abs=1e-4)
    for kind, equivalent, better in (("win", 0.24, 0.76), ("mass", 0.39, 0.61)):
        found = pair["bayesian_signed_rank"][kind]
        assert found["a_better"] == pytest.approx(0, abs=0.02)
        assert found["equivalent"] == pytest.approx(equivalent, abs=0.03)
        assert found["b_better"] == pytest.approx(better, abs=0.03)


def test_runs_that_differ_by_the_order_of_classes_share_their_ranks(client: httpx.Client) -> None:
    """Means over their recalls differ by the last bit."""
    prefix, rows = uuid4().hex[:6], np.array([[86, 13, 1], [10, 9, 1], [3, 4, 43]])
    models, datasets = ([f"{prefix}{kind}{index}" for index in range(size)] for kind, size in (("m", 2), ("d", 5)))
    for model, order in zip(models, ([0, 1, 2], [2, 0, 1]), strict=True):
        source = matrix_input(rows[np.ix_(order, order)].tolist(), labels=[f"c{place}" for place in order])
        for dataset in datasets:
            create(client, evaluation(model=model, dataset=dataset, input=source))
    for metric in ("balanced_accuracy", "h_mean", "macro_f1"):
        answer = judge(client, metric=metric, models=models, datasets=datasets)
        assert answer["average_ranks"] == [1.5, 1.5]
        assert answer["pairwise"][0]["wilcoxon"]["zeros"] == 5
        text = client.get(f"/v1/comparisons/{answer['id']}", headers={"Accept": "text/plain"}).text
        assert f"{models[0]} and {models[1]} share the best average rank" in " ".join(text.split())


def test_the_latest_evaluation_counts(client: httpx.Client) -> None:
    prefix = uuid4().hex[:6]
    models, datasets = keep_table(client, [[0.5, 0.6]] * 6, prefix)
    create(client, evaluation(model=models[0], dataset=datasets[0], input=matrix_input(matrix(0.9))))
    answer = judge(client, metric="accuracy", models=models, datasets=datasets)
    assert answer["values"] == [[0.9, 0.6], *[[0.5, 0.6]] * 5]
    assert answer["average_ranks"] == pytest.approx([11 / 6, 7 / 6])
    assert any("Only 6 datasets" in note for note in answer["notes"])
    assert any("differ in class prevalence" in note for note in answer["notes"])


def test_versions_and_splits(client: httpx.Client) -> None:
    prefix = uuid4().hex[:6]
    datasets = []
    for index in range(5):
        for version, accuracy in (("1", 0.7), ("2", 0.8)):
            body = evaluation(dataset=f"{prefix}{index}", input=matrix_input(matrix(accuracy)))
            body["model"] = {"name": prefix, "version": version}
            body["dataset"]["split"] = "test"
            create(client, body)
        datasets.append({"name": f"{prefix}{index}", "split": "test"})
    models = [{"name": prefix, "version": version} for version in ("1", "2")]
    answer = judge(client, metric="error_rate", models=models, datasets=datasets)
    assert answer["models"] == models
    assert answer["better"] == "lower"
    assert answer["average_ranks"] == [2, 1]
    assert answer["cliques"] == [[0, 1]]
    # The latest of any version, and of any split: an evaluation that is there already counts once.
    for more in ({"models": [*models, prefix]}, {"datasets": [*datasets, f"{prefix}0"]}):
        body = {"metric": "error_rate", "models": models, "datasets": datasets, **more}
        check_problem(client.post("/v1/comparisons/across-datasets", json=body), 422, "invalid_input")


def test_groups_that_cannot_be_told_apart(client: httpx.Client) -> None:
    random = np.random.default_rng(0)
    base = random.uniform(0.6, 0.8, (20, 1))
    scores = (base + np.array([[0.1, 0.1, 0.0]]) + random.normal(0, 0.01, (20, 3))).tolist()
    models, datasets = keep_table(client, scores, uuid4().hex[:6])
    answer = judge(client, metric="accuracy", models=models, datasets=datasets)
    assert answer["cliques"] == [[0, 1]]
    assert answer["nemenyi"]["cliques"] == [[0, 1]]
    assert answer["friedman"]["p_value"] < 1e-4


def test_expressions(client: httpx.Client, demsar: tuple[list[str], list[str]]) -> None:
    models, datasets = demsar
    answer = judge(client, metric="min(recall@*)", models=models, datasets=datasets[:9])
    assert len(answer["values"]) == 9
    assert not any("differ in class prevalence" in note for note in answer["notes"])


def test_missing_evaluations(client: httpx.Client, demsar: tuple[list[str], list[str]]) -> None:
    models, datasets = demsar
    body = {"metric": "accuracy", "models": models, "datasets": [*datasets, "nowhere"]}
    problem = check_problem(client.post("/v1/comparisons/across-datasets", json=body), 422, "incomparable_runs")
    assert f"{models[0]} on nowhere" in problem["detail"]
    assert len(judge(client, **body, complete=True)["datasets"]) == 14


def test_the_example_of_the_documentation(client: httpx.Client) -> None:
    (body,) = BODIES["compareAcrossDatasets"].values()
    for dataset in body["datasets"]:
        for model in body["models"]:
            source = evaluation(input=matrix_input([[9, 1], [2, 8]]))
            source["model"] = {"name": model} if isinstance(model, str) else model
            source["dataset"] = {"name": dataset} if isinstance(dataset, str) else dataset
            create(client, source)
    answer = judge(client, **body)
    assert answer["average_ranks"] == [2, 2, 2]
    assert answer["friedman"]["p_value"] == 1
    assert answer["pairwise"][0]["wilcoxon"]["p_value"] == 1


@pytest.mark.parametrize(
    ("members", "code", "pointer"),
    [
        ({"datasets": ["a", "b", "c", "d"]}, "incomparable_runs", "/datasets"),
        ({"metric": "h_meen"}, "unknown_metric", None),
        ({"metric": "recall@*"}, "incomparable_runs", "/metric"),
        ({"metric": "support@0"}, "not_comparable", "/metric"),
        ({"metric": "precision@0"}, "incomparable_runs", "/metric"),
        ({"models": ["one"]}, "invalid_request", "/models"),
        ({"models": ["one", "one"]}, "invalid_request", ""),
        ({"control": "nobody"}, "invalid_request", ""),
        ({"level": 0.3}, "invalid_request", "/level"),
        ({"rope": -1}, "invalid_request", "/rope"),
    ],
)
def test_what_is_refused(client: httpx.Client, members: Json, code: str, pointer: str | None) -> None:
    for dataset in "abcde":
        for model in ("one", "two"):
            create(client, evaluation(model=model, dataset=dataset, input=matrix_input([[0, 5], [0, 5]])))
    body = {"metric": "accuracy", "models": ["one", "two"], "datasets": list("abcde"), **members}
    problem = check_problem(client.post("/v1/comparisons/across-datasets", json=body), 422, code)
    if pointer is not None:
        assert problem["errors"][0]["pointer"] == pointer
