"""What is saved: reads, batches, tags, lists; and what is asked of the catalogue."""

from typing import Any

from app.api.answers import member_names
from app.domain.catalogue import MetricCard
from tests.golden.calls import Call, delete, evaluation, get, keep, post
from tests.golden.data import (
    groups,
    labelled,
    matrix,
    of_counts,
    of_folds,
    of_matrix,
    of_scores,
    scored,
    scores,
    truth,
    weights,
)

_BINARY = truth(90, (3, 2))
_INPUTS = {
    "matrix": of_matrix(matrix(3, 150, 1), labels=["x", "y", "z"]),
    "counts": of_counts(40, 10, 5, 45, negative="healthy", positive="ill"),
    "predictions": labelled(120, (5, 3, 2), 0.8, 1, sample_ids=list(range(120))),
    "probabilities": scored(120, (5, 3, 2), 0.8, 1, sample_ids=[f"s{i}" for i in range(120)]),
    "scores": of_scores(_BINARY, scores(_BINARY, 1), threshold=0.1),
    "folds": of_folds(*(of_matrix(matrix(2, 60, seed)) for seed in (1, 2, 3))),
    "rates": of_matrix([[0.9, 0.1], [0.2, 0.8]], normalized=True),
    "weighted": scored(80, (1, 1), 0.8, 2, sample_weight=weights(80)),
    "groups": labelled(150, (1, 1), 0.8, 2, group_ids=groups(150)),
    "scored-groups": scored(150, (1, 1), 0.8, 3, group_ids=groups(150)),
    "scored-folds": of_folds(*(scored(60, (2, 1), 0.8, seed) for seed in (4, 5))),
}
_OPTIONS: dict[str, dict[str, Any]] = {
    "matrix": {"metrics": ["h_mean", "recall@*", "f_beta(beta=2)@y"], "level": 0.9, "interpretation": True},
    "predictions": {"intervals": "all", "seed": 5, "draws": 300},
    "probabilities": {"metrics": ["roc_auc@*"]},
    "scores": {"intervals": "all", "seed": 6, "draws": 200},
    "scored-groups": {"intervals": "all", "seed": 7, "draws": 200},
}
KEPT: list[Call] = [
    *(keep(f"keep-{kind}", source, f"m-{kind}", options=_OPTIONS.get(kind, {})) for kind, source in _INPUTS.items()),
    *(get(f"read-{kind}", f"/v1/evaluations/$keep-{kind}") for kind in _INPUTS),
    keep("keep-without-samples", _INPUTS["probabilities"], options={"retain": "none", "metrics": ["roc_auc@A"]}),
    get("read-without-samples", "/v1/evaluations/$keep-without-samples"),
    post("not-kept", "/v1/evaluations", {"input": _INPUTS["counts"]}, store="false"),
    Call(
        name="replace-tags",
        method="PATCH",
        path="/v1/evaluations/$keep-counts",
        json={"tags": {"stage": "production", "note": "ä: ü"}},
    ),
    get("read-with-tags", "/v1/evaluations/$keep-counts"),
    get("latest-headline", "/v1/evaluations/latest?fields=headline"),
    Call(name="remove-tags", method="PATCH", path="/v1/evaluations/$keep-counts", json={"tags": {}}),
    Call(name="tags-refused", method="PATCH", path="/v1/evaluations/$keep-counts", json={"tags": {"a:b": "c"}, "x": 1}),
    delete("delete", "/v1/evaluations/$keep-rates"),
    get("read-deleted", "/v1/evaluations/$keep-rates"),
    delete("delete-again", "/v1/evaluations/$keep-rates"),
    post(
        "batch",
        "/v1/evaluations/batch",
        {
            "evaluations": [
                evaluation(_INPUTS["counts"], "batched", tags={"place": "first"}),
                evaluation(of_matrix([[1, 2], [3]]), "batched"),
                {"input": _INPUTS["counts"]},
                evaluation(_INPUTS["probabilities"], "batched/2", options={"metrics": ["roc_auc@B"]}),
                "no evaluation",
                evaluation(of_matrix([[3, 1], [1, 3]]), "batched/3", options={"metrics": ["no_such_metric"]}),
            ]
        },
    ),
    post("batch-not-kept", "/v1/evaluations/batch", {"evaluations": [{"input": _INPUTS["matrix"]}]}, store="false"),
    get("read-of-batch", "/v1/evaluations/$batch:/items/3/evaluation/id"),
    Call(
        name="batch-minimal",
        method="POST",
        path="/v1/evaluations/batch",
        json={"evaluations": [evaluation(_INPUTS["counts"], "batched/4"), evaluation(of_matrix([[1, 2], [3]]))]},
        headers={"Prefer": "return=minimal"},
    ),
    *(get(f"values-{kind}", f"/v1/evaluations/$keep-{kind}", fields="values") for kind in _INPUTS),
    get(
        "values-chosen",
        "/v1/evaluations/$keep-probabilities",
        fields="values",
        metrics=["accuracy_score", "roc_auc@*", "log_loss", "min(recall@*)", "precision@A"],
    ),
    keep("keep-part", of_counts(4, 1, 2, 9, negative="healthy", positive="ill"), "m-part"),
    post(
        "merge", "/v1/evaluations/merge", {"evaluations": ["$keep-counts", "$keep-part"], "model": {"name": "m-whole"}}
    ),
    post("merge-refused", "/v1/evaluations/merge", {"evaluations": ["$keep-counts", "$keep-matrix"]}),
]

_RUNS = [
    keep(
        f"run-{i}",
        of_matrix(matrix(2 + i % 2, 60 + 20 * i, i)),
        f"{'abc'[i % 3]}/{i // 3}",
        f"d{i % 2}/v{i % 4}/test",
        tags={"stage": ["new", "old"][i % 2], "i": str(i)},
    )
    for i in range(9)
]
LISTS = [
    get("empty", "/v1/evaluations"),
    get("no-models", "/v1/models"),
    *_RUNS,
    keep("undefined", of_matrix([[5, 1, 0], [0, 0, 0], [2, 1, 6]]), "c/9", "d0"),
    keep("scored", scored(80, (1, 1), 0.8, 1), "soft", "d2"),
    get("all", "/v1/evaluations"),
    get("oldest-first", "/v1/evaluations", sort="created_at", limit=4),
    get("oldest-next", "/v1/evaluations", sort="created_at", limit=4, cursor="$oldest-first:/next_cursor"),
    get("by-model", "/v1/evaluations", model="a"),
    get("by-version", "/v1/evaluations", model="b", model_version="1"),
    get("by-dataset", "/v1/evaluations", dataset="d1", sort="-h_mean"),
    get("by-dataset-version", "/v1/evaluations", dataset="d0", dataset_version="v2", split="test"),
    get("by-tag", "/v1/evaluations", tag="stage:old", sort="accuracy"),
    get("by-tags", "/v1/evaluations?tag=stage:new&tag=i:4"),
    get("by-time", "/v1/evaluations", created_after="2100-01-01T00:00:04Z", created_before="2100-01-01T00:00:08+00:00"),
    get("by-metric", "/v1/evaluations", sort="-h_mean", limit=3),
    get("by-metric-next", "/v1/evaluations", sort="-h_mean", limit=3, cursor="$by-metric:/next_cursor"),
    get("by-metric-last", "/v1/evaluations", sort="-h_mean", limit=200, cursor="$by-metric-next:/next_cursor"),
    get("by-alias", "/v1/evaluations", sort="kappa", limit=5),
    get("by-probabilities", "/v1/evaluations", sort="log_loss", limit=3),
    get("models", "/v1/models", limit=4),
    get("models-next", "/v1/models", limit=4, cursor="$models:/next_cursor"),
    get("datasets", "/v1/datasets"),
    get("datasets-page", "/v1/datasets", limit=2),
    get("datasets-next", "/v1/datasets", limit=200, cursor="$datasets-page:/next_cursor"),
    get("foreign-cursor", "/v1/models", cursor="$datasets-page:/next_cursor"),
    get("other-filter", "/v1/evaluations", sort="h_mean", cursor="$by-metric:/next_cursor"),
    get("no-cursor", "/v1/evaluations", cursor="nonsense"),
    get("unknown-filter", "/v1/evaluations", modell="a"),
    get("unknown-sort", "/v1/evaluations", sort="-h_meen"),
    get("sort-by-class-metric", "/v1/evaluations", sort="recall"),
    get("by-value", "/v1/evaluations", where="h_mean>=0.5"),
    get("by-values", "/v1/evaluations", where=["h_mean>0.1", "accuracy<0.9"], sort="-h_mean", limit=2),
    get("selected", "/v1/evaluations", select="h_mean,kappa,log_loss"),
    get("with-findings", "/v1/evaluations", select="accuracy", findings="true", limit=5),
    get("no-condition", "/v1/evaluations", where="h_mean=0.5"),
    get("unknown-condition", "/v1/evaluations", where="h_meen>0.5"),
    get("sort-by-class", "/v1/evaluations", sort="-recall@1"),
    get("unknown-selected", "/v1/evaluations", select="mcc,h_meen"),
    get("model", "/v1/models/a"),
    get("dataset", "/v1/datasets/d0"),
    get("no-model", "/v1/models/nobody"),
    get("no-dataset", "/v1/datasets/nobody"),
    Call(name="count-of-model", method="DELETE", path="/v1/models/a", params={"dry_run": "true"}),
    delete("remove-model", "/v1/models/a"),
    delete("remove-model-again", "/v1/models/a"),
    Call(name="count-of-dataset", method="DELETE", path="/v1/datasets/d1", params={"dry_run": "true"}),
    delete("remove-dataset", "/v1/datasets/d1"),
    Call(
        name="count-by-value",
        method="DELETE",
        path="/v1/evaluations",
        params={"where": "accuracy>0", "dry_run": "true"},
    ),
    Call(name="remove-by-filter", method="DELETE", path="/v1/evaluations", params={"model": "soft"}),
    delete("remove-without-filter", "/v1/evaluations"),
    get("left", "/v1/evaluations", select="accuracy"),
    keep("of-a-moment-to-come", _INPUTS["counts"], created_at="2999-01-01T12:00:00Z"),
    get("no-tag", "/v1/evaluations", tag="stage"),
    get("no-time", "/v1/evaluations", created_after="yesterday"),
    get("no-limit", "/v1/evaluations", limit=0),
]

_ADVICE = {
    "balanced-binary": {"classes": "binary", "balanced": True},
    "rare-binary": {"classes": "binary", "balanced": False, "error_priority": "type2"},
    "false-alarms": {"classes": "binary", "balanced": False, "error_priority": "type1", "chance_corrected": True},
    "costs": {"classes": "binary", "balanced": False, "error_priority": "costs", "inputs": ["probabilities"]},
    "graphical": {"classes": "binary", "balanced": False, "graphical": True, "inputs": ["matrix", "probabilities"]},
    "graphical-labels": {"classes": "multiclass", "balanced": False, "graphical": True},
    "many-classes": {"classes": "multiclass", "balanced": False, "error_priority": "both"},
    "many-balanced": {"classes": "multiclass", "balanced": True, "chance_corrected": True},
    "task-binary": {"task": "binary", "balanced": True},
    "labels": {"task": "multilabel", "judged": "samples", "inputs": ["probabilities"]},
    "clusters": {"task": "clustering", "known_classes": True, "same_number_of_clusters": True, "balanced": True},
    "shapes": {"task": "clustering", "known_classes": False},
    "ranking": {"task": "ranking", "error_priority": "type1", "fixed_cutoff": False},
    "regions": {"task": "sets", "judged": "classes"},
    "not-of-clusters": {"task": "clustering", "known_classes": True, "graphical": True},
    "unanswered": {"task": "clustering"},
}
_BOUNDS = {
    "critical": {"classes": 35, "weak": 1, "max_recall": 1, "target": 0.8},
    "weak": {"classes": 4, "weak": 1, "weak_recall": 0.16},
    "both": {"classes": 10, "weak": 2, "max_recall": 0.95, "weak_recall": 0.3, "target": 0.7},
    "unreachable": {"classes": 10, "weak": 2, "max_recall": 0.5, "target": 0.7},
    "recalls": {"recalls": [1, 1, 1, 0.16]},
    "recalls-target": {"recalls": [0.9, 0.7, 0.95], "target": 0.8},
    "recall-of-zero": {"recalls": [0.9, 0]},
    "incomplete": {"classes": 10},
    "contradictory": {"recalls": [0.5], "classes": 3},
}
CATALOGUE = [
    get("version", "/version"),
    get("index", "/v1"),
    get("root", "/"),
    get("metrics", "/v1/metrics"),
    get("members-of-cards", "/v1/metrics", fields=",".join(member_names(MetricCard))),
    get("overall", "/v1/metrics", scope="overall", prevalence="insensitive"),
    get("probabilities", "/v1/metrics", input="probabilities", task="binary", scope="class"),
    get("text", "/v1/metrics", q="balanced"),
    get("none", "/v1/metrics", q="nothing has such a name"),
    *(
        get(f"card-{key}", f"/v1/metrics/{key}")
        for key in ("h_mean", "kappa", "f_beta", "log_loss", "balanced_accuracy")
    ),
    get("no-card", "/v1/metrics/h_meen"),
    get("no-scope", "/v1/metrics", scope="some"),
    *(post(f"advice-{name}", "/v1/metrics/recommendations", body) for name, body in _ADVICE.items()),
    post("no-advice", "/v1/metrics/recommendations", {"classes": "some", "balanced": "yes"}),
    *(post(f"bounds-{name}", "/v1/bounds/h-mean", body) for name, body in _BOUNDS.items()),
    post(
        "bounds-sweep", "/v1/bounds/h-mean", {"classes": 4, "weak": 1, "recall_sweep": {"from": 0, "to": 1, "steps": 5}}
    ),
    keep("weak", of_matrix([[80, 5, 3], [4, 60, 5], [20, 3, 10]])),
    post("bounds-of-a-run", "/v1/evaluations/$weak/bounds/h-mean", {"target": 0.8}),
    post("bounds-of-a-run-swept", "/v1/evaluations/$weak/bounds/h-mean", {"recall_sweep": {"steps": 5}}),
    post("isocurves", "/v1/isocurves", {"tnr": 0.6, "tpr": 0.9}),
    get("alive", "/healthz"),
    get("ready", "/readyz"),
    get("problem", "/problems/invalid_input"),
    get("no-problem", "/problems/nothing"),
]
