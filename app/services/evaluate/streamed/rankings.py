"""Rankings of any number of items, in any order."""

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from app.domain.inputs.content import DataFacts
from app.domain.inputs.ranking import RELEVANT_FROM, counted_ranking
from app.domain.inputs.samples import Samples
from app.kernel.metrics.card import Task
from app.services.evaluate.evaluations import NewEvaluation
from app.services.evaluate.sections.unit import measures_of
from app.services.evaluate.streamed.units import StreamedParts
from app.services.ports import OpenEngine
from app.services.runs.rankings import kept_queries


def streamed_rankings(
    parts: Iterable[NewEvaluation],
    facts_of: Callable[[int], DataFacts],
    *,
    engine: OpenEngine,
    budget: int,
    folder: Path,
) -> NewEvaluation:
    """One evaluation of rankings made of parts. The report is that of the same items in memory.

    Args:
        parts: Items, in any order.
        facts_of: Facts of all of the data by its number of rows.
        engine: What holds the items.
        budget: Bytes of memory, about, that one query or the values of all queries may take.
        folder: Where the file of the values is made.

    Raises:
        InvalidInput: there is no part, or what is asked cannot be given.
        TooLarge: there are too many queries, or too many items of one.
    """
    read = StreamedParts(parts, Task.RANKING, facts_of)
    measures = measures_of(read.question(read.source), Task.RANKING)
    least = read.source.facts.get(RELEVANT_FROM)
    kept = kept_queries(read.samples(), measures, engine, budget, folder, relevant_from=least)
    facts = {} if least is None else {RELEVANT_FROM: least}
    # The items are gone, and the names of the queries are not.
    nothing = np.zeros(0)
    names = Samples(nothing, nothing.astype(np.int64), ids=kept.ids)
    return read.reported(counted_ranking(kept.counts, read.source.facts["cutoffs"], names, facts), kept.units)
