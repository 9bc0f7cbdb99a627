"""Values as one table, lists with their filters, and comparisons with their verdicts."""

import prevail
import pytest

from tests.client.conftest import MATRIX


def test_values_of_an_evaluation(pv: prevail.Client) -> None:
    run = pv.evaluate(matrix=MATRIX, model="values:1", dataset="values")
    headline = pv.values(run)
    assert {"h_mean", "accuracy"} <= set(headline.data)
    found = pv.values(run, ["min(recall@*)", "accuracy_score"])
    assert list(found.data) == ["min(recall@*)", "accuracy"]
    assert next(iter(pv.values(run, ["accuracy"]).rows()))[:2] == ["accuracy", found["accuracy"]["value"]]
    assert found["accuracy"]["as_asked"] == "accuracy_score"
    assert found["accuracy"]["low"] < found["accuracy"]["value"] < found["accuracy"]["high"]


def test_comparisons_and_checks_are_found_and_removed(pv: prevail.Client) -> None:
    first = pv.evaluate(matrix=[[90, 10], [10, 90]], model="listed:1", dataset="values")
    second = pv.evaluate(matrix=[[60, 40], [40, 60]], model="listed:2", dataset="values")
    compared = pv.compare(first, second, metrics=["accuracy"])
    (difference,) = compared.differences["accuracy"]
    assert (compared.verdict, difference.verdict, difference.level) == ("better", "better", 0.95)
    assert [one["id"] for one in pv.comparisons(model="listed:1")] == [compared.id]
    pv.delete_comparison(compared.id)
    with pytest.raises(prevail.NotFound):
        pv.comparison(compared.id)
    pv.put_gate("values-of-all", [{"metric": "accuracy", "min": 0.8}])
    checks = [pv.check("values-of-all", run) for run in (first, second)]
    assert [one["verdict"] for one in pv.checks(model="listed")] == ["fail", "pass"]
    assert [one["id"] for one in pv.checks(verdict="fail", model="listed")] == [checks[1].id]
