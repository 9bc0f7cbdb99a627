"""A store in memory and the services on it: use cases without a database."""

import asyncio
import json
import pickle
from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, TypeVar
from uuid import UUID

import numpy as np

from app.api.answers import write_json
from app.domain.decisions import ComparisonFilter, ComparisonRecord, ComparisonSummary, GateCheck, GateVersion
from app.domain.evaluation import (
    AlikeEvaluations,
    DatasetRef,
    EvaluationQuery,
    EvaluationRecord,
    EvaluationSummary,
    ModelRef,
    Page,
    Position,
    Standing,
    SummarisedInput,
    ValueCondition,
)
from app.domain.identifiers import new_id, time_of
from app.domain.inputs.classified import Predictions, Probabilities
from app.domain.inputs.confusion import ConfusionMatrix
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.samples import Samples
from app.domain.members import as_json
from app.domain.options import Options
from app.services.admission import Admission
from app.services.compare.across_datasets import Tournament, TournamentService
from app.services.compare.answers import RunComparison
from app.services.compare.comparisons import ComparisonService, NewComparison
from app.services.evaluate.evaluations import EvaluationService, NewEvaluation
from app.services.gate import CheckAnswer, GateService
from app.services.history import HistoryService
from app.services.processes.compute import ComputePool
from app.services.processes.worker import Limits
from app.services.rank import LeaderboardQuery, LeaderboardService
from tests.services.records import alike

Answer = TypeVar("Answer")
Json = dict[str, Any]
PROJECT = "tests"


async def _compared(service: ComparisonService, new: NewComparison) -> RunComparison:
    return await service.answer(PROJECT, await service.prepare(PROJECT, new))


class Memory:
    """Evaluations, comparisons and gates in dictionaries: the ports of the store, as far as use cases ask for them.

    Attributes:
        evaluations: By project.
        calls: Names of the methods of evaluations that were called, in order.
    """

    def __init__(self) -> None:
        self.evaluations: defaultdict[str, dict[UUID, EvaluationRecord]] = defaultdict(dict)
        self.comparisons: dict[tuple[str, UUID], ComparisonRecord] = {}
        self.gates: defaultdict[tuple[str, str], list[GateVersion]] = defaultdict(list)
        self.checks: dict[tuple[str, UUID], GateCheck] = {}
        self.calls: list[str] = []

    async def add(self, project: str, record: EvaluationRecord) -> None:
        self.calls.append("add")
        self.evaluations[project][record.id] = record

    async def get(self, project: str, identifier: UUID) -> EvaluationRecord | None:
        self.calls.append("get")
        return self.evaluations[project].get(identifier)

    async def get_many(self, project: str, identifiers: Sequence[UUID]) -> Mapping[UUID, EvaluationRecord]:
        self.calls.append("get_many")
        kept = self.evaluations[project]
        return {one: kept[one] for one in identifiers if one in kept}

    async def page(self, project: str, query: EvaluationQuery) -> Page[EvaluationSummary, Position]:
        self.calls.append("page")
        found = [
            one
            for one in reversed(self.evaluations[project].values())
            if query.model in (None, one.model.name) and query.model_version in (None, one.model.version)
            if _is_of(one.dataset, query.dataset, query.dataset_version, query.split)
        ]
        return Page(tuple(_summary(one) for one in found[: query.limit]), None)

    async def series(self, project: str, query: EvaluationQuery) -> Sequence[AlikeEvaluations]:
        self.calls.append("series")
        found = [
            one
            for one in self.evaluations[project].values()
            if query.model in (None, one.model.name)
            if _is_of(one.dataset, query.dataset, query.dataset_version, query.split)
        ]
        return [alike([one]) for one in found]

    async def former_models(self, project: str, dataset: DatasetRef) -> int:
        return 0

    async def leaderboard(
        self,
        project: str,
        dataset: DatasetRef,
        metric: str,
        *,
        limit: int,
        higher_is_better: bool,
        where: tuple[ValueCondition, ...] = (),
    ) -> tuple[Standing, ...]:
        self.calls.append("leaderboard")
        assert not where
        latest: dict[ModelRef, EvaluationRecord] = {}
        for one in reversed(self.evaluations[project].values()):
            if _is_of(one.dataset, dataset.name, dataset.version, dataset.split):
                latest.setdefault(one.model, one)
        sign = -1 if higher_is_better else 1

        def place(one: EvaluationRecord) -> tuple[bool, float]:
            value = one.values.get(metric)
            return (value is None, 0.0 if value is None else sign * value)

        return tuple(
            Standing(one.values.get(metric), _summary(one)) for one in sorted(latest.values(), key=place)[:limit]
        )

    async def read_labels(self, project: str, identifiers: Sequence[UUID]) -> Mapping[UUID, Samples]:
        self.calls.append("read_labels")
        kept = {one: self.evaluations[project][one].samples for one in identifiers}
        labels = {one: samples.labels for one, samples in kept.items() if samples is not None}
        return {one: known for one, known in labels.items() if known is not None}

    async def read_outputs(self, project: str, identifiers: Sequence[UUID]) -> Mapping[UUID, Samples]:
        self.calls.append("read_outputs")
        kept = {one: self.evaluations[project][one].samples for one in identifiers}
        return {one: samples for one, samples in kept.items() if samples is not None}


class Comparisons:
    """The port of comparisons."""

    def __init__(self, memory: Memory) -> None:
        self._kept = memory.comparisons

    async def add(self, project: str, record: ComparisonRecord) -> None:
        self._kept[project, record.id] = record

    async def get(self, project: str, identifier: UUID) -> ComparisonRecord | None:
        return self._kept.get((project, identifier))

    async def delete(self, project: str, identifier: UUID) -> bool:
        return self._kept.pop((project, identifier), None) is not None

    async def page(
        self, project: str, asked: ComparisonFilter, limit: int, before: UUID | None = None
    ) -> Page[ComparisonSummary, UUID]:
        raise AssertionError(f"{project}: a list of {limit} before {before}, {asked}, is the database's")


class Gates:
    """The port of gates and their checks."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def put(self, project: str, name: str, definition: Mapping[str, Any]) -> tuple[GateVersion, bool]:
        versions = self._memory.gates[project, name]
        number, moment = str(len(versions) + 1), time_of(new_id())
        versions.append(GateVersion(name=name, version=number, created_at=moment, **definition))
        return versions[-1], len(versions) == 1

    async def get(self, project: str, name: str, version: int | None = None) -> GateVersion | None:
        versions = self._memory.gates[project, name]
        return next((one for one in reversed(versions) if version is None or str(version) == one.version), None)

    async def add_check(self, project: str, check: GateCheck) -> None:
        self._memory.checks[project, check.id] = check


def _is_of(dataset: DatasetRef, name: str | None, version: str | None, split: str | None) -> bool:
    return name in (None, dataset.name) and version in (None, dataset.version) and split in (None, dataset.split)


def _summary(record: EvaluationRecord) -> EvaluationSummary:
    return EvaluationSummary(
        id=record.id,
        created_at=record.created_at,
        model=record.model,
        dataset=record.dataset,
        tags=record.tags,
        input=SummarisedInput(
            kind=record.kind,
            content=record.content,
            n_samples=record.n_samples,
            n_classes=record.n_classes,
            labels=record.labels,
            positive=None if record.positive is None else record.labels[record.positive],
        ),
        metrics=record.values,
    )


class Here(ComputePool):
    """Computes in this process what would be sent to another, and sends it all the same."""

    def __init__(self) -> None:
        super().__init__(1, Limits(seconds=60, memory_bytes=2**30), wait_seconds=1)

    async def run(self, function: Callable[..., Answer], file: BinaryIO | None = None) -> Answer:
        """The result of a copy."""
        assert file is None
        sent = pickle.loads(pickle.dumps(function))  # noqa: S301 - its own
        answer: Answer = pickle.loads(pickle.dumps(sent()))  # noqa: S301 - likewise
        return answer


@dataclass
class Bench:
    """A store in memory with the parts that every service takes."""

    memory: Memory = field(default_factory=Memory)
    compute: ComputePool = field(default_factory=Here)
    admission: Admission = field(default_factory=lambda: Admission(limit=4, wait_seconds=1))

    def run(self, work: Callable[[], Coroutine[Any, Any, Answer]]) -> Answer:
        """What a coroutine gives."""
        return asyncio.run(work())

    def keep(
        self, source: MatrixInput, model: str = "m", dataset: str = "d", options: Options | None = None
    ) -> EvaluationRecord:
        """Evaluate and keep an input."""

        async def work() -> UUID:
            service = EvaluationService(
                self.memory,  # type: ignore[arg-type]  # what it does not ask for is not there
                compute=self.compute,
                admission=self.admission,
            )
            asked = NewEvaluation(
                source=source,
                options=options or Options(),
                model=ModelRef(model),
                dataset=DatasetRef(dataset),
            )
            evaluation, kept = await service.create(PROJECT, asked)
            await kept
            assert evaluation.id is not None
            return evaluation.id

        return self.memory.evaluations[PROJECT][self.run(work)]

    def _parts(self) -> dict[str, Any]:
        return {"compute": self.compute, "admission": self.admission}

    def compare(self, records: Sequence[EvaluationRecord], *metrics: str, **members: Any) -> Json:
        """What is answered, and kept, of some saved runs."""
        service = ComparisonService(
            self.memory,  # type: ignore[arg-type]
            Comparisons(self.memory),
            **self._parts(),
        )
        new = NewComparison(evaluations=tuple(record.id for record in records), metrics=metrics, **members)
        answer = self.run(lambda: _compared(service, new))
        return _kept(answer, self.run(lambda: service.read(PROJECT, answer.id)))

    def check(
        self,
        rules: Sequence[Mapping[str, Any]],
        record: EvaluationRecord,
        baseline: EvaluationRecord | None = None,
        **stated: Any,
    ) -> Json:
        """What is answered, and kept, of a run that is held against a gate with these rules."""
        service = GateService(
            self.memory,  # type: ignore[arg-type]
            Gates(self.memory),  # type: ignore[arg-type]
            history_of=HistoryService(self.memory, compute=self.compute),  # type: ignore[arg-type]
            boards=LeaderboardService(self.memory, compute=self.compute),  # type: ignore[arg-type]
            **self._parts(),
        )

        async def work() -> CheckAnswer:
            await service.put(PROJECT, "gate", {"rules": list(rules), **stated})
            return await service.check(PROJECT, "gate", record.id, None if baseline is None else baseline.id)

        answer = self.run(work)
        return _kept(answer, self.memory.checks[PROJECT, answer.id].answer)

    def rank(self, metric: str, dataset: str = "d", **members: Any) -> Json:
        """A leaderboard."""
        service = LeaderboardService(
            self.memory,  # type: ignore[arg-type]
            compute=self.compute,
        )
        query = LeaderboardQuery(dataset=DatasetRef(dataset), metric=metric, **members)
        found: Json = as_json(self.run(lambda: service.rank(PROJECT, query)))
        return found

    def judge(self, asked: Tournament) -> Json:
        """What is answered, and kept, of models across datasets."""
        service = TournamentService(
            self.memory,  # type: ignore[arg-type]
            Comparisons(self.memory),
            **self._parts(),
        )
        answer = self.run(lambda: service.create(PROJECT, asked))
        return _kept(answer, self.memory.comparisons[PROJECT, answer.id].answer)


def _kept(answer: Any, kept: Mapping[str, Any]) -> Json:
    """The answer in the form in which it is kept, which is the form in which it is sent."""
    assert json.loads(write_json(answer)) == json.loads(write_json(kept))
    return dict(kept)


def rule(metric: str, bound: str = "lower", level: float = 0.95, **demand: Any) -> Json:
    """A rule of a gate as it is stated."""
    return {"metric": metric, **demand, "bound": bound, "level": level}


def matrix(rows: Any, labels: Sequence[Any] | None = None, positive: Any = None) -> MatrixInput:
    """A confusion matrix as an input."""
    names = None if labels is None else [*labels]
    return ConfusionMatrix(matrix=np.asarray(rows).tolist(), labels=names, positive=positive).read("/input")


def labelled(truth: Any, predicted: Any, ids: Any = None, groups: Any = None, **members: Any) -> MatrixInput:
    """Labels with sample ids, numbered unless they are given."""
    size = len(truth)
    return Predictions(
        y_true=np.asarray(truth).tolist(),
        y_pred=np.asarray(predicted).tolist(),
        labels=members.get("labels"),
        sample_ids=list(range(size)) if ids is None else list(ids),
        group_ids=groups,
        sample_weight=members.get("weights"),
    ).read("/input")


def probable(truth: Any, probabilities: Any, **members: Any) -> MatrixInput:
    """Probabilities with sample ids."""
    rows = np.asarray(probabilities)
    usual = {"labels": [str(code) for code in range(rows.shape[1])], "sample_ids": list(range(len(rows)))}
    given: Json = {"y_true": np.asarray(truth).tolist(), "probabilities": rows.tolist(), **usual, **members}
    return Probabilities(**given).read("/input")
