"""The contest of runs for what they are compared on: by matrices, by samples, or one metric this way and one that."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any
from uuid import UUID

from app.domain.evaluation import EvaluationRecord
from app.domain.samples import Samples
from app.kernel.numerics import Array
from app.services.contest import Contest, Terms
from app.services.differences import Test
from app.services.matrix_contest import MatrixContest
from app.services.numbers import Json
from app.services.pairing import Pairing, align
from app.services.scored_contest import ScoredContest
from app.services.scored_runs import scored_runs
from app.services.targets import Target


class MixedContest(Contest):
    """Two contests of the same runs, each with some of the targets.

    Args:
        parts: The contests.
        targets: All targets, in the order asked for.
    """

    def __init__(self, parts: Sequence[Contest], targets: Sequence[Target]) -> None:
        super().__init__(parts[0].counts, targets, parts[0].pairing, parts[0].terms)
        self.parts = tuple(parts)
        self._places = [
            next((part, part.targets.index(target)) for part in parts if target in part.targets) for target in targets
        ]

    def _gathered(self, of: Any) -> list[Any]:
        """What the parts say of their targets, in the order of all."""
        said = {id(part): of(part) for part in self.parts}
        return [said[id(part)][index] for part, index in self._places]

    @cached_property
    def values(self) -> list[Array]:
        """Values (R, V) of each target."""
        return self._gathered(lambda part: part.values)

    @cached_property
    def observed(self) -> list[Array]:
        """Values (R, V) of each target as the runs are."""
        return self._gathered(lambda part: part.observed)

    @cached_property
    def drawn(self) -> list[Array | None]:
        """Draws (D, R, V) of each target."""
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
        """What the draws of a target are called."""
        part, place = self._places[index]
        return part.simulation(place)

    def omnibus(self, index: int, place: int) -> Json | None:
        """A test that all runs have the same value, where there is one."""
        part, target = self._places[index]
        return part.omnibus(target, place)

    def on_folds(self, counts: Array) -> list[Array]:
        """Values (R, F, V) of each target on the folds."""
        return self._gathered(lambda part: part.on_folds(counts))

    def tests(self, pairs: Sequence[tuple[int, int]]) -> list[list[list[Test]]]:
        """Tests by target, pair and value."""
        return self._gathered(lambda part: part.tests(pairs))


def contest_of(
    records: Sequence[EvaluationRecord],
    targets: Sequence[Target],
    pairing: Pairing,
    terms: Terms,
    outputs: Mapping[UUID, Samples],
    *,
    pointer: str = "/evaluations",
) -> Contest:
    """The runs as they are to be compared on these targets; ``outputs`` are the samples where a target needs them.

    Raises:
        IncomparableLabels: the runs have different classes.
    """
    counts = align(records, pointer)[0]
    scored = [target for target in targets if target.scored]
    others = [target for target in targets if not target.scored]
    parts: list[Contest] = []
    if others or not scored:
        parts.append(MatrixContest(counts, others, pairing, terms))
    if scored:
        runs = scored_runs(records, outputs, pointer)
        parts.append(ScoredContest(runs, counts, scored, pairing, terms, records))
    return parts[0] if len(parts) == 1 else MixedContest(parts, targets)
