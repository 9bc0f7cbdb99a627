"""The history of a model: values in order, where they were expected, changes with their causes, pages."""

import asyncio
import csv
import time
from datetime import UTC, datetime
from io import StringIO
from typing import Any
from uuid import uuid4

import httpx
import pytest

from app.api.answers import answer_model
from app.api.documents.history import causes_of
from app.api.documents.reading import in_names, naming
from app.api.plots.histories import _edges
from app.api.plots.look import Look
from app.api.plots.registry import PLOTS, FigureData, Subject
from app.api.v1.history import asked_history
from app.domain.evaluation import DatasetRef
from app.domain.wording import PAGE, PLAIN
from app.services.history import HistoryPage
from examples import history as example
from tests.api.answers import Json, check_problem, create, evaluation, matrix_input
from tests.api.decisions import keep_labels
from tests.api.plots.world import check_specification, layer

EARLIER = [[819, 91], [18, 72]]
LATER = [[864, 96], [10, 30]]


def keep(client: httpx.Client, matrix: Any, name: str, version: int) -> str:
    body = evaluation(model=name, dataset="weeks", input=matrix_input(matrix))
    body["model"]["version"] = str(version)
    return str(create(client, body)["id"])


def history(client: httpx.Client, name: str, **params: Any) -> Json:
    reply = client.get(f"/v1/models/{name}/history", params={"dataset": "weeks", **params})
    assert reply.status_code == 200, reply.text
    answer: Json = reply.json()
    if "fields" not in params:
        answer_model(HistoryPage).model_validate(answer)
    return answer


@pytest.fixture(scope="module")
def weeks(client: httpx.Client) -> tuple[str, list[str]]:
    """Six weeks with a class at 9 %, then six at 4 %."""
    name = uuid4().hex
    return name, [keep(client, EARLIER if week < 6 else LATER, name, week) for week in range(12)]


def test_a_rarer_class_changes_precision_and_not_recall(client: httpx.Client, weeks: tuple[str, list[str]]) -> None:
    name, kept = weeks
    answer = history(client, name, metric=["precision@1", "recall@1"])
    assert [one["evaluation"] for one in answer["items"]] == kept
    assert [one["version"] for one in answer["items"]] == [str(week) for week in range(12)]
    assert answer["next_cursor"] is None
    (change,) = answer["changes"]
    assert (change["metric"], change["from"], change["to"]) == ("precision@1", kept[5], kept[6])
    assert change["before"] == pytest.approx(72 / 163)
    assert change["after"] == pytest.approx(30 / 126)
    difference = change["difference"]
    assert difference["low"] < difference["value"] < difference["high"] < 0
    assert difference["p_adjusted"] < 0.05
    causes = change["causes"]["items"]
    assert sum(one["value"] for one in causes) == pytest.approx(30 / 126 - 72 / 163)
    assert causes[0]["value"] == pytest.approx(-1647125 / 8680728)
    assert "precision@1 fell by 0.204; 0.190 of it because 1 became rarer (9 % to 4 %" in change["message"]
    claimed = kept.index(change["claimed_at"])
    for place, item in enumerate(answer["items"]):
        value = item["metrics"]["precision@1"]
        if place == 0:
            assert value["expected"] is None
            continue
        inside = value["expected"]["low"] <= value["value"] <= value["expected"]["high"]
        assert inside is (place != claimed)
    assert all(one["metrics"]["recall@1"]["low"] >= 0 for one in answer["items"])


def test_a_series_is_of_all_versions_kinds_and_orders_of_classes(client: httpx.Client) -> None:
    """Each value is that of its own evaluation, and they stand in the order in which they were made."""
    name, kept = uuid4().hex, []
    for place, split in enumerate(("a", "b", "a", "a")):
        body = evaluation(model=name, dataset="weeks", input=matrix_input([[80 - place, 20 + place], [10, 90]]))
        body |= {"model": {"name": name, "version": None if place == 1 else str(place)}}
        body["dataset"] |= {"version": split, "split": split}
        if place == 2:
            body["input"] |= {"matrix": [[90, 10], [22, 78]], "labels": ["1", "0"], "positive": "1"}
        if place == 3:
            body["input"] = {"kind": "predictions", "y_true": ["0", "1"] * 50, "y_pred": ["0", "1", "1", "1"] * 25}
        kept.append(str(create(client, body)["id"]))
    answer = history(client, name, metric="recall@0")
    assert [one["evaluation"] for one in answer["items"]] == kept
    assert [one["version"] for one in answer["items"]] == ["0", None, "2", "3"]
    assert [one["metrics"]["recall@0"]["value"] for one in answer["items"]] == [0.8, 0.79, 0.78, 0.5]
    assert [one["n_samples"] for one in answer["items"]] == [200, 200, 200, 100]
    some = history(client, name, metric="recall@0", split="b")["items"]
    assert [one["evaluation"] for one in some] == [kept[1]]


def test_evaluations_of_several_tasks_are_a_series_of_metrics_that_only_one_has(client: httpx.Client) -> None:
    name = uuid4().hex
    queries = {
        "kind": "ranking",
        "query_ids": [1, 1, 2, 2, 3, 3],
        "relevance": [1, 0, 0, 1, 1, 0],
        "scores": [2, 1] * 3,
    }
    sets = {"kind": "multilabel", "y_true": [["a"], ["b"], ["a", "b"]] * 9, "y_pred": [["a"], ["a", "b"], ["b"]] * 9}
    for source in (matrix_input(EARLIER, labels=["a", "b"]), queries, sets):
        create(client, evaluation(model=name, dataset="weeks", input=source))
    found = [one["metrics"]["ndcg_at_k(k=10)"] for one in history(client, name, metric="ndcg_at_k(k=10)")["items"]]
    assert [one["value"] is None for one in found] == [True, False, True]
    assert found[1]["low"] < found[1]["value"] < found[1]["high"]
    assert [bool(one.get("reason")) for one in found] == [True, False, True]
    reply = client.get(f"/v1/models/{name}/history", params={"dataset": "weeks", "metric": "h_mean"})
    (fault,) = check_problem(reply, 422, "invalid_query")["errors"]
    assert (fault["parameter"], fault["code"]) == ("metric", "incomparable_runs")
    assert "several tasks, and h_mean is not the same in each" in fault["detail"]


def test_pages_have_the_changes_of_the_whole_series(client: httpx.Client, weeks: tuple[str, list[str]]) -> None:
    name, kept = weeks
    whole = history(client, name, metric="precision@1")
    found, cursor = [], None
    for _ in range(3):
        page = history(client, name, metric="precision@1", limit=5, **({} if cursor is None else {"cursor": cursor}))
        assert page["changes"] == whole["changes"]
        found += page["items"]
        cursor = page["next_cursor"]
    assert cursor is None
    assert found == whole["items"]
    # A page of one is no series of one.
    where = f"/v1/models/{name}/history?dataset=weeks&metric=precision@1&limit=1"
    text = client.get(where, headers={"Accept": "text/plain"}).text
    assert whole["changes"][0]["message"][:30] in text.partition("RESULT")[2].partition("\n\n")[0]
    assert "1 evaluation, more follow" in text
    short = history(client, name, metric="precision@1", fields="evaluation,metrics")
    assert {*short["items"][0]} == {"evaluation", "metrics"}
    later = whole["items"][6]["created_at"]
    since = history(client, name, metric="precision@1", created_after=later)
    assert [one["evaluation"] for one in since["items"]] == kept[6:]
    assert since["changes"] == []


def test_pages_go_on_where_the_last_evaluation_of_one_was_removed(client: httpx.Client) -> None:
    name = uuid4().hex
    kept = [keep(client, EARLIER, name, week) for week in range(4)]
    cursor = history(client, name, metric="recall@1", limit=2)["next_cursor"]
    assert client.delete(f"/v1/evaluations/{kept[1]}").status_code == 204
    rest = history(client, name, metric="recall@1", limit=2, cursor=cursor)
    assert [one["evaluation"] for one in rest["items"]] == kept[2:]


def test_a_series_begins_at_a_moment_of_utc_wherever_the_service_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        asked = asyncio.run(asked_history(DatasetRef("weeks"), created_after=datetime(2026, 11, 28, 9)))  # noqa: DTZ001
    finally:
        monkeypatch.undo()
        time.tzset()
    assert asked.created_after == datetime(2026, 11, 28, 9, tzinfo=UTC)


def test_what_is_usual_is_asked_where_no_metric_is_named(client: httpx.Client, weeks: tuple[str, list[str]]) -> None:
    assert {*history(client, weeks[0])["items"][0]["metrics"]} == {"h_mean"}


def test_refusals(client: httpx.Client, weeks: tuple[str, list[str]]) -> None:
    name = weeks[0]
    where = f"/v1/models/{name}/history"
    check_problem(client.get(where, params={"dataset": "nowhere"}), 404, "not_found")
    check_problem(client.get("/v1/models/nobody/history", params={"dataset": "weeks"}), 404, "not_found")
    check_problem(client.get(where, params={"dataset": "weeks", "metric": "recall@*"}), 422, "invalid_query")
    check_problem(client.get(where, params={"dataset": "weeks", "metric": "recal@1"}), 422, "invalid_query")
    check_problem(client.get(where, params={"dataset": "weeks", "cursor": "x"}), 422, "invalid_query")
    reply = client.get(where, params={"dataset": "weeks", "metric": "recall@nothing"})
    assert reply.json()["items"][0]["metrics"]["recall@nothing"]["reason"]


@pytest.mark.parametrize("ending", ["history", "history/plots/history.svg"])
def test_no_model_has_the_address_of_a_history(client: httpx.Client, ending: str) -> None:
    """Names of models may have slashes, so that `NAME/history` would be read as the history of NAME."""
    name = f"{uuid4().hex}/{ending}"
    body = evaluation(model=name, dataset="weeks", input=matrix_input(EARLIER))
    problem = check_problem(client.post("/v1/evaluations", json=body), 422, "invalid_input")
    assert problem["errors"][0]["pointer"] == "/model/name"
    assert client.post("/v1/evaluations", params={"store": "false"}, json=body).status_code == 200
    reply = client.delete(f"/v1/models/{name}")
    check_problem(reply, 405, "method_not_allowed")
    assert reply.headers["allow"] == "GET, HEAD, OPTIONS"
    keep(client, EARLIER, f"{name}/2", 1)
    assert client.get(f"/v1/models/{name}/2").json()["name"] == f"{name}/2"


@pytest.mark.parametrize("name", [".", ".."])
@pytest.mark.parametrize("member", ["model", "dataset"])
def test_no_name_is_a_step_within_an_address(client: httpx.Client, member: str, name: str) -> None:
    """Clients leave them out of addresses, percent-encoded too."""
    body = evaluation() | {member: {"name": name}}
    problem = check_problem(client.post("/v1/evaluations", json=body), 422, "invalid_input")
    assert problem["errors"][0]["pointer"] == f"/{member}/name"


def test_a_history_in_words(client: httpx.Client, weeks: tuple[str, list[str]]) -> None:
    """Texts, CSV and pages say the same numbers and the sentence of the change."""
    name, kept = weeks
    where, asked = f"/v1/models/{name}/history", {"dataset": "weeks", "metric": ["precision@1", "recall@1"]}
    answer = client.get(where, params=asked).json()
    (change,), band = answer["changes"], answer["items"][-1]["metrics"]["recall@1"]["expected"]
    found = {kind: client.get(where, params=asked, headers={"Accept": kind}) for kind in ("text/plain", "text/html")}
    for kind, reply in found.items():
        assert reply.headers["content-type"] == f"{kind}; charset=utf-8"
        for said in ("class prevalence", "12 evaluations"):
            assert said in reply.text, (kind, said)
    # Of one change the sentence stands there once.
    assert " ".join(found["text/plain"].text.split()).count(change["message"]) == 1
    # Every number of a text has the decimals and signs of texts, those of a page have their own.
    assert f"  {PLAIN.interval(band['low'], band['high'])}" in found["text/plain"].text
    assert f">{PAGE.interval(band['low'], band['high'])}<" in found["text/html"].text
    assert found["text/plain"].text.isascii()
    # Each metric has a table of its own, which a terminal has room for.
    assert max(map(len, found["text/plain"].text.splitlines())) <= 80
    assert in_names(naming(change["message"], ["precision@1"])) in found["text/html"].text
    assert "<svg" in found["text/html"].text
    reply = client.get(where, params=asked, headers={"Accept": "text/csv"})
    lines = list(csv.DictReader(StringIO(reply.text)))
    assert [one["evaluation_id"] for one in lines[::2]] == kept
    assert [float(lines[place]["value"]) for place in (0, -2)] == [72 / 163, 30 / 126]
    assert [one["evaluation_id"] for one in lines if one["change"]] == [change["to"]]
    refused = client.get(where, params={**asked, "fields": "metrics"}, headers={"Accept": "text/csv"})
    (fault,) = check_problem(refused, 422, "invalid_query")["errors"]
    assert (fault["parameter"], fault["code"]) == ("fields", "not_json")


def text_of(client: httpx.Client, name: str, *metrics: str) -> str:
    asked = {"dataset": "weeks", "metric": metrics}
    return client.get(f"/v1/models/{name}/history", params=asked, headers={"Accept": "text/plain"}).text


def test_a_text_has_all_values_and_all_changes(client: httpx.Client) -> None:
    """Beside a reason the other values stand as they are; of many changes each has a line."""
    name = uuid4().hex
    for place in range(12):
        keep(client, EARLIER if place // 3 % 2 else LATER, name, place)
    text = text_of(client, name, "precision@1", "accuracy", "prevalence@1", "recall@ill")
    changes = history(client, name, metric=["precision@1", "accuracy", "prevalence@1", "recall@ill"])["changes"]
    assert len(changes) > 3
    said = " ".join(text.partition("\n\n")[0].split())
    assert [one["message"] for one in changes[:4] if one["message"] not in said] == []
    reasons = uuid4().hex
    for place in range(2):
        keep(client, EARLIER, reasons, place)
    text = text_of(client, reasons, "recall@ill", "recall@1")
    assert "Nothing changed beyond chance." in text
    assert text.count("there is no class 'ill'") == text.count("0.800") == 2
    assert "there are no two values" in " ".join(text_of(client, reasons, "recall@ill").split())


def test_values_without_limits_are_no_sign_that_nothing_changed(client: httpx.Client) -> None:
    name = uuid4().hex
    for rates in ([[0.4, 0.1], [0.1, 0.4]], [[0.1, 0.4], [0.1, 0.4]]):
        new = evaluation(model=name, dataset="weeks", input=matrix_input(rates, normalized=True))
        create(client, new)
    said = "No change is claimed: there are no two values with limits."
    assert said in " ".join(text_of(client, name, "accuracy").split())
    params = {"dataset": "weeks", "metric": "accuracy"}
    drawn = client.get(f"/v1/models/{name}/history/plots/history.json", params=params).json()
    assert drawn["description"].endswith(said)


def test_a_history_as_a_figure(client: httpx.Client, weeks: tuple[str, list[str]]) -> None:
    """The figure has the values, where they were expected, and the change between two evaluations."""
    where, params = f"/v1/models/{weeks[0]}/history/plots", {"dataset": "weeks", "metric": "precision@1"}
    answer = history(client, weeks[0], metric="precision@1")
    drawn = check_specification(client.get(f"{where}/history.json", params=params))
    layers = {one["name"]: one["data"]["values"] for one in drawn["vconcat"][0]["layer"] if "name" in one}
    values = [one["metrics"]["precision@1"] for one in answer["items"]]
    assert [row["value"] for row in layers["values_0"]] == [one["value"] for one in values]
    assert [row["low"] for row in layers["expected_0"]] == [one["expected"]["low"] for one in values if one["expected"]]
    assert layers["changes_0"] == [{"at": 6.5, "said": "0.442 to 0.238"}]
    assert layer(drawn["vconcat"][0], "values")["mark"]["style"] == "moves"
    assert "Precision of 1 changed from 0.442 to 0.238" in drawn["description"]
    assert client.get(f"{where}/history.svg", params=params).headers["content-type"] == "image/svg+xml"
    problem = check_problem(client.get(f"{where}/roc.json", params=params), 422, "invalid_path")
    assert problem["errors"][0]["parameter"] == "name"
    (fall,) = check_specification(client.get(f"{where}/causes.json", params=params))["vconcat"]
    bars = layer(fall, "parts")["data"]["values"]
    assert fall["title"]["text"] == "Precision of 1, 0.442 to 0.238"
    assert bars[-1]["to"] == pytest.approx(answer["changes"][0]["causes"]["difference"])
    reply = client.delete(f"{where}/history.svg")
    assert (reply.status_code, reply.headers["allow"]) == (405, "GET, HEAD, OPTIONS")


def test_a_figure_of_several_days_has_an_axis_of_time() -> None:
    """Four weeks apart, then one day: what is between two evaluations is halved."""
    value = {"value": 0.8, "low": 0.7, "high": 0.9, "expected": {"low": 0.6, "high": 1.0}}
    days = ("2026-01-01T06:00:00Z", "2026-01-29T06:00:00Z", "2026-01-30T06:00:00Z")
    items = [{"evaluation": one, "created_at": one, "metrics": {"recall@1": value}} for one in days]
    change = {"metric": "recall@1", "to": days[2], "before": 0.9, "after": 0.7}
    answer = {
        "model": "m",
        "dataset": {"name": "d", "version": None, "split": None},
        "items": items,
        "changes": [change],
    }
    drawn = PLOTS[Subject.HISTORY, "history"].make(FigureData(answer=answer)).specification(Look())
    (panel,) = drawn["vconcat"]
    assert [row["place"] for row in layer(panel, "values")["data"]["values"]] == [0, 28, 29]
    bands = [(row["from"], row["to"]) for row in layer(panel, "expected")["data"]["values"]]
    assert bands == [(-14, 14), (14, 28.5), (28.5, 29.5)]
    assert layer(panel, "changes")["data"]["values"][0]["at"] == 28.5
    axis = layer(panel, "values")["encoding"]["x"]["axis"]
    assert axis["values"] == [0, 6, 12, 17, 23, 29]
    assert "'1 Jan 2026', '7 Jan 2026'" in axis["labelExpr"]
    # At the right end the levels stand before the change; recall has the mark of what prevalence does not move.
    assert {one["mark"]["align"] for one in panel["layer"] if one["mark"]["type"] == "text"} == {"right"}
    assert layer(panel, "values")["mark"]["style"] == "stays"


def test_a_figure_has_the_newest_evaluations_and_the_changes_of_all(
    client: httpx.Client, weeks: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.api.v1.history._DRAWN", 8)
    answer, params = history(client, weeks[0], metric="precision@1"), {"dataset": "weeks", "metric": "precision@1"}
    drawn = check_specification(client.get(f"/v1/models/{weeks[0]}/history/plots/history.json", params=params))
    layers = {one["name"]: one["data"]["values"] for one in drawn["vconcat"][0]["layer"] if "name" in one}
    last = [one["metrics"]["precision@1"] for one in answer["items"][-8:]]
    assert [row["value"] for row in layers["values_0"]] == [one["value"] for one in last]
    assert [row["low"] for row in layers["expected_0"]] == [one["expected"]["low"] for one in last]
    assert layers["changes_0"] == [{"at": 2.5, "said": "0.442 to 0.238"}]


@pytest.mark.slow
def test_the_story_of_the_example(client: httpx.Client) -> None:
    """Of one test the sick became rarer, the other got worse; each is told as what it is, and nothing else."""
    found = {}
    for name in ("rarer", "worse"):
        kept = [create(client, body)["id"] for body in example.weeks(name)]
        found[name] = history(client, name, dataset="tumours", metric=example.METRICS)["changes"]
        assert {kept.index(one["to"]) for one in found[name]} <= {example.CHANGE, example.CHANGE + 1}
    said = {one["metric"]: one for one in found["rarer"]}
    assert {*said} == {"precision@malignant", "prevalence@malignant"}
    prevalence, *others = (abs(one["value"]) for one in said["precision@malignant"]["causes"]["items"])
    assert prevalence > 5 * sum(others)
    assert "because malignant became rarer (30 % to 5 %" in said["precision@malignant"]["message"]
    assert said["prevalence@malignant"]["message"].endswith("prevalence@malignant fell from 0.303 to 0.048.")
    (worse,) = found["worse"]
    assert "the model itself got worse: recall@malignant fell from" in worse["message"]


def held(client: httpx.Client, rule: Json, evaluation: str) -> Json:
    gate = f"gate-{uuid4().hex[:10]}"
    assert client.put(f"/v1/gates/{gate}", json={"rules": [rule]}).status_code == 201
    reply = client.post(f"/v1/gates/{gate}/checks", json={"evaluation": evaluation})
    assert reply.status_code == 201, reply.text
    answer: Json = reply.json()
    return answer


def test_a_gate_fails_where_a_change_is_claimed(client: httpx.Client, weeks: tuple[str, list[str]]) -> None:
    """And nowhere else: before it the level holds, after it the new one does, and of a first value nothing is known."""
    name, kept = weeks
    answer = history(client, name, metric="precision@1")
    (change,) = answer["changes"]
    rule = {"metric": "precision@1", "not_changed_since": "last_change"}
    for place, item in enumerate(answer["items"]):
        check = held(client, rule, kept[place])
        (result,) = check["results"]
        claimed = kept[place] == change["claimed_at"]
        expected = item["metrics"]["precision@1"]["expected"]
        assert check["verdict"] == ("inconclusive" if place == 0 else "fail" if claimed else "pass"), place
        assert result["value"] == item["metrics"]["precision@1"]["value"]
        decided = {end: result["decided_on"][end] for end in ("low", "high")}
        assert decided == ({"low": None, "high": None} if expected is None else pytest.approx(expected))
        assert (change["message"] in result["message"]) is claimed
    assert held(client, {**rule, "metric": "recall@1"}, change["claimed_at"])["verdict"] == "pass"
    # The limits are those of the history, whatever the level of the claims is.
    (bold,) = held(client, {**rule, "level": 0.8}, kept[5])["results"]
    value = answer["items"][5]["metrics"]["precision@1"]
    assert (bold["low"], bold["high"], bold["level"]) == (value["low"], value["high"], 0.95)
    assert bold["decided_on"]["level"] == 0.8
    # Two rules share the error, so that each needs more evidence: the same value, a wider band.
    gate = f"gate-{uuid4().hex[:10]}"
    client.put(f"/v1/gates/{gate}", json={"rules": [rule, {**rule, "metric": "recall@1"}]})
    both = client.post(f"/v1/gates/{gate}/checks", json={"evaluation": kept[5]}).json()["results"][0]["decided_on"]
    alone = held(client, rule, kept[5])["results"][0]["decided_on"]
    assert both["low"] < alone["low"] < alone["high"] < both["high"]
    text = client.post(f"/v1/gates/{gate}/checks", json={"evaluation": kept[5]}, headers={"Accept": "text/plain"}).text
    assert "precision@1 not changed since the last change" in " ".join(text.split())


def test_a_run_without_a_split_is_held_against_those_that_have_none_either(client: httpx.Client) -> None:
    name, kept = uuid4().hex, list[str]()
    for split, matrix in (("train", EARLIER), (None, LATER), ("train", EARLIER), (None, LATER)):
        body = evaluation(model=name, dataset="weeks", input=matrix_input(matrix))
        # Its versions are one series.
        body["dataset"] |= {"split": split, "version": str(len(kept))}
        kept.append(create(client, body)["id"])
    rule = {"metric": "precision@1", "not_changed_since": "last_change"}
    first, later = (held(client, rule, kept[place])["results"][0] for place in (1, 3))
    assert (first["verdict"], later["verdict"]) == ("inconclusive", "pass")


def test_rules_on_a_history_that_make_no_sense(client: httpx.Client) -> None:
    rule = {"metric": "recall@*", "not_changed_since": "last_change"}
    (fault,) = check_problem(client.put("/v1/gates/no", json={"rules": [rule]}), 422, "invalid_input")["errors"]
    assert (fault["pointer"], fault["code"]) == ("/rules/0/metric", "not_comparable")
    for more in ({"bound": "upper"}, {"margin": 0.1}, {"min": 0.5}, {"alternative": "less"}):
        reply = client.put("/v1/gates/no", json={"rules": [{**rule, "metric": "accuracy", **more}]})
        assert check_problem(reply, 422, "invalid_request")["errors"][0]["pointer"] == "/rules/0"


def test_windows_that_overlap_are_refused_and_one_test_set_is_not(client: httpx.Client) -> None:
    name = uuid4().hex
    for start in (0, 50, 100):
        truth = [place % 2 for place in range(200)]
        ids = [*range(start, start + 200)]
        keep_labels(client, truth, [*truth[:-3], 0, 0, 0], name, "weeks", sample_ids=ids)
    reply = client.get(f"/v1/models/{name}/history", params={"dataset": "weeks", "metric": "accuracy"})
    (fault,) = check_problem(reply, 422, "invalid_query")["errors"]
    assert (fault["parameter"], fault["code"]) == ("dataset", "incomparable_runs")
    assert "overlap" in fault["detail"]
    newest = client.get("/v1/evaluations/latest", params={"model": name}).json()["id"]
    client.put(f"/v1/gates/{name}", json={"rules": [{"metric": "accuracy", "not_changed_since": "last_change"}]})
    refused = client.post(f"/v1/gates/{name}/checks", json={"evaluation": newest})
    (fault,) = check_problem(refused, 422, "incomparable_runs")["errors"]
    assert fault["pointer"] == "/evaluation"
    # The integer 3 and the text "3" are the same id.
    for ids in ([[*range(100)]] * 3, [[*range(100)], [str(one) for one in range(100)]]):
        same = uuid4().hex
        for own in ids:
            keep_labels(client, [0, 1] * 50, [0, 1] * 49 + [0, 0], same, "weeks", sample_ids=own)
        answer = history(client, same, metric=["accuracy"])
        assert answer["changes"] == []
        assert [note[:16] for note in answer["notes"]] == ["The evaluations "]


def test_what_was_merged_of_the_series_does_not_count_twice(client: httpx.Client) -> None:
    """Old weeks that are merged after a change are no change back; a gate holds the merge itself against the rest."""
    name, rule = uuid4().hex, {"metric": "precision@1", "not_changed_since": "last_change"}
    weeks = [keep(client, EARLIER if week < 6 else LATER, name, week) for week in range(12)]
    before = history(client, name, metric="precision@1")
    for mode in ("pooled", "folds"):
        body = {"evaluations": weeks[:6], "model": {"name": name}, "mode": mode}
        month = client.post("/v1/evaluations/merge", json=body).json()["id"]
        found = history(client, name, metric="precision@1")
        assert {**found, "notes": []} == {**before, "notes": []}
        assert "merged of evaluations of the series" in found["notes"][-1]
    check = held(client, rule, month)
    assert check["verdict"] == "fail"
    # Of all weeks there is nothing else to hold a merge against.
    other = uuid4().hex
    parts = [keep(client, EARLIER, other, week) for week in range(2)]
    both = client.post("/v1/evaluations/merge", json={"evaluations": parts, "model": {"name": other}}).json()["id"]
    assert "the first value" in held(client, rule, both)["results"][0]["message"]
    client.delete(f"/v1/evaluations/{weeks[0]}")
    assert [one["evaluation"] for one in history(client, name, metric="precision@1")["items"]] == weeks[1:]


def test_the_same_predictions_again_add_nothing(client: httpx.Client) -> None:
    """Two versions with 87 and 75 of 100 right, each looked at 6 times, are two evaluations; of twelve test sets a
    change is claimed. A gate passes the second look.
    """
    name, truth = uuid4().hex, [0, 1] * 50
    versions = [[1 - one if place % 100 < wrong else one for place, one in enumerate(truth)] for wrong in (13, 25)]
    runs = [keep_labels(client, truth, one, name, "weeks") for one in versions for _ in range(6)]
    answer = history(client, name, metric=["accuracy"])
    assert answer["changes"] == []
    values = [one["metrics"]["accuracy"] for one in answer["items"]]
    assert [place for place, one in enumerate(values) if one["expected"] is None] == [0]
    assert all(one["expected"]["low"] < 0.75 for one in values[1:])
    rule = {"metric": "accuracy", "not_changed_since": "last_change"}
    check = held(client, rule, runs[-1])
    assert check["verdict"] == "pass"
    assert "that was expected had nothing changed" in check["results"][0]["message"]
    apart = uuid4().hex
    for place in range(12):
        ids = [*range(place * 100, place * 100 + 100)]
        keep_labels(client, truth, versions[place // 6], apart, "weeks", sample_ids=ids)
    assert history(client, apart, metric=["accuracy"])["changes"]


def test_a_single_evaluation_has_room_on_both_sides() -> None:
    assert _edges([3.0]) == [2.5, 3.5]
    assert _edges([1.0, 2.0, 4.0]) == [0.5, 1.5, 3.0, 5.0]


def test_a_change_that_is_all_of_one_cause_has_no_parts() -> None:
    nothing, one, other = ({"value": value} for value in (1e-17, 0.2, -0.1))
    assert causes_of({"causes": {"items": [one, nothing]}}) == []
    assert causes_of({"causes": {"items": [one, other]}}) == [one, other]
    assert causes_of({"causes": None}) == []
