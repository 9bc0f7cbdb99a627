"""Values of an evaluation as one flat table: value, limits, class shares and reason side by side, by canonical name."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Literal

from app.domain.errors import DomainError, all_understood
from app.domain.evaluation import BalancedValue, EvaluationRecord, ShownValue
from app.domain.expressions.expressions import parse_for_any_classes, render
from app.domain.inputs.matrices import MatrixInput
from app.domain.options import IntervalChoice, Options, Retain
from app.domain.report import Group, GroupedMetrics, Report, Value
from app.kernel.metrics.card import Inputs
from app.kernel.metrics.expression import (
    Expression,
    Measure,
    is_insensitive,
    is_list,
    is_of_slices,
    of_each_class,
    of_probabilities,
)
from app.services.evaluate.questions import Question, ask
from app.services.evaluate.reports import leading_names, report_alone, why_without_limits
from app.services.stored import stored_request

# Where the parameter of the address that chooses values stands in a fault: it is no place in the body.
PARAMETER: Final = "metrics"
NOT_READ: Final = "the samples are not read for this; GET of the evaluation itself with the same metrics has it"
NOT_KEPT: Final = "the samples were not saved: the evaluation was made with retain=none"
UNDEFINED: Final = "it is undefined; the report of the evaluation says why"


def with_chosen(source: MatrixInput, options: Options, chosen: Sequence[str], *, samples: bool = True) -> Options:
    """Return options that ask for the chosen expressions too; without samples for those alone that need none.

    Raises:
        InvalidExpression, InvalidExpressions: one is none; its pointer is the name of the parameter.
    """
    plain = replace(options, metrics=())
    understood = all_understood(
        chosen, lambda one: ask(source, replace(plain, metrics=(one,))).expressions[0], lambda _: PARAMETER
    )
    more = [
        text
        for text, expression in zip(chosen, understood, strict=True)
        if samples or not (source.task is not None or of_probabilities(expression) or is_of_slices(expression))
    ]
    return replace(options, metrics=tuple(dict.fromkeys((*options.metrics, *more))))


def shown_values(
    report: Report, question: Question, chosen: Sequence[str], missing: str = NOT_KEPT
) -> dict[str, ShownValue]:
    """Return the chosen values of a report by canonical name: the headline and what was requested when none are;
    ``missing``: why the report has not all of them.
    """
    names = chosen or (*report.headline["metrics"], *question.options.metrics)
    expressions = ask(question.source, replace(question.options, metrics=tuple(names))).expressions
    table = _Table(report, question, missing)
    wanted = zip(names, expressions, strict=False)
    return dict(found for text, expression in wanted for found in table.rows(text, expression))


def refuse_unknown(chosen: Sequence[str]) -> None:
    """Refuse chosen expressions that make no sense of any evaluation.

    Raises:
        InvalidExpression, InvalidExpressions: as `with_chosen`.
    """
    all_understood(chosen, partial(parse_for_any_classes, inputs=frozenset(Inputs)), lambda _: PARAMETER)


def listed_values(record: EvaluationRecord, chosen: Sequence[str]) -> dict[str, ShownValue]:
    """Return the values of an evaluation in a list: what follows from its matrix, with limits unless these take groups
    or weights, the others as stored.
    """
    source, options = stored_request(record)
    limited = not (source.is_grouped or source.is_weighted)
    plain = replace(options, intervals=IntervalChoice.HEADLINE) if limited else options.without_intervals
    plain = replace(plain, metrics=() if chosen else options.metrics)
    known, refused = list[str](), dict[str, ShownValue]()
    for text in dict.fromkeys(chosen):
        try:
            ask(source, replace(plain, metrics=(text,)))
            known.append(text)
        except DomainError as error:
            # Of a list, one evaluation may lack a class that others have.
            refused[text] = ShownValue(reason=error.detail)
    if chosen and not known:
        return refused
    question = ask(source, replace(plain, metrics=(*plain.metrics, *known)))
    missing = NOT_KEPT if options.retain is Retain.NONE else NOT_READ
    if source.task is not None:
        leading = leading_names(source, source.task, record.values)
        names = known or (*leading, *question.options.metrics)
        return dict(_as_stored(record, question, names, missing)) | refused
    found = shown_values(report_alone(question, {}), question, known, missing)
    for name, one in found.items():
        if one.value is None:
            found[name] = _stored(name, record, one)
        elif not limited:
            found[name] = replace(one, reason=missing)
    return found | refused


def _stored(name: str, record: EvaluationRecord, shown: ShownValue) -> ShownValue:
    """Return a value as it is stored with the evaluation, or as it is where none is stored."""
    return replace(shown, value=value) if (value := record.values.get(name)) is not None else shown


def _as_stored(
    record: EvaluationRecord, question: Question, names: Sequence[str], missing: str
) -> Iterator[tuple[str, ShownValue]]:
    expressions = ask(question.source, Options(metrics=tuple(names))).expressions
    for text, expression in zip(names, expressions, strict=True):
        name = render(expression, record.labels)
        reason = UNDEFINED if name in record.values and record.values[name] is None else missing
        asked = None if text == name else text
        shown = ShownValue(group=_group(expression, question), reason=reason, as_asked=asked)
        yield name, _stored(name, record, shown)


class _Table:
    """The rows that a report has."""

    def __init__(self, report: Report, question: Question, missing: str) -> None:
        self._report, self._question, self._missing = report, question, missing
        self._labels = question.source.labels
        self._without_limits = why_without_limits(question.source.content, question.source.facts)

    def rows(self, text: str, expression: Expression) -> Iterator[tuple[str, ShownValue]]:
        """One row, or one of each class."""
        if not is_list(expression):
            yield self._row(text, expression, None)
            return
        for place, one in enumerate(of_each_class(expression, len(self._labels))):
            yield self._row(text, one, place)

    def _row(self, text: str, expression: Expression, place: int | None) -> tuple[str, ShownValue]:
        name = render(expression, self._labels)
        label = None if place is None else self._labels[place]
        groups, key = self._place(expression, name)
        known, value = self._value(text, groups, key, label)
        intervals: Mapping[str, Any] = self._report.intervals
        interval = intervals.get(name) or intervals.get(text) or {}
        low, high = interval.get("low"), interval.get("high")
        reason = interval.get("reason")
        if value is None:
            reason = self._why(text, expression, label) if known else self._missing
        elif low is None and high is None:
            reason = reason or self._without_limits
        return name, ShownValue(
            value=value,
            low=low,
            high=high,
            level=interval.get("level"),
            method=interval.get("method"),
            group=_group(expression, self._question),
            balanced=self._balanced(name, groups["at_balanced_prevalence"], key),
            reason=reason,
            as_asked=text if place is None and text != name else None,
        )

    def _value(self, text: str, groups: GroupedMetrics, key: str, label: str | None) -> tuple[bool, float | None]:
        """Is there such a row in the report, and the value that it has."""
        if text in self._report.requested:
            found: Any = self._report.requested[text]
            return True, found if label is None else found[label]
        values = {**groups["prevalence_insensitive"], **groups["prevalence_sensitive"]}
        return key in values, values.get(key)

    def _place(self, expression: Expression, name: str) -> tuple[GroupedMetrics, str]:
        """Return the place of a value in a report: the groups of a class or of the whole, and the name in them."""
        if isinstance(expression, Measure) and isinstance(expression.of, int):
            groups = self._report.per_class[self._labels[expression.of]]
            return groups, render(replace(expression, of=None), self._labels)
        return self._report.metrics, name

    def _balanced(self, name: str, twins: Mapping[str, Value], key: str) -> BalancedValue | None:
        if key not in twins:
            return None
        interval: Mapping[str, Any] = self._report.balanced_intervals.get(name) or {}
        return BalancedValue(twins[key], interval.get("low"), interval.get("high"))

    def _why(self, text: str, expression: Expression, label: str | None) -> str:
        names = {text, "*"}
        if isinstance(expression, Measure):
            names.add(expression.metric.key)
            names.add(render(replace(expression, of=None), self._labels))
            if isinstance(expression.of, int):
                label = self._labels[expression.of]
        gaps = [gap for gap in self._report.undefined if gap.metric in names and gap.label in (label, None)]
        gaps.sort(key=lambda gap: (gap.group is Group.BALANCED, gap.label is None))
        return gaps[0].reason if gaps else self._missing


def _group(expression: Expression, question: Question) -> Literal["insensitive", "sensitive"]:
    return "insensitive" if is_insensitive(expression, len(question.source.labels)) else "sensitive"
