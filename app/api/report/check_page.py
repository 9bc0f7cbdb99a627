"""What the page of a check says: the verdict, then each rule on an axis of its own, failures first."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.api.report.numbers import decimals, shown_interval, shown_value, signed_interval, signed_value
from app.api.texts.check_text import rule_words
from app.api.texts.lines import shown
from app.api.texts.names import dataset_name, run_name
from app.domain.catalogue import describe_metric, metric_by_name
from app.domain.errors import NotFound
from app.domain.rules import Demand
from app.domain.wording import whole

Json = Mapping[str, Any]
_ORDER: Final = ("fail", "inconclusive", "pass")
_WORDS: Final = {"fail": "Fail", "inconclusive": "Inconclusive", "pass": "Pass"}


def check_page(answer: Json) -> dict[str, Any]:
    """Everything that the template writes.

    Args:
        answer: A check as it is answered in JSON.
    """
    results = sorted(answer["results"], key=lambda one: _ORDER.index(one["verdict"]))
    run, baseline, gate = answer["evaluation"], answer.get("baseline"), answer["gate"]
    name = run_name(run["model"])
    return {
        "title": f"{name}: {answer['verdict']}",
        "on": dataset_name(run["dataset"]),
        "id": answer["id"],
        "gate": shown(gate["name"]),
        "version": gate["version"],
        "run": {"id": run["id"], "name": name},
        "baseline": None if baseline is None else {"id": baseline["id"], "name": run_name(baseline["model"])},
        "created_at": answer["created_at"],
        "exit_code": answer["exit_code"],
        "verdict": answer["verdict"],
        "word": _WORDS[answer["verdict"]],
        "said": _summary(results),
        "counted": _counted(results),
        "rules": [_rule(one) for one in results],
        "findings": [
            {
                "severity": one["severity"],
                "word": one["severity"].capitalize(),
                "head": shown(one["message"]),
                "rest": "",
            }
            for one in answer.get("findings") or ()
        ],
    }


def _counts(results: Sequence[Json]) -> dict[str, int]:
    """How many rules there are of each verdict."""
    return {word: sum(one["verdict"] == word for one in results) for word in _ORDER}


def _counted(results: Sequence[Json]) -> str:
    """The same in as few words as there are."""
    counts = ", ".join(f"{count} {word}" for word, count in _counts(results).items() if count)
    return f"{counts} of {_rules(len(results))}."


def _summary(results: Sequence[Json]) -> str:
    """The same as a sentence."""
    counts = _counts(results)
    said = [
        f"{counts['fail']} of {_rules(len(results))} {'fails' if counts['fail'] == 1 else 'fail'}",
        f"{counts['inconclusive']} cannot be decided with these samples",
        f"{counts['pass']} {'passes' if counts['pass'] == 1 else 'pass'}",
    ]
    if counts["pass"] == len(results):
        return f"{'The rule holds' if len(results) == 1 else f'All {len(results)} rules hold'}."
    kept = [text for text, word in zip(said, _ORDER, strict=True) if counts[word] or word == "fail"]
    return ", ".join(kept) + "."


def _rules(count: int) -> str:
    return "1 rule" if count == 1 else f"{count} rules"


def _rule(one: Json) -> dict[str, Any]:
    rule = one["rule"]
    if "minimum_samples" in rule:
        value = "not known" if one["value"] is None else whole(one["value"])
        return {**_said(one), "name": "Samples", "key": "", "value": value, "interval": "", "axis": None}
    difference = one["quantity"] == "difference"
    low, high = one["low"], one["high"]
    digits = decimals(low, high)
    return {
        **_said(one),
        "name": _name(rule["metric"]),
        "key": _key(rule["metric"]),
        "value": signed_value(one["value"], digits) if difference else shown_value(one["value"], digits),
        "interval": signed_interval(low, high) if difference else shown_interval(low, high),
        "axis": _axis(one, difference=difference),
    }


def _said(one: Json) -> dict[str, Any]:
    decided = one.get("decided_by")
    return {
        "verdict": one["verdict"],
        "word": _WORDS[one["verdict"]],
        "demand": rule_words(one["rule"]),
        "message": shown(one["message"]),
        "decided": "" if decided is None else shown(decided),
    }


def _key(metric: str) -> str:
    """The metric of a rule as the catalogue has it; empty for an expression of several."""
    key = metric.partition("@")[0].strip()
    try:
        return metric_by_name(key.partition("(")[0]).key
    except NotFound:
        return ""


def _name(metric: str) -> str:
    _, at, label = metric.partition("@")
    found = _key(metric)
    if not found or "(" in metric:
        return shown(metric)
    of = f" of {shown(label)}" if at and label != "*" else " of every class" if at else ""
    name = describe_metric(metric_by_name(found)).name
    return f"{name[:1].upper()}{name[1:]}{of}"


def _axis(one: Json, *, difference: bool) -> dict[str, Any] | None:
    """Where limit, value and interval lie, in per cent of the axis, and which side of the limit is the wrong one."""
    if one["value"] is None:
        return None
    limits = _limits(one, difference=difference)
    known = [one["value"], *(end for end in (one["low"], one["high"]) if end is not None), *(at for at, _ in limits)]
    start, end = (0.0, 1.0) if not difference and 0 <= min(known) <= max(known) <= 1 else _around(known)

    def place(value: float) -> str:
        return f"{100 * (value - start) / (end - start):.2f}%"

    write = signed_value if difference else shown_value

    def mark(value: float) -> dict[str, str]:
        at = place(value)
        return {"at": at, "said": _plain(value, sign=difference), "anchor": _anchor(at)}

    ends = (one["low"], one["high"])
    return {
        "limits": [mark(at) for at, _ in limits],
        "wrong": [_side(place(at), below=below) for at, below in limits if below is not None],
        "at": place(one["value"]),
        "ends": None if None in ends else [place(end) for end in ends],
        "ticks": [mark(tick) for tick in (start, (start + end) / 2, end)],
        "said": f"Limit {' and '.join(_plain(at, sign=difference) for at, _ in limits)}, value {write(one['value'])}, "
        f"{_interval(one)}{one['verdict']}.",
    }


def _interval(one: Json) -> str:
    said = shown_interval(one["low"], one["high"])
    return f"interval {said}, " if said else ""


def _limits(one: Json, *, difference: bool) -> list[tuple[float, bool | None]]:
    """Limits, each with whether what lies below it is wrong; None where that cannot be told."""
    rule = one["rule"]
    demand = next(each for each in Demand if each in rule)
    if not difference:
        return [(rule[demand], demand is Demand.MIN)]
    margin = rule.get("margin", 0.0)
    if demand is Demand.EQUIVALENT:
        return [(-margin, True), (margin, False)]
    lower = _lower_is_better(rule["metric"])
    limit = margin if demand is Demand.BETTER else -margin
    if lower is None:
        return [(limit, None)]
    return [(-limit, False) if lower else (limit, True)]


def _lower_is_better(metric: str) -> bool | None:
    """By the card of the metric; None for an expression of several."""
    key = _key(metric)
    return None if not key else describe_metric(metric_by_name(key)).orientation == "lower_is_better"


def _around(known: Sequence[float]) -> tuple[float, float]:
    """Round ends of an axis that holds all of them, with room at both sides."""
    low, high = min([0.0, *known]), max([0.0, *known])
    reach = max(high - low, 1e-9)
    step = 10.0 ** math.floor(math.log10(reach))
    step = step / 2 if reach / step < 2 else step
    return math.floor((low - 0.05 * reach) / step) * step, math.ceil((high + 0.05 * reach) / step) * step


def _plain(value: float, *, sign: bool) -> str:
    text = f"{abs(value):g}" if abs(value) >= 1e-9 else "0"
    return text if text == "0" else f"−{text}" if value < 0 else f"+{text}" if sign else text


def _anchor(place: str) -> str:
    at = float(place.rstrip("%"))
    return "start" if at < 8 else "end" if at > 92 else "middle"


def _side(place: str, *, below: bool) -> dict[str, str]:
    at = float(place.rstrip("%"))
    return {"x": "0" if below else place, "width": place if below else f"{100 - at:.2f}%"}
