"""Values of expressions, why some of them do not exist, and which slices take part in those over slices."""

from collections.abc import Iterable, Iterator, Sequence
from math import isfinite
from typing import Any, Final, cast

import numpy as np

from app.domain.division import Where, slice_text
from app.domain.expressions.conditions import text_of
from app.domain.expressions.expressions import render
from app.domain.findings import Finding
from app.domain.inputs.content import Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.members import numbers
from app.domain.report import Undefined, Value
from app.domain.wording import numbered
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Explainer, Gap
from app.kernel.metrics.expression import (
    Combination,
    Expression,
    Measure,
    OverSlices,
    Sliced,
    Subject,
    compute,
    data_of,
    is_list,
    is_of_slices,
    measures,
    needs_counts,
    of_probabilities,
    parts_of,
)
from app.kernel.streamed.rows import NotStreamed
from app.services.estimands import Estimand
from app.services.estimates.estimate import NoLimits
from app.services.estimates.run_data import RunData

NOT_FOLDED: Final = "not_folded"
IF_ASKED: Final = "the samples have to be read again for it, which is done where options.metrics asks for it"
ALL_AT_ONCE: Final = "it needs all samples at once, and there are more than were held in memory"


def uncounted(source: MatrixInput) -> str | None:
    """Why an input has nothing that needs numbers of samples; None where these are known."""
    held = "the matrix holds" if source.task is None else "these are"
    return None if source.content is Content.counts else f"needs numbers of samples, and {held} {source.content}"


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
    """Values of metric expressions by their text, and the reasons of those that are missing: what streamed samples
    cannot say leaves the others as they are. ``uncounted`` is why there is nothing that needs numbers of samples.
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
    # The function that its parts leave without a value may stand inside of others.
    for inside in parts_of(expression):
        if not np.isfinite(compute(inside, subject)).all():
            return _why(inside, subject, explainers, labels, index)
    return "zero_part", cast(Combination, expression).card.undefined


# Slices that a sentence names.
_MOST_NAMED: Final = 5


def slice_findings(estimands: Iterable[Estimand], run: RunData) -> Iterator[Finding]:
    """For each value that is over slices: in which it is smallest and largest, and which take no part."""
    for estimand in estimands:
        for text, expression, some in _over(estimand.text, estimand.expression, run):
            yield _finding(estimand, text, expression, some)


def _over(text: str, expression: Expression, run: RunData) -> Iterator[tuple[str, OverSlices, RunData]]:
    """Functions over slices, with their text and the samples that they are of."""
    if isinstance(expression, OverSlices):
        yield text, expression, run
    elif is_of_slices(expression):
        for part, some in run.inside(expression):
            own = text if isinstance(expression, Sliced) else render(part, run.source.labels)
            yield from _over(own, part, some)


def _finding(estimand: Estimand, text: str, over: OverSlices, run: RunData) -> Finding:
    slices = run.slices(over)
    values = {place: float(one.of(over.part)[0]) for place, one in enumerate(slices.runs)}
    known = {place: value for place, value in values.items() if isfinite(value)}
    left = [(one, f"fewer than {over.fewest}") for one in slices.small]
    left += [(one, "no value") for place, one in enumerate(slices.parts) if place not in known]
    said = f"{text} is of {numbered(len(known), 'slices')}"
    ends: dict[str, Where] = {}
    if known:
        ends = {"smallest": slices.parts[min(known, key=known.__getitem__)].where}
        ends["largest"] = slices.parts[max(known, key=known.__getitem__)].where
        said += f"; smallest: {slice_text(ends['smallest'])}, largest: {slice_text(ends['largest'])}"
    if left:
        named = ", ".join(f"{slice_text(one.where)} ({numbered(one.size)}, {why})" for one, why in left[:_MOST_NAMED])
        said += f". Left out: {named}" + (f" and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else "")
    return Finding.note(
        "over_slices",
        f"{said}.",
        metrics=[estimand.text],
        by=over.by,
        slices=len(known),
        **ends,
        left_out=[{"where": one.where, "n_samples": one.size, "reason": why} for one, why in left],
    )


def why_undefined(expression: Expression, run: RunData, place: int) -> tuple[str, str]:
    """Code and reason of a value that does not exist, of one class of a list if it is one."""
    labels = run.source.labels
    if isinstance(expression, Sliced):
        some = run.slice(expression.where)
        if some is None:
            return "empty_slice", f"{NoLimits.EMPTY_SLICE} with {text_of(expression.where)}"
        code, why = why_undefined(expression.part, some, place)
        return code, f"{why} (of the samples with {text_of(expression.where)})"
    if isinstance(expression, OverSlices):
        values = np.array([one.of(expression.part)[0] for one in run.slices(expression).runs])
        fewest = 1 if expression.card.ends is None else 2
        enough = np.isfinite(values).sum() >= fewest
        inside = f"{render(expression.part, labels)} by {expression.by}"
        none = ("undefined", expression.card.undefined) if enough else ("few_slices", NoLimits.FEW_SLICES)
        return none[0], f"{inside}: {none[1]}"
    if isinstance(expression, Combination) and is_of_slices(expression):
        first = next(one for one in expression.values(len(labels)) if not np.isfinite(run.of(one)).all())
        return why_undefined(first, run, 0)
    if needs_counts(expression) and (lacking := uncounted(run.source)):
        return "needs_counts", lacking
    scored = run.source.task is not None or of_probabilities(expression)
    return gap_of(expression, run.subject if scored else run.table, labels, place)
