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
        raise InvalidInput(f"model: expected an estimator, got {type(model).__name__}", code="array_type")
    return {"y_pred": model.predict(X), **({} if labels is None else {"labels": labels})}


def ranked(judgements: Mapping[str, Mapping[str, float]], run: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """Items of rankings, query by query, as columns.

    Raises:
        InvalidInput: an item is judged and has no score.
    """
    found: dict[str, list[Any]] = {"query_ids": [], "relevance": [], "scores": []}
    for query, judged in judgements.items():
        scores = run.get(query, {})
        missing = next((item for item in judged if item not in scores), None)
        if missing is not None:
            raise InvalidInput(f"run[{query!r}]: expected a score of {missing!r}, which is judged", code="missing")
        for item, score in scores.items():
            found["query_ids"].append(query)
            found["relevance"].append(float(judged.get(item, 0)))
            found["scores"].append(float(score))
    return found
