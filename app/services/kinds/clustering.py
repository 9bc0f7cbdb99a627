"""Clusterings, with known classes or with features, or with both."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from app.domain.findings import Finding
from app.domain.inputs.kinds import CLUSTERS_FACT, FEATURES_FACT
from app.domain.inputs.matrices import MatrixInput
from app.domain.wording import names, number
from app.kernel.matrix.contingency import Contingency
from app.kernel.matrix.table import at_equal_prevalence
from app.kernel.metrics.card import INPUTS_OF, Inputs, Task
from app.kernel.metrics.expression import Subject
from app.kernel.metrics.families.agreement import adjusted_rand
from app.kernel.metrics.families.clusterings import completeness, homogeneity, purity, silhouette, v_measure
from app.kernel.numerics.arrays import silently
from app.kernel.uncertainty.units import CellUnits, ClusterUnits, Units
from app.services.kinds.kind import PerClass, UnitKind

_OF_POINTS = frozenset({Inputs.FEATURES})
# What DBSCAN and its kin call the samples that they put into no cluster.
_NOISE = "-1"
# Purity beyond what chance leaves by so much, with more clusters than classes, comes from their number.
_OVERSTATED = 0.3
_MOST_NAMED = 20
# With fewer samples for each cell of the table limits of shared information were seen to hold the truth in 67 to 94 of
# 100 cases, not in 95 (benchmarks/clustering_coverage.py).
_FEW_FOR_A_CELL, _SEVERAL_CELLS = 6, 9


def _inputs(source: MatrixInput) -> frozenset[Inputs]:
    measured = _OF_POINTS if FEATURES_FACT in source.facts else frozenset()
    return ((INPUTS_OF[Task.CLUSTERING] - _OF_POINTS) if source.labels else frozenset()) | measured


def _units(source: MatrixInput) -> Units:
    """The samples where they are at hand, else the cells of the table.

    Raises:
        ValueError: there are features, and the samples are not at hand.
    """
    samples = source.samples
    if samples is None:
        if FEATURES_FACT in source.facts:
            raise ValueError("expected the features of the samples")
        return CellUnits(source.counts.astype(np.float64))
    classes = samples.truth.astype(np.intp, copy=False) if source.labels else None
    clusters = samples.predicted.astype(np.intp, copy=False)
    return ClusterUnits(classes, clusters, source.counts.shape, samples.outputs)


def _reordered(source: MatrixInput, labels: tuple[str, ...]) -> MatrixInput:
    order = [source.labels.index(label) for label in labels]
    samples = source.samples
    if samples is not None:
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order))
        samples = replace(samples, truth=places[samples.truth])
    return replace(source, labels=labels, counts=source.counts[order], samples=samples)


def _shown(source: MatrixInput) -> Mapping[str, Any]:
    table = {"contingency": source.counts.tolist()} if source.labels else {}
    return {**table, "cluster_sizes": source.counts.sum(axis=0).tolist()}


def _twin(subject: Subject) -> Subject | None:
    table: Contingency | None = subject.parts.get(Inputs.CONTINGENCY)
    if table is None:
        return None
    with silently():
        return Subject({Inputs.CONTINGENCY: Contingency(at_equal_prevalence(table.counts))})


def _findings(source: MatrixInput, _: Subject, values: Mapping[str, float | None], __: PerClass) -> Iterator[Finding]:
    clusters = source.facts[CLUSTERS_FACT]
    sizes = source.counts.sum(axis=0)
    if _NOISE in clusters:
        size = int(sizes[clusters.index(_NOISE)])
        yield Finding.note(
            "noise_counted_as_cluster",
            f"{size} samples are in a cluster called {_NOISE!r}, which many methods use for samples that are in none: "
            "here it counts as a cluster like all others.",
            samples=size,
        )
    if np.count_nonzero(sizes) == 1:
        yield Finding.warning(
            "one_cluster", "All samples are in one cluster, so nothing was told apart.", clusters=len(clusters)
        )
    if source.labels:
        yield from _against_classes(source, values)


def _against_classes(source: MatrixInput, values: Mapping[str, float | None]) -> Iterator[Finding]:
    counts = source.counts
    if counts.size >= _SEVERAL_CELLS and 0 < counts.sum() < _FEW_FOR_A_CELL * counts.size:
        yield Finding.note(
            "information_limits_narrow",
            f"With {int(counts.sum())} samples in {counts.size} cells of classes and clusters the limits of "
            f"{v_measure.key}, {homogeneity.key} and {completeness.key} are too narrow: chance adds to shared "
            "information where samples are few.",
            samples=int(counts.sum()),
            cells=counts.size,
        )
    leading = set(counts.argmax(axis=0)[counts.sum(axis=0) > 0].tolist())
    members = counts.sum(axis=1).tolist()
    without = [label for code, label in enumerate(source.labels) if members[code] and code not in leading]
    if without and counts.shape[1] > 1:
        yield Finding.warning(
            "classes_without_cluster",
            f"No cluster has more samples of {names(without)} than of any other class: "
            f"{'these classes are' if without[1:] else 'this class is'} not found.",
            classes=without[:_MOST_NAMED],
        )
    pure, adjusted = values.get(purity.key), values.get(adjusted_rand.key)
    many = counts.shape[1] > counts.shape[0]
    if many and pure is not None and adjusted is not None and pure - adjusted > _OVERSTATED:
        yield Finding.warning(
            "purity_overstates",
            f"Purity is {number(pure)}, and the adjusted Rand index {number(adjusted)}: with {counts.shape[1]} "
            f"clusters for {counts.shape[0]} classes purity is high however the classes are split up.",
            purity=pure,
            adjusted_rand=adjusted,
        )


CLUSTERING_KIND = UnitKind(
    inputs=_inputs,
    ranked=(adjusted_rand, silhouette),
    units=_units,
    reordered=_reordered,
    shown=_shown,
    twin=_twin,
    findings=_findings,
)
