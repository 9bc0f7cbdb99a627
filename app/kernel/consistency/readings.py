"""Other ways to read a report that no matrix fits. None of them is an accusation; each is a question to the authors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.kernel.consistency.reported_scores import Printed, Score, ScoreRange, printed_range

PrintedScores = Sequence[tuple[Score, str]]


@dataclass(frozen=True, slots=True)
class Reading:
    """Which scores were meant, of which classes, and what 0/0 was printed as."""

    code: str
    sentence: str
    reported: tuple[tuple[Score, ScoreRange], ...]
    sizes_exchanged: bool = False
    undefined_as_zero: bool = False


def as_printed(scores: PrintedScores, printed: Printed) -> tuple[tuple[Score, ScoreRange], ...]:
    """Every score with what its text stands for."""
    return tuple((score, printed_range(text, printed)) for score, text in scores)


def readings(scores: PrintedScores, printed: Printed) -> Iterator[Reading]:
    """Readings of scores of two classes beside the plain one, those that differ from it."""
    plain = as_printed(scores, printed)
    turned_around = [
        ("swapped_classes", "the other class was taken as positive", Score.of_the_other_class),
        ("transposed", "rows and columns are exchanged, so recall was printed as precision", Score.turned),
    ]
    if printed is not Printed.ANY:
        cut = "scores were cut off or rounded up, not rounded to nearest"
        yield Reading("truncated", cut, as_printed(scores, Printed.ANY))
    for code, sentence, other in turned_around:
        meant = tuple((other(score), wanted) for score, wanted in plain)
        if meant != plain and all(score.exact.transposable or not score.transposed for score, _ in meant):
            yield Reading(code, sentence, meant)
    exchanged = "the numbers of positive and negative items are exchanged"
    yield Reading("swapped_counts", exchanged, plain, sizes_exchanged=True)
    yield Reading("undefined_as_zero", "a score that does not exist was printed as 0", plain, undefined_as_zero=True)
