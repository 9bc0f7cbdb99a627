"""Answers in Markdown: a comment on a pull request, the summary of a job.

Names stand in code spans, where neither a mention nor a link nor a tag does anything.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from app.api.texts.check_text import rule_words, shown_limits, shown_value
from app.api.texts.comparison_text import chances, pairing_sentence, result_sentence
from app.api.texts.lines import limits, shown, signed
from app.api.texts.names import dataset_name, run_name, run_names
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
from app.domain.named_metrics import RECALL
from app.domain.wording import about, number, percent, whole

_MOST_ROWS, _MOST_CLASSES = 60, 30
_SIGNS = {"pass": "✅", "fail": "❌", "inconclusive": "⚠️"}
_SEVERITIES = {"critical": "❌", "warning": "⚠️", "note": "ℹ️"}
# What is special in Markdown or in HTML, and what makes a mention.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~@-])")


def code(text: str) -> str:
    """A name as a code span: longer fences than any within, and no end of a table's cell."""
    text = shown(text)
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    room = " " if text.startswith("`") or text.endswith("`") or not text.strip() else ""
    return f"{fence}{room}{text}{room}{fence}".replace("|", "\\|")


def prose(text: str) -> str:
    """A sentence in which nothing is markup."""
    return _SPECIAL.sub(r"\\\1", shown(text))


def table(heads: Sequence[str], numeric: Iterable[int], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table with the columns ``numeric`` to the right."""
    right = set(numeric)
    rule = ["---:" if place in right else "---" for place in range(len(heads))]
    return [f"| {' | '.join(cells)} |" for cells in (heads, rule, *rows)]


def evaluation_markdown(answer: Mapping[str, Any]) -> str:
    """An evaluation: findings, the values to look at first, the weakest classes."""
    lines = [f"### {_title(answer)}", *_size(answer)]
    lines += [
        f"- {_SEVERITIES[one['severity']]} **{one['severity']}** {prose(one['message'])}"
        for one in by_severity(said_once(answer["findings"]))
    ]
    heads = ("metric", "value", "interval", "changes with the class mix", "at equal class sizes")
    lines += ["", *table(heads, (1, 4), list(_values(answer))[:_MOST_ROWS]), *_weakest(answer)]
    if answer["undefined"]:
        lines += ["", f"{len(answer['undefined'])} values do not exist; the JSON has the reasons."]
    return _joined(lines, answer, "evaluations")


def _size(answer: Mapping[str, Any]) -> list[str]:
    given = answer["input"]
    if not has_classes(answer):
        return []
    samples = "" if given.get("n_samples") is None else f"{whole(given['n_samples'])} samples, "
    outcomes = "classes" if given.get("confusion_matrix") is not None else "labels"
    return [f"{samples}{given['n_classes']} {outcomes}.", ""]


def _values(answer: Mapping[str, Any]) -> Iterator[list[str]]:
    """What to look at first, and what was requested."""
    metrics = answer["metrics"]
    for key in chain.from_iterable(shown_first(answer)):
        moves = key in metrics["prevalence_sensitive"]
        twin = metrics["at_balanced_prevalence"].get(key) if moves else None
        ends = limits(*ends_of(answer, key))
        yield [code(key), number(value_of(answer, key)[1]), ends, "yes" if moves else "no", number(twin)]
    for text, value in answer["requested"].items():
        if not isinstance(value, Mapping):
            yield [code(text), number(value), limits(*ends_of(answer, text)), "", "-"]


def _weakest(answer: Mapping[str, Any]) -> list[str]:
    recalls = recalls_of(answer)
    if not recalls:
        return []
    rows = [
        [code(label), number(recalls[label]), limits(*ends_of(answer, f"{RECALL}@{write_label(label)}"))]
        for label in weakest_classes(answer)[:_MOST_CLASSES]
    ]
    more = len(recalls) - _MOST_CLASSES
    rest = ["", f"{more} more classes: in the JSON."] if more > 0 else []
    return ["", *table(("class", RECALL, "interval"), (1,), rows), *rest]


def check_markdown(answer: Mapping[str, Any]) -> str:
    """A gate check as one comment; its first line finds it again."""
    gate, run, verdict = answer["gate"], answer["evaluation"], answer["verdict"]
    data = run["dataset"]
    split = f" split={_attribute(data['split'])}" if data.get("split") else ""
    against = f" against {code(run_name(answer['baseline']['model']))}" if answer.get("baseline") else ""
    counted = [one for one in answer["results"] if one["verdict"] == verdict]
    lines = [
        f"<!-- prevail gate={_attribute(gate['name'])} dataset={_attribute(data['name'])}{split} -->",
        f"### {_SIGNS[verdict]} Gate {code(gate['name'])}: {verdict}",
        f"{code(run_name(run['model']))}{against} on {code(dataset_name(data))}. "
        f"**{_verdict_sentence(verdict, len(counted), len(answer['results']))}**",
        "",
    ]
    rows = [
        [
            f"{_SIGNS[one['verdict']]} {one['verdict']}",
            rule_words(one["rule"], code),
            shown_value(one),
            shown_limits(one),
            _remark(one),
        ]
        for one in answer["results"]
    ]
    lines += table(("", "rule", "value", "interval", ""), (2,), rows)
    for finding in answer.get("findings") or ():
        lines += ["", prose(finding["message"])]
    lines += ["", f"gate version {gate['version']} · check {code(str(answer['id']))}"]
    return "\n".join(lines) + "\n"


def _verdict_sentence(verdict: str, counted: int, rules: int) -> str:
    if verdict == "pass":
        return f"All {rules} rules pass." if rules > 1 else "The rule passes."
    said = f"{counted} of {rules} rules"
    return f"{said} cannot be decided with this test set." if verdict == "inconclusive" else f"{said} failed."


def _remark(result: Mapping[str, Any]) -> str:
    if result["needed_samples"] is not None:
        return f"about {about(result['needed_samples'])} samples would settle it"
    return f"decided by {code(result['decided_by'])}" if result.get("decided_by") else ""


def comparison_markdown(answer: Mapping[str, Any]) -> str:
    """A comparison: what differs, and how sure that is."""
    if "average_ranks" in answer:
        return _tournament_markdown(answer)
    runs = answer["evaluations"]
    names = run_names(runs)
    by_id = {run["id"]: name for run, name in zip(runs, names, strict=True)}
    two = len(runs) == 2
    lines = [f"### {' against '.join(code(name) for name in names) if two else f'{len(runs)} runs compared'}"]
    lines += [prose(pairing_sentence(answer["design"])), ""]
    if two:
        lines += [f"**{result_sentence(answer, code)}**", ""]
    rows = []
    for name, metric in answer["metrics"].items():
        values = {run["id"]: value for run, value in zip(runs, metric["values"], strict=True)}
        rows += [
            [
                code(name),
                *([] if two else [code(by_id[pair["a"]]), code(by_id[pair["b"]])]),
                number(values[pair["a"]]),
                number(values[pair["b"]]),
                signed(pair["difference"]),
                limits(pair["low"], pair["high"], sign=True),
                *chances(pair),
            ]
            for pair in metric["differences"]
        ]
    first = code(names[0]) if two else "its value"
    second = code(names[1]) if two else "its value"
    heads = ["metric", *([] if two else ["run", "against"]), first, second, "difference", "interval"]
    heads += ["better", "same", "worse"]
    start = len(heads) - 7
    lines += table(heads, (start, start + 1, start + 2, start + 4, start + 5, start + 6), rows[:_MOST_ROWS])
    if len(rows) > _MOST_ROWS:
        lines += ["", f"{len(rows) - _MOST_ROWS} more rows: in the JSON."]
    for said in (*(one["message"] for one in answer.get("findings") or ()), *answer["notes"]):
        lines += ["", prose(said)]
    return _joined(lines, answer, "comparisons")


def _tournament_markdown(answer: Mapping[str, Any]) -> str:
    models = [run_name(model) for model in answer["models"]]
    lines = [f"### {len(models)} models on {len(answer['datasets'])} datasets by {code(answer['metric'])}", ""]
    order = sorted(range(len(models)), key=answer["average_ranks"].__getitem__)
    rows = []
    for place in order:
        alike = sorted({other for clique in answer["cliques"] if place in clique for other in clique} - {place})
        names = ", ".join(code(models[other]) for other in alike)
        rows.append([code(models[place]), number(answer["average_ranks"][place]), names])
    lines += table(("model", "average rank", "cannot be told apart from"), (1,), rows[:_MOST_ROWS])
    return _joined(lines, answer, "comparisons")


def leaderboard_markdown(answer: Mapping[str, Any]) -> str:
    """A leaderboard as a table."""
    lines = [f"### {code(dataset_name(answer['dataset']))} by {code(answer['metric'])}", ""]
    rows = [
        [
            "-" if item["rank"] is None else str(item["rank"]),
            code(run_name(item["model"])),
            number(item["value"]),
            limits(item["low"], item["high"]),
            "-" if item["group"] is None else str(item["group"]),
        ]
        for item in answer["items"]
    ]
    interval = f"{percent(answer['level'], None)} interval"
    lines += table(("rank", "model", "value", interval, "group"), (0, 2, 4), rows)
    lines += ["", "Models of one group cannot be told apart from the best of it."]
    if answer.get("winner") is not None:
        lines += ["", prose(answer["winner"]["message"])]
    return "\n".join(lines) + "\n"


def _title(answer: Mapping[str, Any]) -> str:
    model, dataset = run_name(answer.get("model")), dataset_name(answer.get("dataset"))
    if not model:
        return "Evaluation"
    return f"{code(model)} on {code(dataset)}" if dataset else code(model)


def _attribute(text: str) -> str:
    """A name within a comment of HTML, which it must not end."""
    return re.sub(r"[^A-Za-z0-9._/:+-]|--+", "_", shown(text))


def _joined(lines: Sequence[str], answer: Mapping[str, Any], noun: str) -> str:
    end = [] if answer.get("id") is None else ["", f"[full answer](/v1/{noun}/{answer['id']})"]
    return "\n".join([*lines, *end]) + "\n"
