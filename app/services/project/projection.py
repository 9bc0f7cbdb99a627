"""What metrics would be at other class shares, if how each class is predicted stayed as it is (label shift)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar
from uuid import UUID

import numpy as np

from app.kernel.matrix.prevalence import sweep_shares
from app.kernel.numerics.arrays import Array
from app.services.estimands import Estimand
from app.services.json_values import number, numbers
from app.services.project.answers import ProjectedValue, Projection, ProjectionDesign, SampleDesign, SweptClass, Values
from app.services.project.projected_matrix import MatrixRun
from app.services.project.projected_samples import SampleRun
from app.services.project.scenarios import Projectable, ProjectedLimits, Scenario, Simulation, Sweep
from app.services.project.shares import ClassSizes, named_shares, refused
from app.services.runs.aligned import Runs

Answered = TypeVar("Answered")


@dataclass(frozen=True, slots=True)
class Part:
    """Estimands that are computed from the same: the matrix of a run, or its samples."""

    estimands: Sequence[Estimand]
    run: Projectable


class ProjectedRun:
    """One run in one scenario: matrix metrics from its matrix, metrics of probabilities from its samples.

    Where probabilities are re-calibrated decisions change with them, and everything comes from the samples.

    Args:
        runs: One run, with its samples when an estimand is ``scored`` or probabilities are to be re-calibrated.
        estimands: What is asked for.
        scenario: At which shares.
    """

    def __init__(self, runs: Runs, estimands: Sequence[Estimand], scenario: Scenario) -> None:
        self.runs, self.estimands, self.scenario = runs, estimands, scenario
        self.classes = ClassSizes(runs.labels, runs.counts[0].sum(axis=1))
        self._simulation = Simulation(scenario.level, runs.seed(scenario.seed), scenario.draws)

    @property
    def identifier(self) -> UUID:
        """Of the evaluation."""
        return self.runs.records[0].id

    def parts(self, points: int) -> list[Part]:
        """What each estimand is computed from, for limits at so many shares.

        Raises:
            InvalidInput: the old shares make no sense, or scores are to be re-calibrated.
        """
        sampled = [one for one in self.estimands if self.scenario.recalibrate or one.scored]
        others = [one for one in self.estimands if one not in sampled]
        parts = [Part(others, MatrixRun(self.runs, self._simulation, points=points))] if others else []
        return [*parts, Part(sampled, self._sample_run(sampled, points))] if sampled else parts

    def _sample_run(self, estimands: Sequence[Estimand], points: int) -> SampleRun:
        old = None
        if self.scenario.recalibrate:
            old = named_shares(self.classes, self.scenario.old_prevalence or {}, "/old_prevalence")
            if (old == 0).any():
                label = self.classes.labels[int(np.argmin(old))]
                raise refused(
                    "/old_prevalence", "no_samples", f"expected the share of {label!r} that probabilities are fitted to"
                )
        return SampleRun(self.runs, estimands, self._simulation, points=points, recalibrated_from=old)

    def by_label(self, shares: Array) -> dict[str, float]:
        """Shares (K) by class."""
        return dict(zip(self.classes.labels, shares.tolist(), strict=True))

    def design(self, parts: Sequence[Part], prevalence: str) -> ProjectionDesign:
        """How intervals come about: of matrix metrics, and of metrics of probabilities beside them."""
        first, *others = (part.run.design for part in parts)
        samples = SampleDesign(others[0].method, others[0].draws) if others else None
        return replace(first, prevalence=prevalence, samples=samples)

    def notes(self, parts: Sequence[Part]) -> list[str]:
        """What is assumed, and what to be careful about."""
        notes = ["It is assumed that how each class is predicted does not depend on how frequent it is."]
        still = [estimand.text for estimand in self.estimands if estimand.insensitive]
        if still and not self.scenario.recalibrate:
            notes.append(f"Prevalence does not move {', '.join(still)}.")
        return list(dict.fromkeys([*notes, *(note for part in parts for note in part.run.notes)]))


def at_shares(run: ProjectedRun, prevalence: Mapping[str, float]) -> Projection:
    """Values and limits at given shares; equal ones are those of a balanced test set.

    Raises:
        InvalidInput: the shares make no sense for this run.
    """
    shares = named_shares(run.classes, prevalence, "/prevalence")
    worth, parts = run.scenario.samples, run.parts(1)
    metrics = _metrics(parts, shares[None], lambda values: number(values[0]), worth)
    return Projection(
        evaluation=run.identifier,
        prevalence=run.by_label(shares),
        prevalence_samples=worth,
        metrics=in_order(run.estimands, metrics),
        design=run.design(parts, "given" if worth is None else "uncertain"),
        notes=run.notes(parts),
    )


def swept(run: ProjectedRun, sweep: Sweep) -> Projection:
    """Values and limits with one class from rare to frequent.

    Raises:
        InvalidInput: there is no such class, or the data have no samples of it or of another.
        OutOfReach: too many samples for so many points.
    """
    index = run.classes.index(sweep.label, "/sweep/class")
    grid = np.linspace(sweep.start, sweep.end, sweep.steps)
    actual = run.classes.actual
    if np.delete(actual, index).sum() == 0 or (actual[index] == 0 and sweep.end > 0):
        raise refused("/sweep/class", "no_samples", "expected samples of this class and of another")
    parts = run.parts(len(grid))
    metrics = _metrics(parts, sweep_shares(actual, index, grid), numbers)
    return Projection(
        evaluation=run.identifier,
        sweep=SweptClass(label=sweep.label, start=sweep.start, end=sweep.end, steps=sweep.steps),
        grid=grid.tolist(),
        metrics=in_order(run.estimands, metrics),
        design=run.design(parts, "given"),
        notes=run.notes(parts),
    )


def _metrics(
    parts: Sequence[Part], shares: Array, written: Callable[[Array], Values], worth: float | None = None
) -> dict[str, ProjectedValue]:
    """By name everything at shares (G, K); ``written`` makes an answer of values (G)."""
    found = {}
    for part in parts:
        observed, values = part.run.observed(part.estimands), part.run.values(part.estimands, shares)
        limits: Sequence[ProjectedLimits | None] = part.run.limits(part.estimands, shares, worth) or [None] * len(
            values
        )
        for estimand, own, at, ends in zip(part.estimands, observed, values, limits, strict=True):
            for place, name in enumerate(estimand.names):
                low = None if ends is None else written(ends.low[:, place])
                high = None if ends is None else written(ends.high[:, place])
                found[name] = ProjectedValue(written(at[:, place]), low, high, number(own[place]))
    return found


def in_order(estimands: Sequence[Estimand], found: Mapping[str, Answered]) -> dict[str, Answered]:
    """By the names of the values as they were asked for."""
    return {name: found[name] for estimand in estimands for name in estimand.names}
