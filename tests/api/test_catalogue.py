"""The catalogue, the recommendations and the bounds."""

import csv
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.api.answers import member_names
from app.api.cursors import Items
from app.domain.advice import Recommendation
from app.domain.catalogue import MetricCard
from app.kernel.metrics.catalogue import catalogue
from app.services.decide.h_mean_bounds import BoundsOfRecalls, BoundsOfWeakClasses
from tests.api.answers import check_json, check_problem, check_shape
from tests.bank import each

EVERYTHING = ",".join(member_names(MetricCard))
SHORT = ("key", "name", "scope", "tasks", "prevalence", "orientation", "on_request", "sentence")


@pytest.fixture(scope="module")
def cards(client: httpx.Client) -> list[dict[str, Any]]:
    reply = client.get("/v1/metrics", params={"fields": EVERYTHING})
    assert reply.status_code == 200
    check_json(reply)
    check_shape(reply, Items[MetricCard])
    items: list[dict[str, Any]] = reply.json()["items"]
    return items


def test_functions_of_metrics_are_listed_beside_the_metrics(client: httpx.Client) -> None:
    listed = {one["key"]: one for one in client.get("/v1/metrics", params={"q": "h_mean"}).json()["combinations"]}
    assert list(listed) == [
        "gps", "gps_sd", "mean", "gmean", "wgps", "wmean", "wgmean", "stolarsky", "min", "max", "range", "ratio",
    ]  # fmt: skip
    assert listed["range"]["orientation"] == "lower_is_better"
    assert listed["range"]["range"] == {"minimum": 0.0, "maximum": None}
    assert listed["mean"]["orientation"] is None
    assert listed["mean"]["range"] is None
    assert [key for key, one in listed.items() if one["non_negative_parts"]] == [
        "gps", "gps_sd", "gmean", "wgps", "wgmean", "stolarsky", "ratio",
    ]  # fmt: skip
    assert listed["gps"]["references"][0].startswith("Mart")


def test_every_metric_is_listed_once(cards: list[dict[str, Any]]) -> None:
    assert [card["key"] for card in cards] == [metric.key for metric in catalogue().metrics]
    for task in ("binary", "multiclass", "multilabel"):
        own = [card for card in cards if task in card["tasks"]]
        names = [name for card in own for name in (card["key"], *card["aliases"]["names"])]
        assert len(names) == len(set(names))


def test_a_card_says_everything(cards: list[dict[str, Any]]) -> None:
    for card in cards:
        assert card["name"]
        assert card["formula"]
        assert card["sentence"].endswith((".", "."))
        assert all(len(reference) > 20 for reference in card["references"])
        assert card["orientation"] in {
            "higher_is_better",
            "lower_is_better",
            "nearest_the_ideal_is_better",
            "descriptive",
        }
        assert "{label}" not in str(card["undefined"])
        for parameter in card["parameters"]:
            assert parameter["description"]
            assert "default" in parameter


def read_list() -> dict[str, dict[str, str]]:
    """The list of metrics that there are to be."""
    path = Path(__file__).parents[1] / "data" / "metrics.csv"
    with path.open(newline="") as file:
        return {row["key"]: row for row in csv.DictReader(file)}


def test_metrics_of_the_list_are_there(cards: list[dict[str, Any]]) -> None:
    listed = {key: row for key, row in read_list().items() if row["inputs"] == "matrix"}
    found = {card["key"]: card for card in cards if card["inputs"] == "matrix"}
    assert set(listed) <= set(found)
    for key, row in listed.items():
        assert found[key]["prevalence"] == row["prevalence"]
        assert found[key]["scope"] == row["scope"]


FILTERS: list[tuple[dict[str, str], Any]] = [
    ({"scope": "class"}, lambda card: card["scope"] == "class"),
    (
        {"scope": "overall", "prevalence": "insensitive"},
        lambda c: (c["scope"], c["prevalence"]) == ("overall", "insensitive"),
    ),
    ({"prevalence": "insensitive_binary"}, lambda card: card["prevalence"] == "insensitive_binary"),
    ({"input": "matrix"}, lambda card: card["inputs"] == "matrix"),
    ({"input": "probabilities"}, lambda card: card["inputs"] == "probabilities"),
    ({"task": "binary"}, lambda card: "binary" in card["tasks"]),
    ({"task": "multiclass"}, lambda card: "multiclass" in card["tasks"]),
    ({"task": "multilabel"}, lambda card: "multilabel" in card["tasks"]),
    ({"input": "labels"}, lambda card: card["inputs"] == "labels"),
    ({"q": "ZZZ nothing"}, lambda _: False),
]


@pytest.mark.parametrize(("parameters", "passes"), FILTERS, ids=[str(parameters) for parameters, _ in FILTERS])
def test_filters(client: httpx.Client, cards: list[dict[str, Any]], parameters: dict[str, str], passes: Any) -> None:
    found = client.get("/v1/metrics", params=parameters).json()["items"]
    assert found == [{name: card[name] for name in SHORT} for card in cards if passes(card)]


def test_the_list_is_short_and_has_what_is_asked_for(client: httpx.Client, cards: list[dict[str, Any]]) -> None:
    short = client.get("/v1/metrics")
    assert len(short.content) < 110_000
    (chosen,) = client.get("/v1/metrics", params={"q": "youden", "fields": "key, formula"}).json()["items"][:1]
    assert chosen == {name: card[name] for card in cards if card["key"] == chosen["key"] for name in ("key", "formula")}
    problem = check_problem(client.get("/v1/metrics", params={"fields": "key,formulae"}), 422, "invalid_query")
    (fault,) = problem["errors"]
    assert (fault["parameter"], fault["code"], fault["suggestions"]) == ("fields", "unknown_member", ["formula"])


@pytest.mark.parametrize(
    ("text", "key"), [("ac_score", "h_mean"), ("Matthews", "mcc"), ("f1_score", "f1"), ("KAPPA", "cohen_kappa")]
)
def test_search(client: httpx.Client, text: str, key: str) -> None:
    assert key in [card["key"] for card in client.get("/v1/metrics", params={"q": text}).json()["items"]]


def test_one_metric_by_every_name(client: httpx.Client, cards: list[dict[str, Any]]) -> None:
    for card in cards[::7]:
        for name in (card["key"], *card["aliases"]["names"]):
            # One name can mean something else for another task.
            reply = client.get(f"/v1/metrics/{name}", params={"task": card["tasks"][0]})
            assert reply.status_code == 200
            assert reply.json() == card


@pytest.mark.parametrize("name", ["h_men", "%00", "AUC", "x" * 5000, "%2E%2E", "a%2Fb", "H_MEAN", "equal_opportunity"])
def test_an_unknown_metric(client: httpx.Client, name: str) -> None:
    problem = check_problem(client.get(f"/v1/metrics/{name}"), 404, "not_found")
    if name == "h_men":
        assert "h_mean" in problem["detail"]
    if name == "AUC":
        assert "roc_auc" in problem["detail"]
    if name == "equal_opportunity":
        assert "write equal_opportunity_difference(by=<attribute>)" in problem["detail"]


@pytest.mark.parametrize(
    "query", ["scope=all", "prevalence=x", "input=pictures", "task=regression", "q=" + "x" * 129, "key=x"]
)
def test_what_is_no_filter(client: httpx.Client, query: str) -> None:
    problem = check_problem(client.get(f"/v1/metrics?{query}"), 422, "invalid_query")
    assert problem["errors"][0]["parameter"] == query.partition("=")[0]


# Recommendations.

QUESTIONS = [
    dict(
        zip(("classes", "balanced", "error_priority", "chance_corrected", "graphical", "inputs"), answers, strict=True)
    )
    for answers in product(
        ("binary", "multiclass"),
        (False, True),
        ("type1", "type2", "both", "costs"),
        (False, True),
        (False, True),
        (["matrix"], ["probabilities"], ["matrix", "probabilities"]),
    )
]


def test_every_question_is_answered_with_known_metrics(client: httpx.Client) -> None:
    known = read_list()
    for question in QUESTIONS:
        reply = client.post("/v1/metrics/recommendations", json=question)
        assert reply.status_code == 200, reply.text
        check_json(reply)
        check_shape(reply, Recommendation)
        answer = reply.json()
        assert answer["metrics"]
        assert answer["path"]
        for advice in answer["metrics"]:
            assert advice["metric"] in known
            assert advice["reason"]
            assert advice["source"]["reference"] in answer["references"]
            if question["inputs"] == ["matrix"]:
                assert known[advice["metric"]]["inputs"] == "matrix"
        for step in answer["path"]:
            assert step["question"].endswith("?")
            assert step["source"]["reference"] in answer["references"]


def test_answers_have_defaults(client: httpx.Client) -> None:
    short = client.post("/v1/metrics/recommendations", json={"classes": "binary", "balanced": True})
    full = {"task": "classification", "error_priority": "both", "chance_corrected": False, "graphical": False}
    long = {**full, "classes": "binary", "balanced": True, "inputs": ["matrix"]}
    assert short.json() == client.post("/v1/metrics/recommendations", json=long).json()


@pytest.mark.parametrize(
    ("members", "pointer"),
    [
        ({"task": "regression"}, "/task"),
        ({"classes": "three"}, "/classes"),
        ({"balanced": "no"}, "/balanced"),
        ({"error_priority": "all"}, "/error_priority"),
        ({"inputs": []}, "/inputs"),
        ({"inputs": ["labels"]}, "/inputs/0"),
        ({"why": "?"}, "/why"),
    ],
)
def test_what_is_no_question(client: httpx.Client, members: dict[str, Any], pointer: str) -> None:
    reply = client.post("/v1/metrics/recommendations", json={"classes": "binary", "balanced": True} | members)
    assert check_problem(reply, 422, "invalid_request")["errors"][0]["pointer"] == pointer


# Bounds.


def bounds(client: httpx.Client, **members: Any) -> dict[str, Any]:
    reply = client.post("/v1/bounds/h-mean", json=members)
    assert reply.status_code == 200, reply.text
    check_json(reply)
    check_shape(reply, BoundsOfRecalls if "recalls" in members else BoundsOfWeakClasses)
    answer: dict[str, Any] = reply.json()
    assert answer["message"].endswith(".")
    return answer


@pytest.mark.parametrize("recalls", [[1, 1, 1, 0.16], [0.5], [0.2, 0.9], [0, 1], [0, 0], [1e-300, 1], [1] * 10_000])
def test_bounds_of_recalls(client: httpx.Client, recalls: list[float]) -> None:
    answer = bounds(client, recalls=recalls)
    assert answer["lower"] == min(recalls)
    assert answer["lower"] - 1e-12 <= answer["h_mean"] <= answer["upper"] + 1e-12
    assert recalls[answer["weakest"]] == min(recalls)


def test_bounds_of_weak_classes(client: httpx.Client) -> None:
    answer = bounds(client, classes=35, weak=1, max_recall=1, target=0.8)
    assert answer["critical_recall"] == pytest.approx(4 / 39)
    assert answer["critical_recall_rounded"] == 0.1025
    both = bounds(client, classes=4, weak=1, weak_recall=0.16, target=0.5)
    assert both["upper"] == pytest.approx(0.43243, abs=1e-5)
    assert both["target_reachable"] is False
    assert bounds(client, classes=4, weak=4, weak_recall=0.16)["upper"] == pytest.approx(0.16)
    assert bounds(client, classes=4, weak=1, weak_recall=0)["upper"] == 0
    out_of_reach = bounds(client, classes=4, weak=1, max_recall=0.5, target=0.6)
    assert out_of_reach["critical_recall"] is None
    assert "0.5" in out_of_reach["message"]


@each("target", [1e-9, 1e-6, 0.3, 1])
@each("max_recall", [1e-9, 0.3, 1])
@each(("classes", "weak"), [(1, 1), (1_000_000, 1), (1_000_000, 1_000_000)])
def test_bounds_at_the_ends(client: httpx.Client, target: float, max_recall: float, classes: int, weak: int) -> None:
    answer = bounds(client, classes=classes, weak=weak, max_recall=max_recall, target=target)
    assert (answer["critical_recall"] is None) == (target > max_recall)
    if target <= max_recall:
        assert 0 <= answer["critical_recall_rounded"] <= answer["critical_recall"] <= max_recall * (1 + 1e-9)


@each(
    "members",
    [
        {},
        {"classes": 3},
        {"weak": 1},
        {"classes": 3, "weak": 1},
        {"classes": 3, "weak": 4, "target": 0.5},
        {"classes": 0, "weak": 0, "target": 0.5},
        {"classes": 3, "weak": 1, "target": 0},
        {"classes": 3, "weak": 1, "target": 1.1},
        {"classes": 3, "weak": 1, "weak_recall": 0.9, "max_recall": 0.5},
        {"classes": 3.5, "weak": 1, "target": 0.5},
        {"classes": True, "weak": 1, "target": 0.5},
        {"recalls": []},
        {"recalls": [1.1]},
        {"recalls": [-0.1]},
        {"recalls": [None]},
        {"recalls": [0.5], "classes": 3, "weak": 1},
        {"recalls": [0.5], "worst": 1},
    ],
)
def test_what_has_no_bounds(client: httpx.Client, members: dict[str, Any]) -> None:
    check_problem(client.post("/v1/bounds/h-mean", json=members), 422, "invalid_request")


def test_a_key_is_answered_with_its_own_card(client: httpx.Client) -> None:
    """Though it is another metric's alias for classes: which is meant is said by the task."""
    for key, of_classes in (("hamming_loss", "error_rate"), ("micro_f1", "accuracy")):
        assert client.get(f"/v1/metrics/{key}").json()["key"] == key
        assert client.get(f"/v1/metrics/{key}", params={"task": "multilabel"}).json()["key"] == key
        assert client.get(f"/v1/metrics/{key}", params={"task": "multiclass"}).json()["key"] == of_classes
