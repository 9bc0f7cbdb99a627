"""Reported scores, as they were printed, and what is assumed of them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.domain.errors import InvalidExpression, InvalidInput, InvalidParameter
from app.domain.expressions.expressions import parse
from app.domain.expressions.names import suggest
from app.kernel.consistency.reported_scores import Printed as Printed
from app.kernel.consistency.reported_scores import PrintedScores, Score, printed_range, score_of, scores_of_two_classes
from app.kernel.metrics.card import Scope
from app.kernel.metrics.expression import Measure
from app.services.consistency.answers import AlternativeReading

SAMPLING = "The scores are of one confusion matrix of whole counts, with the numbers of samples given."
ROUNDINGS = {
    Printed.NEAREST: "Every score was rounded to the nearest value of its digits.",
    Printed.TRUNCATED: "Every score was cut off after its last digit.",
    Printed.ANY: "Every score is within one unit of its last digit, however it was cut.",
}
# Names in a message.
_MOST_SHOWN = 30


class Aggregation(StrEnum):
    """How the scores of the folds were combined."""

    MEAN_OF_SCORES = "mean_of_scores"
    SCORE_OF_SUMS = "score_of_sums"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedScores:
    """What was reported: scores as printed, and the numbers of samples behind them in one of three forms.

    Attributes:
        scores: Texts by name: a metric with its parameters, with classes followed by @ and the class.
        positives: p, None where it is not known.
        negatives: n, None where it is not known.
        total: p + n, where not both are known.
        up_to: How far what is not known is searched.
        classes: Samples of each class.
        folds: (p, n) of each fold.
        aggregation: Of the folds.
        printed: How the scores were cut to their digits.
        metrics: Expressions whose range over the matrices that fit is wanted.
    """

    scores: Mapping[str, str]
    positives: int | None = None
    negatives: int | None = None
    total: int | None = None
    up_to: int | None = None
    classes: Mapping[str, int] | None = None
    folds: tuple[tuple[int, int], ...] | None = None
    aggregation: Aggregation = Aggregation.MEAN_OF_SCORES
    printed: Printed = Printed.NEAREST
    metrics: tuple[str, ...] = ()


def printed_scores(report: ReportedScores, labels: Sequence[str] | None, known: Collection[str]) -> PrintedScores:
    """Every score with its text.

    Args:
        report: What was reported.
        labels: Of several classes, one of which stands behind the @ of a metric of one class.
        known: Keys that can be checked in this form of a report.

    Raises:
        InvalidInput: a score is not known for this form, or is no number.
        InvalidExpression: a parameter of a metric is none.
    """
    found = []
    for name, text in report.scores.items():
        try:
            printed_range(text)
        except ValueError:
            raise InvalidInput.at(
                f"/scores/{name}", "not_a_number", f"expected a number as it was printed, got {text[:60]!r}"
            ) from None
        score = _score(name, labels)
        if score is None or score.key not in known:
            raise _unknown(name, known, labels)
        found.append((score, text))
    return found


def _score(name: str, labels: Sequence[str] | None) -> Score | None:
    """What a name stands for, if it can be checked at all. Labels are written as they are, without quotes."""
    if labels is None and name in scores_of_two_classes():
        return scores_of_two_classes()[name]
    written, at, label = name.partition("@")
    if at and label not in (labels or ()):
        return None
    try:
        expression = parse(written, ("0", "1"), 1)
    except InvalidParameter as error:
        error.pointer = f"/scores/{name}"
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
    more = f" and {len(shown) - _MOST_SHOWN} more" if len(shown) > _MOST_SHOWN else ""
    hint = f"did you mean {' or '.join(near)}?" if near else f"known here are {', '.join(shown[:_MOST_SHOWN])}{more}"
    return InvalidInput.at(f"/scores/{name}", "unknown_score", f"{name[:60]!r} cannot be checked; {hint}")


def alternative(code: str, sentence: str, count: int | None) -> AlternativeReading:
    """Another reading of the report that would be consistent."""
    return AlternativeReading(code, f"It would fit if {sentence}.", count)
