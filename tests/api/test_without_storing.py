"""What is answered of an evaluation that is kept is answered of its input alone, number for number."""

from typing import Any

import httpx
import numpy as np
import pytest

from tests.api.answers import Json, compute, count_stored, create, evaluation
from tests.api.test_class_scores import make_class_scores
from tests.api.test_probabilities import make, make_scores

COSTS = {"matrix": [[0, 1, 4], [2, 0, 1], [9, 3, 0]]}
METRICS = [
    "expected_cost", "normalized_cost", "cost_savings", "minimum_cost", "recall_at(specificity=0.8)@1",
    "precision_at(recall=0.5)@2", "calibration_slope@0", "calibration_intercept@1", "integrated_calibration_index@2",
    "ranked_probability_score", "d2_log_loss", "net_benefit_at(threshold=0.3)@1",
    "wgps(recall@*, weights='0:1,1:2,2:3')",
    "weighted_kappa(weights=\"0,1,4; 1,0,1; 4,1,0\")", "macro_f_beta(form=means)",
    "stolarsky(recall@0, recall@1, p=2, q=1)", "digby_h@1", "f1_score(average=macro)",
]  # fmt: skip
IDS = [f"s{index}" for index in range(60)]
SOURCES: dict[str, Json] = {
    "probabilities": make(sample_ids=IDS),
    "weighted": make(sample_weight=np.random.default_rng(1).gamma(2.0, size=60).round(3).tolist()),
    "groups": make(group_ids=[index // 3 for index in range(60)]),
    "ignored": make(classes=4, seed=2) | {"labels": [0, 1, 2, 3], "ignore": []},
    "two classes": make(classes=2),
    "scores": make_scores(),
    "class scores": make_class_scores(),
    "folds": {
        "kind": "folds",
        "folds": [make(seed=seed, labels=[0, 1, 2]) for seed in range(3)],
    },
}
CURVES: list[tuple[str, str, Json]] = [
    ("probabilities", "roc", {"class": "1", "band": "pointwise", "seed": 3}),
    ("probabilities", "roc", {"class": "macro"}),
    ("probabilities", "pr", {"class": "micro", "band": "simultaneous", "seed": 3, "level": 0.8}),
    ("probabilities", "det", {"class": "2", "max_points": 10}),
    ("probabilities", "calibration", {"class": "0", "bins": 5}),
    ("probabilities", "calibration", {"class": "0", "form": "isotonic", "band": "simultaneous", "seed": 3}),
    ("probabilities", "decision", {"class": "1", "prevalence": 0.1}),
    ("probabilities", "cost", {"class": "1"}),
    ("probabilities", "gain", {"class": "1"}),
    ("probabilities", "mcp", {}),
    ("probabilities", "imcp", {"class": "2"}),
    ("weighted", "roc", {"class": "1"}),
    ("groups", "roc", {"class": "1", "band": "pointwise", "seed": 3}),
    ("two classes", "decision", {"band": "pointwise", "seed": 3}),
    ("scores", "roc", {}),
    ("scores", "gain", {}),
    ("class scores", "pr", {"class": "1"}),
    ("class scores", "roc", {"class": "micro"}),
    ("folds", "roc", {"class": "0"}),
]
RULES: list[tuple[str, Json]] = [
    ("probabilities", {"objective": "h_mean", "seed": 1, "correction": "none"}),
    ("two classes", {"objective": "f1", "constraints": [{"metric": "recall", "min": 0.5}], "resamples": 20}),
    ("two classes", {"objective": 'expected_cost(costs="0,1;5,0")', "resamples": 20, "correction": "632"}),
    ("two classes", {"objective": "precision", "constraints": [{"metric": "recall", "min": 0.3}], "guarantee": 0.9}),
    ("scores", {"objective": "gps(recall, precision)", "resamples": 20}),
    ("weighted", {"objective": "accuracy", "correction": "none"}),
]
PROJECTIONS: list[tuple[str, Json]] = [
    ("probabilities", {"prevalence": {"0": 0.5, "1": 0.3, "2": 0.2}, "metrics": ["accuracy", "log_loss"]}),
    ("probabilities", {"sweep": {"class": "1", "from": 0.1, "to": 0.9, "steps": 3}, "metrics": ["macro_f1"]}),
    (
        "two classes",
        {
            "prevalence": {"1": 0.1, "0": 0.9},
            "recalibrate": True,
            "metrics": ["accuracy", 'expected_cost(costs="0,1;5,0")'],
        },
    ),
    ("class scores", {"prevalence": {"0": 0.5, "1": 0.3, "2": 0.2}, "metrics": ["macro_average_precision"]}),
]


def keep(client: httpx.Client, source: Json, options: Json | None = None) -> Json:
    return create(client, evaluation(input=source, options=options or {"seed": 0}))


def without_names(answer: Json) -> Json:
    named = {"id", "created_at", "evaluation", "evaluation_id"}
    return {key: value for key, value in answer.items() if key not in named}


def posted(client: httpx.Client, path: str, body: Json) -> Json:
    reply = client.post(path, json=body)
    assert reply.status_code == 200, reply.text
    found: Json = reply.json()
    return without_names(found)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("probabilities", {"metrics": METRICS, "costs": COSTS}),
        ("probabilities", {"metrics": METRICS, "costs": COSTS, "intervals": "all", "draws": 200}),
        ("probabilities", {"costs": {"matrix": [[0, 1], [5, 0], [2, 2]], "decisions": ["treat", "wait"]}}),
        ("probabilities", {"intervals": "all", "draws": 200, "proportion_interval": "jeffreys"}),
        ("weighted", {"metrics": METRICS, "intervals": "none"}),
        (
            "groups",
            {"metrics": ["h_mean", "log_loss"], "intervals": "all", "interval_method": "bootstrap", "draws": 200},
        ),
        ("two classes", {"metrics": ["expected_cost"], "costs": {"matrix": [[0, 1], [5, 0]]}, "interpretation": True}),
        ("scores", {"metrics": ["roc_auc", "partial_roc_auc(max_fpr=0.3)"], "intervals": "all", "draws": 200}),
        ("class scores", {"metrics": ["roc_auc_ovo_macro", "recall_at@1"], "intervals": "all", "draws": 200}),
        ("folds", {"metrics": ["h_mean", "au_imcp"]}),
    ],
)
def test_a_report(client: httpx.Client, name: str, options: Json) -> None:
    made = keep(client, SOURCES[name], {"seed": 0, **options})
    try:
        kept = without_names(client.get(f"/v1/evaluations/{made['id']}").json())
        before = count_stored(client)
        alone = compute(client, SOURCES[name], seed=0, **options)
        given = {key: value for key, value in kept.items() if key not in {"model", "dataset", "tags"}}
        assert {key: alone[key] for key in given} == given
        assert set(options.get("metrics", ())) <= alone["requested"].keys()
        assert count_stored(client) == before
    finally:
        client.delete(f"/v1/evaluations/{made['id']}")


@pytest.mark.parametrize("name", sorted({name for name, *_ in CURVES}))
def test_curves(client: httpx.Client, name: str) -> None:
    made = keep(client, SOURCES[name])
    try:
        for source, curve, asked in CURVES:
            if source == name:
                reply = client.get(f"/v1/evaluations/{made['id']}/curves/{curve}", params=asked)
                assert reply.status_code == 200, (curve, asked, reply.text)
                alone = posted(client, f"/v1/curves/{curve}", {"input": SOURCES[name], **asked})
                assert alone == without_names(reply.json()), (curve, asked)
    finally:
        client.delete(f"/v1/evaluations/{made['id']}")


@pytest.mark.parametrize(
    ("path", "name", "asked"),
    [("thresholds", *one) for one in RULES] + [("projections", *one) for one in PROJECTIONS],
    ids=str,
)
def test_rules_and_projections(client: httpx.Client, path: str, name: str, asked: Any) -> None:
    made = keep(client, SOURCES[name])
    try:
        kept = posted(client, f"/v1/evaluations/{made['id']}/{path}", asked)
        before = count_stored(client)
        assert posted(client, f"/v1/{path}", {"input": SOURCES[name], **asked}) == kept
        assert count_stored(client) == before
    finally:
        client.delete(f"/v1/evaluations/{made['id']}")
