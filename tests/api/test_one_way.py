"""Evaluations are named in one way everywhere, addresses are listed, and every route obeys `Accept`."""

from typing import Any

import httpx
import pytest

from tests.api.answers import check_problem, compute, create, evaluation, matrix_input

JSON_ONLY = ("/v1/evaluations", "/v1/models", "/v1/gates", "/v1/comparisons", "/v1/metrics/h_mean", "/v1/jobs")


@pytest.mark.parametrize("path", JSON_ONLY)
def test_what_is_written_as_json_alone_is_not_acceptable_otherwise(client: httpx.Client, path: str) -> None:
    for accept in ("text/csv", "application/xml"):
        check_problem(client.get(path, headers={"Accept": accept}), 406, "not_acceptable")
    for accept in ("application/json", "*/*", "text/html,application/*;q=0.1"):
        assert client.get(path, headers={"Accept": accept}).status_code == 200


def test_what_cannot_be_answered_is_not_done(client: httpx.Client) -> None:
    body = {"rules": [{"metric": "h_mean", "min": 0.5}]}
    check_problem(client.put("/v1/gates/unanswered", json=body, headers={"Accept": "text/csv"}), 406, "not_acceptable")
    check_problem(client.get("/v1/gates/unanswered"), 404, "not_found")


def test_the_root_lists_where_everything_is(client: httpx.Client) -> None:
    index = client.get("/").json()
    assert index == client.get("/v1").json()
    for address in index["links"].values():
        method = "POST" if address in ("/v1/evaluations/batch", "/v1/metrics/compute") else "GET"
        assert client.request(
            method, address, params={"dataset": "d"} if "leader" in address else {}
        ).status_code not in (
            404,
            405,
        ), address
    page = client.get("/", headers={"Accept": "text/html"})
    assert page.status_code == 303
    assert client.get("/", headers={"Accept": "text/html"}, follow_redirects=True).status_code == 200


def test_a_version_is_named_in_one_text(client: httpx.Client) -> None:
    old, new = (
        create(client, evaluation(dataset="texts") | {"model": {"name": "tumor-rf", "version": version}})["id"]
        for version in ("7", "8")
    )
    listed = client.get("/v1/evaluations", params={"model": "tumor-rf:7"}).json()["items"]
    assert [one["id"] for one in listed] == [old]
    compared = client.post("/v1/comparisons", json={"evaluations": ["tumor-rf:7", "tumor-rf:8"]}).json()
    assert [one["id"] for one in compared["evaluations"]] == [old, new]
    client.put("/v1/gates/of-texts", json={"rules": [{"metric": "h_mean", "min": 0.1}]})
    check = client.post("/v1/gates/of-texts/checks", json={"evaluation": "tumor-rf:7"}).json()
    assert check["evaluation"]["id"] == old
    missing = client.post("/v1/comparisons", json={"evaluations": ["tumor-rf:9", new]})
    assert check_problem(missing, 404, "not_found")["errors"][0]["pointer"] == "/evaluations/0"


def test_a_name_with_a_colon_comes_before_a_version(client: httpx.Client) -> None:
    whole = create(client, evaluation(model="a:1", dataset="colons"))["id"]
    create(client, evaluation(dataset="colons") | {"model": {"name": "a", "version": "1"}})
    assert [one["id"] for one in client.get("/v1/evaluations", params={"model": "a:1"}).json()["items"]] == [whole]


def test_a_name_with_a_colon_that_was_removed_hides_no_version(client: httpx.Client) -> None:
    mistaken = create(client, evaluation(model="b:1", dataset="colons"))["id"]
    assert client.delete(f"/v1/evaluations/{mistaken}").status_code == 204
    meant = create(client, evaluation(dataset="colons") | {"model": {"name": "b", "version": "1"}})["id"]
    assert [one["id"] for one in client.get("/v1/evaluations", params={"model": "b:1"}).json()["items"]] == [meant]
    assert client.get("/v1/evaluations/latest", params={"model": "b:1"}).json()["id"] == meant


@pytest.mark.parametrize("address", ["/v1/evaluations?model=c:1", "/v1/models/c:1"])
def test_what_is_removed_by_a_name_is_never_a_version(client: httpx.Client, address: str) -> None:
    """Neither when all of that name are gone, nor when it is asked for again."""
    meant = create(client, evaluation(dataset="colons") | {"model": {"name": "c", "version": "1"}})["id"]
    create(client, evaluation(model="c:1", dataset="colons"))
    assert client.delete(address).json() == {"dry_run": False, "n_evaluations": 1}
    for dry_run in ("true", "false"):
        again = client.delete(address, params={"dry_run": dry_run} | dict(httpx.URL(address).params))
        assert again.status_code == 404 or again.json()["n_evaluations"] == 0
    assert client.delete(f"/v1/evaluations/{meant}").status_code == 204


def test_the_latest_has_an_address(client: httpx.Client) -> None:
    create(client, evaluation(model="late", dataset="latest"))
    second = create(client, evaluation(model="late", dataset="latest"))
    asked = {"model": "late", "dataset": "latest"}
    assert client.get("/v1/evaluations/latest", params=asked).json() == second
    few = client.get("/v1/evaluations/latest", params={**asked, "fields": "headline"})
    assert few.json() == {"headline": second["headline"]}
    check_problem(client.get("/v1/evaluations/latest", params={"model": "nobody"}), 404, "not_found")


def test_rates_say_nothing_of_how_many_there_are(client: httpx.Client) -> None:
    headline = compute(client, matrix_input([[0.8, 0.2], [0.3, 0.7]], normalized=True))["headline"]
    assert (headline["n_samples"], headline["weakest_class"]["n"]) == (None, None)


def test_a_list_over_classes_ranks_nothing(client: httpx.Client) -> None:
    create(client, evaluation(dataset="ranked"))
    reply = client.get("/v1/leaderboard", params={"dataset": "ranked", "metric": "recall@*"})
    (fault,) = check_problem(reply, 422, "invalid_query")["errors"]
    assert fault["code"] == "not_comparable"
    assert "min(recall@*)" in fault["detail"]


ASKED = ["accuracy", "accuracy_score", "gps(recall@*, precision@2)", "f_beta(beta=2)@2", "min(recall@*)", "support@2"]


@pytest.mark.parametrize(
    ("intervals", "changes"),
    [("headline", {}), ("all", {}), ("none", {}), ("headline", {"normalized": True}), ("none", {"normalized": True})],
)
def test_what_was_asked_has_limits_or_a_reason(client: httpx.Client, intervals: str, changes: dict[str, bool]) -> None:
    source = matrix_input([[50, 3, 2], [4, 40, 6], [9, 1, 20]], **changes)
    answer = compute(client, source, metrics=ASKED, intervals=intervals)
    asked = answer["headline"]["requested"]
    assert list(asked) == ASKED
    for text, one in asked.items():
        known = [one["low"] is not None, "reason" in one and len(one["reason"]) > 0]
        assert known == (
            [True, False] if not changes and intervals != "none" and text != "support@2" else [False, True]
        )
        assert one["value"] == answer["requested"][text]
    assert asked["accuracy"] == asked["accuracy_score"]


def test_an_alias_has_the_limits_of_its_metric(client: httpx.Client) -> None:
    """Of any kind, with groups and weights: the same number under two names has one interval."""
    rows = {"y_true": list("aabbabab") * 5, "y_pred": list("abbbaaab") * 5}
    designs: tuple[dict[str, list[Any]], ...] = (
        {},
        {"group_ids": [place // 4 for place in range(40)]},
        {"sample_weight": [1.0, 2.0] * 20},
    )
    for more in designs:
        answer = compute(client, {"kind": "predictions", **rows, **more}, metrics=["accuracy_score", "f1@b", "mcc"])
        asked = answer["headline"]["requested"]
        assert asked["accuracy_score"] == answer["headline"]["metrics"]["accuracy"]
        assert {**answer["headline"]["metrics"]["mcc"], **asked["mcc"]} == asked["mcc"]
        assert asked["f1@b"]["low"] < asked["f1@b"]["value"] < asked["f1@b"]["high"]
