"""The catalogue as it is told to others."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from app.domain.errors import NotFound
from app.domain.expressions.expressions import suggest
from app.domain.inputs.labels import shown
from app.kernel.metrics.card import Card, Choice, Metric, Number, Orientation, Parameter
from app.kernel.metrics.catalogue import whole_catalogue
from app.kernel.metrics.references import REFERENCES


def metric_by_name(name: str) -> Metric:
    """The metric of that key or alias.

    Raises:
        NotFound: there is none; the nearest names are offered.
    """
    metric = whole_catalogue().by_name.get(name)
    if metric is None:
        near = suggest(name)
        raise NotFound(f"there is no metric {shown(name)}" + (f"; did you mean {', '.join(near)}?" if near else ""))
    return metric


def find_metrics(
    *, scope: str | None, prevalence: str | None, inputs: str | None, task: str | None, text: str | None
) -> Sequence[Metric]:
    """Metrics that pass all filters, in catalogue order. ``text`` is looked for in names and in the sentence."""
    return [
        metric
        for metric in whole_catalogue().metrics
        if (scope is None or metric.card.scope == scope)
        and (prevalence is None or metric.card.prevalence == prevalence)
        and (inputs is None or metric.card.inputs == inputs)
        and (task is None or task in tasks(metric.card))
        and (text is None or text.lower() in _searched(metric.key))
    ]


def tasks(card: Card) -> tuple[str, ...]:
    """Numbers of classes that the metric makes sense for; an order of classes needs more than two."""
    return ("multiclass",) if card.ordered else ("binary", "multiclass")


@cache
def _searched(key: str) -> str:
    card = whole_catalogue().by_name[key].card
    return " ".join((card.key, card.name, *card.aliases, *card.elsewhere.values(), card.sentence)).lower()


def describe_metric(metric: Metric) -> Mapping[str, Any]:
    """Everything on the card of a metric, as JSON."""
    return _described(metric.key)


@cache
def _described(key: str) -> Mapping[str, Any]:
    card = whole_catalogue().by_name[key].card
    low, high = card.range
    return {
        "key": card.key,
        "name": card.name,
        "symbol": card.symbol or None,
        "aliases": {"names": list(card.aliases), **card.elsewhere},
        "scope": card.scope.value,
        "inputs": card.inputs.value,
        "tasks": list(tasks(card)),
        "range": {"minimum": low, "maximum": high},
        "ideal": card.ideal,
        "orientation": card.orientation.value,
        "comparable": card.orientation is not Orientation.DESCRIPTIVE,
        "prevalence": card.prevalence.value,
        "chance_corrected": card.chance_corrected,
        "symmetric": card.symmetric,
        "ordered_classes": card.ordered,
        "needs_counts": card.needs_counts,
        "parameters": [_parameter(parameter) for parameter in card.parameters],
        "formula": card.formula,
        "sentence": card.sentence,
        "undefined": [
            {"code": condition.code, "reason": condition.reason.replace("{label}", "X")} for condition in card.undefined
        ],
        "interpretation": [
            {
                "scale": scale.name,
                "bands": [{"below": upper, "label": label} for upper, label in scale.bands],
                "reference": REFERENCES[scale.reference],
            }
            for scale in card.scales
        ],
        "references": [REFERENCES[reference] for reference in card.references],
        "since": card.since,
        "revision": card.revision,
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    match parameter:
        case Number():
            bounds = {
                "minimum": parameter.minimum,
                "maximum": parameter.maximum,
                "above": parameter.above,
                "below": parameter.below,
            }
            return {
                "name": parameter.name,
                "type": "number",
                "default": parameter.default,
                **{name: bound for name, bound in bounds.items() if bound is not None},
                "infinite_allowed": parameter.infinite,
                "integral": parameter.integral,
                "description": parameter.description,
            }
        case Choice():
            return {
                "name": parameter.name,
                "type": "choice",
                "default": parameter.default,
                "options": list(parameter.options),
                "description": parameter.description,
            }
