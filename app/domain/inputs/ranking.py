"""Items that were ranked for queries."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Final, TypedDict

import numpy as np
from numpy.typing import NDArray

from app.domain.findings import Finding
from app.domain.inputs.content import Content
from app.domain.inputs.kind import (
    NAMES_OF_GROUPS,
    Beyond,
    Facts,
    File,
    Input,
    Limits,
    PerClass,
    Reported,
    UnitKind,
    Values,
    column,
    numbers,
    option,
)
from app.domain.inputs.labels import Column, Numbers
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.samples import Samples
from app.domain.wording import percent
from app.kernel.metrics.card import INPUTS_OF, AnyMetric, Inputs, Task
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Subject
from app.kernel.metrics.families.retrieval import ndcg_at_k
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.units import QueryUnits
from app.kernel.units.queries import Queries

CUTOFFS: Final = (1, 3, 5, 10, 20, 100)
# Beyond it 2^relevance is infinite.
_LARGEST_RELEVANCE = 1000.0
_K: Final = "k"
# With fewer queries little is known of any mean over them.
_FEW = 30
# From this share of tied items on the order is to a good part unknown.
_MANY_TIED = 0.2
_MOST_SHOWN = 20


class Quartiles(TypedDict):
    """Quartiles of the values of those queries that have one."""

    lowest: float
    quartile_1: float
    median: float
    quartile_3: float
    highest: float


class LowQuery(TypedDict):
    """A query with a low value.

    Attributes:
        items: How many items were ranked.
        relevant: How many of them are relevant.
    """

    query_id: str | int
    value: float
    items: int
    relevant: int


class QueryValues(TypedDict):
    """Values of single queries in a report.

    Attributes:
        spread: By metric, of the values of the queries; not of metrics that no query has.
        lowest_by: The metric by which the queries in `lowest` are.
        lowest: Those with the lowest values, at most 20, the lowest first.
    """

    spread: Mapping[str, Quartiles]
    lowest_by: str
    lowest: Sequence[LowQuery]


def _query_units(source: MatrixInput) -> QueryUnits:
    """The queries with their items.

    Raises:
        ValueError: they are not known.
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


def _details(source: MatrixInput, subject: Subject, _: float, __: Array | None) -> Facts:
    """Quartiles of values over the queries, and the queries with the lowest nDCG at the middle cutoff."""
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
        ValueError: they are not known.
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


def _findings(source: MatrixInput, subject: Subject, _: Values, __: PerClass) -> Iterator[Finding]:
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


_UNITS = UnitKind(
    task=Task.RANKING,
    judged="rankings",
    # Queries, items, relevant items, queries with a relevant item.
    shape=lambda _, __: (4,),
    size=lambda counts: counts[0].item(),
    inputs=lambda _: INPUTS_OF[Task.RANKING],
    ranked=(ndcg_at_k,),
    units=_query_units,
    findings=_findings,
    variants=_variants,
    listed=partial(variants, CUTOFFS),
    of_units=(ndcg_at_k,),
    details=_details,
    unit="queries",
    figure="per_query",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking(Input):
    """Items that were ranked for queries, one entry per item, in any order."""

    kind: ClassVar[str] = "ranking"
    units: ClassVar[UnitKind | None] = _UNITS
    beyond: ClassVar[Beyond | None] = Beyond.STREAMED

    query_ids: Column = column(
        NAMES_OF_GROUPS,
        "The query of each item; runs are paired by them.",
        File("query_id", needed=True),
        required=True,
    )
    relevance: Numbers = column(
        numbers(0.0, _LARGEST_RELEVANCE),
        "How relevant each item is, from 0 to 1,000; what is above 0 counts as relevant. Relevant items that were not "
        "retrieved belong here too, with one score below all others: they count as tied at the end.",
        File("relevance", needed=True),
        required=True,
    )
    scores: Numbers | None = column(
        numbers(),
        "Any real numbers, higher for what comes first; equal scores count as all orders of them.",
        File("score", needed=True),
    )
    ranks: Numbers | None = column(
        numbers(0.0), "In place of `scores`, 1 for what comes first.", File("rank", needed=True), instead="scores"
    )
    cutoffs: (
        Annotated[
            list[Annotated[int, Limits({"ge": 1, "le": 10_000_000})]], Limits({"min_length": 1, "max_length": 20})
        ]
        | None
    ) = option(f"The k of the metrics at k; {', '.join(map(str, CUTOFFS))}.")

    def read(self, pointer: str) -> MatrixInput:
        """Numbers of queries, items, relevant items and queries with a relevant item, and the samples.

        Of the columns of samples ``truth`` has the relevance of each item, ``predicted`` the code of its query,
        ``outputs`` its score (of ranks the negative rank) and ``ids`` the ids of the queries by their codes.
        """
        read = self.read_columns(pointer, unit="item")
        ids, codes = np.unique(read["query_ids"], return_inverse=True)
        grades, values = read["relevance"], read["scores"] if "scores" in read else -read["ranks"]
        relevant = np.bincount(codes, grades > 0, len(ids))
        counts = len(ids), codes.size, int(relevant.sum()), int(np.count_nonzero(relevant))
        cutoffs = CUTOFFS if self.cutoffs is None else tuple(dict.fromkeys(self.cutoffs))
        samples = Samples(truth=grades, predicted=codes.astype(np.int64), outputs=values, ids=ids)
        return counted_ranking(counts, cutoffs, samples)


def counted_ranking(counts: tuple[int, int, int, int], cutoffs: Sequence[int], samples: Samples | None) -> MatrixInput:
    """The canonical form of numbers of queries, items, relevant items and queries with a relevant item."""
    n_queries, n_items, relevant, with_relevant = counts
    return MatrixInput(
        kind=Ranking.kind,
        labels=(),
        positive=None,
        content=Content.counts,
        counts=np.array(counts, dtype=np.int64),
        facts={
            "rows": n_items,
            "cutoffs": list(cutoffs),
            "relevant_items": relevant,
            "queries_without_relevant_items": n_queries - with_relevant,
        },
        samples=samples,
    )
