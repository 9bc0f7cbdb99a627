"""A gate check as a document: the verdict first, then each rule, then what would settle what is open."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from app.api.documents.document import (
    PAGE,
    SHORT,
    Cell,
    Column,
    Document,
    Estimate,
    Group,
    Json,
    Kind,
    Link,
    Name,
    Rules,
    Said,
    Section,
    Table,
    Tag,
    Words,
)
from app.api.documents.reading import counted, interval_words, naming, units_of
from app.domain.catalogue import describe_metric, metric_by_name, titled
from app.domain.errors import NotFound
from app.domain.rules import Bound, Demand
from app.domain.wording import about, numbered, printable, run_title, sentence, significant

# Verdicts, the worst first.
WORST_FIRST: Final = ("fail", "inconclusive", "pass")
_MOST_SAID: Final = 3
_HEADS: Final = ("rule", "verdict", "quantity", "value", "low", "high", "needed_samples")
# Signs and words of a rule in a few words, and what they are where the metric is said by its name.
_IN_WORDS: Final = {
    ">=": "at least",
    "<=": "at most",
    "worse by": "worse than the baseline by more than",
    "better by": "better than the baseline by more than",
    "the same within": "the same as the baseline within",
}


def check_document(answer: Json) -> Document:
    """Return the document of a check, which is given as it is answered in JSON."""
    gate, verdict, results = answer["gate"], answer["verdict"], answer["results"]
    ordered = sorted(results, key=lambda one: WORST_FIRST.index(one["verdict"]))
    keys = [one["rule"]["metric"] for one in results if "metric" in one["rule"]]
    differences = " Differences are candidate less baseline." if answer.get("baseline") is not None else ""
    return Document(
        title=("gate ", Name(gate["name"]), f", version {gate['version']}"),
        facts=list(_facts(answer)),
        created_at=answer["created_at"],
        identifier=answer["id"],
        banner=Tag(verdict, f"{verdict} (exit {answer['exit_code']})"),
        marker=_marker(answer),
        opening=[
            Said("result", _summary(results), PAGE),
            *(
                Said(one["severity"], naming(one["message"], {*keys, *(one.get("metrics") or ())}))
                for one in answer.get("findings") or ()
            ),
        ],
        sections=[
            Section(
                "rules",
                "Rules",
                [Rules(_summary(results), ordered, _table(results)), *_why(answer)],
                f"All have to pass.{differences} The hatched side of a limit is the wrong one.",
            )
        ],
        path=f"gates/{gate['name']}/checks/{answer['id']}",
        records=(
            _HEADS,
            [
                (
                    rule_text(one["rule"]),
                    one["verdict"],
                    one.get("quantity", "samples"),
                    *(one[fact] for fact in _HEADS[3:]),
                )
                for one in results
            ],
        ),
    )


def _facts(answer: Json) -> Iterator[tuple[str, Cell]]:
    gate, run, baseline = answer["gate"], answer["evaluation"], answer.get("baseline")
    yield "", Link(run_title(run), f"ui/evaluations/{run['id']}")
    yield "run", (Name(run["id"]),)
    if baseline is not None:
        yield "baseline", Link(run_title(baseline), f"ui/evaluations/{baseline['id']}")
    yield "gate", Link(gate["name"], f"ui/gates/{gate['name']}")


def _marker(answer: Json) -> str:
    """Return the comment by which a job finds its earlier comment on a pull request; no name ends it."""
    gate, data = answer["gate"], answer["evaluation"]["dataset"]
    named = {"gate": gate["name"], "dataset": data["name"], **({"split": data["split"]} if data.get("split") else {})}
    safe = {
        key: "".join(one if one.isascii() and (one.isalnum() or one in "._/:+-") else "_" for one in name)
        for key, name in named.items()
    }
    return f"<!-- prevail {' '.join(f'{key}={name}' for key, name in safe.items()).replace('--', '_')} -->"


def rule_words(rule: Json) -> Words:
    """Return a rule in a few words, the name of its metric among them."""
    if "minimum_samples" in rule:
        return (f"at least {numbered(rule['minimum_samples'])}",)
    demand, upper = _demanded(rule), rule["bound"] == Bound.UPPER
    margin = significant(rule.get("margin", 0.0), 6)
    by = f" by {margin}" if rule.get("margin") else ""
    match demand:
        case Demand.UNCHANGED:
            return (Name(rule["metric"]), " not changed since the last change")
        case Demand.MIN:
            said = f"{'not surely below' if upper else '>='} {significant(rule[demand], 6)}"
        case Demand.MAX:
            said = f"{'not surely above' if upper else '<='} {significant(rule[demand], 6)}"
        case Demand.EQUIVALENT:
            said = f"the same within {margin}"
        case Demand.NOT_WORSE:
            said = f"not {'surely ' if upper else ''}worse{by}"
        case Demand.BETTER:
            said = f"{'not surely not ' if upper else ''}better{by}"
    return (Name(rule["metric"]), f" {said}{', by its value alone' if rule['bound'] == Bound.VALUE else ''}")


def _demanded(rule: Json) -> Demand:
    return next(one for one in Demand if one in rule)


def rule_text(rule: Json) -> str:
    """Return a rule in a few words as one text."""
    return "".join(rule_words(rule))


def rule_said(rule: Json) -> str:
    """Return a rule as one says it: the metric by its name, and no signs."""
    if "minimum_samples" in rule:
        return sentence(rule_text(rule))
    return printable(f"{titled(rule['metric'])} {demand_said(rule)}")


def demand_said(rule: Json) -> str:
    """Return what a rule asks of its metric, without signs; the rule itself where that is about samples."""
    demand = "".join(rule_words(rule)[1:]).strip() or rule_text(rule)
    for sign, words in _IN_WORDS.items():
        demand = demand.replace(sign, words, 1)
    return demand


# --- rules -----------------------------------------------------------------------------------------------------------


def as_decided(one: Json) -> Json:
    """Return the result of a rule with the limits that decided in place of those of its level, as a picture has it."""
    if "minimum_samples" in one["rule"] or Demand.UNCHANGED in one["rule"]:
        return one
    return {**one, "low": one["decided_on"]["low"], "high": one["decided_on"]["high"]}


def estimate_of(one: Json) -> Estimate | str:
    """Return the value that a rule was held against, or the number of samples."""
    if "minimum_samples" in one["rule"]:
        return counted(one["value"])
    near = tuple(limit for limit, _ in limits_of(one))
    return Estimate(one["value"], one["low"], one["high"], sign=one["quantity"] == "difference", near=near)


def _table(results: Sequence[Json]) -> Table:
    levels = {one["level"] for one in results if "level" in one}
    columns = [Column("verdict"), Column("rule", Kind.NAME), Column("value", Kind.ESTIMATE), Column("")]
    rows: list[list[Cell]] = []
    for one in results:
        # The class that decides, ``@D`` of ``recall@D``; none of a rule of one value.
        _, at, label = str(one.get("decided_by") or "").partition("@")
        of_class = (Name(at + label),) if at else ""
        rows.append([Tag(one["verdict"], one["verdict"]), rule_words(one["rule"]), estimate_of(one), of_class])
    return Table("Rules", columns, [Group(rows)], interval_words(levels.pop() if len(levels) == 1 else None))


def _summary(results: Sequence[Json]) -> str:
    counts = {word: sum(one["verdict"] == word for one in results) for word in WORST_FIRST}
    rules = numbered(len(results), "rules")
    if counts["pass"] == len(results):
        return f"{'The rule holds' if len(results) == 1 else f'All {rules} hold'}."
    said = {
        "fail": f"{counts['fail']} of {rules} {'fails' if counts['fail'] == 1 else 'fail'}",
        "inconclusive": f"{counts['inconclusive']} cannot be decided with these samples",
        "pass": f"{counts['pass']} {'passes' if counts['pass'] == 1 else 'pass'}",
    }
    return ", ".join(text for word, text in said.items() if counts[word] or word == "fail") + "."


def _why(answer: Json) -> Iterator[Said]:
    """Yield why the verdict is as it is, what would settle it, and what differences are to."""
    results, baseline = answer["results"], answer.get("baseline")
    if answer["exit_code"]:
        said = [one["message"] for one in results if one["verdict"] == answer["verdict"]]
        more = [f'{len(said) - _MOST_SAID} more: in "results"'] if len(said) > _MOST_SAID else []
        yield Said("why", " ".join([*said[:_MOST_SAID], *more]), SHORT)
    needed: dict[str, int] = {}
    for one in results:
        if one["needed_samples"] is not None and "metric" in one["rule"]:
            metric = one["rule"]["metric"]
            needed[metric] = max(needed.get(metric, 0), one["needed_samples"])
    if needed:
        each = ", ".join(f"{about(count)} {units_of(metric)} for {metric}" for metric, count in needed.items())
        yield Said("settle", f"about {each}, if the values stay as they are.", SHORT)
    if baseline is not None:
        yield Said("note", f"Differences are to the baseline {run_title(baseline)}.", SHORT)


def known_key(metric: str) -> str:
    """Return the metric of a rule as the catalogue has it; empty for an expression of several."""
    key = metric.partition("@")[0].strip()
    try:
        return metric_by_name(key.partition("(")[0]).key
    except NotFound:
        return ""


def limits_of(one: Json) -> list[tuple[float, bool | None]]:
    """Return the limits of a rule, each with whether what lies below it is wrong; None where that cannot be told."""
    rule = one["rule"]
    if "minimum_samples" in rule:
        return [(rule["minimum_samples"], True)]
    demand = _demanded(rule)
    if demand is Demand.UNCHANGED:
        band = one["decided_on"]
        return [] if band["low"] is None else [(band["low"], True), (band["high"], False)]
    if one["quantity"] != "difference":
        return [(rule[demand], demand is Demand.MIN)]
    margin = rule.get("margin", 0.0)
    if demand is Demand.EQUIVALENT:
        return [(-margin, True), (margin, False)]
    limit, key = margin if demand is Demand.BETTER else -margin, known_key(rule["metric"])
    if not key:
        # The direction of an expression of several metrics is not known.
        return [(limit, None)]
    lower = describe_metric(metric_by_name(key)).orientation == "lower_is_better"
    return [(-limit, False) if lower else (limit, True)]


def axis_of(known: Sequence[float], *, sign: bool) -> tuple[float, float]:
    """Return the ends of an axis with these values: 0 and 1 where everything lies there, else round ones with room at
    both sides, but for a 0 that nothing lies below; ``sign``: they are differences.
    """
    if not sign and 0 <= min(known) <= max(known) <= 1:
        return 0.0, 1.0
    low, high = min([0.0, *known]), max([0.0, *known])
    reach = max(high - low, 1e-9)
    step = 10.0 ** math.floor(math.log10(reach))
    step = step / 2 if reach / step < 2 else step
    start = 0.0 if low == 0.0 and not sign else math.floor((low - 0.05 * reach) / step) * step
    return start, math.ceil((high + 0.05 * reach) / step) * step
