"""What is answered, and kept, of models that are compared across datasets."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from app.domain.evaluation import DatasetRef, ModelRef
from app.domain.members import LEFT_OUT
from app.kernel.compare.over_datasets import ZeroRule
from app.services.compare.answers import Multiplicity
from app.services.estimands import Better


@dataclass(frozen=True, slots=True, kw_only=True)
class ImanDavenport:
    """The F statistic made of Friedman's chi-squared, which is less cautious.

    Attributes:
        df: Degrees of freedom of the numerator and of the denominator.
    """

    f: float | None
    df: tuple[int, int]
    p_value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FriedmanTest:
    """Have all models the same average rank?"""

    chi_squared: float | None
    df: int
    p_value: float | None
    iman_davenport: ImanDavenport
    tie_corrected: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WilcoxonTest:
    """Wilcoxon's signed-rank test.

    Attributes:
        zeros: Datasets on which both models have the same value.
    """

    statistic: float
    p_value: float
    p_adjusted: float
    zeros: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """How probable it is that the one model is better, both are equivalent, or the other one is better."""

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

    model: int
    z: float | None
    p_value: float | None
    p_adjusted: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TournamentDesign:
    """How models were compared.

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
    evaluations: Sequence[Sequence[UUID]]
    values: Sequence[Sequence[float]]
    average_ranks: Sequence[float]
    friedman: FriedmanTest
    pairwise: Sequence[ModelPair]
    cliques: Sequence[Sequence[int]]
    nemenyi: NemenyiTest
    design: TournamentDesign
    notes: Sequence[str]
    control: Sequence[AgainstControl] | None = field(default=None, metadata=LEFT_OUT)
