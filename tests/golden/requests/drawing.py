"""Figures as data, and reports; pictures are compared by the specifications that they are drawn of."""

from tests.golden.calls import get, keep, post, put
from tests.golden.data import of_matrix, scored

_PLOT = "/v1/evaluations/${}/plots/{}.json".format
_RANKING = {
    "kind": "ranking",
    "query_ids": ["q", "q", "r", "r"],
    "relevance": [1, 0, 0, 1],
    "scores": [2.0, 1.0, 3.0, 1.0],
}
_RULES = [
    {"metric": "h_mean", "min": 0.9},
    {"metric": "error_rate", "max": 0.4},
    {"metric": "accuracy", "not_worse_than": "baseline", "margin": 0.05},
]
FIGURES = [
    keep("two", scored(60, (3, 2), 0.7, 1)),
    keep("other", scored(50, (3, 2), 0.5, 2), model="other"),
    keep("three", scored(60, (5, 3, 2), 0.8, 2)),
    keep("four", of_matrix([[80, 0, 0, 0], [0, 60, 0, 0], [0, 0, 50, 0], [4, 2, 2, 2]])),
    keep("ranking", _RANKING),
    post("compared", "/v1/comparisons", {"evaluations": ["$two", "$other"], "metrics": ["accuracy", "h_mean"]}),
    get("list", "/v1/plots"),
    *(get(f"four-{name}", _PLOT("four", name)) for name in ("confusion", "confusions", "per_class", "isocurves")),
    *(get(f"two-{name}", _PLOT("two", name), theme="dark") for name in ("roc", "pr", "det", "calibration", "imcp")),
    *(get(f"three-{name}", _PLOT("three", name)) for name in ("roc", "mcp", "phi", "prevalence")),
    get("both", _PLOT("two", "roc"), width=200, height=150, **{"with": "$other", "class": "A"}),
    get("no-samples", _PLOT("four", "roc")),
    get("no-classes", _PLOT("ranking", "per_class")),
    get("not-of-this", _PLOT("two", "confusion"), **{"class": "A"}),
    get("differences", "/v1/comparisons/$compared/plots/differences.json"),
    get("not-of-runs", "/v1/comparisons/$compared/plots/critical_difference.json"),
    get("four-surfaces", _PLOT("four", "surfaces"), **{"class": "3"}),
    get("four-recalls", _PLOT("four", "recall_sweep")),
    get("four-spread", _PLOT("four", "gps_spread"), theme="dark"),
    get("four-spread-surface", _PLOT("four", "gps_spread_surface")),
    get("three-imcp-of-a-class", _PLOT("three", "imcp"), **{"class": "A"}),
    get("three-mcp-of-a-class", _PLOT("three", "mcp"), theme="dark", **{"class": "B"}),
    get("two-scores", _PLOT("two", "scores")),
    get("three-scores", _PLOT("three", "scores"), **{"class": "A"}),
    put("drawn-gate", "/v1/gates/drawn", {"rules": _RULES, "minimum_samples": 10}),
    post("checked", "/v1/gates/drawn/checks", {"evaluation": "$two", "baseline": "$other"}),
    get("verdict", "/v1/gates/drawn/checks/$checked/plots/verdict.json"),
    get("no-such-check", "/v1/gates/other/checks/$checked/plots/verdict.json"),
    get("report", "/v1/evaluations/$four/report"),
    get("report-of-a-ranking", "/v1/evaluations/$ranking/report", theme="dark"),
    get("report-of-a-comparison", "/v1/comparisons/$compared/report"),
]
