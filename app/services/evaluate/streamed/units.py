"""Inputs that are more than a matrix of classes, of any number of rows: what all of them share while parts are read."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, Final

from app.domain.errors import InvalidInput
from app.domain.inputs.content import DATA_FACT, GROUPS_FACT, WEIGHTS_FACT, DataFacts
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.samples import Samples
from app.domain.report import SectionName
from app.kernel.metrics.card import Task
from app.kernel.uncertainty.units import Units
from app.services.estimates.run_data import RunData
from app.services.evaluate.evaluations import NewEvaluation
from app.services.evaluate.questions import Question, ask
from app.services.evaluate.reports import report_alone
from app.services.evaluate.sections.unit import unit_section

DATA: Final = "/input/data"


class StreamedParts:
    """Parts of one evaluation of units.

    Args:
        parts: With their samples, of data that was named.
        task: What is judged.
        facts_of: Facts of all of the data by its number of rows.

    Attributes:
        source: The input of the first part, without its samples.
        rows: That were read so far.

    Raises:
        InvalidInput, InvalidExpression: there is no part, or what is asked cannot be given. Only one part is read then.
    """

    def __init__(self, parts: Iterable[NewEvaluation], task: Task, facts_of: Callable[[int], DataFacts]) -> None:
        self.rows, self._task, self._facts_of = 0, task, facts_of
        following = iter(parts)
        first = next(following, None)
        if first is None:
            raise InvalidInput.at(DATA, "no_samples", "expected at least one row, got none")
        # How many groups there are, and what weights are worth, is known when all parts are read.
        samples = first.source.samples
        facts: dict[str, Any] = {GROUPS_FACT: 2} if first.source.is_grouped else {}
        facts |= {WEIGHTS_FACT: 2.0} if samples is not None and samples.weights is not None else {}
        self.source = replace(first.source, facts={**first.source.facts, **facts}, samples=None)
        self._first, self._parts = replace(first, source=self.source), chain([first], following)
        self.question(self.source)

    def question(self, source: MatrixInput) -> Question:
        """What is asked of an input."""
        return ask(source, self._first.options)

    def samples(self) -> Iterator[Samples]:
        """Samples of all parts, to be gone through once."""
        for part in self._parts:
            if part.source.samples is None:
                raise ValueError("expected parts with samples")
            self.rows += part.source.facts[DATA_FACT]["rows"]
            yield part.source.samples

    def reported(self, source: MatrixInput, units: Units) -> NewEvaluation:
        """All parts as one input, without its samples, and its report.

        Args:
            source: The input, with no more of its samples than is shown of them.
            units: What is left of these.
        """
        source = replace(source, facts={**source.facts, DATA_FACT: self._facts_of(self.rows)})
        section = unit_section(self.question(source), self._task, RunData(source, units))
        whole = replace(source, samples=None)
        report = report_alone(self.question(whole), {SectionName.UNITS: section})
        return replace(self._first, source=whole, report=report)
