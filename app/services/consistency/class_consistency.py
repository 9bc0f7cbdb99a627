"""Reported scores of several classes, or averaged over folds: what an integer programme can tell of them."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from app.domain.errors import InvalidInput
from app.kernel.consistency.integers import BY_CLASS, OF_FOLDS, OVERALL, Answer, Finding, check_classes, check_folds
from app.kernel.consistency.reported_scores import COMPLEMENTS, SCORES, Printed, Range
from app.kernel.metrics.catalogue import catalogue
from app.services.consistency.reported import ROUNDINGS, SAMPLING, Report, alternative, ranges_of, unknown_score
from app.services.json_values import Json

_CUT = ("truncated", "scores were cut off or rounded up, not rounded to nearest")
_Classes = tuple[dict[str, Range], dict[tuple[str, int], Range]]


def of_classes(report: Report, classes: Mapping[str, int]) -> Json:
    """Is there a matrix with these row sums?

    Raises:
        InvalidInput: a score is not known for this form, or is no number.
    """
    labels, actual = list(classes), list(classes.values())
    overall, by_class = _read_classes(report, labels)
    found = check_classes(actual, overall, by_class)
    others = []
    if found.answer is Answer.INCONSISTENT:
        turned = {(SCORES[key].transposed or key, k): wanted for (key, k), wanted in by_class.items()}
        readings: list[tuple[str, str, _Classes]] = [
            ("transposed", "rows and columns are exchanged, so recall was printed as precision", (overall, turned))
        ]
        if report.printed is not Printed.ANY:
            readings.insert(0, (*_CUT, _read_classes(report, labels, Printed.ANY)))
        others = [
            alternative(code, sentence, None)
            for code, sentence, scores in readings
            if scores != (overall, by_class) and check_classes(actual, *scores).answer is Answer.CONSISTENT
        ]
    example = None if found.example is None else found.example.astype(np.int64).tolist()
    return {
        **_decided(found, labels),
        "examples": [] if example is None else [{"labels": labels, "confusion_matrix": example}],
        "alternatives": others,
        "assumptions": [SAMPLING, ROUNDINGS[report.printed]],
    }


def _read_classes(report: Report, labels: Sequence[str], printed: Printed | None = None) -> _Classes:
    """Overall scores and scores of a class as ranges, complements turned around."""
    overall: dict[str, Range] = {}
    by_class: dict[tuple[str, int], Range] = {}
    complements = [key for key, base in COMPLEMENTS.items() if base in BY_CLASS]
    known = (*OVERALL, "error_rate", *(f"{key}@<class>" for key in (*BY_CLASS, *complements)))
    for name, wanted in ranges_of(report, printed).items():
        text, at, label = name.partition("@")
        key, taken = _base(text, wanted)
        if at and key in BY_CLASS and label in labels:
            by_class[key, labels.index(label)] = taken
        elif not at and key in OVERALL:
            overall[key] = taken
        else:
            raise unknown_score(name, known)
    return overall, by_class


def of_folds(
    report: Report,
    folds: Sequence[tuple[int, int]],
    *,
    pooled: Callable[[Report, Sequence[tuple[int, int]]], int],
) -> Json:
    """Are there counts of every fold whose scores have these means?

    Args:
        report: With means of scores.
        folds: (p, n) of each.
        pooled: How many matrices fit when the scores are those of all folds together.

    Raises:
        InvalidInput: a score is not known for this form, or is no number.
    """
    means = _read_means(report)
    found = check_folds(folds, means)
    others = []
    if found.answer is Answer.INCONSISTENT:
        mirrored = {SCORES[key].mirrored or key: wanted for key, wanted in means.items()}
        exchanged = [(n, p) for p, n in folds]
        readings = [
            ("swapped_classes", "the other class was taken as positive", folds, mirrored),
            ("swapped_counts", "the numbers of positive and negative items are exchanged", exchanged, means),
        ]
        if report.printed is not Printed.ANY:
            readings.insert(0, (*_CUT, folds, _read_means(report, Printed.ANY)))
        others = [
            alternative(code, sentence, None)
            for code, sentence, sizes, scores in readings
            if (list(sizes), scores) != (list(folds), means) and check_folds(sizes, scores).answer is Answer.CONSISTENT
        ]
        count = pooled(report, folds)
        if count:
            others.append(
                alternative("score_of_sums", "scores were computed of the counts of all folds together", count)
            )
    examples = []
    if found.example is not None:
        pairs = zip(found.example.astype(np.int64).tolist(), folds, strict=True)
        cells = [{"tp": tp, "fn": p - tp, "fp": n - tn, "tn": tn} for (tp, tn), (p, n) in pairs]
        examples = [{"folds": cells}]
    return {
        **_decided(found),
        "examples": examples,
        "alternatives": others,
        "assumptions": [
            "Every score is the mean over the folds of the score of each fold, not the score of the pooled counts.",
            ROUNDINGS[report.printed],
        ],
    }


def pooled_alternative(report: Report, folds: Sequence[tuple[int, int]]) -> list[Json]:
    """For scores that no pooled counts have: would they fit as means over the folds?"""
    try:
        means = _read_means(report)
    except InvalidInput:
        # The mean of another score cannot be checked.
        return []
    if check_folds(folds, means).answer is not Answer.CONSISTENT:
        return []
    return [alternative("mean_of_scores", "scores are means over the folds of the scores of each", None)]


def _read_means(report: Report, printed: Printed | None = None) -> dict[str, Range]:
    means: dict[str, Range] = {}
    for name, wanted in ranges_of(report, printed).items():
        key, taken = _base(name, wanted)
        if key not in OF_FOLDS:
            raise unknown_score(name, (*OF_FOLDS, "error_rate", "fnr", "fpr"))
        means[key] = taken
    return means


def _base(name: str, wanted: Range) -> tuple[str, Range]:
    """A score by its key, one minus it where that is the one that is known."""
    metric = catalogue().of_matrices.by_name.get(name)
    key = name if metric is None else metric.key
    return (COMPLEMENTS[key], wanted.complement()) if key in COMPLEMENTS else (key, wanted)


def _decided(found: Finding, labels: Sequence[str] = ()) -> Json:
    implied = {}
    for name, (low, high) in sorted(found.implied.items()):
        key, at, code = name.partition("@")
        implied[f"{key}@{labels[int(code)]}" if at else key] = {"low": low, "high": high}
    return {
        "consistent": None if found.answer is Answer.UNDECIDED else found.answer is Answer.CONSISTENT,
        "feasible_count": 0 if found.answer is Answer.INCONSISTENT else None,
        "implied": implied,
    }
