"""One run as its limits are made from it: counts, and its samples and groups where they are at hand."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.domain.division import Part, Where, conditions_of, divided
from app.domain.errors import InvalidExpression
from app.domain.evaluation import EvaluationRecord
from app.domain.expressions.conditions import Slice, text_of
from app.domain.inputs.content import GROUPS_FACT, Content
from app.domain.inputs.kinds import UNIT_KINDS, units_of
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.samples import Samples
from app.domain.slices import Places, places_in, restricted
from app.kernel.compare.linear import linearised
from app.kernel.matrix.table import Table, WeightedCounts, at_equal_prevalence
from app.kernel.metrics.card import Inputs, Metric
from app.kernel.metrics.expression import (
    Combination,
    Expression,
    OverSlices,
    Sliced,
    Subject,
    compute,
    is_list,
    is_of_slices,
    needs_counts,
    of_probabilities,
    parts_of,
    value_over_slices,
)
from app.kernel.metrics.proportion import Rate
from app.kernel.numerics.arrays import Array, kept, silently
from app.kernel.samples.calibration import ErrorByChance
from app.kernel.samples.losses import Codes
from app.kernel.samples.scores import Scores
from app.kernel.streamed.labels import StreamedLabels
from app.kernel.streamed.metrics import StreamedInfluences, error_of_chance
from app.kernel.streamed.scores import StreamedScores
from app.kernel.uncertainty.closed_forms import Headlines, OverallInterval
from app.kernel.uncertainty.designs import Design, Given, Grouped, Independent, LeftOut, NoLimits, Sampled, Weighted
from app.kernel.uncertainty.groups import GroupedCounts, Grouping
from app.kernel.uncertainty.influence import Influences, LabelInfluences, Linearisation, UnitInfluences
from app.kernel.uncertainty.units import ClusterUnits, LabelUnits, Run, Units
from app.services.estimands import Estimand, make_estimand
from app.services.stored import inputs_of_all, scores_of

# Simulated outcomes behind "expected under perfect calibration", all classes and draws together: a tenth of a second.
_SIMULATED = 20_000_000
_MOST_DRAWS, _FEWEST_DRAWS = 1000, 20


class RunData:
    """One run. What several of its limits need is computed once.

    Args:
        source: Its matrix, and its samples where they are at hand.
        units: What is resampled; None: it follows from the samples.
        ids: (n) of these units.
        weights: (n) of these units; None is 1 each.
        streamed: Its probabilities or scores where an engine holds them.

    Attributes:
        weights: (n) of each sample, or other unit; None is 1 each, or not known.
    """

    def __init__(
        self,
        source: MatrixInput,
        units: Units | None = None,
        ids: NDArray[Any] | None = None,
        *,
        weights: Array | None = None,
        streamed: StreamedScores | None = None,
    ) -> None:
        self.source, self._units, self._ids, self.streamed = source, units, ids, streamed
        self.weights = source.samples.weights if weights is None and source.samples is not None else weights
        self._slices: dict[str, RunData | None] = {}
        self._divided: dict[tuple[str, int], SlicesOfRun] = {}
        # What was drawn last: limits of several levels follow from it.
        self._drawn: tuple[Any, list[Array]] | None = None
        self._chances: dict[tuple[Any, ...], ErrorByChance] = {}

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.source.labels)

    @property
    def is_counted(self) -> bool:
        """Are its entries numbers of samples, from which a sampling error follows?"""
        return self.source.content is Content.counts

    @property
    def uncounted(self) -> NoLimits | None:
        """Why nothing is known of its sampling error; None where it is."""
        samples = self.source.samples
        if not (self.is_counted or self.source.is_weighted):
            return NoLimits.NO_COUNTS
        # Those of streamed labels were added up.
        known = isinstance(self._units, StreamedLabels) or (samples is not None and samples.weights is not None)
        if self.source.is_weighted and not known:
            return NoLimits.NO_WEIGHTS
        if not self.source.is_grouped:
            return None
        if self.source.groups is None:
            return NoLimits.NO_GROUPS
        # As all samples of a slice may be.
        return NoLimits.ONE_GROUP if self.source.facts[GROUPS_FACT] == 1 else None

    @property
    def has_outputs(self) -> bool:
        """Are its probabilities or scores at hand, or whatever else a metric may need beside the counts?"""
        if self.source.task is not None:
            form = units_of(self.source.kind, self.source.facts)
            return self.source.samples is not None or (form is not None and not form.needs_samples(self.source.facts))
        return self.source.samples is not None and self.source.samples.outputs is not None

    def in_design(self, method: str) -> str:
        """Name of a method by the design of the samples: in groups, in weights, or neither."""
        return Sampled.of(grouped=self.source.is_grouped, weighted=self.source.is_weighted).named(method)

    def given(self, given: Given) -> str:
        """The counts that limits take as fixed: of weighted samples their number alone, or the classes where these are,
        of groups the groups.
        """
        if self.source.is_grouped:
            return Given.GROUPS.value
        return (Given.SAMPLES if self.weighted is not None and given is Given.PREDICTED else given).value

    @property
    def at_hand(self) -> bool:
        """Can its samples, or other units, be drawn one by one?"""
        return self.streamed is None and self.units.at_hand

    @cached_property
    def counts(self) -> Array:
        """Its matrix (K, K)."""
        return self.source.counts.astype(np.float64)

    @cached_property
    def table(self) -> Table:
        """The table of the matrix, or of the labels."""
        if self.source.task is not None:
            table: Table = self.subject.parts[Inputs.MATRIX]
            return table
        return Table(self.counts)

    @cached_property
    def scores(self) -> Scores:
        """Its probabilities or scores, of classes or of labels.

        Raises:
            ValueError: it has none.
        """
        if self.source.task is not None and Inputs.PROBABILITIES in self.subject.parts:
            of_labels: Scores = self.subject.parts[Inputs.PROBABILITIES]
            return of_labels
        return scores_of(self.source) if self.streamed is None else self.streamed

    @cached_property
    def predicted(self) -> Codes:
        """Predicted class of each sample (n)."""
        return self.source.known_samples.predicted.astype(np.intp)

    @cached_property
    def subject(self) -> Subject:
        """All that metrics of samples take."""
        if self.source.task is None:
            return Subject.of_classes(self.table, self.scores)
        return self.units.subject(self.weights)

    @property
    def unit_ids(self) -> NDArray[Any] | None:
        """Ids (n) of its units, which pair runs; None without any, or where they are not known."""
        return self.source.unit_ids if self._ids is None else self._ids

    @property
    def truth(self) -> NDArray[Any] | None:
        """Truth (n) or (n, m) of each unit; None where it cannot be held side by side."""
        return self.source.known_samples.truth if self.source.task is None else self.units.truth

    def among(self, units: NDArray[np.intp]) -> "RunData":
        """Some of its units, in this order, as a run of their own."""
        of_classes = self.source.task is None
        if np.array_equal(units, np.arange(self.source.known_samples.size if of_classes else self.units.n_units)):
            return self
        if of_classes:
            return RunData(restricted(self.source, units))
        weights = None if self.weights is None else self.weights[units]
        return RunData(self.source, self.units.part(units), weights=weights)

    @property
    def folds(self) -> "list[RunData]":
        """The folds of a cross-validated run, each as a run; none where they are not known."""
        sizes = None if self.source.samples is None else self.source.samples.fold_sizes
        if sizes is None:
            return []
        return [self.among(np.arange(end - size, end)) for end, size in zip(np.cumsum(sizes), sizes, strict=True)]

    @cached_property
    def units(self) -> Units:
        """Units of resampling."""
        if self._units is not None:
            return self._units
        if self.source.task is None:
            return Run(self.scores.with_weights(None), self.predicted)
        return UNIT_KINDS[self.source.task].units(self.source)

    def values(self, estimand: Estimand) -> Array:
        """Values (V) of an estimand.

        Raises:
            ValueError: it needs probabilities or scores, and there are none.
            InvalidInput: it is of slices that there are not.
        """
        return self.of(estimand.expression)

    def of(self, expression: Expression) -> Array:
        """Values (V) of an expression. Raises as `values` does."""
        if is_of_slices(expression):
            values = [run.of(part) for part, run in self.inside(expression)]
            return joined(expression, values, (self.n_classes if is_list(expression) else 1,))
        scored = self.source.task is not None or of_probabilities(expression)
        found = np.atleast_1d(compute(expression, self.subject if scored else self.table))
        # Sums of weights and rates are no numbers of samples.
        return found if self.is_counted or not needs_counts(expression) else found * np.nan

    def inside(self, expression: Expression) -> "list[tuple[Expression, RunData]]":
        """The parts of an expression of slices, each with the samples that it is of; none of a slice without samples.

        Raises:
            InvalidInput: there are no such attributes or values.
        """
        if isinstance(expression, Sliced):
            some = self.slice(expression.where)
            return [] if some is None else [(expression.part, some)]
        if isinstance(expression, OverSlices):
            return [(expression.part, one) for one in self.slices(expression).runs]
        return [(part, self) for part in parts_of(expression)]

    def slice(self, where: Slice) -> "RunData | None":
        """The samples in one slice, as a run of their own; None where there are none.

        Raises:
            InvalidInput: there are no such attributes or values.
        """
        text = text_of(where)
        if text not in self._slices:
            places = places_in(self.source, where, text)
            self._slices[text] = RunData(restricted(self.source, places)) if places.size else None
        return self._slices[text]

    def slices(self, over: OverSlices) -> "SlicesOfRun":
        """The slices that an expression is over, each as a run of its own.

        Raises:
            InvalidInput: there is no such attribute.
        """
        asked = over.by, over.fewest
        if asked not in self._divided:
            parts, small = divided(self.source, *asked)
            runs = [RunData(restricted(self.source, one.places)) for one in parts]
            self._divided[asked] = SlicesOfRun(parts, runs, small)
        return self._divided[asked]

    @cached_property
    def influences(self) -> Influences | UnitInfluences:
        """Influences of samples, or other units, on metrics."""
        if self.streamed is not None:
            return StreamedInfluences(self.streamed)
        if self.label_influences is not None:
            return self.label_influences
        if self.source.task is None:
            return Influences(self.scores)
        known = self.subject, self.units.n_units, self.n_classes
        return UnitInfluences(*known, weights=self.weights, left_out=self._left_out)

    def linear(self, estimand: Estimand) -> list[Linearisation] | None:
        """The values of a metric of samples as sums over these; None where they are none."""
        if not estimand.scored:
            return None
        found = linearised(estimand.expression, self.influences)
        if found is None and self.label_influences is not None:
            one = self.label_influences.of_tables(estimand.expression)
            found = None if one is None else [one]
        return found

    @cached_property
    def label_influences(self) -> LabelInfluences | None:
        """Influences of samples with labels, which have metrics of their tables too; None for others."""
        units = self.units if self.source.task is not None else None
        if isinstance(units, StreamedLabels):
            return units.influences()
        if not isinstance(units, LabelUnits):
            return None
        design = units.designed(self.weights, self.grouping)
        known = self.subject, units.n_units, self.n_classes, units.pairs, design
        return LabelInfluences(*known, weights=self.weights, left_out=self._left_out)

    @property
    def _left_out(self) -> LeftOut | None:
        """Tables of its units without each of the groups."""
        if self.grouping is None or not isinstance(self.units, LabelUnits | ClusterUnits):
            return None
        return self.units.left_out(self.weights, self.grouping)

    @cached_property
    def grouping(self) -> Grouping | None:
        """Groups of dependent samples; None when they are independent.

        Raises:
            ValueError: the samples come in groups that are not at hand.
        """
        if not self.source.is_grouped:
            return None
        if self.source.groups is None:
            raise ValueError("expected the samples with their groups")
        return Grouping.of(self.source.groups, self.source.known_samples.times)

    @cached_property
    def groups(self) -> GroupedCounts | None:
        """Counts of each group; None when the samples are independent."""
        if self.grouping is None or self.source.task is not None:
            return None
        samples = self.source.known_samples
        codes, tally = self.grouping.codes, samples.tally
        if tally is None:
            return GroupedCounts.gather(codes, samples.truth, samples.predicted, self.n_classes, samples.weights)
        sizes = tally.times.astype(np.float64) if samples.weights is None else samples.weights
        runs = GroupedCounts.gather(codes, samples.truth, samples.predicted, self.n_classes, sizes)
        return replace(runs, n_samples=int(tally.used.sum()))

    @cached_property
    def weighted(self) -> WeightedCounts | None:
        """Matrix of weights, of squared weights and of numbers of samples; None for groups, without weights, or without
        a matrix.

        Raises:
            ValueError: the weights are not at hand.
        """
        if not self.source.is_weighted or self.source.is_grouped or self.source.task is not None:
            return None
        return self._in_weights

    @cached_property
    def _in_weights(self) -> WeightedCounts:
        samples = self.source.known_samples
        weights, sums = samples.weights, samples.weight_sums
        if weights is None or sums is None:
            raise ValueError("expected the samples with their weights")
        return WeightedCounts.of(samples.truth, samples.predicted, weights, self.n_classes, sums.squares, sums.used)

    @property
    def sampled(self) -> Array:
        """Numbers of samples (K, K), whatever they weigh; their weights where they are not at hand."""
        samples = self.source.samples
        return self.source.counts if samples is None or samples.weights is None else self._in_weights.samples

    @property
    def squares(self) -> Array | None:
        """Sums of squared weights (K, K) of independent weighted samples."""
        return None if self.weighted is None else self.weighted.squares

    @cached_property
    def design(self) -> Design:
        """Sampling design of the matrix."""
        if self.groups is not None:
            return Grouped(self.groups)
        return Independent(Table(self.counts)) if self.weighted is None else Weighted(self.weighted)

    def counted(self, rates: Sequence[Rate], level: float) -> tuple[Array, Array]:
        """Hits and totals (V) of rates, of labels those of one form, for intervals of proportions at a level: numbers
        of samples, or effective numbers of those in weights or groups.
        """
        if self.source.task is None:
            hits, among = np.array([self.design.counts(rate, level) for rate in rates], dtype=np.float64).T
            return hits, among
        labels, influences = [rate.of for rate in rates if rate.of is not None], self.label_influences
        assert influences is not None  # noqa: S101 - nothing but labels has rates beside classes
        hits, among = influences.designed.rates(rates[0]).as_counts(level)
        return hits[labels], among[labels]

    @kept
    def closed_forms(self, level: float) -> Headlines:
        """Limits of the usual metrics at this level."""
        return Headlines(self.design, level)

    def drawn(self, asked: Any, draw: Callable[[], list[Array]]) -> list[Array]:
        """Draws (D, V) of its metrics, made anew where something else is asked for than the last time."""
        if self._drawn is None or self._drawn[0] != asked:
            self._drawn = asked, draw()
        return self._drawn[1]

    @kept
    def at_equal_shares(self, level: float) -> tuple[OverallInterval, ...]:
        """Limits of the usual metrics that prevalence moves, at equal class prevalence; none of weights or groups."""
        if self.source.is_grouped or self.source.is_weighted or self.source.task is not None:
            return ()
        counts = self.counts[None, None]
        with silently():
            pairs = Table(np.concatenate([counts, at_equal_prevalence(counts)], axis=1))
        return Headlines.of_pairs(pairs, level).at_equal_shares()[0]

    def by_chance(self, metric: Metric[Scores], parameters: Mapping[str, Any], seed: int) -> ErrorByChance | None:
        """A calibration error beside that of perfect probabilities; None for what is no calibration error."""
        simulate = metric.card.inference.by_chance
        if simulate is None or not self.scores.are_probabilities:
            return None
        asked = (metric.key, *sorted(parameters.items()), seed)
        if self.streamed is not None:
            return error_of_chance(self.streamed, metric, _MOST_DRAWS, seed)
        if asked not in self._chances:
            draws = max(_FEWEST_DRAWS, min(_MOST_DRAWS, _SIMULATED // self.scores.probabilities.size))
            whole = {name: int(value) for name, value in parameters.items()}
            self._chances[asked] = simulate(self.scores, **whole, draws=draws, seed=seed)
        return self._chances[asked]


def joined(expression: Expression, values: Sequence[Array], shape: tuple[int, ...]) -> Array:
    """Values (..., V) of an expression of slices, which have this shape, from those (..., V) of what is inside."""
    if isinstance(expression, Sliced):
        return values[0] if values else np.full(shape, np.nan)
    if isinstance(expression, OverSlices):
        each = np.reshape([one[..., 0] for one in values], (len(values), *shape[:-1]))
        return np.asarray(value_over_slices(expression, np.moveaxis(each, 0, -1)))[..., None]
    if not isinstance(expression, Combination):
        raise TypeError("expected an expression of slices")
    return np.asarray(expression.card.compute(np.concatenate(values, axis=-1), **expression.parameters))[..., None]


@dataclass(frozen=True, slots=True, eq=False)
class SlicesOfRun:
    """The slices of an attribute.

    Attributes:
        parts: Those of enough samples.
        runs: The samples of each.
        small: Those of too few samples.
    """

    parts: Sequence[Part]
    runs: Sequence[RunData]
    small: Sequence[Part]

    @property
    def independent(self) -> bool:
        """Has no group samples in several of them?"""
        known = [run.source.samples.groups for run in self.runs if run.source.samples is not None]
        groups = [np.unique(one) for one in known if one is not None]
        return not groups or np.unique(np.concatenate(groups)).size == sum(one.size for one in groups)


def in_all_runs(parts: Sequence[Sequence[Part]]) -> list[tuple[Where, list[Places]]]:
    """Each slice that all runs have, with the places of its samples in each."""
    known = [{text_of(conditions_of(part.where)): part for part in own} for own in parts]
    return [
        (one.where, [own[text].places for own in known])
        for text, one in known[0].items()
        if all(text in own for own in known)
    ]


def run_data(record: EvaluationRecord, samples: Samples | None = None) -> RunData:
    """A stored run, with its samples where something asked of it needs them."""
    return RunData(replace(record, samples=samples))


def estimand_for(metric: str, record: EvaluationRecord) -> Estimand:
    """A metric for the classes of a stored run.

    Raises:
        InvalidExpression: it is none.
    """
    inputs = inputs_of_all([record])
    return make_estimand(metric, record.labels, record.positive, inputs, *record.judged, sliceable=True)


def single_value(metric: str, record: EvaluationRecord) -> Estimand | str:
    """A metric with one value for the classes of a stored run, or why it has none."""
    try:
        estimand = estimand_for(metric, record)
    except InvalidExpression as error:
        return error.detail
    return "a list over the classes has no order" if estimand.is_list else estimand
