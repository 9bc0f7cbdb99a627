"""Costs that belong to a question: what they are applied to, and decisions that need not be classes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.domain.errors import InvalidExpression, InvalidInput
from app.domain.inputs.confusion import costs_of
from app.domain.inputs.content import DECISIONS_FACT
from app.domain.inputs.labels import listed
from app.domain.inputs.matrices import MatrixInput
from app.domain.options import Costs
from app.kernel.metrics.expression import Expression, measures
from app.kernel.metrics.families.decisions import (
    cheapest_decisions,
    cost_savings,
    expected_cost,
    minimum_cost,
    normalized_cost,
)
from app.kernel.metrics.parameters import COSTS, Choice, MatrixOf
from app.kernel.numerics.arrays import silently
from app.kernel.samples.scores import Scores
from app.services.json_values import numbers

_OF_CLASSES = (expected_cost, normalized_cost, cost_savings)


def checked(costs: Costs, source: MatrixInput) -> Costs:
    """Costs whose rows are the classes, and whose columns are what the input has decisions about: the classes, or what
    it names.

    Raises:
        InvalidInput: they do not fit the input; the pointer says where.
    """
    labels, rows = source.labels, costs.matrix
    if len(rows) != len(labels):
        raise _refused("matrix", f"expected {len(labels)} rows of costs, one for each actual class, got {len(rows)}")
    columns = source.facts.get(DECISIONS_FACT, labels)
    names = columns if costs.decisions is None else costs.decisions
    for index, row in enumerate(rows):
        if len(row) != len(names):
            what = "a cost for each class, or decisions that name the columns" if costs.decisions is None else "costs"
            raise _refused(f"matrix/{index}", f"expected {len(names)} numbers, {what}, got {len(row)}")
    if len(set(names)) < len(names):
        raise _refused("decisions", "expected decisions that all differ")
    if set(names) == set(columns):
        order = [names.index(one) for one in columns]
        return Costs(tuple(tuple(row[place] for place in order) for row in rows), tuple(columns))
    if source.decisions is not None:
        raise _refused("decisions", f"expected those of the matrix, {listed(columns)}, got {listed(names)}")
    if not _has_probabilities(source):
        raise _refused(
            "decisions",
            "expected the classes: what is decided otherwise follows from probabilities, and this input has none",
        )
    return costs


def _refused(where: str, words: str) -> InvalidInput:
    return InvalidInput.at(f"/options/costs/{where}", "invalid_costs", words)


def _has_probabilities(source: MatrixInput) -> bool:
    return source.is_scored and not source.has_scores


def asked_of(costs: Costs, texts: Sequence[str], source: MatrixInput) -> tuple[str, ...]:
    """Expressions, and what costs let ask besides."""
    found = _OF_CLASSES if _are_of_classes(costs, source) else ()
    keys = [metric.key for metric in found] + ([minimum_cost.key] if _has_probabilities(source) else [])
    return tuple(dict.fromkeys((*texts, *keys)))


def assumed_costs(costs: Costs) -> Mapping[str, Any]:
    """What metrics of costs take that name none."""
    return {COSTS.name: costs.matrix}


def refuse_no_classes(expression: Expression, costs: Costs, source: MatrixInput) -> None:
    """Refuse a metric that takes these costs and needs that decisions are classes where they are not.

    Raises:
        InvalidExpression: it does.
    """
    if _are_of_classes(costs, source):
        return
    for leaf in measures(expression):
        card = leaf.metric.card
        parameter = next((one for one in card.parameters if one.name == COSTS.name), None)
        takes_classes = isinstance(parameter, Choice) and parameter.matrix is MatrixOf.COSTS
        if takes_classes and leaf.parameters[COSTS.name] is costs.matrix:
            raise InvalidExpression(f"{card.key} needs decisions that are the classes; {minimum_cost.key} takes others")


def _are_of_classes(costs: Costs, source: MatrixInput) -> bool:
    """Or of what the input has in place of classes."""
    return costs.decisions == tuple(source.facts.get(DECISIONS_FACT, source.labels))


def decided(costs: Costs, scores: Scores, labels: Sequence[str]) -> dict[str, Any]:
    """What deciding by the lowest expected cost would do: a matrix of actual classes and decisions, and its rates."""
    matrix, names = np.array(costs.matrix), costs.decisions or tuple(labels)
    codes = cheapest_decisions(scores, matrix)
    counts = np.zeros((len(labels), len(names)))
    np.add.at(counts, (scores.y, codes), 1.0 if scores.weights is None else scores.weights)
    with silently():
        of_class, of_decision = counts / counts.sum(axis=1)[:, None], counts / counts.sum(axis=0)
    return {
        "decisions": list(names),
        "matrix": counts.tolist(),
        **costs_of(counts, matrix, names),
        "share_of_class": {
            label: dict(zip(names, numbers(row), strict=True)) for label, row in zip(labels, of_class, strict=True)
        },
        "share_of_decision": {
            name: dict(zip(labels, numbers(column), strict=True))
            for name, column in zip(names, of_decision.T, strict=True)
        },
    }
