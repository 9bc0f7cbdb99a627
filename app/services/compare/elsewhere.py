"""Samples of runs that were not saved: they are read again where the data of the runs was named, all at once, or, where
they are more than memory holds, joined by sample id in an engine.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.domain.data import MOST_GROUPS
from app.domain.errors import DataNotAllowed, Fault, IncomparableRuns, InvalidInput, TooLarge
from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.content import WEIGHT_FACT
from app.domain.inputs.kinds import in_class_order
from app.domain.inputs.labels import shown
from app.domain.inputs.ranking import RELEVANT_FROM, Ranking
from app.domain.inputs.samples import Samples
from app.kernel.compare.linear import TRUTH, WEIGHT, output, streamed_runs
from app.kernel.compare.paired.joint import JointCounts
from app.kernel.metrics.expression import Expression, measures
from app.kernel.streamed.rows import Rows, Table
from app.kernel.uncertainty.groups import Grouping
from app.services.ports import Engine, OpenEngine, SamplesElsewhere
from app.services.processes.worker import as_step, each_as_step
from app.services.runs.aligned import Runs
from app.services.runs.pairing import (
    GROUPED_OTHERWISE,
    ONE_GROUP,
    SAME_WEIGHTS,
    WEIGHTLESS,
    KeptSamples,
    another_truth,
    by_counts,
    refused_groups,
    unpaired,
    weighs_otherwise,
)
from app.services.runs.rankings import check_queries, kept_queries
from app.services.stored import scores_of

_IDS: Final = "sample_id"
# Relative to each other, sums of weights that differ by no more are the same.
_ROUNDING: Final = 1e-9


def lies_elsewhere(record: EvaluationRecord) -> bool:
    """Do the samples of a run lie where its data was named, with ids as far as that is known? Queries are ids."""
    named = [part.data for part in record.elsewhere if part.data is not None]
    return bool(named) and (record.kind == Ranking.kind or all(_IDS in data.get("columns", (_IDS,)) for data in named))


def can_be_paired(records: Sequence[EvaluationRecord], kept: KeptSamples) -> bool:
    """Would runs that are not paired have ids if those that lie elsewhere were read again?"""
    with_ids = {identifier for identifier, one in kept.samples.items() if one.ids is not None}
    elsewhere = {record.id for record in records if lies_elsewhere(record)}
    return bool(elsewhere) and all(record.id in with_ids | elsewhere for record in records)


@dataclass(frozen=True, slots=True)
class Rereading:
    """Resources for reading samples again: the columns of all runs together may take so much memory, what takes more
    goes into files of a folder, or into an engine.
    """

    samples: SamplesElsewhere
    memory_bytes: int
    folder: Path
    engine: Engine

    def at_once(self, records: Sequence[EvaluationRecord], kept: KeptSamples, *, whole: bool) -> KeptSamples:
        """The samples of all runs that were named by a reference, and those that are stored.

        Nothing but their labels is kept of them, unless they are needed ``whole``.

        Raises:
            DataNotAllowed: data may not be read any more.
            InvalidInput: it is not what was evaluated (`data_changed`), or cannot be read.
            TooLarge: it takes more memory than there is.
        """
        chosen = [(place, record) for place, record in enumerate(records) if lies_elsewhere(record)]
        found = {}
        for done, (place, record) in enumerate(chosen):
            # What is computed of them is a step too.
            with as_step(done, len(chosen) + 1), of_run(place):
                source = self.samples.whole(record, self.memory_bytes // len(chosen))
                check_same(source.labels, source.counts, record)
                samples = source.samples if whole or source.samples is None else source.samples.labels
                if samples is not None:
                    found[record.id] = samples
        return KeptSamples({**kept.samples, **found})

    def parts(self, record: EvaluationRecord, kept: KeptSamples, *, outputs: bool) -> Iterator[Samples]:
        """The samples of a run some at a time, or all of them where they are stored; raises as before, but for
        rankings, whose parts do not say what was evaluated.

        Raises:
            IncomparableRuns: there are none.
        """
        if not lies_elsewhere(record):
            yield _known(kept.samples.get(record.id), record)
            return
        # Weights that are all the same were left aside where they were evaluated.
        weight = record.facts.get(WEIGHT_FACT, 1.0)
        counts = np.zeros_like(record.counts, dtype=np.float64)
        for part in self.samples.parts(record, outputs=outputs):
            check_same(part.labels, record.counts, record)
            counts += part.counts / weight
            yield _known(part.samples, record)
        if record.task is None:
            check_same(record.labels, counts, record)


def _known(samples: Samples | None, record: EvaluationRecord) -> Samples:
    if samples is None:
        raise without_ids(record)
    return samples


def without_ids(record: EvaluationRecord) -> IncomparableRuns:
    """Why a run cannot be paired."""
    return unpaired(f"{record.id} came without sample ids, or these were not saved")


def check_same(labels: Sequence[str], counts: NDArray[Any], record: EvaluationRecord) -> None:
    """Check that the data read again has the counts that were evaluated; raises InvalidInput if not
    (`data_changed`).
    """
    # Sums of weights are rounded, and in parts otherwise than at once.
    tolerance = _ROUNDING if record.came_weighed else 0.0
    same = tuple(labels) == record.labels and counts.shape == record.counts.shape
    if not same or not np.allclose(counts, record.counts, rtol=tolerance, atol=0.0):
        raise InvalidInput.at("/data", "data_changed", "expected the counts that were evaluated, other ones were read")


@contextmanager
def of_run(place: int) -> Iterator[None]:
    """Point errors of data at the run that it belongs to."""
    pointer = f"/evaluations/{place}"
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput([Fault(pointer, one.code, one.detail) for one in error.faults]) from None
    except (DataNotAllowed, TooLarge) as error:
        raise type(error)(error.detail, pointer=pointer) from None


_ID: Final = "id"
# Number of the group of a sample.
_CODE: Final = "code"
# Of weights, for each time they double: of more of them than memory holds.
_CELLS: Final = 1024


def pair_streamed(
    reading: Rereading,
    runs: Runs,
    kept: KeptSamples,
    minimum_matched: float,
    expressions: Sequence[Expression] = (),
) -> Runs:
    """Return runs of classes with any number of samples as they are paired by ``pairing.pair``, with their metrics of
    probabilities.

    Raises:
        IncomparableRuns: they have too few ids in common, different actual classes of one, or different groups.
        InvalidInput: a run has an id twice, or its data has changed.
        DataNotAllowed, TooLarge, EngineError: data cannot be read again, there are too many groups, or no room.
    """
    steps = len(runs) + 1
    with reading.engine.opened(reading.folder) as engine:
        rows: list[Rows] = []
        for place in range(len(runs)):
            with as_step(place, steps), of_run(place):
                rows.append(_with_ids(engine, _batches(reading, runs, kept, place, scored=bool(expressions))))
        with as_step(len(runs), steps):
            if len({one.names[_ID] for one in rows}) > 1:
                # The integer 3 and the text "3" are the same id.
                rows = [one.having(id=f"{_ID}::VARCHAR") for one in rows]
            joined = reduce(lambda first, second: first.joined(second, _ID), rows).kept()
            largest = max(one.n_rows for one in rows)
            return _Joined(joined, runs, largest).compared(minimum_matched, expressions, reading.memory_bytes // 4)


def _batches(
    reading: Rereading, runs: Runs, kept: KeptSamples, place: int, *, scored: bool
) -> Iterator[pa.RecordBatch]:
    """The samples of one run, some at a time, in columns whose names end with the place of the run."""
    record = runs.records[place]

    def named(column: NDArray[Any]) -> pa.Array:
        found = pa.array(column)
        # Names in one part may be integers, and in another texts.
        return found.cast(pa.string()) if len(record.elsewhere) > 1 else found

    for part in reading.parts(record, kept, outputs=scored):
        source = in_class_order(replace(record, samples=part), runs.labels)
        some = source.known_samples
        if some.ids is None:
            raise without_ids(record)
        columns: dict[str, NDArray[Any] | pa.Array] = {
            _ID: named(some.ids),
            f"{TRUTH}_{place}": some.truth.astype(np.int32),
            f"predicted_{place}": some.predicted.astype(np.int32),
        }
        if record.is_weighted and some.weights is not None:
            columns[f"{WEIGHT}_{place}"] = some.weights
        if record.is_grouped and some.groups is not None:
            columns[f"group_{place}"] = named(some.groups)
        if scored:
            outputs = scores_of(source).probabilities
            columns |= {output(place, code): column for code, column in enumerate(outputs.T)}
        yield pa.record_batch({name: pa.array(column) for name, column in columns.items()})


def _with_ids(engine: OpenEngine, batches: Iterator[pa.RecordBatch]) -> Rows:
    """The samples of a run in an engine; raises InvalidInput where an id comes twice."""
    first = next(batches)
    rows = engine.take(first.schema, (one.cast(first.schema) for one in chain([first], batches)))
    for again in rows.distinct(_ID).where("n > 1").batches(_ID):
        raise InvalidInput.at(
            "",
            "duplicate_sample_id",
            f"expected ids that differ in the column `sample_id`, got {shown(str(min(again[_ID])))} more than once",
        )
    return rows


@dataclass(frozen=True, slots=True, eq=False)
class _Joined:
    """Samples that all runs have, with the columns of all; the largest run has so many."""

    rows: Rows
    runs: Runs
    largest: int

    def compared(self, minimum: float, expressions: Sequence[Expression], budget: int) -> Runs:
        """Raises as `pair_streamed`; counts may take so many bytes."""
        pairing = by_counts(self.rows.n_rows, self.largest, minimum)
        pairing = pairing if isinstance(pairing, str) else self._fault() or pairing
        if isinstance(pairing, str):
            raise unpaired(pairing)
        records = self.runs.records
        weighted = any(record.is_weighted for record in records)
        rows = self.rows.having(**{TRUTH: f"{TRUTH}_0", WEIGHT: self._weights[0]})
        by = [TRUTH, *(f"predicted_{place}" for place in range(len(records))), *([WEIGHT] if weighted else [])]
        grouped = self._groups(rows, by, budget)
        # What weighs nothing says nothing.
        rows = rows.where(f"{WEIGHT} > 0") if weighted else rows
        joint = self._joint(self._counts(rows, by, budget)) if grouped is None else grouped
        pairing = replace(pairing, joint=joint, grouping=joint.grouping)
        if not expressions:
            return self.runs.joined(pairing, None)
        sure = tuple(not record.has_scores for record in records)
        return self.runs.joined(pairing, streamed_runs(rows, expressions, self.runs.n_classes, sure, weighted=weighted))

    @property
    def _weights(self) -> list[str]:
        """Expressions for the weights of samples in each run."""
        records = self.runs.records
        return [f"{WEIGHT}_{place}" if one.is_weighted else "1.0::DOUBLE" for place, one in enumerate(records)]

    def _fault(self) -> str | None:
        """Why the runs cannot be paired though they have the same samples."""
        for place in range(1, len(self.runs)):
            for differing in self.rows.where(f"{TRUTH}_{place} <> {TRUTH}_0").batches(_ID):
                return another_truth(min(differing[_ID]), place)
        if not any(record.is_weighted for record in self.runs.records):
            return None
        found = self.rows.sums(**{f"sum_{place}": weight for place, weight in enumerate(self._weights)})
        sums = [float(one[0]) for one in found.values()]
        if min(sums) <= 0.0:
            return WEIGHTLESS
        first, *others = (f"{weight} / {total!r}" for weight, total in zip(self._weights, sums, strict=True))
        for place, other in enumerate(others, start=1):
            if self.rows.where(f"abs({other} - {first}) > {SAME_WEIGHTS!r} * ({first})").n_rows:
                return weighs_otherwise(place)
        return None

    def _groups(self, rows: Rows, by: Sequence[str], budget: int) -> JointCounts | None:
        grouped = [f"group_{place}" for place, record in enumerate(self.runs.records) if record.is_grouped]
        if not grouped:
            return None
        first, *others = grouped
        coded, n_groups = rows.coded(first, _CODE)
        if n_groups > MOST_GROUPS:
            raise TooLarge(f"expected at most {MOST_GROUPS} groups, got {n_groups}", pointer="/data")
        for other in others:
            if rows.distinct(other).n_rows != n_groups or rows.distinct(first, other).n_rows != n_groups:
                raise refused_groups(GROUPED_OTHERWISE)
        if n_groups < 2:
            raise refused_groups(ONE_GROUP)
        table = self._counts(coded.where(f"{WEIGHT} > 0"), [_CODE, *by], budget)
        return replace(self._joint(table), grouping=Grouping(table[_CODE].astype(np.intp), n_groups))

    def _counts(self, rows: Rows, by: Sequence[str], budget: int) -> Table:
        """Count each combination of columns, in order.

        Where they take more than the budget, weights that differ by a thousandth at most are one, their mean.
        """
        found = rows.distinct(*by).kept()
        if _taken(found, by) > budget and WEIGHT in by:
            cell = f"CASE WHEN {WEIGHT} > 0 THEN floor({_CELLS} * log2({WEIGHT})) ELSE -1e9 END"
            others = [one for one in by if one != WEIGHT]
            sums = found.having(cell=cell).summed(*others, "cell", n="n", mass=f"n * {WEIGHT}")
            found = sums.having(**{WEIGHT: "mass / n"}).kept()
        if _taken(found, by) > budget:
            named = ["actual class", *["group"] * (_CODE in by), *["weight"] * (WEIGHT in by)]
            # Two are compared at least.
            fewer = "compare fewer runs at a time, or " * (len(self.runs) > 2)
            raise TooLarge(
                f"expected samples whose combinations of {', '.join(named)} and predictions of all {len(self.runs)} "
                f"runs take at most {budget} bytes, those that say the same as one (a quarter of "
                f"PREVAIL_DATA_MEMORY_BYTES), got {_taken(found, by)}: {fewer}raise PREVAIL_DATA_MEMORY_BYTES",
                pointer="/evaluations",
            )
        batches = [*found.ordered(*by, columns=[*by, "n"])]
        return {name: np.concatenate([batch[name] for batch in batches]) for name in (*by, "n")}

    def _joint(self, table: Table) -> JointCounts:
        predictions = np.stack([table[f"predicted_{place}"] for place in range(len(self.runs))]).astype(np.int64)
        truth, counts = table[TRUTH].astype(np.int64), table["n"].astype(np.float64)
        return JointCounts(self.runs.n_classes, truth, predictions, counts, table.get(WEIGHT))


def _taken(found: Rows, columns: Sequence[str]) -> int:
    """Bytes of columns and a count."""
    return 8 * (len(columns) + 1) * found.n_rows


def streamed_queries(
    reading: Rereading, runs: Runs, kept: KeptSamples, expressions: Sequence[Expression]
) -> KeptSamples:
    """The queries of all runs, of any number of items. What a comparison says of them is what it says of queries with
    their items, bit for bit.

    Raises:
        IncomparableRuns, InvalidInput: a run was saved without its items, or its data has changed.
        DataNotAllowed, TooLarge: data cannot be read again, or there are too many queries, or items of one.
    """
    leaves = [leaf for expression in expressions for leaf in measures(expression)]
    steps, budget, found = 2 * len(runs) + 1, reading.memory_bytes // 2, {}
    for place, record in enumerate(runs.records):
        with of_run(place):
            check_queries(record.n_rows, budget, len(runs))
    for place, record in enumerate(runs.records):
        with of_run(place), reading.engine.opened(reading.folder) as engine:
            items = each_as_step(2 * place, steps, reading.parts(record, kept, outputs=True))
            queries, counts = kept_queries(
                items, leaves, engine, budget, reading.folder, len(runs), record.facts.get(RELEVANT_FROM)
            )
            check_same(record.labels, counts.together, record)
            found[record.id] = queries
    return KeptSamples(units=found)
