"""Inputs that are more than a matrix of classes, of any number of rows: what they share while parts are read;
and rankings.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.domain.data import MOST_GROUPS
from app.domain.errors import InvalidInput, TooLarge
from app.domain.inputs.content import DATA_FACT, GROUPS_FACT, IGNORED_FACT, WEIGHTS_FACT
from app.domain.inputs.ignored import NothingLeft
from app.domain.inputs.matrices import MatrixInput, check_entries
from app.domain.inputs.ranking import RELEVANT_FROM, counted_ranking
from app.domain.inputs.samples import Samples, Tally, WeightSums
from app.kernel.metrics.card import Task
from app.kernel.streamed.rows import Rows, Table
from app.services.estimates.run_data import RunData
from app.services.evaluate.evaluations import NewEvaluation
from app.services.evaluate.questions import Question, ask
from app.services.evaluate.reports import report_alone
from app.services.evaluate.sections.unit import measures_of
from app.services.ports import OpenEngine
from app.services.runs.rankings import kept_queries

DATA: Final = "/input/data"

# Of each group what it adds to the error of an area, of how many samples and members.
_BYTES_OF_AREA: Final = 24


def check_groups(n_groups: int, orders: int, held: int, budget: int) -> None:
    """Check that sums within groups, and what each order of the samples has of every group, fit in a budget of bytes.

    Raises:
        TooLarge: there are too many groups, or they take too much.
    """
    if n_groups > MOST_GROUPS:
        raise TooLarge(f"expected at most {MOST_GROUPS} groups, got {n_groups}", pointer=DATA)
    taken = held + _BYTES_OF_AREA * n_groups * orders
    if taken > budget:
        raise TooLarge(
            f"expected groups that take at most {budget} bytes (half of PREVAIL_DATA_MEMORY_BYTES), got {n_groups}, "
            f"which take {taken}",
            pointer=DATA,
        )


def check_weights(sums: NDArray[Any]) -> None:
    """Raises InvalidInput: sums of weights are not as those of an input that is sent."""
    try:
        check_entries(sums, DATA, lambda *_: DATA)
    except InvalidInput as error:
        fault = error.faults[0]
        raise InvalidInput.at(DATA, fault.code, f"sample_weight: {fault.detail}") from None


def alike(rows: Rows, by: Sequence[str], *, weighted: bool) -> tuple[Table, NDArray[np.float64] | None, Tally]:
    """Rows that are equal in some columns as one entry each: these columns, sums of the weights ``w`` where there are
    some, and what entries stand for.
    """
    sums, ends = {"times": "1"}, {}
    if weighted:
        sums |= {"used": "(w > 0)::INT", "weight": "w", "squares": "w * w"}
        ends = {"lightest": "nullif(w, 0)", "heaviest": "-nullif(w, 0)"}
    found = rows.totals(by, sums, ends)
    times = found["times"].astype(np.int64)
    if not weighted:
        return found, None, Tally(times)
    each = WeightSums(found["squares"], found["used"].astype(np.int64), found["lightest"], -found["heaviest"])
    return found, found["weight"], Tally(times, each)


def taken(engine: OpenEngine, batches: Iterator[pa.RecordBatch]) -> Rows:
    """Rows of batches, at least one, all with the columns of the first and in their types: an engine takes it that they
    are, and reads texts as numbers.
    """
    first = next(batches)
    return engine.take(first.schema, (one.cast(first.schema) for one in chain([first], batches)))


# A part of one evaluation with its samples, or why none of these is left.
Part = NewEvaluation | NothingLeft


class StreamedParts:
    """Parts of one evaluation, with the same labels.

    Args:
        parts: Of data that was named, in any order.
        facts_of: Facts of the input, of all of the data, by its number of rows.
        engine: Holds the samples.
        budget: Bytes of memory, about, that what is known of all of them may take.

    Attributes:
        source: The input of the first part, without its samples.
        rows: Of all parts that were read.

    Raises:
        InvalidInput: there is no part with samples. Only one part is read then.
    """

    def __init__(
        self, parts: Iterable[Part], facts_of: Callable[[int], Mapping[str, Any]], engine: OpenEngine, budget: int
    ) -> None:
        self.engine, self.budget = engine, budget
        self.rows, self._facts_of, self._left_out = 0, facts_of, Counter[str]()
        self._fault = InvalidInput.at(DATA, "no_samples", "expected at least one row, got none")
        following = self._read(parts)
        first = next(following, None)
        if first is None:
            raise self._fault
        # How many groups there are, and what weights are worth, is known when all parts are read.
        samples, facts = first.source.samples, {**first.source.facts}
        facts |= {GROUPS_FACT: inf} if GROUPS_FACT in facts else {}
        facts |= {WEIGHTS_FACT: 2.0} if samples is not None and samples.weights is not None else {}
        self.source = replace(first.source, samples=None, facts=facts)
        self._first, self._parts = replace(first, source=self.source), chain([first], following)

    def _read(self, parts: Iterable[Part]) -> Iterator[NewEvaluation]:
        for part in parts:
            if isinstance(part, NewEvaluation):
                self.rows += part.source.facts[DATA_FACT]["rows"]
                self._left_out.update(part.source.facts.get(IGNORED_FACT, {}))
                yield part
            else:
                self.rows += int(sum(part.left_out.values()))
                self._left_out.update(part.left_out)
                self._fault = part

    def question(self, source: MatrixInput) -> Question:
        """Return the question about an input; raises InvalidInput, InvalidExpression: it cannot be answered."""
        return ask(source, self._first.options, sliceable=False)

    def inputs(self) -> Iterator[tuple[MatrixInput, Samples]]:
        """The inputs of all parts and their samples, to be gone through once."""
        return ((part.source, part.source.known_samples) for part in self._parts)

    def samples(self) -> Iterator[Samples]:
        """Samples of all parts, to be gone through once."""
        return (samples for _, samples in self.inputs())

    def whole(self, source: MatrixInput) -> MatrixInput:
        """All parts as one input, with what is known of all of the data."""
        facts = {name: fact for name, fact in source.facts.items() if name != DATA_FACT}
        facts |= {IGNORED_FACT: dict(self._left_out)} if IGNORED_FACT in facts else {}
        return replace(source, facts={**facts, **self._facts_of(self.rows)})

    def reported(self, run: RunData) -> NewEvaluation:
        """All parts as one input, with no more of its samples than is shown of them, and the report of what is left of
        these.
        """
        report = report_alone(self.question(run.source), run=run)
        return replace(self._first, source=replace(run.source, samples=None), report=report)


def streamed_rankings(read: StreamedParts, folder: Path) -> NewEvaluation:
    """One evaluation of rankings, whose values go into a file of a folder. The report is that of the same items in
    memory.

    Raises:
        InvalidInput: what is asked cannot be given.
        TooLarge: there are too many queries, or too many items of one.
    """
    measures = measures_of(read.question(read.source), Task.RANKING)
    least = read.source.facts.get(RELEVANT_FROM)
    queries, counts = kept_queries(read.samples(), measures, read.engine, read.budget, folder, relevant_from=least)
    facts = {} if least is None else {RELEVANT_FROM: least}
    # The items are gone, and the names of the queries are not.
    nothing = np.zeros(0)
    names = Samples(nothing, nothing.astype(np.int64), ids=queries.ids)
    source = read.whole(counted_ranking(counts, read.source.facts["cutoffs"], names, facts))
    return read.reported(RunData(source, queries.units))
