"""scikit-learn and imbalanced-learn for every metric whose card names one of their functions.

They read labels, so a matrix is written out as label vectors; large ones as one weighted sample per cell. Undefined
classes are asked for as NaN, or compared in the variants that treat them as these libraries do.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Metric
from app.kernel.metrics.catalogue import catalogue
from tests.bank import each
from tests.kernel.closeness import CANCELLING, assert_close, value_of
from tests.kernel.matrices import matrices, with_regular_margins
from tests.witnesses import imb, sk

NAMED = {metric.key: metric for metric in catalogue().of_matrices.metrics}
WRITTEN_OUT = 10_000

Labels = dict[str, NDArray[Any]]


def weighted_labels(counts: NDArray[Any]) -> Labels:
    """One sample per cell, weighted."""
    actual, predicted = np.nonzero(counts)
    return {"y_true": actual, "y_pred": predicted, "sample_weight": counts[actual, predicted]}


def written_out(counts: NDArray[Any]) -> Labels:
    actual, predicted = np.nonzero(counts)
    repeats = counts[actual, predicted]
    return {"y_true": np.repeat(actual, repeats), "y_pred": np.repeat(predicted, repeats)}


def labels_of(counts: NDArray[Any]) -> Labels:
    return written_out(counts) if counts.sum() <= WRITTEN_OUT else weighted_labels(counts)


def _each(function: Callable[..., Any], **options: Any) -> Callable[[Labels, int], Any]:
    def ask(labels: Labels, classes: int) -> Any:
        return function(**labels, labels=range(classes), average=None, zero_division=np.nan, **options)

    return ask


def _averaged(function: Callable[..., Any], average: str, **options: Any) -> Callable[[Labels, int], Any]:
    def ask(labels: Labels, classes: int) -> Any:
        return function(**labels, labels=range(classes), average=average, **options)

    return ask


def _jaccard(labels: Labels, classes: int) -> Any:
    """jaccard_score knows no NaN for zero_division; the matrices it sees have no absent class."""
    return sk.jaccard_score(**labels, labels=range(classes), average=None)


def _likelihood_ratios(position: int) -> Callable[[Labels, int], Any]:
    """Binary only: the second class is the positive one, so each class is asked for against the rest."""

    def ask(labels: Labels, classes: int) -> Any:
        values = []
        for k in range(classes):
            sides = {
                name: (array == k).astype(int) if name != "sample_weight" else array for name, array in labels.items()
            }
            values.append(sk.class_likelihood_ratios(**sides)[position])
        return values

    return ask


def _plain(function: Callable[..., Any], **options: Any) -> Callable[[Labels, int], Any]:
    return lambda labels, _: function(**labels, **options)


def _support(labels: Labels, classes: int) -> Any:
    return sk.precision_recall_fscore_support(**labels, labels=range(classes), zero_division=0)[3]


def _rand(labels: Labels, classes: int) -> Any:
    """adjusted_rand_score takes no weights."""
    return sk.adjusted_rand_score(labels["y_true"], labels["y_pred"])


def _kappa(**options: Any) -> Callable[[Labels, int], Any]:
    """cohen_kappa_score knows two raters and no truth: its labels go by position."""

    def ask(labels: Labels, classes: int) -> Any:
        raters = {name: array for name, array in labels.items() if name == "sample_weight"}
        return sk.cohen_kappa_score(labels["y_true"], labels["y_pred"], **raters, **options)

    return ask


# Per metric: the question to scikit-learn, on matrices with regular margins; parameters of ours in between.
QUESTIONS: dict[str, tuple[dict[str, Any], Callable[[Labels, int], Any]]] = {
    "recall": ({}, _each(sk.recall_score)),
    "precision": ({}, _each(sk.precision_score)),
    "f1": ({}, _each(sk.f1_score)),
    "f_beta": ({"beta": 2.0}, _each(sk.fbeta_score, beta=2.0)),
    "jaccard": ({}, _jaccard),
    "support": ({}, _support),
    "likelihood_ratio_positive": ({}, _likelihood_ratios(0)),
    "likelihood_ratio_negative": ({}, _likelihood_ratios(1)),
    "accuracy": ({}, _plain(sk.accuracy_score)),
    "error_rate": ({}, _plain(sk.zero_one_loss)),
    "balanced_accuracy": ({}, _plain(sk.balanced_accuracy_score)),
    "adjusted_balanced_accuracy": ({}, _plain(sk.balanced_accuracy_score, adjusted=True)),
    "macro_precision": ({}, _averaged(sk.precision_score, "macro")),
    "macro_f1": ({}, _averaged(sk.f1_score, "macro")),
    "macro_jaccard": ({}, _averaged(sk.jaccard_score, "macro")),
    "macro_f_beta": ({"beta": 0.5}, _averaged(sk.fbeta_score, "macro", beta=0.5)),
    "micro_f_beta": ({"beta": 2.0}, _averaged(sk.fbeta_score, "micro", beta=2.0)),
    "weighted_precision": ({}, _averaged(sk.precision_score, "weighted")),
    "weighted_f1": ({}, _averaged(sk.f1_score, "weighted")),
    "weighted_f_beta": ({"beta": 0.5}, _averaged(sk.fbeta_score, "weighted", beta=0.5)),
    "weighted_jaccard": ({}, _averaged(sk.jaccard_score, "weighted")),
    "micro_jaccard": ({}, _averaged(sk.jaccard_score, "micro")),
    "mcc": ({}, _plain(sk.matthews_corrcoef)),
    "cohen_kappa": ({}, _kappa()),
    "weighted_kappa": ({"weights": "quadratic"}, _kappa(weights="quadratic")),
    "adjusted_rand": ({}, _rand),
}


def _imb_each(function: Callable[..., Any]) -> Callable[[Labels, int], Any]:
    return lambda labels, classes: function(**labels, labels=range(classes), average=None)


def _imb(function: Callable[..., Any], average: str) -> Callable[[Labels, int], Any]:
    return lambda labels, classes: function(**labels, labels=range(classes), average=average)


def _iba(labels: Labels, classes: int) -> Any:
    """Its index multiplies a metric squared; of the geometric mean that is TPR TNR."""
    index = imb.make_index_balanced_accuracy(alpha=0.3, squared=True)(imb.geometric_mean_score)
    return index(**labels, labels=range(classes), average=None)


IMBALANCED: dict[str, tuple[dict[str, Any], Callable[[Labels, int], Any]]] = {
    "recall": ({}, _imb_each(imb.sensitivity_score)),
    "specificity": ({}, _imb_each(imb.specificity_score)),
    "balanced_accuracy": ({}, _imb(imb.sensitivity_score, "macro")),
    "macro_specificity": ({}, _imb(imb.specificity_score, "macro")),
    "weighted_specificity": ({}, _imb(imb.specificity_score, "weighted")),
    "g_mean": ({}, _imb(imb.geometric_mean_score, "multiclass")),
    "g_mean_ovr": ({}, _imb_each(imb.geometric_mean_score)),
    "index_balanced_accuracy": ({"alpha": 0.3}, _iba),
}


def with_card_entry(library: str) -> set[str]:
    return {key for key, metric in NAMED.items() if library in metric.card.elsewhere and metric.card.inputs == "matrix"}


def test_every_entry_of_the_cards_is_asked() -> None:
    assert with_card_entry("sklearn") == QUESTIONS.keys()
    assert with_card_entry("imblearn") == IMBALANCED.keys()


@each("key", QUESTIONS)
def test_scikit_learn(key: str) -> None:
    """Labels are compared where every class occurs and is predicted; missing ones have tests of their own below."""
    parameters, question = QUESTIONS[key]
    for name, counts in with_regular_margins().items():
        if key == "adjusted_rand" and counts.sum() > WRITTEN_OUT:
            continue
        compare(NAMED[key], counts, parameters, question, name)


@pytest.mark.parametrize("key", IMBALANCED)
def test_imbalanced_learn(key: str) -> None:
    """Written out only: its specificity is wrong with sample weights (all weights 3 gives 2.0 where it is 2/3)."""
    parameters, question = IMBALANCED[key]
    for name, counts in with_regular_margins().items():
        if counts.sum() <= WRITTEN_OUT:
            compare(NAMED[key], counts, parameters, question, name, written=True)


def compare(
    metric: Metric[Table],
    counts: NDArray[Any],
    parameters: dict[str, Any],
    question: Callable[[Labels, int], Any],
    name: str,
    *,
    written: bool = False,
) -> None:
    labels = written_out(counts) if written else labels_of(counts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = np.asarray(question(labels, counts.shape[0]), dtype=float)
    if metric.key in {"likelihood_ratio_positive", "likelihood_ratio_negative"}:
        # NaN where the ratio is infinite, by the library's choice.
        want = np.where(np.isnan(want), value_of(metric, counts), want)
    assert_close(metric, value_of(metric, counts, **parameters), want, absolute=CANCELLING, where=name)


@each("name", [name for name, counts in matrices().items() if len(counts) <= 12])
def test_missing_classes(name: str) -> None:
    """NaN on request per class, 0 in the variant that counts them as 0, left out in the variant that does that."""
    counts = matrices()[name]
    labels, classes = labels_of(counts), range(counts.shape[0])
    per_class = {"labels": classes, "average": None, "zero_division": np.nan}
    macro = {"labels": classes, "average": "macro", "zero_division": 0}
    weighted = {"labels": classes, "average": "weighted", "zero_division": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        questions: list[tuple[str, dict[str, Any], Any]] = [
            ("recall", {}, sk.recall_score(**labels, **per_class)),
            ("precision", {}, sk.precision_score(**labels, **per_class)),
            ("f1", {}, sk.f1_score(**labels, **per_class)),
            ("f_beta", {"beta": 2.0}, sk.fbeta_score(**labels, **per_class, beta=2.0)),
            ("macro_precision", {"undefined": "zero"}, sk.precision_score(**labels, **macro)),
            ("macro_f1", {"undefined": "zero"}, sk.f1_score(**labels, **macro)),
            ("macro_f_beta", {"beta": 2.0, "undefined": "zero"}, sk.fbeta_score(**labels, **macro, beta=2.0)),
            ("macro_jaccard", {"undefined": "zero"}, sk.jaccard_score(**labels, **macro)),
            ("balanced_accuracy", {"undefined": "zero"}, sk.recall_score(**labels, **macro)),
            ("weighted_precision", {"undefined": "zero"}, sk.precision_score(**labels, **weighted)),
            ("weighted_f1", {"undefined": "zero"}, sk.f1_score(**labels, **weighted)),
            ("weighted_jaccard", {"undefined": "zero"}, sk.jaccard_score(**labels, **weighted)),
            ("weighted_f1", {}, sk.f1_score(**labels, **weighted)),
            ("weighted_jaccard", {}, sk.jaccard_score(**labels, **weighted)),
            ("balanced_accuracy", {"classes": "present"}, sk.balanced_accuracy_score(**labels)),
            ("accuracy", {}, sk.accuracy_score(**labels)),
        ]
    for key, parameters, want in questions:
        assert_close(NAMED[key], value_of(NAMED[key], counts, **parameters), want, absolute=CANCELLING, where=name)


def test_constant_prediction_is_undefined_here_and_zero_there() -> None:
    """scikit-learn's MCC turns 0/0 into 0, which reads as chance level; the exact definition stands in for it there."""
    counts = matrices()["constant-3-0"]
    assert sk.matthews_corrcoef(**labels_of(counts)) == 0
    assert np.isnan(value_of(NAMED["mcc"], counts))
