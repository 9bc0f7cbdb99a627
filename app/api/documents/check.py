"""A gate check as a document: the verdict first, then each rule, then what would settle what is open."""

from collections.abc import Iterator, Sequence
from typing import Final

from app.api.documents.document import (
    MARKDOWN,
    PAGE,
    SHORT,
    TEXT,
    Cell,
    Column,
    Document,
    Estimate,
    Facet,
    Group,
    Json,
    Link,
    Name,
    Records,
    Rule,
    Rules,
    Said,
    Section,
    Table,
    Tag,
    Words,
    Written,
)
from app.api.documents.reading import counted, dataset_name, interval_words, run_name, run_title
from app.domain.catalogue import describe_metric, metric_by_name
from app.domain.errors import NotFound
from app.domain.rules import Bound, Demand
from app.domain.wording import about, significant, whole

_ORDER: Final = ("fail", "inconclusive", "pass")
_MOST_SAID: Final = 3
_HEADS: Final = ("rule", "verdict", "quantity", "value", "low", "high", "needed_samples")
# Of a rule that looks at another end than usual.
_GUARDS: Final = {Demand.MIN: "not surely below", Demand.MAX: "not surely above"}
_SIGNS: Final = {Demand.MIN: ">=", Demand.MAX: "<="}
_COMPARED: Final = {Demand.NOT_WORSE: "worse", Demand.BETTER: "better", Demand.EQUIVALENT: "the same within"}


def check_document(answer: Json) -> Document:
    """Return the document of a check.

    Args:
        answer: As it is answered in JSON.
    """
    gate, verdict, run, baseline = answer["gate"], answer["verdict"], answer["evaluation"], answer.get("baseline")
    name, data, results = run_name(run["model"]), run["dataset"], answer["results"]
    path = f"gates/{gate['name']}/checks/{answer['id']}"
    against = ("", "") if baseline is None else (" against ", Name(run_name(baseline["model"])))
    as_all = sum(one["verdict"] == verdict for one in results)
    ordered = sorted(results, key=lambda one: _ORDER.index(one["verdict"]))
    findings = [Said(one["severity"], one["message"]) for one in answer.get("findings") or ()]
    lede = " Differences are candidate less baseline." if baseline is not None else ""
    head = f"{verdict.upper()} (exit {answer['exit_code']})  gate {gate['name']}, version {gate['version']}"
    said = (Name(name), *against, " on ", Name(dataset_name(data)))
    split = f" split={_attribute(data['split'])}" if data.get("split") else ""
    return Document(
        title=f"{name}: {verdict}",
        of=f"Gate {gate['name']}, version {gate['version']}",
        on=dataset_name(data),
        heading=(head, run_title(run)),
        markdown=[
            f"<!-- prevail gate={_attribute(gate['name'])} dataset={_attribute(data['name'])}{split} -->",
            ("### ", SIGNS[verdict], " Gate ", Name(gate["name"]), f": {verdict}"),
            (*said, f". **{_verdict_sentence(verdict, as_all, len(results))}**"),
            "",
        ],
        meta=list(_meta(answer)),
        created_at=answer["created_at"],
        identifier=answer["id"],
        verdict=_summary(results),
        banner=Tag(verdict, verdict.capitalize()),
        opening=[Said(one.kind, one.text, only=PAGE) for one in findings],
        sections=[
            Section(
                "rules",
                "Rules",
                [
                    _table(results),
                    Rules(_counted(results), [_rule(one) for one in ordered]),
                    *_why(answer),
                    *_settled_by(results),
                    *_baseline_note(baseline),
                    *(Said(one.kind, one.text, only=SHORT) for one in findings),
                ],
                f"All have to pass.{lede} The hatched side of a limit is the wrong one.",
            )
        ],
        path=path,
        footer=(f"gate version {gate['version']} · check ", Name(answer["id"])),
        records=Records(
            _HEADS,
            [
                (
                    "".join(rule_words(one["rule"])),
                    one["verdict"],
                    one.get("quantity", "samples"),
                    *(one[fact] for fact in _HEADS[3:]),
                )
                for one in results
            ],
        ),
    )


SIGNS: Final = {"pass": "✅", "fail": "❌", "inconclusive": "⚠️"}


def rule_words(rule: Json) -> Words:
    """Return a rule in a few words, the name of its metric among them."""
    if "minimum_samples" in rule:
        return (f"at least {whole(rule['minimum_samples'])} samples",)
    demand = next(one for one in Demand if one in rule)
    bound, metric = Bound(rule["bound"]), Name(rule["metric"])
    by_value = ", by its value alone" if bound is Bound.VALUE else ""
    if demand in _SIGNS:
        if bound is Bound.UPPER:
            return (metric, f" {_GUARDS[demand]} {_plain(rule[demand])}")
        return (metric, f" {_SIGNS[demand]} {_plain(rule[demand])}{by_value}")
    margin = rule.get("margin", 0.0)
    by = f" by {_plain(margin)}" if margin and demand is not Demand.EQUIVALENT else ""
    if demand is Demand.EQUIVALENT:
        return (metric, f" {_COMPARED[demand]} {_plain(margin)}{by_value}")
    denied = "not " if demand is Demand.NOT_WORSE else ""
    sure = "surely " if bound is Bound.UPPER and demand is Demand.NOT_WORSE else ""
    guard = "not surely not " if bound is Bound.UPPER and demand is Demand.BETTER else ""
    return (metric, f" {guard}{denied}{sure}{_COMPARED[demand]}{by}{by_value}")


def rule_text(rule: Json) -> str:
    """Return a rule in a few words as one text."""
    return "".join(rule_words(rule))


def _plain(value: float) -> str:
    return significant(value, 6)


def estimate_of(one: Json) -> Estimate | Written:
    """Return the value that a rule was held against, or the number of samples."""
    if "minimum_samples" in one["rule"]:
        return counted(one["value"])
    difference = one["quantity"] == "difference"
    near = tuple(limit for limit, _ in limits_of(one))
    return Estimate(one["value"], one["low"], one["high"], sign=difference, near=near)


def _table(results: Sequence[Json]) -> Table:
    levels = {one["rule"]["level"] for one in results if "level" in one["rule"]}
    columns = [
        Column("", 0, width=12),
        Column("rule", 1, named=True, width=32, gap=1),
        Column("value", 2, Facet.VALUE, right=True, width=6, gap=1),
        Column(interval_words(levels.pop() if len(levels) == 1 else None), 2, Facet.INTERVAL),
        Column("", 3, only=TEXT, gap=1),
        Column("", 4, only=MARKDOWN),
    ]
    rows = [
        [
            Tag(one["verdict"], one["verdict"]),
            rule_words(one["rule"]),
            estimate_of(one),
            _class_of(one),
            _remark(one),
        ]
        for one in results
    ]
    return Table("Rules", columns, [Group(rows)], only=SHORT)


def _class_of(one: Json) -> str:
    """Return the class that decides: of ``recall@D`` what comes from the sign on."""
    decided = str(one.get("decided_by") or "")
    return decided[decided.index("@") :] if "@" in decided else decided


def _remark(one: Json) -> Words:
    if one["needed_samples"] is not None:
        return f"about {about(one['needed_samples'])} samples would settle it"
    return ("decided by ", Name(one["decided_by"])) if one.get("decided_by") else ""


def _verdict_sentence(verdict: str, counted: int, rules: int) -> str:
    if verdict == "pass":
        return f"All {rules} rules pass." if rules > 1 else "The rule passes."
    said = f"{counted} of {_rules(rules)}"
    return f"{said} cannot be decided with this test set." if verdict == "inconclusive" else f"{said} failed."


def _why(answer: Json) -> list[Said]:
    if answer["exit_code"] == 0:
        return []
    said = [one["message"] for one in answer["results"] if one["verdict"] == answer["verdict"]]
    if len(said) > _MOST_SAID:
        said[_MOST_SAID:] = [f'{len(said) - _MOST_SAID} more: in "results"']
    return [Said("WHY", one, only=TEXT) for one in said]


def _settled_by(results: Sequence[Json]) -> list[Said]:
    needed = {
        one["rule"]["metric"]: one["needed_samples"]
        for one in results
        if one["needed_samples"] is not None and "metric" in one["rule"]
    }
    if not needed:
        return []
    first, *rest = [f"{about(count)}{{}} for {metric}" for metric, count in needed.items()]
    each = ", ".join([first.replace("{}", " samples"), *(one.replace("{}", "") for one in rest)])
    return [Said("SETTLE", f"about {each}, if the values stay as they are.", only=TEXT)]


def _baseline_note(baseline: Json | None) -> list[Said]:
    if baseline is None:
        return []
    return [Said("NOTE", f"Differences are to the baseline {run_title(baseline)}.", only=TEXT)]


def _attribute(text: str) -> str:
    """Return a name within a comment of HTML, which it must not end."""
    return "".join(one if one.isascii() and (one.isalnum() or one in "._/:+-") else "_" for one in text).replace(
        "--", "_"
    )


# --- pages -----------------------------------------------------------------------------------------------------------


def _meta(answer: Json) -> Iterator[tuple[str, Cell]]:
    run, baseline = answer["evaluation"], answer.get("baseline")
    yield "run", Link(run_name(run["model"]), f"ui/evaluations/{run['id']}", run["id"])
    if baseline is not None:
        yield "baseline", Link(run_name(baseline["model"]), f"ui/evaluations/{baseline['id']}", baseline["id"])
    yield "data", Name(dataset_name(run["dataset"]))
    yield "exit code", str(answer["exit_code"])
    yield "gate", Link(answer["gate"]["name"], f"ui/gates/{answer['gate']['name']}")


def _counts(results: Sequence[Json]) -> dict[str, int]:
    return {word: sum(one["verdict"] == word for one in results) for word in _ORDER}


def _counted(results: Sequence[Json]) -> str:
    counts = ", ".join(f"{count} {word}" for word, count in _counts(results).items() if count)
    return f"{counts} of {_rules(len(results))}."


def _summary(results: Sequence[Json]) -> str:
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


def _rule(one: Json) -> Rule:
    metric = one["rule"].get("metric")
    return Rule(
        verdict=one["verdict"],
        title="Samples" if metric is None else _name(metric),
        key="" if metric is None else _key(metric),
        demand=rule_text(one["rule"]),
        estimate=estimate_of(one),
        limits=limits_of(one),
        decided=one.get("decided_by") or "",
        message=one["message"],
    )


def _key(metric: str) -> str:
    """Return the metric of a rule as the catalogue has it; empty for an expression of several."""
    key = metric.partition("@")[0].strip()
    try:
        return metric_by_name(key.partition("(")[0]).key
    except NotFound:
        return ""


def _name(metric: str) -> str:
    _, at, label = metric.partition("@")
    found = _key(metric)
    if not found or "(" in metric:
        return metric
    of = f" of {label}" if at and label != "*" else " of every class" if at else ""
    name = describe_metric(metric_by_name(found)).name
    return f"{name[:1].upper()}{name[1:]}{of}"


def limits_of(one: Json) -> list[tuple[float, bool | None]]:
    """Return the limits of a rule, each with whether what lies below it is wrong; None where that cannot be told."""
    rule = one["rule"]
    if "minimum_samples" in rule:
        return []
    demand = next(each for each in Demand if each in rule)
    if one["quantity"] != "difference":
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
    """Return the direction by the card of the metric; None for an expression of several."""
    key = _key(metric)
    return None if not key else describe_metric(metric_by_name(key)).orientation == "lower_is_better"
