"""The measures of clusterings once more: counted pair by pair, in fractions and in decimals of fifty digits."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations, permutations
from math import comb
from typing import Any

Table = list[list[int]]


def samples(table: Table) -> list[tuple[int, int]]:
    """Class and cluster of every sample."""
    return [(i, j) for i, row in enumerate(table) for j, count in enumerate(row) for _ in range(count)]


def margins(table: Table) -> tuple[list[int], list[int], int]:
    rows, columns = [sum(row) for row in table], [sum(column) for column in zip(*table, strict=True)]
    return rows, columns, sum(rows)


def pairs(table: Table) -> dict[str, int]:
    """Unordered pairs, one by one: in one class and one cluster, in one of both, in none."""
    found = dict.fromkeys(("both", "class", "cluster", "none"), 0)
    for (c1, k1), (c2, k2) in combinations(samples(table), 2):
        found[("both" if k1 == k2 else "class") if c1 == c2 else ("cluster" if k1 == k2 else "none")] += 1
    return found


def purity(table: Table) -> Fraction:
    return Fraction(sum(max(column) for column in zip(*table, strict=True)), margins(table)[2])


def inverse_purity(table: Table) -> Fraction:
    return Fraction(sum(map(max, table)), margins(table)[2])


def rand_index(table: Table) -> Fraction:
    p = pairs(table)
    return Fraction(p["both"] + p["none"], sum(p.values()))


def adjusted_rand(table: Table) -> Fraction:
    """Hubert and Arabie's, from binomials."""
    rows, columns, n = margins(table)
    of_rows, of_columns = (sum(comb(size, 2) for size in sizes) for sizes in (rows, columns))
    expected = Fraction(of_rows * of_columns, comb(n, 2))
    found = sum(comb(count, 2) for row in table for count in row)
    return (found - expected) / (Fraction(of_rows + of_columns, 2) - expected)


def pair_fowlkes_mallows_squared(table: Table) -> Fraction:
    p = pairs(table)
    return Fraction(p["both"] ** 2, (p["both"] + p["class"]) * (p["both"] + p["cluster"]))


def best_matching(worth: list[list[Fraction]]) -> Fraction:
    """The largest sum over all ways to give each row a column of its own, the shorter side going through all."""
    rows = worth if len(worth) <= len(worth[0]) else [list(column) for column in zip(*worth, strict=True)]
    return max(
        sum((rows[i][j] for i, j in enumerate(chosen)), Fraction())
        for chosen in permutations(range(len(rows[0])), len(rows))
    )


def pair_sets_index(table: Table) -> Fraction:
    rows, columns, n = margins(table)
    overlap = [[Fraction(x, max(rows[i], columns[j], 1)) for j, x in enumerate(row)] for i, row in enumerate(table)]
    sizes = zip(sorted(filter(None, rows), reverse=True), sorted(filter(None, columns), reverse=True), strict=False)
    expected = sum((Fraction(a * b, n) / max(a, b) for a, b in sizes), Fraction())
    most = max(len([*filter(None, rows)]), len([*filter(None, columns)]))
    return max((best_matching(overlap) - expected) / (most - expected), Fraction())


def bcubed(table: Table) -> tuple[Fraction, Fraction]:
    """Precision and recall, sample by sample."""
    every = samples(table)
    found = [
        Fraction(sum(one == other for other in every), sum(one[side] == other[side] for other in every))
        for side in (1, 0)
        for one in every
    ]
    return sum(found[: len(every)], Fraction()) / len(every), sum(found[len(every) :], Fraction()) / len(every)


# In decimals.


def decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def log(value: Fraction) -> Decimal:
    return decimal(value).ln()


def entropy(sizes: list[int]) -> Decimal:
    n = sum(sizes)
    return -sum((decimal(Fraction(s, n)) * log(Fraction(s, n)) for s in sizes if s), Decimal(0))


def information(table: Table) -> Decimal:
    rows, columns, n = margins(table)
    return sum(
        (
            decimal(Fraction(x, n)) * log(Fraction(n * x, rows[i] * columns[j]))
            for i, row in enumerate(table)
            for j, x in enumerate(row)
            if x
        ),
        Decimal(0),
    )


def expected_information(rows: list[int], columns: list[int]) -> Decimal:
    """Over all ways to draw the members of a cluster without replacement."""
    n = sum(rows)
    found = Decimal(0)
    for a in rows:
        for b in columns:
            for x in range(max(1, a + b - n), min(a, b) + 1):
                chance = Fraction(comb(a, x) * comb(n - a, b - x), comb(n, b))
                found += decimal(chance * Fraction(x, n)) * log(Fraction(n * x, a * b))
    return found


def values(table: Table) -> dict[str, float]:
    """All measures of a table that have a value, none of whose groupings is trivial."""
    rows, columns, _ = margins(table)
    with localcontext(prec=50):
        h_class, h_cluster, mutual = entropy(rows), entropy(columns), information(table)
        expected = expected_information(rows, columns)
        p, (precision, recall) = pairs(table), bcubed(table)
        by_chance = decimal(Fraction((p["both"] + p["class"]) * (p["both"] + p["cluster"]))).sqrt() / comb(sum(rows), 2)
        recalls = [[Fraction(x, rows[i]) for x in row] for i, row in enumerate(table) if rows[i]]
        bounds = {
            "arithmetic": (h_class + h_cluster) / 2,
            "geometric": (h_class * h_cluster).sqrt(),
            "min": min(h_class, h_cluster),
            "max": max(h_class, h_cluster),
        }
        found: dict[str, Any] = {
            "purity": purity(table),
            "inverse_purity": inverse_purity(table),
            "rand_index": rand_index(table),
            "adjusted_rand": adjusted_rand(table),
            "pair_fowlkes_mallows": decimal(pair_fowlkes_mallows_squared(table)).sqrt(),
            "cluster_accuracy": best_matching([[Fraction(x) for x in row] for row in table]) / sum(rows),
            "pair_sets_index": pair_sets_index(table),
            "bcubed_precision": precision,
            "bcubed_recall": recall,
            "bcubed_f1": 2 * precision * recall / (precision + recall),
            "pair_precision": Fraction(p["both"], p["both"] + p["cluster"]),
            "pair_recall": Fraction(p["both"], p["both"] + p["class"]),
            "pair_f1": Fraction(2 * p["both"], 2 * p["both"] + p["class"] + p["cluster"]),
            "pair_jaccard": Fraction(p["both"], p["both"] + p["class"] + p["cluster"]),
            "adjusted_fowlkes_mallows": (decimal(pair_fowlkes_mallows_squared(table)).sqrt() - by_chance)
            / (1 - by_chance),
            "variation_of_information": h_class + h_cluster - 2 * mutual,
            "homogeneity": mutual / h_class,
            "completeness": mutual / h_cluster,
            "mutual_information": mutual,
        }
        if len(recalls) == len([*filter(None, columns)]) > 1:
            found["normalized_clustering_accuracy"] = (best_matching(recalls) - 1) / (len(recalls) - 1)
        for beta in (1, 3):
            h, c = mutual / h_class, mutual / h_cluster
            found[f"v_measure {beta}"] = (1 + beta) * h * c / (beta * h + c) if mutual else Decimal(0)
        for name, bound in bounds.items():
            found[f"normalized_mutual_information {name}"] = mutual / bound
            found[f"adjusted_mutual_information {name}"] = (mutual - expected) / (bound - expected)
        return {name: float(value) for name, value in found.items()}


# Of points, coordinate by coordinate. Roots of whole numbers are the only rounding until the end.


def distance(one: list[int], other: list[int]) -> Decimal:
    return Decimal(sum((a - b) ** 2 for a, b in zip(one, other, strict=True))).sqrt()


def silhouette(points: list[list[int]], clusters: list[int]) -> float:
    """Rousseeuw's, point by point."""
    with localcontext(prec=50):
        found = Decimal(0)
        for i, point in enumerate(points):
            mean = {}
            for code in set(clusters):
                members = [j for j, other in enumerate(clusters) if other == code and j != i]
                if members:
                    away = sum((distance(point, points[j]) for j in members), Decimal(0))
                    mean[code] = away / len(members)
            own = mean.pop(clusters[i], None)
            nearest = min(mean.values())
            if own is not None and own != nearest:
                found += (nearest - own) / max(nearest, own)
        return float(found / len(points))


def dunn(points: list[list[int]], clusters: list[int]) -> float:
    with localcontext(prec=50):
        found: dict[bool, list[Decimal]] = {True: [], False: []}
        for i, j in combinations(range(len(points)), 2):
            found[clusters[i] == clusters[j]].append(distance(points[i], points[j]))
        return float(min(found[False]) / max(found[True]))


def _centroids(points: list[list[int]], clusters: list[int]) -> dict[int, list[Fraction]]:
    found = {}
    for code in sorted(set(clusters)):
        members = [point for point, other in zip(points, clusters, strict=True) if other == code]
        found[code] = [Fraction(sum(axis), len(members)) for axis in zip(*members, strict=True)]
    return found


def _apart(one: list[Any], other: list[Any]) -> Fraction:
    return sum(((a - b) ** 2 for a, b in zip(one, other, strict=True)), Fraction(0))


def calinski_harabasz(points: list[list[int]], clusters: list[int]) -> Fraction:
    centroids, n = _centroids(points, clusters), len(points)
    centre = [Fraction(sum(axis), n) for axis in zip(*points, strict=True)]
    within = sum(_apart(point, centroids[code]) for point, code in zip(points, clusters, strict=True))
    between = sum(_apart(centroids[code], centre) for code in clusters)
    k = len(centroids)
    return Fraction(between, k - 1) / Fraction(within, n - k)


def davies_bouldin(points: list[list[int]], clusters: list[int]) -> float:
    with localcontext(prec=50):
        centroids = _centroids(points, clusters)
        extent = {}
        for code, centroid in centroids.items():
            roots = [
                decimal(_apart(point, centroid)).sqrt()
                for point, other in zip(points, clusters, strict=True)
                if other == code
            ]
            extent[code] = sum(roots, Decimal(0)) / len(roots)
        worst = [
            max(
                (extent[i] + extent[j]) / decimal(_apart(centroids[i], centroids[j])).sqrt()
                for j in centroids
                if j != i
            )
            for i in centroids
        ]
        return float(sum(worst, Decimal(0)) / len(worst))
