"""A run known by its samples at other class shares: every class in another weight, and, if wanted, other probabilities.

Under label shift this is exact: a sample of a class stands for as many as the class has where the model is used.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from app.domain.errors import InvalidInput, OutOfReach
from app.domain.inputs.probabilities import decide, decide_by_threshold
from app.domain.inputs.samples import DecidedBy
from app.kernel.matrix.prevalence import recalibrate
from app.kernel.metrics.expression import Subject, is_biased
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.losses import Codes
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.design import ClassCounts
from app.kernel.uncertainty.draws import summarise
from app.kernel.uncertainty.of_samples.resampling import Plan, part_of, plan, resamples, subject_of
from app.services.estimands import Estimand
from app.services.project.answers import ProjectionDesign
from app.services.project.projected_matrix import spread_shares
from app.services.project.scenarios import NOT_FOR_GROUPS, ProjectedLimits, Simulation
from app.services.runs.aligned import Runs

# Probabilities passed over at all points together, and at a time.
MOST_ENTRIES = 100_000_000
_AT_ONCE = 1 << 20


class SampleRun:
    """Metrics of samples; intervals from a bootstrap within the classes.

    Args:
        runs: One run, with its probabilities or scores.
        estimands: What will be asked for.
        simulation: Level, seed and draws.
        points: At how many shares limits will be asked for.
        recalibrated_from: The shares (K) that the probabilities are calibrated to, when they are to be fitted to every
            point; None leaves them as they are.

    Raises:
        InvalidInput: scores are to be re-calibrated, which only probabilities can be.
    """

    def __init__(
        self,
        runs: Runs,
        estimands: Sequence[Estimand],
        simulation: Simulation,
        *,
        points: int,
        recalibrated_from: Array | None = None,
    ) -> None:
        (record,), (of_samples,) = runs.records, runs.scored
        (scores, self._predicted), weights = of_samples.run, of_samples.weights
        self._scores: Scores = scores if weights is None else scores.with_weights(weights)
        if recalibrated_from is not None and not self._scores.are_probabilities:
            raise InvalidInput.at(
                "/recalibrate", "needs_probabilities", "expected an evaluation of probabilities, not of scores"
            )
        if isinstance(record.extra.get("threshold"), list) and recalibrated_from is not None:
            raise InvalidInput.at(
                "/recalibrate", "mixed_thresholds", "expected one threshold, the folds of the run have several"
            )
        self._record, self._simulation, self._old = record, simulation, recalibrated_from
        self._positive = runs.positive or 0
        self._made: Plan | None = None
        self._countable = record.counts_independent
        if self._countable:
            self._made = plan(self._scores.n_samples, self._scores.n_classes * points, simulation.draws)
        draws = 0 if self._made is None else self._made.draws
        self.design = ProjectionDesign(
            level=simulation.level,
            draws=draws,
            method="bootstrap",
            class_counts="fixed",
            seed=simulation.seed if draws else None,
        )
        self.most_points = max(MOST_ENTRIES // self._scores.probabilities.size, 1)
        self.notes = self._notes([estimand.text for estimand in estimands if is_biased(estimand.expression)])

    def _notes(self, biased: Sequence[str]) -> tuple[str, ...]:
        notes = []
        if self._record.is_grouped:
            notes.append(NOT_FOR_GROUPS)
        elif not self._countable:
            notes.append("No intervals: the sampling error of weighted samples is not known.")
        elif self._made is None:
            notes.append("No intervals: so many samples and points are too much to be resampled; ask for fewer points.")
        if biased and self._made is not None:
            notes.append(
                f"No intervals of {', '.join(biased)}: noise moves them to one side, and resampling does so once more."
            )
        if self._old is not None:
            notes.append(
                "Probabilities are fitted to the shares, p'(c|x) proportional to p(c|x) new_c / old_c, and decisions "
                "made anew by them. This is as good as the probabilities were calibrated."
            )
        return tuple(notes)

    def observed(self, estimands: Sequence[Estimand]) -> list[Array]:
        """Values (V) of every estimand as the run is, with the probabilities and decisions that it has."""
        subject = subject_of(self._scores, self._predicted, self._scores.weights)
        with silently():
            return [estimand.values(np.asarray(estimand.functional(subject))) for estimand in estimands]

    def values(self, estimands: Sequence[Estimand], shares: Array) -> list[Array]:
        """Values (G, V) of every estimand at shares (G, K).

        Raises:
            OutOfReach: too many samples for so many points.
        """
        if len(shares) > self.most_points:
            raise OutOfReach(
                f"expected at most {self.most_points} points for {self._scores.n_samples} samples, got {len(shares)}: "
                "metrics of probabilities pass over all samples at every point"
            )
        observed = self.observed(estimands)
        found = [np.repeat(values[None], len(shares), axis=0) for values in observed]
        moving = [
            index for index, estimand in enumerate(estimands) if self._old is not None or not estimand.insensitive
        ]
        size = 1 if self._old is not None else max(1, _AT_ONCE // self._scores.probabilities.size)
        own = np.ones(self._scores.n_samples) if self._scores.weights is None else self._scores.weights
        for start in range(0, len(shares) if moving else 0, size):
            part = slice(start, start + size)
            run = self._run_at(shares[start])
            at_points = _AtPoint(run, own[None], self._factors(shares[part]))
            for index in moving:
                found[index][part] = at_points.values(estimands[index])
        return found

    def limits(
        self, estimands: Sequence[Estimand], shares: Array, worth: float | None = None
    ) -> list[ProjectedLimits] | None:
        """Limits (G, V) of every estimand at shares (G, K), which are worth so many samples; exact when None."""
        if self._made is None:
            return None
        estimates = self.values(estimands, shares)
        drawn = [np.empty((self._made.draws, *values.shape)) for values in estimates]
        spread = [
            one if worth is None else spread_shares(one, worth, self._made.draws, self._simulation.seed)
            for one in shares
        ]
        done = 0
        for chosen, base, batches in resamples(self._scores, self._made, self._simulation.seed, ClassCounts.FIXED):
            runs = [self._part(one, chosen) for one in shares]
            # What a subset is off the data is no sampling error of the data.
            shifts = [np.zeros(values.shape) for values in estimates]
            if base is not None:
                at_subset = self._at_points(estimands, runs, base[None], [one[None] for one in shares])
                shifts = [values - own[0] for values, own in zip(estimates, at_subset, strict=True)]
            for weights in batches:
                part = slice(done, done + len(weights))
                done = part.stop
                factors = [one[part] if one.ndim == 2 else one[None] for one in spread]
                found = self._at_points(estimands, runs, weights, factors)
                for values, computed, shift in zip(drawn, found, shifts, strict=True):
                    values[part] = computed + shift
        return [self._summarised(*each) for each in zip(estimands, drawn, estimates, strict=True)]

    def _summarised(self, estimand: Estimand, drawn: Array, estimate: Array) -> ProjectedLimits:
        found = ProjectedLimits.empty(estimate.shape)
        if is_biased(estimand.expression):
            return found
        for point, values in enumerate(estimate):
            summary = summarise(drawn[:, point], values, self._simulation.level)
            found.low[point], found.high[point] = summary.low, summary.high
        return found

    def _factors(self, shares: Array) -> Array:
        """By how much (..., K) every class has to be weighted for shares (..., K); the total stays."""
        weight = self._scores.actual
        wanted = shares / shares.sum(axis=-1, keepdims=True) * weight.sum()
        factors: Array = np.divide(wanted, weight, out=np.zeros_like(wanted), where=weight > 0)
        return factors

    def _run_at(self, shares: Array) -> tuple[Scores, Codes]:
        """Scores and decisions for shares (K)."""
        if self._old is None:
            return self._scores, self._predicted
        rows = recalibrate(self._scores.probabilities, self._old, shares)
        if self._record.extra.get("rule") == DecidedBy.THRESHOLD.value:
            threshold = float(self._record.extra["threshold"])
            codes = decide_by_threshold(rows[:, self._positive], threshold, self._positive)
        else:
            codes, _ = decide(rows)
        return Scores(self._scores.y, rows, self._scores.weights), codes.astype(np.intp)

    def _part(self, shares: Array, chosen: Codes | None) -> tuple[Scores, Codes]:
        scores, predicted = self._run_at(shares)
        return (scores, predicted) if chosen is None else (part_of(scores, chosen), predicted.take(chosen))

    def _at_points(
        self, estimands: Sequence[Estimand], runs: Sequence["_Run"], weights: Array, shares: Sequence[Array]
    ) -> list[Array]:
        """Values (d, G, V) of every estimand for weights (d, b), at each point with shares (1 or d, K)."""
        points = [_AtPoint(run, weights, self._factors(one)) for run, one in zip(runs, shares, strict=True)]
        columns = []
        for estimand in estimands:
            # Without other probabilities what prevalence does not move is the same everywhere.
            once = self._old is None and estimand.insensitive
            values = [point.values(estimand) for point in points[: 1 if once else None]]
            columns.append(np.stack(values * (len(points) if once else 1), axis=1))
        return columns


_Run = tuple[Scores, Codes]


class _AtPoint:
    """Samples with scores and decisions, in weights (d, n), every class by a factor (d or 1, K)."""

    def __init__(self, run: _Run, weights: Array, factors: Array) -> None:
        self._run, self._weights, self._factors = run, weights, factors

    @cached_property
    def _moved(self) -> Subject:
        return subject_of(*self._run, self._weights * self._factors.take(self._run[0].y, axis=-1))

    @cached_property
    def _still(self) -> Subject:
        return subject_of(*self._run, self._weights)

    def values(self, estimand: Estimand) -> Array:
        """Values (d, V); what prevalence does not move has one even where a class has no share."""
        with silently():
            return estimand.values(
                np.asarray(estimand.functional(self._still if estimand.insensitive else self._moved))
            )
