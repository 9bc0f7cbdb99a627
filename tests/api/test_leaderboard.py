"""Leaderboards: order, intervals, groups that cannot be separated, and what is refused."""

import re
from typing import Any
from uuid import uuid4

import httpx
import pytest

from app.api.ui import home
from app.services import rank
from app.services.rank import Leaderboard
from tests.api.answers import Json, check_json, check_problem, check_shape, create, evaluation, matrix_input


def run(model: str, dataset: str, matrix: list[list[Any]], version: str | None = None, **members: Any) -> Json:
    body = evaluation(model=model, dataset=dataset, input=matrix_input(matrix, **members))
    if version:
        body["model"]["version"] = version
    return body


def leaderboard(client: httpx.Client, dataset: str, **parameters: Any) -> Json:
    reply = client.get("/v1/leaderboard", params={"dataset": dataset, **parameters})
    assert reply.status_code == 200, reply.text
    check_json(reply)
    check_shape(reply, Leaderboard)
    answer: Json = reply.json()
    return answer


@pytest.fixture(scope="module")
def dataset(client: httpx.Client) -> str:
    """Two runs that cannot be told apart, one clearly worse, one useless, and an older run of the best."""
    name = f"board-{uuid4().hex[:8]}"
    create(client, run("good", name, [[500, 500], [500, 500]], "1"))
    create(client, run("fair", name, [[880, 120], [110, 890]]))
    create(client, run("good", name, [[900, 100], [100, 900]], "1"))
    create(client, run("poor", name, [[700, 300], [300, 700]]))
    create(client, run("useless", name, [[1000, 0], [1000, 0]]))
    return name


def test_the_latest_run_of_each_model_version_in_order(client: httpx.Client, dataset: str) -> None:
    board = leaderboard(client, dataset, metric="h_mean")
    assert [(item["rank"], item["model"]["name"]) for item in board["items"]] == [
        (1, "good"), (2, "fair"), (3, "poor"), (4, "useless"),
    ]  # fmt: skip
    assert [round(item["value"], 12) for item in board["items"]][::3] == [0.9, 0]
    assert board["better"] == "higher"
    assert [item["group"] for item in board["items"]] == [1, 1, 2, 3]
    assert [item["separable_from_best"] for item in board["items"]] == [False, False, True, True]
    assert not board["design"]["paired"]
    assert any("independent" in note for note in board["notes"])


def test_a_page_of_the_first_of_many_does_not_speak_of_the_newest(
    client: httpx.Client, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = client.get("/ui", params={"dataset": dataset}).text
    assert "4 model versions" in whole
    assert "The newest, useless, is worse." in whole
    monkeypatch.setattr(home, "_IN_A_LEADERBOARD", 2)
    first = client.get("/ui", params={"dataset": dataset}).text
    assert "the first 2 model versions" in first
    assert "Of 4 model versions the first 2 are shown" in first
    assert not re.search("newest|of each version|>Since ", first)


def test_a_page_says_why_there_is_nothing_to_rank(client: httpx.Client, dataset: str) -> None:
    """It does not say that a dataset has no runs where none fits the filters."""
    for asked, said in (
        ({"dataset": dataset, "where": "h_mean>=0.99"}, "No latest evaluation of a model version has h_mean&gt;=0.99."),
        ({"dataset": f"{dataset}x"}, f"There is no dataset &#39;{dataset}x&#39;; did you mean"),
    ):
        page = client.get("/ui", params=asked).text
        assert said in page
        assert "has been saved" not in page


def test_conditions_on_values_leave_out_who_does_not_satisfy_them(client: httpx.Client, dataset: str) -> None:
    everybody = {item["model"]["name"]: item for item in leaderboard(client, dataset, metric="h_mean")["items"]}
    for where, left in (
        ("accuracy>=0.7", ["good", "fair", "poor"]),
        # The older run of the best does not take the place of its latest.
        (["accuracy>=0.45", "h_mean<0.885"], ["fair", "poor", "useless"]),
        ("mcc>-1", ["good", "fair", "poor"]),
    ):
        board = leaderboard(client, dataset, metric="h_mean", where=where)
        assert [item["model"]["name"] for item in board["items"]] == left
        assert all(item["value"] == everybody[item["model"]["name"]]["value"] for item in board["items"])
        assert any("chosen by their values" in note for note in board["notes"])
    # Of what is not stored too, and there where a condition leaves nobody.
    computed = leaderboard(client, dataset, metric="min(recall@*)", where="accuracy<0.85")
    assert [item["model"]["name"] for item in computed["items"]] == ["poor", "useless"]
    nobody = leaderboard(client, dataset, where=["mcc>=0.99"])
    assert (nobody["items"], nobody["notes"]) == ([], ["no latest evaluation of a model version has mcc>=0.99"])
    assert "did you mean" in leaderboard(client, dataset[:-1], where="mcc>0")["notes"][0]
    refused = client.get("/v1/leaderboard", params={"dataset": dataset, "where": "h_mean"})
    assert check_problem(refused, 422, "invalid_query")["errors"][0]["parameter"] == "where"


def test_intervals_are_those_of_the_evaluations(client: httpx.Client, dataset: str) -> None:
    for metric in ("h_mean", "accuracy", "mcc"):
        for item in leaderboard(client, dataset, metric=metric)["items"][:3]:
            shown = client.get(f"/v1/evaluations/{item['evaluation']['id']}").json()["intervals"][metric]
            assert (item["low"], item["high"], item["method"]) == (shown["low"], shown["high"], shown["method"])
    other = leaderboard(client, dataset, metric="gwet_ac1")["items"]
    assert {item["method"] for item in other[:3]} == {"posterior"}
    assert all(item["low"] < item["value"] < item["high"] for item in other[:3])


def test_the_luck_of_the_winner(client: httpx.Client) -> None:
    name = uuid4().hex
    ids = [create(client, run(f"m{index}", name, [[225, 25], [25, 225]]))["id"] for index in range(10)]
    winner = leaderboard(client, name, metric="accuracy")["winner"]
    # Ten equal runs, accuracy 0.9, n = 500: the best looks 0.020 better than it is.
    assert abs(winner["expected_optimism"] - 0.020) < 0.003
    assert winner["corrected_value"] == pytest.approx(winner["value"] - winner["expected_optimism"])
    assert "luck" in winner["message"]
    # Who was removed was judged all the same; one that comes back counts once, and one that goes elsewhere still does.
    for removed in ids[:5]:
        assert client.delete(f"/v1/evaluations/{removed}").status_code == 204
    create(client, run("m0", name, [[225, 25], [25, 225]]))
    create(client, run("m1", f"not {name}", [[225, 25], [25, 225]]))
    fewer = leaderboard(client, name, metric="accuracy")
    assert (len(fewer["items"]), fewer["winner"]["among"]) == (6, 10)
    assert abs(fewer["winner"]["expected_optimism"] - 0.020) < 0.003
    # Of who was removed nobody knows whether a condition would have left it in.
    assert leaderboard(client, name, metric="accuracy", where="accuracy>0.5")["winner"]["among"] == 6
    assert client.get(f"/v1/datasets/{name}").json()["n_models"] == 10


def test_of_very_many_versions_the_best_are_counted_as_is_said(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = uuid4().hex
    for right in (225, 226, 227, 228):
        create(client, run(f"m{right}", name, [[right, 250 - right], [25, 225]]))
    whole = leaderboard(client, name, metric="accuracy")["winner"]
    assert (whole["among"], "are counted" in whole["message"]) == (4, False)
    for most, among, said in ((4, 4, False), (3, 3, True)):
        monkeypatch.setattr(rank, "MOST_COMPUTED", most)
        for limit in (2, 10):
            winner = leaderboard(client, name, metric="accuracy", limit=limit)["winner"]
            assert winner["among"] == among
            assert winner["message"].endswith(f"more model versions: the best {most} are counted.") == said


def test_what_new_samples_would_show_keeps_to_the_range_of_a_metric(client: httpx.Client) -> None:
    name = uuid4().hex
    for model in "ab":
        create(client, run(model, name, [[19, 1], [0, 20]]))
    winner = leaderboard(client, name, metric="accuracy")["winner"]
    assert 0.0 < winner["fresh_low"] < winner["fresh_high"] == 1.0


def test_limit_and_no_runs(client: httpx.Client, dataset: str) -> None:
    first = leaderboard(client, dataset, limit=2)
    assert len(first["items"]) == 2
    said = "of 4 model versions the first 2 are shown: which may be the best is said of these"
    assert first["notes"][-1] == said
    assert leaderboard(client, dataset, limit=4)["notes"] == first["notes"][:-1]
    alone = leaderboard(client, dataset, limit=1)
    assert alone["winner"] is None
    assert alone["items"][0]["group"] is None
    empty = leaderboard(client, "nobody has seen it")
    assert empty["items"] == []


def test_lower_is_better(client: httpx.Client, dataset: str) -> None:
    board = leaderboard(client, dataset, metric="error_rate")
    assert board["better"] == "lower"
    assert [item["model"]["name"] for item in board["items"]] == ["good", "fair", "poor", "useless"]
    winner, best = board["winner"], board["items"][0]
    assert winner["expected_optimism"] <= 0
    # It may have been lucky, and so worse than its own limit says.
    assert (winner["low"], winner["high"] > best["high"]) == (best["low"], True)
    assert [item["group"] for item in board["items"]] == [1, 1, 2, 3]


def test_expressions_and_metrics_of_one_class(client: httpx.Client, dataset: str) -> None:
    for metric in (
        "min(recall@*)",
        "recall@0",
        "f_beta(beta=2)",
        "gps(recall@*, precision@1)",
        "power_mean_recall(r=2)",
    ):
        items = leaderboard(client, dataset, metric=metric)["items"]
        values = [item["value"] for item in items if item["value"] is not None]
        assert values == sorted(values, reverse=True)
        assert len(values) >= 3
        assert items[0]["low"] <= items[0]["value"] <= items[0]["high"]
    undefined = leaderboard(client, dataset, metric="precision@1")["items"][-1]
    assert (undefined["rank"], undefined["value"]) == (None, None)
    assert undefined["reason"]


def test_nearest_the_ideal(client: httpx.Client) -> None:
    name = uuid4().hex
    create(client, run("over", name, [[80, 20], [0, 100]]))
    create(client, run("even", name, [[90, 10], [10, 90]]))
    create(client, run("under", name, [[100, 0], [50, 50]]))
    board = leaderboard(client, name, metric="automatic_manual_difference@1")
    assert [item["model"]["name"] for item in board["items"]] == ["even", "over", "under"]
    assert board["better"] == "nearest"
    assert board["winner"] is None


def test_weights_have_values_and_no_intervals(client: httpx.Client) -> None:
    name = uuid4().hex
    create(client, run("weights", name, [[9.5, 0.5], [0.5, 9.5]]))
    create(client, run("counts", name, [[90, 10], [10, 90]]))
    first, second = leaderboard(client, name)["items"]
    assert (first["model"]["name"], first["low"], first["separable_from_best"]) == ("weights", None, None)
    assert second["low"] is not None
    # Nobody else is the best of them, whatever is known of the others, and a check of the first says nothing of these.
    create(client, run("other", name, [[89, 11], [11, 89]]))
    board = leaderboard(client, name, metric="accuracy")
    assert [(line["separable_from_best"], line["may_be_best"], line["group"]) for line in board["items"]] == [
        (None, None, None)
    ] * 3
    assert (board["winner"], board["notes"]) == (
        None,
        ["which runs may be the best is not known: the first has no interval"],
    )
    client.put(f"/v1/gates/{name}", json={"rules": [{"metric": "accuracy", "min": 0.5}]})
    checked = client.post(f"/v1/gates/{name}/checks", json={"evaluation": first["evaluation"]["id"]}).json()
    assert "findings" not in checked


def test_rates_and_weights_do_not_tell_how_many_samples_there_are(client: httpx.Client) -> None:
    name = uuid4().hex
    create(client, run("m", name, [[0.4, 0.1], [0.1, 0.4]], "1", normalized=True))
    create(client, run("m", name, [[9.5, 0.5], [0.5, 9.5]], "2"))
    assert [one["n_samples"] for one in leaderboard(client, name)["items"]] == [None, None]
    texts = [
        client.get(where, params={"dataset": name}, headers={"Accept": "text/plain"}).text
        for where in ("/v1/leaderboard", "/v1/models/m/history")
    ]
    assert [text for text in texts if "samples each" in text] == []
    create(client, run("m", name, [[90, 10], [10, 90]], "3"))
    assert client.get("/v1/models/m/history", params={"dataset": name}).json()["items"][-1]["n_samples"] == 200


def test_what_does_not_compare_is_said(client: httpx.Client) -> None:
    name = uuid4().hex
    create(client, run("balanced", name, [[90, 10], [10, 90]]))
    create(client, run("skewed", name, [[900, 100], [10, 90]]))
    assert any("prevalence" in note for note in leaderboard(client, name, metric="accuracy")["notes"])
    assert not any("prevalence" in note for note in leaderboard(client, name, metric="h_mean")["notes"])
    create(client, run("three", name, [[9, 1, 0], [1, 9, 0], [0, 1, 9]]))
    board = leaderboard(client, name, metric="recall@2")
    assert [item["value"] for item in board["items"]] == [0.9, None, None]
    assert any("same classes" in note for note in board["notes"])


def test_many_classes_are_ranked_without_groups(client: httpx.Client) -> None:
    name = uuid4().hex
    size = 250
    for model, hits in (("a", 9), ("b", 8)):
        matrix = [[hits if row == column else 10 - hits if (row + 1) % size == column else 0 for column in range(size)]
                  for row in range(size)]  # fmt: skip
        create(client, run(model, name, matrix))
    board = leaderboard(client, name, metric="gwet_ac1")
    assert [item["rank"] for item in board["items"]] == [1, 2]
    assert board["items"][0]["group"] is None
    assert any("too many samples or classes" in note for note in board["notes"])


def test_the_seed_decides(client: httpx.Client, dataset: str) -> None:
    first, second = (leaderboard(client, dataset, metric="gwet_ac1") for _ in range(2))
    assert first == second
    assert leaderboard(client, dataset, metric="gwet_ac1", seed=first["design"]["seed"]) == first
    other = leaderboard(client, dataset, metric="gwet_ac1", seed=7)
    assert other["winner"]["expected_optimism"] != first["winner"]["expected_optimism"]
    assert [item["low"] for item in other["items"]] == [item["low"] for item in first["items"]], "these are of each run"


@pytest.mark.parametrize(
    ("parameters", "name", "code"),
    [
        ({"metric": "support@1"}, "metric", "not_comparable"),
        ({"metric": "mean(error_rate, accuracy)"}, "metric", "not_comparable"),
        ({"metric": "imbalance_ratio"}, "metric", "not_comparable"),
        ({"metric": "h_meen"}, "metric", "unknown_metric"),
        ({"metric": "h_mean("}, "metric", "invalid_expression"),
        ({"metric": "f_beta(beta=x)"}, "metric", "invalid_parameter"),
        ({"limit": 0}, "limit", "out_of_range"),
        ({"limit": 101}, "limit", "out_of_range"),
        ({"level": 1}, "level", "out_of_range"),
        ({"dataset": ""}, "dataset", "wrong_length"),
        ({"colour": "red"}, "colour", "unknown_parameter"),
    ],
)
def test_what_is_refused(client: httpx.Client, parameters: dict[str, Any], name: str, code: str) -> None:
    reply = client.get("/v1/leaderboard", params={"dataset": "d", **parameters})
    problem = check_problem(reply, 422, "invalid_query")
    assert [(fault["parameter"], fault["code"]) for fault in problem["errors"]] == [(name, code)]


def test_a_dataset_is_needed(client: httpx.Client) -> None:
    problem = check_problem(client.get("/v1/leaderboard"), 422, "invalid_query")
    assert problem["errors"][0]["parameter"] == "dataset"


def test_an_unknown_dataset_says_so_and_offers_the_nearest(client: httpx.Client) -> None:
    create(client, evaluation(dataset="hartwig-2022"))
    near = client.get("/v1/leaderboard", params={"dataset": "hartwig-2020"}).json()
    assert near["items"] == []
    assert near["notes"] == ["there is no dataset 'hartwig-2020'; did you mean 'hartwig-2022'?"]
    far = client.get("/v1/leaderboard", params={"dataset": "zzz"}).json()
    assert far["notes"] == ["there is no dataset 'zzz'"]
    split = client.get("/v1/leaderboard", params={"dataset": "hartwig-2022", "split": "test"}).json()
    assert split["notes"] == ["no evaluation is of this version and split of 'hartwig-2022'; known are none"]
    text = client.get("/v1/leaderboard", params={"dataset": "hartwig-2020"}, headers={"Accept": "text/plain"}).text
    assert "did you mean 'hartwig-2022'?" in text
