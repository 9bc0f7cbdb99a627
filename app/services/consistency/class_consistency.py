"""Reported scores of several classes, or averaged over folds: what an integer programme can tell of them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from app.domain.errors import InvalidInput
from app.kernel.consistency.integer_programmes import (
    Answer,
    Feasibility,
    NotLinearError,
    Reported,
    check_classes,
    check_folds,
    linear_means,
    linear_scores,
)
from app.kernel.consistency.reported_scores import as_printed, readings
from app.services.consistency.answers import (
    AlternativeReading,
    Cells,
    ClassesExample,
    ConsistencyAnswer,
    FoldsExample,
    ScoreEnds,
)
from app.services.consistency.reported import ROUNDINGS, SAMPLING, ReportedScores, alternative, printed_scores

Folds = Sequence[tuple[int, int]]


def of_classes(report: ReportedScores, classes: Mapping[str, int]) -> ConsistencyAnswer:
    """Is there a matrix with these row sums?

    Raises:
        InvalidInput: a score is not known for this form, or is no number.
    """
    labels, actual = list(classes), list(classes.values())
    scores = printed_scores(report, labels, linear_scores(len(labels)))
    found = check_classes(actual, as_printed(scores, report.printed))
    others = []
    if found.answer is Answer.INCONSISTENT:
        others = [
            alternative(reading.code, reading.sentence, None)
            for reading in readings(scores, report.printed)
            if reading.code in ("truncated", "transposed")
            if _is_consistent(check_classes, actual, reading.reported)
        ]
    matrix = [] if found.example is None else found.example.astype(np.int64).tolist()
    return ConsistencyAnswer(
        consistent=_consistent(found),
        feasible_count=_count(found),
        examples=[ClassesExample(labels, matrix)] if matrix else [],
        implied=_implied(found, labels),
        alternatives=others,
        assumptions=[SAMPLING, ROUNDINGS[report.printed]],
    )


def of_folds(
    report: ReportedScores, folds: Folds, *, pooled: Callable[[ReportedScores, Folds], int]
) -> ConsistencyAnswer:
    """Are there counts of every fold whose scores have these means?

    Args:
        report: With means of scores.
        folds: (p, n) of each.
        pooled: How many matrices fit when the scores are those of all folds together.

    Raises:
        InvalidInput: a score is not known for this form, or is no number.
    """
    scores = printed_scores(report, None, linear_means())
    found = check_folds(folds, as_printed(scores, report.printed))
    others: list[AlternativeReading] = []
    if found.answer is Answer.INCONSISTENT:
        exchanged = [(n, p) for p, n in folds]
        others = [
            alternative(reading.code, reading.sentence, None)
            for reading in readings(scores, report.printed)
            if reading.code in ("truncated", "swapped_classes", "swapped_counts")
            if not reading.sizes_exchanged or exchanged != list(folds)
            if _is_consistent(check_folds, exchanged if reading.sizes_exchanged else folds, reading.reported)
        ]
        count = pooled(report, folds)
        if count:
            others.append(
                alternative("score_of_sums", "scores were computed of the counts of all folds together", count)
            )
    examples = []
    if found.example is not None:
        pairs = zip(found.example.astype(np.int64).tolist(), folds, strict=True)
        examples = [FoldsExample([Cells.of(tp, tn, p, n) for (tp, tn), (p, n) in pairs])]
    return ConsistencyAnswer(
        consistent=_consistent(found),
        feasible_count=_count(found),
        examples=examples,
        implied=_implied(found),
        alternatives=others,
        assumptions=[
            "Every score is the mean over the folds of the score of each fold, not the score of the pooled counts.",
            ROUNDINGS[report.printed],
        ],
    )


def pooled_alternative(report: ReportedScores, folds: Folds) -> list[AlternativeReading]:
    """For scores that no pooled counts have: would they fit as means over the folds?"""
    try:
        scores = printed_scores(report, None, linear_means())
    except InvalidInput:
        # The mean of another score cannot be checked.
        return []
    if check_folds(folds, as_printed(scores, report.printed)).answer is not Answer.CONSISTENT:
        return []
    return [alternative("mean_of_scores", "scores are means over the folds of the scores of each", None)]


def _is_consistent(check: Callable[[Any, Reported], Feasibility], sizes: Any, reported: Reported) -> bool:
    """Do counts exist? Where a reading makes of a score what cannot be checked, nothing is claimed."""
    try:
        return check(sizes, reported).answer is Answer.CONSISTENT
    except NotLinearError:
        return False


def _consistent(found: Feasibility) -> bool | None:
    return None if found.answer is Answer.UNDECIDED else found.answer is Answer.CONSISTENT


def _count(found: Feasibility) -> int | None:
    return 0 if found.answer is Answer.INCONSISTENT else None


def _implied(found: Feasibility, labels: Sequence[str] = ()) -> dict[str, ScoreEnds]:
    implied = {}
    for name, ends in sorted(found.implied.items()):
        key, at, code = name.partition("@")
        implied[f"{key}@{labels[int(code)]}" if at else key] = ScoreEnds(*ends)
    return implied
