"""Runs compared: values at one prevalence, joint draws, differences of any two, and p of all of them together."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial

import numpy as np

from app.domain.findings import Finding
from app.domain.slices import places_of
from app.domain.wording import number, numbered
from app.kernel.compare.rankings import adjust_jointly
from app.kernel.metrics.card import INPUTS_OF_CLASSES, Scope
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Combination, OverSlices, Sliced, is_improper, value_over_slices
from app.kernel.numerics.arrays import Array, silently
from app.kernel.slices.extremes import apart_in_slices, mean_of
from app.kernel.uncertainty.draws import Alternative, bonferroni_level, generator, seed_of
from app.kernel.uncertainty.intervals import Limits
from app.services.estimands import Estimand, estimands_in, parse_estimands, part_of
from app.services.estimates.estimate import Estimate, LimitSettings, NoLimits
from app.services.estimates.estimates import estimate, picked_of
from app.services.estimates.run_data import in_all_runs
from app.services.runs.aligned import Runs
from app.services.runs.differences import Test, gap_bounds, why_no_difference
from app.services.runs.linear_draws import LinearDifferences
from app.services.runs.matrix_draws import (
    CommonPrevalence,
    InferenceSettings,
    MatrixDraws,
    OmnibusTest,
    Pairs,
    Resampling,
    ResamplingDesign,
    Setup,
)
from app.services.runs.pairing import PairingDesign

# Values that differ by less are equal: other sums round otherwise.
_ROUNDING = 1e-12
_MOST_PAIRS = 50
# Of values whose slopes are looked for.
_STEP = 1e-6
# With a smaller share of draws in which every run has a value, nothing is said about who may be best.
_FEWEST_DEFINED = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class ComparedValue:
    """One value that runs are compared on.

    Attributes:
        values: (R).
        scores: (R), higher is better.
        estimand: Where it stands among the estimands.
        place: And among the values of that.
    """

    name: str
    values: Array
    scores: Array
    estimand: int = 0
    place: int = 0

    def prefers(self, one: int, other: int) -> bool:
        """Is one run better than another by it?"""
        return bool(self.scores[one] > self.scores[other] + _ROUNDING)


def ranks_of(scores: Array) -> list[int | None]:
    """Ranks (R) from 1 for the highest, equal scores sharing one; None without a score."""
    return [None if np.isnan(score) else int((scores > score + _ROUNDING).sum()) + 1 for score in scores.tolist()]


def improper_preferences(comparison: "Comparison") -> tuple[Finding, ...]:
    """A finding for every improper score that prefers a run which a proper score finds worse."""
    runs = comparison.runs
    improper = [estimand for estimand in comparison.estimands if is_improper(estimand.expression)]
    if not improper or not comparison.pairs:
        return ()
    proper = parse_estimands(proper_scores(), runs.labels, runs.positive, inputs=INPUTS_OF_CLASSES)
    references = [*_scores(comparison, proper)]
    found = [_finding(score, references, comparison) for score in _scores(comparison, improper)]
    return tuple(finding for finding in found if finding is not None)


def proper_scores() -> list[str]:
    """Return the proper scores that a report shows first."""
    cards = (metric.card for metric in catalogue().of_scope(Scope.OVERALL))
    return [card.key for card in cards if card.inference.proper and card.inference.headline]


def _scores(comparison: "Comparison", estimands: Sequence[Estimand]) -> Iterator[ComparedValue]:
    prevalence = comparison.prevalence
    for estimand in estimands:
        if estimand.preference is not None and prevalence.without(estimand) is None:
            # Of a metric of every class the mean: what one class gains another may lose.
            means = comparison.runs.values(estimand, prevalence.reached).mean(axis=1)
            yield ComparedValue(estimand.text, means, estimand.preference.score(means))


def _finding(score: ComparedValue, references: Sequence[ComparedValue], comparison: "Comparison") -> Finding | None:
    runs, found = comparison.runs, []
    for pair in comparison.pairs:
        best, rival = pair if score.prefers(*pair) else pair[::-1]
        against = [one for one in references if one.prefers(rival, best)]
        if score.prefers(best, rival) and against:
            found.append((best, rival, against))
    if not found:
        return None
    best, rival, against = found[0]
    others = " and ".join(f"{one.name} ({_both(one, best, rival)})" for one in against)
    more = f" So it is for {len(found) - 1} more pair{'s' * (len(found) > 2)} of runs." if len(found) > 1 else ""
    return Finding.warning(
        "improper_score_disagrees",
        f"{score.name} prefers {runs.name(best)} to {runs.name(rival)} ({_both(score, best, rival)}), but {others} "
        f"prefer{'s' * (len(against) == 1)} {runs.name(rival)}. {score.name} is no proper score: probabilities that "
        f"are not the true ones can do better by it.{more}",
        metric=score.name,
        pairs=[
            {
                "prefers": runs.records[best].id,
                "rather_than": runs.records[rival].id,
                "values": {
                    each.name: {"prefers": each.values[best], "rather_than": each.values[rival]}
                    for each in (score, *references)
                    if np.isfinite(each.values[[best, rival]]).all()
                },
            }
            for best, rival, _ in found[:_MOST_PAIRS]
        ],
    )


def _both(score: ComparedValue, best: int, rival: int) -> str:
    return " against ".join(number(score.values[run]) for run in (best, rival))


class Comparison:
    """Runs with what they are compared on. Draws and permutations are made once, for all estimands together.

    They are compared at the mean of their class shares where these differ, unless a prevalence is given.
    """

    def __init__(
        self,
        runs: Runs,
        estimands: Sequence[Estimand],
        settings: InferenceSettings,
        *,
        pairs: Pairs = (),
        prevalence: CommonPrevalence | None = None,
    ) -> None:
        self.runs, self.estimands, self.settings, self.pairs = runs, tuple(estimands), settings, tuple(pairs)
        self._given_prevalence = prevalence
        self.prevalence = CommonPrevalence.of_runs(runs) if prevalence is None else prevalence
        self._setup = Setup(runs, self.prevalence, settings, self.pairs)

    @property
    def weighted(self) -> bool:
        """Have the samples weights?"""
        return any(record.is_weighted for record in self.runs.records)

    def observed(self, index: int) -> Array:
        """Values (R, V) of an estimand as the runs are."""
        estimand = self.estimands[index]
        return self._sliced[index].observed(0) if estimand.is_of_slices else self.runs.values(estimand)

    def moves(self, index: int) -> bool:
        """Are the runs compared on other values of an estimand than their own?"""
        estimand = self.estimands[index]
        if not estimand.is_of_slices:
            return self.prevalence.moves(estimand)
        return not np.array_equal(self.values[index], self.observed(index), equal_nan=True)

    def without(self, index: int) -> str | None:
        """Return why the runs cannot be compared on an estimand, on one slice by its samples; None where they can."""
        one = self._sliced.get(index)
        return (one if isinstance(one, Comparison) else self).prevalence.without(self.estimands[index])

    @cached_property
    def _sliced(self) -> "dict[int, Comparison | SliceDifferences]":
        """By place the estimands of slices. On one slice runs are compared as runs of its samples alone are."""

        def compared(runs: Runs, inside: Estimand) -> Comparison:
            return Comparison(runs, [inside], self.settings, pairs=self.pairs, prevalence=self._given_prevalence)

        found: dict[int, Comparison | SliceDifferences] = {}
        for index, estimand in enumerate(self.estimands):
            expression = estimand.expression
            if isinstance(expression, Sliced):
                places = [places_of(one, expression.where, "/metrics") for one in self.runs.records]
                inside = part_of(estimand, expression, self.runs.labels)
                found[index] = compared(self.runs.within(places), inside)
            elif estimand.is_of_slices:
                found[index] = SliceDifferences(self._setup, estimand, compared)
        return found

    @cached_property
    def values(self) -> list[Array]:
        """Values (R, V) of each estimand at the common prevalence; NaN where the runs cannot be brought there."""
        return [way.values[place] for way, place in self.placed]

    @cached_property
    def ways(self) -> tuple[Resampling, ...]:
        """The ways in which the estimands are resampled, those of matrices first."""
        known = {id(way): way for way, _ in self.placed}.values()
        return tuple(sorted(known, key=lambda way: way.estimands[0].scored))

    @cached_property
    def placed(self) -> list[tuple[Resampling, int]]:
        """For each estimand, how it is resampled, and its place there."""
        made = {
            index: one.placed[0] if isinstance(one, Comparison) else (one, 0) for index, one in self._sliced.items()
        }
        chosen: dict[type[Resampling], list[int]] = {}
        for index, estimand in enumerate(self.estimands):
            if not estimand.is_of_slices:
                as_sums = estimand.scored or self.runs.grouped
                chosen.setdefault(LinearDifferences if as_sums else MatrixDraws, []).append(index)
        for kind, indices in chosen.items():
            estimands = [self.estimands[index] for index in indices]
            values = [self.runs.values(estimand, self.prevalence.reached) for estimand in estimands]
            without = map(self.prevalence.without, estimands)
            known = [one if why is None else one * np.nan for one, why in zip(values, without, strict=True)]
            way = kind(self._setup, estimands, known)
            made |= {index: (way, place) for place, index in enumerate(indices)}
        return [made[index] for index in range(len(self.estimands))]

    def drawn(self, index: int) -> Array | None:
        """Draws (D, R, V) of an estimand, joint where the runs are paired; None where they would take too long."""
        way, place = self.placed[index]
        return way.drawn[place]

    def drawn_scores(self, index: int, place: int) -> Array | None:
        """Draws (D, R) of one value, better the higher they are, in which all runs have it; None where nothing was
        drawn, or too few are.
        """
        drawn, better = self.drawn(index), self.estimands[index].preference
        if drawn is None or better is None:
            return None
        scores = better.score(drawn[:, :, place])
        defined = np.isfinite(scores).all(axis=1)
        return scores[defined] if defined.mean() >= _FEWEST_DEFINED else None

    @property
    def design(self) -> ResamplingDesign:
        """Design of the simulation."""
        return self.ways[0].design

    @property
    def notes(self) -> list[str]:
        """Notes on parts that could not be computed."""
        alone = [
            f"{self.estimands[index].text} is of {numbered(one.runs.n_common)}: {one.runs.pairing.reason}."
            for index, one in self._sliced.items()
            if isinstance(one, Comparison)
        ]
        return [*(note for way in self.ways for note in way.notes), *alone]

    @property
    def findings(self) -> list[Finding]:
        """Why limits are rough."""
        return [finding for way in self.ways for finding in way.findings]

    def omnibus(self, index: int, place: int) -> OmnibusTest | None:
        """A test that all runs have the same value, where there is one."""
        way, own = self.placed[index]
        return way.omnibus(own, place)

    def scores(self, index: int) -> Array:
        """Values (R, V) of an estimand as something that is better the higher it is."""
        better = self.estimands[index].preference
        return self.values[index] if better is None else better.score(self.values[index])

    def differences(
        self, index: int, level: float | None = None, alternative: Alternative | None = None
    ) -> list[list[Test]]:
        """For each of the values of an estimand, the differences of the pairs in order."""
        side = self.settings.alternative if alternative is None else alternative
        way, own = self.placed[index]
        tested = way.tests(own, side.two_sided_level(self.settings.level if level is None else level))
        return [
            [
                self._difference(index, place, pair, tests[place], side)
                for pair, tests in zip(self.pairs, tested, strict=True)
            ]
            for place in range(len(self.estimands[index].names))
        ]

    def _difference(self, index: int, place: int, pair: tuple[int, int], test: Test, side: Alternative) -> Test:
        (way, own), estimand = self.placed[index], self.estimands[index]
        gap = float(way.gaps(own, pair)[place])
        if not np.isfinite(gap):
            values = self.values[index][[*pair], place].tolist()
            reason = way.without(own) or self.without(index) or why_no_difference(*values)
            return Test(reason=reason, probability_error=np.nan)
        same = bool(test.identical) or self._identical(pair, scored=estimand.scored)
        return test.of(gap, estimand.preference, side, gap_bounds(estimand.bounds), identical=same)

    def _identical(self, pair: tuple[int, int], *, scored: bool) -> bool:
        """Do two paired runs predict the same class for every sample, with the same probabilities if these count?"""
        joint = self.runs.pairing.joint
        if joint is None or not np.array_equal(*joint.predictions[[*pair]]):
            return False
        if scored and self.runs.streamed is not None:
            return bool(self.runs.streamed.alike[tuple(sorted(pair))])
        samples = [self.runs.scored[run].source.samples for run in pair] if scored else []
        outputs = [one.outputs for one in samples if one is not None and one.outputs is not None]
        return len(outputs) == len(samples) and all(np.array_equal(one, outputs[0]) for one in outputs)


class SliceDifferences(Resampling):
    """An estimand over several slices, or of several values of slices: differences of what is picked from them, and of
    their mean, have limits by MOVER over those of each run. Draws of what is picked would move it to one side.
    """

    def __init__(self, setup: Setup, estimand: Estimand, compared: Callable[[Runs, Estimand], Comparison]) -> None:
        self._independent, self._n_runs = True, len(setup.runs)
        inside = estimands_in(estimand, estimand.expression, setup.runs.labels)
        if isinstance(estimand.expression, OverSlices):
            self._over: OverSlices | Combination = estimand.expression
            divided = [one.slices(estimand.expression) for one in setup.runs.data]
            chosen = in_all_runs([one.parts for one in divided])
            self._independent = all(one.independent for one in divided)
            self._slices = [compared(setup.runs.within(places), inside[0]) for _, places in chosen]
        elif isinstance(estimand.expression, Combination):
            self._over = estimand.expression
            self._slices = [compared(setup.runs, one) for one in inside]
        else:
            raise TypeError("expected an expression of several slices")
        super().__init__(setup, [estimand], [self._made_of([one.values[0] for one in self._slices])])

    def observed(self, _: int) -> Array:
        """Values (R, V) as the runs are."""
        return self._made_of([one.observed(0) for one in self._slices])

    def _made_of(self, values: Sequence[Array]) -> Array:
        """Values (R, V) from those of each slice."""
        if isinstance(self._over, Combination):
            return self._over.card.compute(np.concatenate(values, axis=1), **self._over.parameters)[:, None]
        known = [one[:, 0] for one in values if np.isfinite(one).all()]
        return value_over_slices(self._over, np.array(known).reshape(len(known), self._n_runs).T)[:, None]

    @property
    def notes(self) -> list[str]:
        """Notes of values of slices, and which slices take part."""
        text = self.estimands[0].text
        if isinstance(self._over, Combination):
            notes = [note for one in self._slices for note in one.notes]
            if not self._over.card.linear:
                notes.append(
                    f"Differences of {text} take the runs as independent: of paired runs limits are wider than need be."
                )
            return notes
        known = sum(bool(np.isfinite(one.values[0]).all()) for one in self._slices)
        fewest = numbered(self._over.fewest)
        return [f"{text} is over {numbered(known, 'slices')} with a value and at least {fewest} in each run."]

    def without(self, index: int) -> str | None:
        """Why there is no value, where too few slices have one."""
        if not np.isnan(self.values[index]).any():
            return None
        return next(filter(None, (one.without(0) for one in self._slices)), NoLimits.FEW_SLICES)

    def tests(self, index: int, level: float) -> list[list[Test]]:
        """Return the tests of what is picked from several slices."""
        settings, paired = LimitSettings(level=level), list[tuple[float, Limits]]()
        if isinstance(self._over, Combination):
            own = [estimate(self.estimands, one, settings)[0][0] for one in self.runs.data]
            if self._over.card.linear and self.runs.pairing.paired:
                mean = partial(self._over.card.compute, **self._over.parameters)
                n_values = sum(len(one.estimands[0].names) for one in self._slices)
                both = [
                    np.moveaxis(ends, -1, 0) for ends in _limits_apart(self._slices, bonferroni_level(level, n_values))
                ]
                paired = [(0.0, (np.atleast_1d(mean(low)), np.atleast_1d(mean(high)))) for low, high in both]
        else:
            known = [one for one in self._slices if np.isfinite(one.values[0]).all()]
            of_each = [cache(partial(_own_limits, known, run)) for run in range(len(self.runs))]
            own = [
                picked_of(self.estimands[0], self._over, limits, settings, independent=self._independent)
                for limits in of_each
            ]
            if self.runs.pairing.paired and known:
                paired = self._paired(self._over, known, [limits(settings) for limits in of_each], level)
        gaps = [self.gaps(index, pair) for pair in self.setup.pairs]
        return [[one] for one in self.by_own_limits(own, gaps, level, paired)]

    def _paired(
        self, over: OverSlices, known: Sequence[Comparison], own: Sequence[Sequence[Estimate]], level: float
    ) -> list[tuple[float, Limits]]:
        """For each pair of paired runs what both have in common says of their difference: the correlation of what is
        picked, where it is below 0, and limits that follow from the differences in each slice.
        """
        known_limits = np.array([[(one.value, one.low, one.high) for one in each] for each in own])
        values, low, high = np.moveaxis(known_limits, -1, 0)
        steps = _STEP * np.eye(len(known))
        slopes = value_over_slices(over, values[:, None] + steps) - value_over_slices(over, values[:, None] - steps)
        ends, found = _limits_apart(known, level), []
        for place, pair in enumerate(self.setup.pairs):
            both, (least, most) = [*pair], ends[place].T
            widths = (high - low)[both]
            common = ((widths**2).sum(axis=0) - (most - least) ** 2) / 2.0
            alone = ((slopes[both] * widths) ** 2).sum(axis=1)
            with silently():
                rho = np.nansum(slopes[both].prod(axis=0) * common) / np.sqrt(alone.prod())
            apart = np.subtract(*values[both]), least, most
            if over.card.linear:
                limits = mean_of(apart[0], apart[1:], independent=self._independent)
            else:
                limits = apart_in_slices(over.card, (low[both], high[both]), apart)
            # Limits of values and of differences are made in several ways, so that they may not fit together.
            found.append((float(np.clip(np.nan_to_num(rho), -1.0, 0.0)), limits))
        return found


def _limits_apart(of: Sequence[Comparison], level: float) -> Array:
    """Limits (pairs, V, 2) of the differences in the V values that some comparisons are of."""
    tests = [way.tests(place, level) for way, place in (one.placed[0] for one in of)]
    return np.array([[(one.low, one.high) for each in of_pair for one in each] for of_pair in zip(*tests, strict=True)])


def _own_limits(slices: Sequence[Comparison], run: int, settings: LimitSettings) -> list[Estimate]:
    """The value of a run in each slice, with limits."""
    return [estimate(one.estimands, one.runs.data[run], settings)[0][0] for one in slices]


# Deviations of all differences together.
_MOST_ENTRIES = 10_000_000
_FEWEST_DRAWS = 200


def joint_adjustment(comparison: Comparison, differences: Sequence[Sequence[Sequence[Test]]]) -> list[Array]:
    """By estimand, adjusted p (V, P) of the differences of its values.

    What was drawn together varies together. What was not is taken as independent, which asks for no less than is due
    (Sidak 1967): metrics in closed form, those that were resampled another way, and runs of one test set, of which it
    is not known which predictions belong together.
    """
    p = [np.array([[one.p_value for one in of_value] for of_value in by_value]) for by_value in differences]
    columns = sum(found.size for found in p)
    deviations = _deviations(comparison, max(_FEWEST_DRAWS, _MOST_ENTRIES // max(columns, 1)))
    adjusted = adjust_jointly(np.concatenate([found.ravel() for found in p]), deviations)
    ends = np.cumsum([found.size for found in p])[:-1]
    return [part.reshape(found.shape) for part, found in zip(np.split(adjusted, ends), p, strict=True)]


def _deviations(comparison: Comparison, most: int) -> Array:
    """Standardised deviations (D, m) of all differences, in their order."""
    drawn = [comparison.drawn(index) for index in range(len(comparison.estimands))]
    rows = min([most, comparison.settings.draws, *(len(one) for one in drawn if one is not None)])
    first, second = (list(places) for places in zip(*comparison.pairs, strict=True))
    found = []
    for index, values in enumerate(drawn):
        way, _ = comparison.placed[index]
        together = comparison.ways.index(way)
        for place in range(len(comparison.estimands[index].names)):
            apart = isinstance(way, LinearDifferences) or values is None
            random = generator(seed_of(comparison.settings.seed, together, (index, place) if apart else None))
            if values is None:
                found.append(random.standard_normal((rows, len(first))))
                continue
            gaps = values[:rows][:, first, place] - values[:rows][:, second, place]
            if comparison.runs.pairing.design is PairingDesign.TEST_SET:
                found.append(random.permuted(_standardised(gaps), axis=0))
            else:
                found.append(_standardised(gaps)[random.permutation(rows)])
    return np.concatenate(found, axis=1)


def _standardised(gaps: Array) -> Array:
    """Draws (D, P) about their mean in standard deviations; infinite where one is undefined, 0 where none varies."""
    defined = np.isfinite(gaps)
    with silently():
        count = defined.sum(axis=0)
        centered = np.where(defined, gaps, 0.0) - np.where(defined, gaps, 0.0).sum(axis=0) / count
        spread = np.sqrt((np.where(defined, centered, 0.0) ** 2).sum(axis=0) / (count - 1))
        found = np.where(spread > 0, centered / spread, 0.0)
    return np.where(defined, found, np.inf)
