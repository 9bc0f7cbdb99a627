"""A grammar of broken JSON: both readers, that of small and that of large bodies, say the same of any text."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.api.bodies.parsing import parse_body, parse_large_body
from app.api.problems import MalformedRequest, refusal_of
from app.api.v1.requests.evaluations import EvaluationRequest
from app.domain.errors import DomainError
from tests.hostile.test_generated import generated

DOCUMENTS: dict[str, dict[str, Any]] = {
    "predictions": {"y_true": ["a", "b", "a"], "y_pred": ["a", "b", "b"], "sample_ids": [1, 2, 3]},
    "scores": {"y_true": [0, 1, 1], "scores": [0.5, 1, 2e-3], "threshold": 0.5},
    "probabilities": {"y_true": [0, 1], "probabilities": [[0.5, 0.5], [0, 1]], "sample_weight": [1, 0.5]},
    "confusion_matrix": {"matrix": [[5, 1], [2, 7]], "labels": ["a", "b"]},
    "binary_counts": {"tp": 1, "fn": 2, "fp": 3, "tn": 4},
    "folds": {"folds": [{"kind": "predictions", "y_true": [0, 1], "y_pred": [0, 0]}] * 2},
}
TOKEN = re.compile(r'"[^"]*"|[-+.\w]+|\S')
# What stands in the place of a token, or beside one.
FOREIGN = [
    *("[", "]", "{", "}", ",", ":", '"', "'", "\\", " ", "\0", "\ufeff", "/* */", "[]", "{}", "[[]]", '""'),
    *("null", "true", "NaN", "Infinity", "-Infinity", "1e999", "-0", "01", "1.", ".5", "0x1", "+1", "1e", "--1"),
    *("9" * 19, "9" * 20, "9" * 400, "0." + "3" * 400, '"\\ud800"', '"\\u0000"', '"\\x"', '"]"', '"y_true": [1]'),
    *('"y_true"', '"probabilities"', '"matrix"', '"kind"', '"folds"', "[0, 1]", "[[0, 1], [1, 0]]", "[1, [2]]"),
]
Changes = list[tuple[float, str, str]]
CHANGES = st.lists(
    st.tuples(
        st.floats(0, 1), st.sampled_from(["replace", "before", "drop", "twice", "cut"]), st.sampled_from(FOREIGN)
    ),
    min_size=1,
    max_size=3,
)


def broken(document: Any, changes: Changes) -> bytes:
    tokens = TOKEN.findall(json.dumps(document))
    for share, change, foreign in changes:
        place = min(int(share * len(tokens)), len(tokens) - 1)
        here = tokens[place : place + 1]
        match change:
            case "replace":
                tokens[place : place + 1] = [foreign]
            case "before":
                tokens[place:place] = [foreign]
            case "drop":
                tokens[place : place + 1] = []
            case "twice":
                tokens[place:place] = here
            case "cut":
                tokens[place:] = []
        tokens = tokens or [" "]
    return " ".join(tokens).encode()


def said(read: Callable[[bytes, type[EvaluationRequest]], EvaluationRequest], body: bytes) -> tuple[int, str]:
    """The status that a reader gives a body, and the code of the first fault."""
    try:
        read(body, EvaluationRequest).to_domain()
    except MalformedRequest as error:
        return refusal_of(error).status, error.faults[0].code
    except DomainError as error:
        return 422, error.code
    return 200, ""


@pytest.mark.parametrize("kind", DOCUMENTS)
@settings(parent=generated, max_examples=100)
@given(changes=CHANGES)
def test_small_and_large_bodies_are_read_alike(kind: str, changes: Changes) -> None:
    body = broken({"input": {"kind": kind, **DOCUMENTS[kind]}, "tags": {"k": "v"}}, changes)
    (large, code), (small, _) = said(parse_large_body, body), said(parse_body, body)
    # Of two faults one is said: a member that comes twice is found on the way to an end that is missing.
    assert large == small or (code, small) == ("repeated_member", 400), body


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_every_beginning_of_a_document_is_none(kind: str) -> None:
    whole = json.dumps({"input": {"kind": kind, **DOCUMENTS[kind]}}).encode()
    assert said(parse_large_body, whole) == said(parse_body, whole) == (200, "")
    for length in range(1, len(whole)):
        assert said(parse_large_body, whole[:length]) == said(parse_body, whole[:length]) == (400, "invalid_json")
