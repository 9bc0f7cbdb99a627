"""Questions about an evaluation at another class prevalence."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Self
from uuid import UUID

from app.domain.errors import Fault, InvalidInput, NeedsScores, NoSamples, NotForKind, NotFound
from app.domain.evaluation import EvaluationRecord, Named
from app.domain.expressions.conditions import Slice
from app.domain.inputs.labels import unknown_label
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.samples import Samples
from app.kernel.matrix.prevalence import crossings, sweep_shares
from app.kernel.metrics.card import Task
from app.kernel.metrics.expression import needs_counts
from app.kernel.numerics.arrays import Array
from app.services.estimands import Estimand, parse_estimands, pointer_to
from app.services.ports import EvaluationStore
from app.services.processes.compute import ComputePool
from app.services.project.prevalence_estimate import PrevalenceEstimate, Unlabelled, estimate_prevalence
from app.services.project.projection import (
    ProjectedRun,
    Projection,
    Scenario,
    Sweep,
    at_shares,
    swept,
    within_ranges,
)
from app.services.project.simulator import Simulated, simulated
from app.services.runs.aligned import Runs
from app.services.runs.pairing import KeptSamples
from app.services.sliced import sliced_store
from app.services.stored import identified, inputs_of_all, refuse_kind, unkept_record

# Shares at which two runs are looked at; fewer where all samples are passed over at each.
_POINTS, _FEWEST_POINTS = 2001, 51


def changes_of_place(run: ProjectedRun, sweep: Sweep, against: ProjectedRun) -> dict[str, list[float]]:
    """Shares of the swept class at which another run changes places with this one, by the name of each value.

    Raises:
        InvalidInput: a class has samples in one run only.
        OutOfReach: too many samples.
    """
    shares = run.classes.actual
    if ((shares > 0) != (against.classes.actual > 0)).any():
        raise InvalidInput.at("/against", "no_samples", "expected a run that has samples of the same classes")
    index = run.classes.index(sweep.label, "/sweep/class")
    found: dict[str, list[float]] = {}
    for estimand in run.estimands:
        points = _points(run, against, estimand)
        still = estimand.insensitive and not run.scenario.recalibrate
        for place, name in enumerate(estimand.names):
            gap = _gap(run, against, estimand, place, lambda grid: sweep_shares(shares, index, grid))
            found[name] = [] if still else crossings(gap, low=sweep.start, high=sweep.end, points=points)
    return found


def _gap(
    mine: ProjectedRun, theirs: ProjectedRun, estimand: Estimand, place: int, shares_at: Callable[[Array], Array]
) -> Callable[[Array], Array]:
    """From shares (G) of the swept class to by how much the first run is better."""

    def gap(grid: Array) -> Array:
        first, second = (run.values(estimand, shares_at(grid))[:, place] for run in (mine, theirs))
        if estimand.preference is not None:
            first, second = estimand.preference.score(first), estimand.preference.score(second)
        difference: Array = first - second
        return difference

    return gap


def _points(mine: ProjectedRun, theirs: ProjectedRun, estimand: Estimand) -> int:
    """At how many shares both runs are looked at."""
    values = sum(len(one.names) for one in mine.sharing_time_with(estimand))
    affordable = min(run.most_points(estimand) for run in (mine, theirs)) // (2 * values)
    return max(_FEWEST_POINTS, min(_POINTS, affordable))


def projected(runs: Sequence[Runs], estimands: Sequence[Estimand], scenario: Scenario) -> Projection:
    """A run at another class prevalence, and, with a sweep, where a second one changes places with it.

    Raises:
        InvalidInput: the shares make no sense for this run.
        OutOfReach: too many samples for so many points.
    """
    for one, estimand in product(runs, estimands):
        asked = [each.text for each in estimands]
        one.refuse_unknown_slices(estimand.expression, pointer_to("/metrics", asked, estimand.text))
    run, *others = (ProjectedRun(one, estimands, scenario) for one in runs)
    if scenario.prevalence_range is not None:
        return within_ranges(run, scenario.prevalence_range)
    if scenario.sweep is None:
        return at_shares(run, scenario.prevalence or {})
    found = swept(run, scenario.sweep)
    for against in others:
        changes = changes_of_place(run, scenario.sweep, against)
        found = replace(found, against=against.identifier, crossings=changes)
    return found


def _projected(
    records: Sequence[EvaluationRecord],
    outputs: Mapping[UUID, Samples],
    estimands: Sequence[Estimand],
    scenario: Scenario,
) -> Projection:
    aligned, kept = Runs.align(records, "/against"), KeptSamples(outputs)
    return projected([aligned.alone(index, kept) for index in range(len(aligned))], estimands, scenario)


def project_input(source: MatrixInput, scenario: Scenario) -> Projection:
    """Metrics of an input that is not saved, at another class prevalence.

    Raises:
        InvalidExpression, InvalidInput, OutOfReach: as `WhatIfService.project` does.
    """
    record = unkept_record(source)
    estimands = _projectable(record, scenario)
    if _needs_outputs(estimands, scenario) and (source.samples is None or source.samples.outputs is None):
        raise NeedsScores(_needed(source.kind), pointer="/input/kind")
    outputs = {} if source.samples is None else {record.id: source.samples}
    return replace(_projected([record], outputs, estimands, scenario), evaluation_id=None)


def _needed(kind: str) -> str:
    return f"expected probabilities or scores, which metrics of probabilities and re-calibration need, got {kind}"


def _projectable(record: EvaluationRecord, scenario: Scenario) -> tuple[Estimand, ...]:
    task, decisions = record.judged
    if task is Task.DECISIONS:
        if scenario.recalibrate:
            raise NotForKind("decisions alone have no probabilities that could be fitted", pointer="/recalibrate")
    else:
        refuse_kind(record, "another class prevalence")
    estimands = parse_estimands(
        scenario.metrics,
        record.labels,
        record.positive,
        inputs=inputs_of_all([record]),
        task=task,
        decisions=decisions,
        sliceable=True,
    )
    _check_projectable(scenario.metrics, estimands)
    return estimands


def _needs_outputs(estimands: Sequence[Estimand], scenario: Scenario) -> bool:
    return scenario.recalibrate or any(estimand.task is None and estimand.scored for estimand in estimands)


def _needs_samples(estimands: Sequence[Estimand], record: EvaluationRecord) -> bool:
    return record.is_grouped or record.is_weighted or any(one.is_of_slices for one in estimands)


class WhatIfService:
    """Answers what would be; nothing is saved."""

    def __init__(self, store: EvaluationStore, *, compute: ComputePool) -> None:
        self._store = store
        self._compute = compute

    def of_slice(self, where: Slice) -> Self:
        """Return the same for a slice of each evaluation."""
        return type(self)(sliced_store(self._store, where), compute=self._compute)

    async def project(self, project: str, identifier: UUID, scenario: Scenario, against: Named | None) -> Projection:
        """Metrics at another class prevalence.

        Raises:
            NotFound: an evaluation does not exist.
            InvalidExpression: a metric is none.
            InvalidInput: the shares make no sense for this run, or a metric needs real numbers of samples.
            IncomparableLabels: the run to be compared with has other classes.
            NoSamples: metrics of probabilities are asked for where none are kept.
            OutOfReach: too many samples for so many points.
        """
        records, pointers = [await self._get(project, identifier)], (None, "/against")
        if against is not None:
            (other,) = await identified(self._store, project, [against], ["/against"])
            records.append(await self._get(project, other, "/against"))
        estimands = _projectable(records[0], scenario)
        outputs: dict[UUID, Samples] = {}
        if _needs_outputs(estimands, scenario):
            for record, pointer in zip(records, pointers, strict=False):
                outputs[record.id] = await self._samples(project, record, pointer)
        elif _needs_samples(estimands, records[0]):
            kept = [(one.id, await self._store.read_samples(project, one.id)) for one in records]
            outputs = {one: samples for one, samples in kept if samples is not None}
        return await self._compute.run(partial(_projected, records, outputs, estimands, scenario))

    async def simulate(self, project: str, identifier: UUID, label: str | None) -> tuple[Sequence[str], int, Simulated]:
        """Return all classes, the place of one, and its rates at every threshold, or by decisions as they were made.
        Without a label it is the positive class, or the one with the lowest recall.

        Raises:
            NotFound: there is no such evaluation.
            NotForKind: it is none of classes.
            InvalidInput: it has no such class, or no sample of it, or none of another class.
        """
        record = await self._get(project, identifier)
        refuse_kind(record, "a simulator of thresholds and costs")
        source = record
        place = _class_to_simulate(source, label)
        anew = source.is_scored and len(source.labels) == 2 and not source.is_weighted
        samples = await self._store.read_samples(project, identifier) if anew else None
        kept = samples is not None and samples.outputs is not None
        source = replace(source, samples=samples) if kept else source
        return source.labels, place, await self._compute.run(partial(simulated, source, place, samples=kept))

    async def estimate(self, project: str, identifier: UUID, seen: Unlabelled) -> PrevalenceEstimate:
        """Class prevalence where the model is used.

        Raises:
            NotFound: the evaluation does not exist.
            InvalidInput: the predictions do not fit its classes.
            IncomparableRuns: the shares cannot be told from them.
        """
        record = await self._get(project, identifier)
        refuse_kind(record, "shares of classes")
        return await self._compute.run(partial(estimate_prevalence, record, seen))

    async def _get(self, project: str, identifier: UUID, pointer: str | None = None) -> EvaluationRecord:
        record = await self._store.get(project, identifier)
        if record is None:
            raise NotFound(f"there is no evaluation {identifier}", pointer=pointer)
        return record

    async def _samples(self, project: str, record: EvaluationRecord, pointer: str | None = None) -> Samples:
        """Probabilities or scores of a run."""
        if not record.is_scored:
            raise NeedsScores(_needed(record.kind), pointer=pointer)
        samples = await self._store.read_samples(project, record.id)
        if samples is None or samples.outputs is None:
            raise NoSamples(f"the samples of {record.id} were not saved", pointer=pointer)
        return samples


def _class_to_simulate(source: MatrixInput, label: str | None) -> int:
    """Return the place of a class that has samples, as others have."""
    sizes = source.counts.sum(axis=1)
    if label is not None and label not in source.labels:
        raise unknown_label("class", label, source.labels)
    with_samples = [place for place, size in enumerate(sizes) if 0 < size < sizes.sum()]
    place = source.positive if label is None else source.labels.index(label)
    if label is None and place not in with_samples:
        recalls = {one: source.counts[one, one] / sizes[one] for one in with_samples}
        place = min(recalls, key=recalls.__getitem__, default=None)
    if place is None or place not in with_samples:
        raise InvalidInput.at("class", "no_samples", "expected a class that has samples, and others that have some")
    return place


def _check_projectable(metrics: Sequence[str], estimands: Sequence[Estimand]) -> None:
    """Another class prevalence leaves no real numbers of samples, so what depends on these cannot be projected. Raises
    InvalidInput: such a metric is asked for.
    """
    faults = [
        Fault(
            pointer_to("/metrics", metrics, estimand.text),
            "needs_counts",
            f"expected metrics that can be projected: {estimand.text} depends on the number of samples, and at "
            "another class prevalence there are weights instead",
        )
        for estimand in estimands
        if needs_counts(estimand.expression)
    ]
    if faults:
        raise InvalidInput(faults)
