"""Reads answers as they are in JSON: where the values of an evaluation stand, and what is said first."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from app.api.documents.document import Json, MetricName, Name, Words
from app.api.documents.text import plain
from app.domain.catalogue import metric_by_name, spoken, titled
from app.domain.errors import DomainError
from app.domain.expressions.syntax import read, write_label
from app.domain.inputs.kinds import UNIT_KINDS, task_of
from app.domain.inputs.multilabel import Multilabel
from app.domain.named_metrics import LOSSES_SHOWN, PRECISION, RECALL, SHOWN, SHOWN_OF_TWO
from app.domain.wording import PAGE, percent, whole

_SAMPLES = "samples"
# The gravest first.
SEVERITIES: Final = ("critical", "warning", "note")


def counted(number: float | None) -> str:
    """Return a number of things, a dash for one that is not known."""
    return "-" if number is None else whole(number)


# --- metrics ---------------------------------------------------------------------------------------------------------


def _card(metric: str, task: str | None = None) -> Any:
    """Return the card of a metric, None of an expression of several."""
    try:
        return metric_by_name(read(metric).name, task).card
    except DomainError:
        return None


def metric_sentence(key: str, task: str | None = None) -> str:
    """Return the sentence on the card of a metric; none of an expression of several."""
    card = _card(key, task)
    return "" if card is None else str(card.sentence)


def naming(text: str, keys: Iterable[str]) -> Words:
    """Return a sentence of the service, which has keys of metrics of an answer, with these as what a page names; those
    of a class stand in quotes.
    """
    known = sorted({key for key in keys if key in text}, key=len, reverse=True)
    if not known:
        return text
    one = f"(?:{'|'.join(map(re.escape, known))})"
    parts = re.split(rf'"({one}@(?:"[^"]+"|[^"]+))"|(?<![\w@.])({one})(?![\w@(]|\.\w)', text)
    return tuple(MetricName(part) if place % 3 else part for place, part in enumerate(parts) if part)


def metrics_of(answer: Json) -> set[str]:
    """Return the keys of all metrics that an evaluation has."""
    groups = [group for one in (answer["metrics"], *answer["per_class"].values()) for group in one.values()]
    return set().union(*groups, answer.get("requested", {}))


def with_minus(text: str) -> str:
    """Return a part of a sentence with the minus that numbers of pages have."""
    return _HYPHEN.sub(PAGE.minus, text)


def with_signs(text: str) -> str:
    """Return a text of the catalogue with the signs that pages have."""
    for plainly, sign in (("<=", "≤"), (">=", "≥"), ("-inf", "−∞"), ("= inf", "= ∞")):
        text = text.replace(plainly, sign)
    return with_minus(text)


_HYPHEN: Final = re.compile(r"(?<![^\s(])-(?=\d)")


def in_names(text: Words) -> str:
    """Return a sentence of a page, in which metrics have their names; other names in it are as they are."""
    found = ""
    for part in (text,) if isinstance(text, str) else text:
        begins = not found or found.rstrip().endswith(".")
        said = (titled if begins else spoken)(part) if isinstance(part, MetricName) else part
        found += plain((said if isinstance(part, Name) else with_minus(said),))
    return found.replace(" %", "\u00a0%")


def moves_with_prevalence(metric: str) -> bool | None:
    """Return whether prevalence moves a metric; None for one of clusterings or other tasks than classes, or an
    expression.
    """
    card = _card(metric)
    if card is None or "multiclass" not in card.tasks or "clustering" in card.tasks:
        return None
    return bool(card.prevalence != "insensitive")


def units_of(metric: str) -> str:
    """Return what a metric is computed from, in the plural: queries for one of rankings alone, else samples."""
    card = _card(metric)
    tasks = () if card is None else card.tasks
    found = {UNIT_KINDS[task].unit if task in UNIT_KINDS else None for task in tasks}
    return (found.pop() if len(found) == 1 else None) or _SAMPLES


def key_of(metric: str) -> str:
    """Return a metric of a class without the class."""
    return metric.partition("@")[0]


# --- evaluations -----------------------------------------------------------------------------------------------------


def by_severity(findings: Sequence[Json]) -> list[Json]:
    """Return findings, the gravest first."""
    return sorted(findings, key=lambda one: SEVERITIES.index(one["severity"]))


def said_once(findings: Sequence[Json]) -> list[Json]:
    """Return findings without those whose only class another one speaks of in the same words: how few cases it has."""
    hidden = {one["evidence"]["class"] for one in findings if one["code"] == "accuracy_overstates"}
    return [
        one
        for one in findings
        if one["code"] != "too_few_samples" or {each["class"] for each in one["evidence"]["classes"]} - hidden
    ]


def task_in(answer: Json) -> str | None:
    """Return the task of an evaluation, where a name of a metric has several meanings."""
    return task_of(answer["input"]["kind"], answer["input"])


def has_classes(answer: Json) -> bool:
    """Return whether an evaluation is about classes or labels, each with values of its own."""
    return bool(answer["per_class"])


def class_word(answer: Json, count: int = 1) -> str:
    """Return what the classes of an evaluation are called: several labels can belong to one sample."""
    of_labels = answer["input"]["kind"] == Multilabel.kind
    return ("label" if count == 1 else "labels") if of_labels else ("class" if count == 1 else "classes")


def overall(answer: Json) -> dict[str, float | None]:
    """Return the overall metrics of an evaluation."""
    return here(answer["metrics"])


def leading(answer: Json) -> list[str]:
    """Return the metrics of the headline; all overall metrics where it is empty, as that of points without classes."""
    return list(answer["headline"]["metrics"] or overall(answer))


def here(groups: Json) -> dict[str, float | None]:
    """Return the metrics of an evaluation or of a class as they are in this data, not at equal prevalence."""
    return {**groups["prevalence_insensitive"], **groups["prevalence_sensitive"]}


class Mistake(NamedTuple):
    """Samples of one class that were taken for another, both by their places, and how many the class has."""

    actual: int
    predicted: int
    cases: float
    of: float


def mistakes_of(counts: Sequence[Sequence[float]]) -> list[Mistake]:
    """Return all mistakes of a confusion matrix, row by row."""
    return [
        Mistake(actual, predicted, cases, n)
        for actual, (row, n) in enumerate(zip(counts, map(sum, counts), strict=True))
        for predicted, cases in enumerate(row)
        if actual != predicted and cases > 0
    ]


def recalls_of(answer: Json) -> dict[str, float | None]:
    """Return the recall of each class; empty where the kind of input has none."""
    found = {}
    for label, groups in answer["per_class"].items():
        for group in groups.values():
            if RECALL in group:
                found[label] = group[RECALL]
                break
    return found


def precision_of(answer: Json, label: str) -> float | None:
    """Return the precision of a class."""
    value: float | None = answer["per_class"][label]["prevalence_sensitive"].get(PRECISION)
    return value


def weakest_classes(answer: Json) -> list[str]:
    """Return the classes that have a recall, that of the lowest first."""
    known = {label: value for label, value in recalls_of(answer).items() if value is not None}
    return sorted(known, key=known.__getitem__)


def shown_first(answer: Json) -> tuple[list[str], list[str], list[str]]:
    """Return the metrics to look at first: those that prevalence leaves alone, those that it moves, and losses."""
    given, groups = answer["input"], answer["metrics"]
    first: Sequence[str] = SHOWN_OF_TWO if given.get("positive") is not None else SHOWN
    if given.get("confusion_matrix") is None:
        # Of other kinds of input than classes: what their cards call the headline.
        first = leading(answer)
    # What scores that are no probabilities cannot have: among the values that do not exist it has its reason.
    never = {one["metric"] for one in answer["undefined"] if one["code"] == "not_probabilities"}
    first = [key for key in first if key not in never]
    same = [key for key in first if key in groups["prevalence_insensitive"]]
    moved = [key for key in first if key in groups["prevalence_sensitive"]]
    return same, moved, [key for key in LOSSES_SHOWN if key not in {*first, *never} and key in overall(answer)]


def positive_counts(answer: Json) -> tuple[str, float, float, float] | None:
    """Return the positive of two classes, its cases, those that are found, and all that are taken for it."""
    given = answer["input"]
    label, matrix = given.get("positive"), given.get("confusion_matrix")
    if label is None or matrix is None:
        return None
    place = given["labels"].index(label)
    return label, sum(matrix[place]), matrix[place][place], sum(row[place] for row in matrix)


def ends_of(answer: Json, name: str) -> tuple[float | None, float | None]:
    """Return the interval of a value; what is said without a class of two classes is about the positive one."""
    positive = answer["input"].get("positive")
    found = answer["intervals"].get(name)
    if found is None and positive is not None:
        found = answer["intervals"].get(f"{name}@{write_label(positive)}")
    return (None, None) if found is None else (found["low"], found["high"])


def level_of(answer: Json) -> str:
    """Return the level of the intervals of an evaluation in words."""
    return percent(next((float(one["level"]) for one in answer["intervals"].values()), 0.95), None)


def interval_words(level: float | None) -> str:
    """Return the heading of a column of intervals."""
    return "interval" if level is None else f"{percent(level, None)} interval"
