"""Similarity coefficients of one class against the rest: in no report unless they are asked for.

They come from ecology, information retrieval and cheminformatics, where two sets are compared; here these are the
members of a class and what is predicted as such.
"""

from collections.abc import Callable
from typing import Any

from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Card, Inference, Metric, Orientation, Prevalence, Scope
from app.kernel.metrics.conditions import where
from app.kernel.numerics.arrays import Array

CONSTANT = where(
    "constant_on_both_sides",
    "class {label} has all samples or none, in the data and in the predictions",
    lambda t: (t.actual * t.rest == 0) & (t.predicted * t.predicted_rest == 0),
)
_INFERENCE = Inference()


def coefficient(
    key: str,
    pycm: str,
    name: str,
    formula: str,
    value: Callable[[Table], Array],
    sentence: str,
    *,
    sources: tuple[str, ...] = (),
    **facts: Any,
) -> Metric[Table]:
    """A coefficient by its formula, with the facts of its card; they are sensitive, and better the higher, unless these
    say otherwise. Most are the same with actual and predicted exchanged.
    """

    def compute(t: Table) -> Array:
        return value(t)

    known: dict[str, Any] = {"prevalence": Prevalence.SENSITIVE, "symmetric": True, **facts}
    card = Card(
        key=key,
        name=name,
        scope=Scope.CLASS,
        formula=formula,
        sentence=sentence,
        elsewhere={"pycm": pycm},
        references=(*sources, "haghighi2018"),
        inference=_INFERENCE,
        on_request=True,
        **known,
    )
    return Metric(card, compute)


def distance(*row: Any, **facts: Any) -> Metric[Table]:
    """A coefficient that is better the lower, 0 where nothing is wrong."""
    return coefficient(*row, **{"orientation": Orientation.LOWER, "ideal": 0.0, **facts})
