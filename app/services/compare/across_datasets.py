"""Models compared across datasets: the latest evaluation of each model on each dataset, ranks and tests, stored
whole.
"""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated
from uuid import UUID

import numpy as np

from app.domain.asked import ExpressionText, Level, Limits, NonNegative, Seed
from app.domain.decisions import ComparisonKind
from app.domain.errors import IncomparableRuns, InvalidInput
from app.domain.evaluation import (
    DatasetRef,
    EvaluationName,
    EvaluationRecord,
    ModelRef,
    NamedDataset,
    NamedModel,
    Reference,
)
from app.domain.expressions.expressions import parse_for_any_classes
from app.kernel.compare.over_datasets import (
    FEW,
    FEWEST,
    average_ranks,
    bayesian_signed_rank,
    cliques,
    critical_difference,
    friedman,
    rank_z,
    wilcoxon,
)
from app.kernel.compare.over_datasets import ZeroRule as ZeroRule
from app.kernel.compare.rankings import Adjustment, adjust
from app.kernel.metrics.card import Inputs
from app.kernel.metrics.expression import grows, is_of_slices, of_probabilities
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.draws import chosen_seed, generator, seed_of
from app.services.compare.answers import (
    AgainstControl,
    BayesianSignedRank,
    KeptAnswers,
    ModelComparison,
    ModelPair,
    Multiplicity,
    NemenyiTest,
    Outcomes,
    TournamentDesign,
    WilcoxonTest,
)
from app.services.estimands import Better, Preference, require_comparable, stored_key
from app.services.estimates.run_data import estimand_for, run_data
from app.services.present import made_id
from app.services.rank import value_of
from app.services.runs.differences import OF_SIZES
from app.services.runs.pairing import KeptSamples, read_outputs
from app.services.stored import query_of

_DRAWS = 20_000
_FEWEST_DRAWS = 2000
_DECIMALS = 12
# Products of all Bayesian tests together: a second or two.
_MOST_PRODUCTS = 2_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Tournament:
    """A request to compare models across datasets on one metric.

    Attributes:
        metric: Any expression with one value.
        models: Names, or name and version.
        datasets: Names, or name, version and split; at least five.
        rope: Differences up to this are practically none, in units of the metric.
        zeros: What Wilcoxon's test does with differences of 0.
        tie_corrected: Correct Friedman's statistic for ties, as libraries do.
        control: Compare the average ranks of all others with this one's.
        complete: Leave out datasets that lack a model instead of refusing.
    """

    metric: ExpressionText
    models: Annotated[tuple[NamedModel, ...], Limits({"min_length": 2, "max_length": 20})]
    datasets: Annotated[tuple[NamedDataset, ...], Limits({"min_length": 1, "max_length": 100})]
    level: Annotated[Level, Limits({"gt": 0.5})] = 0.95
    rope: NonNegative = 0.01
    multiplicity: Adjustment = Adjustment.HOLM
    zeros: ZeroRule = ZeroRule.SPLIT
    tie_corrected: bool = True
    control: NamedModel | None = None
    complete: bool = False
    seed: Seed | None = None

    def check(self) -> None:
        """Different models and datasets, and the control one of the models; raises ValueError."""
        if len(set(self.models)) < len(self.models):
            raise ValueError("expected different models, one is there twice")
        if len(set(self.datasets)) < len(self.datasets):
            raise ValueError("expected different datasets, one is there twice")
        if self.control is not None and self.control not in self.models:
            raise ValueError("expected the control to be one of the models")


def compare_models(
    asked: Tournament,
    datasets: Sequence[DatasetRef],
    grid: Sequence[Sequence[EvaluationRecord]],
    kept: KeptSamples,
    *,
    identifier: UUID,
) -> ModelComparison:
    """Everything that is said about models on datasets.

    Raises:
        InvalidExpression: the metric is none, or cannot say what is better.
        IncomparableRuns: too few datasets, or a value that does not exist.
    """
    values, better, insensitive = _values(asked, grid, kept)
    if len(datasets) < FEWEST:
        raise IncomparableRuns(
            f"{len(datasets)} datasets are too few to say anything about models: at least {FEWEST} are needed",
            pointer="/datasets",
        )
    # Of the values alone: the same is said of the same.
    seed = chosen_seed(asked.seed, values)
    scores = better.score(values)
    # Equal values must not be told apart by the last bit of a sum over classes.
    apart = np.round(scores, _DECIMALS)
    ranks = average_ranks(apart)
    pairs, groups = _pairs(asked, scores, seed)
    return ModelComparison(
        id=identifier,
        metric=asked.metric,
        better=better.better,
        models=asked.models,
        datasets=datasets,
        evaluations=[[EvaluationName.of(record) for record in row] for row in grid],
        values=values.tolist(),
        average_ranks=ranks.tolist(),
        friedman=friedman(apart, tie_corrected=asked.tie_corrected),
        pairwise=pairs,
        cliques=groups,
        nemenyi=_nemenyi(ranks, len(datasets), asked.level),
        design=TournamentDesign(
            level=asked.level,
            rope=asked.rope,
            seed=seed,
            zeros=asked.zeros,
            multiplicity=Multiplicity(method=asked.multiplicity, family="all pairs of models"),
        ),
        notes=_notes(len(datasets), insensitive=insensitive),
        control=None if asked.control is None else _against_control(asked, asked.control, ranks, len(datasets)),
    )


def _values(
    asked: Tournament, grid: Sequence[Sequence[EvaluationRecord]], kept: KeptSamples
) -> tuple[Array, Preference, bool]:
    """Values (N, k), which are better, and whether prevalence leaves them alone everywhere."""
    values = np.empty((len(grid), len(asked.models)))
    better = Preference(Better.HIGHER)
    insensitive = True
    for row, records in enumerate(grid):
        for column, record in enumerate(records):
            estimand = estimand_for(asked.metric, record)
            require_comparable([estimand], [asked.metric], "/metric")
            if estimand.is_list or estimand.preference is None:
                raise IncomparableRuns(
                    "expected a metric with one value, got a list over the classes", pointer="/metric"
                )
            better, insensitive = estimand.preference, insensitive and estimand.insensitive
            key, run = stored_key(estimand.expression), run_data(record, kept.samples.get(record.id))
            known = record.values if estimand.scored else {}
            stored = {record.id: known[key]} if key and key in known else None
            value, reason = value_of(record, estimand, run, kept, stored)
            if value is None:
                raise IncomparableRuns(
                    f"{asked.metric} has no value for {record.id} ({record.model.name} on {record.dataset.name}): "
                    f"{reason}; missing values are not filled in",
                    pointer="/metric",
                )
            values[row, column] = value
            if grows(estimand.expression) and record.n_samples != records[0].n_samples:
                raise IncomparableRuns(f"on {record.dataset.name} {OF_SIZES}", pointer="/metric")
    return values, better, insensitive


def _pairs(asked: Tournament, scores: Array, seed: int) -> tuple[list[ModelPair], list[list[int]]]:
    """Every pair by Wilcoxon's test and its Bayesian counterpart, and the groups of which no two differ."""
    pairs = list(itertools.combinations(range(len(asked.models)), 2))
    each = 2 * len(pairs) * (len(scores) + 1) ** 2
    draws = max(_FEWEST_DRAWS, min(_DRAWS, _MOST_PRODUCTS // each))
    # Nor equal differences by that of their subtraction.
    gaps = [np.round(scores[:, a] - scores[:, b], _DECIMALS) for a, b in pairs]
    tests = [wilcoxon(gap, asked.zeros) for gap in gaps]
    adjusted = adjust(np.array([test.p_value for test in tests]), asked.multiplicity)
    indistinct = np.ones((len(asked.models), len(asked.models)), dtype=np.bool_)
    answers = []
    for (a, b), gap, test, p in zip(pairs, gaps, tests, adjusted.tolist(), strict=True):
        indistinct[a, b] = indistinct[b, a] = p >= 1.0 - asked.level
        random = generator(seed_of(seed, a, b))
        mass, win = bayesian_signed_rank(gap, rope=asked.rope, draws=draws, random=random)
        answers.append(
            ModelPair(
                a=a,
                b=b,
                median_difference=float(np.median(gap)),
                wilcoxon=WilcoxonTest(**asdict(test), p_adjusted=p),
                bayesian_signed_rank=BayesianSignedRank(draws=draws, mass=_outcomes(mass), win=_outcomes(win)),
            )
        )
    return answers, [list(group) for group in cliques(indistinct)]


def _outcomes(found: Array) -> Outcomes:
    second, equal, first = found.tolist()
    return Outcomes(b_better=second, equivalent=equal, a_better=first)


def _nemenyi(ranks: Array, datasets: int, level: float) -> NemenyiTest:
    difference = critical_difference(ranks.size, datasets, 1.0 - level)
    near = np.abs(ranks[:, None] - ranks[None, :]) < difference
    return NemenyiTest(critical_difference=difference, cliques=[list(group) for group in cliques(near)])


def _against_control(asked: Tournament, control: ModelRef, ranks: Array, datasets: int) -> list[AgainstControl]:
    place = asked.models.index(control)
    z, p = rank_z(ranks, datasets, place)
    adjusted = adjust(p, asked.multiplicity)
    return [
        AgainstControl(
            model=asked.models[index], z=float(z[index]), p_value=float(p[index]), p_adjusted=float(adjusted[index])
        )
        for index in range(ranks.size)
        if index != place
    ]


def _notes(datasets: int, *, insensitive: bool) -> list[str]:
    notes = [
        "Nemenyi's critical difference depends on which other models take part; the pairwise tests do not.",
        "mass is how probable each outcome is on a new dataset; win is how sure it is that it is the likeliest one.",
    ]
    if datasets < FEW:
        notes.append(f"Only {datasets} datasets: the chi-squared approximations are rough.")
    if not insensitive:
        notes.append(
            "Prevalence moves this metric, and datasets differ in class prevalence: the same difference does "
            "not mean the same on all of them. Ranks are not affected."
        )
    return notes


_MOST_LISTED = 5


class TournamentService(KeptAnswers):
    """Compares models across datasets."""

    async def create(self, project: str, asked: Tournament) -> ModelComparison:
        """Compare models and keep the answer.

        Raises:
            InvalidExpression: the metric is none, or cannot say what is better.
            InvalidInput: two of the models, or of the datasets, lead to one evaluation.
            IncomparableRuns: a model has no evaluation on a dataset, too few datasets are left, or a value does not
                exist.
        """
        expression = parse_for_any_classes(asked.metric, inputs=frozenset(Inputs))
        grid = await self._latest(project, asked)
        datasets, complete = _complete(asked, grid)
        samples = KeptSamples()
        records = [record for row in complete for record in row]
        scored = of_probabilities(expression) or any(record.task is not None for record in records)
        key = stored_key(expression)
        if (scored or is_of_slices(expression)) and not all(key in record.values for record in records):
            pointers = ["/metric"] * len(records)
            samples = await read_outputs(self.store, project, records, asked.metric, scored=scored, pointers=pointers)

        compared = partial(compare_models, asked, datasets, complete, samples, identifier=made_id())
        return await self.compute_and_keep(project, ComparisonKind.ACROSS_DATASETS, compared)

    async def _latest(self, project: str, asked: Tournament) -> list[list[EvaluationRecord | None]]:
        """By dataset, the latest evaluation of each model; a version or split that is None stands for all of them."""
        found = [
            [await self.store.page(project, query_of(Reference(model, dataset))) for model in asked.models]
            for dataset in asked.datasets
        ]
        records = await self.store.get_many(project, [page.items[0].id for row in found for page in row if page.items])
        return [[records.get(page.items[0].id) if page.items else None for page in row] for row in found]


def _complete(
    asked: Tournament, grid: Sequence[Sequence[EvaluationRecord | None]]
) -> tuple[list[DatasetRef], list[list[EvaluationRecord]]]:
    """The datasets that have every model, or a refusal that names what is missing."""
    missing = [
        f"{model.name} on {dataset.name}"
        for dataset, row in zip(asked.datasets, grid, strict=True)
        for model, record in zip(asked.models, row, strict=True)
        if record is None
    ]
    if missing and not asked.complete:
        more = f" and {len(missing) - _MOST_LISTED} more" if len(missing) > _MOST_LISTED else ""
        raise IncomparableRuns(
            f"there is no evaluation of {', '.join(missing[:_MOST_LISTED])}{more}; complete leaves such datasets out",
            pointer="/datasets",
        )
    rows = [[record for record in row if record is not None] for row in grid]
    named = Counter(record.id for row in rows for record in row)
    twice = next((one for one, times in named.items() if times > 1), None)
    if twice is not None:
        detail = f"expected models and datasets that name different evaluations, {twice} is there twice"
        raise InvalidInput.at("", "repeated_evaluation", detail)
    kept = [index for index, row in enumerate(rows) if len(row) == len(asked.models)]
    return [asked.datasets[index] for index in kept], [rows[index] for index in kept]
