"""Where metrics disagree about which run is the best: one sentence for each two runs."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.domain.wording import number
from app.kernel.numerics.arrays import Array
from app.services.compare.answers import Disagreement, Preferring
from app.services.runs.comparison import Comparison

_MOST = 50
# Metrics of a group that a sentence names.
_NAMED = 5


@dataclass(frozen=True, slots=True, eq=False)
class ComparedValue:
    """One value that runs are compared on.

    Attributes:
        estimand: Where it stands among the estimands.
        place: And among the values of that.
        values: (R).
        scores: (R), higher is better.
    """

    name: str
    estimand: int
    place: int
    values: Array
    scores: Array

    def prefers(self, one: int, other: int) -> bool:
        """Is one run better than another by it?"""
        return bool(self.scores[one] > self.scores[other])


def compared_values(comparison: Comparison) -> list[ComparedValue]:
    """Every value of every estimand."""
    return [
        ComparedValue(
            name, index, place, comparison.values[index][:, place], np.asarray(comparison.scores(index)[:, place])
        )
        for index, estimand in enumerate(comparison.estimands)
        for place, name in enumerate(estimand.names)
    ]


def disagreements(comparison: Comparison, values: Sequence[ComparedValue]) -> list[Disagreement]:
    """For each two runs that metrics find the best, those that prefer the one and those that prefer the other."""
    crowned: dict[int, list[ComparedValue]] = {}
    for value in values:
        if not np.isnan(value.scores).any():
            crowned.setdefault(int(value.scores.argmax()), []).append(value)
    records, found = comparison.runs.records, []
    for best, other in itertools.combinations(crowned, 2):
        first = [value for value in crowned[best] if value.prefers(best, other)]
        second = [value for value in crowned[other] if value.prefers(other, best)]
        if not (first and second):
            continue
        groups = ((best, first), (other, second))
        prefers = [
            Preferring(evaluation=records[run].id, metrics=[value.name for value in group]) for run, group in groups
        ]
        found.append(
            Disagreement(
                metrics=[value.name for value in (*first, *second)],
                prefer=(records[best].id, records[other].id),
                prefers=(prefers[0], prefers[1]),
                message=f"{_preference(comparison, first, best, other)}, but "
                f"{_preference(comparison, second, other, best)}.",
            )
        )
    return found[:_MOST]


def _preference(comparison: Comparison, group: Sequence[ComparedValue], best: int, rival: int) -> str:
    runs = comparison.runs
    if len(group) == 1:
        (one,) = group
        return (
            f"{one.name} prefers {runs.name(best)} ({number(one.values[best])}) to {runs.name(rival)} "
            f"({number(one.values[rival])})"
        )
    named = [f"{one.name} ({number(one.values[best])} against {number(one.values[rival])})" for one in group[:_NAMED]]
    rest = len(group) - len(named)
    last = f"{rest} more" if rest else named.pop()
    return f"{', '.join(named)} and {last} prefer {runs.name(best)} to {runs.name(rival)}"
