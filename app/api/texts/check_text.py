"""A gate check as a text: the verdict first, then each rule, then what would settle what is open."""

from collections.abc import Callable, Mapping
from typing import Any

from app.api.texts.lines import Style, columns_of, left, limits, opposite, right, shown, signed, wrapped
from app.api.texts.names import run_title
from app.domain.rules import Bound, Demand
from app.domain.wording import about, number, percent, whole

_RULE, _VALUE, _WIDTH_OF_VALUE, _MOST_SAID = 15, 48, 6, 3
# What a rule that looks at another end than usual says of it, by whether it is about a baseline.
_GUARDS = {Demand.MIN: "not surely below", Demand.MAX: "not surely above"}
_SIGNS = {Demand.MIN: ">=", Demand.MAX: "<="}
_COMPARED = {Demand.NOT_WORSE: "worse", Demand.BETTER: "better", Demand.EQUIVALENT: "the same within"}


def check_text(answer: Mapping[str, Any], style: Style) -> str:
    """What a gate says of an evaluation.

    Args:
        answer: A check as it is answered in JSON.
        style: Width and characters.
    """
    gate, verdict = answer["gate"], answer["verdict"]
    head = f"{verdict.upper()} (exit {answer['exit_code']})  gate {shown(gate['name'])}, version {gate['version']}"
    lines = opposite(head, run_title(answer["evaluation"]), style.width)
    levels = {one["rule"]["level"] for one in answer["results"] if "level" in one["rule"]}
    interval = f"{percent(levels.pop(), None)} interval" if len(levels) == 1 else "interval"
    lines.append(left(left("", _RULE) + "rule", _VALUE - 3) + "  value".rjust(_WIDTH_OF_VALUE + 3) + f"  {interval}")
    for result in answer["results"]:
        lines += _row(result)
    lines += _why(answer, style)
    lines += _settled_by(answer, style)
    if answer.get("baseline") is not None:
        said = f"Differences are to the baseline {run_title(answer['baseline'])}."
        lines += wrapped("NOTE", said, style.width)
    for finding in answer.get("findings") or ():
        lines += wrapped(finding["severity"].upper(), shown(finding["message"]), style.width)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def rule_words(rule: Mapping[str, Any], name: Callable[[str], str] = shown) -> str:
    """A rule in a few words; ``name`` writes its metric."""
    if "minimum_samples" in rule:
        return f"at least {whole(rule['minimum_samples'])} samples"
    demand = next(one for one in Demand if one in rule)
    bound, metric = Bound(rule["bound"]), name(rule["metric"])
    by_value = ", by its value alone" if bound is Bound.VALUE else ""
    if demand in _SIGNS:
        if bound is Bound.UPPER:
            return f"{metric} {_GUARDS[demand]} {_plain(rule[demand])}"
        return f"{metric} {_SIGNS[demand]} {_plain(rule[demand])}{by_value}"
    margin = rule.get("margin", 0.0)
    by = f" by {_plain(margin)}" if margin and demand is not Demand.EQUIVALENT else ""
    if demand is Demand.EQUIVALENT:
        return f"{metric} {_COMPARED[demand]} {_plain(margin)}{by_value}"
    denied = "not " if demand is Demand.NOT_WORSE else ""
    sure = "surely " if bound is Bound.UPPER and demand is Demand.NOT_WORSE else ""
    guard = "not surely not " if bound is Bound.UPPER and demand is Demand.BETTER else ""
    return f"{metric} {guard}{denied}{sure}{_COMPARED[demand]}{by}{by_value}"


def _plain(value: float) -> str:
    return f"{value:g}"


def shown_value(result: Mapping[str, Any]) -> str:
    """The value of a rule: a number of samples, a difference with its sign, or a metric."""
    if "minimum_samples" in result["rule"]:
        return "-" if result["value"] is None else whole(result["value"])
    return signed(result["value"]) if result["quantity"] == "difference" else number(result["value"])


def shown_limits(result: Mapping[str, Any]) -> str:
    """Its interval."""
    return limits(result["low"], result["high"], sign=result.get("quantity") == "difference")


def _row(result: Mapping[str, Any]) -> list[str]:
    words, value = rule_words(result["rule"]), shown_value(result)
    decided = f" {_class_of(result)}" if result.get("decided_by") else ""
    end = right(value, _WIDTH_OF_VALUE + 1) + "  " + shown_limits(result) + decided
    line = "  " + left(result["verdict"], _RULE - 2) + words
    if columns_of(line) > _VALUE - 1:
        return [line, " " * (_VALUE - 1) + end]
    return [left(line, _VALUE - 1) + end]


def _class_of(result: Mapping[str, Any]) -> str:
    """The class that decides: of ``recall@D`` what comes from the sign on."""
    decided = shown(result["decided_by"])
    return decided[decided.index("@") :] if "@" in decided else decided


def _why(answer: Mapping[str, Any], style: Style) -> list[str]:
    if answer["exit_code"] == 0:
        return []
    said = [shown(one["message"]) for one in answer["results"] if one["verdict"] == answer["verdict"]]
    lines: list[str] = []
    for place, message in enumerate(said[:_MOST_SAID]):
        lines += wrapped("" if place else "WHY", message, style.width)
    if len(said) > _MOST_SAID:
        lines += wrapped("", f'{len(said) - _MOST_SAID} more: in "results"', style.width)
    return lines


def _settled_by(answer: Mapping[str, Any], style: Style) -> list[str]:
    needed = {
        shown(one["rule"]["metric"]): one["needed_samples"]
        for one in answer["results"]
        if one["needed_samples"] is not None and "metric" in one["rule"]
    }
    if not needed:
        return []
    each = ", ".join(f"{about(samples)} for {metric}" for metric, samples in needed.items())
    return wrapped("SETTLE", f"about {each} samples, if the values stay as they are.", style.width)
