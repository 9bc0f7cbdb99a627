"""Folds of a cross-validation, brought to one form: the sum of their matrices, with each of them beside it.

Raises InvalidInput with pointers relative to the ``input`` object it was given a pointer for.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

import numpy as np

from app.domain.asked import Limits
from app.domain.errors import InvalidInput
from app.domain.inputs.columns import designed
from app.domain.inputs.content import (
    DECISIONS_FACT,
    GROUPS_FACT,
    IGNORED_FACT,
    LARGEST_TOTAL,
    MIXED_FACT,
    REPEATS_FACT,
    WEIGHT_FACT,
    Content,
)
from app.domain.inputs.kind import Input, option
from app.domain.inputs.labels import listed
from app.domain.inputs.matrices import SCORED_KINDS, MatrixInput
from app.domain.inputs.samples import joined, times_seen

MOST_FOLDS = 1000
# Entries of all folds together: 80 MB.
MOST_FOLD_ENTRIES = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Folds(Input):
    """Cross-validation folds: inputs of one kind with the same labels."""

    kind: ClassVar[str] = "folds"

    folds: Annotated[Sequence[Input], Limits({"min_length": 1, "max_length": MOST_FOLDS})] = option(
        "The folds, each an input.", required=True
    )
    repeats: Annotated[int, Limits({"ge": 1, "le": MOST_FOLDS // 2})] | None = option(
        "How often all samples were cross-validated; the folds of one repetition follow each other. Seen from "
        "`sample_ids` when left out, where these are given."
    )
    repeat_of_fold: (
        Annotated[
            list[Annotated[int, Limits({"ge": 0, "le": MOST_FOLDS})]],
            Limits({"min_length": 1, "max_length": MOST_FOLDS}),
        ]
        | None
    ) = option("In place of `repeats`: the number of its repetition for every fold, in any order.")

    def read(self, pointer: str) -> MatrixInput:
        """The sum of the folds, and each of them."""
        folds = (fold.read(f"{pointer}/folds/{index}") for index, fold in enumerate(self.folds))
        return pooled(folds, pointer, self.repeats, self.repeat_of_fold)


def pooled(
    folds: Iterable[MatrixInput],
    pointer: str,
    repeats: int | None = None,
    repeat_of_fold: Sequence[int] | None = None,
    *,
    places: str | None = None,
) -> MatrixInput:
    """The sum of folds of one kind and one set of labels. They are taken one by one, so that a fault ends it early.

    Without ``repeats`` and ``repeat_of_fold`` the ids of samples may say how often all were cross-validated. ``places``
    is the JSON pointer to the list of the folds, where it is no member of the input.

    Raises:
        InvalidInput: the folds do not fit each other, or the repetitions do not fit the folds.
    """
    taken: list[MatrixInput] = []
    places = f"{pointer}/folds" if places is None else places
    for index, fold in enumerate(folds):
        where = f"{places}/{index}"
        _check_fold(fold, taken[0] if taken else fold, where)
        taken.append(fold)
        if len(taken) * fold.counts.size > MOST_FOLD_ENTRIES:
            raise InvalidInput.at(
                where,
                "too_many_folds",
                f"expected at most {MOST_FOLD_ENTRIES // fold.counts.size} folds of {len(fold.labels)} classes",
            )
    first = taken[0]
    # Of samples that all weigh the same counts are numbers.
    weights = [fold.facts.get(WEIGHT_FACT, 1.0) for fold in taken]
    whole = all(fold.content is Content.counts for fold in taken) and len(set(weights)) == 1
    stack = np.stack([one.counts if whole else one.counts * weight for one, weight in zip(taken, weights, strict=True)])
    if stack.sum(dtype=np.float64) > LARGEST_TOTAL:
        raise InvalidInput.at(places, "total_too_large", "expected folds that sum to at most 2^53")
    together, beside = None, dict[str, Any]()
    if all(fold.samples is not None for fold in taken):
        together, beside = designed(joined([fold.weighed_samples for fold in taken]))
    return MatrixInput(
        kind=Folds.kind,
        labels=first.labels,
        positive=first.positive,
        content=Content.counts if whole else Content.weights,
        counts=stack.sum(axis=0),
        fold_counts=stack,
        facts={
            "fold_kind": first.kind,
            **_repeat_facts(taken, repeats, repeat_of_fold, pointer),
            **_fold_facts(taken, places),
            **ignored_facts(taken),
            **beside,
        },
        samples=together,
    )


def _repeat_facts(
    folds: Sequence[MatrixInput], given: int | None, told: Sequence[int] | None, pointer: str
) -> dict[str, int]:
    """Number of repetitions of the cross-validation, as given or told or as ids of samples repeat, and whether the
    folds of each do not follow each other; nothing where it is unknown.

    A repetition has at least two folds: with one there is nothing left to train on.
    """
    where = f"{pointer}/repeats" if told is None else f"{pointer}/repeat_of_fold"
    if told is not None and given is not None:
        raise InvalidInput.at(
            f"{pointer}/repeats", "repeats_given_twice", "expected repeats or repeat_of_fold, not both"
        )
    ids = [fold.unit_ids for fold in folds]
    seen = times_seen(ids)
    repeats = given or seen
    if told is not None:
        places = np.asarray(told)
    elif repeats is not None:
        places = np.arange(len(folds)) * repeats // len(folds)
    else:
        return {}
    names, sizes = np.unique(places, return_counts=True)
    even = (sizes == sizes[0]).all() and (sizes[0] > 1 or len(folds) == 1)
    if places.size != len(folds) or not even or given not in (None, names.size):
        if told is None and given is None:
            return {}
        detail = f"expected as many folds in every repetition, two or more, of the {len(folds)} folds that there are"
        raise InvalidInput.at(where, "repeats_do_not_fit", detail)
    if given is not None and seen not in (None, given):
        detail = f"expected {seen}: so often every sample id comes in the folds"
        raise InvalidInput.at(where, "repeats_do_not_fit", detail)
    members = [np.flatnonzero(places == name) for name in names]
    of_each = [[ids[fold] for fold in own] for own in members]
    once = all(times_seen(own) == 1 for own in of_each if all(one is not None for one in own))
    if told is not None and not once:
        raise InvalidInput.at(where, "repeats_do_not_fit", "expected every sample id once in every repetition")
    # What is told may be in any order; else samples that come again in a repetition show that they are.
    apart = any(own[-1] - own[0] >= own.size for own in members)
    mixed = apart if told is not None else seen is not None and not once
    return {REPEATS_FACT: names.size} | ({MIXED_FACT: True} if mixed else {})


def _fold_facts(folds: Sequence[MatrixInput], places: str) -> dict[str, Any]:
    """Facts of all folds together: counts added up, and thresholds of probabilities or scores side by side."""
    facts: dict[str, Any] = {}
    if any("rows" in fold.facts for fold in folds):
        facts["rows"] = int(sum(fold.facts.get("rows", fold.n_samples) for fold in folds))
    if folds[0].kind not in SCORED_KINDS:
        return facts
    for name in ("ties", "renormalized"):
        values = [fold.facts[name] for fold in folds if name in fold.facts]
        if values:
            facts[name] = sum(values)
    rules = {fold.facts["rule"] for fold in folds}
    if len(rules) > 1:
        raise InvalidInput.at(places, "mixed_folds", "expected a threshold in every fold or in none")
    facts["rule"] = rules.pop()
    thresholds = [fold.facts["threshold"] for fold in folds if "threshold" in fold.facts]
    if thresholds:
        facts["threshold"] = thresholds[0] if len(set(thresholds)) == 1 else thresholds
    if any("threshold_assumed" in fold.facts for fold in folds):
        if len(set(thresholds)) > 1:
            raise InvalidInput.at(
                places,
                "mixed_folds",
                "expected a threshold in every fold: without one scores are cut at 0.5 where all lie in [0, 1], else "
                "at 0, and these folds would have thresholds that differ",
            )
        facts["threshold_assumed"] = True
    return facts


def ignored_facts(folds: Sequence[MatrixInput]) -> dict[str, dict[str, float]]:
    """Return the samples of each ignored class that were left out, in all folds together."""
    found = [fold.facts[IGNORED_FACT] for fold in folds if IGNORED_FACT in fold.facts]
    texts = dict.fromkeys(text for one in found for text in one)
    return {IGNORED_FACT: {text: sum(one.get(text, 0) for one in found) for text in texts}} if found else {}


def output_axes(fold: MatrixInput) -> int | None:
    """1 where there is one score per sample, 2 where there is one number per class; None without any."""
    return None if fold.samples is None or fold.samples.outputs is None else fold.samples.outputs.ndim


def attribute_names(fold: MatrixInput) -> frozenset[str]:
    """Names of the attributes of the samples."""
    known = None if fold.samples is None else fold.samples.attributes
    return frozenset(() if known is None else known.by_name)


# Members by which all folds are alike.
_IN_COMMON: Final[tuple[tuple[str, Callable[[MatrixInput], Any], str], ...]] = (
    ("group_ids", lambda fold: GROUPS_FACT in fold.facts, "expected group_ids in every fold or in none"),
    ("scores", output_axes, "expected one score per sample in every fold, or one per class in every fold"),
    ("attributes", attribute_names, "expected the attributes of the first fold"),
)


def _check_fold(fold: MatrixInput, first: MatrixInput, where: str) -> None:
    if fold.kind != first.kind:
        raise InvalidInput.at(
            f"{where}/kind", "mixed_folds", f"expected folds of one kind, {first.kind!r}, got {fold.kind!r}"
        )
    if DECISIONS_FACT in fold.facts:
        raise InvalidInput.at(where, "not_for_decisions", "expected folds whose decisions are the classes")
    for member, value, detail in _IN_COMMON:
        if value(fold) != value(first):
            raise InvalidInput.at(f"{where}/{member}", "mixed_folds", detail)
    if fold.content is Content.rates:
        raise InvalidInput.at(
            where, "rates_cannot_be_pooled", "expected counts: rates of folds of unknown size cannot be added"
        )
    if fold.labels != first.labels:
        raise InvalidInput.at(
            where,
            "mixed_labels",
            f"expected the labels of the first fold in the same order, {listed(first.labels)}, "
            f"got {listed(fold.labels)}; name all classes in the `labels` of every fold",
        )
    if fold.positive != first.positive:
        raise InvalidInput.at(f"{where}/positive", "mixed_labels", "expected the positive class of the first fold")
