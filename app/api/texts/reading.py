"""What texts read from an evaluation as it is answered in JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.domain.expressions.syntax import write_label
from app.domain.inputs.multilabel import Multilabel
from app.domain.named_metrics import LOSSES_SHOWN, PRECISION, RECALL, SHOWN, SHOWN_OF_TWO

_GRAVEST = {"critical": 0, "warning": 1, "note": 2}


def by_severity(findings: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Findings, the gravest first."""
    return sorted(findings, key=lambda one: _GRAVEST[one["severity"]])


def has_classes(answer: Mapping[str, Any]) -> bool:
    """Is it about classes or labels, each with values of its own?"""
    return bool(answer["per_class"])


def class_word(answer: Mapping[str, Any], count: int = 1) -> str:
    """What the classes of an answer are called: several labels can belong to one sample."""
    of_labels = answer["input"]["kind"] == Multilabel.kind
    return ("label" if count == 1 else "labels") if of_labels else ("class" if count == 1 else "classes")


def said_once(findings: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Findings without those whose only class another one speaks of in the same words: how few cases it has."""
    hidden = {one["evidence"]["class"] for one in findings if one["code"] == "accuracy_overstates"}
    return [
        one
        for one in findings
        if one["code"] != "too_few_samples" or {each["class"] for each in one["evidence"]["classes"]} - hidden
    ]


def value_of(answer: Mapping[str, Any], key: str) -> tuple[bool, float | None]:
    """Whether an overall metric is in the report, and its value."""
    for group in ("prevalence_insensitive", "prevalence_sensitive"):
        if key in answer["metrics"][group]:
            return True, answer["metrics"][group][key]
    return False, None


def recalls_of(answer: Mapping[str, Any]) -> dict[str, float | None]:
    """Recall by class; empty where the kind of input has none."""
    found = {}
    for label, groups in answer["per_class"].items():
        for group in groups.values():
            if RECALL in group:
                found[label] = group[RECALL]
                break
    return found


def precision_of(answer: Mapping[str, Any], label: str) -> float | None:
    """Precision of a class."""
    value: float | None = answer["per_class"][label]["prevalence_sensitive"].get(PRECISION)
    return value


def weakest_classes(answer: Mapping[str, Any]) -> list[str]:
    """The classes that have a recall, that of the lowest first."""
    known = {label: value for label, value in recalls_of(answer).items() if value is not None}
    return sorted(known, key=known.__getitem__)


def shown_first(answer: Mapping[str, Any]) -> tuple[list[str], list[str], list[str]]:
    """The metrics to look at first: those that the mix of the classes leaves alone, those that it moves, and losses."""
    given, groups = answer["input"], answer["metrics"]
    first: Sequence[str] = SHOWN_OF_TWO if given.get("positive") is not None else SHOWN
    if given.get("confusion_matrix") is None:
        # Of other kinds of input than classes: what their cards call the headline.
        first = list(answer["headline"]["metrics"])
    same = [key for key in first if key in groups["prevalence_insensitive"]]
    moved = [key for key in first if key in groups["prevalence_sensitive"]]
    return same, moved, [key for key in LOSSES_SHOWN if key not in first and value_of(answer, key)[0]]


def ends_of(answer: Mapping[str, Any], name: str) -> tuple[float | None, float | None]:
    """The interval of a value; what is said without a class of two classes is about the positive one."""
    positive = answer["input"].get("positive")
    found = answer["intervals"].get(name)
    if found is None and positive is not None:
        found = answer["intervals"].get(f"{name}@{write_label(positive)}")
    return (None, None) if found is None else (found["low"], found["high"])
