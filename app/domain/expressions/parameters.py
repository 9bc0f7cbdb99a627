"""Parameters of metrics in an expression: which there are, and what each may be."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

from app.domain.errors import InvalidExpression, InvalidParameter
from app.domain.expressions.syntax import Assignment, Call, Literal, TokenKind, write_label
from app.domain.expressions.weights import matrix_of
from app.domain.wording import LONGEST_SHOWN, shown
from app.kernel.metrics.card import (
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

# More decisions than this are not listed in a message.
_MOST_LISTED: Final = 10


@dataclass(frozen=True, slots=True)
class Context:
    """The labels, inputs and task that an expression is checked against."""

    labels: Sequence[str]
    positive: int | None
    inputs: Collection[Inputs]
    complete: bool
    task: Task | None
    assumed: Mapping[str, Any]
    decisions: Sequence[str] | None
    sliceable: bool


def parameters_of(card: Card, call: Call, context: Context) -> Mapping[str, Any]:
    """The value of every parameter of a metric: as written, assumed, or the default.

    Raises:
        InvalidParameter: the metric does not take the parameter, or the parameter not the value, or one is missing.
        InvalidExpression: something in the brackets is no parameter.
    """
    by_name = {parameter.name: parameter for parameter in card.parameters}
    for argument in call.arguments or ():
        if not isinstance(argument, Assignment):
            raise _misplaced(card, call, argument, context)
    written = assignments(
        card.key, call, by_name, lambda name: f"{card.key} takes no parameter {shown(name)}; {_accepted(card)}"
    )
    values = {name: value_of(card.key, by_name[name], one.value, context) for name, one in written.items()}
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


def assignments(
    key: str, call: Call, known: Collection[str], refused: Callable[[str], str]
) -> Mapping[str, Assignment]:
    """Return the ``name=value`` arguments by name, each of which must be known and given once."""
    written: dict[str, Assignment] = {}
    for argument in call.arguments or ():
        if not isinstance(argument, Assignment):
            continue
        if argument.name not in known:
            raise InvalidParameter(refused(argument.name), position=argument.position)
        if argument.name in written:
            raise InvalidParameter(f"the parameter {argument.name} of {key} is given twice", position=argument.position)
        written[argument.name] = argument
    return written


def _require_costs(card: Card, found: Mapping[str, Any], call: Call, context: Context) -> None:
    """Refuse a metric without costs where decisions are no classes, and so nothing says which of them are mistakes."""
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


def _misplaced(card: Card, call: Call, argument: Call | Literal, context: Context) -> InvalidExpression:
    """Return the error for an argument of a metric that is no ``name=value``."""
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
    """Describe the values that a parameter takes, in words."""
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


def value_of(key: str, parameter: Parameter, literal: Literal, context: Context) -> Any:
    """Return the value of a parameter from its text.

    Raises:
        InvalidParameter: the parameter does not take it.
    """
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


def _decision(key: str, parameter: DecisionName, literal: Literal, context: Context) -> Decision:
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
