"""Could any confusion matrix have produced the scores that were reported?"""

from collections.abc import Sequence

import numpy as np

from app.domain.errors import InvalidInput
from app.kernel.consistency.intervals import (
    Feasible,
    Fitting,
    alternatives,
    feasible_matrices,
    fitting_sizes,
    readings,
    search_rows,
)
from app.kernel.consistency.reported_scores import COMPLEMENTS, SCORES, Range, normalise
from app.kernel.matrix.table import Table
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import Array, silently
from app.services.consistency.class_consistency import of_classes, of_folds, pooled_alternative
from app.services.consistency.reported import (
    ROUNDINGS,
    SAMPLING,
    Aggregation,
    Report,
    alternative,
    ranges_of,
    unknown_score,
)
from app.services.estimands import parse_estimands
from app.services.json_values import Json, plain

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


def check_report(report: Report) -> Json:
    """Whether the scores are possible together, and what follows when they are.

    Raises:
        InvalidInput: a score is not known for this form, or is no number, or too many sizes would have to be searched.
        InvalidExpression: one of the further metrics is none.
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


def _of_two_classes(report: Report, positives: int, negatives: int) -> Json:
    """Exact, by a walk over the smaller class."""
    texts, scores = _texts(report), _scores(report)
    found = feasible_matrices(positives, negatives, scores)
    consistent = found.count > 0
    others = [] if consistent else alternatives(positives, negatives, texts, report.printed)
    answer: Json = {
        "consistent": consistent,
        "feasible_count": found.count,
        "examples": [_matrix(tp, tn, positives, negatives) for tp, tn in found.examples(_MOST_SHOWN)],
        "implied": {name: {"low": low, "high": high} for name, (low, high) in sorted(found.implied().items())},
        "alternatives": [alternative(other.code, other.sentence, other.count) for other in others],
        "assumptions": [SAMPLING, ROUNDINGS[report.printed]],
    }
    if report.metrics:
        answer["metrics"] = _further(report.metrics, found)
    return answer


def _of_pooled(report: Report, folds: Sequence[tuple[int, int]]) -> Json:
    """Scores of the counts of all folds together are scores of one matrix."""
    positives, negatives = (sum(fold[side] for fold in folds) for side in (0, 1))
    answer = _of_two_classes(report, positives, negatives)
    answer["assumptions"] = [
        "Every score is the score of the counts of all folds together, not the mean of the scores of the folds.",
        ROUNDINGS[report.printed],
    ]
    if not answer["consistent"]:
        answer["alternatives"] += pooled_alternative(report, folds)
    return answer


def _fits_pooled(report: Report, folds: Sequence[tuple[int, int]]) -> int:
    """How many matrices of all folds together fit."""
    positives, negatives = (sum(fold[side] for fold in folds) for side in (0, 1))
    return feasible_matrices(positives, negatives, _scores(report)).count


def _of_unknown_sizes(report: Report) -> Json:
    """Whether there are numbers of samples for which a matrix fits, as far as they are searched."""
    texts, scores = _texts(report), _scores(report)
    sizes, searched = _sizes(report)
    found = fitting_sizes(sizes, scores)
    others: list[Json] = []
    if not found:
        for reading in readings(texts, report.printed):
            turned = [(n, p) for p, n in sizes] if reading.sizes_exchanged else sizes
            if reading.sizes_exchanged and sorted(turned) == sorted(sizes):
                continue
            fits = fitting_sizes(turned, reading.scores, undefined_as_zero=reading.undefined_as_zero)
            if fits:
                others.append(alternative(reading.code, reading.sentence, None))
    return {
        "consistent": bool(found),
        "feasible_count": None if found else 0,
        "sizes": {**searched, "searched": len(sizes), "fitting": len(found), **_shown_sizes(report, found)},
        "examples": [_matrix(one.tp, one.tn, one.positives, one.negatives) for one in _spread(found)],
        "implied": {},
        "alternatives": others,
        "assumptions": [
            "The scores are of one confusion matrix of whole counts, with samples of both classes.",
            _searched_sentence(searched),
            ROUNDINGS[report.printed],
        ],
    }


def _sizes(report: Report) -> tuple[list[tuple[int, int]], Json]:
    """Sizes (p, n) to be searched, and what is said of that.

    Raises:
        InvalidInput: they are too many.
    """
    if report.total is not None:
        known = report.positives if report.negatives is None else report.total - report.negatives
        choices = range(1, report.total) if known is None else [known]
        sizes = [(p, report.total - p) for p in choices]
        _affordable(sizes, "/total", report.total)
        return sizes, {"total": report.total}
    given = report.positives if report.negatives is None else report.negatives
    bound = report.up_to or _default_bound(given)
    if given is None:
        # Both unknown: up to so many samples together.
        sizes = [(p, n) for total in range(2, bound + 1) for p in range(1, total) for n in [total - p]]
        return _affordable(sizes, "/search_up_to", bound), {"total_up_to": bound}
    other = range(1, bound + 1)
    if report.positives is None:
        return _affordable([(p, given) for p in other], "/search_up_to", bound), {"n": given, "p_up_to": bound}
    return _affordable([(given, n) for n in other], "/search_up_to", bound), {"p": given, "n_up_to": bound}


def _default_bound(given: int | None) -> int:
    """As far as the rows last; both unknown they grow with the third power of the bound."""
    return 200 if given is None else max(1, min(DEFAULT_BOUND, MOST_SEARCHED // (given + 1)))


def _affordable(sizes: list[tuple[int, int]], pointer: str, bound: int) -> list[tuple[int, int]]:
    if search_rows(sizes) > MOST_SEARCHED:
        raise InvalidInput.at(
            pointer, "too_many_sizes", f"expected fewer samples, a search up to {bound} takes too long"
        )
    return sizes


def _searched_sentence(searched: Json) -> str:
    if "total" in searched:
        return f"Every division of {searched['total']} samples into the two classes was searched."
    if "total_up_to" in searched:
        return f"All numbers of samples up to {searched['total_up_to']} together were searched, and none beyond."
    known, unknown = ("p", "n") if "p" in searched else ("n", "p")
    bound = searched[f"{unknown}_up_to"]
    return f"{known} is {searched[known]}; {unknown} was searched from 1 to {bound}, and nothing is said of more."


def _shown_sizes(report: Report, found: Sequence[Fitting]) -> Json:
    """The sizes that fit: as ranges of the one that is not known, or the smallest pairs."""
    if report.positives is None and report.negatives is None and report.total is None:
        smallest = sorted(found, key=lambda one: (one.positives + one.negatives, one.positives))[:_MOST_SHOWN]
        return {"smallest": [{"p": one.positives, "n": one.negatives} for one in smallest]}
    unknown = "p" if report.positives is None else "n"
    values = [one.positives if unknown == "p" else one.negatives for one in found]
    ranges = _runs(sorted(values))
    return {unknown: [{"low": low, "high": high} for low, high in ranges[:_MOST_RANGES]], "ranges": len(ranges)}


def _runs(values: Sequence[int]) -> list[tuple[int, int]]:
    """Whole numbers, rising, as ranges without gaps."""
    if not values:
        return []
    numbers = np.array(values)
    breaks = np.flatnonzero(np.diff(numbers) > 1)
    starts, stops = numbers[[0, *(breaks + 1)]], numbers[[*breaks, len(numbers) - 1]]
    return list(zip(starts.tolist(), stops.tolist(), strict=True))


def _spread(found: Sequence[Fitting]) -> list[Fitting]:
    """Some of the fitting sizes, from the smallest to the largest."""
    if not found:
        return []
    return [found[index] for index in np.unique(np.linspace(0, len(found) - 1, _MOST_SHOWN).round().astype(int))]


def _texts(report: Report) -> dict[str, str]:
    return {_binary_name(name): text for name, text in report.scores.items()}


def _scores(report: Report) -> list[tuple[str, Range]]:
    return normalise({_binary_name(name): wanted for name, wanted in ranges_of(report).items()})


def _further(texts: Sequence[str], found: Feasible) -> Json:
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
    answer: Json = {}
    for estimand in estimands:
        with silently():
            values = estimand.values(np.asarray(estimand.functional(table)))
        for place, name in enumerate(estimand.names):
            defined = values[np.isfinite(values[:, place]), place]
            answer[name] = {
                "low": plain(defined.min()) if defined.size else None,
                "high": plain(defined.max()) if defined.size else None,
                "undefined_count": int(len(values) - defined.size),
            }
    return answer


def _all_matrices(found: Feasible) -> Array:
    tp, tn = np.array(found.examples(found.count)).T
    rows = [[tn, found.negatives - tn], [found.positives - tp, tp]]
    return np.moveaxis(np.array(rows, dtype=np.float64), -1, 0)


def _matrix(tp: int, tn: int, positives: int, negatives: int) -> Json:
    return {"tp": tp, "fn": positives - tp, "fp": negatives - tn, "tn": tn}


def _binary_name(name: str) -> str:
    """The key that a score has here, by any name of the catalogue."""
    metric = catalogue().of_matrices.by_name.get(name)
    key = name if metric is None else metric.key
    if key in SCORES or key in COMPLEMENTS:
        return key
    raise unknown_score(name, (*SCORES, *COMPLEMENTS))
