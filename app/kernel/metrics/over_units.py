"""How a metric of independent units is declared: by what it says of each unit, or by what each adds to two sums."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, TypeVar

from app.kernel.metrics.card import Metric, Scope, metric
from app.kernel.numerics.arrays import Array, silently
from app.kernel.numerics.weighted_units import Terms, WeightedUnits, mean_terms

_Units = TypeVar("_Units", bound=WeightedUnits)


def over_units(**facts: Any) -> Callable[[Callable[Concatenate[_Units, ...], Array | Terms]], Metric[_Units]]:
    """Turn a function of units into a metric by the facts of its card: the mean over the units that have a value, if
    the function gives values (U) with NaN for none, or the ratio of the two sums, if it gives terms.
    """

    def declare(of_units: Callable[Concatenate[_Units, ...], Array | Terms]) -> Metric[_Units]:
        def terms(data: _Units, **parameters: Any) -> Terms:
            def make() -> Terms:
                with silently():
                    found = of_units(data, **parameters)
                return found if isinstance(found, Terms) else mean_terms(found)

            return data.remembered((of_units.__name__, *sorted(parameters.items())), make)

        @wraps(of_units)
        def compute(data: _Units, **parameters: Any) -> Array:
            return data.ratio_of(terms(data, **parameters))

        declared: Metric[_Units] = metric(scope=Scope.OVERALL, terms=terms, **facts)(compute)
        return declared

    return declare
