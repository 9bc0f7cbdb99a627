"""Inputs that are the same for ever: made of `random.Random.random`, whose numbers Python promises never to change."""

from collections.abc import Sequence
from itertools import accumulate
from random import Random
from typing import Any

Json = dict[str, Any]
Matrix = list[list[int]]
LETTERS = "ABCDEFGHIJKL"


def _random(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - nothing is to be kept secret


def letters(codes: Sequence[int]) -> list[str]:
    """Class codes as names."""
    return [LETTERS[code] for code in codes]


def truth(n: int, shares: Sequence[float], seed: int = 1) -> list[int]:
    """Class codes [n], drawn by shares that need not sum to 1; every class occurs."""
    random, ends = _random(seed), list(accumulate(shares))
    drawn = [random.random() * ends[-1] for _ in range(n - len(shares))]
    return [*range(len(shares)), *(sum(place >= end for end in ends[:-1]) for place in drawn)]


def decisions(actual: Sequence[int], skill: float, seed: int, classes: int | None = None) -> list[int]:
    """Predicted codes, right with this chance; mistakes go to the next classes rather than to far ones."""
    random, count = _random(seed), classes or max(actual) + 1
    return [
        code if random.random() < skill else (code + 1 + int(random.random() ** 2 * (count - 1))) % count
        for code in actual
    ]


def matrix(classes: int, n: int, seed: int, skill: float = 0.75, shares: Sequence[float] | None = None) -> Matrix:
    """Counts, rows actual."""
    actual = truth(n, shares or [1 + (seed * code) % 4 for code in range(classes)], seed)
    counts = [[0] * classes for _ in range(classes)]
    for row, column in zip(actual, decisions(actual, skill, seed + 1, classes), strict=True):
        counts[row][column] += 1
    return counts


def probabilities(
    actual: Sequence[int], seed: int, skill: float = 0.8, classes: int | None = None
) -> list[list[float]]:
    """Rows of four decimals that sum to 1; seeds of the same hundred err partly alike."""
    alike, own, count = _random(seed // 100), _random(seed), classes or max(actual) + 1
    rows = []
    for code in actual:
        noise = [0.05 + alike.random() ** 3 + own.random() ** 2 for _ in range(count)]
        noise[code] += skill
        row = [round(value / sum(noise), 4) for value in noise]
        largest = row.index(max(row))
        row[largest] = round(1 - sum(row[:largest]) - sum(row[largest + 1 :]), 4)
        rows.append(row)
    return rows


def scores(actual: Sequence[int], seed: int, skill: float = 1.2, decimals: int = 3) -> list[float]:
    """Bell-shaped scores of two classes; few decimals make ties."""
    random = _random(seed)
    return [round(skill * (code - 0.5) + sum(random.random() for _ in range(12)) - 6, decimals) for code in actual]


def weights(n: int, seed: int = 7) -> list[float]:
    """Weights between a half and two and a half, some of them 0."""
    random = _random(seed)
    return [0.0 if index % 17 == 5 else round(0.5 + 2 * random.random(), 2) for index in range(n)]


def groups(n: int, size: int = 6, seed: int = 3) -> list[str]:
    """Names of groups of uneven sizes, one per sample."""
    random, found = _random(seed), list[str]()
    while len(found) < n:
        found += [f"patient {len(set(found))}"] * (1 + int(random.random() * (2 * size - 1)))
    return found[:n]


def of_matrix(counts: Sequence[Sequence[Any]], **members: Any) -> Json:
    """An input of a matrix."""
    return {"kind": "confusion_matrix", "matrix": [list(row) for row in counts], **members}


def of_counts(tp: float, fn: float, fp: float, tn: float, **members: Any) -> Json:
    """An input of the four counts."""
    return {"kind": "binary_counts", "tp": tp, "fn": fn, "fp": fp, "tn": tn, **members}


def of_labels(actual: Sequence[Any], predicted: Sequence[Any], **members: Any) -> Json:
    """An input of predictions."""
    return {"kind": "predictions", "y_true": list(actual), "y_pred": list(predicted), **members}


def of_rows(actual: Sequence[Any], rows: Sequence[Any], **members: Any) -> Json:
    """An input of probabilities, with names of classes for all columns unless members say otherwise."""
    named = members.pop("labels", list(range(len(rows[0]))))
    beside = {} if named is None else {"labels": named}
    return {"kind": "probabilities", "y_true": list(actual), "probabilities": rows, **beside, **members}


def of_scores(actual: Sequence[Any], values: Sequence[Any], **members: Any) -> Json:
    """An input of scores."""
    return {"kind": "scores", "y_true": list(actual), "scores": list(values), **members}


def of_folds(*parts: Json) -> Json:
    """An input of folds."""
    return {"kind": "folds", "folds": list(parts)}


def labelled(n: int, shares: Sequence[float], skill: float, seed: int, **members: Any) -> Json:
    """Predictions with names of classes; the samples depend on n and the shares, the mistakes on the seed."""
    actual = truth(n, shares)
    return of_labels(letters(actual), letters(decisions(actual, skill, seed, len(shares))), **members)


def scored(n: int, shares: Sequence[float], skill: float, seed: int, **members: Any) -> Json:
    """The same for probabilities."""
    actual, names = truth(n, shares), list(LETTERS[: len(shares)])
    return of_rows(letters(actual), probabilities(actual, seed, skill, len(shares)), **{"labels": names, **members})
