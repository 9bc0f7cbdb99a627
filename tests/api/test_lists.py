"""Lists of evaluations, models and datasets: filters, orders, and pages that miss nothing and repeat nothing."""

from collections.abc import Iterator
from dataclasses import asdict
from itertools import product
from typing import Any

import httpx
import pytest

from app.api.cursors import Listing, encode_cursor, place_in
from app.api.v1.listing import Filters
from app.domain.evaluation import EvaluationSummary
from tests.api.answers import Json, check_json, check_problem, check_shape, create, evaluation, matrix_input
from tests.bank import each

# H is undefined in the last: a class has no samples. The two first tie in everything.
MATRICES = [[[4, 1], [1, 4]], [[8, 2], [2, 8]], [[9, 1], [5, 5]], [[3, 7], [6, 4]], [[7, 3], [0, 0]]]


@pytest.fixture(scope="module")
def kept(client: httpx.Client) -> list[Json]:
    """Forty evaluations of few models and datasets, oldest first."""
    bodies = []
    for index, (model, dataset) in enumerate(product([("m", "1"), ("m", "2"), ("m", None), ("n", "1")], range(10))):
        body = evaluation(
            input=matrix_input(MATRICES[index % 5]), tags={"even": str(index % 2 == 0), "at": str(index % 7)}
        )
        body["model"] = {"name": model[0]} | ({"version": model[1]} if model[1] else {})
        body["dataset"] = {
            "name": "d" if dataset < 7 else "e",
            "split": "test" if dataset % 2 else "train",
            "version": "1",
        }
        bodies.append(body)
    return [create(client, body) for body in bodies]


def walk(client: httpx.Client, path: str = "/v1/evaluations", **parameters: Any) -> Iterator[Json]:
    """All items, page after page."""
    cursor = None
    while True:
        reply = client.get(path, params=parameters | ({"cursor": cursor} if cursor else {}))
        assert reply.status_code == 200, reply.text
        check_json(reply)
        page = reply.json()
        assert len(page["items"]) <= parameters.get("limit", 50)
        yield from page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return


def summary_of(full: Json) -> Json:
    """What a list shows of an evaluation."""
    members = ("kind", "content", "n_samples", "n_classes", "labels", "positive")
    return {
        **{name: full[name] for name in ("id", "created_at", "model", "dataset", "tags")},
        "input": {name: full["input"][name] for name in members},
    }


FINDINGS = "id,created_at,model,dataset,tags,input,metrics,findings"


def test_a_list_shows_what_is_kept(client: httpx.Client, kept: list[Json]) -> None:
    reply = client.get("/v1/evaluations", params={"limit": 200})
    check_shape(reply, Listing[EvaluationSummary])
    items = reply.json()["items"]
    for item, full in zip(items, reversed(kept), strict=True):
        metrics = item.pop("metrics")
        assert item == summary_of(full)
        groups = full["metrics"]["prevalence_insensitive"] | full["metrics"]["prevalence_sensitive"]
        assert metrics == {key: groups[key] for key in metrics}
        assert {"accuracy", "h_mean", "mcc", "gps_upm"} <= set(metrics)
        # In a list nobody pays for the whole report.
        assert "intervals" not in item


def test_findings_of_a_list_are_those_of_the_reports(client: httpx.Client, kept: list[Json]) -> None:
    reply = client.get("/v1/evaluations", params={"limit": 30, "fields": FINDINGS, "metrics": "mcc"})
    check_shape(reply, Listing[EvaluationSummary])
    items = reply.json()["items"]
    assert len(items) == 30
    for item, full in zip(items, reversed(kept), strict=False):
        assert item["id"] == full["id"]
        said = [(one["code"], one["severity"]) for one in full["findings"]]
        assert [(one["code"], one["severity"]) for one in item["findings"]] == said
        for one, finding in zip(item["findings"], full["findings"], strict=True):
            evidence = finding["evidence"]
            first = evidence["classes"][0]["class"] if evidence.get("classes") else evidence.get("class")
            assert one["class"] == first
    codes = {one["code"]: one for item in items for one in item["findings"]}
    assert codes["no_samples"]["class"] == "1"
    plain = client.get("/v1/evaluations", params={"limit": 1}).json()["items"][0]
    assert "findings" not in plain


def test_what_is_no_matrix_of_classes_has_no_findings_in_a_list(client: httpx.Client) -> None:
    body = evaluation(input={"kind": "multilabel", "y_true": [["a"], ["b"]], "y_pred": [["a"], ["a", "b"]]})
    body["model"] = {"name": "labels of a list"}
    made = create(client, body)
    (item,) = client.get("/v1/evaluations", params={"model": "labels of a list", "fields": FINDINGS}).json()["items"]
    assert item["id"] == made["id"]
    assert "findings" not in item
    # The other tests count what there is.
    assert client.delete(f"/v1/evaluations/{made['id']}").status_code == 204


def test_findings_about_labels_alone_name_the_first(client: httpx.Client) -> None:
    body = evaluation(input={"kind": "predictions", "y_true": ["a", "b", "x"], "y_pred": ["a", "b", "a"]})
    body["input"]["ignore"] = ["x"]
    body["model"] = {"name": "labels left out"}
    made = create(client, body)
    (item,) = client.get("/v1/evaluations", params={"model": "labels left out", "fields": "findings"}).json()["items"]
    assert {"code": "ignored_classes", "severity": "note", "class": "x"} in item["findings"]
    assert client.delete(f"/v1/evaluations/{made['id']}").status_code == 204


FILTERS: list[tuple[dict[str, Any], Any]] = [
    ({"model": "m"}, lambda e: e["model"]["name"] == "m"),
    ({"model": "m", "model_version": "2"}, lambda e: e["model"] == {"name": "m", "version": "2"}),
    ({"model_version": "1"}, lambda e: e["model"]["version"] == "1"),
    ({"dataset": "e"}, lambda e: e["dataset"]["name"] == "e"),
    ({"dataset_version": "1"}, lambda _: True),
    ({"dataset_version": "2"}, lambda _: False),
    ({"split": "test"}, lambda e: e["dataset"]["split"] == "test"),
    ({"dataset": "d", "split": "train"}, lambda e: e["dataset"] == {"name": "d", "version": "1", "split": "train"}),
    ({"tag": "even:True"}, lambda e: e["tags"]["even"] == "True"),
    ({"tag": ["even:True", "at:3"]}, lambda e: e["tags"] == {"even": "True", "at": "3"}),
    ({"tag": ["at:3", "at:4"]}, lambda _: False),
    ({"model": "n", "tag": "at:0"}, lambda e: (e["model"]["name"], e["tags"]["at"]) == ("n", "0")),
    ({"model": "unheard of"}, lambda _: False),
    ({"model": "M"}, lambda _: False),
]  # fmt: skip


@each(("parameters", "passes"), FILTERS, ids=[str(parameters) for parameters, _ in FILTERS])
@each("sort", ["-created_at", "created_at", "-h_mean", "accuracy"])
def test_filters(client: httpx.Client, kept: list[Json], parameters: dict[str, Any], passes: Any, sort: str) -> None:
    expected = {item["id"] for item in kept if passes(item)}
    found = [item["id"] for item in walk(client, **parameters, sort=sort, limit=7 if sort == "-h_mean" else 100)]
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_times(client: httpx.Client, kept: list[Json]) -> None:
    moment = kept[20]["created_at"]
    after = [item["created_at"] for item in walk(client, created_after=moment)]
    before = [item["created_at"] for item in walk(client, created_before=moment)]
    assert min(after) == moment
    assert max(before) < moment
    assert len(after) + len(before) == len(kept)
    # With an offset, without one (UTC), as a date, and far out.
    assert len(list(walk(client, created_after=moment.replace("Z", "+00:00")))) == len(after)
    assert len(list(walk(client, created_after=moment.removesuffix("Z")))) == len(after)
    assert len(list(walk(client, created_after="2020-01-01"))) == len(kept)
    for far in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "1970-01-01T00:00:00Z"):
        assert client.get("/v1/evaluations", params={"created_after": far}).status_code == 200
        assert client.get("/v1/evaluations", params={"created_before": far}).status_code == 200


@each(
    ("metric", "limit"),
    [
        ("h_mean", 3),
        ("h_mean", 200),
        *((metric, 13) for metric in ("accuracy", "mcc", "kappa", "gps_upm", "chi_squared", "ac_score")),
    ],
)
def test_sorting_by_a_metric(client: httpx.Client, kept: list[Json], metric: str, limit: int) -> None:
    """By key or alias, in both directions; undefined last in both; ties in the order of time."""
    key = {"kappa": "cohen_kappa", "ac_score": "h_mean"}.get(metric, metric)
    for sign, descending in (("-", True), ("", False)):
        items = list(walk(client, sort=sign + metric, limit=limit))
        assert len({item["id"] for item in items}) == len(items) == len(kept)
        places = [(item["metrics"][key] is None, item["metrics"][key] or 0.0, item["id"]) for item in items]
        defined = [place[1:] for place in places if not place[0]]
        assert defined == sorted(defined, reverse=descending)
        assert [place[0] for place in places] == sorted(place[0] for place in places)
        undefined = [place[2] for place in places if place[0]]
        assert undefined == sorted(undefined, reverse=descending)


def test_sorting_by_time(client: httpx.Client, kept: list[Json]) -> None:
    ids = [item["id"] for item in kept]
    assert [item["id"] for item in walk(client, sort="created_at", limit=9)] == ids
    assert [item["id"] for item in walk(client, sort="-created_at", limit=9)] == ids[::-1]
    assert [item["id"] for item in walk(client)] == ids[::-1]


def test_a_page_does_not_move_when_something_is_added(client: httpx.Client, kept: list[Json]) -> None:
    first = client.get("/v1/evaluations", params={"limit": 5, "model": "m"}).json()
    added = create(client, evaluation(model="m", tags={"even": "no", "at": "no"}))
    second = client.get("/v1/evaluations", params={"limit": 5, "model": "m", "cursor": first["next_cursor"]}).json()
    client.delete(f"/v1/evaluations/{added['id']}")
    expected = [item["id"] for item in reversed(kept) if item["model"]["name"] == "m"][:10]
    assert [item["id"] for item in first["items"] + second["items"]] == expected


def test_a_cursor_belongs_to_its_list(client: httpx.Client, kept: list[Json]) -> None:
    cursor = client.get("/v1/evaluations", params={"limit": 5, "model": "m"}).json()["next_cursor"]
    others: list[dict[str, Any]] = [
        {},
        {"model": "n"},
        {"model": "m", "split": "test"},
        {"model": "m", "sort": "created_at"},
        {"model": "m", "sort": "-h_mean"},
        {"model": "m", "tag": "at:1"},
        {"model": "m", "created_after": "2020-01-01"},
    ]
    for parameters in others:
        problem = check_problem(
            client.get("/v1/evaluations", params={**parameters, "cursor": cursor}), 422, "invalid_query"
        )
        assert problem["errors"][0]["parameter"] == "cursor"
        assert problem["errors"][0]["code"] == "cursor_of_another_list"
    for path in ("/v1/models", "/v1/datasets"):
        check_problem(client.get(path, params={"cursor": cursor}), 422, "invalid_query")
    # The number of items is free.
    assert client.get("/v1/evaluations", params={"limit": 9, "model": "m", "cursor": cursor}).status_code == 200


@each("path", ["/v1/evaluations", "/v1/models", "/v1/datasets"])
@each(
    "cursor",
    [
        "x",
        "!!!!",
        "é",
        "bnVsbA",
        "W10",
        "WzEsMl0",
        "WyJhIiwiYiIsMV0",
        "eyJhIjoxfQ",
        "A" * 3000,
        "%00",
        "WyJcdTAwMDAiXQ",
    ],
)
def test_what_is_no_cursor(client: httpx.Client, path: str, cursor: str) -> None:
    problem = check_problem(client.get(path, params={"cursor": cursor}), 422, "invalid_query")
    assert problem["errors"][0]["parameter"] == "cursor"


@pytest.mark.parametrize("sort", ["-created_at", "-h_mean"])
def test_forged_cursors_do_no_harm(client: httpx.Client, kept: list[Json], sort: str) -> None:
    cursor = client.get("/v1/evaluations", params={"limit": 5, "sort": sort}).json()["next_cursor"]
    filters = {**asdict(Filters()), "sort": sort}
    assert place_in(cursor, filters, (str, object), lambda *values: values)
    for place in (
        ["x", 1],
        ["0" * 32, 1e308],
        ["f" * 32, -0.0],
        [kept[0]["id"], None],
        [kept[0]["id"], 2**63],
        [1, 2],
        [None, "x"],
        ["a\x00", 1],
    ):
        reply = client.get("/v1/evaluations", params={"sort": sort, "cursor": encode_cursor(place, filters)})
        assert reply.status_code in (200, 422)
        check_json(reply)


def test_models_and_datasets(client: httpx.Client, kept: list[Json]) -> None:
    models = list(walk(client, "/v1/models", limit=1))
    assert models == list(walk(client, "/v1/models"))
    assert models == [
        {"name": "m", "version": "1"},
        {"name": "m", "version": "2"},
        {"name": "m", "version": None},
        {"name": "n", "version": "1"},
    ]
    datasets = list(walk(client, "/v1/datasets", limit=1))
    assert datasets == [{"name": n, "version": "1", "split": s} for n in ("d", "e") for s in ("test", "train")]


@each(
    ("query", "parameter", "code"),
    [
        ("limit=0", "limit", "out_of_range"),
        ("limit=201", "limit", "out_of_range"),
        ("limit=x", "limit", "wrong_type"),
        ("limit=1e400", "limit", "wrong_type"),
        ("limit=99999999999999999999", "limit", "out_of_range"),
        ("sort=", "sort", "unknown_metric"),
        ("sort=-", "sort", "unknown_metric"),
        ("sort=--h_mean", "sort", "unknown_metric"),
        ("sort=h_men", "sort", "unknown_metric"),
        ("sort=recall", "sort", "unknown_metric"),
        ("sort=gps", "sort", "unknown_metric"),
        ("sort=h_mean%00", "sort", "nul_character"),
        ("tag=x", "tag", "invalid_tag"),
        ("tag=:x", "tag", "invalid_tag"),
        ("tag=a:b%00", "tag", "nul_character"),
        ("model=a%00b", "model", "nul_character"),
        ("split=%00", "split", "nul_character"),
        ("dataset=x&dataset=y", "dataset", "repeated_parameter"),
        ("limit=5&limit=5", "limit", "repeated_parameter"),
        ("created_after=yesterday", "created_after", "wrong_value"),
        ("created_before=2026-13-01", "created_before", "wrong_value"),
        ("modle=m", "modle", "unknown_parameter"),
        ("model=" + "x" * 257, "model", "wrong_length"),
        ("&".join(f"tag=a:{index}" for index in range(21)), "tag", "wrong_length"),
    ],
    ids=lambda value: value[:24],
)
def test_what_is_no_filter(client: httpx.Client, query: str, parameter: str, code: str) -> None:
    problem = check_problem(client.get(f"/v1/evaluations?{query}"), 422, "invalid_query")
    (fault,) = problem["errors"]
    assert (fault["parameter"], fault["code"]) == (parameter, code)
    assert problem["detail"].startswith(f"{parameter}: ")


def test_a_misspelt_name_is_answered_with_the_right_one(client: httpx.Client) -> None:
    assert "h_mean" in client.get("/v1/evaluations?sort=h_men").json()["detail"]
    assert "did you mean model?" in client.get("/v1/evaluations?modle=m").json()["detail"]
    assert "did you mean store?" in client.post("/v1/evaluations?stor=false", json=evaluation()).json()["detail"]


@each("moment", ["2026-01-01T12:00+02:00", "2026-01-01T12:00:00.5+0200"])
def test_a_plus_in_an_address_has_to_be_written_otherwise(client: httpx.Client, moment: str) -> None:
    problem = check_problem(client.get(f"/v1/evaluations?created_after={moment}"), 422, "invalid_query")
    assert "plus written as %2B" in problem["errors"][0]["detail"]
    assert client.get(f"/v1/evaluations?created_after={moment.replace('+', '%2B')}").status_code == 200


@pytest.mark.parametrize("parameter", ["created_after", "created_before"])
@pytest.mark.parametrize("value", ["2026", "0.5", "-1", "1760000000"])
def test_a_number_is_no_moment(client: httpx.Client, parameter: str, value: str) -> None:
    """2026 would be taken for seconds since 1970, and the list for one of that year."""
    problem = check_problem(client.get("/v1/evaluations", params={parameter: value}), 422, "invalid_query")
    assert problem["errors"][0]["parameter"] == parameter
