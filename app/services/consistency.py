"""Could any confusion matrix have produced the scores that were reported?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.domain.errors import Fault, InvalidInput
from app.domain.expressions import suggest
from app.kernel.catalogue import catalogue
from app.kernel.consistency import (
    COMPLEMENTS,
    SCORES,
    Feasible,
    Printed,
    Range,
    alternatives,
    feasible_matrices,
    normalise,
    printed_range,
)
from app.kernel.integer_consistency import Answer, check_classes, check_folds
from app.kernel.numerics import Array, silently
from app.kernel.table import Table
from app.services.numbers import Json, plain
from app.services.targets import parse_targets

# Items of the smaller class up to which all matrices are looked through.
MOST_ITEMS = 50_000
MOST_CLASSES = 20
MOST_FOLDS = 100
# Matrices that fit of which further metrics are computed one by one.
MOST_EXAMINED = 200_000
_LINEAR = ("accuracy", "balanced_accuracy")
_LINEAR_OF_CLASS = ("recall", "precision", "f1")
_LINEAR_OF_FOLDS = ("accuracy", "recall", "specificity", "balanced_accuracy")
_SAMPLING = "The scores are of one confusion matrix of whole counts, with the numbers of samples given."
_ROUNDINGS = {
    Printed.NEAREST: "Every score was rounded to the nearest value of its digits.",
    Printed.TRUNCATED: "Every score was cut off after its last digit.",
    Printed.ANY: "Every score is within one unit of its last digit, however it was cut.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was reported: scores as printed, and the numbers of samples behind them in one of three forms."""

    scores: Mapping[str, str]
    positives: int | None = None
    negatives: int | None = None
    classes: Mapping[str, int] | None = None
    folds: tuple[tuple[int, int], ...] | None = None
    printed: Printed = Printed.NEAREST
    metrics: tuple[str, ...] = ()


def check_report(report: Report) -> Json:
    """Whether the scores are possible together, and what follows when they are.

    Raises:
        InvalidInput: a score is not known for this form, or is no number.
        InvalidExpression: one of the further metrics is none.
    """
    if report.classes is not None:
        return _of_classes(report, report.classes)
    if report.folds is not None:
        return _of_folds(report, report.folds)
    assert report.positives is not None  # noqa: S101 - one of the three forms is given
    assert report.negatives is not None  # noqa: S101
    return _of_two_classes(report, report.positives, report.negatives)


def _of_two_classes(report: Report, positives: int, negatives: int) -> Json:
    """Exact, by a walk over the smaller class."""
    texts = {_binary_name(name): text for name, text in report.scores.items()}
    ranges = _ranges(report)
    named = {_binary_name(name): wanted for name, wanted in ranges.items()}
    found = feasible_matrices(positives, negatives, normalise(named))
    consistent = found.count > 0
    answer: Json = {
        "consistent": consistent,
        "feasible_count": found.count,
        "examples": [_matrix(tp, tn, positives, negatives) for tp, tn in found.examples(5)],
        "implied": {name: {"low": low, "high": high} for name, (low, high) in sorted(found.implied().items())},
        "alternatives": []
        if consistent
        else [
            {"code": other.code, "message": f"It would fit if {other.sentence}.", "feasible_count": other.count}
            for other in alternatives(positives, negatives, texts, report.printed)
        ],
        "assumptions": [_SAMPLING, _ROUNDINGS[report.printed]],
    }
    if report.metrics:
        answer["metrics"] = _further(report.metrics, found)
    return answer


def _further(texts: Sequence[str], found: Feasible) -> Json:
    """Ranges of any metrics of the positive class over the matrices that fit."""
    targets = parse_targets(texts, ("0", "1"), 1)
    if found.count == 0:
        return {}
    if found.count > MOST_EXAMINED:
        raise InvalidInput(
            [
                Fault(
                    "/metrics",
                    "too_many_matrices",
                    f"expected scores that at most {MOST_EXAMINED} matrices fit, for further metrics; {found.count} do",
                )
            ]
        )
    table = Table(_all_matrices(found))
    answer: Json = {}
    for target in targets:
        with silently():
            values = target.values(np.asarray(target.functional(table)))
        for place, name in enumerate(target.names):
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
    metric = catalogue().by_name.get(name)
    key = name if metric is None else metric.key
    if key in SCORES or key in COMPLEMENTS:
        return key
    raise _unknown(name, (*SCORES, *COMPLEMENTS))


def _unknown(name: str, known: Sequence[str]) -> InvalidInput:
    near = [other for other in suggest(name) if other in known]
    hint = f"did you mean {' or '.join(near)}?" if near else f"known here are {', '.join(known)}"
    return InvalidInput([Fault(f"/scores/{name}", "unknown_score", f"{name[:60]!r} cannot be checked; {hint}")])


def _ranges(report: Report) -> dict[str, Range]:
    found = {}
    for name, text in report.scores.items():
        try:
            found[name] = printed_range(text, report.printed)
        except ValueError:
            raise InvalidInput(
                [Fault(f"/scores/{name}", "not_a_number", f"expected a number as it was printed, got {text[:60]!r}")]
            ) from None
    return found


def _of_classes(report: Report, classes: Mapping[str, int]) -> Json:
    """By an integer programme: a matrix with these row sums."""
    labels = list(classes)
    overall: dict[str, Range] = {}
    by_class: dict[tuple[str, int], Range] = {}
    known = (*_LINEAR, *(f"{key}@<class>" for key in _LINEAR_OF_CLASS))
    for name, wanted in _ranges(report).items():
        key, at, label = name.partition("@")
        metric = catalogue().by_name.get(key)
        key = key if metric is None else metric.key
        if at and key in _LINEAR_OF_CLASS and label in labels:
            by_class[key, labels.index(label)] = wanted
        elif not at and key in _LINEAR:
            overall[key] = wanted
        else:
            raise _unknown(name, known)
    found = check_classes(list(classes.values()), overall, by_class)
    example = None if found.example is None else found.example.astype(np.int64).tolist()
    return {
        **_decided(found.answer),
        "examples": [] if example is None else [{"labels": labels, "confusion_matrix": example}],
        "assumptions": [_SAMPLING, _ROUNDINGS[report.printed]],
    }


def _of_folds(report: Report, folds: Sequence[tuple[int, int]]) -> Json:
    """By an integer programme: the mean over folds of scores of each fold."""
    means: dict[str, Range] = {}
    for name, wanted in _ranges(report).items():
        metric = catalogue().by_name.get(name)
        key = name if metric is None else metric.key
        if key not in _LINEAR_OF_FOLDS:
            raise _unknown(name, _LINEAR_OF_FOLDS)
        means[key] = wanted
    found = check_folds(folds, means)
    examples = []
    if found.example is not None:
        pairs = zip(found.example.astype(np.int64).tolist(), folds, strict=True)
        examples = [{"folds": [_matrix(tp, tn, p, n) for (tp, tn), (p, n) in pairs]}]
    return {
        **_decided(found.answer),
        "examples": examples,
        "assumptions": [
            "Every score is the mean over the folds of the score of each fold, not the score of the pooled counts.",
            _ROUNDINGS[report.printed],
        ],
    }


def _decided(answer: Answer) -> Json:
    return {
        "consistent": None if answer is Answer.UNDECIDED else answer is Answer.CONSISTENT,
        "feasible_count": 0 if answer is Answer.INCONSISTENT else None,
        "implied": {},
        "alternatives": [],
    }
