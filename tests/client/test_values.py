"""Values as one table, lists with their filters, and comparisons with their verdicts."""

from collections.abc import Callable

import prevail
import pytest
from prevail.mlflow.records import metrics_and_tags

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


def test_a_run_is_named_by_its_id_where_there_is_one(pv: prevail.Client) -> None:
    for matrix in ([[9, 1], [1, 9]], [[8, 2], [2, 8]]):
        pv.evaluate(matrix=matrix, model="named:1", dataset="named")
    newest, oldest = pv.evaluations(model="named")
    assert pv.evaluation(oldest).id == oldest["id"]
    assert pv.evaluation({"model": {"name": "named"}}).id == newest["id"]
    assert pv.compare(newest, oldest, metrics=["accuracy"]).verdict == "undecided"
    pv.delete_evaluation({"id": oldest["id"]})
    assert [one["id"] for one in pv.evaluations(model="named")] == [newest["id"]]


def test_names_of_other_types_are_said(pv: prevail.Client) -> None:
    for wrong in (["named:1", "named:2"], 7):
        with pytest.raises(prevail.InvalidInput, match=f"a run: expected an id, .* got {type(wrong).__name__}"):
            pv.compare(wrong)  # type: ignore[arg-type]
    with pytest.raises(prevail.InvalidInput, match='expected "name" or "name:version", got int'):
        pv.leaderboard(7)  # type: ignore[arg-type]


def test_a_text_is_no_list_of_its_letters(pv: prevail.Client) -> None:
    asked: dict[str, Callable[[], object]] = {
        "metrics": lambda: pv.values("named:1", "mcc"),
        "where": lambda: pv.leaderboard("named", where="mcc>=0.5"),
        "by": lambda: pv.slices("named:1", by="site"),
        "rules": lambda: pv.put_gate("text", "mcc>=0.5"),  # type: ignore[arg-type]
        "events": lambda: pv.put_webhook("chat", "https://hooks.example", "gate.checked"),  # type: ignore[arg-type]
    }
    for name, ask in asked.items():
        with pytest.raises(prevail.InvalidInput, match=f"{name}: expected a list, got the text"):
            ask()
    with pytest.raises(prevail.InvalidInput, match=r"rules\[0\]: expected an object, got the string"):
        pv.try_gate({"metric": "mcc", "min": 0.5})  # type: ignore[arg-type]
    with pytest.raises(prevail.InvalidInput, match="limit: expected at least 1"):
        pv.history("named", "named", limit=0)


def test_mlflow_gets_every_value_under_a_name_of_its_own(pv: prevail.Client) -> None:
    labels = ["<50", ">50", "ü//..", "b" * 240]
    matrix = [[9, 1, 0, 0], [3, 7, 0, 0], [0, 0, 5, 5], [0, 0, 0, 0]]
    asked = ["recall@<50", "recall@>50", "recall@ü//..", f"recall@{labels[3]}"]
    run = pv.evaluate(matrix=matrix, labels=labels, metrics=asked)
    metrics, tags = metrics_and_tags(run)
    names = ("prevail/recall._50", "prevail/recall._50.2", "prevail/recall.ü_..")
    assert [metrics[name] for name in names] == [0.9, 0.7, 0.5]
    assert metrics["prevail/recall._50.2_low"] == run["recall@>50"].low
    assert f"prevail.undefined.recall.{'b' * 193}" in tags
    assert max(map(len, metrics)) <= 250


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
