"""What a page about one evaluation says, read from its answer: findings, metrics, classes, what has no value."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from app.api.plots.matrices import beside_each_other
from app.api.report.numbers import decimals, shown_interval, shown_value, strip
from app.api.texts.lines import shown
from app.api.texts.names import dataset_name, run_name
from app.api.texts.reading import (
    by_severity,
    class_word,
    ends_of,
    has_classes,
    precision_of,
    recalls_of,
    said_once,
    shown_first,
    value_of,
    weakest_classes,
)
from app.domain.catalogue import describe_metric, metric_by_name
from app.domain.errors import DomainError
from app.domain.expressions.syntax import write_label
from app.domain.named_metrics import F1, PRECISION, RECALL
from app.domain.wording import percent, share, whole

Json = Mapping[str, Any]
_MOST_FINDINGS: Final = 4
# A matrix with so many classes has its counts in the cells, one with so many is a table at all.
_LARGE_CELLS, _MOST_CELLS = 7, 60
_MOST_CLASSES, _MOST_MISTAKES, _MOST_UNDEFINED = 40, 10, 60
_BREAKS: Final = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
_ICONS: Final = {"critical": "Critical", "warning": "Warning", "note": "Note"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueRow:
    """One metric as a row: its value, its interval, and the same at equal class shares."""

    key: str
    name: str
    sentence: str
    value: str
    interval: str
    track: Json | None
    twin: str
    twin_interval: str
    twin_track: Json | None
    reason: str


def evaluation_page(answer: Json) -> dict[str, Any]:
    """Everything that the template writes.

    Args:
        answer: An evaluation as it is answered in JSON.
    """
    same, moved, losses = shown_first(answer)
    findings = by_severity(said_once(answer["findings"]))
    rows = {key: _row(answer, key) for key in (*same, *moved, *losses)}
    return {
        "title": run_name(answer.get("model")) or "Evaluation, not kept",
        "on": _on(answer),
        "meta": list(_meta(answer)),
        "tags": [(shown(name), shown(value)) for name, value in answer.get("tags", {}).items()],
        "created_at": answer.get("created_at"),
        "id": answer.get("id"),
        "verdict": _verdict(answer, findings),
        "findings": [_finding(one) for one in findings[:_MOST_FINDINGS]],
        "more_findings": [_finding(one) for one in findings[_MOST_FINDINGS:]],
        "level": _level(answer),
        "same": [rows[key] for key in same],
        "moved": [rows[key] for key in moved],
        "losses": [rows[key] for key in losses],
        "requested": list(_requested(answer)),
        "requested_notes": _notes(answer, answer["requested"]),
        "every": list(_every(answer, set(rows))),
        "matrix": _matrix(answer),
        "matrix_of_counts": answer["input"].get("confusion_matrix") is not None,
        "mistakes": _mistakes(answer),
        "classes": _classes(answer),
        "called": (class_word(answer), class_word(answer, 2)),
        "most_classes": _MOST_CLASSES,
        "undefined": _undefined(answer),
        "definitions": sorted({(row.key, row.name, row.sentence) for row in rows.values() if row.sentence}),
    }


def _on(answer: Json) -> str:
    dataset = answer.get("dataset")
    if dataset is None:
        return ""
    version = dataset.get("version")
    return dataset_name({**dataset, "name": f"{dataset['name']} {version}" if version else dataset["name"]})


def _meta(answer: Json) -> Iterator[str]:
    given = answer["input"]
    if given.get("n_samples") is not None:
        yield f"{whole(given['n_samples'])} {'queries' if not given['n_classes'] else 'samples'}"
    if has_classes(answer):
        yield f"{whole(given['n_classes'])} {class_word(answer, given['n_classes'])}"
    if given.get("positive") is not None:
        yield f"positive: {shown(given['positive'])}"
    yield given["kind"].replace("_", " ")


def _verdict(answer: Json, findings: Sequence[Json]) -> str:
    """The worst thing in counts, or what the first metric is; never more than is stored."""
    hidden = next((one for one in findings if one["code"] == "accuracy_overstates"), None)
    if hidden is not None:
        return str(hidden["message"]).split(". ")[0] + ". " + _second(str(hidden["message"]))
    first = next(iter(answer["headline"]["metrics"].items()), None)
    if first is None:
        return "No usual metric has a value."
    key, one = first
    interval = shown_interval(one["low"], one["high"])
    value = shown_value(one["value"], decimals(one["low"], one["high"]))
    said = f"{_name(key)} is {value}" + (f" ({interval})." if interval else ".")
    weakest = answer["headline"].get("weakest_class")
    if weakest is not None:
        said += f" The lowest recall is that of {class_word(answer)} {shown(weakest['label'])}: "
        said += f"{shown_value(weakest['recall'])}, of {whole(weakest['n'])} cases."
    return said


def _second(message: str) -> str:
    """The second sentence of a message, if there is one."""
    parts = message.split(". ")
    return "" if len(parts) < 2 else parts[1].rstrip(".") + "."


def _finding(one: Json) -> dict[str, str]:
    head, stop, rest = shown(one["message"]).partition(". ")
    return {"severity": one["severity"], "word": _ICONS[one["severity"]], "head": head + stop.strip(), "rest": rest}


def _level(answer: Json) -> str:
    level = next((float(one["level"]) for one in answer["intervals"].values()), 0.95)
    return percent(level, None).replace(" ", "\u00a0")


@cache
def _card(key: str) -> tuple[str, str]:
    """Name and sentence of a metric; those of an expression are its text."""
    try:
        card = describe_metric(metric_by_name(key))
    except DomainError:
        return key, ""
    return f"{card.name[:1].upper()}{card.name[1:]}", card.sentence


def _name(key: str) -> str:
    return _card(key)[0]


def _row(answer: Json, key: str, value: float | None = None, *, known: bool = False) -> ValueRow:
    found = value if known else value_of(answer, key)[1]
    low, high = ends_of(answer, key)
    twin = answer["metrics"].get("at_balanced_prevalence", {}).get(key)
    below, above = _balanced_ends(answer, key)
    digits = decimals(low, high)
    name, sentence = _card(key.partition("(")[0]) if "@" not in key else (key, "")
    return ValueRow(
        key=key,
        name=shown(name if "(" not in key else key),
        sentence=sentence,
        value=shown_value(found, digits),
        interval=shown_interval(low, high),
        track=strip(found, low, high),
        twin="" if twin is None else shown_value(twin, digits),
        twin_interval=shown_interval(below, above),
        twin_track=strip(twin, below, above),
        reason=_reason(answer, key) if found is None else "",
    )


def _balanced_ends(answer: Json, key: str) -> tuple[float | None, float | None]:
    """The interval of a value at equal class shares; answers that were kept before there were any have none."""
    found = answer.get("intervals_at_balanced_prevalence", {}).get(key)
    return (None, None) if found is None else (found["low"], found["high"])


def _reason(answer: Json, key: str) -> str:
    metric, _, label = key.partition("@")
    for one in answer["undefined"]:
        if one["metric"] in (key, metric) and (not label or one.get("class") == label):
            return shown(one["reason"])
    return "no value"


def _requested(answer: Json) -> Iterator[ValueRow]:
    for text, value in answer["requested"].items():
        if isinstance(value, Mapping):
            for label, one in value.items():
                yield _row(answer, text.replace("@*", f"@{write_label(label)}"), one, known=True)
        else:
            yield _row(answer, text, value, known=True)


def _notes(answer: Json, names: Iterable[str]) -> list[str]:
    """What has to be known to read some intervals, each said once."""
    intervals = [answer["intervals"].get(name, {}) for name in names]
    return list(dict.fromkeys(shown(one["note"]) for one in intervals if "note" in one))


def _every(answer: Json, shown_already: set[str]) -> Iterator[tuple[str, list[ValueRow]]]:
    """All other overall metrics, by what prevalence does to them."""
    for group, title in (
        ("prevalence_insensitive", "Does not move with prevalence"),
        ("prevalence_sensitive", "Moves with prevalence"),
    ):
        rows = [_row(answer, key) for key in answer["metrics"][group] if key not in shown_already]
        if rows:
            yield title, rows


# --- classes ---------------------------------------------------------------------------------------------------------


def _matrix(answer: Json) -> dict[str, Any] | None:
    """The confusion matrix as a table, as long as it can be one."""
    counts = answer["input"].get("confusion_matrix")
    labels = answer["input"]["labels"]
    if counts is None or len(labels) > _MOST_CELLS:
        return None
    small = len(labels) <= _LARGE_CELLS
    order = list(range(len(labels))) if small else beside_each_other(counts)
    return {
        "small": small,
        "labels": [shown(labels[place]) for place in order],
        "rows": [
            {
                "label": shown(labels[actual]),
                "cells": [_cell(counts[actual], actual, predicted, small=small) for predicted in order],
                "n": whole(sum(counts[actual])),
            }
            for actual in order
        ],
        "predicted": [whole(sum(row[place] for row in counts)) for place in order],
        "n": whole(sum(map(sum, counts))),
    }


def _cell(row: Sequence[float], actual: int, predicted: int, *, small: bool) -> dict[str, str]:
    count, total = row[predicted], sum(row)
    if not count:
        return {"style": "z", "count": "0" if small else "", "share": ""}
    part = count / total
    step = 1 + sum(part >= one for one in _BREAKS)
    in_percent = "" if part < 0.01 else "99" if 0.99 < part < 1 else f"{100 * part:.0f}"
    return {
        "style": f"{'h' if actual == predicted else 'm'}{step}",
        "count": whole(count) if small else in_percent,
        "share": share(part) if small else "",
    }


def _mistakes(answer: Json) -> list[dict[str, str]]:
    """The mistakes that are made most often, in words."""
    counts = answer["input"].get("confusion_matrix")
    if counts is None:
        return []
    labels = answer["input"]["labels"]
    found = [
        (count, actual, predicted)
        for actual, row in enumerate(counts)
        for predicted, count in enumerate(row)
        if actual != predicted and count > 0
    ]
    found.sort(key=lambda one: (-one[0], one[1], one[2]))
    return [
        {
            "actual": shown(labels[actual]),
            "predicted": shown(labels[predicted]),
            "count": whole(count),
            "n": whole(sum(counts[actual])),
            "share": share(count / sum(counts[actual])),
        }
        for count, actual, predicted in found[:_MOST_MISTAKES]
    ]


def _classes(answer: Json) -> list[dict[str, Any]]:
    """Each class, the lowest recall first, and those without one at the end."""
    if not has_classes(answer):
        return []
    order = weakest_classes(answer)
    order += [label for label in answer["per_class"] if label not in order]
    recalls = recalls_of(answer)
    labels: list[str] = answer["input"]["labels"]
    places = {label: place for place, label in enumerate(labels)}
    return [_class(answer, label, recalls.get(label), places[label]) for label in order]


def _class(answer: Json, label: str, recall: float | None, place: int) -> dict[str, Any]:
    low, high = ends_of(answer, f"{RECALL}@{write_label(label)}")
    groups = answer["per_class"][label]
    precision = precision_of(answer, label)
    twin = groups.get("at_balanced_prevalence", {})
    counts = answer["input"].get("confusion_matrix")
    prevalence = answer["input"]["prevalence"].get(label)
    digits = decimals(low, high)
    return {
        "label": shown(label),
        "n": "" if counts is None else whole(sum(counts[place])),
        "recall": shown_value(recall, digits),
        "interval": shown_interval(low, high),
        "track": strip(recall, low, high),
        "taken": [] if counts is None else _taken(counts[place], place, answer["input"]["labels"]),
        "precision": shown_value(precision),
        "precision_twin": shown_value(twin.get(PRECISION)),
        "f1": shown_value(groups["prevalence_sensitive"].get(F1)),
        "f1_twin": shown_value(twin.get(F1)),
        "share": "" if prevalence is None else percent(prevalence),
    }


def _taken(row: Sequence[float], place: int, labels: Sequence[str]) -> list[tuple[str, str]]:
    wrong = sorted((-count, other) for other, count in enumerate(row) if other != place and count > 0)
    return [(shown(labels[other]), whole(-count)) for count, other in wrong[:3]]


def _undefined(answer: Json) -> list[dict[str, str]]:
    """Why values do not exist, what has one reason in one row."""
    found: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for one in answer["undefined"]:
        label = one.get("class") or ""
        # The class has a column of its own, so that many classes with one reason are one row.
        reason = one["reason"].replace(f"class '{label}'", "the class") if label else one["reason"]
        metrics, labels = found.setdefault(reason, ({}, {}))
        metrics[one["metric"]] = None
        labels[label] = None
    return [
        {
            "metrics": _several(metrics),
            "classes": _several(label for label in labels if label) or "all together",
            "reason": shown(reason[:1].upper() + reason[1:]),
        }
        for reason, (metrics, labels) in list(found.items())[:_MOST_UNDEFINED]
    ]


def _several(names: Any) -> str:
    kept = [shown(name) for name in names]
    return ", ".join(kept[:12]) + (f" and {len(kept) - 12} more" if len(kept) > 12 else "")
