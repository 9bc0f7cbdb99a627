"""Leaderboards and comparisons across datasets without a database."""

import numpy as np
import pytest

from app.domain.evaluation import DatasetRef, ModelRef
from app.services.compare.across_datasets import Tournament
from tests.services.memory import Bench, labelled, matrix


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_runs_with_classes_in_another_order_are_paired(bench: Bench) -> None:
    truth = np.array(["cat", "dog", "owl"])[np.random.default_rng(0).integers(0, 3, 300)]
    wrong = np.random.default_rng(1).random((2, 300)) < [[0.1], [0.3]]
    for index, labels in enumerate((["cat", "dog", "owl"], ["owl", "dog", "cat"])):
        predicted = np.where(wrong[index], np.where(truth == "cat", "dog", "cat"), truth)
        bench.keep(labelled(truth, predicted, labels=labels), f"m{index}")
    board = bench.rank("macro_f1")
    assert board["design"]["paired"]
    assert [line["separable_from_best"] for line in board["items"]] == [False, True]


def test_intervals_are_the_same_with_and_without_company(bench: Bench) -> None:
    """Runs of three classes and of two are looked at one by one."""
    bench.keep(matrix([[90, 10], [10, 90]]), "two")
    bench.keep(matrix([[90, 10, 0], [10, 80, 10], [5, 5, 90]]), "three")
    board = bench.rank("h_mean")
    assert not board["design"]["paired"]
    assert "the runs do not all have the same classes: their values may not mean the same" in board["notes"]
    assert all(line["low"] < line["value"] < line["high"] for line in board["items"])


def test_the_seed_follows_from_the_runs(bench: Bench) -> None:
    for name in ("d", "e"):
        for model, wrong in (("a", 10), ("b", 14)):
            bench.keep(matrix([[100 - wrong, wrong], [wrong, 100 - wrong]]), model, name)
    first, second = (bench.rank("bennett_s", name) for name in ("d", "e"))
    assert first["design"] == second["design"] == bench.rank("mcc", "d")["design"]
    assert [line["low"] for line in first["items"]] == [line["low"] for line in second["items"]]
    assert bench.rank("bennett_s", "d", seed=1)["design"]["seed"] == 1


def test_every_cell_of_a_table_of_models_and_datasets_is_read_once(bench: Bench) -> None:
    models, datasets = ("a", "b", "c"), tuple("defghi")
    random = np.random.default_rng(0)
    for dataset in datasets:
        for model in models:
            wrong = int(random.integers(5, 40))
            bench.keep(matrix([[100 - wrong, wrong], [wrong, 100 - wrong]]), model, dataset)
    bench.memory.calls.clear()
    asked = Tournament(
        metric="accuracy",
        models=tuple(map(ModelRef, models)),
        datasets=tuple(map(DatasetRef, datasets)),
        control=ModelRef("a"),
    )
    answer = bench.judge(asked)
    assert bench.memory.calls == ["page"] * 18 + ["get_many"]
    assert sum(answer["average_ranks"]) == pytest.approx(6)
    assert [one["model"] for one in answer["control"]] == [1, 2]
    again = bench.judge(asked)
    assert again["pairwise"] == answer["pairwise"]
    assert again["id"] != answer["id"]
