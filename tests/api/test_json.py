"""JSON of any size that is none, is too deep or says a thing twice."""

import json
from typing import Any

import httpx
import numpy as np
import pytest

from tests.api.answers import check_problem, compute, matrix_input
from tests.api.sent_inputs import HEADERS, PADDING, either_size, nothing_stored_when_refused, post_text, with_input

__all__ = ["nothing_stored_when_refused"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        "nul",
        "{'a': 1}",
        '{"a": 1,}',
        '{"a": 1} x',
        "[" * 100_000,
        '{"a":' * 5_000,
        '"\\ud800"',
    ],
    ids=lambda text: repr(text[:8]),
)
def test_what_is_no_json(client: httpx.Client, text: str) -> None:
    for path in ("/v1/evaluations", "/v1/evaluations/batch", "/v1/metrics/compute", "/v1/bounds/h-mean"):
        reply = client.post(path, content=text.encode(), headers=HEADERS)
        problem = check_problem(reply, 400, "bad_request")
        assert problem["errors"][0]["code"] == "invalid_json"


def test_bytes_that_are_no_text(client: httpx.Client) -> None:
    reply = client.post("/v1/evaluations", content=b'{"model": {"name": "\xff"}}', headers=HEADERS)
    check_problem(reply, 400, "bad_request")


@pytest.mark.parametrize(
    ("text", "came"),
    [
        ("null", "null"),
        ("[]", "an array"),
        ("7", "the number 7"),
        ('"x"', "the string 'x'"),
        ("true", "a boolean"),
    ],
)
@either_size
def test_json_that_is_no_object(client: httpx.Client, text: str, came: str, padding: str) -> None:
    problem = check_problem(post_text(client, text, padding), 422, "invalid_request")
    (fault,) = problem["errors"]
    assert (fault["pointer"], fault["code"]) == ("", "wrong_type")
    assert fault["detail"].startswith(f"expected an object, got {came}; its fields are input, model")


@either_size
def test_deep_json_is_refused_at_its_place(client: httpx.Client, padding: str) -> None:
    deep = "[" * 150 + "]" * 150
    reply = post_text(client, with_input(f'{{"kind": "confusion_matrix", "matrix": {deep}}}'), padding)
    assert check_problem(reply, 422, "invalid_request")["errors"][0]["pointer"].startswith("/input/matrix")


@pytest.mark.parametrize(
    "text",
    [
        '{"input": {"kind": "binary_counts", "tp": 9, "tp": 1, "fn": 1, "fp": 1, "tn": 1}}',
        '{"input": {"kind": "binary_counts", "tp": 9, "t\\u0070": 1, "fn": 1, "fp": 1, "tn": 1}}',
        '{"input": {"kind": "folds", "folds": [{"kind": "scores", "matrix": [[1, 2], [3, 4]], "kind": 1}]}}',
        '{"tags": {"a:b": "c:d"}, "tags": {}}',
        '{"unknown": [[{"a": 1, "a": 1}]]}',
    ],
)
@either_size
def test_members_of_one_name(client: httpx.Client, text: str, padding: str) -> None:
    reply = client.post("/v1/metrics/compute", content=(text + padding).encode(), headers=HEADERS)
    fault = check_problem(reply, 422, "invalid_request")["errors"][0]
    assert (fault["pointer"], fault["code"]) == ("", "repeated_member")


def test_colons_in_texts_are_no_members(client: httpx.Client) -> None:
    labels = ["a:b", '"c":', "{:}"]
    assert compute(client, matrix_input(np.eye(3).tolist(), labels=labels))["input"]["labels"] == labels


@pytest.mark.parametrize("depth", [250, 900, 2000])
@pytest.mark.parametrize("pair", ["[]", ('{"a":', "}")])
def test_a_large_body_may_be_deep(client: httpx.Client, depth: int, pair: tuple[str, str]) -> None:
    deep = pair[0] * depth + "1" + pair[1] * depth
    reply = post_text(client, '{"tags": ' + deep + "}", PADDING["large"])
    assert reply.status_code in (400, 422)
    check_problem(reply, reply.status_code, reply.json()["code"])


def test_a_large_body_is_read_as_a_small_one(client: httpx.Client) -> None:
    """Columns of every type, a bracket in a text, folds: the two parsers agree."""
    columns: list[dict[str, Any]] = [
        {"y_true": [3, 1, 2], "y_pred": [1, 1, 2]},
        {"y_true": ["[", "]", "["], "y_pred": ["[", "[", "]"]},
        {"y_true": [1, 0, 1], "y_pred": [0, 0, 1], "sample_weight": [1, 2.5, 0]},
        {"y_true": [1, 0, 1], "y_pred": [0, 0, 1], "sample_weight": [1, 2, 3], "sample_ids": [1, 2, 3]},
        {"y_true": [1, 0, 1], "y_pred": [0, 0, 1], "sample_ids": ["a", 2, "ä"], "labels": [1, 0], "positive": 1},
    ]
    sources = [{"kind": "predictions", **column} for column in columns]
    for source in [*sources, {"kind": "folds", "folds": [sources[2], sources[2]]}]:
        small = json.dumps({"input": source})
        replies = [
            client.post("/v1/metrics/compute", content=(small + padding).encode(), headers=HEADERS)
            for padding in PADDING.values()
        ]
        assert replies[0].status_code == 200, replies[0].text
        assert replies[0].content == replies[1].content
