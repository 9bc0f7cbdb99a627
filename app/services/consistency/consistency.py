"""Could any confusion matrix have produced the scores that were reported?"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from app.domain.errors import InvalidInput
from app.kernel.consistency.reported_scores import PrintedScores, as_printed, readings, scores_of_two_classes
from app.kernel.consistency.two_classes import Feasible, Fitting, feasible_matrices, fitting_sizes, search_rows
from app.kernel.matrix.table import Table
from app.kernel.numerics.arrays import Array, silently
from app.services.consistency.answers import (
    AlternativeReading,
    Cells,
    ConsistencyAnswer,
    MetricEnds,
    ScoreEnds,
    SearchedSizes,
    SizeRange,
    Sizes,
)
from app.services.consistency.class_consistency import Folds, of_classes, of_folds, pooled_alternative
from app.services.consistency.reported import (
    ROUNDINGS,
    SAMPLING,
    Aggregation,
    ReportedScores,
    alternative,
    printed_scores,
)
from app.services.estimands import parse_estimands
from app.services.json_values import number

# Items of the smaller class up to which all matrices are looked through.
MOST_ITEMS = 50_000
# Matrices that fit of which further metrics are computed one by one.
MOST_EXAMINED = 200_000
# Rows of all matrices looked through when sizes are not known: a second or two.
MOST_SEARCHED = 2_000_000
# An unknown number of samples is searched up to here, or to where the rows are used up.
DEFAULT_BOUND = 10_000
_MOST_SHOWN = 5
_MOST_RANGES = 50


def check_report(report: ReportedScores) -> ConsistencyAnswer:
    """Whether the scores are possible together, and what follows when they are.

    Raises:
        InvalidInput: a score is not known for this form, or is no number, or too many sizes would have to be searched.
        InvalidExpression: one of the further metrics is none, or a score has a parameter that is none.
    """
    if report.classes is not None:
        return of_classes(report, report.classes)
    if report.folds is not None:
        if report.aggregation is Aggregation.MEAN_OF_SCORES:
            return of_folds(report, report.folds, pooled=_fits_pooled)
        return _of_pooled(report, report.folds)
    if report.positives is None or report.negatives is None:
        return _of_unknown_sizes(report)
    return _of_two_classes(report, report.positives, report.negatives)


def _of_two_classes(report: ReportedScores, positives: int, negatives: int) -> ConsistencyAnswer:
    """Exact, by a walk over the smaller class."""
    scores = _scores(report)
    found = feasible_matrices(positives, negatives, as_printed(scores, report.printed))
    return ConsistencyAnswer(
        consistent=found.count > 0,
        feasible_count=found.count,
        examples=[Cells.of(tp, tn, positives, negatives) for tp, tn in found.examples(_MOST_SHOWN)],
        implied={name: ScoreEnds(*ends) for name, ends in sorted(found.implied().items())},
        alternatives=[] if found.count else _alternatives(report, scores, positives, negatives),
        assumptions=[SAMPLING, ROUNDINGS[report.printed]],
        metrics=_further(report.metrics, found) if report.metrics else None,
    )


def _alternatives(
    report: ReportedScores, scores: PrintedScores, positives: int, negatives: int
) -> list[AlternativeReading]:
    """Other readings that some matrix fits."""
    found = []
    for reading in readings(scores, report.printed):
        p, n = (negatives, positives) if reading.sizes_exchanged else (positives, negatives)
        if reading.sizes_exchanged and p == n:
            continue
        count = feasible_matrices(p, n, reading.reported, undefined_as_zero=reading.undefined_as_zero).count
        if count:
            found.append(alternative(reading.code, reading.sentence, count))
    return found


def _of_pooled(report: ReportedScores, folds: Folds) -> ConsistencyAnswer:
    """Scores of the counts of all folds together are scores of one matrix."""
    answer = _of_two_classes(report, *_pooled(folds))
    return replace(
        answer,
        assumptions=[
            "Every score is the score of the counts of all folds together, not the mean of the scores of the folds.",
            ROUNDINGS[report.printed],
        ],
        alternatives=[*answer.alternatives, *([] if answer.consistent else pooled_alternative(report, folds))],
    )


def _pooled(folds: Folds) -> tuple[int, int]:
    return sum(p for p, _ in folds), sum(n for _, n in folds)


def _fits_pooled(report: ReportedScores, folds: Folds) -> int:
    """How many matrices of all folds together fit."""
    return feasible_matrices(*_pooled(folds), as_printed(_scores(report), report.printed)).count


def _of_unknown_sizes(report: ReportedScores) -> ConsistencyAnswer:
    """Whether there are numbers of samples for which a matrix fits, as far as they are searched."""
    scores = _scores(report)
    sizes, searched = _sizes(report)
    found = fitting_sizes(sizes, as_printed(scores, report.printed))
    others: list[AlternativeReading] = []
    if not found:
        for reading in readings(scores, report.printed):
            turned = [(n, p) for p, n in sizes] if reading.sizes_exchanged else sizes
            if reading.sizes_exchanged and sorted(turned) == sorted(sizes):
                continue
            if fitting_sizes(turned, reading.reported, undefined_as_zero=reading.undefined_as_zero):
                others.append(alternative(reading.code, reading.sentence, None))
    return ConsistencyAnswer(
        consistent=bool(found),
        feasible_count=None if found else 0,
        sizes=_fitting_sizes(report, replace(searched, searched=len(sizes), fitting=len(found)), found),
        examples=[Cells.of(one.tp, one.tn, one.positives, one.negatives) for one in _spread(found)],
        implied={},
        alternatives=others,
        assumptions=[
            "The scores are of one confusion matrix of whole counts, with samples of both classes.",
            _searched_sentence(searched),
            ROUNDINGS[report.printed],
        ],
    )


def _sizes(report: ReportedScores) -> tuple[list[tuple[int, int]], SearchedSizes]:
    """Sizes (p, n) to be searched, and what is said of that.

    Raises:
        InvalidInput: they are too many.
    """
    if report.total is not None:
        known = report.positives if report.negatives is None else report.total - report.negatives
        choices = range(1, report.total) if known is None else [known]
        sizes = [(p, report.total - p) for p in choices]
        return _affordable(sizes, "/total", report.total), SearchedSizes(total=report.total, searched=0, fitting=0)
    given = report.positives if report.negatives is None else report.negatives
    bound = report.up_to or _default_bound(given)
    searched = SearchedSizes(searched=0, fitting=0)
    if given is None:
        # Both unknown: up to so many samples together.
        sizes = [(p, n) for total in range(2, bound + 1) for p in range(1, total) for n in [total - p]]
        searched = replace(searched, total_up_to=bound)
    elif report.positives is None:
        sizes, searched = [(p, given) for p in range(1, bound + 1)], replace(searched, n=given, p_up_to=bound)
    else:
        sizes, searched = [(given, n) for n in range(1, bound + 1)], replace(searched, p=given, n_up_to=bound)
    return _affordable(sizes, "/search_up_to", bound), searched


def _default_bound(given: int | None) -> int:
    """As far as the rows last; both unknown they grow with the third power of the bound."""
    return 200 if given is None else max(1, min(DEFAULT_BOUND, MOST_SEARCHED // (given + 1)))


def _affordable(sizes: list[tuple[int, int]], pointer: str, bound: int) -> list[tuple[int, int]]:
    if search_rows(sizes) > MOST_SEARCHED:
        raise InvalidInput.at(
            pointer, "too_many_sizes", f"expected fewer samples, a search up to {bound} takes too long"
        )
    return sizes


def _searched_sentence(searched: SearchedSizes) -> str:
    if searched.total is not None:
        return f"Every division of {searched.total} samples into the two classes was searched."
    if searched.total_up_to is not None:
        return f"All numbers of samples up to {searched.total_up_to} together were searched, and not beyond."
    if searched.n_up_to is not None:
        return f"p is {searched.p}; n was searched from 1 to {searched.n_up_to}, and not beyond."
    return f"n is {searched.n}; p was searched from 1 to {searched.p_up_to}, and not beyond."


def _fitting_sizes(report: ReportedScores, searched: SearchedSizes, found: Sequence[Fitting]) -> SearchedSizes:
    """With the sizes that fit: as ranges of the one that is not known, or the smallest pairs."""
    if report.positives is None and report.negatives is None and report.total is None:
        smallest = sorted(found, key=lambda one: (one.positives + one.negatives, one.positives))[:_MOST_SHOWN]
        return replace(searched, smallest=[Sizes(one.positives, one.negatives) for one in smallest])
    of_p = report.positives is None
    ranges = _runs(sorted(one.positives if of_p else one.negatives for one in found))
    shown = ranges[:_MOST_RANGES]
    return replace(searched, p=shown, ranges=len(ranges)) if of_p else replace(searched, n=shown, ranges=len(ranges))


def _runs(values: Sequence[int]) -> list[SizeRange]:
    """Whole numbers, rising, as ranges without gaps."""
    if not values:
        return []
    numbers = np.array(values)
    breaks = np.flatnonzero(np.diff(numbers) > 1)
    starts, stops = numbers[[0, *(breaks + 1)]], numbers[[*breaks, len(numbers) - 1]]
    return [SizeRange(low, high) for low, high in zip(starts.tolist(), stops.tolist(), strict=True)]


def _spread(found: Sequence[Fitting]) -> list[Fitting]:
    """Some of the fitting sizes, from the smallest to the largest."""
    if not found:
        return []
    return [found[index] for index in np.unique(np.linspace(0, len(found) - 1, _MOST_SHOWN).round().astype(int))]


def _scores(report: ReportedScores) -> PrintedScores:
    return printed_scores(report, None, scores_of_two_classes())


def _further(texts: Sequence[str], found: Feasible) -> dict[str, MetricEnds]:
    """Ranges of any metrics of the positive class over the matrices that fit."""
    estimands = parse_estimands(texts, ("0", "1"), 1)
    if found.count == 0:
        return {}
    if found.count > MOST_EXAMINED:
        raise InvalidInput.at(
            "/metrics",
            "too_many_matrices",
            f"expected scores that at most {MOST_EXAMINED} matrices fit, for further metrics; {found.count} do",
        )
    table = Table(_all_matrices(found))
    answer = {}
    for estimand in estimands:
        with silently():
            values = estimand.values(np.asarray(estimand.functional(table)))
        for place, name in enumerate(estimand.names):
            defined = values[np.isfinite(values[:, place]), place]
            low, high = (number(defined.min()), number(defined.max())) if defined.size else (None, None)
            answer[name] = MetricEnds(low, high, int(len(values) - defined.size))
    return answer


def _all_matrices(found: Feasible) -> Array:
    tp, tn = np.array(found.examples(found.count)).T
    rows = [[tn, found.negatives - tn], [found.positives - tp, tp]]
    return np.moveaxis(np.array(rows, dtype=np.float64), -1, 0)
