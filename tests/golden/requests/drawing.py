"""Figures as data, and reports; pictures are compared by the specifications that they are drawn of."""

from tests.golden.calls import get, keep, post
from tests.golden.data import of_matrix, scored

_PLOT = "/v1/evaluations/${}/plots/{}.json".format
_RANKING = {
    "kind": "ranking",
    "query_ids": ["q", "q", "r", "r"],
    "relevance": [1, 0, 0, 1],
    "scores": [2.0, 1.0, 3.0, 1.0],
}
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
    get("report", "/v1/evaluations/$four/report"),
    get("report-of-a-ranking", "/v1/evaluations/$ranking/report", theme="dark"),
    get("report-of-a-comparison", "/v1/comparisons/$compared/report"),
]
