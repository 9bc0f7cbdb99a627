"""Classes and what was decided about them, where that is no class."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from app.domain.findings import Finding
from app.domain.inputs.content import Content
from app.domain.inputs.kinds import DECISIONS_FACT
from app.domain.inputs.matrices import MatrixInput
from app.domain.options import Options
from app.domain.report import ConstantDecision, DecisionCosts, DecisionRates, Share
from app.domain.wording import names
from app.kernel.metrics.card import INPUTS_OF, Task
from app.kernel.metrics.expression import Subject
from app.kernel.metrics.parameters import constant_costs, relative_cost, total_cost
from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.intervals import wilson
from app.kernel.uncertainty.units import DecisionUnits
from app.services.json_values import number, numbers
from app.services.kinds.kind import PerClass, UnitKind

# With fewer samples of a class little is known of what is decided about it.
_FEW = 10
_MOST_NAMED = 20


def _reordered(source: MatrixInput, labels: tuple[str, ...]) -> MatrixInput:
    order = [source.labels.index(label) for label in labels]
    return replace(source, labels=labels, counts=source.counts[order])


def _details(source: MatrixInput, _: Subject, options: Options) -> Mapping[str, Any]:
    counts, level = source.counts.astype(np.float64), options.level
    counted = source.content is Content.counts
    decided, actual, total = counts.sum(axis=0), counts.sum(axis=1), counts.sum()
    decisions: Sequence[str] = source.facts[DECISIONS_FACT]

    def by_name(hits: Array, among: Array, columns: Sequence[str]) -> dict[str, Share]:
        return dict(zip(columns, _shares(hits, among, level, counted=counted), strict=True))

    found: DecisionRates = {
        "share": by_name(decided, np.full(decided.shape, total), decisions),
        "share_of_class": {
            label: by_name(row, np.full(row.shape, size), decisions)
            for label, row, size in zip(source.labels, counts, actual, strict=True)
        },
        "share_of_decision": {
            name: by_name(column, np.full(column.shape, size), source.labels)
            for name, column, size in zip(decisions, counts.T, decided, strict=True)
        },
    }
    if options.costs is not None:
        found["costs"] = costs_of(counts, np.array(options.costs.matrix), decisions)
    return {"decisions": found}


def _shares(hits: Array, among: Array, level: float, *, counted: bool) -> list[Share]:
    with silently():
        values = hits / among
        low, high = wilson(hits, among, level) if counted else np.full((2, *values.shape), np.nan)
    rows = zip(numbers(values), numbers(low), numbers(high), strict=True)
    return [{"value": value, "low": below, "high": above} for value, below, above in rows]


def costs_of(counts: Array, costs: Array, decisions: Sequence[str]) -> DecisionCosts:
    """What decisions (K, M) cost, and the best constant one beside them."""
    actual = counts.sum(axis=1)
    with silently():
        relative = float(relative_cost(counts, actual, costs))
    constant = constant_costs(actual, costs) / actual.sum()
    cheapest = int(constant.argmin())
    return DecisionCosts(
        expected_cost=float(total_cost(counts, costs) / actual.sum()),
        normalized_cost=number(relative),
        cost_savings=number(1.0 - relative),
        best_constant=ConstantDecision(decision=decisions[cheapest], expected_cost=float(constant[cheapest])),
    )


def _findings(source: MatrixInput, _: Subject, __: Mapping[str, float | None], ___: PerClass) -> Iterator[Finding]:
    decisions, decided = source.facts[DECISIONS_FACT], source.counts.sum(axis=0)
    never = [name for name, size in zip(decisions, decided.tolist(), strict=True) if not size]
    if never:
        yield Finding.note(
            "decisions_never_taken",
            f"{names(never)} {'are' if never[1:] else 'is'} never decided.",
            decisions=never[:_MOST_NAMED],
        )
    sizes = source.counts.sum(axis=1).tolist()
    few = [label for label, size in zip(source.labels, sizes, strict=True) if size < _FEW]
    if few and source.content is Content.counts:
        yield Finding.warning(
            "classes_with_few_samples",
            f"There are fewer than {_FEW} samples of {names(few)}: little is known of what is decided about "
            f"{'them' if few[1:] else 'it'}.",
            classes=few[:_MOST_NAMED],
        )


DECISIONS_KIND = UnitKind(
    inputs=lambda _: INPUTS_OF[Task.DECISIONS],
    ranked=(),
    units=lambda source: DecisionUnits(source.counts.astype(np.float64)),
    reordered=_reordered,
    shown=lambda source: {"decision_matrix": source.counts.tolist()},
    twin=lambda _: None,
    findings=_findings,
    details=_details,
)
