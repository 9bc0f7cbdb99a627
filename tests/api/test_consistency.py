"""Reported scores: could any confusion matrix have produced them?"""

from typing import Any

import httpx
import pytest

from app.api.answers import answer_model
from app.services.consistency import ConsistencyAnswer
from tests.api.answers import Json, check_json, check_problem
from tests.api.shown import BODIES
from tests.bank import each


def check(client: httpx.Client, **body: Any) -> Json:
    reply = client.post("/v1/consistency-checks", json=body)
    assert reply.status_code == 200, reply.text
    check_json(reply, named=("metrics", "examples", "implied"))
    answer_model(ConsistencyAnswer, "ConsistencyResponse").model_validate_json(reply.content)
    answer: Json = reply.json()
    return answer


def test_an_impossible_report(client: httpx.Client) -> None:
    """100 and 200 samples; accuracy 0.9567, sensitivity 0.8545, specificity 0.9734."""
    answer = check(
        client, p=100, n=200, scores={"accuracy": "0.9567", "sensitivity": "0.8545", "specificity": "0.9734"}
    )
    assert (answer["consistent"], answer["feasible_count"]) == (False, 0)
    assert answer["examples"] == []
    assert answer["implied"] == {}
    assert len(answer["assumptions"]) == 2


def test_all_matrices_that_fit(client: httpx.Client) -> None:
    """F1 and accuracy of 0.80 at 50 and 50: three matrices."""
    answer = check(client, p=50, n=50, scores={"f1": "0.80", "accuracy": "0.80"}, metrics=["mcc", "h_mean", "recall@*"])
    assert (answer["consistent"], answer["feasible_count"]) == (True, 3)
    assert len(answer["examples"]) == 3
    for example in answer["examples"]:
        tp, fn, fp, tn = (example[name] for name in ("tp", "fn", "fp", "tn"))
        assert (tp + fn, fp + tn) == (50, 50)
        assert round(2 * tp / (2 * tp + fp + fn), 2) == 0.8
        assert round((tp + tn) / 100, 2) == 0.8
    recalls = [example["tp"] / 50 for example in answer["examples"]]
    assert answer["implied"]["recall"] == {"low": pytest.approx(min(recalls)), "high": pytest.approx(max(recalls))}
    assert answer["metrics"]["recall@1"]["low"] == pytest.approx(min(recalls))
    assert answer["metrics"]["mcc"]["low"] == pytest.approx(answer["implied"]["mcc"]["low"])
    assert answer["metrics"]["h_mean"]["undefined_count"] == 0


def test_rounding_and_truncation(client: httpx.Client) -> None:
    """23/30 = 0.7666… printed as 0.766."""
    body: Json = {"p": 30, "n": 10, "scores": {"recall": "0.766"}}
    rounded = check(client, **body)
    assert not rounded["consistent"]
    assert rounded["alternatives"][0]["code"] == "truncated"
    assert "cut off" in rounded["alternatives"][0]["message"]
    assert check(client, **body, rounding="truncated")["consistent"]
    assert check(client, **body, rounding="any")["consistent"]


def test_other_readings(client: httpx.Client) -> None:
    """Recall and specificity of a matrix, printed for the wrong class."""
    scores = {"recall": "0.9650", "specificity": "0.8700", "accuracy": "0.9333"}
    answer = check(client, p=100, n=200, scores=scores)
    assert not answer["consistent"]
    assert "swapped_classes" in [other["code"] for other in answer["alternatives"]]


def test_digits_matter(client: httpx.Client) -> None:
    assert check(client, p=30, n=30, scores={"recall": "0.8"})["feasible_count"] == 3 * 31
    assert check(client, p=30, n=30, scores={"recall": "0.800"})["feasible_count"] == 31


def test_several_classes(client: httpx.Client) -> None:
    classes = {"A": 100, "B": 50, "C": 20}
    answer = check(client, classes=classes, scores={"accuracy": "0.900", "recall@C": "0.50", "precision@A": "0.95"})
    assert answer["consistent"] is True
    (example,) = answer["examples"]
    matrix = example["confusion_matrix"]
    assert [sum(row) for row in matrix] == [100, 50, 20]
    assert matrix[2][2] == 10
    assert round(sum(matrix[k][k] for k in range(3)) / 170, 3) == 0.9
    impossible = check(client, classes=classes, scores={"accuracy": "0.990", "recall@A": "0.50"})
    # Matrices that fit are not counted, but for there being none.
    assert (answer["feasible_count"], impossible["feasible_count"]) == (None, 0)
    assert (impossible["consistent"], impossible["feasible_count"]) == (False, 0)


def test_means_over_folds(client: httpx.Client) -> None:
    folds = [{"p": 10, "n": 20}, {"p": 11, "n": 19}]
    answer = check(client, folds=folds, scores={"accuracy": "0.85", "recall": "0.75"})
    assert answer["consistent"] is True
    cells = answer["examples"][0]["folds"]
    assert [(cell["tp"] + cell["fn"], cell["fp"] + cell["tn"]) for cell in cells] == [(10, 20), (11, 19)]
    assert abs(sum(cell["tp"] / (cell["tp"] + cell["fn"]) for cell in cells) / 2 - 0.75) <= 0.005
    assert check(client, folds=folds, scores={"accuracy": "0.99", "recall": "0.1"})["consistent"] is False


def test_an_unknown_number_of_negatives(client: httpx.Client) -> None:
    """Recall .85 of 20, accuracy .9123 of 57: 35 right of 37."""
    scores = {"recall": "0.85", "accuracy": "0.9123", "specificity": "0.946"}
    answer = check(client, p=20, scores=scores, search_up_to=100)
    assert answer["consistent"] is True
    assert answer["feasible_count"] is None
    fitting = [
        n
        for n in range(1, 101)
        for tn in range(n + 1)
        if abs(tn / n - 0.946) <= 0.0005 and abs((17 + tn) / (20 + n) - 0.9123) <= 0.00005
    ]
    assert 37 in fitting
    assert answer["sizes"]["n"] == [{"low": n, "high": n} for n in fitting]
    assert (answer["sizes"]["p"], answer["sizes"]["n_up_to"], answer["sizes"]["searched"]) == (20, 100, 100)
    assert answer["sizes"]["fitting"] == len(fitting) == len(answer["examples"])
    assert any("n was searched from 1 to 100" in sentence for sentence in answer["assumptions"])
    none = check(client, p=20, scores={**scores, "recall": "0.87"}, search_up_to=100)
    assert (none["consistent"], none["feasible_count"], none["sizes"]["n"]) == (False, 0, [])


@pytest.mark.slow
def test_as_far_as_time_allows(client: httpx.Client) -> None:
    answer = check(client, n=999, scores={"recall": "0.5", "specificity": "1.000"})
    assert answer["sizes"]["p_up_to"] == 2000
    assert answer["sizes"]["p"][-1]["high"] == 2000
    assert check(client, p=7, scores={"recall": "0.5"})["consistent"] is False


def test_only_the_total_is_known(client: httpx.Client) -> None:
    """17 of 20 and 35 of 37: of 57 samples no other division fits."""
    scores = {"recall": "0.8500", "specificity": "0.9459"}
    answer = check(client, total=57, scores=scores)
    assert answer["sizes"] == {
        "total": 57,
        "searched": 56,
        "fitting": 1,
        "p": [{"low": 20, "high": 20}],
        "ranges": 1,
    }
    assert answer["examples"] == [{"tp": 17, "fn": 3, "fp": 2, "tn": 35}]
    assert check(client, total=57, n=37, scores=scores)["consistent"] is True
    swapped = check(client, total=57, n=20, scores=scores)
    assert swapped["consistent"] is False
    assert {"swapped_classes", "swapped_counts"} <= {other["code"] for other in swapped["alternatives"]}


def test_nothing_is_known_of_the_sizes(client: httpx.Client) -> None:
    """2/3 and 4/5 are the smallest shares that print as .667 and .800."""
    answer = check(client, scores={"recall": "0.667", "specificity": "0.800"}, search_up_to=30)
    assert answer["sizes"]["smallest"][0] == {"p": 3, "n": 5}
    assert answer["sizes"]["total_up_to"] == 30
    assert answer["sizes"]["fitting"] == sum(3 * a + 5 * b <= 30 for a in range(1, 10) for b in range(1, 6))


def test_other_readings_of_several_classes(client: httpx.Client) -> None:
    """Recalls .8, .7 and precisions 8/11, 7/9 of [[8, 2], [3, 7]], printed for each other, and cut off."""
    classes = {"A": 10, "B": 10}
    turned = check(client, classes=classes, scores={"recall@A": "0.727", "precision@A": "0.800"})
    assert turned["consistent"] is False
    assert [other["code"] for other in turned["alternatives"]] == ["transposed"]
    cut = check(client, classes=classes, scores={"recall@A": "0.80", "precision@A": "0.72"})
    assert [other["code"] for other in cut["alternatives"]] == ["truncated"]
    rest = check(client, classes=classes, scores={"fpr@A": "0.30", "npv@A": "0.7778", "jaccard@A": "0.615"})
    assert rest["examples"] == [{"labels": ["A", "B"], "confusion_matrix": [[8, 2], [3, 7]]}]
    assert rest["implied"]["recall@A"] == {"low": pytest.approx(0.8), "high": pytest.approx(0.8)}
    assert rest["implied"]["accuracy"] == {"low": pytest.approx(0.75), "high": pytest.approx(0.75)}


def test_folds_taken_together(client: httpx.Client) -> None:
    """Recalls 9/10 and 1/20: mean .475, together 10/30."""
    folds = [{"p": 10, "n": 5}, {"p": 20, "n": 5}]
    pooled: Json = {"folds": folds, "scores": {"recall": "0.3333", "specificity": "1.0000"}}
    mean = check(client, **pooled)
    assert mean["consistent"] is False
    assert [other["code"] for other in mean["alternatives"]] == ["score_of_sums"]
    together = check(client, **pooled, aggregation="score_of_sums", metrics=["mcc"])
    assert (together["consistent"], together["feasible_count"]) == (True, 1)
    assert together["examples"] == [{"tp": 10, "fn": 20, "fp": 0, "tn": 10}]
    assert together["metrics"]["mcc"]["low"] == pytest.approx(together["implied"]["mcc"]["low"])
    other = check(client, folds=folds, scores={"recall": "0.4750"}, aggregation="score_of_sums")
    assert [reading["code"] for reading in other["alternatives"]] == ["mean_of_scores"]
    assert check(client, folds=folds, scores={"f1": "0.5000"}, aggregation="score_of_sums")["consistent"] is True
    # Folds that have too many samples for it together are not looked at so.
    many = [{"p": 1, "n": 10_000}, *[{"p": 10_000, "n": 10_000}] * 6]
    large = check(client, folds=many, scores={"recall": "0.99995"})
    assert [reading["code"] for reading in large["alternatives"]] == ["truncated"]
    swapped = check(client, folds=[{"p": 3, "n": 7}], scores={"recall": "0.7143", "specificity": "0.6667"})
    assert {"swapped_classes", "swapped_counts"} <= {reading["code"] for reading in swapped["alternatives"]}


@each(
    ("body", "code", "pointer"),
    [
        ({"p": 10, "n": 10, "scores": {}}, "invalid_request", "/scores"),
        ({"scores": {"recall": "0.5"}}, "invalid_request", ""),
        ({"p": 10, "n": 9, "total": 19, "scores": {"recall": "0.5"}}, "invalid_request", ""),
        ({"p": 10, "n": 9, "search_up_to": 19, "scores": {"recall": "0.5"}}, "invalid_request", ""),
        ({"p": 10, "total": 10, "scores": {"recall": "0.5"}}, "invalid_request", ""),
        ({"total": 10, "search_up_to": 20, "scores": {"recall": "0.5"}}, "invalid_request", ""),
        ({"p": 10, "scores": {"recall": "0.5"}, "metrics": ["mcc"]}, "invalid_request", ""),
        ({"p": 900, "search_up_to": 9000, "scores": {"recall": "0.5"}}, "invalid_input", "/search_up_to"),
        ({"search_up_to": 1000, "scores": {"recall": "0.5"}}, "invalid_input", "/search_up_to"),
        ({"p": 10, "n": 9, "aggregation": "score_of_sums", "scores": {"recall": "0.5"}}, "invalid_request", ""),
        ({"p": 10, "n": 0, "scores": {"recall": "0.5"}}, "invalid_request", "/n"),
        ({"p": 60_000, "n": 60_000, "scores": {"recall": "0.5"}}, "invalid_request", ""),
        (
            {
                "folds": [{"p": 10_000, "n": 10_000}] * 6,
                "aggregation": "score_of_sums",
                "scores": {"recall": "0.5"},
            },
            "invalid_request",
            "",
        ),
        ({"p": 10, "n": 10, "scores": {"recall": 0.5}}, "invalid_request", "/scores/recall"),
        ({"p": 10, "n": 10, "scores": {"recall": "high"}}, "invalid_request", "/scores/recall"),
        ({"p": 10, "n": 10, "scores": {"recall": "\u0660.\u0665"}}, "invalid_request", "/scores/recall"),
        ({"p": 10, "n": 10, "scores": {"recal": "0.5"}}, "invalid_input", "/scores/recal"),
        ({"p": 10, "n": 10, "scores": {"roc_similarity": "0.5"}}, "invalid_input", "/scores/roc_similarity"),
        ({"p": 10, "n": 10, "scores": {"macro_f1(undefined=zero)": "0.5"}}, "invalid_input", None),
        ({"p": 10, "n": 10, "scores": {"f_beta(beta=-1)": "0.5"}}, "invalid_parameter", "/scores/f_beta(beta=-1)"),
        ({"p": 10, "n": 10, "scores": {"f_beta(": "0.5"}}, "invalid_input", "/scores/f_beta("),
        ({"p": 10, "n": 10, "scores": {"mean(recall@*)": "0.5"}}, "invalid_input", "/scores/mean(recall@*)"),
        ({"p": 10, "n": 10, "scores": {"roc_auc": "0.5"}}, "invalid_input", "/scores/roc_auc"),
        ({"p": 10, "n": 10, "scores": {"recall@1": "0.5"}}, "invalid_input", "/scores/recall@1"),
        ({"classes": {"A": 3, "B": 3}, "scores": {"recall": "0.5"}}, "invalid_input", "/scores/recall"),
        ({"classes": {"A": 3, "B": 3}, "scores": {"accuracy@A": "0.5"}}, "invalid_input", "/scores/accuracy@A"),
        ({"classes": {"A": 3, "B": 3}, "scores": {"markedness@A": "0.5"}}, "invalid_input", "/scores/markedness@A"),
        ({"p": 10, "n": 10, "scores": {"recall": "0.5"}, "metrics": ["x"]}, "unknown_metric", "/metrics/0"),
        ({"p": 9_000, "n": 9_000, "scores": {"recall": "0.5"}, "metrics": ["mcc"]}, "invalid_input", "/metrics"),
        ({"classes": {"A": 3, "B": 3}, "scores": {"mcc": "0.5"}}, "invalid_input", "/scores/mcc"),
        ({"classes": {"A": 3, "B": 3}, "scores": {"recall@C": "0.5"}}, "invalid_input", "/scores/recall@C"),
        ({"classes": {"A": 3}, "scores": {"accuracy": "0.5"}}, "invalid_request", "/classes"),
        ({"folds": [{"p": 3, "n": 3}], "scores": {"f1": "0.5"}}, "invalid_input", "/scores/f1"),
        ({"folds": [{"p": 3, "n": 0}], "scores": {"recall": "0.5"}}, "invalid_request", "/folds/0/n"),
    ],
)
def test_what_is_refused(client: httpx.Client, body: Json, code: str, pointer: str | None) -> None:
    problem = check_problem(client.post("/v1/consistency-checks", json=body), 422, code)
    assert pointer is None or problem["errors"][0]["pointer"] == pointer


@pytest.mark.parametrize(
    "names",
    [
        ["h_mean", "ac_score", "upm", "markedness", "youden_j", "lr_positive", "lr_negative", "dor"],
        ["f_beta(beta=2)", "f_beta(beta=0.5)", "macro_f1", "macro_precision", "gwet_ac1", "fnr", "error_rate"],
        [
            "tversky_index(alpha=0.3, beta=0.7)",
            "net_benefit(threshold=0.2)",
            "weighted_f1",
            "kappa",
            "jaccard_negative",
        ],
    ],
)
def test_whatever_a_report_of_two_classes_holds_can_be_checked(client: httpx.Client, names: list[str]) -> None:
    """37 of 40 and 90 of 120 right: printed to four digits, hardly another matrix fits."""
    tp, fn, fp, tn = 37, 3, 30, 90
    matrix = {"kind": "confusion_matrix", "matrix": [[tn, fp], [fn, tp]], "labels": ["0", "1"], "positive": "1"}
    asked = [name for name in names if name != "jaccard_negative"]
    body = {"input": matrix, "options": {"metrics": asked}}
    values = client.post("/v1/evaluations?store=false", json=body).json()["requested"]
    values["jaccard_negative"] = tn / (tn + fp + fn)
    scores = {name: f"{values[name]:.4f}" for name in names}
    answer = check(client, p=tp + fn, n=fp + tn, scores=scores)
    assert answer["consistent"] is True
    assert {"tp": tp, "fn": fn, "fp": fp, "tn": tn} in answer["examples"]
    assert answer["feasible_count"] <= 2
    wrong = scores | {names[0]: f"{values[names[0]] + 0.05:.4f}"}
    assert check(client, p=tp + fn, n=fp + tn, scores=wrong)["consistent"] is False


def test_scores_with_parameters_of_several_classes(client: httpx.Client) -> None:
    """[[8, 2], [3, 7]]: F2 of A is 5 * 8 / (4 * 10 + 11), its informedness .5, kappa .5."""
    classes = {"A": 10, "B": 10}
    scores = {"f_beta(beta=2)@A": "0.7843", "youden_j@A": "0.500", "kappa": "0.5000", "fnr@B": "0.30"}
    answer = check(client, classes=classes, scores=scores)
    assert answer["examples"] == [{"labels": ["A", "B"], "confusion_matrix": [[8, 2], [3, 7]]}]
    assert check(client, classes=classes, scores=scores | {"kappa": "0.4000"})["consistent"] is False


def test_means_of_more_scores_over_folds(client: httpx.Client) -> None:
    folds = [{"p": 10, "n": 20}, {"p": 20, "n": 10}]
    scores = {"youden_j": "0.55", "error_rate": "0.20", "net_benefit(threshold=0.2)": "0.375"}
    answer = check(client, folds=folds, scores=scores)
    assert answer["consistent"] is True
    cells = answer["examples"][0]["folds"]
    mean = sum((cell["fp"] + cell["fn"]) / 30 for cell in cells) / 2
    assert abs(mean - 0.20) <= 0.005


def test_a_misspelt_score_is_recognised(client: httpx.Client) -> None:
    reply = client.post("/v1/consistency-checks", json={"p": 10, "n": 10, "scores": {"recal": "0.5"}})
    assert "did you mean recall" in reply.json()["detail"]


@pytest.mark.parametrize("title", BODIES["checkConsistency"])
def test_the_examples_of_the_documentation(client: httpx.Client, title: str) -> None:
    assert check(client, **BODIES["checkConsistency"][title])["consistent"] is (title != "impossible")
