"""Measures of clusterings against counts of pairs, exact fractions, decimals and scikit-learn."""

import tracemalloc
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from app.kernel.metrics.card import Metric
from app.kernel.metrics.families import clusterings
from app.kernel.metrics.families.agreement import adjusted_rand
from app.kernel.numerics import scipy_bridge
from app.kernel.numerics.arrays import silently
from app.kernel.samples.contingency import CellPlaces, Contingency, expected_information, relative_information
from app.kernel.samples.points import ClusteredPoints
from tests.bank import each
from tests.kernel.clusterings import exact
from tests.witnesses import sk

OF_TABLES: dict[str, Metric[Any]] = {
    metric.key: metric
    for metric in (
        clusterings.purity, clusterings.inverse_purity, clusterings.rand_index, adjusted_rand,
        clusterings.pair_fowlkes_mallows,
        clusterings.homogeneity, clusterings.completeness, clusterings.v_measure, clusterings.mutual_information,
        clusterings.normalized_mutual_information, clusterings.adjusted_mutual_information,
        clusterings.variation_of_information, clusterings.cluster_accuracy, clusterings.normalized_clustering_accuracy,
        clusterings.pair_sets_index, clusterings.pair_precision, clusterings.pair_recall, clusterings.pair_f1,
        clusterings.pair_jaccard, clusterings.adjusted_fowlkes_mallows, clusterings.bcubed_precision,
        clusterings.bcubed_recall, clusterings.bcubed_f1,
    )
}  # fmt: skip
RATIO = 1e-12


def value(metric: Metric[Any], data: Any, **parameters: Any) -> float:
    with silently():
        return float(metric.compute(data, **parameters))


def tables() -> list[NDArray[np.int64]]:
    """Of all shapes: dense, sparse, nearly independent, nearly right; neither grouping is trivial."""
    rng = np.random.default_rng(5)
    found = [np.array([[3, 1], [1, 3]]), np.array([[5, 0, 0], [0, 0, 7]]), np.array([[1, 1], [1, 1]])]
    for shape_of in ((2, 2), (2, 5), (5, 2), (4, 4), (3, 7)):
        found.append(rng.integers(0, 9, shape_of) + 1)
        found.append(rng.integers(0, 2, shape_of) * rng.integers(1, 9, shape_of) + np.eye(*shape_of, dtype=int))
    found.append(np.outer([3, 5, 2], [2, 4, 6]) + np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0]]))
    found.append(np.diag([40, 30, 30]) + np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]]))
    return found


def same(got: float, want: float) -> bool:
    # Differences of numbers near 1 keep what 1 has of digits.
    return abs(got - want) <= RATIO * abs(want) + 4e-15


@each("table", tables(), ids=lambda table: "x".join(map(str, table.shape)))
def test_tables_against_exact_arithmetic(table: NDArray[np.int64]) -> None:
    found = Contingency.of_table(table)
    for name, want in exact.values(table.tolist()).items():
        key, _, parameter = name.partition(" ")
        parameters: dict[str, Any] = {}
        if parameter:
            parameters = {"beta": float(parameter)} if key == "v_measure" else {"average": parameter}
        assert same(value(OF_TABLES[key], found, **parameters), want), name


SKLEARN = {
    "rand_index": sk.rand_score,
    "adjusted_rand": sk.adjusted_rand_score,
    "pair_fowlkes_mallows": sk.fowlkes_mallows_score,
    "homogeneity": sk.homogeneity_score,
    "completeness": sk.completeness_score,
    "v_measure": sk.v_measure_score,
    "mutual_information": sk.mutual_info_score,
    "normalized_mutual_information": sk.normalized_mutual_info_score,
    "adjusted_mutual_information": sk.adjusted_mutual_info_score,
}


def labelled(n: int, classes: int, clusters: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Clusters that follow the classes half of the time."""
    rng = np.random.default_rng(n + clusters)
    y = rng.integers(0, classes, n)
    return y, np.where(rng.random(n) < 0.5, y % clusters, rng.integers(0, clusters, n))


@each("key", SKLEARN)
@each(("n", "classes", "clusters"), [(60, 2, 3), (400, 6, 4), (900, 3, 20)])
def test_tables_against_scikit_learn(key: str, n: int, classes: int, clusters: int) -> None:
    y, p = labelled(n, classes, clusters)
    found = Contingency.of_table(sk.cluster.contingency_matrix(y, p))
    assert same(value(OF_TABLES[key], found), SKLEARN[key](y, p))
    if key.endswith("mutual_information") and key != "mutual_information":
        for average in ("geometric", "min", "max"):
            assert same(value(OF_TABLES[key], found, average=average), SKLEARN[key](y, p, average_method=average))


@each("width", [40, 1500])
def test_tables_of_many_clusters_against_scikit_learn(width: int) -> None:
    """Most cells of a large table are empty and nowhere written down."""
    rng = np.random.default_rng(width)
    y = rng.integers(0, width, 6_000)
    p = np.where(rng.random(y.size) < 0.6, y, rng.integers(0, 2 * width, y.size))
    places, cell = CellPlaces.of(y, p, width, 2 * width)
    found = Contingency(places, np.bincount(cell))
    table = sk.cluster.contingency_matrix(y, p, sparse=True)
    for key, witness in SKLEARN.items():
        assert value(OF_TABLES[key], found) == pytest.approx(witness(y, p), rel=1e-9), key
    assert value(clusterings.purity, found) == table.max(axis=0).sum() / y.size
    assert value(clusterings.inverse_purity, found) == table.max(axis=1).sum() / y.size


@each("seed", range(6))
def test_the_best_matching_against_that_of_whole_tables(seed: int) -> None:
    """With ties, rows and columns that stay alone, and what is plain beside what is not."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 30)), int(rng.integers(2, 30))
    table = rng.integers(0, 4, size) * (rng.random(size) < 0.3) + np.eye(*size) * rng.integers(0, 6, size)
    wanted = table[linear_sum_assignment(table, maximize=True)].sum()
    assert Contingency.of_table(table).matched == wanted


def test_a_matching_that_takes_too_long_has_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scipy_bridge, "_MOST_ROWS", 3)
    plain, open_to_all = Contingency.of_table(np.eye(9) * 5.0), Contingency.of_table(np.ones((5, 5)))
    assert value(clusterings.cluster_accuracy, plain) == 1
    for key in ("cluster_accuracy", "pair_sets_index", "normalized_clustering_accuracy"):
        metric = OF_TABLES[key]
        assert np.isnan(value(metric, open_to_all))
        assert metric.card.undefined[-1].code == "matching_too_large"
        assert metric.card.undefined[-1].holds(open_to_all)


# Computed once by genieclust 1.3.0: pair_sets_index, adjusted_fm_score and, of square tables, NCA.
GENIECLUST: list[tuple[list[list[int]], list[float]]] = [
    ([[2, 1], [9, 6]], [0.0, -0.04457418895631881, 0.06666666666666665]),
    ([[8, 7, 8], [0, 6, 1], [4, 11, 7]], [0.014840100610851581, -0.006351049073621772, 0.2615753811405984]),
    (
        [[1, 6, 1, 9], [11, 12, 7, 10], [4, 1, 7, 5], [7, 11, 3, 11]],
        [0.10789804639804641, 0.008751273774751937, 0.18664215686274513],
    ),
    ([[2, 4, 9, 2, 8], [5, 7, 11, 9, 10], [6, 11, 12, 1, 2]], [0.041899813369528326, 0.014099103924566817]),
    (
        [[4, 6, 9], [5, 12, 4], [11, 7, 9], [2, 7, 9], [10, 10, 11]],
        [0.04870021861039827, 0.003963732767833807],
    ),
]


@each(("table", "values"), GENIECLUST)
def test_tables_against_genieclust(table: list[list[int]], values: list[float]) -> None:
    keys = ("pair_sets_index", "adjusted_fowlkes_mallows", "normalized_clustering_accuracy")
    for key, want in zip(keys, values, strict=False):
        assert value(OF_TABLES[key], Contingency.of_table(table)) == pytest.approx(want, rel=1e-11, abs=1e-14), key


def test_purity_against_a_majority_vote() -> None:
    """Of the survey's eq. 25: every cluster predicts its most frequent class."""
    y, p = labelled(400, 6, 4)
    votes = {cluster: np.bincount(y[p == cluster]).argmax() for cluster in range(4)}
    found = Contingency.of_table(sk.cluster.contingency_matrix(y, p))
    assert value(clusterings.purity, found) == sk.accuracy_score(y, [votes[cluster] for cluster in p])


# The expected information


@each("rows", [[1, 1, 1, 1, 2], [6], [2, 2, 2], [5, 1]])
@each("columns", [[3, 3], [1, 2, 3], [1] * 6, [6]])
def test_expected_information_of_all_shufflings(rows: list[int], columns: list[int]) -> None:
    """The mean over all 720 ways to hand out the clusters."""
    y, p = np.repeat(np.arange(len(rows)), rows), np.repeat(np.arange(len(columns)), columns)
    cells = y * len(columns) + np.array(list(permutations(p.tolist())))
    shuffled = (cells[:, :, None] == np.arange(len(rows) * len(columns))).sum(axis=1)
    mean = Contingency.of_table(shuffled.reshape(-1, len(rows), len(columns))).information.mean()
    got = float(expected_information(np.array(rows, dtype=float), np.array(columns, dtype=float)))
    assert got == pytest.approx(mean, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("rows", [[25, 25], [1, 19, 180], [40, 35, 25]])
@pytest.mark.parametrize("columns", [[0.5, 0.5], [0.02, 0.98], [0.2, 0.3, 0.5]])
def test_expected_information_in_decimals(rows: list[int], columns: list[float]) -> None:
    """To its own digits, not those of what it is taken from."""
    sizes = [round(sum(rows) * share) for share in columns]
    got = float(expected_information(np.array(rows, dtype=float), np.array(sizes, dtype=float)))
    assert got == pytest.approx(float(exact.expected_information(rows, sizes)), rel=RATIO)


def test_expected_information_of_a_batch_with_empty_groups() -> None:
    rows, columns = np.array([[[4.0, 6, 0]], [[0.0, 0, 0]]]), np.array([[[5.0, 0, 5]], [[0.0, 0, 0]]])
    got = expected_information(rows, columns)
    assert got.shape == (2, 1)
    assert got[0, 0] == pytest.approx(float(expected_information(np.array([4.0, 6]), np.array([5.0, 5]))), rel=1e-15)
    assert np.isnan(got[1, 0])


def test_what_is_left_out_of_large_tables_is_nothing() -> None:
    """At a million samples, against sums over every number that a cell can hold."""
    rows, columns = [400_000, 600_000], [1_000, 999_000]
    n, want = 1_000_000, 0.0
    from scipy.stats import hypergeom

    for a in rows:
        for b in columns:
            x = np.arange(max(0, a + b - n), min(a, b) + 1, dtype=float)
            mean = a * b / n
            want += mean / n * float(hypergeom.pmf(x, n, a, b) @ relative_information((x - mean) / mean))
    got = float(expected_information(np.array(rows, dtype=float), np.array(columns, dtype=float)))
    # The factorials of the witness have nine digits here.
    assert got == pytest.approx(want, rel=1e-8)


def test_relative_information_keeps_its_digits() -> None:
    from decimal import Decimal, localcontext

    for distance in (-1.0, -0.999, -0.5, -0.0301, -0.0299, -1e-4, -1e-9, 0.0, 1e-12, 1e-3, 0.0299, 0.0301, 3.0, 1e6):
        with localcontext(prec=60):
            d = Decimal(distance)
            want = float((1 + d) * (1 + d).ln() - d) if distance > -1 else 1.0
        assert float(relative_information(np.array(distance))) == pytest.approx(want, rel=5e-14, abs=0.0)


# Shapes of clusters

POINTS: list[tuple[list[list[int]], list[int]]] = [
    ([[0, 0], [1, 0], [0, 2], [9, 9], [8, 9], [9, 6]], [0, 0, 0, 1, 1, 1]),
    ([[0, 0], [1, 0], [0, 2], [9, 9], [8, 9], [50, 60]], [0, 1, 0, 1, 1, 2]),
    ([[3], [3], [5], [11], [12], [20], [21]], [0, 0, 0, 1, 1, 2, 2]),
]
OF_POINTS: dict[str, tuple[Metric[Any], Any]] = {
    "silhouette": (clusterings.silhouette, exact.silhouette),
    "davies_bouldin": (clusterings.davies_bouldin, exact.davies_bouldin),
    "calinski_harabasz": (clusterings.calinski_harabasz, exact.calinski_harabasz),
    "dunn": (clusterings.dunn, exact.dunn),
}


@each("key", OF_POINTS)
@each(("points", "clusters"), POINTS)
def test_shapes_against_exact_arithmetic(key: str, points: list[list[int]], clusters: list[int]) -> None:
    metric, witness = OF_POINTS[key]
    assert value(metric, ClusteredPoints(clusters, points)) == pytest.approx(
        float(witness(points, clusters)), rel=RATIO
    )


def blobs(n: int, clusters: int, features: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Far from the origin, where sums of squares would lose their digits."""
    rng = np.random.default_rng(n)
    codes = rng.integers(0, clusters, n)
    return rng.normal(size=(n, features)) + codes[:, None] + 100.0, codes


@pytest.mark.parametrize("key", ["silhouette", "davies_bouldin", "calinski_harabasz"])
def test_shapes_against_scikit_learn(key: str) -> None:
    x, codes = blobs(1500, 4, 6)
    theirs = {
        "silhouette": sk.silhouette_score,
        "davies_bouldin": sk.davies_bouldin_score,
        "calinski_harabasz": sk.calinski_harabasz_score,
    }[key]
    centred = x - x.mean(axis=0)  # their distances are differences of squares
    got = value(OF_POINTS[key][0], ClusteredPoints(codes, x))
    assert got == pytest.approx(theirs(centred, codes), rel=RATIO)


@pytest.mark.parametrize("distance", ["euclidean", "cosine", "manhattan"])
def test_other_distances_against_scikit_learn(distance: str) -> None:
    x, codes = blobs(120, 3, 4)
    x -= 101.0
    found = ClusteredPoints(codes, x)
    theirs = sk.silhouette_score(x, codes, metric=distance)
    assert value(clusterings.silhouette, found, distance=distance) == pytest.approx(theirs, rel=1e-11)
    apart, same = sk.pairwise_distances(x, metric=distance), codes[:, None] == codes
    dunn = apart[~same].min() / apart[same].max()
    assert value(clusterings.dunn, found, distance=distance) == pytest.approx(dunn, rel=1e-11)


def test_a_point_at_0_has_no_direction() -> None:
    found = ClusteredPoints([0, 0, 1, 1], [[0.0, 0.0], [1.0, 2.0], [2.0, 1.0], [3.0, 1.0]])
    for metric in (clusterings.silhouette, clusterings.dunn):
        assert np.isnan(value(metric, found, distance="cosine"))
        assert value(metric, found, distance="manhattan") > -1
        with silently():
            assert [one.code for one in metric.card.undefined if np.all(one.holds(found))] == ["no_direction"]


@pytest.mark.parametrize("key", ["silhouette", "davies_bouldin", "calinski_harabasz"])
def test_weights_are_copies(key: str) -> None:
    """A bootstrap in weights is one of the points themselves."""
    x, codes = blobs(200, 5, 3)
    weights = np.random.default_rng(1).multinomial(60, np.full(200, 1 / 200), (2, 3)).astype(float)
    metric = OF_POINTS[key][0]
    with silently():
        got = metric.compute(ClusteredPoints(codes, x).with_weights(weights))
    assert got.shape == (2, 3)
    for row, found in zip(weights.reshape(6, -1), got.ravel(), strict=True):
        chosen = np.repeat(np.arange(200), row.astype(int))
        kept = np.unique(codes[chosen], return_inverse=True)[1]
        assert found == pytest.approx(value(metric, ClusteredPoints(kept, x[chosen])), rel=RATIO)


def test_distances_are_never_in_memory_at_once() -> None:
    x, codes = blobs(6000, 4, 2)
    tracemalloc.start()
    value(clusterings.silhouette, ClusteredPoints(codes, x))
    value(clusterings.dunn, ClusteredPoints(codes, x))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6 < 6000 * 6000 * 8


# What has no value, and what has one by definition

TOGETHER, ALONE = [[4]], np.eye(4)
NO_VALUE: list[tuple[str, Any, str]] = [
    *((key, [[0, 0]], "no_samples") for key in ("cluster_accuracy", "variation_of_information")),
    *((f"bcubed_{key}", [[0, 0]], "no_samples") for key in ("precision", "recall", "f1")),
    *((f"pair_{key}", [[1]], "fewer_than_two_samples") for key in ("precision", "recall", "f1", "jaccard")),
    *((f"pair_{key}", ALONE, "every_sample_alone") for key in ("precision", "recall")),
    *((f"pair_{key}", ALONE, "trivial_grouping") for key in ("f1", "jaccard")),
    ("pair_sets_index", TOGETHER, "trivial_grouping"),
    ("normalized_clustering_accuracy", [[3, 1, 0], [1, 0, 2]], "as_many_clusters_needed"),
    ("normalized_clustering_accuracy", [[3]], "one_class"),
    ("adjusted_fowlkes_mallows", TOGETHER, "trivial_grouping"),
    ("adjusted_fowlkes_mallows", ALONE, "every_sample_alone"),
    ("purity", [[0, 0]], "no_samples"),
    ("inverse_purity", [[0, 0]], "no_samples"),
    ("rand_index", [[1]], "fewer_than_two_samples"),
    ("adjusted_rand", [[1]], "fewer_than_two_samples"),
    ("adjusted_rand", TOGETHER, "trivial_grouping"),
    ("adjusted_rand", ALONE, "trivial_grouping"),
    ("pair_fowlkes_mallows", [[1]], "fewer_than_two_samples"),
    ("pair_fowlkes_mallows", ALONE, "every_sample_alone"),
    ("pair_fowlkes_mallows", [[1, 1, 1]], "every_sample_alone"),
    ("homogeneity", [[0, 0]], "no_samples"),
    ("completeness", [[0, 0]], "no_samples"),
    ("v_measure", [[0, 0]], "no_samples"),
    ("mutual_information", [[0, 0]], "no_samples"),
    ("normalized_mutual_information", TOGETHER, "trivial_grouping"),
    ("adjusted_mutual_information", TOGETHER, "trivial_grouping"),
    ("adjusted_mutual_information", ALONE, "trivial_grouping"),
]


@each(("key", "table", "code"), NO_VALUE)
def test_what_has_no_value_says_why(key: str, table: Any, code: str) -> None:
    metric, found = OF_TABLES[key], Contingency.of_table(table)
    assert np.isnan(value(metric, found))
    with silently():
        assert next(one.code for one in metric.card.undefined if np.all(one.holds(found))) == code


@pytest.mark.parametrize("average", ["geometric", "min"])
@pytest.mark.parametrize("table", [[[2, 3]], [[2], [3]]])
def test_a_bound_of_zero_is_no_bound(average: str, table: Any) -> None:
    for key in ("normalized_mutual_information", "adjusted_mutual_information"):
        assert np.isnan(value(OF_TABLES[key], Contingency.of_table(table), average=average))
        assert value(OF_TABLES[key], Contingency.of_table(table)) == 0
    least = Contingency.of_table([[1, 1, 0], [0, 0, 1]])
    assert np.isnan(value(clusterings.adjusted_mutual_information, least, average="min"))


def test_one_class_is_homogeneous_and_one_cluster_complete() -> None:
    """By definition (Rosenberg & Hirschberg 2007)."""
    one_class, one_cluster, both = map(Contingency.of_table, ([[2, 3]], [[2], [3]], [[5]]))
    assert (value(clusterings.homogeneity, one_class), value(clusterings.completeness, one_class)) == (1, 0)
    assert (value(clusterings.homogeneity, one_cluster), value(clusterings.completeness, one_cluster)) == (0, 1)
    assert value(clusterings.v_measure, one_class) == value(clusterings.v_measure, one_cluster) == 0
    assert value(clusterings.v_measure, both) == 1


@pytest.mark.parametrize(
    ("key", "points", "clusters", "code"),
    [
        ("silhouette", [[0.0], [1.0]], [0, 0], "one_cluster"),
        ("silhouette", [[0.0], [1.0]], [0, 1], "every_sample_alone"),
        ("davies_bouldin", [[0.0], [1.0]], [0, 0], "one_cluster"),
        ("calinski_harabasz", [[0.0], [1.0]], [0, 0], "one_cluster"),
        ("calinski_harabasz", [[0.0], [1.0]], [0, 1], "every_sample_alone"),
        ("dunn", [[0.0], [1.0]], [0, 0], "one_cluster"),
    ],
)
def test_shapes_that_have_no_value_say_why(key: str, points: Any, clusters: list[int], code: str) -> None:
    metric, found = OF_POINTS[key][0], ClusteredPoints(clusters, points)
    assert np.isnan(value(metric, found))
    with silently():
        assert next(one.code for one in metric.card.undefined if np.all(one.holds(found))) == code


def test_clusters_without_extent_or_distance() -> None:
    """Infinite where the numerator is there, without a value where it is not."""
    flat = ClusteredPoints([0, 0, 0, 1, 1], [[0.1], [0.1], [0.1], [0.7], [0.7]])
    assert value(clusterings.calinski_harabasz, flat) == value(clusterings.dunn, flat) == np.inf
    assert value(clusterings.davies_bouldin, flat) == 0
    assert value(clusterings.silhouette, flat) == 1
    crossed = ClusteredPoints([0, 0, 1, 1], [[-1.0, 0], [1.0, 0], [0, -1.0], [0, 1.0]])
    assert value(clusterings.davies_bouldin, crossed) == np.inf
    heap = ClusteredPoints([0, 0, 0, 1, 1], np.full((5, 2), 0.1))
    for metric in (clusterings.calinski_harabasz, clusterings.dunn, clusterings.davies_bouldin):
        assert np.isnan(value(metric, heap))
    assert value(clusterings.silhouette, heap) == 0


# Class sizes

REPLICATED: list[tuple[str, list[list[int]], list[int], float, float]] = [
    # A table, how often its classes are there, and the measure before and after: counted by hand.
    ("purity", [[3, 1], [1, 3]], [3, 1], 6 / 8, 12 / 16),
    ("purity", [[4, 0], [2, 2]], [1, 3], 6 / 8, 12 / 16),
    ("purity", [[3, 1], [2, 2]], [1, 3], 5 / 8, 12 / 16),
    ("inverse_purity", [[4, 0], [2, 2]], [1, 3], 6 / 8, 10 / 16),
    ("rand_index", [[2, 0], [1, 1]], [2, 1], 3 / 6, 10 / 15),
    ("adjusted_rand", [[2, 0], [1, 1]], [2, 1], 0.0, 8 / 23),
]


@pytest.mark.parametrize(("key", "table", "times", "before", "after"), REPLICATED)
def test_class_sizes_by_hand(key: str, table: list[list[int]], times: list[int], before: float, after: float) -> None:
    replicated = np.array(table) * np.array(times)[:, None]
    assert value(OF_TABLES[key], Contingency.of_table(table)) == pytest.approx(before, rel=1e-14, abs=1e-15)
    assert value(OF_TABLES[key], Contingency.of_table(replicated)) == pytest.approx(after, rel=1e-14, abs=1e-15)


@each("key", OF_TABLES)
def test_every_measure_of_a_table_moves_with_class_sizes(key: str) -> None:
    """In exact arithmetic, where it is marked so: a difference that is no rounding."""
    insensitive = OF_TABLES[key].card.prevalence.is_insensitive(2)
    # One of them needs as many clusters as classes.
    table = [[5, 1], [2, 4]] if insensitive else [[5, 1, 0], [2, 4, 3]]
    replicated = [[3 * count for count in table[0]], table[1]]
    before, after = exact.values(table), exact.values(replicated)
    moved = {name for name in before if abs(before[name] - after[name]) > 1e-3}
    assert (key in {name.split()[0] for name in moved}) is not insensitive


def test_copies_of_a_class_move_all_shapes_but_dunn() -> None:
    points, clusters = POINTS[1]
    classes = [0, 0, 1, 1, 0, 1]
    chosen = [i for i, code in enumerate(classes) for _ in range(3 if code else 1)]
    copied, codes = [points[i] for i in chosen], [clusters[i] for i in chosen]
    for key, (metric, witness) in OF_POINTS.items():
        moved = abs(float(witness(copied, codes)) - float(witness(points, clusters))) > 1e-6
        assert moved is not metric.card.prevalence.is_insensitive(2), key
        assert value(metric, ClusteredPoints(codes, copied)) == pytest.approx(float(witness(copied, codes)), rel=RATIO)
