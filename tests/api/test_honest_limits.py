"""Values that have no limits, or wider ones than a formula gives: reports and gates say the same of them."""

from collections.abc import Iterator
from typing import Any

import httpx

from tests.api.answers import compute, create, evaluation, matrix_input
from tests.api.test_gates import judged

Json = dict[str, Any]


def undefined_with_limits(part: Any) -> Iterator[Json]:
    """Values of an answer that are null beside limits that are not."""
    if isinstance(part, dict):
        if "value" in part and part["value"] is None and (part.get("low") is not None or part.get("high") is not None):
            yield part
        for each in part.values():
            yield from undefined_with_limits(each)
    elif isinstance(part, list):
        for each in part:
            yield from undefined_with_limits(each)


def test_a_class_without_samples_leaves_a_mean_over_classes_open(client: httpx.Client) -> None:
    report: Json = compute(client, matrix_input([[95, 5], [0, 0]]))
    limits = report["intervals"]["macro_f1"]
    assert (limits["low"], limits["high"]) == (None, None)
    assert "a class has no samples" in limits["reason"]
    assert list(undefined_with_limits(report)) == []
    run = create(client, evaluation(input=matrix_input([[95, 5], [0, 0]])))["id"]
    found = judged(client, {"metric": "macro_f1", "min": 0.45}, run)
    assert found["verdict"] == "inconclusive"
    assert "a class has no samples" in found["message"]


def test_too_few_members_leave_a_rate_at_a_rate_open(client: httpx.Client) -> None:
    scores = [1.0 + place / 20 for place in range(20)] + [place / 100 for place in range(100)]
    source = {"kind": "scores", "y_true": [1] * 20 + [0] * 100, "scores": scores, "threshold": 0.9}
    run = create(client, evaluation(input=source))["id"]
    found = judged(client, {"metric": "specificity_at(recall=0.9)@1", "min": 0.5}, run)
    assert found["verdict"] == "inconclusive"
    assert "too few samples hold the given rate" in found["message"]
