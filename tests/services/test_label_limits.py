"""Limits of weighted samples with labels, and of areas of labels: equal weights, derivatives by each weight, DeLong."""

from typing import Any

import numpy as np
import pytest

from app.domain.inputs.classified import Predictions
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.multilabel import Multilabel
from app.kernel.metrics.card import INPUTS_OF, Scale, Task
from app.kernel.numerics.arrays import Array
from app.kernel.samples.influence import WeightedSamples
from app.kernel.samples.label_units import LabelScores
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.groups import Grouping
from app.kernel.uncertainty.influence import by_groups
from app.kernel.uncertainty.intervals import limits_around, two_sided_z
from app.services.estimands import Estimand, make_estimand
from app.services.estimates.estimate import NoLimits
from app.services.estimates.estimates import estimate
from app.services.estimates.run_data import RunData
from tests.bank import each

LABELS = ("cat", "dog", "bird", "fish")
SIZE = 150
ASKED = (
    *("recall@cat", "precision@dog", "balanced_accuracy", "g_mean", "h_mean", "macro_f1", "micro_f_beta(beta=1)"),
    *("subset_accuracy", "hamming_loss", "samples_f1", "label_ranking_average_precision", "one_error"),
    *("roc_auc_ovr_weighted", "roc_auc_ovr_micro", "macro_average_precision", "weighted_average_precision"),
    *("micro_average_precision", "roc_auc@cat", "roc_auc_ovr_macro", "mean(roc_auc@cat, roc_auc@dog)"),
    *("f1@dog", "jaccard@cat"),
)
RANDOM = np.random.default_rng(5)
TRUTH = RANDOM.random((SIZE, 4)) < [0.5, 0.3, 0.2, 0.4]
OUTPUTS = np.clip(0.45 + 0.25 * (TRUTH - 0.5) + RANDOM.normal(0.0, 0.22, TRUTH.shape), 0.0, 1.0)
WEIGHTS = RANDOM.gamma(1.5, 1.0, SIZE) + 0.05
# The same but for rounding: weights that are all the same are left aside.
NEARLY = np.append(np.full(SIZE - 1, 2.5), 2.5 + 1e-12)


def source(weights: Array | None = None, n_labels: int = 4) -> MatrixInput:
    return Multilabel(
        y_true=TRUTH[:, :n_labels].astype(np.int64),
        probabilities=OUTPUTS[:, :n_labels],
        labels=[*LABELS[:n_labels]],
        sample_weight=None if weights is None else weights.tolist(),
    ).read("/input")


def estimand(text: str, n_labels: int = 4) -> Estimand:
    return make_estimand(text, LABELS[:n_labels], None, INPUTS_OF[Task.MULTILABEL], Task.MULTILABEL)


@each("text", ASKED)
def test_samples_of_one_weight_have_the_limits_of_those_without(text: str) -> None:
    (plain,), (weighted,) = (estimate([estimand(text)], RunData(source(weights)))[0] for weights in (None, NEARLY))
    assert weighted.value == pytest.approx(plain.value, rel=1e-12)
    assert (weighted.low, weighted.high) == pytest.approx((plain.low, plain.high), rel=1e-9)
    assert weighted.method == f"weighted_{plain.method}"
    assert plain.seed is None


OF_ALL = ["weighted_average_precision", "micro_average_precision", "roc_auc_ovr_micro", "samples_specificity"]


@pytest.mark.parametrize(
    "text", ["macro_f1", "micro_f_beta(beta=1)", "samples_f1", "subset_accuracy", "roc_auc@dog", *OF_ALL]
)
def test_influences_are_derivatives_by_the_weights(text: str) -> None:
    one = estimand(text)
    run = RunData(source(WEIGHTS))
    linear = run.label_influences
    assert linear is not None
    measure: Any = one.expression
    found = linear.of(measure.metric, measure.of, parameters=measure.parameters) or linear.of_tables(measure)
    assert found is not None
    scale = np.sqrt(SIZE / (SIZE - 1.0))
    if text == "roc_auc@dog":
        scale = np.where(
            TRUTH[:, 1], *(np.sqrt(size / (size - 1.0)) for size in (TRUTH[:, 1].sum(), (~TRUTH[:, 1]).sum()))
        )
    for sample in (0, 7, 50, 149):
        ends = []
        for factor in (1.0 + 1e-5, 1.0 - 1e-5):
            moved = WEIGHTS.copy()
            moved[sample] *= factor
            ends.append(float(RunData(source(moved)).values(one)[0]))
        derivative = (ends[0] - ends[1]) / 2e-5
        assert found.influence[sample] == pytest.approx(
            derivative * np.broadcast_to(scale, SIZE)[sample], rel=1e-4, abs=1e-9
        )


def test_few_samples_of_much_weight_make_limits_wider() -> None:
    uneven = np.where(np.arange(SIZE) % 10 == 0, 30.0, 1.0)
    for text in ASKED:
        (plain,), (weighted,) = (estimate([estimand(text)], RunData(source(one)))[0] for one in (None, uneven))
        assert weighted.high - weighted.low > 1.3 * (plain.high - plain.low), text


def test_areas_of_labels_have_the_limits_of_each_alone() -> None:
    for code, label in enumerate(LABELS):
        (found,) = estimate([estimand(f"roc_auc@{label}")], RunData(source()))[0]
        alone = Scores.of_scores(TRUTH[:, code].astype(np.intp), OUTPUTS[:, code])
        areas, influence = WeightedSamples(alone).areas
        half = two_sided_z(0.95) * float(np.sqrt(influence[1] @ influence[1]))
        assert found.value == pytest.approx(areas[1], rel=1e-12)
        expected = np.array(limits_around(areas[1], np.array(half), Scale.LOGIT, 0.0, 1.0))
        assert (found.low, found.high) == pytest.approx(expected, rel=1e-12)
        assert found.method == "delong_logit"


def test_f1_of_a_label_has_the_limits_of_the_share_of_both_among_either() -> None:
    from statsmodels.stats.proportion import proportion_confint

    predicted = OUTPUTS >= 0.5
    (found,) = estimate([estimand("f1@*")], RunData(source()))
    for code, one in enumerate(found):
        both, either = (TRUTH & predicted)[:, code].sum(), (TRUTH | predicted)[:, code].sum()
        low, high = (2.0 * end / (1.0 + end) for end in proportion_confint(both, either, method="wilson"))
        assert (one.value, one.low, one.high) == pytest.approx((2 * both / (either + both), low, high), rel=1e-12)
        assert (one.method, one.seed) == ("wilson", None)


@pytest.mark.parametrize("n_labels", [2, 4])
def test_the_mean_area_has_the_variance_of_the_mean_influence(n_labels: int) -> None:
    """Two labels are no two classes: each has an order of its own."""
    (found,) = estimate([estimand("roc_auc_ovr_macro", n_labels)], RunData(source(n_labels=n_labels)))[0]
    alone = [
        WeightedSamples(Scores.of_scores(TRUTH[:, code].astype(np.intp), OUTPUTS[:, code])).areas
        for code in range(n_labels)
    ]
    value, influence = np.mean([one[0][1] for one in alone]), np.mean([one[1][1] for one in alone], axis=0)
    half = two_sided_z(0.95) * float(np.sqrt(influence @ influence))
    assert found.value == pytest.approx(value, rel=1e-12)
    expected = np.array(limits_around(np.array(value), np.array(half), Scale.LOGIT, 0.0, 1.0))
    assert (found.low, found.high) == pytest.approx(expected, rel=1e-12)
    assert (found.method, found.seed) == ("influence_logit", None)


GROUPS = np.arange(SIZE) // 5
OF_TABLES = ("recall@cat", "precision@dog", "f1@bird", "specificity@fish", "macro_f1")


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_labels_of_which_no_sample_has_two_are_classes_in_groups(weights: Array | None) -> None:
    truth, predicted = TRUTH.argmax(axis=1), OUTPUTS.argmax(axis=1)
    beside: dict[str, Any] = {"group_ids": GROUPS, "sample_weight": weights}
    one_hot = np.eye(4, dtype=np.int64)
    labels = Multilabel(y_true=one_hot[truth], y_pred=one_hot[predicted], labels=[*LABELS], **beside)
    names = np.array(LABELS)
    classes = Predictions(y_true=names[truth], y_pred=names[predicted], labels=[*LABELS], **beside)
    for text in OF_TABLES:
        (found,) = estimate([estimand(text)], RunData(labels.read("/input")))[0]
        (same,) = estimate([make_estimand(text, LABELS, None)], RunData(classes.read("/input")))[0]
        # Sums over samples have n / (n - 1) besides.
        near = 0.01 if text == "macro_f1" else 1e-9
        assert (found.low, found.high) == pytest.approx((same.low, same.high), rel=near), text
        assert found.given == "groups"
        assert found.method == str(same.method).replace("cluster_delta", "cluster_influence")


def test_groups_of_copies_are_samples() -> None:
    """Three copies of a sample are a group that knows no more than one. A pair makes groups of all."""
    pairs = np.maximum(np.arange(SIZE), 1)
    many: dict[str, Any] = {
        "y_true": np.repeat(TRUTH.astype(np.int64), 3, axis=0),
        "probabilities": np.repeat(OUTPUTS, 3, axis=0),
        "group_ids": np.repeat(pairs, 3),
    }
    once: dict[str, Any] = {"y_true": TRUTH.astype(np.int64), "probabilities": OUTPUTS, "group_ids": pairs}
    for text in (*OF_TABLES, "balanced_accuracy", "h_mean"):
        copies, alone = (
            estimate([estimand(text)], RunData(Multilabel(labels=[*LABELS], **one).read("/input")))[0][0]
            for one in (many, once)
        )
        assert copies.given == "groups"
        assert (copies.low, copies.high) == pytest.approx((alone.low, alone.high), rel=2e-3), text


def test_a_label_in_one_group_has_no_limits() -> None:
    truth = TRUTH.copy()
    truth[5:, 0] = False
    one = Multilabel(y_true=truth.astype(np.int64), probabilities=OUTPUTS, labels=[*LABELS], group_ids=GROUPS)
    run = RunData(one.read("/input"))
    assert truth[:5, 0].any()
    found, other = (estimate([estimand(text)], run)[0][0] for text in ("recall@cat", "recall@dog"))
    assert (np.isnan(found.low), found.reason) == (True, NoLimits.ONE_GROUP)
    assert other.reason is None
    for text, reason in (("balanced_accuracy", NoLimits.ONE_GROUP), ("micro_f1", None), ("macro_f1", None)):
        assert estimate([estimand(text)], run)[0][0].reason == reason, text
    # A label that is always found moves means by what is not known of it alone.
    truth[30:, 1], outputs = False, OUTPUTS.copy()
    outputs[truth[:, 1], 1] = 1.0
    one = Multilabel(y_true=truth.astype(np.int64), probabilities=outputs, labels=[*LABELS], group_ids=GROUPS)
    for text in ("balanced_accuracy", "h_mean"):
        assert estimate([estimand(text)], RunData(one.read("/input")))[0][0].reason == NoLimits.ONE_GROUP, text


def test_means_of_labels_in_groups_have_the_variance_of_the_jackknife() -> None:
    truth, codes = TRUTH.copy(), np.arange(SIZE) % 6
    truth[codes > 1, 0] = False
    whole, *left = (
        RunData(Multilabel(y_true=truth[kept].astype(np.int64), probabilities=OUTPUTS[kept]).read("/input"))
        for kept in (codes != at for at in range(-1, 6))
    )
    in_groups = Multilabel(y_true=truth.astype(np.int64), probabilities=OUTPUTS, labels=[*LABELS], group_ids=codes)
    run = RunData(in_groups.read("/input"))
    influences, asked = run.label_influences, estimand("h_mean")
    assert influences is not None
    linear = influences.of_tables(asked.expression)
    assert linear is not None
    found = by_groups(influences.between_groups(asked.expression, linear), Grouping(codes, 6))
    value, *others = (float(one.values(asked)[0]) for one in (whole, *left))
    assert found.variance == pytest.approx(5 / 6 * sum((one - value) ** 2 for one in others), rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("text", ["label_ranking_average_precision", "coverage_error", "average_precision@cat"])
def test_what_is_the_same_of_all_samples_has_no_limits(text: str, weighted: bool) -> None:
    """All samples have the first label alone, which has the lowest score: a third of them is no double."""
    same = Multilabel(
        y_true=[[1, 0, 0]] * SIZE,
        probabilities=[[0.1, 0.5, 0.9]] * SIZE,
        labels=[*LABELS[:3]],
        sample_weight=WEIGHTS.tolist() if weighted else None,
    ).read("/input")
    (found,) = estimate([estimand(text, 3)], RunData(same))[0]
    assert (np.isnan(found.low), np.isnan(found.high)) == (True, True)
    assert found.reason is NoLimits.DEGENERATE


def test_a_label_of_all_weighted_samples_leaves_no_others() -> None:
    scores = LabelScores(np.array([[True, False]] * SIZE), OUTPUTS[:, :2], WEIGHTS)
    assert scores.rest.tolist()[0] == 0.0
    assert scores.rest[1] == pytest.approx(WEIGHTS.sum())
