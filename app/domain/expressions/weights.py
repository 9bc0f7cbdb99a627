"""Numbers in the quotes of an expression: weights of the parts of a mean, and matrices of weights.

``"2,1,1"`` weighs values by their position, ``"A:2,B:1"`` by their class; a label with commas, quotes or spaces at its
ends stands in quotes of its own, ``"'a, b':2, c:1"``. ``"0,1,4; 1,0,1; 4,1,0"`` is a matrix.
"""

import re
from collections.abc import Sequence
from math import isfinite
from typing import Final

from app.domain.errors import InvalidExpression, InvalidParameter, UnknownLabel
from app.domain.expressions.syntax import Literal, unquoted
from app.domain.wording import shown
from app.kernel.metrics.card import MatrixOf

_NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_QUOTED: Final = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
# A weight, perhaps behind a class and a colon, up to a comma that stands outside of quotes.
_ITEM: Final = re.compile(
    rf"""(?:\s*(?P<quoted>{_QUOTED})\s*:|(?P<label>[^,"']*):)?(?P<weight>[^,"':]*)(?:,|$)""", re.DOTALL
)
_EXAMPLES: Final = 'weights="2,1" by position, or weights="A:2,B:1" by class'


def weights_of(
    function: str, literal: Literal, values: Sequence[int | None] | None, labels: Sequence[str]
) -> tuple[float, ...]:
    """A weight for each value of a mean.

    Args:
        function: The mean, for messages.
        literal: As written.
        values: (P) the class of each value, None for one of no class; None as a whole where the classes are not known
            yet, and with them not how many values there are.
        labels: The classes.

    Raises:
        UnknownLabel: there is no such class.
        InvalidParameter: a weight is no number above 0, they are too few or too many, a class has none or two.
    """
    items = _items(function, literal)
    written = [label for label, _ in items if label is not None]
    if not written:
        if values is not None and len(items) != len(values):
            expected = f"expected {len(values)} weights, one for each value that {function} takes"
            raise _wrong(literal, f"{expected}, got {len(items)}")
        return tuple(weight for _, weight in items)
    if len(written) < len(items):
        raise _wrong(literal, f"the weights of {function} stand either all with their class or all without")
    twice = next((label for label in written if written.count(label) > 1), None)
    if twice is not None:
        raise _wrong(literal, f"the class {shown(twice)} has two weights in {function}")
    by_label = {label: weight for label, weight in items if label is not None}
    return _by_class(function, literal, by_label, values, labels)


def labels_in(literal: Literal) -> tuple[str, ...]:
    """The classes that weights are given for; none where they cannot be read."""
    try:
        return tuple(label for label, _ in _items("", literal) if label is not None)
    except InvalidExpression:
        return ()


def matrix_of(
    name: str, literal: Literal, of: MatrixOf, n_classes: int | None, n_decisions: int | None = None
) -> tuple[tuple[float, ...], ...]:
    """The rows of a matrix, actual classes in label order.

    Args:
        name: What they are, for messages.
        literal: As written: rows behind each other with ; between, numbers with commas.
        of: What its numbers are.
        n_classes: How many rows; None where the classes are not known yet, and with them not what is decided.
        n_decisions: How many columns of costs, where what is decided are no classes.

    Raises:
        InvalidParameter: it has not the size of the classes, holds something that is no number, a cost below 0, or
            weights that are neither a disagreement with 0 on the diagonal nor an agreement with 1 there.
    """
    rows = tuple(
        tuple(_number(name, literal, text, f"row {i + 1}, column {j + 1}") for j, text in enumerate(row.split(",")))
        for i, row in enumerate(literal.text.split(";"))
    )
    size = len(rows) if n_classes is None else n_classes
    if len(rows) != size:
        raise _wrong(literal, f"expected {size} rows in {name}, one for each class, got {len(rows)}")
    any_width = of is MatrixOf.COSTS_OF_ANYTHING or (of is MatrixOf.COSTS and n_classes is None)
    width = max(len(rows[0]), 2) if any_width else size
    if of is MatrixOf.COSTS and n_decisions is not None:
        width = n_decisions
    for i, row in enumerate(rows):
        if len(row) != width:
            raise _wrong(literal, f"expected {width} numbers in row {i + 1} of {name}, got {len(row)}")
    if of is MatrixOf.WEIGHTS:
        _require_a_scale(name, literal, rows)
    elif (negative := next((value for row in rows for value in row if value < 0.0), None)) is not None:
        raise _wrong(literal, f"{name} holds {write_number(negative)}: a cost is at least 0")
    return rows


def write_weights(weights: Sequence[float]) -> str:
    """Weights by position, as `weights_of` takes them back."""
    return ",".join(write_number(weight) for weight in weights)


def write_matrix(rows: Sequence[Sequence[float]]) -> str:
    """A matrix as `matrix_of` takes it back."""
    return ";".join(write_weights(row) for row in rows)


def write_number(value: float) -> str:
    """A number, whole ones without a point."""
    return f"{int(value)}" if value == value // 1 and abs(value) < 1e15 else repr(float(value))


def _items(function: str, literal: Literal) -> list[tuple[str | None, float]]:
    """Classes, None where there is none, and their weights."""
    found: list[tuple[str | None, float]] = []
    place = 0
    while not found or literal.text[place - 1 : place] == ",":
        number, item = len(found) + 1, _ITEM.match(literal.text, place)
        if item is None:
            what = f"weight {number} of {function} cannot be read, or has a quote that is not closed"
            raise _wrong(literal, f"{what}: write {_EXAMPLES}")
        label = item["label"] and item["label"].strip()
        if item["quoted"] is not None:
            label = unquoted(item["quoted"], literal.position)
        where = f"weight {number}" + ("" if label is None else f", of class {shown(label)},")
        weight = _number(function, literal, item["weight"], where)
        if weight <= 0.0:
            raise _wrong(literal, f"{where} of {function} is a number above 0, not {shown(item['weight'].strip())}")
        found.append((label, weight))
        place = item.end()
    return found


def _number(name: str, literal: Literal, text: str, where: str) -> float:
    plain = text.strip()
    value = float(plain) if _NUMBER.fullmatch(plain) else float("nan")
    if not isfinite(value):
        raise _wrong(literal, f"{where} of {name} is a number, not {shown(plain)}")
    return value


def _by_class(
    function: str,
    literal: Literal,
    by_label: dict[str, float],
    values: Sequence[int | None] | None,
    labels: Sequence[str],
) -> tuple[float, ...]:
    if values is None:
        return tuple(by_label.values())
    unknown = next((label for label in by_label if label not in labels), None)
    if unknown is not None:
        raise UnknownLabel(
            f"the weights of {function} name {shown(unknown)}, and there is no such class",
            known=labels,
            position=literal.position,
        )
    if None in values:
        raise _wrong(literal, f"{function} takes a value of no class, so its weights stand by position: {_EXAMPLES}")
    classes = [of for of in values if of is not None]
    missing = next((of for of in classes if labels[of] not in by_label), None)
    if missing is not None:
        raise _wrong(
            literal,
            f"the class {shown(labels[missing])} has no weight in {function}; to leave a class out, "
            "name the others: wmean(recall@A, recall@B, ...)",
        )
    without = next((label for label in by_label if labels.index(label) not in classes), None)
    if without is not None:
        raise _wrong(literal, f"the class {shown(without)} has a weight in {function} and no value")
    return tuple(by_label[labels[of]] for of in classes)


def _require_a_scale(name: str, literal: Literal, rows: Sequence[Sequence[float]]) -> None:
    """Refuse weights on the wrong side of the diagonal."""
    diagonal = {row[i] for i, row in enumerate(rows)}
    if diagonal not in ({0.0}, {1.0}):
        raise _wrong(literal, f"{name} has 0 on the whole diagonal (disagreement) or 1 (agreement)")
    agreement = diagonal == {1.0}
    others = [value for i, row in enumerate(rows) for j, value in enumerate(row) if i != j]
    wrong = next((value for value in others if (value > 1.0 if agreement else value < 0.0)), None)
    if wrong is not None:
        limit = "agreement is at most 1" if agreement else "disagreement is at least 0"
        raise _wrong(literal, f"{name} holds {write_number(wrong)}: {limit}")
    if all(value == (1.0 if agreement else 0.0) for value in others):
        raise _wrong(literal, f"{name} tells no confusion from a right answer")


def _wrong(literal: Literal, words: str) -> InvalidParameter:
    return InvalidParameter(words, position=literal.position)
