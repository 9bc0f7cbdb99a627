"""Curves, and the decision rules that are best for a metric."""

from tests.golden.calls import get, keep, post
from tests.golden.data import groups, of_folds, of_matrix, of_scores, scored, scores, truth, weights

_BINARY = truth(140, (3, 2))
_NAMES = ("roc", "pr", "det", "mcp", "imcp", "calibration", "decision", "cost", "gain", "lift")
_WHOLE = ("mcp", "imcp")
_RUNS = [
    keep("two", scored(140, (3, 2), 0.7, 1)),
    keep("three", scored(150, (5, 3, 2), 0.8, 2)),
    keep("scores", of_scores(_BINARY, scores(_BINARY, 3, decimals=1), threshold=0.2)),
    keep("weighted", scored(100, (1, 1), 0.7, 4, sample_weight=weights(100))),
    keep("matrix", of_matrix([[40, 10], [5, 45]])),
    keep("forgotten", scored(80, (1, 1), 0.7, 5), options={"retain": "none"}),
]
CURVES = [
    *_RUNS,
    *(get(f"two-{name}", f"/v1/evaluations/$two/curves/{name}") for name in _NAMES),
    *(
        get(f"three-{name}", f"/v1/evaluations/$three/curves/{name}", **({} if name in _WHOLE else {"class": "B"}))
        for name in _NAMES
    ),
    *(get(f"scores-{name}", f"/v1/evaluations/$scores/curves/{name}") for name in _NAMES),
    get("thinned", "/v1/evaluations/$two/curves/roc", max_points=10),
    get("thinned-calibration", "/v1/evaluations/$three/curves/calibration", max_points=5),
    get("negative-class", "/v1/evaluations/$two/curves/pr", **{"class": "A"}),
    get("weighted-roc", "/v1/evaluations/$weighted/curves/roc"),
    get("weighted-imcp", "/v1/evaluations/$weighted/curves/imcp"),
    get("class-needed", "/v1/evaluations/$three/curves/roc"),
    get("class-unknown", "/v1/evaluations/$three/curves/roc", **{"class": "Z"}),
    get("imcp-of-a-class", "/v1/evaluations/$three/curves/imcp", **{"class": "A"}),
    get("no-samples", "/v1/evaluations/$matrix/curves/roc"),
    get("not-retained", "/v1/evaluations/$forgotten/curves/roc"),
    get("no-curve", "/v1/evaluations/$two/curves/bow"),
    get("band", "/v1/evaluations/$two/curves/roc", band="pointwise", max_points=20, seed=1),
    get(
        "band-of-all", "/v1/evaluations/$three/curves/pr", band="simultaneous", max_points=20, seed=1, **{"class": "A"}
    ),
    get("band-of-bins", "/v1/evaluations/$two/curves/calibration", band="pointwise", level=0.9),
    get("consistency-band", "/v1/evaluations/$two/curves/calibration", form="isotonic", band="pointwise", seed=1),
    get("calibration-of-the-predicted", "/v1/evaluations/$two/curves/calibration", **{"class": "predicted"}),
    get("band-of-weighted", "/v1/evaluations/$weighted/curves/roc", band="pointwise", max_points=20, seed=1),
    get("micro", "/v1/evaluations/$three/curves/roc", **{"class": "micro"}),
    get("macro", "/v1/evaluations/$three/curves/det", **{"class": "macro"}),
    get("with-another", "/v1/evaluations/$two/curves/roc", max_points=10, **{"with": "$weighted"}),
    post(
        "of-an-input", "/v1/curves/roc", {"input": of_scores(_BINARY, scores(_BINARY, 3, decimals=1)), "max_points": 20}
    ),
    post("of-a-matrix", "/v1/curves/roc", {"input": of_matrix([[40, 10], [5, 45]])}),
    get("matrix-of-shares", "/v1/evaluations/$three/confusion-matrix", normalized="true"),
    get("no-points", "/v1/evaluations/$two/curves/roc", max_points=1),
]

_AT = "/v1/evaluations/${}/thresholds".format
THRESHOLDS = [
    *_RUNS,
    keep("grouped", scored(120, (1, 1), 0.7, 6, group_ids=groups(120))),
    keep("folds", of_folds(*(scored(60, (2, 1), 0.7, seed) for seed in (7, 8)))),
    post("h-mean", _AT("two"), {"objective": "h_mean", "resamples": 20}),
    post("mcc", _AT("two"), {"objective": "mcc", "correction": "632", "resamples": 20, "seed": 3}),
    post("f2", _AT("two"), {"objective": "f_beta(beta=2)", "correction": "none", "max_points": 20}),
    post("lower-is-better", _AT("two"), {"objective": "error_rate", "resamples": 10}),
    post(
        "constraint",
        _AT("two"),
        {"objective": "mcc", "constraints": [{"metric": "recall", "min": 0.8}], "resamples": 10, "max_points": 30},
    ),
    post(
        "constraints",
        _AT("two"),
        {
            "objective": "gps(recall@*, precision@B)",
            "constraints": [{"metric": "recall@B", "min": 0.5, "max": 0.95}, {"metric": "fpr", "max": 0.4}],
            "correction": "none",
        },
    ),
    post("of-scores", _AT("scores"), {"objective": "f1", "resamples": 20, "seed": 1}),
    post("of-weights", _AT("weighted"), {"objective": "h_mean", "resamples": 10}),
    post("of-groups", _AT("grouped"), {"objective": "h_mean"}),
    post("of-folds", _AT("folds"), {"objective": "balanced_accuracy", "resamples": 10}),
    post("three-classes", _AT("three"), {"objective": "h_mean", "correction": "none"}),
    post("three-corrected", _AT("three"), {"objective": "macro_f1", "resamples": 10, "seed": 2}),
    post(
        "three-constraint",
        _AT("three"),
        {
            "objective": "accuracy",
            "constraints": [{"metric": "min(recall@*)", "min": 0.5}],
            "correction": "none",
        },
    ),
    post(
        "of-an-input",
        "/v1/thresholds",
        {"input": of_scores(_BINARY, scores(_BINARY, 3, decimals=1)), "objective": "f1", "resamples": 20, "seed": 1},
    ),
    post("surface-of-three", _AT("three"), {"objective": "h_mean", "surface": {"steps": 6}, "correction": "none"}),
    post(
        "surface-of-four",
        "/v1/thresholds",
        {
            "input": scored(120, (4, 3, 2, 1), 0.8, 9),
            "objective": "gps(recall@*, precision@D)",
            "constraints": [{"metric": "recall@D", "min": 0.2}],
            "surface": {"steps": 6},
            "correction": "none",
        },
    ),
    post("surface-of-two", _AT("two"), {"objective": "h_mean", "surface": {"steps": 6}, "correction": "none"}),
    post("infeasible", _AT("two"), {"objective": "mcc", "constraints": [{"metric": "accuracy", "min": 1.5}]}),
    post("a-list", _AT("two"), {"objective": "recall@*"}),
    post("of-probabilities", _AT("two"), {"objective": "roc_auc"}),
    post("not-comparable", _AT("two"), {"objective": "prevalence"}),
    post("no-samples", _AT("matrix"), {"objective": "h_mean"}),
    post("not-retained", _AT("forgotten"), {"objective": "h_mean"}),
    post("no-objective", _AT("two"), {"constraints": []}),
]
