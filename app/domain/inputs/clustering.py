"""Clusterings, with known classes or with features, or with both."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import InvalidInput, TooLarge
from app.domain.findings import Finding
from app.domain.inputs.columns import BESIDE, Rows, check_range, facts_beside, read_table, samples_of
from app.domain.inputs.content import CLUSTERS_FACT, FEATURES_FACT, Content
from app.domain.inputs.kind import (
    LABELS,
    POINTS,
    Facts,
    File,
    GroupNames,
    Input,
    PerClass,
    Spread,
    Table,
    UnitKind,
    Values,
    column,
    groups,
    ids,
    option,
)
from app.domain.inputs.labels import Column, encode
from app.domain.inputs.matrices import MatrixInput, check_entries, check_labels, names_of
from app.domain.inputs.samples import Samples
from app.domain.wording import names, number
from app.kernel.matrix.contingency import Contingency, cross_tabulated
from app.kernel.matrix.table import at_equal_prevalence
from app.kernel.metrics.card import INPUTS_OF, Inputs, Task
from app.kernel.metrics.expression import Subject
from app.kernel.metrics.families.agreement import adjusted_rand
from app.kernel.metrics.families.clusterings import completeness, homogeneity, purity, silhouette, v_measure
from app.kernel.numerics.arrays import silently
from app.kernel.uncertainty.units import CellUnits, ClusterUnits, Units

# Classes times clusters: a table of so many counts, of which resamples make a thousand.
MOST_CELLS = 250_000
# Samples times features: doubles, of which several copies are held at once.
MOST_ENTRIES = 50_000_000
# Squares of larger ones leave no room for their sum.
LARGEST_FEATURE = 1e100
_OF_POINTS = frozenset({Inputs.FEATURES})
# What DBSCAN and its kin call the samples that they put into no cluster.
_NOISE = "-1"
# Purity beyond what chance leaves by so much, with more clusters than classes, comes from their number.
_OVERSTATED = 0.3
_MOST_NAMED = 20
# With fewer samples for each cell of the table limits of shared information were seen to hold the truth in 67 to 94 of
# 100 cases, not in 95 (benchmarks/coverage.py).
_FEW_FOR_A_CELL, _SEVERAL_CELLS = 6, 9


def _inputs(source: MatrixInput) -> frozenset[Inputs]:
    measured = _OF_POINTS if FEATURES_FACT in source.facts else frozenset()
    return ((INPUTS_OF[Task.CLUSTERING] - _OF_POINTS) if source.labels else frozenset()) | measured


def _cluster_units(source: MatrixInput) -> Units:
    """The samples where they are known, else the cells of the table.

    Raises:
        ValueError: there are features, and the samples are not known.
    """
    samples = source.samples
    if samples is None:
        if FEATURES_FACT in source.facts:
            raise ValueError("expected the features of the samples")
        return CellUnits(source.counts.astype(np.float64))
    classes = samples.truth.astype(np.intp, copy=False) if source.labels else None
    clusters = samples.predicted.astype(np.intp, copy=False)
    return ClusterUnits(classes, clusters, source.counts.shape, samples.outputs)


def _shown(source: MatrixInput) -> Facts:
    table = {"contingency": source.counts.tolist()} if source.labels else {}
    return {**table, "cluster_sizes": source.counts.sum(axis=0).tolist()}


def _twin(subject: Subject) -> Subject | None:
    table: Contingency | None = subject.parts.get(Inputs.CONTINGENCY)
    if table is None:
        return None
    with silently():
        return Subject({Inputs.CONTINGENCY: Contingency(at_equal_prevalence(table.counts))})


def _findings(source: MatrixInput, _: Subject, values: Values, __: PerClass) -> Iterator[Finding]:
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


def _against_classes(source: MatrixInput, values: Values) -> Iterator[Finding]:
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


_UNITS = UnitKind(
    task=Task.CLUSTERING,
    judged="clusters",
    # Classes by clusters; one row where no classes are known. Distances need the samples.
    shape=lambda n_classes, facts: (max(n_classes, 1), len(facts[CLUSTERS_FACT])),
    needs_samples=lambda facts: FEATURES_FACT in facts,
    inputs=_inputs,
    ranked=(adjusted_rand, silhouette),
    units=_cluster_units,
    shown=_shown,
    twin=_twin,
    findings=_findings,
    figure="contingency",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clustering(Input):
    """A clustering: a table of classes by clusters, or the cluster of every sample with its class or its features."""

    kind: ClassVar[str] = "clustering"
    units: ClassVar[UnitKind | None] = _UNITS

    contingency: Table | None = option("Numbers of samples, classes x clusters, of any shape.")
    classes: GroupNames | None = option('Names of the rows; "0", "1", ... when left out.')
    clusters: GroupNames | None = option('Names of the columns; "0", "1", ... when left out.')
    y_pred: Column | None = column(LABELS, "The cluster of every sample.", File("y_pred", needed=True))
    y_true: Column | None = column(LABELS, "The class of every sample, where it is known.", File("y_true"))
    features: Rows | None = column(
        POINTS,
        "n x d: where every sample lies, for measures of the shape of the clusters. In files the columns `feature.*`.",
        File("features", spread=Spread.FEATURES),
    )
    sample_ids: Column | None = ids()
    group_ids: Column | None = groups()

    def read(self, pointer: str) -> MatrixInput:
        """A table of classes by clusters, and the samples where something needs them."""
        if self.contingency is not None:
            both = next(iter(self.given()), None)
            said = "contingency, classes and clusters or columns of samples, got something of both"
        else:
            both = next((one for one in ("classes", "clusters") if getattr(self, one) is not None), None)
            said = "names of classes and clusters with a contingency only; samples name theirs themselves"
        if both is not None:
            either = "either " if self.contingency is not None else ""
            raise InvalidInput.at(f"{pointer}/{both}", "one_of", f"expected {either}{said}")
        if self.contingency is not None:
            return self._of_table(self.contingency, pointer)
        if self.y_pred is None:
            raise InvalidInput.at(f"{pointer}/y_pred", "missing_field", "expected contingency or y_pred, got neither")
        return self._of_samples(pointer)

    def _of_table(self, rows: list[list[float]], pointer: str) -> MatrixInput:
        where = f"{pointer}/contingency"
        table = read_table(rows, where)
        check_entries(table, where, lambda row, place: f"{where}/{row}/{place}")
        broken = np.argwhere(table != np.floor(table))
        if broken.size:
            i, j = broken[0].tolist()
            raise InvalidInput.at(
                f"{where}/{i}/{j}", "not_a_count", f"expected a whole number of samples, got {table[i, j]:g}"
            )
        n, m = table.shape
        classes = names_of(self.classes, n, f"names for {n} rows", f"{pointer}/classes", fewest=1)
        clusters = names_of(self.clusters, m, f"names for {m} columns", f"{pointer}/clusters", fewest=1)
        return self._made(classes, clusters, table, None, {}, pointer)

    def _of_samples(self, pointer: str) -> MatrixInput:
        read = self.read_columns(pointer)
        if self.y_true is None and self.features is None:
            raise InvalidInput.at(
                f"{pointer}/y_true",
                "missing_field",
                "expected y_true, or features to measure the clusters by, got neither",
            )
        clusters, predicted = _coded(read, "y_pred", pointer)
        classes, truth = _coded(read, "y_true", pointer) if "y_true" in read else ((), np.zeros_like(predicted))
        check_cells(classes, clusters, pointer)
        features, facts, samples = read.get("features"), facts_beside(read), None
        if features is not None:
            _check_features(features, f"{pointer}/features")
            facts[FEATURES_FACT] = features.shape[1]
        if features is not None or not read.keys().isdisjoint(BESIDE):
            samples = samples_of(read, truth, predicted, features)
        table = cross_tabulated(truth, predicted, max(len(classes), 1), len(clusters))
        return self._made(classes, clusters, table, samples, facts, pointer)

    def _made(
        self,
        classes: tuple[str, ...],
        clusters: tuple[str, ...],
        table: NDArray[np.float64],
        samples: Samples | None,
        facts: Facts,
        pointer: str,
    ) -> MatrixInput:
        check_cells(classes, clusters, pointer)
        facts, counts = {**facts, CLUSTERS_FACT: list(clusters)}, table.astype(np.int64)
        return MatrixInput(self.kind, classes, None, Content.counts, counts, facts=facts, samples=samples)


def _coded(read: Mapping[str, Any], name: str, pointer: str) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Names of the groups that occur in a column, and the code of each sample."""
    coded = encode({name: read[name]}, None, pointer)
    return check_labels(coded.labels, f"{pointer}/{name}", fewest=1), coded.codes[name]


def check_cells(classes: Sequence[str], clusters: Sequence[str], pointer: str) -> None:
    """Raises TooLarge: there are more classes times clusters than a table may have."""
    size, width = max(len(classes), 1), len(clusters)
    if size * width > MOST_CELLS:
        raise TooLarge(
            f"expected at most {MOST_CELLS} classes times clusters, got {size} times {width}", pointer=pointer
        )


def _check_features(features: NDArray[np.float64], pointer: str) -> None:
    if features.shape[1] == 0:
        raise InvalidInput.at(f"{pointer}/0", "not_a_row", "expected an array of numbers for every sample")
    if features.size > MOST_ENTRIES:
        raise TooLarge(
            f"expected at most {MOST_ENTRIES} samples times features, got {len(features)} times {features.shape[1]}",
            pointer=pointer,
        )
    check_range(features, pointer, -LARGEST_FEATURE, LARGEST_FEATURE)
