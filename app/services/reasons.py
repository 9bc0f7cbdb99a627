"""Values of expressions, and why some of them do not exist."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from app.domain.members import numbers
from app.domain.report import Undefined, Value
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Explainer, Gap
from app.kernel.metrics.expression import (
    Expression,
    Measure,
    Subject,
    compute,
    data_of,
    is_list,
    measures,
    needs_counts,
)
from app.kernel.streamed.rows import NotStreamed

NOT_FOLDED: Final = "not_folded"
IF_ASKED: Final = "the samples have to be read again for it, which is done where options.metrics asks for it"
ALL_AT_ONCE: Final = "it needs all samples at once, and there are more than were held in memory"


def reason(gap: Gap, labels: Sequence[str]) -> str:
    """Why a value does not exist, with the names of the classes that cause it."""
    if not gap.culprits:
        return gap.condition.reason
    first, *others = (repr(labels[index]) for index in gap.culprits)
    text = gap.condition.reason.format(label=first)
    if not others:
        return text
    more = f" and {len(others) - 5} more" if len(others) > 5 else ""
    return f"{text}; the same holds for {', '.join(others[:5])}{more}"


def requested_values(
    asked: Sequence[tuple[str, Expression]],
    labels: Sequence[str],
    subject: Table | Subject,
    uncounted: str | None = None,
) -> tuple[dict[str, Value | dict[str, Value]], list[Undefined]]:
    """Values of metric expressions by their text, and the reasons of those that are missing.

    Args:
        asked: Of which streamed samples may not say all: what cannot be leaves the others as they are.
        labels: The classes.
        subject: The input.
        uncounted: Why the input has nothing that needs numbers of samples; None where these are known.
    """
    answers: dict[str, Value | dict[str, Value]] = {}
    gaps: list[Undefined] = []
    explainers: dict[int, Explainer[Any]] = {}
    # What is asked twice is answered once.
    for text, expression in dict(asked).items():
        if uncounted is not None and needs_counts(expression):
            answers[text] = None
            gaps.append(Undefined(text, "needs_counts", uncounted))
            continue
        try:
            values = compute(expression, subject)
        except NotStreamed:
            none: dict[str, Value] | None = dict.fromkeys(labels) if is_list(expression) else None
            answers[text] = none
            gaps += [Undefined(text, NOT_FOLDED, ALL_AT_ONCE, label) for label in (none or [None])]
            continue
        found: Any = numbers(np.asarray(values))
        answers[text] = dict(zip(labels, found, strict=True)) if is_list(expression) else found
        for index in np.flatnonzero(~np.isfinite(np.atleast_1d(values))):
            label = labels[int(index)] if is_list(expression) else None
            code, why = _why(expression, subject, explainers, labels, int(index) if label is not None else None)
            gaps.append(Undefined(text, code, why, label))
    return answers, gaps


def gap_of(expression: Expression, subject: Table | Subject, labels: Sequence[str], index: int) -> tuple[str, str]:
    """Code and reason of the value at this place of an expression that does not exist."""
    return _why(expression, subject, {}, labels, index if is_list(expression) else None)


def _why(
    expression: Expression,
    subject: Table | Subject,
    explainers: dict[int, Explainer[Any]],
    labels: Sequence[str],
    index: int | None,
) -> tuple[str, str]:
    """Code and reason of a missing expression: those of the first part without a value."""
    for leaf in measures(expression):
        values = np.atleast_1d(compute(leaf, subject))
        candidates = [index] if index is not None else range(len(values))
        for position in candidates:
            if not np.isfinite(values[position]):
                of = position if is_list(leaf) else (leaf.of if isinstance(leaf.of, int) else None)
                data = data_of(leaf.metric, subject)
                explainer = explainers.setdefault(id(data), Explainer(data))
                gap = explainer.explain(leaf.metric, of, float(values[position]))
                part = "" if isinstance(expression, Measure) else f"{leaf.metric.card.name}: "
                return gap.condition.code, part + reason(gap, labels)
    return (
        "zero_part",
        "a part is 0, so the harmonic mean is 0 and has no dispersion, or there are fewer than two parts",
    )
