"""Rankings of more items than memory holds, to be paired: of each run what metrics say of its queries is kept."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

import numpy as np

from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.samples import Samples
from app.kernel.metrics.expression import Expression, measures
from app.services.compare.elsewhere import Rereading, check_same, lies_elsewhere, of_run
from app.services.compare.in_parts import without_ids
from app.services.ports.cluster import workers_of
from app.services.processes.progress import as_step
from app.services.runs.aligned import Runs
from app.services.runs.joins.queries import DividedQueries, Items, check_queries, items_of
from app.services.runs.reading import KeptSamples, NamedUnits


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
        ClusterUnavailable: the cluster does not do it.
    """
    leaves = [leaf for expression in expressions for leaf in measures(expression)]
    steps, budget, found = 2 * len(runs) + 1, reading.memory_bytes // 2, {}
    for place, record in enumerate(runs.records):
        with of_run(place):
            check_queries(record.n_rows, budget, len(runs))
    for place, record in enumerate(runs.records):
        divided = DividedQueries(budget, reading.folder, len(runs))
        with of_run(place), closing(divided):
            with as_step(2 * place, steps):
                for items in _items(reading, record, kept):
                    divided.add(items)
            with as_step(2 * place + 1, steps), workers_of(reading.cluster) as workers:
                queries = divided.looked_at(leaves, reading.folder, workers)
            check_same(record.labels, np.array(queries.counts), record)
            found[record.id] = NamedUnits(queries.ids, queries.units)
    return KeptSamples(units=found)


def _items(reading: Rereading, record: EvaluationRecord, kept: KeptSamples) -> Iterator[Items]:
    """The items of a run, some at a time."""
    parts: Iterable[Samples | None] = [kept.samples(record.id)]
    if lies_elsewhere(record):
        parts = (part.samples for part in reading.samples.parts(record, outputs=True))
    for samples in parts:
        if samples is None:
            raise without_ids(record)
        yield items_of(samples)
