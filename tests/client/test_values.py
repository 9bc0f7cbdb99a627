"""Values as one table, lists with their filters, and comparisons with their verdicts."""

import prevail
import pytest
from prevail import Client

from tests.client.conftest import MATRIX


def test_values_of_an_evaluation(client: Client) -> None:
    run = client.evaluate(matrix=MATRIX, model="values:1", dataset="values")
    headline = client.values(run)
    assert {"h_mean", "accuracy"} <= set(headline)
    found = client.values(run, ["min(recall@*)", "accuracy_score"])
    assert list(found) == ["min(recall@*)", "accuracy"]
    assert found["accuracy"]["as_asked"] == "accuracy_score"
    assert found["accuracy"]["low"] < found["accuracy"]["value"] < found["accuracy"]["high"]


def test_comparisons_and_checks_are_found_and_removed(client: Client) -> None:
    first = client.evaluate(matrix=[[90, 10], [10, 90]], model="listed:1", dataset="values")
    second = client.evaluate(matrix=[[60, 40], [40, 60]], model="listed:2", dataset="values")
    compared = client.compare(first, second, metrics=["accuracy"])
    (difference,) = compared.differences["accuracy"]
    assert (compared.verdict, difference.verdict, difference.level) == ("better", "better", 0.95)
    assert [one["id"] for one in client.comparisons(model="listed:1")] == [compared.id]
    client.delete_comparison(compared.id)
    with pytest.raises(prevail.NotFound):
        client.comparison(compared.id)
    client.put_gate("values-of-all", [{"metric": "accuracy", "min": 0.8}])
    checks = [client.check("values-of-all", run) for run in (first, second)]
    assert [one["verdict"] for one in client.checks(model="listed")] == ["fail", "pass"]
    assert [one["id"] for one in client.checks(verdict="fail", model="listed")] == [checks[1].id]
