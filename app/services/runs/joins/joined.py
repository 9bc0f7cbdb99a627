"""Runs joined by sample id, part by part: what comes of each part are joint counts, and these add up."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.domain.errors import IncomparableRuns, InvalidInput
from app.domain.inputs.labels import shown
from app.kernel.compare.paired.joint import JointCounts, combine
from app.services.runs.joins.spilled import Part
from app.services.runs.pairing import another_truth


def joined(parts: Sequence[Part | None], n_classes: int) -> JointCounts:
    """The joint counts of the ids that all runs have, of one part and kind: a pure function of these.

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
        return merged([], len(parts), n_classes)
    first = runs[0]
    found = [pc.index_in(first.ids, value_set=run.ids) for run in runs[1:]]
    common = np.ones(len(first.ids), dtype=np.bool_)
    for one in found:
        common &= one.is_valid().to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(common)
    codes = [first.columns["code"][rows]]
    codes += [run.columns["code"][one.fill_null(0).to_numpy()[rows]] for run, one in zip(runs[1:], found, strict=True)]
    truth = codes[0] // n_classes
    for number, one in enumerate(codes[1:], start=1):
        other = one // n_classes
        if not np.array_equal(other, truth):
            sample = first.ids[int(rows[np.argmax(other != truth)])].as_py()
            raise IncomparableRuns(f"the runs cannot be paired: {another_truth(sample, number)}", pointer="/paired")
    return combine(truth, np.stack([one % n_classes for one in codes]), n_classes)


def merged(parts: Sequence[JointCounts], n_runs: int, n_classes: int) -> JointCounts:
    """The joint counts of several parts: the same whatever the parts, and in whatever order."""
    truth = np.concatenate([np.zeros(0, dtype=np.int64), *(one.truth for one in parts)])
    none = np.zeros((n_runs, 0), dtype=np.int64)
    predictions = np.concatenate([none, *(one.predictions for one in parts)], axis=1)
    counts = np.concatenate([np.zeros(0), *(one.counts for one in parts)])
    return combine(truth, predictions, n_classes, times=counts)


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
