"""Metric expressions as things to be simulated and compared: their names, their values, and which are better."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

import numpy as np

from app.domain.catalogue import overall_key
from app.domain.errors import NotComparable, all_understood
from app.domain.expressions.expressions import parse, refuse_about_sample, render
from app.domain.inputs.kinds import UNIT_KINDS, inputs_of
from app.domain.inputs.matrices import MatrixInput
from app.domain.named_metrics import RANKED
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import AnyMetric, Inputs, Orientation, Scale, Scope, Task
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import (
    Bounds,
    Every,
    Expression,
    Measure,
    OverSlices,
    Sliced,
    Subject,
    bounds,
    compute,
    is_insensitive,
    is_list,
    is_of_slices,
    measures,
    of_each_class,
    of_probabilities,
    parts_of,
)
from app.kernel.metrics.proportion import Rate
from app.kernel.numerics.arrays import Array

MATRICES = frozenset({Inputs.MATRIX})
# A list of labels has no number of classes: each is there or not, and rates of one are no rates of another.
_MANY = 3


class Better(StrEnum):
    """Direction in which a metric is better."""

    HIGHER = "higher"
    LOWER = "lower"
    NEAREST = "nearest"


@dataclass(frozen=True, slots=True)
class Preference:
    """Order of values by a metric's direction; with NEAREST the value closer to the ideal is better."""

    better: Better
    ideal: float = 0.0

    def score(self, values: Array) -> Array:
        """The values as something that is better the higher it is."""
        match self.better:
            case Better.HIGHER:
                return values
            case Better.LOWER:
                return -values
        return -np.abs(values - self.ideal)


@dataclass(frozen=True, slots=True, eq=False)
class Estimand:
    """One expression as it was asked for: V values, which are K for a list over the classes and else 1.

    Attributes:
        text: As asked.
        names: (V) what each value is called.
        expression: The same as a tree.
        functional: From a table (...) to values (...) or (..., K); from a subject where it is ``scored``.
        bounds: The range that the values keep to, None where there is no end.
        preference: Which values are better; None for what only describes.
        insensitive: Prevalence does not move it.
        rates: (V) what the values are rates of; None where they are none.
        task: What is judged, where that is more than classes: then all values come from units in weights.
    """

    text: str
    names: tuple[str, ...]
    expression: Expression
    functional: Callable[[Table | Subject], Array]
    bounds: Bounds
    preference: Preference | None
    insensitive: bool
    rates: tuple[Rate, ...] | None = None
    task: Task | None = None

    def values(self, computed: Array) -> Array:
        """Return the computed values as (..., V)."""
        return computed if self.is_list else computed[..., None]

    @property
    def scored(self) -> bool:
        """Does it need more than a matrix of classes: the probabilities, scores or labels of the samples?"""
        return self.task is not None or of_probabilities(self.expression)

    @property
    def is_of_slices(self) -> bool:
        """Is it of slices, which attributes of the samples make?"""
        return is_of_slices(self.expression)

    @property
    def reads_recalls(self) -> bool:
        """Does it read nothing of a matrix but the recalls of its classes?"""
        leaves = () if self.task is not None or self.is_of_slices else measures(self.expression)
        return bool(leaves) and all(leaf.metric.card.inference.mean_of_recalls is not None for leaf in leaves)

    @property
    def is_list(self) -> bool:
        """Has it one value per class?"""
        return len(self.names) > 1

    @property
    def scale(self) -> Scale:
        """The scale on which differences are tested."""
        return self.expression.metric.card.inference.scale if isinstance(self.expression, Measure) else Scale.LINEAR


def parse_estimands(
    texts: Sequence[str],
    labels: Sequence[str],
    positive: int | None,
    *,
    inputs: Collection[Inputs] = MATRICES,
    task: Task | None = None,
    decisions: Sequence[str] | None = None,
    sliceable: bool = False,
    pointer: str = "/metrics",
) -> tuple[Estimand, ...]:
    """Expressions for the classes of some evaluation; what is asked twice is answered once.

    ``positive`` is the class that a metric of one class without ``@`` speaks of, ``inputs`` what there is to compute
    from; ``decisions`` are what can be decided, where these are no classes.

    Raises:
        InvalidExpression: one is none; its pointer says which.
        InvalidExpressions: several are.
    """
    return tuple(
        all_understood(
            dict.fromkeys(texts),
            lambda text: make_estimand(text, labels, positive, inputs, task, decisions, sliceable=sliceable),
            lambda text: pointer_to(pointer, texts, text),
        )
    )


def pointer_to(pointer: str, texts: Sequence[str], text: str) -> str:
    """Return the JSON pointer of an expression: in a list, unless the pointer is that of a single one."""
    return f"{pointer}/{list(texts).index(text)}" if pointer.endswith("/metrics") else pointer


def make_estimand(
    text: str,
    labels: Sequence[str],
    positive: int | None,
    inputs: Collection[Inputs] = MATRICES,
    task: Task | None = None,
    decisions: Sequence[str] | None = None,
    *,
    sliceable: bool = False,
) -> Estimand:
    """One expression. Raises InvalidExpression if it is none."""
    expression = parse(text, labels, positive, inputs=inputs, task=task, decisions=decisions, sliceable=sliceable)
    return estimand_of(expression, text, labels, task=task)


def estimand_of(
    expression: Expression,
    text: str,
    labels: Sequence[str],
    *,
    names: tuple[str, ...] | None = None,
    task: Task | None = None,
) -> Estimand:
    """A parsed expression as a estimand; names of the values of a list are made unless they are known."""
    outcomes = len(labels) if task is None else task.outcomes(len(labels))
    if not is_list(expression):
        names = (text,)
    elif names is None:
        names = tuple(render(one, labels) for one in of_each_class(expression, len(labels)))
    return Estimand(
        text=text,
        names=names,
        expression=expression,
        functional=partial(compute, expression),
        bounds=bounds(expression),
        preference=preference(expression),
        insensitive=is_insensitive(expression, outcomes),
        rates=_rates(expression, len(labels), task),
        task=task,
    )


def part_of(estimand: Estimand, expression: Sliced | OverSlices, labels: Sequence[str]) -> Estimand:
    """The estimand of which an expression has the values in slices."""
    return estimands_in(estimand, expression, labels)[0]


def estimands_in(estimand: Estimand, expression: Expression, labels: Sequence[str]) -> list[Estimand]:
    """The estimands that an expression is made of."""
    return [estimand_of(part, render(part, labels), labels, task=estimand.task) for part in parts_of(expression)]


def stored_key(expression: Expression) -> str | None:
    """Key of the overall metric whose values are stored with the evaluations, if the expression is one."""
    if not isinstance(expression, Measure) or expression.of is not None:
        return None
    return overall_key(render(expression, ()))


def require_comparable(estimands: Sequence[Estimand], texts: Sequence[str], pointer: str = "/metrics") -> None:
    """Every estimand must say which values are better, of the classifier and not of the sample.

    Raises:
        NotComparable: one only describes, or mixes metrics of which high values are good with others.
    """
    for estimand in estimands:
        refuse_about_sample(estimand.expression, estimand.text, pointer=pointer_to(pointer, texts, estimand.text))
        if estimand.preference is None:
            raise NotComparable(
                f"{estimand.text} cannot say which run is better: it only describes, or mixes opposite directions",
                pointer=pointer_to(pointer, texts, estimand.text),
            )


def preference(expression: Expression) -> Preference | None:
    """Return the direction in which an expression is better; None if it does not say."""
    if isinstance(expression, Measure):
        return _preference(expression.metric.card.orientation_with(expression.parameters), expression.metric.card.ideal)
    if isinstance(expression, Sliced):
        return preference(expression.part)
    if expression.card.orientation is not None:
        return _preference(expression.card.orientation)
    parts = {preference(part) for part in parts_of(expression)}
    found = parts.pop() if len(parts) == 1 else None
    return None if found is None or found.better is Better.NEAREST else found


def _preference(orientation: Orientation, ideal: float | None = None) -> Preference | None:
    match orientation:
        case Orientation.HIGHER:
            return Preference(Better.HIGHER)
        case Orientation.LOWER:
            return Preference(Better.LOWER)
        case Orientation.NEAREST:
            return Preference(Better.NEAREST, 0.0 if ideal is None else ideal)
    return None


def _rates(expression: Expression, n_classes: int, task: Task | None) -> tuple[Rate, ...] | None:
    """Rates of classes, or of single labels: those of all labels together are of no one set of samples."""
    proportion = expression.metric.card.inference.proportion if isinstance(expression, Measure) else None
    if not isinstance(expression, Measure) or proportion is None:
        return None
    if task is not None:
        of_labels = task is Task.MULTILABEL and expression.of is not None
        if not of_labels or proportion.counted or proportion.line is not None:
            return None
    classes = range(n_classes) if isinstance(expression.of, Every) else (expression.of,)
    return tuple(proportion.at(n_classes if task is None else _MANY, of) for of in classes)


def _usual(metric: AnyMetric) -> str:
    """A metric at its default parameters."""
    return render(Measure(metric, metric.card.defaults, None), ())


def usual_metrics(task: Task, inputs: Collection[Inputs]) -> tuple[str, ...]:
    """Metrics to look at first where a task is judged, at default parameters, as expressions."""
    reported = catalogue().reported_of(task, frozenset(inputs)).of_scope(Scope.OVERALL)
    leading = tuple(_usual(one) for one in reported if one.card.inference.leads(task))
    return leading or tuple(_usual(one) for one in UNIT_KINDS[task].ranked if one.card.inputs in inputs)[:1]


def ranked_by(source: MatrixInput) -> str:
    """The metric by which runs such as this one are ranked where none is named, as an expression."""
    inputs = inputs_of(source)
    candidates = () if source.task is None else UNIT_KINDS[source.task].ranked
    return next((_usual(one) for one in candidates if one.card.inputs in inputs), RANKED)
