"""Reports, computed in groups: those that are asked for while others are computed share the next pass.

numpy's price is per call and hardly per matrix: the metrics of sixteen matrices of ten classes take about 1.5 times as
long as those of one. No request waits for others: one
that comes alone is computed at once, as with the commits of the store.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from app.domain.inputs.matrices import MatrixInput
from app.domain.options import Options
from app.domain.report import Headline, Report, Section, SectionName, Value
from app.services.evaluate.questions import Question, ask
from app.services.evaluate.reports import (
    HEAVY_ENTRIES,
    headline_alone,
    headlines_of,
    is_light,
    is_quick,
    matrix_reports,
    passes,
    report_alone,
)
from app.services.evaluate.sections.matrix import BatchValues, batch_values
from app.services.observing import Observers, Tally, share, tally
from app.services.processes.compute import ComputePool

# Turns of the event loop before values are computed: what has arrived by then is read, checked and joins the group. An
# idle turn takes less than a microsecond.
_TURNS_TO_GATHER = 6
# Turns between values and report: so many until the store has sent off what it was given meanwhile.
_TURNS_TO_STORE = 5
# What is told of arithmetic on the event loop.
_KIND = "evaluate"


@dataclass(frozen=True, slots=True, eq=False)
class OverallValues:
    """What is known of a report first. The report follows, while the store is busy with them."""

    values: Mapping[str, Value]
    report: Awaitable[Report]


@dataclass(frozen=True, slots=True, eq=False)
class BriefValues:
    """What is known of an evaluation whose report nobody asks for."""

    values: Mapping[str, Value]
    headline: Headline


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    question: Question
    overall: "asyncio.Future[OverallValues]"
    report: "asyncio.Future[Report]"
    tally: Tally | None


@dataclass(frozen=True, slots=True, eq=False)
class _WaitingBriefly:
    question: Question
    overall: "asyncio.Future[BriefValues]"
    tally: Tally | None


Waits = TypeVar("Waits", _Waiting, _WaitingBriefly)


class Reports:
    """Makes reports on one event loop."""

    def __init__(self, compute: ComputePool) -> None:
        self._compute = compute
        self._waiting: list[_Waiting] = []
        self._waiting_briefly: list[_WaitingBriefly] = []

    async def make(
        self, source: MatrixInput, options: Options, kept: Mapping[SectionName, Section] | None = None
    ) -> Report:
        """The report of an input. ``kept`` is what was said of its samples when these were not kept.

        Raises:
            InvalidExpression: one of the metric expressions is none.
            Overloaded: too many large inputs are being computed.
        """
        return await (await self.values_first(source, options, kept)).report

    async def headline(self, source: MatrixInput, options: Options) -> Headline | None:
        """The headline of an input alone; None where that takes as much as the report. Raises as `make` does."""
        question = ask(source, options)
        if source.counts.size > HEAVY_ENTRIES:
            return await self._compute.run(partial(headline_alone, question))
        with _told(self._compute.observers, [tally()]):
            return headline_alone(question)

    async def values_first(
        self, source: MatrixInput, options: Options, kept: Mapping[SectionName, Section] | None = None
    ) -> OverallValues:
        """The values of an input, its report to follow. Raises as `make` does; the report raises nothing more."""
        question = ask(source, options)
        loop = asyncio.get_running_loop()
        report: asyncio.Future[Report] = loop.create_future()
        if not is_light(question):
            made = await self._compute.run(partial(report_alone, question, kept))
            report.set_result(made)
            return OverallValues(made.values, report)
        if not self._waiting:
            _after(_TURNS_TO_GATHER, self._values_of_all)
        waiting = _Waiting(question, loop.create_future(), report, tally())
        self._waiting.append(waiting)
        return await waiting.overall

    async def brief(self, source: MatrixInput, options: Options) -> BriefValues | None:
        """The values of an input and its headline, and no report; None where that takes as much. Raises as `make`."""
        question = ask(source, options)
        if not (is_quick(question) and is_light(question)):
            return None
        if not self._waiting_briefly:
            _after(_TURNS_TO_GATHER, self._brief_values_of_all)
        waiting = _WaitingBriefly(question, asyncio.get_running_loop().create_future(), tally())
        self._waiting_briefly.append(waiting)
        return await waiting.overall

    def _values_of_all(self) -> None:
        waiting, self._waiting = self._waiting, []
        for group in _groups(waiting):
            _values_of_group(group, self._compute.observers)

    def _brief_values_of_all(self) -> None:
        waiting, self._waiting_briefly = self._waiting_briefly, []
        for group in _groups(waiting):
            _brief_values_of_group(group, self._compute.observers)


def _groups(waiting: Sequence[Waits]) -> Iterator[list[Waits]]:
    """Those who still wait, as far as they can be answered together."""
    still = [one for one in waiting if not one.overall.done()]
    for places in passes([one.question for one in still]):
        yield [still[place] for place in places]


@contextmanager
def _told(observers: Observers, tallies: Sequence[Tally | None]) -> Iterator[None]:
    """Tell how long the event loop computed, for whom."""
    begin = time.perf_counter()
    try:
        yield
    finally:
        seconds = time.perf_counter() - begin
        share(tallies, seconds)
        observers.computed(_KIND, seconds, apart=False)


def _values_of_group(group: Sequence[_Waiting], observers: Observers) -> None:
    """Give a group its values, one by one if it fails as a whole: what cannot be computed spoils no other."""
    try:
        with _told(observers, [one.tally for one in group]):
            found = batch_values([one.question for one in group])
    except Exception as error:  # noqa: BLE001 - it belongs to the caller
        if len(group) == 1:
            group[0].overall.set_exception(error)
            return
        for one in group:
            _values_of_group([one], observers)
        return
    for one, values in zip(group, found.values, strict=True):
        one.overall.set_result(OverallValues(values, one.report))
    _after(_TURNS_TO_STORE, lambda: _report_group(group, found, observers))


def _brief_values_of_group(group: Sequence[_WaitingBriefly], observers: Observers) -> None:
    """The same, each with its headline."""
    try:
        with _told(observers, [one.tally for one in group]):
            found = batch_values([one.question for one in group])
            answers = [BriefValues(*each) for each in zip(found.values, headlines_of(found), strict=True)]
    except Exception as error:  # noqa: BLE001 - it belongs to the caller
        if len(group) == 1:
            group[0].overall.set_exception(error)
            return
        for one in group:
            _brief_values_of_group([one], observers)
        return
    for one, answer in zip(group, answers, strict=True):
        one.overall.set_result(answer)


def _report_group(group: Sequence[_Waiting], found: BatchValues, observers: Observers) -> None:
    try:
        with _told(observers, [one.tally for one in group]):
            reports = matrix_reports(found)
    except Exception as error:  # noqa: BLE001 - it belongs to the callers
        for one in group:
            if not one.report.done():
                one.report.set_exception(error)
        return
    for one, report in zip(group, reports, strict=True):
        if not one.report.done():
            one.report.set_result(report)


def _after(turns: int, function: Callable[[], None]) -> None:
    """Call a function some turns of the event loop from now."""
    loop = asyncio.get_running_loop()
    loop.call_soon(function if turns <= 1 else lambda: _after(turns - 1, function))
