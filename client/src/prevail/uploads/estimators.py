"""Estimators of scikit-learn and rankings of trec_eval, as arguments of an evaluation."""

from collections.abc import Mapping
from typing import Any

from prevail.errors import InvalidInput
from prevail.uploads.arrays import plain


def as_list(values: Any, name: str) -> list[Any]:
    """An array of any library as a list."""
    found = plain(values, name)
    return list(found if isinstance(found, list) else found.tolist())


def predicted(model: Any, X: Any) -> dict[str, Any]:  # noqa: N803 - as scikit-learn names it
    """The answer of an estimator for samples: probabilities where it has them, else scores, else classes.

    Raises:
        InvalidInput: it is no estimator.
    """
    classes = getattr(model, "classes_", None)
    labels = None if classes is None else as_list(classes, "classes_")
    if labels is not None and hasattr(model, "predict_proba"):
        return {"probabilities": model.predict_proba(X), "labels": labels}
    if labels is not None and hasattr(model, "decision_function"):
        return {"scores": model.decision_function(X), "labels": labels}
    if not hasattr(model, "predict"):
        raise InvalidInput(f"estimator: expected one of scikit-learn, got {type(model).__name__}", code="array_type")
    return {"y_pred": model.predict(X), **({} if labels is None else {"labels": labels})}


def by_query(table: Mapping[str, Mapping[str, float]], member: str) -> dict[str, list[Any]]:
    """Judgements or scores by query and item as columns, the numbers under the name of their member."""
    items = [(query, item, float(value)) for query, own in table.items() for item, value in own.items()]
    return {
        "query_ids": [query for query, _, _ in items],
        "item_ids": [item for _, item, _ in items],
        member: [value for _, _, value in items],
    }
