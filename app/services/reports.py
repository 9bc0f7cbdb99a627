"""Reports, computed in groups: those that are asked for while others are computed share the next pass.

numpy's price is per call and hardly per matrix: the metrics of sixteen matrices of ten classes take about 1.5 times as
long as those of one. Nothing waits for company: who comes alone is answered at once, as with the commits of the store.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.inputs import MatrixInput
from app.domain.report import Options, Report
from app.services.compute import ComputePool
from app.services.evaluate import Question, answer, ask

# Beyond this many entries in its matrices a report takes long enough to be noticed by other requests.
_HEAVY_ENTRIES = 64 * 64
_GROUP_LIMIT = 32


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    question: Question
    done: "asyncio.Future[Report]"


class Reports:
    """Makes reports on one event loop."""

    def __init__(self, compute: ComputePool) -> None:
        self._compute = compute
        self._waiting: list[_Waiting] = []

    async def make(self, source: MatrixInput, options: Options) -> Report:
        """The report of an input.

        Raises:
            InvalidExpression: one of the metric expressions is none.
            Overloaded: too many large inputs are being computed.
        """
        question = ask(source, options)
        if source.counts.size + (0 if source.fold_counts is None else source.fold_counts.size) > _HEAVY_ENTRIES:
            return await self._compute.run(lambda: answer([question])[0], heavy=True)
        loop = asyncio.get_running_loop()
        if not self._waiting:
            # Behind everything that is ready to run now: requests that came together are here by then.
            loop.call_soon(self._answer_all)
        done: asyncio.Future[Report] = loop.create_future()
        self._waiting.append(_Waiting(question, done))
        return await done

    def _answer_all(self) -> None:
        waiting, self._waiting = self._waiting, []
        families: dict[tuple[int, float | None], list[_Waiting]] = {}
        for one in waiting:
            if not one.done.done():
                families.setdefault(one.question.family, []).append(one)
        for (n_classes, _), members in families.items():
            size = min(_GROUP_LIMIT, _HEAVY_ENTRIES // n_classes**2)
            for start in range(0, len(members), size):
                _answer_group(members[start : start + size])


def _answer_group(group: Sequence[_Waiting]) -> None:
    """Answer a group, one by one if it fails as a whole: a question that cannot be answered spoils no other."""
    try:
        reports = answer([one.question for one in group])
    except Exception as error:  # noqa: BLE001 - it belongs to the caller
        if len(group) == 1:
            group[0].done.set_exception(error)
            return
        for one in group:
            _answer_group([one])
        return
    for one, report in zip(group, reports, strict=True):
        one.done.set_result(report)
