"""Section of a report on expressions of slices."""

from typing import Any

import numpy as np

from app.domain.errors import all_understood
from app.domain.members import numbers
from app.domain.report import Section, Undefined
from app.domain.slices import refuse_unknown_slices
from app.services.estimands import estimand_of
from app.services.estimates.over_slices import slice_findings, why_undefined
from app.services.estimates.report_intervals import estimate_for_report
from app.services.estimates.run_data import RunData
from app.services.evaluate.questions import Question


def slice_section(question: Question, run: RunData) -> Section:
    """Make the section on the expressions of slices that are asked for.

    Args:
        question: What is asked.
        run: With its samples.

    Raises:
        InvalidExpression: the samples have no such attributes, or none is in a slice; its pointer says which.
        InvalidExpressions: several are so.
    """
    source = question.source
    expressions = dict(question.of_slices)
    all_understood(
        expressions,
        lambda text: refuse_unknown_slices(expressions[text], source),
        lambda text: f"/options/metrics/{question.options.metrics.index(text)}",
    )
    requested: dict[str, Any] = {}
    undefined = []
    asked = [estimand_of(one, text, source.labels, task=source.task) for text, one in expressions.items()]
    for estimand in asked:
        values = run.values(estimand)
        found = numbers(values)
        requested[estimand.text] = dict(zip(source.labels, found, strict=True)) if estimand.is_list else found[0]
        for place in np.flatnonzero(~np.isfinite(values)).tolist():
            label = source.labels[place] if estimand.is_list else None
            undefined.append(Undefined(estimand.text, *why_undefined(estimand.expression, run, place), label))
    intervals = {}
    if question.has_intervals:
        intervals = estimate_for_report([], question.of_slices, run, question.options).intervals()
    findings = tuple(slice_findings(asked, run))
    return Section(requested=requested, intervals=intervals, undefined=tuple(undefined), findings=findings)
