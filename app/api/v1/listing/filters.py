"""Which evaluations are asked for: filters by name, tag, time and value."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from fastapi import Depends, Query

from app.api.problems import InvalidQuery
from app.api.v1.requests.fields import SOUGHT, Moment, SoughtCondition, SoughtTag
from app.domain.catalogue import overall_key, why_not_stored
from app.domain.evaluation import Bound, EvaluationQuery, ValueCondition
from app.domain.expressions.expressions import suggest

Filter = Annotated[str | None, Query(max_length=256, description="Only those of exactly this name."), SOUGHT]
Conditions = Annotated[
    list[SoughtCondition] | None,
    Query(
        description="Condition on a stored value, such as h_mean>=0.8: any overall metric of the catalogue, one of "
        "<, <=, > and >=, a number. All of them must hold; an undefined value satisfies none.",
        max_length=10,
    ),
]
_CONDITION = re.compile(r"([^<>]+)(<=|>=|<|>)([^<>=]+)")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?", re.ASCII)
_MOST_SELECTED: Final = 100


@dataclass(frozen=True, slots=True)
class Filters:
    """Filters of a list as they came; all of them must hold."""

    model: Filter = None
    model_version: Filter = None
    dataset: Filter = None
    dataset_version: Filter = None
    split: Filter = None
    tag: Annotated[list[SoughtTag] | None, Query(description="key:value; all of them must match.", max_length=20)] = (
        None
    )
    where: Conditions = None
    created_after: Annotated[Moment | None, Query(description="Only those made at this moment or later.")] = None
    created_before: Annotated[Moment | None, Query(description="Only those made before this moment.")] = None

    @property
    def given(self) -> Mapping[str, Any]:
        """What a cursor is bound to."""
        conditions = {"where": self.where} if self.where else {}
        return {
            "model": self.model,
            "model_version": self.model_version,
            "dataset": self.dataset,
            "dataset_version": self.dataset_version,
            "split": self.split,
            "tags": self.tag,
            "after": self.created_after,
            "before": self.created_before,
            **conditions,
        }

    def query(self, **order: Any) -> EvaluationQuery:
        """The same for the services, with the order and the page that are asked for.

        Raises:
            InvalidQuery: a tag or a condition is none.
        """
        return EvaluationQuery(
            model=self.model,
            model_version=self.model_version,
            dataset=self.dataset,
            dataset_version=self.dataset_version,
            split=self.split,
            tags=tuple(_tag(text) for text in self.tag or ()),
            where=value_conditions(self.where),
            created_after=_utc(self.created_after),
            created_before=_utc(self.created_before),
            **order,
        )


UseFilters = Annotated[Filters, Depends()]


def stored_metric(name: str, parameter: str, *others: str) -> str:
    """The key of an overall metric whose values are stored.

    Args:
        name: Of the metric, or one of its aliases.
        parameter: Where it stands.
        others: What may stand there in place of a metric.

    Raises:
        InvalidQuery: there is none of that name, or its values are not stored.
    """
    key = overall_key(name)
    if key is not None:
        return key
    reason = why_not_stored(name)
    if reason is not None:
        raise InvalidQuery.at(parameter, "not_stored", reason)
    near = [other for other in suggest(name) if overall_key(other)]
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    expected = " or ".join((*others, "an overall metric of GET /v1/metrics?scope=overall"))
    raise InvalidQuery.at(parameter, "unknown_metric", f"expected {expected}, got {name!r}{hint}")


def selected_metrics(text: str | None) -> frozenset[str] | None:
    """The keys of metrics that are named with commas between them; None when nothing is said.

    Raises:
        InvalidQuery: there are too many, or one is none.
    """
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if len(names) > _MOST_SELECTED:
        detail = f"expected at most {_MOST_SELECTED} metrics, got {len(names)}"
        raise InvalidQuery.at("select", "too_long", detail)
    return frozenset(stored_metric(name, "select") for name in names)


def value_conditions(texts: Sequence[str] | None) -> tuple[ValueCondition, ...]:
    """Conditions on stored values.

    Raises:
        InvalidQuery: one is none.
    """
    return tuple(_condition(text) for text in texts or ())


def _condition(text: str) -> ValueCondition:
    parts = _CONDITION.fullmatch(text)
    if parts is None:
        detail = f"expected a metric, one of <, <=, > and >=, and a number, such as h_mean>=0.8, got {text!r}"
        raise InvalidQuery.at("where", "invalid_condition", detail)
    name, sign, number = (part.strip() for part in parts.groups())
    if not _NUMBER.fullmatch(number) or not math.isfinite(float(number)):
        raise InvalidQuery.at("where", "invalid_condition", f"expected a number after {sign}, got {number!r}")
    return ValueCondition(stored_metric(name, "where"), Bound(sign), float(number))


def _tag(text: str) -> tuple[str, str]:
    key, colon, value = text.partition(":")
    if not colon or not key:
        raise InvalidQuery.at("tag", "invalid_tag", f"expected key:value, got {text!r}")
    return key, value


def _utc(moment: datetime | None) -> datetime | None:
    """Times without an offset are taken as UTC."""
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment
