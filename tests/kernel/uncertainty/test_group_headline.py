"""Closed-form intervals of samples in groups: against one class at a time, statsmodels, and independent samples."""

from itertools import chain

import numpy as np
import pytest

from app.kernel.matrix.table import Table
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import Array
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.closed_forms import Headlines
from app.kernel.uncertainty.designs import (
    Given,
    Grouped,
    Independent,
    NoLimits,
    additive_influences,
    catalogue_rates,
    design_effects,
    headline_metrics,
)
from app.kernel.uncertainty.groups import GroupedCounts, Grouping, group_variance
from app.kernel.uncertainty.influence import Influences, by_groups, limits, samples_about
from tests.kernel.groups import design_effect, grouped_wilson, influences
from tests.kernel.probability.problems import softmax_problem
from tests.kernel.uncertainty.test_clusters import Codes, sample

OVERALL = ("accuracy", "balanced_accuracy", "g_mean", "h_mean", "macro_f1", "mcc", "cohen_kappa")


def rate_by_loop(key: str, label: int, groups: Codes, truth: Codes, predicted: Codes) -> tuple[Array, Array]:
    """Hits and sizes of each group of a rate of one class, sample by sample."""
    actual, called = truth == label, predicted == label
    among = {
        "recall": (called, actual),
        "specificity": (~called, ~actual),
        "precision": (actual, called),
        "npv": (~actual, ~called),
        "prevalence": (actual, np.ones(truth.size, dtype=bool)),
        "accuracy_ovr": (actual == called, np.ones(truth.size, dtype=bool)),
    }
    hit, mask = among[key]
    size = int(groups.max()) + 1
    return np.bincount(groups, hit & mask, size).astype(float), np.bincount(groups, mask, size).astype(float)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_rates_are_those_of_each_class_alone(n_classes: int) -> None:
    groups, truth, predicted = sample(np.random.default_rng(0), n_groups=25, size=6, n_classes=n_classes)
    # Some groups lack a class altogether.
    kept = ~((truth == 1) & (groups % 3 == 0))
    groups, truth, predicted = Grouping.of(groups[kept]).codes, truth[kept], predicted[kept]
    found = Headlines(Grouped(GroupedCounts.gather(groups, truth, predicted, n_classes)))
    assert {(one.method, one.given) for one in found.overall[0][:1]} == {("grouped_wilson", Given.GROUPS)}
    seen = 0
    for row, key in enumerate(catalogue_rates().keys):
        if key not in ("recall", "specificity", "precision", "npv", "prevalence", "accuracy_ovr"):
            continue
        seen += 1
        for label in range(n_classes):
            own, others = (np.bincount(groups, side).astype(float) for side in (truth == label, truth != label))
            sides = {"precision": (own, others), "npv": (others, own)}.get(key)
            expected = grouped_wilson(*rate_by_loop(key, label, groups, truth, predicted), sides=sides)
            np.testing.assert_allclose([found.rates[0][row, label], found.rates[1][row, label]], expected, rtol=1e-9)
    assert seen >= 4
    hits = np.bincount(groups, truth == predicted).astype(float)
    accuracy = found.overall[0][0]
    np.testing.assert_allclose(
        [accuracy.low, accuracy.high], grouped_wilson(hits, np.bincount(groups).astype(float)), rtol=1e-9
    )


@pytest.mark.parametrize("some", [[], [2]])
def test_the_move_of_one_recall_moves_a_sum_by_as_much(some: list[int]) -> None:
    """Also of a class of which some groups have no sample, or of one without errors."""
    groups, truth, predicted = sample(np.random.default_rng(0), n_groups=6, size=12, n_classes=3)
    kept = ~((truth == 1) & (groups > 1))
    groups, truth, predicted = groups[kept], truth[kept], predicted[kept]
    predicted = np.where(np.isin(truth, some), truth, predicted)
    design = Grouped(GroupedCounts.gather(groups, truth, predicted, 3))
    np.testing.assert_allclose(design.spread(np.diag([0.3, 2.0, 7.0])), [0.3, 2.0, 7.0], rtol=1e-12)


def test_design_effects_are_those_of_numeric_derivatives() -> None:
    groups, truth, predicted = sample(np.random.default_rng(1), n_groups=40)
    runs = GroupedCounts.gather(groups, truth, predicted, 3)
    effects = design_effects(Grouped(runs))
    for key in OVERALL:
        expected = design_effect(runs, catalogue().of_matrices.by_name[key].compute)[0]
        assert effects[key] == pytest.approx(expected, rel=1e-5), key
        assert effects[key] > 1.2


def test_groups_of_one_have_the_intervals_of_independent_samples() -> None:
    _, truth, predicted = sample(np.random.default_rng(2), n_groups=100)
    runs = GroupedCounts.gather(np.arange(truth.size), truth, predicted, 3)
    found, plain = Headlines(Grouped(runs)), Headlines(Independent(Table(runs.matrix())))
    effects = design_effects(Grouped(runs))
    for one, other in zip(found.overall[0], plain.overall[0], strict=True):
        assert one.key == other.key
        assert effects[one.key] == pytest.approx(1.0, abs=0.01)
        width = other.high - other.low
        assert abs(one.low - other.low) < 0.02 * width, one.key
        assert abs(one.high - other.high) < 0.02 * width, one.key
    np.testing.assert_allclose(found.rates[0], plain.rates[0], atol=1e-3)
    np.testing.assert_allclose(found.rates[1], plain.rates[1], atol=1e-3)


def test_copies_change_nothing() -> None:
    random = np.random.default_rng(3)
    truth, predicted = random.integers(0, 3, 90), random.integers(0, 3, 90)
    once = Headlines(Grouped(GroupedCounts.gather(np.arange(90), truth, predicted, 3)))
    groups, actual, called = (np.repeat(column, 4) for column in (np.arange(90), truth, predicted))
    runs = GroupedCounts.gather(groups, actual, called, 3)
    copied, effects = Headlines(Grouped(runs)), design_effects(Grouped(runs))
    for one, other in zip(once.overall[0], copied.overall[0], strict=True):
        np.testing.assert_allclose([one.low, one.high], [other.low, other.high], rtol=1e-9)
        assert effects[one.key] == pytest.approx(4 * 90 / 89, rel=1e-9)
    np.testing.assert_allclose(once.rates[0], copied.rates[0], rtol=1e-9, atol=1e-12)


def test_what_one_group_has_alone_has_no_interval() -> None:
    groups = np.repeat([0, 1, 2], 10)
    truth = np.repeat([0, 0, 1], 10)
    predicted = np.tile([0, 1], 15)
    found = Headlines(Grouped(GroupedCounts.gather(groups, truth, predicted, 2)))
    recall = catalogue_rates().keys.index("recall")
    assert np.isnan(found.rates[0][recall]).tolist() == [False, True]
    refused = {item.key: item.refusal for item in found.overall[0]}
    assert refused["balanced_accuracy"] is NoLimits.ONE_GROUP
    assert refused["accuracy"] is None
    # Neither has a mean of what is always right, by what may be instead in the other classes.
    perfect = Headlines(Grouped(GroupedCounts.gather(groups, truth, truth, 2)))
    assert {item.key: item.refusal for item in perfect.overall[0]}["macro_f1"] is NoLimits.ONE_GROUP


@pytest.mark.parametrize("rare_in", [0, 1, 2, 3])
def test_a_rate_among_predictions_knows_no_more_groups_than_have_the_class(rare_in: int) -> None:
    """All groups have some that are called the class, two of them when it is that."""
    groups = np.repeat(np.arange(40), 10)
    truth = np.where(groups < rare_in, 1, 0)
    predicted = np.where(np.random.default_rng(1).random(400) < 0.1, 1 - truth, truth)
    rates, keys = Grouped(GroupedCounts.gather(groups, truth, predicted, 2)).rates(0.95), catalogue_rates().keys
    worth = dict(zip(keys, rates[1][:, 1].tolist(), strict=True))
    for key in ("precision", "fdr", "f1"):
        assert np.isnan(worth[key]) == (rare_in < 2), key
    assert worth["npv"] > 2.0


def test_perfect_recalls_keep_the_others_intervals() -> None:
    """A class that is always right counts by its groups, and its distance is added as that of an independent rate."""
    groups = np.repeat(np.arange(20), 10)
    truth = np.tile([0] * 5 + [1] * 5, 20)
    random = np.random.default_rng(4)
    predicted = np.where((truth == 1) & (random.random(200) < 0.3), 0, truth)
    found = Headlines(Grouped(GroupedCounts.gather(groups, truth, predicted, 2)))
    low, high = found.recalls
    recall = np.array([1.0, (predicted[truth == 1] == 1).mean()])
    balanced = found.overall[0][1]
    assert balanced.low == pytest.approx(recall.mean() - 0.5 * np.hypot(*(recall - low)), rel=1e-9)
    assert balanced.high == pytest.approx(recall.mean() + 0.5 * (high - recall)[1], rel=1e-9)
    perfect = Grouped(GroupedCounts.gather(groups, truth, truth, 2))
    of_f1 = Headlines(perfect).overall[0][4]
    # Nothing varies between the groups: what is left is what the recalls of 20 groups may be instead.
    assert (of_f1.method, of_f1.high) == ("grouped_mover", 1.0)
    assert 0.8 < of_f1.low < 0.95
    assert np.isnan(design_effects(perfect)["accuracy"])


@pytest.mark.slow
def test_means_of_recalls_hold_the_truth() -> None:
    random = np.random.default_rng(5)
    held = np.zeros(3)
    for _ in range(300):
        groups, truth, predicted = sample(random, n_groups=40, size=12)
        found = Headlines(Grouped(GroupedCounts.gather(groups, truth, predicted, 3))).overall[0]
        held += [item.low <= 2 / 3 <= item.high for item in found[1:4]]
    assert (held / 300 > 0.91).all()
    assert (held / 300 < 0.99).all()


def test_influences_by_groups_agree_with_statsmodels() -> None:
    from statsmodels.regression.linear_model import OLS

    y, p = softmax_problem(300, 2, 6)
    groups = Grouping.of(np.random.default_rng(7).integers(0, 40, 300).astype(str))
    influences = Influences(Scores(y, p))
    linear = influences.of(catalogue().of_probabilities.by_name["log_loss"])
    assert linear is not None
    losses = -np.log(p[np.arange(300), y])
    fit = OLS(losses, np.ones((300, 1))).fit(cov_type="cluster", cov_kwds={"groups": groups.codes})
    summed = by_groups(linear, groups)
    # The influences of samples have n/(n-1) in them already.
    assert summed.variance * 299 / 300 == pytest.approx(float(fit.cov_params()[0, 0]), rel=1e-9)
    sizes = np.bincount(groups.codes)
    assert summed.freedom == pytest.approx(sizes.sum() ** 2 / (sizes**2).sum() - 1)
    assert summed.sampled.named(summed.method) == "cluster_hall_t"


@pytest.mark.parametrize("key", ["log_loss", "roc_auc", "au_imcp", "brier_skill_score", "fraction_uncertain"])
def test_groups_of_one_have_the_limits_of_samples(key: str) -> None:
    y, p = softmax_problem(400, 3, 8)
    linear = Influences(Scores(y, p)).of(catalogue().of_probabilities.by_name[key], 1 if key == "roc_auc" else None)
    assert linear is not None
    plain = limits(linear)
    found = limits(by_groups(linear, Grouping.of(np.arange(400))))
    assert plain is not None
    assert found is not None
    width = plain.high - plain.low
    np.testing.assert_allclose((found.low, found.high), (plain.low, plain.high), atol=0.01 * width)


OF_CLASSES = ("roc_auc", "average_precision", "roc_auc_ovr_macro", "balanced_log_loss")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("key", ["roc_auc", "roc_auc_ovr_macro", "balanced_log_loss"])
def test_variances_of_classes_are_those_of_the_jackknife(key: str, weighted: bool) -> None:
    # Two classes in three groups each, of five samples that weigh the same: samples have n/(n-1) too, n = 15.
    codes, y = np.repeat(np.arange(6), 5), np.repeat([0, 1], 15)
    p = np.random.default_rng(3).dirichlet([1.0, 1.0], 30)
    weights = np.full(30, 2.5) if weighted else None
    metric, of = catalogue().of_probabilities.by_name[key], 1 if key == "roc_auc" else None
    linear = Influences(Scores(y, p, weights)).of(metric, of)
    assert linear is not None
    without = [np.atleast_1d(metric.compute(Scores(y[codes != one], p[codes != one])))[-1] for one in range(6)]
    expected = 5 / 6 * float(((np.array(without) - linear.value) ** 2).sum())
    summed = by_groups(linear, Grouping(codes, 6))
    assert summed.variance == pytest.approx(expected * 15 / 14, rel=1e-9)
    assert summed.freedom <= 5


@pytest.mark.parametrize("key", OF_CLASSES)
def test_a_class_of_one_group_leaves_no_limits(key: str) -> None:
    codes, y = np.repeat(np.arange(6), 5), np.repeat([0, 1], [25, 5])
    scores = Scores(y, np.random.default_rng(3).dirichlet([1.0, 1.0], 30))
    linear = Influences(scores).of(
        catalogue().of_probabilities.by_name[key], 1 if key in ("roc_auc", "average_precision") else None
    )
    assert linear is not None
    assert np.isnan(by_groups(linear, Grouping(codes, 6)).variance)
    loss = Influences(scores).of(catalogue().of_probabilities.by_name["log_loss"])
    assert loss is not None
    assert by_groups(loss, Grouping(codes, 6)).variance > 0


def test_few_groups_that_carry_the_variance_are_few_degrees_of_freedom() -> None:
    # One class is in 3 of 40 groups.
    codes = np.repeat(np.arange(40), 5)
    y, random = (codes < 3).astype(int), np.random.default_rng(5)
    score = 1.0 / (1.0 + np.exp(-random.normal(size=200) - np.where(y == 1, random.normal(size=40)[codes], 0.0)))
    linear = Influences(Scores(y, np.stack([1.0 - score, score], axis=1))).of(
        catalogue().of_probabilities.by_name["roc_auc"], 1
    )
    assert linear is not None
    found = by_groups(linear, Grouping(codes, 40))
    squares = found.influence * found.influence
    own, others = squares[:3].sum(), squares[3:].sum()
    # Satterthwaite's (1946), of 3 groups and of 37.
    assert found.freedom == pytest.approx((own + others) ** 2 / (own**2 / 2.0 + others**2 / 36.0), rel=1e-9)
    # What runs on the same samples have in common is left to their differences.
    assert (
        found.freedom < by_groups(linear, Grouping(codes, 40), samples_about(linear, Grouping(codes, 40))).freedom < 8
    )


def test_the_variance_of_groups_is_none_with_one() -> None:
    assert np.isnan(group_variance(np.ones((1, 2)))).all()
    y, p = softmax_problem(50, 2, 9)
    linear = Influences(Scores(y, p)).of(catalogue().of_probabilities.by_name["brier_score"])
    assert linear is not None
    assert limits(by_groups(linear, Grouping.of(np.zeros(50)))) is None


def test_additive_influences_are_those_of_cells() -> None:
    groups, truth, predicted = sample(np.random.default_rng(10), n_groups=15)
    runs = GroupedCounts.gather(groups, truth, predicted, 3)
    for metric in chain(*headline_metrics()):
        gradient = metric.card.inference.gradient
        assert gradient is not None
        found = additive_influences(runs, gradient(Table(runs.matrix())))
        expected = influences(runs, metric.compute)[:, 0]
        np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("alike", ["one actual class", "equal groups"])
def test_what_is_rounding_is_no_variance_in_any_order(alike: str) -> None:
    """With one actual class kappa is 0 whatever is predicted, and no group differs from one that is the same."""
    random = np.random.default_rng(6)
    if alike == "one actual class":
        groups, truth, predicted = random.integers(0, 20, 97), np.zeros(97, dtype=np.intp), random.integers(0, 3, 97)
    else:
        groups, truth = np.repeat(np.arange(20), 7), np.tile([0, 0, 0, 1, 1, 2, 2], 20)
        predicted = np.tile([0, 0, 1, 1, 1, 2, 0], 20)
    keys = ("cohen_kappa",) if alike == "one actual class" else ("macro_f1", "mcc", "cohen_kappa")
    for _ in range(20):
        order, names = random.permutation(truth.size), random.permutation(20)
        runs = GroupedCounts.gather(names[groups[order]], truth[order], predicted[order], 3)
        found = {one.key: one for one in Headlines(Grouped(runs)).overall[0]}
        for key in keys:
            assert found[key].refusal is NoLimits.DEGENERATE
