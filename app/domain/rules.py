"""Rules of a gate: what a metric has to reach, alone or beside a baseline."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from app.domain.errors import Fault, InvalidExpression, InvalidInput
from app.domain.expressions.expressions import parse_for_any_classes, refuse_about_sample, refuse_unless_proportion
from app.kernel.compare.gates import Bound as Bound
from app.kernel.metrics.card import Inputs
from app.kernel.uncertainty.draws import Alternative
from app.kernel.uncertainty.intervals import ProportionInterval


class Demand(StrEnum):
    """What a rule asks for, by the member that says so."""

    MIN = "min"
    MAX = "max"
    NOT_WORSE = "not_worse_than"
    BETTER = "better_than"
    EQUIVALENT = "equivalent_to"

    @property
    def needs_baseline(self) -> bool:
        """Is it about the difference to a baseline?"""
        return self not in (Demand.MIN, Demand.MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule.

    Attributes:
        limit: The floor or ceiling, or the margin (0 or more) of a demand on the difference to the baseline.
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
    """What a gate asks for: every rule has to pass, and there have to be enough samples."""

    rules: tuple[Rule, ...]
    minimum_samples: int = 0

    @property
    def needs_baseline(self) -> bool:
        """Does a rule compare with a baseline?"""
        return any(rule.demand.needs_baseline for rule in self.rules)


def definition_of(stated: Mapping[str, Any]) -> Definition:
    """A definition from its stored JSON."""
    return Definition(
        rules=tuple(_rule(rule) for rule in stated["rules"]), minimum_samples=stated.get("minimum_samples", 0)
    )


def _rule(stated: Mapping[str, Any]) -> Rule:
    demand = next(demand for demand in Demand if demand in stated)
    return Rule(
        metric=stated["metric"],
        demand=demand,
        limit=stated.get("margin", 0.0) if demand.needs_baseline else stated[demand],
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
        except InvalidExpression as error:
            faults.append(Fault(f"/rules/{index}/metric", error.code, error.detail))
    if faults:
        raise InvalidInput(faults)
