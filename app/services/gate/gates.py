"""Gates as a caller knows them: put, read, ended, and checked."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from app.domain.decisions import Gate, GateCheck
from app.domain.errors import Fault, InvalidInput, NotFound
from app.domain.evaluation import EvaluationRecord, Page
from app.domain.expressions.check import parse_for_any_classes
from app.domain.identifiers import new_id, time_of
from app.domain.rules import Definition, Rule, check_rules, definition_of
from app.kernel.metrics.expression import of_probabilities
from app.kernel.uncertainty.design import seed_of
from app.services.admission import Admission
from app.services.compute import ComputePool
from app.services.estimands import EVERYTHING
from app.services.gate.gate_check import EXIT_CODES, Candidate, check_gate
from app.services.json_values import Json
from app.services.ports import EvaluationStore, GateStore, PairedLabels
from app.services.runs.pairing import read_samples
from app.services.runs.scored_runs import labels_of, read_outputs


class GateService:
    """Use cases of gates."""

    def __init__(
        self,
        store: EvaluationStore,
        gates: GateStore,
        *,
        labels: PairedLabels,
        compute: ComputePool,
        admission: Admission,
    ) -> None:
        self._store = store
        self._gates = gates
        self._labels = labels
        self._compute = compute
        self._admission = admission

    async def put(self, project: str, name: str, stated: Mapping[str, Any]) -> tuple[Gate, bool]:
        """Make the definition the latest version; True when there was no such gate.

        Raises:
            InvalidInput: a metric makes no sense.
        """
        check_rules(definition_of(stated))
        async with self._admission:
            return await self._gates.put(project, name, stated)

    async def read(self, project: str, name: str, version: int | None = None) -> Gate:
        """A version, the latest by default."""
        gate = await self._gates.get(project, name, version)
        if gate is None:
            raise _missing(name, version)
        return gate

    async def versions(self, project: str, name: str) -> Sequence[Gate]:
        """All versions, latest first, also of a gate that was deleted."""
        found = await self._gates.versions(project, name)
        if not found:
            raise _missing(name)
        return found

    async def delete(self, project: str, name: str) -> None:
        """End a gate. Its versions and checks can still be read."""
        async with self._admission:
            if not await self._gates.delete(project, name):
                raise _missing(name)

    async def page(self, project: str, limit: int, after: str | None) -> Page[Gate, str]:
        """The latest versions by name."""
        return await self._gates.page(project, limit, after)

    async def check(self, project: str, name: str, evaluation: UUID, baseline: UUID | None) -> Json:
        """Hold an evaluation against the latest version, and keep what was found.

        Raises:
            NotFound: no such gate or evaluation.
            InvalidInput: a rule needs a baseline and there is none.
            InvalidExpression: a metric makes no sense for the classes of the run.
            IncomparableLabels: the baseline has other classes.
            IncomparableRuns: a rule needs probabilities that a run has not.
            OutOfReach: there are too many of them.
        """
        gate = await self.read(project, name)
        definition = definition_of(gate.definition)
        if definition.needs_baseline and baseline is None:
            raise InvalidInput(
                [Fault("/baseline", "missing", f"expected a baseline, with which a rule of {name} compares")]
            )
        other = baseline if definition.needs_baseline else None
        candidate = await self._candidate(project, definition, evaluation, other)
        seed = seed_of(str(evaluation), str(baseline), gate.name, gate.version)
        verdict, results = await self._compute.run(lambda: check_gate(definition, candidate, seed=seed), heavy=True)
        identifier = new_id()
        answer: Json = {
            "id": str(identifier),
            "created_at": time_of(identifier).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z",
            "gate": {"name": gate.name, "version": gate.version},
            "evaluation": _run(candidate.record),
            "baseline": None if candidate.baseline is None else _run(candidate.baseline),
            "verdict": verdict.value,
            "exit_code": EXIT_CODES[verdict],
            "results": results,
        }
        check = GateCheck(
            id=identifier,
            gate=gate.name,
            version=gate.version,
            evaluation=evaluation,
            baseline=None if candidate.baseline is None else candidate.baseline.id,
            verdict=verdict,
            answer=answer,
        )
        async with self._admission:
            await self._gates.add_check(project, check)
        return answer

    async def read_check(self, project: str, name: str, identifier: UUID) -> Json:
        """A check as it was answered."""
        check = await self._gates.get_check(project, name, identifier)
        if check is None:
            raise NotFound(f"there is no check {identifier} of the gate {name!r}")
        return dict(check.answer)

    async def checks(self, project: str, name: str, limit: int, before: UUID | None) -> Page[GateCheck, UUID]:
        """The checks of a gate, latest first, also of one that was deleted."""
        await self.versions(project, name)
        return await self._gates.checks(project, name, limit, before)

    async def _candidate(
        self, project: str, definition: Definition, evaluation: UUID, baseline: UUID | None
    ) -> Candidate:
        wanted = [("/evaluation", evaluation)] + ([] if baseline is None else [("/baseline", baseline)])
        found = await self._store.get_many(project, [identifier for _, identifier in wanted])
        for pointer, identifier in wanted:
            if identifier not in found:
                raise NotFound(f"there is no evaluation {identifier}", pointer=pointer)
        records = [found[identifier] for _, identifier in wanted]
        other = records[1] if len(records) > 1 else None
        rules = [rule for rule in definition.rules if _needs_samples(rule)]
        if not rules:
            return Candidate(records[0], other, await read_samples(self._labels, project, records))
        # The baseline's are needed only where it is compared by them.
        compared = next((rule for rule in rules if rule.demand.needs_baseline), None)
        looked_at = records if compared is not None else records[:1]
        pointers = [pointer for pointer, _ in wanted]
        metric = (compared or rules[0]).metric
        outputs = await read_outputs(self._labels, project, looked_at, metric, pointers=pointers)
        known = len(looked_at) == len(records)
        samples = labels_of(outputs) if known else await read_samples(self._labels, project, records)
        return Candidate(records[0], other, samples, outputs)


def _needs_samples(rule: Rule) -> bool:
    return of_probabilities(parse_for_any_classes(rule.metric, inputs=EVERYTHING))


def _run(record: EvaluationRecord) -> Json:
    """Which run it was, with a digest of its matrix: what was judged can be told apart from what was sent later."""
    return {
        "id": str(record.id),
        "model": {"name": record.model.name, "version": record.model.version},
        "dataset": {"name": record.dataset.name, "version": record.dataset.version, "split": record.dataset.split},
        "matrix_digest": f"{seed_of(record.labels, record.counts):016x}",
    }


def _missing(name: str, version: int | None = None) -> NotFound:
    return NotFound(f"there is no gate {name!r}" + ("" if version is None else f" with version {version}"))
