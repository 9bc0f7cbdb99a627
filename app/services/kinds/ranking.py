"""Ranked items of queries."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.domain.findings import Finding
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.units.rankings import CUTOFFS
from app.domain.options import Options
from app.domain.report import LowQuery, Quartiles, QueryValues
from app.domain.wording import percent
from app.kernel.metrics.card import INPUTS_OF, AnyMetric, Inputs, Task
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Subject
from app.kernel.metrics.families.retrieval import ndcg_at_k
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.units import QueryUnits
from app.kernel.units.queries import Queries
from app.services.kinds.kind import PerClass, Reported, UnitKind

_K: Final = "k"
# With fewer queries little is known of any mean over them.
_FEW = 30
# From this share of tied items on the order is to a good part unknown.
_MANY_TIED = 0.2
_MOST_SHOWN = 20


def _units(source: MatrixInput) -> QueryUnits:
    """The queries with their items.

    Raises:
        ValueError: they are not at hand.
    """
    samples = source.samples
    if samples is None or samples.outputs is None:
        raise ValueError("expected the items of the queries")
    return QueryUnits(samples.predicted.astype(np.intp), samples.truth.astype(np.float64), samples.outputs)


def variants(cutoffs: tuple[int, ...], metric: AnyMetric) -> tuple[Reported, ...]:
    """A metric at each cutoff, if it has one, under the name that it has in expressions."""
    if _K not in metric.card.defaults:
        return (Reported.plain(metric),)
    return tuple(Reported(f"{metric.key}({_K}={k})", metric, {**metric.card.defaults, _K: float(k)}) for k in cutoffs)


def _variants(source: MatrixInput, metric: AnyMetric) -> tuple[Reported, ...]:
    return variants(tuple(source.facts["cutoffs"]), metric)


def _details(source: MatrixInput, subject: Subject, _: Options) -> Mapping[str, Any]:
    """How values are spread over the queries, and those with the lowest nDCG at the middle cutoff."""
    queries: Queries = subject.parts[Inputs.QUERIES]
    measures = [one for metric in catalogue().of_rankings.reported.metrics for one in _variants(source, metric)]
    chosen = sorted(source.facts["cutoffs"])[len(source.facts["cutoffs"]) // 2]
    lowest_by = f"{ndcg_at_k.key}({_K}={chosen})"
    ids = _ids(source)
    spread = {}
    # One after another: there may be very many queries.
    for one in measures:
        values = _of_queries(one, queries)
        if not np.isnan(values).all():
            spread[one.name] = _quartiles(values)
    found = next(_of_queries(one, queries) for one in measures if one.name == lowest_by)
    # NaN comes last.
    lowest = [int(place) for place in np.argsort(found, kind="stable")[:_MOST_SHOWN] if not np.isnan(found[place])]
    shown: QueryValues = {
        "spread": spread,
        "lowest_by": lowest_by,
        "lowest": [
            LowQuery(
                query_id=query,
                value=float(found[place]),
                items=int(queries.sizes[place]),
                relevant=int(queries.relevant_items[place]),
            )
            for place, query in zip(lowest, ids.take(lowest).tolist(), strict=True)
        ],
    }
    return {"queries": shown}


def _ids(source: MatrixInput) -> NDArray[Any]:
    """The ids (Q) of the queries.

    Raises:
        ValueError: they are not at hand.
    """
    if source.samples is None or source.samples.ids is None:
        raise ValueError("expected the ids of the queries")
    return source.samples.ids


def _of_queries(one: Reported, queries: Queries) -> Array:
    """Values (Q), NaN where there is none."""
    terms = one.card.inference.terms
    if terms is None:
        raise TypeError(f"{one.name} is no sum over queries")
    values: Array = terms(queries, **one.parameters).of_units
    return values


def _quartiles(values: Array) -> Quartiles:
    lowest, first, median, third, highest = np.nanquantile(values, (0.0, 0.25, 0.5, 0.75, 1.0)).tolist()
    return Quartiles(lowest=lowest, quartile_1=first, median=median, quartile_3=third, highest=highest)


def _findings(source: MatrixInput, subject: Subject, _: Mapping[str, float | None], __: PerClass) -> Iterator[Finding]:
    n_queries, n_items, _relevant, with_relevant = source.counts.tolist()
    if with_relevant < n_queries:
        without = n_queries - with_relevant
        yield Finding.warning(
            "queries_without_relevant_items",
            f"{without} of {n_queries} queries have no relevant item. Recall, average precision, nDCG and ranks do not "
            "exist for them and are means over the others; trec_eval, ranx, torchmetrics and scikit-learn count such "
            f"queries as 0, which multiplies these means by {with_relevant / n_queries:.4g}.",
            queries=without,
        )
    if n_queries < _FEW:
        yield Finding.warning(
            "few_queries",
            f"There are {n_queries} queries. They differ much, so a mean over fewer than {_FEW} says little of others; "
            "the intervals say how little.",
            queries=n_queries,
        )
    tied = int(subject.parts[Inputs.QUERIES].tied_items.sum())
    if tied >= _MANY_TIED * n_items:
        yield Finding.note(
            "many_tied_items",
            f"{percent(tied / n_items)} of the items have the score of another item of their query. Values are "
            "means over all orders of tied items; libraries that sort them in some order give other values.",
            tied_items=tied,
        )


RANKING_KIND = UnitKind(
    inputs=lambda _: INPUTS_OF[Task.RANKING],
    ranked=(ndcg_at_k,),
    units=_units,
    reordered=lambda source, _: source,
    shown=lambda _: {},
    twin=lambda _: None,
    findings=_findings,
    variants=_variants,
    listed=partial(variants, CUTOFFS),
    of_units=(ndcg_at_k,),
    details=_details,
)
