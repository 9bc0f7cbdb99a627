"""One quantity, one form: functions of metrics that have a name, and metrics that are a function of others."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from app.domain.expressions.expressions import parse, render
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Metric
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Combination, Every, Expression, Measure

# Texts that name no class mean the same for all classes.
_ANY = ("0", "1")


def canonical(expression: Expression, labels: Sequence[str]) -> Expression:
    """The one form that all ways to ask for a quantity share.

    The mean of the recalls of all classes is balanced accuracy; the worst recall is the smallest of all recalls, since
    what is picked from several values has limits that follow from theirs.
    """
    if isinstance(expression, Measure):
        known = _combinations().get(expression.metric.key)
        plain = dict(expression.parameters) == expression.metric.card.defaults
        return known if known is not None and known.card.picks is not None and plain else expression
    expression = _without_equal_weights(expression)
    if expression.parameters:
        return expression
    every = replace(expression, parts=_of_all_classes(expression.parts, len(labels)))
    named = _names().get(render(every, labels))
    if named is None or every.card.picks is not None:
        return every
    return Measure(named, named.card.defaults, None)


def _without_equal_weights(expression: Combination) -> Combination:
    """The plain mean where all parts weigh the same."""
    plain = expression.card.weighted
    if plain is None or len(set(expression.parameters["weights"])) > 1:
        return expression
    return Combination(plain, expression.parts)


def _of_all_classes(parts: tuple[Expression, ...], n_classes: int) -> tuple[Expression, ...]:
    """The parts, in short where they are one metric of every class."""
    first = parts[0]
    if not isinstance(first, Measure) or len(parts) != n_classes:
        return parts
    every = replace(first, of=Every.CLASS)
    alike = all(isinstance(part, Measure) and replace(part, of=Every.CLASS) == every for part in parts)
    classes = {part.of for part in parts if isinstance(part, Measure)}
    return (every,) if alike and classes == set(range(n_classes)) else parts


@cache
def _combinations() -> dict[str, Combination]:
    """By the key of a metric the function of others that it is."""
    texts = {metric.key: metric.card.inference.same_as for metric in catalogue().of_matrices.metrics}
    trees = {key: parse(text, _ANY, None) for key, text in texts.items() if text is not None}
    return {key: tree for key, tree in trees.items() if isinstance(tree, Combination)}


@cache
def _names() -> dict[str, Metric[Table]]:
    """By the text of a function of metrics the metric that it is."""
    return {render(tree, _ANY): catalogue().of_matrices.by_name[key] for key, tree in _combinations().items()}
