"""Runs compared on metrics that need the probabilities of the samples: closed forms and resampling."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from app.domain.findings import Finding
from app.domain.inputs.kinds import UNIT_KINDS
from app.kernel.compare.linear import Linear, LinearRuns, hits_of, join_runs, linearised
from app.kernel.compare.paired.joint import combine
from app.kernel.compare.rankings import cochran_q
from app.kernel.compare.replicates import DECIMALS, importance, permutation_p, replicate, variance_of
from app.kernel.compare.streamed import StreamedRuns, StreamedValue
from app.kernel.matrix.table import confusion_counts
from app.kernel.metrics.families.accuracy import accuracy
from app.kernel.metrics.proportion import ACCURACY
from app.kernel.numerics.arrays import Array
from app.kernel.samples.influence import LinearMethod
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.draws import generator, seed_of
from app.kernel.uncertainty.groups import Grouping
from app.kernel.uncertainty.influence import Influences, Linearisation, UnitInfluences
from app.kernel.uncertainty.resampling import Plan, plan
from app.kernel.uncertainty.units import Run, Units
from app.services.estimands import Estimand, make_estimand
from app.services.estimates.methods.of_matrix import affordable_draws
from app.services.reasons import requested_values
from app.services.runs.aligned import Runs, ScoredRun
from app.services.runs.differences import (
    NO_LIMITS,
    NOTHING_VARIES,
    Test,
    linear_test,
    normal_tests,
    proportion_tests,
    range_tests,
)
from app.services.runs.draws.matrices import (
    FEWEST_PERMUTATIONS,
    PERMUTATIONS,
    ChiSquaredTest,
    OmnibusTest,
    Resampling,
    ResamplingDesign,
    Setup,
    draw_independent,
    draw_paired,
)
from app.services.runs.pairing import Pairing, PairingDesign


def undefined_notes(of: Resampling) -> list[str]:
    """Which values of runs do not exist, and why."""
    notes = []
    prevalence = of.setup.prevalence
    for number, (run, record) in enumerate(zip(_lacking(of.runs), of.runs.records, strict=True)):
        for moved in (False, True):
            asked = [
                (estimand.text, estimand.expression)
                for estimand, values in zip(of.estimands, of.values, strict=True)
                if prevalence.reaches(estimand) and prevalence.moves(estimand) is moved
                if not np.isfinite(values[number]).all()
            ]
            if not asked:
                continue
            shares = prevalence.shares
            weights = run.weights
            if moved and shares is not None:
                weights = importance(run.run.strata, shares, weights)
            subject = run.run.subject(weights)
            for gap in requested_values(asked, of.runs.labels, subject)[1]:
                class_name = "" if gap.label is None else f" of class {gap.label!r}"
                notes.append(
                    f"{gap.metric}{class_name} is undefined for {record.model.name} ({record.id}): {gap.reason}."
                )
    return notes


def _lacking(runs: Runs) -> tuple[ScoredRun, ...]:
    """The runs, or others whose samples lack what the streamed ones lack, so that the same values are undefined."""
    streamed = runs.streamed
    return runs.scored if streamed is None else tuple(_as_undefined(runs, streamed, run) for run in range(len(runs)))


def _as_undefined(runs: Runs, streamed: StreamedRuns, run: int) -> ScoredRun:
    """One sample of each class that there is, with a probability of 0 where a value is infinite."""
    y, size = np.flatnonzero(runs.counts[run].sum(axis=1)), runs.n_classes
    rows = np.full((y.size, size), 1.0 / size)
    for code in streamed.ruled_out(run):
        rows[y == code] = np.eye(size)[(code + 1) % size]
    made = Scores.of_class_scores if runs.source(run).has_scores else Scores
    return ScoredRun(Run(made(y, rows), y))


# Fewer queries, or other units, leave a difference without limits: no signs of six differences have a p below .03.
FEWEST_UNITS = 6
TOO_FEW_UNITS = (
    f"fewer than {FEWEST_UNITS} queries, or other units, say too little of a difference for limits and a test"
)
# Of |skewness| / sqrt(n): about a point of error on one side of t limits (Edgeworth).
_SKEWED = 0.12
# Probabilities passed over in all permutations together: some seconds.
_PERMUTED_ENTRIES = 40_000_000


@dataclass(frozen=True, slots=True, eq=False)
class ClosedForm:
    """One value of all runs in closed form.

    Attributes:
        runs: The value of each run as a sum over its samples, together.
        counts: For a share of the samples, matrices (R, K, K) that are right where a sample counts; else None.
        pairing: How these belong together.
        skewness: Of a mean over units, (R, R) that of the difference of two runs: of one unit, over the square root of
            their number.
    """

    runs: LinearRuns
    counts: Array | None = None
    pairing: Pairing | None = None
    skewness: Array | None = None


def closed_forms(setup: Setup, estimands: Sequence[Estimand]) -> list[tuple[ClosedForm, ...] | None]:
    """For each estimand its values in closed form, None where there is none at the prevalence it is compared at."""
    if setup.runs.task is not None:
        return _forms_of_units(setup, estimands)
    streamed = setup.runs.streamed
    if streamed is not None:
        return [_streamed_form(setup, streamed, estimand) for estimand in estimands]
    influences = [Influences(run.scores) for run in setup.runs.scored]
    return [
        None if setup.prevalence.moves(estimand) else _closed_form(setup, estimand, influences)
        for estimand in estimands
    ]


def _closed_form(setup: Setup, estimand: Estimand, influences: Sequence[Linear]) -> tuple[ClosedForm, ...] | None:
    parts: list[list[Linearisation]] = []
    for of in influences:
        values = linearised(estimand.expression, of)
        if values is None:
            return None
        parts.append(values)
    return tuple(_joined(setup, value) for value in zip(*parts, strict=True))


def _streamed_form(setup: Setup, streamed: StreamedRuns, estimand: Estimand) -> tuple[ClosedForm, ...] | None:
    """Closed forms of streamed samples."""
    found = streamed.of(estimand.expression)
    if found is None:
        return None
    return tuple(_counted_form(setup, value) for value in found)


def _counted_form(setup: Setup, value: StreamedValue) -> ClosedForm:
    if value.counted is None or not np.isfinite(value.runs.values).all():
        return ClosedForm(value.runs)
    pairing = replace(setup.runs.pairing, joint=value.counted)
    return ClosedForm(value.runs, value.counted.matrices(), pairing)


def _forms_of_units(setup: Setup, estimands: Sequence[Estimand]) -> list[tuple[ClosedForm, ...] | None]:
    """Means over queries, label sets and other units that are drawn one by one."""
    runs = setup.runs
    if any(run.run.multiplicities is not None for run in runs.scored):
        return [None] * len(estimands)
    influences = [
        UnitInfluences(run.run.subject(run.weights), run.run.n_units, runs.n_classes, weights=run.weights)
        for run in runs.scored
    ]
    return [_closed_form(setup, estimand, influences) for estimand in estimands]


def _joined(setup: Setup, parts: tuple[Linearisation, ...]) -> ClosedForm:
    pairing = setup.runs.pairing
    # Units other than samples of classes are all of one class: right or not.
    size = setup.runs.n_classes if setup.runs.task is None else 2
    truths = [run.run.strata for run in setup.runs.scored]
    runs = join_runs(parts, truths, paired=pairing.paired, same_items=pairing.design is PairingDesign.TEST_SET)
    counted = all(
        part.method is LinearMethod.WILSON and part.worth is None and part.freedom + 1 >= part.influence.size
        for part in parts
    )
    if not counted or not np.isfinite(runs.values).all():
        skewed = None if setup.runs.task is None else _skewness(parts, paired=pairing.paired)
        return ClosedForm(runs, skewness=skewed)
    decided = [
        np.where(hits_of(part) > 0, y, (y + 1) % size).astype(np.int64) for part, y in zip(parts, truths, strict=True)
    ]
    counts = np.stack([confusion_counts(y, codes, size) for y, codes in zip(truths, decided, strict=True)])
    joint = combine(truths[0].astype(np.int64), np.stack(decided), size) if pairing.paired else None
    return ClosedForm(runs, counts.astype(np.float64), replace(pairing, joint=joint))


def _skewness(parts: Sequence[Linearisation], *, paired: bool) -> Array:
    """Skewness (R, R) of the differences of means, 0 without variance."""
    found = np.zeros((len(parts), len(parts)))
    for first, one in enumerate(parts):
        for second, other in enumerate(parts[:first]):
            apart = [one.influence - other.influence] if paired else [one.influence, -other.influence]
            squares, cubes = (sum(float((moved**power).sum()) for moved in apart) for power in (2, 3))
            found[first, second] = found[second, first] = abs(cubes) / squares**1.5 if squares > 0 else 0.0
    return found


class NormalDraws(Resampling):
    """Values in closed form: normal draws with their covariance, and the tests that it allows."""

    name = "normal"

    def __init__(
        self,
        setup: Setup,
        estimands: Sequence[Estimand],
        values: Sequence[Array],
        forms: Sequence[tuple[ClosedForm, ...]],
    ) -> None:
        super().__init__(setup, estimands, values)
        self.forms = tuple(forms)
        # The same for every value, so that what else is asked changes nothing.
        self._seed = seed_of(self.settings.seed, "normal")

    @cached_property
    def drawn(self) -> list[Array | None]:
        """Draws (D, R, V) of each estimand, joint where the runs are paired; None of too few units."""
        if self._too_few:
            return [None] * len(self.forms)
        return [np.stack([self._draw(form) for form in forms], axis=-1).round(DECIMALS) for forms in self.forms]

    @property
    def _too_few(self) -> bool:
        """Are there fewer queries, or other units, of a run than its differences have limits for?"""
        return self.runs.task is not None and min(run.run.n_units for run in self.runs.scored) < FEWEST_UNITS

    def _draw(self, form: ClosedForm) -> Array:
        """Draws (D, R) of one value; a share is drawn as the accuracy that it is."""
        wanted = self.settings.draws
        if form.counts is None or form.pairing is None:
            return form.runs.draw(wanted, generator(self._seed))
        shares = [make_estimand(accuracy.key, self.runs.labels, None)]
        joint = form.pairing.joint
        draws = affordable_draws(max(form.counts.size, 0 if joint is None else joint.counts.size), wanted)
        if not draws:
            return form.runs.draw(wanted, generator(self._seed))
        if joint is not None:
            return draw_paired(joint, shares, draws=draws, seed=self._seed)[0][:, :, 0]
        return draw_independent(form.counts, shares, draws=draws, seed=self._seed)[0][:, :, 0]

    @property
    def design(self) -> ResamplingDesign:
        """How many draws."""
        return ResamplingDesign(draws=self.settings.draws)

    @property
    def notes(self) -> list[str]:
        """Why values are missing."""
        return undefined_notes(self)

    @property
    def findings(self) -> list[Finding]:
        """Which means have differences that are too skewed for the t distribution."""
        task = self.runs.task
        if task is None or self._too_few:
            return []
        names = [
            estimand.text
            for estimand, forms in zip(self.estimands, self.forms, strict=True)
            if any(
                form.skewness is not None and form.skewness[pair] > _SKEWED
                for form in forms
                for pair in self.setup.pairs
            )
        ]
        if not names:
            return []
        units = UNIT_KINDS[task].unit or "samples"
        return [
            Finding.warning(
                f"few_{units}_skewed",
                f"There are few {units} for differences as skewed as those of {', '.join(names)}: limits and p of some "
                f"are rough, since a few {units} decide them.",
                metrics=names,
            )
        ]

    def tests(self, index: int, level: float) -> list[list[Test]]:
        """Limits and p of each value; those of shares of samples are made for all pairs together."""
        if self._too_few:
            return [[Test(reason=TOO_FEW_UNITS)] * len(self.forms[index])] * len(self.setup.pairs)
        of_forms = [self._tests_with(form, level) for form in self.forms[index]]
        return [[tests[place] for tests in of_forms] for place in range(len(self.setup.pairs))]

    def _tests_with(self, form: ClosedForm, level: float) -> list[Test]:
        known: list[Test | None] = [None] * len(self.setup.pairs)
        if form.counts is not None and form.pairing is not None:
            rope = self.settings.rope
            known = proportion_tests(ACCURACY, self.setup.pairs, form.counts, form.pairing, level=level, rope=rope)
        return [
            linear_test(form.runs, *pair, self.runs.pairing, level) if test is None else test
            for pair, test in zip(self.setup.pairs, known, strict=True)
        ]

    def omnibus(self, index: int, place: int) -> OmnibusTest | None:
        """Three or more paired runs: the chi-squared test that all have the same value."""
        form = self.forms[index][place]
        if not self.runs.pairing.paired or len(self.runs) < 3 or not np.isfinite(form.runs.values).all():
            return None
        if form.pairing is not None and form.pairing.joint is not None:
            found, name = cochran_q(form.pairing.joint), "cochran_q"
        elif self.runs.task is not None:
            # The chi-squared distribution needs more queries than there often are.
            return None
        else:
            found = form.runs.equality()
            name = "delong" if set(form.runs.methods) == {LinearMethod.DELONG_LOGIT} else "wald"
        return OmnibusTest(test=name, of="equal values", found=ChiSquaredTest.of(found)) if found.freedom else None


class ResampledSamples(Resampling):
    """Samples resampled within the classes, the same ones for all runs where they are paired."""

    name = "bootstrap"
    # Of paired runs, the samples that are drawn and exchanged together.
    grouping: Grouping | None = None

    @cached_property
    def plan(self) -> Plan | None:
        """How many resamples of what; None when even a few are too many."""
        whole = self.grouping is not None
        return plan(self._largest, self._width * len(self.runs), self.settings.draws, whole=whole)

    @property
    def _largest(self) -> int:
        return max(run.run.n_units for run in self.runs.scored)

    @property
    def _width(self) -> int:
        return max(run.run.width for run in self.runs.scored)

    @cached_property
    def drawn(self) -> list[Array | None]:
        """Draws (D, R, V) of each estimand, joint where the runs are paired."""
        found: list[Array | None] = [None] * len(self.estimands)
        if self.plan is not None:
            for chosen, shares in self._at_prevalences():
                for index, replicates in zip(chosen, self._replicates(chosen, self.plan, shares), strict=True):
                    # Equal values reached by other sums differ by rounding.
                    found[index] = np.round(replicates, DECIMALS)
        return found

    def _at_prevalences(self) -> list[tuple[list[int], Array | None]]:
        """What is resampled as it is, and what at the common shares."""
        prevalence = self.setup.prevalence
        known = [index for index, estimand in enumerate(self.estimands) if prevalence.reaches(estimand)]
        moved = [index for index in known if prevalence.moves(self.estimands[index])]
        still = [index for index in known if index not in moved]
        return [(chosen, shares) for chosen, shares in ((still, None), (moved, prevalence.shares)) if chosen]

    def _replicates(self, chosen: Sequence[int], made: Plan, shares: Array | None) -> list[Array]:
        functionals = [self.estimands[index].functional for index in chosen]
        runs, weights = [run.run for run in self.runs.scored], [run.weights for run in self.runs.scored]
        seed = seed_of(self.settings.seed, "resamples")
        if self.runs.pairing.paired:
            return replicate(
                runs, functionals, seed=seed, made=made, shares=shares, weights=weights[0], grouping=self.grouping
            )
        apart = [
            replicate(
                [run], functionals, seed=seed_of(seed, number), made=_within(made, run), shares=shares, weights=own
            )
            for number, (run, own) in enumerate(zip(runs, weights, strict=True))
        ]
        return [np.concatenate(values, axis=1) for values in zip(*apart, strict=True)]

    @property
    def design(self) -> ResamplingDesign:
        """How many resamples, and of what."""
        made, asked = self.plan, bool(self._at_prevalences())
        return ResamplingDesign(
            draws=self.settings.draws,
            resamples=(0 if made is None else made.draws) if asked else None,
            resampled_subsets_of=made.subset if asked and made is not None and not made.of_all else None,
        )

    @property
    def notes(self) -> list[str]:
        """Where resamples could not be afforded, and why values are missing."""
        notes = []
        if self.plan is None:
            chosen = sorted(index for indices, _ in self._at_prevalences() for index in indices)
            names = ", ".join(self.estimands[index].text for index in chosen)
            notes = [f"Too many samples, classes and runs to resample {names}: only the values are given."] * bool(
                names
            )
        return notes + undefined_notes(self)

    def tests(self, index: int, level: float) -> list[list[Test]]:
        """Limits and p of each value, one pair after the other."""
        return [self._tests_of(index, pair, level) for pair in self.setup.pairs]

    def _tests_of(self, index: int, pair: tuple[int, int], level: float) -> list[Test]:  # noqa: ARG002 - of the draws
        """Permutation tests where they can be afforded, else normal ones; limits are read off the draws."""
        drawn = self.drawn[index]
        if drawn is None:
            return [Test()] * len(self.estimands[index].names)
        first, second = (drawn[:, run] for run in pair)
        spread = variance_of(first - second)
        gaps = np.round(self.gaps(index, pair), DECIMALS)
        # Whatever the pairing, the deviation lies between the difference and the sum of those of the runs.
        one, other = (np.sqrt(variance_of(draws)) for draws in (first, second))
        if self.runs.pairing.design is PairingDesign.TEST_SET:
            return range_tests(gaps, (one - other) ** 2, (one + other) ** 2, "bootstrap_z")
        found, permuted = normal_tests(gaps, spread, "bootstrap_z"), self._permuted(pair).get(index)
        return [
            _resampled_test(test, None if permuted is None else float(permuted[place]), fixed=bool(fixed))
            for place, (test, fixed) in enumerate(zip(found, one + other == 0, strict=True))
        ]

    def _permuted(self, pair: tuple[int, int]) -> dict[int, Array]:
        """By estimand, permutation p-values (V) from the same permutations; nothing where they would take too long."""
        entries = 4 * self._largest * self._width * max(len(self.setup.pairs), 1)
        draws = min(PERMUTATIONS, _PERMUTED_ENTRIES // entries)
        if draws < FEWEST_PERMUTATIONS or not all(run.run.exchangeable for run in self.runs.scored):
            return {}
        if pair not in self._permutations:
            first, second = pair
            self._permutations[pair] = {
                index: p
                for chosen, shares in self._at_prevalences()
                for index, p in zip(
                    chosen,
                    permutation_p(
                        self.runs.scored[first].run,
                        self.runs.scored[second].run,
                        [self.estimands[index].functional for index in chosen],
                        draws=draws,
                        random=generator(seed_of(self.settings.seed, "permutation", first, second)),
                        paired=self.runs.pairing.paired,
                        shares=shares,
                        weights=(self.runs.scored[first].weights, self.runs.scored[second].weights),
                        grouping=self.grouping,
                    ),
                    strict=True,
                )
            }
        return self._permutations[pair]

    @cached_property
    def _permutations(self) -> dict[tuple[int, int], dict[int, Array]]:
        return {}


def _resampled_test(test: Test, p: float | None, *, fixed: bool) -> Test:
    if fixed and test.reason is None:
        return replace(test, reason=NOTHING_VARIES)
    if p is None:
        return test
    return replace(test, p=p, method="permutation", reason=None if test.reason is None else NO_LIMITS)


def _within(made: Plan, run: Units) -> Plan:
    """The plan for a run that may have fewer samples than the largest."""
    size = run.n_units
    return Plan(made.draws, min(made.subset, size), size)
