"""Comparisons of runs: fetched, paired where possible, computed, kept whole."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Final
from uuid import UUID

import numpy as np

from app.domain.decisions import ComparisonFilter, ComparisonKind, ComparisonSummary, PairVerdict
from app.domain.division import Where, divided, slice_text
from app.domain.errors import IncomparableRuns, InvalidInput, NotFound, OutOfReach, TooLarge
from app.domain.evaluation import EvaluationRecord, Page
from app.domain.findings import Finding
from app.domain.inputs.content import Content
from app.domain.named_metrics import COMPARED, EACH_RECALL, MOST_CLASSES_COMPARED
from app.domain.slices import Places
from app.domain.wording import names as names_of
from app.kernel.causes import mixtures
from app.kernel.compare.rankings import Adjustment as Adjustment
from app.kernel.metrics.card import INPUTS_OF_CLASSES, Task
from app.kernel.metrics.expression import Expression, Measure, is_improper
from app.kernel.metrics.families.score_ranking import roc_auc
from app.kernel.uncertainty.draws import Alternative as Alternative
from app.services.compare.answers import ComparedMetric, ComparedSlice, KeptAnswers, RunComparison
from app.services.compare.comparison_answer import NewComparison as NewComparison
from app.services.compare.comparison_answer import adjusted_p, answered, comparison_answer
from app.services.compare.elsewhere import Rereading, can_be_paired, lies_elsewhere, pair_streamed, streamed_queries
from app.services.compare.pairs import CostQuestion as CostQuestion
from app.services.compare.pairs import check_costs
from app.services.estimands import Better, Estimand, parse_estimands, pointer_to, require_comparable, usual_metrics
from app.services.estimates.run_data import in_all_runs
from app.services.present import made_id
from app.services.processes.compute import ComputePool
from app.services.runs.aligned import Runs
from app.services.runs.causes import kind_of_causes
from app.services.runs.comparison import Comparison, proper_scores
from app.services.runs.matrix_draws import InferenceSettings
from app.services.runs.pairing import (
    MOST_ENTRIES,
    KeptSamples,
    check_entries,
    entries_of,
    missing_design,
    read_labels,
    read_outputs,
    unpaired,
)
from app.services.runs.pairing import PairingMode as PairingMode
from app.services.stored import identified, identified_once, inputs_of_all, records_of, with_parts

# Differences in one answer, and in all slices of one: pairs of runs times values.
MOST_DIFFERENCES = 20_000
# Of which causes are looked for: some ten seconds.
_MOST_MIXTURES = 1 << 18
_CAN_BE_PAIRED = (
    "The runs are not paired. Samples that were not saved lie where the data of the runs was named: with "
    "`paired: true` a job reads them again, and pairs the runs where they have sample ids."
)


@dataclass(frozen=True, slots=True, eq=False)
class AskedComparison:
    """A comparison that makes sense, as far as that is known without samples.

    Attributes:
        new: With ids in the place of references.
        elsewhere: Those of the runs whose samples have to be read again where their data was named.
    """

    new: NewComparison
    runs: Runs
    estimands: tuple[Estimand, ...]
    elsewhere: tuple[EvaluationRecord, ...] = ()

    @property
    def scored(self) -> str | None:
        """The first metric or part that needs probabilities or scores of the samples; None without any."""
        costs = self.new.cost_ranges
        best = "best_thresholds" if costs is not None and costs.best_thresholds else None
        return next((estimand.text for estimand in self.estimands if estimand.scored), best)


class ComparisonService(KeptAnswers):
    """Compares runs and remembers what was said."""

    async def prepare(self, project: str, new: NewComparison) -> AskedComparison:
        """Find the runs, and what is asked of them.

        Raises:
            NotFound: an evaluation does not exist.
            InvalidInput: two references name the same one, or the baseline is none of them.
            IncomparableRuns: they cannot be compared, or one holds weights or rates, so nothing is known of its
                uncertainty.
            IncomparableLabels: they have different classes.
            InvalidExpression: a metric is none, or cannot say what is better.
            OutOfReach: more differences than one answer may have.
        """
        new, identifiers = await self._identified(project, new)
        pointers = [f"/evaluations/{place}" for place in range(len(identifiers))]
        found = await records_of(self.store, project, identifiers, pointers)
        for record, pointer in zip(found, pointers, strict=True):
            if record.content is not Content.counts and not record.is_weighted:
                raise IncomparableRuns(
                    f"expected numbers of samples, but the matrix of {record.id} holds {record.content}: how uncertain "
                    "it is cannot be known",
                    pointer=pointer,
                )
        runs = Runs.align(await with_parts(self.store, project, found))
        must_pair = new.paired is PairingMode.TRUE
        elsewhere = tuple(record for record in runs.records if must_pair and lies_elsewhere(record))
        return AskedComparison(new, runs, understood(new, runs), elsewhere)

    async def answer(
        self,
        project: str,
        asked: AskedComparison,
        reading: Rereading | None = None,
        compute: ComputePool | None = None,
    ) -> RunComparison:
        """Compare runs by what is saved of them, or read again, however long that takes, and keep the answer.

        Raises:
            IncomparableRuns: they cannot be paired as asked, or lack samples.
            OutOfReach: they have too many samples to be looked at.
            DataNotAllowed, InvalidInput, TooLarge: as `Rereading.at_once`.
        """
        kept = await self._samples(project, asked)
        work = partial(compare, asked, kept, identifier=made_id())
        if reading is not None:
            work = partial(compare_again, asked, kept, reading, identifier=made_id())
        return await self.compute_and_keep(project, ComparisonKind.RUNS, work, compute)

    async def computed(self, project: str, new: NewComparison) -> RunComparison:
        """Compare runs by what is saved of them; the answer is not.

        Raises:
            NotFound, InvalidInput, IncomparableRuns, IncomparableLabels, InvalidExpression, OutOfReach: as before.
        """
        asked = await self.prepare(project, new)
        kept = await self._samples(project, asked)
        return await self.compute.run(partial(compare, asked, kept, identifier=made_id()))

    async def _identified(self, project: str, new: NewComparison) -> tuple[NewComparison, list[UUID]]:
        """Return the request with ids in place of references, and the ids of the runs."""
        found = await identified_once(self.store, project, new.evaluations)
        if new.baseline is None:
            return replace(new, evaluations=tuple(found)), found
        (baseline,) = await identified(self.store, project, [new.baseline], ["/baseline"])
        if baseline not in found:
            raise InvalidInput.at("/baseline", "no_such_run", f"expected one of the evaluations, got {baseline}")
        return replace(new, evaluations=tuple(found), baseline=baseline), found

    async def _samples(self, project: str, asked: AskedComparison) -> KeptSamples:
        records, scored = asked.runs.records, asked.scored
        elsewhere = {record.id for record in asked.elsewhere}
        sliced = [one.text for one in asked.estimands if one.is_of_slices]
        metric = scored or next(iter([*sliced, *asked.new.by]), None)
        if metric is not None:
            of_scores = scored is not None
            return await read_outputs(self.store, project, records, metric, scored=of_scores, elsewhere=elsewhere)
        alone = not any(record.is_weighted or record.is_grouped for record in records)
        if asked.new.paired is PairingMode.FALSE and alone:
            return KeptSamples()
        return await read_labels(self.store, project, records, elsewhere=elsewhere)

    async def page(
        self, project: str, asked: ComparisonFilter, limit: int, before: UUID | None
    ) -> Page[ComparisonSummary, UUID]:
        """The comparisons of a project, latest first."""
        return await self.comparisons.page(project, asked, limit, before)

    async def delete(self, project: str, identifier: UUID) -> None:
        """Remove a comparison for good."""
        if not await self.comparisons.delete(project, identifier):
            raise _missing(identifier)

    async def read(self, project: str, identifier: UUID) -> Mapping[str, Any]:
        """A comparison as it was answered."""
        record = await self.comparisons.get(project, identifier)
        if record is None:
            raise _missing(identifier)
        return record.answer


def _missing(identifier: UUID) -> NotFound:
    return NotFound(f"there is no comparison {identifier}")


def _of_classes(runs: Runs) -> tuple[str, ...]:
    """Metrics that runs of classes are compared on; those of two runs show which class makes the difference."""
    few = len(runs) == 2 and len(runs.labels) <= MOST_CLASSES_COMPARED
    return (COMPARED[0], EACH_RECALL, *COMPARED[1:]) if few else COMPARED


def understood(new: NewComparison, runs: Runs) -> tuple[Estimand, ...]:
    """The metrics for the classes of the runs.

    Raises:
        InvalidExpression: one is none, or cannot say what is better.
        InvalidInput: costs are asked of more than two classes.
        OutOfReach: too many differences.
    """
    inputs = inputs_of_all(runs.records)
    task, decisions = runs.judged
    metrics = new.metrics or (_of_classes(runs) if runs.task is None else usual_metrics(runs.task, inputs))
    if not metrics:
        detail = f"expected metrics: {task} have none that are compared where none is named"
        raise InvalidInput.at("/metrics", "needs_metrics", detail)
    estimands = parse_estimands(
        metrics, runs.labels, runs.positive, inputs=inputs, task=task, decisions=decisions, sliceable=True
    )
    require_comparable(estimands, metrics)
    check_costs(new.cost_ranges, runs)
    pairs = len(runs) - 1 if new.baseline is not None else len(runs) * (len(runs) - 1) // 2
    values = sum(len(estimand.names) for estimand in estimands)
    if pairs * values > MOST_DIFFERENCES:
        raise OutOfReach(
            f"{pairs} pairs of runs on {values} values are more than {MOST_DIFFERENCES} differences; name a baseline, "
            "or ask for fewer metrics"
        )
    explained = pairs * sum(len(estimand.names) for estimand in estimands if kind_of_causes(estimand) == "matrix")
    if new.explain and explained * mixtures(len(runs.labels)) > _MOST_MIXTURES:
        raise OutOfReach(
            f"causes of {explained} differences between {len(runs.labels)} classes take too long; name a baseline, or "
            "ask for fewer metrics"
        )
    return estimands


def compare_again(asked: AskedComparison, kept: KeptSamples, reading: Rereading, *, identifier: UUID) -> RunComparison:
    """Compare runs after reading the samples that were named by a reference.

    Raises:
        DataNotAllowed, InvalidInput, TooLarge: as `Rereading.at_once`.
        IncomparableRuns: as `compare`.
    """
    found = _read_at_once(asked, kept, reading)
    if found is None and asked.runs.task is not None:
        found = streamed_queries(reading, asked.runs, kept, [estimand.expression for estimand in asked.estimands])
    if found is not None:
        return compare(asked, found, identifier=identifier)
    if asked.scored is not None and any(record.is_grouped for record in asked.runs.records):
        raise IncomparableRuns(
            f"{asked.scored} needs the probabilities of samples that come in groups (group_ids), and these are more "
            "than memory holds",
            pointer="/evaluations",
        )
    runs = pair_streamed(reading, asked.runs, kept, asked.new.minimum_matched, _summed(asked))
    return compare(asked, KeptSamples(), identifier=identifier, runs=runs)


def _read_at_once(asked: AskedComparison, kept: KeptSamples, reading: Rereading) -> KeptSamples | None:
    """Read all samples into memory; None if they take too much and can be joined in the engine."""
    records, scored, task = asked.runs.records, asked.scored, asked.runs.task
    joins = task in (None, Task.RANKING)
    if joins and scored is not None and entries_of(records) > MOST_ENTRIES:
        return None
    if scored is not None:
        check_entries(records, scored)
    try:
        return reading.at_once(records, kept, whole=scored is not None or task is not None)
    except TooLarge as error:
        if joins:
            return None
        raise TooLarge(
            "expected samples of all runs that fit in memory together (PREVAIL_DATA_MEMORY_BYTES) for "
            f"runs of {task}, got more: any number of samples of classes is paired, with weights "
            "and groups, and any number of ranked items",
            pointer=error.pointer,
        ) from None


def _summed(asked: AskedComparison) -> list[Expression]:
    """Return the metrics of probabilities to sum: the requested ones, and those that costs or a warning need."""
    scored = [estimand.expression for estimand in asked.estimands if estimand.scored]
    runs, costs = asked.runs, asked.new.cost_ranges
    if costs is not None and costs.best_thresholds:
        scored.append(Measure(roc_auc, {}, 1 if runs.positive is None else runs.positive))
    if not any(map(is_improper, scored)):
        return scored
    proper = parse_estimands(proper_scores(), runs.labels, runs.positive, inputs=INPUTS_OF_CLASSES)
    return [*scored, *(estimand.expression for estimand in proper)]


def compare(asked: AskedComparison, kept: KeptSamples, *, identifier: UUID, runs: Runs | None = None) -> RunComparison:
    """Compare the runs.

    ``runs`` are the same runs as they are paired, where that is known already.

    Raises:
        IncomparableRuns: they were to be paired and cannot be, or their samples come in groups that do not fit, or with
            weights that were not saved.
    """
    new, estimands = asked.new, asked.estimands
    if runs is None:
        runs = asked.runs.pair(kept, new.paired, minimum_matched=new.minimum_matched)
    if new.paired is PairingMode.TRUE and runs.pairing.unpaired is not None:
        raise unpaired(runs.pairing.unpaired)
    for estimand in (one for one in estimands if one.is_of_slices):
        runs.refuse_unknown_slices(estimand.expression, pointer_to("/metrics", new.metrics, estimand.text))
    lacking = runs.lacking_weights
    if lacking is not None:
        raise IncomparableRuns(
            missing_design(lacking, "have weights"), pointer=f"/evaluations/{runs.records.index(lacking)}"
        )
    places = range(len(runs))
    pairs = [*itertools.combinations(places, 2)]
    if new.baseline is not None:
        baseline = new.evaluations.index(new.baseline)
        pairs = [(run, baseline) for run in places if run != baseline]
    settings = InferenceSettings(
        level=new.level, rope=new.rope, seed=runs.seed(new.seed), alternative=new.alternative, draws=new.draws
    )
    comparison = Comparison(runs, estimands, settings, pairs=pairs)
    answer = comparison_answer(comparison, identifier, new)
    if new.by:
        answer = with_slices(answer, comparison, new.by, new.multiplicity)
    pairable = new.paired is PairingMode.AUTO and not runs.pairing.paired and can_be_paired(runs.records, kept)
    return replace(answer, notes=[*answer.notes, _CAN_BE_PAIRED]) if pairable else answer


# Samples that a slice has in every run.
_FEWEST: Final = 30


def with_slices(answer: RunComparison, whole: Comparison, by: Sequence[str], adjustment: Adjustment) -> RunComparison:
    """The answer about all samples with the same about every slice of some attributes that has enough samples in all
    runs; p of a metric is adjusted over all slices, pairs and classes.

    Raises:
        InvalidInput: a run has no samples with such an attribute.
        OutOfReach: the differences are too many.
    """
    estimands = [one for one in whole.estimands if not one.is_of_slices]
    findings, notes = [*(answer.findings or ())], [*answer.notes]
    divisions, n_slices = list[list[tuple[Where, Comparison]]](), 0
    for name in dict.fromkeys(by):
        parts, small = _divided(whole.runs, name)
        if small:
            notes.append(f"Left out, with fewer than {_FEWEST} samples in a run: {names_of(small)}.")
        n_slices += len(parts)
        if n_slices * len(whole.pairs) * sum(len(one.names) for one in estimands) > MOST_DIFFERENCES:
            raise OutOfReach(
                f"more than {MOST_DIFFERENCES} differences of slices; ask for fewer metrics", pointer="/by"
            )
        within = partial(Comparison, estimands=estimands, settings=whole.settings, pairs=whole.pairs)
        divisions.append([(where, within(whole.runs.within(places))) for where, places in parts])
    slices = _compared([one for each in divisions for one in each], estimands, adjustment)
    left = iter(slices)
    for name, division in zip(dict.fromkeys(by), divisions, strict=True):
        findings += _turned(name, answer.metrics, [*islice(left, len(division))], whole.runs)
    return replace(answer, slices=slices, findings=findings or None, notes=notes)


def _compared(
    slices: Sequence[tuple[Where, Comparison]], estimands: Sequence[Estimand], adjustment: Adjustment
) -> list[ComparedSlice]:
    """The answers about slices, with the p of each metric adjusted over all of them."""
    differences = [[inside.differences(index) for index in range(len(estimands))] for _, inside in slices]
    adjusted = [
        np.split(adjusted_p([one for each in of_all for one in each], adjustment), len(slices))
        for of_all in zip(*differences, strict=True)
    ]
    return [
        ComparedSlice(
            where=where,
            n_samples=[int(record.n_rows) for record in inside.runs.records],
            metrics=answered(inside, differences[place], [of_all[place] for of_all in adjusted]),
        )
        for place, (where, inside) in enumerate(slices)
    ]


def _divided(runs: Runs, name: str) -> tuple[list[tuple[Where, list[Places]]], list[str]]:
    """Slices that have enough samples in every run, with the places of these in each; and the names of all others."""
    found = [divided(one.source, name, _FEWEST) for one in runs.data]
    parts = in_all_runs([enough for enough, _ in found])
    known = [slice_text(where) for where, _ in parts]
    every = dict.fromkeys(slice_text(one.where) for enough, small in found for one in (*enough, *small))
    return parts, [text for text in every if text not in known]


def _turned(
    by: str, metrics: Mapping[str, ComparedMetric], slices: Sequence[ComparedSlice], runs: Runs
) -> list[Finding]:
    """Settled differences of two runs whose sign is the other one in every slice: the reversal of Simpson (1951)."""
    found = []
    called = {record.id: runs.name(place) for place, record in enumerate(runs.records)}
    for name, metric in metrics.items():
        if len(slices) < 2 or metric.better is Better.NEAREST or name not in slices[0].metrics:
            continue
        for place, pair in enumerate(metric.differences):
            whole = pair.difference or 0.0
            own = [one.metrics[name].differences[place].difference or 0.0 for one in slices]
            settled = pair.verdict in (PairVerdict.BETTER, PairVerdict.WORSE)
            if not settled or max(one * whole for one in own) >= 0.0:
                continue
            found.append(
                Finding.warning(
                    "order_turns_in_slices",
                    f"{name} of {called[pair.a]} is {'higher' if whole > 0 else 'lower'} than that of "
                    f"{called[pair.b]} over all samples, and the other way round in each of the {len(slices)} slices "
                    f"of {by}: what is compared are the shares of the slices too.",
                    metric=name,
                    by=by,
                    a=pair.a,
                    b=pair.b,
                )
            )
    return found
