"""Reads answers as they are in JSON: where the values of an evaluation stand, and what is said first."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Final

from app.api.documents.document import Json
from app.domain.catalogue import describe_metric, metric_by_name
from app.domain.errors import DomainError
from app.domain.expressions.syntax import write_label
from app.domain.inputs.multilabel import Multilabel
from app.domain.named_metrics import LOSSES_SHOWN, PRECISION, RECALL, SHOWN, SHOWN_OF_TWO
from app.domain.wording import percent, whole

_GRAVEST = {"critical": 0, "warning": 1, "note": 2}


def counted(number: float | None) -> str:
    """Return a number of things, a dash for one that is not known."""
    return "-" if number is None else whole(number)


def sentence(note: str) -> str:
    """Return a text as a sentence begins."""
    return note[:1].upper() + note[1:]


# --- metrics ---------------------------------------------------------------------------------------------------------

_LABEL: Final = r"""@("[^"]*"|[^\s,;:()\[\]"]*[^\s,;:.()\[\]"])"""
_METRIC: Final = re.compile(rf"(\w+)(\([\w.=, ]+\))?(?:{_LABEL})?")
_QUOTES: Final = '"'
_LOWEST_OF_ALL: Final = re.compile(r"min\((\w+)@\*\)")
# Within a sentence: what cannot be a word of it.
_KEYS: Final = re.compile(
    rf"(?<![\w./])(?:[a-z0-9]+(?:_[a-z0-9]+)+(?:\([\w.=, ]+\))?(?:{_LABEL})?|\w+{_LABEL}"
    # An abbreviation: three letters that cannot be spoken.
    r"|[b-df-hj-np-tv-xz]{3}(?!\())(?!\w|\.\w)"
)


@cache
def metric_within(key: str, task: str | None = None) -> tuple[str, str]:
    """Return the name of a metric of a task within a sentence, perhaps with a class, and its own sentence; of an
    expression its text alone.
    """
    lowest = _LOWEST_OF_ALL.fullmatch(key)
    found = lowest or _METRIC.fullmatch(key)
    if found is None:
        return key, ""
    try:
        card = describe_metric(metric_by_name(found[1], task))
    except DomainError:
        return key, ""
    if lowest:
        return f"lowest {card.name} of any class", ""
    parameters, label = found[2], found[3]
    of = f" of {label.strip(_QUOTES)}" if label not in (None, "*") else " of every class" if label else ""
    return f"{card.name} {parameters or ''}".rstrip() + of, card.sentence


def metric_card(key: str, task: str | None = None) -> tuple[str, str]:
    """Return the name of a metric as it stands alone, and its sentence, as ``metric_within`` does."""
    name, explained = metric_within(key, task)
    return (key if name == key and not explained else sentence(name)), explained


def moves_with_prevalence(metric: str) -> bool | None:
    """Return whether prevalence moves a metric; None for one of other tasks than classes, or an expression."""
    found = _METRIC.fullmatch(metric)
    try:
        card = None if found is None else describe_metric(metric_by_name(found[1]))
    except DomainError:
        return None
    return None if card is None or "multiclass" not in card.tasks else card.prevalence != "insensitive"


def key_of(metric: str) -> str:
    """Return a metric of a class without the class."""
    return metric.partition("@")[0]


def in_words(text: str) -> str:
    """Return a text of the service with the names of metrics in place of their keys, as a page has it."""

    def named(found: re.Match[str]) -> str:
        before = text[: found.start()].rstrip()
        return (metric_within if before and not before.endswith(".") else metric_card)(found[0])[0]

    return _KEYS.sub(named, text)


# --- evaluations -----------------------------------------------------------------------------------------------------


def by_severity(findings: Sequence[Json]) -> list[Json]:
    """Return findings, the gravest first."""
    return sorted(findings, key=lambda one: _GRAVEST[one["severity"]])


def said_once(findings: Sequence[Json]) -> list[Json]:
    """Return findings without those whose only class another one speaks of in the same words: how few cases it has."""
    hidden = {one["evidence"]["class"] for one in findings if one["code"] == "accuracy_overstates"}
    return [
        one
        for one in findings
        if one["code"] != "too_few_samples" or {each["class"] for each in one["evidence"]["classes"]} - hidden
    ]


def has_classes(answer: Json) -> bool:
    """Return whether an evaluation is about classes or labels, each with values of its own."""
    return bool(answer["per_class"])


def class_word(answer: Json, count: int = 1) -> str:
    """Return what the classes of an evaluation are called: several labels can belong to one sample."""
    of_labels = answer["input"]["kind"] == Multilabel.kind
    return ("label" if count == 1 else "labels") if of_labels else ("class" if count == 1 else "classes")


def overall(answer: Json) -> dict[str, float | None]:
    """Return the overall metrics of an evaluation."""
    groups = answer["metrics"]
    return {**groups["prevalence_insensitive"], **groups["prevalence_sensitive"]}


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
        first = list(answer["headline"]["metrics"])
    same = [key for key in first if key in groups["prevalence_insensitive"]]
    moved = [key for key in first if key in groups["prevalence_sensitive"]]
    return same, moved, [key for key in LOSSES_SHOWN if key not in first and key in overall(answer)]


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


def interval_words(level: float | None) -> str:
    """Return the heading of a column of intervals."""
    return "interval" if level is None else f"{percent(level, None)} interval"
