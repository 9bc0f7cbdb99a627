"""Runs compared: values at one prevalence, joint draws, and the difference of any two."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.draws import Alternative
from app.services.estimands import Estimand
from app.services.runs.aligned import Runs
from app.services.runs.differences import RunDifference, Test, gap_bounds, simulated, why_no_difference
from app.services.runs.draws.groups import (
    ResampledGroups,
    ResampledUnitGroups,
    SharedGroups,
    SharedGroupsOfClasses,
)
from app.services.runs.draws.matrices import IndependentMatrices
from app.services.runs.draws.paired import PairedMatrices
from app.services.runs.draws.resampling import (
    CommonPrevalence,
    InferenceSettings,
    LeftOut,
    OmnibusTest,
    Pairs,
    Resampling,
    ResamplingDesign,
    Setup,
)
from app.services.runs.draws.samples import NormalDraws, ResampledSamples, closed_forms
from app.services.runs.pairing import PairingDesign


class Comparison:
    """Runs with what they are compared on. Draws and permutations are made once, for all estimands together.

    Args:
        runs: The runs.
        estimands: What they are compared on.
        settings: Level, region of equivalence, seed and draws.
        pairs: The pairs whose differences will be asked for.
        groups: Of paired runs whose samples come in groups: then these are resampled.
        prevalence: Where they are compared; by default at the mean of their class shares where these differ.
    """

    def __init__(
        self,
        runs: Runs,
        estimands: Sequence[Estimand],
        settings: InferenceSettings,
        *,
        pairs: Pairs = (),
        groups: SharedGroups | None = None,
        prevalence: CommonPrevalence | None = None,
    ) -> None:
        self.runs, self.estimands, self.settings, self.pairs = runs, tuple(estimands), settings, tuple(pairs)
        self.prevalence = CommonPrevalence.of_runs(runs) if prevalence is None else prevalence
        self._setup = Setup(runs, self.prevalence, settings, self.pairs)
        self._shared = groups

    @property
    def independent(self) -> bool:
        """Are there samples, all of equal weight, so that tests may count them?"""
        return not (self.grouped or self.weighted)

    @property
    def grouped(self) -> bool:
        """Do the samples come in groups?"""
        return self._shared is not None

    @property
    def groups(self) -> SharedGroupsOfClasses | None:
        """Those of samples of classes, where they come in some."""
        return self._shared if isinstance(self._shared, SharedGroupsOfClasses) else None

    @property
    def weighted(self) -> bool:
        """Have the samples weights?"""
        return any(record.is_weighted for record in self.runs.records)

    @cached_property
    def observed(self) -> list[Array]:
        """Values (R, V) of each estimand as the runs are."""
        return self.runs.values(self.estimands)

    @cached_property
    def values(self) -> list[Array]:
        """Values (R, V) of each estimand at the common prevalence; NaN where the runs cannot be brought there."""
        shares = self.prevalence.shares if self.prevalence.reachable else None
        found = self.observed if shares is None else self.runs.values(self.estimands, shares)
        return [
            values if self.prevalence.reaches(estimand) else np.full(values.shape, np.nan)
            for estimand, values in zip(self.estimands, found, strict=True)
        ]

    @cached_property
    def ways(self) -> tuple[Resampling, ...]:
        """The ways in which the estimands are resampled, those of matrices first."""
        known = {id(way): way for way, _ in self._places}.values()
        return tuple(sorted(known, key=lambda way: way.estimands[0].scored))

    @cached_property
    def _places(self) -> list[tuple[Resampling, int]]:
        """For each estimand, how it is resampled, and its place there."""
        found: dict[int, tuple[Resampling, int]] = {}
        indices = range(len(self.estimands))
        of_matrices = [index for index in indices if not self.estimands[index].scored]
        if of_matrices:
            way: Resampling
            if self.groups is not None:
                way = ResampledGroups(*self._given(of_matrices), groups=self.groups)
            elif self.runs.pairing.joint is not None:
                way = PairedMatrices(*self._given(of_matrices))
            else:
                way = IndependentMatrices(*self._given(of_matrices))
            found |= {index: (way, place) for place, index in enumerate(of_matrices)}
        of_samples = [index for index in indices if self.estimands[index].scored]
        if of_samples:
            forms = closed_forms(self._setup, [self.estimands[index] for index in of_samples])
            known = {index: form for index, form in zip(of_samples, forms, strict=True) if form is not None}
            if known:
                closed = NormalDraws(*self._given([*known]), forms=[*known.values()])
                found |= {index: (closed, place) for place, index in enumerate(known)}
            rest = [index for index in of_samples if index not in known]
            if rest:
                resampled = self._resampled(rest)
                found |= {index: (resampled, place) for place, index in enumerate(rest)}
        return [found[index] for index in indices]

    def _resampled(self, chosen: Sequence[int]) -> Resampling:
        given, groups = self._given(chosen), self._shared
        if self.runs.folded is not None:
            return LeftOut(*given)
        return ResampledSamples(*given) if groups is None else ResampledUnitGroups(*given, groups=groups)

    def _given(self, chosen: Sequence[int]) -> tuple[Setup, list[Estimand], list[Array]]:
        return self._setup, [self.estimands[index] for index in chosen], [self.values[index] for index in chosen]

    def way(self, index: int) -> tuple[Resampling, int]:
        """How an estimand is resampled, and its place there."""
        return self._places[index]

    def drawn(self, index: int) -> Array | None:
        """Draws (D, R, V) of an estimand, joint where the runs are paired; None where they would take too long."""
        way, place = self._places[index]
        return way.drawn[place]

    @property
    def design(self) -> ResamplingDesign:
        """How it was simulated; the draws are those of the matrices where there are any."""
        designs = [way.design for way in self.ways]
        of_samples = next((design for design in designs if design.resamples is not None), designs[0])
        return replace(designs[0], resamples=of_samples.resamples, resampled_subsets_of=of_samples.resampled_subsets_of)

    @property
    def notes(self) -> list[str]:
        """What could not be done."""
        return [note for way in self.ways for note in way.notes]

    def omnibus(self, index: int, place: int) -> OmnibusTest | None:
        """A test that all runs have the same value, where there is one."""
        way, own = self._places[index]
        return way.omnibus(own, place)

    def scores(self, index: int) -> Array:
        """Values (R, V) of an estimand as something that is better the higher it is."""
        better = self.estimands[index].preference
        return self.values[index] if better is None else better.score(self.values[index])

    def differences(
        self, index: int, level: float | None = None, alternative: Alternative | None = None
    ) -> list[list[RunDifference]]:
        """For each of the values of an estimand, the differences of the pairs in order."""
        side = self.settings.alternative if alternative is None else alternative
        bounds = gap_bounds(self.estimands[index].bounds)
        found = self._two_sided(index, side.two_sided_level(self.settings.level if level is None else level))
        return [[one.on_side(side, bounds) for one in of_value] for of_value in found]

    def _two_sided(self, index: int, read_at: float) -> list[list[RunDifference]]:
        way, own = self._places[index]
        tested = way.tests(own, read_at)
        return [
            [
                self._difference(index, place, pair, tests[place], read_at)
                for pair, tests in zip(self.pairs, tested, strict=True)
            ]
            for place in range(len(self.estimands[index].names))
        ]

    def _difference(self, index: int, place: int, pair: tuple[int, int], test: Test, level: float) -> RunDifference:
        first, second = pair
        values = self.values[index][:, [place]]
        way, own = self._places[index]
        gap = float(way.gaps(own, pair)[place])
        if not np.isfinite(gap):
            reached = self.prevalence.reaches(self.estimands[index])
            reason = way.without or why_no_difference(*values[[*pair], 0].tolist(), reached=reached)
            return RunDifference(first=first, second=second, value=np.nan, test=Test(reason=reason), limits="none")
        known = test.chances(self.estimands[index].preference)
        if known is not None:
            return RunDifference(
                first=first,
                second=second,
                value=gap,
                test=test,
                limits=test.limits or "none",
                first_better=known[0],
                equivalent=known[1],
                probability_error=test.error,
            )
        drawn = self.drawn(index)
        certain = drawn is not None and np.ptp(drawn[:, first, place] - drawn[:, second, place]) == 0
        if certain and test.reason is not None:
            # What does not vary in the data does not in resamples either, which is no certainty.
            drawn = None
        if drawn is None:
            return RunDifference(first=first, second=second, value=gap, test=test, limits=test.limits or "none")
        ends, better, equal, error = simulated(
            values,
            drawn[:, :, [place]],
            first,
            second,
            better=self.estimands[index].preference,
            level=level,
            rope=self.settings.rope,
        )[0]
        limits = test.limits
        if limits is None:
            name = way.name
            limits = name if self.runs.pairing.design is not PairingDesign.TEST_SET else f"{name}_as_if_independent"
            test = replace(test, low=float(ends[0]), high=float(ends[1]))
        return RunDifference(
            first=first,
            second=second,
            value=gap,
            test=test,
            limits=limits,
            first_better=better,
            equivalent=equal,
            probability_error=error,
        )
