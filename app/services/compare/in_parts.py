"""Comparisons of runs whose samples are named by reference: read again, divided by sample id, joined part by part."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import DataNotAllowed, Fault, IncomparableRuns, InvalidInput, TooLarge
from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.ranking import Ranking
from app.domain.inputs.samples import Samples
from app.kernel.compare.folded import FoldedRuns, Orders, Plan
from app.kernel.metrics.expression import Expression, measures
from app.services.ports import Cluster, Engine, SamplesElsewhere, Workers, workers_of
from app.services.processes.progress import as_step, each_as_step, progressed
from app.services.runs.aligned import Runs, ScoredRun
from app.services.runs.draws.groups import SharedGroups, joined_groups
from app.services.runs.joins import (
    GROUP,
    WEIGHT,
    Compared,
    GroupNames,
    Outputs,
    Question,
    SampleColumns,
    SpilledRun,
    numbers_of,
)
from app.services.runs.pairing import KeptSamples, NamedUnits, Pairing, by_counts
from app.services.runs.rankings import check_queries, kept_queries
from app.services.stored import stored_input

_IDS: Final = "sample_id"
# Relative to each other, sums of weights that differ by no more are the same.
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Rereading:
    """How samples are read again.

    Attributes:
        memory_bytes: That the columns of all runs together may take.
        folder: Where files are made of what takes more.
        engine: What holds rows beyond memory.
        cluster: What joins parts of them; None: nobody else does.
    """

    samples: SamplesElsewhere
    memory_bytes: int
    folder: Path
    engine: Engine
    cluster: Cluster | None = None


def lies_elsewhere(record: EvaluationRecord) -> bool:
    """Do the samples of a run lie where its data was named, with ids as far as that is known? Queries are ids."""
    data = record.data
    return data is not None and (record.kind == Ranking.kind or _IDS in data.get("columns", (_IDS,)))


def can_be_paired(records: Sequence[EvaluationRecord], kept: KeptSamples) -> bool:
    """Would runs that are not paired have ids if those that lie elsewhere were read again?"""
    with_ids = {identifier for identifier, one in kept.labels.items() if one.ids is not None}
    elsewhere = {record.id for record in records if lies_elsewhere(record)}
    return bool(elsewhere) and all(record.id in with_ids | elsewhere for record in records)


def read_again(
    reading: Rereading, records: Sequence[EvaluationRecord], kept: KeptSamples, *, whole: bool
) -> KeptSamples:
    """What is known of the samples of all runs once those that lie elsewhere were read.

    Args:
        reading: How.
        records: The runs, in the order of the request.
        kept: Of those that were kept.
        whole: Whether more of them is needed than their labels.

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
            source = reading.samples.whole(record, reading.memory_bytes // len(chosen))
            check_same(source.labels, source.counts, record)
            if source.samples is not None:
                found[record.id] = source.samples
    read = KeptSamples.of(found)
    outputs = {**(kept.outputs or {}), **found} if whole else kept.outputs
    return KeptSamples({**kept.labels, **read.labels}, outputs)


def check_same(labels: Sequence[str], counts: NDArray[Any], record: EvaluationRecord) -> None:
    """Whether what was read again is what was evaluated; raises InvalidInput if not (`data_changed`)."""
    # Sums of weights are rounded, and in parts otherwise than at once.
    tolerance = _ROUNDING if record.is_weighted else 0.0
    same = tuple(labels) == record.labels and counts.shape == record.counts.shape
    if not same or not np.allclose(counts, record.counts, rtol=tolerance, atol=0.0):
        raise InvalidInput.at("/data", "data_changed", "expected the counts that were evaluated, other ones were read")


@contextmanager
def of_run(place: int) -> Iterator[None]:
    """What is wrong with data, said of the run that it is of."""
    pointer = f"/evaluations/{place}"
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput([Fault(pointer, one.code, one.detail) for one in error.faults]) from None
    except (DataNotAllowed, TooLarge) as error:
        raise type(error)(error.detail, pointer=pointer) from None


# Bytes that joining takes of a row, beside its id, and of each of its outputs.
_ROW_BYTES: Final = 96
_OUTPUT_BYTES: Final = 32
_MOST_PARTS: Final = 1 << 14
# Bytes that joining a part takes: parts may travel, and several be under way at once.
_MOST_JOINED: Final = 64 << 20
# Kept samples that are divided at a time.
_AT_ONCE: Final = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class PairedParts:
    """What runs of more samples than memory holds have in common.

    Attributes:
        folded: What they say on metrics of probabilities, where such were asked for.
        groups: Of samples that come in groups.
    """

    pairing: Pairing
    folded: FoldedRuns | None = None
    groups: SharedGroups | None = None


def pair_in_parts(
    reading: Rereading,
    runs: Runs,
    kept: KeptSamples,
    minimum_matched: float,
    expressions: Sequence[Expression] = (),
) -> PairedParts:
    """How runs of classes belong together, of any number of samples.

    The answer is that of ``pairing.pair``, whatever the memory and the number of files.

    Args:
        reading: How samples are read that lie elsewhere.
        runs: The runs.
        kept: Samples that do not.
        minimum_matched: Share of the largest run's samples that all runs must have in common.
        expressions: Of probabilities, which are to be compared.

    Raises:
        IncomparableRuns: they have too few ids in common, different actual classes of one, or different groups.
        InvalidInput: a run has an id twice, or its data has changed.
        DataNotAllowed, TooLarge: data cannot be read again, or there are too many groups.
    """
    steps = len(runs) + 2
    question = _question(runs, expressions)
    with ExitStack() as ending:
        spilled: list[SpilledRun] = []
        dividing = _Dividing(reading, runs, kept, question)
        for place in range(len(runs)):
            with as_step(place, steps), of_run(place):
                spilled.append(ending.enter_context(closing(dividing.divided(place))))
        with as_step(len(runs), steps):
            workers = ending.enter_context(workers_of(reading.cluster))
            orders = None if question.plan is None else Orders(question.plan, reading.folder, reading.memory_bytes // 4)
            left = reading.memory_bytes // 4 - dividing.names.nbytes
            found = _Joining(question, orders, left).compared(spilled, dividing.n_parts, workers)
        pairing = by_counts(found.joint, found.matched, max(run.rows for run in spilled), minimum_matched)
        fault = pairing if isinstance(pairing, str) else None if found.weights is None else found.weights.fault()
        if fault is not None or isinstance(pairing, str):
            raise _unpaired(str(fault))
        groups = None if found.groups is None else joined_groups(found.groups, dividing.names)
        # What is left of it is not counted as a step.
        folded = _folded(found, orders, workers)
    return PairedParts(pairing, folded, groups)


def _question(runs: Runs, expressions: Sequence[Expression]) -> Question:
    grouped = tuple(record.is_grouped for record in runs.records)
    weighted = tuple(record.is_weighted for record in runs.records)
    question = Question(
        len(runs),
        runs.n_classes,
        grouped=grouped if any(grouped) else (),
        weighted=weighted if any(weighted) else (),
    )
    if not expressions:
        return question
    plan = Plan(tuple(expressions), runs.n_classes, len(runs), weighted=any(weighted))
    return replace(question, outputs=tuple(map(_outputs_of, runs.records)), plan=plan)


def _outputs_of(record: EvaluationRecord) -> Outputs:
    return Outputs(record.n_classes, not stored_input(record).has_scores)


class _Dividing:
    """Divides the samples of runs into files by a hash of their ids; the first run decides into how many.

    Attributes:
        n_parts: That number.
        names: Of the groups of the first run that has some.
    """

    def __init__(self, reading: Rereading, runs: Runs, kept: KeptSamples, question: Question) -> None:
        self.n_parts, self.names = 0, GroupNames(reading.memory_bytes // 4)
        self._reading, self._runs, self._kept, self._question = reading, runs, kept, question

    def divided(self, place: int) -> SpilledRun:
        """The samples of one run in files.

        Raises:
            IncomparableRuns: they have no ids.
        """
        record, codes, budget = self._runs.records[place], self._runs.places[place], self._reading.memory_bytes // 4
        outputs = self._question.outputs[place] if self._question.outputs else None
        run = None
        for some in _samples(self._reading, record, self._kept, scored=outputs is not None):
            if some.ids is None:
                raise without_ids(record)
            self.n_parts = self.n_parts or self._parts_of(some.ids, min(budget, _MOST_JOINED))
            if run is None:
                columns = self._question.columns(place)
                run = SpilledRun(self._reading.folder, str(place), self.n_parts, budget, columns)
            more = {} if outputs is None else outputs.divided(ScoredRun.of(record, some, codes).scores.probabilities)
            more = {**more, **self._groups(place, some), **self._weights(place, some)}
            run.add(some.ids, code=codes[some.truth] * self._runs.n_classes + codes[some.predicted], **more)
        if run is None:
            raise without_ids(record)
        run.finish()
        return run

    def _groups(self, place: int, samples: Samples) -> SampleColumns:
        """The numbers of the groups of samples, where the run has groups."""
        grouped = self._question.grouped
        if samples.groups is None or not grouped or not grouped[place]:
            return {}
        numbered = self.names.add if place == grouped.index(True) else numbers_of
        return {GROUP: numbered(samples.groups)}

    def _weights(self, place: int, samples: Samples) -> SampleColumns:
        """What samples weigh, where they have weights in the run."""
        weighted = self._question.weighted
        return {} if samples.weights is None or not weighted or not weighted[place] else {WEIGHT: samples.weights}

    def _parts_of(self, ids: NDArray[Any], budget: int) -> int:
        """Into how many files ids are divided so that all runs' rows of one are joined within a budget."""
        width = float(np.char.str_len(ids).mean()) if ids.dtype.kind == "U" else ids.dtype.itemsize
        records, outputs = self._runs.records, self._question.outputs
        taken = (_ROW_BYTES + 3 * width) * sum(record.n_rows for record in records)
        if outputs:
            plan = self._question.plan
            # Weights are told by more digits than counts.
            in_orders = 0.0 if plan is None else plan.entries * (1 + plan.weighted)
            taken += sum(
                _OUTPUT_BYTES * record.n_rows * max(one.width, in_orders)
                for record, one in zip(records, outputs, strict=True)
            )
        return min(max(ceil(taken / max(budget, 1)), 1), _MOST_PARTS)


def _samples(reading: Rereading, record: EvaluationRecord, kept: KeptSamples, *, scored: bool) -> Iterator[Samples]:
    """The samples of a run, some at a time."""
    if lies_elsewhere(record):
        counts = np.zeros_like(record.counts)
        for part in reading.samples.parts(record, outputs=scored):
            check_same(part.labels, record.counts, record)
            counts += part.counts
            if part.samples is None:
                raise without_ids(record)
            yield part.samples
        check_same(record.labels, counts, record)
        return
    labels = kept.labels.get(record.id)
    own = (kept.outputs or {}).get(record.id) if scored else None if labels is None else labels.samples
    if own is None or own.ids is None:
        raise without_ids(record)
    for start in range(0, own.size, _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        others = {
            name: None if (column := getattr(own, name)) is None else column[some]
            for name in ("outputs", "ids", "weights", "groups")
        }
        yield Samples(own.truth[some], own.predicted[some], **others)


@dataclass(frozen=True, slots=True, eq=False)
class _Joining:
    """Joins divided files, and adds up what comes of them.

    Attributes:
        budget: Bytes of memory that rows may take, those that say the same as one.
    """

    question: Question
    orders: Orders | None
    budget: int

    def compared(self, spilled: Sequence[SpilledRun], n_parts: int, workers: Workers | None) -> Compared:
        """What comes of all of them; raises as `pair_in_parts`."""
        tasks = (
            parts
            for number in range(n_parts)
            for parts in zip(*(run.part(number) for run in spilled), strict=True)
            if any(part is not None for part in parts)
        )
        join, whole = partial(Compared.of, self.question), Compared(self.question, self.budget // 4)
        for done, found in enumerate(map(join, tasks) if workers is None else workers.in_order(join, tasks)):
            # Of a part there may be ids of two kinds.
            progressed(done, max(done + 1, n_parts))
            if self.orders is not None and found.block is not None:
                self.orders.add(found.block)
            whole.merge(found)
            self._check(whole)
        whole.add_up()
        self._check(whole)
        return whole

    def _check(self, whole: Compared) -> None:
        if whole.different <= self.budget:
            return
        question = self.question
        parts = ["actual class", *["group"] * bool(question.grouped), *["weight"] * bool(question.weighted)]
        share = f"{'what names of groups leave of ' * bool(question.grouped)}a quarter of PREVAIL_DATA_MEMORY_BYTES"
        # Two are compared at least.
        fewer = "compare fewer runs at a time, or " * (question.n_runs > 2)
        raise TooLarge(
            f"expected samples whose combinations of {', '.join(parts)} and predictions of all {question.n_runs} runs "
            f"take at most {self.budget} bytes, those that say the same as one ({share}), got {whole.different} or "
            f"more: {fewer}raise PREVAIL_DATA_MEMORY_BYTES",
            pointer="/evaluations",
        )


def _folded(found: Compared, orders: Orders | None, workers: Workers | None) -> FoldedRuns | None:
    if found.sums is None or orders is None:
        return None
    return FoldedRuns.read([found.sums, orders.sums(map if workers is None else workers.in_order)])


def without_ids(record: EvaluationRecord) -> IncomparableRuns:
    """Why a run cannot be paired."""
    return _unpaired(f"{record.id} came without sample ids, or these were not retained")


def _unpaired(why: str) -> IncomparableRuns:
    return IncomparableRuns(f"the runs cannot be paired: {why}", pointer="/paired")


def queries_in_parts(
    reading: Rereading, runs: Runs, kept: KeptSamples, expressions: Sequence[Expression]
) -> KeptSamples:
    """The queries of all runs, of any number of items.

    What a comparison says of them is what it says of queries with their items, bit for bit.

    Args:
        reading: How items are read that lie elsewhere.
        runs: The runs.
        kept: Items that do not.
        expressions: What the runs are to be compared on.

    Raises:
        IncomparableRuns: a run was kept without its items.
        InvalidInput: its data has changed.
        DataNotAllowed, TooLarge: data cannot be read again, or there are too many queries, or items of one.
    """
    leaves = [leaf for expression in expressions for leaf in measures(expression)]
    steps, budget, found = 2 * len(runs) + 1, reading.memory_bytes // 2, {}
    for place, record in enumerate(runs.records):
        with of_run(place):
            check_queries(record.n_rows, budget, len(runs))
    for place, record in enumerate(runs.records):
        with of_run(place), reading.engine.opened(reading.folder) as engine:
            items = each_as_step(2 * place, steps, _items(reading, record, kept))
            queries = kept_queries(items, leaves, engine, budget, reading.folder, len(runs))
            check_same(record.labels, np.array(queries.counts), record)
            found[record.id] = NamedUnits(queries.ids, queries.units)
    return KeptSamples(units=found)


def _items(reading: Rereading, record: EvaluationRecord, kept: KeptSamples) -> Iterator[Samples]:
    """The items of a run, some at a time."""
    parts: Iterable[Samples | None] = [kept.samples(record.id)]
    if lies_elsewhere(record):
        parts = (part.samples for part in reading.samples.parts(record, outputs=True))
    for samples in parts:
        if samples is None:
            raise without_ids(record)
        yield samples
