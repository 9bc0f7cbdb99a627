"""Runs compared on metrics that need the probabilities of the samples, alone or mixed with metrics of matrices.

What is a sum over the samples is compared by its covariance: DeLong's test for areas, the paired t test for mean
losses. Everything else is resampled, all paired runs in the same resamples.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, nan

import numpy as np
from numpy.typing import NDArray

from app.domain.evaluation import EvaluationRecord
from app.kernel.compare.drift import ChiSquared
from app.kernel.compare.joint import combine
from app.kernel.compare.linear import LinearRuns, hits_of, join_runs, linearised
from app.kernel.compare.many import cochran_q
from app.kernel.compare.replicates import DECIMALS, importance, permutation_p, replicate, variance_of
from app.kernel.matrix.labels import confusion_counts
from app.kernel.metrics.expression import is_biased
from app.kernel.numerics.arrays import Array
from app.kernel.samples.influence import Method
from app.kernel.uncertainty.auc import chi_squared_of
from app.kernel.uncertainty.design import generator, seed_of
from app.kernel.uncertainty.draws import summarise
from app.kernel.uncertainty.influence import Influences, Limits, Linearisation, limits
from app.kernel.uncertainty.resampling import Plan, Run, plan, subject_of
from app.services.estimands import Estimand, make_estimand
from app.services.json_values import Json, plain
from app.services.reasons import requested_values
from app.services.runs.contest import Contest, Terms
from app.services.runs.differences import (
    NO_LIMITS,
    NOTHING_VARIES,
    Test,
    linear_test,
    normal_tests,
    range_tests,
    share_test,
)
from app.services.runs.matrix_contest import FEWEST_PERMUTATIONS, PERMUTATIONS, MatrixContest
from app.services.runs.pairing import Bond, Pairing
from app.services.runs.scored_runs import ScoredRun

# Relative to the value, a deviation below this is rounding.
_NO_VARIANCE = 1e-12
# Probabilities passed over in all permutations together: some seconds.
_PERMUTED_ENTRIES = 40_000_000


@dataclass(frozen=True, slots=True)
class OwnInterval:
    """The value of one run alone, NaN limits where there are none, and how they were made."""

    value: float
    low: float = nan
    high: float = nan
    method: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Value:
    """One value in closed form; a share of the samples is the accuracy of matrices that are right where it counts."""

    runs: LinearRuns
    limits: tuple[Limits | None, ...]
    counts: Array | None = None
    pairing: Pairing | None = None


class ScoredContest(Contest):
    """Runs of which the probabilities or scores of the samples are known.

    Args:
        runs: R.
        counts: (R, K, K), their matrices.
        estimands: Each with a metric of probabilities in it.
        pairing: How the runs belong together.
        terms: What is asked for.
        records: Of the same runs.
        among: How many runs share the time that is spent, these included.
    """

    def __init__(
        self,
        runs: Sequence[ScoredRun],
        counts: Array,
        estimands: Sequence[Estimand],
        pairing: Pairing,
        terms: Terms,
        records: Sequence[EvaluationRecord],
        *,
        among: int | None = None,
    ) -> None:
        super().__init__(counts, estimands, pairing, terms)
        self.records = records
        self._sharing = among or len(runs)
        self.whole = tuple(runs)
        self.runs = self.whole
        if pairing.rows is not None:
            self.runs = tuple(
                ScoredRun(run.part(rows)) if _reordered(rows, run) else run
                for run, rows in zip(self.whole, pairing.rows, strict=True)
            )

    @cached_property
    def values(self) -> list[Array]:
        """Values (R, V) of each estimand, at the common shares where prevalence moves it."""
        shares = self.shares if self.projectable else None
        return self.comparable(self.observed if shares is None else self._measured(shares))

    @cached_property
    def observed(self) -> list[Array]:
        """Values (R, V) of each estimand as the runs are."""
        return self._measured(None)

    def _measured(self, shares: Array | None) -> list[Array]:
        by_run = [run.values(self.estimands, shares) for run in self.runs]
        return [np.stack(values) for values in zip(*by_run, strict=True)]

    @cached_property
    def linear(self) -> dict[int, tuple[_Value, ...]]:
        """By estimand the values that have a closed form at the prevalence that they are compared at."""
        influences = [Influences(run.run.scores) for run in self.runs]
        found = {}
        for index, estimand in enumerate(self.estimands):
            if self.is_reprojected(estimand):
                continue
            parts: list[list[Linearisation]] = []
            for of in influences:
                values = linearised(estimand.expression, of)
                if values is None:
                    break
                parts.append(values)
            if len(parts) == len(influences):
                found[index] = tuple(self._joined(value) for value in zip(*parts, strict=True))
        return found

    def _joined(self, parts: Sequence[Linearisation]) -> _Value:
        truths = [run.run.scores.y for run in self.runs]
        same_items = self.pairing.bond is Bond.TEST_SET
        runs = join_runs(parts, truths, paired=self.pairing.paired, same_items=same_items)
        alone = tuple(limits(part, self.terms.level) for part in parts)
        if any(part.method is not Method.WILSON for part in parts) or not np.isfinite(runs.values).all():
            return _Value(runs, alone)
        size = self.counts.shape[-1]
        decided = [
            np.where(hits_of(part) > 0, y, (y + 1) % size).astype(np.int64)
            for part, y in zip(parts, truths, strict=True)
        ]
        counts = np.stack([confusion_counts(y, codes, size) for y, codes in zip(truths, decided, strict=True)])
        joint = combine(truths[0].astype(np.int64), np.stack(decided), size) if self.pairing.paired else None
        return _Value(runs, alone, counts.astype(np.float64), replace(self.pairing, joint=joint))

    @cached_property
    def resampled(self) -> list[int]:
        """The estimands that have to be resampled."""
        return [
            index
            for index, estimand in enumerate(self.estimands)
            if index not in self.linear and self.is_comparable(estimand)
        ]

    @cached_property
    def plan(self) -> Plan | None:
        """How many resamples of what; None when even a few are too many."""
        largest = max(run.run.scores.n_samples for run in self.runs)
        return plan(largest, self.counts.shape[-1] * self._sharing, self.terms.draws)

    @cached_property
    def drawn(self) -> list[Array | None]:
        """Draws (D, R, V) of each estimand, joint where the runs are paired."""
        found: list[Array | None] = [None] * len(self.estimands)
        for index, values in self.linear.items():
            draws = [self._draw(value, seed_of("normal", index, place)) for place, value in enumerate(values)]
            found[index] = np.stack(draws, axis=-1).round(DECIMALS)
        if self.plan is None:
            return found
        for chosen, shares in self._groups():
            for index, replicates in zip(chosen, self._replicates(chosen, self.plan, shares), strict=True):
                # Equal values reached by other sums differ by rounding.
                found[index] = np.round(replicates, DECIMALS)
        return found

    def _draw(self, value: _Value, seed: int) -> Array:
        """Draws (D, R) of one value in closed form; a share is drawn as the accuracy that it is."""
        if value.counts is not None and value.pairing is not None:
            accuracy = make_estimand("accuracy", self.records[0].labels, None)
            terms = replace(self.terms, seed=seed_of(self.terms.seed, seed))
            drawn = MatrixContest(value.counts, [accuracy], value.pairing, terms).drawn[0]
            if drawn is not None:
                return drawn[:, :, 0]
        return value.runs.draw(self.terms.draws, generator(seed_of(self.terms.seed, seed)))

    def _groups(self) -> list[tuple[list[int], Array | None]]:
        """What is resampled as it is, and what at the common shares."""
        moved = [index for index in self.resampled if self.is_reprojected(self.estimands[index])]
        still = [index for index in self.resampled if index not in moved]
        return [(chosen, shares) for chosen, shares in ((still, None), (moved, self.shares)) if chosen]

    def _replicates(self, chosen: Sequence[int], made: Plan, shares: Array | None) -> list[Array]:
        functionals = [self.estimands[index].functional for index in chosen]
        runs = [run.run for run in self.runs]
        seed = seed_of(self.terms.seed, "resamples")
        if self.pairing.paired:
            return replicate(runs, functionals, seed=seed, made=made, shares=shares)
        apart = [
            replicate([run], functionals, seed=seed_of(seed, number), made=_within(made, run), shares=shares)
            for number, run in enumerate(runs)
        ]
        return [np.concatenate(values, axis=1) for values in zip(*apart, strict=True)]

    @property
    def design(self) -> Json:
        """How many resamples, and draws of what needs none."""
        design: Json = {"draws": self.terms.draws}
        if self.resampled:
            design["resamples"] = 0 if self.plan is None else self.plan.draws
            if self.plan is not None and not self.plan.of_all:
                design["resampled_subsets_of"] = self.plan.subset
        return design

    @property
    def notes(self) -> list[str]:
        """Where resamples could not be afforded, and why values are missing."""
        notes = []
        if self.resampled and self.plan is None:
            names = ", ".join(self.estimands[index].text for index in self.resampled)
            notes.append(f"Too many samples, classes and runs to resample {names}: only the values are given.")
        return notes + self._gaps()

    def _gaps(self) -> list[str]:
        notes = []
        for number, (run, record) in enumerate(zip(self.runs, self.records, strict=True)):
            for moved in (False, True):
                asked = [
                    (estimand.text, estimand.expression)
                    for estimand, values in zip(self.estimands, self.values, strict=True)
                    if self.is_comparable(estimand) and self.is_reprojected(estimand) is moved
                    if not np.isfinite(values[number]).all()
                ]
                if not asked:
                    continue
                weights = importance(run.run.scores.y, self.shares) if moved and self.shares is not None else None
                subject = subject_of(run.run.scores, run.run.predicted, weights)
                for gap in requested_values(asked, self.records[0].labels, subject)[1]:
                    of = "" if gap.label is None else f" of class {gap.label!r}"
                    notes.append(f"{gap.metric}{of} is undefined for {record.model.name} ({record.id}): {gap.reason}.")
        return notes

    def simulation(self, index: int) -> str:
        """What the draws of a estimand are called."""
        return "normal" if index in self.linear else "bootstrap"

    def intervals(self, index: int) -> list[list[OwnInterval]]:
        """For each of the values of a estimand, that of every run with its own limits."""
        values, drawn = self.values[index], self.drawn[index]
        found = []
        ends: list[tuple[float, float, str | None]]
        for place, column in enumerate(values.T):
            if index in self.linear:
                value = self.linear[index][place]
                ends = [
                    (nan, nan, method.value) if end is None else (end.low, end.high, end.method.value)
                    for end, method in zip(value.limits, value.runs.methods, strict=True)
                ]
            elif drawn is None:
                ends = [(nan, nan, None)] * len(column)
            else:
                ends = self._resampled_limits(index, drawn[:, :, place], column)
            found.append([OwnInterval(value, *end) for value, end in zip(column.tolist(), ends, strict=True)])
        return found

    def _resampled_limits(self, index: int, draws: Array, values: Array) -> list[tuple[float, float, str | None]]:
        """Limits of values (R) from draws (D, R), within the range; none of what does not vary."""
        biased = is_biased(self.estimands[index].expression)
        # Turned around the value what is biased loses its bias (Davison & Hinkley 1997, eq. 5.6).
        found = summarise(2.0 * values - draws if biased else draws, values, self.terms.level)
        low, high = self.estimands[index].bounds
        lows = np.maximum(found.low, -inf if low is None else low)
        highs = np.minimum(found.high, inf if high is None else high)
        fixed = ~(found.deviation > _NO_VARIANCE * np.maximum(np.abs(values), _NO_VARIANCE))
        lows, highs = (np.where(fixed, nan, ends) for ends in (lows, highs))
        name = "bootstrap_basic" if biased else "bootstrap"
        return [(low, high, name) for low, high in zip(lows.tolist(), highs.tolist(), strict=True)]

    def on_folds(self, counts: Array) -> list[Array]:
        """Values (R, F, V) of each estimand on the folds."""
        found = []
        for run in self.whole:
            if run.fold_sizes is None or len(run.fold_sizes) != counts.shape[1]:
                return [np.full((*counts.shape[:2], len(estimand.names)), np.nan) for estimand in self.estimands]
            ends = np.cumsum(run.fold_sizes)
            folds = [
                ScoredRun(run.part(slice(int(end) - size, int(end)))).values(self.estimands)
                for end, size in zip(ends, run.fold_sizes, strict=True)
            ]
            found.append([np.stack(values) for values in zip(*folds, strict=True)])
        return [np.stack(values) for values in zip(*found, strict=True)]

    def omnibus(self, index: int, place: int) -> Json | None:
        """Three or more paired runs with covariances: the chi-squared test that all have the same value."""
        value = self.linear[index][place].runs if index in self.linear else None
        if value is None or not self.pairing.paired or len(self.runs) < 3 or not np.isfinite(value.values).all():
            return None
        share = self.linear[index][place].pairing
        if share is not None and share.joint is not None:
            found, name = cochran_q(share.joint), "cochran_q"
        else:
            found = ChiSquared(*chi_squared_of(value.values, value.covariance))
            name = "delong" if set(value.methods) == {Method.DELONG_LOGIT} else "wald"
        if found.freedom == 0:
            return None
        return {
            "test": name,
            "of": "equal values",
            "statistic": plain(found.statistic),
            "df": found.freedom,
            "p_value": plain(found.p),
        }

    def tests(self, pairs: Sequence[tuple[int, int]]) -> list[list[list[Test]]]:
        """Tests by estimand, pair and value."""
        permuted = self._permutations(pairs)
        return [
            [
                self._linear_tests(index, pair)
                if index in self.linear
                else self._resampled_tests(index, pair, permuted.get((index, *pair)))
                for pair in pairs
            ]
            for index in range(len(self.estimands))
        ]

    def _permutations(self, pairs: Sequence[tuple[int, int]]) -> dict[tuple[int, int, int], Array]:
        """By estimand and pair, permutation p-values (V) of what is resampled; nothing where they are too dear."""
        if self.pairing.bond is Bond.TEST_SET or not self.resampled or not pairs:
            return {}
        largest = max(run.run.scores.n_samples for run in self.runs)
        draws = min(PERMUTATIONS, _PERMUTED_ENTRIES // (4 * largest * self.counts.shape[-1] * len(pairs)))
        if draws < FEWEST_PERMUTATIONS:
            return {}
        return {
            (index, first, second): p
            for chosen, shares in self._groups()
            for first, second in pairs
            for index, p in zip(
                chosen,
                permutation_p(
                    self.runs[first].run,
                    self.runs[second].run,
                    [self.estimands[index].functional for index in chosen],
                    draws=draws,
                    random=generator(seed_of(self.terms.seed, "permutation", first, second)),
                    paired=self.pairing.paired,
                    shares=shares,
                ),
                strict=True,
            )
        }

    def _linear_tests(self, index: int, pair: tuple[int, int]) -> list[Test]:
        found = []
        for value in self.linear[index]:
            if value.counts is not None and value.pairing is not None:
                found.append(share_test(None, *pair, value.counts, value.pairing, self.terms.level))
            else:
                found.append(linear_test(value.runs, *pair, self.pairing, self.terms.level))
        return found

    def _resampled_tests(self, index: int, pair: tuple[int, int], permuted: Array | None) -> list[Test]:
        drawn = self.drawn[index]
        if drawn is None:
            return [Test()] * len(self.estimands[index].names)
        first, second = (drawn[:, run] for run in pair)
        spread = variance_of(first - second)
        gaps = np.round(self.gaps(index, pair), DECIMALS)
        # Whatever the pairing, the deviation lies between the difference and the sum of those of the runs.
        one, other = (np.sqrt(variance_of(draws)) for draws in (first, second))
        if self.pairing.bond is Bond.TEST_SET:
            return range_tests(gaps, (one - other) ** 2, (one + other) ** 2, "bootstrap_z")
        found = normal_tests(gaps, spread, "bootstrap_z")
        return [
            self._resampled_test(test, None if permuted is None else float(permuted[place]), fixed=bool(fixed))
            for place, (test, fixed) in enumerate(zip(found, one + other == 0, strict=True))
        ]

    @staticmethod
    def _resampled_test(test: Test, p: float | None, *, fixed: bool) -> Test:
        if fixed and test.reason is None:
            return replace(test, reason=NOTHING_VARIES)
        if p is None:
            return test
        return replace(test, p=p, method="permutation", reason=None if test.reason is None else NO_LIMITS)


def _reordered(rows: NDArray[np.intp], run: ScoredRun) -> bool:
    return rows.size != run.run.scores.n_samples or not np.array_equal(rows, np.arange(rows.size))


def _within(made: Plan, run: Run) -> Plan:
    """The plan for a run that may have fewer samples than the largest."""
    size = run.scores.n_samples
    return Plan(made.draws, min(made.subset, size), size)
