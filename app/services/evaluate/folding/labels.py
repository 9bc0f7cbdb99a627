"""Sets of labels of any number of samples: parts of an input that are forgotten one after another."""

from dataclasses import replace
from typing import Final

from app.domain.errors import TooLarge
from app.domain.inputs.content import DATA_FACT, DataFacts
from app.kernel.folds.labels import LabelFold
from app.kernel.metrics.card import Task
from app.services.evaluate.evaluations import NewEvaluation
from app.services.evaluate.folding.units import DATA, UnitFolding
from app.services.ports.cluster import Workers

# Bytes for each pair of labels: 9 pairs of cells, in a state, in another that is merged, in what is added to it, and in
# what is made of them.
_PAIR_BYTES: Final = 9 * 8 * 5


class LabelFolding(UnitFolding):
    """One evaluation of sets of labels made of parts. The report is that of the same rows at hand, but for what has to
    be resampled.

    Args:
        budget: Bytes of memory that pairs of labels may take.
    """

    def __init__(self, budget: int) -> None:
        super().__init__(Task.MULTILABEL)
        self._budget = budget
        self._fold: LabelFold | None = None

    def add(self, part: NewEvaluation) -> None:
        """Add samples with the same labels, of data that was named.

        Raises:
            TooLarge: there are too many labels.
        """
        samples, n_labels = part.source.samples, len(part.source.labels)
        if samples is None:
            raise ValueError("expected parts with sets of labels")
        self._check(n_labels)
        self._begin(part)
        self._fold = self._fold or LabelFold(n_labels)
        self._fold.add(samples.truth.view(bool), samples.predicted.view(bool))
        self.rows += part.source.facts[DATA_FACT]["rows"]

    def merge(self, other: "LabelFolding") -> None:
        """Take in what was made of other parts; raises as `add`."""
        if other._first is None or other._fold is None:
            return
        self._check(len(other._first.source.labels))
        self._begin(other._first)
        self.rows += other.rows
        if self._fold is None:
            self._fold = other._fold
        else:
            self._fold.merge(other._fold)

    def finish(self, facts: DataFacts, workers: Workers | None = None) -> NewEvaluation:  # noqa: ARG002 - is little
        """All parts as one input, without its samples, and its report.

        Args:
            facts: What was read.
            workers: Nothing is left to be done by others.

        Raises:
            InvalidInput: there is no part.
        """
        source = self._begun().source
        if self._fold is None:
            raise ValueError("expected the state of the parts that there are")
        left = self._fold.finish()
        counts = left.pairs.counts.reshape(-1, 2, 2)
        return self._reported(replace(source, counts=counts), left, facts)

    def close(self) -> None:
        """There are no files."""

    def _check(self, n_labels: int) -> None:
        if _PAIR_BYTES * n_labels**2 > self._budget:
            raise TooLarge(
                f"expected labels whose pairs take at most {self._budget} bytes, {_PAIR_BYTES} each (half of "
                f"PREVAIL_DATA_MEMORY_BYTES), got {n_labels} labels",
                pointer=DATA,
            )
