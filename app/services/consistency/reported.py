"""Reported scores, as they were printed, and what is assumed of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.domain.errors import InvalidInput
from app.domain.expressions.expressions import suggest
from app.kernel.consistency.reported_scores import Printed as Printed
from app.kernel.consistency.reported_scores import Range, printed_range
from app.services.json_values import Json

SAMPLING = "The scores are of one confusion matrix of whole counts, with the numbers of samples given."
ROUNDINGS = {
    Printed.NEAREST: "Every score was rounded to the nearest value of its digits.",
    Printed.TRUNCATED: "Every score was cut off after its last digit.",
    Printed.ANY: "Every score is within one unit of its last digit, however it was cut.",
}


class Aggregation(StrEnum):
    """How the scores of folds became one."""

    MEAN_OF_SCORES = "mean_of_scores"
    SCORE_OF_SUMS = "score_of_sums"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was reported: scores as printed, and the numbers of samples behind them in one of three forms.

    Attributes:
        scores: Texts by name.
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


def ranges_of(report: Report, printed: Printed | None = None) -> dict[str, Range]:
    """What every printed score stands for, by the name it was reported under.

    Raises:
        InvalidInput: one is no number.
    """
    found = {}
    for name, text in report.scores.items():
        try:
            found[name] = printed_range(text, printed or report.printed)
        except ValueError:
            raise InvalidInput.at(
                f"/scores/{name}", "not_a_number", f"expected a number as it was printed, got {text[:60]!r}"
            ) from None
    return found


def unknown_score(name: str, known: Sequence[str]) -> InvalidInput:
    """A score that this form of a report cannot be checked for."""
    near = [other for other in suggest(name) if other in known]
    hint = f"did you mean {' or '.join(near)}?" if near else f"known here are {', '.join(known)}"
    return InvalidInput.at(f"/scores/{name}", "unknown_score", f"{name[:60]!r} cannot be checked; {hint}")


def alternative(code: str, sentence: str, count: int | None) -> Json:
    """Another reading of the report that would be consistent; a question to its authors."""
    return {"code": code, "message": f"It would fit if {sentence}.", "feasible_count": count}
