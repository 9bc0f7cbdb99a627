"""Headings that say what a section shows; empty where there is nothing that stands out."""

from collections.abc import Sequence

from app.api.documents.document import Json, MetricName, Name, Words
from app.api.documents.reading import ends_of, mistakes_of, overall, recalls_of, task_in
from app.domain.catalogue import spoken, titled
from app.domain.inputs.content import Content
from app.domain.wording import PAGE, class_before, numbered, whole

# A metric moves with prevalence by more than this, or nothing is said of it.
_MOVED_BY = 0.05


def of_metrics(answer: Json, moved: Sequence[str], balanced: str) -> Words:
    """Say which of the metrics that prevalence moves owes most of its value to that of this data; ``balanced``: what
    their twins are of, in words.
    """
    here, twins = overall(answer), answer["metrics"].get("at_balanced_prevalence", {})
    known = [
        (abs(value - twin), key, twin)
        for key in moved
        if (value := here.get(key)) is not None and (twin := twins.get(key)) is not None
    ]
    by, key, twin = max(known, key=lambda one: one[0], default=(0.0, "", None))
    if by < _MOVED_BY:
        return ""
    ends = answer.get("intervals_at_balanced_prevalence", {}).get(key, {})
    said, _ = PAGE.estimate(here[key], *ends_of(answer, key))
    other, _ = PAGE.estimate(twin, ends.get("low"), ends.get("high"))
    return f"{titled(key, task_in(answer))} moves most with prevalence: {said} here, and {other} {balanced}"


def of_matrix(answer: Json) -> Words:
    """Say in counts what is missed, and what it is taken for."""
    given = answer["input"]
    counts, labels = given.get("confusion_matrix"), given["labels"]
    if counts is None or given["content"] != Content.counts:
        return ""
    mistakes = mistakes_of(counts)
    if not mistakes:
        return "No sample is taken for another class"
    if given.get("positive") is not None:
        place = labels.index(given["positive"])
        other = 1 - place
        (missed, alarms) = (counts[one][two] for one, two in ((place, other), (other, place)))
        of_own, of_others = (
            (f" of {whole(sum(counts[one]))} {'of class ' if class_before(labels[one]) else ''}", Name(labels[one]))
            for one in (place, other)
        )
        own = (whole(missed), *of_own, " are missed")
        if not sum(counts[other]):
            return own
        others = (whole(alarms), *of_others, " are taken for ")
        return (*own, ", ", *others, "it") if sum(counts[place]) else (*others, Name(labels[place]))
    actual, taken, count, n = max(mistakes, key=lambda one: one.cases)
    missed = n - counts[actual][actual]
    of = f"{whole(count)} of its {whole(missed)} misses" if count < missed else f"all of its {whole(missed)} misses"
    found = "its only miss" if missed == 1 else of
    before = class_before(labels[actual]).capitalize()
    return (
        before,
        Name(labels[actual]),
        f" is taken for {class_before(labels[taken])}",
        Name(labels[taken]),
        f" in {found}",
    )


def of_classes(answer: Json) -> Words:
    """Say which class is recognised least often, where that is one alone."""
    known = [value for value in recalls_of(answer).values() if value is not None]
    weakest = answer["headline"].get("weakest_class")
    if weakest is None or len(known) < 2 or known.count(min(known)) > 1:
        return ""
    counted, label = cases_found(answer), weakest["label"]
    found = f"in {counted}" if counted else PAGE.value(weakest["recall"])
    return (class_before(label).capitalize(), Name(label), f" is recognised least often: {found}")


def cases_found(answer: Json) -> str:
    """Say how many cases of the weakest class are found; nothing where cases are not counted."""
    weakest = answer["headline"]["weakest_class"]
    if weakest["n"] is None or answer["input"]["content"] != Content.counts:
        return ""
    return f"{whole(weakest['recall'] * weakest['n'])} of {numbered(weakest['n'], 'cases')}"


def of_queries(answer: Json) -> Words:
    """Say which query fails worst, where that is one alone."""
    queries = answer["queries"]
    worst, *others = queries["lowest"]
    if others and others[0]["value"] == worst["value"]:
        return ""
    called = spoken(queries["lowest_by"], task_in(answer))
    return ("Query ", Name(str(worst["query_id"])), f" fails worst: its {called} is {PAGE.value(worst['value'])}")


def of_slices(slices: Sequence[tuple[str, Json]], metric: str, against: str) -> Words:
    """Say where a metric is worse than it is elsewhere, beyond chance. Slices have names and values, the largest losses
    come first; ``against``: what they are held against, in words.
    """
    worse = [(name, one) for name, one in slices if one["difference"].get("verdict") == "worse"]
    if not worse:
        return ("No slice has a worse ", MetricName(metric), " beyond chance")
    name, value = worse[0]
    others = f" and {len(worse) - 1} more are" if len(worse) > 1 else " is"
    here = f" {PAGE.value(value['value'])} there, {PAGE.value(value['reference'])} in {against}"
    return (Name(name), f"{others} worse: ", MetricName(metric), here)
