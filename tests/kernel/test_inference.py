"""What cards say about inference: what a metric is a rate of, and which facts stand in one list only."""

from itertools import product

import numpy as np
import pytest

from app.domain.named_metrics import COMPARED, HEADLINE, PROJECTED
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Inputs, Metric, Scale, Scope, Task
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.families import imcp, proper_scores
from app.kernel.metrics.proportion import ConfusionCells, LinearMap, Rate
from app.kernel.samples.scores import Scores
from tests.bank import each
from tests.kernel.closeness import value_of
from tests.kernel.matrices import matrices

PROPORTIONS = [metric for metric in catalogue().of_matrices.metrics if metric.card.inference.proportion is not None]
MATRICES = [f"{kind}-{size}-0" for kind, size in product(("dense", "accurate", "dominant_class"), (2, 3, 5))]


def rates_of(key: str, n_classes: int) -> list[Rate]:
    """Of every class, or the one of all together."""
    metric = catalogue().of_matrices.by_name[key]
    proportion = metric.card.inference.proportion
    assert proportion is not None
    classes = range(n_classes) if metric.card.scope is Scope.CLASS else (None,)
    return [proportion.at(n_classes, of) for of in classes]


def counted(rate: Rate, counts: np.ndarray) -> tuple[float, float]:
    """Hits and those among whom they are, cell by cell."""
    hits, among = 0.0, 0.0
    for actual, predicted in np.ndindex(counts.shape):
        cell = np.array(actual), np.array(predicted)
        inside = bool(rate.among.hold(*cell, rate.of))
        count = float(counts[actual, predicted])
        among += inside * count
        hits += (inside and bool(rate.hits.hold(*cell, rate.of))) * count
    return hits, among


@each("name", MATRICES)
@each("metric", PROPORTIONS, ids=[metric.key for metric in PROPORTIONS])
def test_a_proportion_is_the_line_of_its_rate(metric: Metric[Table], name: str) -> None:
    """Cells counted one by one, by the actual and the predicted class of each, whatever the parameters are."""
    counts = matrices()[name].astype(np.float64)
    for parameters in ({}, {parameter.name: 2.0 for parameter in metric.card.parameters}):
        values = np.atleast_1d(value_of(metric, counts, **parameters))
        for value, rate in zip(values, rates_of(metric.key, counts.shape[0]), strict=True):
            hits, among = counted(rate, counts)
            assert [float(count) for count in rate.counts(Table(counts))] == pytest.approx([hits, among])
            found = rate.line(np.array(hits / among)) * (counts.sum() if rate.counted else 1.0)
            assert found == pytest.approx(value, rel=1e-12, abs=1e-12)


@each(
    ("one", "of", "other", "other_of", "line"),
    [
        ("specificity", 1, "recall", 0, LinearMap()),
        ("specificity", 0, "recall", 1, LinearMap()),
        ("npv", 1, "precision", 0, LinearMap()),
        ("fnr", 1, "recall", 1, LinearMap(1.0, -1.0)),
        ("fpr", 1, "recall", 0, LinearMap(1.0, -1.0)),
        ("fdr", 1, "precision", 1, LinearMap(1.0, -1.0)),
        ("false_omission_rate", 1, "precision", 0, LinearMap(1.0, -1.0)),
        ("accuracy_ovr", 0, "accuracy", 0, LinearMap()),
        ("accuracy_ovr", 1, "accuracy", 0, LinearMap()),
        ("error_rate_ovr", 1, "accuracy", 0, LinearMap(1.0, -1.0)),
        ("error_rate", 0, "accuracy", 0, LinearMap(1.0, -1.0)),
        ("micro_fnr", 0, "accuracy", 0, LinearMap(1.0, -1.0)),
        ("micro_fpr", 0, "accuracy", 0, LinearMap(1.0, -1.0)),
        ("micro_specificity", 0, "accuracy", 0, LinearMap()),
        ("micro_npv", 0, "accuracy", 0, LinearMap()),
        ("micro_f_beta", 0, "accuracy", 0, LinearMap()),
        ("average_accuracy", 0, "accuracy", 0, LinearMap()),
        ("bennett_s", 0, "accuracy", 0, LinearMap(-1.0, 2.0)),
        ("kappa_no_prevalence", 0, "accuracy", 0, LinearMap(-1.0, 2.0)),
        ("zero_one_loss_count", 0, "accuracy", 0, LinearMap(1.0, -1.0)),
        ("hamming_distance", 1, "accuracy", 0, LinearMap(1.0, -1.0)),
        ("prevalence", 1, "prevalence", 0, LinearMap(1.0, -1.0)),
        ("predicted_prevalence", 1, "predicted_prevalence", 0, LinearMap(1.0, -1.0)),
    ],
)
def test_with_two_classes_one_quantity_has_one_rate(
    one: str, of: int, other: str, other_of: int, line: LinearMap
) -> None:
    found, known = rates_of(one, 2)[of], rates_of(other, 2)[other_of]
    assert found.same_as(known)
    assert found.line == line


def test_with_more_classes_a_specificity_is_no_recall() -> None:
    recalls = rates_of("recall", 3)
    assert not any(rate.same_as(recall) for rate in rates_of("specificity", 3) for recall in recalls)
    assert not any(rate.same_as(rates_of("accuracy", 3)[0]) for rate in rates_of("accuracy_ovr", 3))
    assert rates_of("fnr", 3)[2].same_as(recalls[2])
    assert rates_of("error_rate", 3)[0].same_as(rates_of("accuracy", 3)[0])


def test_rates_that_runs_on_the_same_samples_share_follow_from_the_truth() -> None:
    shared = {metric.key for metric in PROPORTIONS if all(rate.by_truth for rate in rates_of(metric.key, 3))}
    assert shared == {metric.key for metric in PROPORTIONS} - {"precision", "fdr", "npv", "false_omission_rate"}


def test_limits_of_a_complement_change_places() -> None:
    for line, ends, expected_ends in (
        (LinearMap(1.0, -1.0), (0.2, 0.3), [0.7, 0.8]),
        (LinearMap(-1.0, 2.0), (0.5, 1.0), [0.0, 1.0]),
    ):
        low, high = line.limits(*map(np.array, ends))
        assert [float(low), float(high)] == pytest.approx(expected_ends)


def test_cells_of_one_class_and_of_all() -> None:
    actual, predicted = np.array([0, 0, 1, 2, 2]), np.array([0, 1, 1, 0, 1])
    assert ConfusionCells.TP.hold(actual, predicted, 0).tolist() == [True, False, False, False, False]
    assert ConfusionCells.PREDICTED.hold(actual, predicted, 1).tolist() == [False, True, True, False, True]
    assert ConfusionCells.RIGHT.hold(actual, predicted, 2).tolist() == [True, True, True, False, False]
    assert ConfusionCells.RIGHT.hold(actual, predicted, None).tolist() == [True, False, True, False, False]


def test_the_named_list_is_what_the_cards_say() -> None:
    """The order is that of the columns of the database; which they are is said by the cards."""
    declared = {metric.key for metric in catalogue().of_matrices.metrics if metric.card.inference.headline}
    assert set(HEADLINE) == declared
    assert len(HEADLINE) == len(declared)
    assert set(COMPARED) < declared
    assert set(PROJECTED) < declared


def test_headline_of_probabilities() -> None:
    of_classes = catalogue().metrics
    shown = [one.key for one in of_classes if Task.MULTICLASS in one.card.tasks and one.card.inference.headline]
    assert set(shown) - set(HEADLINE) == {"roc_auc", "average_precision", "au_imcp", "log_loss", "brier_score"}


def test_statistics_of_the_sample() -> None:
    """P-values, standard errors, test statistics, their degrees of freedom, and what follows from the sample's size."""
    declared = {metric.key for metric in catalogue().metrics if metric.card.inference.about_sample}
    assert declared == {
        "accuracy_p_value",
        "accuracy_standard_error",
        "chi_squared",
        "chi_squared_df",
        "dunn",
        "global_performance_index",
        "judged_at_k",
        "kappa_standard_error",
        "kappa_z",
        "roc_auc_standard_error",
    }
    words = ("p-value", "standard error", "chi-squared", "degrees of freedom")
    for metric in catalogue().metrics:
        if any(word in metric.card.name.lower() for word in words):
            assert metric.key in declared


def test_scores_of_probabilities_say_whether_they_are_proper() -> None:
    """Every metric of the values of probabilities does, and no other."""
    of_values = {
        key for module in (imcp, proper_scores) for key, value in vars(module).items() if isinstance(value, Metric)
    }
    for metric in catalogue().metrics:
        assert (metric.card.inference.proper is not None) == (metric.key in of_values), metric.key
        assert metric.card.inference.proper is None or metric.card.inputs is Inputs.PROBABILITIES
    assert {metric.key for metric in catalogue().metrics if metric.card.inference.proper} == {
        "brier_score",
        "brier_skill_score",
        "d2_log_loss",
        "log_loss",
        "ranked_probability_score",
        "spherical_score",
    }


@pytest.mark.parametrize("sharpening", [0.5, 0.8, 1.25, 3.0])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_proper_score_is_best_for_the_true_probabilities(n_classes: int, sharpening: float) -> None:
    """The expected score over outcomes that are drawn from the probabilities themselves, summed exactly."""
    random = np.random.default_rng(7)
    true = random.dirichlet(np.full(n_classes, 0.8), 400)
    stated = true**sharpening / (true**sharpening).sum(axis=1, keepdims=True)
    for key in (
        "log_loss",
        "brier_score",
        "spherical_score",
        "brier_skill_score",
        "d2_log_loss",
        "ranked_probability_score",
    ):
        metric = catalogue().of_probabilities.by_name[key]
        sign = 1.0 if metric.card.ideal == 1.0 else -1.0
        assert sign * expected(metric, true, true) > sign * expected(metric, stated, true), key


@pytest.mark.parametrize("key", ["au_mcp", "au_imcp", "mean_phi", "fraction_correct_certain", "median_phi"])
def test_an_improper_score_rewards_another_forecast(key: str) -> None:
    """Sharpened by a power of 3, probabilities that were right get a better score."""
    random = np.random.default_rng(7)
    true = random.dirichlet(np.full(3, 1.5), 400)
    stated = true**3 / (true**3).sum(axis=1, keepdims=True)
    metric = catalogue().of_probabilities.by_name[key]
    assert expected(metric, stated, true) > expected(metric, true, true)


@pytest.mark.parametrize("key", ["balanced_log_loss", "balanced_brier_score"])
def test_averages_over_classes_reward_other_shares(key: str) -> None:
    """They are proper where all classes are equally frequent: elsewhere probabilities fitted to that score better."""
    random = np.random.default_rng(7)
    true = random.dirichlet([4.0, 1.0, 0.5], 400)
    refitted = true / true.mean(axis=0)
    refitted /= refitted.sum(axis=1, keepdims=True)
    metric = catalogue().of_probabilities.by_name[key]
    assert expected(metric, refitted, true) < expected(metric, true, true)


def expected(metric: Metric[Scores], stated: np.ndarray, true: np.ndarray) -> float:
    """Value when every row comes once with each class as its outcome, weighted by the true probability of it."""
    n_rows, n_classes = true.shape
    scores = Scores(np.tile(np.arange(n_classes), n_rows), np.repeat(stated, n_classes, axis=0), true.ravel())
    return float(np.mean(metric.compute(scores)))


def test_ratios_are_on_the_log_scale() -> None:
    """What is unbounded above and cannot be negative because it is one rate over another."""
    ratios = {metric.key for metric in catalogue().metrics if metric.card.inference.scale is Scale.LOG}
    of_rates = {"diagnostic_odds_ratio", "likelihood_ratio_negative", "likelihood_ratio_positive", "lift"}
    assert ratios == {*of_rates, "fn_per_fp"}
    for metric in catalogue().metrics:
        if metric.card.inference.scale is Scale.LOGIT:
            assert None not in metric.card.range
