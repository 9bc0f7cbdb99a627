"""Inputs that are more than a matrix of classes, of any number of rows: what all of them share while parts go by."""

from dataclasses import replace
from typing import Final

from app.domain.errors import InvalidInput
from app.domain.inputs.content import DATA_FACT, DataFacts
from app.domain.inputs.matrices import MatrixInput
from app.domain.report import SectionName
from app.kernel.metrics.card import Task
from app.kernel.uncertainty.units import Units
from app.services.estimates.run_data import RunData
from app.services.evaluate.evaluations import NewEvaluation
from app.services.evaluate.questions import Question, ask
from app.services.evaluate.reports import report_alone
from app.services.evaluate.sections.unit import unit_section

DATA: Final = "/input/data"


class UnitFolding:
    """One evaluation made of parts.

    Args:
        task: What is judged.

    Attributes:
        rows: That were read so far.
    """

    def __init__(self, task: Task) -> None:
        self.rows = 0
        self._task = task
        self._first: NewEvaluation | None = None

    def _begin(self, part: NewEvaluation) -> None:
        """What is asked and cannot be given is known before all is read; raises InvalidInput and InvalidExpression."""
        if self._first is None:
            self._first = replace(part, source=replace(part.source, samples=None))
            self._question(self._first.source)

    def _begun(self) -> NewEvaluation:
        """The first part without its samples; raises InvalidInput where there is none."""
        if self._first is None:
            raise InvalidInput.at(DATA, "no_samples", "expected at least one row, got none")
        return self._first

    def _question(self, source: MatrixInput) -> Question:
        return ask(source, self._begun().options)

    def _reported(self, source: MatrixInput, units: Units, facts: DataFacts) -> NewEvaluation:
        """All parts as one input, without its samples, and its report.

        Args:
            source: The input, with no more of its samples than is shown of them.
            units: What is left of these.
            facts: What was read.
        """
        source = replace(source, facts={**source.facts, DATA_FACT: facts})
        section = unit_section(self._question(source), self._task, RunData(source, units))
        whole = replace(source, samples=None)
        report = report_alone(self._question(whole), {SectionName.UNITS: section})
        return replace(self._begun(), source=whole, report=report)
