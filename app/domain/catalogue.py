"""The catalogue as it is told to others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Literal

from app.domain.errors import DomainError, InvalidExpression, NotFound, UnknownMetric
from app.domain.expressions.expressions import parse_for_any_classes, suggest
from app.domain.expressions.foreign import between_slices, resolve
from app.domain.expressions.syntax import Assignment, Call, read
from app.domain.inputs.kinds import UNIT_KINDS
from app.domain.inputs.ranking import CUTOFFS
from app.domain.members import LEFT_OUT
from app.domain.wording import did_you_mean, sentence, shown
from app.kernel.metrics.card import (
    AnyMetric,
    Card,
    Choice,
    DecisionName,
    Inputs,
    Number,
    Orientation,
    Parameter,
    Prevalence,
    Scope,
    Task,
)
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Every, Measure
from app.kernel.metrics.families.combinations import COMBINATIONS
from app.kernel.metrics.references import REFERENCES

# Tasks and inputs of metrics by name, and what is judged in words.
TASKS: Mapping[str, str] = {
    Task.BINARY.value: "two classes",
    Task.MULTICLASS.value: "several classes",
    **{task.value: units.judged for task, units in sorted(UNIT_KINDS.items(), key=lambda pair: [*Task].index(pair[0]))},
}
INPUTS: Sequence[str] = tuple(one.value for one in Inputs)


def metric_by_name(name: str, task: str | None = None) -> AnyMetric:
    """The metric of that key or alias, or that another library calls so: the one of the task where a name has several
    meanings. Without a task it is the one of that key, else that of classes.

    Raises:
        NotFound: there is none, or several; the nearest names are offered.
    """
    metric = catalogue().by_name.get(name) if task is None else None
    if metric is None or metric.key != name:
        metric = _known(name, None if task is None else Task(task))
    if metric is None:
        found = resolve(name, {})
        try:
            between_slices(Call(name, None, None, 0), None)
        except UnknownMetric as error:
            raise NotFound(error.detail, pointer="key") from None
        near = suggest(name) if found is None else [*found.meanings]
        raise NotFound(f"there is no metric {shown(name)}{did_you_mean(near)}", pointer="key", suggestions=near)
    return metric


def spoken(text: str, task: str | None = None) -> str:
    """Return a metric as a sentence has it: the name on its card, and its class; of other expressions their text."""
    return _name(text, task) or text


def titled(text: str, task: str | None = None) -> str:
    """Return a metric as it stands alone, or begins a sentence."""
    return sentence(_name(text, task) or "") or text


@cache
def _name(text: str, task: str | None) -> str | None:
    try:
        call = read(text)
        lowest = call.name == "min"
        one = call.arguments[0] if lowest and call.arguments else call
        if not isinstance(one, Call) or call.where or (lowest and text != f"min({one.name}@*)"):
            return None
        name = metric_by_name(one.name, task).card.name
    except DomainError:
        return None
    if lowest:
        return f"lowest {name} of any class"
    given = {each.name: each.value.text for each in call.arguments or () if isinstance(each, Assignment)}
    if name.endswith(" at k") and "k" in given:
        name = f"{name[:-1]}{given.pop('k')}"
    if given:
        name += f" ({', '.join(f'{parameter}={value}' for parameter, value in given.items())})"
    if call.selector is None:
        return name
    return f"{name} of {'every class' if call.selector.label is Every.CLASS else call.selector.label}"


def find_metrics(
    *, scope: str | None, prevalence: str | None, inputs: str | None, task: str | None, text: str | None
) -> Sequence[AnyMetric]:
    """Metrics that pass all filters, in catalogue order. ``text`` is looked for in names and in the sentence."""
    return [
        metric
        for metric in catalogue().metrics
        if (scope is None or metric.card.scope == scope)
        and (prevalence is None or metric.card.prevalence == prevalence)
        and (inputs is None or metric.card.inputs == inputs)
        and (task is None or task in tasks(metric.card))
        and (text is None or text.lower() in _searched(metric.key, metric.card.tasks[0]))
    ]


def listed(metric: AnyMetric) -> tuple[str, str]:
    """The name under which lists have a metric, at its usual k where it has one, and a short heading."""
    written = [one for one in metric.card.parameters if isinstance(one, Number) and one.written]
    said = ", ".join(f"{one.name}={one.default:g}" for one in written)
    symbol = metric.card.symbol.replace("@k", f"@{written[0].default:g}") if written else metric.card.symbol
    heading = symbol if symbol[1:] else sentence(metric.card.name)
    return f"{metric.key}({said})" if said else metric.key, heading


def overall_key(name: str) -> str | None:
    """The key of the overall metric of that name whose values are stored, None when there is none: with its usual
    parameters, and at one of the usual k where it has one.
    """
    try:
        found = parse_for_any_classes(name, inputs=frozenset(Inputs))
    except InvalidExpression:
        return None
    if not isinstance(found, Measure) or found.of is not None or found.metric.card.on_request:
        return None
    key, parameters = found.metric.key, found.metric.card.parameters
    written = [one.name for one in parameters if isinstance(one, Number) and one.written]
    if any(found.parameters[one.name] != one.default for one in parameters if one.name not in written):
        return None
    if not written:
        return key
    k = found.parameters[written[0]]
    return f"{key}({written[0]}={k:g})" if k in CUTOFFS and f"{written[0]}=" in name.replace(" ", "") else None


def why_not_stored(name: str) -> str | None:
    """Why no value of that name is stored, for what can be computed; None for what is nothing at all.

    What is stored of an evaluation are the overall metrics of its report, since each value takes room in every row.
    """
    metric = _known(name.partition("(")[0])
    if "@" not in name and "(" not in name and (metric is None or not metric.card.on_request):
        return None
    try:
        parse_for_any_classes(name, inputs=frozenset(Inputs))
    except InvalidExpression:
        return None
    return (
        f"{name} is not stored with evaluations, and computing it for all of them is not what a list does: lists are "
        "sorted by and filtered on the overall metrics of a report, with their usual parameters; GET /v1/leaderboard "
        "ranks the model versions of a dataset by any expression"
    )


def _known(name: str, task: Task | None = None) -> AnyMetric | None:
    metric = catalogue().named(name, task)
    found = resolve(name, {}, task) if metric is None else None
    return catalogue().by_name[found.key] if found is not None and found.key is not None else metric


def tasks(card: Card) -> tuple[str, ...]:
    """Return the names of the tasks that the metric is defined for."""
    return tuple(task.value for task in card.tasks)


@cache
def _searched(key: str, task: str) -> str:
    card = metric_by_name(key, task).card
    return " ".join((card.key, card.name, *card.aliases, *card.elsewhere.values(), card.sentence)).lower()


@dataclass(frozen=True, slots=True)
class Ends:
    """The values that a metric can have; `null` where there is no end."""

    minimum: float | None
    maximum: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberParameter:
    """A parameter that is a number.

    Attributes:
        above: It has to be larger than this.
        below: It has to be smaller than this.
        integral: It has to be a whole number.
    """

    name: str
    type: Literal["number"] = "number"
    default: float | None
    minimum: float | None = field(default=None, metadata=LEFT_OUT)
    maximum: float | None = field(default=None, metadata=LEFT_OUT)
    above: float | None = field(default=None, metadata=LEFT_OUT)
    below: float | None = field(default=None, metadata=LEFT_OUT)
    infinite_allowed: bool
    integral: bool
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionParameter:
    """A parameter that is one of the decisions of a matrix, by its name; it has to be given."""

    name: str
    type: Literal["decision"] = "decision"
    default: str | None = None
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceParameter:
    """A parameter that is one of some words.

    Attributes:
        matrix_allowed: It can be a matrix of numbers too, one row for each actual class.
    """

    name: str
    type: Literal["choice"] = "choice"
    default: str | None
    options: Sequence[str]
    matrix_allowed: bool
    description: str


@dataclass(frozen=True, slots=True)
class UndefinedWhen:
    """A condition under which a metric has no value, in words about a class X."""

    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Band:
    """A range of values, up to that of the next band, and what it is called."""

    below: float | None
    label: str


@dataclass(frozen=True, slots=True)
class VerbalScale:
    """A scale of the literature: a name for each band of a metric's values."""

    scale: str
    bands: Sequence[Band]
    reference: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricCard:
    """The declaration of a metric.

    Attributes:
        aliases: Other names: `names` of this service, and those of other libraries by library.
        differs: By library, how its value differs where it uses the name for something else.
        formula: LaTeX.
        on_request: It stands in no report unless `options.metrics` asks for it.
        proper: Of a score of probabilities: is it best on average for the true ones alone? `null` for what is no such
            score: metrics of a matrix, of the order of scores, of calibration alone.
    """

    key: str
    name: str
    symbol: str | None
    aliases: Mapping[str, str | Sequence[str]]
    differs: Mapping[str, str]
    scope: Scope
    inputs: Inputs
    tasks: Sequence[str]
    range: Ends
    ideal: float | None
    orientation: Orientation
    comparable: bool
    prevalence: Prevalence
    chance_corrected: bool
    symmetric: bool
    ordered_classes: bool
    on_request: bool
    needs_counts: bool
    proper: bool | None
    parameters: Sequence[NumberParameter | ChoiceParameter | DecisionParameter]
    formula: str
    sentence: str
    undefined: Sequence[UndefinedWhen]
    interpretation: Sequence[VerbalScale]
    references: Sequence[str]
    since: str
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """A function of metrics, to be written in expressions such as `gps(recall@*)`.

    Attributes:
        formula: LaTeX, of m parts x.
        orientation: Which direction is better; `null` for that of the parts.
        range: `null` for one between the ends of the parts.
        non_negative_parts: Parts that can fall below 0 are refused.
        parts: How many values it takes; `null` for any number.
        weighted: It needs `weights`: a number above 0 for each value, by position (`"2,1,1"`) or by class
            (`"A:2,B:1"`).
    """

    key: str
    name: str
    formula: str
    sentence: str
    orientation: Orientation | None
    range: Ends | None
    non_negative_parts: bool
    parts: int | None
    weighted: bool
    parameters: Sequence[NumberParameter | ChoiceParameter | DecisionParameter]
    references: Sequence[str]


def combinations() -> tuple[Combination, ...]:
    """Return all functions of metrics."""
    return tuple(
        Combination(
            **{
                **_same(Combination, card),
                "range": None if card.range is None else Ends(*card.range),
                "non_negative_parts": card.of_positives is not None,
                "parts": card.arity,
                "weighted": card.weighted is not None,
                "parameters": [_parameter(parameter) for parameter in card.parameters],
                "references": [REFERENCES[reference] for reference in card.references],
            }
        )
        for card in COMBINATIONS.values()
    )


@dataclass(frozen=True, slots=True)
class MetricPage:
    """The metrics that were asked for, and all functions of metrics."""

    items: Sequence[MetricCard]
    combinations: Sequence[Combination]


def describe_metric(metric: AnyMetric) -> MetricCard:
    """Return the card of a metric."""
    card = metric.card
    return MetricCard(
        **{
            **_same(MetricCard, card),
            "symbol": card.symbol or None,
            "aliases": {"names": card.aliases, **card.elsewhere},
            "tasks": tasks(card),
            "range": Ends(*card.range),
            "comparable": card.orientation is not Orientation.DESCRIPTIVE,
            "ordered_classes": card.ordered,
            "proper": card.inference.proper,
            "parameters": [_parameter(parameter) for parameter in card.parameters],
            "undefined": [UndefinedWhen(one.code, one.reason.replace("{label}", "X")) for one in card.undefined],
            "interpretation": [
                VerbalScale(scale.name, [Band(*band) for band in scale.bands], REFERENCES[scale.reference])
                for scale in card.scales
            ],
            "references": [REFERENCES[reference] for reference in card.references],
        }
    )


def _same(kind: type, declared: Any) -> dict[str, Any]:
    """Return the members that a declaration has under the same name."""
    return {one.name: getattr(declared, one.name) for one in fields(kind) if hasattr(declared, one.name)}


def _parameter(parameter: Parameter) -> NumberParameter | ChoiceParameter | DecisionParameter:
    match parameter:
        case Number():
            return NumberParameter(**_same(NumberParameter, parameter), infinite_allowed=parameter.infinite)
        case Choice():
            return ChoiceParameter(**_same(ChoiceParameter, parameter), matrix_allowed=parameter.matrix is not None)
        case DecisionName():
            return DecisionParameter(name=parameter.name, description=parameter.description)
