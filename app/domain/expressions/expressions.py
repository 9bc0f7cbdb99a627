"""Metric expressions: text to a tree of the kernel, and back to its canonical text.

``recall@D``, ``f_beta(beta=2)``, ``gps(recall@*, precision@D)``: see ``grammar.lark``.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from app.domain.errors import InvalidExpression, InvalidParameter, UnknownLabel, UnknownMetric
from app.domain.expressions.syntax import (
    WORD,
    Argument,
    Assignment,
    Call,
    Literal,
    Selector,
    TokenKind,
    quote,
    read,
    write_label,
)
from app.kernel.metrics.card import AnyMetric, Card, Choice, Inputs, Number, Parameter, Scope
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Combination, Every, Expression, Measure, bounds, measures
from app.kernel.metrics.families.combinations import COMBINATIONS, CombinationCard

_MATRIX_ONLY: Final = frozenset({Inputs.MATRIX})
_MOST_SUGGESTIONS: Final = 3
_LONGEST_SHOWN: Final = 60
# More labels than this are not listed in a message.
_MOST_LISTED: Final = 10


@dataclass(frozen=True, slots=True)
class _Context:
    """What names are looked up in."""

    labels: Sequence[str]
    positive: int | None
    inputs: Collection[Inputs]


def parse(
    text: str, labels: Sequence[str], positive: int | None, *, inputs: Collection[Inputs] = _MATRIX_ONLY
) -> Expression:
    """Tree of an expression for the classes of one evaluation.

    Args:
        text: At most 2,000 characters, brackets at most 32 deep.
        labels: The K classes in the order of the matrix.
        positive: Class that a class metric without ``@`` speaks of; None when there is none.
        inputs: What there is to compute from; metrics that need something else are refused.

    Raises:
        UnknownMetric: a name is neither metric nor function.
        UnknownLabel: there is no such class.
        InvalidParameter: a metric does not take the parameter, or the parameter not the value.
        InvalidExpression: anything else.
    """
    return _bind(read(text), _Context(labels, positive, inputs))


def render(expression: Expression, labels: Sequence[str]) -> str:
    """Canonical text: keys instead of aliases, every class named, only parameters that differ from their default.

    ``parse(render(expression, labels), labels, positive) == expression`` for whatever ``parse`` gave.
    """
    if isinstance(expression, Combination):
        return f"{expression.function}({', '.join(render(part, labels) for part in expression.parts)})"
    card = expression.metric.card
    given = [
        f"{parameter.name}={write_value(expression.parameters[parameter.name])}"
        for parameter in card.parameters
        if expression.parameters.get(parameter.name, parameter.default) != parameter.default
    ]
    return card.key + (f"({', '.join(given)})" if given else "") + _render_class(expression.of, labels)


def _render_class(of: int | Every | None, labels: Sequence[str]) -> str:
    match of:
        case None:
            return ""
        case Every():
            return f"@{of}"
    return "@" + write_label(labels[of])


def write_value(value: Any) -> str:
    """A parameter's value as it is written in an expression."""
    if isinstance(value, str):
        return value if WORD.fullmatch(value) else quote(value)
    return f"{int(value)}" if value == value // 1 and abs(value) < 1e15 else repr(float(value))


def _bind(call: Call, context: _Context) -> Expression:
    if call.name in COMBINATIONS:
        return _combination(call, context)
    metric = catalogue().by_name.get(call.name)
    if metric is None:
        raise _unknown_metric(call, context)
    if metric.card.inputs not in context.inputs:
        raise InvalidExpression(
            f"{metric.key} needs {metric.card.inputs}; there is only {' and '.join(sorted(context.inputs))}",
            position=call.position,
        )
    return Measure(metric, _parameters(metric.card, call, context), _class(metric, call, context))


def _combination(call: Call, context: _Context) -> Combination:
    example = f"{call.name}(recall@*)"
    if call.arguments is None:
        raise InvalidExpression(
            f"{call.name} is a function of metrics: write for example {example}", position=call.position
        )
    if not call.arguments:
        raise InvalidExpression(
            f"{call.name} needs at least one metric: write for example {example}", position=call.position
        )
    if call.selector is not None:
        raise InvalidExpression(
            f"{call.name}(...) has no class of its own: put the @ behind the metrics inside",
            position=call.selector.position,
        )
    parts = tuple(_part(call.name, argument, context) for argument in call.arguments)
    card = COMBINATIONS[call.name]
    if card.mean_of_positives is not None:
        for argument, part in zip(call.arguments, parts, strict=True):
            _require_non_negative(card, part, argument.position)
    return Combination(call.name, parts)


def _part(function: str, argument: Argument, context: _Context) -> Expression:
    match argument:
        case Call():
            return _bind(argument, context)
        case Assignment(name=name):
            raise InvalidParameter(
                f"{function} takes metrics and no parameter {_shown(name)}", position=argument.position
            )
        case Literal(text=text):
            raise InvalidExpression(
                f"{function} takes metrics, got {_shown(text)}; "
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
    nearest = _nearest(selector.label, context.labels)
    listed = ", ".join(map(_shown, context.labels if len(context.labels) <= _MOST_LISTED else nearest))
    if len(context.labels) <= _MOST_LISTED:
        known = f"the classes are {listed}"
    elif nearest:
        known = f"the nearest of {len(context.labels)} classes are {listed}"
    else:
        known = f"none of {len(context.labels)} classes comes near"
    raise UnknownLabel(
        f"there is no class {_shown(selector.label)}; {known}", known=context.labels, position=selector.position
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
                f"{card.key} takes no parameter {_shown(argument.name)}; {_accepted(card)}", position=argument.position
            )
        if argument.name in values:
            raise InvalidParameter(
                f"the parameter {argument.name} of {card.key} is given twice", position=argument.position
            )
        values[argument.name] = _value(card, parameter, argument.value)
    return MappingProxyType({**card.defaults, **values})


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
            f"parameters have names: write {call.name}({name}={text[:_LONGEST_SHOWN]})", position=argument.position
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
    if isinstance(parameter, Choice):
        return " or ".join(parameter.options)
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


def _value(card: Card, parameter: Parameter, literal: Literal) -> float | str:
    refused = InvalidParameter(
        f"{parameter.name} of {card.key} is {describe(parameter)}, not {_shown(literal.text)}",
        position=literal.position,
    )
    if isinstance(parameter, Choice):
        if literal.text not in parameter.options:
            raise refused
        return literal.text
    if literal.kind is not TokenKind.NUMBER:
        raise refused
    value = float(literal.text)
    if not _within(parameter, value, written_infinite="inf" in literal.text):
        raise refused
    return value


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
        f"there is no metric or function {_shown(call.name)}; {hint}", suggestions=names, position=call.position
    )


@cache
def _known_names() -> Mapping[str, str]:
    """Every name that can be written, with what it means: functions as themselves, keys and aliases as the key."""
    functions = {name: name for name in COMBINATIONS}
    return MappingProxyType(functions | {name: metric.key for name, metric in catalogue().by_name.items()})


@cache
def _foreign_names() -> Mapping[str, tuple[str, ...]]:
    """What other libraries call a metric, lower case, without arguments: the keys that it may mean."""
    found: dict[str, list[str]] = {}
    for metric in catalogue().metrics:
        for name in metric.card.elsewhere.values():
            found.setdefault(name.partition("(")[0].lower(), []).append(metric.key)
    return MappingProxyType({name: tuple(keys) for name, keys in found.items()})


def suggest(name: str) -> tuple[str, ...]:
    """Known names nearest to an unknown one, best first, each for another metric."""
    known = _known_names()
    plain = name.lower().replace("-", "_").replace(".", "_")
    words = set(plain.split("_"))
    candidates = [
        *([plain] if plain in known else []),
        *_foreign_names().get(name.rpartition(".")[2].lower(), ()),
        *(other for other in known if len(words) > 1 and set(other.split("_")) == words),
        *get_close_matches(plain, known, n=_MOST_SUGGESTIONS, cutoff=0.7),
        *(other for other in known if len(plain) > 2 and plain in other.split("_")),
        *get_close_matches(plain, known, n=_MOST_SUGGESTIONS, cutoff=0.6),
    ]
    chosen: dict[str, str] = {}
    for candidate in candidates:
        chosen.setdefault(known[candidate], candidate)
    return tuple(chosen.values())[:_MOST_SUGGESTIONS]


def _nearest(label: str, labels: Sequence[str]) -> tuple[str, ...]:
    folded: dict[str, str] = {}
    for candidate in labels:
        folded.setdefault(candidate.strip().casefold(), candidate)
    found = get_close_matches(label.strip().casefold(), folded, n=_MOST_SUGGESTIONS, cutoff=0.5)
    return tuple(folded[name] for name in found)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…")
