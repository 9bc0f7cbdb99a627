"""Lists by what evaluations are worth: conditions on values, some values only, and what no list can be sorted by."""

import operator
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import httpx
import pytest

from tests.api.answers import Json, check_problem, create, evaluation

COMPARED: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def walk(client: httpx.Client, **parameters: Any) -> Iterator[Json]:
    cursor = None
    while True:
        reply = client.get("/v1/evaluations", params=parameters | ({"cursor": cursor} if cursor else {}))
        assert reply.status_code == 200, reply.text
        page = reply.json()
        yield from page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return


@pytest.mark.parametrize(
    ("metric", "key"), [("h_mean", "h_mean"), ("kappa", "cohen_kappa"), ("chi_squared", "chi_squared")]
)
def test_a_condition_is_that_of_the_values(shelf: httpx.Client, shelved: list[Json], metric: str, key: str) -> None:
    everything = list(walk(shelf))
    values = sorted({item["metrics"][key] for item in everything if item["metrics"].get(key) is not None})
    for sign, number in product(COMPARED, (values[0], values[-1], 0.5)):
        expected = {
            item["id"]
            for item in everything
            if item["metrics"].get(key) is not None and COMPARED[sign](item["metrics"][key], number)
        }
        for sort in ("-created_at", "-accuracy"):
            found = [item["id"] for item in walk(shelf, where=f"{metric}{sign}{number!r}", sort=sort, limit=8)]
            assert set(found) == expected
            assert len(found) == len(expected)


def test_all_conditions_must_hold_beside_all_filters(shelf: httpx.Client, shelved: list[Json]) -> None:
    where = ["h_mean > 0.3", " accuracy<=8e-1 "]
    found = list(walk(shelf, where=where, model="other", tag="even:True"))
    everything = walk(shelf, model="other", tag="even:True")
    expected = [
        item["id"]
        for item in everything
        if (item["metrics"]["h_mean"] or 0) > 0.3 and item["metrics"]["accuracy"] <= 0.8
    ]
    assert expected
    assert [item["id"] for item in found] == expected


def test_what_is_undefined_satisfies_nothing(shelf: httpx.Client, shelved: list[Json]) -> None:
    low = {item["id"] for item in walk(shelf, where="h_mean<0.5")}
    high = {item["id"] for item in walk(shelf, where="h_mean>=0.5")}
    undefined = {item["id"] for item in walk(shelf) if item["metrics"]["h_mean"] is None}
    assert undefined
    assert not undefined & (low | high)
    assert len(low) + len(high) + len(undefined) == len(shelved)


def test_a_metric_that_no_evaluation_has_is_satisfied_by_none(shelf: httpx.Client, shelved: list[Json]) -> None:
    assert list(walk(shelf, where="ndcg_at_k(k=10)>=0")) == []


def test_a_cursor_belongs_to_its_conditions(shelf: httpx.Client, shelved: list[Json]) -> None:
    cursor = shelf.get("/v1/evaluations", params={"limit": 2, "where": "h_mean>0.3"}).json()["next_cursor"]
    for other in ({}, {"where": "h_mean>0.2"}, {"where": ["h_mean>0.3", "accuracy>0"]}):
        reply = shelf.get("/v1/evaluations", params={**other, "cursor": cursor})
        assert check_problem(reply, 422, "invalid_query")["errors"][0]["code"] == "cursor_of_another_list"


def test_a_tag_of_an_answer_belongs_to_its_conditions(shelf: httpx.Client, shelved: list[Json]) -> None:
    first = shelf.get("/v1/evaluations", params={"where": "h_mean>0.3"})
    known = {"If-None-Match": first.headers["etag"]}
    assert shelf.get("/v1/evaluations", params={"where": "h_mean>0.3"}, headers=known).status_code == 304
    assert shelf.get("/v1/evaluations", params={"where": "h_mean>0.5"}, headers=known).status_code == 200
    assert (
        shelf.get("/v1/evaluations", params={"where": "h_mean>0.3", "metrics": "mcc"}, headers=known).status_code == 200
    )


def test_only_the_values_that_are_asked_for(shelf: httpx.Client, shelved: list[Json]) -> None:
    whole = {item["id"]: item for item in walk(shelf)}
    for item in walk(shelf, metrics=["h_mean", "kappa", "ndcg_at_k(k=10)"], limit=7):
        full = whole[item["id"]]
        # What does not apply is not there, as in the whole list; an alias is answered by the key.
        assert item["metrics"] == {key: full["metrics"][key] for key in ("cohen_kappa", "h_mean")}
        assert {**item, "metrics": full["metrics"]} == full
    # What is shown is no matter of the place in a list.
    cursor = shelf.get("/v1/evaluations", params={"limit": 2}).json()["next_cursor"]
    assert shelf.get("/v1/evaluations", params={"metrics": "mcc", "cursor": cursor}).status_code == 200


@pytest.mark.parametrize(
    ("parameters", "code", "words"),
    [
        ({"where": "h_mean"}, "invalid_condition", "h_mean>=0.8"),
        ({"where": "h_mean=0.8"}, "invalid_condition", "one of <, <=, > and >="),
        ({"where": "h_mean>=<0.8"}, "invalid_condition", ""),
        ({"where": ">=0.8"}, "invalid_condition", ""),
        ({"where": "h_mean>="}, "invalid_condition", ""),
        ({"where": "h_mean>=high"}, "invalid_condition", "expected a number after >="),
        ({"where": "h_mean>=nan"}, "invalid_condition", ""),
        ({"where": "h_mean>=inf"}, "invalid_condition", ""),
        ({"where": "h_mean>=1e999"}, "invalid_condition", ""),
        ({"where": "h_mean>=1_0"}, "invalid_condition", ""),
        ({"where": "h_mean>=٣"}, "invalid_condition", ""),
        ({"where": "h_men>=0.8"}, "unknown_metric", "h_mean"),
        ({"where": "h_mean'; DROP TABLE evaluations; -->=1"}, "unknown_metric", ""),
        ({"where": "recall@D>=0.8"}, "not_stored", "GET /v1/leaderboard"),
        ({"where": "x" * 300 + ">1"}, "wrong_length", ""),
        ({"where": ["h_mean>0"] * 11}, "wrong_length", ""),
        ({"sort": "-recall@D"}, "not_stored", "recall@D is not stored"),
        ({"sort": "f_beta(beta=2)@D"}, "not_stored", ""),
        ({"sort": "-gps(recall@*, precision@D)"}, "not_stored", ""),
        ({"sort": "ndcg_at_k(k=7)"}, "not_stored", ""),
        ({"metrics": "h_men"}, "unknown_metric", "h_mean"),
        ({"metrics": ["mcc", "h_mean,mcc"]}, "unknown_metric", ""),
        ({"metrics": "recall@D"}, "not_stored", ""),
        ({"metrics": ["mcc"] * 101}, "wrong_length", ""),
        ({"fields": "id,value"}, "unknown_member", "values"),
    ],
    ids=str,
)
def test_what_is_no_condition(client: httpx.Client, parameters: dict[str, Any], code: str, words: str) -> None:
    problem = check_problem(client.get("/v1/evaluations", params=parameters), 422, "invalid_query")
    (fault,) = problem["errors"]
    assert fault["code"] == code
    assert fault["parameter"] in parameters
    assert words in fault["detail"]


def test_runs_whose_limits_need_samples_are_listed_without_whatever_limits_they_have(client: httpx.Client) -> None:
    """Also on the page of their dataset."""
    source = {"kind": "predictions", "y_true": [0, 1] * 9, "y_pred": [0, 1, 1] * 6}
    for more, options in (
        ({"group_ids": [index // 3 for index in range(18)]}, {"alternative": "greater"}),
        ({"sample_weight": [1.0, 2.0] * 9}, {"proportion_interval": "clopper_pearson"}),
    ):
        create(client, evaluation(dataset="of samples", input=source | more, options=options))
    reply = client.get("/v1/evaluations", params={"dataset": "of samples", "fields": "values", "metrics": "accuracy"})
    assert reply.status_code == 200, reply.text
    for item in reply.json()["items"]:
        accuracy = item["values"]["accuracy"]
        assert (accuracy["value"], accuracy["low"]) == (pytest.approx(0.5, abs=0.1), None)
    assert client.get("/ui", params={"dataset": "of samples"}).status_code == 200
