"""Runs joined by sample id, part by part."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from app.domain.errors import IncomparableRuns, InvalidInput
from app.domain.inputs.labels import shown
from app.kernel.compare.paired.joint import JointCounts, combine
from app.kernel.numerics.arrays import Array
from app.services.runs.joins.spilled import CODE, Columns, Part
from app.services.runs.pairing import another_truth


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Samples that all of R runs have.

    Attributes:
        truth: (m) actual classes.
        predictions: (R, m).
        others: Of each run its other columns, (m) each.
    """

    truth: NDArray[np.int64]
    predictions: NDArray[np.int64]
    others: tuple[Columns, ...]

    def counts(self, n_classes: int, weights: Array | None = None) -> JointCounts:
        """How often each truth met each combination of predictions, with each weight (m) where samples have some."""
        return combine(self.truth, self.predictions, n_classes, weights=weights)

    def among(self, rows: NDArray[np.intp] | slice) -> "Joined":
        """Some of them."""
        others = tuple({name: column[rows] for name, column in columns.items()} for columns in self.others)
        return Joined(self.truth[rows], self.predictions[:, rows], others)


def joined(parts: Sequence[Part | None], n_classes: int) -> Joined | None:
    """The samples whose ids all runs have, of one part and kind: a pure function of these. None where a run has none.

    Args:
        parts: Of two runs or more; their `code` is the actual class times K plus the predicted one. None: a run has
            none.
        n_classes: K.

    Raises:
        InvalidInput: a run has an id twice.
        IncomparableRuns: a sample has another true class in one run than in the first.
    """
    runs = []
    for place, run in enumerate(parts):
        if run is not None:
            _check_different(run.ids, place)
            runs.append(run)
    if len(runs) < len(parts):
        return None
    first, *rest = runs
    found = [pc.index_in(first.ids, value_set=run.ids) for run in rest]
    common = np.ones(len(first.ids), dtype=np.bool_)
    for one in found:
        common &= one.is_valid().to_numpy(zero_copy_only=False)
    own = np.flatnonzero(common)
    rows = [own, *(one.fill_null(0).to_numpy()[own] for one in found)]
    columns = [_taken(run, some) for run, some in zip(runs, rows, strict=True)]
    codes = [one.pop(CODE) for one in columns]
    truth = codes[0] // n_classes
    for number, one in enumerate(codes[1:], start=1):
        other = one // n_classes
        if not np.array_equal(other, truth):
            sample = first.ids[int(own[np.argmax(other != truth)])].as_py()
            raise IncomparableRuns(f"the runs cannot be paired: {another_truth(sample, number)}", pointer="/paired")
    return Joined(truth, np.stack([one % n_classes for one in codes]), tuple(columns))


def _taken(run: Part, rows: NDArray[np.intp]) -> dict[str, NDArray[Any]]:
    return {name: column[rows] for name, column in run.columns.items()}


def _check_different(ids: pa.Array, place: int) -> None:
    if pc.count_distinct(ids).as_py() == len(ids):
        return
    counts = ids.value_counts()
    again = counts.field("values").filter(pc.greater(counts.field("counts"), 1))[0].as_py()
    raise InvalidInput.at(
        f"/evaluations/{place}",
        "duplicate_sample_id",
        f"expected ids that differ in the column `sample_id`, got {shown(str(again))} more than once",
    )
