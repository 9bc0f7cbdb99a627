"""Clusterings, with known classes, with features or distances, or with both."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import InvalidInput, TooLarge
from app.domain.findings import Finding
from app.domain.inputs.columns import Rows, check_range, design_facts, designed, read_table, refuse_first, samples_of
from app.domain.inputs.content import CLUSTERS_FACT, FEATURES_FACT, WEIGHT_FACT, WEIGHTS_FACT, Content
from app.domain.inputs.ignored import at_their_places
from app.domain.inputs.kind import (
    DISTANCES,
    GROUPINGS,
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
    weights,
)
from app.domain.inputs.labels import Column, Numbers, encode, taken
from app.domain.inputs.matrices import MOST_SAMPLES, MatrixInput, check_entries, check_found_labels, names_of
from app.domain.inputs.samples import Samples
from app.domain.wording import classes as class_names
from app.domain.wording import listed, number, numbered, whole
from app.kernel.metrics.card import INPUTS_OF, Inputs, Task
from app.kernel.metrics.expression import Subject
from app.kernel.metrics.families.agreement import adjusted_rand
from app.kernel.metrics.families.clusterings import (
    completeness,
    homogeneity,
    purity,
    silhouette,
    v_measure,
    variation_of_information,
)
from app.kernel.samples.contingency import CellPlaces, Contingency
from app.kernel.uncertainty.units import CellUnits, ClusterUnits, Units

# Classes times clusters: larger tables are mostly empty, and no answer has them.
_MOST_SHOWN = 250_000
# Samples times features: doubles, of which several copies are held at once.
MOST_ENTRIES = 50_000_000
# Distances of two samples from each other may differ so much, relative to the largest distance.
_ASYMMETRY = 1e-9
# Squares of larger ones leave no room for their sum.
LARGEST_FEATURE = 1e100
_OF_POINTS = frozenset({Inputs.FEATURES})
# What DBSCAN and its kin call the samples that they put into no cluster.
_NOISE = "-1"
# Purity beyond what chance leaves by so much, with more clusters than classes, comes from their number.
_OVERSTATED = 0.3
_MOST_NAMED = 20
# With fewer samples for each cell of the table limits of shared information were seen to hold the truth in 82 to 94 of
# 100 cases, not in 95 (benchmarks/coverage.py).
_FEW_FOR_A_CELL, _SEVERAL_CELLS = 4, 9


def _inputs(source: MatrixInput) -> frozenset[Inputs]:
    measured = _OF_POINTS if FEATURES_FACT in source.facts else frozenset()
    return ((INPUTS_OF[Task.CLUSTERING] - _OF_POINTS) if source.labels else frozenset()) | measured


def _cluster_units(source: MatrixInput) -> Units:
    """The samples where they are known, else the cells of the table.

    Raises:
        ValueError: there are features or weights, and the samples are not known.
    """
    samples = source.samples
    if samples is None:
        if _needs_samples(source.facts):
            raise ValueError("expected the features or the weights of the samples")
        places, counts = _table(source)
        return CellUnits(counts, places)
    classes = samples.truth.astype(np.intp, copy=False) if source.labels else None
    clusters = samples.predicted.astype(np.intp, copy=False)
    distances = source.facts.get(FEATURES_FACT) == 0
    return ClusterUnits(classes, clusters, _size(source), samples.outputs, distances, samples.weights)


def _needs_samples(facts: Facts) -> bool:
    return FEATURES_FACT in facts or WEIGHTS_FACT in facts


def _size(source: MatrixInput) -> tuple[int, int]:
    """Rows and columns of the table; one row where no classes are known."""
    return max(len(source.labels), 1), len(source.facts[CLUSTERS_FACT])


def _table(source: MatrixInput) -> tuple[CellPlaces, NDArray[np.float64]]:
    classes, clusters, samples = source.counts.T
    return CellPlaces(classes, clusters, *_size(source)), samples.astype(np.float64)


def _cluster_sizes(source: MatrixInput) -> NDArray[np.int64]:
    _, clusters, samples = source.counts.T
    return np.bincount(clusters, samples, _size(source)[1]).astype(np.int64)


def _shown(source: MatrixInput) -> Facts:
    sizes = {"cluster_sizes": _cluster_sizes(source).tolist()}
    n_classes, n_clusters = _size(source)
    if not source.labels or n_classes * n_clusters > _MOST_SHOWN:
        return sizes
    classes, clusters, samples = source.counts.T
    table = np.zeros((n_classes, n_clusters), dtype=np.int64)
    table[classes, clusters] = samples
    return {"contingency": table.tolist(), **sizes}


def _reordered(source: MatrixInput, labels: tuple[str, ...]) -> MatrixInput:
    """An input with its classes in another order."""
    place = np.array([labels.index(label) for label in source.labels])
    classes, clusters, times = source.counts.T
    samples = source.samples
    if samples is not None:
        samples = replace(samples, truth=place[samples.truth])
    return replace(source, labels=labels, counts=tallied(place[classes], clusters, times), samples=samples)


def _restricted(source: MatrixInput, places: NDArray[np.intp]) -> MatrixInput:
    facts = {name: source.facts[name] for name in (CLUSTERS_FACT, FEATURES_FACT, WEIGHT_FACT) if name in source.facts}
    some = source.known_samples.taken(places)
    return _of_samples(source.labels, {**facts, **design_facts(some)}, some)


def _of_samples(classes: tuple[str, ...], facts: Facts, samples: Samples) -> MatrixInput:
    """The canonical form of samples; those that nothing is known of but their classes and clusters are forgotten."""
    counts = tallied(samples.truth, samples.predicted)
    known = samples.outputs is not None or samples.labels is not None or WEIGHT_FACT in facts
    return MatrixInput(
        Clustering.kind, classes, None, Content.counts, counts, facts=facts, samples=samples if known else None
    )


def tallied(classes: NDArray[Any], clusters: NDArray[Any], times: NDArray[Any] | None = None) -> NDArray[np.int64]:
    """Cells (C, 3) of a table that are not empty, in order: class, cluster, how many samples. Each entry of classes (n)
    and clusters (n) stands for ``times`` (n) samples, None is 1 each.
    """
    width = int(clusters.max()) + 1
    found, cell = np.unique(classes.astype(np.int64) * width + clusters, return_inverse=True)
    sums = np.zeros(found.size, dtype=np.int64)
    np.add.at(sums, cell, 1 if times is None else times)
    return np.stack([*np.divmod(found, width), sums], axis=1)[sums > 0]


def _twin(subject: Subject) -> Subject | None:
    table: Contingency | None = subject.parts.get(Inputs.CONTINGENCY)
    return None if table is None else Subject({Inputs.CONTINGENCY: table.at_equal_prevalence()})


def _findings(source: MatrixInput, _: Subject, values: Values, __: PerClass) -> Iterator[Finding]:
    clusters = source.facts[CLUSTERS_FACT]
    sizes = _cluster_sizes(source)
    if _NOISE in clusters:
        size = int(sizes[clusters.index(_NOISE)])
        yield Finding.note(
            "noise_counted_as_cluster",
            f"{numbered(size)} {'is' if size == 1 else 'are'} in a cluster called {_NOISE!r}, which many methods use "
            "for samples that are in none: here it counts as a cluster like all others.",
            samples=size,
        )
    if np.count_nonzero(sizes) == 1:
        yield Finding.warning(
            "one_cluster", "All samples are in one cluster, so nothing was told apart.", clusters=len(clusters)
        )
    if source.labels:
        yield from _against_classes(source, values)


def _against_classes(source: MatrixInput, values: Values) -> Iterator[Finding]:
    (n_classes, n_clusters), (classes, clusters, samples) = _size(source), source.counts.T
    cells, n = n_classes * n_clusters, int(samples.sum())
    if cells >= _SEVERAL_CELLS and cells <= n < _FEW_FOR_A_CELL * cells:
        yield Finding.note(
            "information_limits_narrow",
            f"With {numbered(n)} in {whole(cells)} cells of classes and clusters the limits of {v_measure.key}, "
            f"{homogeneity.key}, {completeness.key} and {variation_of_information.key} are too narrow: chance adds "
            "to shared information where samples are few.",
            samples=n,
            cells=cells,
        )
    # The largest class of each cluster, the first of equals.
    order = np.lexsort((classes, -samples, clusters))
    leading = classes[order[np.unique(clusters[order], return_index=True)[1]]]
    without = [source.labels[code] for code in np.setdiff1d(classes, leading).tolist()]
    if without and n_clusters > 1:
        yield Finding.warning(
            "classes_without_cluster",
            f"No cluster has more samples of {class_names(without)} than of any other class: "
            f"{'these classes are' if without[1:] else 'this class is'} not found.{listed(without)}",
            classes=without[:_MOST_NAMED],
        )
    pure, adjusted = values.get(purity.key), values.get(adjusted_rand.key)
    if n_clusters > n_classes and pure is not None and adjusted is not None and pure - adjusted > _OVERSTATED:
        yield Finding.warning(
            "purity_overstates",
            f"Purity is {number(pure)}, and the adjusted Rand index {number(adjusted)}: with {n_clusters} clusters for "
            f"{numbered(n_classes, 'classes')} purity is high however the classes are split up.",
            purity=pure,
            adjusted_rand=adjusted,
        )


_UNITS = UnitKind(
    task=Task.CLUSTERING,
    judged="clusters",
    # The cells that are not empty: class, cluster, samples. Distances need the samples themselves.
    shape=lambda _, __: (-1, 3),
    size=lambda counts: counts[:, 2].sum().item(),
    needs_samples=_needs_samples,
    inputs=_inputs,
    ranked=(adjusted_rand, silhouette),
    units=_cluster_units,
    reordered=_reordered,
    restricted=_restricted,
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
    y_pred: Column | None = column(GROUPINGS, "The cluster of every sample.", File("y_pred", needed=True))
    y_true: Column | None = column(GROUPINGS, "The class of every sample, where it is known.", File("y_true"))
    features: Rows | None = column(
        POINTS,
        "n x d: where every sample lies, for measures of the shape of the clusters. In files the columns `feature.*`.",
        File("features", spread=Spread.FEATURES),
    )
    distances: Rows | None = column(
        DISTANCES,
        "n x n in place of `features`: how far samples are from each other, 0 or more, for `silhouette` and `dunn`.",
    )
    sample_ids: Column | None = ids()
    sample_weight: Numbers | None = weights()
    group_ids: Column | None = groups()

    def read(self, pointer: str) -> MatrixInput:
        """A table of classes by clusters, and the samples where something needs them."""
        columns = tuple(name for name in self.columns() if name != "y_pred")
        self.chosen_way(pointer, (("contingency",), ("classes", "clusters")), (("y_pred",), columns))
        if self.contingency is not None:
            return self._of_table(self.contingency, pointer)
        return self._of_samples(pointer)

    def _of_table(self, rows: list[list[float]], pointer: str) -> MatrixInput:
        where = f"{pointer}/contingency"
        table = read_table(rows, where)
        check_entries(table, where)
        refuse_first(table, table != np.floor(table), where, "not_a_count", "expected a whole number of samples")
        n, m = table.shape
        classes = names_of(self.classes, n, f"names for {n} rows", f"{pointer}/classes", fewest=1)
        clusters = names_of(self.clusters, m, f"names for {m} columns", f"{pointer}/clusters", fewest=1)
        found = Contingency.of_table(table)
        cells = np.stack([found.places.classes, found.places.clusters, found.counts], axis=1)
        facts = {CLUSTERS_FACT: list(clusters)}
        return MatrixInput(self.kind, classes, None, Content.counts, cells.astype(np.int64), facts=facts)

    def _of_samples(self, pointer: str) -> MatrixInput:
        read = self.read_columns(pointer)
        features, distances, weighed = (read.get(name) for name in ("features", "distances", "sample_weight"))
        if self.y_true is None and features is None and distances is None:
            raise InvalidInput.at(
                f"{pointer}/y_true",
                "missing_field",
                "expected y_true, or features or distances to measure the clusters by, got none of them",
            )
        if features is not None and distances is not None:
            raise InvalidInput.at(f"{pointer}/distances", "one_of", "expected either features or distances, got both")
        where = f"{pointer}/sample_weight"
        if weighed is not None and (features is not None or distances is not None):
            got = "distances" if features is None else "features"
            raise InvalidInput.at(where, "one_of", f"expected weights of clusters and classes alone, got {got} too")
        used = np.arange(len(read["y_pred"]))
        if weighed is not None:
            check_entries(weighed, where)
            used = np.flatnonzero(weighed)
            read = {name: taken(column, used) for name, column in read.items()}
        with at_their_places(used, read, pointer):
            clusters, predicted = _coded(read, "y_pred", pointer)
            classes, truth = _coded(read, "y_true", pointer) if "y_true" in read else ((), np.zeros_like(predicted))
        facts: dict[str, Any] = {CLUSTERS_FACT: list(clusters)}
        if features is not None:
            _check_features(features, f"{pointer}/features")
            facts[FEATURES_FACT] = features.shape[1]
        elif distances is not None:
            _check_distances(distances, f"{pointer}/distances")
            facts[FEATURES_FACT] = 0
            # Where a sample stands among all is known of any part of them.
            features = np.column_stack([np.arange(len(distances)), distances])
        samples, beside = designed(samples_of(read, truth, predicted, features))
        return _of_samples(classes, {**facts, **beside}, samples)


def _coded(read: Mapping[str, Any], name: str, pointer: str) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Names of the groups that occur in a column, and the code of each sample."""
    coded = encode({name: read[name]}, None, pointer, most=MOST_SAMPLES)
    check_found_labels(coded, pointer, fewest=1, most=MOST_SAMPLES)
    return coded.labels, coded.codes[name]


def _check_features(features: NDArray[np.float64], pointer: str) -> None:
    if features.shape[1] == 0:
        raise InvalidInput.at(f"{pointer}/0", "not_a_row", "expected an array of numbers for every sample")
    if features.size > MOST_ENTRIES:
        raise TooLarge(
            f"expected at most {MOST_ENTRIES} samples times features, got {len(features)} times {features.shape[1]}",
            pointer=pointer,
        )
    check_range(features, pointer, -LARGEST_FEATURE, LARGEST_FEATURE)


def _check_distances(distances: NDArray[np.float64], pointer: str) -> None:
    size, width = distances.shape
    if size != width:
        raise InvalidInput.at(
            f"{pointer}/0", "ragged_row", f"expected {size} entries as there are samples, got {width}"
        )
    _check_features(distances, pointer)
    check_range(distances, pointer, 0.0, LARGEST_FEATURE, what="distance")
    bad = np.abs(distances - distances.T) > _ASYMMETRY * distances.max()
    np.fill_diagonal(bad, np.diagonal(distances) != 0.0)
    if bad.any():
        row, column = np.argwhere(bad)[0].tolist()
        expected = "0 from itself" if row == column else f"{distances[column, row]:g} as from the other side"
        detail = f"expected {expected}, got {distances[row, column]:g}"
        raise InvalidInput.at(f"{pointer}/{row}/{column}", "not_a_distance", detail)
