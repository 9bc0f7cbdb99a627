"""Runs compared by what each sample, or other unit, adds to their values: closed forms and derivatives."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from app.domain.findings import Finding
from app.domain.inputs.confusion import ConfusionMatrix
from app.domain.inputs.content import Content
from app.domain.inputs.kinds import UNIT_KINDS
from app.kernel.compare.linear import Linear, LinearRuns, StreamedRuns, hits_of, join_runs, linearised
from app.kernel.compare.paired.joint import JointCounts, combine
from app.kernel.compare.rankings import cochran_q
from app.kernel.matrix.prevalence import class_factors
from app.kernel.matrix.table import Table, confusion_counts
from app.kernel.metrics.expression import Measure, measures, needs_counts
from app.kernel.metrics.families.averages import accuracy
from app.kernel.metrics.families.score_ranking import precision_at, recall_at, specificity_at
from app.kernel.numerics.arrays import Array, silently, sums_by_code
from app.kernel.samples.influence import LinearMethod
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.closed_forms import cell_slopes
from app.kernel.uncertainty.designs import NoLimits
from app.kernel.uncertainty.draws import generator, seed_of
from app.kernel.uncertainty.groups import FEW_GROUPS, GroupedCounts, Grouping
from app.kernel.uncertainty.influence import Influences, Linearisation, UnitInfluences
from app.kernel.uncertainty.jackknife import blocks_of, unit_influences
from app.kernel.uncertainty.units import Run, Units
from app.services.estimands import Estimand, make_estimand
from app.services.estimates.estimate import LimitSettings
from app.services.estimates.estimates import estimate
from app.services.estimates.run_data import RunData
from app.services.reasons import gap_of, uncounted
from app.services.runs.aligned import Runs
from app.services.runs.differences import Test, read_off, same_runs
from app.services.runs.matrix_draws import (
    ChiSquaredTest,
    CommonPrevalence,
    MatrixDraws,
    OmnibusTest,
    Resampling,
    ResamplingDesign,
    Setup,
)
from app.services.runs.pairing import PairingDesign

# Decimals beyond which values that other sums gave are the same.
_DECIMALS = 12
_NO_VARIANCE = "the difference is not 0 but does not vary over the samples, so no test applies to it"
_NOTHING_VARIES = "neither value varies over the samples, so the test cannot tell how sure their equality is"
_NOT_FOLDED = (
    "the samples were too many to be looked at together, and not all metrics are added up sample by sample (not_folded)"
)
_NAMES = {LinearMethod.DELONG_LOGIT: "delong", LinearMethod.HALL_T: "t", LinearMethod.JACKKNIFE: "jackknife_t"}


def undefined_notes(of: "LinearDifferences") -> list[str]:
    """Name the values of samples that do not exist, with their reasons: those of the runs as they are, since runs are
    compared at other class shares where they have the same classes.
    """
    notes, labels, streamed = list[str](), of.runs.labels, of.runs.streamed
    if not any(estimand.scored for estimand in of.estimands):
        return notes
    runs = of.runs.scored
    if streamed is not None:
        # Others whose samples lack what the streamed ones lack, so that the same values are undefined.
        runs = tuple(_as_undefined(of.runs, streamed, run) for run in range(len(runs)))
    for number, (run, record) in enumerate(zip(runs, of.runs.records, strict=True)):
        subject = run.units.subject(run.weights)
        for estimand, values, forms in zip(of.estimands, of.values, of.forms, strict=True):
            if not estimand.scored or forms is None or of.setup.prevalence.without(estimand):
                continue
            for place in np.flatnonzero(~np.isfinite(values[number])).tolist():
                class_name = f" of class {labels[place]!r}" if estimand.is_list else ""
                lacking = uncounted(run.source) if needs_counts(estimand.expression) else None
                why = lacking or gap_of(estimand.expression, subject, labels, place)[1]
                notes.append(f"{estimand.text}{class_name} is undefined for {record.model.name} ({record.id}): {why}.")
    return notes


def _as_undefined(runs: Runs, streamed: StreamedRuns, run: int) -> RunData:
    """One sample of each class that there is, with a probability of 0 where a value is infinite."""
    y, size = np.flatnonzero(runs.counts[run].sum(axis=1)), runs.n_classes
    rows = np.full((y.size, size), 1.0 / size)
    for code in streamed.ruled_out(run):
        rows[y == code] = np.eye(size)[(code + 1) % size]
    source = runs.data[run].source
    made = Scores.of_class_scores if source.has_scores else Scores
    return RunData(source, Run(made(y, rows), y))


# Fewer units, or samples of a class, leave a difference without limits: no signs of six differences have a p below .03.
FEWEST_UNITS = 6
TOO_FEW_UNITS = (
    f"fewer than {FEWEST_UNITS} queries, or other units, say too little of a difference for limits and a test"
)
_TOO_FEW_OF_CLASS = (
    f"a class with fewer than {FEWEST_UNITS} samples says too little of a difference for limits and a test"
)
# Of |skewness| / sqrt(n): about a point of error on one side of t limits (Edgeworth).
_SKEWED = 0.12


@dataclass(frozen=True, slots=True, eq=False)
class LinearForm:
    """One value of all runs as sums over their samples, other units, or groups of them.

    Attributes:
        runs: The value of each run, together.
        share: A share of the samples, as the accuracy of matrices that are right where a sample counts; None of others.
        skewness: Of a mean over units, (R, R) that of the difference of two runs: of one unit, over the square root of
            their number.
        too_few: Why there are no limits, where too few units say how the value varies.
        units: How many there are, of samples of classes in the smallest class.
    """

    runs: LinearRuns
    share: MatrixDraws | None = None
    skewness: Array | None = None
    too_few: str | None = None
    units: float = np.inf


def _linear_forms(setup: Setup, estimands: Sequence[Estimand]) -> list[tuple[LinearForm, ...] | None]:
    """For each estimand its values as sums, None where even derivatives would take too long, or samples were streamed.

    A closed form where there is one, at the prevalence that the runs are compared at, and else derivatives by the
    weight of each unit.
    """
    runs, streamed, prevalence = setup.runs, setup.runs.streamed, setup.prevalence
    found: dict[int, tuple[LinearForm, ...] | None] = {}
    of_samples = [index for index, estimand in enumerate(estimands) if estimand.scored]
    influences = [*map(_influences, runs.scored)] if of_samples and streamed is None else []
    for index, estimand in enumerate(estimands):
        if not estimand.scored:
            found[index] = _form_of_matrices(setup, estimand)
        elif streamed is not None:
            values = streamed.of(estimand.expression)
            found[index] = None if values is None else tuple(_streamed_form(setup, value) for value in values)
        elif not prevalence.moves(estimand) and (known := _closed_form(setup, estimand, influences)) is not None:
            found[index] = known
    for moved, shares in ((False, None), (True, prevalence.shares)):
        rest = [index for index in of_samples if index not in found and prevalence.moves(estimands[index]) is moved]
        if rest:
            forms = _numeric_forms(setup, [estimands[index] for index in rest], shares)
            found |= dict(zip(rest, forms, strict=True))
    return [found[index] for index in range(len(estimands))]


def _influences(run: RunData) -> Linear:
    if run.source.task is None:
        return Influences(run.scores)
    return UnitInfluences(run.subject, run.units.n_units, run.n_classes, weights=run.weights)


def _closed_form(setup: Setup, estimand: Estimand, influences: Sequence[Linear]) -> tuple[LinearForm, ...] | None:
    parts: list[list[Linearisation]] = []
    for of in influences:
        values = linearised(estimand.expression, of)
        if values is None:
            return None
        parts.append(values)
    return tuple(_joined(setup, value, setup.runs.groupings) for value in zip(*parts, strict=True))


def _streamed_form(setup: Setup, value: LinearRuns) -> LinearForm:
    """Closed form of streamed samples."""
    joint, counted = setup.runs.pairing.joint, value.counted
    if counted is not None and np.isfinite(value.values).all():
        return LinearForm(value, _share(setup, value, counted.matrices(), counted))
    members = setup.runs.counts[0].sum(axis=1) if joint is None else joint.members()
    return LinearForm(value, units=float(members[members > 0].min()))


def _share(setup: Setup, value: LinearRuns, counts: Array, joint: JointCounts | None) -> MatrixDraws:
    """Return a share of the samples as the accuracy of matrices (R, K, K), which belong together in this way."""
    known = [
        replace(record, kind=ConfusionMatrix.kind, content=Content.counts, counts=own, facts={}, samples=None)
        for record, own in zip(setup.runs.records, counts, strict=True)
    ]
    runs = replace(setup.runs, records=tuple(known), pairing=replace(setup.runs.pairing, joint=joint))
    settings = replace(setup.settings, seed=seed_of(setup.settings.seed, "normal"))
    own = replace(setup, runs=runs, prevalence=CommonPrevalence(), settings=settings)
    return MatrixDraws(own, [make_estimand(accuracy.key, runs.labels, None)], [value.values[:, None]])


def _form_of_matrices(setup: Setup, estimand: Estimand) -> tuple[LinearForm, ...]:
    """Values of matrices of samples in groups."""
    runs, shares = setup.runs, setup.prevalence.shares if setup.prevalence.moves(estimand) else None

    def at_shares(table: Table) -> Array:
        if shares is None:
            return estimand.functional(table)
        # A class without samples, and be it without one of the groups, is not to be brought to a share.
        actual = table.counts.sum(axis=-1)
        reached = ((shares == 0.0) | (actual > 0.0)).all(axis=-1)
        values = estimand.functional(Table(table.counts * class_factors(actual, shares)[..., None]))
        return np.where(reached.reshape(reached.shape + (1,) * (values.ndim - reached.ndim)), values, np.nan)

    parts: list[list[Linearisation]] = []
    groupings = []
    for run in range(len(runs)):
        held = runs.in_groups(run)
        with silently():
            values = np.atleast_1d(at_shares(Table(runs.counts[run])))
            each = _added_by_groups(held, values, at_shares)
        parts.append([_of_derivatives(value, added, estimand) for value, added in zip(values, each, strict=True)])
        groupings.append(Grouping(np.arange(held.n_groups), held.n_groups))
    return tuple(_joined(setup, value, groupings) for value in zip(*parts, strict=True))


def _added_by_groups(held: GroupedCounts, values: Array, functional: Callable[[Table], Array]) -> Array:
    """Return what each group adds to values (V) of a matrix, shape (V, G); of too many groups by derivatives."""
    added = held.without_each(values, functional)
    if added is None:
        slopes = cell_slopes(held.matrix(), functional).reshape(values.size, -1)
        added = np.stack([sums_by_code(held.codes, row[held.cell] * held.times, held.n_groups) for row in slopes])
    return added


def _of_derivatives(value: float, influence: Array, estimand: Estimand, freedom: float = np.inf) -> Linearisation:
    influence = influence if np.isfinite(value) else np.full(influence.shape, np.nan)
    return Linearisation(
        float(value), influence, method=LinearMethod.JACKKNIFE, bounds=estimand.bounds, freedom=freedom
    )


def _numeric_forms(
    setup: Setup, estimands: Sequence[Estimand], shares: Array | None
) -> list[tuple[LinearForm, ...] | None]:
    """Values by the derivatives by the weight of each unit, or of each block of them where they are many."""
    runs, functionals = setup.runs.scored, [estimand.functional for estimand in estimands]
    groupings, seed = setup.runs.groupings, seed_of(setup.settings.seed, "blocks")
    made = [
        blocks_of(run.units, len(runs), seed, grouping)
        for run, grouping in zip(runs, groupings or [None] * len(runs), strict=True)
    ]
    known = [blocks for blocks in made if blocks is not None]
    if len(known) < len(made):
        return [None] * len(estimands)
    parts: list[list[list[Linearisation]]] = []
    for run, blocks in zip(runs, known, strict=True):
        added = unit_influences(run.units, functionals, blocks, run.weights, centred=not groupings, shares=shares)
        with silently():
            subject = run.units.subject(run.units.at_shares(run.weights, shares))
            values = [np.atleast_1d(functional(subject)) for functional in functionals]
        fewest = _fewest(run.units, run.weights)
        parts.append(
            [
                [_of_derivatives(value, row, estimand, fewest - 1.0) for value, row in zip(of, rows, strict=True)]
                for estimand, of, rows in zip(estimands, values, added, strict=True)
            ]
        )
    same = [Grouping(np.arange(count), count) for _, count in known] if groupings else []
    return [
        tuple(_joined(setup, value, same) for value in zip(*of_estimand, strict=True))
        for of_estimand in zip(*parts, strict=True)
    ]


def _joined(setup: Setup, parts: tuple[Linearisation, ...], groupings: Sequence[Grouping]) -> LinearForm:
    """Return one value of independent samples or other units, of blocks of them, or of groups."""
    pairing = setup.runs.pairing
    same_items = pairing.design is PairingDesign.TEST_SET
    if groupings:
        runs = join_runs(parts, [], paired=pairing.paired, same_items=same_items, groupings=groupings)
        return LinearForm(runs, units=float(min(one.n_groups for one in groupings)))
    scored = setup.runs.scored
    # Units other than samples of classes are all of one class: right or not.
    size = setup.runs.n_classes if setup.runs.task is None else 2
    whole = all(part.influence.size == run.units.n_units for part, run in zip(parts, scored, strict=True))
    truths = [
        run.units.strata if whole else np.zeros(part.influence.size, np.intp)
        for part, run in zip(parts, scored, strict=True)
    ]
    runs = join_runs(parts, truths, paired=pairing.paired, same_items=same_items)
    counted = all(
        part.method is LinearMethod.WILSON and part.worth is None and part.freedom + 1 >= part.influence.size
        for part in parts
    )
    if not counted or not np.isfinite(runs.values).all():
        is_numeric = any(part.method is LinearMethod.JACKKNIFE for part in parts)
        units = min(_fewest(run.units, run.weights) for run in scored)
        skewed = None if setup.runs.task is None else _skewness(parts, paired=pairing.paired)
        few = (is_numeric or setup.runs.task is not None) and units < FEWEST_UNITS
        why = TOO_FEW_UNITS if setup.runs.task is not None else _TOO_FEW_OF_CLASS
        return LinearForm(runs, skewness=skewed, too_few=why if few else None, units=units)
    decided = [
        np.where(hits_of(part) > 0, y, (y + 1) % size).astype(np.int64) for part, y in zip(parts, truths, strict=True)
    ]
    counts = np.stack([confusion_counts(y, codes, size) for y, codes in zip(truths, decided, strict=True)])
    joint = combine(truths[0].astype(np.int64), np.stack(decided), size) if pairing.paired else None
    few = setup.runs.task is not None and counts.sum(axis=(1, 2)).min() < FEWEST_UNITS
    share = _share(setup, runs, counts.astype(np.float64), joint)
    return LinearForm(runs, share, too_few=TOO_FEW_UNITS if few else None)


def _fewest(run: Units, weights: Array | None) -> float:
    """Return the size of the smallest stratum that has a sample with a weight."""
    each = run.multiplicities if run.multiplicities is not None else np.ones(run.n_units)
    counts = np.bincount(run.strata, each if weights is None else each * (weights > 0), run.n_strata)
    return float(counts[counts > 0].min(initial=np.inf))


def _skewness(parts: Sequence[Linearisation], *, paired: bool) -> Array:
    """Skewness (R, R) of the differences of means, 0 without variance."""
    found = np.zeros((len(parts), len(parts)))
    for first, one in enumerate(parts):
        for second, other in enumerate(parts[:first]):
            apart = [one.influence - other.influence] if paired else [one.influence, -other.influence]
            squares, cubes = (sum(float((moved**power).sum()) for moved in apart) for power in (2, 3))
            found[first, second] = found[second, first] = abs(cubes) / squares**1.5 if squares > 0 else 0.0
    return found


# Rates at a threshold that is chosen anew in every sample.
_AT_RATES = (recall_at, specificity_at, precision_at)
_ALONE_AT_RATE = "limits of a rate at a rate are known for the rate alone, and not for what is made of several"


def _by_id(run: RunData) -> RunData:
    """Return the run with its samples in the order of their ids: draws follow the samples then, not their places."""
    samples = run.source.samples
    if samples is None or samples.ids is None:
        return run
    return RunData(replace(run.source, samples=samples.taken(np.argsort(samples.ids, kind="stable"))))


class LinearDifferences(Resampling):
    """Values as sums over units: one Student's t distribution of each difference, and normal draws of all runs."""

    @cached_property
    def forms(self) -> list[tuple[LinearForm, ...] | None]:
        """Each estimand as sums; None for what has none."""
        return _linear_forms(self.setup, self.estimands)

    @property
    def _left_out(self) -> list[Estimand]:
        """Metrics that were not summed of streamed samples, or whose derivatives would take too long."""
        return [estimand for estimand, forms in zip(self.estimands, self.forms, strict=True) if forms is None]

    def without(self, index: int) -> str | None:
        """Why the values of an estimand are not known."""
        return _NOT_FOLDED if self.forms[index] is None and self.runs.streamed is not None else None

    @cached_property
    def drawn(self) -> list[Array | None]:
        """Draws (D, R, V) of each estimand, joint where the runs are paired; None of too few units."""
        return [
            None
            if forms is None or any(form.too_few for form in forms)
            else np.stack([self._draw(form) for form in forms], axis=-1).round(_DECIMALS)
            for forms in self.forms
        ]

    def _draw(self, form: LinearForm) -> Array:
        """Draws (D, R) of one value; a share is drawn as the accuracy that it is."""
        drawn = None if form.share is None else form.share.drawn[0]
        # The same for every value, so that what else is asked changes nothing.
        random = generator(seed_of(self.settings.seed, "normal"))
        return form.runs.draw(self.settings.draws, random) if drawn is None else drawn[:, :, 0]

    @property
    def design(self) -> ResamplingDesign:
        """Design of the simulation: its draws, and the number of groups."""
        if len(self._left_out) == len(self.estimands):
            return ResamplingDesign()
        if not self.runs.grouped:
            return ResamplingDesign(draws=self.settings.draws)
        return ResamplingDesign(draws=self.settings.draws, class_counts="random", n_groups=self._n_groups)

    @property
    def _n_groups(self) -> int:
        """Number of groups of the run that has the fewest, of those whose samples come in groups."""
        runs = self.runs
        together = zip(runs.groupings, runs.records, strict=True)
        return min(one.n_groups for one, record in together if runs.pairing.paired or record.is_grouped)

    @property
    def notes(self) -> list[str]:
        """Notes on missing values, the effect of groups, and metrics that are left out."""
        lacking = ", ".join(estimand.text for estimand in self._left_out)
        last = []
        if lacking and self.runs.streamed is not None:
            last = [f"Not compared: {lacking}: {_NOT_FOLDED}."]
        elif lacking:
            last = [f"Too many samples, classes and runs for derivatives of {lacking}: only the values are given."]
        if len(self._left_out) == len(self.estimands):
            return last
        notes = undefined_notes(self)
        if not self.runs.grouped:
            return notes + last
        notes.append(
            f"The samples come in {self._n_groups} groups: the variance is that between the groups. A test that all "
            "runs are equal is left out: it takes samples as independent."
        )
        if self._n_groups < FEW_GROUPS:
            notes.append(
                f"With fewer than {FEW_GROUPS} groups limits, though widened for it, can hold the truth less often "
                "than their level says."
            )
        return notes + last

    @property
    def findings(self) -> list[Finding]:
        """Caution about means whose differences are too skewed for the t distribution."""
        task = self.runs.task
        if task is None:
            return []
        names = [
            estimand.text
            for estimand, forms in zip(self.estimands, self.forms, strict=True)
            if any(
                form.skewness is not None and not form.too_few and form.skewness[pair] > _SKEWED
                for form in forms or ()
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
        estimand, forms = self.estimands[index], self.forms[index]
        if forms is None:
            return [[Test()] * len(estimand.names) for _ in self.setup.pairs]
        of_forms = [self._tests_with(form, estimand, level) for form in forms]
        if any(one.metric in _AT_RATES for one in measures(estimand.expression)):
            of_forms = [self._at_rates(estimand, place, level, tests) for place, tests in enumerate(of_forms)]
        return [[tests[place] for tests in of_forms] for place in range(len(self.setup.pairs))]

    def _at_rates(self, estimand: Estimand, place: int, level: float, known: Sequence[Test]) -> list[Test]:
        """Tests of a rate at a rate: MOVER over the limits of each run (Zou & Donner 2008).

        How a threshold varies that a rate chooses is no sum over samples, so derivatives miss most of it.
        """
        if not isinstance(estimand.expression, Measure):
            return [one if one.identical else Test(reason=_ALONE_AT_RATE) for one in known]
        settings = LimitSettings(level=level)
        own = [estimate([estimand], _by_id(one), settings)[0][place] for one in self.runs.data]
        index = self.estimands.index(estimand)
        gaps = [self.gaps(index, pair)[place : place + 1] for pair in self.setup.pairs]
        found = self.by_own_limits(own, gaps, level)
        return [test if test.identical else made for test, made in zip(known, found, strict=True)]

    def _tests_with(self, form: LinearForm, estimand: Estimand, level: float) -> list[Test]:
        if form.too_few:
            return [Test(reason=form.too_few)] * len(self.setup.pairs)
        if form.share is not None:
            return [test for (test,) in form.share.tests(0, level)]
        return [self._test(form, estimand, pair, level) for pair in self.setup.pairs]

    def _test(self, form: LinearForm, estimand: Estimand, pair: tuple[int, int], level: float) -> Test:
        """Return the test of a value that is a sum over the samples, from its covariance between the runs."""
        runs, pairing, rope = form.runs, self.runs.pairing, self.settings.rope
        both = {runs.methods[run] for run in pair}
        name = _NAMES.get(both.pop(), "influence") if len(both) == 1 else "influence"
        if self.runs.grouped:
            name = "grouped_t"
        elif name == "t" and pairing.design is not PairingDesign.TEST_SET:
            name = "paired_t" if pairing.paired else "welch_t"
        if runs.against is not None:
            name = f"{name}_of_any_pairing"
        found = runs.difference(*pair)
        if pairing.paired and runs.varies(pair[0]) and runs.variance(*pair) <= 0.0 and found.gaps[0] == 0.0:
            low, high = estimand.bounds
            width = np.inf if low is None or high is None else high - low
            return same_runs(form.units, width, level=level, rope=rope, method=name)
        (test,) = read_off(found, level=level, rope=rope, method=name)
        if np.isnan(test.p_value):
            unknown = self.runs.grouped and np.isnan(runs.variance(*pair))
            return Test(reason=NoLimits.ONE_GROUP.value if unknown else _NO_VARIANCE)
        if np.isnan(test.low):
            return Test(p_value=test.p_value, method=name, reason=_NOTHING_VARIES)
        if runs.alike is None:
            return test
        least = runs.difference(*pair, runs.alike).p
        # Where one pairing leaves no variance at all, a difference would be certain.
        return replace(test, smallest=0.0 if np.isnan(least[0]) else float(least[0]))

    def omnibus(self, index: int, place: int) -> OmnibusTest | None:
        """Three or more paired runs: the chi-squared test that all have the same value."""
        forms = self.forms[index]
        if forms is None:
            return None
        form = forms[place]
        if not self.runs.pairing.paired or len(self.runs) < 3 or not np.isfinite(form.runs.values).all():
            return None
        joint = None if form.share is None else form.share.runs.pairing.joint
        if joint is not None:
            found, name = cochran_q(joint), "cochran_q"
        elif self.runs.task is not None or self.runs.grouped or LinearMethod.JACKKNIFE in form.runs.methods:
            # The chi-squared distribution needs more queries, groups or degrees of freedom than there often are.
            return None
        else:
            found = form.runs.equality()
            name = "delong" if set(form.runs.methods) == {LinearMethod.DELONG_LOGIT} else "wald"
        return OmnibusTest(test=name, of="equal values", found=ChiSquaredTest.of(found)) if found.freedom else None
