"""Metric expressions: text to a tree of the kernel, and back to its canonical text.

``recall@D``, ``f_beta(beta=2)``, ``gps(recall@*, precision@D)``: see ``grammar.lark``.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

from app.domain.errors import InvalidExpression, InvalidParameter, UnknownLabel, UnknownMetric
from app.domain.expressions.foreign import from_elsewhere
from app.domain.expressions.names import nearest_labels, suggest
from app.domain.expressions.syntax import (
    LONGEST_SHOWN,
    WORD,
    Assignment,
    Call,
    Literal,
    Selector,
    TokenKind,
    quote,
    read,
    shown,
    write_label,
)
from app.domain.expressions.weights import matrix_of, weights_of, write_matrix, write_number, write_weights
from app.kernel.metrics.card import (
    AnyMetric,
    Card,
    Choice,
    Decision,
    DecisionName,
    Inputs,
    MatrixOf,
    Number,
    Parameter,
    Scope,
    Task,
)
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Combination, Every, Expression, Measure, bounds, is_list, measures
from app.kernel.metrics.families.combinations import COMBINATIONS, CombinationCard

_MATRIX_ONLY: Final = frozenset({Inputs.MATRIX})
_WEIGHTS: Final = "weights"
# More labels than this are not listed in a message.
_MOST_LISTED: Final = 10


@dataclass(frozen=True, slots=True)
class _Context:
    """What names are looked up in."""

    labels: Sequence[str]
    positive: int | None
    inputs: Collection[Inputs]
    complete: bool
    task: Task | None
    assumed: Mapping[str, Any]
    decisions: Sequence[str] | None


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

    Raises:
        UnknownMetric: a name is neither metric nor function.
        UnknownLabel: there is no such class.
        InvalidParameter: a metric does not take the parameter, or the parameter not the value.
        InvalidExpression: anything else.
    """
    return _bind(read(text), _Context(labels, positive, inputs, complete, task, assumed, decisions))


def render(expression: Expression, labels: Sequence[str]) -> str:
    """Canonical text: keys instead of aliases, every class named, only parameters that differ from their default, or
    that are always written.

    ``parse(render(expression, labels), labels, positive) == expression`` for whatever ``parse`` gave.
    """
    if isinstance(expression, Combination):
        return f"{expression.function}({', '.join(_render_arguments(expression, labels))})"
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


def _bind(call: Call, context: _Context) -> Expression:
    if call.name in COMBINATIONS:
        return _combination(call, context)
    metric = catalogue().named(call.name, context.task)
    if metric is None:
        found = from_elsewhere(call, context.task)
        if found is None:
            raise _unknown_metric(call, context)
        metric, call = found
    if context.task is not None and context.task not in metric.card.tasks:
        raise InvalidExpression(
            f"{metric.key} has no meaning for {context.task}: it is a metric of {' and '.join(metric.card.tasks)}",
            position=call.position,
        )
    if metric.card.inputs not in context.inputs:
        raise InvalidExpression(
            f"{metric.key} needs {metric.card.inputs}; there is only {' and '.join(sorted(context.inputs))}",
            position=call.position,
        )
    return Measure(metric, _parameters(metric.card, call, context), _class(metric, call, context))


def _combination(call: Call, context: _Context) -> Combination:
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
    written = _assignments(card, call)
    given = [argument for argument in call.arguments if not isinstance(argument, Assignment)]
    parts = tuple(_part(call.name, argument, context) for argument in given)
    if not parts:
        raise InvalidExpression(
            f"{call.name} needs at least one metric: write for example {example}", position=call.position
        )
    if card.mean_of_positives is not None:
        for argument, part in zip(given, parts, strict=True):
            _require_non_negative(card, part, argument.position)
    values = _values(parts, context)
    if card.arity is not None and values is not None and len(values) != card.arity:
        raise InvalidExpression(
            f"{call.name} takes {card.arity} values, got {len(values)}: write for example {example}",
            position=call.position,
        )
    return Combination(call.name, parts, _numbers_of(card, call, written, values, context))


def _example(card: CombinationCard) -> str:
    weights = ', weights="A:2,B:1"' if card.weighted is not None else ""
    if card.arity is not None:
        return f"{card.key}(recall@A, recall@B{weights})"
    return f"{card.key}(recall@*{weights})"


def _values(parts: Sequence[Expression], context: _Context) -> list[int | None] | None:
    """The class of each value of the parts, None for one of no class; None as a whole where nobody knows."""
    found: list[int | None] = []
    for part in parts:
        if is_list(part) and not context.complete:
            return None
        of = part.of if isinstance(part, Measure) else None
        found.extend(range(len(context.labels)) if isinstance(of, Every) else [of])
    return found


def _assignments(card: CombinationCard, call: Call) -> Mapping[str, Assignment]:
    """What is given by name, each once and each known."""
    known = {parameter.name for parameter in card.parameters} | ({_WEIGHTS} if card.weighted is not None else set())
    written: dict[str, Assignment] = {}
    for argument in call.arguments or ():
        if not isinstance(argument, Assignment):
            continue
        if argument.name not in known:
            raise InvalidParameter(_no_parameter(card, argument.name), position=argument.position)
        if argument.name in written:
            raise InvalidParameter(
                f"the parameter {argument.name} of {card.key} is given twice", position=argument.position
            )
        written[argument.name] = argument
    return written


def _numbers_of(
    card: CombinationCard,
    call: Call,
    written: Mapping[str, Assignment],
    values: Sequence[int | None] | None,
    context: _Context,
) -> Mapping[str, Any]:
    """The numbers of a function of metrics, and the weights of its values."""
    found: dict[str, Any] = {
        one.name: _value(card.key, one, written[one.name].value, context) if one.name in written else one.default
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
    if not card.parameters:
        return f"{card.key} takes metrics and no parameter {shown(name)}"
    accepted = ", ".join(f"{one.name} ({describe(one)})" for one in card.parameters)
    return f"{card.key} takes no parameter {shown(name)}; it takes {accepted}"


def _part(function: str, argument: Call | Literal, context: _Context) -> Expression:
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
        f"{function.key} cannot take {card.key}: its values go {lowest}, and a {function.mean_of_positives} mean of "
        "mixed signs is undefined",
        position=position,
    )


def _class(metric: AnyMetric, call: Call, context: _Context) -> int | Every | None:
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


def _selected(selector: Selector, context: _Context) -> int | Every:
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
        f"there is no class {shown(selector.label)}; {known}", known=context.labels, position=selector.position
    )


def _parameters(card: Card, call: Call, context: _Context) -> Mapping[str, Any]:
    by_name = {parameter.name: parameter for parameter in card.parameters}
    values: dict[str, Any] = {}
    for argument in call.arguments or ():
        if not isinstance(argument, Assignment):
            raise _misplaced(card, call, argument, context)
        parameter = by_name.get(argument.name)
        if parameter is None:
            raise InvalidParameter(
                f"{card.key} takes no parameter {shown(argument.name)}; {_accepted(card)}", position=argument.position
            )
        if argument.name in values:
            raise InvalidParameter(
                f"the parameter {argument.name} of {card.key} is given twice", position=argument.position
            )
        values[argument.name] = _value(card.key, parameter, argument.value, context)
    assumed = {name: context.assumed[name] for name in by_name.keys() & context.assumed.keys()}
    found = {**card.defaults, **assumed, **values}
    _require_costs(card, found, call, context)
    for one in card.parameters:
        if isinstance(one, DecisionName) and found[one.name] is one.default:
            known = "" if context.decisions is None else f": {_listed_decisions(context.decisions)}"
            raise InvalidParameter(f"{card.key} needs {one.name}{known}", position=call.position)
    for smaller, larger in pairwise(card.rising):
        if found[smaller] >= found[larger]:
            raise InvalidParameter(
                f"{smaller} of {card.key} has to lie below {larger}, which is {found[larger]:g}", position=call.position
            )
    return MappingProxyType(found)


def _require_costs(card: Card, found: Mapping[str, Any], call: Call, context: _Context) -> None:
    """Where decisions are no classes nobody knows which of them are mistakes."""
    if context.decisions is None:
        return
    for one in card.parameters:
        if isinstance(one, Choice) and one.matrix is MatrixOf.COSTS and isinstance(found[one.name], str):
            raise InvalidParameter(
                f"{card.key} needs {one.name}, since what is decided are no classes, and nothing says which decisions "
                f"are mistakes: a row for each actual class with {len(context.decisions)} numbers, as "
                f'{one.name}="0,1,2;5,0,1", or in the options of the evaluation',
                position=call.position,
            )


def _misplaced(card: Card, call: Call, argument: Call | Literal, context: _Context) -> InvalidExpression:
    """What to say of something in a metric's brackets that is no ``name=value``."""
    text = argument.name if isinstance(argument, Call) else argument.text
    if card.scope is Scope.CLASS and text in context.labels:
        return InvalidExpression(
            f"a class stands behind an @: write {call.name}@{write_label(text)}", position=argument.position
        )
    if card.parameters and isinstance(argument, Literal):
        name = card.parameters[0].name
        return InvalidParameter(
            f"parameters have names: write {call.name}({name}={text[:LONGEST_SHOWN]})", position=argument.position
        )
    return InvalidExpression(
        f"{card.key} is a metric and not a function of others; {_accepted(card)}", position=argument.position
    )


def _accepted(card: Card) -> str:
    if not card.parameters:
        return "it takes none"
    return "it takes " + ", ".join([f"{parameter.name} ({describe(parameter)})" for parameter in card.parameters])


def describe(parameter: Parameter) -> str:
    """What a parameter takes, in words."""
    if isinstance(parameter, DecisionName):
        return "the name of a decision"
    if isinstance(parameter, Choice):
        return " or ".join(parameter.options) + (", or a matrix as '0,1; 1,0'" if parameter.matrix is not None else "")
    bounds = [
        f"{word} {bound:g}"
        for word, bound in (
            ("above", parameter.above),
            ("from", parameter.minimum),
            ("below", parameter.below),
            ("up to", parameter.maximum),
        )
        if bound is not None
    ]
    text = " ".join(["a whole number" if parameter.integral else "a number", *bounds])
    return text + (", inf or -inf" if parameter.infinite else "")


def _value(key: str, parameter: Parameter, literal: Literal, context: _Context) -> Any:
    refused = InvalidParameter(
        f"{parameter.name} of {key} is {describe(parameter)}, not {shown(literal.text)}",
        position=literal.position,
    )
    if isinstance(parameter, Choice):
        if literal.text in parameter.options:
            return literal.text
        if parameter.matrix is not None and literal.kind is TokenKind.QUOTED and not literal.text.strip().isalpha():
            size = len(context.labels) if context.complete else None
            width = None if context.decisions is None else len(context.decisions)
            return matrix_of(f"{parameter.name} of {key}", literal, parameter.matrix, size, width)
        raise refused
    if isinstance(parameter, DecisionName):
        return _decision(key, parameter, literal, context)
    if literal.kind is not TokenKind.NUMBER:
        raise refused
    value = float(literal.text)
    if not _within(parameter, value, written_infinite="inf" in literal.text):
        raise refused
    return value


def _decision(key: str, parameter: DecisionName, literal: Literal, context: _Context) -> Decision:
    """One of those that are known; any name where none are."""
    if context.decisions is None:
        return Decision(literal.text, 0)
    if literal.text not in context.decisions:
        raise InvalidParameter(
            f"{parameter.name} of {key} is one of {_listed_decisions(context.decisions)}, not {shown(literal.text)}",
            position=literal.position,
        )
    return Decision(literal.text, context.decisions.index(literal.text))


def _listed_decisions(decisions: Sequence[str]) -> str:
    some = [shown(one) for one in decisions[:_MOST_LISTED]]
    return ", ".join(some) + (f" and {len(decisions) - len(some)} more" if len(decisions) > len(some) else "")


def _within(parameter: Number, value: float, *, written_infinite: bool) -> bool:
    if not math.isfinite(value):
        # 1e400 is too large for a double; that it reads as infinite is not what was written.
        return parameter.infinite and written_infinite and not math.isnan(value)
    return (
        (value.is_integer() or not parameter.integral)
        and (parameter.minimum is None or value >= parameter.minimum)
        and (parameter.maximum is None or value <= parameter.maximum)
        and (parameter.above is None or value > parameter.above)
        and (parameter.below is None or value < parameter.below)
    )


def _unknown_metric(call: Call, context: _Context) -> UnknownMetric:
    names = suggest(call.name)
    if call.name in context.labels:
        hint = f"it is a class, and a class stands behind an @, as in recall@{write_label(call.name)}"
    else:
        hint = f"did you mean {' or '.join(names)}?" if names else "the catalogue lists all metrics"
    return UnknownMetric(
        f"there is no metric or function {shown(call.name)}; {hint}", suggestions=names, position=call.position
    )
