"""Consistency of reported scores: could any confusion matrix have produced them?"""

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Annotated, Any

import numpy as np

from app.domain.asked import ExpressionText, Limits
from app.domain.errors import InvalidExpression, InvalidInput, InvalidParameter, in_pointer
from app.domain.expressions.expressions import parse, suggest
from app.domain.members import LEFT_OUT, named, number
from app.kernel.consistency.integer_programmes import (
    Feasibility,
    NotLinearError,
    check_classes,
    check_folds,
    linear_means,
    linear_scores,
)
from app.kernel.consistency.reported_scores import Printed as Printed
from app.kernel.consistency.reported_scores import (
    PrintedScores,
    Reading,
    Reported,
    Score,
    as_printed,
    readings,
    score_of,
    scores_of_two_classes,
)
from app.kernel.consistency.two_classes import Feasible, Fitting, feasible_matrices, fitting_sizes, search_rows
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Scope
from app.kernel.metrics.expression import Measure
from app.kernel.numerics.arrays import silently
from app.services.estimands import parse_estimands


@dataclass(frozen=True, slots=True)
class Cells:
    """A matrix of two classes."""

    tp: int
    fn: int
    fp: int
    tn: int

    @classmethod
    def of(cls, tp: int, tn: int, positives: int, negatives: int) -> "Cells":
        """Make it from the correct predictions and the numbers of samples."""
        return cls(tp, positives - tp, negatives - tn, tn)


@dataclass(frozen=True, slots=True)
class ClassesExample:
    """A matrix of several classes, rows actual."""

    labels: Sequence[str]
    confusion_matrix: Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class FoldsExample:
    """A matrix of each fold."""

    folds: Sequence[Cells]


@dataclass(frozen=True, slots=True)
class ScoreEnds:
    """The smallest and the largest value."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class MetricEnds:
    """A metric over the matrices that fit; `null` where no matrix has a value."""

    low: float | None
    high: float | None
    undefined_count: int


@dataclass(frozen=True, slots=True)
class AlternativeReading:
    """A different reading of the report that some matrix fits: something to ask its authors."""

    code: str
    message: str
    feasible_count: int | None


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of samples of the two classes."""

    p: int
    n: int


@dataclass(frozen=True, slots=True)
class SizeRange:
    """Whole numbers without a gap."""

    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedSizes:
    """Unknown numbers of samples: what was searched and which fit.

    Attributes:
        total: All samples, whose divisions were searched.
        total_up_to: How many samples together were searched.
        p: What was given, or the ranges that fit.
        n: What was given, or the ranges that fit.
        p_up_to: How far p was searched.
        n_up_to: How far n was searched.
        searched: How many pairs of sizes were looked at.
        fitting: How many of them fit.
        smallest: The smallest that fit, where neither is known.
        ranges: How many ranges there are; not all need be shown.
    """

    total: int | None = field(default=None, metadata=LEFT_OUT)
    total_up_to: int | None = field(default=None, metadata=LEFT_OUT)
    p: int | Sequence[SizeRange] | None = field(default=None, metadata=LEFT_OUT)
    n: int | Sequence[SizeRange] | None = field(default=None, metadata=LEFT_OUT)
    p_up_to: int | None = field(default=None, metadata=LEFT_OUT)
    n_up_to: int | None = field(default=None, metadata=LEFT_OUT)
    searched: int
    fitting: int
    smallest: Sequence[Sizes] | None = field(default=None, metadata=LEFT_OUT)
    ranges: int | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsistencyAnswer:
    """Result of the check. Inconsistent scores are a question to their authors, not a verdict.

    Attributes:
        consistent: `null`: could not be decided.
        feasible_count: How many matrices fit; `null` where they are not counted.
        examples: Some of the matrices that fit.
        implied: Ranges of other scores over the matrices that fit.
        alternatives: Other readings of the report that some matrix fits.
        metrics: Ranges of the further metrics that were asked for.
        sizes: With unknown sizes: what was searched, how many fit, and which, as ranges or the smallest.
    """

    consistent: bool | None
    feasible_count: int | None
    examples: Sequence[Cells | ClassesExample | FoldsExample]
    implied: Mapping[str, ScoreEnds]
    alternatives: Sequence[AlternativeReading]
    assumptions: Sequence[str]
    metrics: Mapping[str, MetricEnds] | None = field(default=None, metadata=LEFT_OUT)
    sizes: SearchedSizes | None = field(default=None, metadata=LEFT_OUT)


SAMPLING = "The scores are of one confusion matrix of whole counts, with the numbers of samples given."
ROUNDINGS = {
    Printed.NEAREST: "Every score was rounded to the nearest value of its digits.",
    Printed.TRUNCATED: "Every score was cut off after its last digit.",
    Printed.ANY: "Every score is within one unit of its last digit, however it was cut.",
}
# Names in a message.
_MOST_NAMES_SHOWN = 30


class Aggregation(StrEnum):
    """Order of averaging over folds: scores of folds averaged, or one score of the summed matrices."""

    MEAN_OF_SCORES = "mean_of_scores"
    SCORE_OF_SUMS = "score_of_sums"


# Items of the smaller class up to which all matrices are looked through.
_MOST_ITEMS = 50_000
# An unknown number of samples is searched up to here, or to where the rows are used up.
_DEFAULT_BOUND = 10_000
_Size = Annotated[int, Limits({"ge": 1, "le": 1_000_000})]
_Searched = Annotated[int, Limits({"ge": 2, "le": _DEFAULT_BOUND})]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedScores:
    """The reported scores as printed, and the numbers of samples behind them in one of three forms.

    Attributes:
        scores: By name, as strings: "0.80" says more than 0.8. A metric with its parameters, such as `f_beta(beta=2)`,
            and with classes `recall@A` and the like.
        positives: Positive samples; left out when they are not known.
        negatives: Negative samples; left out when they are not known.
        total: All samples, where it is not known how many are positive: every division is searched.
        up_to: How far an unknown p or n is searched, or, with neither, p + n. As far as time allows when left out;
            needed when nothing else is known.
        classes: Samples of each class.
        folds: The scores are of these folds together.
        aggregation: With folds: the mean of the scores of each, or the score of the counts of all.
        printed: How the scores were rounded.
        metrics: With p and n: further metrics whose range is wanted.
    """

    scores: Mapping[str, str]
    positives: _Size | None = field(default=None, metadata=named("p"))
    negatives: _Size | None = field(default=None, metadata=named("n"))
    total: _Searched | None = None
    up_to: _Searched | None = field(default=None, metadata=named("search_up_to"))
    classes: Mapping[str, int] | None = None
    folds: tuple[tuple[int, int], ...] | None = None
    aggregation: Aggregation = Aggregation.MEAN_OF_SCORES
    printed: Printed = field(default=Printed.NEAREST, metadata=named("rounding"))
    metrics: Annotated[tuple[ExpressionText, ...], Limits({"max_length": 20})] = ()

    def check(self) -> None:
        """Refuse any but one complete form of the three, by ValueError."""
        p, n = self.positives, self.negatives
        sizes = any(size is not None for size in (p, n, self.total, self.up_to))
        if sum((sizes, self.classes is not None, self.folds is not None)) != 1:
            raise ValueError("expected exactly one of p and n (or total, or search_up_to), classes, and folds")
        known = p is not None and n is not None
        if known and (self.total is not None or self.up_to is not None):
            raise ValueError("expected neither total nor search_up_to when both p and n are known")
        if self.total is not None:
            if self.up_to is not None:
                raise ValueError("expected total or search_up_to, not both")
            if max(p or 0, n or 0) >= self.total:
                raise ValueError("expected a total that leaves samples of both classes")
        pooled = self.aggregation is Aggregation.SCORE_OF_SUMS
        if pooled and self.folds is None:
            raise ValueError("expected aggregation with folds only")
        if (p is not None and n is not None and _too_many(p, n)) or (pooled and _too_many(*_pooled(self.folds or ()))):
            raise ValueError(f"expected at most {_MOST_ITEMS} samples of the smaller class")
        if self.metrics and not (known or pooled):
            raise ValueError("expected further metrics with p and n only")


def printed_scores(report: ReportedScores, labels: Sequence[str] | None, known: Collection[str]) -> PrintedScores:
    """Every score with its text. Of several classes ``labels`` stand behind the @ of metrics of one class; ``known``
    are the keys that can be checked in this form of a report.

    Raises:
        InvalidInput: a score is not known for this form.
        InvalidExpression: a parameter of a metric is none.
    """
    found = []
    for name, text in report.scores.items():
        score = _score(name, labels)
        if score is None or score.key not in known:
            raise _unknown(name, known, labels)
        found.append((score, text))
    return found


def _score(name: str, labels: Sequence[str] | None) -> Score | None:
    """Return the score of a name, or None if it cannot be checked. Labels are written without quotes."""
    if labels is None and name in scores_of_two_classes():
        return scores_of_two_classes()[name]
    written, at, label = name.partition("@")
    if at and label not in (labels or ()):
        return None
    try:
        expression = parse(written, ("0", "1"), 1)
    except InvalidParameter as error:
        error.pointer = f"/scores/{in_pointer(name)}"
        raise
    except InvalidExpression:
        return None
    if not isinstance(expression, Measure):
        return None
    card = expression.metric.card
    if labels is not None and bool(at) is not (card.scope is Scope.CLASS):
        return None
    try:
        return score_of(card.key, expression.parameters, 1 if labels is None or not at else labels.index(label))
    except KeyError:
        return None


def _unknown(name: str, known: Collection[str], labels: Sequence[str] | None) -> InvalidInput:
    """A score that this form of a report cannot be checked for."""
    near = [other for other in suggest(name) if other in known]
    scores = scores_of_two_classes()
    ordered = sorted(known, key=lambda key: scores[key].of is not None)
    shown = [f"{key}@<class>" if labels is not None and scores[key].of is not None else key for key in ordered]
    more = f" and {len(shown) - _MOST_NAMES_SHOWN} more" if len(shown) > _MOST_NAMES_SHOWN else ""
    hint = (
        f"did you mean {' or '.join(near)}?" if near else f"known here are {', '.join(shown[:_MOST_NAMES_SHOWN])}{more}"
    )
    return InvalidInput.at(f"/scores/{in_pointer(name)}", "unknown_score", f"{name[:60]!r} cannot be checked; {hint}")


def _alternatives(
    scores: PrintedScores,
    printed: Printed,
    fitting: Callable[[Reading], int | None],
    codes: Container[str] | None = None,
    sizes: Sequence[tuple[int, int]] = (),
) -> list[AlternativeReading]:
    """Other readings of a report that no matrix fits as it stands, of some ``codes`` alone where these are given.

    ``fitting`` says how many matrices fit one; None where some do and they are not counted. Where the ``sizes`` (p, n)
    are the same with members and others exchanged, no reading exchanges them.
    """
    same = sorted(sizes) == sorted((n, p) for p, n in sizes)
    asked = [
        one
        for one in readings(scores, printed)
        if (codes is None or one.code in codes) and not (sizes and same and one.sizes_exchanged)
    ]
    counts = [(one, fitting(one)) for one in asked]
    return [_alternative(one.code, one.sentence, count) for one, count in counts if count != 0]


def _alternative(code: str, sentence: str, count: int | None) -> AlternativeReading:
    return AlternativeReading(code, f"It would fit if {sentence}.", count)


Folds = Sequence[tuple[int, int]]


# Matrices that fit of which further metrics are computed one by one.
MOST_EXAMINED = 200_000
# Rows of all matrices looked through when sizes are not known: a second or two.
MOST_SEARCHED = 2_000_000
_MOST_SHOWN = 5
_MOST_RANGES = 50


def check_report(report: ReportedScores) -> ConsistencyAnswer:
    """Check whether one confusion matrix can have produced all scores, and find what follows if so.

    Raises:
        InvalidInput: a score is not known for this form, or too many sizes would have to be searched.
        InvalidExpression: one of the further metrics is none, or a score has a parameter that is none.
    """
    if report.classes is not None:
        return _of_classes(report, report.classes)
    if report.folds is not None:
        if report.aggregation is Aggregation.MEAN_OF_SCORES:
            return _of_folds(report, report.folds)
        return _of_pooled(report, report.folds)
    if report.positives is None or report.negatives is None:
        return _of_unknown_sizes(report)
    return _of_two_classes(report, report.positives, report.negatives)


def _of_classes(report: ReportedScores, classes: Mapping[str, int]) -> ConsistencyAnswer:
    """Is there a matrix with these row sums?"""
    labels, actual = list(classes), list(classes.values())
    scores = printed_scores(report, labels, linear_scores(len(labels)))
    check = partial(check_classes, actual)
    found = check(as_printed(scores, report.printed))
    others: list[AlternativeReading] = []
    if found.consistent is False:
        codes = ("truncated", "transposed")
        others = _alternatives(scores, report.printed, lambda one: _fitting(check, one.reported), codes)
    return ConsistencyAnswer(
        consistent=found.consistent,
        feasible_count=0 if found.consistent is False else None,
        examples=[] if found.example is None else [ClassesExample(labels, found.example.astype(np.int64).tolist())],
        implied=_implied(found, labels),
        alternatives=others,
        assumptions=[SAMPLING, ROUNDINGS[report.printed]],
    )


def _of_folds(report: ReportedScores, folds: Folds) -> ConsistencyAnswer:
    """Are there counts of every fold, (p, n), whose scores have these means?"""
    scores = printed_scores(report, None, linear_means())
    found = check_folds(folds, as_printed(scores, report.printed))
    others: list[AlternativeReading] = []
    if found.consistent is False:

        def fitting(one: Reading) -> int | None:
            sizes = [(n, p) for p, n in folds] if one.sizes_exchanged else folds
            return _fitting(partial(check_folds, sizes), one.reported)

        others = _alternatives(
            scores, report.printed, fitting, ("truncated", "swapped_classes", "swapped_counts"), folds
        )
        sums = _pooled(folds)
        of_sums = as_printed(_scores(report), report.printed)
        if not _too_many(*sums) and (count := feasible_matrices(*sums, of_sums).count):
            said = "scores were computed of the counts of all folds together"
            others.append(_alternative("score_of_sums", said, count))
    examples = []
    if found.example is not None:
        pairs = zip(found.example.astype(np.int64).tolist(), folds, strict=True)
        examples = [FoldsExample([Cells.of(tp, tn, p, n) for (tp, tn), (p, n) in pairs])]
    return ConsistencyAnswer(
        consistent=found.consistent,
        feasible_count=0 if found.consistent is False else None,
        examples=examples,
        implied=_implied(found),
        alternatives=others,
        assumptions=[
            "Every score is the mean over the folds of the score of each fold, not the score of the pooled counts.",
            ROUNDINGS[report.printed],
        ],
    )


def _fitting(check: Callable[[Reported], Feasibility], reported: Reported) -> int | None:
    """None where counts exist, else 0. Where a reading makes of a score what cannot be checked, nothing is claimed."""
    try:
        return None if check(reported).consistent else 0
    except NotLinearError:
        return 0


def _implied(found: Feasibility, labels: Sequence[str] = ()) -> dict[str, ScoreEnds]:
    implied = {}
    for name, ends in sorted(found.implied.items()):
        key, at, code = name.partition("@")
        implied[f"{key}@{labels[int(code)]}" if at else key] = ScoreEnds(*ends)
    return implied


def _of_two_classes(report: ReportedScores, positives: int, negatives: int) -> ConsistencyAnswer:
    """Exact, by a walk over the smaller class."""
    scores = _scores(report)

    def feasible(one: Reading) -> Feasible:
        p, n = (negatives, positives) if one.sizes_exchanged else (positives, negatives)
        return feasible_matrices(p, n, one.reported, undefined_as_zero=one.undefined_as_zero)

    found = feasible_matrices(positives, negatives, as_printed(scores, report.printed))
    return ConsistencyAnswer(
        consistent=found.count > 0,
        feasible_count=found.count,
        examples=[Cells.of(tp, tn, positives, negatives) for tp, tn in found.examples(_MOST_SHOWN)],
        implied={name: ScoreEnds(*ends) for name, ends in sorted(found.implied().items())},
        alternatives=[]
        if found.count
        else _alternatives(scores, report.printed, lambda one: feasible(one).count, sizes=[(positives, negatives)]),
        assumptions=[SAMPLING, ROUNDINGS[report.printed]],
        metrics=_further(report.metrics, found) if report.metrics else None,
    )


def _of_pooled(report: ReportedScores, folds: Folds) -> ConsistencyAnswer:
    """Scores of the counts of all folds together are scores of one matrix."""
    answer = _of_two_classes(report, *_pooled(folds))
    others = [*answer.alternatives]
    if not answer.consistent:
        of_means = _fitting(partial(check_folds, folds), as_printed(_scores(report), report.printed))
        if of_means is None:
            others.append(_alternative("mean_of_scores", "scores are means over the folds of the scores of each", None))
    return replace(
        answer,
        assumptions=[
            "Every score is the score of the counts of all folds together, not the mean of the scores of the folds.",
            ROUNDINGS[report.printed],
        ],
        alternatives=others,
    )


def _pooled(folds: Folds) -> tuple[int, int]:
    return sum(p for p, _ in folds), sum(n for _, n in folds)


def _too_many(positives: int, negatives: int) -> bool:
    return min(positives, negatives) > _MOST_ITEMS


def _of_unknown_sizes(report: ReportedScores) -> ConsistencyAnswer:
    """Search for numbers of samples that have a fitting matrix."""
    scores = _scores(report)
    sizes, searched, said = _sizes(report)

    def fitting(one: Reading) -> list[Fitting]:
        some = [(n, p) for p, n in sizes] if one.sizes_exchanged else sizes
        return fitting_sizes(some, one.reported, undefined_as_zero=one.undefined_as_zero)

    found = fitting_sizes(sizes, as_printed(scores, report.printed))
    return ConsistencyAnswer(
        consistent=bool(found),
        feasible_count=None if found else 0,
        sizes=SearchedSizes(searched=len(sizes), fitting=len(found), **{**searched, **_fitting_sizes(report, found)}),
        examples=[Cells.of(one.tp, one.tn, one.positives, one.negatives) for one in _spread(found)],
        implied={},
        alternatives=[]
        if found
        else _alternatives(scores, report.printed, lambda one: None if fitting(one) else 0, sizes=sizes),
        assumptions=[
            "The scores are of one confusion matrix of whole counts, with samples of both classes.",
            said,
            ROUNDINGS[report.printed],
        ],
    )


def _sizes(report: ReportedScores) -> tuple[Folds, dict[str, Any], str]:
    """Sizes (p, n) to be searched, what the answer has of that, and what is said of it. Raises InvalidInput: they are
    too many.
    """
    given = report.positives if report.negatives is None else report.negatives
    searched: dict[str, Any]
    if (total := report.total) is not None:
        known = given if report.negatives is None else total - report.negatives
        choices = range(1, total) if known is None else [known]
        sizes, bound, searched = [(p, total - p) for p in choices], total, {"total": total}
        said = f"Every division of {total} samples into the two classes was searched."
    else:
        # What the search can afford: with both sizes unknown its cost grows with the third power.
        affordable = 200 if given is None else max(1, min(_DEFAULT_BOUND, MOST_SEARCHED // (given + 1)))
        bound = report.up_to or affordable
        if given is None:
            # Both unknown: up to so many samples together.
            sizes = [(p, both - p) for both in range(2, bound + 1) for p in range(1, both)]
            searched = {"total_up_to": bound}
            said = f"All numbers of samples up to {bound} together were searched, and not beyond."
        else:
            known_one, other = ("n", "p") if report.positives is None else ("p", "n")
            sizes = [(one, given) if other == "p" else (given, one) for one in range(1, bound + 1)]
            searched = {known_one: given, f"{other}_up_to": bound}
            said = f"{known_one} is {given}; {other} was searched from 1 to {bound}, and not beyond."
    if search_rows(sizes) > MOST_SEARCHED:
        pointer = "/search_up_to" if report.total is None else "/total"
        detail = f"expected fewer samples, a search up to {bound} takes too long"
        raise InvalidInput.at(pointer, "too_many_sizes", detail)
    return sizes, searched, said


def _fitting_sizes(report: ReportedScores, found: Sequence[Fitting]) -> dict[str, Any]:
    """Return the sizes that fit: as ranges of the unknown one, or the smallest pairs."""
    if report.positives is None and report.negatives is None and report.total is None:
        smallest = sorted(found, key=lambda one: (one.positives + one.negatives, one.positives))[:_MOST_SHOWN]
        return {"smallest": [Sizes(one.positives, one.negatives) for one in smallest]}
    of_p = report.positives is None
    ranges = _runs(sorted(one.positives if of_p else one.negatives for one in found))
    return {"p" if of_p else "n": ranges[:_MOST_RANGES], "ranges": len(ranges)}


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
    (tp, tn), (positives, negatives) = np.array(found.examples(found.count)).T, found.sizes(0)
    rows = np.array([[tn, negatives - tn], [positives - tp, tp]], dtype=np.float64)
    table = Table(np.moveaxis(rows, -1, 0))
    answer = {}
    for estimand in estimands:
        with silently():
            values = estimand.values(np.asarray(estimand.functional(table)))
        for place, name in enumerate(estimand.names):
            defined = values[np.isfinite(values[:, place]), place]
            low, high = (number(defined.min()), number(defined.max())) if defined.size else (None, None)
            answer[name] = MetricEnds(low, high, int(len(values) - defined.size))
    return answer
