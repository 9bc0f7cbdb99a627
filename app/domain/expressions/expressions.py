"""Expressions of metrics: parsed, checked, named."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher, get_close_matches
from functools import cache, partial
from types import MappingProxyType
from typing import Any, Final

from app.domain.errors import InvalidExpression, InvalidParameter, NotComparable, UnknownLabel, UnknownMetric
from app.domain.expressions.conditions import text_of, understood
from app.domain.expressions.foreign import between_slices, from_elsewhere
from app.domain.expressions.parameters import Context, assignments, describe, parameters_of, value_of
from app.domain.expressions.syntax import WORD, Assignment, Call, Literal, Selector, quote, read, write_label
from app.domain.expressions.weights import labels_in, weights_of, write_matrix, write_number, write_weights
from app.domain.wording import MOST_SUGGESTIONS, did_you_mean, names, nearest_labels, shown
from app.kernel.metrics.card import AnyMetric, Decision, Inputs, Number, Scope, Task
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import (
    Combination,
    Every,
    Expression,
    Measure,
    OverSlices,
    Sliced,
    bounds,
    is_about_sample,
    is_list,
    is_of_slices,
    measures,
)
from app.kernel.metrics.families.combinations import COMBINATIONS, CombinationCard

# How alike a name has to be to be offered, and how far it may be behind the most alike one (`SequenceMatcher.ratio`).
# Of short names two letters that changed places are much.
_NEAR: Final = 0.7
_NEAR_OF_SHORT: Final = 0.6
_SHORT: Final = 4
_BEHIND: Final = 0.1
_MOST_LOOKED_AT: Final = 10


@cache
def _known_names() -> Mapping[str, str]:
    """Every name that can be written, with what it means: functions as themselves, keys and aliases as the key."""
    functions = {name: name for name in COMBINATIONS}
    return MappingProxyType(functions | {name: metric.key for name, metric in catalogue().by_name.items()})


@cache
def _foreign_names() -> Mapping[str, tuple[str, ...]]:
    """Return the metric keys for each name that another library uses, in lower case and without arguments."""
    found: dict[str, list[str]] = {}
    for metric in catalogue().metrics:
        for name in metric.card.elsewhere.values():
            found.setdefault(name.partition("(")[0].lower(), []).append(metric.key)
    return MappingProxyType({name: tuple(keys) for name, keys in found.items()})


def suggest(name: str) -> tuple[str, ...]:
    """Known names nearest to an unknown one, best first, each for another metric; none where none is near."""
    known, foreign = _known_names(), _foreign_names()
    plain = name.lower().replace("-", "_").replace(".", "_")
    words = set(plain.split("_"))
    candidates = [
        *([plain] if plain in known else []),
        *foreign.get(name.rpartition(".")[2].lower(), ()),
        *(other for other in known if len(words) > 1 and set(other.split("_")) == words),
        *(key for other in _near(plain, {*known, *foreign}) for key in ([other] if other in known else foreign[other])),
        *(other for other in known if len(plain) > 2 and plain in other.split("_")),
    ]
    chosen: dict[str, str] = {}
    for candidate in candidates:
        chosen.setdefault(known[candidate], candidate)
    return tuple(chosen.values())[:MOST_SUGGESTIONS]


def _near(name: str, names: Collection[str]) -> list[str]:
    """Names that are near, and not much less so than the nearest."""
    found = get_close_matches(
        name, sorted(names), n=_MOST_LOOKED_AT, cutoff=_NEAR_OF_SHORT if len(name) <= _SHORT else _NEAR
    )
    ratios = {other: SequenceMatcher(a=other, b=name).ratio() for other in found}
    return [other for other in found if ratios[other] >= max(ratios.values()) - _BEHIND]


_MATRIX_ONLY: Final = frozenset({Inputs.MATRIX})
_NEEDED: Final[Mapping[Inputs, str]] = {
    Inputs.MATRIX: "actual classes beside what was predicted",
    Inputs.PROBABILITIES: "probabilities or scores",
    Inputs.LABELS: "sets of labels, regions or answers",
    Inputs.LABEL_SCORES: "probabilities or scores of labels",
    Inputs.CONTINGENCY: "actual classes beside clusters",
    Inputs.DECISIONS: "decisions",
    Inputs.FEATURES: "features of samples in clusters",
    Inputs.QUERIES: "rankings of items",
    Inputs.OVERLAPS: "regions or answers",
    Inputs.CLASS_OVERLAPS: "classes of regions or answers",
}
_WEIGHTS: Final = "weights"
# Of functions over slices: the attribute, and how many samples a slice needs to take part.
_BY: Final = "by"
_FEWEST: Final = Number("minimum_samples", 30.0, "samples of a slice that takes part", minimum=1.0, integral=True)
_OVER_SLICES: Final = tuple(card.key for card in COMBINATIONS.values() if card.over_slices)
# More labels than this are not listed in a message.
_MOST_LISTED: Final = 10


def parse(
    text: str,
    labels: Sequence[str],
    positive: int | None,
    *,
    inputs: Collection[Inputs] = _MATRIX_ONLY,
    complete: bool = True,
    task: Task | None = None,
    assumed: Mapping[str, Any] = MappingProxyType({}),
    decisions: Sequence[str] | None = None,
    sliceable: bool = False,
) -> Expression:
    """Tree of an expression for the classes of one evaluation.

    Args:
        text: At most 2,000 characters, brackets at most 32 deep.
        labels: The K classes in the order of the matrix.
        positive: Class that a class metric without ``@`` speaks of; None when there is none.
        inputs: What there is to compute from; metrics that need something else are refused.
        complete: The labels are all there are. If not, weights and matrices are not held against their number.
        task: What is judged, where that is more than classes; metrics that make no sense for it are refused.
        assumed: Values of parameters, by name, where the text gives none.
        decisions: What can be decided, in the order of the columns, where these are no classes.
        sliceable: Can it be of slices? Whether there are such attributes is said by ``refuse_unknown_slices``.

    Raises:
        UnknownMetric: a name is neither metric nor function.
        UnknownLabel: there is no such class.
        InvalidParameter: a metric does not take the parameter, or the parameter not the value.
        InvalidExpression: anything else.
    """
    return _bind(read(text), Context(labels, positive, inputs, complete, task, assumed, decisions, sliceable))


def render(expression: Expression, labels: Sequence[str]) -> str:
    """Canonical text: keys instead of aliases, every class named, only parameters that differ from their default, or
    that are always written.

    ``parse(render(expression, labels), labels, positive) == expression`` for whatever ``parse`` gave.
    """
    match expression:
        case Combination():
            return f"{expression.function}({', '.join(_render_arguments(expression, labels))})"
        case Sliced(part=part, where=where):
            return f"{render(part, labels)}[{text_of(where)}]"
        case OverSlices(function=function, part=part, by=by, fewest=fewest):
            by = by if WORD.fullmatch(by) else quote(by)
            smaller = "" if fewest == _FEWEST.default else f", {_FEWEST.name}={fewest}"
            return f"{function}({render(part, labels)}, {_BY}={by}{smaller})"
    card = expression.metric.card
    given = [
        f"{parameter.name}={write_value(expression.parameters[parameter.name])}"
        for parameter in card.parameters
        if expression.parameters.get(parameter.name, parameter.default) != parameter.default
        or (isinstance(parameter, Number) and parameter.written)
    ]
    return card.key + (f"({', '.join(given)})" if given else "") + _render_class(expression.of, labels)


def _render_arguments(expression: Combination, labels: Sequence[str]) -> Iterator[str]:
    """The parts, numbers that differ from their default, and weights by position."""
    for part in expression.parts:
        yield render(part, labels)
    for parameter in expression.card.parameters:
        if expression.parameters[parameter.name] != parameter.default:
            yield f"{parameter.name}={write_value(expression.parameters[parameter.name])}"
    if expression.card.weighted is not None:
        yield f'{_WEIGHTS}="{write_weights(expression.parameters[_WEIGHTS])}"'


def _render_class(of: int | Every | None, labels: Sequence[str]) -> str:
    match of:
        case None:
            return ""
        case Every():
            return f"@{of}"
    return "@" + write_label(labels[of])


def write_value(value: Any) -> str:
    """A parameter's value as it is written in an expression."""
    if isinstance(value, Decision):
        value = value.name
    if isinstance(value, str):
        return value if WORD.fullmatch(value) else quote(value)
    return f'"{write_matrix(value)}"' if isinstance(value, tuple) else write_number(value)


def _bind(call: Call, context: Context) -> Expression:
    if not call.where:
        return _whole(call, context)
    position = call.where[0].position
    _require_sliceable(context, position)
    found, where = _whole(call, context), understood(call.where)
    # A slice of a slice satisfies the conditions of both.
    return replace(found, where=(*found.where, *where)) if isinstance(found, Sliced) else Sliced(found, where)


def _require_sliceable(context: Context, position: int) -> None:
    if not context.sliceable:
        raise InvalidExpression(
            "values of slices are not known here: evaluations, gates, comparisons, leaderboards, histories, "
            "projections and thresholds have them, and ?slice= of the address has all of one slice",
            position=position,
        )


def _whole(call: Call, context: Context) -> Expression:
    """The expression without the conditions behind it."""
    if call.name in COMBINATIONS:
        return _combination(call, context)
    metric = catalogue().named(call.name, context.task)
    if metric is None:
        found = from_elsewhere(call, context.task)
        if found is None and (over := between_slices(call, context.task)) is not None:
            return _combination(over, context)
        if found is None:
            raise _unknown_metric(call, context)
        metric, call = found
    if context.task is not None and context.task not in metric.card.tasks:
        there = tuple(
            one.key
            for one in catalogue().for_task(context.task, frozenset(Inputs)).metrics
            if not metric.card.elsewhere.items().isdisjoint(one.card.elsewhere.items())
        )
        raise InvalidExpression(
            f"{metric.key} has no meaning for {context.task}: it is a metric of {names(metric.card.tasks)}"
            + did_you_mean(there),
            suggestions=there,
            position=call.position,
        )
    if metric.card.inputs not in context.inputs:
        raise InvalidExpression(
            f"{metric.key} needs {_NEEDED[metric.card.inputs]}, which are not there",
            position=call.position,
        )
    return Measure(metric, parameters_of(metric.card, call, context), _class(metric, call, context))


def _combination(call: Call, context: Context) -> Combination | OverSlices:
    card = COMBINATIONS[call.name]
    example = _example(card)
    if call.arguments is None:
        raise InvalidExpression(
            f"{call.name} is a function of metrics: write for example {example}", position=call.position
        )
    if call.selector is not None:
        raise InvalidExpression(
            f"{call.name}(...) has no class of its own: put the @ behind the metrics inside",
            position=call.selector.position,
        )
    known = {parameter.name for parameter in card.parameters} | ({_WEIGHTS} if card.weighted is not None else set())
    known |= {_BY, _FEWEST.name} if card.over_slices else set()
    written = assignments(card.key, call, known, partial(_no_parameter, card))
    given = [argument for argument in call.arguments if not isinstance(argument, Assignment)]
    parts = tuple(_part(call.name, argument, context) for argument in given)
    if not parts:
        raise InvalidExpression(
            f"{call.name} needs at least one metric: write for example {example}", position=call.position
        )
    over = _over_slices(card, written, given, parts, context)
    if over is None:
        _refuse_slices_inside(card, given, parts)
    if card.of_positives is not None:
        for argument, part in zip(given, parts, strict=True):
            _require_non_negative(card, part, argument.position)
    if over is not None:
        return over
    values = _values(parts, context)
    if card.arity is not None and values is not None and len(values) != card.arity:
        raise InvalidExpression(
            f"{call.name} takes {card.arity} values, got {len(values)}: write for example {example}",
            position=call.position,
        )
    return Combination(call.name, parts, _numbers_of(card, call, written, values, context))


def _over_slices(
    card: CombinationCard,
    written: Mapping[str, Assignment],
    given: Sequence[Call | Literal],
    parts: Sequence[Expression],
    context: Context,
) -> OverSlices | None:
    """The function over the slices of an attribute; None where it is one of its parts."""
    if _BY not in written:
        if _FEWEST.name in written:
            raise InvalidParameter(
                f"{_FEWEST.name} is about slices: write {card.key}(..., {_BY}=<attribute>, {_FEWEST.name}=...)",
                position=written[_FEWEST.name].position,
            )
        return None
    _require_sliceable(context, written[_BY].position)
    if len(parts) != 1 or is_list(parts[0]):
        raise InvalidExpression(
            f"{card.key} over slices takes one value of each slice: write {card.key}(recall@A, {_BY}=...), and "
            "min(recall@*) for the smallest of all classes",
            position=given[1].position if len(parts) > 1 else given[0].position,
        )
    fewest = _FEWEST.default
    if _FEWEST.name in written:
        fewest = value_of(card.key, _FEWEST, written[_FEWEST.name].value, context)
    return OverSlices(card.key, parts[0], written[_BY].value.text, int(fewest))


def _refuse_slices_inside(card: CombinationCard, given: Sequence[Call | Literal], parts: Sequence[Expression]) -> None:
    """Limits of what is picked from values, and of their mean, follow from theirs, whatever samples these are of."""
    if card.of_slices:
        return
    for argument, part in zip(given, parts, strict=True):
        if is_of_slices(part):
            raise InvalidExpression(
                f"{card.key} takes values of the same samples: the brackets stand behind it, as in "
                f'{card.key}(recall@*)[site="B"], and {", ".join(_OVER_SLICES)} take {_BY}=<attribute>',
                position=argument.position,
            )


def _example(card: CombinationCard) -> str:
    weights = ', weights="A:2,B:1"' if card.weighted is not None else ""
    if card.arity is not None:
        return f"{card.key}(recall@A, recall@B{weights})"
    return f"{card.key}(recall@*{weights})"


def _values(parts: Sequence[Expression], context: Context) -> list[int | None] | None:
    """The class of each value of the parts, None for one of no class; None as a whole where nobody knows."""
    found: list[int | None] = []
    for part in parts:
        if is_list(part) and not context.complete:
            return None
        inside = part.part if isinstance(part, Sliced) else part
        of = inside.of if isinstance(inside, Measure) else None
        found.extend(range(len(context.labels)) if isinstance(of, Every) else [of])
    return found


def _numbers_of(
    card: CombinationCard,
    call: Call,
    written: Mapping[str, Assignment],
    values: Sequence[int | None] | None,
    context: Context,
) -> Mapping[str, Any]:
    """The numbers of a function of metrics, and the weights of its values."""
    found: dict[str, Any] = {
        one.name: value_of(card.key, one, written[one.name].value, context) if one.name in written else one.default
        for one in card.parameters
    }
    if card.weighted is not None:
        if _WEIGHTS not in written:
            raise InvalidParameter(
                f"{card.key} needs weights: write for example {_example(card)}, or {card.weighted}(...) without any",
                position=call.position,
            )
        found[_WEIGHTS] = weights_of(card.key, written[_WEIGHTS].value, values, context.labels)
    return MappingProxyType(found)


def _no_parameter(card: CombinationCard, name: str) -> str:
    weighted = next((one.key for one in COMBINATIONS.values() if one.weighted == card.key), None)
    if name == _WEIGHTS and weighted is not None:
        return f"{card.key} takes no weights; {weighted} does"
    if card.over_slices:
        return f"{card.key} takes metrics, {_BY} and {_FEWEST.name}, and no parameter {shown(name)}"
    if name in (_BY, _FEWEST.name):
        return f"{card.key} takes no {name}; {', '.join(_OVER_SLICES)} do"
    if not card.parameters:
        return f"{card.key} takes metrics and no parameter {shown(name)}"
    accepted = ", ".join(f"{one.name} ({describe(one)})" for one in card.parameters)
    return f"{card.key} takes no parameter {shown(name)}; it takes {accepted}"


def _part(function: str, argument: Call | Literal, context: Context) -> Expression:
    match argument:
        case Call():
            return _bind(argument, context)
        case Literal(text=text):
            raise InvalidExpression(
                f"{function} takes metrics, got {shown(text)}; "
                f"a class stands behind an @, as in recall@{write_label(text)}",
                position=argument.position,
            )


def _can_be_negative(expression: Expression) -> bool:
    lowest = bounds(expression)[0]
    return lowest is None or lowest < 0


def _require_non_negative(function: CombinationCard, part: Expression, position: int) -> None:
    if not _can_be_negative(part):
        return
    card = next(leaf for leaf in measures(part) if _can_be_negative(leaf)).metric.card
    lowest = "without a lower end" if card.range[0] is None else f"as low as {card.range[0]:g}"
    raise InvalidExpression(
        f"{function.key} cannot take {card.key}: its values go {lowest}, and a {function.of_positives} of mixed "
        "signs is undefined",
        position=position,
    )


def _class(metric: AnyMetric, call: Call, context: Context) -> int | Every | None:
    if metric.card.scope is Scope.OVERALL:
        if call.selector is not None:
            twin = f"{metric.key}_ovr"
            advice = f", or {twin}@<label> for one class against the rest" if twin in catalogue().by_name else ""
            raise InvalidExpression(
                f"{metric.key} looks at all classes together and has no @: write {call.name}{advice}",
                position=call.selector.position,
            )
        return None
    if call.selector is not None:
        return _selected(call.selector, context)
    if context.positive is None:
        raise InvalidExpression(
            f"{metric.key} belongs to one class: write {call.name}@<label>, or {call.name}@* for every class",
            position=call.position,
        )
    return context.positive


def _selected(selector: Selector, context: Context) -> int | Every:
    if isinstance(selector.label, Every):
        return selector.label
    if selector.label in context.labels:
        return context.labels.index(selector.label)
    nearest = nearest_labels(selector.label, context.labels)
    listed = ", ".join(map(shown, context.labels if len(context.labels) <= _MOST_LISTED else nearest))
    if len(context.labels) <= _MOST_LISTED:
        known = f"the classes are {listed}"
    elif nearest:
        known = f"the nearest of {len(context.labels)} classes are {listed}"
    else:
        known = f"none of {len(context.labels)} classes comes near"
    raise UnknownLabel(
        f"there is no class {shown(selector.label)}; {known}",
        known=context.labels,
        suggestions=nearest,
        position=selector.position,
    )


def _unknown_metric(call: Call, context: Context) -> UnknownMetric:
    is_class = call.name in context.labels
    names = () if is_class else suggest(call.name)
    if is_class:
        hint = f"it is a class, and a class stands behind an @, as in recall@{write_label(call.name)}"
    else:
        hint = f"did you mean {' or '.join(names)}?" if names else "the catalogue lists all metrics"
    return UnknownMetric(
        f"there is no metric or function {shown(call.name)}; {hint}", suggestions=names, position=call.position
    )


def parse_for_any_classes(text: str, *, inputs: Collection[Inputs] = frozenset({Inputs.MATRIX})) -> Expression:
    """Tree of an expression as if every class that it names existed.

    Raises:
        InvalidExpression: it makes no sense whatever the classes are.
    """
    named = dict.fromkeys(_labels(read(text)))
    return parse(text, (*named, "\n0", "\n1"), 0, inputs=inputs, complete=False, sliceable=True)


def refuse_about_sample(expression: Expression, text: str, *, pointer: str | None = None) -> None:
    """Refuse to decide anything by what describes the sample.

    Raises:
        NotComparable: a p-value or the like is in it.
    """
    if is_about_sample(expression):
        raise NotComparable(
            f"{text} describes this sample, as a p-value or a standard error does, and is no property of the "
            "classifier: nothing can be decided by it",
            pointer=pointer,
        )


def refuse_list(expression: Expression, text: str) -> None:
    """Refuse what has one value per class where one value is asked for.

    Raises:
        NotComparable: it is a list.
    """
    if is_list(expression):
        raise NotComparable(f"{text} is one value for each class: name a class, or take min({text})")


def refuse_unless_proportion(expression: Expression, text: str) -> None:
    """Refuse another method for limits of proportions where the limits are of something else.

    Raises:
        InvalidExpression: the metric is neither a proportion nor the smallest or largest of some.
    """
    if not _follows_from_proportions(expression):
        raise InvalidExpression(
            f"{text} is no proportion of the samples, and proportion_interval is about the limits of these"
        )


def _follows_from_proportions(expression: Expression) -> bool:
    if isinstance(expression, Measure):
        fact = expression.metric.card.inference
        if fact.same_as is not None:
            return _follows_from_proportions(parse_for_any_classes(fact.same_as))
        of_counts = not (fact.proportion is None and fact.part is None and fact.overlap is None)
        return of_counts or (fact.influence is not None and fact.influence.is_share)
    if isinstance(expression, Combination):
        return expression.card.picks is not None and all(map(_follows_from_proportions, expression.parts))
    if isinstance(expression, OverSlices) and expression.card.linear:
        return False
    return _follows_from_proportions(expression.part)


def _labels(call: Call) -> Iterator[str]:
    if call.selector is not None and not isinstance(call.selector.label, Every):
        yield call.selector.label
    for argument in call.arguments or ():
        if isinstance(argument, Call):
            yield from _labels(argument)
        elif isinstance(argument, Assignment):
            yield from labels_in(argument.value)
