"""Projections to other class shares, estimates of these, and checks of reported scores."""

from typing import Any

from tests.golden.calls import Call, Json, keep, post
from tests.golden.data import groups, labelled, of_matrix, of_scores, probabilities, scored, scores, truth, weights

_NOWHERE = "01900000-0000-7000-8000-000000000001"
_BINARY = truth(120, (3, 2))


def _project(name: str, run: str, metrics: list[str] | None = None, **members: Any) -> Call:
    body = {"seed": 1, "draws": 500, **members}
    return post(name, f"/v1/evaluations/${run}/projections", body if metrics is None else {**body, "metrics": metrics})


def _estimate(name: str, run: str, **members: Any) -> Call:
    return post(name, f"/v1/evaluations/${run}/prevalence-estimates", {"seed": 1, **members})


_SOFT = ["log_loss", "average_precision@B", "roc_auc@B", "accuracy", "mean(h_mean, brier_score)"]
PROJECTIONS = [
    keep("two", of_matrix([[90, 10], [10, 40]]), "two"),
    keep("rival", of_matrix([[97, 3], [25, 25]]), "rival"),
    keep("four", of_matrix([[80, 5, 3, 2], [4, 60, 5, 1], [2, 3, 50, 5], [4, 2, 3, 16]], labels=list("ABCD")), "four"),
    keep("rates", of_matrix([[0.9, 0.1], [0.2, 0.8]], normalized=True), "rates"),
    keep("soft", scored(150, (3, 2), 0.7, 1), "soft"),
    keep("soft-rival", scored(150, (3, 2), 0.4, 2), "soft-rival"),
    keep("soft-three", scored(150, (5, 3, 2), 0.8, 3), "soft-three"),
    keep("scores", of_scores(_BINARY, scores(_BINARY, 1), threshold=0), "scores"),
    keep("weighted", scored(100, (1, 1), 0.7, 4, sample_weight=weights(100)), "weighted"),
    keep("grouped", scored(150, (3, 2), 0.7, 5, group_ids=groups(150)), "grouped"),
    keep("lacking", of_matrix([[9, 1, 0], [1, 9, 0], [0, 0, 0]]), "lacking"),
    keep("labels", labelled(150, (5, 3, 2), 0.8, 6), "labels"),
    _project("at-deployment", "two", ["accuracy", "precision@1", "h_mean", "f1@*"], prevalence={"0": 0.99, "1": 0.01}),
    _project("default-metrics", "four", prevalence={"D": 0.5}),
    _project("seed-from-content", "four", ["mcc"], prevalence={"A": 0.25, "B": 0.25, "C": 0.25, "D": 0.25}, seed=None),
    _project("uncertain", "two", ["accuracy", "mcc"], prevalence={"1": 0.05}, prevalence_samples=200, level=0.9),
    _project("range", "two", ["precision@1", "accuracy"], prevalence_range={"1": [0.01, 0.1]}),
    _project("range-of-two", "four", ["accuracy", "macro_f1"], prevalence_range={"C": [0.1, 0.3], "D": [0.01, 0.2]}),
    _project("range-of-three", "four", ["mcc"], prevalence_range={"A": [0.1, 0.3], "C": [0.1, 0.3], "D": [0.01, 0.2]}),
    _project("sweep", "two", ["accuracy", "f1@1"], sweep={"class": "1", "from": 0.01, "to": 0.5, "steps": 12}),
    _project(
        "sweep-with-points",
        "four",
        ["accuracy"],
        sweep={"class": "D", "from": 0.1, "to": 0.5, "steps": 3, "at": ["observed", "equal", 0.02]},
    ),
    _project(
        "crossings", "two", ["accuracy", "mcc"], sweep={"class": "1", "from": 0, "to": 1, "steps": 9}, against="$rival"
    ),
    _project("of-rates", "rates", ["accuracy", "h_mean"], prevalence={"1": 0.01}),
    _project("class-without-samples", "lacking", ["accuracy"], prevalence={"0": 0.3}),
    _project("soft-at-deployment", "soft", _SOFT, prevalence={"B": 0.1}),
    _project(
        "soft-uncertain", "soft", ["log_loss", "average_precision@B"], prevalence={"B": 0.1}, prevalence_samples=100
    ),
    _project("soft-range", "soft", ["log_loss", "average_precision@B"], prevalence_range={"B": [0.05, 0.3]}),
    _project("soft-sweep", "soft", ["log_loss"], sweep={"class": "B", "from": 0.05, "to": 0.6, "steps": 5}),
    _project(
        "soft-crossings",
        "soft",
        ["log_loss"],
        sweep={"class": "B", "from": 0, "to": 1, "steps": 5},
        against="$soft-rival",
    ),
    _project("recalibrated", "soft", ["accuracy", "log_loss"], prevalence={"B": 0.1}, recalibrate=True),
    _project(
        "recalibrated-from",
        "soft-three",
        ["h_mean", "log_loss"],
        prevalence={"A": 0.1, "B": 0.2, "C": 0.7},
        recalibrate=True,
        old_prevalence={"A": 0.4, "B": 0.4, "C": 0.2},
    ),
    _project(
        "recalibrated-sweep",
        "soft",
        ["accuracy"],
        sweep={"class": "B", "from": 0.1, "to": 0.9, "steps": 4},
        recalibrate=True,
    ),
    _project(
        "calibration-has-no-interval", "soft", ["expected_calibration_error", "ks_statistic@B"], prevalence={"B": 0.2}
    ),
    _project("of-scores", "scores", ["roc_auc@1", "average_precision@1"], prevalence={"1": 0.1}),
    _project("of-weights", "weighted", ["log_loss", "accuracy"], prevalence={"B": 0.1}),
    _project("of-groups", "grouped", ["log_loss", "accuracy"], prevalence={"B": 0.1}),
    _project("of-labels", "labels", ["accuracy", "recall@*", "gps(recall@*, precision@C)"], prevalence={"C": 0.5}),
    _project("no-scenario", "two"),
    _project("several-scenarios", "two", prevalence={"1": 0.1}, sweep={"class": "1", "from": 0, "to": 1}),
    _project("unknown-class", "two", prevalence={"2": 0.5}),
    _project("more-than-one", "two", prevalence={"0": 0.9, "1": 0.4}),
    _project("less-than-one", "two", prevalence={"0": 0.5, "1": 0.4}),
    _project("impossible-range", "two", prevalence_range={"0": [0.6, 0.9], "1": [0.6, 0.9]}),
    _project("no-sweep", "two", sweep={"class": "1", "from": 0.5, "to": 0.5}),
    _project("no-samples-of-class", "lacking", ["accuracy"], prevalence={"2": 0.1}),
    _project("against-nobody", "two", sweep={"class": "1", "from": 0, "to": 1}, against=_NOWHERE),
    _project("matrix-of-loss", "two", ["log_loss"], prevalence={"1": 0.1}),
    _project("matrix-recalibrated", "two", ["accuracy"], prevalence={"1": 0.1}, recalibrate=True),
    _project("scores-recalibrated", "scores", ["accuracy"], prevalence={"1": 0.1}, recalibrate=True),
    post(
        "of-an-input",
        "/v1/projections",
        {"input": of_matrix([[90, 10], [10, 40]]), "prevalence": {"1": 0.01}, "seed": 1, "draws": 500},
    ),
    post("of-no-input", "/v1/projections", {"prevalence": {"1": 0.01}}),
    _project("unknown-metric", "two", ["accuarcy"], prevalence={"1": 0.1}),
    _estimate("shares-of-labels", "two", predicted={"0": 690, "1": 310}),
    _estimate("shares-of-four", "four", predicted={"A": 40, "B": 10, "C": 30, "D": 60}, level=0.8),
    _estimate("shares-at-a-vertex", "two", predicted={"0": 100, "1": 1}),
    _estimate("shares-seed-from-content", "labels", predicted={"A": 50, "B": 30, "C": 40}, seed=None),
    _estimate("shares-of-groups", "grouped", predicted={"A": 30, "B": 50}),
    _estimate("shares-of-rates", "rates", predicted={"0": 60, "1": 40}),
    _estimate("shares-of-probabilities", "soft", probabilities=probabilities(truth(60, (1, 4)), 9)),
    _estimate(
        "shares-recalibrated", "soft-three", probabilities=probabilities(truth(40, (1, 1, 4)), 8), recalibrate=True
    ),
    _estimate(
        "shares-calibrated-to",
        "soft",
        probabilities=probabilities(truth(40, (1, 4)), 7),
        old_prevalence={"A": 0.5, "B": 0.5},
    ),
    _estimate("shares-of-nothing", "two", predicted={"0": 0, "1": 0}),
    _estimate("shares-of-unknown-class", "two", predicted={"9": 5}),
    _estimate("shares-of-both", "two", predicted={"1": 5}, probabilities=[[0.5, 0.5]]),
    _estimate("shares-of-wrong-width", "two", probabilities=[[0.5, 0.2, 0.3]]),
    _estimate("shares-that-do-not-sum", "two", probabilities=[[0.5, 0.2]]),
]

_TEN = [{"p": 10, "n": 20}, {"p": 11, "n": 19}]
_CHECKS: dict[str, Json] = {
    "impossible": {"p": 100, "n": 200, "scores": {"accuracy": "0.9567", "recall": "0.8545", "specificity": "0.9734"}},
    "possible": {"p": 50, "n": 50, "scores": {"f1": "0.80", "accuracy": "0.80"}, "metrics": ["mcc", "h_mean"]},
    "many-scores": {"p": 40, "n": 60, "scores": {"mcc": "0.58", "cohen_kappa": "0.58", "precision": "0.76"}},
    "truncated": {"p": 30, "n": 70, "scores": {"recall": "0.766", "accuracy": "0.88"}, "rounding": "truncated"},
    "any-rounding": {"p": 30, "n": 70, "scores": {"recall": "0.767", "accuracy": "0.88"}, "rounding": "any"},
    "other-class": {"p": 30, "n": 70, "scores": {"recall": "0.9000", "specificity": "0.7667", "precision": "0.9000"}},
    "classes": {"classes": {"A": 100, "B": 50, "C": 20}, "scores": {"accuracy": "0.900", "recall@C": "0.50"}},
    "classes-impossible": {"classes": {"A": 30, "B": 5}, "scores": {"accuracy": "0.95", "recall@B": "0.10"}},
    "classes-by-class": {
        "classes": {"A": 20, "B": 15, "C": 10},
        "scores": {"precision@A": "0.80", "f1@B": "0.75", "balanced_accuracy": "0.78"},
    },
    "folds": {"folds": _TEN, "scores": {"accuracy": "0.85", "recall": "0.75"}},
    "folds-pooled": {"folds": _TEN, "scores": {"accuracy": "0.85", "f1": "0.77"}, "aggregation": "score_of_sums"},
    "folds-impossible": {"folds": _TEN, "scores": {"accuracy": "0.8512", "recall": "0.7777"}},
    "negatives-unknown": {"p": 12, "search_up_to": 40, "scores": {"recall": "0.75", "precision": "0.69"}},
    "positives-unknown": {"n": 12, "search_up_to": 40, "scores": {"specificity": "0.75", "accuracy": "0.69"}},
    "only-the-total": {"total": 57, "scores": {"recall": "0.8500", "specificity": "0.9459"}},
    "total-and-positives": {"total": 57, "p": 20, "scores": {"recall": "0.85"}},
    "nothing-known": {"search_up_to": 25, "scores": {"recall": "0.857", "specificity": "0.923"}},
    "nothing-fits": {"total": 20, "scores": {"recall": "0.857", "specificity": "0.991"}},
    "no-scores": {"p": 10, "n": 10, "scores": {}},
    "no-sizes": {"scores": {"recall": "0.5"}},
    "contradictory-sizes": {"p": 10, "n": 9, "total": 19, "scores": {"recall": "0.5"}},
    "too-many-sizes": {"search_up_to": 1000, "scores": {"recall": "0.5"}},
    "misspelt": {"p": 10, "n": 10, "scores": {"recal": "0.5"}},
    "not-known-here": {"classes": {"A": 3, "B": 3}, "scores": {"mcc": "0.5"}},
    "not-as-text": {"p": 10, "n": 10, "scores": {"recall": 0.5}},
    "not-of-folds": {"folds": [{"p": 3, "n": 3}], "scores": {"f1": "0.5"}},
    "too-many-matrices": {"p": 9_000, "n": 9_000, "scores": {"recall": "0.5"}, "metrics": ["mcc"]},
}
CONSISTENCY = [post(name, "/v1/consistency-checks", body) for name, body in _CHECKS.items()]
