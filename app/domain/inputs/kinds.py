"""All kinds of input by name, and what follows for stored ones from the name and the facts alone."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import NotForKind
from app.domain.inputs.classified import Predictions, Probabilities, Scores, decide
from app.domain.inputs.clustering import Clustering
from app.domain.inputs.columns import design_facts
from app.domain.inputs.confusion import DECISIONS, BinaryCounts, ConfusionMatrix
from app.domain.inputs.content import (
    DECISIONS_FACT,
    GROUPS_FACT,
    IGNORED_FACT,
    MIXED_FACT,
    REPEATS_FACT,
    WEIGHTS_FACT,
    Content,
)
from app.domain.inputs.folds import Folds
from app.domain.inputs.kind import Input, UnitKind
from app.domain.inputs.matrices import MatrixInput, class_counts
from app.domain.inputs.multilabel import Multilabel
from app.domain.inputs.ranking import Ranking
from app.domain.inputs.samples import DecidedBy, in_order
from app.domain.inputs.sets import Sets
from app.kernel.metrics.card import INPUTS_OF_CLASSES, Inputs, Task

KINDS: Final[Mapping[str, type[Input]]] = {
    one.kind: one
    for one in (
        *(ConfusionMatrix, BinaryCounts, Predictions, Probabilities, Scores, Folds),
        *(Multilabel, Ranking, Clustering, Sets),
    )
}
# Members with one entry per sample or item, in whatever kind of input.
COLUMNS: Final = frozenset(name for kind in KINDS.values() for name in kind.all_columns())
UNIT_KINDS: Final[Mapping[Task, UnitKind]] = {
    units.task: units for units in (*(one.units for one in KINDS.values()), DECISIONS) if units is not None
}


_Input = TypeVar("_Input", bound=MatrixInput)
# What was counted of all samples, and is not known of some.
_OF_ALL: Final = frozenset(
    {WEIGHTS_FACT, GROUPS_FACT, IGNORED_FACT, REPEATS_FACT, MIXED_FACT, "renormalized", "ties", "fold_kind"}
)


def units_of(kind: str, facts: Mapping[str, Any]) -> UnitKind | None:
    """Functions that evaluate an input; None for matrices of classes, [K, K], whose entries sum to their samples."""
    return DECISIONS if DECISIONS_FACT in facts else KINDS[kind].units


def needs_samples(source: MatrixInput) -> bool:
    """Does a report of all of an input say more than what follows from its counts?"""
    units = units_of(source.kind, source.facts)
    of_units = units is not None and units.needs_samples(source.facts)
    return of_units or source.is_scored or source.is_grouped or source.is_weighted


def task_of(kind: str, facts: Mapping[str, Any]) -> Task | None:
    """Task of an input; None for classes, two or more."""
    units = units_of(kind, facts)
    return None if units is None else units.task


def shape_of(kind: str, n_labels: int, facts: Mapping[str, Any]) -> tuple[int, ...]:
    """Shape of the counts of an input."""
    units = units_of(kind, facts)
    return (n_labels, n_labels) if units is None else units.shape(n_labels, facts)


def refuse_without_curves(source: MatrixInput, *, pointer: str | None = None) -> None:
    """Raises NotForKind: there are curves of no input of this kind."""
    if source.task not in (None, Task.MULTILABEL):
        detail = f"there is no such thing as a curve or decision rule of this form of {source.task}"
        raise NotForKind(detail, pointer=pointer)


def inputs_of(source: MatrixInput) -> frozenset[Inputs]:
    """Data that metrics of an input can be computed from."""
    if source.task is not None:
        return UNIT_KINDS[source.task].inputs(source)
    return INPUTS_OF_CLASSES if source.is_scored else frozenset({Inputs.MATRIX})


def places_among(labels: Sequence[str], together: Sequence[str]) -> NDArray[np.intp]:
    """Places (K) of labels among others."""
    places = {label: place for place, label in enumerate(together)}
    return np.array([places[label] for label in labels], dtype=np.intp)


def in_class_order(source: _Input, labels: tuple[str, ...]) -> _Input:
    """An input with its classes at their places among these, which may be more; those of its samples too."""
    if source.labels == labels:
        return source
    if source.task is not None:
        return replace(source, **UNIT_KINDS[source.task].reordered(source, labels).as_input)
    places, size, samples, folds = places_among(source.labels, labels), len(labels), source.samples, source.fold_counts
    positive = None if source.positive is None or size > 2 else int(places[source.positive])
    cells = ..., places[:, None], places

    def wide(counts: NDArray[Any]) -> NDArray[Any]:
        found = np.zeros((*counts.shape[:-2], size, size), counts.dtype)
        found[cells] = counts
        return found

    return replace(
        source,
        labels=labels,
        positive=positive,
        counts=wide(source.counts),
        fold_counts=None if folds is None else wide(folds),
        samples=None if samples is None else in_order(samples, places),
    )


def restricted(source: MatrixInput, places: NDArray[np.intp]) -> MatrixInput:
    """An input of some of its samples or queries, with the labels, the kind and the choices of the whole. That of a
    cross-validation has no folds.

    Raises:
        ValueError: its samples are not known.
    """
    if source.task is not None:
        return UNIT_KINDS[source.task].restricted(source, places)
    some = source.known_samples.taken(places)
    facts: dict[str, Any] = {name: fact for name, fact in source.facts.items() if name not in _OF_ALL}
    facts |= design_facts(some)
    if "rows" in facts:
        facts["rows"] = some.size if some.times is None else int(some.times.sum())
    if facts.get("rule") == DecidedBy.ARGMAX and some.outputs is not None:
        facts["ties"] = decide(some.outputs)[1]
    return replace(
        source,
        kind=source.facts.get("fold_kind", source.kind),
        content=Content.counts if some.weights is None else Content.weights,
        counts=class_counts(some, len(source.labels)),
        fold_counts=None,
        facts=facts,
        samples=some,
    )
