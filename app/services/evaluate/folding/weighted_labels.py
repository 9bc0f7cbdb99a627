"""Sets of labels of any number of samples with weights: parts of an input that are forgotten one after another."""

from dataclasses import replace
from typing import Final

from app.domain.errors import InvalidInput, TooLarge
from app.domain.inputs.content import DATA_FACT, WEIGHTS_FACT, DataFacts
from app.domain.inputs.matrices import MatrixInput, check_entries
from app.kernel.folds.labels import WeightedLabelFold
from app.kernel.metrics.card import Task
from app.services.evaluate.evaluations import NewEvaluation
from app.services.evaluate.folding.units import DATA, UnitFolding
from app.services.ports import Workers

_ROWS: Final = "rows"
# Before it is known what all weights are worth.
_SEVERAL: Final = 2.0
# Bytes for each pair of labels: 9 pairs of cells, of weights and of their squares, in whole numbers of any size, in a
# state and in another that is merged.
_PAIR_BYTES: Final = 9 * 2 * 960


class WeightedLabelFolding(UnitFolding):
    """One evaluation of weighted samples with labels made of parts. The report is that of the same rows at hand, but
    for what has to be resampled.

    Args:
        budget: Bytes of memory that pairs of labels may take; None for a part, which is added to what has one.
    """

    def __init__(self, budget: int | None) -> None:
        super().__init__(Task.MULTILABEL)
        self._budget = budget
        self._fold: WeightedLabelFold | None = None

    def add(self, part: NewEvaluation) -> None:
        """Add samples with the same labels, of data that was named.

        Raises:
            TooLarge: there are too many labels.
        """
        samples = part.source.samples
        if samples is None or samples.weights is None:
            raise ValueError("expected parts with sets of labels and weights")
        self._begin(part)
        self._own(part.source).add(samples.truth.view(bool), samples.predicted.view(bool), samples.weights)
        self.rows += part.source.facts[DATA_FACT]["rows"]

    def merge(self, other: "WeightedLabelFolding") -> None:
        """Take in what was made of other parts; raises as `add`."""
        if other._first is None or other._fold is None:
            return
        self._begin(other._first)
        self._own(other._first.source).merge(other._fold)
        self.rows += other.rows

    def finish(self, facts: DataFacts, workers: Workers | None = None) -> NewEvaluation:  # noqa: ARG002 - is little
        """All parts as one input, without its samples, and its report.

        Args:
            facts: What was read.
            workers: Nothing is left to be done by others.

        Raises:
            InvalidInput: there is no part, or the weights are not as those of an input that is sent.
        """
        source = self._begun().source
        if self._fold is None or not self._fold.used:
            raise InvalidInput.at(DATA, "no_samples", "sample_weight: expected at least one sample, got none above 0")
        left = self._fold.finish()
        counts = left.pairs.cells.reshape(-1, 2, 2)
        try:
            check_entries(counts[0], DATA, lambda *_: DATA)
        except InvalidInput as error:
            fault = error.faults[0]
            raise InvalidInput.at(DATA, fault.code, f"sample_weight: {fault.detail}") from None
        of_rows = {**source.facts, _ROWS: self.rows, WEIGHTS_FACT: left.pairs.weighed.worth[1]}
        if self._fold.used < 2:
            del of_rows[WEIGHTS_FACT]
        return self._reported(replace(source, counts=counts, facts=of_rows), left, facts)

    def close(self) -> None:
        """There are no files."""

    def _begin(self, part: NewEvaluation) -> None:
        # Parts are worth something else.
        facts = {**part.source.facts, WEIGHTS_FACT: _SEVERAL}
        super()._begin(replace(part, source=replace(part.source, facts=facts)))

    def _own(self, source: MatrixInput) -> WeightedLabelFold:
        if self._fold is None:
            n_labels = len(source.labels)
            if self._budget is not None and _PAIR_BYTES * n_labels**2 > self._budget:
                raise TooLarge(
                    f"expected labels whose pairs take at most {self._budget} bytes, {_PAIR_BYTES} each where samples "
                    f"have weights (half of PREVAIL_DATA_MEMORY_BYTES), got {n_labels} labels",
                    pointer=DATA,
                )
            self._fold = WeightedLabelFold(n_labels)
        return self._fold
