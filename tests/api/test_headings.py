"""Headings of sections: what the answer says, in counts where there are any, and nothing where nothing stands out."""

from typing import Any

import pytest

from app.api.documents import evaluation, headings
from app.api.documents.document import Words


def report(matrix: list[list[float]], content: str = "counts", positive: str | None = None) -> dict[str, Any]:
    labels = [chr(ord("a") + place) for place in range(len(matrix))]
    recalls = {
        label: row[place] / sum(row) for place, (label, row) in enumerate(zip(labels, matrix, strict=True)) if sum(row)
    }
    weakest = min(recalls, key=recalls.__getitem__)
    return {
        "input": {"labels": labels, "confusion_matrix": matrix, "content": content, "positive": positive},
        "per_class": {label: {"prevalence_insensitive": {"recall": one}} for label, one in recalls.items()},
        "headline": {
            "weakest_class": {"label": weakest, "recall": recalls[weakest], "n": sum(matrix[labels.index(weakest)])}
        },
        "metrics": {"prevalence_insensitive": {}, "prevalence_sensitive": {}},
    }


def said(words: Words) -> str:
    return "".join(words)


@pytest.mark.parametrize(
    ("answer", "matrix", "classes"),
    [
        (report([[90, 10], [4, 6]], positive="b"), "4 of 10 b are missed, 10 of 100 a are taken for it",
         "b is recognised least often: in 6 of 10 cases"),
        (report([[9, 1, 0], [2, 5, 3], [0, 0, 10]]), "b is taken for c in 3 of its 5 misses",
         "b is recognised least often: in 5 of 10 cases"),
        (report([[9, 1, 0], [0, 10, 0], [0, 0, 10]]), "a is taken for b in its only miss",
         "a is recognised least often: in 9 of 10 cases"),
        (report([[9, 0], [0, 10]]), "No sample is taken for another class", ""),
        (report([[9, 0], [0, 10]], positive="b"), "No sample is taken for another class", ""),
        (report([[5, 5, 0], [5, 5, 0], [0, 0, 10]]), "a is taken for b in all of its 5 misses", ""),
        (report([[0.9, 0.1], [0.4, 0.6]], "rates"), "", "b is recognised least often: 0.600"),
        (report([[9.5, 1], [4, 6]], "weights"), "", "b is recognised least often: 0.600"),
        (report([[0, 0], [4, 6]], positive="b"), "4 of 10 b are missed", ""),
        (report([[90, 10], [0, 0]], positive="b"), "10 of 100 a are taken for b", ""),
    ],
)  # fmt: skip
def test_mistakes_and_classes(answer: dict[str, Any], matrix: str, classes: str) -> None:
    assert said(headings.of_matrix(answer)) == matrix
    assert said(headings.of_classes(answer)) == classes


def test_classes_called_by_numbers_are_classes() -> None:
    answer = report([[90, 10], [4, 6]], positive="b")
    answer["input"] |= {"labels": ["0", "1"], "positive": "1"}
    wanted = "4 of 10 of class 1 are missed, 10 of 100 of class 0 are taken for it"
    assert said(headings.of_matrix(answer)) == wanted
    answer = report([[9, 1, 0], [2, 5, 3], [0, 0, 10]])
    answer["input"]["labels"] = ["0", "1", "two"]
    assert said(headings.of_matrix(answer)) == "Class 1 is taken for two in 3 of its 5 misses"


def test_what_moves_most() -> None:
    answer = report([[9, 1], [1, 9]])
    answer["metrics"] |= {
        "prevalence_sensitive": {"accuracy": 0.9, "f1": 0.8, "mcc": None},
        "at_balanced_prevalence": {"accuracy": 0.85, "f1": 0.5, "mcc": 0.1},
    }
    answer["intervals"] = {"f1": {"low": 0.61, "high": 0.89}}
    answer["input"]["kind"] = "confusion_matrix"
    asked = (["accuracy", "f1", "mcc"], "if equal")
    assert headings.of_metrics(answer, *asked) == "F1 moves most with prevalence: 0.80 here, and 0.500 if equal"
    answer["intervals_at_balanced_prevalence"] = {"f1": {"low": 0.31, "high": 0.62}}
    assert headings.of_metrics(answer, *asked) == "F1 moves most with prevalence: 0.80 here, and 0.50 if equal"
    answer["metrics"]["at_balanced_prevalence"]["f1"] = 0.79
    assert headings.of_metrics(answer, *asked) == "Accuracy moves most with prevalence: 0.900 here, and 0.850 if equal"
    answer["metrics"]["at_balanced_prevalence"]["accuracy"] = 0.89
    assert headings.of_metrics(answer, *asked) == ""


def test_the_worst_query() -> None:
    queries: dict[str, Any] = {"lowest": [{"query_id": 7, "value": 0.25}], "lowest_by": "precision_at_k(k=10)"}
    wanted = "Query 7 fails worst: its precision at 10 is 0.250"
    answer = {"input": {"kind": "ranking"}, "queries": queries}
    assert said(headings.of_queries(answer)) == wanted
    queries["lowest"] = [{"query_id": 7, "value": 0.0}, {"query_id": 8, "value": 0.0}]
    assert headings.of_queries(answer) == ""


def test_where_it_is_worse() -> None:
    def one(value: float, verdict: str) -> dict[str, Any]:
        return {"value": value, "reference": 0.75, "difference": {"verdict": verdict}}

    slices = [("site B", one(0.5, "worse")), ("site C", one(0.7, "undecided"))]
    assert said(headings.of_slices(slices, "recall@D", "the rest")) == (
        "site B is worse: recall@D 0.500 there, 0.750 in the rest"
    )
    assert said(headings.of_slices([*slices, ("f", one(0.6, "worse"))], "recall", "all samples")).startswith(
        "site B and 1 more are worse: recall 0.500 there, 0.750 in all samples"
    )
    assert said(headings.of_slices(slices[1:], "recall", "the rest")) == "No slice has a worse recall beyond chance"


def test_the_verdict_of_a_rare_positive_is_in_counts() -> None:
    """Accuracy of .990 says little where never predicting fraud has .981; of a frequent class the first metric does."""

    def verdict(tp: int, fn: int, fp: int, tn: int) -> str:
        given: dict[str, Any] = {
            "content": "counts",
            "kind": "binary_counts",
            "labels": ["fine", "fraud"],
            "positive": "fraud",
            "n_samples": tp + fn + fp + tn,
            "confusion_matrix": [[tn, fp], [fn, tp]],
        }
        metrics = {"prevalence_insensitive": {}, "prevalence_sensitive": {"accuracy": (tp + tn) / given["n_samples"]}}
        others: dict[str, Any] = {"findings": [], "headline": {"metrics": {}}, "intervals": {}, "per_class": {}}
        return evaluation._verdict({"input": given, "metrics": metrics, **others})

    assert verdict(122, 26, 55, 7597) == (
        "fraud: 122 of 148 cases are caught and 26 missed; 55 of its 177 alerts are false."
    )
    assert verdict(0, 148, 0, 7652) == "fraud: 0 of 148 cases are caught and 148 missed; there is no alert."
    assert verdict(60, 10, 5, 25).startswith("Accuracy is 0.85")
