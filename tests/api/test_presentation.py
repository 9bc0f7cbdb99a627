"""How an answer is asked for: by media type, by members, or as little as possible."""

import json
from typing import Any

import httpx
import pytest

from tests.api.answers import FOUR_CLASSES, check_problem, create, evaluation, matrix_input

TEXTS = {"text/plain": "plain", "text/markdown": "markdown", "text/csv": "csv"}
BODY = {"input": matrix_input(FOUR_CLASSES, labels=["A", "B", "C", "D"])}


def kept(client: httpx.Client, **members: Any) -> str:
    return str(create(client, evaluation(**members))["id"])


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        (None, "application/json"),
        ("*/*", "application/json"),
        ("application/json", "application/json"),
        ("application/*", "application/json"),
        ("text/*", "text/plain"),
        ("text/plain", "text/plain"),
        ("TEXT/PLAIN;q=0.9", "text/plain"),
        ("text/markdown, application/json;q=0.5", "text/markdown"),
        ("text/csv;q=0.2, text/markdown;q=0.7, */*;q=0.1", "text/markdown"),
        ("application/json;q=0, */*", "text/plain"),
        ("text/html", "text/html"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html"),
        ("text/html;q=0.5, application/json;q=0.5", "application/json"),
        ("image/png, */*;q=0.1", "application/json"),
    ],
)
def test_accept_decides(client: httpx.Client, accept: str | None, media: str) -> None:
    headers = {} if accept is None else {"Accept": accept}
    reply = client.post("/v1/metrics/compute", json=BODY, headers=headers)
    assert reply.status_code == 200
    assert reply.headers["content-type"].split(";")[0] == media
    assert "accept" in reply.headers["vary"].lower()


@pytest.mark.parametrize("accept", ["image/png", "application/xml, text/richtext", "application/json;q=0", "a/b;q=x"])
def test_nothing_acceptable(client: httpx.Client, accept: str) -> None:
    reply = client.post("/v1/evaluations", json=evaluation(model="nobody-reads"), headers={"Accept": accept})
    check_problem(reply, 406, "not_acceptable")
    assert "text/markdown" in reply.json()["detail"]
    assert client.get("/v1/evaluations", params={"model": "nobody-reads"}).json()["items"] == []


def test_what_is_kept_can_be_read_in_any_form(client: httpx.Client) -> None:
    identifier = kept(client, model="forms", dataset="forms")
    for media in TEXTS:
        reply = client.get(f"/v1/evaluations/{identifier}", headers={"Accept": media})
        assert reply.status_code == 200
        assert reply.headers["content-type"] == f"{media}; charset=utf-8"
        assert "h_mean" in reply.text
    made = client.post("/v1/evaluations", json=evaluation(model="forms"), headers={"Accept": "text/plain"})
    assert made.status_code == 201
    assert made.text.startswith("forms on d")
    assert made.headers["location"] in made.text


def test_comparisons_checks_and_leaderboards_have_the_same_forms(client: httpx.Client) -> None:
    first, second = (kept(client, model=name, dataset="table") for name in ("one", "two"))
    compared = client.post("/v1/comparisons", json={"evaluations": [first, second], "metrics": ["h_mean"]}).json()
    client.put("/v1/gates/forms", json={"rules": [{"metric": "h_mean", "min": 0.1}]})
    checked = client.post("/v1/gates/forms/checks", json={"evaluation": first}).json()
    paths = {
        f"/v1/comparisons/{compared['id']}": "one against two",
        f"/v1/gates/forms/checks/{checked['id']}": "gate forms, version 1",
        "/v1/leaderboard?dataset=table": "table by h_mean",
    }
    for path, said in paths.items():
        text = client.get(path, headers={"Accept": "text/plain"})
        assert said in text.text
        for media in TEXTS:
            assert client.get(path, headers={"Accept": media}).headers["content-type"].startswith(media)
    posted = client.post("/v1/gates/forms/checks", json={"evaluation": first}, headers={"Accept": "text/markdown"})
    assert posted.status_code == 201
    assert posted.text.startswith("<!-- prevail gate=forms")


PAGE = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def check_page(reply: httpx.Response, status: int, *said: str) -> None:
    """A page that loads nothing, and says so much."""
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert reply.headers["content-security-policy"].startswith("default-src 'none'")
    assert "Accept" in reply.headers["vary"]
    assert "<script" not in reply.text
    assert "http://" not in reply.text
    for text in said:
        assert text in reply.text


def test_pages_are_answered_where_they_are_asked_for(client: httpx.Client) -> None:
    """Also by what makes an answer, and of checks and leaderboards."""
    body = evaluation(model="<b>one</b>", dataset="pages")
    made = client.post("/v1/evaluations", json=body, headers=PAGE)
    check_page(made, 201, "&lt;b&gt;one&lt;/b&gt;", "on pages", made.headers["location"].rpartition("/")[2])
    check_page(client.post("/v1/metrics/compute", json=BODY, headers=PAGE), 200, "Evaluation, not saved")
    first, second = (kept(client, model=name, dataset="pages") for name in ("one", "two"))
    compared = client.post(
        "/v1/comparisons", json={"evaluations": [first, second], "metrics": ["h_mean"]}, headers=PAGE
    )
    check_page(compared, 201, "one against two", "Differences")
    rules = [{"metric": "h_mean", "min": 0.99}, {"metric": "recall@*", "min": 0.01}]
    client.put("/v1/gates/pages", json={"rules": rules, "minimum_samples": 2})
    checked = client.post("/v1/gates/pages/checks", json={"evaluation": first}, headers=PAGE)
    check_page(checked, 201, "Fail (exit 1)", "1 of 3 rules fails, 2 pass.", "at least 2 samples", first)
    check_page(checked, 201, "1 of 3 rules fails, 2 pass.", 'aria-label="Limit 0.99, value ')
    check_page(client.get(checked.headers["location"], headers=PAGE), 200, ">at least 0.99", "Gate pages, version 1")
    board = client.get("/v1/leaderboard?dataset=pages&metric=h_mean", headers=PAGE)
    check_page(board, 200, "pages by harmonic mean of the recalls", "&lt;b&gt;one&lt;/b&gt;", "95", "higher is better")


def test_fields_keep_the_named_members(client: httpx.Client) -> None:
    identifier = kept(client, model="fields")
    reply = client.get(f"/v1/evaluations/{identifier}", params={"fields": "headline, findings"})
    whole = client.get(f"/v1/evaluations/{identifier}").json()
    assert reply.json() == {"headline": whole["headline"], "findings": whole["findings"]}
    computed = client.post("/v1/metrics/compute?fields=headline", json=BODY).json()
    assert computed["headline"]["weakest_class"] == {"label": "D", "recall": 0.16, "n": 100}
    board = client.get("/v1/leaderboard", params={"dataset": "d", "fields": "items"})
    assert list(board.json()) == ["items"]


def test_unknown_members_are_named_all_at_once(client: httpx.Client) -> None:
    reply = client.post("/v1/metrics/compute?fields=headlines,value,input", json=BODY)
    problem = check_problem(reply, 422, "invalid_query")
    assert [fault["code"] for fault in problem["errors"]] == ["unknown_member"] * 2
    assert "headline" in problem["errors"][0]["detail"]
    text = client.post("/v1/metrics/compute?fields=headline", json=BODY, headers={"Accept": "text/plain"})
    check_problem(text, 422, "invalid_query")


def test_as_little_as_possible(client: httpx.Client) -> None:
    headers = {"Prefer": "handling=lenient, return=minimal"}
    reply = client.post("/v1/evaluations", json=evaluation(model="least"), headers=headers)
    assert reply.status_code == 201
    assert list(reply.json()) == ["id", "headline"]
    assert reply.headers["location"].endswith(reply.json()["id"])
    assert reply.headers["preference-applied"] == "return=minimal"
    assert list(client.get(reply.headers["location"], headers=headers).json())[:2] == ["id", "created_at"]


def test_the_style_and_the_width_of_a_text(client: httpx.Client) -> None:
    def text(**params: Any) -> str:
        reply = client.post("/v1/metrics/compute", json=BODY, params=params, headers={"Accept": "text/plain"})
        assert reply.status_code == 200
        return reply.text

    assert text().isascii()
    assert "●" in text(style="unicode")
    assert max(map(len, text(width=120).split("\n"))) > 80
    for wrong in ({"style": "ansi"}, {"width": 20}, {"width": 1000}):
        reply = client.post("/v1/metrics/compute", json=BODY, params=wrong)
        check_problem(reply, 422, "invalid_query")


def test_large_bodies_have_the_same_forms(client: httpx.Client) -> None:
    """They are answered by another process."""
    rows = 30_000
    source = {"kind": "predictions", "y_true": ["a", "b"] * rows, "y_pred": ["a", "a", "b", "b"] * (rows // 2)}
    reply = client.post("/v1/metrics/compute", json={"input": source}, headers={"Accept": "text/plain"})
    assert reply.status_code == 200
    assert "60,000 samples, 2 classes" in reply.text
    chosen = client.post("/v1/metrics/compute?fields=headline", json={"input": source})
    assert list(chosen.json()) == ["headline"]


@pytest.mark.parametrize("classes", [2, 4, 30, 200])
def test_a_headline_is_small(client: httpx.Client, classes: int) -> None:
    matrix = [[9 if row == column else 1 for column in range(classes)] for row in range(classes)]
    asked = [f"f_beta(beta={k})@1" for k in range(1, 60)] + ["recall@*"]
    reply = client.post(
        "/v1/metrics/compute?fields=headline",
        json={"input": matrix_input(matrix), "options": {"metrics": asked}},
    )
    assert reply.status_code == 200
    assert len(reply.content) <= 2048
    headline = reply.json()["headline"]
    assert headline["n_classes"] == classes
    assert set(headline["metrics"]["h_mean"]) == {"value", "low", "high"}
    assert "recall@*" not in headline["requested"]
    assert json.dumps(headline["requested"])


def test_the_headline_agrees_with_the_report(client: httpx.Client) -> None:
    answer = client.post("/v1/metrics/compute", json={**BODY, "options": {"metrics": ["min(recall@*)"]}}).json()
    for key, found in answer["headline"]["metrics"].items():
        groups = answer["metrics"]
        value = {**groups["prevalence_insensitive"], **groups["prevalence_sensitive"]}[key]
        ends = answer["intervals"][key]
        assert found == {"value": value, "low": ends["low"], "high": ends["high"]}
    ends = answer["intervals"]["min(recall@*)"]
    limits = {"low": ends["low"], "high": ends["high"]}
    assert answer["headline"]["requested"] == {"min(recall@*)": {"value": 0.16, **limits}}
    assert limits["low"] < 0.16 < limits["high"]


@pytest.mark.parametrize(
    ("source", "options"),
    [
        (matrix_input(FOUR_CLASSES), {"metrics": ["min(recall@*)", "recall@*"]}),
        (matrix_input([[5, 1], [0, 0]]), {}),
        (matrix_input([[0.5, 0.5], [0.2, 0.8]], normalized=True), {"level": 0.9}),
        (matrix_input(FOUR_CLASSES), {"intervals": "all", "draws": 200, "seed": 1}),
        (matrix_input(FOUR_CLASSES), {"intervals": "none"}),
        (
            {"kind": "probabilities", "y_true": [0, 1, 1, 0, 1], "probabilities": [[0.9, 0.1]] * 2 + [[0.3, 0.7]] * 3},
            {"metrics": ["log_loss"]},
        ),
        (
            {"kind": "predictions", "y_true": [0, 1, 1, 0], "y_pred": [0, 1, 0, 0], "group_ids": [1, 1, 2, 3]},
            {"seed": 3},
        ),
        (
            {"kind": "predictions", "y_true": [0, 1, 1, 0], "y_pred": [0, 1, 0, 0], "sample_weight": [1, 2, 2, 3]},
            {},
        ),
        ({"kind": "multilabel", "y_true": [[1, 0], [1, 1], [0, 1]], "y_pred": [[1, 0], [0, 1], [0, 1]]}, {"seed": 1}),
    ],
    ids=[
        "counts",
        "one class",
        "rates",
        "all intervals",
        "no intervals",
        "probabilities",
        "groups",
        "weights",
        "labels",
    ],
)
def test_a_headline_alone_is_that_of_the_report(client: httpx.Client, source: Any, options: Any) -> None:
    """It is computed without the rest where that is less work."""
    body = {**evaluation(model="alone"), "input": source, "options": options}
    whole = client.post("/v1/evaluations", json=body)
    assert whole.status_code == 201, whole.text
    alone = client.post("/v1/metrics/compute?fields=headline,model", json=body)
    assert alone.json() == {"headline": whole.json()["headline"], "model": {"name": "alone", "version": None}}
    read = client.get(whole.headers["location"], params={"fields": "headline,id"})
    assert read.json() == {"headline": whole.json()["headline"], "id": whole.json()["id"]}
