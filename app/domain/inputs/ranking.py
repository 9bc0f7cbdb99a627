"""Items that were ranked for queries."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final, NamedTuple, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from app.domain.asked import Limits
from app.domain.errors import InvalidInput
from app.domain.findings import Finding
from app.domain.inputs.attributes import of_units, read_attributes
from app.domain.inputs.content import Content
from app.domain.inputs.kind import (
    NAMES_OF_GROUPS,
    AttributeColumns,
    Beyond,
    Columns,
    Facts,
    File,
    Input,
    PerClass,
    Reported,
    UnitKind,
    Values,
    column,
    numbers,
    option,
)
from app.domain.inputs.labels import Column, Numbers, shown
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.samples import Samples
from app.domain.wording import numbered, percent
from app.kernel.metrics.card import INPUTS_OF, AnyMetric, Inputs, Task
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Subject
from app.kernel.metrics.families.retrieval import ndcg_at_k
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.units import ItemUnits
from app.kernel.units.queries import NOT_RETRIEVED, UNJUDGED, Queries

CUTOFFS: Final = (1, 3, 5, 10, 20, 100)
# Beyond it 2^relevance is infinite.
_LARGEST_RELEVANCE = 1000.0
_K: Final = "k"
# Among the facts of a ranking: the relevance from which an item counts as relevant, where it was said.
RELEVANT_FROM: Final = "relevant_from"
# Ids of the queries in order, and of each item the code of its query, its relevance and its score.
_Items: TypeAlias = tuple[NDArray[Any], NDArray[np.intp], Array, Array]
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
        items: How many items were retrieved.
        relevant: How many items are relevant to it, retrieved or not.
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


def _query_units(source: MatrixInput) -> ItemUnits:
    """The queries with their items. Raises ValueError where they are not known."""
    samples = source.known_samples
    grades, least = samples.truth.astype(np.float64), source.facts.get(RELEVANT_FROM)
    queries = Queries(samples.predicted.astype(np.intp), grades, samples.known_outputs, relevant_from=least)
    return ItemUnits(queries, Inputs.QUERIES)


def variants(cutoffs: tuple[int, ...], metric: AnyMetric) -> tuple[Reported, ...]:
    """A metric at each cutoff, if it has one by default, under the name that it has in expressions."""
    if not np.isfinite(metric.card.defaults.get(_K, np.inf)):
        return (Reported.plain(metric),)
    return tuple(Reported(f"{metric.key}({_K}={k})", metric, {**metric.card.defaults, _K: float(k)}) for k in cutoffs)


def _variants(source: MatrixInput, metric: AnyMetric) -> tuple[Reported, ...]:
    return variants(tuple(source.facts["cutoffs"]), metric)


def _details(source: MatrixInput, subject: Subject, _: float, __: Array | None) -> Facts:
    """Quartiles of values over the queries, and the queries with the lowest nDCG at the middle cutoff."""
    queries: Queries = subject.parts[Inputs.QUERIES]
    known = catalogue().reported_of(Task.RANKING, frozenset({Inputs.QUERIES})).metrics
    measures = [one for metric in known for one in _variants(source, metric)]
    chosen = sorted(source.facts["cutoffs"])[len(source.facts["cutoffs"]) // 2]
    lowest_by = f"{ndcg_at_k.key}({_K}={chosen})"
    ids = _ids(source)
    spread = {}
    # One after another: there may be very many queries.
    for one in measures:
        values = _of_queries(one, queries)
        values = values[np.isfinite(values)]
        if values.size:
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
                items=int(queries.retrieved_items[place]),
                relevant=int(queries.relevant_items[place]),
            )
            for place, query in zip(lowest, ids.take(lowest).tolist(), strict=True)
        ],
    }
    return {"queries": shown}


def _restricted(source: MatrixInput, places: NDArray[np.intp]) -> MatrixInput:
    samples, ids = source.known_samples, _ids(source)
    codes = np.full(ids.size, -1)
    codes[places] = np.arange(places.size)
    of_items = codes[samples.predicted]
    rows = np.flatnonzero(of_items >= 0)
    some = Samples(
        truth=samples.truth[rows],
        predicted=of_items[rows],
        outputs=samples.known_outputs[rows],
        ids=ids[places],
        attributes=None if samples.attributes is None else samples.attributes.taken(places),
    )
    chosen = {RELEVANT_FROM: source.facts[RELEVANT_FROM]} if RELEVANT_FROM in source.facts else {}
    return _counted(some, places.size, source.facts["cutoffs"], chosen)


def _ids(source: MatrixInput) -> NDArray[Any]:
    """The ids (Q) of the queries. Raises ValueError where they are not known."""
    if source.unit_ids is None:
        raise ValueError("expected the ids of the queries")
    return source.unit_ids


def _of_queries(one: Reported, queries: Queries) -> Array:
    """Values (Q), NaN where there is none."""
    terms = one.card.inference.terms
    if terms is None:
        raise TypeError(f"{one.name} is no sum over queries")
    values: Array = terms(queries, **one.parameters).of_units
    return values


def _quartiles(values: Array) -> Quartiles:
    lowest, first, median, third, highest = np.quantile(values, (0.0, 0.25, 0.5, 0.75, 1.0)).tolist()
    return Quartiles(lowest=lowest, quartile_1=first, median=median, quartile_3=third, highest=highest)


def _findings(source: MatrixInput, subject: Subject, _: Values, __: PerClass) -> Iterator[Finding]:
    n_queries, n_items, _relevant, with_relevant = source.counts.tolist()
    n_retrieved = n_items - source.facts.get("not_retrieved", 0)
    if with_relevant < n_queries:
        without = n_queries - with_relevant
        yield Finding.warning(
            "queries_without_relevant_items",
            f"{without} of {n_queries} queries have no relevant item. Recall, average precision, nDCG and ranks do not "
            "exist for them and are means over the others; trec_eval, ranx, torchmetrics and scikit-learn count such "
            f"queries as 0, which multiplies these means by {with_relevant / n_queries:.4g}.",
            queries=without,
        )
    if nothing := source.facts.get("queries_without_retrieved_items"):
        yield Finding.warning(
            "queries_without_retrieved_items",
            f"For {nothing} of {n_queries} queries nothing was retrieved. They count 0 in every mean over queries "
            "where they have relevant items, or the metric exists without any.",
            queries=nothing,
        )
    if left_out := source.facts.get("queries_without_judgements"):
        yield Finding.note(
            "queries_without_judgements",
            f"Items were retrieved for {numbered(left_out, 'queries')} of which none was judged. What they are worth "
            "is not known: they are left out.",
            queries=left_out,
        )
    if unjudged := source.facts.get("unjudged"):
        yield Finding.note(
            "unjudged_items",
            f"{percent(unjudged / n_retrieved)} of the retrieved items were not judged and count as not relevant. "
            "Where runs differ in this, so do their values, whatever the items are worth.",
            unjudged=unjudged,
        )
    if n_queries < _FEW:
        yield Finding.warning(
            "few_queries",
            ("There is 1 query. Queries" if n_queries == 1 else f"There are {n_queries} queries. They")
            + f" differ much, so a mean over fewer than {_FEW} says little of others; the intervals say how little.",
            queries=n_queries,
        )
    tied = int(subject.parts[Inputs.QUERIES].tied_items.sum())
    if tied and tied >= _MANY_TIED * n_retrieved:
        yield Finding.note(
            "many_tied_items",
            f"{percent(tied / n_retrieved)} of the items have the score of another item of their query. Values are "
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
    restricted=_restricted,
    findings=_findings,
    variants=_variants,
    listed=partial(variants, CUTOFFS),
    of_units=(ndcg_at_k,),
    details=_details,
    unit="queries",
    figure="per_query",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgements(Columns):
    """Judgements of items: one entry per query and item that was judged."""

    query_ids: Column = column(NAMES_OF_GROUPS, "The query of each judgement.", required=True)
    item_ids: Column = column(NAMES_OF_GROUPS, "The item that was judged, once for a query.", required=True)
    relevance: Numbers = column(numbers(0.0, _LARGEST_RELEVANCE), "How relevant it is, from 0 to 1,000.", required=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieved(Columns):
    """Retrieved items of a run: one entry per query and item."""

    query_ids: Column = column(NAMES_OF_GROUPS, "The query that each item was retrieved for.", required=True)
    item_ids: Column = column(NAMES_OF_GROUPS, "The item, once for a query.", required=True)
    scores: Numbers | None = column(numbers(), "Any real numbers, higher for what comes first.")
    ranks: Numbers | None = column(numbers(0.0), "In place of `scores`, 1 for what comes first.", instead="scores")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking(Input):
    """Items that were ranked for queries: one entry per item, in any order, or judgements and retrieved items apart."""

    kind: ClassVar[str] = "ranking"
    units: ClassVar[UnitKind | None] = _UNITS
    beyond: ClassVar[Beyond | None] = Beyond.STREAMED

    query_ids: Column | None = column(
        NAMES_OF_GROUPS,
        "The query of each item; runs are paired by them.",
        File("query_id", needed=True),
    )
    relevance: Numbers | None = column(
        numbers(0.0, _LARGEST_RELEVANCE, missing=UNJUDGED),
        "How relevant each item is, from 0 to 1,000; what is above 0 counts as relevant, or from `relevant_from` on. "
        "`null` is an item that was retrieved and not judged: it counts as not relevant.",
        File("relevance", needed=True),
    )
    scores: Numbers | None = column(
        numbers(missing=NOT_RETRIEVED),
        "Any real numbers, higher for what comes first; equal scores count as all orders of them. `null` is an item "
        "that was judged and not retrieved: it counts among what could be found, and never has a place.",
        File("score", needed=True),
    )
    ranks: Numbers | None = column(
        numbers(0.0, missing=-NOT_RETRIEVED),
        "In place of `scores`, 1 for what comes first; `null` as there.",
        File("rank", needed=True),
        instead="scores",
    )
    judgements: Judgements | None = option(
        "In place of these columns, with `retrieved`: what was judged. Queries that nothing was retrieved for count 0."
    )
    retrieved: Retrieved | None = option(
        "With `judgements`: what was retrieved. Items without a judgement count as not relevant, and queries without "
        "any are left out."
    )
    attributes: AttributeColumns | None = option(
        "By name one value per item or judgement, which all of a query share: a text, a number, true, false or null."
    )
    relevant_from: Annotated[float, Limits({"gt": 0.0, "le": _LARGEST_RELEVANCE})] | None = option(
        "The relevance from which an item counts as relevant, where relevance is yes or no; gains keep the relevance. "
        "Any above 0 when left out."
    )
    cutoffs: (
        Annotated[
            list[Annotated[int, Limits({"ge": 1, "le": 10_000_000})]], Limits({"min_length": 1, "max_length": 20})
        ]
        | None
    ) = option(f"The k of the metrics at k; {', '.join(map(str, CUTOFFS))}.")

    def read(self, pointer: str) -> MatrixInput:
        """Numbers of queries, items, relevant items and queries with a relevant item, and the samples.

        Of the columns of samples ``truth`` has the relevance of each item or `UNJUDGED`, ``predicted`` the code of its
        query, ``outputs`` its score (of ranks the negative rank) or `NOT_RETRIEVED`, and ``ids`` the ids of the queries
        by their codes.
        """
        facts: dict[str, Any] = {} if self.relevant_from is None else {RELEVANT_FROM: self.relevant_from}
        self.chosen_way(pointer, (("judgements", "retrieved"), ()), (("query_ids", "relevance"), ("scores", "ranks")))
        if self.judgements is None or self.retrieved is None:
            ids, codes, grades, values = self._together(pointer)
            entries = codes
        else:
            (ids, codes, grades, values), entries, facts["queries_without_judgements"] = _apart(
                self.judgements, self.retrieved, pointer
            )
        cutoffs = CUTOFFS if self.cutoffs is None else tuple(dict.fromkeys(self.cutoffs))
        attributes = None
        if self.attributes:
            of_entries = read_attributes(self.attributes, entries.size, f"{pointer}/attributes")
            attributes = of_units(of_entries, entries, "query", f"{pointer}/attributes")
        samples = Samples(grades, codes.astype(np.int64), values, ids, attributes=attributes)
        return _counted(samples, ids.size, cutoffs, facts)

    def _together(self, pointer: str) -> _Items:
        """Items of one table.

        Raises:
            InvalidInput, TooLarge: it is no such table, or an item is neither judged nor retrieved.
        """
        read = self.read_columns(pointer, unit="item")
        ids, codes = np.unique(read["query_ids"], return_inverse=True)
        grades, values = read["relevance"], _scores_of(read)
        nothing = (grades == UNJUDGED) & (values == NOT_RETRIEVED)
        if nothing.any():
            raise InvalidInput.at(
                f"{pointer}/relevance/{int(np.argmax(nothing))}",
                "missing_value",
                "expected an item that was judged or retrieved, got null for both",
            )
        return ids, codes, grades, values


def _apart(judgements: Judgements, retrieved: Retrieved, pointer: str) -> tuple[_Items, NDArray[np.intp], int]:
    """Items of two tables, those of queries that were judged, the query of each judgement, and how many others are.

    Raises:
        InvalidInput, TooLarge: one is no such table, or an item is there twice for a query.
    """
    judged = judgements.read_columns(f"{pointer}/judgements", unit="judgement")
    found = retrieved.read_columns(f"{pointer}/retrieved", unit="item")
    n_judged = len(judged["query_ids"])
    queries, codes = _coded(judged["query_ids"], found["query_ids"])
    _, items = _coded(judged["item_ids"], found["item_ids"])
    keys = codes.astype(np.int64) * (int(items.max()) + 1) + items
    _refuse_twice(keys[:n_judged], judged["item_ids"], f"{pointer}/judgements")
    _refuse_twice(keys[n_judged:], found["item_ids"], f"{pointer}/retrieved")
    known, places = np.unique(keys, return_index=True)
    grades, values = np.full(known.size, UNJUDGED), np.full(known.size, NOT_RETRIEVED)
    grades[np.searchsorted(known, keys[:n_judged])] = judged["relevance"]
    values[np.searchsorted(known, keys[n_judged:])] = _scores_of(found)
    used: NDArray[np.intp] = np.unique(codes[:n_judged])
    of_queries = codes[places]
    kept = np.isin(of_queries, used)
    left = np.asarray(np.searchsorted(used, of_queries[kept]))
    entries = np.asarray(np.searchsorted(used, codes[:n_judged]))
    return (queries.take(used), left, grades[kept], values[kept]), entries, len(queries) - used.size


def _scores_of(read: Mapping[str, Any]) -> Array:
    scores: Array = read["scores"] if "scores" in read else -read["ranks"]
    return scores


def _coded(first: NDArray[Any], second: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Ids of two columns in order, and their codes one after another; the integer 3 and the text "3" are one id."""
    if first.dtype.kind != second.dtype.kind:
        first, second = first.astype(np.str_), second.astype(np.str_)
    ids, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    return ids, codes


def _refuse_twice(keys: NDArray[np.int64], items: NDArray[Any], pointer: str) -> None:
    order = np.argsort(keys, kind="stable")
    again = np.flatnonzero(np.diff(keys.take(order)) == 0)
    if again.size:
        first, second = order[again[0]], order[again[0] + 1]
        raise InvalidInput.at(
            f"{pointer}/item_ids/{second}",
            "duplicate_item",
            f"expected each item once for a query, got {shown(str(items[second]))} at {first} and again here",
        )


def _counted(samples: Samples, size: int, cutoffs: Sequence[int], facts: Mapping[str, Any]) -> MatrixInput:
    """The canonical form of so many queries by their items."""
    grades, codes, values = samples.truth, samples.predicted, samples.known_outputs
    least = facts.get(RELEVANT_FROM)
    counts = QueryCounts(
        np.bincount(codes, minlength=size),
        np.bincount(codes, grades > 0 if least is None else grades >= least, size),
        np.bincount(codes, values > NOT_RETRIEVED, size),
        np.bincount(codes, grades == UNJUDGED, size),
    )
    return counted_ranking(counts, cutoffs, samples, facts)


class QueryCounts(NamedTuple):
    """Numbers of items of each query (Q).

    Attributes:
        items: Judged or retrieved.
        relevant: Of these.
        retrieved: Judged or not.
        unjudged: Retrieved and not judged.
    """

    items: NDArray[Any]
    relevant: NDArray[Any]
    retrieved: NDArray[Any]
    unjudged: NDArray[Any]

    @property
    def together(self) -> NDArray[np.int64]:
        """Queries, their items, relevant items, and queries with a relevant item (4): the counts of an input."""
        relevant = self.relevant
        return np.array([relevant.size, self.items.sum(), relevant.sum(), np.count_nonzero(relevant)], dtype=np.int64)


def counted_ranking(
    counts: QueryCounts,
    cutoffs: Sequence[int],
    samples: Samples | None,
    facts: Mapping[str, Any] = MappingProxyType({}),
) -> MatrixInput:
    """The canonical form of queries, with facts that the counts do not say."""
    queries, items, relevant, with_relevant = counts.together.tolist()
    return MatrixInput(
        kind=Ranking.kind,
        labels=(),
        positive=None,
        content=Content.counts,
        counts=counts.together,
        facts={
            "rows": items,
            "cutoffs": list(cutoffs),
            "relevant_items": relevant,
            "queries_without_relevant_items": queries - with_relevant,
            "queries_without_retrieved_items": int(np.count_nonzero(counts.retrieved == 0)),
            "not_retrieved": items - int(counts.retrieved.sum()),
            "unjudged": int(counts.unjudged.sum()),
            **facts,
        },
        samples=samples,
    )
