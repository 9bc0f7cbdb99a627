"""Definitions in exact arithmetic, by brute force over samples, pairs and cuts."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from math import comb

Number = Fraction
Rows = Sequence[Sequence[Fraction]]


def auc(members: Sequence[Fraction], others: Sequence[Fraction]) -> Fraction:
    """P(>) + P(=)/2 over all pairs."""
    won = sum((Fraction(1) if a > b else Fraction(1, 2) if a == b else Fraction(0)) for a in members for b in others)
    return Fraction(won) / (len(members) * len(others))


def of_class(y: Sequence[int], p: Rows, code: int) -> tuple[list[Fraction], list[Fraction]]:
    """Scores of the members and of all others."""
    members = [row[code] for label, row in zip(y, p, strict=True) if label == code]
    others = [row[code] for label, row in zip(y, p, strict=True) if label != code]
    return members, others


def pair_area(y: Sequence[int], p: Rows, i: int, j: int) -> Fraction:
    """A(i|j): p_i separates samples of i from those of j."""
    return auc(
        [row[i] for label, row in zip(y, p, strict=True) if label == i],
        [row[i] for label, row in zip(y, p, strict=True) if label == j],
    )


def hand_till(y: Sequence[int], p: Rows) -> Fraction:
    classes = len(p[0])
    areas = [pair_area(y, p, i, j) for i in range(classes) for j in range(classes) if i != j]
    return sum(areas, Fraction(0)) / len(areas)


def hand_till_weighted(y: Sequence[int], p: Rows) -> Fraction:
    classes = len(p[0])
    top = bottom = Fraction(0)
    for i in range(classes):
        for j in range(i + 1, classes):
            weight = Fraction(sum(label in (i, j) for label in y), len(y))
            top += weight * (pair_area(y, p, i, j) + pair_area(y, p, j, i)) / 2
            bottom += weight
    return top / bottom


def micro_auc(y: Sequence[int], p: Rows) -> Fraction:
    members = [row[label] for label, row in zip(y, p, strict=True)]
    others = [row[k] for label, row in zip(y, p, strict=True) for k in range(len(row)) if k != label]
    return auc(members, others)


def cuts(members: Sequence[Fraction], others: Sequence[Fraction]) -> list[tuple[int, int]]:
    """(tp, fp) of the empty cut and of every distinct score, falling."""
    thresholds = sorted({*members, *others}, reverse=True)
    return [(0, 0), *((sum(s >= t for s in members), sum(s >= t for s in others)) for t in thresholds)]


def precision(tp: int, fp: int) -> Fraction:
    return Fraction(tp, tp + fp) if tp + fp else Fraction(1)


def average_precision(members: Sequence[Fraction], others: Sequence[Fraction]) -> Fraction:
    found = cuts(members, others)
    return sum(((b[0] - a[0]) * precision(*b) for a, b in pairwise(found)), Fraction(0)) / len(members)


def pr_trapezoid(members: Sequence[Fraction], others: Sequence[Fraction]) -> Fraction:
    found = cuts(members, others)
    area = sum(((b[0] - a[0]) * (precision(*a) + precision(*b)) / 2 for a, b in pairwise(found)), Fraction(0))
    return area / len(members)


def macro_pr(y: Sequence[int], p: Rows) -> Fraction:
    """Trapezoids of macro precision over macro recall, all classes under one threshold."""
    classes = len(p[0])
    sides = [of_class(y, p, k) for k in range(classes)]
    points = [(Fraction(0), Fraction(1))]
    for threshold in sorted({value for row in p for value in row}, reverse=True):
        recall = height = Fraction(0)
        for members, others in sides:
            tp, fp = sum(s >= threshold for s in members), sum(s >= threshold for s in others)
            recall += Fraction(tp, len(members)) / classes
            height += precision(tp, fp) / classes
        points.append((recall, height))
    return sum(((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(points)), Fraction(0))


def ks(members: Sequence[Fraction], others: Sequence[Fraction]) -> Fraction:
    return max(Fraction(tp, len(members)) - Fraction(fp, len(others)) for tp, fp in cuts(members, others))


def equal_error_rate(members: Sequence[Fraction], others: Sequence[Fraction]) -> Fraction:
    """Where the polygon of the ROC curve meets FPR + TPR = 1."""
    points = [(Fraction(fp, len(others)), Fraction(tp, len(members))) for tp, fp in cuts(members, others)]
    for (x0, y0), (x1, y1) in pairwise(points):
        before, after = x0 + y0 - 1, x1 + y1 - 1
        if before <= 0 <= after and after > before:
            return x0 + (x1 - x0) * -before / (after - before)
    raise AssertionError("the curve ends at (1, 1)")


def partial_auc(members: Sequence[Fraction], others: Sequence[Fraction], limit: Fraction) -> Fraction:
    """Area up to a false positive rate by clipping every trapezoid, then McClish's scale."""
    points = [(Fraction(fp, len(others)), Fraction(tp, len(members))) for tp, fp in cuts(members, others)]
    area = Fraction(0)
    for (x0, y0), (x1, y1) in pairwise(points):
        end = min(x1, limit)
        if end > x0:
            at_end = y0 + (y1 - y0) * (end - x0) / (x1 - x0)
            area += (end - x0) * (y0 + at_end) / 2
    low, high = limit * limit / 2, limit
    return (1 + (area - low) / (high - low)) / 2


Polynomial = dict[int, Fraction]


def _integral(polynomial: Polynomial, low: Fraction, high: Fraction) -> Fraction:
    return sum((k * (high ** (e + 1) - low ** (e + 1)) / (e + 1) for e, k in polynomial.items()), Fraction(0))


def _times(first: Polynomial, second: Polynomial) -> Polynomial:
    product: Polynomial = {}
    for i, a in first.items():
        for j, b in second.items():
            product[i + j] = product.get(i + j, Fraction(0)) + a * b
    return product


def h_measure(members: Sequence[Fraction], others: Sequence[Fraction], a: int, b: int) -> Fraction:
    """1 - L/Lmax with the lowest of all cuts' costs integrated piece by piece: no hull, no incomplete beta function."""
    positives, negatives = len(members), len(others)
    found = cuts(members, others)
    # Cost of a cut at c, times n: c fp + (1 - c) fn.
    lines = [(Fraction(fp), Fraction(positives - tp)) for tp, fp in found]
    trivial = [(Fraction(0), Fraction(positives)), (Fraction(negatives), Fraction(0))]
    density: Polynomial = {a - 1 + k: Fraction((-1) ** k * comb(b - 1, k)) for k in range(b)}
    return 1 - _lowest(lines, density) / _lowest(trivial, density)


def _lowest(lines: Sequence[tuple[Fraction, Fraction]], density: Polynomial) -> Fraction:
    lines = sorted(set(lines))
    ends = {Fraction(0), Fraction(1)}
    for index, (fp, fn) in enumerate(lines):
        for other_fp, other_fn in lines[index + 1 :]:
            slope = (fp - fn) - (other_fp - other_fn)
            if slope != 0:
                crossing = (other_fn - fn) / slope
                if 0 < crossing < 1:
                    ends.add(crossing)
    total = Fraction(0)
    for low, high in pairwise(sorted(ends)):
        middle = (low + high) / 2
        fp, fn = min(lines, key=lambda line: middle * line[0] + (1 - middle) * line[1])
        total += _integral(_times({0: fn, 1: fp - fn}, density), low, high)
    return total


def rates_at(members: Sequence[Fraction], others: Sequence[Fraction], limit: Fraction) -> tuple[Number, Number, Number]:
    """Highest recall with specificity >= limit, specificity with recall >= limit, precision with recall >= limit."""
    points = [(Fraction(tp, len(members)), 1 - Fraction(fp, len(others)), tp, fp) for tp, fp in cuts(members, others)]
    return (
        max(recall for recall, specificity, *_ in points if specificity >= limit),
        max(specificity for recall, specificity, *_ in points if recall >= limit),
        max(Fraction(tp, tp + fp) for recall, _, tp, fp in points if recall >= limit and tp + fp),
    )
