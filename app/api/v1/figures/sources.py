"""What figures are made of, asked of the services."""

from dataclasses import replace
from typing import Final
from uuid import UUID

from app.api.deps import Context
from app.api.plots.registry import Given, Needs, Run, as_answered, class_of, matrix_of
from app.api.plots.shares import HIGHEST_SHARE, LOWEST_SHARE, STEPS, swept_metrics
from app.services.project.projection import Marked, Scenario, Sweep

# Enough for limits that are looked at: a sweep has them at every step.
_DRAWS: Final = 1000


async def run_of(context: Context, identifier: UUID, needs: Needs) -> Run:
    """One run with what the figure is made of."""
    evaluations = context.services.evaluations
    if needs in (Needs.SAMPLES, Needs.UNITS):
        read = evaluations.with_curves if needs is Needs.SAMPLES else evaluations.units
        source = await read(context.project, identifier)
        return Run(of=as_answered(await evaluations.names(context.project, identifier)), source=source)
    report = as_answered(await evaluations.read(context.project, identifier))
    return Run(of=report, report=report)


async def swept(context: Context, given: Given) -> Given:
    """The same with the metrics of each run at other shares of the class."""
    for run in given.runs:
        matrix_of(run)
    label = given.run.report["input"]["labels"][class_of(given, given.run)]
    sweep = Sweep(label=label, start=LOWEST_SHARE, end=HIGHEST_SHARE, steps=STEPS, at=tuple(Marked))
    metrics, what_if = swept_metrics(len(given.runs)), context.services.what_if
    runs = []
    for run in given.runs:
        identifier = UUID(run.report["id"])
        answer = await what_if.project(context.project, identifier, metrics, Scenario(sweep=sweep, draws=_DRAWS), None)
        runs.append(replace(run, sweep=as_answered(answer)))
    return replace(given, runs=runs)
