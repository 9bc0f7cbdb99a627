"""Comparisons of runs: fetched, paired where possible, computed in a thread, kept whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from app.domain.decisions import ComparisonKind, ComparisonRecord
from app.domain.errors import IncomparableRuns, NotFound, OutOfReach
from app.domain.evaluation import EvaluationRecord
from app.domain.identifiers import new_id
from app.domain.inputs.content import Content
from app.domain.inputs.samples import Samples
from app.domain.named_metrics import COMPARED
from app.kernel.compare.multiplicity import Adjustment
from app.services.admission import Admission
from app.services.compare.comparison_answer import comparison_answer
from app.services.compute import ComputePool
from app.services.estimands import EVERYTHING, Estimand, parse_estimands, require_comparable
from app.services.json_values import Json
from app.services.ports import ComparisonStore, EvaluationStore, PairedLabels, SampleLabels
from app.services.runs.contest import Contest, Terms
from app.services.runs.contests import contest_of
from app.services.runs.grouped_contest import GroupedContest, shared_groups
from app.services.runs.pairing import Wanted, align, pair_runs, read_samples
from app.services.runs.scored_runs import labels_of, read_outputs
from app.services.seeds import chosen_seed

MOST_RUNS = 50
MOST_METRICS = 50
# Differences in one answer: pairs of runs times values.
MOST_DIFFERENCES = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NewComparison:
    """Which runs are to be compared, on what, and how.

    Attributes:
        baseline: Compare all others with this run only, instead of every pair.
        minimum_matched: Share of the samples that paired runs must have in common.
    """

    evaluations: tuple[UUID, ...]
    metrics: tuple[str, ...] = COMPARED
    baseline: UUID | None = None
    level: float = 0.95
    rope: float = 0.01
    paired: Wanted = Wanted.AUTO
    minimum_matched: float = 1.0
    multiplicity: Adjustment = Adjustment.HOLM
    seed: int | None = None
    draws: int = 4000


async def fetch_runs(
    store: EvaluationStore, project: str, identifiers: Sequence[UUID], pointer: str = "/evaluations"
) -> list[EvaluationRecord]:
    """Evaluations with counts, in the order asked for.

    Raises:
        NotFound: one does not exist.
        IncomparableRuns: one holds weights or rates, so nothing is known of its uncertainty.
    """
    found = await store.get_many(project, identifiers)
    for index, identifier in enumerate(identifiers):
        where = f"{pointer}/{index}" if pointer.endswith("s") else pointer
        if identifier not in found:
            raise NotFound(f"there is no evaluation {identifier}", pointer=where)
        content = found[identifier].content
        if content is not Content.counts:
            raise IncomparableRuns(
                f"expected numbers of samples, but the matrix of {identifier} holds {content}: how uncertain it is "
                "cannot be known",
                pointer=where,
            )
    return [found[identifier] for identifier in identifiers]


class ComparisonService:
    """Compares runs and remembers what was said."""

    def __init__(
        self,
        store: EvaluationStore,
        comparisons: ComparisonStore,
        *,
        labels: PairedLabels,
        compute: ComputePool,
        admission: Admission,
    ) -> None:
        self._store = store
        self._comparisons = comparisons
        self._labels = labels
        self._compute = compute
        self._admission = admission

    async def create(self, project: str, new: NewComparison) -> Json:
        """Compare runs and keep the answer.

        Raises:
            NotFound: an evaluation does not exist.
            IncomparableRuns: they cannot be compared, or not be paired as asked.
            IncomparableLabels: they have different classes.
            InvalidExpression: a metric is none, or cannot say what is better.
            OutOfReach: more differences than one answer may have.
        """
        records = await fetch_runs(self._store, project, new.evaluations)
        estimands = understood(new, records)
        scored = [estimand.text for estimand in estimands if estimand.scored]
        outputs: Mapping[UUID, Samples] = {}
        samples: Mapping[UUID, SampleLabels] = {}
        if scored:
            outputs = await read_outputs(self._labels, project, records, scored[0])
            samples = labels_of(outputs)
        elif new.paired is not Wanted.FALSE:
            samples = await read_samples(self._labels, project, records)
        answer = await self._compute.run(lambda: compare(new, records, estimands, samples, outputs), heavy=True)
        return await self._keep(project, ComparisonKind.RUNS, answer)

    async def read(self, project: str, identifier: UUID) -> Json:
        """A comparison as it was answered."""
        record = await self._comparisons.get(project, identifier)
        if record is None:
            raise NotFound(f"there is no comparison {identifier}")
        return dict(record.answer)

    async def _keep(self, project: str, kind: ComparisonKind, answer: Json) -> Json:
        identifier = new_id()
        kept = {"id": str(identifier), **answer}
        async with self._admission:
            await self._comparisons.add(project, ComparisonRecord(identifier, kind, kept))
        return kept


def understood(new: NewComparison, records: Sequence[EvaluationRecord]) -> tuple[Estimand, ...]:
    """The metrics for the classes of the runs.

    Raises:
        IncomparableLabels: the runs have different classes.
        InvalidExpression: one is none, or cannot say what is better.
        OutOfReach: too many differences.
    """
    align(records)
    first = records[0]
    estimands = parse_estimands(new.metrics, first.labels, first.positive, inputs=EVERYTHING)
    require_comparable(estimands, new.metrics)
    runs = len(records)
    pairs = runs - 1 if new.baseline is not None else runs * (runs - 1) // 2
    values = sum(len(estimand.names) for estimand in estimands)
    if pairs * values > MOST_DIFFERENCES:
        raise OutOfReach(
            f"{pairs} pairs of runs on {values} values are more than {MOST_DIFFERENCES} differences; name a baseline, "
            "or ask for fewer metrics"
        )
    return estimands


def compare(
    new: NewComparison,
    records: Sequence[EvaluationRecord],
    estimands: Sequence[Estimand],
    samples: Mapping[UUID, SampleLabels],
    outputs: Mapping[UUID, Samples] | None = None,
) -> Json:
    """What is said about the runs.

    Args:
        new: What is asked.
        records: The runs.
        estimands: The metrics.
        samples: What is kept of the samples of runs with ids.
        outputs: Their probabilities or scores, where a metric needs them.

    Raises:
        IncomparableRuns: they were to be paired and cannot be, or their samples come in groups that do not fit.
    """
    pairing = pair_runs(records, samples, new.paired, minimum_matched=new.minimum_matched)
    if new.paired is Wanted.TRUE and not pairing.paired:
        raise IncomparableRuns(f"the runs cannot be paired: {pairing.reason.partition(';')[0]}", pointer="/paired")
    seed = chosen_seed(new.seed, [str(identifier) for identifier in new.evaluations], new.metrics)
    terms = Terms(level=new.level, rope=new.rope, seed=seed, draws=new.draws)
    groups = shared_groups(records, samples, pairing, estimands)
    contest: Contest
    if groups is not None:
        contest = GroupedContest(align(records)[0], estimands, pairing, terms, groups)
    else:
        contest = contest_of(records, estimands, pairing, terms, outputs or {})
    baseline = None if new.baseline is None else new.evaluations.index(new.baseline)
    return comparison_answer(records, contest, baseline=baseline, adjustment=new.multiplicity)
