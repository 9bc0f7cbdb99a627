"""Folds of a cross-validation, brought to one form: the sum of their matrices, with each of them beside it.

Raises InvalidInput with pointers relative to the ``input`` object it was given a pointer for.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import InvalidInput
from app.domain.inputs.columns import group_facts, weight_facts
from app.domain.inputs.content import IGNORED_FACT, LARGEST_TOTAL, MIXED_FACT, REPEATS_FACT, Content
from app.domain.inputs.kind import Input, Limits, option
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

    Args:
        folds: In their order.
        pointer: JSON pointer to the input.
        repeats: How often all samples were cross-validated; where it is not given the ids of samples may say it.
        repeat_of_fold: The repetition of each fold, in place of ``repeats``.
        places: JSON pointer to the list of the folds, where it is no member of the input.

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
    whole = all(fold.content is Content.counts for fold in taken)
    stack = np.stack([fold.counts if whole else fold.counts.astype(np.float64) for fold in taken])
    if stack.sum(dtype=np.float64) > LARGEST_TOTAL:
        raise InvalidInput.at(places, "total_too_large", "expected folds that sum to at most 2^53")
    samples = [fold.samples for fold in taken if fold.samples is not None]
    together = joined(samples) if len(samples) == len(taken) else None
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
            **weight_facts(None if together is None else together.weights),
            **group_facts(None if together is None else together.groups),
        },
        samples=together,
    )


def _repeat_facts(
    folds: Sequence[MatrixInput], given: int | None, told: Sequence[int] | None, pointer: str
) -> dict[str, int]:
    """Number of repetitions of the cross-validation, as given or as ids of samples repeat; nothing where it is unknown.

    A repetition has at least two folds: with one there is nothing left to train on.
    """
    if told is not None:
        if given is not None:
            raise InvalidInput.at(
                f"{pointer}/repeats", "repeats_given_twice", "expected repeats or repeat_of_fold, not both"
            )
        return _told_facts(folds, told, f"{pointer}/repeat_of_fold")
    if given is not None and (len(folds) % given or len(folds) == given > 1):
        raise InvalidInput.at(
            f"{pointer}/repeats",
            "repeats_do_not_fit",
            f"expected two folds or more in every repetition, and as many in each; there are {len(folds)} folds",
        )
    ids = [fold.samples.ids for fold in folds if fold.samples is not None and fold.samples.ids is not None]
    seen = times_seen(ids) if len(ids) == len(folds) else None
    if given is None:
        known = seen is not None and len(folds) % seen == 0 and (seen == 1 or len(folds) > seen)
        return _known_by_ids(ids, seen) if seen is not None and known else {}
    if seen is not None and seen != given:
        raise InvalidInput.at(
            f"{pointer}/repeats", "repeats_do_not_fit", f"expected {seen}: so often every sample id comes in the folds"
        )
    return {REPEATS_FACT: given} if seen is None else _known_by_ids(ids, given)


def _told_facts(folds: Sequence[MatrixInput], told: Sequence[int], pointer: str) -> dict[str, int]:
    """Number of repetitions, and whether they are mixed, where every fold says to which one it belongs."""
    names, counts = np.unique(np.asarray(told), return_counts=True)
    if len(told) != len(folds) or (counts != counts[0]).any() or (counts[0] == 1 and len(folds) > 1):
        raise InvalidInput.at(
            pointer,
            "repeats_do_not_fit",
            f"expected the repetition of each of the {len(folds)} folds, as many folds in each, and two or more",
        )
    members = [np.flatnonzero(np.asarray(told) == name) for name in names]
    ids = [None if fold.samples is None else fold.samples.ids for fold in folds]
    for own in members:
        known = [one for index in own if (one := ids[index]) is not None]
        if len(known) == own.size and times_seen(known) != 1:
            raise InvalidInput.at(pointer, "repeats_do_not_fit", "expected every sample id once in every repetition")
    mixed = any(own[-1] - own[0] >= own.size for own in members)
    return {REPEATS_FACT: len(names)} | ({MIXED_FACT: True} if mixed else {})


def _known_by_ids(ids: Sequence[NDArray[Any]], repeats: int) -> dict[str, int]:
    """Number of repetitions and, by the ids in each fold, whether they are mixed."""
    size = len(ids) // repeats
    mixed = any(times_seen(ids[start : start + size]) != 1 for start in range(0, len(ids), size))
    return {REPEATS_FACT: repeats} | ({MIXED_FACT: True} if mixed else {})


def _fold_facts(folds: Sequence[MatrixInput], places: str) -> dict[str, Any]:
    """Facts of folds of probabilities or scores: counts added up, thresholds side by side."""
    if folds[0].kind not in SCORED_KINDS:
        return {}
    facts: dict[str, Any] = {}
    for name in ("rows", "ties", "renormalized"):
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
        facts["threshold_assumed"] = True
    return facts


def ignored_facts(folds: Sequence[MatrixInput]) -> dict[str, dict[str, float]]:
    """Return the samples of each ignored class that were left out, in all folds together."""
    found = [fold.facts[IGNORED_FACT] for fold in folds if IGNORED_FACT in fold.facts]
    texts = dict.fromkeys(text for one in found for text in one)
    return {IGNORED_FACT: {text: sum(one.get(text, 0) for one in found) for text in texts}} if found else {}


def _columns(fold: MatrixInput) -> int | None:
    """1 where there is one score per sample, 2 where there is one number per class."""
    return None if fold.samples is None or fold.samples.outputs is None else fold.samples.outputs.ndim


def _attribute_names(fold: MatrixInput) -> frozenset[str]:
    known = None if fold.samples is None else fold.samples.attributes
    return frozenset(() if known is None else known.by_name)


def _check_fold(fold: MatrixInput, first: MatrixInput, where: str) -> None:
    if fold.kind != first.kind:
        raise InvalidInput.at(
            f"{where}/kind", "mixed_folds", f"expected folds of one kind, {first.kind!r}, got {fold.kind!r}"
        )
    if fold.is_grouped != first.is_grouped:
        raise InvalidInput.at(f"{where}/group_ids", "mixed_folds", "expected group_ids in every fold or in none")
    if _columns(fold) != _columns(first):
        raise InvalidInput.at(
            f"{where}/scores",
            "mixed_folds",
            "expected one score per sample in every fold, or one per class in every fold",
        )
    if _attribute_names(fold) != _attribute_names(first):
        raise InvalidInput.at(f"{where}/attributes", "mixed_folds", "expected the attributes of the first fold")
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
