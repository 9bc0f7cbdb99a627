"""An evaluation: its values by name, with their limits."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Final

from prevail.errors import UndefinedValue
from prevail.results.answer import Answer
from prevail.results.html import counted, evaluation_html, limits_text, shown
from prevail.results.words import visible

TWIN: Final = "at_balanced_prevalence"
# What is drawn, where it is no sample, by kind of input.
_UNITS: Final = {"ranking": "queries", "sets": "items"}
# What one asks of two classes beside the headline, in this order.
_OF_TWO_CLASSES: Final = ("recall", "precision", "f1", "roc_auc", "average_precision")
_EVERY_CLASS: Final = re.compile(r"@\s*\*")
_PLAIN_LABEL: Final = re.compile(r"""[^\s(),"'@\\*][^\s(),"'@\\]*""")


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A value of a metric.

    A value that does not exist is None and has a reason; to use it as a number is an error, so that no condition on it
    is silently false.

    Attributes:
        group: What the mix of the classes does to it, as the service sorts it; empty for what was requested.
        at_equal_prevalence: The same if all classes were equally frequent, for what changes with their mix.
    """

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    group: str = ""
    at_equal_prevalence: float | None = None
    reason: str | None = None

    def __float__(self) -> float:
        if self.value is None:
            raise UndefinedValue(f"{self.name} has no value: {self.reason or 'no reason is given'}", code="undefined")
        return self.value

    def __lt__(self, other: Any) -> bool:
        return float(self) < float(other)

    def __le__(self, other: Any) -> bool:
        return float(self) <= float(other)

    def __gt__(self, other: Any) -> bool:
        return float(self) > float(other)

    def __ge__(self, other: Any) -> bool:
        return float(self) >= float(other)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Value):
            return (self.name, self.value, self.low, self.high) == (other.name, other.value, other.low, other.high)
        return self.value == other if isinstance(other, int | float) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.name, self.value))

    def __str__(self) -> str:
        limits = limits_text(self.low, self.high)
        return f"{shown(self.value)} ({limits})" if limits else shown(self.value)


def label_text(label: str) -> str:
    """A label as expressions write it: in quotes where it is more than a word."""
    if _PLAIN_LABEL.fullmatch(label) and label.isprintable():
        return label
    escaped = label.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _full_name(metric: str, label: str | None) -> str:
    """The name of a value, such as ``recall@D`` of a class."""
    if label is None:
        return metric
    listed = metric if _EVERY_CLASS.search(metric) else f"{metric}@*"
    return _EVERY_CLASS.sub(lambda _: f"@{label_text(label)}", listed, count=1)


class Evaluation(Answer):
    """An evaluation of a model on a data set.

    ``evaluation["h_mean"]`` and ``evaluation["recall@D"]`` are a `Value`; ``str(evaluation)`` is the report.
    """

    columns = ("scope", "class", "group", "metric", "value", "low", "high", "undefined")

    @property
    def id(self) -> str | None:
        """Id of the evaluation; None if it is not stored."""
        found = self.data.get("id")
        return None if found is None else str(found)

    @property
    def model(self) -> Mapping[str, Any] | None:
        """Name and version."""
        return self.data.get("model")

    @property
    def dataset(self) -> Mapping[str, Any] | None:
        """Name, version and split."""
        return self.data.get("dataset")

    @property
    def tags(self) -> Mapping[str, str]:
        """Tags by name."""
        return self.data.get("tags") or {}

    @property
    def labels(self) -> list[str]:
        """The classes."""
        return [str(one) for one in self.data["input"].get("labels") or ()]

    @property
    def confusion_matrix(self) -> list[list[float]] | None:
        """Rows are actual classes; None for inputs that have none."""
        found: list[list[float]] | None = self.data["input"].get("confusion_matrix")
        return found

    @property
    def findings(self) -> list[Mapping[str, Any]]:
        """Notable facts about the numbers, each a sentence with its evidence, the gravest first."""
        order = ("critical", "warning", "note")
        return sorted(self.data.get("findings") or (), key=lambda one: order.index(one["severity"]))

    @property
    def headline(self) -> Mapping[str, Any]:
        """Leading values."""
        found: Mapping[str, Any] = self.data.get("headline") or {}
        return found

    def __getitem__(self, name: str) -> Value:
        found = self._values.get(name)
        if found is None:
            near = get_close_matches(name, self._values, 3)
            hint = f" Did you mean {', '.join(near)}?" if near else ""
            raise KeyError(f"{name} was not computed.{hint} Ask for it: evaluate(..., metrics=[{name!r}])")
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    @property
    def _values(self) -> Mapping[str, Value]:
        if not hasattr(self, "_kept"):
            self._kept = self._named()
        return self._kept

    def _named(self) -> dict[str, Value]:
        twins: dict[str, float | None] = {}
        found: dict[str, Value] = {}
        for scope, label, group, metric, value, low, high, reason in self.rows():
            name = _full_name(metric, label)
            if scope == "decision":
                # Its group is the decision.
                name, group = _full_name(f"decision_{metric}(decision={label_text(group)})", label), ""
            if group == TWIN:
                twins[name] = value
            else:
                found[name] = Value(name, value, low, high, group, None, reason)
        for name, twin in twins.items():
            if name in found:
                one = found[name]
                found[name] = replace(one, at_equal_prevalence=twin)
        return found

    def rows(self) -> Iterator[Sequence[Any]]:
        """A line for every value: the lines of the service's CSV."""
        intervals = self.data.get("intervals") or {}
        balanced = self.data.get("intervals_at_balanced_prevalence") or {}
        reasons = {
            (one.get("metric"), one.get("class"), one.get("group")): one.get("reason")
            for one in self.data.get("undefined") or ()
        }
        positive = self.data["input"].get("positive")
        # Of two classes a metric without a class is that of the positive one.
        of_positive = "" if positive is None else f"@{label_text(positive)}"

        def line(scope: str, label: str | None, group: str, metric: str, value: float | None) -> Sequence[Any]:
            name = _full_name(metric, label)
            limits = balanced.get(name, {})
            if group != TWIN:
                limits = intervals.get(name) or intervals.get(name + of_positive, {})
            reason = None
            if value is None:
                labels = (label, None) if label is not None else (None, positive)
                places = [*((metric, one, kind) for one in labels for kind in (group, None)), ("*", None, group)]
                reason = next((reasons[one] for one in places if one in reasons), "no value")
            return scope, label, group, metric, value, limits.get("low"), limits.get("high"), reason

        for group, metrics in (self.data.get("metrics") or {}).items():
            for key, value in metrics.items():
                yield line("overall", None, group, key, value)
        for label, groups in (self.data.get("per_class") or {}).items():
            for group, metrics in groups.items():
                for key, value in metrics.items():
                    yield line("class", label, group, key, value)
        for text, value in (self.data.get("requested") or {}).items():
            for label, one in value.items() if isinstance(value, Mapping) else [(None, value)]:
                yield line("requested", label, "", text, one)
        yield from self._shares_of_decisions()

    def _shares_of_decisions(self) -> Iterator[Sequence[Any]]:
        for label, shares in (self.data.get("decisions") or {}).get("share_of_class", {}).items():
            for decision, one in shares.items():
                reason = "no value" if one["value"] is None else None
                yield "decision", label, decision, "share_of_class", one["value"], one["low"], one["high"], reason

    @property
    def name(self) -> str:
        """Model and data set in words."""
        model, dataset = self.model or {}, self.dataset or {}
        said = " ".join(str(one) for one in (model.get("name"), model.get("version")) if one)
        place = ", ".join(str(one) for one in (dataset.get("name"), dataset.get("split")) if one)
        return f"{said or 'an evaluation'} on {place}" if place else said or "an evaluation that is not saved"

    def title(self) -> str:
        """Model and data set, and how much it was judged on."""
        count, given = self.headline.get("n_samples"), self.data.get("input") or {}
        unit = "in weight" if given.get("content") == "weights" else _UNITS.get(given.get("kind", ""), "samples")
        size = "" if count is None or not math.isfinite(count) else f", {counted(count)} {unit}"
        return f"{self.name}{size}"

    def leading(self) -> dict[str, Value]:
        """The values that are shown first, by name; of two classes those of the positive class too."""
        headline = {**self.headline.get("metrics", {}), **self.headline.get("requested", {})}
        reasons = {name: one.reason for name, one in self._values.items()}
        found = {
            name: Value(name, one["value"], one.get("low"), one.get("high"), reason=reasons.get(name))
            for name, one in headline.items()
        }
        if not found:
            # Of points without classes, and of decisions that are no classes.
            return {name: one for name, one in self._values.items() if not one.group or "@" not in name}
        of_two = _OF_TWO_CLASSES if len(self.labels) == 2 else ()
        return found | {name: self[name] for name in of_two if name in self}

    def summary(self) -> str:
        """The findings and the leading values."""
        lines = [visible(self.title())]
        lines += [f"{str(one.get('severity', '')).upper()}  {one.get('message', '')}" for one in self.findings]
        lines += [f"  {name:26} {value}" for name, value in self.leading().items()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return evaluation_html(self.title(), self.findings, self.data, self.leading())
