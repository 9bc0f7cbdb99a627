"""Rankings of any number of items, in any order: what is kept of each query is what all of a report follows from."""

from pathlib import Path

import numpy as np

from app.domain.inputs.content import DataFacts
from app.domain.inputs.ranking import counted_ranking
from app.domain.inputs.samples import Samples
from app.kernel.metrics.card import Task
from app.services.evaluate.evaluations import NewEvaluation
from app.services.evaluate.folding.units import UnitFolding
from app.services.evaluate.sections.unit import measures_of
from app.services.ports import Workers
from app.services.runs.joins import DividedQueries, Items, items_of


class QueryFolding(UnitFolding):
    """One evaluation of rankings made of parts. Who makes it closes it.

    The report is that of the same items at hand, bit for bit, whatever the parts: what is kept of each query is what
    all of it follows from.

    Args:
        budget: Bytes of memory, about, that items may take; more goes into files.
        folder: Where files are made; None: items stay in memory, and can be sent to another process.
    """

    def __init__(self, budget: int, folder: Path | None) -> None:
        super().__init__(Task.RANKING)
        self._held: list[Items] = []
        self._divided = None if folder is None else DividedQueries(budget, folder)

    def add(self, part: NewEvaluation) -> None:
        """Add items, of data that was named."""
        samples = part.source.samples
        if samples is None:
            raise ValueError("expected parts with items of queries")
        self._begin(part)
        self._take(items_of(samples))

    def merge(self, other: "QueryFolding") -> None:
        """Take in the items that another holds."""
        if other._first is not None:
            self._begin(other._first)
        for items in other._held:
            self._take(items)

    def _take(self, items: Items) -> None:
        self.rows += items[0].size
        if self._divided is None:
            self._held.append(items)
        else:
            self._divided.add(items)

    def finish(self, facts: DataFacts, workers: Workers | None = None) -> NewEvaluation:
        """All parts as one input, without its samples, and its report.

        Args:
            facts: What was read.
            workers: Who look at queries, where there are some.

        Raises:
            InvalidInput: there is no part, or what is asked cannot be given.
            TooLarge: there are too many queries, or too many items of one.
        """
        source, divided = self._begun().source, self._divided
        if divided is None:
            raise ValueError("expected a folder for what is divided")
        measures = measures_of(self._question(source), Task.RANKING)
        kept = divided.looked_at(measures, divided.folder, workers)
        # The items are gone, and the names of the queries are not.
        nothing = np.zeros(0)
        names = Samples(nothing, nothing.astype(np.int64), ids=kept.ids)
        whole = counted_ranking(kept.counts, source.facts["cutoffs"], names)
        return self._reported(whole, kept.units, facts)

    def close(self) -> None:
        """Delete the files."""
        divided, self._divided = self._divided, None
        if divided is not None:
            divided.close()
