"""Answers of comparisons, of runs and of models across datasets, as they are sent and stored."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from app.domain.decisions import ComparisonKind, ComparisonRecord, PairVerdict
from app.domain.evaluation import DatasetRef, EvaluationName, ModelRef
from app.domain.findings import Finding
from app.domain.members import LEFT_OUT, SPREAD, as_json
from app.kernel.compare.over_datasets import FriedmanTest, SignedRankTest, ZeroRule
from app.kernel.compare.rankings import Adjustment
from app.kernel.uncertainty.draws import Alternative
from app.services.admission import Admission
from app.services.compare.pairs import CostComparison, FoldTest, PairedTests, RecallOrder
from app.services.estimands import Better
from app.services.ports import ComparisonStore, EvaluationStore
from app.services.processes.compute import ComputePool
from app.services.runs.causes import Causes
from app.services.runs.differences import Test
from app.services.runs.matrix_draws import ChiSquaredTest, OmnibusTest, ResamplingDesign
from app.services.runs.pairing import PairingDesign


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun(EvaluationName):
    """One of the runs that are compared."""

    n_samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiplicity:
    """Adjustment of p for several tests.

    Attributes:
        family: Which p-values are adjusted together.
    """

    method: Adjustment
    family: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonDesign:
    """Design of a comparison of runs.

    Attributes:
        paired: Is it known which prediction belongs to which?
        bond: What the runs have in common.
        reason: Why this is assumed.
        resampling: What was simulated.
        rope: Half width of the region of equivalence, in units of the metric.
        seed: Seed of all simulation. It follows from the evaluations, unless it was given.
        common_prevalence: The class prevalence that runs are compared at where their own differ.
        alternative: Where limits and p are on one side: of a less b above 0 (`greater`) or below (`less`).
    """

    paired: bool
    bond: PairingDesign
    reason: str
    resampling: ResamplingDesign = field(metadata=SPREAD)
    level: float
    rope: float
    seed: int
    multiplicity: Multiplicity
    common_prevalence: Sequence[float] | None = field(default=None, metadata=LEFT_OUT)
    alternative: Alternative | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPair(Test):
    """a less b in the unit of the metric.

    Attributes:
        level: Of the limits.
        verdict: Of a against b: `better` or `worse` where the limits leave no other sign and `p_adjusted` is below 1
            less the level, `same` where the difference is nearly surely within the region of equivalence or the runs
            say the same of every sample.
        too_little_to_matter: `true` where a is better or worse, and more likely by less than the region of equivalence
            than by more.
        p_range: Lowest and highest p over all pairings, where the runs are of one test set and how they pair is not
            known.
        folds: For runs on the same folds: corrected t and the Bayesian correlated t over them.
        causes: Where asked for, of a metric of matrices that prevalence moves.
    """

    a: UUID
    b: UUID
    level: float
    p_adjusted: float | None
    verdict: PairVerdict
    too_little_to_matter: bool | None = field(default=None, metadata=LEFT_OUT)
    p_range: tuple[float | None, float | None] | None = field(default=None, metadata=LEFT_OUT)
    folds: FoldTest | None = field(default=None, metadata=LEFT_OUT)
    causes: Causes | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Candidates for the best run by one metric; `null` where nothing was drawn, or values are missing.

    Attributes:
        may_be_best: The runs among which the best one is, with the level of the comparison.
    """

    probability_best: Sequence[float] | None = None
    expected_ranks: Sequence[float] | None = None
    rank_intervals: Sequence[tuple[float, float]] | None = None
    may_be_best: Sequence[UUID] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedMetric:
    """Values, ranks and differences of the runs on one metric.

    Attributes:
        ranks: 1 is best; equal values share a rank; `null` without a value.
        prevalence: Whether prevalence does not matter to the metric, or the runs were compared as observed, or at one
            common prevalence. `incomparable`: they cannot be brought to a common one, or have different numbers of
            samples, with which the metric moves.
        omnibus: Test that all runs have the same value; for three or more paired runs and values with a covariance.
    """

    values: Sequence[float | None]
    ranks: Sequence[int | None]
    best: UUID | None
    better: Better
    prevalence: str
    ranking: Ranking = field(metadata=SPREAD)
    differences: Sequence[ComparedPair]
    observed_values: Sequence[float | None] | None = field(default=None, metadata=LEFT_OUT)
    omnibus: OmnibusTest | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSlice:
    """The runs on the samples in one slice alone.

    Attributes:
        where: Its conditions.
        n_samples: Of each run.
        metrics: As those of all samples; p is adjusted over all slices.
    """

    where: Mapping[str, Any]
    n_samples: Sequence[int]
    metrics: Mapping[str, ComparedMetric]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankAgreement:
    """Kendall's tau-b between the orders that the metrics give."""

    metrics: Sequence[str]
    kendall_tau: Sequence[Sequence[float | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferring:
    """Metrics that prefer one run."""

    evaluation_id: UUID
    metrics: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """Metrics that find one run the best, and others that find another the best.

    Attributes:
        metrics: All metrics that disagree; those that prefer the first run come first.
        prefer: The two runs that are preferred.
        prefers: The metrics by the run that they prefer.
    """

    metrics: Sequence[str]
    prefer: tuple[UUID, UUID]
    prefers: tuple[Preferring, Preferring]
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionDrift:
    """Do two paired runs predict the classes equally often?"""

    message: str
    stuart_maxwell: ChiSquaredTest
    bhapkar: ChiSquaredTest
    bowker: ChiSquaredTest


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonHeadline:
    """Result of a comparison in short. Lists of metrics are of two runs, the first against the second; empty of more.

    Attributes:
        metric: The first that was compared.
        best: The run that is best by it; `null` where no run has a value.
        verdict: Of two runs by this metric, the first against the second; `null` of more.
        too_little_to_matter: Those of `better` and `worse` whose difference is more likely too small to matter.
    """

    metric: str
    best: UUID | None
    verdict: PairVerdict | None
    better: Sequence[str] = ()
    worse: Sequence[str] = ()
    same: Sequence[str] = ()
    undecided: Sequence[str] = ()
    too_little_to_matter: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """A comparison of runs.

    Attributes:
        baseline_id: The run that all others were compared with, if it was not every pair.
        recall_orders: Do all means of the recalls agree on a pair of runs?
        paired_tests: Of runs on the same samples, pair by pair, what tests of counts say beside the differences.
        cost_ranges: Of two classes, pair by pair, at which ratios of costs which run is cheaper.
        slices: By the attributes that were asked for, the runs in each slice with 30 or more samples of every run.
        findings: Where a score that is not proper prefers the run that a proper one finds worse, where it is not known
            how often a cross-validation was repeated, and where asked for the main cause of each difference.
    """

    id: UUID
    evaluations: Sequence[ComparedRun]
    headline: ComparisonHeadline
    baseline_id: UUID | None
    design: ComparisonDesign
    metrics: Mapping[str, ComparedMetric]
    rank_agreement: RankAgreement
    disagreements: Sequence[Disagreement]
    omnibus: OmnibusTest | None = field(default=None, metadata=LEFT_OUT)
    prediction_drift: PredictionDrift | None = field(default=None, metadata=LEFT_OUT)
    recall_orders: Sequence[RecallOrder] | None = field(default=None, metadata=LEFT_OUT)
    paired_tests: Sequence[PairedTests] | None = field(default=None, metadata=LEFT_OUT)
    cost_ranges: Sequence[CostComparison] | None = field(default=None, metadata=LEFT_OUT)
    slices: Sequence[ComparedSlice] | None = field(default=None, metadata=LEFT_OUT)
    findings: Sequence[Finding] | None = field(default=None, metadata=LEFT_OUT)
    notes: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class WilcoxonTest(SignedRankTest):
    """Wilcoxon's signed-rank test, adjusted for all pairs of models."""

    p_adjusted: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """Probabilities that one model is better, that both are equivalent, and that the other one is better."""

    b_better: float
    equivalent: float
    a_better: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BayesianSignedRank:
    """The Bayesian signed-rank test.

    Attributes:
        mass: How probable each outcome is on a new dataset.
        win: How probable it is that it is the likeliest outcome.
    """

    draws: int
    mass: Outcomes
    win: Outcomes


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPair:
    """Two models over all datasets, named by their places in `models`; differences are a less b."""

    a: int
    b: int
    median_difference: float
    wilcoxon: WilcoxonTest
    bayesian_signed_rank: BayesianSignedRank


@dataclass(frozen=True, slots=True, kw_only=True)
class NemenyiTest:
    """Groups of models whose average ranks differ by less than the critical difference."""

    critical_difference: float
    cliques: Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstControl:
    """The average rank of a model against that of the control."""

    model: ModelRef
    z: float | None
    p_value: float | None
    p_adjusted: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TournamentDesign:
    """Design of a comparison of models across datasets.

    Attributes:
        rope: Half width of the region of equivalence, in units of the metric.
        seed: Seed of the Bayesian tests.
    """

    level: float
    rope: float
    seed: int
    zeros: ZeroRule
    multiplicity: Multiplicity


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelComparison:
    """Models across datasets; models are named by their place in `models`.

    Attributes:
        evaluations: By dataset, the evaluation of each model.
        values: By dataset, the value of each model.
        average_ranks: 1 is best.
        cliques: Maximal groups of models of which no two differ, by the pairwise tests.
        control: All other models against the control, if there is one.
    """

    id: UUID
    metric: str
    better: Better
    models: Sequence[ModelRef]
    datasets: Sequence[DatasetRef]
    evaluations: Sequence[Sequence[EvaluationName]]
    values: Sequence[Sequence[float]]
    average_ranks: Sequence[float]
    friedman: FriedmanTest
    pairwise: Sequence[ModelPair]
    cliques: Sequence[Sequence[int]]
    nemenyi: NemenyiTest
    design: TournamentDesign
    notes: Sequence[str]
    control: Sequence[AgainstControl] | None = field(default=None, metadata=LEFT_OUT)


_Answer = TypeVar("_Answer", RunComparison, ModelComparison)


@dataclass(frozen=True, slots=True)
class KeptAnswers:
    """Source of the runs of comparisons, and store of their answers."""

    store: EvaluationStore
    comparisons: ComparisonStore
    _: KW_ONLY
    compute: ComputePool
    admission: Admission

    async def compute_and_keep(
        self, project: str, kind: ComparisonKind, compare: Callable[[], _Answer], compute: ComputePool | None = None
    ) -> _Answer:
        """The answer of a function that another process can be sent, once it is kept; ``compute`` is where, if that is
        not where everything is.
        """
        answer, record = await (compute or self.compute).run(partial(_recorded, kind, compare))
        async with self.admission:
            await self.comparisons.add(project, record)
        return answer


def _recorded(kind: ComparisonKind, compare: Callable[[], _Answer]) -> tuple[_Answer, ComparisonRecord]:
    answer = compare()
    return answer, ComparisonRecord(answer.id, kind, as_json(answer))
