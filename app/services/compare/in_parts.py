"""Runs of more samples than memory holds, paired: divided into files by their sample ids, and joined file by file."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain
from math import ceil
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import IncomparableRuns
from app.domain.evaluation import EvaluationRecord
from app.kernel.compare.paired.joint import JointCounts
from app.services.compare.elsewhere import Rereading, check_same, lies_elsewhere, of_run
from app.services.ports.cluster import Workers, workers_of
from app.services.ports.evaluations import SampleLabels
from app.services.processes.progress import as_step, progressed
from app.services.runs.aligned import Runs
from app.services.runs.joins.joined import joined, merged
from app.services.runs.joins.spilled import SpilledRun
from app.services.runs.pairing import Pairing, by_counts
from app.services.runs.reading import KeptSamples

# Bytes that joining takes of a row, beside its id.
_ROW_BYTES: Final = 96
_MOST_PARTS: Final = 1 << 14
# Bytes that joining a part takes: parts may travel, and several be under way at once.
_MOST_JOINED: Final = 64 << 20
# Kept samples that are divided at a time.
_AT_ONCE: Final = 1 << 18
# Combinations of labels that are gathered before they are added up.
_MANY: Final = 1 << 20


def pair_in_parts(reading: Rereading, runs: Runs, kept: KeptSamples, minimum_matched: float) -> Pairing:
    """How runs of classes belong together, of any number of samples.

    The answer is that of ``pairing.pair``, whatever the memory and the number of files.

    Args:
        reading: How samples are read that lie elsewhere.
        runs: The runs.
        kept: Samples that do not.
        minimum_matched: Share of the largest run's samples that all runs must have in common.

    Raises:
        IncomparableRuns: they have too few ids in common, or different actual classes of one.
        InvalidInput: a run has an id twice, or its data has changed.
        DataNotAllowed, TooLarge: data cannot be read again.
        ClusterUnavailable: the cluster does not do it.
    """
    budget, steps = reading.memory_bytes // 4, len(runs) + 2
    total = sum(record.n_rows for record in runs.records)
    n_parts = None
    with ExitStack() as ending:
        spilled: list[SpilledRun] = []
        for place, record in enumerate(runs.records):
            with as_step(place, steps), of_run(place):
                labels = _labels(reading, record, kept)
                if n_parts is None:
                    first = next(labels)
                    n_parts = _parts_of(total, _ids(first, record), min(budget, _MOST_JOINED))
                    labels = chain([first], labels)
                run = ending.enter_context(SpilledRun(reading.folder, str(place), n_parts, budget))
                for one in labels:
                    codes = runs.places[place]
                    run.add(_ids(one, record), code=codes[one.truth] * runs.n_classes + codes[one.predicted])
                run.finish()
                spilled.append(run)
        with as_step(len(runs), steps):
            workers = ending.enter_context(workers_of(reading.cluster))
            joint = _joined(spilled, n_parts or 1, runs.n_classes, workers)
    found = by_counts(joint, max(run.rows for run in spilled), minimum_matched)
    if isinstance(found, str):
        raise _unpaired(found)
    return found


def _joined(spilled: Sequence[SpilledRun], n_parts: int, n_classes: int, workers: Workers | None) -> JointCounts:
    tasks = (
        parts
        for number in range(n_parts)
        for parts in zip(*(run.part(number) for run in spilled), strict=True)
        if any(part is not None for part in parts)
    )
    join = partial(joined, n_classes=n_classes)
    gathered: list[JointCounts] = []
    for done, joint in enumerate(map(join, tasks) if workers is None else workers.in_order(join, tasks)):
        # Of a part there may be ids of two kinds.
        progressed(done, max(done + 1, n_parts))
        gathered.append(joint)
        if sum(one.counts.size for one in gathered[1:]) > _MANY:
            gathered = [merged(gathered, len(spilled), n_classes)]
    return merged(gathered, len(spilled), n_classes)


def _labels(reading: Rereading, record: EvaluationRecord, kept: KeptSamples) -> Iterator[SampleLabels]:
    """The labels of the samples of a run, some at a time."""
    if lies_elsewhere(record):
        counts = np.zeros_like(record.counts)
        for part in reading.samples.parts(record):
            check_same(part.labels, record.counts, record)
            counts += part.counts
            found = None if part.samples is None else SampleLabels.of(part.samples)
            if found is None:
                raise _without_ids(record)
            yield found
        check_same(record.labels, counts, record)
        return
    own = kept.labels.get(record.id)
    if own is None or own.ids is None:
        raise _without_ids(record)
    for start in range(0, len(own.truth), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        yield SampleLabels(own.ids[some], own.truth[some], own.predicted[some])


def _ids(labels: SampleLabels, record: EvaluationRecord) -> NDArray[Any]:
    if labels.ids is None:
        raise _without_ids(record)
    return labels.ids


def _without_ids(record: EvaluationRecord) -> IncomparableRuns:
    return _unpaired(f"{record.id} came without sample ids, or these were not retained")


def _unpaired(why: str) -> IncomparableRuns:
    return IncomparableRuns(f"the runs cannot be paired: {why}", pointer="/paired")


def _parts_of(rows: float, ids: NDArray[Any], budget: int) -> int:
    """Into how many files the ids are divided so that all runs' rows of one are joined within a budget."""
    width = float(np.char.str_len(ids).mean()) if ids.dtype.kind == "U" else ids.dtype.itemsize
    return min(max(ceil(rows * (_ROW_BYTES + 3 * width) / max(budget, 1)), 1), _MOST_PARTS)
