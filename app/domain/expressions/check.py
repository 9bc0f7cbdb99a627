"""Whether an expression makes sense before the classes are known that it will be asked for."""

from collections.abc import Collection, Iterator

from app.domain.errors import InvalidExpression, NotComparable
from app.domain.expressions.expressions import parse
from app.domain.expressions.syntax import Assignment, Call, read
from app.domain.expressions.weights import labels_in
from app.kernel.metrics.card import Inputs
from app.kernel.metrics.expression import Every, Expression, Measure, is_about_sample


def parse_for_any_classes(text: str, *, inputs: Collection[Inputs] = frozenset({Inputs.MATRIX})) -> Expression:
    """Tree of an expression as if every class that it names existed.

    Raises:
        InvalidExpression: it makes no sense whatever the classes are.
    """
    named = dict.fromkeys(_labels(read(text)))
    return parse(text, (*named, "\n0", "\n1"), 0, inputs=inputs, complete=False)


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
        of_counts = fact.proportion is not None or fact.part is not None
        return of_counts or (fact.influence is not None and fact.influence.is_share)
    return expression.card.picks is not None and all(map(_follows_from_proportions, expression.parts))


def _labels(call: Call) -> Iterator[str]:
    if call.selector is not None and not isinstance(call.selector.label, Every):
        yield call.selector.label
    for argument in call.arguments or ():
        if isinstance(argument, Call):
            yield from _labels(argument)
        elif isinstance(argument, Assignment):
            yield from labels_in(argument.value)
