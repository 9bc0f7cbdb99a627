"""What is declared of a metric, beside its function and nowhere else."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any, Concatenate, Generic, TypeGuard, TypeVar

import numpy as np

from app.kernel.matrix.table import AdditiveGradient, Table
from app.kernel.metrics.exact import Exact
from app.kernel.metrics.parameters import Parameter
from app.kernel.metrics.proportion import Cells, Proportion
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.numerics.weighted_units import Terms
from app.kernel.samples.chance import Chance
from app.kernel.samples.influence import Form
from app.kernel.samples.scores import Scores
from app.kernel.units.queries import Queries


class Scope(StrEnum):
    """Does a metric speak of one class against the rest, or of the whole matrix?"""

    CLASS = "class"
    OVERALL = "overall"


class Prevalence(StrEnum):
    """Does the value move when whole classes are replicated?"""

    INSENSITIVE = "insensitive"
    SENSITIVE = "sensitive"
    INSENSITIVE_BINARY = "insensitive_binary"

    def is_insensitive(self, n_classes: int) -> bool:
        """Whether the value stays put for this number of classes."""
        return self is Prevalence.INSENSITIVE or (self is Prevalence.INSENSITIVE_BINARY and n_classes == 2)


class Orientation(StrEnum):
    """Which direction is better."""

    HIGHER = "higher_is_better"
    LOWER = "lower_is_better"
    NEAREST = "nearest_the_ideal_is_better"
    DESCRIPTIVE = "descriptive"


class Better(StrEnum):
    """Values of a parameter that says which direction is better."""

    HIGHER = "higher"
    LOWER = "lower"


class Inputs(StrEnum):
    """What a metric is computed from."""

    MATRIX = "matrix"
    PROBABILITIES = "probabilities"
    LABELS = "labels"
    LABEL_SCORES = "label_scores"
    CONTINGENCY = "contingency"
    DECISIONS = "decisions"
    FEATURES = "features"
    QUERIES = "queries"
    OVERLAPS = "overlaps"
    CLASS_OVERLAPS = "class_overlaps"


class Task(StrEnum):
    """What is judged: one of two classes or of more for each sample, what was decided about them where that is no
    class, any number of labels, clusters, orders, or sets such as regions and answers.
    """

    BINARY = "binary"
    MULTICLASS = "multiclass"
    DECISIONS = "decisions"
    MULTILABEL = "multilabel"
    CLUSTERING = "clustering"
    RANKING = "ranking"
    SETS = "sets"

    def outcomes(self, n_classes: int) -> int:
        """Among how many a sample falls wherever prevalence counts: a label is there or not."""
        return 2 if self is Task.MULTILABEL else n_classes


_TASK_OF = {
    Inputs.LABELS: Task.MULTILABEL,
    Inputs.LABEL_SCORES: Task.MULTILABEL,
    Inputs.CONTINGENCY: Task.CLUSTERING,
    Inputs.DECISIONS: Task.DECISIONS,
    Inputs.FEATURES: Task.CLUSTERING,
    Inputs.QUERIES: Task.RANKING,
    Inputs.OVERLAPS: Task.SETS,
    Inputs.CLASS_OVERLAPS: Task.SETS,
}
# What there is to compute from for each task that is more than classes.
INPUTS_OF: Mapping[Task, frozenset[Inputs]] = MappingProxyType(
    {
        Task.DECISIONS: frozenset({Inputs.MATRIX, Inputs.DECISIONS}),
        Task.MULTILABEL: frozenset({Inputs.MATRIX, Inputs.PROBABILITIES, Inputs.LABELS, Inputs.LABEL_SCORES}),
        Task.CLUSTERING: frozenset({Inputs.MATRIX, Inputs.CONTINGENCY, Inputs.FEATURES}),
        Task.RANKING: frozenset({Inputs.QUERIES}),
        Task.SETS: frozenset({Inputs.LABELS, Inputs.OVERLAPS, Inputs.CLASS_OVERLAPS}),
    }
)
# Metrics whose function is the one over labels too, and those of one class that need the cells between two.
OVER_LABELS = frozenset({Task.MULTILABEL})
# Metrics of what was decided, which need not be a class.
OF_DECISIONS = frozenset({Task.DECISIONS})
# Metrics that do not mind which class belongs to which cluster.
CLUSTERINGS = frozenset({Task.CLUSTERING})
CLASSES_ONLY: frozenset[Task] = frozenset()
# Metrics of one sample's labels after another that are those of any sets.
ANY_SETS = frozenset({Task.SETS})
INPUTS_OF_CLASSES = frozenset({Inputs.MATRIX, Inputs.PROBABILITIES})


# What a metric is computed from: a table of matrices, the scores of samples, ranked items of queries.
Data = TypeVar("Data", contravariant=True)
_Declared = TypeVar("_Declared")


@dataclass(frozen=True, slots=True)
class Condition(Generic[Data]):
    """A named reason for which a value does not exist. ``holds`` gives a mask of shape (..., K), or (...) when
    ``overall``.
    """

    code: str
    reason: str
    holds: Callable[[Data], Mask]
    overall: bool = False


@dataclass(frozen=True, slots=True)
class VerbalScale:
    """Verbal bands for a value: each (upper bound, label), bounds exclusive, the last one open (None)."""

    name: str
    bands: tuple[tuple[float | None, str], ...]
    reference: str

    def label(self, value: float) -> str:
        """Name of the band that holds the value."""
        for upper, label in self.bands:
            if upper is None or value < upper:
                return label
        raise ValueError(f"scale {self.name} does not end with an open band")


class Scale(StrEnum):
    """On which a value is bounded and tested; the logit is that of the place within the range."""

    LINEAR = "linear"
    LOGIT = "logit"
    LOG = "log"


class Mean(IntEnum):
    """The means of recalls whose intervals follow from those of the recalls, in the order of ``mover.mean_limits``."""

    ARITHMETIC = 0
    GEOMETRIC = 1
    HARMONIC = 2


# From a table (..., K, K) to parts (..., K).
Gradient = Callable[[Table], AdditiveGradient]


@dataclass(frozen=True, slots=True)
class Gaps:
    """Signed values ``of`` (..., P) the same data and parameters, of a metric of one class (..., K, P), of which a
    metric is the ``norm``: the sum of the absolute values (l1), the root of the sum of the squares (l2), or the largest
    (max). A parameter of this name says so in its place.
    """

    of: Callable[..., Array]
    norm: str = "l1"

    def combined(self, gaps: Array, parameters: Mapping[str, Any] = MappingProxyType({})) -> Array:
        """The metric (...) by its gaps (..., P)."""
        orders = {"l1": 1, "l2": 2, "max": np.inf}
        return np.asarray(np.linalg.norm(gaps, orders[parameters.get("norm", self.norm)], axis=-1))


@dataclass(frozen=True, slots=True)
class Part:
    """What a share of a table of decisions is: how many samples count and among how many, ``of`` (...) the table and
    the parameters, and which samples these are.
    """

    of: Callable[..., tuple[Array, Array]]
    among: Cells


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """What decides how a metric is estimated, tested and shown.

    Attributes:
        headline: It belongs to what a report shows first.
        headline_of: Tasks besides classes where it does so too.
        about_sample: It describes this sample, as a p-value or a standard error does, and is no property of the
            classifier: it has no limits, no value at balanced prevalence, and nothing is decided by it.
        biased: Noise moves it to one side, as it does with maxima and sums of absolute values, and a resample adds as
            much noise once more.
        gaps: What it is a sum or maximum of absolute values of, if it is one.
        proper: Of a score of probabilities: is its expectation best for the true probabilities and for no others?
            None for what is no such score: metrics of matrices, of the order of scores, of calibration alone.
        proportion: What it is a rate of, if it is one.
        part: The same of what was decided, where that is no class.
        scale: On which its limits are symmetric and its differences tested.
        same_as: The function of other metrics that it is, such as ``min(recall@*)``: one quantity has one way to its
            limits.
        mean_of_recalls: Which mean of the recalls it is, if it is one of these.
        gradient: Of a metric of a matrix that is smooth in the shares of the cells.
        by_chance: Of a calibration error: what perfect probabilities would show, simulated.
        details: Of a metric of probabilities: what belongs beside its value, by name, each a number, or one per class
            (K) for a metric of one class.
        influence: Of a metric of probabilities that is a sum over the samples: what each adds to its sampling error.
        terms: Of a ratio of two sums over independent units, a mean among them: what each unit adds to both.
        is_share: Of a mean over units: each counts 1 or 0, so that its limits are those of a proportion.
        exact: As arithmetic on counts, for holding what was reported against all matrices.
    """

    headline: bool = False
    headline_of: frozenset[Task] = frozenset()
    about_sample: bool = False
    biased: bool = False
    gaps: Gaps | None = None
    proper: bool | None = None
    proportion: Proportion | None = None
    part: Part | None = None
    scale: Scale = Scale.LINEAR
    same_as: str | None = None
    mean_of_recalls: Mean | None = None
    gradient: Gradient | None = None
    by_chance: Callable[..., Chance] | None = None
    details: Callable[[Scores], Mapping[str, Array | float]] | None = None
    influence: Form | None = None
    terms: Callable[..., Terms] | None = None
    is_share: bool = False
    exact: Exact | None = None

    def leads(self, task: Task) -> bool:
        """Does it belong to what a report of a task shows first?"""
        return self.headline or task in self.headline_of


_OF_INFERENCE = frozenset(fact.name for fact in fields(Inference))


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One metric in data.

    Attributes:
        elsewhere: Its names in other libraries.
        differs: What is to be minded where one of these gives another value, by library.
        range: None where there is no bound.
        range_of_matrix: The same where a parameter is a matrix, if that is another one.
        degree: What multiplying all counts does to the value: 0 nothing, 1 it is multiplied too, None that it depends
            on the number of samples in a way of its own.
        on_request: It stands in no report unless it is asked for.
        also: For which other tasks its function is the metric of the same name. None: for no others, or for labels if
            it is of one class and of matrices.
        rising: Names of parameters of which each has to be larger than the one before.
        better_by: Name of the parameter that says which direction is better, if the orientation follows from one.
    """

    key: str
    name: str
    scope: Scope
    prevalence: Prevalence
    formula: str
    sentence: str
    symbol: str = ""
    aliases: tuple[str, ...] = ()
    elsewhere: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    differs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    inputs: Inputs = Inputs.MATRIX
    range: tuple[float | None, float | None] = (0.0, 1.0)
    range_of_matrix: tuple[float | None, float | None] | None = None
    ideal: float | None = 1.0
    orientation: Orientation = Orientation.HIGHER
    chance_corrected: bool = False
    symmetric: bool = False
    ordered: bool = False
    on_request: bool = False
    also: frozenset[Task] | None = None
    rising: tuple[str, ...] = ()
    better_by: str | None = None
    degree: int | None = 0
    parameters: tuple[Parameter, ...] = ()
    undefined: tuple[Condition[Any], ...] = ()
    caution: Callable[..., str | None] | None = None
    scales: tuple[VerbalScale, ...] = ()
    references: tuple[str, ...] = ()
    inference: Inference = Inference()
    since: str = "0.1"
    revision: int = 1

    @property
    def tasks(self) -> tuple[Task, ...]:
        """What it makes sense for; an order of classes needs more than two."""
        own = _TASK_OF.get(self.inputs)
        if own is not None:
            return (own, *sorted(self.also or ()))
        also = self.also
        if also is None:
            of_labels = self.scope is Scope.CLASS and self.inputs is Inputs.MATRIX
            also = frozenset({Task.MULTILABEL}) if of_labels else frozenset()
        return (*((Task.MULTICLASS,) if self.ordered else (Task.BINARY, Task.MULTICLASS)), *sorted(also))

    @property
    def needs_counts(self) -> bool:
        """Does the value depend on the number of samples otherwise than by growing with it?"""
        return self.degree is None

    def has_twin(self, n_classes: int) -> bool:
        """Is it worth computing again at balanced prevalence? Rows scaled to equal totals are no numbers of samples."""
        return self.degree == 0 and not self.prevalence.is_insensitive(n_classes)

    def range_with(self, parameters: Mapping[str, Any]) -> tuple[float | None, float | None]:
        """The range of the values for these parameters."""
        given = any(isinstance(value, tuple) for value in parameters.values())
        return self.range_of_matrix if given and self.range_of_matrix is not None else self.range

    def orientation_with(self, parameters: Mapping[str, Any]) -> Orientation:
        """Which direction is better for these parameters."""
        if self.better_by is None:
            return self.orientation
        return Orientation.LOWER if parameters[self.better_by] == Better.LOWER else Orientation.HIGHER

    @property
    def defaults(self) -> dict[str, Any]:
        """Parameters and the values they have when none is given."""
        return {parameter.name: parameter.default for parameter in self.parameters}


@dataclass(frozen=True, slots=True)
class Metric(Generic[Data]):
    """A card and its function: ``compute(data, **parameters)`` gives (..., K) for scope class, (...) for overall."""

    card: Card
    compute: Callable[Concatenate[Data, ...], Array]

    @property
    def key(self) -> str:
        """Key of the card."""
        return self.card.key

    def __call__(self, data: Data, **parameters: Any) -> Array:
        """Values for a table or for scores; parameters that are not given have their defaults."""
        return self.compute(data, **parameters)


AnyMetric = Metric[Any]


def is_of_matrices(metric: AnyMetric) -> TypeGuard[Metric[Table]]:
    """Does a confusion matrix say all that the metric needs?"""
    return metric.card.inputs is Inputs.MATRIX


def is_of_probabilities(metric: AnyMetric) -> TypeGuard[Metric[Scores]]:
    """Does the metric need the probabilities or scores of samples?"""
    return metric.card.inputs is Inputs.PROBABILITIES


def is_of_rankings(metric: AnyMetric) -> TypeGuard[Metric[Queries]]:
    """Does the metric need ranked items of queries?"""
    return metric.card.inputs is Inputs.QUERIES


def metric(**facts: Any) -> Callable[[Callable[Concatenate[_Declared, ...], Array]], Metric[_Declared]]:
    """Turn a function into a metric by the facts of its card and of its ``Inference``. The key is the function's
    name.
    """
    inference = Inference(**{name: fact for name, fact in facts.items() if name in _OF_INFERENCE})
    own = {name: fact for name, fact in facts.items() if name not in _OF_INFERENCE}

    def declare(compute: Callable[Concatenate[_Declared, ...], Array]) -> Metric[_Declared]:
        return Metric(Card(key=compute.__name__, inference=inference, **own), compute)

    return declare
