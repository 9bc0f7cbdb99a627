"""Words about values of slices: which slices take part, which come out first, and why a value does not exist."""

from collections.abc import Iterable, Iterator
from math import isfinite
from typing import Final

import numpy as np

from app.domain.division import Where, slice_text
from app.domain.expressions.conditions import text_of
from app.domain.expressions.expressions import render
from app.domain.findings import Finding
from app.domain.wording import numbered
from app.kernel.metrics.expression import Combination, Expression, OverSlices, Sliced, is_of_slices, of_probabilities
from app.services.estimands import Estimand
from app.services.estimates.estimate import NoLimits
from app.services.estimates.run_data import RunData
from app.services.reasons import gap_of

# Slices that a sentence names.
_MOST_NAMED: Final = 5
_ALL_ZERO: Final = "all values are 0"


def slice_findings(estimands: Iterable[Estimand], run: RunData) -> Iterator[Finding]:
    """For each value that is over slices: in which it is smallest and largest, and which take no part."""
    for estimand in estimands:
        for text, expression, some in _over(estimand.text, estimand.expression, run):
            yield _finding(estimand, text, expression, some)


def _over(text: str, expression: Expression, run: RunData | None) -> Iterator[tuple[str, OverSlices, RunData]]:
    """Functions over slices, with their text and the samples that they are of."""
    if isinstance(expression, OverSlices) and run is not None:
        yield text, expression, run
    if isinstance(expression, Sliced) and run is not None:
        yield from _over(text, expression.part, run.slice(expression.where))
    if isinstance(expression, Combination) and run is not None:
        for part in expression.parts:
            yield from _over(render(part, run.source.labels), part, run)


def _finding(estimand: Estimand, text: str, over: OverSlices, run: RunData) -> Finding:
    slices = run.slices(over)
    values = {place: float(one.of(over.part)[0]) for place, one in enumerate(slices.runs)}
    known = {place: value for place, value in values.items() if isfinite(value)}
    left = [(one, f"fewer than {over.fewest}") for one in slices.small]
    left += [(one, "no value") for place, one in enumerate(slices.parts) if place not in known]
    said = f"{text} is of {len(known)} slice{'s' * (len(known) != 1)}"
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
        return ("undefined", f"{inside}: {_ALL_ZERO}") if enough else ("few_slices", f"{inside}: {NoLimits.FEW_SLICES}")
    if isinstance(expression, Combination) and is_of_slices(expression):
        first = next(one for one in expression.values(len(labels)) if not np.isfinite(run.of(one)).all())
        return why_undefined(first, run, 0)
    scored = run.source.task is not None or of_probabilities(expression)
    return gap_of(expression, run.subject if scored else run.table, labels, place)
