"""Probabilities of any number of samples: parts of an input that are forgotten one after another."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from app.domain.errors import InvalidInput
from app.domain.inputs.content import DATA_FACT, DataFacts
from app.domain.inputs.matrices import MatrixInput
from app.domain.options import Options
from app.domain.report import Report, SectionName
from app.kernel.folds.scores import ScoresFold
from app.services.estimates.run_data import RunData
from app.services.evaluate.questions import ask
from app.services.evaluate.reports import report_alone
from app.services.evaluate.sections.folded import folded_section

# Facts of a part that are numbers of samples.
_COUNTED: Final = ("rows", "ties", "renormalized")


def folded_report(
    parts: Iterable[MatrixInput],
    options: Options,
    *,
    finished: Callable[[], DataFacts],
    budget: int,
    folder: Path,
) -> tuple[MatrixInput, Report]:
    """All parts as one input, without its samples, and its report.

    Args:
        parts: Probabilities with the same labels, with their samples.
        options: Of the report.
        finished: What was read, asked when all parts have gone by.
        budget: Bytes of memory, about, that the order of the samples may take; more goes into files.
        folder: Where files are made.

    Raises:
        InvalidInput: there is no part, or what is asked cannot be given.
    """
    with ExitStack() as ending:
        whole: MatrixInput | None = None
        fold: ScoresFold | None = None
        for part in parts:
            if part.samples is None or part.samples.outputs is None:
                raise ValueError("expected parts with probabilities")
            whole = replace(part, samples=None) if whole is None else _together(whole, part)
            fold = fold or ending.enter_context(ScoresFold(len(part.labels), budget, folder))
            fold.add(part.samples.truth, part.samples.outputs)
        if whole is None or fold is None:
            raise InvalidInput.at("/data", "no_samples", "expected at least one sample, got none")
        whole = replace(whole, facts={**whole.facts, DATA_FACT: finished()})
        question = ask(whole, options)
        section = folded_section(question, RunData(whole), fold.finish())
        return whole, report_alone(question, {SectionName.PROBABILITIES: section})


def _together(whole: MatrixInput, part: MatrixInput) -> MatrixInput:
    facts: dict[str, Any] = {**whole.facts}
    facts |= {name: whole.facts[name] + part.facts[name] for name in _COUNTED if name in part.facts}
    return replace(whole, counts=whole.counts + part.counts, facts=facts)
