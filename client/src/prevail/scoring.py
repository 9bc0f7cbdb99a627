"""Scorers for scikit-learn: `cross_validate(model, X, y, scoring=prevail.scorer("h_mean"))`."""

import re
from typing import Any, Final

from prevail.client import Client
from prevail.errors import InvalidInput, NotFound

_RISES: Final = {"higher_is_better": True, "lower_is_better": False}


class Scorer:
    """A metric of the service as what scikit-learn calls a scorer; made by `scorer`."""

    def __init__(self, metric: str, client: Client | None, greater_is_better: bool | None) -> None:
        self.metric, self.client, self.greater_is_better = metric, client, greater_is_better

    def __repr__(self) -> str:
        return f"scorer({self.metric!r})"

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:  # noqa: N803 - as scikit-learn names it
        """The value for the predictions of an estimator, larger for better ones.

        Raises:
            UndefinedValue: there is none for these samples; scikit-learn scores such a fold as `error_score`.
        """
        if self.client is not None:
            return self._score(self.client, estimator, X, y)
        with Client() as client:
            return self._score(client, estimator, X, y)

    def _score(self, client: Client, estimator: Any, X: Any, y: Any) -> float:  # noqa: N803 - scikit-learn's names
        if self.greater_is_better is None:
            self.greater_is_better = self._rises(client)
        value = float(client.evaluate_model(estimator, X, y, metrics=[self.metric], intervals="none")[self.metric])
        return value if self.greater_is_better else -value

    def _rises(self, client: Client) -> bool:
        said = f"{self.metric}: say greater_is_better, which is known of metrics by name only, and not of all"
        try:
            orientation = client.metric(re.split(r"[@(]", self.metric)[0])["orientation"]
        except NotFound as error:
            raise InvalidInput(said, code="missing") from error
        if orientation not in _RISES:
            raise InvalidInput(said, code="missing")
        return _RISES[orientation]


def scorer(metric: str, *, client: Client | None = None, greater_is_better: bool | None = None) -> Scorer:
    """Make a scorer for `cross_validate`, `GridSearchCV` and whatever else takes ``scoring``.

    Probabilities are asked for where the estimator has them, so that `roc_auc` and `log_loss` are scorers too. Nothing
    is kept by the service.

    Args:
        metric: A metric or an expression, such as ``"h_mean"``, ``"log_loss"`` or ``"min(recall@*)"``.
        client: The service; without one that of ``PREVAIL_URL``, which also works in other processes (``n_jobs``).
        greater_is_better: False turns the sign of the value, as scikit-learn wants it of losses. Known for metrics by
            name; an expression needs it said.
    """
    return Scorer(metric, client, greater_is_better)
