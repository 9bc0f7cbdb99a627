"""The confusion matrix in a text: whole while it fits, then what is worst in it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from app.api.texts.lines import Style, columns_of, left, limits, right, shortened, shown
from app.api.texts.reading import ends_of, precision_of, recalls_of, weakest_classes
from app.domain.expressions.syntax import write_label
from app.domain.named_metrics import RECALL
from app.domain.wording import number, whole

_WEAKEST, _CONFUSIONS = 8, 4


def matrix_lines(answer: Mapping[str, Any], style: Style) -> list[str]:
    """The matrix, or the weakest classes and the largest confusions; of labels without a matrix the weakest ones."""
    if answer["input"].get("confusion_matrix") is None:
        return _weakest_labels(answer, style)
    table = _Matrix(answer, style)
    lines = table.whole()
    return lines if lines is not None else [*table.weakest(), *table.confusions()]


def _weakest_labels(answer: Mapping[str, Any], style: Style) -> list[str]:
    weakest = weakest_classes(answer)
    if not weakest:
        return []
    names = dict(zip(weakest, shortened([shown(label) for label in weakest], style.width - 54), strict=True))
    wide = max(14, *(columns_of(name) for name in names.values()))
    lines = [left("WEAKEST LABELS", wide + 2) + "  recall  95 % interval     precision"]
    for label in weakest[:_WEAKEST]:
        found = precision_of(answer, label)
        ends = left(limits(*ends_of(answer, f"{RECALL}@{write_label(label)}")), 16)
        recalled = right(number(recalls_of(answer)[label]), 6)
        lines.append(left(f"  {names[label]}", wide + 2) + f"  {recalled}  {ends}  {right(number(found), 9)}")
    if len(weakest) > _WEAKEST:
        rest = [recalls_of(answer)[label] for label in weakest[_WEAKEST:]]
        lines.append(f"  the other {len(rest)}: recall {limits(rest[0], rest[-1])}")
    return lines


class _Matrix:
    """The confusion matrix: whole while it fits, then the weakest classes and the largest confusions."""

    def __init__(self, answer: Mapping[str, Any], style: Style) -> None:
        given = answer["input"]
        self._width = style.width
        self._counts: list[list[float]] = given["confusion_matrix"]
        self._labels = [shown(label) for label in given["labels"]]
        self._recalls = list(recalls_of(answer).values())
        self._precisions = [precision_of(answer, label) for label in answer["per_class"]]
        self._limits = [limits(*ends_of(answer, f"{RECALL}@{write_label(label)}")) for label in given["labels"]]
        self._n = [sum(row) for row in self._counts]

    @property
    def _order(self) -> list[int]:
        return sorted(
            (k for k, recall in enumerate(self._recalls) if recall is not None), key=lambda k: self._recalls[k] or 0.0
        )

    def whole(self) -> list[str] | None:
        """All of it; None where there is no room."""
        size = len(self._labels)
        if size > _MOST_ROWS:
            return None
        names = shortened(self._labels, _LONGEST_NAME)
        cells = [[whole(count) if count else "." for count in row] for row in self._counts]
        sums = [whole(sum(column)) for column in zip(*self._counts, strict=True)]
        widths = [max(columns_of(names[k]), len(sums[k]), *(len(row[k]) for row in cells)) for k in range(size)]
        totals = [whole(n) for n in self._n]
        most = max(len("n"), *(len(one) for one in totals), len(whole(sum(self._n))))
        first = max(columns_of(one) for one in (*names, "total", "ACTUAL")) + 2
        ends = [
            f"  {right(totals[k], most)}  {right(number(self._recalls[k]), 6)}"
            f"  {left(self._limits[k], 14)}  {right(number(self._precisions[k]), 9)}"
            for k in range(size)
        ]
        if first + sum(width + 2 for width in widths) + len(ends[0]) + 3 > self._width:
            return None
        weakest = self._order[0] if self._order else None
        lines = [
            left("ACTUAL", first)
            + "".join("  " + right(name, width) for name, width in zip(names, widths, strict=True))
            + f"  {right('n', most)}  recall  {left('95 % interval', 14)}  precision"
        ]
        for k in range(size):
            row = "".join("  " + right(cell, width) for cell, width in zip(cells[k], widths, strict=True))
            lines.append(left(f"  {names[k]}", first) + row + ends[k] + ("  <" if k == weakest else ""))
        row = "".join("  " + right(one, width) for one, width in zip(sums, widths, strict=True))
        total = left("  total", first) + row + f"  {right(whole(sum(self._n)), most)}"
        lines.append(total + "   columns: predicted as   <: weakest")
        return lines

    def weakest(self) -> list[str]:
        """The classes of the lowest recalls, and what they were taken for."""
        order = self._order
        names = shortened(self._labels, 26)
        lines = [left("WEAKEST CLASSES", 29) + "      n  recall  95 % interval   mostly taken for"]
        for k in order[:_WEAKEST]:
            wrong = [(count, other) for other, count in enumerate(self._counts[k]) if other != k and count]
            taken = ""
            if wrong:
                count, other = max(wrong, key=lambda one: one[0])
                room = max(self._width - 63 - len(whole(count)) - 1, 8)
                taken = f"{whole(count)} {shortened([self._labels[other]], room)[0]}"
            size, recalled = right(whole(self._n[k]), 7), right(number(self._recalls[k]), 6)
            lines.append(left(f"  {names[k]}", 29) + f"{size}  {recalled}  {left(self._limits[k], 16)}{taken}")
        rest = [self._recalls[k] for k in order[_WEAKEST:]]
        if rest:
            lines.append(f"  the other {len(rest)}: recall {limits(rest[0], rest[-1])}")
        unknown = len(self._labels) - len(order)
        if unknown:
            lines.append(f"  {unknown} without samples")
        return lines

    def confusions(self) -> list[str]:
        """The largest entries beside the diagonal."""
        counts = np.array(self._counts)
        np.fill_diagonal(counts, 0)
        # Equal ones in the order of the matrix.
        order = np.argsort(-counts, axis=None, kind="stable")[:_CONFUSIONS]
        places = [
            (int(actual), int(other)) for actual, other in zip(*np.unravel_index(order, counts.shape), strict=True)
        ]
        largest = [(self._counts[actual][other], actual, other) for actual, other in places if counts[actual, other]]
        if not largest:
            return []
        names = shortened(self._labels, 30)
        lines = [left("LARGEST CONFUSIONS", 34) + left("taken for", 32) + "cases"]
        return lines + [
            left(f"  {names[actual]}", 34) + left(names[other], 32) + f"{whole(count)} of {whole(self._n[actual])}"
            for count, actual, other in largest
        ]


# More rows than this would not leave room for the rest in 60 lines.
_MOST_ROWS, _LONGEST_NAME = 20, 16
