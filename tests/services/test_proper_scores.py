"""Scores of probabilities that are not proper reward probabilities that are surer than is true. It is told."""

from typing import Any

import numpy as np
import pytest

from app.domain.evaluation import EvaluationRecord
from tests.services.memory import Bench, probable

SAMPLES, CLASSES = 2000, 3


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench()


@pytest.fixture(scope="module")
def runs(bench: Bench) -> tuple[EvaluationRecord, EvaluationRecord]:
    """Outcomes drawn from probabilities, told by these and by their third powers."""
    random = np.random.default_rng(6)
    true = random.dirichlet(np.full(CLASSES, 1.5), SAMPLES)
    drawn = (random.random(SAMPLES)[:, None] > true.cumsum(axis=1)).sum(axis=1)
    truth = np.minimum(drawn, CLASSES - 1).astype(str)
    sharpened = true**3 / (true**3).sum(axis=1, keepdims=True)
    return bench.keep(probable(truth, true), "calibrated"), bench.keep(probable(truth, sharpened), "sharpened")


def compared(bench: Bench, runs: tuple[EvaluationRecord, ...], *metrics: str) -> Any:
    return bench.compare(runs, *metrics, draws=200)


def checked(bench: Bench, candidate: EvaluationRecord, baseline: EvaluationRecord, rule: dict[str, Any]) -> Any:
    return bench.check([rule], candidate, baseline)


@pytest.mark.parametrize("metric", ["au_imcp", "au_mcp", "mean(mean_phi@*)", "mean_phi@*", "fraction_correct_certain"])
def test_a_comparison_says_where_a_proper_score_prefers_the_other_run(
    bench: Bench, runs: tuple[EvaluationRecord, EvaluationRecord], metric: str
) -> None:
    answer = compared(bench, runs, metric)
    calibrated, sharpened = (str(run.id) for run in runs)
    assert all(found["best"] == sharpened for found in answer["metrics"].values())
    (finding,) = answer["findings"]
    assert (finding["code"], finding["severity"]) == ("improper_score_disagrees", "warning")
    assert finding["message"].startswith(f"{metric} prefers sharpened to calibrated (")
    assert "log_loss" in finding["message"]
    assert "brier_score" in finding["message"]
    (pair,) = finding["evidence"]["pairs"]
    assert pair["prefers"] == sharpened
    assert pair["rather_than"] == calibrated
    own = pair["values"][metric]
    assert own["prefers"] > own["rather_than"]
    for key in ("brier_score", "log_loss"):
        assert pair["values"][key]["prefers"] > pair["values"][key]["rather_than"]


def test_the_values_of_the_proper_scores_are_those_of_the_comparison(
    bench: Bench, runs: tuple[EvaluationRecord, EvaluationRecord]
) -> None:
    answer = compared(bench, runs, "au_imcp", "log_loss", "brier_score")
    (pair,) = answer["findings"][0]["evidence"]["pairs"]
    for key in ("au_imcp", "log_loss", "brier_score"):
        first, second = answer["metrics"][key]["values"]
        assert pair["values"][key] == {"prefers": second, "rather_than": first}


def test_nothing_is_said_where_they_agree_or_nothing_improper_is_asked(
    bench: Bench, runs: tuple[EvaluationRecord, EvaluationRecord]
) -> None:
    for metrics in (["log_loss", "brier_score"], ["roc_auc_ovr_macro"], ["accuracy"]):
        assert "findings" not in compared(bench, runs, *metrics)
    worse = np.full((SAMPLES, CLASSES), 1 / CLASSES)
    truth = np.random.default_rng(1).integers(0, CLASSES, SAMPLES).astype(str)
    right = np.where(truth[:, None] == np.arange(CLASSES).astype(str), 0.8, 0.1)
    flat, good = bench.keep(probable(truth, worse), "flat"), bench.keep(probable(truth, right), "good")
    assert "findings" not in compared(bench, (flat, good), "au_imcp")


def test_a_gate_that_passes_by_an_improper_score_says_so(
    bench: Bench, runs: tuple[EvaluationRecord, EvaluationRecord]
) -> None:
    calibrated, sharpened = runs
    rule = {"metric": "au_imcp", "better_than": "baseline", "margin": 0.0, "bound": "lower", "level": 0.95}
    answer = checked(bench, sharpened, calibrated, rule)
    assert answer["verdict"] == "pass"
    (finding,) = answer["findings"]
    assert finding["code"] == "improper_score_disagrees"
    assert "findings" not in checked(bench, sharpened, calibrated, rule | {"metric": "log_loss"})


def test_many_pairs_are_one_finding(bench: Bench, runs: tuple[EvaluationRecord, EvaluationRecord]) -> None:
    random = np.random.default_rng(9)
    true = random.dirichlet(np.full(CLASSES, 1.5), SAMPLES)
    drawn = (random.random(SAMPLES)[:, None] > true.cumsum(axis=1)).sum(axis=1)
    truth = np.minimum(drawn, CLASSES - 1).astype(str)
    several = tuple(
        bench.keep(probable(truth, true**power / (true**power).sum(axis=1, keepdims=True)), f"p^{power}")
        for power in (1, 2, 3)
    )
    (finding,) = compared(bench, several, "au_imcp")["findings"]
    assert len(finding["evidence"]["pairs"]) == 3
    assert "2 more pairs of runs" in finding["message"]


def test_a_leaderboard_by_an_improper_score_names_proper_ones(
    bench: Bench, runs: tuple[EvaluationRecord, EvaluationRecord]
) -> None:
    (note,) = [note for note in bench.rank("au_imcp")["notes"] if "no proper score" in note]
    assert "log_loss" in note
    assert "brier_score" in note
    assert not any("proper" in note for note in bench.rank("log_loss")["notes"])
