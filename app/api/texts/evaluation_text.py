"""An evaluation as a report for a terminal: findings first, then the headline, the matrix, what has no value."""

from collections.abc import Iterator, Mapping
from typing import Any

from app.api.texts.lines import Style, Track, cell, columns_of, left, limits, opposite, shown, wrapped
from app.api.texts.matrix_text import matrix_lines
from app.api.texts.names import run_title
from app.api.texts.reading import (
    by_severity,
    ends_of,
    has_classes,
    recalls_of,
    said_once,
    shown_first,
    value_of,
    weakest_classes,
)
from app.domain.expressions.syntax import write_label
from app.domain.inputs.kinds import KINDS
from app.domain.named_metrics import RECALL
from app.domain.wording import number, percent, whole

_NAMES, _VALUES, _INTERVALS, _LAST = 2, 29, 36, 54
_MOST_FINDINGS, _MOST_REQUESTED = 5, 10


def evaluation_text(answer: Mapping[str, Any], style: Style) -> str:
    """The report in at most 60 lines, whatever the number of classes.

    Args:
        answer: An evaluation as it is answered in JSON.
        style: Width and characters.
    """
    lines = [*_heading(answer, style), *_findings(answer, style), ""]
    lines += _Headline(answer, style).lines()
    lines += matrix_lines(answer, style)
    lines += [*_without_value(answer, style), *_more(answer, style)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _heading(answer: Mapping[str, Any], style: Style) -> list[str]:
    given = answer["input"]
    parts = [] if given.get("n_samples") is None else [f"{whole(given['n_samples'])} {_unit(given)}"]
    if given.get("clusters"):
        parts.append(f"{whole(len(given['clusters']))} clusters")
    if has_classes(answer):
        parts.append(f"{whole(given['n_classes'])} {_outcomes(given)}")
    if given.get("positive") is not None:
        parts.append(f"positive: {shown(given['positive'])}")
    return opposite(run_title(answer), ", ".join(parts), style.width)


def _outcomes(given: Mapping[str, Any]) -> str:
    return "labels" if given.get("confusion_matrix") is None else "classes"


def _unit(given: Mapping[str, Any]) -> str:
    usual = "in weight" if given.get("content") == "weights" else "samples"
    units = KINDS[given["kind"]].units
    return usual if units is None or units.unit is None else units.unit


def _findings(answer: Mapping[str, Any], style: Style) -> list[str]:
    found = by_severity(said_once(answer["findings"]))
    lines: list[str] = []
    for one in found[:_MOST_FINDINGS]:
        lines += wrapped(one["severity"].upper(), shown(one["message"]), style.width)
    if len(found) > _MOST_FINDINGS:
        lines += wrapped("", f'{len(found) - _MOST_FINDINGS} more in "findings".', style.width)
    return lines


class _Headline:
    """The values to look at first, by what the mix of the classes does to them."""

    def __init__(self, answer: Mapping[str, Any], style: Style) -> None:
        self._answer, self._style = answer, style
        self._track = Track.within(style.width - _LAST, style)
        self._reasons = {(one["metric"], one.get("class")): one["reason"] for one in answer["undefined"]}

    def lines(self) -> Iterator[str]:
        """Headings and rows."""
        metrics = self._answer["metrics"]
        same, moved, losses = shown_first(self._answer)
        if not has_classes(self._answer):
            yield self._head("METRIC")
            for key in self._answer["headline"]["metrics"]:
                yield from self._row(key, value_of(self._answer, key)[1])
            yield from self._requested()
            return
        rows = [self._row(key, value_of(self._answer, key)[1]) for key in same]
        weakest = next(iter(weakest_classes(self._answer)), None)
        if weakest is not None and RECALL not in same:
            rows.append(self._row(f"{RECALL}@{write_label(weakest)}", recalls_of(self._answer)[weakest]))
        yield self._head("SAME AT ANY CLASS MIX")
        for row in rows:
            yield from row
        if moved:
            yield left("CHANGES WITH THE CLASS MIX", _LAST) + "at equal class sizes"
            for key in moved:
                yield from self._row(
                    key,
                    metrics["prevalence_sensitive"][key],
                    last=f"  {number(metrics['at_balanced_prevalence'].get(key))}",
                )
        if losses:
            yield "PROBABILITIES, lower is better"
            for key in losses:
                yield from self._loss(key)
        yield from self._requested()

    def _head(self, title: str) -> str:
        interval = left(f"{percent(self._level(), None)} interval", _LAST - _INTERVALS)
        return left(title, _VALUES) + left("value", _INTERVALS - _VALUES) + interval + self._track.scale

    def _level(self) -> float:
        for interval in self._answer["intervals"].values():
            return float(interval["level"])
        return 0.95

    def _loss(self, key: str) -> list[str]:
        details = (self._answer.get("probabilities") or {}).get("calibration", {}).get(key)
        value, (low, _) = value_of(self._answer, key)[1], ends_of(self._answer, key)
        if details is None or low is not None or value is None:
            return self._row(key, value, last="")
        by_chance = f"perfect probabilities would show {number(details['expected_if_calibrated'])}"
        return [left(" " * _NAMES + key, _VALUES) + cell(number(value), _INTERVALS - _VALUES) + by_chance]

    def _requested(self) -> Iterator[str]:
        single = {text: value for text, value in self._answer["requested"].items() if not isinstance(value, Mapping)}
        if self._answer["requested"]:
            yield "REQUESTED"
        for text, value in list(single.items())[:_MOST_REQUESTED]:
            yield from self._row(text, value)
        lists = [text for text in self._answer["requested"] if text not in single]
        rest = [*lists, *list(single)[_MOST_REQUESTED:]]
        if rest:
            more = f" and {len(rest) - 1} more" if rest[1:] else ""
            yield from wrapped("", f'{rest[0]}{more}: in "requested"', self._style.width, _NAMES)

    def _row(self, name: str, value: float | None, *, last: str | None = None) -> list[str]:
        low, high = ends_of(self._answer, name)
        if value is None:
            text = cell(number(value), _INTERVALS - _VALUES) + self._reason(name)
            lines = wrapped("", text, self._style.width, _VALUES)
            lines[0] = left(" " * _NAMES + shown(name), _VALUES) + lines[0][_VALUES:]
            return lines
        beside = self._track.drawn(value, low, high) if last is None else last
        text = cell(cell(number(value), _INTERVALS - _VALUES) + limits(low, high), _LAST - _VALUES)
        text += beside if _VALUES + columns_of(text + beside) <= self._style.width or last is not None else ""
        named = " " * _NAMES + shown(name)
        # A name is never cut, since it can be asked for again as it stands.
        if columns_of(named) >= _VALUES:
            return [named, " " * _VALUES + text]
        return [left(named, _VALUES) + text]

    def _reason(self, name: str) -> str:
        key, _, label = name.partition("@")
        return str(self._reasons.get((key, label or None)) or self._reasons.get((name, None)) or "no value")


def _without_value(answer: Mapping[str, Any], style: Style) -> list[str]:
    undefined = answer["undefined"]
    if not undefined:
        return []
    first, rest = undefined[0], len(undefined) - 1
    name = first["metric"] if first.get("class") is None else f"{first['metric']}@{write_label(first['class'])}"
    said = f"{len(undefined)} metrics. " if rest else ""
    said += f"{name}: {first['reason']}."
    if rest:
        said += f' {rest} more; reasons in "undefined".'
    return wrapped("NO VALUE", shown(said), style.width)


def _more(answer: Mapping[str, Any], style: Style) -> list[str]:
    if answer.get("id") is None:
        return wrapped("MORE", 'JSON has all metrics. "intervals": "all" adds the missing limits.', style.width)
    return wrapped("MORE", f"/v1/evaluations/{answer['id']} (json, csv)", style.width)
