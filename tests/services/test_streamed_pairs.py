"""Runs of more samples than memory holds, compared on metrics of probabilities: what the samples in memory say."""

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from app.domain.errors import TooLarge
from app.services.compare.comparisons import (
    CostQuestion,
    compare,
)
from tests.services.paired_models import (
    AREAS,
    LOSSES,
    PAIRS,
    PRECISIONS,
    RANDOM,
    ROWS,
    asked_of,
    check_close,
    models,
    streamed,
)

# Large data; what answers small data the same way is held against it by tests/services/test_either_way.py in every run.
pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("classes", "count", "scores"), [(2, 3, False), (3, 2, False), (10, 2, False), (2, 2, True), (3, 2, True)]
)
def test_areas_are_compared_as_those_of_the_samples_in_memory(
    tmp_path: Path, classes: int, count: int, *, scores: bool
) -> None:
    runs = models(classes, count, scores=scores)
    names = [*AREAS, "roc_auc_ovo_macro", "roc_auc_ovo_weighted"] if classes == 2 else AREAS
    asked, kept = asked_of(runs, names if scores else [*names, "mean(roc_auc@c0, au_imcp)"])
    expected = compare(asked, kept, identifier=asked.runs.records[0].id)
    check_close(asdict(streamed(asked, runs, tmp_path)), asdict(expected))


@pytest.mark.parametrize(("metrics", "rel"), [(PAIRS, 1e-4), (PRECISIONS, 1e-2)], ids=["areas", "precisions"])
@pytest.mark.parametrize(("classes", "scores", "weighted"), [(2, 0, 0), (3, 0, 0), (3, 0, 1), (3, 1, 0), (5, 0, 1)])
def test_areas_of_pairs_and_of_all_scores_are_compared_as_those_of_the_samples_in_memory(
    tmp_path: Path, classes: int, scores: int, weighted: int, metrics: list[str], rel: float
) -> None:
    weights = RANDOM.choice([0.0, 0.3, 1.7, 40.0], ROWS) if weighted else None
    runs = [one._replace(weights=weights) for one in models(classes, scores=bool(scores))]
    asked, kept = asked_of(runs, metrics)
    expected = compare(asked, kept, identifier=asked.runs.records[0].id)
    check_close(asdict(streamed(asked, runs, tmp_path, 1 << 18)), asdict(expected), rel=rel)


@pytest.mark.parametrize(("classes", "count"), [(2, 3), (3, 2), (10, 2)])
def test_means_are_compared_as_those_of_the_samples_in_memory(tmp_path: Path, classes: int, count: int) -> None:
    runs = models(classes, count)
    asked, kept = asked_of(runs, [*LOSSES, "accuracy"])
    expected = compare(asked, kept, identifier=asked.runs.records[0].id)
    check_close(asdict(streamed(asked, runs, tmp_path)), asdict(expected))


@pytest.mark.parametrize("turned", [False, True])
def test_a_share_has_its_own_method_whatever_else_is_asked(tmp_path: Path, *, turned: bool) -> None:
    runs, metrics = models(3), ["fraction_correct_certain", "mean(fraction_correct_certain)"]
    asked, kept = asked_of(runs, metrics[::-1] if turned else metrics)
    expected = compare(asked, kept, identifier=asked.runs.records[0].id)
    assert len({expected.metrics[name].differences[0].p_value for name in metrics}) == 2
    check_close(asdict(streamed(asked, runs, tmp_path)), asdict(expected))


@pytest.mark.parametrize("shares", [[0.7, 0.3], [0.5, 0.5], [0.5, 0.3, 0.2]])
def test_a_model_is_tested_against_one_that_always_says_the_same(tmp_path: Path, shares: list[float]) -> None:
    first, second = models(len(shares))
    runs = [first, second._replace(outputs=np.tile(shares, (ROWS, 1)))]
    metrics = ["balanced_log_loss", "balanced_brier_score", "mean(balanced_log_loss, balanced_brier_score)"]
    for some in (runs, runs[::-1]):
        asked, kept = asked_of(some, metrics)
        expected = compare(asked, kept, identifier=asked.runs.records[0].id)
        for found in expected.metrics.values():
            (difference,) = found.differences
            assert difference.p_value is not None
            assert 0.0 <= difference.p_value <= 1.0
            assert difference.low is not None
            assert np.isfinite(difference.low)
        check_close(asdict(streamed(asked, some, tmp_path)), asdict(expected))


@pytest.mark.parametrize("seen", [2, 1])
def test_what_has_no_value_says_why(tmp_path: Path, seen: int) -> None:
    first, second = models(3)
    # The second is sure of what is not so, and neither has seen the last classes.
    wrong = np.eye(3)[(first.truth + 1) % 3]
    outputs = np.where(np.arange(ROWS)[:, None] % 50 == 0, wrong, second.outputs)
    runs = [
        one._replace(rows=one.rows[one.truth[one.rows] < seen]) for one in (first, second._replace(outputs=outputs))
    ]
    metrics = ["log_loss(clip=0)", "balanced_brier_score", "mean_phi@*", "brier_score", "d2_log_loss", "roc_auc@*"]
    asked, kept = asked_of(runs, metrics)
    expected = compare(asked, kept, identifier=asked.runs.records[0].id)
    assert len(expected.notes) >= 5
    check_close(asdict(streamed(asked, runs, tmp_path)), asdict(expected))


def test_of_scores_losses_are_undefined(tmp_path: Path) -> None:
    runs = models(3, scores=True)
    asked, kept = asked_of(runs, ["log_loss", "fraction_uncertain", "au_mcp"])
    expected = compare(asked, kept, identifier=asked.runs.records[0].id)
    answer = streamed(asked, runs, tmp_path)
    check_close(asdict(answer), asdict(expected))
    assert "no probabilities" in answer.notes[-1]


def test_what_was_resampled_is_left_out_and_said(tmp_path: Path) -> None:
    runs = models(2)
    asked, _ = asked_of(runs, ["pr_auc_trapezoid@c1", "min(brier_score, log_loss)", "log_loss", "minimum_cost"])
    answer = streamed(asked, runs, tmp_path)
    for name in ("pr_auc_trapezoid@c1", "min(brier_score, log_loss)", "minimum_cost"):
        found = answer.metrics[name]
        (difference,) = found.differences
        assert all(
            one is not None and np.isnan(one) for one in (*found.values, difference.difference, difference.p_value)
        )
        assert difference.reason is not None
        assert difference.reason.endswith("not all metrics are added up sample by sample (not_folded)")
    assert np.isfinite(answer.metrics["log_loss"].differences[0].p_value or np.nan)
    assert any("pr_auc_trapezoid@c1, min(brier_score, log_loss), minimum_cost" in note for note in answer.notes)


@pytest.mark.parametrize("weighted", [False, True])
def test_costs_with_the_best_thresholds_are_those_of_the_samples_in_memory(tmp_path: Path, *, weighted: bool) -> None:
    weights = RANDOM.choice([0.3, 1.7, 2.0], ROWS) if weighted else None
    runs = [one._replace(weights=weights) for one in models(2)]
    asked, kept = asked_of(runs, ["accuracy"], cost_ranges=CostQuestion(best_thresholds=True))
    expected = compare(asked, kept, identifier=asked.runs.records[0].id)
    assert expected.cost_ranges is not None
    assert len(expected.cost_ranges[0].best_thresholds or ()) > 1
    check_close(asdict(streamed(asked, runs, tmp_path)), asdict(expected))


def test_an_improper_score_that_disagrees_is_found(tmp_path: Path) -> None:
    sure, calibrated = models(2)
    # Right a little more often and far too sure of it.
    guess = np.where(RANDOM.random(ROWS) < 0.8, sure.truth, 1 - sure.truth)
    runs = [
        sure._replace(outputs=np.eye(2)[guess] * 0.9999 + 0.00005),
        calibrated._replace(outputs=np.eye(2)[guess] * 0.5 + 0.25),
    ]
    asked, kept = asked_of(runs, ["au_imcp"])
    answer = streamed(asked, runs, tmp_path)
    check_close(asdict(answer), asdict(compare(asked, kept, identifier=asked.runs.records[0].id)))
    assert answer.findings is not None
    assert answer.findings[0].code == "improper_score_disagrees"


def test_runs_that_say_the_same_have_no_difference(tmp_path: Path) -> None:
    first, _ = models(2)
    runs = [first, first._replace(rows=first.rows[::-1])]
    asked, kept = asked_of(runs, ["log_loss", "au_imcp", "fraction_uncertain"])
    answer = streamed(asked, runs, tmp_path)
    at_hand = asdict(compare(asked, kept, identifier=asked.runs.records[0].id))
    check_close(asdict(answer), at_hand)
    assert {found.differences[0].p_value for found in answer.metrics.values()} == {1.0}


@pytest.mark.parametrize("metric", ["accuracy", "fraction_uncertain"])
def test_runs_of_which_hardly_two_samples_say_the_same_are_refused(tmp_path: Path, metric: str) -> None:
    """What is known of samples that all differ grows with them, so it has to be held to the memory."""
    first, *others = models(9, 10)
    runs = [first, *(one._replace(rows=first.rows) for one in others)]
    asked, _ = asked_of(runs, [metric])
    with pytest.raises(
        TooLarge, match=r"combinations of actual class and predictions of all 10 runs.*fewer runs"
    ) as raised:
        streamed(asked, runs, tmp_path, 1 << 17)
    assert raised.value.pointer == "/evaluations"
    streamed(asked, runs, tmp_path, 1 << 20)


def test_samples_that_say_the_same_take_no_memory(tmp_path: Path) -> None:
    runs = models(2, 3)
    asked, kept = asked_of(runs, ["accuracy"])
    # Combinations of 27 parts take more than all of them together may.
    answer = streamed(asked, runs, tmp_path, 4 * 16 * 40)
    assert repr(answer) == repr(compare(asked, kept, identifier=asked.runs.records[0].id))
