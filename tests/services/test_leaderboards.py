"""Leaderboards and comparisons across datasets without a database."""

import numpy as np
import pytest

from app.domain.evaluation import DatasetRef, ModelRef
from app.kernel.matrix.table import Table, WeightedCounts
from app.kernel.metrics.catalogue import catalogue
from app.kernel.uncertainty.draws import Alternative
from app.services.compare.across_datasets import Tournament
from app.services.estimands import parse_estimands
from app.services.runs.matrix_draws import draw_independent, errors_in_one
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
    assert board["notes"] == []


@pytest.mark.parametrize("second", [100, 60])
def test_class_shares_are_held_against_each_other_by_name(bench: Bench, second: int) -> None:
    bench.keep(matrix([[180, 20], [10, 90]], labels=["a", "b"], positive="b"), "m0")
    bench.keep(matrix([[second - 5, 5], [20, 180]], labels=["b", "a"], positive="b"), "m1")
    notes = " ".join(bench.rank("mcc")["notes"])
    assert "same classes" not in notes
    assert ("not equally frequent" in notes) is (second != 100)


def test_intervals_are_the_same_with_and_without_company(bench: Bench) -> None:
    """Runs of three classes and of two are looked at one by one."""
    bench.keep(matrix([[90, 10], [10, 90]]), "two")
    bench.keep(matrix([[90, 10, 0], [10, 80, 10], [5, 5, 90]]), "three")
    board = bench.rank("h_mean")
    assert "paired" not in board["design"]
    assert [line["separable_from_best"] for line in board["items"]] == [None, None]
    assert "which runs may be the best is not known: they do not have the same classes" in board["notes"]
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
    assert [one["model"]["name"] for one in answer["control"]] == ["b", "c"]
    again = bench.judge(asked)
    assert again["pairwise"] == answer["pairwise"]
    assert again["id"] != answer["id"]


def equal_runs(bench: Bench, random: np.random.Generator, runs: int, size: int, error: float) -> None:
    truth = np.arange(size) % 2
    for number in range(runs):
        bench.keep(labelled(truth, np.where(random.random(size) < error, 1 - truth, truth)), f"m{number}")


@pytest.mark.parametrize("metric", ["f1", "recall", "precision", "accuracy"])
def test_what_is_not_stored_is_ranked_by_pairs_too(bench: Bench, metric: str) -> None:
    """A comparison of these runs says that the first is better: so does the board."""
    random = np.random.default_rng(0)
    truth = np.arange(2000) % 2
    noise = random.random(2000)
    for name, wrong in (("good", noise < 0.10), ("poor", noise < 0.13)):
        bench.keep(labelled(truth, np.where(wrong, 1 - truth, truth)), name)
    board = bench.rank(metric)
    assert board["design"]["paired"]
    assert [line["separable_from_best"] for line in board["items"]] == [False, True]


def test_patients_are_told_apart_by_patients(bench: Bench) -> None:
    random = np.random.default_rng(3)
    truth, groups = np.arange(300) % 2, np.repeat(np.arange(60), 5)
    for name, share in (("good", 0.03), ("poor", 0.6)):
        bad = np.repeat(random.random(60) < share, 5)
        wrong = random.random(300) < np.where(bad, 0.8, 0.02)
        bench.keep(labelled(truth, np.where(wrong, 1 - truth, truth), groups=groups), name)
    first, second = bench.rank("h_mean")["items"]
    assert first["low"] < first["value"] < first["high"]
    assert second["method"] == "grouped_mover"
    assert (second["separable_from_best"], second["may_be_best"]) == (True, False)


def test_values_that_differ_by_the_last_bit_of_a_sum_share_a_rank(bench: Bench) -> None:
    """0.1 + 0.2 + 0.3 in one order of the classes is not 0.3 + 0.2 + 0.1."""
    rows = [[1, 4, 5], [4, 2, 4], [3, 4, 3]]
    bench.keep(matrix(rows, labels=["a", "b", "c"]), "one")
    bench.keep(matrix([row[::-1] for row in rows[::-1]], labels=["c", "b", "a"]), "same")
    bench.keep(matrix([[1, 4, 5], [4, 2, 4], [4, 4, 2]], labels=["a", "b", "c"]), "worse")
    items = bench.rank("balanced_accuracy")["items"]
    assert items[0]["value"] != items[1]["value"] == pytest.approx(items[0]["value"])
    assert [line["rank"] for line in items] == [1, 1, 3]
    # On both sides of the ideal, equally far.
    for model, rows in (("over", [[8, 2], [0, 10]]), ("under", [[10, 0], [2, 8]])):
        bench.keep(matrix(rows, labels=["a", "b"], positive="b"), model, "sides")
    assert [line["rank"] for line in bench.rank("automatic_manual_difference@b", "sides")["items"]] == [1, 1]


def test_groups_are_told_apart_from_the_first_of_the_group_before(bench: Bench) -> None:
    for model, wrong in (("a", 25), ("b", 100), ("c", 104)):
        bench.keep(matrix([[500 - wrong, wrong], [wrong, 500 - wrong]]), model)
    items = bench.rank("accuracy")["items"]
    assert [(line["group"], line["separable_from_best"]) for line in items] == [(1, False), (2, True), (2, True)]


def test_the_winner_has_limits_that_allow_for_having_been_picked(bench: Bench) -> None:
    equal_runs(bench, np.random.default_rng(0), 10, 500, 0.1)
    board = bench.rank("accuracy")
    winner, first = board["winner"], board["items"][0]
    assert winner["high"] == first["high"]
    assert winner["low"] < first["low"] < winner["corrected_value"] < winner["value"]
    assert winner["fresh_low"] < winner["low"] < winner["high"] < winner["fresh_high"]
    ends = f"; as many as here would show {winner['fresh_low']:.3f} to {winner['fresh_high']:.3f}."
    assert winner["message"].endswith(ends)
    assert all(line["may_be_best"] for line in board["items"]) or board["items"][-1]["may_be_best"] is False


def test_limits_of_the_winner_are_two_sided_whatever_those_of_the_lines_are(bench: Bench) -> None:
    equal_runs(bench, np.random.default_rng(0), 10, 500, 0.1)
    one_sided, usual = (
        bench.rank("accuracy", alternative=side) for side in (Alternative.GREATER, Alternative.TWO_SIDED)
    )
    assert one_sided["items"][0]["low"] > usual["items"][0]["low"]
    assert one_sided["winner"] == usual["winner"]


@pytest.mark.parametrize("metric", ["accuracy", pytest.param("mean(accuracy)", id="computed for all")])
def test_runs_that_are_not_shown_count_in_the_luck_of_the_winner(bench: Bench, metric: str) -> None:
    equal_runs(bench, np.random.default_rng(0), 12, 500, 0.1)
    few, whole = (bench.rank(metric, limit=limit)["winner"] for limit in (4, 20))
    assert "12 runs" in few["message"]
    assert few["corrected_value"] == pytest.approx(whole["corrected_value"], abs=0.002)
    assert few["low"] == pytest.approx(whole["low"], abs=0.002)


@pytest.mark.slow
def test_of_equal_runs_one_is_called_worse_in_one_board_of_twenty() -> None:
    """200 boards of 12 equal paired runs; 1.645 standard errors of 5 % are 2.5 points."""
    random, claims, kept = np.random.default_rng(0), 0, 0
    for _ in range(200):
        bench = Bench()
        equal_runs(bench, random, 12, 200, 0.1)
        items = bench.rank("accuracy")["items"]
        claims += any(line["separable_from_best"] for line in items)
        kept += next(line["may_be_best"] for line in items if line["model"]["name"] == "m0")
    assert claims / 200 <= 0.075
    assert kept / 200 >= 0.925


_RECALL_MEANS = [one.key for one in catalogue().metrics if one.card.inference.mean_of_recalls is not None]


def test_what_reads_recalls_alone_is_drawn_from_two_cells_of_a_row() -> None:
    """The same value of every such metric, and the same distribution as from all cells."""
    rng = np.random.default_rng(8)
    counts = np.stack([rng.poisson(3, (5, 5)) + 20.0 * np.eye(5), np.diag([9.0, 8, 7, 6, 5])])
    counts[1, 2, 0] = 4
    labels = [*"ABCDE"]
    found = parse_estimands([*_RECALL_MEANS, "min(h_mean, g_mean)", "accuracy", "min(recall@*)"], labels, None)
    assert [one.reads_recalls for one in found] == [True] * (len(found) - 2) + [False, False]
    means = found[:-2]
    for one in means:
        alone = [one.functional(Table(errors_in_one(each))) for each in counts]
        np.testing.assert_allclose(alone, [one.functional(Table(each)) for each in counts], rtol=1e-12)
    few, many = (draw_independent(counts, one, draws=4000, seed=3)[: len(means)] for one in (means, found))
    for lumped, whole in zip(few, many, strict=True):
        error = np.hypot(lumped.std(axis=0), whole.std(axis=0)) / np.sqrt(4000)
        assert (abs(lumped.mean(axis=0) - whole.mean(axis=0)) <= 4.5 * error + 1e-12).all()
        np.testing.assert_allclose(lumped.std(axis=0), whole.std(axis=0), rtol=0.07, atol=1e-12)


def test_draws_of_weighted_runs_do_not_hang_on_the_unit_of_the_weights() -> None:
    random = np.random.default_rng(1)
    truth, predicted = random.integers(0, 3, (2, 60))
    weights = random.gamma(2.0, 1.0, 60)
    of_units = [WeightedCounts.of(truth, predicted, unit * weights, 3) for unit in (1.0, 1000.0)]
    asked = parse_estimands(["accuracy"], ["0", "1", "2"], None)
    (own,), (moved,) = (
        draw_independent(one.counts[None], asked, draws=20, seed=3, squares=[one.squares]) for one in of_units
    )
    np.testing.assert_allclose(moved, own, rtol=1e-9)
