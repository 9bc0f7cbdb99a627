"""Sets of labels of any number of samples: parts of an input that are forgotten one after another."""

from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from app.domain.errors import TooLarge
from app.domain.inputs.content import DATA_FACT, GROUPS_FACT, DataFacts
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.samples import Samples, Tally
from app.kernel.folds.labels import LabelFold, LabelScoresFold
from app.kernel.metrics.card import Task
from app.services.evaluate.evaluations import NewEvaluation
from app.services.evaluate.folding.units import DATA, UnitFolding
from app.services.evaluate.most_groups import check_groups
from app.services.ports import Workers
from app.services.runs.joins import numbers_of

# What a part says of its own rows, and how labels are decided where there are probabilities.
_ROWS: Final = "rows"
_RULE: Final = "rule"
# Before it is known how many groups there are.
_SEVERAL: Final = 2
# Bytes for each pair of labels: 9 pairs of cells, in a state, in another that is merged, in what is added to it, and in
# what is made of them.
_PAIR_BYTES: Final = 9 * 8 * 5
# Bytes for the order of each label at least: what is sorted at once does not get smaller.
_ORDER_BYTES: Final = 1 << 14


class LabelFolding(UnitFolding):
    """One evaluation of labels made of parts. The report is that of the same rows at hand, but for what has to be
    resampled. Who makes it closes it.

    Args:
        budget: Bytes of memory that pairs of labels may take, and with them the orders of their probabilities, about;
            more of these goes into files.
        folder: Where files are made; None: orders stay in memory, and can be sent to another process.
    """

    def __init__(self, budget: int, folder: Path | None) -> None:
        super().__init__(Task.MULTILABEL)
        self._budget, self._folder = budget, folder
        self._fold: LabelFold | None = None

    def add(self, part: NewEvaluation) -> None:
        """Add samples with the same labels, of data that was named.

        Raises:
            TooLarge: there are too many labels.
        """
        samples = part.source.samples
        if samples is None:
            raise ValueError("expected parts with sets of labels")
        self._begin(part)
        groups = None if samples.groups is None else numbers_of(samples.groups)
        fold = self._own(part.source)
        fold.add(samples.truth.view(bool), samples.predicted.view(bool), samples.outputs, groups)
        self._check_groups()
        self.rows += part.source.facts[DATA_FACT]["rows"]

    def merge(self, other: "LabelFolding") -> None:
        """Take in what was made of other parts; raises as `add`."""
        if other._first is None or other._fold is None:
            return
        self._begin(other._first)
        self._own(other._first.source).merge(other._fold)
        self._check_groups()
        self.rows += other.rows

    def finish(self, facts: DataFacts, workers: Workers | None = None) -> NewEvaluation:
        """All parts as one input, without its samples, and its report.

        Args:
            facts: What was read.
            workers: Who look at parts of the orders of the labels, where there are some.

        Raises:
            InvalidInput: there is no part, or all samples are in one group.
            TooLarge: there are too many groups.
        """
        source = self._begun().source
        if self._fold is None:
            raise ValueError("expected the state of the parts that there are")
        left = self._fold.finish(map if workers is None else workers.in_order)
        counts, of_rows = left.pairs.counts.reshape(-1, 2, 2), {**source.facts}
        if _ROWS in of_rows:
            of_rows[_ROWS] = self.rows
        samples = None
        if left.in_groups is not None:
            groups, _, sizes, *_ = left.in_groups.totals()
            self._check_groups()
            of_rows[GROUPS_FACT] = groups.size
            # The samples are gone, and their groups are not.
            nothing = np.zeros(groups.size, dtype=np.int64)
            samples = Samples(nothing, nothing, groups=groups, tally=Tally(sizes))
        return self._reported(replace(source, counts=counts, facts=of_rows, samples=samples), left, facts)

    def close(self) -> None:
        """Delete the files."""
        if self._fold is not None:
            self._fold.close()

    def _begin(self, part: NewEvaluation) -> None:
        source = part.source
        if source.is_grouped:
            # Other parts have other groups.
            source = replace(source, facts={**source.facts, GROUPS_FACT: _SEVERAL})
        super()._begin(replace(part, source=source))

    def _check_groups(self) -> None:
        fold = self._fold
        # What has no files is a part, and small.
        if fold is not None and self._folder is not None:
            check_groups(
                fold.n_groups, self._orders, fold.bytes_of_groups, self._budget - _PAIR_BYTES * self._n_labels**2
            )

    @property
    def _n_labels(self) -> int:
        return len(self._begun().source.labels)

    @property
    def _orders(self) -> int:
        """How many orders there are, each of which has something of every group."""
        return self._n_labels if _RULE in self._begun().source.facts else 0

    def _own(self, source: MatrixInput) -> LabelFold:
        if self._fold is None:
            n_labels, scored = len(source.labels), _RULE in source.facts
            left = self._budget - _PAIR_BYTES * n_labels**2
            # What has no files is a part, and its orders are small.
            if left < (_ORDER_BYTES * n_labels if scored and self._folder is not None else 0):
                raise TooLarge(self._too_many(n_labels, scored=scored), pointer=DATA)
            grouped = source.is_grouped
            scores = LabelScoresFold(n_labels, left, self._folder, grouped=grouped) if scored else None
            self._fold = LabelFold(n_labels, scores, grouped=grouped)
        return self._fold

    def _too_many(self, n_labels: int, *, scored: bool) -> str:
        orders = f", and orders of {_ORDER_BYTES} bytes," if scored else ""
        return (
            f"expected labels with pairs of {_PAIR_BYTES} bytes{orders} in at most {self._budget} bytes (half of "
            f"PREVAIL_DATA_MEMORY_BYTES), got {n_labels} labels"
        )
