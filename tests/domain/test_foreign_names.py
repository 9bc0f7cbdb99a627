"""Names of metrics in other libraries: what they mean, and that nobody guesses where they mean several things."""

import pytest

from app.domain.errors import InvalidExpression, InvalidParameter, UnknownMetric
from app.domain.expressions.expressions import parse, render
from app.domain.expressions.foreign import resolve
from app.kernel.metrics.card import INPUTS_OF, INPUTS_OF_CLASSES, Inputs, Task
from app.kernel.metrics.catalogue import catalogue
from tests.bank import each

LABELS = ["a", "b"]


def meaning(text: str) -> str:
    return render(parse(text, LABELS, 1, inputs=frozenset(Inputs)), LABELS)


@each(
    ("written", "meant"),
    [
        ("f1_score@a", "f1@a"),
        ("sklearn.f1_score", "f1@b"),
        ("sklearn.metrics.balanced_accuracy_score", "balanced_accuracy"),
        ("balanced_accuracy_score(adjusted=True)", "adjusted_balanced_accuracy"),
        ("fbeta_score(beta=2)", "f_beta(beta=2)@b"),
        ("fbeta_score(beta=2, average=macro)", "macro_f_beta(beta=2)"),
        ("f1_score(average='weighted')", "weighted_f1"),
        ("roc_auc_score@*", "roc_auc@*"),
        ('roc_auc_score(multi_class="ovo")', "roc_auc_ovo_macro"),
        ("roc_auc_score(average=weighted, multi_class=ovo)", "roc_auc_ovo_weighted"),
        ("roc_auc_score(max_fpr=0.2)", "partial_roc_auc(max_fpr=0.2)@b"),
        ("cohen_kappa_score", "cohen_kappa"),
        ("cohen_kappa_score(weights=quadratic)", "weighted_kappa(weights=quadratic)"),
        ("top_k_accuracy_score(k=3)", "top_k_accuracy(k=3)"),
        ("PPV@a", "precision@a"),
        ("pycm.PPV", "precision@b"),
        ("Overall_ACC", "accuracy"),
        ("pycm.MCC", "mcc_ovr@b"),
        ("MulticlassAccuracy(average=macro)", "balanced_accuracy"),
        ("torchmetrics.MulticlassRecall(average=none)@*", "recall@*"),
        ("gps(sensitivity_score@*, PPV@a)", "gps(recall@*, precision@a)"),
    ],
)
def test_what_they_mean(written: str, meant: str) -> None:
    assert meaning(written) == meant


@pytest.mark.parametrize(
    ("written", "keys"),
    [
        ("AUC", {"roc_auc", "balanced_accuracy_ovr"}),
        ("MCC", {"mcc", "mcc_ovr"}),
        ("class_likelihood_ratios", {"likelihood_ratio_positive", "likelihood_ratio_negative"}),
        ("MulticlassAccuracy", {"accuracy", "balanced_accuracy"}),
        ("geometric_mean_score", {"g_mean", "g_mean_ovr"}),
    ],
)
def test_several_meanings_are_offered(written: str, keys: set[str]) -> None:
    with pytest.raises(UnknownMetric) as caught:
        meaning(f"mean(h_mean, {written})")
    assert set(caught.value.suggestions) == keys
    assert all(key in caught.value.detail for key in keys)
    assert caught.value.position == 13


@each(
    ("written", "classes", "labels"),
    [
        ("f1_macro", "macro_f1", "macro_f1"),
        ("f1_micro", "accuracy", "micro_f1"),
        ("f1_weighted", "weighted_f1", "weighted_f1"),
        ("precision_micro", "accuracy", "micro_precision"),
        ("recall_macro", "balanced_accuracy", "balanced_accuracy"),
        ("recall_micro", "accuracy", "micro_recall"),
        ("recall_weighted", "accuracy", "micro_recall"),
        ("jaccard_micro", "micro_jaccard", "micro_jaccard"),
        ("f1_score(average=micro)", "accuracy", "micro_f1"),
        ("sklearn.metrics.recall_score(average='weighted')", "accuracy", "micro_recall"),
        ("micro_f1", "accuracy", "micro_f1"),
        ("specificity_micro", "micro_specificity", "micro_specificity"),
        ("roc_auc_ovr", "roc_auc_ovr_macro", "roc_auc_ovr_macro"),
        ("neg_log_loss", "log_loss", None),
        ("neg_brier_score", "brier_score", None),
        ("f1_samples", None, "samples_f1"),
        ("jaccard_samples", None, "samples_jaccard"),
    ],
)
def test_averages_and_scorers_mean_in_each_kind_what_they_mean_there(
    written: str, classes: str | None, labels: str | None
) -> None:
    """Losses keep their sign: a scorer that is called after the negative loss is the loss."""
    for task, meant in ((None, classes), (Task.MULTILABEL, labels)):
        inputs = INPUTS_OF_CLASSES if task is None else INPUTS_OF[task]
        if meant is None:
            with pytest.raises(InvalidExpression):
                parse(written, LABELS, 1, inputs=inputs, task=task)
        else:
            assert render(parse(written, LABELS, 1, inputs=inputs, task=task), LABELS) == meant


def test_the_metric_that_a_name_means_for_another_kind_is_offered() -> None:
    with pytest.raises(InvalidExpression, match="did you mean subset_accuracy") as caught:
        parse("accuracy", LABELS, None, inputs=INPUTS_OF[Task.MULTILABEL], task=Task.MULTILABEL)
    assert caught.value.suggestions == ("subset_accuracy",)


def test_what_is_no_part_of_a_name_is_a_parameter() -> None:
    with pytest.raises(InvalidParameter, match="zero_division"):
        meaning("f1_score(zero_division=0)")
    with pytest.raises(UnknownMetric):
        meaning("pycm.f1_score")


@each("key", [metric.key for metric in catalogue().metrics if metric.card.elsewhere])
def test_no_name_of_a_card_means_another_metric(key: str) -> None:
    """Each is resolved to its metric, offered among several, or in words that are no name."""
    for library, written in catalogue().by_name[key].card.elsewhere.items():
        name, _, arguments = written.partition("(")
        given = dict(pair.strip().partition("=")[::2] for pair in arguments.rstrip(")").split(",") if pair)
        given = {one: value.strip("\"'") for one, value in given.items() if value}
        plain = name.strip().replace(" ", "_")
        tasks = catalogue().by_name[key].card.tasks
        task = None if Task.MULTICLASS in tasks else tasks[0]
        found = None if plain in catalogue().by_name else resolve(f"{library}.{plain}", given, task)
        if found is not None:
            assert key in found.meanings
            assert found.key in (key, None)
