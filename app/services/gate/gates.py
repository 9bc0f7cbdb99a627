"""Gates as a caller knows them: put, read, ended, and checked."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any
from uuid import UUID

from app.domain.decisions import CheckSummary, Gate, GateCheck, GateVersion
from app.domain.errors import InvalidInput, NotFound
from app.domain.evaluation import EvaluationRecord, Page
from app.domain.identifiers import time_of
from app.domain.members import as_json
from app.domain.rules import Definition, check_rules, definition_of
from app.kernel.uncertainty.draws import seed_of
from app.services.acting import made_id
from app.services.admission import Admission
from app.services.estimands import Estimand
from app.services.gate.answers import CheckAnswer, CheckedGate, CheckedRun
from app.services.gate.gate_check import EXIT_CODES, check_gate
from app.services.gate.rule_estimates import rule_estimands
from app.services.ports.decisions import GateStore
from app.services.ports.evaluations import EvaluationStore, PairedLabels
from app.services.processes.compute import ComputePool
from app.services.references import Named, identified
from app.services.runs.aligned import Runs
from app.services.runs.pairing import PairingMode
from app.services.runs.reading import KeptSamples, read_labels, read_outputs


@dataclass(frozen=True, slots=True)
class GateService:
    """Use cases of gates."""

    store: EvaluationStore
    gates: GateStore
    _: KW_ONLY
    labels: PairedLabels
    compute: ComputePool
    admission: Admission

    async def put(self, project: str, name: str, stated: Mapping[str, Any]) -> tuple[GateVersion, bool]:
        """Make the definition the latest version; True when there was no such gate.

        Raises:
            InvalidInput: a metric makes no sense.
        """
        check_rules(definition_of(stated))
        async with self.admission:
            gate, made = await self.gates.put(project, name, stated)
        return gate.shown, made

    async def read(self, project: str, name: str, version: int | None = None) -> GateVersion:
        """A version, the latest by default."""
        return (await self._get(project, name, version)).shown

    async def _get(self, project: str, name: str, version: int | None = None) -> Gate:
        gate = await self.gates.get(project, name, version)
        if gate is None:
            raise _missing(name, version)
        return gate

    async def versions(self, project: str, name: str) -> Sequence[GateVersion]:
        """All versions, latest first, also of a gate that was deleted."""
        found = await self.gates.versions(project, name)
        if not found:
            raise _missing(name)
        return [gate.shown for gate in found]

    async def delete(self, project: str, name: str) -> None:
        """End a gate. Its versions and checks can still be read."""
        async with self.admission:
            if not await self.gates.delete(project, name):
                raise _missing(name)

    async def page(self, project: str, limit: int, after: str | None) -> Page[GateVersion, str]:
        """The latest versions by name."""
        page = await self.gates.page(project, limit, after)
        return Page(tuple(gate.shown for gate in page.items), page.next_position)

    async def check(self, project: str, name: str, evaluation: Named, baseline: Named | None) -> CheckAnswer:
        """Hold an evaluation against the latest version, and keep what was found.

        Raises:
            NotFound: no such gate or evaluation.
            InvalidInput: a rule needs a baseline and there is none.
            InvalidExpression: a metric makes no sense for the classes of the run.
            IncomparableLabels: the baseline has other classes.
            IncomparableRuns: a rule needs probabilities that a run has not.
            OutOfReach: there are too many of them.
        """
        gate = await self._get(project, name)
        definition = definition_of(gate.definition)
        if definition.needs_baseline and baseline is None:
            raise InvalidInput.at("/baseline", "missing", f"expected a baseline, with which a rule of {name} compares")
        candidate, other = await self._identified(project, evaluation, baseline if definition.needs_baseline else None)
        aligned = await self._runs(project, candidate, other)
        estimands = rule_estimands(definition, aligned)
        runs = await self._paired(project, definition, estimands, aligned)

        found = await self.compute.run(partial(check_gate, definition, estimands, runs))
        identifier = made_id()
        checked, *others = (_run(record) for record in runs.records)
        answer = CheckAnswer(
            id=identifier,
            created_at=time_of(identifier),
            gate=CheckedGate(name=gate.name, version=gate.version),
            evaluation=checked,
            baseline=others[0] if others else None,
            verdict=found.verdict,
            exit_code=EXIT_CODES[found.verdict],
            results=found.results,
            findings=found.findings or None,
        )
        check = GateCheck(
            id=answer.id,
            gate=gate.name,
            version=gate.version,
            evaluation=candidate,
            baseline=other,
            verdict=answer.verdict,
            answer=as_json(answer),
        )
        async with self.admission:
            await self.gates.add_check(project, check)
        return answer

    async def read_check(self, project: str, name: str, identifier: UUID) -> Mapping[str, Any]:
        """A check as it was answered."""
        check = await self.gates.get_check(project, name, identifier)
        if check is None:
            raise NotFound(f"there is no check {identifier} of the gate {name!r}")
        return check.answer

    async def checks(self, project: str, name: str, limit: int, before: UUID | None) -> Page[CheckSummary, UUID]:
        """The checks of a gate, latest first, also of one that was deleted."""
        await self.versions(project, name)
        page = await self.gates.checks(project, name, limit, before)
        return Page(tuple(check.shown for check in page.items), page.next_position)

    async def last_checks(self, project: str, names: Sequence[str]) -> Mapping[str, CheckSummary]:
        """The latest check of each of the gates that have one."""
        found = await self.gates.last_checks(project, names)
        return {name: check.shown for name, check in found.items()}

    async def _identified(self, project: str, evaluation: Named, baseline: Named | None) -> tuple[UUID, UUID | None]:
        named = [evaluation] if baseline is None else [evaluation, baseline]
        found = await identified(self.store, project, named, ("/evaluation", "/baseline")[: len(named)])
        return found[0], found[1] if len(found) > 1 else None

    async def _runs(self, project: str, evaluation: UUID, baseline: UUID | None) -> Runs:
        """The candidate, and the baseline if there is one."""
        wanted = [("/evaluation", evaluation)] + ([] if baseline is None else [("/baseline", baseline)])
        found = await self.store.get_many(project, [identifier for _, identifier in wanted])
        for pointer, identifier in wanted:
            if identifier not in found:
                raise NotFound(f"there is no evaluation {identifier}", pointer=pointer)
        return Runs.align([found[identifier] for _, identifier in wanted], "/baseline")

    async def _paired(self, project: str, definition: Definition, estimands: Sequence[Estimand], runs: Runs) -> Runs:
        """The runs with what the rules need of their samples."""
        # What is a matrix of weights or comes in groups is looked at as it is.
        independent = all(record.samples_independent for record in runs.records)
        mode = PairingMode.AUTO if independent else PairingMode.FALSE
        scored = [
            (estimand.text, rule.demand.needs_baseline)
            for rule, estimand in zip(definition.rules, estimands, strict=True)
            if estimand.scored
        ]
        if not scored:
            return runs.pair(await read_labels(self.labels, project, runs.records), mode)
        # The baseline's are needed only where it is compared by them.
        metric, compared = next((one for one in scored if one[1]), scored[0])
        looked_at = runs.records if compared else runs.records[:1]
        kept = await read_outputs(self.labels, project, looked_at, metric, pointers=("/evaluation", "/baseline"))
        if len(looked_at) < len(runs):
            kept = KeptSamples((await read_labels(self.labels, project, runs.records)).labels, kept.outputs)
        return runs.pair(kept, mode)


def _run(record: EvaluationRecord) -> CheckedRun:
    return CheckedRun(
        id=record.id,
        model=record.model,
        dataset=record.dataset,
        matrix_digest=f"{seed_of(record.labels, record.counts):016x}",
    )


def _missing(name: str, version: int | None = None) -> NotFound:
    return NotFound(f"there is no gate {name!r}" + ("" if version is None else f" with version {version}"))
