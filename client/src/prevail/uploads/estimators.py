"""Estimators of scikit-learn and rankings of trec_eval, as arguments of an evaluation."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from prevail.errors import InvalidInput
from prevail.uploads.arrays import label_name, listed, table_columns

# Names of the columns of a data frame: those of the service, of ir_measures and of PyTerrier.
_COLUMNS: Final = {
    "query_ids": ("query_ids", "query_id", "qid"),
    "item_ids": ("item_ids", "item_id", "doc_id", "docno"),
    "relevance": ("relevance", "label"),
    "scores": ("scores", "score"),
}
# The place of the number in a line, and of how many words the line is: "q1 0 d7 1" and "q1 Q0 d7 1 12.5 name".
_TREC: Final = {"relevance": (3, 4), "scores": (4, 6)}


def predicted(
    model: Any,
    X: Any,  # noqa: N803 - as scikit-learn names it
    beside: Mapping[str, Any],
) -> dict[str, Any]:
    """The answer of an estimator for samples: probabilities where it has them, else scores, else classes.

    Args:
        model: The estimator.
        X: What it predicts from.
        beside: Further arguments of `evaluate`, of which the positive class turns scores round.

    Raises:
        InvalidInput: it is no estimator, or has outputs that are no labels.
    """
    classes = getattr(model, "classes_", None)
    labels = [] if classes is None else listed(classes, "classes_")[0]
    # Of several outputs there are the classes of each.
    outputs = labels if labels and isinstance(labels[0], list) else []
    other = next((one for one in outputs if not {*one} <= {0, 1}), None)
    if other is not None:
        raise InvalidInput(
            f"estimator: expected outputs of 0 and 1, got one of {', '.join(map(str, other[:5]))}: evaluate it alone",
            code="array_type",
        )
    named = {"labels": labels} if labels and not outputs else {}
    if classes is not None and hasattr(model, "predict_proba"):
        found = model.predict_proba(X)
        if outputs and isinstance(found, list):
            # A table for each output, with a column for each of its classes.
            columns = [
                one[:, own.index(1)].tolist() if 1 in own else [0.0] * len(one)
                for one, own in zip(found, outputs, strict=True)
            ]
            return {"probabilities": [[*row] for row in zip(*columns, strict=True)]}
        return {"probabilities": found, **named}
    if classes is not None and hasattr(model, "decision_function"):
        scores = model.decision_function(X)
        # Of two classes they are high for the second one.
        is_first = len(labels) == 2 and _is_positive(labels[0], beside)
        return {"scores": -scores if is_first else scores, **named}
    if not hasattr(model, "predict"):
        raise InvalidInput(f"estimator: expected one of scikit-learn, got {type(model).__name__}", code="array_type")
    return {"y_pred": model.predict(X), **named}


def _is_positive(label: Any, beside: Mapping[str, Any]) -> bool:
    """Is it the class that is said to be the positive one, by its code or its name?"""
    said = next((beside[name] for name in ("positive", "pos_label") if beside.get(name) is not None), None)
    names = beside.get("labels")
    name = names.get(label, label) if isinstance(names, Mapping) else label
    return said is not None and label_name(said) == label_name(name)


def by_query(table: Any, member: str) -> dict[str, list[Any]]:
    """Judgements or scores by query and item, in a data frame, or in a file of trec_eval, as columns, the numbers under
    the name of their member.

    Raises:
        InvalidInput: a line of the file is none of trec_eval's, or a column is missing.
    """
    if table_columns(table) is not None:
        return {name: listed(table[_column(table, name)], name)[0] for name in ("query_ids", "item_ids", member)}
    if isinstance(table, Mapping):
        try:
            items = [(query, item, float(value)) for query, own in table.items() for item, value in own.items()]
        except (AttributeError, TypeError, ValueError) as error:
            raise InvalidInput(f"{member}: expected numbers by query and item: {error}", code="array_type") from error
    elif isinstance(table, str | Path):
        items = [*_trec_lines(Path(table), member)]
    else:
        raise InvalidInput(
            f"{member}: expected numbers by query and item, a data frame or a file, got {type(table).__name__}",
            code="array_type",
        )
    return {
        "query_ids": [query for query, _, _ in items],
        "item_ids": [item for _, item, _ in items],
        member: [value for _, _, value in items],
    }


def _column(table: Any, name: str) -> Any:
    names = table_columns(table) or ()
    found = next((one for one in _COLUMNS[name] if one in names), None)
    if found is None:
        expected = " or ".join(map(repr, _COLUMNS[name]))
        raise InvalidInput(f"{name}: expected a column {expected}, got {', '.join(map(repr, names))}", code="no_column")
    return found


def _trec_lines(path: Path, member: str) -> Iterator[tuple[str, str, float]]:
    place, width = _TREC[member]
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}", code="no_such_file") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}: expected lines of trec_eval as UTF-8: {error}", code="unreadable") from error
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        try:
            if words and len(words) == width:
                yield words[0], words[2], float(words[place])
            elif words:
                raise ValueError
        except ValueError as error:
            raise InvalidInput(
                f"{path}, line {number}: expected {width} words with a number as number {place + 1}, got {line[:80]!r}",
                code="trec_line",
            ) from error
