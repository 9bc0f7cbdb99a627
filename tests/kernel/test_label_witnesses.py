"""Metrics of labels against scikit-learn, PyCM and exact fractions; what class shares of a label do to them."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.domain.expressions.expressions import parse
from app.kernel.matrix.table import LabelTable, Table
from app.kernel.metrics.card import INPUTS_OF, AnyMetric, Inputs, Scope, Task
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Subject, compute
from app.kernel.metrics.families.label_sets import label_ranking_average_precision, roc_auc_ovr_samples
from app.kernel.numerics.arrays import silently
from app.kernel.samples.label_units import LabelScores, LabelSets
from app.kernel.uncertainty.units import LabelUnits
from tests.bank import each
from tests.witnesses import sk

LABELS = ("a", "b", "c", "d")
FOR_LABELS = catalogue().for_task(Task.MULTILABEL, INPUTS_OF[Task.MULTILABEL])
OF_TABLES = [one for one in FOR_LABELS.metrics if one.card.inputs is Inputs.MATRIX]
RELATIVE = 1e-12


def units(seed: int, size: int = 80) -> LabelUnits:
    """Labels of different frequency, samples without any among them, and tied scores."""
    random = np.random.default_rng(seed)
    truth = random.random((size, 4)) < [0.5, 0.3, 0.2, 0.1]
    noise: NDArray[np.float64] = random.random((size, 4))
    scores = np.asarray(np.round(np.clip(0.3 * truth.astype(np.float64) + 0.8 * noise, 0, 1), 1), dtype=np.float64)
    return LabelUnits(truth, scores >= 0.5, scores)


def value(text: str, subject: Subject) -> NDArray[np.float64]:
    expression = parse(text, LABELS, None, inputs=INPUTS_OF[Task.MULTILABEL], task=Task.MULTILABEL)
    return np.asarray(compute(expression, subject))


def _averaged(score: Callable[..., Any], average: str) -> Callable[[LabelUnits], Any]:
    return lambda u: score(u.members, u.predicted, average=average, zero_division=0)


def _of_scores(score: Callable[..., Any], **arguments: Any) -> Callable[[LabelUnits], Any]:
    return lambda u: score(u.members, u.scores, **arguments)


SKLEARN: dict[str, Callable[[LabelUnits], Any]] = {
    "subset_accuracy": lambda u: sk.accuracy_score(u.members, u.predicted),
    "hamming_loss": lambda u: sk.hamming_loss(u.members, u.predicted),
    "recall@*": lambda u: sk.recall_score(u.members, u.predicted, average=None),
    "precision@*": lambda u: sk.precision_score(u.members, u.predicted, average=None),
    "f1@*": lambda u: sk.f1_score(u.members, u.predicted, average=None),
    "jaccard@*": lambda u: sk.jaccard_score(u.members, u.predicted, average=None),
    "balanced_accuracy": _averaged(sk.recall_score, "macro"),
    "macro_precision": _averaged(sk.precision_score, "macro"),
    "macro_f1": _averaged(sk.f1_score, "macro"),
    "macro_jaccard": _averaged(sk.jaccard_score, "macro"),
    "weighted_precision": _averaged(sk.precision_score, "weighted"),
    "weighted_f1": _averaged(sk.f1_score, "weighted"),
    "weighted_f_beta(beta=2)": lambda u: sk.fbeta_score(u.members, u.predicted, beta=2, average="weighted"),
    "weighted_jaccard": _averaged(sk.jaccard_score, "weighted"),
    "micro_f_beta": _averaged(sk.f1_score, "micro"),
    "micro_f_beta(beta=2)": lambda u: sk.fbeta_score(u.members, u.predicted, beta=2, average="micro"),
    "micro_jaccard": _averaged(sk.jaccard_score, "micro"),
    "micro_precision": _averaged(sk.precision_score, "micro"),
    "micro_recall": _averaged(sk.recall_score, "micro"),
    "micro_f1": _averaged(sk.f1_score, "micro"),
    "recall_weighted": _averaged(sk.recall_score, "weighted"),
    "micro_specificity": lambda u: np.mean(~u.predicted[~u.members]),
    "macro_f_beta(beta=0.5)": lambda u: sk.fbeta_score(u.members, u.predicted, beta=0.5, average="macro"),
    "roc_auc@*": _of_scores(sk.roc_auc_score, average=None),
    "average_precision@*": _of_scores(sk.average_precision_score, average=None),
    "roc_auc_ovr_macro": _of_scores(sk.roc_auc_score, average="macro"),
    "roc_auc_score(average=weighted)": _of_scores(sk.roc_auc_score, average="weighted"),
    "roc_auc_ovr_micro": _of_scores(sk.roc_auc_score, average="micro"),
    "macro_average_precision": _of_scores(sk.average_precision_score, average="macro"),
    "average_precision_weighted": _of_scores(sk.average_precision_score, average="weighted"),
    "micro_average_precision": _of_scores(sk.average_precision_score, average="micro"),
    "weighted_specificity": lambda u: np.average(
        sk.recall_score(~u.members, ~u.predicted, average=None), weights=u.members.sum(axis=0)
    ),
    "label_ranking_average_precision": _of_scores(sk.label_ranking_average_precision_score),
    "label_ranking_loss": _of_scores(sk.label_ranking_loss),
    "coverage_error": _of_scores(sk.coverage_error),
}


@each("seed", [0, 1, 2])
@each("text", SKLEARN)
def test_scikit_learn(text: str, seed: int) -> None:
    example = units(seed)
    np.testing.assert_allclose(value(text, example.subject()), SKLEARN[text](example), rtol=RELATIVE)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("key", "score"),
    [
        ("samples_precision", sk.precision_score),
        ("samples_recall", sk.recall_score),
        ("samples_f1", sk.f1_score),
        ("samples_jaccard", sk.jaccard_score),
        ("samples_f_beta(beta=2)", partial(sk.fbeta_score, beta=2)),
    ],
)
def test_samples_average_of_scikit_learn(key: str, score: Callable[..., Any], seed: int) -> None:
    """Without empty sets on either side there is nothing to be agreed on."""
    random = np.random.default_rng(seed)
    truth, predicted = (random.random((60, 4)) < 0.5 for _ in range(2))
    truth[~truth.any(axis=1), 0] = predicted[~predicted.any(axis=1), 1] = True
    found = value(key, LabelUnits(truth, predicted).subject())
    assert found == pytest.approx(score(truth, predicted, average="samples"), rel=RELATIVE)


def test_orders_of_samples_of_scikit_learn() -> None:
    """With ties. scikit-learn has no value for a sample that has no label or all; these count in no mean."""
    random = np.random.default_rng(4)
    truth, scores = random.random((80, 5)) < 0.5, random.integers(0, 4, (80, 5)) / 4
    some = truth.any(axis=1) & ~truth.all(axis=1)
    assert np.count_nonzero(~some) > 0
    weights = random.random(80)
    data = LabelScores(truth, scores, weights)
    expected = sk.roc_auc_score(truth[some], scores[some], average="samples", sample_weight=None)
    plain = roc_auc_ovr_samples.compute(LabelScores(truth, scores))
    assert plain == pytest.approx(expected, rel=RELATIVE)
    each_sample = [sk.roc_auc_score(t, s) for t, s in zip(truth[some], scores[some], strict=True)]
    assert roc_auc_ovr_samples.compute(data) == pytest.approx(np.average(each_sample, weights=weights[some]), rel=1e-12)
    precisions = sk.average_precision_score(truth[some], scores[some], average="samples")
    found = label_ranking_average_precision.compute(LabelScores(truth[some], scores[some]))
    assert found == pytest.approx(precisions, rel=RELATIVE)
    nothing = LabelScores(np.zeros((3, 2), dtype=bool), np.ones((3, 2)))
    assert np.isnan(roc_auc_ovr_samples.compute(nothing))


def test_empty_sets() -> None:
    """Nothing on both sides is right; a label that is not there, or none where there is one, is not."""
    truth = np.array([[0, 0], [0, 0], [1, 0]], dtype=bool)
    predicted = np.array([[0, 0], [1, 0], [0, 0]], dtype=bool)
    subject = LabelUnits(truth, predicted).subject()
    for key in ("samples_precision", "samples_recall", "samples_f1", "samples_jaccard", "subset_accuracy"):
        assert value(key, subject) == pytest.approx(1 / 3, rel=RELATIVE)


EXACT: dict[str, Callable[[set[int], set[int]], Fraction]] = {
    "samples_precision": lambda t, p: Fraction(len(t & p), len(p)) if p else Fraction(not t),
    "samples_recall": lambda t, p: Fraction(len(t & p), len(t)) if t else Fraction(not p),
    "samples_specificity": lambda t, p: Fraction(4 - len(t | p), 4 - len(t)) if t < {0, 1, 2, 3} else Fraction(t == p),
    "samples_f1": lambda t, p: Fraction(2 * len(t & p), len(t) + len(p)) if t or p else Fraction(1),
    "samples_jaccard": lambda t, p: Fraction(len(t & p), len(t | p)) if t or p else Fraction(1),
    "samples_f_beta": lambda t, p: Fraction(2 * len(t & p), len(t) + len(p)) if t or p else Fraction(1),
    "subset_accuracy": lambda t, p: Fraction(t == p),
    "hamming_loss": lambda t, p: Fraction(len(t ^ p), 4),
}


@pytest.mark.parametrize("key", EXACT)
def test_exact_fractions_of_sets(key: str) -> None:
    example = units(5)
    sets = [
        (set(np.flatnonzero(truth).tolist()), set(np.flatnonzero(said).tolist()))
        for truth, said in zip(example.members, example.predicted, strict=True)
    ]
    weights = np.random.default_rng(1).integers(0, 4, len(sets))
    expected = sum(int(w) * EXACT[key](*pair) for w, pair in zip(weights, sets, strict=True)) / Fraction(
        int(weights.sum())
    )
    assert value(key, example.subject(weights.astype(float))) == pytest.approx(float(expected), rel=RELATIVE)


def test_one_error_in_exact_fractions() -> None:
    example = units(6)
    assert example.scores is not None
    total = Fraction(0)
    for truth, scores in zip(example.members, example.scores, strict=True):
        first = np.flatnonzero(scores == scores.max())
        if truth.any():
            total += Fraction(int((~truth[first]).sum()), len(first))
    assert value("one_error", example.subject()) == pytest.approx(float(total / len(example.members)), rel=RELATIVE)


def test_pycm_has_the_same_tables() -> None:
    from pycm import MultiLabelCM

    example = units(3)
    sets = [
        [{LABELS[code] for code in np.flatnonzero(row)} for row in table]
        for table in (example.members, example.predicted)
    ]
    other = MultiLabelCM(sets[0], sets[1], classes=list(LABELS))
    table = example.subject().parts[Inputs.MATRIX]
    for code, label in enumerate(LABELS):
        matrix = other.get_cm_by_class(label)
        counted = [getattr(table, cell)[code] for cell in ("tn", "fp", "fn", "tp")]
        assert [matrix.matrix[i][j] for i in (0, 1) for j in (0, 1)] == counted
        for key, name in (("recall", "TPR"), ("precision", "PPV"), ("mcc_ovr", "MCC"), ("f1", "F1")):
            ours = value(f"{key}@{label}", example.subject())
            assert float(ours) == pytest.approx(getattr(matrix, name)[1], rel=RELATIVE)


@each("metric", [one for one in OF_TABLES if one.card.scope is Scope.CLASS], ids=lambda one: one.key)
def test_a_label_is_one_of_two_classes(metric: AnyMetric) -> None:
    """What holds of a label is what holds of the class of those that have it, against those that do not."""
    cells = np.random.default_rng(3).integers(0, 30, (3, 6, 2, 2)).astype(float)
    with silently():
        found, expected = metric.compute(LabelTable.of(cells)), metric.compute(Table(cells))[..., 1]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@each("metric", OF_TABLES, ids=lambda one: one.key)
def test_prevalence_of_a_label(metric: AnyMetric) -> None:
    """Insensitive: unchanged when those that have a label, or those that do not, are replicated in its table, each
    label by other numbers. Sensitive: some example shows it.
    """
    random = np.random.default_rng(11)
    moved = False
    for _ in range(6):
        cells = random.integers(1, 40, (5, 2, 2)).astype(float)
        times = random.integers(1, 9, (5, 2, 1)).astype(float)
        with silently():
            before, after = (np.asarray(metric.compute(LabelTable.of(one))) for one in (cells, cells * times))
        if metric.card.prevalence.is_insensitive(Task.MULTILABEL.outcomes(5)):
            np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-12)
        moved |= not np.allclose(after, before, rtol=1e-6, atol=1e-9)
    assert moved is not metric.card.prevalence.is_insensitive(2)


@each("metric", [one for one in OF_TABLES if one.card.has_twin(2)], ids=lambda one: one.key)
def test_twins_are_the_value_with_every_label_in_half_of_the_samples(metric: AnyMetric) -> None:
    """The twin is the table in which rows are replicated until both are equally large, with as many samples."""
    cells = np.random.default_rng(4).integers(1, 12, (4, 2, 2)).astype(float)
    cells *= 60 / cells.sum(axis=(-2, -1), keepdims=True)
    even = cells * 30 / cells.sum(axis=-1, keepdims=True)
    with silently():
        twin, expected = (metric.compute(one) for one in (LabelTable.of(cells).balanced(), LabelTable.of(even)))
    np.testing.assert_allclose(twin, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_labels_of_all_samples_have_no_others_in_any_weights(seed: int) -> None:
    """One label is everywhere, another predicted everywhere: what has no value of counts has none in tenths."""
    random = np.random.default_rng(seed)
    truth, predicted = random.random((2, 30, 4)) < 0.5
    truth[:, 0], predicted[:, 1] = True, True
    example, weights = LabelUnits(truth, predicted), random.integers(1, 9, 30).astype(float)
    for key in ("specificity@a", "npv@b", "npv@c", "fdr@a", "macro_specificity", "gps_npv"):
        counted, weighed = (value(key, example.subject(each)) for each in (weights, 0.1 * weights))
        np.testing.assert_allclose(weighed, counted, rtol=1e-9, atol=1e-12, err_msg=key)


def test_weights_are_replications() -> None:
    example = units(8, 40)
    weights = np.random.default_rng(2).integers(0, 4, (3, 40))
    batch = example.subject(weights.astype(float))
    for row, alone in enumerate(weights):
        repeated = example.part(np.repeat(np.arange(40), alone)).subject()
        for metric in FOR_LABELS.reported.metrics:
            with silently():
                found, expected = (
                    np.asarray(metric.compute(one.parts[metric.card.inputs])) for one in (batch, repeated)
                )
            if metric.card.degree is not None:
                np.testing.assert_allclose(found[row], expected, rtol=1e-9, atol=1e-12, err_msg=metric.key)


def test_tables_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="two tables"):
        LabelSets(np.zeros((2, 3), dtype=bool), np.zeros((2, 2), dtype=bool))
    with pytest.raises(ValueError, match="two tables"):
        LabelSets(np.zeros((0, 3), dtype=bool), np.zeros((0, 3), dtype=bool))


@pytest.mark.filterwarnings("error")
def test_labels_of_all_samples_or_of_none_are_not_balanced() -> None:
    cells = np.array([[[0.0, 0.0], [1.0, 3.0]], [[3.0, 1.0], [0.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]]])
    balanced = LabelTable.of(cells).balanced()
    assert np.isnan(balanced.tp).tolist() == [True, True, False]
    assert [getattr(balanced, cell)[2] for cell in ("tn", "fp", "fn", "tp")] == [1.0] * 4
