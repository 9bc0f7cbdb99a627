"""Cards of metrics: everything declared of a metric beside its function, its parameters, and how many are evaluated.

``metric`` turns a function of a matrix or of scores into a metric; ``over_units`` does so for metrics of independent
units.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum, IntEnum, StrEnum
from functools import wraps
from types import MappingProxyType
from typing import Any, Concatenate, Generic, NamedTuple, TypeGuard, TypeVar

import numpy as np

from app.kernel.matrix.table import AdditiveGradient, Table
from app.kernel.metrics.exact import Exact
from app.kernel.metrics.proportion import ConfusionCells, Proportion
from app.kernel.numerics.arrays import Array, Mask, kept, silently
from app.kernel.numerics.weighted_units import Terms, WeightedUnits, mean_terms
from app.kernel.samples.calibration import ErrorByChance
from app.kernel.samples.influence import InfluenceForm
from app.kernel.samples.scores import Scores


@dataclass(frozen=True, slots=True)
class Number:
    """Numeric parameter with its bounds; ``None`` is unbounded.

    ``integral`` requires a whole number. If ``written``, the canonical text of an expression shows it even at its
    default.
    """

    name: str
    default: float
    description: str
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    below: float | None = None
    infinite: bool = False
    integral: bool = False
    written: bool = False


class MatrixOf(StrEnum):
    """Meaning of the entries of a parameter that is a matrix with actual classes as rows."""

    WEIGHTS = "weights"
    COSTS = "costs"
    COSTS_OF_ANYTHING = "costs_of_anything"


@dataclass(frozen=True, slots=True)
class Choice:
    """Parameter with named values.

    ``matrix`` also allows a matrix as a tuple of its K rows: with K columns, or with any number of them where decisions
    need not be classes.
    """

    name: str
    default: str
    description: str
    options: tuple[str, ...]
    matrix: MatrixOf | None = None


class Decision(NamedTuple):
    """Possible decision by name, with its column; column 0 while the columns are unknown."""

    name: str
    place: int


NO_DECISION = Decision("", 0)


@dataclass(frozen=True, slots=True)
class DecisionName:
    """Required parameter that names a decision."""

    name: str
    description: str
    default: Decision = NO_DECISION


Parameter = Number | Choice | DecisionName


UNDEFINED = Choice(
    "undefined",
    "strict",
    "what a class without a value does: 'strict' leaves the average undefined, 'zero' counts it as 0 as "
    "scikit-learn does",
    ("strict", "zero"),
)


def filled(values: Array, undefined: str) -> Array:
    """Values of the classes (..., K), with 0 for undefined ones if ``undefined`` asks for it."""
    return values if undefined == "strict" else np.where(np.isnan(values), 0.0, values)


# 'zero_one' for 1 per mistake, or rows of costs.
Costs = str | tuple[tuple[float, ...], ...]
COSTS = Choice(
    "costs",
    "zero_one",
    "1 for every mistake ('zero_one'), or a matrix as '0,1; 5,0' of costs with actual classes as rows, in label order",
    ("zero_one",),
    matrix=MatrixOf.COSTS,
)


def matrix_of_costs(costs: Costs, n_classes: int) -> Array:
    """Costs (K, M) of actual classes and decisions."""
    return 1.0 - np.eye(n_classes) if isinstance(costs, str) else np.array(costs)


def total_cost(counts: Array, costs: Array) -> Array:
    """Total cost (...) of decisions: ``counts`` (..., K, M) of actual classes and decisions times their costs."""
    return np.asarray(np.sum(counts * costs, axis=(-2, -1)))


def constant_costs(actual: Array, costs: Array) -> Array:
    """Total cost (..., M) of always taking one decision, for each decision, with class sizes (..., K)."""
    return np.asarray(actual @ costs)


def relative_cost(counts: Array, actual: Array, costs: Array) -> Array:
    """Cost (...) of decisions relative to that of the cheapest constant decision, with class sizes (..., K).

    NaN where a constant decision costs nothing: then nothing can be saved.
    """
    constant = np.min(constant_costs(actual, costs), axis=-1)
    return total_cost(counts, costs) / np.where(constant > 0.0, constant, np.nan)


class Scope(StrEnum):
    """Object of a metric: one class against the rest, or the whole matrix."""

    CLASS = "class"
    OVERALL = "overall"


class Prevalence(StrEnum):
    """Effect on the value when whole classes are replicated."""

    INSENSITIVE = "insensitive"
    SENSITIVE = "sensitive"
    INSENSITIVE_BINARY = "insensitive_binary"

    def is_insensitive(self, n_classes: int) -> bool:
        """True if replicating classes leaves the value unchanged for this number of classes."""
        return self is Prevalence.INSENSITIVE or (self is Prevalence.INSENSITIVE_BINARY and n_classes == 2)


class Orientation(StrEnum):
    """Direction in which values improve."""

    HIGHER = "higher_is_better"
    LOWER = "lower_is_better"
    NEAREST = "nearest_the_ideal_is_better"
    DESCRIPTIVE = "descriptive"


class Better(StrEnum):
    """Values of a parameter that gives the direction in which values improve."""

    HIGHER = "higher"
    LOWER = "lower"


class Inputs(StrEnum):
    """Kind of data that a metric is computed from."""

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
    """Kind of problem: one of two or of several classes per sample, decisions that need not be classes, any number of
    labels, clusters, rankings, or sets such as regions and answers.
    """

    BINARY = "binary"
    MULTICLASS = "multiclass"
    DECISIONS = "decisions"
    MULTILABEL = "multilabel"
    CLUSTERING = "clustering"
    RANKING = "ranking"
    SETS = "sets"

    def outcomes(self, n_classes: int) -> int:
        """Number of outcomes of a sample where prevalence counts: two for a label, else the number of classes."""
        return 2 if self is Task.MULTILABEL else n_classes


INPUTS_OF_CLASSES = frozenset({Inputs.MATRIX, Inputs.PROBABILITIES})
# Inputs of each task other than classes.
INPUTS_OF: Mapping[Task, frozenset[Inputs]] = MappingProxyType(
    {
        Task.DECISIONS: frozenset({Inputs.MATRIX, Inputs.DECISIONS}),
        Task.MULTILABEL: frozenset({Inputs.MATRIX, Inputs.PROBABILITIES, Inputs.LABELS, Inputs.LABEL_SCORES}),
        Task.CLUSTERING: frozenset({Inputs.MATRIX, Inputs.CONTINGENCY, Inputs.FEATURES}),
        Task.RANKING: frozenset({Inputs.QUERIES}),
        Task.SETS: frozenset({Inputs.LABELS, Inputs.OVERLAPS, Inputs.CLASS_OVERLAPS}),
    }
)
# By input that classes have not: the first task above that has it.
_TASK_OF = {one: task for task, own in reversed([*INPUTS_OF.items()]) for one in own - INPUTS_OF_CLASSES}
# Values of ``Card.also``: metrics of the whole matrix that are defined for labels too.
OVER_LABELS = frozenset({Task.MULTILABEL})
# Metrics of decisions, which need not be classes.
OF_DECISIONS = frozenset({Task.DECISIONS})
# Metrics that do not depend on the assignment of clusters to classes.
CLUSTERINGS = frozenset({Task.CLUSTERING})
CLASSES_ONLY: frozenset[Task] = frozenset()
# Metrics of the label set of each sample that are defined for any sets.
ANY_SETS = frozenset({Task.SETS})


# Data of a metric: a table of matrices, scores of samples, ranked items of queries and others.
Data = TypeVar("Data", contravariant=True)
_Declared = TypeVar("_Declared")


@dataclass(frozen=True)
class Condition(Generic[Data]):
    """A named reason for which a value does not exist. ``holds`` gives a mask of shape (..., K), or (...) where it is
    about no class.
    """

    code: str
    reason: str
    holds: Callable[[Data], Mask]


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
    """Scale on which limits are symmetric and differences are tested; the logit is that of the position within the
    range.
    """

    LINEAR = "linear"
    LOGIT = "logit"
    LOG = "log"


class Mean(IntEnum):
    """The means of recalls whose intervals follow from those of the recalls, in the order of ``mover.mean_limits``."""

    ARITHMETIC = 0
    GEOMETRIC = 1
    HARMONIC = 2


# Maps a table (..., K, K) to a gradient with parts (..., K).
Gradient = Callable[[Table], AdditiveGradient]


@dataclass(frozen=True, slots=True)
class Gaps:
    """Differences whose norm is the metric, computed from the same data and parameters.

    Attributes:
        of: Gives the signed differences (..., P), or (..., K, P) for a metric of one class.
        norm: Sum of absolute values (l1), root of the sum of squares (l2) or largest absolute value (max). A parameter
            named ``norm`` replaces it.
    """

    of: Callable[..., Array]
    norm: str = "l1"

    def combined(self, gaps: Array, parameters: Mapping[str, Any] = MappingProxyType({})) -> Array:
        """Values (...) of the metric from its differences (..., P)."""
        orders = {"l1": 1, "l2": 2, "max": np.inf}
        return np.asarray(np.linalg.norm(gaps, orders[parameters.get("norm", self.norm)], axis=-1))


@dataclass(frozen=True, slots=True)
class Part:
    """Numerator and denominator of a share of a table of decisions.

    Attributes:
        of: Gives both counts (...) from the table and the parameters.
        among: Samples in the denominator.
    """

    of: Callable[..., tuple[Array, Array]]
    among: ConfusionCells


class Recalibration(Enum):
    """Functions by which probabilities are recalibrated: a line in log odds, or any rising function."""

    LINE = "line"
    RISING = "rising"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """Facts that decide how a metric is estimated, tested and shown.

    Attributes:
        headline: It leads the report.
        headline_of: Tasks besides classes where it leads the report.
        about_sample: It describes this sample, as a p-value or a standard error does, and not the classifier. It has no
            limits, no value at balanced prevalence, and no decision uses it.
        biased: Noise moves it to one side, as with maxima and sums of absolute values, and a resample adds as much
            noise again.
        gaps: Differences whose norm it is, if it is one.
        over_cuts: It is the largest informedness of a class over all cuts of its scores.
        proper: For a score of probabilities: its expectation is best for the true probabilities and for no others. None
            for metrics of matrices, of the order of scores and of calibration alone.
        proportion: The rate that it is, if it is one.
        overlap: Rising map from the Jaccard index of the class to the metric, if it follows from that alone. The index
            is a rate among the samples that are or are called members, so its limits become those of the metric.
        part: The share of decisions that it is, if it is one.
        scale: Scale on which its limits are symmetric and its differences tested.
        same_as: Equivalent function of other metrics, such as ``min(recall@*)``: one quantity has one way to its
            limits.
        mean_of_recalls: The mean of the recalls that it is, if it is one.
        over_classes: It is a mean over all classes that exists where a class has no samples.
        gradient: Gradient of a metric that is smooth in the shares of the cells of a matrix.
        by_chance: Simulates a calibration error under perfect calibration.
        details: Gives values shown beside a metric of probabilities, by name: a number each, or one per class (K) for a
            metric of one class.
        influence: Influence of each sample on a metric of probabilities that is a sum over samples.
        sums: Sums of a table of classes by clusters that it is a smooth function of, by their names in `Contingency`.
        terms: Numerator and denominator of each unit, for a ratio of two sums over independent units or a mean.
        is_share: The terms are 1 or 0 per unit, so the limits are those of a proportion.
        recalibrated: By what a loss of two classes is split into calibration and refinement, if it is.
        exact: The metric as arithmetic on counts, for testing reported values against all possible matrices.
    """

    headline: bool = False
    headline_of: frozenset[Task] = frozenset()
    about_sample: bool = False
    biased: bool = False
    gaps: Gaps | None = None
    over_cuts: bool = False
    proper: bool | None = None
    proportion: Proportion | None = None
    overlap: Callable[[Array], Array] | None = None
    part: Part | None = None
    scale: Scale = Scale.LINEAR
    same_as: str | None = None
    mean_of_recalls: Mean | None = None
    over_classes: bool = False
    gradient: Gradient | None = None
    by_chance: Callable[..., ErrorByChance] | None = None
    details: Callable[[Scores], Mapping[str, Array | float]] | None = None
    influence: InfluenceForm | None = None
    sums: tuple[str, ...] = ()
    terms: Callable[..., Terms] | None = None
    is_share: bool = False
    recalibrated: Recalibration | None = None
    exact: Exact | None = None

    def leads(self, task: Task) -> bool:
        """True if it leads the report of a task."""
        return self.headline or task in self.headline_of


_OF_INFERENCE = frozenset(fact.name for fact in fields(Inference))


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """Facts of one metric.

    Attributes:
        elsewhere: Its names in other libraries.
        differs: Differences to the value of another library, by library.
        range: Lowest and highest value; None is unbounded.
        range_of_matrix: Range when a parameter is a matrix, if it is another one.
        ideal: Value of a perfect classifier, None where that has none: the end of the range that is better, or 0 where
            values are best near the ideal, unless a declaration says another.
        degree: Effect of multiplying all counts: 0 leaves the value, 1 multiplies it too, None changes it in another
            way.
        grows: However many samples there are, with more of the same kind it is another one.
        on_request: No report shows it unless it is asked for.
        on_request_of: Nor do those of these tasks, for which it takes an order of its own.
        also: Other tasks for which its function is the metric of the same name. None: no other, or multilabel for a
            one-vs-rest metric of matrices.
        of_labels: Its name means another metric for classes, so it is one of labels only.
        rising: Names of parameters that have to rise strictly in this order.
        better_by: Name of the parameter that gives the orientation, if one does.
        references: Short names of sources; the article on PyCM where a metric of it has no other.
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
    ideal: float | None
    orientation: Orientation = Orientation.HIGHER
    chance_corrected: bool = False
    symmetric: bool = False
    ordered: bool = False
    on_request: bool = False
    on_request_of: frozenset[Task] = frozenset()
    also: frozenset[Task] | None = None
    of_labels: bool = False
    rising: tuple[str, ...] = ()
    better_by: str | None = None
    degree: int | None = 0
    grows: bool = False
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
        """Tasks for which it is defined; an order of classes needs more than two."""
        own = _TASK_OF.get(self.inputs)
        if own is not None:
            return (own, *sorted(self.also or ()))
        if self.of_labels:
            return (Task.MULTILABEL,)
        also = self.also
        if also is None:
            of_labels = self.scope is Scope.CLASS and self.inputs is Inputs.MATRIX
            also = frozenset({Task.MULTILABEL}) if of_labels else frozenset()
        return (*((Task.MULTICLASS,) if self.ordered else (Task.BINARY, Task.MULTICLASS)), *sorted(also))

    @property
    def needs_counts(self) -> bool:
        """True if the value depends on the number of samples other than in proportion."""
        return self.degree is None

    def has_twin(self, n_classes: int) -> bool:
        """True if its value at balanced prevalence is of interest. Rows scaled to equal totals do not keep numbers of
        samples.
        """
        return self.degree == 0 and not self.prevalence.is_insensitive(n_classes)

    def range_with(self, parameters: Mapping[str, Any]) -> tuple[float | None, float | None]:
        """Range of the values for these parameters."""
        given = any(isinstance(value, tuple) for value in parameters.values())
        return self.range_of_matrix if given and self.range_of_matrix is not None else self.range

    def orientation_with(self, parameters: Mapping[str, Any]) -> Orientation:
        """Orientation for these parameters."""
        if self.better_by is None:
            return self.orientation
        return Orientation.LOWER if parameters[self.better_by] == Better.LOWER else Orientation.HIGHER

    @property
    def defaults(self) -> dict[str, Any]:
        """Default values of the parameters, by name."""
        return {parameter.name: parameter.default for parameter in self.parameters}


@dataclass(frozen=True, slots=True)
class Metric(Generic[Data]):
    """A card and its function: ``compute(data, **parameters)`` gives (..., K) for scope class, (...) for overall."""

    card: Card
    compute: Callable[Concatenate[Data, ...], Array]
    key: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.card.key)

    def __call__(self, data: Data, **parameters: Any) -> Array:
        """Values for a table or for scores; missing parameters have their defaults."""
        return self.compute(data, **parameters)


AnyMetric = Metric[Any]


def is_of_matrices(metric: AnyMetric) -> TypeGuard[Metric[Table]]:
    """True if a confusion matrix determines the metric."""
    return metric.card.inputs is Inputs.MATRIX


def is_of_probabilities(metric: AnyMetric) -> TypeGuard[Metric[Scores]]:
    """True if the metric needs the probabilities or scores of samples."""
    return metric.card.inputs is Inputs.PROBABILITIES


def metric(**facts: Any) -> Callable[[Callable[Concatenate[_Declared, ...], Array]], Metric[_Declared]]:
    """Decorator that turns a function into a metric, from the facts of its card and its ``Inference``. The key is the
    name of the function unless it is given.
    """
    inference = Inference(**{name: fact for name, fact in facts.items() if name in _OF_INFERENCE})
    own = {name: fact for name, fact in facts.items() if name not in _OF_INFERENCE}
    low, high = facts.get("range", (0.0, 1.0))
    best = {Orientation.HIGHER: high, Orientation.LOWER: low, Orientation.NEAREST: 0.0, Orientation.DESCRIPTIVE: None}
    own.setdefault("references", ("haghighi2018",) if "pycm" in own.get("elsewhere", ()) else ())
    own.setdefault("ideal", best[facts.get("orientation", Orientation.HIGHER)])

    def declare(compute: Callable[Concatenate[_Declared, ...], Array]) -> Metric[_Declared]:
        return Metric(Card(inference=inference, **{"key": getattr(compute, "__name__", ""), **own}), compute)

    return declare


def formula(key: str, of: Callable[..., Any], **facts: Any) -> Metric[Table]:
    """Metric of one class whose function is arithmetic on counts alone, so that fractions give its exact value."""
    declared: Metric[Table] = metric(**{"key": key, "scope": Scope.CLASS, "exact": Exact(of), **facts})(of)
    return declared


_Units = TypeVar("_Units", bound=WeightedUnits)


def over_units(**facts: Any) -> Callable[[Callable[Concatenate[_Units, ...], Array | Terms]], Metric[_Units]]:
    """Decorator that turns a function of units into a metric, from the facts of its card.

    If the function gives values (U), NaN for none, the metric is their mean. If it gives terms, the metric is the ratio
    of their sums.
    """

    def declare(of_units: Callable[Concatenate[_Units, ...], Array | Terms]) -> Metric[_Units]:
        def terms(data: _Units, **parameters: Any) -> Terms:
            def make() -> Terms:
                with silently():
                    found = of_units(data, **parameters)
                return found if isinstance(found, Terms) else mean_terms(found)

            return data.remembered((of_units.__name__, *sorted(parameters.items())), make)

        @wraps(of_units)
        def compute(data: _Units, **parameters: Any) -> Array:
            return data.ratio_of(terms(data, **parameters))

        declared: Metric[_Units] = metric(scope=Scope.OVERALL, terms=terms, **facts)(compute)
        return declared

    return declare


# Reasons when no condition of the card explains a missing value, as can happen with unusual parameters.
DIVISION_BY_ZERO: Condition[Table | Scores] = Condition(
    "division_by_zero", "the formula divides zero by zero for these counts", lambda t: np.isnan(t.n) | True
)
INFINITE: Condition[Table | Scores] = Condition(
    "infinite", "the value is infinite for these counts", lambda t: np.isnan(t.n) | True
)


@dataclass(frozen=True, slots=True)
class Gap:
    """Undefined value: its metric, its class (None for overall), the condition that explains it, and the classes at
    fault.
    """

    metric: Metric[Any]
    class_index: int | None
    condition: Condition[Any]
    culprits: tuple[int, ...]


def evaluate_table(data: Data, metrics: Sequence[Metric[Data]]) -> Array:
    """Values of metrics of one scope with their default parameters; calls with the same table share its intermediate
    results.

    Returns:
        Array (M, ..., K) for scope class, (M, ...) for scope overall. NaN is undefined, inf is infinite.
    """
    with silently():
        return np.array([metric.compute(data) for metric in metrics])


class Explainer(Generic[Data]):
    """Finds the first condition of the card that explains a missing value of one matrix (K, K); masks are computed
    once.
    """

    def __init__(self, data: Data) -> None:
        self.data = data

    @kept
    def _mask(self, condition: Condition[Data]) -> Mask:
        with silently():
            return np.asarray(condition.holds(self.data))

    def explain(
        self,
        metric: Metric[Data],
        class_index: int | None,
        value: float,
        conditions: Sequence[Condition[Any]] | None = None,
    ) -> Gap:
        """Reason why ``value`` (NaN or infinite) of the metric is missing, for a class or, with None,
        for the matrix; by the conditions of its card unless others are given.
        """
        for condition in metric.card.undefined if conditions is None else conditions:
            if (condition.code == "infinite") != bool(np.isinf(value)):
                continue
            mask = self._mask(condition)
            if not mask.ndim:
                if mask:
                    return Gap(metric, class_index, condition, ())
            elif class_index is not None:
                if mask[class_index]:
                    return Gap(metric, class_index, condition, (class_index,))
            elif mask.any():
                return Gap(metric, None, condition, tuple(int(k) for k in np.flatnonzero(mask)))
        return Gap(metric, class_index, INFINITE if np.isinf(value) else DIVISION_BY_ZERO, ())

    def gaps(self, metrics: Sequence[Metric[Data]], values: Array) -> Iterator[Gap]:
        """One gap for every missing entry of values (M,) or (M, K), in order."""
        for where in np.argwhere(~np.isfinite(values)):
            position = tuple(int(index) for index in where)
            class_index = position[1] if len(position) == 2 else None
            yield self.explain(metrics[position[0]], class_index, float(values[position]))
