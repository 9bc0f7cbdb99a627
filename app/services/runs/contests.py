"""The contest of runs for what they are compared on: by matrices, by samples, or one metric this way and one that."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any
from uuid import UUID

from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.samples import Samples
from app.kernel.numerics.arrays import Array
from app.services.estimands import Estimand
from app.services.json_values import Json
from app.services.runs.contest import Contest, Terms
from app.services.runs.differences import Test
from app.services.runs.matrix_contest import MatrixContest
from app.services.runs.pairing import Pairing, align
from app.services.runs.scored_contest import ScoredContest
from app.services.runs.scored_runs import scored_runs


class MixedContest(Contest):
    """Two contests of the same runs, each with some of the estimands.

    Args:
        parts: The contests.
        estimands: All estimands, in the order asked for.
    """

    def __init__(self, parts: Sequence[Contest], estimands: Sequence[Estimand]) -> None:
        super().__init__(parts[0].counts, estimands, parts[0].pairing, parts[0].terms)
        self.parts = tuple(parts)
        self._places = [
            next((part, part.estimands.index(estimand)) for part in parts if estimand in part.estimands)
            for estimand in estimands
        ]

    def _gathered(self, of: Any) -> list[Any]:
        """What the parts say of their estimands, in the order of all."""
        said = {id(part): of(part) for part in self.parts}
        return [said[id(part)][index] for part, index in self._places]

    @cached_property
    def values(self) -> list[Array]:
        """Values (R, V) of each estimand."""
        return self._gathered(lambda part: part.values)

    @cached_property
    def observed(self) -> list[Array]:
        """Values (R, V) of each estimand as the runs are."""
        return self._gathered(lambda part: part.observed)

    @cached_property
    def drawn(self) -> list[Array | None]:
        """Draws (D, R, V) of each estimand."""
        return self._gathered(lambda part: part.drawn)

    @property
    def design(self) -> Json:
        """Of both; the draws are those of the matrices."""
        return {name: value for part in reversed(self.parts) for name, value in part.design.items()}

    @property
    def notes(self) -> list[str]:
        """Of both."""
        return [note for part in self.parts for note in part.notes]

    def simulation(self, index: int) -> str:
        """What the draws of a estimand are called."""
        part, place = self._places[index]
        return part.simulation(place)

    def omnibus(self, index: int, place: int) -> Json | None:
        """A test that all runs have the same value, where there is one."""
        part, estimand = self._places[index]
        return part.omnibus(estimand, place)

    def on_folds(self, counts: Array) -> list[Array]:
        """Values (R, F, V) of each estimand on the folds."""
        return self._gathered(lambda part: part.on_folds(counts))

    def tests(self, pairs: Sequence[tuple[int, int]]) -> list[list[list[Test]]]:
        """Tests by estimand, pair and value."""
        return self._gathered(lambda part: part.tests(pairs))


def contest_of(
    records: Sequence[EvaluationRecord],
    estimands: Sequence[Estimand],
    pairing: Pairing,
    terms: Terms,
    outputs: Mapping[UUID, Samples],
    *,
    pointer: str = "/evaluations",
) -> Contest:
    """The runs as they are to be compared on these estimands; ``outputs`` are the samples where a estimand needs them.

    Raises:
        IncomparableLabels: the runs have different classes.
    """
    counts = align(records, pointer)[0]
    scored = [estimand for estimand in estimands if estimand.scored]
    others = [estimand for estimand in estimands if not estimand.scored]
    parts: list[Contest] = []
    if others or not scored:
        parts.append(MatrixContest(counts, others, pairing, terms))
    if scored:
        runs = scored_runs(records, outputs, pointer)
        parts.append(ScoredContest(runs, counts, scored, pairing, terms, records))
    return parts[0] if len(parts) == 1 else MixedContest(parts, estimands)
