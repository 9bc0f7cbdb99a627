"""Intervals of metrics of probabilities over HTTP."""

from typing import Any

import httpx
import numpy as np
import pytest

from app.kernel.metrics.card import Scope
from app.kernel.metrics.catalogue import catalogue
from tests.api.answers import Json, compute, create, evaluation
from tests.api.test_probabilities import make, make_scores
from tests.witnesses import sk

EXPRESSIONS = ["mean(roc_auc@0, recall@0)", "auc@1", "macro_f1"]


@pytest.fixture(scope="module")
def report(client: httpx.Client) -> Json:
    return compute(client, make(n=120), intervals="all", metrics=EXPRESSIONS, draws=300, seed=7)


def test_every_value_has_an_interval_that_holds_it(report: Json) -> None:
    groups = ("prevalence_insensitive", "prevalence_sensitive")
    values = {key: value for group in groups for key, value in report["metrics"][group].items()}
    for metric in (one for one in catalogue().of_probabilities.metrics if not one.card.on_request):
        names = [metric.key] if metric.card.scope is Scope.OVERALL else [f"{metric.key}@{k}" for k in range(3)]
        for name in names:
            interval = report["intervals"][name]
            key, _, label = name.partition("@")
            value = (
                values[name]
                if not label
                else next(
                    report["per_class"][label][group][key]
                    for group in groups
                    if key in report["per_class"][label][group]
                )
            )
            assert interval["low"] - 1e-12 <= value <= interval["high"] + 1e-12, name
    for text in EXPRESSIONS:
        assert report["intervals"][text]["low"] < report["requested"][text] < report["intervals"][text]["high"]
    assert report["intervals"]["macro_f1"]["method"] == "posterior"
    assert report["intervals"]["mean(roc_auc@0, recall@0)"]["method"] == "bootstrap"


def test_a_resampled_interval_against_a_bootstrap_with_scikit_learn(report: Json) -> None:
    source = make(n=120)
    truth, p = np.array(source["y_true"]), np.array(source["probabilities"])
    rng, areas = np.random.default_rng(1), []
    members = [np.flatnonzero(truth == k) for k in range(3)]
    for _ in range(1000):
        drawn = np.concatenate([rng.choice(of, of.size) for of in members])
        precision, recall, _ = sk.precision_recall_curve(truth[drawn] == 1, p[drawn, 1])
        areas.append(sk.auc(recall, precision))
    interval = report["intervals"]["pr_auc_trapezoid@1"]
    assert (interval["seed"], interval["draws"], interval["given"]) == (7, 300, "actual_counts")
    low, high = np.quantile(areas, [0.025, 0.975])
    assert interval["low"] == pytest.approx(low, abs=5 * interval["monte_carlo_error"])
    assert interval["high"] == pytest.approx(high, abs=5 * interval["monte_carlo_error"])


def test_the_headline_comes_without_being_asked_for(client: httpx.Client) -> None:
    intervals = compute(client, make(n=80))["intervals"]
    assert intervals["roc_auc@2"]["method"] == "delong_logit"
    assert intervals["log_loss"]["method"] == "hall_t"
    assert intervals["au_imcp"]["given"] == "actual_counts"
    assert "brier_score" in intervals
    assert intervals["average_precision@0"]["method"] == "influence_logit"
    assert "pr_auc_trapezoid@0" not in intervals
    none = compute(client, make(n=80), intervals="none")["intervals"]
    assert none == {}
    assert "roc_auc@1" in compute(client, make_scores())["intervals"]


def test_samples_of_one_weight_have_the_intervals_of_those_without(client: httpx.Client) -> None:
    options: dict[str, Any] = {"intervals": "all", "draws": 200, "seed": 7}
    plain = compute(client, make(n=60), **options)["intervals"]
    weighted = compute(client, make(n=60, sample_weight=[1.0] * 60), **options)["intervals"]
    for name, own in weighted.items():
        for end in ("low", "high"):
            expected = plain[name][end]
            assert (own[end] is None) == (expected is None), name
            assert expected is None or own[end] == pytest.approx(expected, rel=1e-9, abs=1e-9), name
    assert {"log_loss", "roc_auc@1", "average_precision@1", "balanced_accuracy", "recall@0"} <= weighted.keys()


def test_weights_widen_intervals_of_probabilities(client: httpx.Client) -> None:
    source = make(n=80, sample_weight=[0.2 + (index % 7) ** 2 for index in range(80)])
    intervals = compute(client, source)["intervals"]
    assert intervals["roc_auc@2"]["method"] == "weighted_delong_logit"
    assert intervals["log_loss"]["method"] == "weighted_hall_t"
    assert intervals["log_loss"]["low"] < intervals["log_loss"]["high"]


@pytest.mark.parametrize("retain", ["full", "none"])
def test_a_stored_evaluation_has_the_same_intervals_again(client: httpx.Client, retain: str) -> None:
    options: dict[str, Any] = {"intervals": "all", "draws": 200, "retain": retain, "metrics": EXPRESSIONS}
    made = create(client, evaluation(input=make(n=50, classes=2), options=options))
    again = client.get(f"/v1/evaluations/{made['id']}").json()
    assert again["intervals"] == made["intervals"]
    assert again["findings"] == made["findings"]
    assert again["intervals"]["ks_statistic@1"]["method"] == "mover_best_cut"
