"""Regions and answers: items with a set that is there and a set that was predicted."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from app.domain.findings import Finding
from app.domain.inputs.matrices import MatrixInput
from app.domain.wording import names, number
from app.kernel.metrics.card import INPUTS_OF, Inputs, Task
from app.kernel.metrics.expression import Subject
from app.kernel.metrics.families.label_sets import samples_f1, samples_jaccard
from app.kernel.metrics.families.overlaps import pooled_jaccard
from app.kernel.uncertainty.units import OverlapUnits
from app.services.kinds.kind import PerClass, UnitKind

_WITHOUT_CLASSES = INPUTS_OF[Task.SETS] - {Inputs.CLASS_OVERLAPS}
# With fewer items of a class little is known of it.
_FEW = 10
# Pooled values that far from the mean over the items say something else.
_APART = 0.1
_MOST_NAMED = 20


def _inputs(source: MatrixInput) -> frozenset[Inputs]:
    return INPUTS_OF[Task.SETS] if source.labels else _WITHOUT_CLASSES


def _units(source: MatrixInput) -> OverlapUnits:
    """The items with their sizes.

    Raises:
        ValueError: they are not at hand.
    """
    samples = source.samples
    if samples is None or samples.outputs is None:
        raise ValueError("expected the sizes of the items")
    codes = samples.truth.astype(np.intp, copy=False) if source.labels else None
    return OverlapUnits(samples.outputs, np.asarray(samples.predicted, dtype=bool), codes, len(source.labels))


def _reordered(source: MatrixInput, labels: tuple[str, ...]) -> MatrixInput:
    order = [source.labels.index(label) for label in labels]
    samples = source.samples
    if samples is not None and order:
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order))
        samples = replace(samples, truth=places[samples.truth])
    counts = source.counts[order] if order else source.counts
    return replace(source, labels=labels, counts=counts, samples=samples)


def _findings(source: MatrixInput, _: Subject, values: Mapping[str, float | None], __: PerClass) -> Iterator[Finding]:
    per_item, pooled = values.get(samples_jaccard.key), values.get(pooled_jaccard.key)
    if per_item is not None and pooled is not None and abs(per_item - pooled) >= _APART:
        better = "large" if pooled > per_item else "small"
        yield Finding.note(
            "size_matters",
            f"{samples_jaccard.key}, in which all items count alike, is {number(per_item)}; {pooled_jaccard.key}, in "
            f"which large items count most, is {number(pooled)}: {better} items are predicted better than others.",
            per_item=per_item,
            pooled=pooled,
        )
    sizes = source.counts.sum(axis=1).tolist()
    few = [label for label, size in zip(source.labels, sizes, strict=False) if size < _FEW]
    if few:
        yield Finding.warning(
            "classes_with_few_items",
            f"Fewer than {_FEW} items have the class {names(few)}: little is known of "
            f"{'these classes' if few[1:] else 'this class'}.",
            classes=few[:_MOST_NAMED],
        )


def _shown(source: MatrixInput) -> Mapping[str, Any]:
    found: dict[str, Any] = {"exact_matches": source.counts[:, 1].sum().item()}
    if source.labels:
        found["class_sizes"] = source.counts.sum(axis=1).tolist()
    return found


SETS_KIND = UnitKind(
    inputs=_inputs,
    ranked=(samples_f1,),
    units=_units,
    reordered=_reordered,
    shown=_shown,
    twin=lambda _: None,
    findings=_findings,
    of_units=(samples_jaccard, samples_f1),
)
