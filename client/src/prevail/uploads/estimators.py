"""Estimators of scikit-learn and rankings of trec_eval, as arguments of an evaluation."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from prevail.errors import InvalidInput
from prevail.uploads.arrays import listed

# Names of the columns of a data frame: those of the service, of ir_measures and of PyTerrier.
_COLUMNS: Final = {
    "query_ids": ("query_ids", "query_id", "qid"),
    "item_ids": ("item_ids", "item_id", "doc_id", "docno"),
    "relevance": ("relevance", "label"),
    "scores": ("scores", "score"),
}
# The place of the number in a line, and of how many words the line is: "q1 0 d7 1" and "q1 Q0 d7 1 12.5 name".
_TREC: Final = {"relevance": (3, 4), "scores": (4, 6)}


def predicted(model: Any, X: Any) -> dict[str, Any]:  # noqa: N803 - as scikit-learn names it
    """The answer of an estimator for samples: probabilities where it has them, else scores, else classes.

    Raises:
        InvalidInput: it is no estimator.
    """
    classes = getattr(model, "classes_", None)
    labels = None if classes is None else listed(classes, "classes_")[0]
    if labels is not None and hasattr(model, "predict_proba"):
        found = model.predict_proba(X)
        if isinstance(found, list):
            # Of several labels there is a table for each, whose second column is that of having it.
            return {"probabilities": [[*row] for row in zip(*(one[:, 1].tolist() for one in found), strict=True)]}
        return {"probabilities": found, "labels": labels}
    if labels is not None and hasattr(model, "decision_function"):
        return {"scores": model.decision_function(X), "labels": labels}
    if not hasattr(model, "predict"):
        raise InvalidInput(f"estimator: expected one of scikit-learn, got {type(model).__name__}", code="array_type")
    return {"y_pred": model.predict(X), **({} if labels is None else {"labels": labels})}


def by_query(table: Any, member: str) -> dict[str, list[Any]]:
    """Judgements or scores by query and item, in a data frame, or in a file of trec_eval, as columns, the numbers under
    the name of their member.

    Raises:
        InvalidInput: a line of the file is none of trec_eval's, or a column is missing.
    """
    if hasattr(table, "columns"):
        return {name: listed(table[_column(table, name)], name)[0] for name in ("query_ids", "item_ids", member)}
    if isinstance(table, Mapping):
        try:
            items = [(query, item, float(value)) for query, own in table.items() for item, value in own.items()]
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"{member}: expected numbers: {error}", code="array_type") from error
    else:
        items = [*_trec_lines(Path(table), member)]
    return {
        "query_ids": [query for query, _, _ in items],
        "item_ids": [item for _, item, _ in items],
        member: [value for _, _, value in items],
    }


def _column(table: Any, name: str) -> Any:
    names = getattr(table, "column_names", None) or [*table.columns]
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
