"""What stands in an answer: every metric once, every gap explained, every name the one that was asked for."""

from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from app.kernel.metrics.card import Inputs, Scope
from app.kernel.metrics.catalogue import catalogue
from tests.api.answers import FOUR_CLASSES, Json, check_problem, compute, evaluation, matrix_input
from tests.bank import each

OF_MATRICES = [metric for metric in catalogue().of_matrices.reported.metrics if metric.card.inputs is Inputs.MATRIX]


def keys(scope: Scope, n_classes: int, *, insensitive: bool) -> set[str]:
    return {
        metric.key
        for metric in OF_MATRICES
        if metric.card.scope is scope and metric.card.prevalence.is_insensitive(n_classes) is insensitive
    }


MATRICES: dict[str, list[list[Any]]] = {
    "binary": [[55, 5], [10, 30]],
    "binary perfect": [[5, 0], [0, 7]],
    "binary all wrong": [[0, 5], [7, 0]],
    "binary constant": [[5, 0], [7, 0]],
    "binary one class": [[5, 2], [0, 0]],
    "binary one cell": [[0, 0], [0, 3]],
    "four classes": FOUR_CLASSES,
    "perfect": [[5, 0, 0], [0, 7, 0], [0, 0, 2]],
    "constant": [[5, 0, 0], [7, 0, 0], [2, 0, 0]],
    "empty row": [[5, 1, 0], [0, 0, 0], [2, 0, 3]],
    "empty column": [[5, 0, 1], [3, 0, 4], [2, 0, 3]],
    "empty row and column": [[5, 0, 1], [0, 0, 0], [2, 0, 3]],
    "one cell": [[0, 0, 0], [0, 9, 0], [0, 0, 0]],
    "cyclic": [[0, 5, 0], [0, 0, 5], [5, 0, 0]],
    "weights": [[0.5, 0.1, 0], [0.25, 1, 0], [0, 0, 1e-3]],
    "dominant": [[10**9, 3, 0], [1, 2, 0], [5, 0, 1]],
    "independent": [[4, 2, 2], [2, 1, 1], [2, 1, 1]],
}
CONTENTS = {"counts": {}, "rates": {"normalized": True}}


def gaps(groups: dict[str, dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Group and key of every value that is null."""
    for group, values in groups.items():
        yield from ((group, key) for key, value in values.items() if value is None)


@each("members", CONTENTS.values(), ids=CONTENTS.keys())
@each("matrix", MATRICES.values(), ids=MATRICES.keys())
def test_every_metric_is_there_and_every_gap_is_explained(
    client: httpx.Client, matrix: list[list[Any]], members: dict[str, Any]
) -> None:
    answer = compute(client, matrix_input(matrix, **members))
    size = len(matrix)
    insensitive = keys(Scope.OVERALL, size, insensitive=True)
    sensitive = keys(Scope.OVERALL, size, insensitive=False)
    by_class = [keys(Scope.CLASS, size, insensitive=flag) for flag in (True, False)]
    if size == 2:
        insensitive, sensitive = insensitive | by_class[0], sensitive | by_class[1]
    assert set(answer["metrics"]["prevalence_insensitive"]) == insensitive
    assert set(answer["metrics"]["prevalence_sensitive"]) == sensitive
    relative = {metric.key for metric in OF_MATRICES if metric.card.degree == 0}
    assert set(answer["metrics"]["at_balanced_prevalence"]) == sensitive & relative
    assert list(answer["per_class"]) == answer["input"]["labels"]
    for groups in answer["per_class"].values():
        assert set(groups["prevalence_insensitive"]) == by_class[0]
        assert set(groups["prevalence_sensitive"]) == by_class[1]
        assert set(groups["at_balanced_prevalence"]) == by_class[1] & relative
    check_gaps(answer)


def check_gaps(answer: Json) -> None:
    """A null has an entry, and an entry has a null. One without a group speaks of a value and of its balanced twin."""
    entries = answer["undefined"]
    said = {(entry["metric"], entry.get("class"), entry.get("group")) for entry in entries}
    assert len(said) == len(entries), "an entry stands twice"
    for entry in entries:
        assert entry["code"]
        assert "{" not in entry["reason"]
        assert "nan" not in entry["reason"].lower().split()
    positive = answer["input"]["positive"]
    places: list[tuple[str | None, str, str]] = [(None, *gap) for gap in gaps(answer["metrics"])]
    places += [(label, *gap) for label, groups in answer["per_class"].items() for gap in gaps(groups)]
    class_keys = {metric.key for metric in OF_MATRICES if metric.card.scope is Scope.CLASS}
    used = set()
    for label, group, key in places:
        of = label if label is not None else positive if key in class_keys else None
        candidates = [(key, of, None), (key, of, group), ("*", None, group)]
        found = [candidate for candidate in candidates if candidate in said]
        assert found, (label, group, key)
        used.update(found)
    requested = {entry for entry in said if entry[0] in answer["requested"] and entry not in used}
    assert said - requested == used, "an entry speaks of a value that is there"


def test_gaps_are_not_said_twice(client: httpx.Client) -> None:
    """What is infinite in the matrix is infinite in its balanced twin for the same reason: one entry."""
    answer = compute(client, matrix_input(FOUR_CLASSES))
    check_gaps(answer)
    assert not any("group" in entry for entry in answer["undefined"])


def test_random_matrices_with_holes(client: httpx.Client) -> None:
    chance = np.random.default_rng(11)
    inputs = []
    for size in (2, 2, 2, 3, 3, 3, 5, 5, 8):
        for _ in range(6):
            matrix = chance.integers(0, 4, (size, size)) * (chance.random((size, size)) < 0.6)
            if matrix.any():
                inputs.append({"input": matrix_input(matrix.tolist())})
    reply = client.post("/v1/evaluations/batch?store=false", json={"evaluations": inputs})
    for item in reply.json()["items"]:
        assert item["status"] == 200, item
        check_gaps(item["evaluation"])


def test_the_contracts_example(client: httpx.Client) -> None:
    answer = compute(
        client,
        matrix_input(FOUR_CLASSES, labels=["A", "B", "C", "D"]),
        metrics=["h_mean", "f_beta(beta=2)@D", "gps(recall@*, precision@D)", "recall@*"],
    )
    insensitive, sensitive = (answer["metrics"][f"prevalence_{kind}"] for kind in ("insensitive", "sensitive"))
    assert insensitive["balanced_accuracy"] == pytest.approx(0.79)
    assert insensitive["g_mean"] == pytest.approx(0.6325, abs=5e-5)
    assert insensitive["h_mean"] == pytest.approx(0.4324, abs=5e-5)
    assert sensitive["accuracy"] == pytest.approx(0.958)
    assert sensitive["macro_f1"] == pytest.approx(0.803, abs=5e-4)
    assert sensitive["mcc"] == pytest.approx(0.939, abs=5e-4)
    balanced = answer["metrics"]["at_balanced_prevalence"]
    assert balanced["accuracy"] == pytest.approx(0.79)
    assert balanced["mcc"] == pytest.approx(0.751, abs=5e-4)
    assert answer["requested"]["h_mean"] == insensitive["h_mean"]
    assert answer["requested"]["f_beta(beta=2)@D"] == pytest.approx(0.19, abs=5e-3)
    assert answer["requested"]["gps(recall@*, precision@D)"] == pytest.approx(0.488, abs=5e-4)
    assert answer["requested"]["recall@*"] == {"A": 1, "B": 1, "C": 1, "D": 0.16}
    assert answer["per_class"]["D"]["prevalence_sensitive"]["precision"] == 1
    assert answer["input"]["prevalence"] == {"A": 0.4, "B": 0.3, "C": 0.25, "D": 0.05}
    (finding,) = answer["findings"]
    assert (finding["code"], finding["severity"]) == ("accuracy_overstates", "warning")
    assert finding["evidence"]["class"] == "D"
    interval = answer["intervals"]["h_mean"]
    assert interval["low"] < 0.4324 < interval["high"]
    assert (interval["level"], interval["method"]) == (0.95, "mover")


def test_specificity_changes_its_group(client: httpx.Client) -> None:
    two = compute(client, matrix_input([[5, 1], [2, 4]]))
    three = compute(client, matrix_input([[5, 1, 0], [2, 4, 1], [0, 0, 3]]))
    assert "specificity" in two["per_class"]["1"]["prevalence_insensitive"]
    assert "specificity" in three["per_class"]["1"]["prevalence_sensitive"]
    assert "specificity" not in three["per_class"]["1"]["prevalence_insensitive"]


def test_replicating_a_class_moves_only_what_is_sensitive(client: httpx.Client) -> None:
    matrix = np.array([[50, 3, 2], [4, 30, 6], [1, 2, 20]])
    before = compute(client, matrix_input(matrix.tolist()))["metrics"]
    after = compute(client, matrix_input((matrix * [[1], [7], [3]]).tolist()))["metrics"]
    for group in ("prevalence_insensitive", "at_balanced_prevalence"):
        for key, value in before[group].items():
            assert after[group][key] == pytest.approx(value, rel=1e-9, abs=1e-12), key
    assert after["prevalence_sensitive"]["accuracy"] != before["prevalence_sensitive"]["accuracy"]


# Intervals.


def test_headline_intervals(client: httpx.Client) -> None:
    answer = compute(client, matrix_input([[50, 3, 2], [4, 30, 6], [1, 2, 20]]))
    headline = {"accuracy", "balanced_accuracy", "g_mean", "h_mean", "macro_f1", "mcc", "cohen_kappa"}
    assert headline <= set(answer["intervals"])
    values = answer["metrics"]["prevalence_insensitive"] | answer["metrics"]["prevalence_sensitive"]
    for key in headline:
        interval = answer["intervals"][key]
        assert interval["low"] < values[key] < interval["high"]
    for label, groups in answer["per_class"].items():
        flat = groups["prevalence_insensitive"] | groups["prevalence_sensitive"]
        for metric in OF_MATRICES:
            proportion = metric.card.inference.proportion
            if metric.card.scope is Scope.CLASS and proportion is not None and proportion.is_plain:
                interval = answer["intervals"][f"{metric.key}@{label}"]
                assert 0 <= interval["low"] <= flat[metric.key] <= interval["high"] <= 1


def test_no_intervals_when_none_are_wanted(client: httpx.Client) -> None:
    answer = compute(client, matrix_input(FOUR_CLASSES), intervals="none")
    assert answer["intervals"] == {}
    assert "no_intervals" not in [finding["code"] for finding in answer["findings"]]


@each("level", [5e-324, 1e-300, 1e-9, 0.5, 0.999999, 1 - 1e-12, 1 - 2**-53])
@each("matrix", [MATRICES["binary"], MATRICES["perfect"], MATRICES["empty row"]])
def test_levels_at_the_ends(client: httpx.Client, level: float, matrix: list[list[Any]]) -> None:
    answer = compute(client, matrix_input(matrix), level=level, metrics=["min(recall@*)"], draws=200)
    assert "min(recall@*)" in answer["intervals"]
    for interval in answer["intervals"].values():
        assert interval["level"] == level
        assert (interval["low"] is None) == (interval["high"] is None) == ("reason" in interval)
        if interval["low"] is not None:
            assert interval["low"] <= interval["high"]


def test_a_missing_interval_says_why(client: httpx.Client) -> None:
    intervals = compute(client, matrix_input(MATRICES["binary"]), intervals="all", draws=200)["intervals"]
    reasons = {
        "reference_entropy": "the value follows from the class counts, which are taken as fixed",
        "accuracy_p_value": "the metric describes this sample and is no property of the classifier",
    }
    for metric, reason in reasons.items():
        assert intervals[metric]["low"] is intervals[metric]["high"] is None
        assert intervals[metric]["reason"] == reason


# Expressions.


def test_values_of_expressions(client: httpx.Client) -> None:
    matrix = [[50, 10], [5, 35]]
    asked = {
        "recall": 35 / 40,
        "sensitivity": 35 / 40,
        "recall@0": 50 / 60,
        'recall@"0"': 50 / 60,
        " mean( recall@* ) ": (50 / 60 + 35 / 40) / 2,
        "min(recall@*)": 50 / 60,
        "max(recall@*)": 35 / 40,
        "range(recall@*)": 35 / 40 - 50 / 60,
        "((h_mean))": 2 / (60 / 50 + 40 / 35),
        "f_beta(beta=1)": 2 * 35 / (2 * 35 + 10 + 5),
    }
    answer = compute(client, matrix_input(matrix), metrics=list(asked))
    assert list(answer["requested"]) == list(asked)
    for text, value in asked.items():
        assert answer["requested"][text] == pytest.approx(value)


def test_an_undefined_expression_says_which_part(client: httpx.Client) -> None:
    asked = [
        "precision@1",
        "precision@*",
        "gps(precision@*, recall@0)",
        "gps_sd(recall@*)",
        "mean(h_mean, precision@1)",
    ]
    answer = compute(client, matrix_input(MATRICES["empty column"]), metrics=asked)
    entries = {entry["metric"]: entry for entry in answer["undefined"] if entry["metric"] in asked}
    assert set(entries) == set(asked)
    assert entries["precision@1"]["code"] == "never_predicted"
    assert "'1'" in entries["precision@1"]["reason"]
    assert entries["precision@*"]["class"] == "1"
    assert answer["requested"]["precision@*"] == {"0": 0.5, "1": None, "2": 0.375}
    assert "precision" in entries["gps(precision@*, recall@0)"]["reason"].lower()
    assert entries["gps_sd(recall@*)"]["code"] == "zero_part"
    for text in ("ratio(recall@*)", "mean(accuracy, max(ratio(recall@*), mcc))"):
        (entry,) = (
            entry
            for entry in compute(client, matrix_input([[0, 5], [5, 0]]), metrics=[text])["undefined"]
            if entry["metric"] == text
        )
        assert (entry["code"], entry["reason"]) == ("zero_part", "all values are 0")


def test_an_expression_asked_twice_is_answered_once(client: httpx.Client) -> None:
    answer = compute(client, matrix_input(MATRICES["empty column"]), metrics=["precision@1", "precision@1"])
    assert answer["requested"] == {"precision@1": None}
    assert [entry["metric"] for entry in answer["undefined"]].count("precision@1") == 1


def test_what_is_not_monotone_is_said(client: httpx.Client) -> None:
    asked = ["lehmer_mean_recall(r=1)", "mean(lehmer_mean_recall(r=1), h_mean)", "max(lehmer_mean_recall(r=1), mcc)"]
    answer = compute(client, matrix_input(FOUR_CLASSES), metrics=asked)
    (finding,) = [finding for finding in answer["findings"] if finding["code"] == "not_monotone"]
    assert finding["evidence"]["metric"] == "lehmer_mean_recall"
    assert finding["evidence"]["parameters"]["r"] == 1
    assert finding["message"].startswith("A Gini mean with p = 2, q = 1 is not monotone")


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("h_men", "unknown_metric", "h_mean"),
        ("skleran.f1_score", "unknown_metric", "f1"),
        ("recall@5", "unknown_label", "'0', '1', '2'"),
        ("recall", "invalid_expression", "recall@<label>"),
        ("h_mean@1", "invalid_expression", "all classes together"),
        ("gps(mcc, h_mean)", "invalid_expression", "mixed signs"),
        ("f_beta(beta=-1)@1", "invalid_parameter", "beta"),
        ("f_beta(gamma=1)@1", "invalid_parameter", "it takes beta"),
        ("gps(", "invalid_expression", "expected"),
        ("1+1", "invalid_expression", "expected"),
        ("__import__('os')", "unknown_metric", "no metric"),
        ("(" * 40 + "h_mean" + ")" * 40, "invalid_expression", "32"),
    ],
)  # fmt: skip
def test_what_is_no_expression(client: httpx.Client, text: str, code: str, words: str) -> None:
    body = {"input": matrix_input(MATRICES["perfect"]), "options": {"metrics": ["accuracy", text]}}
    problem = check_problem(client.post("/v1/metrics/compute", json=body), 422, code)
    (fault,) = problem["errors"]
    assert fault["pointer"] == "/options/metrics/1"
    assert words in fault["detail"]
    if code == "unknown_metric" and "import" not in text:
        assert words in " ".join(fault["suggestions"])
    if code == "unknown_label":
        assert fault["known"] == ["0", "1", "2"]
    assert fault["position"] >= 0


def test_two_hundred_expressions(client: httpx.Client) -> None:
    asked = [f"f_beta(beta={index + 1})@0" for index in range(200)]
    assert len(compute(client, matrix_input(FOUR_CLASSES), metrics=asked)["requested"]) == 200
    refused = client.post("/v1/evaluations", json=evaluation(options={"metrics": [*asked, "h_mean"]}))
    assert check_problem(refused, 422, "invalid_request")["errors"][0]["pointer"] == "/options/metrics"


# Words for values.


def test_interpretation(client: httpx.Client) -> None:
    source = matrix_input([[45, 5], [10, 40]], labels=["a b", "ill"])
    answer = compute(client, source, interpretation=True)
    assert answer["interpretation"]["cohen_kappa"]["landis_koch"] == "substantial"
    assert answer["interpretation"]['likelihood_ratio_positive@"a b"']
    assert answer["interpretation"]["likelihood_ratio_positive@ill"]
    assert "interpretation" not in compute(client, source)
    gone = compute(client, matrix_input(MATRICES["constant"]), interpretation=True)
    assert "mcc" not in gone["interpretation"]


@pytest.mark.parametrize(
    ("matrix", "codes"),
    [
        (FOUR_CLASSES, {"accuracy_overstates"}),
        (MATRICES["binary constant"], {"constant_prediction"}),
        (MATRICES["empty row"], {"no_samples"}),
        ([[900, 0], [60, 40]], {"accuracy_overstates"}),
        ([[50, 50], [0, 10]], {"majority_not_beaten"}),
        ([[1, 0], [0, 50]], {"too_few_samples"}),
    ],
)
def test_findings(client: httpx.Client, matrix: list[list[int]], codes: set[str]) -> None:
    findings = compute(client, matrix_input(matrix))["findings"]
    assert codes <= {finding["code"] for finding in findings}
    weights = ["critical", "warning", "note"]
    assert [finding["severity"] for finding in findings] == sorted(
        (finding["severity"] for finding in findings), key=weights.index
    )
    for finding in findings:
        assert finding["message"].endswith(".")
        assert finding["evidence"]


def test_nothing_is_found_where_nothing_is_wrong(client: httpx.Client) -> None:
    assert compute(client, matrix_input([[95, 5], [6, 94]]))["findings"] == []
