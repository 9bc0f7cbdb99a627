"""Answers as CSV in long form, exact, for spreadsheets and data frames."""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from itertools import chain
from typing import Any

from app.api.texts.check_text import rule_words
from app.domain.expressions.syntax import write_label

Cell = str | float | int | None
# With these a spreadsheet begins a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

EVALUATION = ("scope", "class", "group", "metric", "value", "low", "high", "undefined")
COMPARISON = (
    *("metric", "a", "b", "value_a", "value_b", "difference", "low", "high"),
    *("p_value", "p_adjusted", "probability_a_better", "probability_equivalent"),
)
TOURNAMENT = ("model", "version", "average_rank")
CHECK = ("rule", "verdict", "quantity", "value", "low", "high", "needed_samples")
LEADERBOARD = ("rank", "model", "version", "value", "low", "high", "n_samples", "evaluation", "reason")


def evaluation_csv(answer: Mapping[str, Any]) -> str:
    """A line for every value: overall, of each class, requested, and of each decision that is no class."""
    lines = _Lines(answer)
    return _written(EVALUATION, chain(lines.overall(), lines.of_classes(), lines.requested(), lines.of_decisions()))


class _Lines:
    """The values of an evaluation with their limits, or why there is none."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self._answer, self._intervals = answer, answer["intervals"]
        self._balanced = answer.get("intervals_at_balanced_prevalence", {})
        self._reasons = {
            (one["metric"], one.get("class"), one.get("group")): one["reason"] for one in answer["undefined"]
        }

    def overall(self) -> Iterator[Sequence[Cell]]:
        for group, metrics in self._answer["metrics"].items():
            for key, value in metrics.items():
                yield self._line("overall", None, group, key, value)

    def of_classes(self) -> Iterator[Sequence[Cell]]:
        for label, groups in self._answer["per_class"].items():
            of = f"@{write_label(label)}"
            for group, metrics in groups.items():
                for key, value in metrics.items():
                    yield self._line("class", label, group, key, value, of)

    def requested(self) -> Iterator[Sequence[Cell]]:
        for text, value in self._answer["requested"].items():
            by_class = value if isinstance(value, Mapping) else {None: value}
            for label, one in by_class.items():
                yield self._line("requested", label, "", text, one)

    def of_decisions(self) -> Iterator[Sequence[Cell]]:
        """How often each is taken about each class; the decision stands in place of the group."""
        shares = (self._answer.get("decisions") or {}).get("share_of_class", {})
        for label, decisions in shares.items():
            for decision, one in decisions.items():
                reason = "no value" if one["value"] is None else None
                yield ("decision", label, decision, "share_of_class", one["value"], one["low"], one["high"], reason)

    def _line(
        self, scope: str, label: str | None, group: str, metric: str, value: float | None, of: str = ""
    ) -> Sequence[Cell]:
        of_group = self._balanced if group == "at_balanced_prevalence" else self._intervals
        found = of_group.get(metric + of, {})
        reason = None
        if value is None:
            places = ((metric, label, group), (metric, label, None), (metric, None, None), ("*", None, group))
            reason = next((self._reasons[place] for place in places if place in self._reasons), "no value")
        return (scope, label, group, metric, value, found.get("low"), found.get("high"), reason)


def comparison_csv(answer: Mapping[str, Any]) -> str:
    """A line for every metric and pair of runs; of models across datasets, a line for every model."""
    if "average_ranks" in answer:
        ranks = zip(answer["models"], answer["average_ranks"], strict=True)
        return _written(TOURNAMENT, ((model["name"], model.get("version"), rank) for model, rank in ranks))
    runs = [run["id"] for run in answer["evaluations"]]

    def lines() -> Iterator[Sequence[Cell]]:
        for name, metric in answer["metrics"].items():
            values = dict(zip(runs, metric["values"], strict=True))
            for pair in metric["differences"]:
                a, b = pair["a"], pair["b"]
                yield (name, a, b, values[a], values[b], *(pair[fact] for fact in COMPARISON[5:]))

    return _written(COMPARISON, lines())


def check_csv(answer: Mapping[str, Any]) -> str:
    """A line for every rule."""
    return _written(
        CHECK,
        (
            (
                rule_words(one["rule"]),
                one["verdict"],
                one.get("quantity", "samples"),
                *(one[fact] for fact in CHECK[3:]),
            )
            for one in answer["results"]
        ),
    )


def leaderboard_csv(answer: Mapping[str, Any]) -> str:
    """A line for every model version."""
    return _written(
        LEADERBOARD,
        (
            (
                item["rank"],
                item["model"]["name"],
                item["model"].get("version"),
                *(item[fact] for fact in LEADERBOARD[3:]),
            )
            for item in answer["items"]
        ),
    )


def _written(head: Sequence[str], lines: Iterable[Sequence[Cell]]) -> str:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(head)
    for line in lines:
        writer.writerow([_defused(cell) if isinstance(cell, str) else cell for cell in line])
    return text.getvalue()


def _defused(text: str) -> str:
    """A text that no spreadsheet takes for a formula (OWASP, CSV injection)."""
    return f"'{text}" if text.startswith(_FORMULA) else text
