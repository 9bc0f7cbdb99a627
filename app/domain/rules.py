"""Rules of a gate: bounds on a metric, on its difference to a baseline, or that its history shows no change."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from app.domain.errors import Fault, InvalidExpression, InvalidInput
from app.domain.evaluation import DatasetRef, ModelRef, Reference
from app.domain.expressions.expressions import (
    parse_for_any_classes,
    refuse_about_sample,
    refuse_list,
    refuse_unless_proportion,
)
from app.domain.wording import significant
from app.kernel.compare.gates import Bound as Bound
from app.kernel.metrics.card import Inputs
from app.kernel.metrics.expression import Bounds, bounds
from app.kernel.uncertainty.draws import Alternative
from app.kernel.uncertainty.intervals import ProportionInterval


class Demand(StrEnum):
    """The demand of a rule, named by the request's member that makes it."""

    MIN = "min"
    MAX = "max"
    NOT_WORSE = "not_worse_than"
    BETTER = "better_than"
    EQUIVALENT = "equivalent_to"
    UNCHANGED = "not_changed_since"

    @property
    def needs_baseline(self) -> bool:
        """Is it about the difference to a baseline?"""
        return self in (Demand.NOT_WORSE, Demand.BETTER, Demand.EQUIVALENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule.

    Attributes:
        limit: The floor or ceiling, or the margin (0 or more) of a demand on the difference to the baseline; 0 of one
            on the history.
        bound: Which end of the interval is held against the limit.
        level: Of the interval; half of what it leaves is the one-sided error, and all of it of a limit on one side.
        proportion_interval: Limits of a metric that is a proportion.
        alternative: Limits on both sides, or one of them alone.
        stated: The rule as it was put, to be given back.
    """

    metric: str
    demand: Demand
    limit: float
    bound: Bound
    level: float
    proportion_interval: ProportionInterval = ProportionInterval.WILSON
    alternative: Alternative = Alternative.TWO_SIDED
    stated: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """The definition of a gate: every rule has to pass, and there have to be enough samples.

    Attributes:
        applies_to: Which evaluations it is for; None is all.
    """

    rules: tuple[Rule, ...]
    minimum_samples: int = 0
    applies_to: Reference | None = None

    @property
    def needs_baseline(self) -> bool:
        """Does a rule compare with a baseline?"""
        return any(rule.demand.needs_baseline for rule in self.rules)

    @property
    def watched(self) -> tuple[Rule, ...]:
        """Return the rules on the history of the model, which share the error of a claim."""
        return tuple(rule for rule in self.rules if rule.demand is Demand.UNCHANGED)


def definition_of(stated: Mapping[str, Any]) -> Definition:
    """A definition from its stored JSON."""
    return Definition(
        rules=tuple(_rule(rule) for rule in stated["rules"]),
        minimum_samples=stated.get("minimum_samples", 0),
        applies_to=_reference(stated["applies_to"]) if "applies_to" in stated else None,
    )


def _reference(stated: Mapping[str, Any]) -> Reference:
    model, dataset = stated.get("model"), stated.get("dataset")
    return Reference(
        None if model is None else ModelRef(**model),
        None if dataset is None else DatasetRef(**dataset),
        tuple(stated.get("tags", {}).items()),
    )


def _rule(stated: Mapping[str, Any]) -> Rule:
    demand = next(demand for demand in Demand if demand in stated)
    return Rule(
        metric=stated["metric"],
        demand=demand,
        limit=stated[demand] if demand in (Demand.MIN, Demand.MAX) else stated.get("margin", 0.0),
        bound=Bound(stated["bound"]),
        level=stated["level"],
        alternative=Alternative(stated.get("alternative", Alternative.TWO_SIDED)),
        proportion_interval=ProportionInterval(stated.get("proportion_interval", ProportionInterval.WILSON)),
        stated=stated,
    )


def check_rules(definition: Definition) -> None:
    """Refuse metrics that make no sense whatever the classes are, and those that nothing can be decided by.

    Raises:
        InvalidInput: each of them.
    """
    faults = []
    for index, rule in enumerate(definition.rules):
        try:
            expression = parse_for_any_classes(rule.metric, inputs=frozenset(Inputs))
            refuse_about_sample(expression, rule.metric)
            if rule.proportion_interval is not ProportionInterval.WILSON:
                refuse_unless_proportion(expression, rule.metric)
            if rule.demand is Demand.UNCHANGED:
                refuse_list(expression, rule.metric)
            else:
                faults += _beyond_range(rule, bounds(expression), f"/rules/{index}")
        except InvalidExpression as error:
            faults.append(Fault(f"/rules/{index}/metric", error.code, error.detail, error.suggestions))
    if faults:
        raise InvalidInput(faults)


def _beyond_range(rule: Rule, ends: Bounds, pointer: str) -> list[Fault]:
    """Return what is wrong with a limit that no value can reach, or a margin that no difference can."""
    low, high = ends
    if rule.demand.needs_baseline:
        if low is None or high is None or rule.limit <= high - low:
            return []
        low, high, pointer = 0.0, high - low, f"{pointer}/margin"
    else:
        pointer = f"{pointer}/{rule.demand}"
    if (low is None or rule.limit >= low) and (high is None or rule.limit <= high):
        return []
    what = f"a difference in {rule.metric}" if rule.demand.needs_baseline else rule.metric
    if low is None or high is None:
        lies = f"is at most {significant(high)}" if high is not None else f"is at least {significant(low or 0.0)}"
    else:
        lies = f"lies between {significant(low)} and {significant(high)}"
    part = rule.limit / 100.0
    meant = (low is None or part >= low) and (high is None or part <= high)
    hint = f": did you mean {significant(part, 6)}?" if meant and abs(rule.limit) > 1.0 else ""
    return [Fault(pointer, "out_of_range", f"{what} {lies}, got {significant(rule.limit, 6)}{hint}")]
