"""Gates: definitions, versions, and checks of every demand and bound."""

from typing import Any

from tests.golden.calls import Call, Json, delete, get, keep, post, put
from tests.golden.data import groups, labelled, of_folds, of_matrix, scored

_NOWHERE = "01900000-0000-7000-8000-000000000001"
_IDS = list(range(200))


def _check(name: str, run: str, *rules: Json, baseline: str | None = None, **members: Any) -> list[Call]:
    """A gate of these rules, and a check against it."""
    body = {"evaluation": f"${run}", **({} if baseline is None else {"baseline": f"${baseline}"})}
    return [
        put(f"{name}-gate", f"/v1/gates/{name}", {"rules": list(rules), **members}),
        post(name, f"/v1/gates/{name}/checks", body),
    ]


def _floors(bound: str) -> list[Json]:
    """Rules that pass, fail and stay open, on closed forms and on simulated intervals, of one value and of lists."""
    return [
        {"metric": "h_mean", "min": 0.5, "bound": bound},
        {"metric": "accuracy", "min": 0.95, "bound": bound},
        {"metric": "min(recall@*)", "min": 0.72, "bound": bound},
        {"metric": "recall@*", "min": 0.7, "bound": bound, "level": 0.9},
        {"metric": "error_rate", "max": 0.3, "bound": bound},
        {"metric": "cohen_kappa", "min": 0.6, "bound": bound},
        {"metric": "gps_upm", "min": 0.74, "bound": bound},
        {"metric": "f_beta(beta=2)@*", "min": 0.6, "bound": bound},
        {"metric": "range(recall@*)", "max": 0.1, "bound": bound},
    ]


def _beside(demand: str, margin: float | None, **members: Any) -> list[Json]:
    """Rules of one demand on the difference to a baseline."""
    more = {demand: "baseline", **({} if margin is None else {"margin": margin}), **members}
    return [{"metric": metric, **more} for metric in ("accuracy", "h_mean", "recall@*", "error_rate", "mcc")]


GATES = [
    keep("a", labelled(200, (5, 3, 2), 0.8, 1, sample_ids=_IDS), "a"),
    keep("b", labelled(200, (5, 3, 2), 0.74, 2, sample_ids=_IDS), "b"),
    keep("poor", labelled(200, (5, 3, 2), 0.4, 3, sample_ids=_IDS), "poor"),
    keep("mix-1", of_matrix([[90, 10], [5, 45]]), "mix-1", "one"),
    keep("mix-2", of_matrix([[30, 6], [20, 120]]), "mix-2", "two"),
    keep("weighted", of_matrix([[50.5, 10], [3, 20]]), "weighted"),
    keep("undefined", of_matrix([[9, 0, 1], [4, 0, 2], [1, 0, 8]], labels=["A", "B", "C"]), "undefined"),
    keep("grouped", labelled(200, (5, 3, 2), 0.8, 4, sample_ids=_IDS, group_ids=groups(200)), "grouped"),
    keep("folds", of_folds(of_matrix([[40, 10], [5, 45]]), of_matrix([[38, 12], [6, 44]])), "folds"),
    *_check("lower", "a", *_floors("lower")),
    *_check("value", "a", *_floors("value")),
    *_check("upper", "a", *_floors("upper")),
    *_check("lower-poor", "poor", *_floors("lower")),
    *_check("not-worse", "b", *_beside("not_worse_than", 0.05), baseline="a"),
    *_check("not-worse-no-margin", "a", *_beside("not_worse_than", None), baseline="b"),
    *_check("not-worse-guardrail", "poor", *_beside("not_worse_than", 0.05, bound="upper"), baseline="a"),
    *_check("not-worse-value", "b", *_beside("not_worse_than", 0.02, bound="value"), baseline="a"),
    *_check("better", "a", *_beside("better_than", None), baseline="b"),
    *_check("better-than-poor", "a", *_beside("better_than", 0.1, level=0.9), baseline="poor"),
    *_check("better-value", "b", *_beside("better_than", 0.01, bound="value"), baseline="a"),
    *_check("equivalent", "a", *_beside("equivalent_to", 0.2), baseline="b"),
    *_check("equivalent-value", "a", *_beside("equivalent_to", 0.01, bound="value"), baseline="b"),
    *_check("unpaired", "mix-1", *_beside("not_worse_than", 0.1), baseline="mix-2"),
    *_check("too-few", "a", {"metric": "accuracy", "min": 0.5}, minimum_samples=1000, description="Many are wanted."),
    *_check("enough", "a", {"metric": "accuracy", "min": 0.5}, minimum_samples=100),
    *_check(
        "of-weights",
        "weighted",
        {"metric": "accuracy", "min": 0.5},
        {"metric": "accuracy", "min": 0.5, "bound": "value"},
    ),
    *_check("of-undefined", "undefined", {"metric": "macro_precision", "min": 0.5}, {"metric": "recall@*", "min": 0.1}),
    *_check("of-groups", "grouped", {"metric": "accuracy", "min": 0.5}, *_beside("not_worse_than", 0.3), baseline="a"),
    *_check("of-folds", "folds", {"metric": "balanced_accuracy", "min": 0.8}, {"metric": "mcc", "min": 0.1}),
    put("second-version", "/v1/gates/enough", {"rules": [{"metric": "h_mean", "min": 0.9}]}),
    put("no-new-version", "/v1/gates/enough", {"rules": [{"metric": "h_mean", "min": 0.9}]}),
    post("check-second", "/v1/gates/enough/checks", {"evaluation": "$a"}),
    post("check-again", "/v1/gates/enough/checks", {"evaluation": "$b", "baseline": "$a"}),
    get("read", "/v1/gates/enough"),
    get("read-first", "/v1/gates/enough", version=1),
    get("read-none", "/v1/gates/enough", version=7),
    get("versions", "/v1/gates/enough/versions"),
    get("checks", "/v1/gates/enough/checks"),
    get("checks-page", "/v1/gates/enough/checks", limit=2),
    get("checks-next", "/v1/gates/enough/checks", limit=2, cursor="$checks-page:/next_cursor"),
    get("read-check", "/v1/gates/enough/checks/$check-second"),
    get("checks-of-all", "/v1/gate-checks", limit=5),
    get("checks-of-a-verdict", "/v1/gate-checks", verdict="fail", fields="gate,verdict"),
    get("list", "/v1/gates", limit=4),
    get("list-next", "/v1/gates", limit=200, cursor="$list:/next_cursor"),
    delete("delete", "/v1/gates/too-few"),
    get("read-deleted", "/v1/gates/too-few"),
    get("versions-of-deleted", "/v1/gates/too-few/versions"),
    get("checks-of-deleted", "/v1/gates/too-few/checks"),
    post("check-of-deleted", "/v1/gates/too-few/checks", {"evaluation": "$a"}),
    put("put-again", "/v1/gates/too-few", {"rules": [{"metric": "mcc", "min": 0}]}),
    *(
        put(f"refused-{name}", "/v1/gates/refused", {"rules": [rule]})
        for name, rule in {
            "no-demand": {"metric": "h_mean"},
            "two-demands": {"metric": "h_mean", "min": 0.1, "max": 0.2},
            "margin": {"metric": "h_mean", "min": 0.1, "margin": 0.2},
            "no-margin": {"metric": "h_mean", "equivalent_to": "baseline"},
            "upper": {"metric": "h_mean", "better_than": "baseline", "bound": "upper"},
            "champion": {"metric": "h_mean", "not_worse_than": "champion"},
            "metric": {"metric": "h_meen", "min": 0.1},
            "expression": {"metric": "min(", "min": 0.1},
        }.items()
    ),
    post("baseline-needed", "/v1/gates/better/checks", {"evaluation": "$a"}),
    post("baseline-unknown", "/v1/gates/better/checks", {"evaluation": "$a", "baseline": _NOWHERE}),
    post("run-unknown", "/v1/gates/lower/checks", {"evaluation": _NOWHERE}),
    post("other-labels", "/v1/gates/better/checks", {"evaluation": "$a", "baseline": "$mix-1"}),
    post("gate-unknown", "/v1/gates/nothing/checks", {"evaluation": "$a"}),
    get("check-unknown", f"/v1/gates/lower/checks/{_NOWHERE}"),
    put("name-refused", "/v1/gates/-x", {"rules": [{"metric": "h_mean", "min": 0.1}]}),
]

_TWO = {"sample_ids": list(range(160))}
_SOFT = [
    {"metric": "roc_auc@B", "min": 0.7},
    {"metric": "log_loss", "max": 0.6},
    {"metric": "average_precision@B", "min": 0.9},
    {"metric": "expected_calibration_error", "max": 0.2},
    {"metric": "mean(h_mean, roc_auc@B)", "min": 0.8, "bound": "upper"},
    {"metric": "roc_auc@*", "min": 0.75, "bound": "upper"},
    {"metric": "brier_score", "max": 0.05, "bound": "value"},
    {"metric": "accuracy", "min": 0.6},
]
SCORED_GATES = [
    keep("a", scored(160, (3, 2), 0.7, 101, **_TWO), "a"),
    keep("b", scored(160, (3, 2), 0.5, 102, **_TWO), "b"),
    keep("elsewhere", scored(120, (1, 4), 0.5, 103), "elsewhere", "other"),
    keep("forgotten", scored(160, (3, 2), 0.5, 104, **_TWO), "forgotten", options={"retain": "none"}),
    keep("matrix", of_matrix([[80, 10], [9, 61]], labels=["A", "B"]), "matrix"),
    keep("three", scored(150, (5, 3, 2), 0.7, 105), "three"),
    *_check("floors", "a", *_SOFT),
    *_check("floors-three", "three", {"metric": "roc_auc@*", "min": 0.7}, {"metric": "roc_auc_ovr_macro", "min": 0.6}),
    *_check(
        "not-worse",
        "b",
        *({"metric": metric, "not_worse_than": "baseline", "margin": 0.1} for metric in ("roc_auc@B", "log_loss")),
        {"metric": "average_precision@B", "not_worse_than": "baseline", "margin": 0.1, "bound": "upper"},
        baseline="a",
    ),
    *_check(
        "better",
        "a",
        {"metric": "log_loss", "better_than": "baseline"},
        {"metric": "roc_auc@*", "better_than": "baseline"},
        baseline="b",
    ),
    *_check("equivalent", "a", {"metric": "brier_score", "equivalent_to": "baseline", "margin": 0.1}, baseline="b"),
    *_check(
        "unpaired",
        "a",
        {"metric": "roc_auc@B", "not_worse_than": "baseline", "margin": 0.1},
        {"metric": "log_loss", "better_than": "baseline"},
        baseline="elsewhere",
    ),
    *_check("value", "b", {"metric": "roc_auc@B", "better_than": "baseline", "bound": "value"}, baseline="a"),
    post("forgotten-refused", "/v1/gates/floors/checks", {"evaluation": "$forgotten"}),
    post(
        "trial",
        "/v1/gates/trials",
        {
            "rules": [{"metric": "accuracy", "min": 0.7}, {"metric": "roc_auc@B", "min": 0.7}],
            "evaluations": {"latest": 3},
            "gate": "floors",
        },
    ),
    post("matrix-refused", "/v1/gates/floors/checks", {"evaluation": "$matrix"}),
    post("baseline-refused", "/v1/gates/better/checks", {"evaluation": "$a", "baseline": "$matrix"}),
]
