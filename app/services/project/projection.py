"""What metrics would be at other class shares, if how each class is predicted stayed as it is (label shift)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from uuid import UUID

import numpy as np

from app.domain.errors import InvalidInput, OutOfReach
from app.domain.options import Sampling
from app.kernel.matrix.prevalence import sweep_shares
from app.kernel.metrics.expression import is_biased
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.draws import Alternative
from app.services.estimands import Estimand
from app.services.estimates.class_shares import ClassShares
from app.services.estimates.estimate import Estimates, LimitSettings, NoLimits
from app.services.estimates.estimates import estimate_at, values_at_shares
from app.services.estimates.methods import shifted_matrix, shifted_samples, shifted_units
from app.services.estimates.run_data import RunData
from app.services.estimates.warnings_of_matrix import caution_findings
from app.services.json_values import number, numbers
from app.services.project.answers import ProjectedValue, Projection, ProjectionDesign, SampleDesign, SweptClass, Values
from app.services.project.scenarios import Marked, Scenario, Sweep
from app.services.project.shares import ClassSizes, named_shares, refused
from app.services.runs.aligned import Runs

# Shares closer than this are one.
_SAME_SHARE = 1e-12
# At which values of a matrix are looked at.
_MOST_POINTS = 1_000_000
_NOT_FOR_GROUPS = (
    "No intervals of what prevalence moves: the samples come in groups, and intervals that treat them as "
    "independent would be too narrow."
)
_FITTED = (
    "Probabilities are fitted to the shares, p'(c|x) proportional to p(c|x) new_c / old_c, and decisions are made "
    "again from them. This is right as far as the probabilities were calibrated."
)


class ProjectedRun:
    """One run in one scenario: matrix metrics from its matrix, metrics of probabilities from its samples.

    Where probabilities are re-calibrated decisions change with them, and everything comes from the samples.

    Args:
        runs: One run, with its samples when an estimand is ``scored`` or probabilities are to be re-calibrated.
        estimands: What is asked for.
        scenario: At which shares.
    """

    def __init__(self, runs: Runs, estimands: Sequence[Estimand], scenario: Scenario) -> None:
        self.estimands, self.scenario = estimands, scenario
        self.identifier: UUID = runs.records[0].id
        self._run = RunData(runs.source())
        self.classes = ClassSizes(runs.labels, self._run.source.counts.sum(axis=1).astype(np.float64))
        self._settings = LimitSettings(
            level=scenario.level,
            seed=scenario.seed,
            sampling=Sampling(draws=scenario.draws),
            alternative=scenario.alternative,
        )

    @cached_property
    def _calibrated_to(self) -> Array | None:
        """The shares that probabilities are fitted from.

        Raises:
            InvalidInput: the old shares make no sense, or scores are to be re-calibrated.
        """
        if not self.scenario.recalibrate:
            return None
        old = named_shares(self.classes, self.scenario.old_prevalence or {}, "/old_prevalence")
        if (old == 0).any():
            label = self.classes.labels[int(np.argmin(old))]
            raise refused(
                "/old_prevalence", "no_samples", f"expected the share of {label!r} that probabilities are fitted to"
            )
        if not self._run.scores.are_probabilities:
            raise InvalidInput.at(
                "/recalibrate", "needs_probabilities", "expected an evaluation of probabilities, not of scores"
            )
        if isinstance(self._run.source.facts.get("threshold"), list):
            raise InvalidInput.at(
                "/recalibrate", "mixed_thresholds", "expected one threshold, the folds of the run have several"
            )
        return old

    def shares(self, points: Array, *, in_all: int | None = None) -> ClassShares:
        """Shares (G, K) of this scenario; ``in_all`` says at how many limits will be asked for in the end."""
        return ClassShares(points, self.scenario.samples, self._calibrated_to, in_all)

    def observed(self, estimand: Estimand) -> Array:
        """Values (V) as the run is."""
        return self._run.values(estimand)

    def values(self, estimand: Estimand, points: Array) -> Array:
        """Values (G, V) at shares (G, K).

        Raises:
            OutOfReach: too many samples for so many points.
        """
        shares = self.shares(points)
        self._refuse_too_many([estimand], shares)
        return values_at_shares(estimand, self._run, shares)

    def estimates(self, estimands: Sequence[Estimand], shares: ClassShares) -> list[list[Estimates]]:
        """For every estimand its values with their limits at each point.

        Raises:
            OutOfReach: too many samples for so many points.
        """
        self._refuse_too_many(estimands, shares)
        return estimate_at(estimands, self._run, shares, self._settings)

    def _from_samples(self, estimand: Estimand) -> bool:
        return estimand.scored or self.scenario.recalibrate

    def sharing_time_with(self, estimand: Estimand) -> list[Estimand]:
        """Which estimands are computed from the same as this one: the matrix, or the samples."""
        return [one for one in self.estimands if self._from_samples(one) is self._from_samples(estimand)]

    def most_points(self, estimand: Estimand) -> int:
        """At how many shares values can be had in reasonable time."""
        if not self._from_samples(estimand):
            return _MOST_POINTS
        of_decisions = self._run.source.task is not None
        return shifted_units.most_points(self._run) if of_decisions else shifted_samples.most_points(self._run)

    def _refuse_too_many(self, estimands: Sequence[Estimand], shares: ClassShares) -> None:
        most = min(self.most_points(estimand) for estimand in estimands)
        if len(shares) > most:
            raise OutOfReach(
                f"expected at most {most} points for {self._run.units.n_units} samples, got {len(shares)}: "
                "metrics of probabilities pass over all samples at every point"
            )

    def by_label(self, shares: Array) -> dict[str, float]:
        """Shares (K) by class."""
        return dict(zip(self.classes.labels, shares.tolist(), strict=True))

    def design(self, shares: ClassShares, prevalence: str) -> ProjectionDesign:
        """How intervals come about: of matrix metrics, and of metrics of probabilities beside them."""
        of_samples = [shares.from_samples(estimand) for estimand in self.estimands]
        designs = [] if all(of_samples) else [self._design_of_matrix(shares)]
        if any(of_samples):
            designs.append(self._design_of_samples(shares))
        first, *others = designs
        beside = SampleDesign(others[0].method, others[0].draws) if others else None
        side = self.scenario.alternative
        one_sided = None if side is Alternative.TWO_SIDED else side
        return replace(first, prevalence=prevalence, samples=beside, alternative=one_sided)

    @property
    def _is_independent(self) -> bool:
        return self._run.has_sampling_error and not (self._run.source.is_grouped or self._run.lacks_weights)

    def _design_of_matrix(self, shares: ClassShares) -> ProjectionDesign:
        if not self._is_independent:
            return ProjectionDesign(level=self.scenario.level, draws=0)
        form = shifted_matrix.simulation(self._run, shares, self._settings)
        return ProjectionDesign(
            level=form.level,
            draws=form.draws or 0,
            method=form.method,
            class_counts="fixed",
            prior=form.prior,
            seed=form.seed,
        )

    def _design_of_samples(self, shares: ClassShares) -> ProjectionDesign:
        of_decisions = self._run.source.task is not None
        resampling = shifted_units.resampling if of_decisions else shifted_samples.resampling
        form = resampling(self._run, shares, self._settings)
        draws = form.draws or 0 if self._is_independent else 0
        return ProjectionDesign(
            level=form.level,
            draws=draws,
            method=form.method,
            class_counts="fixed",
            seed=form.seed if draws else None,
        )

    def notes(self, shares: ClassShares) -> list[str]:
        """What is assumed, and what to be careful about."""
        notes = ["It is assumed that how each class is predicted does not depend on how frequent it is."]
        still = [estimand for estimand in self.estimands if shares.leave(estimand)]
        if still:
            notes.append(f"Prevalence does not move {', '.join(one.text for one in still)}.")
        of_samples = [estimand for estimand in self.estimands if shares.from_samples(estimand)]
        if self._run.has_sampling_error and self._run.source.is_grouped:
            notes += [_NOT_FOR_GROUPS] * (len(still) < len(self.estimands))
        else:
            notes += self._notes_of_matrix(shares) if len(of_samples) < len(self.estimands) else []
            notes += self._notes_of_samples(of_samples, shares) if of_samples else []
        return [*notes, _FITTED] if shares.calibrated_to is not None else notes

    def _notes_of_matrix(self, shares: ClassShares) -> list[str]:
        source = self._run.source
        if not self._run.has_sampling_error:
            return [f"No intervals: they need numbers of samples, and the matrix holds {source.content}."]
        if self._run.lacks_weights:
            return [f"No intervals: {NoLimits.NO_WEIGHTS}."]
        if not self._design_of_matrix(shares).draws:
            return [
                "No intervals of what prevalence moves: so many points and classes are too much to be simulated; ask "
                "for fewer points."
            ]
        counts = source.counts if self._run.weighted is None else self._run.weighted.samples
        return [finding.message for finding in caution_findings(counts, source.labels)]

    def _notes_of_samples(self, estimands: Sequence[Estimand], shares: ClassShares) -> list[str]:
        if not self._run.has_sampling_error and self._run.source.task is not None:
            return [f"No intervals: {NoLimits.NO_COUNTS}."]
        if not self._run.has_sampling_error or self._run.lacks_weights:
            return [f"No intervals: {NoLimits.NO_WEIGHTS}."]
        if not self._design_of_samples(shares).draws:
            return [
                "No intervals of what prevalence moves: so many samples and points are too much to be resampled; ask "
                "for fewer points."
            ]
        biased = [one.text for one in estimands if is_biased(one.expression) and not shares.leave(one)]
        if not biased:
            return []
        return [
            f"No intervals of {', '.join(biased)}: noise biases them to one side, and resampling adds the same bias "
            "again."
        ]


def at_shares(run: ProjectedRun, prevalence: Mapping[str, float]) -> Projection:
    """Values and limits at given shares; equal ones are those of a balanced test set.

    Raises:
        InvalidInput: the shares make no sense for this run.
    """
    at = named_shares(run.classes, prevalence, "/prevalence")
    shares = run.shares(at[None])
    return Projection(
        evaluation=run.identifier,
        prevalence=run.by_label(at),
        prevalence_samples=shares.worth,
        metrics=_metrics(run, shares, lambda values: number(values[0])),
        design=run.design(shares, "given" if shares.worth is None else "uncertain"),
        notes=run.notes(shares),
    )


def swept(run: ProjectedRun, sweep: Sweep) -> Projection:
    """Values and limits with one class from rare to frequent.

    Raises:
        InvalidInput: there is no such class, or the data have no samples of it or of another.
        OutOfReach: too many samples for so many points.
    """
    index = run.classes.index(sweep.label, "/sweep/class")
    actual = run.classes.actual
    observed, equal = float(actual[index] / actual.sum()), float(1.0 / np.count_nonzero(actual))
    grid = _grid(sweep, {Marked.OBSERVED: observed, Marked.EQUAL: equal})
    if np.delete(actual, index).sum() == 0 or (actual[index] == 0 and grid[-1] > 0):
        raise refused("/sweep/class", "no_samples", "expected samples of this class and of another")
    shares = run.shares(sweep_shares(actual, index, grid))
    return Projection(
        evaluation=run.identifier,
        sweep=SweptClass(
            label=sweep.label, start=sweep.start, end=sweep.end, steps=sweep.steps, observed=observed, equal=equal
        ),
        grid=grid.tolist(),
        metrics=_metrics(run, shares, numbers),
        design=run.design(shares, "given"),
        notes=run.notes(shares),
    )


def _grid(sweep: Sweep, marked: Mapping[Marked, float]) -> Array:
    """Shares (G) of the class, each once: exact ones replace the steps that differ from them by rounding only."""
    steps = np.linspace(sweep.start, sweep.end, sweep.steps)
    exactly = np.array([marked[one] if isinstance(one, Marked) else one for one in sweep.at])
    apart = np.abs(steps[:, None] - exactly).min(axis=1, initial=np.inf) > _SAME_SHARE
    return np.unique(np.concatenate([steps[apart], exactly]))


def _metrics(run: ProjectedRun, shares: ClassShares, written: Callable[[Array], Values]) -> dict[str, ProjectedValue]:
    """By name everything at shares (G, K); ``written`` makes an answer of values (G)."""
    found = {}
    for estimand, at in zip(run.estimands, run.estimates(run.estimands, shares), strict=True):
        own = run.observed(estimand)
        for place, name in enumerate(estimand.names):
            ones = [estimates[place] for estimates in at]
            value, low, high = np.array([(one.value, one.low, one.high) for one in ones]).T
            limited = [one for one in ones if one.reason is None]
            found[name] = ProjectedValue(
                written(value),
                written(low),
                written(high),
                number(own[place]),
                method=limited[0].method if limited else None,
                reason=None if limited or ones[0].reason is None else ones[0].reason.value,
            )
    return found
