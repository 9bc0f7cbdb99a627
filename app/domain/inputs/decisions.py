"""Confusion matrices whose columns are decisions that need not be classes, such as to treat, to test or to wait.

Raises InvalidInput with pointers relative to the ``input`` object it was given a pointer for.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import InvalidInput
from app.domain.inputs.content import Content
from app.domain.inputs.kinds import DECISIONS_FACT
from app.domain.inputs.labels import Label
from app.domain.inputs.matrices import (
    MatrixInput,
    check_class_count,
    check_entries,
    check_labels,
    from_matrix,
    whole_or_weights,
)


def from_matrix_of(
    rows: Sequence[Sequence[float]],
    *,
    labels: Sequence[Label] | None,
    decisions: Sequence[Label] | None,
    positive: Label | None,
    predicted_rows: bool,
    normalized: bool,
    ignore: Sequence[Label],
    pointer: str,
) -> MatrixInput:
    """A matrix of classes, or of classes and what was decided about them, of any shape.

    Decisions that are the classes, in whatever order, make a matrix of classes. See ``from_matrix`` for the rest.
    """
    if decisions is not None:
        table = _rectangle(rows, pointer)
        check_entries(table, f"{pointer}/matrix", lambda row, column: f"{pointer}/matrix/{row}/{column}")
        actual = table.T if predicted_rows else table
        check_class_count(len(actual), f"{pointer}/matrix")
        classes = _names(labels or [str(place) for place in range(len(actual))], len(actual), f"{pointer}/labels")
        decided = _names(decisions, actual.shape[1], f"{pointer}/decisions")
        if set(classes) != set(decided):
            _refuse_choices_of_classes(positive, ignore, pointer)
            return _of_decisions(np.ascontiguousarray(actual), classes, decided, normalized=normalized)
        in_order = actual[:, [decided.index(one) for one in classes]]
        rows, labels = (in_order.T if predicted_rows else in_order).tolist(), classes
    return from_matrix(
        rows,
        labels=labels,
        positive=positive,
        predicted_rows=predicted_rows,
        normalized=normalized,
        ignore=ignore,
        pointer=pointer,
    )


def _of_decisions(
    matrix: NDArray[np.float64], classes: tuple[str, ...], decisions: tuple[str, ...], *, normalized: bool
) -> MatrixInput:
    content = Content.rates if normalized else whole_or_weights(matrix)
    return MatrixInput(
        kind="confusion_matrix",
        labels=classes,
        positive=None,
        content=content,
        counts=matrix.astype(np.int64) if content is Content.counts else matrix,
        facts={DECISIONS_FACT: list(decisions)},
    )


def _names(given: Sequence[Label], wanted: int, pointer: str) -> tuple[str, ...]:
    if len(given) != wanted:
        raise InvalidInput.at(pointer, "wrong_label_count", f"expected {wanted} names, got {len(given)}")
    return check_labels(given, pointer)


def _refuse_choices_of_classes(positive: Label | None, ignore: Sequence[Label], pointer: str) -> None:
    for name, given in (("positive", positive is not None), ("ignore", bool(ignore))):
        if given:
            raise InvalidInput.at(
                f"{pointer}/{name}",
                "not_for_decisions",
                f"expected no {name} beside decisions that are no classes: it is about classes that are decided for",
            )


def _rectangle(rows: Sequence[Sequence[float]], pointer: str) -> NDArray[np.float64]:
    width = len(rows[0]) if rows else 0
    for index, row in enumerate(rows):
        if len(row) != width or not row:
            raise InvalidInput.at(
                f"{pointer}/matrix/{index}",
                "ragged_row",
                f"expected {max(width, 1)} entries as in the first row, got {len(row)}",
            )
    if not rows:
        raise InvalidInput.at(f"{pointer}/matrix", "no_samples", "expected at least one row, got none")
    return np.array(rows, dtype=np.float64)
